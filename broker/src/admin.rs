//! The administrator's pages, over HTTP (`everywire_http`): `/metrics`, `/healthz`, `/ready`.
//!
//! On loopback whoever asks there is answered, by an address or as `localhost`; elsewhere only who shows the token (`Authorization: Bearer TOKEN`,
//! RFC 6750), without which nothing listens there. A thread for each connection, few of them, each with a
//! time limit: a slow reader holds nobody up but himself. So no load on these pages takes a thread of the
//! event loops.
//!
//! States of the listener: *open*; *over*, once `Admin` was dropped: the accepting thread sees it at the next
//! connection, which the drop itself makes, and closes the socket. The address stays for the listener's life;
//! the token may change with each reload.
//!
//! States of a connection: the head of one request is read, answered with a page that is in memory as a whole, and the
//! connection ends.
//!
//! Bounds against hostile callers: `MOST` connections at a time, and the one that is open for longest makes room for
//! another: so those that never ask do not keep whoever looks after the broker from its pages; `PATIENCE` for
//! all that one connection does; 32 KiB of request header, bodies are not read; the token is compared in
//! constant time. The thread holds the broker weakly, so an open page does not keep a broker that has ended.

use crate::broker::Inner;
use crate::config::AdminConfig;
use bytes::{Bytes, BytesMut};
use everywire_http::{Bounds, Server};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, Response, StatusCode};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Connections at one time: a page takes far less time than as many others take to come.
const MOST: usize = 64;
/// How long a peer may take to send its request and to read the page, both together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the token's file that are read at the most.
const TOKEN: u64 = 4096;

/// The listener; closed when dropped. `asked` is the address as the file has it, to be compared at a reload;
/// `address` has the port that was bound.
pub(crate) struct Admin {
    asked: String,
    address: SocketAddr,
    token: Token,
    over: Arc<AtomicBool>,
}

/// What a caller must show, if anything; replaced when the configuration is read again.
type Token = Arc<Mutex<Option<String>>>;

impl Admin {
    /// Listens.
    ///
    /// # Errors
    /// It cannot, or should not: in one sentence.
    pub(crate) fn open(config: &AdminConfig, broker: &Arc<Inner>) -> Result<Self, String> {
        let asked = config.address.value.clone();
        let token = token(config)?;
        let wrong = |error: io::Error| format!("cannot listen at `{asked}`: {error}");
        let listener = TcpListener::bind(&asked).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        if !address.ip().is_loopback() && token.is_none() {
            return Err(elsewhere(&asked));
        }
        let (token, over): (Token, _) = (Arc::new(Mutex::new(token)), Arc::new(AtomicBool::new(false)));
        let accept = {
            let (token, over, broker) = (Arc::clone(&token), Arc::clone(&over), Arc::downgrade(broker));
            move || accept(&listener, &token, &over, &broker)
        };
        std::thread::Builder::new().name("admin".into()).spawn(accept).map_err(wrong)?;
        Ok(Self { asked, address, token, over })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it listens where a configuration says, in whatever words.
    pub(crate) fn is_at(&self, config: &AdminConfig) -> bool {
        let asked = &config.address.value;
        let found = || asked.to_socket_addrs().is_ok_and(|mut found| found.any(|at| at == self.address));
        self.asked == *asked || found()
    }

    /// From now on this token counts.
    pub(crate) fn set(&self, token: Option<String>) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// The token that the configuration names now, for a listener that is open already.
    ///
    /// # Errors
    /// There is none, and there must be one.
    pub(crate) fn token_of(&self, config: &AdminConfig) -> Result<Option<String>, String> {
        let token = token(config)?;
        if token.is_none() && !self.address.ip().is_loopback() {
            return Err(elsewhere(&self.asked));
        }
        Ok(token)
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // Whoever accepts sees it by this connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// The token in the file that the configuration names.
fn token(config: &AdminConfig) -> Result<Option<String>, String> {
    let Some(path) = &config.token_file else { return Ok(None) };
    let wrong = |why: String| format!("the token file `{}` {why}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    file.take(TOKEN).read_to_string(&mut text).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match text.trim() {
        "" => Err(wrong("is empty".into())),
        token => Ok(Some(token.to_owned())),
    }
}

/// Looks, without listening, whether the administrator's listener could be opened. Hosts that nobody knows here may be
/// known where the broker runs.
///
/// # Errors
/// It could not, or should not: in one sentence.
pub(crate) fn check(config: &AdminConfig) -> Result<(), String> {
    let (asked, token) = (&config.address.value, token(config)?);
    let found = asked.to_socket_addrs().map(|found| found.collect::<Vec<_>>());
    match found {
        Ok(found) if token.is_none() && !found.iter().all(|at| at.ip().is_loopback()) => {
            Err(elsewhere(asked))
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Err(format!("cannot listen at `{asked}`: HOST:PORT is expected"))
        }
        _ => Ok(()),
    }
}

/// Everybody could ask.
fn elsewhere(asked: &str) -> String {
    format!("`{asked}` can be reached from elsewhere: name a `token-file`, or listen at 127.0.0.1")
}

/// The thread that accepts, until the listener is over. No error ends it: without descriptors it tries again
/// after a moment.
fn accept(listener: &TcpListener, token: &Token, over: &AtomicBool, broker: &Weak<Inner>) {
    let open = Arc::<OpenConnections>::default();
    loop {
        let accepted = listener.accept();
        if over.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, _)) = accepted else {
            // Too few descriptors: that passes.
            std::thread::sleep(Duration::from_millis(50));
            continue;
        };
        let (token, broker, slot) = (Arc::clone(token), Weak::clone(broker), Slot::take(&open, stream));
        // Whoever goes, or is too slow, is told nothing.
        let serve = move || drop(serve(&slot.1, &token, &broker));
        // Without a thread the connection is closed, and its place is free again.
        let _ = std::thread::Builder::new().name("admin".into()).spawn(serve);
    }
}

/// Connections that are open, the oldest first.
type OpenConnections = Mutex<VecDeque<Arc<TcpStream>>>;

/// The place of a connection.
struct Slot(Arc<OpenConnections>, Arc<TcpStream>);

impl Slot {
    /// A place for one more. The oldest connection ends if there are too many, and its thread with it.
    fn take(open: &Arc<OpenConnections>, stream: TcpStream) -> Self {
        let stream = Arc::new(stream);
        let mut held = open.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() >= MOST
            && let Some(oldest) = held.pop_front()
        {
            // It may have ended by itself.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        held.push_back(Arc::clone(&stream));
        drop(held);
        Self(Arc::clone(open), stream)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|stream| !Arc::ptr_eq(stream, &self.1));
    }
}

/// One connection, on a thread of its own, which waits for the peer as long as there is time.
fn serve(mut stream: &TcpStream, token: &Token, broker: &Weak<Inner>) -> io::Result<()> {
    let (token, broker) = (Arc::clone(token), Weak::clone(broker));
    let bounds = Bounds { body: 0, idle: PATIENCE, too_large: |_| String::new() };
    // Every head is answered before its body is read.
    let mut server: Server<()> =
        Server::new(bounds, Arc::new(move |head| Some(answer(head, &token, &broker))));
    let until = Instant::now() + PATIENCE;
    let left = || match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::Error::from(ErrorKind::TimedOut)),
        left => Ok(Some(left)),
    };
    let (mut piece, mut over) = ([0; 4096], false);
    while !over {
        stream.set_read_timeout(left()?)?;
        let count = tried(stream.read(&mut piece))?;
        if count == Some(0) {
            break;
        }
        let came = piece.get(..count.unwrap_or_default()).unwrap_or_default();
        server.feed(Instant::now(), &mut BytesMut::from(came));
        // What is no HTTP is answered, too.
        over = server.next(Instant::now()).is_err();
        while !server.transmit().is_empty() {
            stream.set_write_timeout(left()?)?;
            let sent = tried(stream.write_vectored(&server.transmit().slices(16, usize::MAX)))?;
            server.transmit().consume(sent.unwrap_or_default());
        }
        over |= server.is_over();
    }
    stream.shutdown(Shutdown::Write)
}

