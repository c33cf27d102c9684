//! What a servant that answers for a prefix of keys hears beside calls: questions whether an object is there, calls that are withdrawn, and the end of
//! a connection.

use everywire::model::visit::Nothing;
use everywire::model::{
    Answer, CallId, Completed, Encode, Interface, Link, Operation, Outcome, Remote, Request, Servant, Shape,
};
use everywire::{Failure, Initiator, Kind, Node};
use everywire_tests::bench::Benchmarking;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a test waits at the most; it ends with an event.
const LONG: Duration = Duration::from_secs(300);

/// What was heard. `Call`: the number of a call that came.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Call(u64),
    Asked(String),
    Cancelled(u64),
    Closed,
}

/// Tells of everything, answers the operation `quick`, and keeps all other calls.
struct Ears {
    tells: Sender<Heard>,
    kept: Mutex<Vec<Request>>,
}

impl Ears {
    fn tell(&self, heard: Heard) {
        let _ = self.tells.send(heard);
    }
}

impl Servant for Ears {
    fn interface(&self) -> &Interface {
        <dyn Benchmarking as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        self.tell(Heard::Call(request.id().0));
        if request.method().name() == b"quick" {
            return request.answer(Answer::Done(&Nothing));
        }
        self.kept.lock().expect("whole").push(request);
    }

    fn locate(&self, key: &[u8], _: Option<&str>) -> Result<(), Failure> {
        self.tell(Heard::Asked(String::from_utf8_lossy(key).into_owned()));
        match key {
            b"house/there" => Ok(()),
            _ => Err(Failure::new(Kind::NoObject, Initiator::Peer, "nobody of that name")),
        }
    }

    fn closed(&self, _: &dyn Link) {
        self.tell(Heard::Closed);
    }

    fn cancelled(&self, _: &dyn Link, call: CallId) {
        self.tell(Heard::Cancelled(call.0));
    }
}

fn next(heard: &Receiver<Heard>) -> Heard {
    heard.recv_timeout(LONG).expect("it is heard")
}

#[test]
fn a_servant_for_a_prefix_hears_of_questions_withdrawals_and_ends() {
    let (server, (tells, heard)) = (Node::new(), channel());
    let address = server.listen("iiop://127.0.0.1:0").expect("a free port");
    server.export_prefix("house/", Arc::new(Ears { tells, kept: Mutex::default() }));
    let client = Node::new();
    let object =
        |key: &str| client.object(&format!("{}/{key}", address.trim_end_matches('/'))).expect("it parses");
    let operation = |name: &'static str| Operation::new(name, vec![], Shape::Void);
    let nothing: &dyn Encode = &Nothing;
    // The wire's own question, without a call.
    object("house/there").target().probe().expect("it is there");
    assert_eq!(next(&heard), Heard::Asked("house/there".into()));
    let failure = object("house/nowhere").target().probe().expect_err("it is not");
    assert_eq!((failure.kind(), failure.completed()), (Kind::NoObject, Completed::No));
    assert_eq!(next(&heard), Heard::Asked("house/nowhere".into()));
    // A call that nobody has named before, and one that is withdrawn.
    assert!(matches!(object("house/there").invoke(&operation("quick"), nothing), Outcome::Done(_)));
    assert!(matches!(next(&heard), Heard::Call(_)));
    let slow = operation("slow");
    let pending = object("house/there").submit(&slow, nothing);
    let Heard::Call(call) = next(&heard) else { panic!("the call") };
    drop(pending);
    assert_eq!(next(&heard), Heard::Cancelled(call));
    // What lies outside of the prefix is not its.
    assert_eq!(object("elsewhere").target().probe().expect_err("it is not").kind(), Kind::NoObject);
    client.stop();
    assert_eq!(next(&heard), Heard::Closed);
}
