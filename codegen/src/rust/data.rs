//! Structs, enumerations, exceptions, other names, constants.

use super::call::{Place, Role, Value, check_fields, is_guid, values, write_counts};
use super::interface::COMPLEX;
use super::plan::member_names;
use super::types::Types;
use super::unions;
use crate::names::Taken;
use crate::page::Page;
use everywire_model::shape::{Alias, Enum, Field, Shape, Struct};
use everywire_model::value::Value as Literal;
use everywire_model::{Constant, Hold};

/// Writes the definition of a named type.
pub(super) fn define(types: &Types<'_, '_>, shape: &Shape, page: &mut Page) {
    match shape {
        Shape::Struct(fields) => define_record(types, fields, page),
        Shape::Enum(members) => define_enumeration(types, members, page),
        Shape::Union(union) => unions::define(types, union, page),
        Shape::Alias(alias) => define_alias(types, alias, page),
        _ => {}
    }
}

/// Writes how a named type is marshalled.
pub(super) fn implement(types: &Types<'_, '_>, shape: &Shape, page: &mut Page) {
    match shape {
        Shape::Struct(fields) => implement_record(types, fields, page),
        Shape::Enum(members) => implement_enumeration(types, members, page),
        Shape::Union(union) => unions::implement(types, union, page),
        _ => {}
    }
}

/// Writes what makes an exception an error.
pub(super) fn implement_exception(types: &Types<'_, '_>, exception: &Struct, page: &mut Page) {
    implement_record(types, exception, page);
    let Some(place) = types.plan.find(&exception.name) else { return };
    page.gap();
    page.block(&format!("impl ew::Exception for {}", place.name), |page| {
        page.block("fn shape() -> &'static ew::Shape", |page| {
            page.line(format!("const {{ &ew::describe::structure(&describe::{}) }}", place.described));
        });
    });
    page.gap();
    page.block(&format!("impl std::fmt::Display for {}", place.name), |page| {
        page.block("fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result", |page| {
            page.line("write!(f, \"{self:?}\")");
        });
    });
    page.gap();
    page.line(format!("impl std::error::Error for {} {{}}", place.name));
}

fn define_alias(types: &Types<'_, '_>, alias: &Alias, page: &mut Page) {
    let Some(name) = types.named(&alias.name) else { return };
    page.gap();
    page.doc(&format!("`{}` of the contract.", alias.name));
    allow_capitals(&name, page);
    page.line(format!("pub type {name} = {};", types.owned(&alias.target)));
}

/// Writes a struct or an exception.
pub(super) fn define_record(types: &Types<'_, '_>, shape: &Struct, page: &mut Page) {
    let doc = match shape.name.as_ref() {
        "" => "A struct that has no name in the contract.".to_owned(),
        name => format!("`{name}` of the contract."),
    };
    let name = types.plan.find_struct(shape).map_or("", |place| place.name.as_str());
    define_fields(types, name, shape, &doc, page);
}

/// Writes a struct with these fields under another name.
pub(super) fn define_fields(types: &Types<'_, '_>, name: &str, fields: &Struct, doc: &str, page: &mut Page) {
    let values = values(&fields.fields, Place::Fields);
    let comparable = fields.fields.iter().all(|field| types.plan.graph.comparable(&field.shape));
    page.gap();
    page.doc(doc);
    let derived = match (is_number(fields), comparable) {
        (true, _) => ", Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default",
        (false, true) => ", PartialEq",
        (false, false) => "",
    };
    page.line(format!("#[derive(Debug, Clone{derived})]"));
    allow_capitals(name, page);
    if values.is_empty() {
        page.line(format!("pub struct {name} {{}}"));
    } else {
        page.line("#[allow(missing_docs)]");
        page.block(&format!("pub struct {name}"), |page| {
            for value in values.iter().filter(|value| value.is_shown()) {
                let kind = match value.bare() {
                    Some(shape) => types.owned(shape),
                    None => types.member(&fields.name, &value.field.shape),
                };
                let name = &value.name;
                if kind.len() > COMPLEX {
                    page.line("#[allow(clippy::type_complexity)]");
                }
                page.line(format!("pub {name}: {kind},"));
            }
        });
    }
}

