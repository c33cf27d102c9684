//! Names of interfaces, members and objects (D-Bus Specification, "Valid Names" and "Valid Object Paths").

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
    let given = given.map(|(_, id)| id).into_iter().chain([&interface.id]);
    if let Some(id) = given.into_iter().find(|id| is_interface(id)) {
        return Cow::Borrowed(id);
    }
    let mut name: String = interface.name.replace("::", ".");
    if !name.contains('.') {
        name.insert_str(0, "everywire.");
    }
    if !is_interface(&name) {
        let parts: Vec<String> = name.split('.').map(identifier).collect();
        name = parts.join(".");
        name.truncate(LENGTH);
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
