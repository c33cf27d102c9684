//! Whom an acceptor lets in.

use super::credentials::{Credentials, HASH_PREFIX, Secret, read_text};
use super::ntlm;
use everywire_model::Failure;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;

/// Knows the users' secrets. Asked for each exchange, and may be asked from several threads at once.
pub trait Users: Send + Sync {
    /// The user's secret; `None` if there is no such user. Names come as the peer wrote them, in any case.
    fn secret(&self, domain: &str, user: &str) -> Option<Secret>;

    /// The account that [`secret`](Self::secret) means by these names, `DOMAIN\USER` or `USER`: the same text for all the ways to
    /// write it, so that quotas and ownership go by accounts. Unless an implementation knows better, only case is no difference.
    fn account(&self, domain: &str, user: &str) -> String {
        named(&domain.to_lowercase(), &user.to_lowercase())
    }
}

/// An account as text.
fn named(domain: &str, user: &str) -> String {
    if domain.is_empty() { user.to_owned() } else { format!("{domain}\\{user}") }
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
/// place of the password where only its NT hash is to be kept. A user without a domain, `\USER` and `.\USER` among
/// them, is let in with any. Of two lines for one account the later counts. Empty lines and those that begin with `#` are skipped.
///
/// A caller may write `DOMAIN\USER`, `USER@REALM` (the realm is the domain, or begins with it), and, where only one line has that user,
/// `.\USER` or `USER`.
#[derive(Default, Clone)]
pub struct UserTable {
    /// By lower-case domain (if the line has one) and user: the account as the line has it, and its secret.
    users: HashMap<(Option<String>, String), (String, Secret)>,
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
                Failure::bad_argument(format!("line {}: {what}", number + 1)).with_hint(
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

    /// The one user with this account, let in with any domain if the account names none.
    pub fn of(account: &Credentials) -> Self {
        let mut table = Self::default();
        table.insert(Some(&account.domain), &account.user, account.password.clone());
        table
    }

    /// Adds a user, or gives it another secret. With no domain, the user is let in with any.
    pub fn insert(&mut self, domain: Option<&str>, user: &str, secret: Secret) {
        let domain = domain.filter(|domain| !matches!(*domain, "" | "."));
        let account = named(domain.unwrap_or_default(), user);
        self.users.insert((domain.map(str::to_lowercase), user.to_lowercase()), (account, secret));
    }

    /// The line that is meant: the one with these very names, else the one of that user with no domain or, where the caller
    /// names none, the only one.
    fn find(&self, domain: &str, user: &str) -> Option<&(String, Secret)> {
        let (domain, user) = (domain.to_lowercase(), user.to_lowercase());
        let line =
            |domain: Option<&str>, user: &str| self.users.get(&(domain.map(str::to_owned), user.to_owned()));
        let domain = if domain == "." { "" } else { domain.as_str() };
        if let Some(exact) = line(Some(domain), &user).or_else(|| line(None, &user)) {
            return Some(exact);
        }
        if !domain.is_empty() {
            return None;
        }
        if let Some((user, realm)) = user.rsplit_once('@') {
            let label = realm.split('.').next().unwrap_or(realm);
            return line(Some(realm), user).or_else(|| line(Some(label), user)).or_else(|| line(None, user));
        }
        let mut alike = self.users.iter().filter(|((_, other), _)| *other == user);
        alike.next().map(|(_, found)| found).filter(|_| alike.next().is_none())
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
        self.find(domain, user).map(|(_, secret)| secret.clone())
    }

    fn account(&self, domain: &str, user: &str) -> String {
        let known = self.find(domain, user).map(|(account, _)| account.clone());
        known.unwrap_or_else(|| named(&domain.to_lowercase(), &user.to_lowercase()))
    }
}

impl fmt::Debug for UserTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserTable({} users)", self.users.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn account(table: &UserTable, domain: &str, user: &str) -> Option<String> {
        table.secret(domain, user).map(|_| table.account(domain, user))
    }

    #[test]
    fn one_line_is_one_account_whatever_its_caller_writes() {
        let table = UserTable::parse("Ada:engine\nKITCHEN\\Cook:salt\n.\\bob:x\n").unwrap();
        for (domain, user) in
            [("", "ada"), ("ANY", "ADA"), (".", "Ada"), ("", "ada@example.org"), ("other", "aDa")]
        {
            assert_eq!(account(&table, domain, user).as_deref(), Some("Ada"), "{domain} {user}");
        }
        let cooks = [
            ("KITCHEN", "cook"),
            ("kitchen", "COOK"),
            ("", "cook"),
            (".", "cook"),
            ("", "cook@kitchen"),
            ("", "Cook@Kitchen.example.org"),
        ];
        for (domain, user) in cooks {
            assert_eq!(account(&table, domain, user).as_deref(), Some("KITCHEN\\Cook"), "{domain} {user}");
        }
        assert_eq!(account(&table, "HOST", "bob").as_deref(), Some("bob"));
        for (domain, user) in [
            ("LARDER", "cook"),
            ("", "cook@larder"),
            ("LARDER", "cook@kitchen"),
            ("", "eve"),
            ("", "@"),
            ("", ""),
        ] {
            assert_eq!(account(&table, domain, user), None, "{domain} {user}");
        }
    }

    #[test]
    fn names_that_could_be_several_accounts_are_none_of_them() {
        let table = UserTable::parse("KITCHEN\\cook:salt\nLARDER\\cook:sugar\ncook@larder:odd").unwrap();
        assert_eq!(account(&table, "", "cook"), None);
        assert_eq!(account(&table, ".", "cook"), None);
        assert_eq!(account(&table, "", "cook@kitchen").as_deref(), Some("KITCHEN\\cook"));
        // What a line says comes first.
        assert_eq!(account(&table, "", "cook@larder").as_deref(), Some("cook@larder"));
    }
}
