//! Whose program listens at an endpoint of this machine: the kernel tells for Unix sockets, and `/proc`
//! for TCP.
//!
//! Nobody is told of a program on another machine. For TCP the tables of the network namespace give the
//! socket's number, and the descriptors of all processes are searched for it, of which a user without
//! privileges sees his own only.

use crate::stranger::Stream;
use everywire::model::Endpoint;
use serde_json::{Value as Json, json};
use std::fmt;
use std::fs;
use std::net::{IpAddr, SocketAddr};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A program of this machine.
#[derive(Debug)]
pub(super) struct Owner {
    pid: u32,
    user: Option<u32>,
    /// Its command line, where it can be read.
    command: String,
}

impl Owner {
    fn of_process(pid: u32, user: Option<u32>) -> Self {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
        Self { pid, user, command }
    }

    pub(super) fn json(&self) -> Json {
        json!({"pid": self.pid, "user": self.user, "command": self.command})
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = if self.command.is_empty() { "a program" } else { &self.command };
        write!(f, "{command} (pid {}", self.pid)?;
        if let Some(user) = self.user {
            write!(f, ", user {user}")?;
        }
        f.write_str(")")
    }
}

/// The program at the other end. `None` if it is not of this machine, or this user may not know.
pub(super) fn of(stream: &Stream, endpoint: &Endpoint) -> Option<Owner> {
    match stream {
        Stream::Unix(stream) => {
            let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
            let pid = u32::try_from(peer.pid.as_raw_nonzero().get()).ok()?;
            Some(Owner::of_process(pid, Some(peer.uid.as_raw())))
        }
        Stream::Tcp(stream) => {
            let peer = stream.peer_addr().ok()?;
            let here = peer.ip().is_loopback() || stream.local_addr().is_ok_and(|own| own.ip() == peer.ip());
            let Endpoint::Tcp { .. } = endpoint else { return None };
            if !here { None } else { listener(peer) }
        }
    }
}

/// The process whose socket listens at this port, on whatever address.
fn listener(peer: SocketAddr) -> Option<Owner> {
    let tables = match peer.ip() {
        IpAddr::V4(_) => ["/proc/net/tcp", "/proc/net/tcp6"],
        IpAddr::V6(_) => ["/proc/net/tcp6", "/proc/net/tcp"],
    };
    let port = format!(":{:04X}", peer.port());
    let (user, inode) = tables.iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().skip(1).find_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let listens = words.get(1)?.ends_with(&port) && *words.get(3)? == LISTEN;
            listens.then_some(())?;
            Some((words.get(7)?.parse::<u32>().ok(), (*words.get(9)?).to_owned()))
        })
    })?;
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let pid = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).find(|pid| {
        let handles = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        handles.into_iter().any(|handle| {
            fs::read_link(handle.path()).is_ok_and(|leads| leads.as_os_str() == socket.as_str())
        })
    })?;
    Some(Owner::of_process(pid, user))
}
