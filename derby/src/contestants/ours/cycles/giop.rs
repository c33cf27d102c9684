//! CORBA: a factory makes the server object, which keeps the reference that it is given (`callbacks.idl`).

use super::{Cycle, CycleMode, Cycles};
use crate::broken;
use crate::contestants::ours::hearing::Countdown;
pub(super) use contract::derby::Listener;
use contract::derby::{Callback, CallbackFactory};
use everywire::model::{Ref, Reference};
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("callbacks");
}

/// Serves the factory.
pub(in super::super) fn export(node: &Node) -> Reference {
    let factory = Arc::new(SourceFactory { node: node.clone(), count: AtomicU64::new(0) });
    node.export("Factory", factory as Arc<dyn CallbackFactory>).reference().clone()
}

/// Finds the factory; the client's own objects can be reached at `home`.
pub(in super::super) fn connect(node: &Node, factory: &str, home: Option<&str>) -> Result<Cycles, Failure> {
    if let Some(home) = home {
        node.listen(home)?;
    }
    let factory: Ref<dyn CallbackFactory> = node.connect(factory)?;
    let node = node.clone();
    let countdown = Countdown::new();
    let mut count = 0_u64;
    let cycle: Cycle = Box::new(move |proof| {
        count += 1;
        let key = count.to_le_bytes();
        let sink = node.export(key, Arc::new(Sink(Arc::clone(&countdown))) as Arc<dyn Listener>);
        let source = factory.create()?.ok_or_else(|| broken("the factory made nothing"))?;
        let cookie = source.attach(Some(sink))?;
        if proof == CycleMode::Proven {
            countdown.expect(1);
            source.fire()?;
            countdown.wait()?;
        }
        source.detach(cookie)?;
        source.destroy()?;
        node.withdraw(key);
        Ok(())
    });
    Ok(Cycles { callback: Some(cycle), ..Cycles::default() })
}

/// The interface that has an operation of this name: a call says only the operation.
pub(in super::super) fn interface_of(operation: &str) -> Option<&'static str> {
    match operation {
        "create" => Some("derby::CallbackFactory"),
        "attach" | "detach" | "fire" | "destroy" => Some("derby::Callback"),
        "Hello" => Some("derby::Listener"),
        _ => None,
    }
}

struct Sink(Arc<Countdown>);

impl Listener for Sink {
    fn hello(&self) -> Result<(), Failure> {
        self.0.heard();
        Ok(())
    }
}

/// The factory: makes sources under keys that are never used again.
struct SourceFactory {
    node: Node,
    count: AtomicU64,
}

impl CallbackFactory for SourceFactory {
    fn create(&self) -> Result<Option<Ref<dyn Callback>>, Failure> {
        let key = format!("callback/{}", self.count.fetch_add(1, Ordering::Relaxed));
        let source = Arc::new(Source {
            node: self.node.clone(),
            key: key.clone(),
            kept: Mutex::new((0, BTreeMap::new())),
        });
        Ok(Some(self.node.export(key, source as Arc<dyn Callback>)))
    }
}

/// A server object. It keeps the sinks that it was given until it is destroyed.
struct Source {
    node: Node,
    key: String,
    kept: Mutex<SinkTable>,
}

/// The last cookie, and the sinks by theirs.
type SinkTable = (u32, BTreeMap<u32, Ref<dyn Listener>>);

impl Source {
    fn kept(&self) -> MutexGuard<'_, SinkTable> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Callback for Source {
    fn attach(&self, sink: Option<Ref<dyn Listener>>) -> Result<u32, Failure> {
        let sink = sink.ok_or_else(|| crate::unknown("attach wants a listener, not nil"))?;
        let mut kept = self.kept();
        kept.0 = kept.0.wrapping_add(1);
        let cookie = kept.0;
        kept.1.insert(cookie, sink);
        Ok(cookie)
    }

    fn detach(&self, cookie: u32) -> Result<(), Failure> {
        let gone = self.kept().1.remove(&cookie);
        gone.map(drop).ok_or_else(|| crate::unknown(format!("nobody was attached with cookie {cookie}")))
    }

    /// Calls out without the lock.
    fn fire(&self) -> Result<(), Failure> {
        let sinks: Vec<Ref<dyn Listener>> = self.kept().1.values().cloned().collect();
        everywire::blocking(|| sinks.iter().try_for_each(|sink| sink.hello()))
    }

    fn destroy(&self) -> Result<(), Failure> {
        self.node.withdraw(&self.key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, so that everything goes over the wire both ways.
    #[test]
    fn cycles_are_proven_and_leave_nothing_behind() {
        let (server, client) = (Node::new(), Node::new());
        server.listen("iiop://127.0.0.1:0").unwrap();
        let factory = server.print(&export(&server));
        let cycles = connect(&client, &factory, Some("iiop://127.0.0.1:0")).unwrap();
        let mut cycle = cycles.callback.unwrap();
        cycle(CycleMode::Proven).unwrap();
        (0..10).for_each(|_| cycle(CycleMode::Timed).unwrap());
        assert_eq!((server.exported().len(), client.exported().len()), (1, 0));
    }
}
