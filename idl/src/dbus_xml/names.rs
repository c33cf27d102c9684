//! Names of interfaces, members and objects (D-Bus Specification, "Valid Names" and "Valid Object Paths").
//!
//! The first half checks names that come from messages and from XML. The second makes names of D-Bus for what
//! other contract languages define: they are always valid, so that whatever is served can be called over
//! D-Bus, and they depend on the contract alone, so that both sides make the same ones.

use everywire_model::contract::{MEMBER, note};
use everywire_model::shape::Struct;
use everywire_model::{Interface, Operation, Signal};
use std::borrow::Cow;

/// The most bytes of a name.
pub const LENGTH: usize = 255;

/// Whether octets are the name of an interface or an error: at least two elements, joined by dots.
pub fn is_interface(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    name.len() <= LENGTH && elements(name, b'.', false).is_some_and(|count| count > 1)
}

/// Whether octets are the name of a method or a signal.
pub fn is_member(name: impl AsRef<[u8]>) -> bool {
    let name = name.as_ref();
    name.len() <= LENGTH && elements(name, b'.', false) == Some(1)
}

/// Whether octets are the path of an object.
pub fn is_path(path: impl AsRef<[u8]>) -> bool {
    let path = path.as_ref();
    path == b"/" || path.strip_prefix(b"/").is_some_and(is_relative)
}

/// Whether octets are part of a path, as the name of a child is.
pub fn is_relative(path: impl AsRef<[u8]>) -> bool {
    elements(path.as_ref(), b'/', true).is_some()
}

/// How many elements the octets have, if each is made of letters, digits and `_`, and none is empty. Where the first octet
/// of an element may be no digit, `digits` is false. One pass: the headers of messages are checked by this.
#[inline]
fn elements(octets: &[u8], separator: u8, digits: bool) -> Option<usize> {
    let (mut count, mut begins) = (1, true);
    for &octet in octets {
        if octet == separator && !begins {
            (count, begins) = (count + 1, true);
        } else if is_word(octet) && (!begins || digits || !octet.is_ascii_digit()) {
            begins = false;
        } else {
            return None;
        }
    }
    (!begins).then_some(count)
}

/// Whether an octet may stand in an element of a name. A table, since each octet of each header passes here.
#[inline]
fn is_word(octet: u8) -> bool {
    const WORDS: [bool; 256] = {
        let (mut words, mut octet) = ([false; 256], 0);
        while octet < words.len() {
            words[octet] = (octet as u8).is_ascii_alphanumeric() || octet as u8 == b'_';
            octet += 1;
        }
        words
    };
    WORDS.get(usize::from(octet)).copied().unwrap_or(false)
}

/// The name that an interface of any contract language has on D-Bus: the one given for this language, its id where that
/// is such a name, else its scoped name with dots, in the domain `everywire` where it has no scope.
pub fn of_interface(interface: &Interface) -> Cow<'_, str> {
    let given = interface.identities.iter().find(|(language, _)| language == "dbus");
    match given {
        Some((_, id)) if is_interface(id.as_bytes()) => Cow::Borrowed(id),
        _ => dotted(&interface.id, &interface.name),
    }
}

/// The name that an exception of any contract language has on D-Bus as an error, made as that of an interface is.
pub fn of_exception(exception: &Struct) -> Cow<'_, str> {
    dotted(&exception.id, &exception.name)
}

/// The format of repository ids of CORBA that are names of D-Bus: a contract in OMG IDL has them where a name of D-Bus is no name there.
const REPOSITORY: &str = "DBUS:";

/// An id that is a name of D-Bus, else the scoped name with dots, else that name with every part made an
/// identifier. A name that is too long is cut down to its last part.
fn dotted<'a>(id: &'a str, name: &str) -> Cow<'a, str> {
    let given = id.strip_prefix(REPOSITORY).unwrap_or(id);
    if is_interface(given) {
        return Cow::Borrowed(given);
    }
    let mut name: String = name.replace("::", ".");
    if !name.contains('.') {
        name.insert_str(0, "everywire.");
    }
    if !is_interface(&name) {
        let parts: Vec<String> = name.split('.').map(identifier).collect();
        name = parts.join(".");
        if name.len() > LENGTH {
            let last = parts.last().map(String::as_str).unwrap_or_default();
            name = format!("everywire.{last}");
            name.truncate(LENGTH);
        }
    }
    Cow::Owned(name)
}

/// The name of an operation on D-Bus: the one that it shares with another ([`MEMBER`]), else its wire name, or its label where that is
/// a whole signature.
pub fn of_operation(operation: &Operation) -> &str {
    match note(&operation.notes, MEMBER) {
        Some(shared) => shared,
        None if is_signature(&operation.name) => &operation.label,
        None => &operation.name,
    }
}

/// The name of a signal on D-Bus: its wire name, or its label where that is a whole signature.
pub fn of_signal(signal: &Signal) -> &str {
    if is_signature(&signal.name) { &signal.label } else { &signal.name }
}

/// A text made an identifier: what may not stand in one becomes `_`.
pub(crate) fn identifier(text: &str) -> String {
    let mut out: String =
        text.chars().take(LENGTH).map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if out.bytes().next().is_none_or(|b| b.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}

/// Whether a name is a whole signature, as a function of DCOP has one.
fn is_signature(name: &str) -> bool {
    name.as_bytes().contains(&b'(')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_always_have_a_name_that_travels() {
        for (id, name, expected) in [
            ("org.example.Refused", "Example::Refused", "org.example.Refused"),
            ("IDL:Bank/Broke:1.0", "Bank::Broke", "Bank.Broke"),
            ("", "Refused", "everywire.Refused"),
            ("", "urn:a-b::1st", "urn_a_b._1st"),
        ] {
            let exception = Struct { name: name.into(), id: id.into(), fields: Cow::Borrowed(&[]) };
            assert_eq!(of_exception(&exception), expected);
        }
        let long = format!("{}::{}", "a".repeat(254), "b".repeat(254));
        let long = Struct { name: long.into(), id: "".into(), fields: Cow::Borrowed(&[]) };
        assert!(is_interface(of_exception(&long).as_bytes()));
    }
}
