//! Message headers (specification, "Message Format").
//!
//! A header has a fixed part of 16 octets (`Header`) and an array of fields (`Fields`), padded to a multiple
//! of 8; the body follows. The fixed part is read as soon as it is there, since it tells the length of all;
//! the fields are read when they are whole, unless the same octets were read before (`header_cache`).
//!
//! Invariants after `Fields::read`: each known field stands once, with its type and a valid value; those that
//! the kind of message needs are there; names are valid by the specification, so they may be used in answers.
//! Paths may be longer than this side takes, and handles more, which `header_cache` notes, because a message that
//! came by a bus must not end the connection for that.
//!
//! Fields of unknown codes are stepped over and may pass on (`passes`). Unknown flags are ignored, as the
//! specification wants.

use crate::basics::{Get, ReadText};
use crate::violations::ProtocolError;
use crate::walk::skip;
use crate::{names, signature};
use bytes::Bytes;
use everywire_model::named_numbers;

/// Bytes of a header before its fields.
pub const HEADER: usize = 16;

/// Flag: the caller waits for no reply.
pub const NO_REPLY_EXPECTED: u8 = 1;
/// Flag: the bus is not to start an owner of the destination.
pub const NO_AUTO_START: u8 = 2;
/// Flag: the caller is prepared to wait while a user is asked for permission.
pub const ALLOW_INTERACTIVE_AUTHORIZATION: u8 = 4;

// The numbers of kinds are those of the specification; 0 is invalid, and kinds above 4 are ignored.
named_numbers! { u8 {
    /// A method call.
    METHOD_CALL = 1 "METHOD_CALL";
    /// The results of a call.
    METHOD_RETURN = 2 "METHOD_RETURN";
    /// The failure of a call.
    ERROR = 3 "ERROR";
    /// A signal.
    SIGNAL = 4 "SIGNAL";
    _ => "message of a type to be ignored";
} }

/// Codes of header fields (specification, "Header Fields").
pub mod field {
    #![allow(missing_docs)]
    everywire_model::named_numbers! { u8 {
        PATH = 1 "PATH";
        INTERFACE = 2 "INTERFACE";
        MEMBER = 3 "MEMBER";
        ERROR_NAME = 4 "ERROR_NAME";
        REPLY_SERIAL = 5 "REPLY_SERIAL";
        DESTINATION = 6 "DESTINATION";
        SENDER = 7 "SENDER";
        SIGNATURE = 8 "SIGNATURE";
        UNIX_FDS = 9 "UNIX_FDS";
        _ => "unknown";
    } }
}

/// The field that only a bus writes (specification 0.43: the container that the sender is in). It speaks of
/// one hop, so it is not passed on.
const CONTAINER: u8 = 10;

/// Our field: how many hops a call has passed, as text of digits. The number has no meaning in the
/// specification, whose codes end at 10.
pub(crate) const HOPS: u8 = 72;
/// The same, as a header is called.
pub(crate) const HOPS_NAME: &str = "72";

/// Whether a header field of this code passes: those that are known are each connection's own.
#[inline]
pub(crate) fn passes(code: u8) -> bool {
    code > field::UNIX_FDS && code != CONTAINER
}

/// The fixed part of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Byte order.
    pub little: bool,
    /// Type of message.
    pub kind: u8,
    /// Flags.
    pub flags: u8,
    /// Bytes of the body.
    pub body: u32,
    /// The sender's number for it.
    pub serial: u32,
    /// Bytes of the header fields.
    pub fields: u32,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// Another protocol or version, an invalid type or serial number.
    #[inline]
    pub fn read(raw: &[u8; HEADER]) -> Result<Self, ProtocolError> {
        let [order, kind, flags, version, b0, b1, b2, b3, s0, s1, s2, s3, f0, f1, f2, f3] = *raw;
        let little = match order {
            b'l' => true,
            b'B' => false,
            found => return Err(ProtocolError::NotDbus { found }),
        };
        if version != 1 {
            return Err(ProtocolError::Version { found: version });
        }
        let number = |raw| if little { u32::from_le_bytes(raw) } else { u32::from_be_bytes(raw) };
        let (body, serial, fields) =
            (number([b0, b1, b2, b3]), number([s0, s1, s2, s3]), number([f0, f1, f2, f3]));
        if kind == 0 {
            return Err(ProtocolError::Kind);
        }
        if serial == 0 {
            return Err(ProtocolError::ZeroSerial);
        }
        Ok(Self { little, kind, flags, body, serial, fields })
    }

    /// Offset of the body. The fields begin at a multiple of 8, so that theirs is the only padding.
    #[inline]
    pub fn body_at(&self) -> usize {
        HEADER + (self.fields as usize).next_multiple_of(8)
    }

    /// Bytes of the message.
    #[inline]
    pub fn len(&self) -> u64 {
        self.body_at() as u64 + u64::from(self.body)
    }

    /// A message has a header at least.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// Header fields, each empty or 0 where it does not stand.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// The object.
    pub path: Bytes,
    /// The interface.
    pub interface: Bytes,
    /// The method or signal.
    pub member: Bytes,
    /// The error.
    pub error: Bytes,
    /// For whom it is.
    pub destination: Bytes,
    /// From whom it is, as the bus says.
    pub sender: Bytes,
    /// The type of the body.
    pub signature: Bytes,
    /// What it answers.
    pub reply: u32,
    /// Where that stands among the bytes of the fields. There a header that is the same but for that number
    /// is recognised (`header_cache`).
    pub reply_at: Option<usize>,
    /// Handles that come with it. 0 without the field.
    pub handles: u32,
    /// Whether there are others, which nobody here knows.
    pub others: bool,
}

