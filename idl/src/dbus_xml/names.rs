//! Names of interfaces, members and objects (D-Bus Specification, "Valid Names" and "Valid Object Paths").

use everywire_model::shape::Struct;
use everywire_model::{Interface, Operation, Signal};
use std::borrow::Cow;

/// The most bytes of a name.
pub const LENGTH: usize = 255;

/// Whether a text is the name of an interface or an error: at least two elements, joined by dots.
pub fn is_interface(name: &str) -> bool {
    name.len() <= LENGTH && name.contains('.') && name.split('.').all(is_element)
}

/// Whether a text is the name of a method or a signal.
pub fn is_member(name: &str) -> bool {
    name.len() <= LENGTH && is_element(name)
}

/// Whether a text is the path of an object.
pub fn is_path(path: &str) -> bool {
    path == "/" || path.strip_prefix('/').is_some_and(is_relative)
}

/// Whether a text is part of a path, as the name of a child is.
pub fn is_relative(path: &str) -> bool {
    let element =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    path.split('/').all(element)
}

/// The name that an interface of any contract language has on D-Bus: the one given for this language, its id where that
/// is such a name, else its scoped name with dots, in the domain `everywire` where it has no scope.
pub fn of_interface(interface: &Interface) -> Cow<'_, str> {
    let given = interface.identities.iter().find(|(language, _)| language == "dbus");
    match given {
        Some((_, id)) if is_interface(id) => Cow::Borrowed(id),
        _ => dotted(&interface.id, &interface.name),
    }
}

/// The name that an exception of any contract language has on D-Bus as an error, made as that of an interface is.
pub fn of_exception(exception: &Struct) -> Cow<'_, str> {
    dotted(&exception.id, &exception.name)
}

fn dotted<'a>(id: &'a str, name: &str) -> Cow<'a, str> {
    if is_interface(id) {
        return Cow::Borrowed(id);
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

/// The name of an operation on D-Bus: its wire name, or its label where that is a whole signature.
pub fn of_operation(operation: &Operation) -> &str {
    if operation.name.contains('(') { &operation.label } else { &operation.name }
}

/// The name of a signal on D-Bus: its wire name, or its label where that is a whole signature.
pub fn of_signal(signal: &Signal) -> &str {
    if signal.name.contains('(') { &signal.label } else { &signal.name }
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

fn is_element(text: &str) -> bool {
    let start = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    text.bytes().next().is_some_and(start) && text.bytes().all(|b| start(b) || b.is_ascii_digit())
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
        assert!(is_interface(&of_exception(&long)));
    }
}
