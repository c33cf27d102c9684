//! NTLM and SPNEGO, both sides, under hostile bytes: nobody comes in without the password.
#![no_main]

use everywire_auth::security::exercise;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assert!(!exercise(bytes), "somebody was let in");
});
