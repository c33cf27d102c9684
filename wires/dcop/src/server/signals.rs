//! Signal connections: who wants which signal of whom, delivered to which function of which object.
//!
//! Rules are found by the signal's signature, in KDE's spelling, so that programs of both kinds hear each
//! other. Each rule has a receiver, and a *holder* if it is volatile: the connection that had the sender's id
//! when the rule was made. It ends with either. `parts` says for each connection which signals have rules of
//! it, so that one that leaves costs a look at its own rules only.
//!
//! Invariants: a rule is counted in `count` and `bytes`, in its receiver's part, and in the parts of its one
//! or two ends; `end` is the only place that takes it out of all. Rules are bounded for each receiver and in
//! all, by number and by the bytes of their names (`Settings`).

use super::Settings;
use super::fields::{Text, normalized};
use super::peers::{Outbox, Peers, Slot};
use crate::address::SERVER;
use crate::ice::minor;
use crate::limits::{NAME, NO_TREE};
use crate::strings::{put_len, put_name, put_nullable};
use bytes::Bytes;
use everywire_idl::kidl::types;
use everywire_model::send_buffer::SPLICE;
use std::borrow::Cow;
use std::collections::HashMap;

/// One signal connection, apart from the signal.
#[derive(Debug)]
struct Rule {
    /// Id of the application that is to emit it; empty for any.
    sender: Vec<u8>,
    /// Object that is to emit it; empty for any.
    object: Vec<u8>,
    /// The connection that had the id when this was made: the rule ends with it.
    holder: Option<Slot>,
    /// Who gets the signal.
    receiver: Slot,
    /// Object that receives it, as written on the wire and as read.
    target: (Vec<u8>, Vec<u8>),
    /// Function that receives it, likewise.
    function: (Vec<u8>, Vec<u8>),
    /// What it is counted as, in bytes.
    bytes: usize,
}

/// A wish for a signal.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignalPattern<'a> {
    /// The application that emits; empty: any.
    pub(super) sender: Text<'a>,
    /// Its object; empty: any.
    pub(super) object: Text<'a>,
    /// The signal's signature.
    pub(super) signal: Text<'a>,
    /// The receiver's object.
    pub(super) target: Text<'a>,
    /// The receiver's function.
    pub(super) function: Text<'a>,
}

impl SignalPattern<'_> {
    /// Bytes of the names; `None` if one is too long.
    fn bytes(&self) -> Option<usize> {
        let names = [self.sender, self.object, self.signal, self.target, self.function].map(Text::bytes);
        names.iter().all(|name| name.len() <= NAME).then(|| names.iter().map(|name| name.len()).sum())
    }
}

/// All signal connections.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// By the signal's signature.
    rules: HashMap<Vec<u8>, Vec<Rule>>,
    /// What each connection has to do with rules: nobody else's are looked at when it leaves.
    parts: HashMap<Slot, Part>,
    /// Rules of all, and the bytes in them.
    count: usize,
    bytes: usize,
}

/// What a connection has to do with rules.
#[derive(Debug, Default)]
struct Part {
    /// Rules by which it receives, and the bytes in them.
    receives: usize,
    bytes: usize,
    /// For each signal, the rules that end with it.
    signals: HashMap<Vec<u8>, usize>,
}

impl Signals {
    /// How many there are, and how many have to do with them.
    pub(super) fn len(&self) -> usize {
        self.count + self.parts.len()
    }

