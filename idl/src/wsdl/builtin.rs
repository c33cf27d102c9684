//! Types that need no definition, and the names that lists and dictionaries have by default.
//!
//! `find` goes from a name to a shape, `name` from a shape to the name that it has in a schema;
//! DataContractSerializer's rules make the names of lists (`ArrayOfint`) and pairs (`KeyValueOfstringint`).
//! Both ways must agree, since a description that we print is read by our own clients as well as by those of
//! .NET.
//!
//! Values without a shape of their own (dates, decimals, durations, numbers without bounds) are aliases of
//! text, whose identity is the name of the type: the text travels as it is written.

use super::names::{ARRAYS, DATA, MARKUP, QName, SCHEMA, SERIALIZATION, scoped, type_name};
use everywire_model::shape::{Alias, Map, Name, Text};
use everywire_model::{Hold, Shape};

/// The namespace of endpoint references (WS-Addressing 1.0).
pub(super) const ADDRESSING: &str = "http://www.w3.org/2005/08/addressing";

/// The namespace of SOAP's own encoding (SOAP 1.1, 5).
pub(super) const ENCODING: &str = "http://schemas.xmlsoap.org/soap/encoding/";
/// WS-Addressing as it was submitted.
const SUBMITTED: &str = "http://schemas.xmlsoap.org/ws/2004/08/addressing";
/// Octets of a told media type (Assigning Media Types to Binary Data in XML).
const MIME: [&str; 2] = ["http://www.w3.org/2005/05/xmlmime", "http://www.w3.org/2004/11/xmlmime"];
/// The identity of a qualified name.
const QNAME: &str = "{http://www.w3.org/2001/XMLSchema}QName";
/// Where octets are that travel beside the text (XOP).
const XOP: &str = "http://www.w3.org/2004/08/xop/include";

/// A type and what a schema has to know of it.
#[derive(Clone)]
pub(super) struct Typed {
    /// Its name, which the shape of a type that is not complete cannot tell.
    pub(super) name: QName,
    /// What its values are.
    pub(super) shape: Shape,
    /// How deep it contains others. At most `NESTING`, which `types` checks.
    pub(super) depth: usize,
    /// Whether nothing can be missing: a value type.
    pub(super) value: bool,
    /// Whether it is a type that contains itself and is not complete yet.
    pub(super) open: bool,
}

impl Typed {
    /// A type without others inside; its name follows from the shape.
    pub(super) fn plain(shape: Shape, value: bool) -> Self {
        Self { name: name(&shape), shape, depth: 1, value, open: false }
    }
}

/// A type of XML Schema, of the serialization namespace, or of WS-Addressing. None for a name that a schema
/// must define.
pub(super) fn find(name: &QName) -> Option<Typed> {
    let local = name.local.as_str();
    match name.namespace.as_str() {
        SCHEMA => schema(name, local),
        SERIALIZATION => match local {
            "guid" | "duration" => Some(Typed::plain(carried(name, Shape::Text(Text::NARROW)), true)),
            "char" => Some(Typed::plain(carried(name, Shape::WideChar), true)),
            // The serializer has elements for all types of XML Schema.
            _ => schema(&QName::new(SCHEMA, local), local),
        },
        ADDRESSING | SUBMITTED => match local {
            "EndpointReferenceType" | "EndpointReference" | "ReplyTo" | "From" | "FaultTo" => {
                let any = everywire_model::shape::Referent { name: Name::from(""), id: Name::from("") };
                Some(Typed::plain(Shape::Reference(Hold::new(any)), false))
            }
            "AttributedURIType" | "AttributedURI" | "To" | "Action" | "MessageID" => {
                schema(&QName::new(SCHEMA, "anyURI"), "anyURI")
            }
            _ => None,
        },
        ENCODING => match local {
            "base64" => schema(name, "base64Binary"),
            "Array" => Some(Typed::plain(Shape::sequence(Shape::Variant), false)),
            "Struct" => Some(Typed::plain(Shape::Variant, false)),
            _ => schema(&QName::new(SCHEMA, local), local),
        },
        XOP if local == "Include" => Some(Typed::plain(Shape::Variant, false)),
        mime if MIME.contains(&mime) => match local {
            "base64Binary" | "hexBinary" => schema(&QName::new(SCHEMA, local), local),
            _ => None,
        },
        _ => None,
    }
}

