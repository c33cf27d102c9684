//! Names: how to say one shortly and still mean the right thing, and which must be known before.
//!
//! `Names` is made once from the whole contract and then only read. It holds every name that a look-up could
//! find, in lower case, since OMG IDL does not tell names apart by case. A short name is used only where no
//! nearer scope, with what it inherits, has that first part: the reader of the text must find the same
//! definition.
//!
//! The second half finds what a definition needs to be announced, recursing over types: a named struct, union
//! or interface ends the recursion, so types that contain themselves are no danger.
//!
//! The last part makes identifiers and literals of any text: keywords are escaped with `_`, characters that
//! no identifier has become `_`.

use super::super::lexer::keyword;
use everywire_model::shape::{Enum, Name};
use everywire_model::{Contract, Definition, Shape};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// All names of a contract.
pub(super) struct Names {
    /// Scoped names in lower case: whatever a lookup could find.
    taken: HashSet<String>,
    /// Structs, unions, exceptions and interfaces: what is inside one is printed inside it.
    bodies: HashSet<String>,
    /// Scoped names of all definitions, in their own case.
    defined: HashSet<String>,
    /// The bases of each interface, by scoped name.
    bases: HashMap<String, Vec<String>>,
    /// Other names for members of enumerations whose own is taken, by the enumeration and the member.
    members: HashMap<(String, String), String>,
}

impl Names {
    /// One pass over all definitions.
    pub(super) fn of(contract: &Contract) -> Self {
        let mut names = Self {
            taken: HashSet::new(),
            bodies: HashSet::new(),
            defined: HashSet::new(),
            bases: HashMap::new(),
            members: HashMap::new(),
        };
        for definition in &contract.definitions {
            names.add(definition);
        }
        let mut next = HashMap::new();
        for definition in &contract.definitions {
            if let Definition::Type(Shape::Enum(body)) = definition {
                names.members(body, &mut next);
            }
        }
        names
    }

    /// Notes the members of an enumeration. They are names of the scope around it, so in other languages two enumerations
    /// may have the same ones: then the later member is called like its enumeration, too. `next` is the number that each
    /// such name tries next, without which n equal names would cost n * n look-ups.
    fn members(&mut self, body: &Enum, next: &mut HashMap<String, u32>) {
        let scope = match parent(&body.name) {
            "" => String::new(),
            scope => format!("{scope}::"),
        };
        let whole = |said: &str| format!("{scope}{said}").to_ascii_lowercase();
        for (member, _) in body.members.iter() {
            let own = ident(member);
            if self.taken.insert(whole(&own)) {
                continue;
            }
            let wanted = format!("{}_{}", last(&body.name), own.trim_start_matches('_'));
            let mut said = wanted.clone();
            while !self.taken.insert(whole(&said)) {
                let number = next.entry(whole(&wanted)).or_insert(1);
                *number += 1;
                said = format!("{wanted}_{number}");
            }
            self.members.insert((body.name.to_string(), member.to_string()), said);
        }
    }

    /// How a member of an enumeration is called here, without its scope.
    pub(super) fn member<'n>(&'n self, of: &Enum, member: &'n str) -> &'n str {
        // Most contracts have no entry at all.
        if self.members.is_empty() {
            return member;
        }
        let said = self.members.get(&(of.name.to_string(), member.to_owned()));
        said.map_or(member, String::as_str)
    }

    /// Adds a definition with all that its scope contains: members, operations with their parameters.
    fn add(&mut self, definition: &Definition) {
        let Some((name, _)) = super::identity(definition) else { return };
        self.defined.insert(name.to_string());
        let mut whole = String::new();
        // The modules around it are names as well.
        for part in parts(name) {
            let _ = write!(whole, "{}{part}", if whole.is_empty() { "" } else { "::" });
            self.taken.insert(whole.to_ascii_lowercase());
        }
        let mut take = |inner: &str| {
            self.taken.insert(format!("{name}::{inner}").to_ascii_lowercase());
        };
        match definition {
            Definition::Type(Shape::Enum(_)) => return,
            Definition::Type(Shape::Struct(shape)) => {
                shape
                    .get()
                    .into_iter()
                    .flat_map(|shape| shape.fields.iter())
                    .for_each(|field| take(&field.name));
            }
            Definition::Type(Shape::Union(shape)) => {
                shape
                    .get()
                    .into_iter()
                    .flat_map(|shape| shape.arms.iter())
                    .for_each(|arm| take(&arm.field.name));
            }
            Definition::Exception(shape) => shape.fields.iter().for_each(|field| take(&field.name)),
            Definition::Interface(interface) => {
                for operation in interface.operations.iter() {
                    take(&operation.name);
                    for parameter in operation.parameters.iter() {
                        take(&format!("{}::{}", operation.name, parameter.field.name));
                    }
                }
                interface.attributes.iter().for_each(|attribute| take(&attribute.name));
                let bases = interface.bases.iter().map(|base| base.name.to_string()).collect();
                self.bases.insert(name.to_string(), bases);
            }
            _ => return,
        }
        self.bodies.insert(name.to_string());
    }