    /// Makes a connection; `holder` as for a rule. `false` if the function cannot take the signal's
    /// arguments, a name is too long, or there are too many.
    pub(super) fn connect(
        &mut self,
        receiver: Slot,
        wish: &SignalPattern<'_>,
        holder: Option<Slot>,
        limits: &Settings,
    ) -> bool {
        let signal = spelled(wish.signal.bytes());
        let Some(bytes) = wish.bytes().filter(|_| fits(&signal, &spelled(wish.function.bytes()))) else {
            return false;
        };
        let (held, held_bytes) = self.parts.get(&receiver).map_or((0, 0), |part| (part.receives, part.bytes));
        if held >= limits.signals
            || self.count >= limits.all_signals
            || held_bytes + bytes > limits.signal_bytes
            || self.bytes + bytes > limits.all_signal_bytes
        {
            return false;
        }
        let mut target = Vec::new();
        put_nullable(&mut target, wish.target.bytes());
        if wish.target.bytes().is_empty() && wish.target.raw().len() > 4 {
            target.clear();
            put_name(&mut target, b"");
        }
        let mut function = Vec::new();
        put_name(&mut function, &normalized(wish.function.bytes()));
        self.rules.entry(signal.to_vec()).or_default().push(Rule {
            sender: wish.sender.bytes().to_vec(),
            object: wish.object.bytes().to_vec(),
            holder,
            receiver,
            target: (target, wish.target.bytes().to_vec()),
            function: (function, wish.function.bytes().to_vec()),
            bytes,
        });
        let part = self.parts.entry(receiver).or_default();
        part.receives += 1;
        part.bytes += bytes;
        self.count += 1;
        self.bytes += bytes;
        for slot in ends(receiver, holder) {
            let part = self.parts.entry(slot).or_default();
            match part.signals.get_mut(&*signal) {
                Some(rules) => *rules += 1,
                None => drop(part.signals.insert(signal.to_vec(), 1)),
            }
        }
        true
    }

    /// Ends those rules for a signal that a connection has to do with and `ends_by` names; how many.
    fn end(&mut self, slot: Slot, signal: &[u8], ends_by: impl Fn(&Rule) -> bool) -> usize {
        let Self { rules, parts, count, bytes } = self;
        if !parts.get(&slot).is_some_and(|part| part.signals.contains_key(signal)) {
            return 0;
        }
        let Some(held) = rules.get_mut(signal) else { return 0 };
        let before = held.len();
        held.retain(|rule| {
            let stays = (rule.receiver != slot && rule.holder != Some(slot)) || !ends_by(rule);
            if !stays {
                *count -= 1;
                *bytes -= rule.bytes;
                release(parts, rule, signal);
            }
            stays
        });
        let ended = before - held.len();
        if held.is_empty() {
            rules.remove(signal);
        }
        ended
    }

    /// Ends connections of a receiver; empty parts of the wish stand for any, apart from sender and signal. Says whether
    /// there were any.
    pub(super) fn disconnect(&mut self, receiver: Slot, wish: &SignalPattern<'_>, peers: &Peers) -> bool {
        if wish.sender.bytes().is_empty() && wish.signal.bytes().is_empty() {
            self.forget(receiver, wish.target.bytes());
            return true;
        }
        let any_or = |wanted: Text<'_>, held: &[u8]| wanted.bytes().is_empty() || wanted.bytes() == held;
        let function = spelled(wish.function.bytes());
        let ended = self.end(receiver, &spelled(wish.signal.bytes()), |rule| {
            let sender = match rule.holder {
                Some(holder) => peers.get(holder).map(|peer| peer.name.as_slice()).unwrap_or_default(),
                None => rule.sender.as_slice(),
            };
            rule.receiver == receiver
                && sender == wish.sender.bytes()
                && any_or(wish.object, &rule.object)
                && any_or(wish.target, &rule.target.1)
                && (function.is_empty() || function == spelled(&rule.function.1))
        });
        ended > 0
    }

    /// Ends everything that a connection receives, or that ends with it; only what has to do with `object`, if that is
    /// not empty.
    pub(super) fn forget(&mut self, slot: Slot, object: &[u8]) {
        let Some(part) = self.parts.get(&slot) else { return };
        let signals: Vec<Vec<u8>> = part.signals.keys().cloned().collect();
        for signal in signals {
            self.end(slot, &signal, |rule| {
                let (receives, emits) = (rule.receiver == slot, rule.holder == Some(slot));
                let other = (receives && rule.target.1 != object) || (emits && rule.object != object);
                object.is_empty() || !other
            });
        }
    }

