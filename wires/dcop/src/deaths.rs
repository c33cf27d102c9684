//! Callees that die: the server tells with an empty `DCOPReplyFailed` for each call they owed, and does not say which.
//!
//! So the server is asked for each application that owes this side an answer whether it is still registered, and the
//! calls to those that are not, sent before the question, fail. This costs nothing as long as nobody dies; to be notified
//! of everybody who comes and goes would wake every client at every start of a program. An application that dies and
//! comes back under its name before the question is answered cannot be told from one that lives: its calls end at their
//! deadline. (To fail a call for each such message instead would hit others when the call that died was withdrawn.)

use crate::address::SERVER;
use crate::replies::died;
use crate::session::{Asks, DcopSession, Pending};
use crate::strings::put_name;
use bytes::Bytes;
use everywire_model::Outcome;

/// Questions that are open.
pub(crate) struct Round {
    left: usize,
    /// Another death was told meanwhile.
    again: bool,
}

impl DcopSession {
    /// An application died that owed this side an answer.
    pub(crate) fn somebody_died(&mut self) {
        if let Some(round) = &mut self.round {
            round.again = true;
            return;
        }
        let mut apps: Vec<Bytes> = Vec::new();
        for pending in self.pending.values() {
            if matches!(pending.asks, Asks::Call | Asks::Probe)
                && pending.way.app != SERVER
                && !apps.contains(&pending.way.app)
            {
                apps.push(pending.way.app.clone());
            }
        }
        if apps.is_empty() {
            return;
        }
        apps.sort();
        for app in &apps {
            let mut arguments = Vec::new();
            put_name(&mut arguments, app);
            self.ask("isApplicationRegistered(QCString)", &arguments, Asks::Alive(app.clone()));
        }
        self.round = Some(Round { left: apps.len(), again: false });
    }

    /// Keys of the open calls to an application that were sent before the one of that number, the oldest first.
    fn calls_to(&self, app: &[u8], before: u32) -> Vec<u32> {
        let age = |pending: &Pending| before.wrapping_sub(pending.number).wrapping_sub(1);
        let to = self.pending.iter().filter(|(_, pending)| {
            matches!(pending.asks, Asks::Call | Asks::Probe)
                && pending.way.app == app
                && age(pending) < u32::MAX / 2
        });
        let mut found: Vec<(u32, u32)> = to.map(|(key, pending)| (age(pending), *key)).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, key)| key).collect()
    }

    fn fail_dead(&mut self, key: u32, app: &[u8]) {
        if let Some(pending) = self.pending.remove(&key) {
            self.reply(pending.id(key), Outcome::Failed(died(app)));
        }
    }

    /// The server answers whether an application is there.
    pub(crate) fn told_alive(&mut self, app: &[u8], alive: bool, asked: u32) {
        if !alive {
            for key in self.calls_to(app, asked) {
                self.fail_dead(key, app);
            }
        }
        let Some(round) = &mut self.round else { return };
        round.left = round.left.saturating_sub(1);
        if round.left == 0 {
            let again = round.again;
            self.round = None;
            if again {
                self.somebody_died();
            }
        }
    }
}
