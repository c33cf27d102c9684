//! Messages that pass a hop without a contract: from our client or a stranger's over one channel, to our server over another.

use crate::soap_support::*;
use bytes::Bytes;
use everywire_model::headers::Content;
use everywire_model::visit::WithHeaders;
use everywire_model::*;
use everywire_wcf::dictionary;
use everywire_wcf::soap::Dialect;

/// A client, a hop, and a server.
struct Chain {
    front: Pair,
    back: Pair,
}

/// What the hop sent, and what came of it.
struct Passed {
    sent: Vec<u8>,
    outcome: Outcome<Body>,
}

impl Chain {
    fn new(dialect: Dialect, contract: &Interface) -> Self {
        let config = Config { wire_state: Some(hop("tcp/")), ..Config::default() };
        let mut front = Pair::with(dialect, &config, |_| {});
        front.server.opened(front.key.clone());
        let mut back = serving(dialect, contract);
        back.key = Bytes::from_static(KEY.as_bytes());
        Self { front, back }
    }

    /// Passes on what the hop has received. Returns what it sends.
    fn forward(&mut self, incoming: &Incoming, changes: &Headers) -> Result<(CallId, Vec<u8>), Failure> {
        let body = WithHeaders { values: &incoming.body, headers: changes };
        let call = Call {
            profile: &self.back.profile,
            method: Method::Named { interface: &incoming.interface, operation: &incoming.operation },
            arguments: if changes.is_empty() { &incoming.body } else { &body },
            expects: incoming.expects,
        };
        let mut out = SendBuffer::new();
        let started = self.back.client.start(self.back.now, &call, &mut out)?;
        let sent = out.to_vec();
        self.back.hand_over(&sent, started.action.as_deref()).unwrap();
        Ok((started.id, sent))
    }

    /// Has the server answer, and passes that back. Returns what the client gets.
    fn back(&mut self, asked: CallId, begun: CallId, came: CallId, answer: Answer<'_>) -> Outcome<Body> {
        let (_, payload) = self.back.answer(came, answer);
        self.back.bring_back(&payload).unwrap();
        let (id, outcome) = self.back.outcome();
        assert_eq!(id, begun);
        let (answered, payload) = match &outcome {
            Outcome::Done(body) => self.front.answer(asked, Answer::Done(body)),
            Outcome::Failed(failure) => {
                let encoded = failure.encoded().expect("as it came");
                self.front.answer(asked, Answer::Passed { encoded, failure })
            }
            other => panic!("the hop knows no contract: {other:?}"),
        };
        assert!(answered.sends);
        assert_eq!(answered.fault, matches!(outcome, Outcome::Failed(_)));
        self.front.bring_back(&payload).unwrap();
        self.front.outcome().1
    }

    fn call(&mut self, contract: &Interface, name: &str, args: Vec<Arg>, answer: Answer<'_>) -> Passed {
        let operation = find(contract, name);
        let wanted = format!("{args:?}");
        let (started, payload) = self.front.start(contract, name, args);
        self.front.hand_over(&payload, started.action.as_deref()).unwrap();
        let incoming = self.front.incoming();
        let (begun, sent) = self.forward(&incoming, &Headers::default()).unwrap();
        let came = self.back.incoming();
        assert_eq!(came.operation, incoming.operation);
        assert_eq!(format!("{:?}", read(&came.body, &operation.arguments).unwrap()), wanted);
        let outcome = self.back(incoming.id, begun, came.id, answer);
        Passed { sent, outcome }
    }
}

