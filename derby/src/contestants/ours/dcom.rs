//! The contract of DCOM, `bench.dcom.midl`: the same functions of objects that activation makes.

use super::servants::{Benchmarking, IRemoteObject as Bytewise, OctetSeq, Remote, Seven, seven};
use super::stubs::Stubs;
use contract::{
    Benchmarking as BenchmarkingClass, IBenchmarking, IRemoteObject, RemoteObject as RemoteObjectClass,
};
use everywire::model::{Bytes, Ref, Reference};
use everywire::{Failure, Node};
use std::sync::Arc;

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    everywire::include_contract!("bench.dcom");
}

const BENCHMARKING: &str = "2C9E0A50-6B1F-4E0C-9D57-3A7C5F1E8B03";
const REMOTE_OBJECT: &str = "2C9E0A50-6B1F-4E0C-9D57-3A7C5F1E8B04";

/// Serves the classes.
pub(super) fn export(node: &Node, largest: u64) -> Vec<(&'static str, Reference)> {
    node.export_class::<dyn BenchmarkingClass>(BENCHMARKING, |_| Ok(Arc::new(BenchServant)));
    let remote = Arc::new(Remote::new(largest));
    node.export_class::<dyn RemoteObjectClass>(REMOTE_OBJECT, move |_| {
        Ok(Arc::new(LentRemote(Arc::clone(&remote))))
    });
    let classes = [("benchmarking", BENCHMARKING), ("IRemoteObject", REMOTE_OBJECT)];
    classes.iter().filter_map(|(name, class)| Some((*name, node.class_reference(class)?))).collect()
}

/// Finds the classes; their objects are made at the first call.
pub(super) fn connect(node: &Node, calls: &str, bytes: &str) -> Result<Stubs, Failure> {
    Ok(Stubs {
        calls: Arc::new(Calls(node.connect(calls)?)),
        bytes: Arc::new(Lending(node.connect(bytes)?)),
        hear: None,
    })
}

struct BenchServant;

impl IBenchmarking for BenchServant {
    seven!(_served => Seven);
}

impl BenchmarkingClass for BenchServant {}

struct LentRemote(Arc<Remote>);

impl IRemoteObject for LentRemote {
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.0.get_bytes(n)
    }
}

impl RemoteObjectClass for LentRemote {}

/// The faces that the races call.
struct Calls(Ref<dyn IBenchmarking>);

impl Benchmarking for Calls {
    seven!(calls => calls.0);
}

struct Lending(Ref<dyn IRemoteObject>);

impl Bytewise for Lending {
    fn get_bytes(&self, n: i32) -> Result<OctetSeq, Failure> {
        self.0.get_bytes(n)
    }
}
