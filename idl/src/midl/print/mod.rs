//! A contract back to MIDL.
//!
//! State: which names the contract defines, which of them are printed, and what had to be made on the way:
//! types for shapes that MIDL cannot say in place stand in `pending` until the text that needs them is
//! complete, and are then put before it. So nothing is used before its definition, and the definitions of the
//! contract keep their order, except that dispinterfaces and classes go into a library at the end, as MIDL
//! wants them.
//!
//! Invariants: every interface of COM has a UUID, given or made, so that a compiler of others makes stubs that can
//! talk to ours. Names that are made differ from those of the contract (`Unique`). A mistake does not stop
//! the printer; the first one is kept in `trouble`, and then no text is given out.
//!
//! Names become identifiers of C: scopes are joined with `_`, words of MIDL and C get a `_` behind them.

mod bases;
mod declare;
mod interfaces;
mod types;

use super::ids::LIBRARIES;
use super::known;
use crate::empty::empty;
use crate::unique::{Unique, cut, legal};
use crate::unprintable::Unprintable;
use everywire_model::contract::Constant;
use everywire_model::shape::{Enum, Name, Referent, TextKind};
use everywire_model::{Contract, Definition, Hold, Interface, InterfaceKind, Shape, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use uuid::Uuid;

/// The contract as MIDL.
///
/// What other languages have and MIDL has not is put in its terms: names of modules become part of names, sequences that
/// no field counts become structs with a count, maps become sequences of pairs, signals the methods of an interface of
/// their own, and a second base's operations are listed where they stand. UUIDs that the contract does not give are made
/// from its identities ([`super::iid`]). Exceptions become structs, and pragmas say that they are exceptions and what raises
/// them. An exception that is a value as well becomes two, with `_exception` behind the name of the one.
///
/// # Errors
/// Handles of an operating system: they cannot travel.
pub fn print(contract: &Contract) -> Result<String, Unprintable> {
    let contract = &*everywire_model::value_type::as_structs(contract);
    let contract = &*crate::raised::apart(contract);
    let contract = &*bases::described(contract);
    let contract = &*crate::order::sorted(contract, str::to_owned);
    match printed(contract)? {
        (text, unknown) if unknown.is_empty() => Ok(text),
        // They are part of the contract that is read from the text, and so of what is printed.
        (_, unknown) => printed(&with(contract, unknown)).map(|(text, _)| text),
    }
}

/// The text, and the interfaces that a contract refers to and does not define: each with the number of the definition that needs it.
fn printed(contract: &Contract) -> Result<(String, Vec<(usize, Referent)>), Unprintable> {
    let mut printer = Printer {
        contract: contract.definitions.iter().filter_map(name_of).collect(),
        defined: HashSet::new(),
        open: HashSet::new(),
        switched: types::switched(contract),
        pending: String::new(),
        made: HashMap::new(),
        names: Unique::default(),
        members: HashMap::new(),
        place: String::new(),
        at: 0,
        unknown: Vec::new(),
        trouble: None,
    };
    let text = printer.contract(contract);
    match printer.trouble {
        Some((place, reason)) => Err(Unprintable { language: "MIDL", place, reason }),
        None => Ok((text, printer.unknown)),
    }
}

/// The contract with interfaces without operations before what refers to them, so that their identities are not lost.
fn with(contract: &Contract, unknown: Vec<(usize, Referent)>) -> Contract {
    let mut unknown = unknown.into_iter().peekable();
    let mut definitions = Vec::with_capacity(contract.definitions.len() + unknown.len());
    for (number, definition) in contract.definitions.iter().enumerate() {
        while let Some((_, referent)) = unknown.next_if(|(at, _)| *at <= number) {
            let doc = Name::from("No more is known of it here.");
            let interface = Interface { doc, ..empty(referent.name, referent.id) };
            definitions.push(Definition::Interface(Hold::new(interface)));
        }
        definitions.push(definition.clone());
    }
    Contract { definitions }
}

struct Printer {
    /// Names that the contract defines, as they stand in it.
    contract: HashSet<String>,
    /// What is defined so far.
    defined: HashSet<String>,
    /// Types that are being defined: until then they are mentioned with their keyword.
    open: HashSet<String>,
    /// Unions whose discriminators stand beside them.
    switched: HashSet<String>,
    /// Text of types that what is being written needs, to be put before it.
    pending: String,
    /// Names of types that were made, by what they look like.
    made: HashMap<String, String>,
    /// All names that are taken, as identifiers.
    names: Unique,
    /// Other names for members of enumerations whose own is taken, by the enumeration and the member: all names stand
    /// beside one another here.
    members: HashMap<(String, String), String>,
    /// What is being written, for messages.
    place: String,
    /// The number of the definition that is being written.
    at: usize,
    /// Interfaces that are referred to and not defined.
    unknown: Vec<(usize, Referent)>,
    /// The first thing that cannot be said: where, and why.
    trouble: Option<(String, String)>,
}

impl Printer {
    /// The whole text. Interfaces are announced first, since methods may refer to later ones.
    fn contract(&mut self, contract: &Contract) -> String {
        let mut out = String::from("import \"oaidl.idl\";\nimport \"ocidl.idl\";\n");
        for definition in &contract.definitions {
            self.names.name(&ident(&name_of(definition).unwrap_or_default()));
        }
        for definition in &contract.definitions {
            if let Definition::Type(Shape::Enum(body)) = definition {
                self.name_members(body);
            }
        }
        // Announcements matter only among several interfaces.
        let served = |interface: &&Interface| interface.kind != InterfaceKind::Class;
        let interfaces: Vec<&Interface> = contract.interfaces().map(|held| &**held).collect();
        let ahead: Vec<&Interface> = interfaces.into_iter().filter(served).collect();
        if ahead.len() > 1 {
            out.push('\n');
            // Dispinterfaces stand in the library, which comes last.
            let (dispatch, plain): (Vec<&Interface>, Vec<&Interface>) =
                ahead.into_iter().partition(|interface| interface.kind == InterfaceKind::Dispatch);
            for interface in plain {
                let _ = writeln!(out, "interface {};", ident(&interface.name));
            }
            for interface in dispatch {
                let _ = writeln!(out, "dispinterface {};", ident(&interface.name));
            }
        }
        // Classes come last: what they name must stand before them.
        let (mut library, mut classes) = (String::new(), String::new());
        let (mut first, mut first_class) = (None, None);
        for (number, definition) in contract.definitions.iter().enumerate() {
            self.at = number;
            let mut text = String::new();
            match definition {
                Definition::Type(shape) => self.named_type(shape, &mut text),
                Definition::Exception(exception) => self.exception(exception, &mut text),
                Definition::Constant(constant) => self.constant(constant, &mut text),
                Definition::Interface(interface) => {
                    self.place = interface.name.to_string();
                    match interface.kind {
                        InterfaceKind::Class => self.class(interface, &mut text),
                        InterfaceKind::Dispatch => self.dispinterface(interface, &mut text),
                        _ => self.interface(interface, &mut text),
                    }
                    self.defined.insert(interface.name.to_string());
                    if matches!(interface.kind, InterfaceKind::Class | InterfaceKind::Dispatch) {
                        out.push_str(&std::mem::take(&mut self.pending));
                        let class = interface.kind == InterfaceKind::Class;
                        // As they will stand there: classes come last.
                        let first = if class { &mut first_class } else { &mut first };
                        first.get_or_insert_with(|| interface.name.clone());
                        if class { &mut classes } else { &mut library }.push_str(&text);
                        continue;
                    }
                }
            }
            out.push_str(&std::mem::take(&mut self.pending));
            out.push_str(&text);
        }
        if let Some(first) = first.or(first_class) {
            let name = self.names.name(&format!("{}Lib", ident(&first)));
            // A library needs a UUID, which no contract gives; it is made of the name, so that it is the same
            // each time.
            let uuid = Uuid::new_v5(&LIBRARIES, name.as_bytes());
            let _ = write!(out, "\n[uuid({uuid}), version(1.0)]\nlibrary {name}\n{{\n");
            out.push_str("    importlib(\"stdole2.tlb\");\n");
            for line in library.lines().chain(classes.lines()) {
                let _ = writeln!(out, "{}{line}", if line.is_empty() { "" } else { "    " });
            }
            out.push_str("};\n");
        }
        // The name of a category stands in a file of its own.
        if out.contains("CATID") {
            out.insert_str(0, "import \"comcat.idl\";\n");
        }
        out
    }

    /// Gives the members of an enumeration their names. A name that is taken is said with the enumeration before it.
    fn name_members(&mut self, body: &Enum) {
        for (member, _) in body.members.iter() {
            let own = ident(member);
            let is_taken = self.names.has(&own);
            let wanted = if is_taken { format!("{}_{own}", ident(&body.name)) } else { own };
            let said = self.names.name(&wanted);
            if is_taken {
                self.members.insert((body.name.to_string(), member.to_string()), said);
            }
        }
    }

    /// How a member of an enumeration is called here.
    fn member(&self, of: &Enum, member: &str) -> String {
        if self.members.is_empty() {
            return ident(member);
        }
        let said = self.members.get(&(of.name.to_string(), member.to_owned()));
        said.cloned().unwrap_or_else(|| ident(member))
    }

    /// A constant, as MIDL or as text for the C header where MIDL has no such constant.
    fn constant(&mut self, constant: &Constant, out: &mut String) {
        comment(&constant.doc, "", out);
        let name = ident(&constant.name);
        let kind = match constant.shape.resolved() {
            Shape::Text(text) if text.kind == TextKind::Narrow => "char *".to_owned(),
            Shape::Text(_) => "wchar_t *".to_owned(),
            // MIDL has no constants with fractions.
            kind @ (Shape::F32 | Shape::F64) => {
                let kind = if matches!(kind, Shape::F32) { "float" } else { "double" };
                let value = if let Value::Float(value) = constant.value { value } else { 0.0 };
                let _ = writeln!(out, "cpp_quote(\"static const {kind} {name} = {value:?};\")");
                return;
            }
            _ => self.element(&constant.shape) + " ",
        };
        let wide = kind.starts_with("wchar_t");
        let value = match (&constant.value, constant.shape.resolved()) {
            (Value::Bool(value), _) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
            // Compilers take no longer ones.
            (Value::Integer(value), _) if !(i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(value) => {
                let unsigned = if matches!(constant.shape.resolved(), Shape::U64) { "U" } else { "" };
                let _ = writeln!(out, "cpp_quote(\"#define {name} {value}{unsigned}LL\")");
                return;
            }
            (Value::Integer(value), _) => value.to_string(),
            (Value::Char(value @ (' '..='~')), Shape::Char) => format!("'{}'", escaped_quote(*value)),
            (Value::Char(value), _) => u32::from(*value).to_string(),
            (Value::Text(value), _) => format!("{}\"{}\"", if wide { "L" } else { "" }, escaped(value, wide)),
            (Value::Member(member), Shape::Enum(of)) => self.member(of, member),
            _ => return,
        };
        let _ = writeln!(out, "const {kind}{name} = {value};");
    }

    /// Notes what MIDL cannot say. The first reason is kept.
    fn cannot(&mut self, reason: &str) {
        self.trouble.get_or_insert_with(|| (self.place.clone(), reason.to_owned()));
    }
}

/// The name of a definition, if it has one.
fn name_of(definition: &Definition) -> Option<String> {
    Some(match definition {
        Definition::Type(shape) => match shape {
            Shape::Struct(shape) => shape.name.to_string(),
            Shape::Union(shape) => shape.name.to_string(),
            Shape::Enum(shape) => shape.name.to_string(),
            Shape::Alias(shape) => shape.name.to_string(),
            _ => return None,
        },
        Definition::Exception(exception) => exception.name.to_string(),
        Definition::Constant(constant) => constant.name.to_string(),
        Definition::Interface(interface) => interface.name.to_string(),
    })
}

/// Words that name something else in MIDL or in the C that is made from it. A name that is one of them gets a
/// `_`.
const WORDS: &[&str] = &[
    "auto",
    "boolean",
    "break",
    "byte",
    "case",
    "char",
    "class",
    "coclass",
    "const",
    "continue",
    "default",
    "delete",
    "dispinterface",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "handle_t",
    "hyper",
    "if",
    "import",
    "importlib",
    "int",
    "interface",
    "library",
    "long",
    "methods",
    "new",
    "operator",
    "private",
    "properties",
    "protected",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "small",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "typedef",
    "union",
    "unsigned",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
];

/// A name as one identifier: `A::b` is `A_b`. Two names may become one; the caller makes names unique where
/// that matters.
pub(super) fn ident(name: &str) -> String {
    let mut text = legal(&name.replace("::", "_"));
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        text.insert(0, 'n');
    }
    if WORDS.contains(&text.as_str()) {
        text.push('_');
    }
    cut(text)
}

/// The inside of a string literal. Characters that the encoding of the literal lacks become `?`.
fn escaped(text: &str, wide: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if c > '\u{ff}' && !wide => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// A character between single quotes.
fn escaped_quote(c: char) -> String {
    if matches!(c, '\'' | '\\') { format!("\\{c}") } else { c.to_string() }
}

/// Documentation as comments.
fn comment(doc: &str, indent: &str, out: &mut String) {
    for line in doc.lines().map(str::trim_end) {
        let _ = writeln!(out, "{indent}///{}{line}", if line.is_empty() { "" } else { " " });
    }
}

/// Whether documentation fits a `helpstring`. Several lines, and characters that a file in ISO 8859-1 has
/// not, go into a comment instead.
fn is_help(doc: &str) -> bool {
    !doc.is_empty() && doc.chars().all(|c| !c.is_control() && c <= '\u{ff}')
}

/// Whether MIDL knows a struct or a name without a definition.
fn is_known(name: &str) -> bool {
    known::is_type(name) || known::is_struct(name)
}
