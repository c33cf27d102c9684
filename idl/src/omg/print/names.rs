//! Names: how to say one shortly and still mean the right thing, and which must be known before.
//!
//! `Names` is made once from the whole contract. It holds every name that a look-up could find, as it is said here and in lower
//! case, since OMG IDL does not tell names apart by case. A short name is used only where no nearer scope, with what it
//! inherits, has that first part: the reader of the text must find the same definition.
//!
//! Other languages have names twice in one scope, or that of the scope itself: the getter and setter of a property, a port that is
//! called like its service, an interface whose name other names begin with. The later one has a number behind its name here.
//! A contract that was OMG IDL has nothing of the kind, so nothing of it is called otherwise.
//!
//! The second half finds what a definition needs to be announced, recursing over types: a named struct, union
//! or interface ends the recursion, so types that contain themselves are no danger.
//!
//! The last part makes identifiers and literals of any text: keywords are escaped with `_`, characters that
//! no identifier has become `_`.

use super::super::lexer::is_keyword_somewhere;
use super::bases::{bases, is_own};
use crate::unique::{cut, legal};
use everywire_model::shape::{Enum, Name, Struct};
use everywire_model::value_type::{Levels, ValueType};
use everywire_model::{Contract, Definition, Hold, Interface, Shape};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// All names of a contract.
pub(super) struct Names {
    /// Scoped names as they are said, in lower case: whatever a lookup could find.
    taken: HashSet<String>,
    scopes: Scopes,
    /// Scoped names of all definitions, in their own case.
    defined: HashSet<String>,
    /// The bases of each interface, by how its scoped name is said.
    bases: HashMap<String, Vec<String>>,
    /// What is called otherwise here, by its place: a scoped name, with `::` behind it for a module, with `#` and a number for
    /// what stands in a body.
    said: HashMap<String, String>,
    /// The number that a name which is taken tries next, without which n equal names would cost n * n look-ups.
    next: HashMap<String, u32>,
}

/// Which names are scopes, and of which kind.
pub(super) struct Scopes {
    /// Structs, unions, exceptions and interfaces: what is inside one is printed inside it.
    bodies: HashSet<String>,
    /// What must be a module, since interfaces stand inside.
    modules: HashSet<String>,
}

impl Scopes {
    pub(super) fn of(contract: &Contract) -> Self {
        let (mut bodies, mut modules) = (HashSet::new(), HashSet::new());
        let all = all(contract);
        for (definition, name) in &all {
            if is_body(definition) {
                bodies.insert(name.to_string());
            }
        }
        for (definition, name) in &all {
            let mut scope = parent(name);
            if !matches!(definition, Definition::Interface(_)) {
                while bodies.contains(scope) {
                    scope = parent(scope);
                }
            }
            while !scope.is_empty() && modules.insert(scope.to_owned()) {
                scope = parent(scope);
            }
        }
        Self { bodies, modules }
    }

    fn is_inside(&self, name: &str) -> bool {
        self.bodies.contains(parent(name)) && !self.modules.contains(parent(name))
    }

    /// The definition in which this one is printed: itself, if it stands inside no other.
    pub(super) fn outermost<'n>(&self, mut name: &'n str) -> &'n str {
        while self.is_inside(name) {
            name = parent(name);
        }
        name
    }
}

/// The definitions with a name, with their names.
fn all(contract: &Contract) -> Vec<(&Definition, &Name)> {
    let named = |definition| Some((definition, super::identity(definition)?.0));
    contract.definitions.iter().filter_map(named).filter(|(_, name)| !name.is_empty()).collect()
}

impl Names {
    /// Outer names come before inner ones, and types before what has them.
    pub(super) fn of(contract: &Contract, scopes: Scopes) -> Self {
        let mut names = Self {
            taken: HashSet::new(),
            scopes,
            defined: HashSet::new(),
            bases: HashMap::new(),
            said: HashMap::new(),
            next: HashMap::new(),
        };
        let mut all = all(contract);
        all.retain(|(_, name)| names.defined.insert(name.to_string()));
        let mut modules: Vec<String> = names.scopes.modules.iter().cloned().collect();
        modules.sort();
        let depth = |name: &str| parts(name).count();
        modules.sort_by_key(|scope| depth(scope));
        all.sort_by_key(|(_, name)| depth(name));
        modules.iter().for_each(|scope| names.call(format!("{scope}::"), scope));
        let bases = undefined_bases(contract, &names.defined);
        for base in &bases {
            names.scopes.bodies.insert(base.name.to_string());
            names.call(base.name.to_string(), &base.name);
        }
        all.iter().for_each(|(_, name)| names.call(name.to_string(), name));
        for base in bases {
            let path = names.path(&base.name);
            names.interface(base, &path.join("::"), path.last().map_or("", String::as_str));
        }
        all.iter().for_each(|(definition, name)| names.contents(definition, name));
        names
    }

