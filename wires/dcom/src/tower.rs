//! Protocol towers as octets (C706 appendix L; MS-RPCE 2.2.1.2): what the endpoint mapper speaks of. Numbers are
//! little-endian, except for ports and addresses.
//!
//! A tower is a count of floors, and for each floor two counted sides without any alignment. The first two
//! floors are the interface and the transfer syntax (UUID and major version on the left, minor version on the
//! right), the others the protocols from RPC down to the network.

use crate::pdu::NDR;
use crate::violations::Violation;
use std::fmt;
use std::net::Ipv4Addr;
use uuid::Uuid;

/// The transfer syntax that is spoken.
const TRANSFER: (Uuid, u16, u16) = (NDR.id, NDR.major, NDR.minor);

/// A floor that is a UUID.
const UUID: u8 = 0x0d;
/// RPC over connections, version 5.
const CONNECTION_ORIENTED: u8 = 0x0b;
/// The floor whose right side is a port.
const TCP: u8 = 0x07;
/// The floor whose right side is an IPv4 address.
const IP: u8 = 0x09;

/// The most floors that a tower may have; six are known.
const MAX_FLOORS: u16 = 16;

/// A tower: an interface, a transfer syntax, and the protocols below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tower {
    /// The interface and its version.
    pub interface: (Uuid, u16, u16),
    /// The transfer syntax and its version.
    pub transfer: (Uuid, u16, u16),
    /// The other floors.
    pub floors: Vec<Floor>,
}

/// A floor: protocol identifier (with its data) and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// The protocol identifier.
    pub protocol: u8,
    /// What follows it in the left-hand side.
    pub left: Vec<u8>,
    /// The right-hand side.
    pub right: Vec<u8>,
}

impl Tower {
    /// A tower of connection-oriented RPC over TCP.
    pub fn tcp(interface: (Uuid, u16, u16), port: u16, address: Ipv4Addr) -> Self {
        let floor = |protocol, right: &[u8]| Floor { protocol, left: Vec::new(), right: right.to_vec() };
        Self {
            interface,
            transfer: TRANSFER,
            floors: vec![
                floor(CONNECTION_ORIENTED, &[0, 0]),
                floor(TCP, &port.to_be_bytes()),
                floor(IP, &address.octets()),
            ],
        }
    }

    /// The TCP port, if it is a tower of RPC over TCP.
    pub fn port(&self) -> Option<u16> {
        self.floor(CONNECTION_ORIENTED)?;
        self.floor(TCP)?.right.as_slice().try_into().ok().map(u16::from_be_bytes)
    }

    /// The IPv4 address, if it has one.
    pub fn address(&self) -> Option<Ipv4Addr> {
        <[u8; 4]>::try_from(self.floor(IP)?.right.as_slice()).ok().map(Ipv4Addr::from)
    }

    /// Reads the octets; what follows the last floor is not looked at.
    pub fn parse(octets: &[u8]) -> Result<Self, Violation> {
        let mut rest = octets;
        let count = u16::from_le_bytes(*chunk(&mut rest)?);
        if !(2..=MAX_FLOORS).contains(&count) {
            return Err(Violation::BadTower);
        }
        let interface = syntax(&floor(&mut rest)?)?;
        let transfer = syntax(&floor(&mut rest)?)?;
        let floors = (2..count).map(|_| floor(&mut rest)).collect::<Result<_, _>>()?;
        Ok(Self { interface, transfer, floors })
    }

    /// Writes the octets.
    pub fn write(&self) -> Vec<u8> {
        let count = u16::try_from(self.floors.len() + 2).unwrap_or(u16::MAX);
        let mut out = count.to_le_bytes().to_vec();
        for (uuid, major, minor) in [self.interface, self.transfer] {
            let left = [uuid.to_bytes_le().as_slice(), &major.to_le_bytes()].concat();
            put(&mut out, UUID, &left, &minor.to_le_bytes());
        }
        for floor in &self.floors {
            put(&mut out, floor.protocol, &floor.left, &floor.right);
        }
        out
    }

