//! Fragments: joined when they come, made where a size is configured (CORBA 3.3 part 2, section 9.4.9).
//!
//! A fragment of GIOP 1.2 names its request, so several messages may be interleaved; one of 1.1 continues the
//! last message that was not complete. A large fragment is read where it will stay: the message so far is put
//! into a new buffer, the input becomes the room behind it, and when the bytes are here the two are one
//! again. Small fragments are copied. Which of the two costs less is decided by sizes, so that a peer cannot
//! have a long message copied again and again by short fragments.
//!
//! States: `assemblies` are the messages that have begun; `filling` is the fragment whose bytes come in now,
//! and always names an assembly. `begin_assembly` opens one, `begin_fragment` checks the next fragment and
//! starts to fill, `fill` moves bytes and hands the joined message on after the last. A fragment that
//! continues nothing is thrown away (`pass_over`): its message may have been refused or answered before.
//!
//! Bounds: the number of assemblies (`Limits::assemblies`), the bytes of all of them together (the limit of
//! one message, `charge`), and the time of each, counted from its first part. Bytes are charged when a
//! fragment is announced, memory is taken as they come.

use crate::cdr::Get;
use crate::frame::{self, HEADER, Header, MessageKind};
use crate::limits;
use crate::session::{Assembly, Filling, GiopSession};
use crate::violations::ProtocolError;
use bytes::{Buf, Bytes, BytesMut};
use everywire_model::{Completed, Failure, Initiator, Outcome, SendBuffer, Violation};
use std::collections::VecDeque;
use std::time::Instant;

/// Room beyond what is announced, so that a short last fragment is read behind the one before.
pub(crate) const SLACK: usize = 16 << 10;

/// Fragments are read where they stay from 32 KiB on; shorter ones are copied, since a copy of that size
/// costs less than a new buffer.
const READ_IN_PLACE: usize = 32 << 10;

/// Bytes of a fragment before its data: the header, and the request's number in GIOP 1.2. In GIOP 1.1 a
/// fragment names no request.
fn prefix(minor: u8) -> usize {
    if minor >= 2 { HEADER + 4 } else { HEADER }
}

impl GiopSession {
    /// Opens an assembly with the first part of a message, header included. The message is handed on when its
    /// last fragment has come.
    ///
    /// # Errors
    /// The same request is open already, too many messages are open, or they hold too many bytes.
    pub(crate) fn begin_assembly(
        &mut self,
        now: Instant,
        header: &Header,
        message: BytesMut,
    ) -> Result<(), Violation> {
        let id = match self.fragmented_id(header, &message) {
            Ok(id) => id,
            Err(wrong) => return Err(self.wrong(wrong)),
        };
        if self.assemblies.iter().any(|open| open.id == id && open.header.minor == header.minor) {
            return Err(self.wrong(ProtocolError::FragmentedTwice { id }));
        }
        let limit = self.limits.assemblies;
        if self.assemblies.len() >= limit {
            return Err(self.wrong(ProtocolError::Assemblies { limit }));
        }
        let size = message.len() as u64;
        self.charge(size, header, id)?;
        let due = now.checked_add(self.limits.time_for(size)).unwrap_or(now);
        // A short part would keep all of the input alive; a long one stays where it was read.
        let bytes = if message.len() < READ_IN_PLACE { BytesMut::from(&message[..]) } else { message };
        self.assemblies.push(Assembly { id, header: *header, bytes, began: now, due });
        Ok(())
    }

    /// Drops a request of which parts have come, as its caller withdraws it: the rest may never come. Java's ORB does so.
    pub(crate) fn drop_assembly(&mut self, id: u32, cancel: &Header) {
        let asks =
            |open: &Assembly| matches!(open.header.kind, MessageKind::Request | MessageKind::LocateRequest);
        let named = |open: &Assembly| open.id == id && open.header.minor == cancel.minor;
        let Some(at) = self.assemblies.iter().position(|open| asks(open) && named(open)) else { return };
        let dropped = self.assemblies.swap_remove(at);
        self.assembled = self.assembled.saturating_sub(dropped.bytes.len() as u64);
    }

    /// The number of the request that the first part belongs to; 0 before GIOP 1.2. In 1.2 every part but the
    /// last must be a multiple of 8 octets long, header included, so that alignment goes on undisturbed.
    fn fragmented_id(&self, header: &Header, message: &[u8]) -> Result<u32, ProtocolError> {
        if header.minor < 2 {
            return Ok(0);
        }
        if !header.len().is_multiple_of(8) {
            return Err(ProtocolError::FragmentLength { size: header.size });
        }
        Ok(Get { bytes: message, pos: HEADER, base: 0, little: header.little }.u32()?)
    }

