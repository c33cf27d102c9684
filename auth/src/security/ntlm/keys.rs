//! What is computed from a password, two challenges and a session key (MS-NLMP 3.3 and 3.4).

use super::flags;
use crate::security::Secret;
use des::Des;
use des::cipher::{BlockEncrypt, KeyInit};
use hmac::{Hmac, Mac};
use md4::Md4;
use md5::{Digest, Md5};
use rc4::Rc4;
use rc4::consts::U16;
use zeroize::Zeroizing;

pub(super) type HmacMd5 = Hmac<Md5>;
/// A key of NTLM: overwritten when dropped.
pub(in crate::security) type Key = Zeroizing<[u8; 16]>;

const DIRECTIONS: [&str; 2] = ["session key to client-to-server ", "session key to server-to-client "];
const SIGNING: &str = "signing key magic constant\0";
const SEALING: &str = "sealing key magic constant\0";

/// The digest in place of the password (NTOWFv1).
pub(in crate::security) fn nt_hash(secret: &Secret) -> Key {
    match (secret.as_nt_hash(), secret.as_password()) {
        (Some(hash), _) => Zeroizing::new(*hash),
        (None, password) => {
            let text = Zeroizing::new(utf16(password.unwrap_or_default()));
            Zeroizing::new(Md4::digest(&*text).into())
        }
    }
}

/// The key for NTLMv2 (NTOWFv2). `domain` is UTF-16 already, as it travels.
pub(super) fn ntlm2_key(nt_hash: &Key, user: &str, domain: &[u8]) -> Key {
    hmac(nt_hash, &[&utf16(&upper(user)), domain])
}

/// HMAC-MD5 of the parts, one behind the other.
pub(super) fn hmac(key: &[u8; 16], parts: &[&[u8]]) -> Key {
    let mut state = hmac_state(key);
    parts.iter().for_each(|part| state.update(part));
    Zeroizing::new(state.finalize().into_bytes().into())
}

/// HMAC-MD5 with the key taken in.
pub(super) fn hmac_state(key: &[u8; 16]) -> HmacMd5 {
    // A key shorter than a block is filled up with zeros anyway; this way its length needs no check.
    let mut block = Zeroizing::new([0; 64]);
    if let Some(start) = block.first_chunk_mut() {
        *start = *key;
    }
    <HmacMd5 as KeyInit>::new((&*block).into())
}

/// The answer of NTLMv1 with extended session security: three times DES over a digest of both challenges.
pub(super) fn session_response(nt_hash: &Key, server: [u8; 8], client: [u8; 8]) -> [u8; 24] {
    let digest: [u8; 16] = Md5::new().chain_update(server).chain_update(client).finalize().into();
    let mut keys = Zeroizing::new([0; 21]);
    if let Some(start) = keys.first_chunk_mut() {
        *start = **nt_hash;
    }
    let mut out = [0; 24];
    for (key, out) in keys.as_chunks::<7>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        out.copy_from_slice(digest.first_chunk::<8>().unwrap_or(&[0; 8]));
        Des::new(&spread(*key).into()).encrypt_block(out.into());
    }
    out
}

/// The session key that answer leads to.
pub(super) fn session_base(nt_hash: &Key, server: [u8; 8], client: [u8; 8]) -> Key {
    let base: [u8; 16] = Md4::digest(**nt_hash).into();
    hmac(&base, &[&server, &client])
}

/// Seven octets of key as DES wants them: eight, each with a bit of parity.
fn spread(key: [u8; 7]) -> [u8; 8] {
    let mut wide = [0; 8];
    if let Some(end) = wide.last_chunk_mut() {
        *end = key;
    }
    let bits = u64::from_be_bytes(wide);
    std::array::from_fn(|index| ((bits >> (49 - 7 * index) & 0x7f) << 1) as u8)
}

/// The key that signs what one side sends.
pub(super) fn sign_key(session: &Key, by_acceptor: bool) -> Key {
    derive(&**session, by_acceptor, SIGNING)
}

/// The key that seals what one side sends; weaker if no better was agreed on.
pub(super) fn seal_key(session: &Key, flags: u32, by_acceptor: bool) -> Key {
    let strength = match flags {
        _ if flags & flags::KEY_128 != 0 => 16,
        _ if flags & flags::KEY_56 != 0 => 7,
        _ => 5,
    };
    derive(session.get(..strength).unwrap_or_default(), by_acceptor, SEALING)
}

fn derive(key: &[u8], by_acceptor: bool, purpose: &str) -> Key {
    let [from_initiator, from_acceptor] = DIRECTIONS;
    let direction = if by_acceptor { from_acceptor } else { from_initiator };
    Zeroizing::new(
        Md5::new().chain_update(key).chain_update(direction).chain_update(purpose).finalize().into(),
    )
}

/// A cipher stream at its start.
pub(super) fn rc4(key: &[u8; 16]) -> Rc4<U16> {
    Rc4::new(key.into())
}

/// Text as it travels.
pub(super) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Text that travelled; `None` if it is no UTF-16.
pub(super) fn from_utf16(bytes: &[u8]) -> Option<String> {
    let (units, []) = bytes.as_chunks::<2>() else { return None };
    char::decode_utf16(units.iter().copied().map(u16::from_le_bytes)).collect::<Result<_, _>>().ok()
}

/// Upper case, letter by letter: Windows' table has no letter that becomes two.
fn upper(text: &str) -> String {
    let one = |letter: char| {
        let mut upper = letter.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(single), None) => single,
            _ => letter,
        }
    };
    text.chars().map(one).collect()
}
