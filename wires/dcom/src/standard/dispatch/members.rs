//! The members that an interface has for callers by name: methods and properties, with their DISPIDs (MS-OAUT 2.2.32).

use everywire_model::contract::{Interface, InterfaceKind, Operation};

/// DISPID_UNKNOWN.
pub(crate) const UNKNOWN: i32 = -1;
/// DISPID_PROPERTYPUT: names the new value of a property.
pub(crate) const PROPERTY_PUT: i32 = -3;

/// How a member is called (INVOKEKIND, MS-OAUT 2.2.14; the same numbers as the flags of Invoke).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Access {
    Method = 1,
    Get = 2,
    Put = 4,
    PutRef = 8,
}

/// A member.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// Its DISPID; the accessors of one property share it.
    pub(crate) id: i32,
    /// Its name, for a property without `get_` or `put_`.
    pub(crate) name: String,
    pub(crate) access: Access,
    /// Number of the operation.
    pub(crate) index: usize,
}

/// The members of an interface, in the order of its operations. A DISPID is the one that the contract gives; without one it
/// is the number of the operation (of the one that reads, where a property is), counted from 1.
pub(crate) fn members(interface: &Interface) -> Vec<Member> {
    let mut all: Vec<Member> = Vec::with_capacity(interface.operations.len());
    for (index, operation) in interface.operations.iter().enumerate() {
        let (name, access) = spelled(interface, index, operation);
        let getter = match access {
            Access::Put | Access::PutRef => all
                .iter()
                .find(|held| held.access == Access::Get && held.name == name)
                .map(|held| held.id)
                .or_else(|| getter_of(interface, index)),
            _ => None,
        };
        let id = operation.id.or(getter).unwrap_or_else(|| number(index));
        all.push(Member { id, name, access, index });
    }
    all
}

/// The DISPID of an operation that has none in its contract.
fn number(index: usize) -> i32 {
    i32::try_from(index).map_or(i32::MAX, |index| index.saturating_add(1))
}

/// The DISPID of the property that an operation sets, if the operation that reads it stands behind it.
fn getter_of(interface: &Interface, setter: usize) -> Option<i32> {
    let (attribute, _) = interface.attribute_of(setter)?;
    let getter = interface.operations.get(attribute.getter)?;
    Some(getter.id.unwrap_or_else(|| number(attribute.getter)))
}

/// Name and kind of an operation: accessors of attributes are properties, and so are, in interfaces that are called by name,
/// accessors with more parameters.
fn spelled(interface: &Interface, index: usize, operation: &Operation) -> (String, Access) {
    let prefixed = |prefix: &str| operation.name.strip_prefix(prefix).map(str::to_owned);
    if let Some((attribute, writes)) = interface.attribute_of(index) {
        let by_reference = writes && operation.name.starts_with("putref_");
        let access = match (writes, by_reference) {
            (false, _) => Access::Get,
            (true, false) => Access::Put,
            (true, true) => Access::PutRef,
        };
        return (attribute.name.to_string(), access);
    }
    if matches!(interface.kind, InterfaceKind::Dual | InterfaceKind::Dispatch | InterfaceKind::Class) {
        let accessors = [("get_", Access::Get), ("put_", Access::Put), ("putref_", Access::PutRef)];
        if let Some(found) =
            accessors.into_iter().find_map(|(prefix, access)| Some((prefixed(prefix)?, access)))
        {
            return found;
        }
    }
    (operation.name.to_string(), Access::Method)
}

/// Whether two names are the same to automation, which does not tell capitals from small letters (MS-OAUT 2.2.50.1).
pub(crate) fn same_name(left: &str, right: &str) -> bool {
    left.chars().flat_map(char::to_lowercase).eq(right.chars().flat_map(char::to_lowercase))
}
