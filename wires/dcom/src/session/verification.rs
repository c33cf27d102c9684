//! Verification trailers: what a request says again behind its stub, where its header is not signed (MS-RPCE 2.2.2.13).
//!
//! Clients of Samba send them, and clients here where a security context does not sign headers. A trailer
//! stands behind the stub at a multiple of 4: a magic number, then commands (type, length, data) up to the
//! one with the flag `END`. Nothing in the PDU says that there is one; it is found by its magic number.

use crate::frame::{self, HEADER};
use crate::pdu::{Heading, NDR, ProtocolError, Syntax};

/// The `signature` of MS-RPCE 2.2.2.13.1.
pub(crate) const MAGIC: [u8; 8] = [0x8a, 0xe3, 0x13, 0x71, 0x02, 0xf4, 0x36, 0x71];
/// SEC_VT_COMMAND_END: no command follows.
const END: u16 = 0x4000;
/// SEC_VT_MUST_PROCESS_COMMAND: a receiver that does not know the command has to refuse the request.
const MUST_PROCESS: u16 = 0x8000;
/// SEC_VT_COMMAND_BITMASK_1: 32 bits of what the client can do.
const BITMASK: u16 = 1;
/// SEC_VT_COMMAND_PCONTEXT: interface and encoding, 40 octets.
const PRESENTATION: u16 = 2;
/// SEC_VT_COMMAND_HEADER2: the fields of the request's header that an attacker could change, 16 octets.
const HEADER2: u16 = 3;
/// In the bitmask: the client can sign headers.
const CAN_SIGN_HEADERS: u32 = 1;

/// How far from the end of the stub a trailer is looked for: all commands that exist, and some that may come.
const REACH: usize = 160;

/// What the trailer has to repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrailerContents<'a> {
    pub(crate) interface: Syntax,
    pub(crate) heading: &'a Heading,
    pub(crate) little: bool,
}

impl TrailerContents<'_> {
    /// First octet of the data representation.
    fn representation(&self) -> u8 {
        if self.little { 0x10 } else { 0 }
    }
}

/// Appends a trailer to the stub that begins at `stub`.
pub(crate) fn put(out: &mut Vec<u8>, stub: usize, said: &TrailerContents<'_>) {
    frame::pad(out, stub, 4);
    out.extend_from_slice(&MAGIC);
    let command = |out: &mut Vec<u8>, command: u16, len: u16| {
        out.extend_from_slice(&command.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
    };
    command(out, BITMASK, 4);
    out.extend_from_slice(&CAN_SIGN_HEADERS.to_le_bytes());
    command(out, PRESENTATION, 40);
    said.interface.write(out);
    NDR.write(out);
    command(out, HEADER2 | END, 16);
    out.extend_from_slice(&[0, 0, 0, 0, said.representation(), 0, 0, 0]);
    out.extend_from_slice(&said.heading.call.to_le_bytes());
    out.extend_from_slice(&said.heading.context.to_le_bytes());
    out.extend_from_slice(&said.heading.opnum.to_le_bytes());
}

/// Checks the trailer at the end of a stub, if there is one, and returns where the stub ends without. What merely looks like its
/// beginning is left alone.
/// The search goes from the end, so that a magic number inside of the values loses against the real trailer
/// behind them.
pub(crate) fn check(stub: &[u8], said: &TrailerContents<'_>) -> Result<usize, ProtocolError> {
    let from = stub.len().saturating_sub(REACH).next_multiple_of(4);
    let Some(tail) = stub.get(from..) else { return Ok(stub.len()) };
    let starts = (0..tail.len().saturating_sub(MAGIC.len())).step_by(4).rev();
    for start in starts {
        if let Some(commands) = tail.get(start..).and_then(|rest| rest.strip_prefix(&MAGIC)) {
            return check_commands(commands, said).map(|()| from + start);
        }
    }
    Ok(stub.len())
}

/// Compares each command with what the request itself says, up to the command that has the flag `END`; what
/// stands behind that one is padding and not looked at. Commands that are not known are passed over unless
/// they must be understood. A trailer that ends before its last command is refused: the request was changed
/// on its way.
fn check_commands(mut rest: &[u8], said: &TrailerContents<'_>) -> Result<(), ProtocolError> {
    let differs = |what| Err(ProtocolError::Verification { what });
    loop {
        // Always little-endian, whatever the PDU says.
        let Some([c0, c1, l0, l1]) = rest.first_chunk() else { return differs("length") };
        let (command, len) = (u16::from_le_bytes([*c0, *c1]), u16::from_le_bytes([*l0, *l1]));
        let Some(data) = rest.get(4..4 + usize::from(len)) else { return differs("length") };
        rest = rest.get(4 + usize::from(len)..).unwrap_or_default();
        match command & !(END | MUST_PROCESS) {
            BITMASK if data.len() != 4 => return differs("length"),
            BITMASK => {}
            PRESENTATION => {
                let mut expected = Vec::with_capacity(40);
                said.interface.write(&mut expected);
                NDR.write(&mut expected);
                if data != expected {
                    return differs("presentation context");
                }
            }
            HEADER2 => check_header(data, said)?,
            _ if command & MUST_PROCESS != 0 => return differs("commands"),
            _ => {}
        }
        if command & END != 0 {
            return Ok(());
        }
    }
}

/// The octets of `data` that are not compared are reserved or the rest of the data representation, which says
/// nothing about integers.
fn check_header(data: &[u8], said: &TrailerContents<'_>) -> Result<(), ProtocolError> {
    let data = data.first_chunk::<HEADER>().ok_or(ProtocolError::Verification { what: "length" })?;
    let heading = said.heading;
    let [ptype, _, _, _, d0, _, _, _, i0, i1, i2, i3, c0, c1, o0, o1] = *data;
    let told = (ptype, d0, u32::from_le_bytes([i0, i1, i2, i3]));
    let told = (told, u16::from_le_bytes([c0, c1]), u16::from_le_bytes([o0, o1]));
    if told == ((heading.kind as u8, said.representation(), heading.call), heading.context, heading.opnum) {
        Ok(())
    } else {
        Err(ProtocolError::Verification { what: "header" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::PduKind;
    use uuid::Uuid;

    const HEADING: Heading =
        Heading { kind: PduKind::Request, flags: 3, call: 9, context: 2, opnum: 3, object: None };

    fn said() -> TrailerContents<'static> {
        TrailerContents { interface: Syntax::new(Uuid::from_u128(7), 0), heading: &HEADING, little: true }
    }

    #[test]
    fn a_trailer_is_checked_where_there_is_one() {
        for len in [0, 1, 4, 33, 1000] {
            let mut stub = vec![0x55; len];
            check(&stub, &said()).unwrap();
            put(&mut stub, 0, &said());
            check(&stub, &said()).unwrap();
            let others = [
                TrailerContents { heading: &Heading { call: 8, ..HEADING }, ..said() },
                TrailerContents { heading: &Heading { context: 1, ..HEADING }, ..said() },
                TrailerContents { heading: &Heading { opnum: 4, ..HEADING }, ..said() },
                TrailerContents { heading: &Heading { kind: PduKind::Response, ..HEADING }, ..said() },
                TrailerContents { little: false, ..said() },
                TrailerContents { interface: Syntax::new(Uuid::from_u128(8), 0), ..said() },
            ];
            for other in others {
                assert!(matches!(check(&stub, &other), Err(ProtocolError::Verification { .. })));
            }
            for cut in 1..60 {
                let cut = &stub[..stub.len() - cut];
                assert!(check(cut, &said()).is_err(), "{len}");
            }
        }
    }
}