    /// Takes the header of a fragment off the input, and its number. Returns whether to go on: `false` if
    /// these are not all here yet.
    ///
    /// # Errors
    /// The fragment does not fit its message, or would make it exceed the limit.
    pub(crate) fn begin_fragment(
        &mut self,
        now: Instant,
        header: &Header,
        input: &mut BytesMut,
    ) -> Result<bool, Violation> {
        let prefix = prefix(header.minor);
        if header.len() < prefix as u64 {
            return Err(self.wrong(ProtocolError::FragmentLength { size: header.size }));
        }
        let Some(seen) = input.get(..prefix) else {
            self.wait(now, input.len(), prefix)?;
            return Ok(false);
        };
        let id = match header.minor {
            1 => 0,
            _ => Get { bytes: seen, pos: HEADER, base: 0, little: header.little }.u32().unwrap_or(0),
        };
        let checked = self.check_fragment(header, id).map_err(|wrong| self.wrong(wrong))?;
        let Some((first, left)) = checked else {
            // Of a message that is finished, or of which the beginning was lost: nobody waits for it.
            self.pass_over(now, header.len(), None);
            return Ok(true);
        };
        self.charge(left as u64, &first, id)?;
        self.received += prefix as u64;
        self.due.stop();
        let time = |bytes: usize| self.limits.time_for(bytes as u64);
        let mut here = 0;
        let belongs = |open: &&mut Assembly| open.id == id && open.header.minor == header.minor;
        match self.assemblies.iter_mut().find(belongs) {
            Some(open) => {
                open.due = open.began.checked_add(time(open.bytes.len() + left)).unwrap_or(open.due);
                here = join(&mut open.bytes, input, prefix, left);
            }
            None => input.advance(prefix),
        }
        self.received += here as u64;
        self.filling = Some(Filling { id, minor: header.minor, left: left - here, more: header.more });
        Ok(true)
    }

    /// Header of the message that a fragment continues, and how many bytes it brings; nothing if it continues none.
    fn check_fragment(&self, header: &Header, id: u32) -> Result<Option<(Header, usize)>, ProtocolError> {
        // The number that stands for messages of GIOP 1.1 may be that of a request of GIOP 1.2.
        let belongs = |open: &&Assembly| open.id == id && open.header.minor == header.minor;
        let Some(open) = self.assemblies.iter().find(belongs) else { return Ok(None) };
        if open.header.little != header.little {
            return Err(ProtocolError::FragmentDiffers { id });
        }
        let size = header.size;
        if header.minor >= 2 && header.more && !header.len().is_multiple_of(8) {
            return Err(ProtocolError::FragmentLength { size });
        }
        let data = usize::try_from(header.len()).ok().and_then(|len| len.checked_sub(prefix(header.minor)));
        match data {
            Some(left) => Ok(Some((open.header, left))),
            None => Err(ProtocolError::FragmentLength { size }),
        }
    }

    /// Moves bytes of the fragment under way to their message; after the last fragment the message is handed
    /// on. Returns whether the input may hold another message: `false` if more bytes of this fragment are to
    /// come.
    pub(crate) fn fill(&mut self, input: &mut BytesMut) -> Result<bool, Violation> {
        let Some(filling) = &mut self.filling else { return Ok(true) };
        let belongs = |open: &Assembly| open.id == filling.id && open.header.minor == filling.minor;
        let Some(index) = self.assemblies.iter().position(belongs) else {
            // Every filling names an assembly; were it not so, its bytes would belong to nobody.
            self.filling = None;
            return Ok(true);
        };
        let Some(open) = self.assemblies.get_mut(index) else { return Ok(true) };
        let here = filling.left.min(input.len());
        if is_next(&open.bytes, input) {
            open.bytes.unsplit(input.split_to(here));
        } else if let Some(part) = input.get(..here) {
            open.bytes.extend_from_slice(part);
            input.advance(here);
        }
        filling.left -= here;
        self.received += here as u64;
        if filling.left > 0 {
            self.missing = make_room(&mut open.bytes, filling.left, input);
            return Ok(false);
        }
        let more = filling.more;
        self.filling = None;
        if !more {
            let done = self.assemblies.remove(index);
            self.assembled = self.assembled.saturating_sub(done.bytes.len() as u64);
            let header = Header { more: false, ..done.header };
            self.message_in(&header, done.bytes.freeze())?;
        }
        Ok(true)
    }

    /// Counts `bytes` more of open messages, before they are taken. Where the total exceeds the limit, the
    /// call that they belong to learns why, and the connection ends. `first` is the header of the message's
    /// first part.
    fn charge(&mut self, bytes: u64, first: &Header, id: u32) -> Result<(), Violation> {
        let limit = limits::largest(&self.limits);
        let size = self.assembled.saturating_add(bytes);
        if size <= limit {
            self.assembled = size;
            return Ok(());
        }
        match first.kind {
            MessageKind::Reply if self.settle(id) => {
                let failure =
                    Failure::over_limit(Initiator::Here, "bytes in a fragmented GIOP reply", size, limit)
                        .with_completed(Completed::Yes)
                        .with_hint("raise the message limit of this side, or ask for less at a time");
                self.reply(id, Outcome::Failed(failure));
            }
            MessageKind::Request if first.minor >= 2 => {
                let failure =
                    Failure::over_limit(Initiator::Peer, "bytes in a fragmented GIOP request", size, limit)
                        .with_hint("raise the server's message limit, or send less at a time");
                self.refuse(id, first.minor, &failure);
            }
            _ => {}
        }
        Err(self.wrong(ProtocolError::AssembledBytes { size, limit }))
    }

