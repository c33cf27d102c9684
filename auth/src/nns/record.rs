//! Records of the handshake and frames behind it (MS-NNS 2.2).

use everywire_model::{Failure, Initiator, Kind};

/// Octets before the token of a record.
pub(super) const HEADER: usize = 5;

/// Octets before what a frame carries.
pub(super) const PREFIX: usize = 4;

/// Octets that a frame may carry: .NET refuses more.
pub(super) const MAX_FRAME: usize = 64 << 10;

/// Octets that are protected at once: .NET takes no more, so that the frame stays below its bound with the signature.
pub(super) const MAX_PLAIN: usize = 0xfc00;

/// What the sender of a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Id {
    /// It has what it needs; maybe a last token for the other side.
    Done = 0x14,
    /// It gives up; the payload is a number of Windows.
    Error = 0x15,
    /// It waits for the other side's token.
    InProgress = 0x16,
}

/// The record at the front: what it is about, and its token; `None` while it is incomplete. The length
/// of what is missing is bounded by its field of 16 bits.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Id, &[u8])>, Failure> {
    let malformed = |what: &str| {
        Failure::new(Kind::Violation, Initiator::Peer, format!("a record of NegotiateStream {what}"))
    };
    let id = match bytes.first() {
        None => return Ok(None),
        Some(0x14) => Id::Done,
        Some(0x15) => Id::Error,
        Some(0x16) => Id::InProgress,
        Some(other) => return Err(malformed(&format!("cannot begin with the byte {other:#04x}"))),
    };
    let Some(([_, major, minor, high, low], rest)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(None);
    };
    if (*major, *minor) != (1, 0) {
        return Err(malformed(&format!("is of version {major}.{minor}, not 1.0")));
    }
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    Ok(rest.get(..length).map(|token| (id, token)))
}

/// Writes a record; tokens that do not fit in one are none of this protocol's.
pub(super) fn write(id: Id, token: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    let length = u16::try_from(token.len()).map_err(|_| {
        let (have, most) = (token.len() as u64, u64::from(u16::MAX));
        Failure::over_limit(Initiator::Here, "octets of a token in NegotiateStream", have, most)
    })?;
    let [high, low] = length.to_be_bytes();
    out.extend([id as u8, 1, 0, high, low]);
    out.extend_from_slice(token);
    Ok(())
}

/// The payload of a record that says: not let in (the HRESULT `SEC_E_LOGON_DENIED`, in big-endian order).
pub(super) const DENIED: [u8; 8] = [0, 0, 0, 0, 0x80, 0x09, 0x03, 0x0c];

/// The payload of a record that says: too little protection. .NET has this number for it, `ERROR_TRUST_FAILURE`.
pub(super) const UNPROTECTED: [u8; 8] = [0, 0, 0, 0, 0, 0, 0x06, 0xfe];

/// Whether a payload says so.
pub(super) fn is_unprotected(payload: &[u8]) -> bool {
    payload.last_chunk::<4>() == UNPROTECTED.last_chunk()
}

/// What the number in an error's record means.
pub(super) fn reason(payload: &[u8]) -> String {
    let Some(number) = payload.last_chunk::<4>().map(|octets| u32::from_be_bytes(*octets)) else {
        return "it does not say why".to_owned();
    };
    match number {
        0x8009_030c => "the user or the password is wrong (SEC_E_LOGON_DENIED)".to_owned(),
        0x8009_030e => "it has no credentials (SEC_E_NO_CREDENTIALS)".to_owned(),
        0x8009_0308 => "it does not understand the token (SEC_E_INVALID_TOKEN)".to_owned(),
        0x8009_0322 => "the service has another principal name (SEC_E_WRONG_PRINCIPAL)".to_owned(),
        0x8009_0302 => {
            "it does not agree to the protection that was asked for (SEC_E_NOT_SUPPORTED)".to_owned()
        }
        1790 => "the two sides want different protection (ERROR_TRUST_FAILURE)".to_owned(),
        other => format!("error {other:#010x}"),
    }
}
