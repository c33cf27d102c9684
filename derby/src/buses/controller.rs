//! What dbus-broker is told by whoever started it: the one socket to listen on, and a policy that lets everything pass.
//!
//! The bus itself is a small machine that reads no configuration: its controller authenticates like any client, on the
//! socket that the bus was started with, and calls `AddListener` with the listening socket's descriptor.

use crate::broken;
use everywire_model::Failure;
use std::io::{BufRead, BufReader, Read, Write};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

/// The bus has this long for each answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// No answer to us is larger.
const LARGEST: usize = 1 << 20;

const PATH: &str = "/org/bus1/DBus/Broker";
const INTERFACE: &str = "org.bus1.DBus.Broker";
const LISTENER: &str = "/org/bus1/DBus/Listener/0";

/// The policy's type: rules by user, rules by groups and ranges, `SELinux` contexts, whether `AppArmor` decides, and on what bus.
/// Each batch of rules says who may connect, own names, send, and receive.
const POLICY: &str = "(a(u(bta(btbs)a(btssssuutt)a(btssssuutt)))\
                      a(buu(bta(btbs)a(btssssuutt)a(btssssuutt)))a(ss)bs)";

/// Has the bus at the other end of `controller` accept connections of `listener`.
pub(super) fn add_listener(controller: &UnixStream, listener: &UnixListener) -> Result<(), Failure> {
    let failed = |error: std::io::Error| broken(format!("dbus-broker does not answer: {error}"));
    controller.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut reader = BufReader::new(controller);
    let mut told = controller;
    // SAFETY: the call takes nothing and cannot fail.
    let uid = unsafe { libc::geteuid() };
    let hex: String = uid.to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
    for (line, answer) in
        [(format!("\0AUTH EXTERNAL {hex}\r\n"), "OK "), ("NEGOTIATE_UNIX_FD\r\n".into(), "AGREE")]
    {
        told.write_all(line.as_bytes()).map_err(failed)?;
        let mut said = String::new();
        reader.read_line(&mut said).map_err(failed)?;
        if !said.starts_with(answer) {
            return Err(broken(format!("dbus-broker refuses its controller: {}", said.trim_end())));
        }
    }
    told.write_all(b"BEGIN\r\n").map_err(failed)?;
    send(controller, &call(), listener).map_err(failed)?;
    loop {
        let message = message(&mut reader).map_err(failed)?;
        match message.get(1) {
            Some(2) => return Ok(()),
            Some(3) => {
                let text: String = message
                    .iter()
                    .map(|&byte| if byte.is_ascii_graphic() { char::from(byte) } else { ' ' })
                    .collect();
                return Err(broken(format!(
                    "dbus-broker refuses its listener: {}",
                    text.split_whitespace().collect::<Vec<_>>().join(" ")
                )));
            }
            _ => {}
        }
    }
}

/// One whole message: its fixed header of 16 bytes, the header fields padded to 8, and the body. Its
/// numbers are read as little-endian, which is what the bus writes on the machines that the derby runs
/// on.
///
/// # Errors
/// The bus closed the connection, took too long, or a length is larger than `LARGEST`.
fn message(reader: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; 16];
    reader.read_exact(&mut message)?;
    let number = |at: usize| {
        let bytes = message.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default();
        usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let rest = number(12).saturating_add(7) / 8 * 8;
    let length = rest.saturating_add(number(4));
    if length > LARGEST {
        return Err(std::io::Error::other("a message of nonsensical length"));
    }
    message.resize(16 + length, 0);
    reader.read_exact(message.get_mut(16..).unwrap_or_default())?;
    Ok(message)
}

