//! Who answers at an endpoint where another wire was expected.
//!
//! A server that is greeted in another protocol than its own mostly closes the connection without a word. So
//! when a wire's client gets nowhere, each wire's greeting is sent on a connection of its own, and the answer
//! tells; then those of protocols that are no wire's and that people meet by a wrong port (`foreign`).
//! `everywire status` asks so at once.
//!
//! State: none is kept; each question has a connection and a thread of its own, which end with it, and whoever asks waits for the answers.
//! The order is: the wire that was expected, all other wires, then protocols that are no wire's; the first
//! answer decides, but the wire that was expected gets time to answer too, and a server that refuses a request of HTTP (400) is asked for TLS, too,
//! and heard to the end: a server of net.tcp refuses HTTP so. A server that
//! says who it is before it is asked (SSH, SMTP) ends the search. A question begins when those before it are answered, or soon after them
//! (`ProbeTime`): so a server that is silent to all of them is waited for once, not once for each. A question that does not end is given
//! up (`LATE`).
//!
//! Invariants: a failure that is not of the connection (`is_of_connection`) is never questioned. What comes
//! back is untrusted: at most `SEEN` octets are read, for at most the time that there is for each, looked at by the
//! wires' own sniffers, and shown only as the name of a protocol, or as lines of printable text.

mod foreign;

pub use foreign::ForeignProtocol;

use crate::transport;
use everywire_model::wire::Greeting;
use everywire_model::{Endpoint, Failure, Initiator, Kind, Reference, Sniff, Wire, layered};
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The most octets of an answer that are looked at.
const SEEN: usize = 1024;
/// When a question is given up, in times for each after the last was asked: it has one to connect and two to hear, and a busy machine.
const LATE: u32 = 6;
/// Header fields of a textual answer (HTTP) that tell what a server is, in lower case.
const TELLING: [&str; 3] = ["server:", "x-powered-by:", "via:"];

/// How long servers are waited for that are asked who they are.
#[derive(Debug, Clone, Copy)]
pub struct ProbeTime {
    /// How long a server may take to accept, and again to answer a greeting.
    each: Duration,
    /// How long after a greeting that is not answered yet the next one is sent.
    between: Duration,
}

impl ProbeTime {
    /// Where there is time: at most a second and a half.
    pub const USUAL: Self = Self::new(Duration::from_millis(500), Duration::from_millis(50));
    /// Where the time of a call is over already, and people wait: at most half a second.
    pub const BRIEF: Self = Self::new(Duration::from_millis(150), Duration::from_millis(15));

    /// So long for each answer, and so long between questions.
    #[must_use]
    pub const fn new(each: Duration, between: Duration) -> Self {
        Self { each, between }
    }

    /// The same questions as soon after each other, but so long for each answer; an hour at the most, so that no sum of such times is
    /// beyond what a clock can say.
    #[must_use]
    pub fn with_each(self, each: Duration) -> Self {
        Self { each: each.min(Duration::from_secs(3600)), ..self }
    }

    /// What there is behind a failure of this kind.
    #[must_use]
    pub fn behind(kind: Kind) -> Self {
        if kind == Kind::TimedOut { Self::BRIEF } else { Self::USUAL }
    }
}

/// What is found where an object was looked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Whether a server of another protocol is there ([`Kind::WrongWire`]).
    pub is_wrong_wire: bool,
    /// Whether what was said first tells more than this does.
    pub is_silence: bool,
    /// Who answers, for people.
    pub found: String,
    /// What to try.
    pub hint: String,
}

/// Whether a failure may have come from the connection as such, not from the object: who is met there is the question.
pub fn is_of_connection(failure: &Failure) -> bool {
    match failure.kind() {
        Kind::Unreachable | Kind::WrongWire | Kind::TimedOut | Kind::Violation => true,
        Kind::Malformed => failure.code().is_none() && failure.initiator() == Initiator::Peer,
        Kind::Refused | Kind::LimitExceeded | Kind::Busy => failure.code().is_none(),
        _ => false,
    }
}

