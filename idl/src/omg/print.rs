//! A contract back to OMG IDL.
//!
//! State: the text so far, the modules and bodies that are open, and what is defined or announced.
//! Definitions are printed in the order of the contract; `enter` closes and opens modules on the way from one
//! to the next.
//!
//! Invariants: nothing is used before it is defined or announced, so the text can be read again; what stands
//! inside an interface, struct or union is printed there and nowhere else. Each identity survives: `#pragma
//! prefix` where one gives the id, else `#pragma ID` behind the definition. Pragmas stand outside of modules,
//! since a prefix replaces what the modules around it contribute.
//!
//! What OMG IDL cannot say becomes `any` with a comment, so the text never claims a type that does not
//! travel. Names that another language allows are made identifiers.

mod bases;
mod declare;
mod names;
mod unnamed;

use super::ABSTRACT;
use super::ids::is_repository_id;
use everywire_model::contract::note;
use everywire_model::fixed::Fixed;
use everywire_model::shape::{Name, TextKind};
use everywire_model::{Contract, Definition, Hold, Interface, Shape, Value};
use names::{Names, parent};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The contract as OMG IDL: modules nested again, identities kept by `#pragma`, announcements where they are needed.
///
/// What other languages have and OMG IDL has not (maps, pointers, handles) is written as `any` with a comment that says so: it
/// does not travel there. A signed octet is written as `octet`, as which it travels, with a comment; a struct without a name gets one.
/// Signals, and operations that may run twice, are pragmas of ours, which other
/// compilers pass over. An exception that is a value as well becomes two, with `_exception` behind the name of the one.
pub fn print(contract: &Contract) -> String {
    let contract = &*crate::raised::apart(contract);
    let contract = &*unnamed::named(contract);
    let scopes = names::Scopes::of(contract);
    let contract = &*crate::order::sorted(contract, |name| scopes.outermost(name).to_owned());
    let mut printer = Printer {
        contract,
        names: Names::of(contract, scopes),
        out: String::new(),
        depth: 0,
        scope: Vec::new(),
        defined: HashSet::new(),
        announced: HashSet::new(),
        prefix: String::new(),
        given: String::new(),
        made: HashMap::new(),
    };
    // Compilers have these in their own `orb.idl`, and libraries of ORBs have them already: defined once more, what is made of them does
    // not compile. A contract of the module CORBA alone is such a file itself.
    let is_other =
        contract.definitions.iter().filter_map(identity).any(|(name, _)| !name.starts_with("CORBA::"));
    let of_orb = contract.definitions.iter().filter(|definition| match definition {
        Definition::Type(shape) => is_other && super::build::is_of_the_orb(shape),
        _ => false,
    });
    printer.defined.extend(of_orb.filter_map(identity).map(|(name, _)| name.to_string()));
    let leaves_out = !printer.defined.is_empty();
    printer.contract();
    let text = printer.out;
    if leaves_out { format!("#include <orb.idl>\n\n{text}") } else { text }
}

struct Printer<'a> {
    contract: &'a Contract,
    names: Names,
    out: String,
    depth: usize,
    /// The modules, interfaces and structs that are open, as they are said.
    scope: Vec<String>,
    /// What is defined so far.
    defined: HashSet<String>,
    /// What is announced so far.
    announced: HashSet<String>,
    /// The `#pragma prefix` in effect.
    prefix: String,
    /// `#pragma ID` lines for what is inside the definition at hand.
    given: String,
    /// Names made for types of the interface at hand that must have one, by how they are written.
    made: HashMap<String, String>,
}

