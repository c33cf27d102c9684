//! What the two sides of NTLM agree on (MS-NLMP 2.2.2.5).

/// Text is UTF-16.
pub(super) const UNICODE: u32 = 0x0000_0001;
/// The challenge is to name the server.
pub(super) const REQUEST_TARGET: u32 = 0x0000_0004;
/// Messages will be signed.
pub(super) const SIGN: u32 = 0x0000_0010;
/// Messages will be sealed.
pub(super) const SEAL: u32 = 0x0000_0020;
/// NTLM, as opposed to the still older LM.
pub(super) const NTLM: u32 = 0x0000_0200;
/// Nobody in particular wants in.
pub(super) const ANONYMOUS: u32 = 0x0000_0800;
/// A key for signing exists even if `SIGN` is not agreed on.
pub(super) const ALWAYS_SIGN: u32 = 0x0000_8000;
/// The name in the challenge is a server's, not a domain's.
pub(super) const TARGET_SERVER: u32 = 0x0002_0000;
/// The second form of signing and sealing; the first is not spoken here.
pub(super) const EXTENDED_SECURITY: u32 = 0x0008_0000;
/// The challenge carries a list about the server.
pub(super) const TARGET_INFO: u32 = 0x0080_0000;
/// The messages have room for a version.
pub(super) const VERSION: u32 = 0x0200_0000;
/// Sealing keys of 128 bits.
pub(super) const KEY_128: u32 = 0x2000_0000;
/// The initiator chooses the session key.
pub(super) const KEY_EXCHANGE: u32 = 0x4000_0000;
/// Sealing keys of 56 bits.
pub(super) const KEY_56: u32 = 0x8000_0000;

/// Without these nothing is done.
pub(super) const NEEDED: u32 = UNICODE | NTLM | EXTENDED_SECURITY;
/// What an acceptor agrees to, if it is offered.
pub(super) const ACCEPTED: u32 =
    NEEDED | REQUEST_TARGET | SIGN | SEAL | ALWAYS_SIGN | VERSION | KEY_128 | KEY_EXCHANGE | KEY_56;
