//! Structs, enumerations, exceptions, other names, constants.
//!
//! Each type is written twice: its definition, which people read, and a call of a macro that says how it is
//! marshalled. Structs derive `PartialEq` where all their fields can be compared. Counts that follow from
//! arrays are no fields (`call::values`), so the macro of such a struct has code that makes and checks them.
//!
//! States: none; everything is found in the plan. Invariants: the order of fields and members is that of the
//! contract, since that is their order on the wire; a name is the one that the plan gave, so definition, macro
//! and description agree.

use super::call::{Role, Value, ValueRole, check_fields, is_guid, values, write_counts};
use super::cells;
use super::definitions::member_names;
use super::lints::{COMPLEX, allow_capitals, allow_undocumented};
use super::types::Types;
use super::unions;
use crate::page::Page;
use everywire_model::shape::{Alias, Enum, Field, Name, Shape, Struct};
use everywire_model::value::Value as Literal;
use everywire_model::{Constant, Hold};
use std::collections::HashMap;

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
    page.line(format!("ew::exceptions! {{ {}: describe::{} }}", place.name, place.described));
}

/// Another name for a type; nothing for a spelling.
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
    let values = values(&fields.fields, ValueRole::Fields);
    let comparable = fields.fields.iter().all(|field| types.plan.graph.comparable(&field.shape));
    page.gap();
    page.doc(doc);
    // A number to people has an order and can be a key.
    let derived = match (is_number(fields), comparable) {
        (true, _) => ", Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default",
        (false, true) => ", PartialEq",
        (false, false) => "",
    };
    page.line(format!("#[derive(Debug, Clone{derived})]"));
    if values.is_empty() {
        allow_capitals(name, page);
        page.line(format!("pub struct {name} {{}}"));
    } else {
        allow_undocumented(name, page);
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

/// How a struct of the contract is marshalled.
fn implement_record(types: &Types<'_, '_>, shape: &Struct, page: &mut Page) {
    let name = types.plan.find_struct(shape).map_or("", |place| place.name.as_str());
    implement_fields(types, name, shape, page);
}

/// Writes how a struct with these fields under another name is marshalled.
pub(super) fn implement_fields(types: &Types<'_, '_>, name: &str, fields: &Struct, page: &mut Page) {
    // Counts that nobody sees make the struct one that needs code of its own.
    let values = values(&fields.fields, ValueRole::Fields);
    let shown: Vec<_> =
        values.iter().filter(|value| value.is_shown()).map(|value| value.name.clone()).collect();
    if shown.len() < values.len() {
        return implement_counted(types, name, &values, &shown, page);
    }
    // Both macros do the same; the first one is faster.
    let how = if is_words(fields) { "words" } else { "fields" };
    match cells::row(fields) {
        Some(row) => {
            page.fill(&format!("ew::{how}! {{ {name} {{ "), &shown, " }");
            page.line(format!("    row {{ {} }} }}", row.text(&shown)));
        }
        None => page.fill(&format!("ew::{how}! {{ {name} {{ "), &shown, " } }"),
    }
    if fields.name == "GUID" && is_number(fields) {
        page.line(format!("ew::guid! {{ {name} }}"));
    }
}

/// Writes how a struct is marshalled that has counts which people do not see.
fn implement_counted(
    types: &Types<'_, '_>,
    name: &str,
    values: &[Value<'_>],
    shown: &[String],
    page: &mut Page,
) {
    let names: Vec<_> = values.iter().map(|value| value.name.clone()).collect();
    let parts: Vec<_> = values
        .iter()
        .map(|value| match value.role {
            Role::Bare => format!("ew::counts::Filled({})", value.name),
            _ => value.name.clone(),
        })
        .collect();
    page.block("ew::counted_fields!", |page| {
        page.fill(&format!("{name} {{ "), shown, " }");
        page.clause("write", &parts, |page| write_counts(types, values, &names, page));
        page.clause("read", &parts, |page| check_fields(types, values, &names, page));
    });
}

/// Whether a struct is nothing but unsigned numbers of 32 bits, as times are: those are written and read in
/// one go. Eight words are what the macro takes.
fn is_words(fields: &Struct) -> bool {
    let word = |field: &Field| matches!(field.shape.resolved(), Shape::U32);
    (2..=8).contains(&fields.fields.len()) && fields.fields.iter().all(word)
}

/// Whether a struct is one number to people: a GUID, a point in time. It may be copied, compared and used as
/// a key.
fn is_number(fields: &Struct) -> bool {
    let guid = is_guid(&Shape::Struct(Hold::new(fields.clone())));
    guid || (fields.name == "FILETIME" && fields.fields.iter().all(|field| matches!(field.shape, Shape::U32)))
}

/// The members of an enumeration by their names in Rust: value, and for one that has the value of an earlier one, the name of that.
fn variants(members: &Enum) -> Vec<(String, i32, Option<String>)> {
    let mut known: HashMap<i32, String> = HashMap::new();
    let named = members.members.iter().zip(member_names(members));
    let variant = |((_, value), name): (&(Name, i32), String)| {
        let earlier = known.get(value).cloned();
        known.entry(*value).or_insert_with(|| name.clone());
        (name, *value, earlier)
    };
    named.map(variant).collect()
}

/// The enumeration with its values, which travel as they are. A member with the value of another is a constant, as a variant has a
/// value of its own.
fn define_enumeration(types: &Types<'_, '_>, members: &Enum, page: &mut Page) {
    let Some(place) = types.plan.find(&members.name) else { return };
    if members.open {
        return define_number(&place.name, members, page);
    }
    let (others, variants): (Vec<_>, Vec<_>) =
        variants(members).into_iter().partition(|(.., of)| of.is_some());
    page.gap();
    page.doc(&format!("`{}` of the contract.", members.name));
    page.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    allow_undocumented(&place.name, page);
    page.block(&format!("pub enum {}", place.name), |page| {
        for (name, value, _) in &variants {
            page.line(format!("{name} = {value},"));
        }
    });
    if !others.is_empty() {
        page.gap();
        page.line("#[allow(missing_docs, non_upper_case_globals)]");
        page.block(&format!("impl {}", place.name), |page| {
            for (name, _, of) in &others {
                page.line(format!("pub const {name}: Self = Self::{};", of.as_deref().unwrap_or_default()));
            }
        });
    }
}

/// An open enumeration: a number, as values come that no member has, and constants for its members.
fn define_number(name: &str, members: &Enum, page: &mut Page) {
    page.gap();
    page.doc(&format!("`{}` of the contract: a number, with names for some.", members.name));
    page.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
    allow_capitals(name, page);
    page.line(format!("pub struct {name}(pub i32);"));
    page.gap();
    page.line("#[allow(missing_docs, non_upper_case_globals)]");
    page.block(&format!("impl {name}"), |page| {
        for (name, value, _) in variants(members) {
            page.line(format!("pub const {name}: Self = Self({value});"));
        }
    });
}

/// How an enumeration is marshalled, by its description.
fn implement_enumeration(types: &Types<'_, '_>, members: &Enum, page: &mut Page) {
    let Some(place) = types.plan.find(&members.name) else { return };
    if members.open {
        return page.line(format!("ew::numbers! {{ {}: describe::{} }}", place.name, place.described));
    }
    let head = format!("ew::members! {{ {}: describe::{} {{ ", place.name, place.described);
    let variants = variants(members).into_iter().filter(|(.., of)| of.is_none());
    let names: Vec<String> = variants.map(|(name, ..)| name).collect();
    page.fill(&head, &names, " } }");
}

/// Writes a constant; one whose type has no literals becomes nothing. A text is borrowed.
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
        (Shape::Enum(_), Literal::Integer(value)) => {
            let of = types.owned(constant.shape.resolved());
            (types.owned(&constant.shape), format!("{of}({value})"))
        }
        (_, Literal::Integer(value)) => (types.owned(&constant.shape), value.to_string()),
        (Shape::Array(_), Literal::Bytes(octets)) => {
            (types.owned(&constant.shape), format!("{:?}", &octets[..]))
        }
        (_, Literal::Char(value)) => (types.owned(&constant.shape), format!("{value:?}")),
        (Shape::Enum(members), Literal::Member(member)) => {
            // The variant has another name than the member.
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
