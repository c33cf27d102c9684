//! This side at a server of Trinity, which knows the functions of its own spelling only: `registerAs(TQCString)`.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use bytes::Bytes;
use everywire_dcop::DCOP;
use everywire_model::*;
use std::time::Instant;

/// What stands at the front of a message: sender, receiver, object, function (or the result's type).
fn front(message: &[u8], names: usize) -> Vec<String> {
    let mut walk = Walk(&message[12..]);
    (0..names).map(|_| walk.name()).collect()
}

/// A session that a server of Trinity has admitted.
fn ready(app: &str, purpose: Purpose) -> Box<dyn Session> {
    let mut session = DCOP.connect_with(&config(app, purpose), COOKIE);
    drain(&mut *session);
    feed(&mut *session, &handshake()).unwrap();
    let first = drain(&mut *session);
    assert!(first.windows(21).any(|part| part == b"registerAs(QCString)\0"));
    feed(&mut *session, &message(4, 56, &names(&["DCOPServer", ""]))).unwrap();
    let second = messages(&drain(&mut *session)).pop().expect("it tries the other spelling");
    assert_eq!(front(&second, 4)[1..], ["DCOPServer", "", "registerAs(TQCString)"]);
    feed(&mut *session, &reply(56, "TQCString", &names(&[app]))).unwrap();
    let Some(Event::Ready(_)) = session.poll() else { panic!("not ready") };
    session
}

#[test]
fn a_server_that_knows_neither_spelling_admits_nobody() {
    let mut session = DCOP.connect_with(&config("me", Purpose::Serving), COOKIE);
    drain(&mut *session);
    feed(&mut *session, &handshake()).unwrap();
    let refused = message(4, 56, &names(&["DCOPServer", ""]));
    feed(&mut *session, &refused).unwrap();
    assert_eq!(feed(&mut *session, &refused).unwrap_err().name, "NotRegistered");
}

#[test]
fn calls_go_out_and_answers_come_back_in_the_spelling_of_trinity() {
    let mut session = ready("me", Purpose::Calls);
    let id = start(&mut *session, "kicker", "o", &operation("find(QMap<QString,int>,QCString)", "QString"));
    let sent = messages(&drain(&mut *session)).pop().unwrap();
    assert_eq!(front(&sent, 4)[3], "find(TQMap<TQString,int>,TQCString)");
    feed(&mut *session, &reply(key(&sent), "TQString", &[0, 0, 0, 2, 0, b'x'])).unwrap();
    let Some(Event::Reply { id: of, outcome: Outcome::Done(body) }) = session.poll() else { panic!() };
    assert_eq!(of, id);
    assert_eq!(body.decode::<(String,)>(&shape("QString")).unwrap().0, "x");
    // What the answer tells of itself is understood, too.
    let own = body.codec.shape(&body).expect("the type is known");
    assert_eq!(body.decode::<(String,)>(&own).unwrap().0, "x");
    // Types that have kept their names are left alone.
    start(&mut *session, "kicker", "o", &operation("put(QCStringList,KURL)", "void"));
    let sent = messages(&drain(&mut *session)).pop().unwrap();
    assert_eq!(front(&sent, 4)[3], "put(QCStringList,KURL)");
}

#[test]
fn signals_are_connected_and_emitted_in_the_spelling_of_trinity() {
    let mut session = ready("me", Purpose::Serving);
    let said = Signal::new("said(QString)", vec![]);
    let emitter = profile("kicker", "bar");
    let filter = SignalFilter { interface: None, signal: Some(&said) };
    let id = session.subscribe(Instant::now(), &emitter, filter).unwrap();
    let sent = messages(&drain(&mut *session));
    let functions: Vec<String> = sent.iter().map(|sent| front(sent, 4)[3].clone()).collect();
    assert_eq!(
        functions,
        ["connectSignal(TQCString,TQCString,TQCString,TQCString,TQCString,bool)", "setNotifications(bool)",]
    );
    let mut walk = Walk(&sent[0][12..]);
    (0..4).for_each(|_| drop(walk.name()));
    let mut wish = Walk(walk.data());
    let wish: Vec<String> = (0..5).map(|_| wish.name()).collect();
    assert_eq!((wish[2].as_str(), wish[4].as_str()), ("said(TQString)", "said(TQString)"));
    feed(&mut *session, &reply(key(&sent[0]), "bool", &[1])).unwrap();
    assert!(matches!(session.poll(), Some(Event::Reply { outcome: Outcome::Done(_), .. })));
    let removed = call(1, 1, "DCOPServer", "", "applicationRemoved(TQCString)", &names(&["kicker"]));
    feed(&mut *session, &removed).unwrap();
    assert!(matches!(session.poll(), Some(Event::Lost { subscription, .. }) if subscription == id));
    let interface = Interface { signals: vec![said.clone()].into(), ..EMPTY };
    let write = |_: &mut dyn Sink| Ok(());
    let topic = Topic::Typed { interface: &interface, signal: &said };
    let emission = Emission { key: b"mine", topic, arguments: &write };
    session.emit(Instant::now(), &emission).unwrap();
    let sent = messages(&drain(&mut *session)).pop().unwrap();
    assert_eq!(front(&sent, 4)[2..], ["emit", "mine#said(TQString)"]);
}

const EMPTY: Interface = everywire_model::describe::interface!("I", "I", [], 0, &[]);

/// Answers the only call that has come with this text, and returns the front of the reply.
fn answered(session: &mut dyn Session, result: &str) -> Vec<String> {
    let Some(Event::Call(call)) = session.poll() else { panic!("no call") };
    let shape = shape(result);
    let write = |sink: &mut dyn Sink| (String::from("x"),).marshal_list(&shape, sink);
    session.answer(call.id, Answer::Done(&write)).unwrap();
    front(&messages(&drain(session)).pop().unwrap(), 3)
}

#[test]
fn results_have_the_callers_types() {
    let mut session = ready("me", Purpose::Serving);
    feed(&mut *session, &call(2, 60, "kicker", "o", "name()", b"")).unwrap();
    assert_eq!(answered(&mut *session, "QString")[2], "TQString");
    // At a server of both worlds the call itself tells.
    let mut session = crate::support::ready("me", Purpose::Serving);
    for (function, kind) in [("name(QString)", "QString"), ("name(TQString)", "TQString")] {
        feed(&mut *session, &call(2, 60, "kicker", "o", function, &[0; 4])).unwrap();
        assert_eq!(answered(&mut *session, "QString")[2], kind);
    }
}

#[test]
fn functions_are_found_in_either_spelling() {
    static OPERATIONS: [Operation; 1] = [everywire_model::describe::operation!(
        "find(QString)" as "find", (in "what": everywire_model::describe::Shape::Text(everywire_model::shape::Text::WIDE)) -> everywire_model::describe::Shape::Void)];
    static FINDS: Interface = everywire_model::describe::interface!("I", "I", [], 0, &OPERATIONS);
    for (function, found) in
        [("find(QString)", Some(0)), ("find(TQString)", Some(0)), ("find(TQCString)", None)]
    {
        let incoming = Incoming {
            id: CallId(1),
            sender: Bytes::new(),
            key: Bytes::from_static(b"o"),
            interface: Bytes::new(),
            operation: Bytes::copy_from_slice(function.as_bytes()),
            body: body(b"", function),
            expects: Expects::Reply,
        };
        assert_eq!(DCOP.operation(&FINDS, &incoming), found, "{function}");
    }
}
