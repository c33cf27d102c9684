//! Where an object exporter or a resolver listens, and how it wants to be spoken to: DUALSTRINGARRAY (MS-DCOM
//! 2.2.19).
//!
//! The array is one list of 16-bit units: string bindings, a zero, security bindings, a zero. A first count
//! says how many units there are, a second where the security bindings begin.
//!
//! States: none.
//!
//! Invariants: strings stand in the order of preference, sockets of this machine before addresses of the
//! network; a binding that would make the array longer than its 16-bit counts can say is left out as a whole.
//! On reading, the counts are checked against the octets that are there before anything is allocated; missing
//! terminators are accepted, since the counts bound the text; text that is no UTF-16 is read with replacement
//! characters, and then simply names no host.

use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use everywire_model::Endpoint;
use std::net::IpAddr;

/// Protocol identifier of `ncacn_ip_tcp`.
pub const TOWER_TCP: u16 = 7;
/// Protocol identifier of `ncalrpc`, under which sockets of this machine stand: `unix:PATH` and `shm:PATH`.
pub const TOWER_LOCAL: u16 = 0x10;
/// The port of the endpoint mapper and of OXID resolvers (MS-DCOM 2.1): what a string binding or an address without a port means.
pub const RESOLVER_PORT: u16 = 135;

/// The word between service and principal of a security binding (`Reserved`, MS-DCOM 2.2.19.4); it has to be
/// 0xffff.
const RESERVED: u16 = 0xffff;

/// A STRINGBINDING: a protocol and a network address (2.2.19.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StringBinding {
    /// Protocol identifier, such as [`TOWER_TCP`].
    pub tower: u16,
    /// Network address, `host[port]` for TCP.
    pub address: String,
}

impl StringBinding {
    /// An endpoint as others are told it; nothing for one that only this process has.
    pub(crate) fn of(endpoint: &Endpoint) -> Option<Self> {
        let (tower, address) = match endpoint {
            Endpoint::Tcp { host, port } => (TOWER_TCP, format!("{host}[{port}]")),
            Endpoint::Unix { path } => (TOWER_LOCAL, format!("unix:{path}")),
            Endpoint::Shm { path } => (TOWER_LOCAL, format!("shm:{path}")),
            Endpoint::InProcess { .. } | Endpoint::Layered(_) => return None,
        };
        Some(Self { tower, address })
    }

    /// A socket of this machine that a binding of [`TOWER_LOCAL`] names; `None` for what other programs write there.
    pub(crate) fn socket(&self) -> Option<Endpoint> {
        let (transport, path) = self.address.split_once(':').filter(|_| self.tower == TOWER_LOCAL)?;
        let path = path.to_owned();
        match transport {
            "unix" => Some(Endpoint::Unix { path }),
            "shm" => Some(Endpoint::Shm { path }),
            _ => None,
        }
    }
}

/// A SECURITYBINDING: an authentication service that the server supports (2.2.19.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityBinding {
    /// Authentication service: 9 negotiate, 10 NTLM, 16 Kerberos.
    pub service: u16,
    /// The server's principal name; mostly empty.
    pub principal: String,
}

/// String bindings and security bindings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DualStringArray {
    /// In the order of preference.
    pub strings: Vec<StringBinding>,
    /// What the server takes in authentication, in the order of its preference. Empty: callers stay unknown.
    pub security: Vec<SecurityBinding>,
}

impl DualStringArray {
    /// Reads the packet version (2.2.19.1): two counts, then the array; always little-endian.
    pub fn parse(raw: &[u8]) -> Result<Self, Violation> {
        let mut stub = Get::new(raw, true);
        let (entries, security) = (stub.u16()?, stub.u16()?);
        Self::array(&mut stub, entries, security)
    }