fn done(outcome: Outcome<Body>, shape: &Shape) -> Vec<Arg> {
    match outcome {
        Outcome::Done(body) => read(&body, shape).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_and_answers_pass_in_every_dialect() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    for dialect in DIALECTS {
        let mut chain = Chain::new(dialect, &contract);
        for round in 0..4 {
            // The last is longer than what is copied.
            let said = Arg::Said(format!(
                "round <{round}> & {}",
                "x".repeat(if round == 3 { 20_000 } else { round })
            ));
            let results = List(&operation.results, vec![said.clone()]);
            let passed = chain.call(&contract, "InOutString", vec![said.clone()], Answer::Done(&results));
            assert_eq!(done(passed.outcome, &operation.results), [said]);
            let to = position(&passed.sent, b"localhost:10170/tcp/ro");
            assert_eq!(to.is_some(), dialect.addressing, "{dialect:?}: the next hop's address");
        }
        let passed = chain.call(&contract, "VoidCall", vec![], Answer::Done(&visit::Nothing));
        assert!(matches!(passed.outcome, Outcome::Done(_)));
    }
}

/// The words go ahead as they came, and once; the body keeps its bytes.
#[test]
fn the_words_of_the_clients_session_are_taken_over() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    let mut chain = Chain::new(Dialect::NET_TCP, &contract);
    for round in 0..3 {
        let said = Arg::Said("abc".into());
        let (started, came) = chain.front.start(&contract, "InOutString", vec![said.clone()]);
        chain.front.hand_over(&came, started.action.as_deref()).unwrap();
        let incoming = chain.front.incoming();
        let (begun, sent) = chain.forward(&incoming, &Headers::default()).unwrap();
        let (told, document) = dictionary::split(&came).unwrap();
        let (passed, next) = dictionary::split(&sent).unwrap();
        assert_eq!(passed, told, "round {round}");
        assert_eq!(told.is_empty(), round > 0);
        let body = |document: &[u8]| document[position(document, b"\x56\x0e").unwrap()..].to_vec();
        assert_eq!(body(next), body(document));
        let came = chain.back.incoming();
        let results = List(&operation.results, vec![said.clone()]);
        let outcome = chain.back(incoming.id, begun, came.id, Answer::Done(&results));
        assert_eq!(done(outcome, &operation.results), [said]);
    }
    // Another operation brings more words.
    chain.call(&contract, "InInt", vec![Arg::Int(7)], Answer::Done(&visit::Nothing));
}

/// A channel that has told words of its own writes those of others out.
#[test]
fn the_words_of_another_session_are_written_out() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    let mut chain = Chain::new(Dialect::NET_TCP, &contract);
    let results = |said: &str| List(&operation.results, vec![Arg::Said(said.into())]);
    chain.back.call(&contract, "VoidCall", vec![], Answer::Done(&visit::Nothing));
    for _ in 0..2 {
        let said = vec![Arg::Said("abc".into())];
        let passed = chain.call(&contract, "InOutString", said.clone(), Answer::Done(&results("abc")));
        assert!(position(&passed.sent, b"InOutString").is_some());
        assert_eq!(done(passed.outcome, &operation.results), said);
    }
    // Two clients by one channel: the second one's words are others.
    let mut first = Chain::new(Dialect::NET_TCP, &contract);
    let mut second = Chain::new(Dialect::NET_TCP, &contract);
    first.call(&contract, "VoidCall", vec![], Answer::Done(&visit::Nothing));
    std::mem::swap(&mut first.back, &mut second.back);
    let said = vec![Arg::Said("xyz".into())];
    let passed = second.call(&contract, "InOutString", said.clone(), Answer::Done(&results("xyz")));
    assert_eq!(done(passed.outcome, &operation.results), said);
}

#[test]
fn faults_pass_with_all_they_say() {
    let mut contract = remote_object();
    let thrown = exception();
    let at = contract.operations.iter().position(|operation| operation.name == "InInt").unwrap();
    let mut operations = contract.operations.to_vec();
    operations[at].raises = vec![thrown.clone()].into();
    contract.operations = operations.into();
    for dialect in DIALECTS {
        let mut chain = Chain::new(dialect, &contract);
        for _ in 0..2 {
            let shape = Shape::Struct(thrown.clone());
            let fields = List(&shape, vec![Arg::Int(3), Arg::Said("dropped".into())]);
            let raised = Answer::Raised { shape: &thrown, fields: &fields };
            let passed = chain.call(&contract, "InInt", vec![Arg::Int(1)], raised);
            let Outcome::Raised(raised) = passed.outcome else { panic!("{:?}", passed.outcome) };
            assert!(raised.id.ends_with("Broken"));
            let refused =
                Failure::new(Kind::Refused, Initiator::User, "closed today").with_code("{urn:shop}Closed");
            let passed = chain.call(&contract, "InInt", vec![Arg::Int(1)], Answer::Failed(&refused));
            let Outcome::Failed(failure) = passed.outcome else { panic!("{:?}", passed.outcome) };
            assert_eq!(failure.code(), Some("{urn:shop}Closed"));
            assert_eq!(failure.message(), "closed today");
        }
    }
}

const SOAP: &str = "http://www.w3.org/2003/05/soap-envelope";