/// `AddListener(path, descriptor, policy)`.
fn call() -> Vec<u8> {
    let mut body = Writer::default();
    body.text(LISTENER);
    body.number(0);
    body.signature(POLICY);
    body.policy();

    let mut header = Writer(vec![b'l', 1, 0, 1]);
    header.number(u32::try_from(body.0.len()).unwrap_or(0));
    header.number(1);
    header.array(8, |header| {
        for (field, kind, value) in [(1, "o", PATH), (2, "s", INTERFACE), (3, "s", "AddListener")] {
            header.pad(8);
            header.0.push(field);
            header.signature(kind);
            header.text(value);
        }
        header.pad(8);
        header.0.push(8);
        header.signature("g");
        header.signature("ohv");
        header.pad(8);
        header.0.push(9);
        header.signature("u");
        header.number(1);
    });
    header.pad(8);
    header.0.extend(body.0);
    header.0
}

/// The bytes of a message: little-endian values, each at its alignment (D-Bus specification,
/// marshaling).
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    /// Zeros up to a multiple of this.
    fn pad(&mut self, alignment: usize) {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
    }

    fn number(&mut self, value: u32) {
        self.pad(4);
        self.0.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.pad(8);
        self.0.extend(value.to_le_bytes());
    }

    fn text(&mut self, value: &str) {
        self.number(u32::try_from(value.len()).unwrap_or(0));
        self.0.extend(value.as_bytes());
        self.0.push(0);
    }

    /// A length of one byte, the signature, and a zero.
    fn signature(&mut self, value: &str) {
        self.0.push(u8::try_from(value.len()).unwrap_or(0));
        self.0.extend(value.as_bytes());
        self.0.push(0);
    }

    /// An array: its length, the padding of its first element, which the length does not count, and the
    /// elements.
    fn array(&mut self, alignment: usize, elements: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.0.len() - 4;
        self.pad(alignment);
        let begin = self.0.len();
        elements(self);
        let length = u32::try_from(self.0.len() - begin).unwrap_or(0);
        if let Some(place) = self.0.get_mut(length_at..length_at + 4) {
            place.copy_from_slice(&length.to_le_bytes());
        }
    }

    /// Everybody may connect, own every name, send and receive everything.
    fn policy(&mut self) {
        self.pad(8);
        self.array(8, |out| {
            out.number(u32::MAX);
            out.pad(8);
            out.allowed();
            out.array(8, |out| {
                out.allowed();
                out.number(1);
                out.text("");
            });
            for _direction in 0..2 {
                out.array(8, |out| {
                    out.allowed();
                    for _pattern in ["name", "path", "interface", "member"] {
                        out.text("");
                    }
                    out.number(0);
                    out.number(0);
                    out.long(0);
                    out.long(u64::MAX);
                });
            }
        });
        self.array(8, |_| {});
        self.array(8, |_| {});
        self.number(0);
        self.text("session");
    }

    /// The verdict and the priority with which each rule begins.
    fn allowed(&mut self) {
        self.number(1);
        self.long(1);
    }
}

/// Sends bytes, and a descriptor with them.
fn send(socket: &UnixStream, bytes: &[u8], descriptor: &impl AsRawFd) -> std::io::Result<()> {
    let size = u32::try_from(size_of::<libc::c_int>()).unwrap_or(0);
    let mut control = [0u64; 8];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: a msghdr is plain numbers and pointers, for which zero is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // SAFETY: this only computes with its argument.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(size) } as _;
    // SAFETY: `control` is larger than one control message that carries a descriptor, and aligned for its header; the
    // pointers in `message` are to local variables, and `bytes` is only read.
    let sent = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SCM_RIGHTS;
        (*first).cmsg_len = libc::CMSG_LEN(size) as _;
        libc::CMSG_DATA(first).cast::<libc::c_int>().write_unaligned(descriptor.as_raw_fd());
        libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    match usize::try_from(sent) {
        Ok(sent) if sent == bytes.len() => Ok(()),
        // The whole call is far smaller than a socket's buffer.
        Ok(_) => Err(std::io::Error::other("a call was sent in part")),
        Err(_) => Err(std::io::Error::last_os_error()),
    }
}
