//! Types, operations and attributes as text.
//!
//! The names that a definition introduces are recorded in `defined` when its head is written, so that a body
//! may refer to itself. Dimensions stand behind a name in OMG IDL (`long a[3]`), so a type is printed
//! together with what it declares.
//!
//! Where OMG IDL demands a name (a sequence or array as a parameter) and the contract has none, a typedef is
//! made, once in an interface for each way of writing the type.

use super::super::CONTEXT;
use super::{Printer, names};
use everywire_model::contract::note;
use everywire_model::fixed::Fixed;
use everywire_model::long_double;
use everywire_model::shape::{Arm, Enum, Field, Struct, Text, TextKind, Union};
use everywire_model::value_type::ValueType;
use everywire_model::{Attribute, Definition, Direction, Hold, Interface, Operation, Shape, Signal};
use std::fmt::Write;

impl Printer<'_> {
    /// A type's definition. Where it stands inside another, `lead` are the labels of its arm and `tail` is the member.
    pub(super) fn named_type(&mut self, shape: &Shape, lead: &str, tail: &str) {
        match shape {
            Shape::Struct(structure) => self.structure(&format!("{lead}struct"), structure, tail),
            Shape::Union(union) => self.union(union, lead, tail),
            Shape::Enum(members) => {
                let body = self.enumeration(members);
                self.line(format_args!("{lead}{body}{tail};"));
            }
            Shape::Optional(content) => self.named_type(content, lead, tail),
            Shape::Alias(alias) if alias.name.is_empty() => self.value_type(shape),
            Shape::Alias(alias) => {
                self.defined.insert(alias.name.to_string());
                self.give(&alias.name, &alias.id);
                if let Shape::Optional(content) = &alias.target
                    && let Some(ValueType::Boxed { id, .. }) = ValueType::of(content)
                    && id == alias.id
                {
                    let (own, content) = (self.names.own(&alias.name), self.shape(content));
                    self.line(format_args!("valuetype {own} {content};"));
                    return;
                }
                let declared = self.declarator(&alias.target, &self.names.own(&alias.name));
                self.line(format_args!("typedef {declared};"));
            }
            _ => {}
        }
    }

    /// Nothing where the struct is a cell that nobody filled.
    pub(super) fn structure(&mut self, keyword: &str, structure: &Hold<Struct>, tail: &str) {
        let Some(body) = structure.get() else { return };
        self.defined.insert(body.name.to_string());
        self.give(&body.name, &body.id);
        let said = self.names.own(&body.name);
        self.line(format_args!("{keyword} {said} {{"));
        self.open(&body.name);
        for (number, field) in body.fields.iter().enumerate() {
            self.member(field, number, "", &body.name);
        }
        self.close(tail);
    }

    /// A value type. Its operations and factories are not known: they do not travel.
    fn value_type(&mut self, shape: &Shape) {
        let Some((mut levels, body)) = names::value(shape) else { return };
        self.defined.insert(body.name.to_string());
        self.give(&body.name, &body.id);
        let Some(own) = levels.next() else { return };
        let base = levels.next().map_or_else(String::new, |base| {
            let word = if own.truncatable { "truncatable " } else { "" };
            format!(" : {word}{}", self.called(base.id))
        });
        let said = self.names.own(&body.name);
        self.line(format_args!("valuetype {said}{base} {{"));
        self.open(&body.name);
        let contract = self.contract;
        for definition in &contract.definitions {
            if let Some((name, _)) = super::identity(definition)
                && self.names.is_within(name, &body.name)
                && !self.defined.contains(name.as_ref())
            {
                self.announce_for(definition, Some(&body.name));
                self.definition(definition);
            }
        }
        let inherited = body.fields.len().saturating_sub(own.members.len());
        for (number, (field, seen)) in body.fields.iter().skip(inherited).zip(own.members.chars()).enumerate()
        {
            let lead = if seen == 'u' { "public " } else { "private " };
            self.member(field, inherited + number, lead, &body.name);
        }
        self.close("");
    }

    /// What the value type with this repository id is called here.
    fn called(&self, id: &str) -> String {
        let shapes = self.contract.definitions.iter().filter_map(|definition| match definition {
            Definition::Type(shape) => names::of_shape(shape),
            _ => None,
        });
        let name = shapes.filter(|(_, _, of)| **of == id).map(|(_, name, _)| name).next();
        name.map_or_else(
            || "ValueBase /* a base that is not in this contract */".to_owned(),
            |name| self.name(name),
        )
    }

    /// A field; a type that stands inside `owner` is defined with its first use.
    fn member(&mut self, field: &Field, number: usize, lead: &str, owner: &str) {
        let (element, dimensions) = dimensions(&field.shape);
        let said = self.names.inner(&format!("{owner}#{number}"), &field.name);
        match names::of_shape(element) {
            Some((_, name, _))
                if self.names.is_within(name, owner) && !self.defined.contains(name.as_ref()) =>
            {
                let tail = format!(" {said}{dimensions}");
                self.named_type(element, lead, &tail);
            }
            _ if matches!(element.resolved(), Shape::Void) => {
                self.line(format_args!("{lead}any /* nothing: not expressible in OMG IDL */ {said};"));
            }
            _ => {
                let declared = self.declarator(&field.shape, &said);
                self.line(format_args!("{lead}{declared};"));
            }
        }
    }

    /// Its text without the semicolon, since it may stand in the head of a union.
    fn enumeration(&mut self, members: &Hold<Enum>) -> String {
        self.defined.insert(members.name.to_string());
        self.give(&members.name, &members.id);
        let list: Vec<String> =
            members.members.iter().map(|(name, _)| self.names.member(members, name)).collect();
        format!("enum {} {{ {} }}", self.names.own(&members.name), list.join(", "))
    }

    fn union(&mut self, union: &Hold<Union>, lead: &str, tail: &str) {
        let Some(body) = union.get() else { return };
        self.defined.insert(body.name.to_string());
        self.give(&body.name, &body.id);
        // In other languages labels may be numbers that no member has.
        let labels = || body.arms.iter().flat_map(|arm| arm.labels.iter());
        let is_member = |members: &Enum, label: &i64| {
            i32::try_from(*label).is_ok_and(|label| members.name_of(label).is_some())
        };
        let of = match body.discriminator.resolved() {
            Shape::Enum(members) if !labels().all(|label| is_member(members, label)) => &Shape::I32,
            _ => &body.discriminator,
        };
        // An enum that stands inside the union can only be defined in its head.
        let discriminator = match of {
            Shape::Enum(members) if !self.defined.contains(members.name.as_ref()) => {
                self.enumeration(members)
            }
            shape => self.shape(shape),
        };
        let said = self.names.own(&body.name);
        self.line(format_args!("{lead}union {said} switch ({discriminator}) {{"));
        self.open(&body.name);
        let is_void = |arm: &Arm| matches!(arm.field.shape.resolved(), Shape::Void);
        let other = body.arms.iter().find(|arm| arm.default || arm.labels.is_empty());
        // A label without an arm stands for nothing, unless there is a default arm.
        let can_miss = other.is_none_or(is_void) && !body.arms.iter().all(is_void);
        for (number, arm) in body.arms.iter().enumerate().filter(|(_, arm)| !(can_miss && is_void(arm))) {
            let mut labels: String =
                arm.labels.iter().map(|label| format!("case {}: ", self.label(*label, of))).collect();
            if arm.default || labels.is_empty() {
                labels.push_str("default: ");
            }
            self.member(&arm.field, number, &labels, &body.name);
        }
        self.close(tail);
    }

    /// The value as the discriminator's type writes it.
    fn label(&self, label: i64, discriminator: &Shape) -> String {
        let character = || u32::try_from(label).ok().and_then(char::from_u32).unwrap_or_default();
        match discriminator.resolved() {
            Shape::Bool => if label == 0 { "FALSE" } else { "TRUE" }.to_owned(),
            Shape::Char => format!("'{}'", names::escape(character(), false)),
            Shape::WideChar => format!("L'{}'", names::escape(character(), true)),
            Shape::U64 => label.cast_unsigned().to_string(),
            Shape::Enum(members) => {
                match i32::try_from(label).ok().and_then(|label| members.name_of(label)) {
                    Some(member) => self.enumerator(members, member),
                    None => label.to_string(),
                }
            }
            _ => label.to_string(),
        }
    }

    /// A member of an enumeration, which stands in the scope around it.
    pub(super) fn enumerator(&self, of: &Enum, member: &str) -> String {
        let mut path = self.names.scope(names::parent(&of.name));
        path.push(self.names.member(of, member));
        self.names.shortest(&path, &self.scope)
    }

    /// Types without a name are made before the documentation, which must stand before the operation itself.
    pub(super) fn operation(&mut self, operation: &Operation, place: &str) {
        // In a description of SOAP an operation without a reply may have faults all the same.
        let oneway = if operation.oneway && operation.raises.is_empty() { "oneway " } else { "" };
        let name = self.names.inner(place, &operation.label);
        let returns = self.usable(&operation.returns, &operation.label);
        let mut made = Vec::new();
        for parameter in operation.parameters.iter() {
            let shape = &parameter.field.shape;
            let hint = format!("{}_{}", operation.label, parameter.field.name);
            made.push(self.must_be_made(shape).then(|| self.usable(shape, &hint)));
        }
        let before = self.out.len();
        self.doc(&operation.doc);
        // Parameters stand in a scope of the operation, where types may have other names than around it.
        self.scope.push(name.clone());
        let parameters: Vec<String> = operation
            .parameters
            .iter()
            .zip(made)
            .enumerate()
            .map(|(number, (parameter, made))| {
                let direction = match parameter.direction {
                    Direction::In => "in",
                    Direction::Out => "out",
                    Direction::InOut => "inout",
                };
                let kind = made.unwrap_or_else(|| self.shape(&parameter.field.shape));
                let said = self.names.inner(&format!("{place}#{number}"), &parameter.field.name);
                format!("{direction} {kind} {said}")
            })
            .collect();
        self.scope.pop();
        let raises = self.raises("raises", operation);
        if operation.idempotent {
            // Before the documentation, which is of what follows it.
            self.out.insert_str(before, &format!("#pragma idempotent {name}\n"));
        }
        let context = note(&operation.notes, CONTEXT).map_or_else(String::new, |listed| {
            let listed: Vec<String> = listed.split(',').map(|name| names::text(name, false)).collect();
            format!(" context ({})", listed.join(", "))
        });
        self.line(format_args!("{oneway}{returns} {name}({}){raises}{context};", parameters.join(", ")));
    }

    /// OMG IDL has no signals: a pragma, which other compilers pass over. Types need no name there.
    pub(super) fn signal(&mut self, signal: &Signal) {
        self.doc(&signal.doc);
        let fields = signal.fields.fields().iter();
        let fields = fields.map(|field| format!("in {}", self.declarator(&field.shape, &field.name)));
        let fields: Vec<String> = fields.collect();
        let name = names::ident(&signal.label);
        let _ = writeln!(self.out, "#pragma signal {name}({})", fields.join(", "));
    }

    pub(super) fn attribute(&mut self, interface: &Interface, attribute: &Attribute, number: usize) {
        let getter = interface.operations.get(attribute.getter);
        let setter = attribute.setter.and_then(|setter| interface.operations.get(setter));
        let kind = self.usable(&attribute.shape, &attribute.name);
        self.doc(getter.map_or("", |getter| &getter.doc));
        let said = self.names.inner(&format!("{}#{number}", interface.name), &attribute.name);
        let declared = format!("{kind} {said}");
        let get = if setter.is_some() { "getraises" } else { "raises" };
        let get = getter.map(|getter| self.raises(get, getter)).unwrap_or_default();
        let set = setter.map(|setter| self.raises("setraises", setter)).unwrap_or_default();
        let readonly = if setter.is_some() { "" } else { "readonly " };
        self.line(format_args!("{readonly}attribute {declared}{get}{set};"));
    }

    /// A type as an operation or attribute uses it: sequences and arrays need a name there, which is made where another
    /// language gave none.
    fn usable(&mut self, shape: &Shape, hint: &str) -> String {
        if !self.must_be_made(shape) {
            return self.shape(shape);
        }
        let target = self.bare(shape);
        let written = self.declarator(target, "");
        if let Some(name) = self.made.get(&written) {
            return name.clone();
        }
        let name = self.names.take(&self.scope.join("::"), names::ident(&format!("{}_t", names::last(hint))));
        let declared = self.declarator(target, &name);
        self.line(format_args!("typedef {declared};"));
        self.made.insert(written, name.clone());
        name
    }

    /// Whether an operation or attribute cannot use a type without a name for it.
    fn must_be_made(&self, shape: &Shape) -> bool {
        let shape = self.bare(shape);
        let is_built_in = matches!(shape, Shape::Array(array) if long_double::is_array(array));
        (matches!(shape, Shape::Sequence(_) | Shape::Array(_)) && !is_built_in) || Fixed::of(shape).is_some()
    }

    /// The shape behind names that another language has built in, which are no definitions. It stops at the
    /// first name that the contract defines.
    fn bare<'s>(&self, mut shape: &'s Shape) -> &'s Shape {
        while let Shape::Alias(alias) = shape {
            if self.names.contains(&alias.name) || Fixed::of_alias(alias).is_some() {
                break;
            }
            shape = &alias.target;
        }
        shape
    }

    /// A clause with a leading space, or nothing.
    fn raises(&self, keyword: &str, operation: &Operation) -> String {
        let names: Vec<String> =
            operation.raises.iter().map(|exception| self.name(&exception.name)).collect();
        if names.is_empty() { String::new() } else { format!(" {keyword} ({})", names.join(", ")) }
    }

    /// A type and the name that is declared with it; dimensions stand behind the name. With an empty name, it
    /// is the text that two equal types have in common.
    pub(super) fn declarator(&self, shape: &Shape, name: &str) -> String {
        let (element, dimensions) = dimensions(shape);
        format!("{} {}{dimensions}", self.shape(element), names::ident(name))
    }

    /// A type as it is used. A short name where there is one; what cannot be said is `any` with a comment.
    pub(super) fn shape(&self, shape: &Shape) -> String {
        let shape = self.bare(shape);
        if let Some(Fixed { digits, scale }) = Fixed::of(shape) {
            return format!("fixed<{digits}, {scale}>");
        }
        if matches!(shape, Shape::Array(array) if long_double::is_array(array)) {
            return "long double".to_owned();
        }
        match names::of_shape(shape) {
            // Those that nothing gave a name to: behind another name, or nested too deep.
            Some((_, name, _)) if name.is_empty() => {
                return "any /* a struct without a name: not expressible in OMG IDL */".to_owned();
            }
            Some((_, name, _)) => return self.name(name),
            None => {}
        }
        let bounded = |word: &str, bound: Option<u32>| match bound {
            Some(bound) => format!("{word}<{bound}>"),
            None => word.to_owned(),
        };
        let word = match shape {
            Shape::Void => "void",
            Shape::Bool => "boolean",
            Shape::U8 => "octet",
            // Compilers without IDL 4 do not know `int8`. On the wire both are one octet.
            Shape::I8 => "octet /* signed */",
            Shape::U16 => "unsigned short",
            Shape::I16 => "short",
            Shape::U32 => "unsigned long",
            Shape::I32 => "long",
            Shape::U64 => "unsigned long long",
            Shape::I64 => "long long",
            Shape::F32 => "float",
            Shape::F64 => "double",
            Shape::Char => "char",
            Shape::WideChar => "wchar",
            Shape::Variant => "any",
            Shape::TypeCode => "CORBA::TypeCode",
            Shape::Text(Text { kind: TextKind::Wide | TextKind::Counted, bound }) => {
                return bounded("wstring", *bound);
            }
            Shape::Text(text) => return bounded("string", text.bound),
            Shape::Sequence(sequence) => {
                let element = self.shape(&sequence.element);
                // `>>` would be read as a shift by old compilers.
                let space = if element.ends_with('>') && sequence.bound.is_none() { " " } else { "" };
                return match sequence.bound {
                    Some(bound) => format!("sequence<{element}, {bound}>"),
                    None => format!("sequence<{element}{space}>"),
                };
            }
            Shape::Reference(referent) if referent.name.is_empty() => "Object",
            Shape::Reference(referent) => return self.name(&referent.name),
            other => return format!("any /* {}: not expressible in OMG IDL */", other.noun()),
        };
        word.to_owned()
    }
}

/// The element behind all dimensions of an array, and the dimensions as they are written.
fn dimensions(shape: &Shape) -> (&Shape, String) {
    let (mut element, mut dimensions) = (shape, String::new());
    while let Shape::Array(array) = element
        && !long_double::is_array(array)
    {
        dimensions.push_str(&format!("[{}]", array.len));
        element = &array.element;
    }
    (element, dimensions)
}