    /// Appends a whole message to the output, in fragments of the configured size where it is larger.
    /// Messages of GIOP 1.0 and 1.1 stay whole, since JacORB, for one, cannot join those of 1.1. Every part
    /// is a multiple of 8 octets long but the last. `turned`: what stands in it is in the other byte order, its header
    /// not yet. What is long enough to be shared is cut and not copied.
    pub(crate) fn split(&mut self, minor: u8, kind: MessageKind, mut whole: SendBuffer, turned: bool) {
        let unit = (self.fragment & !7).max(4 * HEADER - 8);
        let len = whole.len();
        let splits = minor >= 2 && len > unit && matches!(kind, MessageKind::Request | MessageKind::Reply);
        // The number stands behind the header, in the octets that were written and not shared.
        let id: Option<[u8; 4]> = whole.flat().get(HEADER..HEADER + 4).and_then(|id| id.try_into().ok());
        let header = self.out.flat().len();
        let Some(id) = id.filter(|_| splits) else {
            self.out.append(&mut whole);
            if turned {
                frame::turn(self.out.flat(), header);
            }
            return;
        };
        let mut rest = VecDeque::from(whole.into_parts());
        self.hand_over(&mut rest, HEADER);
        self.end_part(header, unit, true, turned);
        self.hand_over(&mut rest, unit - HEADER);
        let mut left = len - unit;
        while left > 0 {
            let data = left.min(unit - prefix(minor));
            left -= data;
            let out = self.out.flat();
            let header = out.len();
            frame::put(out, minor, MessageKind::Fragment);
            out.extend_from_slice(&id);
            self.end_part(header, prefix(minor) + data, left > 0, turned);
            self.hand_over(&mut rest, data);
        }
    }

    /// Moves so many bytes from the front of `parts` to the output.
    fn hand_over(&mut self, parts: &mut VecDeque<Bytes>, mut count: usize) {
        while let Some(part) = parts.front_mut().filter(|_| count > 0) {
            let now = part.split_to(part.len().min(count));
            count -= now.len();
            if part.is_empty() {
                parts.pop_front();
            }
            self.out.splice(now);
        }
    }

    /// Completes the header of a part that has `len` octets, header included.
    fn end_part(&mut self, header: usize, len: usize, more: bool, turned: bool) {
        let out = self.out.flat();
        frame::set_size(out, header, size_of_part(len));
        if more {
            frame::set_more(out, header);
        }
        if turned {
            frame::turn(out, header);
        }
    }
}

/// Whether the input begins in memory where the message so far ends: then joining the two is no copy.
fn is_next(bytes: &BytesMut, input: &BytesMut) -> bool {
    !bytes.is_empty() && bytes.as_ptr().wrapping_add(bytes.len()) == input.as_ptr()
}

/// Takes off the beginning of a fragment. Where it stands right behind its message, the gap is closed by moving the shorter
/// of the two. How many of the `left` bytes of the fragment were taken with it.
fn join(bytes: &mut BytesMut, input: &mut BytesMut, prefix: usize, left: usize) -> usize {
    if !is_next(bytes, input) {
        input.advance(prefix);
        return 0;
    }
    let len = bytes.len();
    if len <= left {
        bytes.unsplit(input.split_to(prefix));
        bytes.copy_within(..len, prefix);
        bytes.advance(prefix);
        return 0;
    }
    let here = left.min(input.len() - prefix);
    bytes.unsplit(input.split_to(prefix + here));
    bytes.copy_within(len + prefix.., len);
    bytes.truncate(len + here);
    here
}

/// Makes room for what is missing of a fragment, where all of the input is taken; how many bytes are to be read next.
///
/// Memory is taken as bytes come, not as they are announced: no more than eight times what is here, beyond the first
/// [`limits::CHUNK`].
fn make_room(bytes: &mut BytesMut, left: usize, input: &mut BytesMut) -> usize {
    let wanted = left.min(limits::CHUNK.max(7 * bytes.len()));
    // Reading behind the message costs a copy of it where there is no room yet.
    if !input.is_empty() || wanted < READ_IN_PLACE || bytes.len() / 4 > wanted {
        return left.min(limits::CHUNK);
    }
    if is_next(bytes, input) && input.capacity() >= wanted {
        return wanted;
    }
    bytes.reserve(wanted + SLACK);
    *input = bytes.split_off(bytes.len());
    wanted
}

/// What the header of a part says: its octets without the header.
fn size_of_part(len: usize) -> u32 {
    u32::try_from(len - HEADER).unwrap_or(u32::MAX)
}
