//! A servant that keeps its callers, and where it is served.

use super::foreign::PATIENCE;
use super::hello::Remote;
use super::hello::bench::IRemoteObject;
use everywire::{Bytes, Failure, Node};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Keeps its callers until they are let go, and counts them.
#[derive(Debug, Default)]
pub struct Waiting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    inside: usize,
    most: usize,
    total: usize,
    /// How many may leave.
    let_go: usize,
}

impl Waiting {
    /// Callers that are kept now.
    pub fn inside(&self) -> usize {
        self.lock().inside
    }

    /// The most that were kept at once.
    pub fn most(&self) -> usize {
        self.lock().most
    }

    /// All that ever came.
    pub fn total(&self) -> usize {
        self.lock().total
    }

    /// So many may leave.
    pub fn let_go(&self, many: usize) {
        self.lock().let_go += many;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stay(&self) {
        let mut state = self.lock();
        state.total += 1;
        state.inside += 1;
        state.most = state.most.max(state.inside);
        let (mut state, late) = self
            .changed
            .wait_timeout_while(state, PATIENCE, |state| state.let_go == 0)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(!late.timed_out(), "nobody lets go");
        state.let_go -= 1;
        state.inside -= 1;
    }
}

impl IRemoteObject for Waiting {
    fn get_bytes(&self, num_bytes: i32) -> Result<Bytes, Failure> {
        Remote.get_bytes(num_bytes)
    }
    fn put_bytes(&self, data: Bytes) -> Result<i32, Failure> {
        Remote.put_bytes(data)
    }
    fn void_call(&self) -> Result<(), Failure> {
        self.stay();
        Ok(())
    }
    fn in_int(&self, x: i32) -> Result<(), Failure> {
        Remote.in_int(x)
    }
    fn out_int(&self) -> Result<i32, Failure> {
        Remote.out_int()
    }
    fn in_out_int(&self, x: i32) -> Result<i32, Failure> {
        Remote.in_out_int(x)
    }
    fn in_string(&self, s: &str) -> Result<(), Failure> {
        Remote.in_string(s)
    }
    fn out_string(&self) -> Result<String, Failure> {
        Remote.out_string()
    }
    fn in_out_string(&self, s: &str) -> Result<String, Failure> {
        Remote.in_out_string(s)
    }
}

/// A server, and the address of its object.
pub fn place(address: &str) -> (Node, Arc<Waiting>, String) {
    let server = Node::new();
    let at = server.listen(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let servant = Arc::new(Waiting::default());
    let _ = server.export::<dyn IRemoteObject>("bench", Arc::clone(&servant) as _);
    let (at, options) = at.split_once('?').map_or((at.as_str(), ""), |(at, options)| (at, options));
    let at = at.trim_end_matches(['/', '#']);
    // Sockets and paths are told apart by a sign.
    let sign = if at.contains("+unix") || at.contains("+shm") { '#' } else { '/' };
    let query = if options.is_empty() { String::new() } else { format!("?{options}") };
    (server, servant, format!("{at}{sign}bench{query}"))
}
