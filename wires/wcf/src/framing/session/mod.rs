//! One connection's framing: the side that made it and the side that took it.
//!
//! Both are state machines without I/O (`everywire_model::Session`): `receive` takes bytes, `transmit`
//! shows what is to be sent, `poll` tells what happened, `deadline` and `expire` are their clock. Each
//! holds a `Channel` for the records and a `SoapChannel` for what is in the envelopes. What both do alike with the
//! bytes that come, layer and records, is `Side`; they differ in what a record means to them.

mod accepting;
mod connecting;

pub use accepting::Accepting;
pub use connecting::Connecting;

use super::channel::Channel;
use super::preamble::{Encoding, Mode};
use super::records::{self, Record, RecordKind};
use crate::settings;
use crate::soap::{Dialect, Soap};
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::Failure;
use std::time::Instant;

/// One end of a connection: how it takes what comes, through the layer if there is one, and record by record.
trait Side {
    fn channel(&mut self) -> &mut Channel;

    /// How envelopes may come now, if they may.
    fn envelopes(&self) -> Option<Mode>;

    /// Whether the layer is being established.
    fn is_handshaking(&self) -> bool;

    /// The layer is established.
    fn established(&mut self) -> Result<(), ProtocolError>;

    /// The breach of a layer that cannot go on.
    fn torn_layer(&mut self, failure: Failure) -> ProtocolError {
        unprotected(failure)
    }

    /// An envelope has come, whole.
    fn message(&mut self, now: Instant, document: Bytes) -> Result<(), ProtocolError>;

