//! DCOM, the wire that the race was published of (`derby.midl`): activation makes the server object; it
//! has a connection point, or is passed the pointer to an object of the client.
//!
//! States of a server object: it lives from its activation until the client has released it. `ServerObjects`
//! is what all of them share: the sinks by cookie, and the keys of the objects with connection points,
//! which each removes when it is dropped.
//!
//! Invariants: the lock of `ServerObjects` is not held while a client is called. A cycle with a connection
//! point ends when the server has let go of the sink; until then its release would be work of the next
//! cycle.

use super::{Cycle, CycleMode, Cycles};
use crate::contestants::ours::cycles::giop::Listener;
use crate::contestants::ours::hearing::Countdown;
use crate::{broken, unknown};
use contract::{
    Callback, ICallback, ICallbackEvents, ISlowConnectionPoints, SlowConnectionPoints,
    SlowConnectionPointsHello,
};
use everywire::model::{Bytes, Ref, Reference};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

// An interface without operations has a stub that nobody reads.
#[allow(unreachable_pub, dead_code, clippy::pedantic)]
mod contract {
    everywire::include_contract!("derby");
}

/// The classes of the contract, as they were published.
const CALLBACK: &str = "606DE2C6-1A8C-11D3-B68F-00C04F8B72E7";
const SLOW_CONNECTION_POINTS: &str = "606DE2C0-1A8C-11D3-B68F-00C04F8B72E7";
/// A class of ours that has the objects of the others call back, for the proof before the race.
const TRIGGER: &str = "derby-trigger";
/// Their names among the references of a server.
const NAMES: [(&str, &str); 3] =
    [("Callback", CALLBACK), ("SlowConnectionPoints", SLOW_CONNECTION_POINTS), ("Trigger", TRIGGER)];

/// Who may call, on both sides.
pub(in super::super) const USER: &str = "rider";
/// Of the one account of these servers, which live for one heat on an address of this machine.
pub(in super::super) const PASSWORD: &str = "derby";
/// The files that say so, in the directory of the contestant.
const USERS: &str = "users";
const CREDENTIALS: &str = "credentials";
/// Where the name of the second stands for both sides.
pub(in super::super) const CREDENTIALS_VARIABLE: &str = "EVERYWIRE_DCOM_CREDENTIALS";

