//! Who is there: where a node's objects are exported, which interfaces its endpoint mapper knows, and how
//! callers can say who they are.
//!
//! ServerAlive2 of the resolver is asked first: it needs no authentication, and its answer names addresses
//! and services. Then `ept_lookup` is read page by page. A node of DCOM has both, one of plain DCE/RPC the
//! mapper alone.
//!
//! Invariants: a page has `PAGE` entries and there are `PAGES` of them at the most, so a mapper without an
//! end is left after 20000 entries. A tower that cannot be read is an entry with an unknown endpoint.
//! Everything that the node says is shown as text and nothing of it is called.

use crate::address;
use crate::bindings::{DualStringArray, SecurityBinding, distinct};
use crate::exporter::raw::done;
use crate::resolver::{opnum, parse_server_alive2_reply};
use crate::security::Security;
use crate::standard::guid::Guid;
use crate::standard::mapper::{Handle, LOOKUP, MAPPER, Octets};
use crate::standard::object_exporter::OBJECT_EXPORTER;
use crate::stub::Get;
use crate::tower::Tower;
use everywire_model::wire::{Presence, PresenceList};
use everywire_model::{Failure, Hold, Interface, Kind, MarshalList, Object, Reference, Resolver, Sink};
use std::time::Duration;

/// How long an answer may take.
/// A mapper of Windows answers a page within milliseconds; a node behind a firewall does not answer at all.
const PATIENCE: Duration = Duration::from_secs(20);
/// Entries that are asked for at once.
const PAGE: u32 = 100;
/// The most pages that are asked for.
const PAGES: usize = 200;

/// What a node says of itself: its resolver's bindings and security first, then the interfaces of its endpoint mapper. A
/// node without either says so in place of the entry.
///
/// # Errors
/// The address cannot be understood; nobody is there.
pub fn list(text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
    let reference = address::parse(text)?;
    let node = Node::of(&reference, resolver)?;
    let (mut nobody, mut left_out) = (false, Vec::new());
    let (mut all, authentication) = match node.alive() {
        Ok(((major, minor), DualStringArray { strings, security })) => {
            let authentication = services(&security);
            // The node itself: the version of COM it speaks, and the string bindings of its resolver in words.
            let strings = strings.iter().map(|binding| protocol(binding.tower, &binding.address));
            let strings = strings.collect::<Vec<_>>().join(", ");
            let what = ("IObjectExporter".to_owned(), format!("COM {major}.{minor}"), strings);
            (vec![node.presence("OXID resolver", what, &authentication)], authentication)
        }
        // Nobody is there, does not let us in, or speaks another protocol: that is the answer.
        Err(failure)
            if matches!(
                failure.kind(),
                Kind::Unreachable | Kind::Refused | Kind::TimedOut | Kind::Violation
            ) =>
        {
            return Err(failure);
        }
        Err(failure) => {
            nobody = true;
            (vec![node.absent("OXID resolver", &failure)], String::new())
        }
    };
    match node.entries() {
        Ok((entries, is_whole)) => {
            left_out.extend((!is_whole).then(more));
            all.extend(entries.into_iter().map(|entry| node.entry_presence(entry, &authentication)));
        }
        // It has no resolver, and told only now that it does not let us in.
        Err(failure) if nobody && failure.kind() == Kind::Refused => return Err(failure),
        Err(failure) => all.push(node.absent("endpoint mapper", &failure)),
    }
    Ok(PresenceList { found: all, left_out })
}

/// That the endpoint mapper has more.
fn more() -> String {
    let most = PAGES.saturating_mul(PAGE as usize);
    format!("further interfaces of the endpoint mapper are left out: no more than {most} are asked for")
}

/// The node that is asked.
struct Node<'a> {
    /// Its resolver and its mapper: the node itself, without an object.
    way: Reference,
    resolver: &'a dyn Resolver,
}

/// What the endpoint mapper knows of one interface.
struct MapperEntry {
    /// `None` if the tower was null, or cannot be read.
    tower: Option<Tower>,
    /// What the server wrote beside it, for people; often empty.
    annotation: String,
}

/// `ept_entry_t`.
type Entry = (Guid, Octets, Vec<u8>);
/// What `ept_lookup` answers: the handle of the next page, a count, the entries, a status.
type LookupReply = (Handle, u32, u32, Vec<Entry>, u32);

impl<'a> Node<'a> {
    /// The node at the address, whatever object of it the reference leads to.
    fn of(reference: &Reference, resolver: &'a dyn Resolver) -> Result<Self, Failure> {
        let profile = reference
            .profiles
            .first()
            .ok_or_else(|| Failure::bad_reference("the reference leads nowhere on this wire"))?;
        let profile = address::system(profile.endpoints.clone(), &Security::of(profile), None);
        let way = Reference { profiles: vec![profile], ..Reference::default() };
        Ok(Self { way, resolver })
    }

    /// The node as an object with this interface.
    fn object(&self, interface: &'static Interface) -> Result<Object, Failure> {
        let object = self.resolver.resolve(&self.way)?.typed(Hold::Static(interface));
        Ok(object.with_deadline(Some(PATIENCE)))
    }

