//! The contract of WCF, `bench.wsdl`: the functions of both races in one service, over each binding.

use super::servants::{Benchmarking, IRemoteObject as Bytewise, OctetSeq, Remote, Seven};
use super::stubs::Stubs;
use crate::broken;
use contract::IRemoteObject;
use everywire::model::{Bytes, Ref, Reference};
use everywire::{Failure, Node};
use std::sync::Arc;

#[allow(unreachable_pub, clippy::pedantic)]
mod contract {
    // `bench.idl` has the same stem.
    include!(concat!(env!("OUT_DIR"), "/services/bench.rs"));
}

/// The path of the service, and the name of its reference.
pub(super) const SERVICE: &str = "IRemoteObject";

/// What a megabyte takes beyond the usual quotas of 65,536 bytes, as the published race raised them.
const QUOTAS: &str = "MaxReceivedMessageSize=2000000&MaxArrayLength=2000000";

/// An address to listen at. On TCP it says that whoever reaches the port may call: that is what races.
pub(super) fn open(address: &str, transport: &str) -> String {
    let open = if transport == "tcp" { "security=none&" } else { "" };
    format!("{address}?{open}{QUOTAS}")
}

/// The same quotas for what comes back to a client, unless the address says some.
pub(super) fn raised(reference: &str) -> String {
    if reference.contains("MaxReceivedMessageSize=") {
        return reference.to_owned();
    }
    let joint = if reference.contains('?') { '&' } else { '?' };
    format!("{reference}{joint}{QUOTAS}")
}

/// A reference that leads through another socket than that of the address it is served at: framing names the service's own.
pub(super) fn moved(reference: &str, address: &str) -> String {
    let own = address.strip_prefix("net.tcp+unix://").map(|own| own.split('?').next().unwrap_or(own));
    let Some(own) = own else { return reference.to_owned() };
    let joint = if reference.contains('?') { '&' } else { '?' };
    format!("{reference}{joint}to=net.uds://{own}")
}

/// Serves the contract.
pub(super) fn export(node: &Node, largest: u64) -> Reference {
    let servant = Arc::new(BenchServant(Remote::new(largest)));
    node.export(SERVICE, servant as Arc<dyn IRemoteObject>).reference().clone()
}

/// Finds the object.
pub(super) fn connect(node: &Node, reference: &str) -> Result<Stubs, Failure> {
    let stub = Arc::new(Stub(node.connect(&raised(reference))?));
    Ok(Stubs { calls: Arc::clone(&stub) as _, bytes: stub, hear: None })
}

struct BenchServant(Remote);

impl IRemoteObject for BenchServant {
    fn get_bytes(&self, n: i32) -> Result<Bytes, Failure> {
        self.0.get_bytes(n)
    }

    fn put_bytes(&self, data: Bytes) -> Result<i32, Failure> {
        i32::try_from(data.len()).map_err(|_| broken("more bytes than a number can say"))
    }

    fn void_call(&self) -> Result<(), Failure> {
        Seven.void_call()
    }

    fn in_int(&self, x: i32) -> Result<(), Failure> {
        Seven.in_int_call(x)
    }

    fn out_int(&self) -> Result<i32, Failure> {
        Seven.out_int_call()
    }

    fn in_out_int(&self, x: i32) -> Result<i32, Failure> {
        Seven.in_out_int_call(x)
    }

    fn in_string(&self, s: &str) -> Result<(), Failure> {
        Seven.in_string_call(s)
    }

    fn out_string(&self) -> Result<String, Failure> {
        Seven.out_string_call()
    }

    fn in_out_string(&self, s: &str) -> Result<String, Failure> {
        Seven.in_out_string_call(s)
    }
}

/// The face that the races call.
struct Stub(Ref<dyn IRemoteObject>);

impl Benchmarking for Stub {
    fn void_call(&self) -> Result<(), Failure> {
        self.0.void_call()
    }

    fn in_int_call(&self, v: i32) -> Result<(), Failure> {
        self.0.in_int(v)
    }

    fn out_int_call(&self) -> Result<i32, Failure> {
        self.0.out_int()
    }

    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        self.0.in_out_int(v)
    }

    fn in_string_call(&self, v: &str) -> Result<(), Failure> {
        self.0.in_string(v)
    }

    fn out_string_call(&self) -> Result<String, Failure> {
        self.0.out_string()
    }

    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        self.0.in_out_string(v)
    }
}

impl Bytewise for Stub {
    fn get_bytes(&self, n: i32) -> Result<OctetSeq, Failure> {
        self.0.get_bytes(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two nodes, and a megabyte, which no quota lets through unless it is raised.
    #[test]
    fn every_way_carries_a_megabyte() {
        let dir = crate::fresh::Fresh::new().unwrap();
        for way in super::super::courses::WireCourse::Wcf.ways() {
            let (server, client) = (Node::new(), Node::new());
            let place = if way.transport == "tcp" {
                format!("{}://127.0.0.1:0", way.scheme)
            } else {
                format!("{}+{}://{}", way.scheme, way.transport, dir.path().join(way.name).display())
            };
            server.listen(&open(&place, way.transport)).unwrap();
            let reference = server.print_friendly(&export(&server, 2 << 20));
            let stubs = connect(&client, &reference).unwrap();
            assert_eq!(stubs.calls.in_out_int_call(41).unwrap(), 42, "{}", way.name);
            assert_eq!(stubs.calls.in_out_string_call("a < b").unwrap(), "a < b", "{}", way.name);
            let bytes = stubs.bytes.get_bytes(1_000_000).unwrap();
            assert_eq!((bytes.len(), bytes[999_999]), (1_000_000, 0x3f), "{}", way.name);
        }
    }
}
