//! Definitions of types, and types that are made because MIDL needs a name.
//!
//! A type that is made is found again by the text of its body, so equal shapes share one struct; its name
//! says what it is (`sequence_`, `map_`, `pair_`), which is how the reader turns it back.
//!
//! State of the printer that changes here: `defined`, the names that stand in the text already, and `pending`,
//! definitions that must stand before the one that is being written.
//!
//! Invariants: a name is defined once and before its first use, except behind a pointer; types that MIDL knows
//! without a file are never defined.

use super::super::made::{MAP, PAIR, SEQUENCE};
use super::declare::{Declaration, DeclarationPosition};
use super::{Printer, escaped, ident, is_known};
use crate::unique::Unique;
use everywire_model::shape::{Arm, Enum, Field, Pointer, PointerKind, Struct, TextKind, Union};
use everywire_model::{Contract, Definition, Hold, Shape, ms_union};
use std::collections::HashSet;
use std::fmt::Write;

impl Printer {
    /// The definition of a named type; nothing for types that MIDL knows, and for aliases that only keep an
    /// attribute.
    pub(super) fn named_type(&mut self, shape: &Shape, out: &mut String) {
        match shape {
            Shape::Struct(held) => {
                if let Some(record) = held.get().filter(|record| !is_known(&record.name)) {
                    self.structure(record, out);
                }
            }
            Shape::Union(held) => {
                if let Some(union) = held.get() {
                    self.union(union, out);
                }
            }
            Shape::Enum(members) => self.enumeration(members, out),
            Shape::Alias(alias) => {
                if is_known(&alias.name) || !self.contract.contains(alias.name.as_ref()) {
                    return;
                }
                let said = self.say(&alias.target, DeclarationPosition::Field, &[]);
                let (attributes, declared) = (said.attributes(""), said.declared(&ident(&alias.name)));
                let _ = writeln!(out, "typedef {attributes}{declared};");
                self.defined.insert(alias.name.to_string());
            }
            _ => {}
        }
    }

    /// A struct: its tag and its typedef have one name.
    fn structure(&mut self, record: &Struct, out: &mut String) {
        let name = ident(&record.name);
        let mut body = String::new();
        self.fields(&record.fields, &mut body);
        let _ = write!(out, "\ntypedef struct {name}\n{{\n{body}}} {name};\n");
        self.defined.insert(record.name.to_string());
    }

    /// An exception, once: a struct and the pragma that makes it one. C has no empty struct.
    pub(super) fn exception(&mut self, exception: &Struct, out: &mut String) {
        if exception.name.is_empty() || self.defined.contains(exception.name.as_ref()) {
            return;
        }
        let place = std::mem::replace(&mut self.place, exception.name.to_string());
        let name = ident(&exception.name);
        if !exception.fields.is_empty() {
            let fields = exception.fields.iter().map(present).collect();
            self.structure(&Struct { fields, ..exception.clone() }, out);
        }
        self.defined.insert(exception.name.to_string());
        let empty = if exception.fields.is_empty() { "()" } else { "" };
        let id = match exception.id.as_ref() {
            id if id.is_empty() || id == name => String::new(),
            id => format!(" \"{}\"", escaped(id, false)),
        };
        let _ = writeln!(out, "#pragma exception {name}{empty}{id}");
        self.place = place;
    }
    /// Fields; `beside` lets a size that is a pointer be said with a star.
    fn fields(&mut self, fields: &[Field], out: &mut String) {
        let beside: Vec<(String, bool)> =
            fields.iter().map(|field| (field.name.to_string(), is_pointer(&field.shape))).collect();
        let mut names = Unique::default();
        for field in fields {
            let said = self.say(&field.shape, DeclarationPosition::Field, &beside);
            let name = names.name(&ident(&field.name));
            let (attributes, declared) = (said.attributes(""), said.declared(&name));
            let _ = writeln!(out, "    {attributes}{declared};");
        }
        if fields.is_empty() {
            // C has no empty struct.
            out.push_str("    byte unused;\n");
        }
    }

    /// A union: with its discriminator, unless `switch_is` names a discriminator beside it.
    fn union(&mut self, union: &Union, out: &mut String) {
        // The two forms are those that the parser reads: `switch` inside, or `switch_type` with `switch_is`
        // at each use.
        let name = ident(&union.name);
        let discriminator = self.element(&union.discriminator);
        let aligned = ms_union::is(union);
        let beside = aligned || self.switched.contains(union.name.as_ref());
        let (mut body, mut names) = (String::new(), Unique::default());
        for arm in union.arms.iter() {
            let labels = labels(arm, beside);
            if matches!(arm.field.shape, Shape::Void) {
                let _ = writeln!(body, "    {labels} ;");
                continue;
            }
            let said = self.say(&arm.field.shape, DeclarationPosition::Field, &[]);
            let name = names.name(&ident(&arm.field.name));
            let (attributes, declared) = (said.attributes(""), said.declared(&name));
            let _ = writeln!(body, "    {labels} {attributes}{declared};");
        }
        let head = if beside {
            let also = if aligned { ", ms_union" } else { "" };
            format!("typedef [switch_type({discriminator}){also}] union {name}")
        } else {
            format!("typedef union {name} switch ({discriminator} selector) value")
        };
        let _ = write!(out, "\n{head}\n{{\n{body}}} {name};\n");
        self.defined.insert(union.name.to_string());
    }

    /// An enumeration, with all values written: those of other languages may have gaps.
    fn enumeration(&mut self, members: &Enum, out: &mut String) {
        let name = ident(&members.name);
        let wide = if members.bits == 16 { "" } else { "[v1_enum] " };
        let list: Vec<String> = members
            .members
            .iter()
            .map(|(member, value)| format!("    {} = {value}", self.member(members, member)))
            .collect();
        let _ = write!(out, "\ntypedef {wide}enum {name}\n{{\n{}\n}} {name};\n", list.join(",\n"));
        self.defined.insert(members.name.to_string());
    }

