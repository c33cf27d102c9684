//! NTLM and SPNEGO, both sides, under hostile bytes: nobody comes in without the password.

use everywire_auth::security::exercise;

/// Gives the octets to this case.
pub fn security(bytes: &[u8]) {
    assert!(!exercise(bytes), "somebody was let in");
}
