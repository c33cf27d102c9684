//! Signal connections: who wants which signal of whom, delivered to which function of which object.

use super::fields::{Text, normalized, put_len, put_name, put_text};
use super::peers::{Peers, Post, Slot};
use crate::ice::minor;
use bytes::Bytes;
use everywire_model::rope::SPLICE;
use std::collections::HashMap;

/// The id under which the server itself sends.
pub(super) const SERVER: &[u8] = b"DCOPServer";

/// The key of messages that begin a call tree of nobody's.
pub(super) const NO_TREE: u32 = 1;

/// One signal connection, apart from the signal.
#[derive(Debug)]
struct Rule {
    /// Id of the application that is to emit it; empty for any.
    sender: Vec<u8>,
    /// Object that is to emit it; empty for any.
    object: Vec<u8>,
    /// The connection that had the id when this was made: the rule ends with it.
    holder: Option<Slot>,
    receiver: Slot,
    /// Object that receives it, as written on the wire and as read.
    target: (Vec<u8>, Vec<u8>),
    /// Function that receives it, likewise.
    function: (Vec<u8>, Vec<u8>),
}

/// A wish for a signal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish<'a> {
    pub(super) sender: Text<'a>,
    pub(super) object: Text<'a>,
    pub(super) signal: Text<'a>,
    pub(super) target: Text<'a>,
    pub(super) function: Text<'a>,
}

/// All signal connections.
#[derive(Debug, Default)]
pub(super) struct Signals {
    rules: HashMap<Vec<u8>, Vec<Rule>>,
    /// Rules of each receiver.
    held: HashMap<Slot, usize>,
    /// Rules of all.
    count: usize,
}

impl Signals {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Makes a connection; `holder` as for a rule. `false` if the arguments do not match, or there are too many.
    pub(super) fn connect(
        &mut self,
        receiver: Slot,
        wish: &Wish<'_>,
        holder: Option<Slot>,
        limits: (usize, usize),
    ) -> bool {
        let held = self.held.get(&receiver).copied().unwrap_or_default();
        if !fits(wish.signal.bytes(), wish.function.bytes()) || held >= limits.0 || self.count >= limits.1 {
            return false;
        }
        let mut target = Vec::new();
        put_name(&mut target, wish.target.bytes());
        if wish.target.bytes().is_empty() && wish.target.raw().len() > 4 {
            target.clear();
            put_text(&mut target, b"");
        }
        let mut function = Vec::new();
        put_text(&mut function, &normalized(wish.function.bytes()));
        self.rules.entry(wish.signal.bytes().to_vec()).or_default().push(Rule {
            sender: wish.sender.bytes().to_vec(),
            object: wish.object.bytes().to_vec(),
            holder,
            receiver,
            target: (target, wish.target.bytes().to_vec()),
            function: (function, wish.function.bytes().to_vec()),
        });
        self.held.insert(receiver, held + 1);
        self.count += 1;
        true
    }

    /// Ends connections of a receiver; empty parts of the wish stand for any, apart from sender and signal. Says whether
    /// there were any.
    pub(super) fn disconnect(&mut self, receiver: Slot, wish: &Wish<'_>, peers: &Peers) -> bool {
        if wish.sender.bytes().is_empty() && wish.signal.bytes().is_empty() {
            self.forget(receiver, wish.target.bytes());
            return true;
        }
        let any_or = |wanted: Text<'_>, held: &[u8]| wanted.bytes().is_empty() || wanted.bytes() == held;
        let Some(rules) = self.rules.get_mut(wish.signal.bytes()) else { return false };
        let before = rules.len();
        rules.retain(|rule| {
            let sender = match rule.holder {
                Some(holder) => peers.get(holder).map(|peer| peer.name.as_slice()).unwrap_or_default(),
                None => rule.sender.as_slice(),
            };
            let ends = rule.receiver == receiver
                && sender == wish.sender.bytes()
                && any_or(wish.object, &rule.object)
                && any_or(wish.target, &rule.target.1)
                && any_or(wish.function, &rule.function.1);
            !ends
        });
        let ended = before - rules.len();
        if rules.is_empty() {
            self.rules.remove(wish.signal.bytes());
        }
        self.count -= ended;
        release(&mut self.held, receiver, ended);
        ended > 0
    }

    /// Ends everything that a connection receives, or that ends with it; only what has to do with `object`, if that is
    /// not empty.
    pub(super) fn forget(&mut self, slot: Slot, object: &[u8]) {
        let Self { rules, held, count } = self;
        rules.retain(|_, rules| {
            rules.retain(|rule| {
                let (receives, emits) = (rule.receiver == slot, rule.holder == Some(slot));
                let other = (receives && rule.target.1 != object) || (emits && rule.object != object);
                let ends = (receives || emits) && (object.is_empty() || !other);
                if ends {
                    *count -= 1;
                    release(held, rule.receiver, 1);
                }
                !ends
            });
            !rules.is_empty()
        });
    }

    /// Delivers a signal: `SIGNATURE` or `OBJECT#SIGNATURE`. `emitter` is a connection, or the server.
    pub(super) fn emit(
        &self,
        emitter: Option<(Slot, &[u8])>,
        signal: &[u8],
        data: &[u8],
        peers: &mut Peers,
        post: &mut Post,
    ) {
        let mut parts = signal.splitn(2, |byte| *byte == b'#');
        let first = parts.next().unwrap_or_default();
        let (object, signal) = parts.next().map_or((&[][..], first), |second| (first, second));
        let Some(rules) = self.rules.get(signal) else { return };
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
            if peer.out.len() > post.quota {
                continue;
            }
            // The name is written while the queue that belongs to it is, too.
            let to = std::mem::take(&mut peer.name);
            let write = |out: &mut Vec<u8>| {
                put_name(out, name);
                // An emitter's own name is taken out of the table while it emits.
                put_name(out, if slot == Some(rule.receiver) { name } else { &to });
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

fn release(held: &mut HashMap<Slot, usize>, receiver: Slot, n: usize) {
    if let Some(count) = held.get_mut(&receiver) {
        *count -= n;
        if *count == 0 {
            held.remove(&receiver);
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
