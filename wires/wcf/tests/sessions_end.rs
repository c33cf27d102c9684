//! Reliable sessions that the peer ends: nobody waits for an answer that will not come, and the next call begins anew.

#![allow(clippy::unwrap_used)]

use crate::http_support;
use crate::soap_support::*;
use everywire_model::*;
use everywire_wcf::soap::{Dialect, Soap};

const RM: &str = "http://schemas.xmlsoap.org/ws/2005/02/rm";

fn envelope(action: &str, body: &str) -> Vec<u8> {
    format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:a=\"http://www.w3.org/2005/08/addressing\" xmlns:r=\"{RM}\">\
         <s:Header><a:Action>{action}</a:Action></s:Header><s:Body>{body}</s:Body></s:Envelope>"
    )
    .into_bytes()
}

fn between(text: &str, before: &str, after: &str) -> String {
    let from = text.find(before).unwrap_or_else(|| panic!("no {before} in {text}")) + before.len();
    text[from..].split(after).next().unwrap().to_owned()
}

/// The identifier that a client's `CreateSequence` offers for the way back.
fn offered(create: &str) -> String {
    between(&between(create, "<Offer>", "</Offer>"), "<Identifier>", "<")
}

/// What a service says that wants no more of a session.
fn ends(offer: &str) -> [(&'static str, Vec<u8>); 3] {
    let fault = |name: &str, reason: &str| {
        let code = format!(
            "<s:Code><s:Value>s:Sender</s:Value><s:Subcode><s:Value>r:{name}</s:Value></s:Subcode></s:Code>"
        );
        let reason = format!("<s:Reason><s:Text xml:lang=\"en\">{reason}</s:Text></s:Reason>");
        envelope(&format!("{RM}/fault"), &format!("<s:Fault>{code}{reason}</s:Fault>"))
    };
    let terminate =
        format!("<r:TerminateSequence><r:Identifier>{offer}</r:Identifier></r:TerminateSequence>");
    [
        ("rm SequenceTerminated", envelope(&format!("{RM}/TerminateSequence"), &terminate)),
        ("rm SequenceTerminated", fault("SequenceTerminated", "inactive for too long")),
        ("rm UnknownSequence", fault("UnknownSequence", "what sequence?")),
    ]
}

/// A client with an open session and the identifier of its way back.
fn client(contract: &Interface) -> (Pair, String) {
    client_of(Dialect { session: false, ..Dialect::WS }, contract)
}

fn client_of(dialect: Dialect, contract: &Interface) -> (Pair, String) {
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let mut pair = Pair::with(dialect, &config, |settings| settings.reliable = true);
    start(&mut pair, contract);
    let (_, create) = pair.client_says().unwrap();
    let offer = offered(&String::from_utf8(create.clone()).unwrap());
    pair.hand_over(&create, None).unwrap();
    let (_, granted) = pair.server_says().unwrap();
    pair.bring_back(&granted).unwrap();
    (pair, offer)
}

fn start(pair: &mut Pair, contract: &Interface) -> CallId {
    pair.start(contract, "InOutInt", vec![Arg::Int(1)]).0.id
}

#[test]
fn calls_of_a_session_that_the_service_ends_fail_at_once() {
    let contract = remote_object();
    for index in 0..3 {
        let (mut pair, offer) = client(&contract);
        // The first message leaves; nine more fill the window and one waits behind it.
        let calls = 1 + (0..9).map(|_| start(&mut pair, &contract)).count();
        let left = std::iter::from_fn(|| pair.client_says()).count();
        assert!(left < calls, "{left} of {calls} messages have left");
        let (code, said) = ends(&offer).into_iter().nth(index).unwrap();
        pair.bring_back(&said).unwrap();
        let mut outcomes = Vec::new();
        while let Some(event) = pair.client.poll() {
            let Event::Reply { outcome: Outcome::Failed(failure), .. } = event else { panic!("{event:?}") };
            assert_eq!((failure.kind(), failure.code()), (Kind::Unreachable, Some(code)), "{failure}");
            assert!(failure.message().contains("the service ended the reliable session"), "{failure}");
            outcomes.push(failure.completed());
        }
        let unsent = outcomes.iter().filter(|completed| **completed == Completed::No).count();
        // What is answered with an unknown session was not even looked at; those before it may have been.
        let left = if code == "rm UnknownSequence" { left - 1 } else { left };
        assert_eq!((outcomes.len(), unsent), (calls, calls - left), "{code}");
        assert_eq!((pair.client.outstanding(), pair.client.deadline()), (0, None));
        // Whoever calls now may try elsewhere.
        let operation = find(&contract, "InOutInt");
        let call = Call {
            profile: &pair.profile,
            method: Method::Typed { interface: Some(&contract), operation },
            arguments: &List(&operation.arguments, vec![Arg::Int(1)]),
            expects: Expects::Reply,
        };
        let failure = pair.client.start(pair.now, &call, &mut SendBuffer::new()).unwrap_err();
        assert_eq!((failure.kind(), failure.completed()), (Kind::Unreachable, Completed::No), "{failure}");
    }
}

#[test]
fn a_connection_of_http_ends_with_its_session() {
    let way = http_support::way("wshttp://127.0.0.1:8000/echo?reliable=on");
    let interface = http_support::interface();
    let operation = &interface.operations[0];
    let arguments = http_support::Values(&operation.arguments, vec![Value::Text("x".to_owned())]);
    for index in 0..3 {
        let mut session = http_support::connecting(&way);
        let call = Call {
            profile: &way,
            method: Method::Typed { interface: Some(&interface), operation },
            arguments: &arguments,
            expects: Expects::Reply,
        };
        session.start(std::time::Instant::now(), &call).unwrap();
        let create = http_support::told(&mut session);
        let (_, said) = ends(&offered(&create)).into_iter().nth(index).unwrap();
        let granted = granted(&create);
        for body in [granted.into_bytes(), said] {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/soap+xml; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            http_support::send(&mut session, &[head.as_bytes(), &body].concat()).unwrap();
        }
        let events: Vec<Event> = std::iter::from_fn(|| session.poll()).collect();
        // What is answered with an unknown session was not even looked at.
        let completed = if index == 2 { Completed::No } else { Completed::Maybe };
        let failed = |event: &Event| match event {
            Event::Reply { outcome: Outcome::Failed(failure), .. } => failure.completed() == completed,
            _ => false,
        };
        assert_eq!(events.iter().filter(|event| failed(event)).count(), 1, "{events:?}");
        assert!(events.iter().any(|event| matches!(event, Event::Closed)), "{events:?}");
    }
}

#[test]
fn a_session_over_http_goes_on_over_other_connections() {
    let contract = remote_object();
    let operation = find(&contract, "InOutInt").clone();
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let connection = || {
        let dialect = Dialect { session: false, ..Dialect::WS };
        Pair::with(dialect, &config, |settings| {
            settings.reliable = true;
            settings.binding = everywire_wcf::settings::Binding::Ws;
        })
    };
    let mut first = connection();
    start(&mut first, &contract);
    let (_, create) = first.client_says().unwrap();
    first.hand_over(&create, None).unwrap();
    let (_, granted) = first.server_says().unwrap();
    // Its answer is lost with the connection: asked again over another one, it is the same.
    first.server.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "gone"));
    let mut second = connection();
    second.hand_over(&create, None).unwrap();
    let (_, again) = second.server_says().unwrap();
    let id = |granted: &[u8]| between(std::str::from_utf8(granted).unwrap(), "<Identifier>", "<");
    assert_eq!(id(&again), id(&granted));
    first.bring_back(&again).unwrap();
    // Each message comes by a connection of its own, the last one by one that has a session already.
    for number in 1..=3 {
        if number > 1 {
            start(&mut first, &contract);
        }
        let (_, question) = first.client_says().unwrap();
        let mut other = connection();
        if number == 3 {
            let mut stranger = connection();
            start(&mut stranger, &contract);
            let (_, create) = stranger.client_says().unwrap();
            other.hand_over(&create, None).unwrap();
            other.server_says().unwrap();
        }
        other.hand_over(&question, None).unwrap();
        let incoming = other.incoming();
        let results = List(&operation.results, vec![Arg::Int(number)]);
        let (answered, answer) = other.answer(incoming.id, Answer::Done(&results));
        assert!(answered.sends);
        // What was served is not served again, wherever it comes from: the same answer goes out.
        let mut repeated = connection();
        repeated.hand_over(&question, None).unwrap();
        assert!(repeated.server.poll().is_none());
        let (_, said) = repeated.server_says().unwrap();
        assert!(String::from_utf8(said).unwrap().contains("InOutIntResponse"));
        first.bring_back(&answer).unwrap();
        let (_, outcome) = first.outcome();
        let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
        let [Arg::Int(told)] = read(&body, &operation.results).unwrap()[..] else { panic!() };
        assert_eq!(told, number);
    }
}

