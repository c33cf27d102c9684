//! A server that runs out of descriptors goes on as soon as there are some again.

#![allow(clippy::unwrap_used)]

use crate::plain;
use crate::plain::{Honest, LONG, PLAIN, Probe, call};
use everywire_runtime::{Builder, Notice};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, mpsc};

/// A socket whose descriptor has a number that is out of the way.
fn aside() -> UnixStream {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    let stream = UnixStream::from(fcntl_dupfd_cloexec(socket, 500).unwrap());
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

/// Calls `add_one`, and returns what makes a reply: its kind, its call's number, and the result.
fn asks(mut peer: &UnixStream) -> (u8, u8, u8) {
    peer.write_all(&call(7, "add_one", 6)).unwrap();
    let mut reply = [0; 17];
    peer.read_exact(&mut reply).unwrap();
    (reply[4], reply[5], reply[13])
}

/// The only test of this process: it takes the descriptors away.
#[test]
fn descriptors_of_peers_that_left_are_free_for_others() {
    // It takes all descriptors of the process.
    if !plain::alone() {
        return;
    }
    let name = plain::name("starved");
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let observer = Arc::new(move |notice: &Notice| {
        if matches!(notice, Notice::Starved { .. }) {
            // Nobody listens any more once the first was told.
            let _ = tell.lock().unwrap().send(());
        }
    });
    let server = Builder::new(&[&PLAIN]).shards(1).observer(observer).build();
    server.listen(&format!("plain+unix://@{name}")).unwrap();
    server.export::<dyn Probe>("probe", Arc::new(Honest::default()));
    let peers: Vec<_> = (0..5).map(|_| aside()).collect();
    let late = aside();
    // Four are left for the server.
    let next = std::fs::File::open("/dev/null").unwrap();
    let usual = getrlimit(Resource::Nofile);
    let few = u64::try_from(next.as_raw_fd()).unwrap() + 4;
    drop(next);
    setrlimit(Resource::Nofile, Rlimit { current: Some(few), maximum: usual.maximum }).unwrap();
    for (index, peer) in peers.iter().enumerate() {
        connect(peer, &address).unwrap();
        if index < 4 {
            // Served, so that none of them has to make room for others.
            assert_eq!(asks(peer), (1, 7, 7));
        }
    }
    told.recv_timeout(LONG).unwrap();
    drop(peers);
    connect(&late, &address).unwrap();
    let reply = std::panic::catch_unwind(|| asks(&late));
    setrlimit(Resource::Nofile, usual).unwrap();
    assert_eq!(reply.unwrap(), (1, 7, 7));
}
