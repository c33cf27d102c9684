//! UUIDs: those that contracts give, and those that are made for what has none.
//!
//! COM finds everything by UUID, and contracts of other languages have none. UUIDs of version 5 (RFC 4122,
//! 4.3) depend on the identity alone, so a client and a server that read the same contract make the same one
//! without asking anybody. The name spaces are constants of this project: if one of them changed, old and new
//! programs could not talk.

use everywire_model::Interface;
use uuid::Uuid;

/// Name space of the identities made for interfaces: UUIDv5 of `urn:everywire:interface` among URLs.
pub const INTERFACES: Uuid = Uuid::from_u128(0x5204_0780_69d9_56b1_8419_fb61_cbd0_4fc1);
/// Name space of the identities made for classes: UUIDv5 of `urn:everywire:class` among URLs.
pub const CLASSES: Uuid = Uuid::from_u128(0x07b0_27cd_6bc0_550f_9f1b_c9a6_cd86_eb40);
/// Name space of the identities made for type libraries: UUIDv5 of `urn:everywire:library` among URLs.
pub const LIBRARIES: Uuid = Uuid::from_u128(0x7864_2efd_a934_53f7_975c_35c5_3b20_edfe);

/// The IID of an interface (the CLSID of a class): its identity if that is a UUID, else its identity in the language
/// `midl`, else UUIDv5 of its identity in [`INTERFACES`].
///
/// ```
/// let contract = everywire_idl::omg::parse("interface Clock { long long now(); };", "clock.idl").unwrap();
/// let clock = contract.interface("Clock").unwrap();
/// assert_eq!(everywire_idl::midl::iid(clock), everywire_idl::midl::iid(clock));
/// assert_eq!(everywire_idl::midl::iid(clock).get_version_num(), 5);
/// ```
#[must_use]
pub fn iid(interface: &Interface) -> Uuid {
    let given = interface.identities.iter().filter(|(language, _)| language == "midl").map(|(_, id)| id);
    std::iter::once(&interface.id)
        .chain(given)
        .find_map(|id| plain(id))
        .unwrap_or_else(|| iid_of_id(&interface.id))
}

/// The IID of the interface with this identity, where that is all that is known of it: as [`iid`] of an interface that names no other.
#[must_use]
pub fn iid_of_id(id: &str) -> Uuid {
    plain(id).unwrap_or_else(|| Uuid::new_v5(&INTERFACES, id.as_bytes()))
}

/// The IID of the interface through which an interface's own signals are delivered, where its contract names none:
/// UUIDv5 of its identity and `#signals`, in [`INTERFACES`].
#[must_use]
pub fn sink_iid(interface: &Interface) -> Uuid {
    Uuid::new_v5(&INTERFACES, format!("{}#signals", interface.id).as_bytes())
}

/// The CLSID of the class that is served under a key: the key if it is a UUID, with or without braces, else UUIDv5 of
/// it in [`CLASSES`].
///
/// ```
/// use everywire_idl::midl::clsid_of_key;
/// let clsid = "606de2c6-1a8c-11d3-b68f-00c04f8b72e7";
/// assert_eq!(clsid_of_key(b"{606DE2C6-1A8C-11D3-B68F-00C04F8B72E7}").to_string(), clsid);
/// assert_ne!(clsid_of_key(b"Clock"), clsid_of_key(b"clock"));
/// ```
#[must_use]
pub fn clsid_of_key(key: &[u8]) -> Uuid {
    std::str::from_utf8(key)
        .ok()
        .and_then(|text| plain(text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text)))
        .unwrap_or_else(|| Uuid::new_v5(&CLASSES, key))
}

/// A UUID in the form with hyphens; no other form is one here. `Uuid::try_parse` alone would also take the
/// forms with braces, `urn:` and without hyphens.
pub(super) fn plain(text: &str) -> Option<Uuid> {
    if text.len() == 36 { Uuid::try_parse(text).ok() } else { None }
}