#[test]
fn a_client_goes_on_with_its_session_over_its_next_connection() {
    let contract = remote_object();
    let operation = find(&contract, "InOutInt").clone();
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let connection = || {
        let dialect = Dialect { session: false, ..Dialect::WS };
        Pair::with(dialect, &config, |settings| {
            settings.reliable = true;
            settings.binding = everywire_wcf::settings::Binding::Ws;
        })
    };
    let gone = Failure::new(Kind::Unreachable, Initiator::Peer, "gone");
    let mut first = connection();
    let call = start(&mut first, &contract);
    let (_, create) = first.client_says().unwrap();
    first.hand_over(&create, None).unwrap();
    let (_, granted) = first.server_says().unwrap();
    first.bring_back(&granted).unwrap();
    // The message leaves, and nobody knows whether it arrives; one behind it stays here.
    first.client_says().unwrap();
    first.client.cancel(call);
    first.client.disconnected(&gone);
    assert!(first.client.poll().is_none());

    let mut second = connection();
    start(&mut second, &contract);
    second.now += std::time::Duration::from_secs(1);
    let mut asked = Vec::new();
    while let Some((flushed, question)) = second.client_says() {
        asked.push((flushed.action.unwrap().rsplit('/').next().unwrap().to_owned(), flushed.call));
        second.hand_over(&question, None).unwrap();
        let incoming = second.incoming();
        let number = i32::try_from(asked.len()).unwrap();
        let results = List(&operation.results, vec![Arg::Int(number)]);
        let (_, answer) = second.answer(incoming.id, Answer::Done(&results));
        second.bring_back(&answer).unwrap();
    }
    // No other session is asked for. The lost message comes first, and its answer is taken for nobody else's.
    let id = CallId(1);
    assert_eq!(asked, [("InOutInt".to_owned(), None), ("InOutInt".to_owned(), Some(id))]);
    let (replied, outcome) = second.outcome();
    let Outcome::Done(body) = outcome else { panic!("{outcome:?}") };
    let [Arg::Int(told)] = read(&body, &operation.results).unwrap()[..] else { panic!() };
    assert_eq!((replied, told), (id, 2));
    assert!(second.client.poll().is_none());
}