fn implement_record(types: &Types<'_, '_>, shape: &Struct, page: &mut Page) {
    let name = types.plan.find_struct(shape).map_or("", |place| place.name.as_str());
    implement_fields(types, name, shape, page);
}

/// Writes how a struct with these fields under another name is marshalled.
pub(super) fn implement_fields(types: &Types<'_, '_>, name: &str, fields: &Struct, page: &mut Page) {
    let values = values(&fields.fields, Place::Fields);
    let counted = values.iter().any(|value| !value.is_shown());
    if !counted && is_words(fields) {
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        return implement_words(name, &names, page);
    }
    page.gap();
    page.block(&format!("impl ew::Marshal for {name}"), |page| {
        marshal_fn(page, |page| {
            // A field is said by its name, a count by its number.
            let said: Vec<String> = values
                .iter()
                .enumerate()
                .map(|(index, value)| match value.is_shown() {
                    true => format!("self.{}", value.name),
                    false => format!("count_{index}"),
                })
                .collect();
            write_counts(types, &values, &said, page);
            page.line(format!("sink.open(shape, {})?;", values.len()));
            for (index, (value, said)) in values.iter().zip(&said).enumerate() {
                let said = match value.role {
                    Role::Bare => format!("&ew::counts::Filled(&{said})"),
                    _ => format!("&{said}"),
                };
                page.line(format!(
                    "ew::Marshal::marshal({said}, ew::marshal::field(shape, {index}), sink)?;"
                ));
            }
            page.line("sink.close(shape)");
        });
    });
    page.gap();
    page.block(&format!("impl<'a> ew::Unmarshal<'a> for {name}"), |page| {
        unmarshal_fn(page, |page| {
            page.line("source.open(shape)?;");
            let read = |index: usize| {
                format!("ew::Unmarshal::unmarshal(ew::marshal::field(shape, {index}), source)?")
            };
            if counted {
                return unmarshal_counted(types, &values, read, page);
            }
            let fields: Vec<_> = values
                .iter()
                .enumerate()
                .map(|(index, value)| format!("{}: {}", value.name, read(index)))
                .collect();
            match fields.as_slice() {
                [] => {
                    page.line("source.close(shape)?;");
                    page.line("Ok(Self {})");
                    return;
                }
                [one] => page.assign("let value", &format!("Self {{ {one} }}")),
                several => page.list("let value = Self {", several, "};"),
            }
            page.line("source.close(shape)?;");
            page.line("Ok(value)");
        });
    });
    if fields.name == "GUID" && is_number(fields) {
        implement_guid(name, page);
    }
}

/// Whether a struct is nothing but unsigned numbers of 32 bits, as times are: those are written and read in one go.
fn is_words(fields: &Struct) -> bool {
    let word = |field: &Field| matches!(field.shape.resolved(), Shape::U32);
    (2..=8).contains(&fields.fields.len()) && fields.fields.iter().all(word)
}

fn implement_words(name: &str, fields: &[&str], page: &mut Page) {
    page.gap();
    page.block(&format!("impl ew::Marshal for {name}"), |page| {
        marshal_fn(page, |page| {
            let said: Vec<String> = fields.iter().map(|field| format!("self.{field}")).collect();
            page.line(format!("sink.words(shape, &[{}])", said.join(", ")));
        });
    });
    page.gap();
    page.block(&format!("impl<'a> ew::Unmarshal<'a> for {name}"), |page| {
        unmarshal_fn(page, |page| {
            page.line(format!("let mut words = [0; {}];", fields.len()));
            page.line("source.words(shape, &mut words)?;");
            let held: Vec<String> = (0..fields.len()).map(|index| format!("word_{index}")).collect();
            page.line(format!("let [{}] = words;", held.join(", ")));
            let fields: Vec<String> =
                fields.iter().zip(held).map(|(field, word)| format!("{field}: {word}")).collect();
            page.line(format!("Ok(Self {{ {} }})", fields.join(", ")));
        });
    });
}

