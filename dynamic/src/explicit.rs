//! Operations and signals by an explicit signature, where neither a contract nor the object tells what they look like.
//!
//! A signature is written as the wire's people write it, and becomes a contract of one member, which is read as any other: `su` or
//! `su->i` on D-Bus, a declaration in OMG IDL on GIOP (`long deposit(in long amount)`), a function on DCOP (`int seek(int)`).

use crate::contract::ObjectContract;
use crate::mistake::{Mistake, Remedy};
use everywire_idl::{Diagnostics, dbus_xml, kidl, omg, signature};
use everywire_model::{Contract, Kind, Wire};

/// What the interface of a signature is called where its name does not matter.
const NAME: &str = "Explicit";
/// What a contract of a signature is called in messages.
const SOURCE: &str = "the signature";

/// What is wanted by a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// An operation that is called.
    Operation,
    /// A signal that is emitted.
    Signal,
}

/// The contract of one operation or signal, from its name (with its interface before it, where the wire needs one) and its signature.
///
/// # Errors
/// The signature cannot be read, the interface is missing where it is needed, or the wire takes more than types to call.
pub fn contract(
    wire: &dyn Wire,
    word: &str,
    interface: Option<&str>,
    signature: &str,
    wanted: MemberKind,
) -> Result<ObjectContract, Mistake> {
    let contract = match (wire.name(), wanted) {
        ("dbus", _) => on_dbus(word, interface, signature, wanted)?,
        ("dcop", _) => on_dcop(signature, wanted)?,
        ("giop", MemberKind::Operation) => on_giop(signature)?,
        (name, MemberKind::Operation) => {
            let why = format!("on {name} an operation is told by more than its types");
            return Err(Mistake::new(Kind::Unsupported, "a signature is not enough", why)
                .hint("give the contract")
                .remedy(Remedy::Contract));
        }
        (name, MemberKind::Signal) => {
            return Err(Mistake::new(
                Kind::Unsupported,
                "a signature is of no use",
                format!("on {name}, nobody emits signals by their names"),
            )
            .hint("whoever serves an object emits its signals"));
        }
    };
    Ok(ObjectContract::new(contract, SOURCE))
}

/// Whether the answer itself must say the types of the results, because the signature does not.
pub fn leaves_results(wire: &dyn Wire, signature: &str) -> bool {
    wire.name() == "dbus" && !signature.contains("->")
}

/// A name without an interface is none on D-Bus.
fn on_dbus(word: &str, interface: Option<&str>, text: &str, wanted: MemberKind) -> Result<Contract, Mistake> {
    let (scope, member) = match (word.rsplit_once('.'), interface) {
        (_, Some(interface)) => (interface, word.rsplit('.').next().unwrap_or(word)),
        (Some((scope, member)), None) => (scope, member),
        (None, None) => {
            return Err(Mistake::interface(
                format!("`{word}` names no interface"),
                "without a contract nobody knows its interface",
            )
            .hint(format!("write INTERFACE.{word}"))
            .remedy(Remedy::Interface));
        }
    };
    let (given, told) = text.split_once("->").unwrap_or((text, ""));
    let lines = match wanted {
        MemberKind::Operation => format!("{}{}", arguments(given, "in")?, arguments(told, "out")?),
        MemberKind::Signal => arguments(text, "")?,
    };
    let what = if wanted == MemberKind::Operation { "method" } else { "signal" };
    let (scope, member) = (escaped(scope), escaped(member));
    let xml = format!(
        "<node><interface name=\"{scope}\"><{what} name=\"{member}\">{lines}</{what}></interface></node>"
    );
    dbus_xml::parse(&xml, SOURCE)
        .map_err(|mistakes| wrong(text, &mistakes, "it is the name of an interface, a dot and a name"))
}

/// The types of a signature as arguments of introspection data. They are read and written again, so that
/// nothing of the text gets into the XML as it is.
fn arguments(text: &str, direction: &str) -> Result<String, Mistake> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Mistake::argument(format!("the signature `{text}` cannot be read"), error.to_string())
            .hint("it has the types of the arguments, such as `su`; with those of the results, `su->i`")
    };
    let shapes = signature::parse(text.trim()).map_err(|error| unreadable(&error))?;
    let mut lines = String::new();
    for shape in shapes {
        let mut one = String::new();
        signature::of(&shape, &mut one).map_err(|error| unreadable(&error))?;
        let direction =
            if direction.is_empty() { String::new() } else { format!(" direction=\"{direction}\"") };
        lines.push_str(&format!("<arg type=\"{one}\"{direction}/>"));
    }
    Ok(lines)
}

