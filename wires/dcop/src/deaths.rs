//! Callees that die: the server tells with an empty `DCOPReplyFailed` for each call they owed, and does not say which.
//!
//! So the server is asked for each application that owes this side an answer whether it is still registered, and the
//! calls to those that are not, sent before the question, fail. This costs nothing as long as nobody dies; to be notified
//! of everybody who comes and goes would wake every client at every start of a program. An application that dies and
//! comes back under its name before the question is answered cannot be told from one that lives: its calls end at their
//! deadline. (To fail a call for each such message instead would hit others when the call that died was withdrawn.)

use crate::address::SERVER;
use crate::replies::died;
use crate::session::{Asks, DcopSession};
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
            self.ask(b"isApplicationRegistered(QCString)", &arguments, Asks::Alive(app.clone()));
        }
        self.round = Some(Round { left: apps.len(), again: false });
    }

    /// Keys of the open calls to an application that were sent before a key, the oldest first.
    fn calls_to(&self, app: &[u8], before: u32) -> Vec<u32> {
        let age = |key: u32| before.wrapping_sub(key).wrapping_sub(1);
        let to = self.pending.iter().filter(|(key, pending)| {
            matches!(pending.asks, Asks::Call | Asks::Probe)
                && pending.way.app == app
                && age(**key) < u32::MAX / 2
        });
        let mut keys: Vec<u32> = to.map(|(key, _)| *key).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(age(*key)));
        keys
    }

    fn fail_dead(&mut self, key: u32, app: &[u8]) {
        if self.pending.remove(&key).is_some() {
            self.reply(key, Outcome::Failed(died(app)));
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
