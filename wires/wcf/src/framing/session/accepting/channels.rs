//! The channels of one connection, one after the other: how each ends, and whose calls are whose.

use super::{Accepting, EndRecords, Phase};
use crate::framing::preamble::{Mode, PreambleReader};
use crate::framing::records::RecordKind;
use everywire_model::{Event, SendBuffer};

impl Accepting {
    /// When the peer says no more and nobody waits for an answer, neither does this side.
    #[inline]
    pub(super) fn settle(&mut self) {
        let Phase::Open(EndRecords { peer: true, here }) = self.phase else { return };
        let waits = self.exchange.as_ref().is_some_and(|exchange| exchange.outstanding() > 0);
        if waits && !here {
            return;
        }
        if !here {
            // If it cannot be protected any more the connection ends here all the same.
            self.ending |= self.channel.put(|out| out.push(RecordKind::End as u8)).is_err();
        }
        self.between();
    }

    /// Both sides have ended the channel. The connection may carry another one (MC-NMF 3.1.1.2), but not a protected one: then
    /// the layer ended too.
    pub(super) fn between(&mut self) {
        self.channel.shut();
        self.held.leave();
        if !self.channel.layer.is_plain() {
            // TLS ends with close_notify, and the connection with it. The goodbye is a courtesy.
            self.channel.layer.close();
            let _ = self.channel.layer.send(&mut SendBuffer::new(), &mut self.channel.out);
            self.phase = Phase::Over;
            self.ending = true;
            return;
        }
        self.phase = Phase::Preamble(PreambleReader::default());
        self.upgraded = None;
        let session = self.preamble.take().is_some_and(|preamble| preamble.mode != Mode::SingletonUnsized);
        // Streamed calls know nothing of each other, so what was learnt of their messages stays true.
        if session {
            self.retire();
        }
    }

    /// Forgets the exchange, but for what it has to tell.
    pub(super) fn retire(&mut self) {
        // Calls that are still served keep their numbers, and their answers find no exchange.
        let Some(mut exchange) = self.exchange.take() else { return };
        while let Some(mut event) = exchange.poll() {
            self.renumber(&mut event);
            self.events.push_back(event);
        }
        self.base += self.greatest + 1;
        self.greatest = 0;
    }

    /// Gives an event the number by which this connection knows its call.
    #[inline]
    pub(super) fn renumber(&mut self, event: &mut Event) {
        let id = match event {
            Event::Call(incoming) => &mut incoming.id,
            Event::Reply { id, .. } => {
                self.callbacks.retain(|known| known != id);
                id
            }
            Event::Probe { id, .. } | Event::Cancelled(id) => id,
            _ => return,
        };
        self.greatest = self.greatest.max(id.0);
        id.0 += self.base;
    }
}
