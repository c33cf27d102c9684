//! From the preamble to its acknowledgement: what protects the connection, and who answers at all.

use super::{Connecting, Phase, found};
use crate::framing::records::{RecordKind, put_text};
use crate::framing::session::{may_be_records, unprotected};
use crate::violations::ProtocolError;
use everywire_model::{Completed, Event, Failure, Initiator, Kind, Peer};
use std::time::Instant;

impl Connecting {
    /// Sends the preamble, up to the first record that has to be answered.
    pub(super) fn introduce(&mut self, now: Instant) {
        self.opening_due = now.checked_add(self.channel.settings.quotas.open_timeout);
        let out = self.channel.out.flat();
        self.preamble.put(out);
        self.phase = match self.channel.settings.transport_security.upgrade() {
            Some(name) => {
                put_text(RecordKind::UpgradeRequest, name.as_bytes(), out);
                Phase::Upgrading
            }
            None => {
                out.push(RecordKind::PreambleEnd as u8);
                Phase::Opening
            }
        };
    }

    /// Whether whoever answers speaks this protocol; `false`: too little has come to say.
    pub(super) fn check_protocol(&mut self, input: &[u8]) -> Result<bool, ProtocolError> {
        may_be_records(input).inspect_err(|breach| {
            let failure = Failure::new(Kind::WrongWire, Initiator::Peer, breach.to_string());
            let hint = "the scheme of the address and what listens at its port differ";
            self.refusal = Some(failure.with_completed(Completed::No).with_hint(hint));
        })
    }

    /// The upgrade was granted: the layer begins right behind its answer. `rest` bytes have come behind
    /// that.
    pub(super) fn upgrade(&mut self, rest: usize) -> Result<bool, ProtocolError> {
        let layer = self.channel.settings.client_layer().map_err(|failure| self.refused(failure))?;
        // The kernel's credentials take no bytes.
        if layer.is_plain() {
            self.finish_preamble()?;
            return Ok(true);
        }
        // This side speaks first: whoever put bytes there is not protected by what follows.
        if rest > 0 {
            return Err(ProtocolError::EarlyBytes { bytes: rest });
        }
        self.channel.layer = layer;
        self.phase = Phase::Handshaking;
        Ok(false)
    }

    /// The preamble ends, inside the layer if there is one.
    pub(super) fn finish_preamble(&mut self) -> Result<(), ProtocolError> {
        self.phase = Phase::Opening;
        self.channel.put(|out| out.push(RecordKind::PreambleEnd as u8)).map_err(unprotected)
    }

    /// Calls may go.
    pub(super) fn acknowledged(&mut self, now: Instant) -> Result<(), ProtocolError> {
        self.phase = Phase::Open;
        self.opening_due = None;
        // Their messages leave now with `open`; the exchange waits for the answers.
        self.held = Vec::new();
        if !self.admitted {
            self.admitted = true;
            self.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), self.authentication)));
        }
        for id in std::mem::take(&mut self.probes) {
            self.events.push_back(found(id));
        }
        self.channel.open().map_err(unprotected)?;
        self.next_turn(now);
        Ok(())
    }
}