    /// Finds a name for a module or a definition.
    fn call(&mut self, place: String, name: &str) {
        let scope = self.scope(parent(name));
        let own = scope.last().cloned().unwrap_or_default();
        let wanted = ident(name);
        let mut said = if own.eq_ignore_ascii_case(&wanted) {
            self.another(&scope.join("::"), wanted.clone())
        } else {
            self.take(&scope.join("::"), wanted.clone())
        };
        // With a number it may be the name of the scope again, which is taken by now.
        if own.eq_ignore_ascii_case(&said) {
            said = self.another(&scope.join("::"), wanted.clone());
        }
        self.keep(place, wanted, said);
    }

    /// The same for what stands in a body, by its number: those in `scope` whose own name `own` is.
    fn value(&mut self, place: String, scope: &str, own: &str, name: &str) -> String {
        let wanted = ident(name);
        let mut said = if own == wanted {
            self.another(scope, wanted.clone())
        } else {
            self.take(scope, wanted.clone())
        };
        if said != wanted && own.eq_ignore_ascii_case(&said) {
            said = self.another(scope, wanted.clone());
        }
        self.keep(place, wanted, said.clone());
        said
    }

    fn keep(&mut self, place: String, wanted: String, said: String) {
        if said != wanted {
            self.said.insert(place, said);
        }
    }

    /// Takes a name in a scope: this one, or where it is taken one with a number behind it.
    pub(super) fn take(&mut self, scope: &str, wanted: String) -> String {
        if self.taken.insert(whole(scope, &wanted)) { wanted } else { self.another(scope, wanted) }
    }

    fn another(&mut self, scope: &str, wanted: String) -> String {
        loop {
            let number = self.next.entry(whole(scope, &wanted)).or_insert(1);
            *number += 1;
            let said = format!("{wanted}_{number}");
            if self.taken.insert(whole(scope, &said)) {
                return said;
            }
        }
    }

    /// What stands in a definition: members, operations with their parameters. Members of an enumeration are names of the scope
    /// around it, so in other languages two enumerations may have the same ones: then the later one is called like its
    /// enumeration, too.
    fn contents(&mut self, definition: &Definition, name: &str) {
        let path = self.path(name);
        let own = path.last().cloned().unwrap_or_default();
        let scope = path.join("::");
        let mut fields = |fields: &mut dyn Iterator<Item = &Name>| {
            for (number, field) in fields.enumerate() {
                self.value(format!("{name}#{number}"), &scope, &own, field);
            }
        };
        match definition {
            Definition::Type(Shape::Enum(body)) => {
                let scopes = self.scope(parent(name));
                let outer = scopes.last().cloned().unwrap_or_default();
                let around = scopes.join("::");
                for (member, _) in body.members.iter() {
                    let wanted = ident(member);
                    let free =
                        !outer.eq_ignore_ascii_case(&wanted) && self.taken.insert(whole(&around, &wanted));
                    if !free {
                        let longer = format!("{own}_{}", wanted.trim_start_matches('_'));
                        let said = self.take(&around, longer);
                        self.said.insert(format!("{name}#{member}"), said);
                    }
                }
            }
            Definition::Type(Shape::Struct(body)) => {
                fields(
                    &mut body.get().into_iter().flat_map(|body| body.fields.iter()).map(|field| &field.name),
                );
            }
            Definition::Type(Shape::Union(body)) => {
                fields(
                    &mut body.get().into_iter().flat_map(|body| body.arms.iter()).map(|arm| &arm.field.name),
                );
            }
            Definition::Type(shape) if let Some((_, body)) = value(shape) => {
                fields(&mut body.fields.iter().map(|field| &field.name));
            }
            Definition::Exception(body) => fields(&mut body.fields.iter().map(|field| &field.name)),
            Definition::Interface(interface) => self.interface(interface, &scope, &own),
            _ => {}
        }
    }

