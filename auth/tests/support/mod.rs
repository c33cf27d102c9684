//! What the tests share: a directory that goes away, predictable "random" numbers, captures.
#![allow(dead_code, unreachable_pub)]

use bytes::BytesMut;
use everywire_auth::sasl::{Authenticated, AuthenticatedClient, Client, Guid, Progress, SaslError, Server};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const GUID: Guid =
    Guid([0xed, 0x39, 0x83, 0x4e, 0x91, 0xf5, 0xc9, 2, 0x77, 0x10, 0xe4, 0x66, 0x6b, 1, 0xb, 0x16]);
pub(crate) const GUID_TEXT: &str = "ed39834e91f5c9027710e4666b010b16";

/// A directory of mode 0700 that is removed with its contents.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::DirBuilderExt;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everywire-auth-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // Left over from a process with the same number that was killed: it is nobody's any more.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

pub(crate) fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Not random at all.
pub(crate) fn fixed(buffer: &mut [u8]) -> io::Result<()> {
    buffer.fill(0x5a);
    Ok(())
}

pub(crate) fn broken(_: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Other.into())
}

/// Everything that a machine says in answer to these bytes.
pub(crate) trait Hears {
    type Done;
    fn hear(&mut self, input: &mut BytesMut, out: &mut Vec<u8>) -> Result<Progress<Self::Done>, SaslError>;

    fn says(&mut self, input: &str) -> (Result<Progress<Self::Done>, SaslError>, String) {
        let mut out = Vec::new();
        let mut input = BytesMut::from(input);
        let progress = self.hear(&mut input, &mut out);
        if matches!(progress, Ok(Progress::More)) {
            assert!(input.is_empty(), "left: {input:?}");
        }
        (progress, String::from_utf8(out).unwrap())
    }

    /// The answer to a line that does not end the conversation.
    fn answers(&mut self, line: &str) -> String {
        let (progress, out) = self.says(&format!("{line}\r\n"));
        assert!(matches!(progress, Ok(Progress::More)), "{line}: {:?}", progress.err());
        out
    }
}

impl Hears for Client {
    type Done = Authenticated;
    fn hear(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Progress<Authenticated>, SaslError> {
        self.receive(input, out)
    }
}

impl Hears for Server {
    type Done = AuthenticatedClient;
    fn hear(
        &mut self,
        input: &mut BytesMut,
        out: &mut Vec<u8>,
    ) -> Result<Progress<AuthenticatedClient>, SaslError> {
        self.receive(input, out)
    }
}

pub(crate) fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A captured conversation: who spoke (`true` for the client) and what.
pub(crate) fn capture(name: &str) -> Vec<(bool, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let mut turns = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        if line.starts_with(' ') {
            let (_, bytes): &mut (bool, Vec<u8>) = turns.last_mut().unwrap();
            bytes.extend(unhex(&line[..74.min(line.len())]));
        } else {
            turns.push((line.starts_with("C->S"), Vec::new()));
        }
    }
    turns
}
