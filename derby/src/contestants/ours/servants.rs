//! The objects that every race calls, as any user would write them: implementations of the generated
//! traits, without anything that knows of wires or of measuring.
//!
//! `Seven` has no state. `Remote` has one block of bytes, which is made at the first call and only
//! sliced afterwards, so a large answer costs no copy here. `FiringServant` keeps sinks by cookie.
//!
//! Invariants: the lock of `FiringServant` is never held while a sink is called, so a sink may advise or
//! unadvise meanwhile. What a caller asks for is checked against a bound before anything is made; a
//! wrong argument is an error of the caller's, and nothing was done.

pub(super) use contract::*;

#[allow(unreachable_pub)]
mod contract {
    everywire::include_contract!("bench");
}

use everywire::model::{Bytes, Completed, Ref, Reference};
use everywire::{Failure, Initiator, Kind, Node};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What the races send and expect.
pub(super) const TEXT: &str = "Hello, World! 0123456789";

/// Serves every interface of the contract; names and references.
pub(super) fn export(node: &Node, largest: u64) -> Vec<(&'static str, Reference)> {
    let source: Ref<dyn FiringSource> =
        node.export("Source", Arc::new(FiringServant::default()) as Arc<dyn FiringSource>);
    let source = source.reference().clone();
    vec![
        (
            "benchmarking",
            node.export("benchmarking", Arc::new(Seven) as Arc<dyn Benchmarking>).reference().clone(),
        ),
        (
            "IRemoteObject",
            node.export("IRemoteObject", Arc::new(Remote::new(largest)) as Arc<dyn IRemoteObject>)
                .reference()
                .clone(),
        ),
        ("Sink", node.export("Sink", Arc::new(Quiet) as Arc<dyn Sink>).reference().clone()),
        ("Source", source.clone()),
        ("FiringSource", source),
    ]
}

/// The seven functions of a contract, passed on to whoever has the same, as `seven!(stub => stub.0)` says.
macro_rules! seven {
    ($face:ident => $other:expr) => {
        fn void_call(&self) -> Result<(), Failure> {
            let $face = self;
            $other.void_call()
        }

        fn in_int_call(&self, v: i32) -> Result<(), Failure> {
            let $face = self;
            $other.in_int_call(v)
        }

        fn out_int_call(&self) -> Result<i32, Failure> {
            let $face = self;
            $other.out_int_call()
        }

        fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
            let $face = self;
            $other.in_out_int_call(v)
        }

        fn in_string_call(&self, v: &str) -> Result<(), Failure> {
            let $face = self;
            $other.in_string_call(v)
        }

        fn out_string_call(&self) -> Result<String, Failure> {
            let $face = self;
            $other.out_string_call()
        }

        fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
            let $face = self;
            $other.in_out_string_call(v)
        }
    };
}

pub(super) use seven;

/// The seven functions.
pub(super) struct Seven;