    /// Writes the packet version.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.append(&mut self.counted(&mut StubWriter::default()).bytes);
    }

    /// Whether it names nothing.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty() && self.security.is_empty()
    }

    /// Where to connect by TCP; `default_port` for addresses without a port.
    /// Bindings of other protocols, and such whose port is no number, are left out; the order stays.
    pub fn endpoints(&self, default_port: u16) -> Vec<Endpoint> {
        let tcp = self.strings.iter().filter(|binding| binding.tower == TOWER_TCP);
        tcp.filter_map(|binding| endpoint(&binding.address, default_port)).collect()
    }

    /// Bindings of the TCP endpoints among these.
    pub fn of(endpoints: &[Endpoint], security: Vec<SecurityBinding>) -> Self {
        let strings = endpoints.iter().filter_map(StringBinding::of);
        Self { strings: strings.filter(|binding| binding.tower == TOWER_TCP).collect(), security }
    }

    /// The same with the addresses first by which the peer of a connection reaches this machine, and without sockets, which it
    /// does not reach: `local` is the address of this side's end. One that means something on this machine only changes nothing,
    /// since the peer may hand the bindings on.
    #[must_use]
    pub fn seen_at(mut self, local: Option<IpAddr>) -> Self {
        let Some(local) = local.map(|local| local.to_canonical()).filter(|local| !local.is_loopback()) else {
            return self;
        };
        let named = |binding: &StringBinding| host(binding).parse::<IpAddr>() == Ok(local);
        self.strings.retain(|binding| binding.socket().is_none());
        self.strings.sort_by_key(|binding| match binding.tower {
            TOWER_TCP if named(binding) => 1,
            TOWER_TCP => 2,
            _ => 0,
        });
        self
    }

    /// The same for somebody else's bindings that are handed on: without those that mean this machine to whoever reads them,
    /// where the peer is another one.
    #[must_use]
    pub(crate) fn elsewhere(self, local: Option<IpAddr>) -> Self {
        let mut seen = self.seen_at(local);
        if local.is_some_and(|local| !local.to_canonical().is_loopback()) {
            seen.strings
                .retain(|binding| host(binding).parse::<IpAddr>().map_or(true, |at| !at.is_loopback()));
        }
        seen
    }

    /// Reads the IDL version behind a pointer that was not null (2.2.19.2): maximum count, counts, array.
    /// The packet version inside of it starts with the same count again: both must agree.
    pub(crate) fn get(stub: &mut Get<'_>) -> Result<Self, Violation> {
        // Counted in words: the two counts in front of the array are not among them.
        let most = stub.conformance(2, None)?;
        let (entries, security) = (stub.u16()?, stub.u16()?);
        if most != usize::from(entries) {
            return Err(Violation::BadVariance);
        }
        let found = Self::array(stub, entries, security)?;
        stub.align(4);
        Ok(found)
    }

    /// Writes the IDL version.
    pub(crate) fn put<'p>(&self, out: &'p mut StubWriter) -> &'p mut StubWriter {
        self.counted(out.count(self.units().0.len())).align(4)
    }

    /// Reads `entries` units, of which those from number `security` on are security bindings. Each half ends
    /// at its first zero where a protocol or a service would stand, or at its last unit.
    fn array(stub: &mut Get<'_>, entries: u16, security: u16) -> Result<Self, Violation> {
        if security > entries {
            return Err(Violation::BadVariance);
        }
        let units = stub.items(entries.into(), 2, Get::u16)?;
        let (mut strings, mut services) = units.split_at_checked(security.into()).unwrap_or_default();
        let mut found = Self::default();
        while let Some((&tower, rest)) = strings.split_first().filter(|(tower, _)| **tower != 0) {
            let (address, rest) = text(rest);
            found.strings.push(StringBinding { tower, address });
            strings = rest;
        }
        while let Some((&service, rest)) = services.split_first().filter(|(service, _)| **service != 0) {
            let (principal, rest) = text(rest.get(1..).unwrap_or_default());
            found.security.push(SecurityBinding { service, principal });
            services = rest;
        }
        Ok(found)
    }

    /// Writes both counts and the array: what the packet version and the IDL version have in common.
    fn counted<'p>(&self, out: &'p mut StubWriter) -> &'p mut StubWriter {
        let (units, security) = self.units();
        out.u16(u16::try_from(units.len()).unwrap_or_default()).u16(security);
        units.into_iter().fold(out, StubWriter::u16)
    }

    /// The array, and where security bindings begin in it. Bindings that would make it longer than it can say are left
    /// out.
    fn units(&self) -> (Vec<u16>, u16) {
        // Room for the zeros that end both halves, two for each half that is empty.
        // Both the count of words and the offset of the security bindings are 16-bit numbers.
        const MOST: usize = u16::MAX as usize - 4;
        let mut units = Vec::new();
        let push = |units: &mut Vec<u16>, head: &[u16], text: &str| {
            let before = units.len();
            units.extend(head.iter().copied().chain(text.encode_utf16()).chain([0]));
            if units.len() > MOST {
                units.truncate(before);
            }
        };
        self.strings.iter().for_each(|held| push(&mut units, &[held.tower], &held.address));
        // An array without any binding has two words for each of its halves.
        let blank = if self.strings.is_empty() { 2 } else { 1 };
        units.resize(units.len() + blank, 0);
        let security = u16::try_from(units.len()).unwrap_or_default();
        self.security.iter().for_each(|held| push(&mut units, &[held.service, RESERVED], &held.principal));
        let blank = if self.security.is_empty() { 2 } else { 1 };
        units.resize(units.len() + blank, 0);
        (units, security)
    }
}

/// The host of a network address.
fn host(binding: &StringBinding) -> &str {
    binding.address.rsplit_once('[').map_or(&*binding.address, |(host, _)| host)
}

/// Each once, in their order.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// What stands before the next zero, and what behind it.
fn text(units: &[u16]) -> (String, &[u16]) {
    let end = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    let (text, rest) = units.split_at_checked(end).unwrap_or((units, &[]));
    (String::from_utf16_lossy(text), rest.get(1..).unwrap_or_default())
}

