//! Names and namespaces of the data contract.
//!
//! The rules are those of DataContractSerializer. A shape whose identity is in Clark notation
//! (`{namespace}name`) has its names from there, as WSDL gave them; any other has the default ones, by its
//! scoped name.

use everywire_idl::wsdl::lexical::Lexical;
use everywire_idl::wsdl::names::{self, DATA, QName, last_part};
use everywire_model::Shape;
use everywire_model::shape::{Alias, Hold, Text, Union};
use std::borrow::Cow;

pub(super) use everywire_idl::wsdl::names::{ARRAYS, SCHEMA, SERIALIZATION};

/// The encoding of SOAP 1.2.
pub(super) const ENCODING: &str = "http://www.w3.org/2003/05/soap-encoding";
/// The encoding of SOAP 1.1, the only one whose arrays may come in parts.
pub(super) const ARRAYS_ENCODING: &str = "http://schemas.xmlsoap.org/soap/encoding/";
pub(crate) const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// Namespace and local part of a name in Clark notation.
pub(super) fn clark(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.rsplit_once('}')
}

/// Namespace and name of a named type: its identity in Clark notation, else as its scoped name has it.
/// As [`names::type_name`], without a copy of what is in the identity already.
/// What stands behind a semicolon in the identity is about collections (see `Collection`).
pub(super) fn type_name<'s>(id: &'s str, name: &'s str) -> (Cow<'s, str>, &'s str) {
    match clark(id) {
        Some((namespace, local)) => (Cow::Borrowed(namespace), local.split(';').next().unwrap_or(local)),
        None => {
            let module = name.rsplit_once("::").map_or("", |(module, _)| module).replace("::", ".");
            (Cow::Owned(format!("{DATA}{module}")), last_part(name))
        }
    }
}

/// Names in a collection that are not the default ones: `{ns}Name;item,key,value`.
#[derive(Default)]
pub(super) struct Collection<'s> {
    pub(super) namespace: Option<&'s str>,
    /// A leading `-` says that items are in no namespace.
    pub(super) item: Option<&'s str>,
    pub(super) key: Option<&'s str>,
    pub(super) value: Option<&'s str>,
}

/// What an alias says of the collection that it names.
pub(super) fn collection(alias: &Alias) -> Option<Collection<'_>> {
    let (namespace, local) = clark(&alias.id)?;
    let mut names = local.split(';').nth(1).unwrap_or_default().split(',').map(Some);
    let mut next = || names.next().flatten().filter(|name| !name.is_empty());
    Some(Collection { namespace: Some(namespace), item: next(), key: next(), value: next() })
}

/// How a plain type that XML Schema has and the shapes do not is written.
/// Such values travel as text in the neutral model, so that none of their digits is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// A text that has to be a value of this type.
    Typed(Lexical),
    QName,
    /// Elements in place of characters.
    Markup,
}

/// The notation of a shape, if an alias of it says one.
pub(super) fn notation(shape: &Shape) -> Option<Notation> {
    let mut shape = shape;
    while let Shape::Alias(alias) = shape {
        match clark(&alias.id) {
            Some((SCHEMA, "QName")) => return Some(Notation::QName),
            Some((SCHEMA, "anyXML")) => return Some(Notation::Markup),
            Some((namespace, local)) => match Lexical::named(namespace, local) {
                // A value may tell such a name of another shape.
                Some(kind) if matches!(alias.target.resolved(), Shape::Text(_)) => {
                    return Some(Notation::Typed(kind));
                }
                _ => shape = &alias.target,
            },
            None => shape = &alias.target,
        }
    }
    None
}

/// A text that stands for elements, of a type that they name or of none.
pub(super) fn markup(told: Option<(&str, &str)>) -> Shape {
    let plain = carried(SCHEMA, "anyXML");
    match told {
        Some((namespace, local)) => self::told(namespace, local, plain),
        None => plain,
    }
}

