//! The functions of the server itself, at the id `DCOPServer`. They are found by name alone, whatever the object, apart
//! from the object `emit`, on which every function is a signal. Programs of KDE and of Trinity spell the types of their
//! arguments differently; each is answered, and told of others, in its own spelling.

use super::fields::Fields;
use super::peers::Slot;
use super::router::{Router, reserved};
use super::signals::SignalPattern;
use crate::address::SERVER;
use crate::ice::{ProtocolError, minor};
use crate::limits::NO_TREE;
use crate::strings::{put_len, put_name, put_nullable};

impl Router {
    /// Serves a call; the result's type, and in `reply` its data. `None` if there is no such function or its
    /// arguments do not decode: then the caller gets a failure, and nothing has changed.
    pub(super) fn serve(
        &mut self,
        slot: Slot,
        object: &[u8],
        function: &[u8],
        data: &[u8],
        reply: &mut Vec<u8>,
    ) -> Option<&'static [u8]> {
        if object == b"emit" {
            self.emit(slot, function, data);
            return Some(b"void");
        }
        let mut arguments = Fields::new(data);
        match function {
            b"registerAs(QCString)" | b"registerAs(TQCString)" => {
                let wanted = arguments.text("an id").ok()?.bytes();
                let trinity = function == b"registerAs(TQCString)";
                self.peers.get_mut(slot)?.trinity = trinity;
                self.register(slot, wanted);
                put_nullable(reply, &self.peers.get(slot)?.name);
                Some(if trinity { b"TQCString" } else { b"QCString" })
            }
            b"registeredApplications()" => {
                let mut names: Vec<&[u8]> = self.names.keys().map(Vec::as_slice).collect();
                names.sort_unstable();
                put_len(reply, names.len());
                names.iter().for_each(|name| put_name(reply, name));
                Some(b"QCStringList")
            }
            b"isApplicationRegistered(QCString)" | b"isApplicationRegistered(TQCString)" => {
                let name = arguments.text("an id").ok()?.bytes();
                let known = u32::from(self.names.contains_key(name));
                // The type says one byte; every client there is expects four.
                reply.extend_from_slice(&known.to_be_bytes());
                Some(b"bool")
            }
            b"setNotifications(bool)" => {
                let [wanted] = arguments.take("a boolean").ok()?;
                self.listen(slot, wanted != 0);
                Some(b"void")
            }
            b"setDaemonMode(bool)" => {
                let [daemon] = arguments.take("a boolean").ok()?;
                self.set_daemon(slot, daemon != 0);
                Some(b"void")
            }
            b"connectSignal(QCString,QCString,QCString,QCString,QCString,bool)"
            | b"connectSignal(TQCString,TQCString,TQCString,TQCString,TQCString,bool)" => {
                let wish = wish(&mut arguments).ok()?;
                let [volatile] = arguments.take("a boolean").ok()?;
                reply.push(u8::from(self.connect(slot, &wish, volatile != 0)));
                Some(b"bool")
            }
            b"disconnectSignal(QCString,QCString,QCString,QCString,QCString)"
            | b"disconnectSignal(TQCString,TQCString,TQCString,TQCString,TQCString)" => {
                let wish = wish(&mut arguments).ok()?;
                reply.push(u8::from(self.signals.disconnect(slot, &wish, &self.peers)));
                Some(b"bool")
            }
            _ => None,
        }
    }

    /// Gives an application the id it wants, or that with a number if somebody has it. Ids that nobody could be
    /// addressed by are not given.
    fn register(&mut self, slot: Slot, wanted: &[u8]) {
        if wanted.is_empty() || wanted.len() > self.settings.name || wanted.ends_with(b"*") {
            return;
        }
        let Some(peer) = self.peers.get_mut(slot) else { return };
        let old = std::mem::take(&mut peer.name);
        if old.is_empty() {
            self.clients += usize::from(!peer.daemon);
        } else {
            self.names.remove(&old);
        }
        let mut name = wanted.to_vec();
        let mut number = 1_u32;
        while reserved(&name) || self.names.contains_key(&name) {
            number += 1;
            let suffix = format!("-{number}");
            // The number makes no id longer than ids may be.
            name.truncate(wanted.len().min(self.settings.name.saturating_sub(suffix.len())));
            name.extend_from_slice(suffix.as_bytes());
        }
        peer.name.clone_from(&name);
        peer.renamed |= !old.is_empty() && old != name;
        self.names.insert(name.clone(), slot);
        if !old.is_empty() {
            self.notify(slot, "applicationRemoved", &old);
        }
        self.notify(slot, "applicationRegistered", &name);
    }

    /// Tells everybody who wants to know, but the connection that it is about. Whose queue has no room is left
    /// out.
    pub(super) fn notify(&mut self, about: Slot, function: &str, name: &[u8]) {
        if self.listening == 0 {
            return;
        }
        for (slot, peer) in self.peers.iter_mut() {
            if peer.notifications == 0 || slot == about || !self.post.has_room(peer, name.len()) {
                continue;
            }
            let function = format!("{function}({})", if peer.trinity { "TQCString" } else { "QCString" });
            self.post.message(slot, peer, minor::SEND, NO_TREE, |out| {
                put_name(out, SERVER);
                put_name(out, b"");
                put_name(out, b"");
                put_name(out, function.as_bytes());
                put_len(out, 4 + name.len() + 1);
                put_name(out, name);
            });
        }
    }

    /// Counts one wish more or less to be told of registrations. It is a count, as in the real server, since
    /// several parts of a program may wish so.
    fn listen(&mut self, slot: Slot, wanted: bool) {
        let Some(peer) = self.peers.get_mut(slot) else { return };
        let before = peer.notifications > 0;
        peer.notifications =
            if wanted { peer.notifications.saturating_add(1) } else { peer.notifications.saturating_sub(1) };
        match (before, peer.notifications > 0) {
            (false, true) => self.listening += 1,
            (true, false) => self.listening -= 1,
            _ => {}
        }
    }

    /// Notes whether an application is a daemon, which does not keep the server alive. One without an id is
    /// nobody yet.
    fn set_daemon(&mut self, slot: Slot, daemon: bool) {
        let Some(peer) = self.peers.get_mut(slot) else { return };
        if peer.name.is_empty() || peer.daemon == daemon {
            return;
        }
        peer.daemon = daemon;
        if daemon { self.clients -= 1 } else { self.clients += 1 }
    }

    /// Makes a signal connection; whether it did. A volatile one needs an application that has the sender's
    /// id now.
    fn connect(&mut self, slot: Slot, wish: &SignalPattern<'_>, volatile: bool) -> bool {
        let holder = if volatile {
            let Some(holder) = self.names.get(wish.sender.bytes()) else { return false };
            Some(*holder)
        } else {
            None
        };
        self.signals.connect(slot, wish, holder, &self.settings)
    }

    /// The emitter's name is lent to the delivery meanwhile, so its own entry has none.
    fn emit(&mut self, slot: Slot, signal: &[u8], data: &[u8]) {
        let Some(peer) = self.peers.get_mut(slot) else { return };
        let name = std::mem::take(&mut peer.name);
        let Self { signals, peers, post, .. } = self;
        signals.emit(Some((slot, &name)), signal, data, peers, post);
        if let Some(peer) = self.peers.get_mut(slot) {
            peer.name = name;
        }
    }
}

/// The arguments that connecting and disconnecting have in common.
fn wish<'a>(arguments: &mut Fields<'a>) -> Result<SignalPattern<'a>, ProtocolError> {
    Ok(SignalPattern {
        sender: arguments.text("the sender's id")?,
        object: arguments.text("the sender's object")?,
        signal: arguments.text("the signal")?,
        target: arguments.text("the receiver's object")?,
        function: arguments.text("the receiver's function")?,
    })
}