/// A function or signal as `dcopidl` would have found it in a header.
fn on_dcop(text: &str, wanted: MemberKind) -> Result<Contract, Mistake> {
    let mistaken = |why: &str| {
        Mistake::argument(format!("the signature `{text}` cannot be read"), why)
            .hint("it is a function as the contract has it, such as `int seek(int)`; a signal is `finished(QString)`")
    };
    let (head, rest) = text.trim().split_once('(').ok_or_else(|| mistaken("there is no `(`"))?;
    let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| mistaken("it does not end with `)`"))?;
    let (kind, name) = match (head.trim().rsplit_once(' '), wanted) {
        (Some((kind, name)), _) => (kind.trim(), name),
        (None, MemberKind::Signal) => ("void", head.trim()),
        (None, MemberKind::Operation) => {
            return Err(mistaken("what it returns is missing (`void` if nothing)"));
        }
    };
    let mut types = Vec::new();
    let (mut depth, mut one) = (0_u32, String::new());
    // A comma inside of a template parts no arguments.
    for c in inside.chars() {
        match c {
            ',' if depth == 0 => types.push(std::mem::take(&mut one)),
            _ => {
                depth = if c == '<' { depth + 1 } else { depth.saturating_sub(u32::from(c == '>')) };
                one.push(c);
            }
        }
    }
    if !inside.trim().is_empty() {
        types.push(one);
    }
    let arguments: String =
        types.iter().map(|kind| format!("<ARG><TYPE>{}</TYPE></ARG>", escaped(kind.trim()))).collect();
    let member = if wanted == MemberKind::Signal { "SIGNAL" } else { "FUNC" };
    let (kind, name) = (escaped(kind), escaped(name));
    let xml = format!(
        "<DCOP-IDL><CLASS><NAME>{NAME}</NAME><{member}><TYPE>{kind}</TYPE><NAME>{name}</NAME>{arguments}</{member}></CLASS></DCOP-IDL>"
    );
    let contract = kidl::parse(&xml, SOURCE)
        .map_err(|mistakes| wrong(text, &mistakes, "types are those of Qt, as in `int seek(int)`"))?;
    let read = contract
        .interfaces()
        .any(|interface| !interface.operations.is_empty() || !interface.signals.is_empty());
    if read { Ok(contract) } else { Err(mistaken("a type of it is not known")) }
}

/// An operation in OMG IDL, put into an interface of its own.
fn on_giop(text: &str) -> Result<Contract, Mistake> {
    let declaration = text.trim().trim_end_matches(';');
    let idl = format!("interface {NAME} {{ {declaration}; }};");
    omg::parse(&idl, SOURCE).map_err(|mistakes| {
        wrong(text, &mistakes, "it is a declaration in OMG IDL, such as `long deposit(in long amount)`")
    })
}

/// The first mistake; its place is in a text that nobody wrote.
fn wrong(text: &str, mistakes: &Diagnostics, hint: &str) -> Mistake {
    let why = mistakes.list.first().map(|mistake| mistake.message.clone()).unwrap_or_default();
    Mistake::argument(format!("the signature `{text}` cannot be read"), why).hint(hint)
}

/// Text that cannot become markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wording::signature;

    fn told(wire: &str, word: &str, text: &str, wanted: MemberKind) -> Result<String, String> {
        let wire = everywire::wires::named(wire).unwrap();
        let known = contract(wire, word, None, text, wanted).map_err(|mistake| mistake.why().to_owned())?;
        let interface = known.contract.interfaces().next().unwrap();
        Ok(match wanted {
            MemberKind::Operation => format!("{} {}", interface.id, signature(&interface.operations[0])),
            MemberKind::Signal => format!("{} {}", interface.id, interface.signals[0].name),
        })
    }

    #[test]
    fn each_wire_reads_its_own_notation() {
        let calls = [
            (
                "dbus",
                "org.example.Bank.Deposit",
                "sa{sv}->i",
                "org.example.Bank Deposit(text arg_1, map<text, any> arg_2)",
            ),
            ("dcop", "seek", "int seek(int, QMap<QString,int>)", "seek"),
            ("giop", "deposit", "long deposit(in long amount)", "deposit(i32 amount)"),
        ];
        for (wire, word, text, part) in calls {
            let told = told(wire, word, text, MemberKind::Operation).unwrap();
            assert!(told.contains(part.split('(').next().unwrap()), "{told}");
        }
        assert_eq!(
            told("dcop", "f", "finished(QString)", MemberKind::Signal).unwrap(),
            "Explicit finished(QString)"
        );
        assert_eq!(
            told("dbus", "org.example.A.Done", "su", MemberKind::Signal).unwrap(),
            "org.example.A Done"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (wire, word, text, part) in [
            ("dbus", "Deposit", "s", "interface"),
            ("dbus", "a.b.C", "a{", "ends"),
            ("dcop", "seek", "seek(int)", "returns"),
            ("dcop", "seek", "int seek(Unheard)", "not known"),
            ("giop", "deposit", "long deposit(in Unheard amount)", "Unheard"),
            ("dcom", "Heat", "i", "more than its types"),
        ] {
            let why = told(wire, word, text, MemberKind::Operation).unwrap_err();
            assert!(why.contains(part), "{wire} {text}: {why}");
        }
    }
}