    /// What an interface inherits is taken, too: nothing of it is defined again.
    fn interface(&mut self, interface: &Interface, scope: &str, own: &str) {
        let name = &interface.name;
        let bases = bases(interface).iter().map(|base| self.path(&base.name).join("::")).collect();
        self.bases.insert(scope.to_owned(), bases);
        let accessors: HashSet<usize> =
            interface.attributes.iter().flat_map(|held| [Some(held.getter), held.setter]).flatten().collect();
        let is_own = is_own(interface);
        for attribute in interface.attributes.iter().filter(|held| !is_own(held.getter)) {
            self.taken.insert(whole(scope, &ident(&attribute.name)));
        }
        for (number, operation) in interface.operations.iter().enumerate() {
            if !is_own(number) {
                self.taken.insert(whole(scope, &ident(&operation.label)));
                continue;
            }
            match interface.attributes.iter().find(|held| held.getter == number) {
                Some(attribute) => {
                    self.value(format!("{name}#{number}"), scope, own, &attribute.name);
                }
                None if accessors.contains(&number) => {}
                None => {
                    let said = self.value(format!("{name}#{number}"), scope, own, &operation.label);
                    let inner = format!("{scope}::{said}");
                    for (place, parameter) in operation.parameters.iter().enumerate() {
                        self.value(format!("{name}#{number}#{place}"), &inner, "", &parameter.field.name);
                    }
                }
            }
        }
    }

    /// How what stands in a body at a place (`Names::said`) is called here.
    pub(super) fn inner(&self, place: &str, name: &str) -> String {
        // Most contracts have no entry at all.
        self.said.get(place).cloned().unwrap_or_else(|| ident(name))
    }

    /// How a member of an enumeration is called here, without its scope.
    pub(super) fn member(&self, of: &Enum, member: &str) -> String {
        self.inner(&format!("{}#{member}", of.name), member)
    }

    /// How a definition is called here, without its scope.
    pub(super) fn own(&self, name: &str) -> String {
        self.inner(name, name)
    }

    /// How a scope is called here, from the outermost one.
    pub(super) fn scope(&self, name: &str) -> Vec<String> {
        let mut whole = String::new();
        let said = parts(name).map(|part| {
            let _ = write!(whole, "{}{part}", if whole.is_empty() { "" } else { "::" });
            let is_module = self.scopes.modules.contains(&whole) || !self.scopes.bodies.contains(&whole);
            if is_module { self.inner(&format!("{whole}::"), part) } else { self.own(&whole) }
        });
        said.collect()
    }

    /// How a definition is called here, from the outermost scope.
    pub(super) fn path(&self, name: &str) -> Vec<String> {
        let mut path = self.scope(parent(name));
        path.push(self.own(name));
        path
    }

    /// The same as repository ids have it: with `/` between, and without the `_` that escapes.
    pub(super) fn id_path(&self, name: &str) -> String {
        let path = self.path(name);
        let parts: Vec<&str> = path.iter().map(|part| part.strip_prefix('_').unwrap_or(part)).collect();
        parts.join("/")
    }

    /// Whether the contract defines this.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Whether this stands inside an interface or a struct.
    pub(super) fn is_inside(&self, name: &str) -> bool {
        self.scopes.is_inside(name)
    }

    /// Whether this stands inside this interface or struct.
    pub(super) fn is_within(&self, name: &str, owner: &str) -> bool {
        parent(name) == owner && self.is_inside(name)
    }

    /// The shortest way to say a definition, given from the outermost scope, in a scope.
    ///
    /// What both have in common is left out, unless the first part that stays could mean something nearer: then the
    /// whole name is said from the start.
    pub(super) fn shortest(&self, target: &[String], scope: &[String]) -> String {
        let limit = target.len().saturating_sub(1);
        let common = scope.iter().zip(target).take(limit).take_while(|(a, b)| a == b).count();
        let said = target.get(common..).unwrap_or_default();
        let first = said.first().map_or("", String::as_str);
        let hidden = (common + 1..=scope.len()).any(|depth| {
            let around = scope.get(..depth).map(|scopes| scopes.join("::")).unwrap_or_default();
            // The name of an operation's scope itself does not hide anything.
            self.has(&around, first)
                || scope.get(depth - 1).is_some_and(|own| own.eq_ignore_ascii_case(first))
        });
        if hidden { format!("::{}", target.join("::")) } else { said.join("::") }
    }

