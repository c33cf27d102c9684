//! D-Bus (`callbacks.dbus.xml`): over a bus a match stands for the connection point; everywhere the path of an object of
//! the client, passed and kept, stands for the callback.

use super::{Cycle, CycleMode, Cycles};
use crate::contestants::ours::hearing::Countdown;
use contract::derby::callbacks::{Factory, Sink, Source, SourceHello};
use everywire::model::{Bytes, Ref, Reference, Signaller};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("callbacks.dbus");
}

const KEY: &str = "derby/callbacks";

/// Serves the factory.
pub(in super::super) fn export(node: &Node) -> Reference {
    let factory = Arc::new(SourceFactory { node: node.clone(), count: AtomicU64::new(0) });
    node.export(KEY, factory as Arc<dyn Factory>).reference().clone()
}

/// Finds the factory. Between peers nobody has to say that they listen: there a subscription costs nothing, and is no
/// contestant.
pub(in super::super) fn connect(node: &Node, factory: &str, over_a_bus: bool) -> Result<Cycles, Failure> {
    let factory: Ref<dyn Factory> = node.connect(factory)?;
    let subscribing = over_a_bus.then(|| {
        let (node, factory, countdown) = (node.clone(), factory.clone(), Countdown::new());
        let cycle: Cycle = Box::new(move |proof| {
            let path = factory.create()?;
            let source: Ref<dyn Source> = node.narrow(sibling(factory.reference(), &path))?;
            let counted = Arc::clone(&countdown);
            let heard = source.signals().on::<SourceHello>(move |_| counted.heard())?;
            if proof == CycleMode::Proven {
                countdown.expect(1);
                source.fire()?;
                countdown.wait()?;
            }
            // The bus takes what one member says in order: when the object is gone, so is the match.
            drop(heard);
            factory.destroy(&path)
        });
        cycle
    });
    let (node, mut count) = (node.clone(), 0_u64);
    let passing: Cycle = Box::new(move |_| {
        count += 1;
        let key = format!("derby/sink/{count}");
        node.export(&key, Arc::new(Quiet) as Arc<dyn Sink>);
        let path = factory.create()?;
        let source: Ref<dyn Source> = node.narrow(sibling(factory.reference(), &path))?;
        let cookie = source.attach(&format!("/{key}"))?;
        source.detach(cookie)?;
        factory.destroy(&path)?;
        node.withdraw(&key);
        Ok(())
    });
    Ok(Cycles { connection_point: subscribing, callback: Some(passing) })
}

/// Another object of the same application.
fn sibling(reference: &Reference, path: &str) -> Reference {
    let mut sibling = reference.clone();
    sibling.type_id.clear();
    let key = Bytes::copy_from_slice(path.trim_start_matches('/').as_bytes());
    sibling.profiles.iter_mut().for_each(|profile| profile.key.clone_from(&key));
    sibling
}

/// What the client passes.
struct Quiet;

impl Sink for Quiet {
    fn hello(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The factory: makes sources under keys that are never used again.
struct SourceFactory {
    node: Node,
    count: AtomicU64,
}

impl Factory for SourceFactory {
    fn create(&self) -> Result<String, Failure> {
        let key = format!("{KEY}/{}", self.count.fetch_add(1, Ordering::Relaxed));
        let own = self.node.signaller::<dyn Source>(&key);
        let kept = Mutex::new((0, BTreeMap::new()));
        self.node.export(&key, Arc::new(SourceServant { own, kept }) as Arc<dyn Source>);
        Ok(format!("/{key}"))
    }

    fn destroy(&self, source: &str) -> Result<(), Failure> {
        match self.node.withdraw(source.trim_start_matches('/')) {
            true => Ok(()),
            false => Err(crate::unknown(format!("there is no {source}"))),
        }
    }
}

/// A source. `attach` only keeps the path: nobody is called by it while the clock runs.
struct SourceServant {
    own: Signaller<dyn Source>,
    /// The last cookie, and the paths by theirs.
    kept: Mutex<(u32, BTreeMap<u32, String>)>,
}

impl Source for SourceServant {
    fn attach(&self, sink: &str) -> Result<u32, Failure> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0 = kept.0.wrapping_add(1);
        let cookie = kept.0;
        kept.1.insert(cookie, sink.to_owned());
        Ok(cookie)
    }

    fn detach(&self, cookie: u32) -> Result<(), Failure> {
        let gone = self.kept.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&cookie);
        gone.map(drop).ok_or_else(|| crate::unknown(format!("nobody was attached with cookie {cookie}")))
    }

    fn fire(&self) -> Result<(), Failure> {
        self.own.emit(&SourceHello {})
    }
}