/// The answer that grants what a `CreateSequence` asks for.
fn granted(create: &str) -> String {
    let id = between(create, "MessageID>", "<");
    format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:a=\"http://www.w3.org/2005/08/addressing\"><s:Header><a:Action>{RM}/CreateSequenceResponse</a:Action>\
         <a:RelatesTo>{id}</a:RelatesTo></s:Header><s:Body><CreateSequenceResponse xmlns=\"{RM}\">\
         <Identifier>urn:theirs</Identifier><Accept><AcksTo><a:Address>http://h/</a:Address></AcksTo></Accept>\
         </CreateSequenceResponse></s:Body></s:Envelope>"
    )
}

#[test]
fn a_refused_session_names_the_reason_and_is_not_asked_for_again() {
    let contract = remote_object();
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let dialect = Dialect { session: false, ..Dialect::WS };
    let mut pair = Pair::with(dialect, &config, |settings| settings.reliable = true);
    start(&mut pair, &contract);
    pair.client_says().unwrap();
    let [_, _, (_, fault)] = ends("");
    let fault = String::from_utf8(fault).unwrap().replace("UnknownSequence", "CreateSequenceRefused");
    let failure = pair.bring_back(fault.as_bytes()).unwrap_err();
    assert_eq!((failure.kind(), failure.code()), (Kind::Unsupported, Some("rm CreateSequenceRefused")));
    assert!(failure.message().contains("what sequence?"), "{failure}");
}