/// A type of XML Schema. `name` is what an alias is called, which may be in another namespace.
fn schema(name: &QName, local: &str) -> Option<Typed> {
    match local {
        "string" => Some(Typed::plain(Shape::Text(Text::NARROW), false)),
        "base64Binary" => Some(Typed::plain(Shape::sequence(Shape::U8), false)),
        "anyType" | "anySimpleType" => Some(Typed::plain(Shape::Variant, false)),
        // Values without a neutral counterpart are carried in their notation.
        "dateTime" | "decimal" | "duration" | "date" | "time" | "gYear" | "gYearMonth" | "gMonth"
        | "gMonthDay" | "gDay" | "integer" | "nonNegativeInteger" | "positiveInteger"
        | "nonPositiveInteger" | "negativeInteger" => {
            Some(Typed::plain(carried(name, Shape::Text(Text::NARROW)), true))
        }
        // Names of drafts of XML Schema. They are read only; nothing is printed with them.
        "timeInstant" | "timeDuration" | "recurringDate" | "month" | "year" | "uriReference" => {
            Some(Typed::plain(carried(name, Shape::Text(Text::NARROW)), false))
        }
        "binary" => Some(Typed::plain(Shape::sequence(Shape::U8), false)),
        "ur-type" => Some(Typed::plain(Shape::Variant, false)),
        "anyURI" | "QName" | "hexBinary" | "NOTATION" | "normalizedString" | "token" | "language"
        | "Name" | "NCName" | "ID" | "IDREF" | "IDREFS" | "ENTITY" | "ENTITIES" | "NMTOKEN" | "NMTOKENS" => {
            Some(Typed::plain(carried(name, Shape::Text(Text::NARROW)), false))
        }
        _ => number(local).map(|shape| Typed::plain(shape, true)),
    }
}

/// The shape of a number, or of a boolean, by its name in XML Schema.
#[must_use]
pub fn number(local: &str) -> Option<Shape> {
    Some(match local {
        "boolean" => Shape::Bool,
        "byte" => Shape::I8,
        "unsignedByte" => Shape::U8,
        "short" => Shape::I16,
        "unsignedShort" => Shape::U16,
        "int" => Shape::I32,
        "unsignedInt" => Shape::U32,
        "long" => Shape::I64,
        "unsignedLong" => Shape::U64,
        "float" => Shape::F32,
        "double" => Shape::F64,
        _ => return None,
    })
}

/// Text, or a character, that keeps the name of its type.
fn carried(name: &QName, target: Shape) -> Shape {
    alias(name, &name.to_string(), target)
}

/// What stands in an element that may hold any others: their XML, as text.
pub(super) fn markup() -> Typed {
    Typed::plain(carried(&QName::new(SCHEMA, "anyXML"), Shape::Text(Text::NARROW)), false)
}

/// Whether a value of this shape is XML that has no type of its own in a schema.
pub(super) fn is_markup(shape: &Shape) -> bool {
    match shape {
        Shape::Optional(held) => is_markup(held),
        Shape::Alias(alias) => alias.id == MARKUP,
        _ => false,
    }
}

/// An alias around a shape; its name follows from the name in the schema.
pub(super) fn alias(name: &QName, id: &str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: scoped(name), id: Name::from(id.to_owned()), target }))
}

/// Whether a value of this shape can be missing without saying so: it reads as empty. Then an element that is
/// missing is no mistake.
pub(super) fn is_emptiable(shape: &Shape) -> bool {
    match shape {
        // No element at all is another thing than an element without anything in it, which .NET refuses to read.
        Shape::Alias(alias) if alias.id == MARKUP => false,
        // An empty text is no name, and says of none that there is no name.
        Shape::Alias(alias) if alias.id == QNAME => false,
        Shape::Alias(alias) => !is_value(shape) && is_emptiable(&alias.target),
        Shape::Text(_)
        | Shape::Sequence(_)
        | Shape::Array(_)
        | Shape::Map(_)
        | Shape::Variant
        | Shape::Reference(_) => true,
        _ => false,
    }
}

/// Whether a value is a qualified name, which is no value type to .NET and has no empty value.
pub(super) fn is_qualified_name(shape: &Shape) -> bool {
    match shape {
        Shape::Alias(alias) => alias.id == QNAME || is_qualified_name(&alias.target),
        _ => false,
    }
}

