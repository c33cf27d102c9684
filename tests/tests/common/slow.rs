//! Peers that send a message octet by octet: how far each of them is, is known at every moment, whatever the machine does.

use super::foreign::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// How long servers that are to lose their patience with a first message wait for it: more than an honest client needs on a busy
/// machine.
pub const IMPATIENT: Duration = Duration::from_secs(10);

/// Sends this message on all connections: one octet on each of them in turn. Before each octet but the first, when every
/// message is begun and none is whole, others do their work. Whoever is cut off meanwhile fails the test.
pub fn trickle(senders: &mut [impl Write], message: &[u8], mut others: impl FnMut()) {
    for (at, octet) in message.iter().enumerate() {
        if at > 0 {
            others();
        }
        for sender in &mut *senders {
            sender
                .write_all(&[*octet])
                .unwrap_or_else(|error| panic!("octet {at} of a slow message: {error}"));
        }
    }
}

/// A connection that can be read for a while.
pub trait Connection: Read + Write {
    /// A read waits no longer than this.
    fn read_within(&self, time: Duration);
}

impl Connection for TcpStream {
    fn read_within(&self, time: Duration) {
        self.set_read_timeout(Some(time)).expect("a timeout");
    }
}

impl Connection for UnixStream {
    fn read_within(&self, time: Duration) {
        self.set_read_timeout(Some(time)).expect("a timeout");
    }
}

/// Goes on sending one octet after the other, until the server has closed every connection. What `octet` says must be a
/// message without an end.
pub fn until_cut_off<C: Connection>(mut senders: Vec<C>, octet: impl Fn(usize) -> u8) {
    let end = Instant::now() + PATIENCE;
    for sender in &senders {
        sender.read_within(Duration::from_millis(5));
    }
    for at in 0.. {
        // A write fails when the server closed after the last look.
        senders.retain_mut(|sender| sender.write_all(&[octet(at)]).is_ok() && !is_closed(sender));
        if senders.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "{} slow senders are never cut off", senders.len());
    }
}

fn is_closed(sender: &mut impl Read) -> bool {
    match sender.read(&mut [0; 256]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}
