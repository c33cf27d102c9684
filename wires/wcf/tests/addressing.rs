//! Where answers go: what an address has beside itself comes back with them.

#![allow(clippy::unwrap_used)]

use crate::common::binary;
use crate::soap_support::*;
use everywire_model::{Answer, Failure, Initiator, Kind};
use everywire_wcf::dictionary::static_word;
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::soap::Dialect;
use everywire_wcf::values::Form;

fn request(more: &str) -> String {
    format!(
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope' xmlns:a='http://www.w3.org/2005/08/addressing'><s:Header>\
         <a:MessageID>urn:uuid:0000aaaa-0000-0000-0000-000000000001</a:MessageID>{more}\
         <a:To>http://localhost:10170/TCP/ro</a:To><a:Action>http://tempuri.org/IRemoteObject/InOutInt</a:Action></s:Header>\
         <s:Body><InOutInt xmlns='http://tempuri.org/'><x>5</x></InOutInt></s:Body></s:Envelope>"
    )
}

fn reference(name: &str, parameters: &str) -> String {
    format!(
        "<a:{name}><a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address>\
         <a:ReferenceParameters>{parameters}</a:ReferenceParameters></a:{name}>"
    )
}

/// What is said to such a request: with the results of the operation, or with a failure.
fn said(dialect: Dialect, more: &str, fails: bool) -> String {
    let contract = remote_object();
    let mut pair = serving(dialect, &contract);
    let document = request(more);
    let document = if dialect.form == Form::Binary { binary(&document) } else { document.into_bytes() };
    pair.hand_over(&document, None).unwrap();
    let incoming = pair.incoming();
    let operation = find(&contract, "InOutInt");
    let results = List(&operation.results, vec![Arg::Int(6)]);
    let failure = Failure::new(Kind::Internal, Initiator::Peer, "no");
    let answer = if fails { Answer::Failed(&failure) } else { Answer::Done(&results) };
    let (_, payload) = pair.answer(incoming.id, answer);
    match dialect.form {
        Form::Text => String::from_utf8(payload).unwrap(),
        Form::Binary => to_xml(&payload, static_word).unwrap(),
    }
}

/// WS-Addressing 1.0 SOAP Binding, 2.3; Core, 3.4.
#[test]
fn reference_parameters_of_an_answer_are_its_headers() {
    let id = "<q:Id xmlns:q='urn:q' q:k='1' l='2'>a &amp; b<r/></q:Id><Plain>7</Plain>";
    for dialect in [Dialect::WS, Dialect::BINARY] {
        let reply = reference("ReplyTo", id);
        for fails in [false, true] {
            let answer = said(dialect, &reply, fails);
            let (head, _) = answer.split_once(":Body>").unwrap();
            for part in [
                "<Id xmlns=\"urn:q\"",
                "IsReferenceParameter=\"true\"",
                ">a &amp; b<r xmlns=\"\"/></Id>",
                "<Plain ",
                ">7</Plain>",
                "l=\"2\"",
            ] {
                assert!(head.contains(part), "{part}: {answer}");
            }
            // A second time, since heads that came before are not read again.
            assert_eq!(said(dialect, &reply, fails), answer);
        }
        // Faults have an address of their own.
        let both = reply.clone() + &reference("FaultTo", "<Other/>");
        assert!(
            said(dialect, &both, false).contains("</Id>") && !said(dialect, &both, false).contains("Other")
        );
        assert!(
            said(dialect, &both, true).contains("<Other ") && !said(dialect, &both, true).contains("</Id>")
        );
        // Nobody says for this side what it says itself.
        let own = reference("ReplyTo", "<a:To>urn:x</a:To><Plain/>");
        let answer = said(dialect, &own, false);
        assert!(!answer.contains("urn:x") && answer.contains("<Plain "), "{answer}");
    }
}