/// The failure, told as what it is if another protocol answers where the object was looked for: of the kind
/// [`Kind::WrongWire`], with the protocol's name and what to try. Other failures come back as they are.
///
/// It connects some times and waits so long for answers ([`ProbeTime::behind`]), so it is for whoever shows the failure to people.
#[must_use]
pub fn named(
    failure: Failure,
    reference: &Reference,
    wires: &[&'static dyn Wire],
    time: ProbeTime,
) -> Failure {
    if !is_of_connection(&failure) {
        return failure;
    }
    match diagnosis(reference, wires, time) {
        Some(told) if told.is_wrong_wire => {
            let what = format!("{}; {}", failure.message(), told.found);
            Failure::new(Kind::WrongWire, failure.initiator(), what)
                .with_hint(told.hint)
                .with_completed(failure.completed())
        }
        _ => failure,
    }
}

/// Who answers where the object of a reference was looked for, if that says why it was not met.
pub fn diagnosis(reference: &Reference, wires: &[&'static dyn Wire], time: ProbeTime) -> Option<Diagnosis> {
    let profile = reference.profiles.first()?;
    let own = profile.wire;
    let reached = |endpoint: &&Endpoint| {
        !matches!(endpoint, Endpoint::Shm { .. } | Endpoint::InProcess { .. })
            && connect(endpoint, time.each).map_or_else(|error| is_taken(&error), |_| true)
    };
    let wire = wires.iter().copied().find(|wire| wire.name() == own);
    // Nobody is looked for where the object must not be called.
    let allowed = |endpoint: &&Endpoint| wire.is_none_or(|wire| wire.check_way(profile, endpoint).is_ok());
    let endpoint = profile.endpoints.iter().filter(allowed).find(reached)?;
    let address = wire.map(|wire| wire.print_friendly(reference)).unwrap_or_default();
    let encrypts = wire.is_some_and(|wire| encrypts(wire, &address)) || has_tls(endpoint);
    let is_own = |answer: &Answer| answer.wire.name() == own && speaks(answer, &address);
    let told = |is_wrong_wire, found: String, hint: String| {
        Some(Diagnosis { is_wrong_wire, is_silence: false, found, hint })
    };
    let begins = |greeting: &Greeting| format!("use an address that begins with {}", greeting.schemes);
    match who(wires, wire, endpoint, time) {
        Detection::Wire(answer) if encrypts && is_own(&answer) => told(
            false,
            format!("{} answers there, in the clear", answer.greeting.protocol),
            begins(answer.greeting),
        ),
        Detection::Other(known, _) if encrypts && known.protocol == foreign::ENCRYPTED => None,
        // It is this wire's own server: it has other reasons.
        Detection::Wire(answer) if is_own(&answer) => None,
        Detection::Wire(Answer { greeting, .. }) => {
            told(true, format!("{} answers there", greeting.protocol), begins(greeting))
        }
        Detection::Other(known, _) => {
            let hint = if known.hint.is_empty() { "look at host and port again" } else { known.hint };
            told(true, format!("{} answers there", known.protocol), hint.to_owned())
        }
        Detection::Ended => silence(
            "connections are taken there, and each ends without an answer",
            "is the server down or not ready? A proxy, ssh or a container's port before it ends connections so. Or does it let nobody in from here? Its log may tell",
        ),
        Detection::Silent => silence(
            "connections are taken there, and no protocol that is known here is answered in the clear",
            "does the server hang? Or is it a program of another kind: look at host and port again",
        ),
    }
}

/// What is told where nothing was answered.
fn silence(found: &str, hint: &str) -> Option<Diagnosis> {
    Some(Diagnosis { is_wrong_wire: false, is_silence: true, found: found.to_owned(), hint: hint.to_owned() })
}

/// Whether the protocol that answered is the one of an address, of the several that a wire may have: its schemes begin alike.
fn speaks(answer: &Answer, address: &str) -> bool {
    let scheme = address.split(['+', ':', '.']).next().unwrap_or_default();
    let scheme = if encrypts(answer.wire, address) { scheme.trim_end_matches('s') } else { scheme };
    answer.wire.greetings().len() < 2 || answer.greeting.schemes.contains(scheme)
}

/// Whether TLS lies over the stream of an endpoint (`dbus+tls://`).
fn has_tls(endpoint: &Endpoint) -> bool {
    endpoint.layer().is_some_and(|layered| layered.layer == layered::TLS)
}

/// Whether the scheme of an address is the encrypted one of two that differ in an `s`.
fn encrypts(wire: &dyn Wire, address: &str) -> bool {
    let plain = address.split_once("://").and_then(|(scheme, _)| scheme.strip_suffix('s'));
    plain.is_some_and(|plain| wire.schemes().contains(&plain))
}

/// Who was met.
pub enum Detection {
    /// A server of a wire.
    Wire(Answer),
    /// A server of a protocol that is no wire's, and how its answer began.
    Other(&'static ForeignProtocol, Vec<u8>),
    /// It ends each connection, and says nothing before.
    Ended,
    /// It answers nothing that is known.
    Silent,
}

/// A server that answered a greeting.
pub struct Answer {
    /// Its wire.
    pub wire: &'static dyn Wire,
    /// What it answered.
    pub greeting: &'static Greeting,
    /// From the connection to the answer.
    pub elapsed: Duration,
    /// How it began.
    octets: Vec<u8>,
}

impl Answer {
    /// What it says of itself, for people: the wire's words for its first message; of text, the lines that tell what it is.
    pub fn said(&self) -> Vec<String> {
        if let Some(lines) = text(&self.octets) {
            return lines;
        }
        self.wire.explain(&self.octets).messages.into_iter().map(|message| message.summary).take(1).collect()
    }
}

/// Of an answer that is text, the lines that tell what the server is.
pub fn text(octets: &[u8]) -> Option<Vec<String>> {
    let is_text = octets.iter().all(|octet| matches!(octet, b'\t' | b'\r' | b'\n' | b' '..=b'~'));
    is_text.then(|| {
        let text = String::from_utf8_lossy(octets);
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let first = lines.next().map(str::to_owned);
        let more = lines.take_while(|line| line.contains(':'));
        let named = |line: &&str| TELLING.iter().any(|name| line.to_ascii_lowercase().starts_with(name));
        first.into_iter().chain(more.filter(named).map(str::to_owned)).collect()
    })
}

/// A greeting, and whose it is.
#[derive(Clone, Copy)]
enum Question {
    Wire(&'static dyn Wire, &'static Greeting),
    Other(&'static ForeignProtocol),
}

impl Question {
    /// Whether it is one of this wire.
    fn is_of(self, expected: Option<&'static dyn Wire>) -> bool {
        matches!((self, expected), (Self::Wire(wire, _), Some(expected)) if wire.name() == expected.name())
    }

    /// What the server at an endpoint says to it.
    fn ask(self, endpoint: &Endpoint, patience: Duration) -> Option<ProbeAnswer> {
        match self {
            Self::Wire(_, greeting) => heard(endpoint, greeting.octets, greeting.answers, patience),
            Self::Other(known) => heard(endpoint, known.octets, known.answers, patience),
        }
    }
}

/// Which protocol is spoken at an endpoint: that of the wire that is expected is tried first.
pub fn who(
    wires: &[&'static dyn Wire],
    expected: Option<&'static dyn Wire>,
    endpoint: &Endpoint,
    time: ProbeTime,
) -> Detection {
    let is_expected =
        |wire: &&'static dyn Wire| expected.is_some_and(|expected| expected.name() == wire.name());
    let (mine, others): (Vec<_>, Vec<_>) = wires.iter().copied().partition(is_expected);
    let of_wire = |wire: &'static dyn Wire| wire.greetings().iter().map(move |own| Question::Wire(wire, own));
    let of_wires = mine.into_iter().chain(others).flat_map(of_wire);
    let mut questions = of_wires.chain(foreign::ASKED.iter().map(Question::Other)).peekable();
    let (tell, told) = channel();
    let (mut met, mut under_way) = (None::<Answer>, 0_usize);
    // Questions of the wire that is expected that are not answered yet.
    let mut own = 0_usize;
    let (mut ended, mut silent) = (false, false);
    // When those that have not answered by then are given up.
    let mut until = None;
    loop {
        // Whose server was met that way is asked for other protocols only.
        let is_wanted = |question: &Question| met.is_none() || matches!(question, Question::Other(_));
        while questions.next_if(|question| !is_wanted(question)).is_some() {}
        if let Some(question) = questions.next() {
            let (tell, place) = (tell.clone(), endpoint.clone());
            let ask = move || {
                // What panics has told the log, and is no answer.
                let heard =
                    catch_unwind(AssertUnwindSafe(|| question.ask(&place, time.each))).unwrap_or(None);
                // Whoever asked may have heard enough by then.
                let _ = tell.send((question, heard));
            };
            under_way += 1;
            own += usize::from(question.is_of(expected));
            if std::thread::Builder::new().name("who".into()).spawn(ask.clone()).is_err() {
                ask();
            }
        }
        if under_way == 0 {
            break;
        }
        let answer = if questions.peek().is_some() {
            told.recv_timeout(time.between)
        } else {
            // Each of them has its own time; but who looks up a name, or looks at an answer, may never come back.
            let until = *until.get_or_insert_with(|| Instant::now() + time.each * LATE);
            let answer = told.recv_timeout(until.saturating_duration_since(Instant::now()));
            if answer.is_err() {
                silent = true;
                break;
            }
            answer
        };
        let Ok((question, answer)) = answer else { continue };
        under_way -= 1;
        own -= usize::from(question.is_of(expected));
        // Servers of other protocols refuse HTTP in its own words, too: their own answer counts, though it comes later.
        let was_refused = met.as_ref().is_some_and(|met| foreign::sends_away(&met.octets));
        match (answer, question) {
            (Some(ProbeAnswer::Answer(octets, _)), Question::Other(known)) => {
                return Detection::Other(known, octets);
            }
            (Some(ProbeAnswer::Answer(octets, elapsed)), Question::Wire(wire, greeting))
                if met.is_none() || was_refused =>
            {
                let asks_for_tls = foreign::sends_away(&octets);
                met = Some(Answer { wire, greeting, elapsed, octets });
                if !asks_for_tls {
                    break;
                }
            }
            // It said who it is, whatever it was greeted with.
            (Some(ProbeAnswer::Other(known, octets)), _) if met.is_none() => {
                return Detection::Other(known, octets);
            }
            (Some(ProbeAnswer::End), _) => ended = true,
            (Some(ProbeAnswer::Nothing), _) => silent = true,
            _ => {}
        }
    }
    // Some servers answer several protocols, and the other one's answer may be there first. The one that is expected, which was
    // asked before, gets some times as long as that took.
    if let Some(answer) = &met
        && own > 0
        && expected.is_none_or(|expected| expected.name() != answer.wire.name())
    {
        let until = Instant::now() + (answer.elapsed * 4).max(time.each / 20);
        while own > 0
            && let Ok((question, answer)) = told.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            if let Question::Wire(wire, greeting) = question
                && question.is_of(expected)
            {
                own -= 1;
                if let Some(ProbeAnswer::Answer(octets, elapsed)) = answer {
                    met = Some(Answer { wire, greeting, elapsed, octets });
                    break;
                }
            }
        }
    }
    match met {
        Some(answer) => Detection::Wire(answer),
        None if ended && !silent => Detection::Ended,
        None => Detection::Silent,
    }
}

/// What came back to one greeting.
enum ProbeAnswer {
    /// An answer of the protocol, and when it was known to be one, from the connection on.
    Answer(Vec<u8>, Duration),
    /// That of another protocol, whose servers say who they are before they are asked, or whatever they are asked.
    Other(&'static ForeignProtocol, Vec<u8>),
    /// The end of the connection, and nothing before it.
    End,
    /// Nothing in time, or what nobody knows.
    Nothing,
}

/// What a server says to these octets, if it is reached.
fn heard(
    endpoint: &Endpoint,
    octets: &[u8],
    answers: fn(&[u8]) -> Sniff,
    patience: Duration,
) -> Option<ProbeAnswer> {
    let stream = match connect(endpoint, patience) {
        Ok(stream) => stream,
        Err(error) if is_taken(&error) => return Some(ProbeAnswer::End),
        Err(_) => return None,
    };
    match &stream {
        Stream::Tcp(stream) => {
            stream.set_read_timeout(Some(patience)).ok()?;
            Some(exchange(stream, octets, answers, patience))
        }
        Stream::Unix(stream) => {
            stream.set_read_timeout(Some(patience)).ok()?;
            Some(exchange(stream, octets, answers, patience))
        }
    }
}

/// A connection.
#[derive(Debug)]
pub enum Stream {
    /// Over TCP.
    Tcp(TcpStream),
    /// At a Unix socket.
    Unix(UnixStream),
}

/// Connects, without a word.
///
/// # Errors
/// Nobody is there, or not in time; it is no place that one connects to.
pub fn connect(endpoint: &Endpoint, patience: Duration) -> io::Result<Stream> {
    match endpoint.stream() {
        Endpoint::Tcp { host, port } => transport::tcp(host, *port, || patience).map(Stream::Tcp),
        // Shared memory is set up over a socket.
        Endpoint::Unix { path } | Endpoint::Shm { path } => {
            Ok(Stream::Unix(transport::unix(path, patience)?.into()))
        }
        _ => Err(io::Error::other("it is in a process of its own")),
    }
}

/// Whether who could not connect was let in before: a server that resets each connection at once is often
/// faster than the look at how connecting went. Where nobody listens, connections are refused instead.
fn is_taken(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionReset
}

/// Sends a greeting and reads until the beginning of the answer tells who speaks.
fn exchange(
    mut stream: impl Read + Write,
    octets: &[u8],
    answers: fn(&[u8]) -> Sniff,
    patience: Duration,
) -> ProbeAnswer {
    let begun = Instant::now();
    // Who does not take it may have said something before.
    let _ = stream.write_all(octets);
    let until = begun + patience;
    let (mut seen, mut len) = ([0; SEEN], 0);
    while Instant::now() < until {
        let Some(room) = seen.get_mut(len..).filter(|room| !room.is_empty()) else { break };
        match stream.read(room) {
            Ok(n @ 1..) => len += n,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) if len == 0 => return ProbeAnswer::End,
            Ok(0) | Err(_) => break,
        }
        let octets = seen.get(..len).unwrap_or_default();
        if answers(octets) == Sniff::Yes {
            return ProbeAnswer::Answer(octets.to_vec(), begun.elapsed());
        }
        if let Some(known) = foreign::of_banner(octets) {
            return ProbeAnswer::Other(known, octets.to_vec());
        }
    }
    ProbeAnswer::Nothing
}
