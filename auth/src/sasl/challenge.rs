//! The arithmetic of the cookie mechanism: D-Bus Specification, "DBUS_COOKIE_SHA1".

use super::cookies::number;
use super::{Cookie, Keyring, KeyringError};
use crate::{Random, same_secret};
use everywire_model::hex;
use sha1_smol::Sha1;

/// The context of servers that have no other.
pub(super) const CONTEXT: &str = "org_freedesktop_general";
/// The random bytes of a challenge.
const CHALLENGE_BYTES: usize = 24;

/// What a server asked, and must remember.
#[derive(Debug)]
pub(super) struct Challenge {
    cookie: Cookie,
    text: String,
}

impl Challenge {
    /// A new challenge about this cookie.
    pub(super) fn new(cookie: Cookie, random: Random) -> Result<Self, KeyringError> {
        Ok(Self { cookie, text: nonce(random)? })
    }

    /// The question, as it goes into `DATA`.
    pub(super) fn question(&self) -> String {
        format!("{CONTEXT} {} {}", self.cookie.id, self.text)
    }

    /// Whether the client that answers this knows the cookie.
    pub(super) fn accepts(&self, answer: &[u8]) -> bool {
        let mut parts = answer.split(|byte| *byte == b' ');
        let (Some(theirs), Some(digest), None) = (parts.next(), parts.next(), parts.next()) else {
            return false;
        };
        let Some(digest) = hex::decode(digest) else { return false };
        !theirs.is_empty() && same_secret(&digest, &hash(self.text.as_bytes(), theirs, &self.cookie))
    }
}

/// A client's answer to a server's question.
pub(super) fn answer(question: &[u8], keyring: &Keyring, random: Random) -> Result<String, KeyringError> {
    let mut parts = question.split(|byte| *byte == b' ');
    let (Some(context), Some(id), Some(theirs), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(KeyringError::BadChallenge);
    };
    let id = number(id).and_then(|id| u32::try_from(id).ok());
    let (Some(id), false) = (id, theirs.is_empty()) else { return Err(KeyringError::BadChallenge) };
    let context = str::from_utf8(context).map_err(|_| KeyringError::BadContext)?;
    let cookie = keyring.find(context, id)?;
    let ours = nonce(random)?;
    let digest = hash(theirs, ours.as_bytes(), &cookie);
    Ok(format!("{ours} {}", hex::text(&digest)))
}

fn nonce(random: Random) -> Result<String, KeyringError> {
    let mut bytes = [0; CHALLENGE_BYTES];
    random(&mut bytes).map_err(|_| KeyringError::NoRandom)?;
    Ok(hex::text(&bytes))
}

/// Both challenges and the cookie as text, with colons between them.
fn hash(server: &[u8], client: &[u8], cookie: &Cookie) -> [u8; 20] {
    let mut hasher = Sha1::new();
    for part in [server, b":", client, b":", cookie.secret.as_bytes()] {
        hasher.update(part);
    }
    hasher.digest().bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest is of the text "server:client:cookie"; this one was made with sha1sum.
    #[test]
    fn vector() {
        let cookie = Cookie {
            id: 7,
            created: 0,
            secret: "00112233445566778899aabbccddeeff0011223344556677".to_owned(),
        };
        let challenge = Challenge { cookie, text: "7ab83f0c".to_owned() };
        assert_eq!(challenge.question(), "org_freedesktop_general 7 7ab83f0c");
        assert!(challenge.accepts(b"c0ffee 34bb7cd2304a32bca72d7809cb247b2c3762a5ac"));
        assert!(
            challenge.accepts(
                "c0ffee 34bb7cd2304a32bca72d7809cb247b2c3762a5ac"
                    .to_uppercase()
                    .replace("C0FFEE", "c0ffee")
                    .as_bytes()
            )
        );
        for wrong in [
            "c0ffef 34bb7cd2304a32bca72d7809cb247b2c3762a5ac",
            "c0ffee 34bb7cd2304a32bca72d7809cb247b2c3762a5ac ",
            " 34bb7cd2304a32bca72d7809cb247b2c3762a5ac",
            "34bb7cd2304a32bca72d7809cb247b2c3762a5ac",
            "c0ffee",
            "c0ffee ",
            // Right, but for a client without a challenge of its own.
            " 9321fbdf0aca72b4064b0f00e71336f4eea47a16",
            "c0ffee 00",
            "",
        ] {
            assert!(!challenge.accepts(wrong.as_bytes()), "{wrong:?}");
        }
    }
}