/// Whether .NET holds a value of this shape as a value type, other than a struct. Such a member is written
/// even where it is zero, and cannot be nil without `Optional`.
pub(super) fn is_value(shape: &Shape) -> bool {
    match shape {
        Shape::Alias(alias) => match QName::parse(&alias.id) {
            Some(name) if matches!(alias.target, Shape::Text(_)) => {
                alias.id.contains(";list") || find(&name).is_some_and(|typed| typed.value)
            }
            _ => is_value(&alias.target),
        },
        Shape::Bool | Shape::Char | Shape::WideChar | Shape::Enum(_) => true,
        other => other.width().is_some(),
    }
}

/// Whether a value of this type may be nil without a word of the element: the simple types of SOAP's encoding are made so (SOAP 1.1, 5.1),
/// and Java's `Integer` is one of them to Axis.
pub(super) fn is_nillable(of: &QName, shape: &Shape) -> bool {
    of.namespace == ENCODING && is_value(shape)
}

/// What a part of a message with this type is.
pub(super) fn of_part(of: &QName, shape: Shape) -> Shape {
    if is_nillable(of, &shape) { Shape::Optional(Hold::new(shape)) } else { shape }
}

/// The type that a value has in a schema, and by its local part the element's name among the items of a list.
#[must_use]
pub fn name(shape: &Shape) -> QName {
    match shape {
        // A type that its own reader never completed has no name.
        Shape::Struct(open) if open.get().is_none() => return QName::default(),
        Shape::Union(open) if open.get().is_none() => return QName::default(),
        _ => {}
    }
    let plain = |local: &str| QName::new(SCHEMA, local);
    match shape {
        Shape::Bool => plain("boolean"),
        Shape::U8 => plain("unsignedByte"),
        Shape::I8 => plain("byte"),
        Shape::U16 => plain("unsignedShort"),
        Shape::I16 => plain("short"),
        Shape::U32 => plain("unsignedInt"),
        Shape::I32 => plain("int"),
        Shape::U64 => plain("unsignedLong"),
        Shape::I64 => plain("long"),
        Shape::F32 => plain("float"),
        Shape::F64 => plain("double"),
        Shape::Char | Shape::WideChar => QName::new(SERIALIZATION, "char"),
        Shape::Text(_) => plain("string"),
        Shape::Reference(_) => QName::new(ADDRESSING, "EndpointReferenceType"),
        Shape::Struct(shape) if shape.name.is_empty() && shape.id.is_empty() => {
            // A struct without a name is called by its fields, so that equal ones are one type.
            let parts: Vec<String> = shape.fields.iter().map(|field| name(&field.shape).local).collect();
            QName::new(DATA, format!("StructOf{}", parts.concat()))
        }
        Shape::Struct(shape) => type_name(&shape.id, &shape.name),
        Shape::Union(shape) => type_name(&shape.id, &shape.name),
        Shape::Enum(shape) => type_name(&shape.id, &shape.name),
        Shape::Optional(target) => name(target),
        Shape::Pointer(pointer) => name(&pointer.target),
        Shape::Alias(alias) => QName::parse(&alias.id).unwrap_or_else(|| name(&alias.target)),
        Shape::Sequence(_) | Shape::Array(_) => match shape.element() {
            Some(element) if !matches!(element.resolved(), Shape::U8) => list(element),
            _ => plain("base64Binary"),
        },
        Shape::Map(map) => QName::new(ARRAYS, format!("ArrayOf{}", pair(map))),
        Shape::Void | Shape::Variant | Shape::TypeCode | Shape::Handle => plain("anyType"),
    }
}

/// The name that a list of these has by default.
#[must_use]
pub fn list(element: &Shape) -> QName {
    list_named(&name(element))
}

/// The name that a list of the items with this type has by default.
pub(super) fn list_named(item: &QName) -> QName {
    let namespace = match item.namespace.as_str() {
        SCHEMA | SERIALIZATION | ADDRESSING => ARRAYS,
        own => own,
    };
    QName::new(namespace, format!("ArrayOf{}", item.local))
}

/// The name that the pairs of a dictionary have by default.
#[must_use]
pub fn pair(map: &Map) -> String {
    pair_named(&name(&map.key), &name(&map.value))
}

/// The name that pairs of these types have by default.
pub(super) fn pair_named(key: &QName, value: &QName) -> String {
    format!("KeyValueOf{}{}", key.local, value.local)
}
