//! Sockets that a server is started with: by systemd's own tool, and over TCP as it passes them.

use crate::support::{PROGRAM, Scratch, data, run};
use everywire_peers::here;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

/// A program of this test; it ends with this value.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("kill").arg(&pid).status();
        let _ = self.0.wait();
    }
}

/// The words of a server of the bank's contract at this address.
fn serve(address: &str) -> Vec<String> {
    let (contract, program) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    let words = ["serve", &contract, "--interface", "Account", "--exec", &program, "--on", address];
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_server_is_started_by_the_first_connection_to_its_socket() {
    if !here("a_server_is_started_by_the_first_connection_to_its_socket", &["systemd-socket-activate"]) {
        return;
    }
    let scratch = Scratch::new();
    let socket = scratch.path("bank.sock");
    let address = format!("iiop+unix://{socket}");
    let mut child = Command::new("systemd-socket-activate")
        .args(["--listen", &socket, PROGRAM])
        .args(serve(&address))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let started = Started(child);
    let mut line = String::new();
    while !line.contains("Listening") {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
    }
    let object = format!("{address}#Account");
    assert_eq!(run(&["call", &object, "title=Savings"]).code, 0);
    assert_eq!(run(&["call", &object, "title"]).good(), "Savings");
    drop(started);
    // The file is systemd's.
    assert!(std::fs::exists(&socket).unwrap());
}

#[test]
fn a_socket_of_tcp_is_taken_by_whom_it_is_meant_for() {
    let server = |meant: &str, more: &[&str]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("iiop://{}", listener.local_addr().unwrap());
        let passing = format!("exec 3<&0 0</dev/null; {meant} LISTEN_FDS=1 exec \"$@\"");
        let mut child = Command::new("sh")
            .args(["-c", &passing, "sh", PROGRAM])
            .args(serve(&address))
            .args(more.iter().flat_map(|option| ["--on", &address, *option]))
            .stdin(OwnedFd::from(listener.try_clone().unwrap()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().map(Result::unwrap);
        (Started(child), first, address, listener)
    };
    let (_started, first, address, _listener) = server("LISTEN_PID=$$", &[]);
    assert_eq!(first, Some(format!("{address}/Account")));
    assert_eq!(run(&["call", &format!("{address}/Account"), "deposit", "0", "--json"]).code, 0);
    // Of another process: the address is somebody's already.
    let (_started, first, ..) = server("LISTEN_PID=1", &[]);
    assert_eq!(first, None);
    // Two listeners at one address are a mistake here, too.
    let (_started, first, ..) = server("LISTEN_PID=$$", &["--verbose"]);
    assert_eq!(first, None);
}
