//! The contract of D-Bus, `bench.dbus.xml`: the seven functions, bytes and signals of one object.

use super::hearing::Countdown;
use super::servants::{Benchmarking, IRemoteObject, OctetSeq, Remote, Seven, seven};
use super::stubs::Stubs;
use contract::benchmarking::dbus::{Interface, InterfaceHello};
use everywire::model::{Bytes, Ref, Reference};
use everywire::{Failure, Node};
use std::sync::{Arc, OnceLock};

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("bench.dbus");
}

/// The name that the server owns on a bus.
pub(super) const NAME: &str = "benchmarking.dbus";
const KEY: &str = "benchmarking/dbus";

/// Whether a reference leads through a bus: then it names the bus by its own address.
pub(super) fn is_of_a_bus(reference: &str) -> bool {
    reference.strip_prefix("dbus:").is_some_and(|rest| !rest.starts_with("//"))
}

/// Serves the contract.
pub(super) fn export(node: &Node, largest: u64) -> Reference {
    let servant = Arc::new(BenchServant { remote: Remote::new(largest), own: OnceLock::new() });
    let own = node.export(KEY, Arc::clone(&servant) as Arc<dyn Interface>);
    let reference = own.reference().clone();
    // It was not set before: the servant is new.
    let _ = servant.own.set(own);
    reference
}

/// Finds the object.
pub(super) fn connect(node: &Node, reference: &str) -> Result<Stubs, Failure> {
    let object: Ref<dyn Interface> = node.connect(reference)?;
    let stub = Arc::new(Stub(object.clone()));
    // Whoever never listens has no use for a subscription: it is made at the first burst.
    let mut heard = None;
    let hear = move |signals: u32| {
        let (countdown, _) = match &mut heard {
            Some(heard) => heard,
            none => {
                let countdown = Countdown::new();
                let counted = Arc::clone(&countdown);
                let subscription = object.signals().on::<InterfaceHello>(move |_| counted.heard())?;
                none.insert((countdown, subscription))
            }
        };
        countdown.expect(signals);
        object.fire(signals)?;
        countdown.wait()
    };
    Ok(Stubs { calls: Arc::clone(&stub) as _, bytes: stub, hear: Some(Box::new(hear)) })
}

struct BenchServant {
    remote: Remote,
    /// What it emits signals by.
    own: OnceLock<Ref<dyn Interface>>,
}

impl Interface for BenchServant {
    seven!(_served => Seven);

    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.remote.get_bytes(n)
    }

    fn fire(&self, n: u32) -> Result<(), Failure> {
        let Some(own) = self.own.get() else { return Ok(()) };
        (0..n).try_for_each(|i| own.signals().emit(&InterfaceHello { i }))
    }
}

/// The face that the races call.
struct Stub(Ref<dyn Interface>);

impl Benchmarking for Stub {
    seven!(stub => stub.0);
}

impl IRemoteObject for Stub {
    fn get_bytes(&self, n: i32) -> Result<OctetSeq, Failure> {
        self.0.get_bytes(n)
    }
}