impl Printer<'_> {
    fn contract(&mut self) {
        for definition in &self.contract.definitions {
            let Some((name, id)) = identity(definition) else { continue };
            // What stands inside an interface or a struct is printed there. Announced first, where another
            // language has it without a definition.
            if self.defined.contains(name.as_ref()) || self.names.is_inside(name) {
                continue;
            }
            if let Definition::Interface(interface) = definition {
                self.bases(interface);
            }
            self.announce_for(definition, None);
            self.choose_prefix(name, id);
            self.enter(parent(name));
            if matches!(definition, Definition::Interface(_)) {
                self.space();
            }
            self.definition(definition);
            let given = std::mem::take(&mut self.given);
            self.out.push_str(&given);
        }
        self.enter("");
    }

    /// Prints a definition where it stands.
    fn definition(&mut self, definition: &Definition) {
        match definition {
            Definition::Type(shape) => self.named_type(shape, "", ""),
            Definition::Exception(exception) => self.structure("exception", exception, ""),
            Definition::Constant(constant) => {
                self.doc(&constant.doc);
                self.defined.insert(constant.name.to_string());
                let kind = match (Fixed::of(&constant.shape), constant.shape.resolved(), &constant.value) {
                    (Some(_), ..) => "fixed".to_owned(),
                    // An octet of OMG IDL has no sign.
                    (None, Shape::I8, Value::Integer(..0)) => "short /* a signed octet */".to_owned(),
                    _ => self.shape(&constant.shape),
                };
                let name = self.names.own(&constant.name);
                let value = self.value(&constant.value, &constant.shape);
                self.line(format_args!("const {kind} {name} = {value};"));
            }
            Definition::Interface(interface) => self.interface(interface),
        }
    }

    /// Types that stand inside come first, then operations in their order, with the two of an attribute as
    /// one line.
    fn interface(&mut self, interface: &Hold<Interface>) {
        self.doc(&interface.doc);
        self.defined.insert(interface.name.to_string());
        self.give(&interface.name, &interface.id);
        let kept = bases::bases(interface);
        let bases: Vec<String> = kept.iter().map(|base| self.name(&base.name)).collect();
        let bases = if bases.is_empty() { String::new() } else { format!(" : {}", bases.join(", ")) };
        let said = self.names.own(&interface.name);
        let word = if note(&interface.notes, ABSTRACT).is_some() { "abstract " } else { "" };
        self.line(format_args!("{word}interface {said}{bases} {{"));
        self.open(&interface.name);
        // Types that are made stand inside one interface and are visible there only.
        self.made.clear();
        let contract = self.contract;
        for definition in &contract.definitions {
            if let Some((name, _)) = identity(definition)
                && self.names.is_within(name, &interface.name)
                && !self.defined.contains(name.as_ref())
            {
                self.announce_for(definition, Some(&interface.name));
                self.definition(definition);
            }
        }
        let mut skip = None;
        let is_own = bases::is_own(interface);
        for (number, operation) in
            interface.operations.iter().enumerate().filter(|(number, _)| is_own(*number))
        {
            if skip == Some(number) {
                continue;
            }
            match interface.attributes.iter().find(|attribute| attribute.getter == number) {
                Some(attribute) => {
                    skip = attribute.setter;
                    self.attribute(interface, attribute, number);
                }
                None => self.operation(operation, &format!("{}#{number}", interface.name)),
            }
        }
        for signal in interface.signals.iter() {
            if !interface.bases.iter().any(|base| base.signal(signal.name.as_bytes()).is_some()) {
                self.signal(signal);
            }
        }
        self.close("");
    }

    /// Defines the bases that other languages know without a definition.
    fn bases(&mut self, interface: &Hold<Interface>) {
        for base in interface.bases.iter() {
            if !self.names.contains(&base.name) && !self.defined.contains(base.name.as_ref()) {
                self.bases(base);
                self.enter(parent(&base.name));
                self.space();
                self.interface(base);
            }
        }
    }

    /// Announces what a definition needs and what comes later. Structs and unions that are announced must be
    /// defined later in the same text, which the order of the contract gives; interfaces of other contracts
    /// are never defined, and need not be. `owner` is the interface inside which the definition stands: only what is inside as well
    /// can be announced there.
    fn announce_for(&mut self, definition: &Definition, owner: Option<&str>) {
        let mut needed = Vec::new();
        let names = &self.names;
        names::needs(definition, self.contract, &|name| names.contains(name), &mut needed);
        let own = identity(definition).map(|(name, _)| name.to_string()).unwrap_or_default();
        for (keyword, name, id) in needed {
            let known = self.defined.contains(name.as_ref()) || self.announced.contains(name.as_ref());
            let is_outside = match owner {
                Some(owner) => !self.names.is_within(&name, owner),
                None => self.names.is_inside(&name),
            };
            if known || name.is_empty() || name == own || is_outside {
                continue;
            }
            if owner.is_none() {
                self.choose_prefix(&name, &id);
                self.enter(parent(&name));
            }
            let said = self.names.own(&name);
            self.line(format_args!("{keyword} {said};"));
            self.give_forward(&name, &id);
            self.announced.insert(name.into_owned());
        }
    }

    /// The prefix that gives this id to this name, as far as one does.
    fn choose_prefix(&mut self, name: &str, id: &str) {
        let Some(prefix) = names::prefix(&self.names.id_path(name), id) else { return };
        if prefix != self.prefix {
            // A prefix replaces the scopes around it, so it stands outside of all of them.
            self.enter("");
            let _ = writeln!(self.out, "#pragma prefix \"{prefix}\"");
            self.prefix = prefix;
        }
    }

    /// Closes and opens modules until this is the scope.
    fn enter(&mut self, scope: &str) {
        let wanted = self.names.scope(scope);
        let common = self.scope.iter().zip(&wanted).take_while(|(a, b)| a == b).count();
        while self.scope.len() > common {
            self.close("");
        }
        for part in wanted.into_iter().skip(common) {
            self.space();
            self.line(format_args!("module {part} {{"));
            self.scope.push(part);
            self.depth += 1;
        }
    }

    /// The scope of a body, whose brace the caller has written.
    fn open(&mut self, name: &str) {
        self.scope.push(self.names.own(name));
        self.depth += 1;
    }

    /// Ends a module or a body; `tail` is what stands between the brace and the semicolon, such as a member's
    /// name.
    fn close(&mut self, tail: &str) {
        self.scope.pop();
        self.depth = self.depth.saturating_sub(1);
        self.line(format_args!("}}{tail};"));
    }

    /// Keeps an id that the prefix does not make. Nothing is written for ids of other languages that no repository id can be: they have
    /// no colon, or are the name itself. The name that a D-Bus interface has there is kept if it is called otherwise here.
    fn give(&mut self, name: &Name, id: &Name) {
        let path = self.names.id_path(name);
        let made = match self.prefix.as_str() {
            "" => format!("IDL:{path}:1.0"),
            prefix => format!("IDL:{prefix}/{path}:1.0"),
        };
        let said = self.names.path(name).join("::");
        let is_bus_name =
            id.contains('.') && id.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c));
        let id = match is_bus_name && path.replace('/', ".") != **id {
            true => format!("{DBUS_ID}{id}"),
            false => id.to_string(),
        };
        if id != made && id != *name && is_repository_id(&id) {
            let _ = writeln!(self.given, "#pragma ID ::{said} \"{id}\"");
        }
    }

    /// The same for an announcement, which needs it at once where the definition never comes.
    fn give_forward(&mut self, name: &Name, id: &Name) {
        if !self.names.contains(name) {
            self.give(name, id);
            let given = std::mem::take(&mut self.given);
            self.out.push_str(&given);
        }
    }

    /// As comments of documentation, which the lexer finds again.
    fn doc(&mut self, doc: &str) {
        for line in doc.lines().map(str::trim_end) {
            let space = if line.is_empty() { "" } else { " " };
            self.line(format_args!("///{space}{line}"));
        }
    }

    /// An empty line, but for the beginning of the text or a body.
    fn space(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("{\n") {
            self.out.push('\n');
        }
    }

    /// One line with the indentation of the place.
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        for _ in 0..self.depth {
            self.out.push_str("    ");
        }
        let _ = writeln!(self.out, "{line}");
    }

    /// A literal for a constant.
    fn value(&self, value: &Value, shape: &Shape) -> String {
        match (value, shape.resolved()) {
            (Value::Bool(true), _) => "TRUE".to_owned(),
            (Value::Bool(false), _) => "FALSE".to_owned(),
            (Value::Integer(value), _) => value.to_string(),
            (Value::Float(value), _) => format!("{value:?}"),
            (Value::Char(value), shape) => {
                let wide = matches!(shape, Shape::WideChar);
                format!("{}'{}'", if wide { "L" } else { "" }, names::escape(*value, wide))
            }
            (Value::Text(value), shape) => {
                names::text(value, matches!(shape, Shape::Text(t) if t.kind == TextKind::Wide))
            }
            (Value::Member(member), Shape::Enum(members)) => self.enumerator(members, member),
            (Value::Bytes(octets), _)
                if let Some(text) = Fixed::named(shape).and_then(|of| of.text(octets)) =>
            {
                format!("{text}d")
            }
            _ => "0 /* not expressible in OMG IDL */".to_owned(),
        }
    }

    /// The shortest way to say a scoped name here.
    fn name(&self, name: &str) -> String {
        self.names.shortest(&self.names.path(name), &self.scope)
    }
}

/// The format of repository ids that are names of D-Bus. The names of D-Bus are made with it in mind.
const DBUS_ID: &str = "DBUS:";

/// Scoped name and id of a definition.
fn identity(definition: &Definition) -> Option<(&Name, &str)> {
    Some(match definition {
        Definition::Type(shape) => return names::of_shape(shape).map(|(_, name, id)| (name, id.as_ref())),
        Definition::Exception(exception) => (&exception.name, &exception.id),
        Definition::Constant(constant) => (&constant.name, ""),
        Definition::Interface(interface) => (&interface.name, &interface.id),
    })
}
