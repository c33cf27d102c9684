//! Callees that die: the server sends an empty `DCOPReplyFailed` for each call that they owed, and does not say which.
//!
//! So this side counts these messages, and asks the server about each application that owes an answer whether it is still
//! registered. The calls to those that are not fail, as far as they were sent before the question. What the count tells beyond that
//! were calls to an application that died and has come back under its name: if only one of those that are registered owes
//! answers, its oldest calls were meant; if there are several, nobody can say whose, and all of their calls end as calls that may have
//! run. A caller that waits for ever would be worse.
//!
//! Calls that were withdrawn are counted as well: the server knows nothing of that, and tells of their end as of any other.
//!
//! All this costs nothing as long as nobody dies. To be notified of everybody who comes and goes would wake every client at every
//! start of a program.
//!
//! States: *quiet* (no round), *asking* (a question is open for each application of the round). Invariant: outside of a round nothing
//! is unexplained, so each message about a death has ended a call, or had none to end.

use crate::address::SERVER;
use crate::replies::died;
use crate::session::{CallPurpose, DcopSession, Pending, ProbeRound};
use crate::strings::put_name;
use bytes::Bytes;
use everywire_model::Outcome;

impl Pending {
    /// The application that owes an answer to somebody here. Nothing for questions of this side's own, and
    /// for calls to the server.
    fn debtor(&self) -> Option<&Bytes> {
        let owed = self.asks.has_outcome() && self.way.app != SERVER;
        owed.then_some(&self.way.app)
    }
}

impl DcopSession {
    /// An application died that owed this side an answer.
    pub(crate) fn somebody_died(&mut self) {
        self.deaths += 1;
        match &mut self.round {
            Some(round) => round.again = true,
            None => self.ask_who_died(),
        }
    }

    /// Begins a round, or forgets the deaths if nobody owes anything.
    fn ask_who_died(&mut self) {
        let owing = self.pending.values().chain(self.withdrawn.values()).filter_map(Pending::debtor);
        let mut apps: Vec<Bytes> = owing.cloned().collect();
        apps.sort_unstable();
        apps.dedup();
        if apps.is_empty() {
            self.deaths = 0;
            return;
        }
        for app in &apps {
            let mut arguments = Vec::new();
            put_name(&mut arguments, app);
            self.ask("isApplicationRegistered(QCString)", &arguments, CallPurpose::Alive(app.clone()));
        }
        self.round = Some(ProbeRound { left: apps.len(), again: false, alive: Vec::new() });
    }

    /// Keys of the open calls to an application that were sent before the one of that number, the oldest
    /// first. The number compares ages across the wrap of the count.
    fn calls_to(&self, app: &[u8], before: u32) -> Vec<u32> {
        let age = |pending: &Pending| before.wrapping_sub(pending.number).wrapping_sub(1);
        let to = self.pending.iter().chain(&self.withdrawn).filter(|(_, pending)| {
            pending.debtor().is_some_and(|debtor| debtor == app) && age(pending) < u32::MAX / 2
        });
        let mut found: Vec<(u32, u32)> = to.map(|(key, pending)| (age(pending), *key)).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, key)| key).collect()
    }

    /// Ends the oldest calls to an application, of those that were sent before that number: all of them, or
    /// so many. `most` counts calls that were withdrawn as well.
    fn fail_dead(&mut self, app: &[u8], before: u32, most: usize) {
        for key in self.calls_to(app, before).into_iter().take(most) {
            self.deaths = self.deaths.saturating_sub(1);
            match self.pending.remove(&key) {
                Some(pending) => self.reply(pending.id(key), Outcome::Failed(died(app))),
                None => drop(self.withdrawn.remove(&key)),
            }
        }
    }

    /// The server answers whether an application is there; `asked` is the number of that question. When the
    /// last answer of the round is here, deaths that it does not explain begin another round, or end the
    /// oldest calls of those who are there.
    pub(crate) fn told_alive(&mut self, app: &Bytes, alive: bool, asked: u32) {
        if !alive {
            self.fail_dead(app, asked, usize::MAX);
        }
        let Some(round) = &mut self.round else { return };
        if alive {
            round.alive.push((app.clone(), asked));
        }
        round.left = round.left.saturating_sub(1);
        if round.left > 0 {
            return;
        }
        let Some(ProbeRound { again, alive, .. }) = self.round.take() else { return };
        if self.deaths == 0 {
            return;
        }
        if again {
            // Somebody may have died after the question about it was answered.
            return self.ask_who_died();
        }
        let most = if alive.len() == 1 { self.deaths } else { usize::MAX };
        for (app, asked) in alive {
            self.fail_dead(&app, asked, most);
        }
        self.deaths = 0;
    }
}
