//! Names and paths: which are valid as they come, and how an object's key is spelled on this wire (specification, sections
//! "Valid Names" and "Valid Object Paths"). How a contract's names are spelled is told by [`everywire_idl::dbus_xml::names`].

use crate::limits;
use bytes::Bytes;
use everywire_idl::dbus_xml::names as spelling;
use everywire_model::{Interface, Signal};

pub(crate) use everywire_idl::dbus_xml::names::is_path as is_long_path;
pub use everywire_idl::dbus_xml::names::{
    is_interface, is_member, of_exception, of_interface, of_operation, of_signal,
};

/// The bus itself, as a name. It owns this name, which nobody can ask for.
pub const BUS: &str = "org.freedesktop.DBus";
/// The bus itself, as an object.
pub const BUS_PATH: &str = "/org/freedesktop/DBus";
/// The interface of attributes.
pub const PROPERTIES: &str = "org.freedesktop.DBus.Properties";
/// The interface of everybody.
pub const PEER: &str = "org.freedesktop.DBus.Peer";
/// The interface that tells an object's contract.
pub const INTROSPECTABLE: &str = "org.freedesktop.DBus.Introspectable";
/// Where the standard errors are. With the dot behind it.
pub const ERRORS: &str = "org.freedesktop.DBus.Error.";

/// Whether it is an object path, of a length that is taken here. Longer ones are valid by the specification;
/// a message with one is refused.
pub fn is_path(path: &[u8]) -> bool {
    path.len() <= limits::PATH && is_long_path(path)
}

/// Whether it is a unique or a well-known bus name. Elements of a unique name may begin with a digit, and
/// those of both kinds may have `-`.
pub fn is_bus_name(name: &[u8]) -> bool {
    let (elements, unique) = match name {
        [b':', rest @ ..] => (rest, true),
        _ => (name, false),
    };
    let fits = |element: &[u8]| {
        element.iter().all(|&c| is_word(c) || c == b'-')
            && element.first().is_some_and(|first| unique || !first.is_ascii_digit())
    };
    name.len() <= limits::NAME && elements.contains(&b'.') && elements.split(|&octet| octet == b'.').all(fits)
}

/// Letters, digits and `_`.
#[inline]
fn is_word(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || octet == b'_'
}

/// The interface, this one or a base, whose own signal this is.
pub fn declaring_signal<'a>(interface: &'a Interface, signal: &Signal) -> &'a Interface {
    let inherits = |base: &&everywire_model::Hold<Interface>| base.signal(signal.name.as_bytes()).is_some();
    interface.bases.iter().find(inherits).map_or(interface, |base| declaring_signal(base, signal))
}

/// The path of an object: its key behind a `/`. Octets that no path may have are written `_xx`, with two
/// small hexadecimal digits. A `_` that stands before two such digits is itself escaped, so that `respell`
/// gives back the very key. The empty key is the root.
pub fn path_of_key(key: &[u8]) -> String {
    if key.is_empty() || key == b"/" {
        return "/".to_owned();
    }
    let mut path = String::with_capacity(key.len() + 1);
    path.push('/');
    if let Ok(plain) = str::from_utf8(key)
        && spelling::is_relative(plain)
    {
        path.push_str(plain);
        return path;
    }
    for (index, &octet) in key.iter().enumerate() {
        let rest = key.get(index + 1..).unwrap_or_default();
        let keep = match octet {
            b'/' => {
                index > 0
                    && key.get(index - 1) != Some(&b'/')
                    && rest.first().is_some_and(|&next| next != b'/')
            }
            // Else undoing would take it for an escape.
            b'_' => !matches!(rest, [a, b, ..] if hex(*a).is_some() && hex(*b).is_some()),
            other => is_word(other),
        };
        if keep {
            path.push(octet.into());
        } else {
            path.push_str(&format!("_{octet:02x}"));
        }
    }
    path
}

/// The key of the object at a path, which must be valid; the root's key is `/`. Escapes stay: `respell`
/// undoes them, where nothing is served under the key as it is.
pub fn key_of_path(path: &Bytes) -> Bytes {
    if path.len() <= 1 { Bytes::from_static(b"/") } else { path.slice(1..) }
}

/// The key that this key stands for, if it was written with escapes; nothing if there are none in it.
pub fn respell(key: &[u8]) -> Option<Bytes> {
    if !key.contains(&b'_') {
        return None;
    }
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key;
    while let [octet, after @ ..] = rest {
        if let (b'_', [high, low, tail @ ..]) = (octet, after)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.push(high << 4 | low);
            rest = tail;
        } else {
            out.push(*octet);
            rest = after;
        }
    }
    (out.len() != key.len()).then(|| Bytes::from(out))
}

/// The value of a small hexadecimal digit. Capital ones are no escape, so that each key has one path.
fn hex(octet: u8) -> Option<u8> {
    everywire_model::hex::digit(octet).filter(|_| !octet.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_specification() {
        for good in ["/", "/a", "/a/b_1/C"] {
            assert!(is_path(good.as_bytes()), "{good}");
        }
        for bad in ["", "a", "/a/", "//", "/a//b", "/a-b", "/ä"] {
            assert!(!is_path(bad.as_bytes()), "{bad}");
        }
        assert!(is_interface(b"org.a_b.C1") && !is_interface(b"org") && !is_interface(b"org.1a"));
        assert!(!is_interface(b".a.b") && !is_interface(b"a..b") && !is_interface(b"a.b-c"));
        assert!(
            is_bus_name(b":1.42")
                && is_bus_name(b"org.a-b.C")
                && !is_bus_name(b"org.1")
                && !is_bus_name(b"org")
        );
        assert!(!is_interface([b"a.".as_slice(), &[b'b'; 254]].concat()));
    }

    #[test]
    fn any_key_comes_back_from_its_path() {
        for key in ["a", "a/b", "a.b", "a//b", "/a", "a/", "foo_ab.c", "naïve key", "x_2fy.z", "/", "//"] {
            let path = path_of_key(key.as_bytes());
            assert!(is_path(path.as_bytes()), "{key} {path}");
            let back = key_of_path(&Bytes::from(path.into_bytes()));
            let original = if back == key.as_bytes() { back } else { respell(&back).unwrap() };
            assert_eq!(original, key.as_bytes());
        }
        assert_eq!(respell(b"plain_key"), None);
    }
}
