//! What `serve --memory` promises: peers that hold back the end of large messages do not make the server's memory grow, and calls of
//! many small values little.

use crate::support::{Bank, Running, Scratch, run};
use std::io::{Read, Write};
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

/// A call of `take` at the object `a`: GIOP 1.2, little-endian (CORBA 3.0, 15.4.2). The arguments begin at a multiple of 8.
fn request(arguments: &[u8]) -> Vec<u8> {
    let mut says = b"GIOP\x01\x02\x01\x00\0\0\0\0".to_vec();
    // The number 1, an answer is wanted, and the key.
    says.extend(b"\x01\0\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0a\0\0\0");
    says.extend(b"\x05\0\0\0take\0\0\0\0");
    says.extend([0; 4]);
    says.resize(says.len().next_multiple_of(8), 0);
    says.extend(arguments);
    let size = u32::try_from(says.len() - 12).unwrap();
    says[8..12].copy_from_slice(&size.to_le_bytes());
    says
}

/// 300,000 empty lists of octets are 1.2 MB in a message, and 4 MB as a line for the program. As nodes of a tree they were 240 MB.
#[test]
fn a_call_of_many_small_values_costs_the_server_little_more_than_its_text() {
    const LISTS: u32 = 300_000;
    let scratch = Scratch::new();
    let contract = scratch.path("lists.idl");
    std::fs::write(
        &contract,
        "typedef sequence<sequence<octet> > Lists; interface Taker { void take(in Lists lists); };",
    )
    .unwrap();
    let exec = r#"python3 -c 'import sys
for line in sys.stdin.buffer: print("%s}" % line[:line.index(b",")].decode(), flush=True)'"#;
    let mut server =
        Running::start(&["serve", &contract, "--exec", exec, "--key", "a", "--on", "iiop://127.0.0.1:0"]);
    let place = server.line().strip_prefix("iiop://").unwrap().split('/').next().unwrap().to_owned();
    let mut peer = TcpStream::connect(&place).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let mut arguments = LISTS.to_le_bytes().to_vec();
    arguments.resize(arguments.len() + LISTS as usize * 4, 0);
    let before = server.peak();
    peer.write_all(&request(&arguments)).unwrap();
    let mut says = [0; 24];
    peer.read_exact(&mut says).unwrap();
    // The answer (its type is 1) to the call 1, without an exception.
    assert_eq!((says[7], &says[12..20]), (1, &b"\x01\0\0\0\0\0\0\0"[..]), "{says:?}");
    let more = server.peak() - before;
    assert!(more < 32 << 20, "{} MiB", more >> 20);
}
