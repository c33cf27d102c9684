//! An object's contract, from its own description (specification, "Introspection Data Format").

use super::contracts::{INTROSPECT, INTROSPECTABLE, is_standard};
use crate::names::{is_path, of_interface};
use everywire_idl::dbus_xml;
use everywire_model::{
    Bytes, Contract, Definition, Discovery, Failure, Hold, Initiator, Interface, Kind, Object,
};

/// Asks an object what it is, and what is below it.
///
/// # Errors
/// Those of the call; [`Kind::Malformed`] if the description cannot be understood.
pub fn discover(object: &Object) -> Result<Discovery, Failure> {
    let (xml,) = describable(object.clone()).call::<_, (String,), Failure>(INTROSPECT, ())?;
    let key = object.reference().profiles.first().map_or_else(Bytes::new, |profile| profile.key.clone());
    read(&xml, &key)
}

/// The object, as one that describes itself.
pub(super) fn describable(object: Object) -> Object {
    object.typed(Hold::Static(&INTROSPECTABLE))
}

/// What the description of the object with this key says. The contract has types first, then the interfaces
/// of the object's own, then standard ones; `own` counts those of its own. Children with names that may not
/// stand in a path are left out.
///
/// # Errors
/// The description is not well-formed, or breaks the rules of the format.
pub(super) fn read(xml: &str, key: &[u8]) -> Result<Discovery, Failure> {
    let node = dbus_xml::parse_node(xml).map_err(|diagnostics| {
        let first = diagnostics.to_string();
        let first = first.lines().next().unwrap_or_default();
        Failure::new(Kind::Malformed, Initiator::Peer, format!("the object's description: {first}"))
    })?;
    let (mut own, mut standard, mut types) = (Vec::new(), Vec::new(), Vec::new());
    for definition in node.contract.definitions {
        match definition {
            Definition::Interface(interface) if is_standard(&of_interface(&interface)) => {
                standard.push(interface)
            }
            Definition::Interface(interface) => own.push(interface),
            other => types.push(other),
        }
    }
    let count = own.len();
    let interfaces = own.into_iter().chain(standard).map(Definition::Interface);
    Ok(Discovery {
        contract: Contract { definitions: types.into_iter().chain(interfaces).collect() },
        own: count,
        children: node.children.iter().filter_map(|child| below(key, child)).collect(),
        ..Discovery::default()
    })
}

/// The key of a child, which is named relative to its parent; some programs write the whole path.
fn below(key: &[u8], child: &str) -> Option<Bytes> {
    let parent = if key.is_empty() || key == b"/" { Vec::new() } else { [b"/", key].concat() };
    let relative = match child.strip_prefix('/') {
        Some(_) => child.as_bytes().strip_prefix(parent.as_slice())?.strip_prefix(b"/")?,
        None => child.as_bytes(),
    };
    let path = [parent.as_slice(), b"/", relative].concat();
    // What peers say is used in paths again: only what may be one is taken.
    (is_path(&path) && !relative.is_empty()).then(|| Bytes::from(path).slice(1..))
}

/// The names of an object's own interfaces, as `read` has sorted them.
pub(super) fn own_interfaces(discovery: &Discovery) -> Vec<String> {
    let name = |interface: &Hold<Interface>| of_interface(interface).into_owned();
    discovery.contract.interfaces().take(discovery.own).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_become_keys() {
        for (key, child, expected) in [
            (&b"/"[..], "a", Some(&b"a"[..])),
            (b"", "a", Some(b"a")),
            (b"a", "b", Some(b"a/b")),
            (b"a", "b/c", Some(b"a/b/c")),
            (b"a", "/a/b", Some(b"a/b")),
            (b"/", "/a/b", Some(b"a/b")),
            (b"a", "/ab", None),
            (b"a", "/x/b", None),
            (b"a", "", None),
            (b"a", "b-c", None),
            (b"a", "../b", None),
            (b"a", "/a", None),
        ] {
            assert_eq!(below(key, child).as_deref(), expected, "{child}");
        }
    }
}
