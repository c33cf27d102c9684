//! The administrator's pages, over HTTP: `/metrics`, `/healthz`, `/ready`.
//!
//! On loopback whoever asks is answered; elsewhere only who shows the token (`Authorization: Bearer TOKEN`,
//! RFC 6750), without which nothing listens there. A thread for each connection, few of them, each with a
//! time limit: a slow reader holds nobody up but himself. So no load on these pages takes a thread of the
//! event loops.
//!
//! States of the listener: *open*; *over*, once `Admin` was dropped: the accepting thread sees it at the next
//! connection, which the drop itself makes, and closes the socket. The address stays for the listener's life;
//! the token may change with each reload.
//!
//! States of a connection: one request is read (`keep_alive` is off), answered with a page that is in memory
//! as a whole, and the connection ends.
//!
//! Bounds against hostile callers: `MOST` connections at a time, others are closed at once; `PATIENCE` for
//! all that one connection does; 16 KiB of request header, bodies are not read; the token is compared in
//! constant time. The thread holds the broker weakly, so an open page does not keep a broker that has ended.

use crate::broker::Inner;
use crate::config::AdminConfig;
use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Connections at one time: more are accepted and closed without a word.
const MOST: usize = 16;
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
            return Err(format!(
                "`{asked}` can be reached from elsewhere: name a `token-file`, or listen at 127.0.0.1"
            ));
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
            return Err(format!("`{}` can be reached from elsewhere: name a `token-file`", self.asked));
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

/// The thread that accepts, until the listener is over. No error ends it: without descriptors it tries again
/// after a moment.
fn accept(listener: &TcpListener, token: &Token, over: &AtomicBool, broker: &Weak<Inner>) {
    let open = Arc::new(AtomicUsize::new(0));
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
        if open.fetch_add(1, Ordering::AcqRel) >= MOST {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (token, broker, slot) = (Arc::clone(token), Weak::clone(broker), Slot(Arc::clone(&open)));
        let serve = move || {
            let _slot = slot;
            serve(stream, &token, &broker);
        };
        // Without a thread the connection is closed, and its place is free again.
        let _ = std::thread::Builder::new().name("admin".into()).spawn(serve);
    }
}

/// The place of a connection.
struct Slot(Arc<AtomicUsize>);

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One connection, on a thread of its own: hyper's state machine is polled here, and poll(2) waits for what
/// it wants.
fn serve(stream: TcpStream, token: &Token, broker: &Weak<Inner>) {
    if stream.set_nonblocking(true).is_err() {
        return;
    }
    let Ok(watched) = stream.try_clone() else { return };
    let service = service_fn(|request: Request<Incoming>| -> Ready<Result<_, Infallible>> {
        ready(Ok(answer(&request, token, broker)))
    });
    // What the last poll of the connection would have to wait for: set by `Socket`, taken before each sleep.
    let (reads, writes) = (AtomicBool::new(false), AtomicBool::new(false));
    let socket = Socket { stream, reads: &reads, writes: &writes };
    let connection =
        http1::Builder::new().max_buf_size(16 << 10).keep_alive(false).serve_connection(socket, service);
    let mut connection = pin!(connection);
    let begun = Instant::now();
    // Whoever it is waits for the socket only, so nobody has to be woken.
    while connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reads.swap(false, Ordering::Relaxed));
        flags.set(PollFlags::OUT, writes.swap(false, Ordering::Relaxed));
        let left = PATIENCE.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        let left = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // Without flags it only wants to be polled again.
        if !flags.is_empty() && poll(&mut [PollFd::new(&watched, flags)], Some(&left)).is_err() {
            return;
        }
    }
}

/// The page for a request. The token comes first: without it nobody learns which pages there are.
fn answer(request: &Request<Incoming>, token: &Token, broker: &Weak<Inner>) -> Response<Page> {
    let page = |status, kind: &'static str, text: String| {
        let mut response = Response::new(Page(Some(Bytes::from(text))));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    let plain = |status, text: &str| page(status, "text/plain; charset=utf-8", format!("{text}\n"));
    let shown = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
    let wanted = token.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if wanted.is_some_and(|wanted| !bool::from(wanted.as_bytes().ct_eq(shown.as_bytes()))) {
        let mut response = plain(StatusCode::UNAUTHORIZED, "a token is needed");
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return response;
    }
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "pages are only read here");
    }
    let Some(broker) = broker.upgrade() else {
        return plain(StatusCode::SERVICE_UNAVAILABLE, "the broker has ended");
    };
    match request.uri().path() {
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

/// A page that is there as a whole.
struct Page(Option<Bytes>);

impl Body for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|page| Ok(Frame::data(page))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |page| u64::try_from(page.len()).unwrap_or(u64::MAX)))
    }
}

/// A socket, and what the connection waits for on it.
struct Socket<'s> {
    stream: TcpStream,
    reads: &'s AtomicBool,
    writes: &'s AtomicBool,
}

/// What came of an attempt; what has to wait is noted.
fn tried<T>(result: io::Result<T>, waits: &AtomicBool) -> Poll<io::Result<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            waits.store(true, Ordering::Relaxed);
            Poll::Pending
        }
        result => Poll::Ready(result),
    }
}

impl Read for Socket<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut piece = [0; 4096];
        let most = piece.len().min(buffer.remaining());
        let read = self.stream.read(piece.get_mut(..most).unwrap_or_default());
        let read = read.map(|count| buffer.put_slice(piece.get(..count).unwrap_or_default()));
        tried(read, self.reads)
    }
}

impl Write for Socket<'_> {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = self.stream.write(bytes);
        tried(written, self.writes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(std::net::Shutdown::Write))
    }
}