    /// ServerAlive2.
    fn alive(&self) -> Result<((u16, u16), DualStringArray), Failure> {
        let object = self.object(&OBJECT_EXPORTER)?;
        let operation = OBJECT_EXPORTER.operations.get(usize::from(opnum::SERVER_ALIVE2));
        let operation = operation.ok_or_else(|| everywire_model::object::no_operation(&OBJECT_EXPORTER))?;
        let nothing = |sink: &mut dyn Sink| ().marshal_list(&operation.arguments, sink);
        let body = done(object.invoke(operation, &nothing))?;
        match parse_server_alive2_reply(Get::of(&body)) {
            Ok(Ok(alive)) => Ok(alive),
            Ok(Err(status)) => Err(crate::hresult::failure(status, None)),
            Err(violation) => Err(violation.at(0)),
        }
    }

    /// The entries of the endpoint mapper, page by page, and whether these are all.
    fn entries(&self) -> Result<(Vec<MapperEntry>, bool), Failure> {
        let object = self.object(&MAPPER)?;
        let (mut all, mut handle) = (Vec::new(), Handle::default());
        for _ in 0..PAGES {
            let none: (Option<Guid>, Option<(Guid, u16, u16)>) = (None, None);
            let asked = (0_u32, none.0, none.1, 1_u32, handle, PAGE);
            let (next, _, _, entries, status) = object.call::<_, LookupReply, Failure>(LOOKUP, asked)?;
            let ended = entries.is_empty() || status != 0 || next == Handle::default();
            all.extend(entries.into_iter().map(|(_, tower, annotation)| MapperEntry {
                tower: tower.and_then(|(_, octets)| Tower::parse(&octets).ok()),
                annotation: String::from_utf8_lossy(&annotation).trim_end_matches('\0').to_owned(),
            }));
            if ended {
                return Ok((all, true));
            }
            handle = next;
        }
        Ok((all, false))
    }

    /// One entry of the endpoint mapper. Its name is the annotation that the server registered, else the name
    /// by which the interface is known here, else the UUID. `authentication` is what the resolver said, and
    /// is shown for TCP only: other transports have their own.
    fn entry_presence(&self, known: MapperEntry, authentication: &str) -> Presence {
        let Some(tower) = known.tower else {
            let what = (String::new(), String::new(), "unknown".to_owned());
            return self.presence(&known.annotation, what, "");
        };
        let (iid, major, minor) = tower.interface;
        let endpoint = match (tower.port(), tower.address()) {
            (Some(port), Some(address)) if !address.is_unspecified() => format!("tcp:{address}:{port}"),
            (Some(port), _) => format!("tcp port {port}"),
            (None, _) => other_endpoint(&tower),
        };
        let named = || crate::names::interface(iid).map_or_else(|| iid.to_string(), str::to_owned);
        let name = if known.annotation.is_empty() { named() } else { known.annotation };
        let by_tcp = if tower.port().is_some() { authentication } else { "" };
        self.presence(&name, (iid.to_string(), format!("{major}.{minor}"), endpoint), by_tcp)
    }

    /// What stands for something that the node does not have.
    fn absent(&self, name: &str, why: &Failure) -> Presence {
        self.presence(name, (String::new(), String::new(), format!("not served: {why}")), "")
    }

    /// One line of the listing; all details are there in each, empty where nothing is known.
    fn presence(
        &self,
        name: &str,
        (interface, version, endpoint): (String, String, String),
        authentication: &str,
    ) -> Presence {
        Presence {
            name: name.to_owned(),
            address: address::print_friendly(&self.way),
            details: vec![
                ("interface", interface),
                ("version", version),
                ("endpoint", endpoint),
                ("authentication", authentication.to_owned()),
            ],
        }
    }
}

/// A network address with its protocol (MS-DCOM 2.2.19.3; C706 appendix I).
fn protocol(tower: u16, address: &str) -> String {
    match tower {
        7 => format!("tcp:{address}"),
        8 => format!("udp:{address}"),
        15 => format!("pipe:{address}"),
        16 => format!("local:{address}"),
        31 => format!("http:{address}"),
        other => format!("protocol {other}:{address}"),
    }
}

/// The endpoint of a tower that is not of TCP: the text of its third floor but one, such as the name of a pipe.
fn other_endpoint(tower: &Tower) -> String {
    let floor = tower.floors.iter().find(|floor| matches!(floor.protocol, 0x08 | 0x0f | 0x10 | 0x1f));
    let Some(floor) = floor else { return "unknown".to_owned() };
    let text = String::from_utf8_lossy(&floor.right).trim_end_matches('\0').to_owned();
    match (floor.protocol, floor.right.as_slice()) {
        (0x08, [high, low]) => format!("udp port {}", u16::from_be_bytes([*high, *low])),
        (0x1f, [high, low]) => format!("http port {}", u16::from_be_bytes([*high, *low])),
        (0x0f, _) => format!("pipe:{text}"),
        (_, _) => format!("local:{text}"),
    }
}

/// The authentication services that are offered, by name (MS-RPCE 2.2.1.1.7), each once.
fn services(bindings: &[SecurityBinding]) -> String {
    let named = |binding: &SecurityBinding| {
        let name = match binding.service {
            9 => "Negotiate".to_owned(),
            10 => "NTLM".to_owned(),
            14 => "TLS".to_owned(),
            16 => "Kerberos".to_owned(),
            68 => "Netlogon".to_owned(),
            other => format!("service {other}"),
        };
        if binding.principal.is_empty() { name } else { format!("{name} ({})", binding.principal) }
    };
    let names = distinct(bindings.iter().map(named));
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_once() {
        let of = |service, principal: &str| SecurityBinding { service, principal: principal.to_owned() };
        assert_eq!(services(&[of(10, ""), of(9, "host/a"), of(10, "")]), "NTLM, Negotiate (host/a)");
        assert_eq!(services(&[]), "none");
    }
}