/// Takes `HOST[PORT]` or `HOST` apart. An IPv6 address stands without brackets of its own, so the last `[`
/// begins the port. `None`: the port is no 16-bit number, or the host is empty.
fn endpoint(address: &str, default_port: u16) -> Option<Endpoint> {
    let (host, port) = match address.strip_suffix(']').and_then(|address| address.rsplit_once('[')) {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (address, default_port),
    };
    (!host.is_empty()).then(|| Endpoint::Tcp { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_without_bindings_is_the_smallest_of_the_specification() {
        let mut raw = Vec::new();
        DualStringArray::default().write(&mut raw);
        assert_eq!(raw, [4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(DualStringArray::parse(&raw).unwrap().is_empty());
        // What Wine sends.
        assert!(DualStringArray::parse(&[0; 4]).unwrap().is_empty());
    }

    #[test]
    fn what_is_handed_on_to_another_machine_names_nothing_of_this_one() {
        let binding = |tower, address: &str| StringBinding { tower, address: address.to_owned() };
        let array = DualStringArray {
            strings: vec![
                binding(TOWER_LOCAL, "unix:/run/app.sock"),
                binding(TOWER_TCP, "127.0.0.1[1135]"),
                binding(TOWER_TCP, "::1[1135]"),
                binding(TOWER_TCP, "backend[1135]"),
                binding(TOWER_TCP, "10.0.0.7[1135]"),
            ],
            security: Vec::new(),
        };
        let seen = array.clone().elsewhere(Some([10, 0, 0, 1].into()));
        let told: Vec<_> = seen.strings.iter().map(|held| held.address.as_str()).collect();
        assert_eq!(told, ["backend[1135]", "10.0.0.7[1135]"]);
        // Whoever is here reaches all of them.
        assert_eq!(array.clone().elsewhere(Some([127, 0, 0, 1].into())), array);
        assert_eq!(array.clone().elsewhere(None), array);
    }

    #[test]
    fn addresses_are_endpoints_with_a_port_of_their_own_or_that_of_resolvers() {
        let binding = |tower, address: &str| StringBinding { tower, address: address.to_owned() };
        let array = DualStringArray {
            strings: vec![
                binding(15, r"\\HOST[\PIPE\x]"),
                binding(7, "10.0.0.1"),
                binding(7, "fe80::1[49670]"),
                binding(7, "host[none]"),
            ],
            security: Vec::new(),
        };
        let tcp = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
        assert_eq!(array.endpoints(RESOLVER_PORT), [tcp("10.0.0.1", 135), tcp("fe80::1", 49670)]);
        let again = DualStringArray::of(&[tcp("a.example", 135)], Vec::new());
        assert_eq!(again.strings, [binding(7, "a.example[135]")]);
    }

    #[test]
    fn the_address_that_the_asker_knows_comes_first() {
        let binding = |tower, address: &str| StringBinding { tower, address: address.to_owned() };
        let all =
            ["unix:/run/x", "10.0.0.1[135]", "127.0.0.1[135]", "10.7.0.1[135]", "[host]", "2001:db8::7[135]"];
        let strings = all.map(|address| binding(if address.starts_with("unix") { 16 } else { 7 }, address));
        let array = DualStringArray { strings: strings.to_vec(), security: Vec::new() };
        for (local, order) in [
            (None, &[0, 1, 2, 3, 4, 5][..]),
            (Some("127.0.0.1"), &[0, 1, 2, 3, 4, 5]),
            // Sockets of this machine are told to nobody else.
            (Some("192.0.2.1"), &[1, 2, 3, 4, 5]),
            (Some("10.7.0.1"), &[3, 1, 2, 4, 5]),
            (Some("::ffff:10.7.0.1"), &[3, 1, 2, 4, 5]),
            (Some("2001:db8::7"), &[5, 1, 2, 3, 4]),
        ] {
            let seen = array.clone().seen_at(local.map(|local| local.parse().unwrap()));
            let told: Vec<&str> = seen.strings.iter().map(|binding| binding.address.as_str()).collect();
            assert_eq!(told, order.iter().map(|at| all[*at]).collect::<Vec<_>>(), "{local:?}");
        }
    }

    #[test]
    fn broken_arrays_are_refused() {
        assert_eq!(
            DualStringArray::parse(&[4, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            Err(Violation::BadVariance)
        );
        assert_eq!(DualStringArray::parse(&[9, 0, 2, 0, 0, 0]), Err(Violation::CountBeyondMessage));
        assert_eq!(DualStringArray::parse(&[9, 0, 2]), Err(Violation::Truncated));
        // Without terminators there is still an end.
        let cut = DualStringArray::parse(&[4, 0, 3, 0, 7, 0, b'a', 0, b'b', 0, 9, 0]).unwrap();
        assert_eq!((cut.strings.len(), cut.security.len()), (1, 1));
    }

    #[test]
    #[cfg_attr(miri, ignore = "long names, which takes minutes")]
    fn too_much_is_left_out() {
        let long = StringBinding { tower: 7, address: "x".repeat(40_000) };
        let array = DualStringArray { strings: vec![long.clone(), long.clone()], security: Vec::new() };
        let mut raw = Vec::new();
        array.write(&mut raw);
        assert_eq!(DualStringArray::parse(&raw).unwrap().strings, [long]);
    }
}
