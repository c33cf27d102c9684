//! What a preamble asks for: where it leads, in which mode and encoding, and what is to protect what follows.

use super::{Accepting, Phase};
use crate::framing::preamble::{Mode, Preamble};
use crate::framing::records::RecordKind;
use crate::framing::session::{dialect, is_of, unprotected};
use crate::settings::{self, Security};
use crate::violations::ProtocolError;

impl Accepting {
    /// The preamble is here, but for upgrades.
    /// Checks in this order, since a peer is told the first thing that is wrong: the address, the mode, the
    /// encoding, the compression.
    pub(super) fn lookup(&mut self, preamble: Preamble) -> Result<(), ProtocolError> {
        let nowhere = || ProtocolError::NoEndpoint { via: preamble.via.escape_debug().to_string() };
        let scheme = preamble.via.split_once(':').map_or("", |(scheme, _)| scheme);
        // A URI of HTTP leads nowhere here, even if its path is known.
        if !["net.tcp", "net.pipe", "net.uds"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return Err(nowhere());
        }
        let path = self.channel.settings.key_of(&preamble.via).ok_or_else(nowhere)?;
        // .NET knows a socket's path, and nothing behind it.
        let only_socket = path.is_empty() && !self.channel.settings.socket.is_empty();
        self.key = match &self.node {
            Some(node) if only_socket => node.find(&path).or_else(|| node.sole()).ok_or_else(nowhere)?,
            Some(node) => node.find(&path).ok_or_else(nowhere)?,
            None => path,
        };
        // Whoever asks for a description goes there with what usual bindings have.
        let told = !self.key.to_ascii_lowercase().ends_with(b"mex");
        let settings = &self.channel.settings;
        let streamed = preamble.mode == Mode::SingletonUnsized;
        if told && settings.takes_one_mode && streamed != (settings.mode == settings::Mode::Streamed) {
            return Err(ProtocolError::Mode { mode: preamble.mode as u8 });
        }
        let fits = !(told && settings.takes_one_encoding) || is_of(preamble.encoding, settings.encoding);
        if !fits || dialect(preamble.encoding).is_none() {
            return Err(ProtocolError::ContentType { name: preamble.encoding.content_type().to_owned() });
        }
        if let Some(format) = preamble.compression
            && settings.compressed != Some(format)
        {
            let name = format!("{}+{}", preamble.encoding.content_type(), format.word());
            return Err(ProtocolError::ContentType { name });
        }
        self.channel.compression = preamble.compression;
        // Nobody acknowledges a preamble in this mode, and its end is often left out.
        let simplex = preamble.mode == Mode::Simplex;
        self.preamble = Some(preamble);
        self.phase = Phase::Upgrading;
        if simplex { self.admit(self.last) } else { Ok(()) }
    }

    /// Grants an upgrade, if it is the one that the place has, and the first. Returns whether records go on
    /// behind it: not where a layer begins.
    pub(super) fn upgrade(&mut self, name: &[u8], rest: usize) -> Result<bool, ProtocolError> {
        let refused =
            || ProtocolError::Upgrade { name: String::from_utf8_lossy(name).escape_debug().to_string() };
        let demanded = self.channel.settings.transport_security;
        let unix = Security::Unix.upgrade().is_some_and(|unix| unix.as_bytes() == name);
        if self.upgraded.is_some() {
            return Err(refused());
        }
        if unix && matches!(demanded, Security::Unix | Security::None) {
            // The kernel has told already.
            if self.config.peer.credentials.is_none() {
                return Err(refused());
            }
            self.upgraded = Some("unix credentials");
            self.channel.put(|out| out.push(RecordKind::UpgradeResponse as u8)).map_err(unprotected)?;
            return Ok(true);
        }
        if unix || demanded.upgrade().is_none_or(|offered| offered.as_bytes() != name) {
            return Err(refused());
        }
        // What stands here already cannot be the handshake, which waits for our word; and nothing else may.
        if rest > 0 {
            return Err(ProtocolError::EarlyBytes { bytes: rest });
        }
        let layer = self.channel.settings.server_layer().map_err(unprotected)?;
        self.channel.put(|out| out.push(RecordKind::UpgradeResponse as u8)).map_err(unprotected)?;
        self.channel.layer = layer;
        self.phase = Phase::Handshaking;
        Ok(false)
    }
}
