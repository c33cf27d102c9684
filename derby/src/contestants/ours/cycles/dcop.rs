//! DCOP (`callbacks.dcop.kidl`): the server that all talk through connects a signal to the client, and disconnects it.

use super::{Cycle, CycleMode, Cycles};
use crate::contestants::ours::hearing::Countdown;
use contract::{DerbyFactory, DerbySource, DerbySourceHello};
use everywire::model::{Bytes, Ref, Reference, Signaller};
use everywire::{Failure, Node};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("callbacks.dcop");
}

const KEY: &str = "derby_factory";

/// Serves the factory.
pub(in super::super) fn export(node: &Node) -> Reference {
    let factory = Arc::new(SourceFactory { node: node.clone(), count: AtomicU64::new(0) });
    node.export(KEY, factory as Arc<dyn DerbyFactory>).reference().clone()
}

/// Finds the factory.
pub(in super::super) fn connect(node: &Node, factory: &str) -> Result<Cycles, Failure> {
    let factory: Ref<dyn DerbyFactory> = node.connect(factory)?;
    let (node, countdown) = (node.clone(), Countdown::new());
    let cycle: Cycle = Box::new(move |proof| {
        let name = factory.create()?;
        let source: Ref<dyn DerbySource> = node.narrow(sibling(factory.reference(), &name))?;
        let counted = Arc::clone(&countdown);
        let heard = source.signals().on::<DerbySourceHello>(move |_| counted.heard())?;
        if proof == CycleMode::Proven {
            countdown.expect(1);
            source.fire()?;
            countdown.wait()?;
        }
        // What one application says is taken in order: when the object is gone, so is the connection of its signal.
        drop(heard);
        factory.destroy(&name)
    });
    Ok(Cycles { connection_point: Some(cycle), ..Cycles::default() })
}

/// Another object of the same application.
fn sibling(reference: &Reference, name: &str) -> Reference {
    let mut sibling = reference.clone();
    sibling.type_id.clear();
    let key = Bytes::copy_from_slice(name.as_bytes());
    sibling.profiles.iter_mut().for_each(|profile| profile.key.clone_from(&key));
    sibling
}

/// The factory: makes sources under names that are never used again.
struct SourceFactory {
    node: Node,
    count: AtomicU64,
}

impl DerbyFactory for SourceFactory {
    fn create(&self) -> Result<String, Failure> {
        let key = format!("derby_source_{}", self.count.fetch_add(1, Ordering::Relaxed));
        let own = self.node.signaller::<dyn DerbySource>(&key);
        self.node.export(&key, Arc::new(SourceServant(own)) as Arc<dyn DerbySource>);
        Ok(key)
    }

    fn destroy(&self, source: &str) -> Result<(), Failure> {
        match self.node.withdraw(source) {
            true => Ok(()),
            false => Err(crate::unknown(format!("there is no {source}"))),
        }
    }
}

struct SourceServant(Signaller<dyn DerbySource>);

impl DerbySource for SourceServant {
    fn fire(&self) -> Result<(), Failure> {
        self.0.emit(&DerbySourceHello {})
    }
}