    /// Whether a scope has this name, itself or by its bases. Each base is asked once: there may be many ways to it, and circles in a
    /// contract made by hand.
    fn has(&self, scope: &str, name: &str) -> bool {
        let (mut seen, mut pending) = (HashSet::from([scope]), vec![scope]);
        while let Some(scope) = pending.pop() {
            if self.taken.contains(&whole(scope, name)) {
                return true;
            }
            let bases = self.bases.get(scope).into_iter().flatten().map(String::as_str);
            pending.extend(bases.filter(|base| seen.insert(base)));
        }
        false
    }
}

/// The bases that other languages know without a definition.
fn undefined_bases<'c>(contract: &'c Contract, defined: &HashSet<String>) -> Vec<&'c Hold<Interface>> {
    let mut pending: Vec<&Hold<Interface>> = contract.interfaces().collect();
    let (mut seen, mut found) = (HashSet::new(), Vec::new());
    while let Some(interface) = pending.pop() {
        for base in interface.bases.iter().filter(|base| !defined.contains(&*base.name)) {
            if seen.insert(&base.name) {
                found.push(base);
                pending.push(base);
            }
        }
    }
    found
}

/// Whether other definitions may stand inside.
fn is_body(definition: &Definition) -> bool {
    match definition {
        Definition::Type(shape) => {
            matches!(shape, Shape::Struct(_) | Shape::Union(_)) || value(shape).is_some()
        }
        Definition::Exception(_) | Definition::Interface(_) => true,
        Definition::Constant(_) => false,
    }
}

/// A scoped name as `Names` looks it up.
fn whole(scope: &str, name: &str) -> String {
    let between = if scope.is_empty() { "" } else { "::" };
    format!("{scope}{between}{name}").to_ascii_lowercase()
}

