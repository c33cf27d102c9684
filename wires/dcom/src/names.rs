//! Names of well-known interfaces and their operations, and of other well-known numbers.
//!
//! Only for people: `trace`, messages, and lists. Nothing that is served or called depends on what is known
//! here.

/// A table of interfaces: identity, name, number of the first operation, and the operations in the order of their numbers.
macro_rules! interfaces {
    ($($id:expr => $name:ident from $first:literal [$($operation:ident)*];)*) => {
        pub(super) const INTERFACES: &[Known] = &[$(Known {
            id: $id,
            name: stringify!($name),
            first: $first,
            operations: &[$(stringify!($operation)),*],
        }),*];
    };
}

mod opc;
mod system;

use uuid::Uuid;

/// An interface that is known.
struct Known {
    /// The IID, or the UUID of an interface of plain DCE/RPC.
    id: Uuid,
    name: &'static str,
    /// Number of the first operation: 3 where those of IUnknown come first.
    first: u16,
    /// Their names in the order of their numbers; empty where only the interface's name is known.
    operations: &'static [&'static str],
}

/// The name of an interface.
pub fn interface(iid: Uuid) -> Option<&'static str> {
    known(iid).map(|known| known.name)
}

/// The name of an operation by its number on the wire.
pub fn operation(iid: Uuid, opnum: u16) -> Option<&'static str> {
    let known = known(iid)?;
    let index = opnum.checked_sub(known.first)?;
    known.operations.get(usize::from(index)).copied()
}

/// An authentication service, by the number that security trailers and bindings have (MS-RPCE 2.2.1.1.7).
pub fn service(number: u16) -> &'static str {
    match number {
        0 => "none",
        9 => "SPNEGO",
        10 => "NTLM",
        14 => "SChannel",
        16 => "Kerberos",
        22 => "Negotiate extensions",
        30 => "PKU2U",
        31 => "Live SSP",
        68 => "Netlogon",
        _ => "unknown",
    }
}

/// An authentication level (MS-RPCE 2.2.1.1.8).
pub fn level(number: u8) -> &'static str {
    match number {
        1 => "none",
        2 => "connect",
        3 => "call",
        4 => "packet",
        5 => "integrity",
        6 => "privacy",
        _ => "unknown",
    }
}

/// A protocol sequence, by the number that string bindings have (C706 appendix I).
pub fn protocol(tower: u16) -> &'static str {
    match tower {
        7 => "ncacn_ip_tcp",
        8 => "ncadg_ip_udp",
        15 => "ncacn_np",
        16 => "ncalrpc",
        31 => "ncacn_http",
        _ => "unknown",
    }
}

/// A short list, searched from its beginning.
fn known(iid: Uuid) -> Option<&'static Known> {
    system::INTERFACES.iter().chain(opc::INTERFACES).find(|known| known.id == iid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use uuid::uuid;

    #[test]
    fn operations_have_the_numbers_of_the_wire() {
        let sync = uuid!("39c13a52-011e-11d0-9675-0020afd8adb3");
        let sync2 = uuid!("730f5f0f-55b1-4c81-9e18-ff8a0904e1fa");
        let exporter = uuid!("99fcfec4-5260-101b-bbcb-00aa0021347a");
        assert_eq!(interface(sync), Some("IOPCSyncIO"));
        assert_eq!((operation(sync, 3), operation(sync, 5)), (Some("Read"), None));
        assert_eq!((operation(sync2, 3), operation(sync2, 5)), (Some("Read"), Some("ReadMaxAge")));
        assert_eq!(
            (operation(exporter, 0), operation(exporter, 5)),
            (Some("ResolveOxid"), Some("ServerAlive2"))
        );
        assert_eq!((operation(sync, 2), interface(Uuid::max())), (None, None));
    }

    #[test]
    fn no_interface_is_there_twice() {
        let ids: Vec<Uuid> = system::INTERFACES.iter().chain(opc::INTERFACES).map(|known| known.id).collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
