//! What `serve --memory` promises: peers that hold back the end of large messages do not make the server's memory grow.

use crate::support::{Bank, run};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// Bytes that a message says it has, and those that come: GIOP 1.2, a request, little-endian (CORBA 3.0, 15.4.1).
const LARGE: u32 = (4 << 20) - 4096;
const HELD_BACK: usize = 1 << 10;

/// Connects this many peers, each of which sends a message but for its end. A peer whose connection is ended meanwhile stops; the
/// others go on to hold theirs.
fn hold_back(bank: &Bank, peers: usize) -> Vec<TcpStream> {
    let place = bank.addresses[0].strip_prefix("iiop://").unwrap().split('/').next().unwrap().to_owned();
    let mut says = b"GIOP\x01\x02\x01\x00".to_vec();
    says.extend(LARGE.to_le_bytes());
    says.resize(says.len() + LARGE as usize - HELD_BACK, b' ');
    (0..peers)
        .map(|_| {
            let mut peer = TcpStream::connect(&place).unwrap();
            // Only a server that hangs is given up.
            peer.set_write_timeout(Some(Duration::from_secs(300))).unwrap();
            if let Err(error) = peer.write_all(&says) {
                assert!(!matches!(error.kind(), std::io::ErrorKind::WouldBlock), "it reads no more: {error}");
            }
            peer
        })
        .collect()
}

/// 400 messages of nearly 4 MiB, which would be 1.6 GiB, at a budget of 64 MiB.
#[test]
fn ends_of_large_messages_held_back_cost_the_server_no_more_than_it_may_have() {
    let bank = Bank::at(&["tcp"], &["--memory", "64MiB"]);
    assert_eq!(bank.call(&["title"]).good(), "Savings");
    let peers = hold_back(&bank, 400);
    // Somebody of the same address is served, and the server says what it does.
    assert_eq!(bank.call(&["title"]).good(), "Savings");
    let peak = bank.server.peak();
    assert!(peak < 128 << 20, "{} MiB", peak >> 20);
    drop(peers);
    assert_eq!(run(&["status", &bank.addresses[0]]).code, 0);
}

/// The same with a budget that is never reached: the peers do make the server hold what they sent.
#[test]
fn without_the_budget_they_cost_what_they_send() {
    let bank = Bank::at(&["tcp"], &["--memory", "1GiB"]);
    let peers = hold_back(&bank, 50);
    assert_eq!(bank.call(&["title"]).good(), "Savings");
    // What was sent last may still be in the kernel.
    crate::support::until("the server has read it", || bank.server.peak() > 128 << 20);
    drop(peers);
}