/// What came of an attempt; nothing where a signal came between.
fn tried(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        result => result.map(Some),
    }
}

/// Whether a request names this machine as such, or nobody. A page of a browser that has given this machine's address to a name of its own
/// (DNS rebinding) says that name.
fn is_for_loopback(head: &Parts) -> bool {
    let said = head.headers.get(HOST).map(|value| value.to_str().unwrap_or_default().parse().ok());
    let mut authorities = head.uri.authority().cloned().map(Some).into_iter().chain(said);
    authorities.all(|authority: Option<Authority>| {
        authority.is_some_and(|authority| {
            let host = authority.host();
            let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            bare.eq_ignore_ascii_case("localhost") || bare.parse().is_ok_and(|at: IpAddr| at.is_loopback())
        })
    })
}

/// The page for a request. The token comes first: without it nobody learns which pages there are.
fn answer(head: &Parts, token: &Token, broker: &Weak<Inner>) -> Response<Bytes> {
    let page = |status, kind: &'static str, text: String| {
        let mut response = Response::new(Bytes::from(text));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    let plain = |status, text: &str| page(status, "text/plain; charset=utf-8", format!("{text}\n"));
    let shown = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let wanted = token.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if wanted.is_none() && !is_for_loopback(head) {
        return plain(StatusCode::MISDIRECTED_REQUEST, "without a token only loopback hosts are answered");
    }
    if wanted.is_some_and(|wanted| !bool::from(wanted.as_bytes().ct_eq(shown.as_bytes()))) {
        let mut response = plain(StatusCode::UNAUTHORIZED, "a token is needed");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    // The library leaves the body of an answer to HEAD out.
    if head.method != Method::GET && head.method != Method::HEAD {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "pages are only read here");
    }
    let Some(broker) = broker.upgrade() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the broker has ended");
    };
    match head.uri.path() {
        "/healthz" => plain(StatusCode::OK, "ok"),
        "/ready" => match broker.unready() {
            None => plain(StatusCode::OK, "ready"),
            Some(why) => plain(StatusCode::SERVICE_UNAVAILABLE, &why),
        },
        "/metrics" => {
            page(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", broker.page())
        }
        _ => plain(StatusCode::NOT_FOUND, "there are /metrics, /healthz and /ready"),
    }
}
