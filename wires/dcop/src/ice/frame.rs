//! Frames of DCOP messages: 12 bytes of header, the length in bytes and the key in the sender's byte order.

use super::core::card32;
use super::{HEADER, ICE_LIMIT, IceHeader, NATIVE_LITTLE, Progress, ProtocolError};
use bytes::{Buf, Bytes, BytesMut};

/// Bytes in the header of a DCOP message.
pub const FRAME_HEADER: usize = 12;

/// Kinds of DCOP messages: their minor opcodes.
pub mod minor {
    everywire_model::named_numbers! { u8 {
        /// A call that nobody answers.
        SEND = 1 "DCOPSend";
        /// A call.
        CALL = 2 "DCOPCall";
        /// Its answer.
        REPLY = 3 "DCOPReply";
        /// There is no answer.
        REPLY_FAILED = 4 "DCOPReplyFailed";
        /// The answer comes later.
        REPLY_WAIT = 5 "DCOPReplyWait";
        /// The answer announced before.
        REPLY_DELAYED = 6 "DCOPReplyDelayed";
        /// A search for an object.
        FIND = 7 "DCOPFind";
        _ => "unknown message";
    } }
}

/// The header of a DCOP message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// See [`minor`].
    pub minor: u8,
    /// The key's four bytes as they came, read in this machine's order: nobody on the way swaps them.
    pub key: u32,
    /// Bytes after the header.
    pub len: usize,
}

/// A DCOP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// See [`minor`].
    pub minor: u8,
    /// See [`Head::key`].
    pub key: u32,
    /// Everything after the header.
    pub payload: Bytes,
}

/// A message of either protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Of the ICE core, whole; for [`super::late()`].
    Ice(Bytes),
    /// Of DCOP.
    Dcop(Message),
}

/// What the input begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peek {
    /// An incomplete message, of which at least so many bytes are missing; 0 if its header is not there.
    Missing(usize),
    /// A core message of this many bytes.
    Ice(usize),
    /// A DCOP message, whole.
    Dcop(Head),
}

/// How the peer frames its messages, from the handshake.
#[derive(Debug, Clone, Copy)]
pub struct Framing {
    /// The opcode in messages from the peer.
    pub peer_opcode: u8,
    /// The opcode in messages to the peer.
    pub my_opcode: u8,
    /// The peer's byte order.
    pub little: bool,
    /// The largest message, in bytes, header included.
    pub limit: u64,
    wanted: usize,
}

impl Framing {
    /// After a handshake; `None` unless that is done. `limit` is the largest message in bytes, header included.
    pub fn new(progress: Progress, limit: u64) -> Option<Self> {
        match progress {
            Progress::More => None,
            Progress::Done { peer_opcode, my_opcode, swap } => {
                Some(Self { peer_opcode, my_opcode, little: NATIVE_LITTLE != swap, limit, wanted: 0 })
            }
        }
    }

    /// Looks at the front of the input. The length is checked before the caller waits for the rest.
    ///
    /// # Errors
    /// An opcode that was not set up, a kind that does not exist, a length over the limit.
    #[inline]
    pub fn peek(&self, input: &[u8]) -> Result<Peek, ProtocolError> {
        let Some(&[major, minor, _, _, l0, l1, l2, l3]) = input.first_chunk::<HEADER>() else {
            return Ok(Peek::Missing(0));
        };
        if major == 0 {
            let header = IceHeader::read(&[0, minor, 0, 0, l0, l1, l2, l3], self.little)?;
            debug_assert!(header.len <= ICE_LIMIT);
            return Ok(match header.len.saturating_sub(input.len()) {
                0 => Peek::Ice(header.len),
                missing => Peek::Missing(missing),
            });
        }
        if major != self.peer_opcode {
            return Err(ProtocolError::Major { major });
        }
        if !(minor::SEND..=minor::FIND).contains(&minor) {
            return Err(ProtocolError::Minor { minor });
        }
        let len = card32([l0, l1, l2, l3], self.little);
        let size = u64::from(len) + FRAME_HEADER as u64;
        let (Ok(len), Ok(whole), true) = (usize::try_from(len), usize::try_from(size), size <= self.limit)
        else {
            return Err(ProtocolError::OverLimit { size, limit: self.limit });
        };
        match (whole.saturating_sub(input.len()), input.get(HEADER..).and_then(<[u8]>::first_chunk)) {
            (0, Some(key)) => Ok(Peek::Dcop(Head { minor, key: u32::from_ne_bytes(*key), len })),
            (missing, _) => Ok(Peek::Missing(missing)),
        }
    }

    /// Takes one whole message from the front of the input, if it is there. ICE's own messages may come
    /// between those of DCOP at any time.
    ///
    /// # Errors
    /// As [`Framing::peek`].
    pub fn split(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, ProtocolError> {
        self.wanted = 0;
        Ok(match self.peek(input)? {
            Peek::Missing(missing) => {
                self.wanted = missing;
                None
            }
            Peek::Ice(len) => Some(Frame::Ice(input.split_to(len).freeze())),
            Peek::Dcop(Head { minor, key, len }) => {
                input.advance(FRAME_HEADER);
                Some(Frame::Dcop(Message { minor, key, payload: input.split_to(len).freeze() }))
            }
        })
    }

    /// Bytes missing from the message that the last [`Framing::split`] found begun; 0 if none.
    pub fn wanted(&self) -> usize {
        self.wanted
    }
}

/// Appends a header in this machine's byte order, and returns where it begins; [`set_length`] completes it if `len` was
/// not known.
#[inline]
pub fn put_message(out: &mut Vec<u8>, opcode: u8, minor: u8, key: u32, len: u32) -> usize {
    let start = out.len();
    let ([l0, l1, l2, l3], [k0, k1, k2, k3]) = (len.to_ne_bytes(), key.to_ne_bytes());
    out.extend_from_slice(&[opcode, minor, 0, 0, l0, l1, l2, l3, k0, k1, k2, k3]);
    start
}

/// Sets the length in the header that begins at `start`, in this machine's byte order.
#[inline]
pub fn set_length(out: &mut [u8], start: usize, len: u32) {
    if let Some(place) = out.get_mut(start + 4..).and_then(<[u8]>::first_chunk_mut) {
        *place = len.to_ne_bytes();
    }
}
