//! Structs, enumerations, exceptions, other names, constants.

use super::interface::COMPLEX;
use super::plan::{field_names, member_names};
use super::types::Types;
use super::unions;
use crate::page::Page;
use everywire_model::shape::{Alias, Enum, Field, Shape, Struct};
use everywire_model::{Constant, Value};

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
    let names = field_names(fields);
    let comparable = fields.fields.iter().all(|field| types.plan.graph.comparable(&field.shape));
    page.gap();
    page.doc(doc);
    page.line(format!("#[derive(Debug, Clone{})]", if comparable { ", PartialEq" } else { "" }));
    if names.is_empty() {
        page.line(format!("pub struct {name} {{}}"));
    } else {
        page.line("#[allow(missing_docs)]");
        page.block(&format!("pub struct {name}"), |page| {
            for (Field { shape, .. }, name) in fields.fields.iter().zip(&names) {
                let kind = types.member(&fields.name, shape);
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
    implement_fields(name, shape, page);
}

/// Writes how a struct with these fields under another name is marshalled.
pub(super) fn implement_fields(name: &str, fields: &Struct, page: &mut Page) {
    let names = field_names(fields);
    page.gap();
    page.block(&format!("impl ew::Marshal for {name}"), |page| {
        marshal_fn(page, |page| {
            page.line(format!("sink.open(shape, {})?;", names.len()));
            for (index, name) in names.iter().enumerate() {
                page.line(format!(
                    "ew::Marshal::marshal(&self.{name}, ew::marshal::field(shape, {index}), sink)?;"
                ));
            }
            page.line("sink.close(shape)");
        });
    });
    page.gap();
    page.block(&format!("impl<'a> ew::Unmarshal<'a> for {name}"), |page| {
        unmarshal_fn(page, |page| {
            page.line("source.open(shape)?;");
            if names.is_empty() {
                page.line("source.close(shape)?;");
                page.line("Ok(Self {})");
            } else {
                let fields: Vec<_> = names
                    .iter()
                    .enumerate()
                    .map(|(index, name)| {
                        format!(
                            "{name}: ew::Unmarshal::unmarshal(ew::marshal::field(shape, {index}), source)?"
                        )
                    })
                    .collect();
                match fields.as_slice() {
                    [one] => page.assign("let value", &format!("Self {{ {one} }}")),
                    several => page.list("let value = Self {", several, "};"),
                }
                page.line("source.close(shape)?;");
                page.line("Ok(value)");
            }
        });
    });
}

fn define_enumeration(types: &Types<'_, '_>, members: &Enum, page: &mut Page) {
    let Some(place) = types.plan.find(&members.name) else { return };
    let names = member_names(members);
    page.gap();
    page.doc(&format!("`{}` of the contract.", members.name));
    page.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
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
        (Shape::Text(_), Value::Text(text)) => ("&str".to_owned(), format!("{text:?}")),
        (Shape::F32 | Shape::F64, Value::Integer(value)) => {
            (types.owned(&constant.shape), format!("{value}.0"))
        }
        (Shape::F32 | Shape::F64, Value::Float(value)) => {
            (types.owned(&constant.shape), format!("{value:?}"))
        }
        (_, Value::Bool(value)) => (types.owned(&constant.shape), value.to_string()),
        (_, Value::Integer(value)) => (types.owned(&constant.shape), value.to_string()),
        (_, Value::Char(value)) => (types.owned(&constant.shape), format!("{value:?}")),
        (Shape::Enum(members), Value::Member(member)) => {
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
