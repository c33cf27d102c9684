//! Kerberos (RFC 4121) through the system's own library, MIT's, by GSS-API: its configuration, its tickets, its keys.
//!
//! Only there with the feature `kerberos`, as the library has to be installed. Without it every wish for Kerberos fails
//! and says so, and SPNEGO neither offers nor takes it.

#[cfg(feature = "kerberos")]
mod context;
#[cfg(feature = "kerberos")]
mod protection;

#[cfg(feature = "kerberos")]
pub(super) use context::{accepting, acceptor, initiator, promising};

#[cfg(not(feature = "kerberos"))]
pub(super) use absent::{accepting, acceptor, initiator, promising};

#[cfg(not(feature = "kerberos"))]
mod absent {
    use crate::security::{Acceptor, Cause, Credentials, Initiator, Options};
    use everywire_model::{Failure, Kind};

    pub(in crate::security) fn promising(_: &Credentials, _: &Options) -> bool {
        false
    }

    pub(in crate::security) fn accepting(_: &Options) -> bool {
        false
    }

    pub(in crate::security) fn initiator(
        _: &Credentials,
        _: &Options,
    ) -> Result<Box<dyn Initiator>, Failure> {
        Err(failure())
    }

    pub(in crate::security) fn acceptor(_: &Options) -> Result<Box<dyn Acceptor>, Failure> {
        Err(failure())
    }

    fn failure() -> Failure {
        Failure::new(Kind::Unsupported, Cause::Here, "Kerberos was left out when this program was built")
            .with_hint(
                "use NTLM, or build with the feature `kerberos`, which needs the libraries of MIT Kerberos",
            )
    }
}