/// Writes who may call, and as whom both sides do.
pub(in super::super) fn introduce(dir: &Path) -> Result<(), Failure> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let texts = [
        (USERS, format!("{USER}:{PASSWORD}\n")),
        (CREDENTIALS, format!("username = {USER}\npassword = {PASSWORD}\ndomain =\n")),
    ];
    for (name, text) in texts {
        let path = dir.join(name);
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| broken(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

/// What both sides find the credentials by.
pub(in super::super) fn credentials(dir: &Path) -> std::path::PathBuf {
    dir.join(CREDENTIALS)
}

/// Where to listen at this level of protection: who may call, and as whom those are called back who passed a pointer.
pub(in super::super) fn protected(address: &str, level: &str, dir: &Path) -> String {
    if level == "none" {
        return format!("{address}?level=none");
    }
    let address = address.replacen("://", &format!("://{USER}:{PASSWORD}@"), 1);
    format!("{address}?users={}&level={level}", dir.join(USERS).display())
}

/// Serves the classes.
pub(in super::super) fn export(node: &Node) -> Vec<(&'static str, Reference)> {
    let living = Arc::new(ServerObjects { node: node.clone(), kept: Mutex::default() });
    let made = Arc::clone(&living);
    node.export_class::<dyn Callback>(CALLBACK, move |_| Ok(Arc::new(CallbackServant(Arc::clone(&made)))));
    let made = Arc::clone(&living);
    node.export_class::<dyn SlowConnectionPoints>(SLOW_CONNECTION_POINTS, move |key| {
        made.kept().points.push(key.clone());
        Ok(Arc::new(SourceObject { key: key.clone(), living: Arc::clone(&made) }))
    });
    node.export_class::<dyn Listener>(TRIGGER, move |_| Ok(Arc::new(Trigger(Arc::clone(&living)))));
    NAMES.iter().filter_map(|(name, class)| Some((*name, node.class_reference(class)?))).collect()
}

/// Finds the classes; objects of the client can be reached at `home`.
pub(in super::super) fn connect(
    node: &Node,
    references: &BTreeMap<&str, &str>,
    home: Option<&str>,
) -> Result<Cycles, Failure> {
    let home = home.ok_or_else(|| unknown("no address for callbacks"))?;
    let class = |name: &str| {
        let text = references.get(name).ok_or_else(|| broken(format!("no reference `{name}`")))?;
        node.parse(text)
    };
    let [callback, points, trigger] = ["Callback", "SlowConnectionPoints", "Trigger"].map(class);
    let (callback, points, trigger) = (callback?, points?, trigger?);
    node.listen(home)?;

    let (own, told, countdown) = (node.clone(), trigger.clone(), Countdown::new());
    let connection_point: Cycle = Box::new(move |proof| {
        let source: Ref<dyn SlowConnectionPoints> = own.narrow(points.clone())?;
        let released = Countdown::new();
        released.expect(1);
        let sink = Sink { heard: Arc::clone(&countdown), released: Arc::clone(&released) };
        let advised = source.signals().on::<SlowConnectionPointsHello>(move |_| sink.heard.heard())?;
        if proof == CycleMode::Proven {
            countdown.expect(1);
            own.narrow::<dyn Listener>(told.clone())?.hello()?;
            countdown.wait()?;
        }
        drop(advised);
        // The sink goes when the server has let go of it.
        released.wait()
    });

    let (own, countdown, mut count) = (node.clone(), Countdown::new(), 0_u64);
    let callback: Cycle = Box::new(move |proof| {
        count += 1;
        let key = format!("client/{count}");
        let released = Countdown::new();
        let sink = Sink { heard: Arc::clone(&countdown), released };
        let sink = own.export(&key, Arc::new(sink) as Arc<dyn ICallbackEvents>);
        let source: Ref<dyn ICallback> = own.narrow(callback.clone())?;
        let cookie = source.advise(Some(sink.reference().clone()))?;
        if proof == CycleMode::Proven {
            countdown.expect(1);
            own.narrow::<dyn Listener>(trigger.clone())?.hello()?;
            countdown.wait()?;
        }
        source.unadvise(cookie)?;
        own.withdraw(&key);
        Ok(())
    });
    Ok(Cycles { connection_point: Some(connection_point), callback: Some(callback) })
}

/// The client's object.
struct Sink {
    heard: Arc<Countdown>,
    /// Counts down when nobody holds it any more.
    released: Arc<Countdown>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.released.heard();
    }
}

impl ICallbackEvents for Sink {
    fn hello(&self) -> Result<(), Failure> {
        self.heard.heard();
        Ok(())
    }
}

/// What all objects of the server share.
struct ServerObjects {
    node: Node,
    kept: Mutex<Sinks>,
}

#[derive(Default)]
struct Sinks {
    last: u32,
    /// What clients passed, by cookie.
    sinks: BTreeMap<u32, Reference>,
    /// The objects with connection points.
    points: Vec<Bytes>,
}

impl ServerObjects {
    fn kept(&self) -> MutexGuard<'_, Sinks> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct CallbackServant(Arc<ServerObjects>);

impl ICallback for CallbackServant {
    fn advise(&self, sink: Option<Reference>) -> Result<u32, Failure> {
        let sink = sink.ok_or_else(|| unknown("Advise wants a pointer that is not null"))?;
        let mut kept = self.0.kept();
        kept.last = kept.last.wrapping_add(1);
        let cookie = kept.last;
        kept.sinks.insert(cookie, sink);
        Ok(cookie)
    }

    fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        let gone = self.0.kept().sinks.remove(&cookie);
        gone.map(drop).ok_or_else(|| unknown(format!("nobody was advised with cookie {cookie}")))
    }
}

impl Callback for CallbackServant {}

/// Its connection point is the wire's business.
struct SourceObject {
    key: Bytes,
    living: Arc<ServerObjects>,
}

impl ISlowConnectionPoints for SourceObject {}
impl SlowConnectionPoints for SourceObject {}

impl Drop for SourceObject {
    fn drop(&mut self) {
        self.living.kept().points.retain(|key| *key != self.key);
    }
}

/// Has every object call whoever listens.
struct Trigger(Arc<ServerObjects>);

impl Listener for Trigger {
    /// Calls out without the lock.
    fn hello(&self) -> Result<(), Failure> {
        let kept = self.0.kept();
        let (sinks, points): (Vec<Reference>, Vec<Bytes>) =
            (kept.sinks.values().cloned().collect(), kept.points.clone());
        drop(kept);
        let node = &self.0.node;
        everywire::blocking(|| {
            sinks.into_iter().try_for_each(|sink| node.narrow::<dyn ICallbackEvents>(sink)?.hello())?;
            points.iter().try_for_each(|key| {
                node.signaller::<dyn SlowConnectionPoints>(key).emit(&SlowConnectionPointsHello {})
            })
        })
    }
}

/// An interface of the contract, as a trace meets it: by its identity, and its operations by their numbers.
pub(in super::super) struct TracedInterface {
    pub(in super::super) id: &'static str,
    pub(in super::super) name: &'static str,
    /// In the order of their numbers.
    pub(in super::super) operations: &'static [&'static str],
}

/// The number of the first operation: before it come the three of `IUnknown` and the four of
/// `IDispatch`.
pub(in super::super) const FIRST: usize = 7;

/// The interfaces of the contract.
pub(in super::super) const KNOWN: &[TracedInterface] = &[
    TracedInterface {
        id: "606DE2C5-1A8C-11D3-B68F-00C04F8B72E7",
        name: "ICallback",
        operations: &["Advise", "Unadvise"],
    },
    TracedInterface {
        id: "73296190-1A8F-11D3-B68F-00C04F8B72E7",
        name: "_ICallbackEvents",
        operations: &["Hello"],
    },
    TracedInterface {
        id: "606DE2C1-1A8C-11D3-B68F-00C04F8B72E7",
        name: "_ISlowConnectionPointsEvents",
        operations: &["Hello"],
    },
    TracedInterface {
        id: "606DE2BF-1A8C-11D3-B68F-00C04F8B72E7",
        name: "ISlowConnectionPoints",
        operations: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, so that everything goes over the wire both ways.
    #[test]
    fn cycles_are_proven_and_leave_nothing_behind() {
        let (server, client) = (Node::new(), Node::new());
        server.listen("dcom://127.0.0.1:0?level=none").unwrap();
        let served: Vec<(&str, String)> =
            export(&server).into_iter().map(|(name, class)| (name, server.print_friendly(&class))).collect();
        let references = served.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let cycles = connect(&client, &references, Some("dcom://127.0.0.1:0?level=none")).unwrap();
        for mut cycle in [cycles.connection_point.unwrap(), cycles.callback.unwrap()] {
            cycle(CycleMode::Proven).unwrap();
            (0..10).for_each(|_| cycle(CycleMode::Timed).unwrap());
        }
        assert_eq!(client.exported().len(), 0);
    }
}