    /// The name of a type that is made for a shape that MIDL cannot say in place: a sequence that nothing counts, a map, a
    /// struct without a name, an array behind a pointer. A shape that cannot travel gives `void`, and the
    /// trouble is noted.
    pub(super) fn make(&mut self, shape: &Shape) -> String {
        let (wanted, body) = match shape {
            Shape::Sequence(sequence) => {
                let element = self.element(&sequence.element);
                (format!("{SEQUENCE}{}", stem(&element)), counted(&element))
            }
            Shape::Map(map) => {
                let (key, value) = (self.element(&map.key), self.element(&map.value));
                let pair = format!("    {key} key;\n    {value} value;\n");
                let pair = self.made(&format!("{PAIR}{}_{}", stem(&key), stem(&value)), &pair);
                (format!("{MAP}{pair}"), counted(&pair))
            }
            Shape::Struct(record) => {
                let mut body = String::new();
                self.fields(&record.fields, &mut body);
                ("tuple".to_owned(), body)
            }
            Shape::Array(array) => {
                let element = self.element(&array.element);
                ("array".to_owned(), format!("    {element} items[{}];\n", array.len))
            }
            other => {
                let reason = format!("it has no type for `{}`", other.noun());
                self.cannot(&reason);
                return "void".to_owned();
            }
        };
        self.made(&wanted, &body)
    }

    /// The name of a pointer that is declared so, which is defined once.
    pub(super) fn made_pointer(&mut self, said: &Declaration) -> String {
        let attributes = said.attributes("");
        let body = format!("{attributes}{}", said.declared(""));
        if let Some(name) = self.made.get(&body) {
            return name.clone();
        }
        let name = self.names.name(&format!("full_{}", stem(said.declared("").trim_end())));
        let _ = writeln!(self.pending, "\ntypedef {attributes}{};", said.declared(&name));
        self.made.insert(body, name.clone());
        name
    }

    /// The struct with this body, which is defined once. `body` is the text between the braces, by which it
    /// is found again.
    pub(super) fn made(&mut self, wanted: &str, body: &str) -> String {
        if let Some(name) = self.made.get(body) {
            return name.clone();
        }
        let name = self.names.name(wanted);
        let _ = write!(self.pending, "\ntypedef struct {name}\n{{\n{body}}} {name};\n");
        self.made.insert(body.to_owned(), name.clone());
        name
    }
}

/// What selects an arm: attributes where the discriminator stands elsewhere.
fn labels(arm: &Arm, beside: bool) -> String {
    let default = arm.default || arm.labels.is_empty();
    let values: Vec<String> = arm.labels.iter().map(i64::to_string).collect();
    if !beside {
        let cases: Vec<String> = values.iter().map(|value| format!("case {value}:")).collect();
        let default = default.then(|| "default:".to_owned());
        return cases.into_iter().chain(default).collect::<Vec<_>>().join(" ");
    }
    let cases = (!values.is_empty()).then(|| format!("case({})", values.join(", ")));
    let default = default.then(|| "default".to_owned());
    format!("[{}]", cases.into_iter().chain(default).collect::<Vec<_>>().join(", "))
}

/// The unions of a contract that something beside them chooses. They are printed without a discriminator of
/// their own.
pub(super) fn switched(contract: &Contract) -> HashSet<String> {
    let mut found = HashSet::new();
    for definition in &contract.definitions {
        match definition {
            Definition::Type(Shape::Struct(shape)) => {
                shape.fields.iter().for_each(|field| choose(&field.shape, &mut found));
            }
            Definition::Type(Shape::Union(shape)) => {
                shape.arms.iter().for_each(|arm| choose(&arm.field.shape, &mut found));
            }
            Definition::Interface(interface) => {
                for operation in interface.operations.iter().skip(interface.inherited) {
                    operation.parameters.iter().for_each(|p| choose(&p.field.shape, &mut found));
                }
            }
            _ => {}
        }
    }
    found
}

/// Looks for `switch_is` around a use of a union.
fn choose(shape: &Shape, found: &mut HashSet<String>) {
    match shape {
        Shape::Alias(alias) if alias.name.starts_with("switch_is(") => {
            if let Shape::Union(union) = alias.target.resolved() {
                found.insert(union.name.to_string());
            }
        }
        Shape::Alias(alias) => choose(&alias.target, found),
        Shape::Optional(target) => choose(target, found),
        Shape::Pointer(pointer) => choose(&pointer.target, found),
        Shape::Sequence(sequence) => choose(&sequence.element, found),
        Shape::Array(array) => choose(&array.element, found),
        _ => {}
    }
}

/// The fields of a sequence with its count.
fn counted(element: &str) -> String {
    format!("    unsigned long count;\n    [size_is(count)] {element} *items;\n")
}

/// A type as part of a name. It is cut, because names of names may grow at each level.
fn stem(element: &str) -> String {
    let words: Vec<&str> = element.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let mut text: String = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("_");
    text.truncate(100);
    text
}

/// A field of an exception: text in a struct may be missing, unless it says that it is there.
fn present(field: &Field) -> Field {
    match field.shape.resolved() {
        Shape::Text(text) if text.kind != TextKind::Counted => {
            let pointer = Pointer { kind: PointerKind::Ref, target: field.shape.clone() };
            Field { name: field.name.clone(), shape: Shape::Pointer(Hold::new(pointer)) }
        }
        _ => field.clone(),
    }
}

/// Whether a field is a pointer to its value.
fn is_pointer(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::Optional(_) | Shape::Pointer(_))
}
