//! One-way calls and reliable sessions over real connections, against services that do as they are told here.

use crate::common::foreign::until;
use crate::common::hello::bench::IRemoteObject;
use crate::common::hello::duplex::IHelloCallback;
use crate::common::waiting::{Waiting, place};
use everywire::model::shape::Hold;
use everywire::model::visit::Nothing;
use everywire::model::{Completed, Outcome};
use everywire::{Failure, Kind, Node, Ref, Remote};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(300);
const RM: &str = "http://schemas.xmlsoap.org/ws/2005/02/rm";

/// A service over HTTP: each body that comes is answered with a status line, headers and a body, or by closing.
struct Service {
    port: u16,
    /// What came, by the number of its connection.
    came: Receiver<(usize, String)>,
}

impl Service {
    fn new(answer: impl FnMut(usize, &str) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (tell, came) = channel();
        std::thread::spawn(move || serve(&listener, &tell, answer));
        Self { port, came }
    }

    fn next(&self) -> (usize, String) {
        self.came.recv_timeout(LONG).expect("a request")
    }
}

fn serve(
    listener: &TcpListener,
    tell: &Sender<(usize, String)>,
    mut answer: impl FnMut(usize, &str) -> Option<String>,
) {
    for (number, stream) in listener.incoming().enumerate() {
        let Ok(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        while let Some(body) = request(&mut reader) {
            let response = answer(number, &body);
            // The test may be over.
            let _ = tell.send((number, body));
            let Some(response) = response else { break };
            if reader.get_mut().write_all(response.as_bytes()).is_err() {
                break;
            }
        }
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

fn status(line: &str) -> String {
    format!("HTTP/1.1 {line}\r\nContent-Length: 0\r\n\r\n")
}

fn tell(port: u16) -> Result<(), Failure> {
    let node = Node::new();
    let far: Ref<dyn IHelloCallback> =
        node.connect(&format!("basic://127.0.0.1:{port}/x")).expect("an address");
    far.on_hello("told")
}

#[test]
fn a_one_way_call_that_is_refused_is_an_error() {
    for (line, kind) in [
        ("401 Unauthorized", Kind::Refused),
        ("404 Not Found", Kind::NoObject),
        ("500 Internal Server Error", Kind::Internal),
    ] {
        let service = Service::new(move |_, _| Some(status(line)));
        let failure = tell(service.port).expect_err("it was refused");
        assert_eq!(failure.kind(), kind, "{failure}");
        assert!(service.next().1.contains("told"));
    }
    let service = Service::new(|_, _| Some(status("202 Accepted")));
    tell(service.port).expect("it was taken");
}

#[test]
fn a_one_way_call_that_meets_a_closing_connection_is_an_error() {
    let service = Service::new(|_, _| None);
    let failure = tell(service.port).expect_err("nobody said that it was taken");
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe), "{failure}");
    service.next();
    // It is not sent again by itself: it may have been executed.
    assert!(service.came.try_recv().is_err());
}

/// The text between two others, the first time.
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
    rest.split(after).next().unwrap_or(rest)
}

fn action(body: &str) -> &str {
    let text = between(body, "Action ", "</");
    text.rsplit(['/', '>']).next().unwrap_or(text)
}

fn number(body: &str) -> Option<&str> {
    body.contains("MessageNumber>").then(|| between(body, "MessageNumber>", "<"))
}

