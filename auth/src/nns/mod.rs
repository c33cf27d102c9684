//! NegotiateStream (MS-NNS): a security context that is agreed on at the head of a stream, and protects the rest of it.
//!
//! Records of the handshake are `id, 1, 0, length in big-endian order, token`; afterwards frames are `length in little-endian order,
//! protected octets`. Where nothing is protected, the stream goes on without frames.

mod channel;
mod record;

pub use channel::Channel;

use everywire_model::named_variants;

named_variants! {
    /// How what follows the handshake is protected. The words are those of .NET's configuration files.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
    pub enum ProtectionLevel {
        /// Not at all: only the two sides know each other.
        None "None",
        /// Everything is signed.
        Sign "Sign",
        /// Everything is signed and encrypted.
        #[default]
        EncryptAndSign "EncryptAndSign",
    }
}
