//! Whom an acceptor lets in.

use super::credentials::{HASH_PREFIX, Secret, read_text};
use super::{Cause, ntlm};
use everywire_model::{Failure, Kind};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

/// Knows the users' secrets.
pub trait Users: Send + Sync {
    /// The user's secret; `None` if there is no such user. Names come as the peer wrote them, in any case.
    fn secret(&self, domain: &str, user: &str) -> Option<Secret>;
}

/// Whether this is the user's password, in the clear: for protocols that send it so. It takes as long for users that there are not.
pub fn is_password(users: &dyn Users, domain: &str, user: &str, password: &str) -> bool {
    let known = users.secret(domain, user);
    let nobody = Secret::nt_hash([0; 16]);
    let hash = ntlm::nt_hash(known.as_ref().unwrap_or(&nobody));
    let same = crate::same_secret(&*hash, &*ntlm::nt_hash(&Secret::password(password)));
    // The hash alone would take what only hashes alike.
    let clear = known.as_ref().and_then(Secret::as_password);
    let alike = clear.is_none_or(|clear| crate::same_secret(clear.as_bytes(), password.as_bytes()));
    known.is_some() && same && alike
}

/// Users from a file: one line each, `USER:PASSWORD`, `DOMAIN\USER:PASSWORD`, with `$NT$` and 32 hexadecimal digits in
/// place of the password where only its NT hash is to be kept. A user without a domain is let in with any. Empty lines
/// and those that begin with `#` are skipped.
#[derive(Default, Clone)]
pub struct UserTable {
    /// By lower-case domain (if the line has one) and user.
    users: HashMap<(Option<String>, String), Secret>,
}

impl UserTable {
    /// Reads the file, which nobody else may be able to read.
    ///
    /// # Errors
    ///
    /// The file cannot be read, others may read it, or a line is none of the forms above.
    pub fn read_file(path: impl AsRef<Path>) -> Result<Self, Failure> {
        let path = path.as_ref();
        Self::parse(&read_text(path)?).map_err(|failure| failure.at(path.display()))
    }

    /// Understands the text of such a file.
    ///
    /// # Errors
    ///
    /// A line is none of the forms above; the failure names its number, not what it says.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let mut table = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |what: &str| {
                Failure::new(Kind::BadArgument, Cause::User, format!("line {}: {what}", number + 1))
                    .with_hint(
                        "write USER:PASSWORD, DOMAIN\\USER:PASSWORD or USER:$NT$ and 32 hexadecimal digits",
                    )
            };
            let (name, secret) = line.split_once(':').ok_or_else(|| bad("no colon"))?;
            let (domain, user) = match name.trim().split_once('\\') {
                Some((domain, user)) => (Some(domain), user),
                None => (None, name.trim()),
            };
            if user.is_empty() {
                return Err(bad("no user"));
            }
            let secret = Secret::parse(secret);
            if secret.as_password().is_some_and(|text| text.starts_with(HASH_PREFIX)) {
                return Err(bad("no NT hash after $NT$"));
            }
            table.insert(domain, user, secret);
        }
        Ok(table)
    }

    /// Adds a user, or gives it another secret. With no domain, the user is let in with any.
    pub fn insert(&mut self, domain: Option<&str>, user: &str, secret: Secret) {
        self.users.insert((domain.map(str::to_lowercase), user.to_lowercase()), secret);
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there are none, so that nobody is let in.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }
}

impl Users for UserTable {
    fn secret(&self, domain: &str, user: &str) -> Option<Secret> {
        let user = user.to_lowercase();
        let exact = self.users.get(&(Some(domain.to_lowercase()), user.clone()));
        exact.or_else(|| self.users.get(&(None, user))).cloned()
    }
}

impl fmt::Debug for UserTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserTable({} users)", self.users.len())
    }
}