/// What a service with reliable sessions answers.
fn reliable(body: &str) -> String {
    let acknowledged = number(body).map_or_else(String::new, |number| {
        format!(
            "<r:SequenceAcknowledgement xmlns:r=\"{RM}\"><r:Identifier>urn:theirs</r:Identifier>\
             <r:AcknowledgementRange Lower=\"1\" Upper=\"{number}\"/></r:SequenceAcknowledgement>"
        )
    });
    let (said, content) = match action(body) {
        "CreateSequence" => (
            format!("{RM}/CreateSequenceResponse"),
            format!(
                "<CreateSequenceResponse xmlns=\"{RM}\"><Identifier>urn:theirs</Identifier><Accept><AcksTo>\
                 <a:Address>http://h/</a:Address></AcksTo></Accept></CreateSequenceResponse>"
            ),
        ),
        "VoidCall" => (
            "http://tempuri.org/IRemoteObject/VoidCallResponse".to_owned(),
            "<VoidCallResponse xmlns=\"http://tempuri.org/\"/>".to_owned(),
        ),
        _ => (format!("{RM}/SequenceAcknowledgement"), String::new()),
    };
    let relates = if body.contains("MessageID>") {
        format!("<a:RelatesTo>{}</a:RelatesTo>", between(body, "MessageID>", "<"))
    } else {
        String::new()
    };
    let envelope = format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" xmlns:a=\"http://www.w3.org/2005/08/addressing\">\
         <s:Header><a:Action>{said}</a:Action>{relates}{acknowledged}</s:Header><s:Body>{content}</s:Body></s:Envelope>"
    );
    let length = envelope.len();
    let kind = "application/soap+xml; charset=utf-8";
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{envelope}")
}

#[test]
fn a_client_that_ends_ends_its_sequence() {
    let service = Service::new(|_, body| Some(reliable(body)));
    let address = format!("wshttp://127.0.0.1:{}/x?reliable=on", service.port);
    let node = Node::new();
    let far: Ref<dyn IRemoteObject> = node.connect(&address).expect("an address");
    far.void_call().expect("an answer");
    drop((far, node));
    let asked: Vec<String> = (0..4).map(|_| action(&service.next().1).to_owned()).collect();
    assert_eq!(asked, ["CreateSequence", "VoidCall", "LastMessage", "TerminateSequence"]);
}

/// What the relay between a client and a server lets through of the exchange that a call is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// The question comes, and while the servant is at it the connection ends; the servant is done when it comes again.
    Question,
    /// The answer comes, and goes no further.
    Answer,
}

/// A relay that cuts the connection of the first call. Tells of each call that it passes on.
fn relay(server: u16, servant: &Arc<Waiting>, cut: Cut) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let (tell, told) = channel();
    let servant = Arc::clone(servant);
    thread::spawn(move || {
        for (number, client) in listener.incoming().enumerate() {
            let Ok(mut client) = client else { return };
            let mut far = TcpStream::connect(("127.0.0.1", server)).expect("the server");
            let mut asked = BufReader::new(client.try_clone().expect("a copy"));
            let mut answered = BufReader::new(far.try_clone().expect("a copy"));
            while let Some(question) = message(&mut asked) {
                let is_call = question.windows(8).any(|window| window == b"VoidCall");
                far.write_all(&question).expect("the server reads");
                if is_call && number == 0 && cut == Cut::Question {
                    until("the servant is called", || servant.inside() == 1);
                    break;
                }
                if is_call {
                    // The test may be over.
                    let _ = tell.send(String::from_utf8_lossy(&question).into_owned());
                }
                let Some(answer) = message(&mut answered) else { break };
                if (is_call && number == 0) || client.write_all(&answer).is_err() {
                    break;
                }
            }
        }
    });
    (port, told)
}

