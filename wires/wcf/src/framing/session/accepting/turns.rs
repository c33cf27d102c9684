//! Who goes on, and who waits for its turn, where a place bounds what it serves at once.

use super::{Accepting, EndRecords, Phase};
use crate::framing::preamble::Mode;
use crate::framing::records::RecordKind;
use crate::framing::session::{Side, dialect, unprotected};
use crate::settings::Security;
use crate::soap::{self, SoapChannel};
use crate::violations::ProtocolError;
use everywire_model::{Answer, Event, Expects, Failure, Initiator, Kind, Peer};
use std::time::Instant;

/// Calls of one connection that wait, while it cannot stop to read: it waits for the answer to a callback of its own. Further ones
/// are refused, or end the connection where nobody would be told so.
const MAX_WAITING: usize = 256;

impl Accepting {
    /// The preamble is over: calls may come.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), ProtocolError> {
        let demanded = self.channel.settings.transport_security;
        let known = self.config.peer.credentials.is_some();
        if let Some(upgrade) = demanded.upgrade()
            && self.upgraded.is_none()
            // Without the upgrade the kernel tells the same.
            && !(demanded == Security::Unix && known)
        {
            return Err(ProtocolError::SecurityRequired { upgrade });
        }
        // Streamed calls are counted one by one as calls, and not as sessions.
        self.last = now;
        if self.mode() != Mode::SingletonUnsized && !self.held.enter()? {
            self.phase = Phase::Waiting;
            self.opening_due = now.checked_add(self.channel.settings.quotas.open_timeout);
            return Ok(());
        }
        self.begin()
    }

    /// The session begins.
    /// Opens the exchange, tells who is there, and acknowledges the preamble.
    fn begin(&mut self) -> Result<(), ProtocolError> {
        let Some(dialect) = self.preamble.as_ref().and_then(|preamble| dialect(preamble.encoding)) else {
            return Ok(());
        };
        let known = self.config.peer.credentials.is_some();
        // A streamed connection may change its encoding from call to call.
        if self.spoken != Some(dialect) {
            self.retire();
        }
        self.spoken = Some(dialect);
        let (config, settings) = (&self.config, &self.channel.settings);
        let exchange = self
            .exchange
            .get_or_insert_with(|| SoapChannel::new(dialect, config, settings, soap::Side::Server));
        if !settings.username {
            // Where each request says who asks, nobody listens before the first that was believed.
            exchange.opened(self.key.clone());
        }
        (self.opening_due, self.enveloped) = (None, false);
        self.phase = Phase::Open(EndRecords { peer: false, here: self.mode() == Mode::Simplex });
        if !self.admitted {
            self.admitted = true;
            let default = if known { "unix credentials" } else { "none" };
            let peer = Peer::admitted(self.config.peer.clone(), self.upgraded.unwrap_or(default));
            let peer = match self.channel.layer.account() {
                Some(account) => peer.with_account(account),
                None => peer,
            };
            self.events.push_back(Event::Ready(peer));
        }
        self.channel.open().map_err(unprotected)?;
        if self.mode() != Mode::Simplex {
            self.channel.put(|out| out.push(RecordKind::PreambleAck as u8)).map_err(unprotected)?;
        }
        Ok(())
    }

    /// A session that waited begins, if its turn has come, with what came meanwhile.
    #[cold]
    pub(super) fn resume(&mut self) -> Result<(), ProtocolError> {
        if !self.held.enter()? {
            return Ok(());
        }
        self.begin()?;
        let mut early = std::mem::take(&mut self.early);
        self.last = Instant::now();
        let result = self.take(self.last, &mut early);
        self.early = early;
        result
    }

    /// What does not come from the exchange as it is.
    pub(super) fn poll_apart(&mut self) -> Option<Event> {
        if self.phase == Phase::Waiting
            && let Err(breach) = self.resume()
        {
            self.doomed = Some(breach);
        }
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        // Then `poll` takes events from the exchange itself.
        if !self.held.counts_calls() {
            return None;
        }
        if let Err(breach) = self.count_calls() {
            self.doomed = Some(breach);
        }
        self.events.pop_front().or_else(|| self.held.next_call(&mut self.waiting))
    }

    /// Holds calls back beyond those that the place allows for, and what comes behind them.
    pub(super) fn count_calls(&mut self) -> Result<(), ProtocolError> {
        while let Some(mut event) = self.exchange.as_mut().and_then(SoapChannel::poll) {
            // Without a callback under way nothing is read while calls wait: then one read bounds them.
            if let Event::Call(call) = &event
                && self.waiting.len() >= MAX_WAITING
                && !self.callbacks.is_empty()
            {
                if call.expects == Expects::Nothing {
                    // Nobody would hear that it was not served.
                    return Err(ProtocolError::Waiting { limit: MAX_WAITING });
                }
                let what = format!("more than {MAX_WAITING} calls of one connection wait");
                let busy = Failure::new(Kind::Busy, Initiator::Here, what);
                if let Some(exchange) = &mut self.exchange {
                    // That it cannot be told is no reason to serve it.
                    let _ = exchange.answer(call.id, Answer::Failed(&busy), &mut self.channel.payload);
                }
                self.send_payload(self.mode()).map_err(unprotected)?;
                continue;
            }
            self.renumber(&mut event);
            if matches!(event, Event::Call(_)) {
                self.waiting.push_back(event);
            } else {
                self.events.push_back(event);
            }
        }
        Ok(())
    }
}
