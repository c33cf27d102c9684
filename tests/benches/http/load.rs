//! Callers who keep their connection and send the next request when the answer to the last has come: all of one thread.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Callers of one server.
pub(crate) struct Callers {
    epoll: OwnedFd,
    callers: Vec<Caller>,
    request: Vec<u8>,
}

struct Caller {
    stream: TcpStream,
    /// What has come of the answer.
    answer: Vec<u8>,
    asked: Instant,
    waits: bool,
}

/// What a round has shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Round {
    pub(crate) requests: usize,
    pub(crate) seconds: f64,
    /// Microseconds.
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) worst: f64,
}

impl Callers {
    /// So many connections to a place, each of which will send this request.
    pub(crate) fn new(place: SocketAddr, count: usize, request: &[u8]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let mut callers = Vec::with_capacity(count);
        for at in 0..count {
            let stream = TcpStream::connect(place)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(at as u64), EventFlags::IN)?;
            callers.push(Caller { stream, answer: Vec::new(), asked: Instant::now(), waits: false });
        }
        Ok(Self { epoll, callers, request: request.to_vec() })
    }

    /// All of them call for so long; each has its answer at the end.
    pub(crate) fn round(&mut self, time: Duration) -> io::Result<Round> {
        let mut times = Vec::with_capacity(1 << 18);
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        let begun = Instant::now();
        for caller in &mut self.callers {
            caller.ask(&self.request)?;
        }
        let mut waiting = self.callers.len();
        while waiting > 0 {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                waited => waited?,
            };
            for event in &events {
                let caller = &mut self.callers[event.data.u64() as usize];
                if !caller.take()? {
                    continue;
                }
                let now = Instant::now();
                times.push(now.duration_since(caller.asked).as_nanos() as u64);
                if now.duration_since(begun) < time {
                    caller.ask(&self.request)?;
                } else {
                    waiting -= 1;
                }
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize] as f64 / 1e3;
        Ok(Round { requests: times.len(), seconds, median: at(0.5), p99: at(0.99), worst: at(1.0) })
    }
}

impl Caller {
    fn ask(&mut self, request: &[u8]) -> io::Result<()> {
        assert!(!self.waits, "one request at a time");
        (self.waits, self.asked) = (true, Instant::now());
        // A request is smaller than an empty socket's buffer.
        self.stream.write_all(request)
    }

    /// Takes what has come. Whether the answer is whole.
    fn take(&mut self) -> io::Result<bool> {
        let mut room = [0; 4096];
        match self.stream.read(&mut room) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed a connection")),
            Ok(n) => self.answer.extend_from_slice(&room[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
        match whole(&self.answer) {
            Some(length) if length == self.answer.len() => {
                assert!(
                    self.answer.starts_with(b"HTTP/1.1 200 "),
                    "{}",
                    String::from_utf8_lossy(&self.answer)
                );
                self.answer.clear();
                self.waits = false;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Octets of a message, head and body, once the head is there.
pub(crate) fn whole(message: &[u8]) -> Option<usize> {
    let head = message.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let mut lines = message[..head].split(|octet| *octet == b'\n');
    let length = lines.find_map(|line| {
        let (name, value) = line.split_at_checked(15)?;
        name.eq_ignore_ascii_case(b"content-length:").then_some(value)
    })?;
    Some(head + std::str::from_utf8(length).ok()?.trim().parse::<usize>().ok()?)
}