/// Writes how a struct is read whose counts are not among its fields.
fn unmarshal_counted(
    types: &Types<'_, '_>,
    values: &[Value<'_>],
    read: impl Fn(usize) -> String,
    page: &mut Page,
) {
    let mut taken = Taken::visits();
    let locals: Vec<String> = values.iter().map(|value| taken.name_value(value.name.clone())).collect();
    for (index, (value, local)) in values.iter().zip(&locals).enumerate() {
        let head = match value.role {
            Role::Shown => format!("let {local}"),
            Role::Bare => format!("let ew::counts::Filled({local})"),
            Role::Counts(_) => format!("let {local}: {}", types.owned(&value.field.shape)),
        };
        page.assign(&head, &read(index));
    }
    // What follows from the length alone needs the types that the fields have.
    page.line("source.close(shape)?;");
    let shown: Vec<_> = values
        .iter()
        .zip(&locals)
        .filter(|(value, _)| value.is_shown())
        .map(
            |(value, local)| {
                if value.name == *local { local.clone() } else { format!("{}: {local}", value.name) }
            },
        )
        .collect();
    let line = format!("let value = Self {{ {} }};", shown.join(", "));
    match page.fits(&line) {
        true => page.line(line),
        false => page.list("let value = Self {", &shown, "};"),
    }
    let said: Vec<String> = values
        .iter()
        .zip(&locals)
        .map(|(value, local)| if value.is_shown() { format!("value.{}", value.name) } else { local.clone() })
        .collect();
    check_fields(values, &said, page);
    page.line("Ok(value)");
}

/// Writes what makes a GUID easy to have: from a number, from an interface, from and to text.
fn implement_guid(name: &str, page: &mut Page) {
    page.gap();
    page.line("#[allow(dead_code)]");
    page.block(&format!("impl {name}"), |page| {
        page.doc("The GUID that is this number, its first digit the highest.");
        page.block("pub const fn from_u128(value: u128) -> Self", |page| {
            page.line("let (data1, data2, data3, data4) = ew::guid::split(value);");
            page.line("Self { data1, data2, data3, data4 }");
        });
        page.gap();
        page.doc("The identity of an interface.");
        page.block("pub fn of<I: ew::Remote + ?Sized>() -> Self", |page| {
            page.line("let (data1, data2, data3, data4) = ew::guid::of::<I>();");
            page.line("Self { data1, data2, data3, data4 }");
        });
        page.gap();
        page.doc("The GUID that is written so, in braces or not.");
        page.block("pub fn parse(text: &str) -> Option<Self>", |page| {
            page.line("let (data1, data2, data3, data4) = ew::guid::parse(text)?;");
            page.line("Some(Self { data1, data2, data3, data4 })");
        });
    });
    page.gap();
    page.block(&format!("impl std::fmt::Display for {name}"), |page| {
        page.block("fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result", |page| {
            page.line("f.write_str(&ew::guid::text((self.data1, self.data2, self.data3, self.data4)))");
        });
    });
}

/// Whether a struct is one number to people: a GUID, a point in time.
fn is_number(fields: &Struct) -> bool {
    let guid = is_guid(&Shape::Struct(Hold::new(fields.clone())));
    guid || (fields.name == "FILETIME" && fields.fields.iter().all(|field| matches!(field.shape, Shape::U32)))
}

/// Writes that a type may have a name of capitals.
pub(super) fn allow_capitals(name: &str, page: &mut Page) {
    if name.len() > 2 && !name.contains(char::is_lowercase) {
        page.line("#[allow(clippy::upper_case_acronyms)]");
    }
}

fn define_enumeration(types: &Types<'_, '_>, members: &Enum, page: &mut Page) {
    let Some(place) = types.plan.find(&members.name) else { return };
    let names = member_names(members);
    page.gap();
    page.doc(&format!("`{}` of the contract.", members.name));
    page.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    allow_capitals(&place.name, page);
    page.line("#[allow(missing_docs)]");
    page.block(&format!("pub enum {}", place.name), |page| {
        for ((_, value), name) in members.members.iter().zip(&names) {
            page.line(format!("{name} = {value},"));
        }
    });
}

fn implement_enumeration(types: &Types<'_, '_>, members: &Enum, page: &mut Page) {
    let Some(place) = types.plan.find(&members.name) else { return };
    let names = member_names(members);
    page.gap();
    page.block(&format!("impl ew::union::Discriminator for {}", place.name), |page| {
        page.block("fn label(self) -> i64", |page| page.line("self as i64"));
        page.gap();
        page.block("fn from_label(label: i64) -> Option<Self>", |page| {
            page.block("match label", |page| {
                for ((_, value), name) in members.members.iter().zip(&names) {
                    page.line(format!("{value} => Some(Self::{name}),"));
                }
                page.line("_ => None,");
            });
        });
    });
    page.gap();
    page.block(&format!("impl ew::Marshal for {}", place.name), |page| {
        marshal_at("_", page, |page| {
            page.line(format!("sink.enumerant(&describe::{}, *self as i32)", place.described));
        });
    });
    page.gap();
    page.block(&format!("impl<'a> ew::Unmarshal<'a> for {}", place.name), |page| {
        unmarshal_at("_", page, |page| {
            page.line(format!("ew::union::label(source.enumerant(&describe::{})?.into())", place.described));
        });
    });
}

/// Writes a constant; one whose type has no literals becomes nothing.
pub(super) fn constant(types: &Types<'_, '_>, constant: &Constant, name: &str, page: &mut Page) {
    let (of, value) = match (constant.shape.resolved(), &constant.value) {
        (Shape::Text(_), Literal::Text(text)) => ("&str".to_owned(), format!("{text:?}")),
        (Shape::F32 | Shape::F64, Literal::Integer(value)) => {
            (types.owned(&constant.shape), format!("{value}.0"))
        }
        (Shape::F32 | Shape::F64, Literal::Float(value)) => {
            (types.owned(&constant.shape), format!("{value:?}"))
        }
        (_, Literal::Bool(value)) => (types.owned(&constant.shape), value.to_string()),
        (_, Literal::Integer(value)) => (types.owned(&constant.shape), value.to_string()),
        (_, Literal::Char(value)) => (types.owned(&constant.shape), format!("{value:?}")),
        (Shape::Enum(members), Literal::Member(member)) => {
            let named =
                members.members.iter().zip(member_names(members)).find(|((name, _), _)| name == member);
            let Some((_, variant)) = named else { return };
            (types.owned(&constant.shape), format!("{}::{variant}", types.owned(constant.shape.resolved())))
        }
        _ => return,
    };
    page.gap();
    page.doc(
        if constant.doc.is_empty() {
            format!("`{}` of the contract.", constant.name)
        } else {
            constant.doc.to_string()
        }
        .as_str(),
    );
    page.line(format!("pub const {name}: {of} = {value};"));
}

/// `fn marshal` with this body.
pub(super) fn marshal_fn(page: &mut Page, body: impl FnOnce(&mut Page)) {
    marshal_at("shape", page, body);
}

/// `fn unmarshal` with this body.
pub(super) fn unmarshal_fn(page: &mut Page, body: impl FnOnce(&mut Page)) {
    unmarshal_at("shape", page, body);
}

fn marshal_at(shape: &str, page: &mut Page, body: impl FnOnce(&mut Page)) {
    let parameters = ["&self".to_owned(), format!("{shape}: &ew::Shape"), "sink: &mut S".to_owned()];
    page.list("fn marshal<S: ew::Sink + ?Sized>(", &parameters, ") -> ew::Visit<()> {");
    page.enclosed_body(body);
}

fn unmarshal_at(shape: &str, page: &mut Page, body: impl FnOnce(&mut Page)) {
    let parameters = [format!("{shape}: &ew::Shape"), "source: &mut S".to_owned()];
    page.list("fn unmarshal<S: ew::Source<'a> + ?Sized>(", &parameters, ") -> ew::Visit<Self> {");
    page.enclosed_body(body);
}