#[test]
fn a_failure_of_a_servant_that_may_have_begun_promises_nothing() {
    let contract = remote_object();
    for dialect in DIALECTS {
        for kind in [Kind::NoOperation, Kind::NoObject, Kind::Busy, Kind::Refused, Kind::LimitExceeded] {
            let mut pair = serving(dialect, &contract);
            let failure = Failure::new(kind, Initiator::Peer, "the next service says so");
            let failure = failure.with_completed(Completed::Maybe);
            let (_, outcome) = pair.call(&contract, "VoidCall", vec![], Answer::Failed(&failure));
            let Outcome::Failed(back) = outcome else { panic!("{outcome:?}") };
            assert_eq!((back.kind(), back.completed()), (kind, Completed::Maybe), "{dialect:?} {back}");
        }
    }
}

/// A request of a stranger, with other prefixes than ours, all of them declared outside the body.
fn strange(headers: &str) -> Vec<u8> {
    format!(
        "<?xml version=\"1.0\"?><env:Envelope xmlns:env=\"{SOAP}\" xmlns:s=\"urn:other\" xmlns:t=\"http://tempuri.org/\">\
         <env:Header xmlns:w=\"http://www.w3.org/2005/08/addressing\"><w:Action>http://tempuri.org/IRemoteObject/InOutString</w:Action>\
         <w:MessageID>urn:uuid:00000000-0000-0000-0000-000000000001</w:MessageID><w:To>http://hop/tcp/ro</w:To>{headers}</env:Header>\
         <env:Body><t:InOutString><t:s>abc</t:s></t:InOutString></env:Body></env:Envelope>"
    )
    .into_bytes()
}

#[test]
fn prefixes_mean_what_they_meant() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    let mut chain = Chain::new(Dialect::WS, &contract);
    for _ in 0..2 {
        chain.front.hand_over(&strange(""), None).unwrap();
        let incoming = chain.front.incoming();
        let (begun, sent) = chain.forward(&incoming, &Headers::default()).unwrap();
        let text = String::from_utf8(sent).unwrap();
        assert!(text.starts_with("<env:Envelope") && text.ends_with("</env:Envelope>"), "{text}");
        assert!(text.contains("/tcp/ro") && !text.contains("http://hop/"), "{text}");
        assert_eq!(text.matches("MessageID").count(), 2, "{text}");
        let came = chain.back.incoming();
        assert_eq!(read(&came.body, &operation.arguments).unwrap(), [Arg::Said("abc".into())]);
        let results = List(&operation.results, vec![Arg::Said("def".into())]);
        let (_, payload) = chain.back.answer(came.id, Answer::Done(&results));
        chain.back.bring_back(&payload).unwrap();
        let (id, Outcome::Done(body)) = chain.back.outcome() else { panic!("no answer") };
        assert_eq!(id, begun);
        let (_, payload) = chain.front.answer(incoming.id, Answer::Done(&body));
        let text = String::from_utf8(payload).unwrap();
        assert!(text.contains("RelatesTo>urn:uuid:00000000-0000-0000-0000-000000000001<"), "{text}");
        assert!(text.contains("def"), "{text}");
    }
}

fn shown(body: &Body) -> Vec<(String, String, bool)> {
    let headers = body.headers().map(|headers| headers.list(body).unwrap()).unwrap_or_default();
    headers
        .into_iter()
        .map(|header| (header.name.clone(), header.display().into_owned(), header.must_understand))
        .collect()
}

/// Qualified names in values mean what they meant in their envelope.
#[test]
fn shown_headers_declare_the_prefixes_of_their_values() {
    let others = "<k:Ctx xmlns:k='urn:k' xmlns:b='urn:b' xmlns:p1='urn:p' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>\
         <item n='c' i:type='b:T'>p1:v</item><b:q xmlns:b='urn:c'>b:w</b:q><r>x:y</r></k:Ctx>";
    let mut chain = Chain::new(Dialect::WS, &remote_object());
    chain.front.hand_over(&strange(others), None).unwrap();
    let wanted = "<item xmlns=\"\" n=\"c\" xmlns:q1=\"http://www.w3.org/2001/XMLSchema-instance\" q1:type=\"b:T\" \
         xmlns:b=\"urn:b\" xmlns:p1=\"urn:p\">p1:v</item><q xmlns=\"urn:c\" xmlns:b=\"urn:c\">b:w</q><r xmlns=\"\">x:y</r>";
    assert_eq!(shown(&chain.front.incoming().body)[0].1, wanted);
}

