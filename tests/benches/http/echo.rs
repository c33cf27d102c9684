//! The rival: a server of the HTTP library alone, on an event loop for each CPU and with no more around it than it needs.
//!
//! Each loop asks the kernel by edges, reads once a request and writes once, as the usual runtimes do, without their timers, budgets
//! and queues: it is no slower than the library under one of them.

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::Service;
use hyper::{Request, Response};
use quick_xml::events::Event as Node;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use std::convert::Infallible;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// What the echo does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Answers {
    /// Takes the body, and answers with these octets.
    Bare(Bytes),
    /// Reads the envelope for the one number in it, and writes it into an envelope like this, between its two parts.
    Reads(Arc<[String; 2]>),
}

/// Serves connections of this listener until the process ends.
pub(crate) fn serve(listener: &TcpListener, answers: &Answers) -> io::Result<()> {
    let loops = std::thread::available_parallelism()?.get();
    let desks: Vec<_> = (0..loops).map(|_| Desk::start(answers.clone())).collect::<io::Result<_>>()?;
    for desk in desks.iter().cycle() {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        desk.newcomers.lock().expect("no panic").push(stream);
        rustix::io::write(&desk.bell, &1u64.to_ne_bytes())?;
    }
    Ok(())
}

/// An event loop, and the connections that it is about to take.
struct Desk {
    bell: OwnedFd,
    newcomers: Mutex<Vec<TcpStream>>,
}

impl Desk {
    fn start(answers: Answers) -> io::Result<Arc<Self>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let desk = Arc::new(Self { bell, newcomers: Mutex::default() });
        let own = Arc::clone(&desk);
        std::thread::spawn(move || own.run(&answers).expect("an event loop"));
        Ok(desk)
    }

    fn run(&self, answers: &Answers) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &self.bell, EventData::new_u64(u64::MAX), EventFlags::IN)?;
        let mut held: Vec<Option<Served>> = Vec::new();
        let mut events: Vec<Event> = Vec::with_capacity(1024);
        loop {
            events.clear();
            match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Err(rustix::io::Errno::INTR) => continue,
                waited => waited?,
            };
            for event in &events {
                let at = event.data.u64();
                if at == u64::MAX {
                    rustix::io::read(&self.bell, &mut [0; 8])?;
                    for stream in self.newcomers.lock().expect("no panic").drain(..) {
                        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                        epoll::add(&epoll, &stream, EventData::new_u64(held.len() as u64), flags)?;
                        held.push(Some(Served::new(stream, answers.clone())));
                    }
                } else if let Some(place) = held.get_mut(at as usize)
                    && let Some(served) = place
                    && served.work(event.flags)
                {
                    *place = None;
                }
            }
        }
    }
}

/// A connection: the library's future, and what is known of its socket.
struct Served {
    connection: Pin<Box<Connection<Socket, Echo>>>,
    readable: Arc<AtomicBool>,
    rung: Arc<Rung>,
    waker: Waker,
}

impl Served {
    fn new(stream: TcpStream, answers: Answers) -> Self {
        let readable = Arc::new(AtomicBool::new(true));
        let socket = Socket { stream, readable: Arc::clone(&readable) };
        let connection = Box::pin(Builder::new().serve_connection(socket, Echo(answers)));
        let rung = Arc::new(Rung(AtomicBool::new(false)));
        Self { connection, readable, waker: Waker::from(Arc::clone(&rung)), rung }
    }

    /// Works on what has come. Whether the connection is over.
    fn work(&mut self, flags: EventFlags) -> bool {
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            self.readable.store(true, Ordering::Relaxed);
        }
        loop {
            let mut context = Context::from_waker(&self.waker);
            if self.connection.as_mut().poll(&mut context).is_ready() {
                return true;
            }
            if !self.rung.0.swap(false, Ordering::Relaxed) {
                return false;
            }
        }
    }
}

/// Tells that a future wants to go on.
struct Rung(AtomicBool);

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A socket as the library wants it. It is read again only once the kernel has told of more.
struct Socket {
    stream: TcpStream,
    readable: Arc<AtomicBool>,
}

impl Read for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut cursor: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.readable.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let mut room = [0; 4096];
        let most = cursor.remaining().min(room.len());
        match self.stream.read(&mut room[..most]) {
            Ok(n) => {
                if n < most {
                    self.readable.store(false, Ordering::Relaxed);
                }
                cursor.put_slice(&room[..n]);
                Poll::Ready(Ok(()))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable.store(false, Ordering::Relaxed);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        would_block(self.stream.write(octets))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(std::net::Shutdown::Write))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        would_block(self.stream.write_vectored(slices))
    }
}

fn would_block(written: io::Result<usize>) -> Poll<io::Result<usize>> {
    match written {
        // The kernel tells of room by an edge.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        written => Poll::Ready(written),
    }
}

/// Takes the whole body, then answers.
struct Echo(Answers);

impl Service<Request<Incoming>> for Echo {
    type Response = Response<Whole>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Answering {
        Answering { body: request.into_body(), taken: Bytes::new(), answers: self.0.clone() }
    }
}

struct Answering {
    body: Incoming,
    taken: Bytes,
    answers: Answers,
}

impl Future for Answering {
    type Output = Result<Response<Whole>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        while !self.body.is_end_stream() {
            match pin!(&mut self.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None | Some(Err(_))) => break,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(part) if self.taken.is_empty() => self.taken = part,
                    Ok(part) => self.taken = [&self.taken[..], &part[..]].concat().into(),
                    Err(_) => {}
                },
            }
        }
        let body = match &self.answers {
            Answers::Bare(body) => body.clone(),
            Answers::Reads(parts) => {
                let [before, after] = &**parts;
                Bytes::from(format!("{before}{}{after}", number(&self.taken)))
            }
        };
        let mut response = Response::new(Whole(Some(body)));
        let content_type = HeaderValue::from_static("text/xml; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        Poll::Ready(Ok(response))
    }
}

/// The number in the innermost element, its name and those around it looked up in the namespaces in scope.
fn number(envelope: &[u8]) -> i32 {
    let mut reader = quick_xml::NsReader::from_reader(envelope);
    let (mut number, mut elements) = (0, 0);
    while let Ok((_, event)) = reader.read_resolved_event() {
        match event {
            Node::Start(_) | Node::Empty(_) => elements += 1,
            Node::Text(text) => {
                number = std::str::from_utf8(&text).map_or(0, |text| text.parse().unwrap_or(0))
            }
            Node::Eof => break,
            _ => {}
        }
    }
    assert!(elements > 2, "this is no envelope");
    number
}

/// A body in one piece.
struct Whole(Option<Bytes>);

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |body| body.len() as u64))
    }
}
