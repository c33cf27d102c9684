//! The contract of DCOP, `bench.dcop.kidl`: the same, with integers as long as the machine's.

use super::hearing::Countdown;
use super::servants::{Benchmarking, IRemoteObject, OctetSeq, Remote, Seven};
use super::stubs::Stubs;
use crate::broken;
use contract::{DcopBenchmarkingService, DcopBenchmarkingServiceHello};
use everywire::model::{Bytes, Ref, Reference};
use everywire::{Failure, Node};
use std::sync::{Arc, OnceLock};

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("bench.dcop");
}

/// What the server registers as.
pub(super) const APPLICATION: &str = "benchmarking";
const KEY: &str = "dcop_benchmarking_service";

/// Serves the contract.
pub(super) fn export(node: &Node, largest: u64) -> Reference {
    let servant = Arc::new(BenchServant { remote: Remote::new(largest), own: OnceLock::new() });
    let own = node.export(KEY, Arc::clone(&servant) as Arc<dyn DcopBenchmarkingService>);
    let reference = own.reference().clone();
    // It was not set before: the servant is new.
    let _ = servant.own.set(own);
    reference
}

/// Finds the object.
pub(super) fn connect(node: &Node, reference: &str) -> Result<Stubs, Failure> {
    let object: Ref<dyn DcopBenchmarkingService> = node.connect(reference)?;
    let stub = Arc::new(Stub(object.clone()));
    // Whoever never listens has no use for a subscription: it is made at the first burst.
    let mut heard = None;
    let hear = move |signals: u32| {
        let (countdown, _) = match &mut heard {
            Some(heard) => heard,
            none => {
                let countdown = Countdown::new();
                let counted = Arc::clone(&countdown);
                let subscription =
                    object.signals().on::<DcopBenchmarkingServiceHello>(move |_| counted.heard())?;
                none.insert((countdown, subscription))
            }
        };
        countdown.expect(signals);
        object.fire(i32::try_from(signals).unwrap_or(i32::MAX))?;
        countdown.wait()
    };
    Ok(Stubs { calls: Arc::clone(&stub) as _, bytes: stub, hear: Some(Box::new(hear)) })
}

struct BenchServant {
    remote: Remote,
    /// What it emits signals by.
    own: OnceLock<Ref<dyn DcopBenchmarkingService>>,
}

impl DcopBenchmarkingService for BenchServant {
    fn void_call(&self) -> Result<(), Failure> {
        Seven.void_call()
    }

    fn in_int_call(&self, v: i64) -> Result<(), Failure> {
        Seven.in_int_call(int(v)?)
    }

    fn out_int_call(&self) -> Result<i64, Failure> {
        Seven.out_int_call().map(i64::from)
    }

    fn in_out_int_call(&self, v: i64) -> Result<i64, Failure> {
        Seven.in_out_int_call(int(v)?).map(i64::from)
    }

    fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        Seven.in_string_call(v)
    }

    fn out_string_call(&self) -> Result<String, Failure> {
        Seven.out_string_call()
    }

    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Seven.in_out_string_call(v)
    }

    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.remote.get_bytes(n)
    }

    fn fire(&self, n: i32) -> Result<(), Failure> {
        let Some(own) = self.own.get() else { return Ok(()) };
        (0..n).try_for_each(|i| own.signals().emit(&DcopBenchmarkingServiceHello { i }))
    }
}

/// The face that the races call.
struct Stub(Ref<dyn DcopBenchmarkingService>);

impl Benchmarking for Stub {
    fn void_call(&self) -> Result<(), Failure> {
        self.0.void_call()
    }

    fn in_int_call(&self, v: i32) -> Result<(), Failure> {
        self.0.in_int_call(i64::from(v))
    }

    fn out_int_call(&self) -> Result<i32, Failure> {
        self.0.out_int_call().and_then(int)
    }

    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        self.0.in_out_int_call(i64::from(v)).and_then(int)
    }

    fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        self.0.in_string_call(v)
    }

    fn out_string_call(&self) -> Result<String, Failure> {
        self.0.out_string_call()
    }

    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        self.0.in_out_string_call(v)
    }
}

impl IRemoteObject for Stub {
    fn get_bytes(&self, n: i32) -> Result<OctetSeq, Failure> {
        self.0.get_bytes(n)
    }
}

fn int(v: i64) -> Result<i32, Failure> {
    i32::try_from(v).map_err(|_| broken(format!("{v} is larger than the races use")))
}