#[test]
fn headers_are_kept_changed_and_removed() {
    let contract = remote_object();
    let others = "<k:Trace xmlns:k=\"urn:k\" env:mustUnderstand=\"1\">00-ab</k:Trace>\
         <k:Route xmlns:k=\"urn:k\" s:x=\"1\"><k:Hop>a &lt; b</k:Hop></k:Route><Plain xmlns=\"\">p</Plain>";
    let came = [
        ("{urn:k}Trace".to_owned(), "00-ab".to_owned(), true),
        ("{urn:k}Route".to_owned(), "<Hop xmlns=\"urn:k\">a &lt; b</Hop>".to_owned(), false),
        ("{}Plain".to_owned(), "p".to_owned(), false),
    ];
    let mut chain = Chain::new(Dialect::WS, &contract);
    // Without changes; changed beside the body; changed in the body, before whoever passes it on.
    for way in 0..3 {
        chain.front.hand_over(&strange(others), None).unwrap();
        let mut incoming = chain.front.incoming();
        assert_eq!(shown(&incoming.body), came);
        let mut changes = incoming.body.headers().cloned().unwrap();
        changes.put(Header { must_understand: true, ..Header::text("{urn:k}Trace", "00-<cd>") });
        changes.remove("{}Plain");
        changes.add(Header::text("{urn:n}New", "<a xmlns='urn:n'><b>1</b></a>"));
        let mut beside = Headers::default();
        if way == 1 {
            changes.edits().iter().for_each(|edit| beside.edit(edit.clone()));
        } else if way == 2 {
            incoming.body = incoming.body.clone().with_headers(changes.clone());
            assert_eq!(shown(&incoming.body).len(), 3);
        }
        let config = Config { wire_state: Some(hop("tcp/")), ..Config::default() };
        // Another hop stands behind this one: it sees what there is.
        chain.back = Pair::with(Dialect::WS, &config, |_| {});
        chain.forward(&incoming, &beside).unwrap();
        let next = chain.back.incoming();
        if way == 0 {
            assert_eq!(shown(&next.body), came);
            continue;
        }
        assert_eq!(
            shown(&next.body),
            [
                came[1].clone(),
                ("{urn:k}Trace".to_owned(), "00-<cd>".to_owned(), true),
                (
                    "{urn:n}New".to_owned(),
                    "<a xmlns=\"urn:n\"><b xmlns=\"urn:n\">1</b></a>".to_owned(),
                    false
                ),
            ]
        );
    }
}

/// A head that came before leaves as it left before only if the changes of headers are the same.
#[test]
fn the_changes_of_headers_are_those_of_each_message() {
    let contract = remote_object();
    let operation = find(&contract, "InOutString");
    let of = |value: Option<&str>| {
        let mut changes = Headers::default();
        value.into_iter().for_each(|value| changes.put(Header::text("{urn:k}Trace", value)));
        changes
    };
    let wanted = |value: Option<&str>| -> Vec<_> {
        value.into_iter().map(|value| ("{urn:k}Trace".to_owned(), value.to_owned(), false)).collect()
    };
    for dialect in DIALECTS {
        let mut chain = Chain::new(dialect, &contract);
        for value in [Some("a"), Some("a"), Some("b"), None, Some("b"), Some("a"), Some("a"), None] {
            let said = Arg::Said("text".into());
            let (started, payload) = chain.front.start(&contract, "InOutString", vec![said.clone()]);
            chain.front.hand_over(&payload, started.action.as_deref()).unwrap();
            let incoming = chain.front.incoming();
            chain.forward(&incoming, &of(value)).unwrap();
            let came = chain.back.incoming();
            assert_eq!(shown(&came.body), wanted(value), "{dialect:?}");
            let results = List(&operation.results, vec![said.clone()]);
            let (_, payload) = chain.back.answer(came.id, Answer::Done(&results));
            chain.back.bring_back(&payload).unwrap();
            let (_, outcome) = chain.back.outcome();
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            let headers = of(value);
            let (_, payload) = chain
                .front
                .answer(incoming.id, Answer::Done(&WithHeaders { values: &body, headers: &headers }));
            chain.front.bring_back(&payload).unwrap();
            let (_, outcome) = chain.front.outcome();
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            assert_eq!(read(&body, &operation.results).unwrap(), [said]);
            assert_eq!(shown(&body), wanted(value), "{dialect:?}");
        }
    }
}