impl Benchmarking for Seven {
    fn void_call(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn in_int_call(&self, _: i32) -> Result<(), Failure> {
        Ok(())
    }

    fn out_int_call(&self) -> Result<i32, Failure> {
        Ok(42)
    }

    fn in_out_int_call(&self, v: i32) -> Result<i32, Failure> {
        Ok(v.wrapping_add(1))
    }

    fn in_string_call(&self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn out_string_call(&self) -> Result<String, Failure> {
        Ok(TEXT.to_owned())
    }

    fn in_out_string_call(&self, v: &str) -> Result<String, Failure> {
        Ok(v.to_owned())
    }
}

/// Bytes on demand: slices of one block, which is made at the first call and never copied.
pub(super) struct Remote {
    /// The most bytes that are answered: what messages may have, 64 MB at the most.
    largest: usize,
    block: OnceLock<Bytes>,
}

impl Remote {
    pub(super) fn new(largest: u64) -> Self {
        Self { largest: usize::try_from(largest.min(64 << 20)).unwrap_or(0), block: OnceLock::new() }
    }
}

impl IRemoteObject for Remote {
    fn get_bytes(&self, n: i32) -> Result<OctetSeq, Failure> {
        let asked = usize::try_from(n)
            .ok()
            .filter(|n| *n <= self.largest)
            .ok_or_else(|| bad_argument(format!("GetBytes answers 0 to {} bytes, not {n}", self.largest)))?;
        let block = self.block.get_or_init(|| (0..self.largest).map(|i| (i & 0xff) as u8).collect());
        Ok(block.slice(..asked))
    }
}

/// A sink that does nothing with what it gets.
struct Quiet;

impl Sink for Quiet {
    fn hello(&self) -> Result<(), Failure> {
        Ok(())
    }

    fn hello_sync(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Calls its sinks when told to. Cookies are never used twice, until 2^32 of them are gone.
#[derive(Default)]
struct FiringServant {
    advised: Mutex<SinkTable>,
}

/// Sinks by cookie, and the last cookie.
#[derive(Default)]
struct SinkTable {
    sinks: BTreeMap<u32, Ref<dyn Sink>>,
    last: u32,
}

impl FiringServant {
    fn advised(&self) -> MutexGuard<'_, SinkTable> {
        self.advised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Source for FiringServant {
    fn advise(&self, s: Option<Ref<dyn Sink>>) -> Result<u32, Failure> {
        let sink = s.ok_or_else(|| bad_argument("Advise wants a sink, not nil"))?;
        let mut advised = self.advised();
        advised.last = advised.last.wrapping_add(1);
        let cookie = advised.last;
        advised.sinks.insert(cookie, sink);
        Ok(cookie)
    }

    fn unadvise(&self, cookie: u32) -> Result<(), Failure> {
        match self.advised().sinks.remove(&cookie) {
            Some(_) => Ok(()),
            None => Err(bad_argument(format!("nobody was advised with cookie {cookie}"))),
        }
    }
}

impl FiringSource for FiringServant {
    /// Calls out without the lock, so that a sink may advise or unadvise meanwhile.
    fn fire(&self, n: u32) -> Result<(), Failure> {
        let sinks: Vec<Ref<dyn Sink>> = self.advised().sinks.values().cloned().collect();
        everywire::blocking(|| {
            for sink in sinks {
                for _ in 0..n {
                    sink.hello()?;
                }
                sink.hello_sync()?;
            }
            Ok(())
        })
    }
}

fn bad_argument(message: impl Into<String>) -> Failure {
    Failure::new(Kind::BadArgument, Initiator::Peer, message).with_completed(Completed::No)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Counting(AtomicU32);

    impl Sink for Counting {
        fn hello(&self) -> Result<(), Failure> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        fn hello_sync(&self) -> Result<(), Failure> {
            self.0.fetch_add(1000, Ordering::SeqCst);
            Ok(())
        }
    }

    /// Two nodes, so that everything goes over the wire both ways.
    #[test]
    fn sinks_of_another_node_are_called_back() {
        let (server, client) = (Node::new(), Node::new());
        server.listen("iiop://127.0.0.1:0").unwrap();
        client.listen("iiop://127.0.0.1:0").unwrap();
        let references: BTreeMap<_, _> = export(&server, 1 << 20).into_iter().collect();
        let source = client.connect::<dyn FiringSource>(&server.print(&references["Source"])).unwrap();
        let sink = Arc::new(Counting(AtomicU32::new(0)));
        let advised = client.export_anonymous(Arc::clone(&sink) as Arc<dyn Sink>);
        let cookie = source.advise(Some(advised)).unwrap();
        source.fire(7).unwrap();
        assert_eq!(sink.0.load(Ordering::SeqCst), 1007);
        source.unadvise(cookie).unwrap();
        source.fire(3).unwrap();
        assert_eq!(sink.0.load(Ordering::SeqCst), 1007);
        assert!(source.unadvise(cookie).is_err());
    }

    #[test]
    fn bytes_are_slices_of_one_block() {
        let remote = Remote::new(1000);
        let (a, b) = (remote.get_bytes(10).unwrap(), remote.get_bytes(1000).unwrap());
        assert_eq!(a.as_ptr(), b.as_ptr());
        assert_eq!((a.len(), b[257]), (10, 1));
        assert!(remote.get_bytes(1001).is_err() && remote.get_bytes(-1).is_err());
    }
}