/// One message of HTTP, with its head.
fn message(from: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let (mut head, mut length) = (Vec::new(), 0);
    while !head.ends_with(b"\r\n\r\n") {
        let start = head.len();
        if from.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
        let line = String::from_utf8_lossy(&head[start..]).to_lowercase();
        if let Some((_, value)) = line.split_once("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let start = head.len();
    head.resize(start + length, 0);
    from.read_exact(&mut head[start..]).ok()?;
    Some(head)
}

#[test]
fn a_call_whose_connection_is_cut_runs_once_and_has_its_answer() {
    for cut in [Cut::Question, Cut::Answer] {
        let (_server, servant, object) = place("wshttp://127.0.0.1:0");
        let port = between(&object, "127.0.0.1:", "/").parse().expect("a port");
        let (relayed, told) = relay(port, &servant, cut);
        let address = object.replace(&port.to_string(), &relayed.to_string()) + "?reliable=on";
        let node = Node::new();
        let far: Ref<dyn IRemoteObject> = node.connect(&address).expect("an address");
        if cut == Cut::Answer {
            servant.let_go(1);
        }
        let asking = thread::spawn({
            let far = far.clone();
            move || far.void_call()
        });
        let again = told.recv_timeout(LONG).expect("the question, once more");
        if cut == Cut::Question {
            servant.let_go(1);
        }
        asking.join().expect("a caller").unwrap_or_else(|failure| panic!("{cut:?}: {failure}"));
        assert_eq!((number(&again), servant.total()), (Some("1"), 1), "{cut:?}");
        // The session goes on.
        servant.let_go(1);
        far.void_call().expect("the next call");
        let next = std::iter::from_fn(|| told.recv_timeout(LONG).ok());
        assert!({ next }.any(|next| number(&next) == Some("2")), "{cut:?}");
        assert_eq!(servant.total(), 2, "{cut:?}");
    }
}

#[test]
fn a_future_whose_connection_is_cut_runs_once_and_has_its_answer() {
    for cut in [Cut::Question, Cut::Answer] {
        let (_server, servant, object) = place("wshttp://127.0.0.1:0");
        let port = between(&object, "127.0.0.1:", "/").parse().expect("a port");
        let (relayed, told) = relay(port, &servant, cut);
        let address = object.replace(&port.to_string(), &relayed.to_string()) + "?reliable=on";
        let node = Node::new();
        let interface = <dyn IRemoteObject as Remote>::interface();
        let operation =
            interface.operations.iter().find(|known| known.name == "VoidCall").expect("it is there");
        let untyped = node.object(&address).expect("an address").typed(Hold::Static(interface));
        if cut == Cut::Answer {
            servant.let_go(1);
        }
        let asked = untyped.submit(operation, &Nothing);
        let again = told.recv_timeout(LONG).expect("the question, once more");
        servant.let_go(1);
        let outcome = wait(asked);
        assert!(matches!(outcome, Outcome::Done(_)), "{cut:?}: {outcome:?}");
        assert_eq!((number(&again), servant.total()), (Some("1"), 1), "{cut:?}");
    }
}

/// Everything ends as soon as the call has come, so the call is in no session that goes on for ever.
#[test]
fn a_future_whose_connections_are_all_cut_is_told_that_its_call_may_have_run() {
    let service = Service::new(|_, body| (action(body) != "VoidCall").then(|| reliable(body)));
    let node = Node::new();
    let address = format!("wshttp://127.0.0.1:{}/x?reliable=on", service.port);
    let interface = <dyn IRemoteObject as Remote>::interface();
    let operation = interface.operations.iter().find(|known| known.name == "VoidCall").expect("it is there");
    let untyped = node.object(&address).expect("an address").typed(Hold::Static(interface));
    let Outcome::Failed(failure) = wait(untyped.submit(operation, &Nothing)) else {
        panic!("it has an answer")
    };
    assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::Maybe), "{failure}");
    let asked: Vec<String> = (0..5).map(|_| action(&service.next().1).to_owned()).collect();
    assert_eq!(asked, ["CreateSequence", "VoidCall", "VoidCall", "VoidCall", "VoidCall"]);
}

#[test]
fn a_one_way_call_whose_connection_is_cut_goes_on_over_another_one() {
    let service = Service::new(|connection, body| {
        (connection > 0 || action(body) != "OnHello").then(|| reliable(body))
    });
    let node = Node::new();
    let address = format!("wshttp://127.0.0.1:{}/x?reliable=on", service.port);
    let far: Ref<dyn IHelloCallback> = node.connect(&address).expect("an address");
    far.on_hello("told").expect("it arrives");
    service.next();
    for connection in 0..2 {
        let (over, body) = service.next();
        assert_eq!((over, number(&body), body.contains("told")), (connection, Some("1"), true), "{body}");
    }
    far.on_hello("next").expect("it arrives");
    assert_eq!(number(&service.next().1), Some("2"));
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        thread::park_timeout(LONG);
    }
}
