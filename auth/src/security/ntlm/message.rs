//! The three messages (MS-NLMP 2.2.1), to and from octets.

use super::flags;
use super::pairs::Pairs;
use crate::security::Cause;
use everywire_model::{Failure, Kind};

/// What each message begins with.
const SIGNATURE: &[u8; 8] = b"NTLMSSP\0";
/// Windows 10 with the only revision of NTLM there is; nobody acts upon it.
const VERSION: [u8; 8] = [10, 0, 0x61, 0x4a, 0, 0, 0, 15];
/// Octets before the payload, with the room for a version (and, in the last message, for an integrity
/// code).
const CHALLENGE_HEADER: usize = 56;
const AUTHENTICATE_HEADER: usize = 88;
/// Where the AUTHENTICATE message has its own integrity code.
const MIC: std::ops::Range<usize> = 72..88;

/// Whether the token is a message of NTLM at all.
pub(crate) fn is_message(token: &[u8]) -> bool {
    token.starts_with(SIGNATURE)
}

/// A message that is none: the peer's fault.
pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Cause::Peer, format!("NTLM message: {what}"))
}

/// The initiator's first message.
pub(super) fn write_negotiate(flags: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(40);
    begin(&mut out, 1);
    out.extend(flags.to_le_bytes());
    // No domain and no workstation.
    out.extend([0; 16]);
    out.extend(VERSION);
    out
}

/// The flags of the initiator's first message; nothing else of it matters.
pub(super) fn read_negotiate(token: &[u8]) -> Result<u32, Failure> {
    check(token, 1)?;
    u32_at(token, 12)
}

/// The acceptor's message.
pub(super) struct Challenge<'t> {
    pub(super) flags: u32,
    pub(super) challenge: [u8; 8],
    pub(super) info: Pairs<'t>,
}

impl<'t> Challenge<'t> {
    pub(super) fn read(token: &'t [u8]) -> Result<Self, Failure> {
        check(token, 2)?;
        let flags = u32_at(token, 20)?;
        let challenge = array_at(token, 24)?;
        let info = if flags & flags::TARGET_INFO != 0 { field(token, 40)? } else { &[] };
        Ok(Self { flags, challenge, info: Pairs::read(info)? })
    }
}

/// The acceptor's message; `None` if the names are longer than the message can say.
pub(super) fn write_challenge(flags: u32, challenge: [u8; 8], name: &[u8], info: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(CHALLENGE_HEADER + name.len() + info.len());
    begin(&mut out, 2);
    let mut at = CHALLENGE_HEADER;
    put_field(&mut out, name, &mut at)?;
    out.extend(flags.to_le_bytes());
    out.extend(challenge);
    out.extend([0; 8]);
    put_field(&mut out, info, &mut at)?;
    out.extend(VERSION);
    out.extend_from_slice(name);
    out.extend_from_slice(info);
    Some(out)
}

/// The initiator's second message.
pub(super) struct Authenticate<'t> {
    pub(super) lm: &'t [u8],
    pub(super) nt: &'t [u8],
    pub(super) domain: &'t [u8],
    pub(super) user: &'t [u8],
    pub(super) workstation: &'t [u8],
    pub(super) key: &'t [u8],
    pub(super) flags: u32,
}

impl<'t> Authenticate<'t> {
    pub(super) fn read(token: &'t [u8]) -> Result<Self, Failure> {
        check(token, 3)?;
        Ok(Self {
            lm: field(token, 12)?,
            nt: field(token, 20)?,
            domain: field(token, 28)?,
            user: field(token, 36)?,
            workstation: field(token, 44)?,
            key: field(token, 52)?,
            flags: u32_at(token, 60)?,
        })
    }

    /// The message with room for the integrity code; `None` if anything is longer than it can say.
    pub(super) fn write(&self) -> Option<Vec<u8>> {
        let payload = [self.domain, self.user, self.workstation, self.lm, self.nt, self.key];
        let total = payload.iter().map(|part| part.len()).sum::<usize>();
        let mut offsets = [AUTHENTICATE_HEADER; 6];
        for index in 1..6 {
            offsets[index] = offsets[index - 1] + payload[index - 1].len();
        }
        let [mut domain, mut user, mut workstation, mut lm, mut nt, mut key] = offsets;
        let mut out = Vec::with_capacity(AUTHENTICATE_HEADER + total);
        begin(&mut out, 3);
        put_field(&mut out, self.lm, &mut lm)?;
        put_field(&mut out, self.nt, &mut nt)?;
        put_field(&mut out, self.domain, &mut domain)?;
        put_field(&mut out, self.user, &mut user)?;
        put_field(&mut out, self.workstation, &mut workstation)?;
        put_field(&mut out, self.key, &mut key)?;
        out.extend(self.flags.to_le_bytes());
        out.extend(VERSION);
        out.extend([0; MIC.end - MIC.start]);
        payload.iter().for_each(|part| out.extend_from_slice(part));
        Some(out)
    }
}

/// The integrity code in an AUTHENTICATE message.
pub(super) fn mic_of(token: &[u8]) -> Result<[u8; 16], Failure> {
    array_at(token, MIC.start)
}

/// Puts another integrity code into an AUTHENTICATE message that is long enough for one.
pub(super) fn set_mic(token: &mut [u8], code: [u8; 16]) {
    if let Some(place) = token.get_mut(MIC) {
        place.copy_from_slice(&code);
    }
}

/// The signature and the number of a message.
fn begin(out: &mut Vec<u8>, kind: u32) {
    out.extend(SIGNATURE);
    out.extend(kind.to_le_bytes());
}

fn check(token: &[u8], kind: u32) -> Result<(), Failure> {
    if !is_message(token) {
        return Err(malformed("it does not begin with the signature"));
    }
    match u32_at(token, 8)? {
        found if found == kind => Ok(()),
        found => Err(malformed(&format!("number {found} where {kind} belongs"))),
    }
}

/// Length, room and offset of what stands further behind.
fn put_field(out: &mut Vec<u8>, bytes: &[u8], at: &mut usize) -> Option<()> {
    let length = u16::try_from(bytes.len()).ok()?.to_le_bytes();
    out.extend(length);
    out.extend(length);
    out.extend(u32::try_from(*at).ok()?.to_le_bytes());
    *at += bytes.len();
    Some(())
}

/// The octets of a field, whose length and offset stand at `at`. A length of 0 has no offset that
/// counts.
fn field(token: &[u8], at: usize) -> Result<&[u8], Failure> {
    let length = usize::from(u16::from_le_bytes(array_at(token, at)?));
    if length == 0 {
        return Ok(&[]);
    }
    let start = u32_at(token, at + 4)? as usize;
    start
        .checked_add(length)
        .and_then(|end| token.get(start..end))
        .ok_or_else(|| malformed("a field lies outside of it"))
}

fn u32_at(token: &[u8], at: usize) -> Result<u32, Failure> {
    Ok(u32::from_le_bytes(array_at(token, at)?))
}

fn array_at<const N: usize>(token: &[u8], at: usize) -> Result<[u8; N], Failure> {
    token.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(|| malformed("it ends too early"))
}