    fn floor(&self, protocol: u8) -> Option<&Floor> {
        self.floors.iter().find(|floor| floor.protocol == protocol)
    }
}

/// As people write bindings: `UUID vMAJOR.MINOR ncacn_ip_tcp:ADDRESS[PORT]`.
impl fmt::Display for Tower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (uuid, major, minor) = self.interface;
        write!(f, "{uuid} v{major}.{minor}")?;
        if let Some(port) = self.port() {
            let address = self.address().map(|address| address.to_string()).unwrap_or_default();
            return write!(f, " ncacn_ip_tcp:{address}[{port}]");
        }
        for floor in &self.floors {
            write!(f, " {:#04x}", floor.protocol)?;
            let text = floor.right.strip_suffix(&[0]).unwrap_or_default();
            if !text.is_empty() && text.iter().all(u8::is_ascii_graphic) {
                write!(f, ":{}", text.escape_ascii())?;
            }
        }
        Ok(())
    }
}

/// The next floor. One without a protocol is refused.
fn floor(rest: &mut &[u8]) -> Result<Floor, Violation> {
    let left = side(rest)?;
    let right = side(rest)?.to_vec();
    let (&protocol, left) = left.split_first().ok_or(Violation::BadTower)?;
    Ok(Floor { protocol, left: left.to_vec(), right })
}

/// One counted side of a floor.
fn side<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Violation> {
    let len = u16::from_le_bytes(*chunk(rest)?);
    let (side, behind) = rest.split_at_checked(len.into()).ok_or(Violation::CountBeyondMessage)?;
    *rest = behind;
    Ok(side)
}

/// The next `N` octets.
fn chunk<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], Violation> {
    let (chunk, behind) = rest.split_first_chunk().ok_or(Violation::Truncated)?;
    *rest = behind;
    Ok(chunk)
}

/// Interface or transfer syntax with its version, from one of the first two floors.
fn syntax(floor: &Floor) -> Result<(Uuid, u16, u16), Violation> {
    let mut left = floor.left.as_slice();
    let mut right = floor.right.as_slice();
    if floor.protocol != UUID {
        return Err(Violation::BadTower);
    }
    let uuid = Uuid::from_bytes_le(*chunk(&mut left)?);
    Ok((uuid, u16::from_le_bytes(*chunk(&mut left)?), u16::from_le_bytes(*chunk(&mut right)?)))
}

/// A floor; sides too long for their counts are cut.
fn put(out: &mut Vec<u8>, protocol: u8, left: &[u8], right: &[u8]) {
    let left = [&[protocol], left].concat();
    for side in [&*left, right] {
        let len = u16::try_from(side.len()).unwrap_or(u16::MAX);
        out.extend(len.to_le_bytes());
        out.extend_from_slice(side.get(..len.into()).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::uuid;

    fn example() -> Tower {
        Tower::tcp((uuid!("99fcfec4-5260-101b-bbcb-00aa0021347a"), 0, 0), 135, Ipv4Addr::new(10, 0, 0, 1))
    }

    #[test]
    fn a_tower_reads_as_written() {
        let octets = example().write();
        assert_eq!(octets.len(), 75);
        assert_eq!(Tower::parse(&octets), Ok(example()));
        assert_eq!((example().port(), example().address()), (Some(135), Some(Ipv4Addr::new(10, 0, 0, 1))));
        let text = "99fcfec4-5260-101b-bbcb-00aa0021347a v0.0 ncacn_ip_tcp:10.0.0.1[135]";
        assert_eq!(example().to_string(), text);
    }

    #[test]
    fn a_broken_one_is_refused() {
        let octets = example().write();
        for len in 0..octets.len() {
            assert!(Tower::parse(&octets[..len]).is_err());
        }
        for (at, value) in [(0, 1), (0, 17), (4, 7)] {
            let mut octets = octets.clone();
            octets[at] = value;
            assert_eq!(Tower::parse(&octets), Err(Violation::BadTower));
        }
    }
}
