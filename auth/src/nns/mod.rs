//! NegotiateStream (MS-NNS): a security context that is agreed on at the head of a stream, and protects the rest of it.
//!
//! Records of the handshake are `id, 1, 0, length in big-endian order, token`; afterwards frames are `length in little-endian order,
//! protected octets`. Where nothing is protected, the stream goes on without frames.

mod channel;
mod record;

pub use channel::Channel;

/// How what follows the handshake is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ProtectionLevel {
    /// Not at all: only the two sides know each other.
    None,
    /// Everything is signed.
    Sign,
    /// Everything is signed and encrypted.
    #[default]
    EncryptAndSign,
}

impl ProtectionLevel {
    /// Its name, as configuration files of .NET spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "None",
            Self::Sign => "Sign",
            Self::EncryptAndSign => "EncryptAndSign",
        }
    }

    /// The level with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Sign, Self::EncryptAndSign]
            .into_iter()
            .find(|level| level.name().eq_ignore_ascii_case(name))
    }
}