/// Headers beside plain values, in every dialect; and those of binary XML pass and are shown.
#[test]
fn headers_travel_beside_values() {
    let contract = remote_object();
    let operation = find(&contract, "InInt");
    let mut headers = Headers::default();
    headers.add(Header::text("{urn:k}Trace", "00-ab"));
    headers.add(Header::text("{urn:k}Marked", "<x a=\"1\">y</x>"));
    headers.add(Header { must_understand: true, ..Header::text("{urn:k}Must", "") });
    let wanted = [
        ("{urn:k}Trace".to_owned(), "00-ab".to_owned(), false),
        ("{urn:k}Marked".to_owned(), "<x xmlns=\"\" a=\"1\">y</x>".to_owned(), false),
        ("{urn:k}Must".to_owned(), String::new(), true),
    ];
    for dialect in DIALECTS {
        let mut chain = Chain::new(dialect, &contract);
        let values = List(&operation.arguments, vec![Arg::Int(5)]);
        for _ in 0..2 {
            let call = Call {
                profile: &chain.front.profile,
                method: Method::Typed { interface: Some(&contract), operation },
                arguments: &WithHeaders { values: &values, headers: &headers },
                expects: Expects::Reply,
            };
            let mut out = SendBuffer::new();
            let started = chain.front.client.start(chain.front.now, &call, &mut out).unwrap();
            chain.front.hand_over(&out.to_vec(), started.action.as_deref()).unwrap();
            let incoming = chain.front.incoming();
            assert_eq!(shown(&incoming.body), wanted, "{dialect:?}");
            // The server's own interface knows no such header, and one of them must be understood.
            let mut changes = Headers::default();
            changes.remove("{urn:k}Must");
            let (begun, _) = chain.forward(&incoming, &changes).unwrap();
            let came = chain.back.incoming();
            assert_eq!(read(&came.body, &operation.arguments).unwrap(), [Arg::Int(5)]);
            assert_eq!(shown(&came.body), wanted[..2], "{dialect:?}");
            // An answer has headers of its own.
            let mut told = Headers::default();
            told.add(Header::text("{urn:k}Answered", "yes"));
            let results = WithHeaders { values: &List(&operation.results, vec![]), headers: &told };
            let outcome = chain.back(incoming.id, begun, came.id, Answer::Done(&results));
            let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
            assert_eq!(shown(&body), [("{urn:k}Answered".to_owned(), "yes".to_owned(), false)]);
        }
        for name in ["{http://www.w3.org/2005/08/addressing}To", "a b", "{urn:k}", "{urn:k"] {
            let mut bad = Headers::default();
            bad.add(Header { content: Content::Text("x".into()), ..Header::text(name, "") });
            let call = Call {
                profile: &chain.front.profile,
                method: Method::Typed { interface: Some(&contract), operation },
                arguments: &WithHeaders { values: &values, headers: &bad },
                expects: Expects::Reply,
            };
            let started = chain.front.client.start(chain.front.now, &call, &mut SendBuffer::new());
            // Where the transport tells where a message goes, that of addressing is a header like any other.
            assert_eq!(started.is_ok(), name.ends_with("}To") && !dialect.addressing, "{name}");
        }
    }
}

/// Over HTTP without addressing in sessions, addresses in messages lead on.
#[test]
fn an_address_in_a_message_of_basic_http_is_that_of_the_next_hop() {
    let contract = remote_object();
    let mut chain = Chain::new(Dialect::BASIC, &contract);
    let request = "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:w=\"http://schemas.xmlsoap.org/ws/2004/08/addressing\">\
        <e:Header><w:To>http://hop/tcp/ro</w:To><w:MessageID>uuid:1</w:MessageID></e:Header>\
        <e:Body><VoidCall xmlns=\"http://tempuri.org/\"/></e:Body></e:Envelope>";
    let action = "http://tempuri.org/IRemoteObject/VoidCall";
    chain.front.hand_over(request.as_bytes(), Some(action)).unwrap();
    let incoming = chain.front.incoming();
    let (_, sent) = chain.forward(&incoming, &Headers::default()).unwrap();
    let text = String::from_utf8(sent).unwrap();
    assert!(
        text.contains("localhost:10170/tcp/ro</w:To>") && text.contains("<w:MessageID>uuid:1<"),
        "{text}"
    );
    assert_eq!(chain.back.incoming().operation, action);
}

