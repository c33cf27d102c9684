//! Nonces: 16 bytes from a file, which a client sends first over TCP to show that it can read files of the server's host
//! (specification, "Nonce-authenticated TCP Sockets").

use everywire_model::{Failure, Initiator, Kind};
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Bytes of a nonce.
pub(crate) const NONCE: usize = 16;

/// Makes a nonce in a file that this user alone may read; returns the file's path.
pub(crate) fn create() -> Result<String, Failure> {
    let mut raw = [0; NONCE + 8];
    getrandom::fill(&mut raw).map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("no randomness for a nonce: {error}"))
    })?;
    let (nonce, name) = raw.split_at(NONCE);
    let name: String = name.iter().map(|octet| format!("{octet:02x}")).collect();
    let path = std::env::temp_dir().join(format!("dbus-nonce-{name}"));
    let write = || OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?.write_all(nonce);
    write().map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("the nonce file {}: {error}", path.display()))
    })?;
    Ok(path.to_string_lossy().into_owned())
}

/// Reads a nonce.
pub(crate) fn read(path: &str) -> Result<[u8; NONCE], Failure> {
    let read = || {
        let mut nonce = [0; NONCE];
        std::fs::File::open(path)?.read_exact(&mut nonce)?;
        Ok(nonce)
    };
    read().map_err(|error: std::io::Error| {
        Failure::new(Kind::Refused, Initiator::Here, format!("the nonce file {path} cannot be read: {error}"))
            .with_hint("the server's nonce-tcp address names a file on its host")
    })
}