    /// Delivers a signal: `SIGNATURE` or `OBJECT#SIGNATURE`. `emitter` is a connection, or the server.
    /// Whose queue has no room is left out.
    pub(super) fn emit(
        &self,
        emitter: Option<(Slot, &[u8])>,
        signal: &[u8],
        data: &[u8],
        peers: &mut Peers,
        post: &mut Outbox,
    ) {
        let mut parts = signal.splitn(2, |byte| *byte == b'#');
        let first = parts.next().unwrap_or_default();
        let (object, signal) = parts.next().map_or((&[][..], first), |second| (first, second));
        let Some(rules) = self.rules.get(&*spelled(signal)) else { return };
        let shared = (data.len() >= SPLICE).then(|| Bytes::copy_from_slice(data));
        let (slot, name) = emitter.map_or((None, SERVER), |(slot, name)| (Some(slot), name));
        for rule in rules {
            let from = match rule.holder {
                Some(holder) => slot == Some(holder),
                None => rule.sender.is_empty() || rule.sender == name,
            };
            if !from || !(rule.object.is_empty() || rule.object == object) {
                continue;
            }
            let Some(peer) = peers.get_mut(rule.receiver) else { continue };
            if !post.has_room(peer, data.len()) {
                continue;
            }
            // The name is written while the queue that belongs to it is, too.
            let to = std::mem::take(&mut peer.name);
            let write = |out: &mut Vec<u8>| {
                put_nullable(out, name);
                // An emitter's own name is taken out of the table while it emits.
                put_nullable(out, if slot == Some(rule.receiver) { name } else { &to });
                out.extend_from_slice(&rule.target.0);
                out.extend_from_slice(&rule.function.0);
                put_len(out, data.len());
                if shared.is_none() {
                    out.extend_from_slice(data);
                }
            };
            post.message_and(rule.receiver, peer, minor::SEND, NO_TREE, write, shared.clone());
            peer.name = to;
        }
    }
}

/// A signature as KDE spells it: programs of Trinity and of KDE hear one another's signals.
fn spelled(signature: &[u8]) -> Cow<'_, [u8]> {
    let text = || std::str::from_utf8(signature).ok().filter(|text| types::is_of_trinity(text));
    // Most have nothing of Trinity's.
    match signature.windows(2).any(|pair| pair == b"TQ").then(text).flatten() {
        Some(text) => Cow::Owned(types::of_kde(text).into_bytes()),
        None => Cow::Borrowed(signature),
    }
}

/// The connections with which a rule ends, each once.
fn ends(receiver: Slot, holder: Option<Slot>) -> impl Iterator<Item = Slot> {
    std::iter::once(receiver).chain(holder.filter(|holder| *holder != receiver))
}

/// Takes a rule for a signal off what its ends have.
fn release(parts: &mut HashMap<Slot, Part>, rule: &Rule, signal: &[u8]) {
    for slot in ends(rule.receiver, rule.holder) {
        let Some(part) = parts.get_mut(&slot) else { continue };
        if slot == rule.receiver {
            part.receives -= 1;
            part.bytes -= rule.bytes;
        }
        if let Some(rules) = part.signals.get_mut(signal) {
            *rules -= 1;
            if *rules == 0 {
                part.signals.remove(signal);
            }
        }
        if part.signals.is_empty() {
            parts.remove(&slot);
        }
    }
}

/// Whether a function can take a signal: its arguments are the signal's, or the first of them.
fn fits(signal: &[u8], function: &[u8]) -> bool {
    let (Some(signal), Some(function)) = (arguments(signal), arguments(function)) else { return false };
    match signal.strip_prefix(function) {
        Some(rest) => rest.is_empty() || function.is_empty() || rest.starts_with(b","),
        None => false,
    }
}

/// What stands between the first parentheses.
fn arguments(signature: &[u8]) -> Option<&[u8]> {
    let open = signature.iter().position(|byte| *byte == b'(')?;
    let inside = signature.get(open + 1..)?;
    inside.get(..inside.iter().position(|byte| *byte == b')')?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_take_all_or_the_first_arguments() {
        for (signal, function, good) in [
            ("s(int)", "f(int)", true),
            ("s(int,QString)", "f(int)", true),
            ("s(int)", "f()", true),
            ("s()", "f(int)", false),
            ("s(integer)", "f(int)", false),
            ("s(int)", "f(int,int)", false),
            ("s", "f()", false),
            ("s()", "f(", false),
        ] {
            assert_eq!(fits(signal.as_bytes(), function.as_bytes()), good, "{signal} {function}");
        }
    }
}