impl Fields {
    /// Reads the fields and checks that those are there which a message of this type needs. `raw` are the
    /// octets of the fields without the padding behind them. The texts share them.
    ///
    /// # Errors
    /// A field of the wrong type or with an impossible value, twice or missing.
    pub fn read(raw: &Bytes, header: &Header) -> Result<Self, ProtocolError> {
        let mut fields = Self::default();
        let mut get = Get { bytes: raw, pos: 0, base: HEADER, little: header.little };
        let mut seen = 0u16;
        while get.left() > 0 {
            get.align(8)?;
            let code = get.u8()?;
            let kind = get.signature()?;
            signature::check_one(kind).map_err(|what| ProtocolError::Signature { what })?;
            if code == 0 {
                return Err(ProtocolError::Header {
                    what: "a header field has the code INVALID",
                    at: HEADER + get.pos,
                });
            }
            if code > field::UNIX_FDS {
                skip(&mut get, kind)?;
                fields.others |= passes(code);
                continue;
            }
            let name = field::word(code);
            if seen & (1 << code) != 0 {
                return Err(ProtocolError::FieldTwice { field: name });
            }
            seen |= 1 << code;
            let wanted: &[u8] = match code {
                field::PATH => b"o",
                field::REPLY_SERIAL | field::UNIX_FDS => b"u",
                field::SIGNATURE => b"g",
                _ => b"s",
            };
            if kind != wanted {
                return Err(ProtocolError::FieldType { field: name });
            }
            fields.take(code, &mut get, raw, name)?;
        }
        fields.check(header.kind)?;
        Ok(fields)
    }

    /// The handles that fields announce, whatever else is in them. For a message that is thrown away unread:
    /// its handles must be told from those of the next.
    pub(crate) fn announced(raw: &[u8], little: bool) -> Result<u32, ProtocolError> {
        let mut get = Get { bytes: raw, pos: 0, base: HEADER, little };
        let mut handles = 0;
        while get.left() > 0 {
            get.align(8)?;
            let code = get.u8()?;
            let kind = get.signature()?;
            signature::check_one(kind).map_err(|what| ProtocolError::Signature { what })?;
            if code == field::UNIX_FDS && kind == b"u" {
                handles = get.u32()?;
            } else {
                skip(&mut get, kind)?;
            }
        }
        Ok(handles)
    }

    /// Takes the value of a known field, and checks it.
    fn take(
        &mut self,
        code: u8,
        get: &mut Get<'_>,
        raw: &Bytes,
        name: &'static str,
    ) -> Result<(), ProtocolError> {
        match code {
            field::REPLY_SERIAL => {
                self.reply = get.u32()?;
                self.reply_at = get.pos.checked_sub(4);
                return if self.reply == 0 { Err(ProtocolError::FieldValue { field: name }) } else { Ok(()) };
            }
            field::UNIX_FDS => {
                self.handles = get.u32()?;
                return Ok(());
            }
            field::SIGNATURE => {
                let text = get.signature()?;
                signature::check(text).map_err(|what| ProtocolError::Signature { what })?;
                self.signature = raw.slice_ref(text);
                return Ok(());
            }
            _ => {}
        }
        let text = get.string()?;
        let (place, valid) = match code {
            field::PATH => (&mut self.path, names::is_long_path(text)),
            field::INTERFACE => (&mut self.interface, names::is_interface(text)),
            field::MEMBER => (&mut self.member, names::is_member(text)),
            field::ERROR_NAME => (&mut self.error, names::is_interface(text)),
            field::DESTINATION => (&mut self.destination, names::is_bus_name(text)),
            _ => (&mut self.sender, names::is_bus_name(text)),
        };
        if !valid {
            return Err(ProtocolError::FieldValue { field: name });
        }
        *place = raw.slice_ref(text);
        Ok(())
    }

    /// Whether the fields that this kind of message needs are there, and none is reserved for local use.
    fn check(&self, kind: u8) -> Result<(), ProtocolError> {
        let need = |field: &Bytes, name| match field.is_empty() {
            true => Err(ProtocolError::Missing { kind: word(kind), field: name }),
            false => Ok(()),
        };
        match kind {
            METHOD_CALL => {
                need(&self.path, "PATH")?;
                need(&self.member, "MEMBER")?;
            }
            SIGNAL => {
                need(&self.path, "PATH")?;
                need(&self.interface, "INTERFACE")?;
                need(&self.member, "MEMBER")?;
            }
            METHOD_RETURN | ERROR if self.reply == 0 => {
                return Err(ProtocolError::Missing { kind: word(kind), field: "REPLY_SERIAL" });
            }
            ERROR => need(&self.error, "ERROR_NAME")?,
            _ => {}
        }
        if self.path == "/org/freedesktop/DBus/Local" || self.interface == "org.freedesktop.DBus.Local" {
            return Err(ProtocolError::Reserved);
        }
        Ok(())
    }
}