    /// Whether the contract defines this.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.defined.contains(name)
    }

    /// Whether this stands inside an interface or a struct.
    pub(super) fn is_inside(&self, name: &str) -> bool {
        self.bodies.contains(parent(name))
    }

    /// The shortest way to say a scoped name in a scope.
    ///
    /// What both have in common is left out, unless the first part that stays could mean something nearer: then the
    /// whole name is said from the start.
    pub(super) fn shortest(&self, name: &str, scope: &[String]) -> String {
        let target: Vec<&str> = parts(name).collect();
        let limit = target.len().saturating_sub(1);
        let common = scope.iter().zip(&target).take(limit).take_while(|(a, b)| a == b).count();
        let said: Vec<String> = target.iter().skip(common).map(|part| ident(part)).collect();
        let first = target.get(common).copied().unwrap_or_default();
        let hidden = (common + 1..=scope.len()).any(|depth| {
            let around = scope.get(..depth).map(|scopes| scopes.join("::")).unwrap_or_default();
            // The name of an operation's scope itself does not hide anything.
            self.has(&around, first)
                || scope.get(depth - 1).is_some_and(|own| own.eq_ignore_ascii_case(first))
        });
        if hidden {
            let whole: Vec<String> = target.into_iter().map(ident).collect();
            format!("::{}", whole.join("::"))
        } else {
            said.join("::")
        }
    }

    /// Whether a scope has this name, itself or by its bases. Each base is asked once: there may be many ways to it, and circles in a
    /// contract made by hand.
    fn has(&self, scope: &str, name: &str) -> bool {
        let (mut seen, mut pending) = (HashSet::from([scope]), vec![scope]);
        while let Some(scope) = pending.pop() {
            if self.taken.contains(&format!("{scope}::{name}").to_ascii_lowercase()) {
                return true;
            }
            let bases = self.bases.get(scope).into_iter().flatten().map(String::as_str);
            pending.extend(bases.filter(|base| seen.insert(base)));
        }
        false
    }
}

/// What a definition names, with the word that announces it: interfaces, structs and unions. Constants name
/// nothing that can be announced.
pub(super) fn needs(
    definition: &Definition,
    contract: &Contract,
    needed: &mut Vec<(&'static str, Name, Name)>,
) {
    match definition {
        Definition::Type(shape) => inside(shape, needed),
        Definition::Exception(shape) => shape.fields.iter().for_each(|field| used(&field.shape, needed)),
        Definition::Constant(_) => {}
        Definition::Interface(interface) => {
            for operation in interface.operations.iter().skip(interface.inherited) {
                used(&operation.returns, needed);
                operation.parameters.iter().for_each(|parameter| used(&parameter.field.shape, needed));
            }
            let fields = interface.signals.iter().flat_map(|signal| signal.fields.fields());
            fields.for_each(|field| used(&field.shape, needed));
            for inner in &contract.definitions {
                if super::identity(inner).is_some_and(|(name, _)| parent(name) == interface.name)
                    && !matches!(inner, Definition::Interface(_))
                {
                    needs(inner, contract, needed);
                }
            }
        }
    }
}

/// What the body of a named type names.
fn inside(shape: &Shape, needed: &mut Vec<(&'static str, Name, Name)>) {
    match shape {
        Shape::Struct(body) => {
            body.get()
                .into_iter()
                .flat_map(|body| body.fields.iter())
                .for_each(|field| used(&field.shape, needed));
        }
        Shape::Union(body) => {
            body.get()
                .into_iter()
                .flat_map(|body| body.arms.iter())
                .for_each(|arm| used(&arm.field.shape, needed));
        }
        Shape::Alias(alias) => used(&alias.target, needed),
        _ => {}
    }
}

/// A member's or parameter's type.
fn used(shape: &Shape, needed: &mut Vec<(&'static str, Name, Name)>) {
    match shape {
        Shape::Sequence(sequence) => used(&sequence.element, needed),
        Shape::Array(array) => used(&array.element, needed),
        Shape::Reference(referent) => needed.push(("interface", referent.name.clone(), referent.id.clone())),
        Shape::Alias(alias) if alias.name.is_empty() => used(&alias.target, needed),
        Shape::Struct(_) | Shape::Union(_) => {
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
        Shape::Alias(body) => Some(("typedef", &body.name, &body.id)),
        _ => None,
    }
}

/// The prefix that makes this id of this name. None where no prefix does: the id is of another form, or its
/// path does not end with the name.
pub(super) fn prefix(name: &str, id: &str) -> Option<String> {
    let path = id.strip_prefix("IDL:")?.rsplit_once(':')?.0;
    let before = path.strip_suffix(&name.replace("::", "/"))?;
    match before.strip_suffix('/') {
        None if before.is_empty() => Some(String::new()),
        Some(prefix) if !prefix.contains(['"', '\\']) => Some(prefix.to_owned()),
        _ => None,
    }
}

/// The parts of a scoped name.
pub(super) fn parts(name: &str) -> impl Iterator<Item = &str> {
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

/// The last part of a name, escaped where it is a keyword. Names of other languages may have what no identifier has: `_`
/// stands in its place.
pub(super) fn ident(name: &str) -> String {
    let name = last(name);
    if keyword(name).is_some() {
        return format!("_{name}");
    }
    // Two names may become the same one here; nobody looks for that.
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut said: String = name.chars().map(legal).collect();
    // A lone `_`, or one before a digit, escapes nothing.
    if !said.trim_start_matches('_').starts_with(|c: char| c.is_ascii_alphabetic()) {
        said.insert(0, 'n');
    }
    said
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
        let names = ["Pinot-Noir", "a::b.c", "2nd", "-1", "interface", "_kept", "caf\u{e9}"];
        let said = names.map(ident);
        assert_eq!(said, ["Pinot_Noir", "b_c", "n2nd", "n_1", "_interface", "_kept", "caf_"]);
    }
}
