//! How reliable sessions begin and end with WCF's clients, which take a service to be gone that says one word too few.

#![allow(clippy::unwrap_used)]

use crate::channels::{self, VIA, accepting, calls, connecting, sent};
use crate::soap_support::*;
use everywire_model::visit::Nothing;
use everywire_model::*;
use everywire_wcf::settings::Binding;
use everywire_wcf::soap::Dialect;
use std::time::{Duration, Instant};

const FEBRUARY: &str = "http://schemas.xmlsoap.org/ws/2005/02/rm";
const OASIS: &str = "http://docs.oasis-open.org/ws-rx/wsrm/200702";
/// The service by another name than its own.
const CALLED: &str = "net.tcp://other.example:10170/key";

/// A client of WCF's on a duplex channel, told by hand.
struct Client {
    pair: Pair,
    version: &'static str,
    /// The sequence that it was granted.
    id: String,
}

impl Client {
    fn new(version: &'static str) -> Self {
        let config = Config { wire_state: Some(wire_state(remote_object(), KEY)), ..Config::default() };
        let text = Dialect { session: false, ..Dialect::WS };
        let pair = Pair::with(text, &config, |settings| settings.binding = Binding::NetTcp);
        let mut client = Self { pair, version, id: String::new() };
        let anonymous = "<a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address>";
        client.says(
            "CreateSequence",
            &format!("<a:MessageID>urn:c</a:MessageID><a:To s:mustUnderstand=\"1\">{CALLED}</a:To>"),
            &format!(
                "<r:CreateSequence><r:AcksTo>{anonymous}</r:AcksTo><r:Offer><r:Identifier>urn:offer</r:Identifier>\
                 </r:Offer></r:CreateSequence>"
            ),
        );
        let granted = client.hears("CreateSequenceResponse");
        client.id = between(&granted, "<Identifier>", "</");
        assert_eq!(between(&granted, "<AcksTo><a:Address>", "</"), CALLED);
        client
    }

    /// Sends a message of the protocol, or a call.
    fn says(&mut self, action: &str, headers: &str, body: &str) {
        let base = if action == "VoidCall" { "http://tempuri.org/IRemoteObject" } else { self.version };
        let message = format!(
            "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
             xmlns:a=\"http://www.w3.org/2005/08/addressing\" xmlns:r=\"{}\"><s:Header><a:Action>{base}/{action}</a:Action>\
             {headers}</s:Header><s:Body>{body}</s:Body></s:Envelope>",
            self.version
        );
        self.pair.hand_over(message.as_bytes(), None).unwrap();
    }

    fn numbered(&self, number: u32, last: &str) -> String {
        format!(
            "<r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{}</r:Identifier>\
             <r:MessageNumber>{number}</r:MessageNumber>{last}</r:Sequence>",
            self.id
        )
    }

    /// The call that it asks for, not answered yet.
    fn calls(&mut self) -> CallId {
        let headers = format!("<a:MessageID>urn:m</a:MessageID>{}", self.numbered(1, ""));
        self.says("VoidCall", &headers, "<VoidCall xmlns=\"http://tempuri.org/\"/>");
        self.pair.incoming().id
    }

    /// What the service says next, which has this action.
    fn hears(&mut self, action: &str) -> String {
        let (flushed, payload) = self.pair.server_says().unwrap_or_else(|| panic!("no {action}"));
        let text = String::from_utf8(payload).unwrap();
        assert!(flushed.action.is_some_and(|told| told.ends_with(&format!("/{action}"))), "{text}");
        text
    }

    fn hears_nothing(&mut self) {
        let said = self.pair.server_says().map(|(_, payload)| String::from_utf8(payload).unwrap());
        assert_eq!(said, None);
    }
}

fn between(text: &str, before: &str, after: &str) -> String {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
    rest.split_once(after).unwrap().0.to_owned()
}

#[test]
fn a_service_says_its_last_message_and_that_its_sequence_ends() {
    let mut client = Client::new(FEBRUARY);
    let call = client.calls();
    let last = client.numbered(2, "<r:LastMessage/>");
    client.says("LastMessage", &last, "");
    client.hears_nothing();
    // The client says nothing more, but an answer is due.
    let (_, answer) = client.pair.answer(call, Answer::Done(&Nothing));
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.contains("<r:MessageNumber>1</r:MessageNumber></r:Sequence>"), "{answer}");
    let last = client.hears("LastMessage");
    assert!(last.contains("<r:MessageNumber>2</r:MessageNumber><r:LastMessage/></r:Sequence>"), "{last}");
    client.hears_nothing();
    let about =
        format!("<r:TerminateSequence><r:Identifier>{}</r:Identifier></r:TerminateSequence>", client.id);
    let arrived = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"2\"/></r:SequenceAcknowledgement>";
    client.says("TerminateSequence", arrived, &about);
    let end = client.hears("TerminateSequence");
    assert!(end.contains("<Identifier>urn:offer</Identifier>"), "{end}");
    client.hears_nothing();
}

