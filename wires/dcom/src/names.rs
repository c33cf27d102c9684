//! Names of well-known interfaces and their operations, and of other well-known numbers.
//!
//! Only for people: `trace`, messages, and lists. Nothing that is served or called depends on what is known
//! here.

use crate::security::Level;
use uuid::Uuid;

/// The table of interfaces, whose beginning says what its columns are.
const INTERFACES: &str = include_str!("names/interfaces.tsv");

/// An interface that is known.
struct InterfaceNames {
    name: &'static str,
    /// Number of the first operation.
    first: u16,
    /// Their names in the order of their numbers, with blanks between; empty where only the interface's name is known.
    operations: &'static str,
}

/// The name of an interface.
pub fn interface(iid: Uuid) -> Option<&'static str> {
    known(iid).map(|known| known.name)
}

/// The name of an operation by its number on the wire.
pub fn operation(iid: Uuid, opnum: u16) -> Option<&'static str> {
    let known = known(iid)?;
    let index = opnum.checked_sub(known.first)?;
    known.operations.split(' ').nth(index.into()).filter(|name| !name.is_empty())
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
    Level::of_number(number).map_or("unknown", Level::word)
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

/// The table as it is written.
fn rows() -> impl Iterator<Item = (Uuid, InterfaceNames)> {
    INTERFACES.lines().filter_map(|line| {
        let mut cells = line.split('\t');
        let id = Uuid::try_parse(cells.next()?).ok()?;
        let (name, first) = (cells.next()?, cells.next()?.parse().ok()?);
        Some((id, InterfaceNames { name, first, operations: cells.next().unwrap_or_default() }))
    })
}

/// Looked through from the front: it is asked for people who read, never for a call.
fn known(iid: Uuid) -> Option<InterfaceNames> {
    rows().find(|(id, _)| *id == iid).map(|(_, known)| known)
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
    fn each_line_is_read_and_no_interface_is_there_twice() {
        let ids: Vec<Uuid> = rows().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), INTERFACES.lines().filter(|line| !line.starts_with('#')).count());
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len());
    }
}
