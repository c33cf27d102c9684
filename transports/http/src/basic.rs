//! HTTP's Basic authentication (RFC 7617).
//!
//! The header has the password in it, so it is for TLS and the inside of a machine only, which its user sees to. What is
//! made of it here is cleared from memory when it is not needed any more.

use base64_simd::STANDARD;
use everywire_auth::security::{Credentials, Users, is_password};
use http::HeaderValue;
use zeroize::Zeroizing;

/// What a server without this user's word says.
pub const CHALLENGE: &str = "Basic realm=\"everywire\", charset=\"UTF-8\"";

/// The header that says who calls.
/// `None` if only the hash of the password is known: Basic needs the password itself.
pub fn authorization(credentials: &Credentials) -> Option<HeaderValue> {
    let password = credentials.password.as_password()?;
    let clear = Zeroizing::new(format!("{credentials}:{password}"));
    // As long as it gets: what grows leaves copies behind.
    let mut value = Zeroizing::new(Vec::with_capacity(6 + clear.len().div_ceil(3) * 4));
    value.extend_from_slice(b"Basic ");
    STANDARD.encode_append(clear.as_bytes(), &mut *value);
    let mut value = HeaderValue::from_bytes(&value).ok()?;
    // The library does not show such headers in its logs.
    value.set_sensitive(true);
    Some(value)
}

/// The account of somebody who is known and calls.
pub fn account(header: Option<&HeaderValue>, users: &dyn Users) -> Option<String> {
    let word = header.and_then(read)?;
    let (user, password) = word.split_once(':')?;
    let (domain, user) = user.split_once('\\').unwrap_or(("", user));
    is_password(users, domain, user, password).then(|| users.account(domain, user))
}

/// The user and the password, as they were sent.
fn read(header: &HeaderValue) -> Option<Zeroizing<String>> {
    let (scheme, rest) = header.to_str().ok()?.split_once(' ')?;
    let octets = STANDARD.decode_to_vec(rest.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    match String::from_utf8(octets) {
        Ok(text) => Some(Zeroizing::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_auth::security::{Secret, UserTable};

    fn credentials(domain: &str, user: &str, password: &str) -> Credentials {
        Credentials { domain: domain.into(), user: user.into(), password: Secret::password(password) }
    }

    #[test]
    fn the_examples_of_the_specification() {
        let header = authorization(&credentials("", "Aladdin", "open sesame")).unwrap();
        assert_eq!(header, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(header.is_sensitive());
        let header = authorization(&credentials("", "test", "123\u{a3}")).unwrap();
        assert_eq!(header, "Basic dGVzdDoxMjPCow==");
    }

    fn is_known(header: Option<&HeaderValue>, users: &UserTable) -> bool {
        account(header, users).is_some()
    }

    #[test]
    fn only_those_who_know_the_password_are_known() {
        let mut users = UserTable::default();
        users.insert(None, "ali", Secret::password("pass:word"));
        let knows = |user: &str, password: &str| {
            is_known(authorization(&credentials("", user, password)).as_ref(), &users)
        };
        assert!(knows("ali", "pass:word"));
        assert!(!knows("ali", "pass:wort") && !knows("ali", "") && !knows("ben", "pass:word"));
        assert!(is_known(authorization(&credentials("HOME", "ali", "pass:word")).as_ref(), &users));
        assert!(!is_known(None, &users));
        for header in
            ["Basic", "Basic ", "Basic !!", "Basic YWxp", "Negotiate YWxpOnBhc3M6d29yZA==", "Basic \u{e4}"]
        {
            let header = HeaderValue::from_bytes(header.as_bytes()).unwrap();
            assert!(!is_known(Some(&header), &users), "{header:?}");
        }
    }
}