#[test]
fn reference_parameters_are_bounded() {
    for (parameters, whole) in [
        (format!("<p>{}</p>", "x".repeat(1000)), true),
        (format!("<p>{}</p>", "x".repeat(3000)), false),
        (format!("<p>{}</p>", "<q/>".repeat(1000)), false),
        ("<p/>".repeat(1000), false),
    ] {
        let contract = remote_object();
        let mut pair = serving(Dialect::WS, &contract);
        pair.hand_over(request(&reference("ReplyTo", &parameters)).as_bytes(), None).unwrap();
        if whole {
            let _ = pair.incoming();
        } else {
            let fault = String::from_utf8(pair.server_says().unwrap().1).unwrap();
            assert!(fault.contains("InvalidAddressingHeader") && fault.contains("2048 bytes"), "{fault}");
        }
    }
}

/// Over HTTP an answer is in a response; a request may say which message it has to do with (Core, 3.2), as one that follows another does.
#[test]
fn a_request_of_http_that_relates_to_another_message_is_a_request() {
    for relates in
        ["<a:RelatesTo>urn:uuid:0</a:RelatesTo>", "<a:RelatesTo RelationshipType='urn:x'>urn:1</a:RelatesTo>"]
    {
        let answer = said(Dialect::WS, relates, false);
        assert!(answer.contains("InOutIntResponse"), "{answer}");
        assert!(answer.contains("RelatesTo>urn:uuid:0000aaaa-0000-0000-0000-000000000001<"), "{answer}");
    }
}

const NONE: &str = "http://www.w3.org/2005/08/addressing/none";
const ANONYMOUS: &str = "http://www.w3.org/2005/08/addressing/anonymous";

fn to(name: &str, address: &str) -> String {
    format!("<a:{name}><a:Address>{address}</a:Address></a:{name}>")
}

/// WS-Addressing 1.0 Core, 3.4: faults go where `FaultTo` says, else where `ReplyTo` does.
#[test]
fn faults_go_where_they_are_wanted() {
    let is_to = |answer: &str, address: &str| {
        let head = answer.split_once(":Body>").unwrap().0;
        head.contains(&format!(">{address}</a:To>"))
    };
    for dialect in [Dialect::WS, Dialect::BINARY] {
        let other = to("FaultTo", "http://h/f");
        let fault = said(dialect, &other, true);
        assert!(is_to(&fault, "http://h/f"), "{fault}");
        let reply = said(dialect, &other, false);
        assert!(!reply.contains("http://h/f"), "{reply}");
        let both = to("ReplyTo", "http://h/r") + &other;
        assert!(is_to(&said(dialect, &both, true), "http://h/f"));
        assert!(is_to(&said(dialect, &both, false), "http://h/r"));
        assert!(is_to(&said(dialect, &to("ReplyTo", "http://h/r"), true), "http://h/r"));
        // Nobody wants the one, and somebody the other.
        let none = to("FaultTo", NONE);
        assert_eq!(said(dialect, &none, true), "");
        assert!(said(dialect, &none, false).contains("InOutIntResponse"));
        let faults = to("ReplyTo", NONE) + &to("FaultTo", ANONYMOUS);
        assert!(said(dialect, &faults, true).contains("Fault"));
        assert_eq!(said(dialect, &faults, false), "");
    }
}

#[test]
fn a_request_that_is_refused_has_its_fault_where_faults_are_wanted() {
    let contract = remote_object();
    let refused = |more: &str| {
        let mut pair = serving(Dialect::WS, &contract);
        let document = request(more).replace("/InOutInt</a:Action>", "/Nothing</a:Action>");
        let document = document.replace("/TCP/ro", "/TCP/other");
        pair.hand_over(document.as_bytes(), None).unwrap();
        pair.server_says().map(|(_, fault)| String::from_utf8(fault).unwrap())
    };
    assert!(refused("").unwrap().contains("DestinationUnreachable"));
    assert!(refused(&to("FaultTo", "http://h/f")).unwrap().contains(">http://h/f</a:To>"));
    assert_eq!(refused(&to("FaultTo", NONE)), None);
    let twice = to("FaultTo", ANONYMOUS) + &to("FaultTo", NONE);
    let mut pair = serving(Dialect::WS, &contract);
    pair.hand_over(request(&twice).as_bytes(), None).unwrap();
    assert!(pair.server.poll().is_none());
}