#[test]
fn a_service_that_answered_nothing_says_its_last_message_all_the_same() {
    let mut client = Client::new(FEBRUARY);
    let last = client.numbered(1, "<r:LastMessage/>");
    client.says("LastMessage", &last, "");
    let last = client.hears("LastMessage");
    assert!(last.contains("<r:MessageNumber>1</r:MessageNumber><r:LastMessage/></r:Sequence>"), "{last}");
    // Whoever does not wait for that hears of the end at once.
    let about =
        format!("<r:TerminateSequence><r:Identifier>{}</r:Identifier></r:TerminateSequence>", client.id);
    client.says("TerminateSequence", "", &about);
    client.hears("TerminateSequence");
}

#[test]
fn a_closed_sequence_is_acknowledged_for_good_and_both_ends_are_asked_for() {
    let mut client = Client::new(OASIS);
    let call = client.calls();
    client.pair.answer(call, Answer::Done(&Nothing));
    let about = |name: &str, id: &str| {
        format!("<r:{name}><r:Identifier>{id}</r:Identifier><r:LastMsgNumber>1</r:LastMsgNumber></r:{name}>")
    };
    let id = client.id.clone();
    client.says("CloseSequence", "<a:MessageID>urn:k</a:MessageID>", &about("CloseSequence", &id));
    let closed = client.hears("CloseSequenceResponse");
    let told = between(&closed, "<r:SequenceAcknowledgement", "</r:SequenceAcknowledgement>");
    assert!(told.contains("Lower=\"1\" Upper=\"1\"") && told.contains("<r:Final/>"), "{closed}");
    // The service closes its own sequence: a request, which must come from the address that the client calls.
    let asked = client.hears("CloseSequence");
    assert_eq!(between(&asked, "<a:ReplyTo><a:Address>", "</"), CALLED);
    assert!(asked.contains("<Identifier>urn:offer</Identifier><LastMsgNumber>1</LastMsgNumber>"), "{asked}");
    client.hears_nothing();
    client.says("CloseSequenceResponse", "", &about("CloseSequenceResponse", "urn:offer"));
    let asked = client.hears("TerminateSequence");
    assert_eq!(between(&asked, "<a:ReplyTo><a:Address>", "</"), CALLED);
    client.says("TerminateSequence", "<a:MessageID>urn:t</a:MessageID>", &about("TerminateSequence", &id));
    client.hears("TerminateSequenceResponse");
}

#[test]
fn a_closed_sequence_without_messages_is_acknowledged_as_empty() {
    let mut client = Client::new(OASIS);
    let about = format!("<r:CloseSequence><r:Identifier>{}</r:Identifier></r:CloseSequence>", client.id);
    client.says("CloseSequence", "<a:MessageID>urn:k</a:MessageID>", &about);
    let closed = client.hears("CloseSequenceResponse");
    assert!(closed.contains("<r:None/><r:Final/>"), "{closed}");
}

/// Neither a message that the window has no room for nor a question says what arrived while nothing has.
#[test]
fn n8_whoever_has_received_nothing_says_nothing_of_it() {
    for version in [FEBRUARY, OASIS] {
        let mut client = Client::new(version);
        let asks = format!("<r:AckRequested><r:Identifier>{}</r:Identifier></r:AckRequested>", client.id);
        let beyond = format!("<a:MessageID>urn:m9</a:MessageID>{}", client.numbered(9, ""));
        for (action, headers) in [("VoidCall", &beyond), ("AckRequested", &asks)] {
            client.says(action, headers, "");
            client.hears_nothing();
            // Nor does the clock ask for it again and again.
            assert!(client.pair.server.deadline().unwrap() > client.pair.now);
        }
        client.calls();
        client.says("AckRequested", &asks, "");
        let told = client.hears("SequenceAcknowledgement");
        assert!(told.contains("Lower=\"1\" Upper=\"1\""), "{told}");
        client.hears_nothing();
    }
}

/// Answers that a client on a duplex channel does not acknowledge are kept for it up to a bound; its further messages wait.
#[test]
fn n8_a_client_that_acknowledges_no_answers_gets_no_more_of_them() {
    let mut client = Client::new(FEBRUARY);
    let taken = (1..=1000).take_while(|number| {
        let headers = format!("<a:MessageID>urn:m{number}</a:MessageID>{}", client.numbered(*number, ""));
        client.says("VoidCall", &headers, "<VoidCall xmlns=\"http://tempuri.org/\"/>");
        let Some(Event::Call(call)) = client.pair.server.poll() else { return false };
        client.pair.answer(call.id, Answer::Done(&Nothing));
        while client.pair.server_says().is_some() {}
        true
    });
    let taken = taken.count() as u32;
    assert!((16..1000).contains(&taken), "{taken}");
    // What was not taken was not acknowledged: it comes again when there is room.
    let arrived = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
         <r:AcknowledgementRange Lower=\"1\" Upper=\"8\"/></r:SequenceAcknowledgement>";
    let headers = format!("<a:MessageID>urn:m</a:MessageID>{}{arrived}", client.numbered(taken + 1, ""));
    client.says("VoidCall", &headers, "<VoidCall xmlns=\"http://tempuri.org/\"/>");
    while client.pair.server_says().is_some() {}
    client.says("VoidCall", &headers.replace(arrived, ""), "<VoidCall xmlns=\"http://tempuri.org/\"/>");
    client.pair.incoming();
}