#[test]
fn an_answer_that_the_window_keeps_back_is_not_sent_empty() {
    let contract = remote_object();
    let dialect = Dialect { session: false, ..Dialect::WS };
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let mut pair = Pair::with(dialect, &config, |settings| {
        settings.reliable = true;
        settings.binding = everywire_wcf::settings::Binding::Ws;
    });
    let operation = find(&contract, "InOutInt").clone();
    start(&mut pair, &contract);
    let (_, create) = pair.client_says().unwrap();
    pair.hand_over(&create, None).unwrap();
    let (_, granted) = pair.server_says().unwrap();
    pair.bring_back(&granted).unwrap();
    let mut kept = None;
    for number in 0..9 {
        if number > 0 {
            start(&mut pair, &contract);
        }
        let (_, payload) = pair.client_says().unwrap_or_else(|| panic!("message {number} is kept back"));
        // Nothing of what came back is acknowledged.
        let text = String::from_utf8(payload).unwrap();
        let payload = match text.find("<r:SequenceAcknowledgement") {
            Some(at) => {
                let end = text.rfind("</r:SequenceAcknowledgement>").unwrap() + 28;
                format!("{}{}", &text[..at], &text[end..])
            }
            None => text,
        };
        pair.hand_over(payload.as_bytes(), None).unwrap();
        let incoming = pair.incoming();
        let results = List(&operation.results, vec![Arg::Int(number)]);
        let (answered, answer) = pair.answer(incoming.id, Answer::Done(&results));
        assert_eq!(answered.sends, !answer.is_empty(), "answer {number}");
        if answered.sends {
            pair.bring_back(&answer).unwrap();
        } else {
            kept = Some((number, payload));
        }
    }
    // Eight are under way; the ninth goes when its question comes again and there is room.
    let (number, question) = kept.expect("an answer is kept back");
    assert_eq!(number, 8);
    pair.hand_over(question.as_bytes(), None).unwrap();
    assert!(pair.server_says().is_none(), "there is no room yet");
    let told = format!(
        "<r:SequenceAcknowledgement xmlns:r=\"{RM}\"><r:Identifier>{}</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"8\"/></r:SequenceAcknowledgement></s:Header>",
        offered(&String::from_utf8(create).unwrap())
    );
    let question = question.replace("</s:Header>", &told);
    pair.hand_over(question.as_bytes(), None).unwrap();
    let (_, answer) = pair.server_says().expect("the answer");
    assert!(String::from_utf8(answer).unwrap().contains("InOutIntResponse"));
}

/// WS-ReliableMessaging 1.0, section 4: SOAP 1.1 has no subcodes, so a header says which fault of a sequence it is, and names the
/// sequence. The code of the fault itself is that of SOAP.
#[test]
fn over_soap_1_1_a_header_says_which_fault_of_a_sequence_it_is() {
    let old = |header: &str, body: &str| {
        format!(
            "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:a=\"http://www.w3.org/2005/08/addressing\" \
             xmlns:r=\"{RM}\"><s:Header>{header}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
        )
        .into_bytes()
    };
    let dialect = Dialect { soap: Soap::V11, session: false, ..Dialect::WS };
    let contract = remote_object();
    // What a service says about a sequence that it does not know.
    let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
    let mut pair = Pair::with(dialect, &config, |settings| settings.reliable = true);
    let header = "<a:Action>http://tempuri.org/IRemoteObject/VoidCall</a:Action><a:MessageID>urn:m</a:MessageID>\
        <r:Sequence><r:Identifier>urn:never</r:Identifier><r:MessageNumber>1</r:MessageNumber></r:Sequence>";
    pair.hand_over(&old(header, "<VoidCall xmlns=\"http://tempuri.org/\"/>"), None).unwrap();
    let (_, fault) = pair.server_says().unwrap();
    let fault = String::from_utf8(fault).unwrap();
    assert!(fault.contains("<faultcode>s:Client</faultcode>"), "{fault}");
    let told = between(&fault, "SequenceFault", "SequenceFault>");
    assert!(told.contains(":UnknownSequence<") && told.contains(">urn:never<"), "{fault}");
    assert!(fault.find("SequenceFault") < fault.find(":Body"), "{fault}");
    // What a client makes of it: as over SOAP 1.2.
    for name in ["UnknownSequence", "SequenceTerminated"] {
        let (mut pair, _) = client_of(dialect, &contract);
        let header = format!(
            "<a:Action>{RM}/fault</a:Action><r:SequenceFault><r:FaultCode>r:{name}</r:FaultCode>\
             <r:Identifier>urn:x</r:Identifier></r:SequenceFault>"
        );
        let body = "<s:Fault><faultcode>s:Client</faultcode><faultstring>over</faultstring></s:Fault>";
        pair.bring_back(&old(&header, body)).unwrap();
        let Some(Event::Reply { outcome: Outcome::Failed(failure), .. }) = pair.client.poll() else {
            panic!("{name}: the call goes on")
        };
        assert_eq!(
            (failure.kind(), failure.code()),
            (Kind::Unreachable, Some(&*format!("rm {name}"))),
            "{failure}"
        );
    }
}