#[test]
fn what_does_not_pass_needs_a_contract() {
    let contract = remote_object();
    let bodies = DIALECTS.map(|dialect| {
        let mut chain = Chain::new(dialect, &contract);
        let (started, payload) = chain.front.start(&contract, "VoidCall", vec![]);
        chain.front.hand_over(&payload, started.action.as_deref()).unwrap();
        *chain.front.incoming()
    });
    let [tcp, binary, ws, basic] = bodies;
    let refused = |incoming: &Incoming, dialect: Dialect| {
        let mut pair = serving(dialect, &contract);
        let call = Call {
            profile: &pair.profile,
            method: Method::Named { interface: b"", operation: &incoming.operation },
            arguments: &incoming.body,
            expects: Expects::Reply,
        };
        let mut out = SendBuffer::new();
        match pair.client.start(pair.now, &call, &mut out) {
            Ok(_) => false,
            Err(failure) => {
                assert_eq!(failure.kind(), Kind::Unsupported);
                assert!(out.is_empty(), "{failure}");
                pair.call(&contract, "VoidCall", vec![], Answer::Done(&visit::Nothing));
                true
            }
        }
    };
    // Binary XML passes between sessions and messages that stand alone; text does not become binary, nor one version of SOAP another.
    assert!(
        !refused(&tcp, Dialect::NET_TCP)
            && !refused(&tcp, Dialect::BINARY)
            && !refused(&binary, Dialect::NET_TCP)
    );
    assert!(refused(&tcp, Dialect::WS) && refused(&ws, Dialect::NET_TCP));
    assert!(refused(&ws, Dialect::BASIC) && refused(&basic, Dialect::WS));
    let alone = everywire_wcf::XML.write(&mut |sink| sink.i32(1)).unwrap();
    let alone = Incoming { body: alone, ..tcp };
    assert!(refused(&alone, Dialect::NET_TCP));
}

/// One-way messages pass as such, and requests that have no answer over HTTP have none.
#[test]
fn nothing_is_answered_to_messages_that_nobody_answers() {
    let mut contract = remote_object();
    let mut operations = contract.operations.to_vec();
    operations.iter_mut().find(|operation| operation.name == "InInt").unwrap().oneway = true;
    contract.operations = operations.into();
    for dialect in DIALECTS {
        let mut chain = Chain::new(dialect, &contract);
        for _ in 0..2 {
            let (started, payload) = chain.front.start(&contract, "InInt", vec![Arg::Int(1)]);
            chain.front.hand_over(&payload, started.action.as_deref()).unwrap();
            let incoming = chain.front.incoming();
            let is_http = dialect != Dialect::NET_TCP;
            assert_eq!(
                incoming.expects,
                if is_http { Expects::Reply } else { Expects::Nothing },
                "{dialect:?}"
            );
            chain.forward(&incoming, &Headers::default()).unwrap();
            assert_eq!(chain.back.incoming().expects, Expects::Nothing);
            if is_http {
                // What the response without an envelope becomes.
                let nothing = Body { bytes: Bytes::new(), base: 0, ..incoming.body.clone() };
                let (answered, payload) = chain.front.answer(incoming.id, Answer::Done(&nothing));
                assert!(!answered.sends && payload.is_empty());
            }
        }
    }
}

/// Whatever a stranger changes in a message, the hop passes it on or refuses it.
#[test]
fn broken_messages_pass_or_are_refused() {
    let contract = remote_object();
    for dialect in [Dialect::NET_TCP, Dialect::WS] {
        let mut whole = Chain::new(dialect, &contract);
        let (_, payload) = whole.front.start(&contract, "InOutString", vec![Arg::Said("abc".into())]);
        let mut passed = 0;
        for at in 0..payload.len() {
            for byte in [0x00, 0x01, 0x3c, 0x41, 0x99, 0xff, payload[at] ^ 1] {
                let mut broken = payload.clone();
                broken[at] = byte;
                let mut chain = Chain::new(dialect, &contract);
                for _ in 0..2 {
                    if chain.front.hand_over(&broken, None).is_err() {
                        break;
                    }
                    let Some(Event::Call(incoming)) = chain.front.server.poll() else { break };
                    let call = Call {
                        profile: &chain.back.profile,
                        method: Method::Named { interface: b"", operation: &incoming.operation },
                        arguments: &incoming.body,
                        expects: Expects::Reply,
                    };
                    let mut out = SendBuffer::new();
                    if chain.back.client.start(chain.back.now, &call, &mut out).is_ok() {
                        passed += 1;
                        let _ = chain.back.hand_over(&out.to_vec(), None);
                    }
                    let _ = shown_if_any(&incoming.body);
                }
            }
        }
        assert!(passed > 0);
    }
}

fn shown_if_any(body: &Body) -> Option<usize> {
    body.headers()?.list(body).ok().map(|list| list.len())
}
