//! Who this side is, and the proof of it.

use super::Cause;
use crate::private;
use everywire_model::hex;
use everywire_model::reference::unescape_text;
use everywire_model::{Failure, Kind};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::path::Path;
use zeroize::Zeroize;

/// Octets that a file of credentials may have.
const MAX_FILE: u64 = 64 * 1024;

/// What stands in front of the hexadecimal NT hash, where a password could stand.
pub(super) const HASH_PREFIX: &str = "$NT$";

/// A password, or only its NT hash. Overwritten when dropped, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Inner);

/// Only one of the two is kept.
#[derive(Clone, PartialEq, Eq)]
enum Inner {
    Password(String),
    NtHash([u8; 16]),
}

impl Secret {
    /// A password in the clear.
    pub fn password(text: impl Into<String>) -> Self {
        Self(Inner::Password(text.into()))
    }

    /// The MD4 digest of the password (MS-NLMP 3.3.1): enough for NTLM, in place of the password.
    pub fn nt_hash(hash: [u8; 16]) -> Self {
        Self(Inner::NtHash(hash))
    }

    /// What a file says: `$NT$` and 32 hexadecimal digits are a hash, anything else is a password.
    pub fn parse(text: &str) -> Self {
        let hash = text.strip_prefix(HASH_PREFIX).and_then(|digits| hex::decode(digits.as_bytes()));
        match hash.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) {
            Some(hash) => Self::nt_hash(hash),
            None => Self::password(text),
        }
    }

    /// The password, if it is known in the clear.
    pub fn as_password(&self) -> Option<&str> {
        match &self.0 {
            Inner::Password(text) => Some(text),
            Inner::NtHash(_) => None,
        }
    }

    /// The hash, if nothing else is known.
    pub fn as_nt_hash(&self) -> Option<&[u8; 16]> {
        match &self.0 {
            Inner::Password(_) => None,
            Inner::NtHash(hash) => Some(hash),
        }
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        match &mut self.0 {
            Inner::Password(text) => text.zeroize(),
            Inner::NtHash(hash) => hash.zeroize(),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Whom an initiator says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// NetBIOS or Kerberos domain; may be empty.
    pub domain: String,
    /// User.
    pub user: String,
    /// Password or NT hash.
    pub password: Secret,
}

impl Hash for Credentials {
    /// Without the password: a hash may be printed, and passwords could be tried against it.
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.domain, &self.user).hash(state);
    }
}

impl fmt::Display for Credentials {
    /// `DOMAIN\USER`, without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.domain.is_empty() { "" } else { "\\" };
        write!(f, "{}{mark}{}", self.domain, self.user)
    }
}

impl Credentials {
    /// Reads `[DOMAIN;]USER[:PASSWORD]` as it stands in an address; nothing where a `%` is not followed by two hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let (who, password) = text.split_once(':').unwrap_or((text, ""));
        let (domain, user) = who.split_once([';', '\\']).unwrap_or(("", who));
        let password = zeroize::Zeroizing::new(unescape_text(password)?);
        Some(Self {
            domain: unescape_text(domain)?,
            user: unescape_text(user)?,
            password: Secret::parse(&password),
        })
    }

    /// Reads an authentication file as Samba's programs know it (`-A`): lines `username=`, `password=`, `domain=`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others may read it, or it names no user.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let text = read_text(path.as_ref())?;
        let (mut domain, mut user, mut password) = (String::new(), String::new(), None);
        for line in text.lines() {
            let Some((key, value)) = line.split_once('=') else { continue };
            match key.trim().to_ascii_lowercase().as_str() {
                "username" | "user" => user = value.trim().to_owned(),
                // Blanks may belong to it, apart from the one that many people write after the sign.
                "password" => password = Some(Secret::parse(value.strip_prefix(' ').unwrap_or(value))),
                "domain" => domain = value.trim().to_owned(),
                _ => {}
            }
        }
        if user.is_empty() {
            let what = format!("{} has no line username=", path.as_ref().display());
            return Err(Failure::bad_argument(what)
                .with_hint("write lines username=NAME, password=WORD and domain=NAME"));
        }
        let password = password.unwrap_or_else(|| Secret::password(""));
        Ok(Self { domain, user, password })
    }
}

/// The text of a file that nobody else can read.
pub(super) fn read_text(path: &Path) -> Result<zeroize::Zeroizing<String>, Failure> {
    let place = path.display();
    let failure = |kind, what: &str| Failure::new(kind, Cause::User, format!("{place} {what}"));
    match private::read(path, MAX_FILE) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(zeroize::Zeroizing::new(text)),
            Err(_) => Err(failure(Kind::BadArgument, "is not UTF-8")),
        },
        Err(private::ReadError::Missing) => Err(failure(Kind::BadArgument, "does not exist")),
        Err(private::ReadError::Untrusted(why)) => {
            Err(Failure::new(Kind::Refused, Cause::Here, format!("{place} {why}"))
                .with_hint("secrets are read from a regular file of this user with mode 0600 only"))
        }
        Err(private::ReadError::TooLarge) => {
            Err(Failure::over_limit(Cause::User, &place.to_string(), MAX_FILE + 1, MAX_FILE))
        }
        Err(private::ReadError::Io(error)) => {
            Err(failure(Kind::Refused, &format!("cannot be read: {error}")))
        }
    }
}