/// What is said about a message of the client's sequence, with the sequence in its detail (WS-ReliableMessaging 1.1, 4).
fn refused(client: &mut Client, number: u32) -> String {
    let headers = format!("<a:MessageID>urn:m{number}</a:MessageID>{}", client.numbered(number, ""));
    client.says("VoidCall", &headers, "<VoidCall xmlns=\"http://tempuri.org/\"/>");
    assert!(client.pair.server.poll().is_none(), "message {number} is not carried out");
    let fault = client.hears("fault");
    let detail = format!(
        "<s:Detail><r:Identifier xmlns:r=\"{}\">{}</r:Identifier></s:Detail>",
        client.version, client.id
    );
    assert!(fault.contains(&detail), "{fault}");
    fault
}

/// WS-ReliableMessaging 1.1, 3.5: what is acknowledged with `Final` does not change any more.
#[test]
fn a_closed_sequence_takes_no_new_messages() {
    let mut client = Client::new(OASIS);
    let call = client.calls();
    client.pair.answer(call, Answer::Done(&Nothing));
    let about = format!(
        "<r:CloseSequence><r:Identifier>{}</r:Identifier><r:LastMsgNumber>2</r:LastMsgNumber></r:CloseSequence>",
        client.id
    );
    client.says("CloseSequence", "<a:MessageID>urn:k</a:MessageID>", &about);
    client.hears("CloseSequenceResponse");
    client.hears("CloseSequence");
    for number in [2, 3] {
        let fault = refused(&mut client, number);
        assert!(fault.contains(":SequenceClosed<"), "{fault}");
    }
    // What came before is acknowledged again.
    let again = format!("<a:MessageID>urn:m</a:MessageID>{}", client.numbered(1, ""));
    client.says("VoidCall", &again, "<VoidCall xmlns=\"http://tempuri.org/\"/>");
    let told = client.hears("SequenceAcknowledgement");
    assert!(told.contains("Lower=\"1\" Upper=\"1\"") && told.contains("<r:Final/>"), "{told}");
}

/// WS-ReliableMessaging of February 2005, 4.4.
#[test]
fn nothing_follows_the_last_message() {
    let mut client = Client::new(FEBRUARY);
    client.calls();
    let last = client.numbered(2, "<r:LastMessage/>");
    client.says("LastMessage", &last, "");
    for number in [3, 4] {
        let fault = refused(&mut client, number);
        assert!(fault.contains(":LastMessageNumberExceeded<"), "{fault}");
    }
    // Another last message changes nothing.
    let last = client.numbered(5, "<r:LastMessage/>");
    client.says("LastMessage", &last, "");
    client.hears("fault");
    refused(&mut client, 4);
}

/// WS-ReliableMessaging 1.1, 4.3: the detail says which sequence is meant.
#[test]
fn a_fault_about_an_unknown_sequence_names_it() {
    for version in [FEBRUARY, OASIS] {
        let mut client = Client::new(version);
        client.id = "urn:never".into();
        let fault = refused(&mut client, 1);
        assert!(fault.contains(":UnknownSequence<"), "{fault}");
    }
}

/// A message that waits for the sequence to be granted is sent before the channel ends, and that behind its acknowledgement.
#[test]
fn a_channel_ends_behind_the_last_message_of_its_session() {
    let client = connecting(&format!("{VIA}?security=none&reliable=on"));
    let mut pair = channels::Pair::new(client, accepting("security=none&reliable=on"));
    pair.carry();
    pair.call(Expects::Nothing);
    pair.client.close();
    assert!(pair.client.is_closing());
    pair.carry();
    assert_eq!(calls(&mut *pair.server).len(), 1);
    assert!(pair.client.is_closing());
    // The acknowledgement comes a little later.
    pair.server.expire(Instant::now() + Duration::from_secs(1)).unwrap();
    pair.carry();
    assert!(!pair.client.is_closing());
}

/// A channel whose session was never asked for ends at once.
#[test]
fn a_channel_without_a_session_ends_at_once() {
    let client = connecting(&format!("{VIA}?security=none&reliable=on"));
    let mut pair = channels::Pair::new(client, accepting("security=none&reliable=on"));
    pair.carry();
    pair.client.close();
    assert!(!pair.client.is_closing());
    assert_eq!(sent(&mut *pair.client), [7]);
}