/// A value under the name of the type that it told.
pub(super) fn told(namespace: &str, local: &str, target: Shape) -> Shape {
    carried_as(namespace, local, target)
}

/// The name of the type of all types, for a value that told no other (XML Schema part 1, 3.4.7).
const ANY_TYPE: &str = "{http://www.w3.org/2001/XMLSchema}anyType";

/// A struct whose type nobody told: its name is that of its element.
pub(super) fn untold(target: Shape) -> Shape {
    match target {
        Shape::Struct(_) => carried_as(SCHEMA, "anyType", target),
        other => other,
    }
}

/// Whether a value tells no type, since it is XML of none, or came without one.
pub(super) fn is_untyped(shape: &Shape) -> bool {
    matches!(shape, Shape::Alias(alias) if alias.id == names::MARKUP || alias.id == ANY_TYPE)
}

/// Namespace and name by which a value tells its own type (`i:type`).
pub(super) fn told_type(shape: &Shape) -> Option<QName> {
    match shape {
        Shape::Alias(alias) if clark(&alias.id).is_none() => told_type(&alias.target),
        // One that others extend is told by the type that it is, which its arm has.
        Shape::Union(union) if is_derived(union) || (union.name.is_empty() && union.id.is_empty()) => None,
        Shape::Optional(_)
        | Shape::Pointer(_)
        | Shape::Reference(_)
        | Shape::Void
        | Shape::Variant
        | Shape::TypeCode
        | Shape::Handle => None,
        // Its members' types would be lost: nobody else knows a type of this name.
        Shape::Struct(nameless) if nameless.name.is_empty() && nameless.id.is_empty() => None,
        _ => Some(names::of_shape(shape)),
    }
}

/// Whether a union is a type with derived types, told by `i:type`: it has a Clark name, and its arms are all structs.
pub(super) fn is_derived(union: &Union) -> bool {
    clark(&union.id).is_some()
        && matches!(union.discriminator.resolved(), Shape::Enum(_))
        && union.arms.iter().all(|arm| matches!(arm.field.shape.resolved(), Shape::Struct(_)))
}

/// How many `ArrayOf` the name of a value's own type may begin with.
/// The name comes from a peer, and each of them nests a shape.
const ARRAY_DEPTH: usize = 4;

/// The shape of a plain type or an array of such, by its name.
/// `None` for names that only a contract can explain.
pub(super) fn schema_shape(name: &str) -> Option<Shape> {
    let mut plain = name;
    let mut arrays = 0;
    while let Some(element) = plain.strip_prefix("ArrayOf") {
        plain = element;
        arrays += 1;
        if arrays > ARRAY_DEPTH {
            return None;
        }
    }
    (0..arrays).try_fold(plain_shape(plain)?, |shape, _| Some(Shape::sequence(shape)))
}

/// The shape of XML Schema's own duration; .NET's is another type of that name.
pub(super) fn schema_duration() -> Shape {
    carried(SCHEMA, "duration")
}

/// A text under the name of its type.
fn carried(namespace: &str, name: &str) -> Shape {
    carried_as(namespace, name, Shape::Text(Text::WIDE))
}

fn carried_as(namespace: &str, name: &str, target: Shape) -> Shape {
    let id = format!("{{{namespace}}}{name}").into();
    Shape::Alias(Hold::new(Alias { name: name.to_owned().into(), id, target }))
}

fn plain_shape(name: &str) -> Option<Shape> {
    let typed = |namespace: &str| carried(namespace, name);
    Some(match name {
        "char" => Shape::WideChar,
        "string" => Shape::Text(Text::WIDE),
        // Types without a neutral counterpart are carried in their notation.
        "decimal" | "dateTime" | "anyURI" | "QName" => typed(SCHEMA),
        "duration" | "guid" => typed(SERIALIZATION),
        "base64Binary" => Shape::sequence(Shape::U8),
        _ => return names::number(name),
    })
}