/// What a definition names, with the word that announces it: interfaces, structs and unions. Constants name
/// nothing that can be announced.
pub(super) fn needs(
    definition: &Definition,
    contract: &Contract,
    is_defined: &dyn Fn(&str) -> bool,
    needed: &mut Vec<(&'static str, Name, Name)>,
) {
    match definition {
        Definition::Type(shape) => inside(shape, is_defined, needed),
        Definition::Exception(shape) => {
            shape.fields.iter().for_each(|field| used(&field.shape, is_defined, needed))
        }
        Definition::Constant(_) => {}
        Definition::Interface(interface) => {
            for operation in interface.operations.iter().skip(interface.inherited) {
                used(&operation.returns, is_defined, needed);
                operation
                    .parameters
                    .iter()
                    .for_each(|parameter| used(&parameter.field.shape, is_defined, needed));
            }
            let fields = interface.signals.iter().flat_map(|signal| signal.fields.fields());
            fields.for_each(|field| used(&field.shape, is_defined, needed));
            for inner in &contract.definitions {
                if super::identity(inner).is_some_and(|(name, _)| parent(name) == interface.name)
                    && !matches!(inner, Definition::Interface(_))
                {
                    needs(inner, contract, is_defined, needed);
                }
            }
        }
    }
}

/// What the body of a named type names.
fn inside(shape: &Shape, is_defined: &dyn Fn(&str) -> bool, needed: &mut Vec<(&'static str, Name, Name)>) {
    match shape {
        Shape::Struct(body) => {
            body.get()
                .into_iter()
                .flat_map(|body| body.fields.iter())
                .for_each(|field| used(&field.shape, is_defined, needed));
        }
        Shape::Union(body) => {
            body.get()
                .into_iter()
                .flat_map(|body| body.arms.iter())
                .for_each(|arm| used(&arm.field.shape, is_defined, needed));
        }
        Shape::Alias(alias) if alias.name.is_empty() => inside(&alias.target, is_defined, needed),
        Shape::Alias(alias) => used(&alias.target, is_defined, needed),
        _ => {}
    }
}

/// A member's or parameter's type. Names that the contract does not define, such as those that keep an attribute, are looked through.
fn used(shape: &Shape, is_defined: &dyn Fn(&str) -> bool, needed: &mut Vec<(&'static str, Name, Name)>) {
    match shape {
        Shape::Sequence(sequence) => used(&sequence.element, is_defined, needed),
        Shape::Array(array) => used(&array.element, is_defined, needed),
        Shape::Reference(referent) => needed.push(("interface", referent.name.clone(), referent.id.clone())),
        Shape::Alias(alias) if alias.name.is_empty() || !is_defined(&alias.name) => {
            used(&alias.target, is_defined, needed)
        }
        Shape::Optional(content)
            if ValueType::of(content).is_some_and(|value| matches!(value, ValueType::Boxed { .. })) =>
        {
            used(content, is_defined, needed);
        }
        Shape::Struct(_) | Shape::Union(_) | Shape::Optional(_) => {
            if let Some((keyword, name, id)) = of_shape(shape) {
                needed.push((keyword, name.clone(), id.clone()));
            }
        }
        _ => {}
    }
}

/// Keyword, scoped name and id of a named type.
pub(super) fn of_shape(shape: &Shape) -> Option<(&'static str, &Name, &Name)> {
    match shape {
        Shape::Struct(body) => body.get().map(|body| ("struct", &body.name, &body.id)),
        Shape::Union(body) => body.get().map(|body| ("union", &body.name, &body.id)),
        Shape::Enum(body) => Some(("enum", &body.name, &body.id)),
        Shape::Optional(content) => {
            value(content.get()?).map(|(_, body)| ("valuetype", &body.name, &body.id))
        }
        Shape::Alias(_) if let Some((_, body)) = value(shape) => Some(("valuetype", &body.name, &body.id)),
        Shape::Alias(body) => Some(("typedef", &body.name, &body.id)),
        _ => None,
    }
}

/// The types and the members of a value type, if this is its content.
pub(super) fn value(content: &Shape) -> Option<(Levels<'_>, &Struct)> {
    match (ValueType::of(content)?, content.resolved()) {
        (ValueType::State(levels), Shape::Struct(body)) => Some((levels, body.get()?)),
        _ => None,
    }
}

/// The prefix that makes this id of this name, whose parts have `/` between. None where no prefix does: the id is of another
/// form, or its path does not end with the name.
pub(super) fn prefix(path: &str, id: &str) -> Option<String> {
    let whole = id.strip_prefix("IDL:")?.rsplit_once(':')?.0;
    let before = whole.strip_suffix(path)?;
    match before.strip_suffix('/') {
        None if before.is_empty() => Some(String::new()),
        Some(prefix) if !prefix.contains(['"', '\\']) => Some(prefix.to_owned()),
        _ => None,
    }
}

/// The parts of a scoped name.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split("::").filter(|part| !part.is_empty())
}

/// The scope a scoped name stands in.
pub(super) fn parent(name: &str) -> &str {
    name.rsplit_once("::").map_or("", |(scope, _)| scope)
}

/// The part behind the last `::`.
pub(super) fn last(name: &str) -> &str {
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

/// The last part of a name, escaped where it is a keyword. Names of other languages may have what no identifier has
/// ([`crate::unique::legal`]).
pub(super) fn ident(name: &str) -> String {
    // A `_` before a name only escapes it: whoever reads it finds the name behind.
    let name = last(name).trim_start_matches('_');
    if is_keyword_somewhere(name) {
        return format!("_{name}");
    }
    let mut said = legal(name);
    if !said.starts_with(|c: char| c.is_ascii_alphabetic()) {
        said.insert(0, 'n');
    }
    cut(said)
}

/// A string literal; split where a hexadecimal escape would swallow what follows.
pub(super) fn text(value: &str, wide: bool) -> String {
    let lead = if wide { "L\"" } else { "\"" };
    let mut out = lead.to_owned();
    let mut open = false;
    for c in value.chars() {
        let escaped = escape(c, wide);
        if open && c.is_ascii_hexdigit() {
            let _ = write!(out, "\" {lead}");
        }
        open = escaped.starts_with("\\x") || escaped.starts_with("\\u");
        out.push_str(&escaped);
    }
    out.push('"');
    out
}

/// A character as it stands between quotes. A character that is in neither form is left as it is.
pub(super) fn escape(c: char, wide: bool) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\\' | '"' | '\'' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        _ if wide && u32::from(c) <= 0xffff => format!("\\u{:04x}", u32::from(c)),
        _ if u32::from(c) <= 0xff => format!("\\x{:02x}", u32::from(c)),
        _ => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::ident;

    #[test]
    fn names_of_other_languages_become_identifiers() {
        let names = ["Pinot-Noir", "a::b.c", "2nd", "-1", "interface", "_kept", "__in", "caf\u{e9}"];
        let said = names.map(ident);
        assert_eq!(said, ["Pinot_Noir", "b_c", "n2nd", "n_1", "_interface", "kept", "_in", "cafu00e9"]);
    }
}
