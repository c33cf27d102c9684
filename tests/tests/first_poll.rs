//! A future is polled and says that it waits; nothing of what it waits for happens in `poll`: not the connection, nor the greeting of a wire. Here
//! nobody ever greets, so a poll that waited would bring the end of the call's time.

use crate::common::scratch;
use everywire::{Kind, Node};
use everywire_tests::bench::BenchmarkingAsync;
use std::future::Future;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[test]
fn a_first_poll_waits_for_nobody_on_any_wire() {
    let dir = scratch("first-poll");
    std::fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join("silent");
    // The kernel accepts for them.
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let _unix = UnixListener::bind(&path).expect("a socket");
    let (at, path) = (tcp.local_addr().expect("bound"), path.display());
    for address in [
        format!("iiop://{at}/bench"),
        format!("iiop+unix://{path}#bench"),
        format!("dbus+unix://{path}#bench"),
        format!("dcom://{at}/bench?level=none"),
        format!("net.tcp://{at}/bench?security=none"),
        format!("basic://{at}/bench"),
    ] {
        let node = Node::new();
        let bench = node.connect::<dyn BenchmarkingAsync>(&address).expect("it parses");
        let bench = bench.with_deadline(Some(Duration::from_secs(1))).expect("it is elsewhere");
        let mut call = pin!(bench.in_out_int_call(1));
        let first = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(first, Poll::Pending), "{address}: {first:?}");
        // It ends all the same, once somebody waits.
        let failure = crate::in_process::pollster(call).expect_err("nobody answers");
        assert_eq!(failure.kind(), Kind::TimedOut, "{address}: {failure}");
    }
}