    /// Whether a record other than an envelope may be read now.
    fn may_read(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, ProtocolError>;

    /// Such a record; `rest` bytes stand behind it. Returns whether records go on there: not where a layer begins.
    fn told(&mut self, now: Instant, record: &Record<'_>, rest: usize) -> Result<bool, ProtocolError>;

    /// Takes what came. The layer may begin in the middle of the input.
    fn take(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), ProtocolError> {
        if self.channel().layer.is_plain() {
            self.records(now, input)?;
            if self.channel().layer.is_plain() {
                return Ok(());
            }
        }
        let mut plain = std::mem::take(&mut self.channel().plain);
        let result = self.protected(now, input, &mut plain);
        self.channel().plain = plain;
        result
    }

    /// The same with a layer: `plain` collects what it yields.
    fn protected(
        &mut self,
        now: Instant,
        input: &mut BytesMut,
        plain: &mut BytesMut,
    ) -> Result<(), ProtocolError> {
        self.channel().missing = 0;
        if let Err(failure) = self.channel().unwrap(input, plain) {
            return Err(self.torn_layer(failure));
        }
        if self.is_handshaking() && self.channel().layer.is_established() {
            self.established()?;
        }
        if !self.is_handshaking() {
            self.records(now, plain)?;
        }
        // No record has begun: then what is missing is of the layer's own records.
        let channel = self.channel();
        if channel.missing == 0 {
            channel.missing = channel.layer.wanted(input);
        }
        Ok(())
    }

    /// Takes whole records from the front of the input.
    fn records(&mut self, now: Instant, input: &mut BytesMut) -> Result<(), ProtocolError> {
        self.channel().missing = 0;
        while !input.is_empty() && self.record(now, input)? {}
        Ok(())
    }

    /// Takes one; `false` if it is not here yet, or the bytes behind it are the layer's.
    #[inline]
    fn record(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        let Some(mode) = self.envelopes() else { return self.other(now, input) };
        let came = if self.channel().is_chunked() {
            self.channel().chunk(now, input)?
        } else if input.first() == Some(&(RecordKind::SizedEnvelope as u8)) && mode != Mode::SingletonUnsized
        {
            self.channel().sized(now, input)?
        } else {
            return self.other(now, input);
        };
        match came {
            None => Ok(false),
            // Chunks follow.
            Some(part) if part.is_empty() => Ok(true),
            Some(document) => self.message(now, document).map(|()| true),
        }
    }

    /// A record that is no envelope, as far as one is expected now.
    fn other(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, ProtocolError> {
        if !self.may_read(now, input)? {
            return Ok(false);
        }
        let Some((record, len)) = records::read(input, &self.channel().bounds)? else {
            // How many nobody knows: the records of a preamble are short.
            self.channel().missing = 1;
            return Ok(false);
        };
        let goes_on = self.told(now, &record, input.len() - len)?;
        input.advance(len);
        self.channel().received += len as u64;
        Ok(goes_on)
    }
}

/// A layer that cannot protect any more ends the connection.
#[cold]
fn unprotected(failure: Failure) -> ProtocolError {
    ProtocolError::Authentication { message: failure.to_string() }
}

/// Protocols that people meet by a wrong scheme: the words by which their first bytes are known, and the schemes to use instead.
/// They are told so, instead of that record 0x47 does not exist.
const STRANGERS: [(&str, &str, &[&str]); 5] = [
    ("GIOP", "use iiop:// or corbaloc:", &["GIOP"]),
    // A method, or a status line.
    (
        "HTTP",
        "use basic://, wshttp://, soap12:// or binhttp://",
        &["GET ", "POST ", "HTTP/", "HEAD ", "PUT ", "OPTIONS ", "PATCH ", "PRI * HTTP/", "PROPFIND "],
    ),
    // What a bus answers while it knows nobody yet.
    ("D-Bus", "use dbus:", &["REJECTED", "ERROR"]),
    // Version 5.0 of DCE/RPC. The record with this number begins nothing.
    ("DCE/RPC", "use dcom://", &["\x05\0"]),
    // A handshake's record.
    ("TLS", "use basics://, wshttps:// or binhttps://, or net.tcp with ?security=tls", &["\x16\x03"]),
];

/// Whether the first bytes of a connection may be records; `false`: too few have come to say. Whole words count, since any
/// bytes may begin like one.
///
/// # Errors
/// They are of another protocol.
fn may_be_records(input: &[u8]) -> Result<bool, ProtocolError> {
    let mut begun = false;
    for (protocol, schemes, words) in STRANGERS {
        for word in words {
            if input.starts_with(word.as_bytes()) {
                return Err(ProtocolError::Foreign { protocol, schemes });
            }
            begun |= !input.is_empty() && word.as_bytes().starts_with(input);
        }
    }
    Ok(!begun)
}

/// Whether a message's encoding is the one that a place was told to take.
/// The place was told by `encoding=`.
fn is_of(encoding: Encoding, told: settings::Encoding) -> bool {
    match told {
        settings::Encoding::Session => encoding == Encoding::BinarySession,
        settings::Encoding::Binary => encoding == Encoding::Binary,
        settings::Encoding::Text => matches!(encoding, Encoding::Soap11Utf8 | Encoding::Soap12Utf8),
        settings::Encoding::Mtom => encoding == Encoding::Mtom,
    }
}

/// How envelopes are written, if this side speaks the encoding.
/// The other encodings of the specification (UTF-16, MTOM) are refused with ContentTypeInvalid.
fn dialect(encoding: Encoding) -> Option<Dialect> {
    match encoding {
        Encoding::BinarySession => Some(Dialect::NET_TCP),
        Encoding::Binary => Some(Dialect::BINARY),
        Encoding::Soap12Utf8 => Some(Dialect::WS),
        Encoding::Soap11Utf8 => Some(Dialect { soap: Soap::V11, ..Dialect::WS }),
        _ => None,
    }
}

/// What the connecting side speaks: as its address says, where the mode allows for it.
fn spoken(asked: settings::Encoding, mode: Mode) -> (Encoding, Dialect) {
    match asked {
        settings::Encoding::Session if mode == Mode::Duplex => (Encoding::BinarySession, Dialect::NET_TCP),
        settings::Encoding::Session | settings::Encoding::Binary => (Encoding::Binary, Dialect::BINARY),
        settings::Encoding::Text | settings::Encoding::Mtom => (Encoding::Soap12Utf8, Dialect::WS),
    }
}
