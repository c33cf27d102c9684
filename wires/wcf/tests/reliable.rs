//! Reliable sessions between our client and our server, with a network in the test's hands that loses, repeats and swaps
//! messages. Time is an argument.

#![allow(clippy::unwrap_used)]

use crate::soap_support::*;
use everywire_model::visit::Nothing;
use everywire_model::*;
use everywire_wcf::soap::Dialect;
use std::collections::VecDeque;
use std::time::Duration;

/// What the network does with the messages that it is handed, in order.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Arrives,
    IsLost,
    ComesTwice,
    /// Waits for the next one.
    IsOvertaken,
}

struct Network {
    pair: Pair,
    contract: Interface,
    fates: VecDeque<Fate>,
    to_server: Vec<Vec<u8>>,
    to_client: Vec<Vec<u8>>,
    /// Arguments of the calls in the order in which they came.
    served: Vec<i32>,
    outcomes: Vec<(CallId, i32)>,
    sent: usize,
    /// What the client's messages were.
    asked: Vec<String>,
}

impl Network {
    fn new(dialect: Dialect, fates: &[Fate]) -> Self {
        let contract = remote_object();
        let config = Config { wire_state: Some(wire_state(contract.clone(), KEY)), ..Config::default() };
        let pair = Pair::with(dialect, &config, |settings| settings.reliable = true);
        let fates = fates.iter().copied().collect();
        let (to_server, to_client) = (Vec::new(), Vec::new());
        let (served, outcomes, asked) = (Vec::new(), Vec::new(), Vec::new());
        Self { pair, contract, fates, to_server, to_client, served, outcomes, sent: 0, asked }
    }

    fn call(&mut self, number: i32) -> CallId {
        let (started, payload) = self.pair.start(&self.contract, "InOutInt", vec![Arg::Int(number)]);
        assert!(payload.is_empty(), "a reliable session sends when it may");
        started.id
    }

    /// The messages that arrive of those that were sent.
    fn carry(&mut self, sent: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut arrived = Vec::new();
        let mut late = Vec::new();
        for message in sent {
            self.sent += 1;
            match self.fates.pop_front().unwrap_or(Fate::Arrives) {
                Fate::Arrives => {
                    arrived.push(message);
                    arrived.append(&mut late);
                }
                Fate::IsLost => {}
                Fate::ComesTwice => {
                    arrived.push(message.clone());
                    arrived.push(message);
                }
                Fate::IsOvertaken => late.push(message),
            }
        }
        arrived.append(&mut late);
        arrived
    }

    /// Everything that can happen without time passing.
    fn run(&mut self) {
        for _ in 0..100 {
            let mut out = std::mem::take(&mut self.to_server);
            while let Some((flushed, payload)) = self.pair.client_says() {
                let action = flushed.action.unwrap();
                self.asked.push(action.rsplit('/').next().unwrap().to_owned());
                out.push(payload);
            }
            let nothing = out.is_empty();
            for payload in self.carry(out) {
                self.pair.hand_over(&payload, None).unwrap();
                self.serve();
            }
            let mut back = std::mem::take(&mut self.to_client);
            while let Some((flushed, payload)) = self.pair.server_says() {
                assert!(!flushed.fault, "{}", String::from_utf8_lossy(&payload));
                back.push(payload);
            }
            let silence = nothing && back.is_empty();
            for payload in self.carry(back) {
                self.pair.bring_back(&payload).unwrap();
                self.hear();
            }
            if silence {
                return;
            }
        }
        panic!("the two sides never stop talking");
    }

    fn serve(&mut self) {
        let operation = find(&self.contract, "InOutInt").clone();
        while let Some(event) = self.pair.server.poll() {
            let Event::Call(incoming) = event else { panic!("{event:?}") };
            let [Arg::Int(number)] = read(&incoming.body, &operation.arguments).unwrap()[..] else {
                panic!()
            };
            self.served.push(number);
            let results = List(&operation.results, vec![Arg::Int(number + 1)]);
            let (answered, payload) = self.pair.answer(incoming.id, Answer::Done(&results));
            assert_eq!(answered.sends, !payload.is_empty());
            if answered.sends {
                self.to_client.push(payload);
            }
        }
    }

    fn hear(&mut self) {
        let operation = find(&self.contract, "InOutInt").clone();
        while let Some(event) = self.pair.client.poll() {
            let Event::Reply { id, outcome: Outcome::Done(body) } = event else { panic!("{event:?}") };
            let [Arg::Int(number)] = read(&body, &operation.results).unwrap()[..] else { panic!() };
            self.outcomes.push((id, number));
        }
    }

    /// Lets time pass until nothing is under way any more.
    fn settle(&mut self) {
        for _ in 0..40 {
            self.run();
            let due = [self.pair.client.deadline(), self.pair.server.deadline()].into_iter().flatten().min();
            if self.pair.client.outstanding() == 0 {
                return;
            }
            self.pair.now = due.expect("something is due while calls are open").max(self.pair.now);
            self.pair.client.expire(self.pair.now).unwrap();
            self.pair.server.expire(self.pair.now).unwrap();
        }
        panic!("{} calls are still open", self.pair.client.outstanding());
    }
}

const BOTH: [Dialect; 2] = [Dialect::NET_TCP, Dialect::WS];

#[test]
fn messages_arrive_once_and_in_order_whatever_the_network_does() {
    use Fate::{Arrives, ComesTwice, IsLost, IsOvertaken};
    let weathers: [&[Fate]; 8] = [
        &[],
        &[IsLost],
        &[Arrives, IsLost],
        &[Arrives, Arrives, IsLost, Arrives, IsLost, IsLost],
        &[ComesTwice; 20],
        &[Arrives, Arrives, IsOvertaken, Arrives, IsOvertaken, Arrives, Arrives, IsOvertaken, Arrives],
        &[Arrives, Arrives, IsOvertaken, IsOvertaken, ComesTwice, IsLost, IsOvertaken, Arrives],
        &[IsLost, ComesTwice, IsLost, Arrives, Arrives, IsLost, ComesTwice, IsLost, IsLost, IsOvertaken],
    ];
    for dialect in BOTH {
        for weather in weathers {
            let mut network = Network::new(dialect, weather);
            let calls: Vec<CallId> = (0..12).map(|number| network.call(number)).collect();
            network.settle();
            assert_eq!(network.served, (0..12).collect::<Vec<_>>(), "{dialect:?} {weather:?}");
            // Over HTTP answers go as the requests came; each is heard once.
            network.outcomes.sort_unstable();
            let expected: Vec<(CallId, i32)> = calls.into_iter().zip(1..).collect();
            assert_eq!(network.outcomes, expected, "{dialect:?} {weather:?}");
        }
    }
}

#[test]
fn no_more_than_eight_messages_are_under_way() {
    let mut network = Network::new(Dialect::NET_TCP, &[]);
    network.call(0);
    network.settle();
    for number in 1..20 {
        network.call(number);
    }
    let mut sent = 0;
    while network.pair.client_says().is_some() {
        sent += 1;
    }
    // The acknowledgement of the first answer may travel with one of them.
    assert_eq!(sent, 8);
}

#[test]
fn a_session_is_ended_when_everything_has_arrived() {
    use Fate::{Arrives, IsLost};
    for dialect in BOTH {
        // The call, the question for a session and its answer come first; the call itself is lost once.
        let mut network = Network::new(dialect, &[Arrives, Arrives, IsLost]);
        network.call(1);
        network.pair.client.close();
        network.settle();
        for _ in 0..10 {
            network.run();
            let due = [network.pair.client.deadline(), network.pair.server.deadline()];
            let due = due.into_iter().flatten().min();
            network.pair.now = due.unwrap_or(network.pair.now).max(network.pair.now);
        }
        let asked: Vec<&str> = network.asked.iter().map(String::as_str).collect();
        let last =
            asked.iter().position(|name| *name == "LastMessage").expect("it says that nothing follows");
        let call = asked.iter().rposition(|name| *name == "InOutInt").unwrap();
        assert!(call < last, "{asked:?}");
        let end = asked.iter().position(|name| *name == "TerminateSequence").expect("it says that it ends");
        assert!(last < end, "{asked:?}");
        assert_eq!(network.pair.client.deadline(), None);
    }
}

#[test]
fn a_silent_service_is_given_up() {
    let mut network = Network::new(Dialect::NET_TCP, &[Fate::IsLost; 100]);
    network.call(1);
    let failure = loop {
        network.run();
        network.pair.now = network.pair.client.deadline().unwrap();
        if let Err(failure) = network.pair.client.expire(network.pair.now) {
            break failure;
        }
    };
    assert_eq!((failure.kind(), failure.code()), (Kind::Unreachable, Some("rm MaxRetryCount")));
    assert_eq!(failure.completed(), Completed::No, "it was never asked for anything");
    assert!(network.sent <= 9, "{} requests", network.sent);
}

#[test]
fn a_service_without_reliable_sessions_is_told_apart() {
    let mut network = Network::new(Dialect::NET_TCP, &[]);
    network.call(1);
    let (flushed, payload) = network.pair.client_says().unwrap();
    assert_eq!(flushed.action.as_deref(), Some("http://schemas.xmlsoap.org/ws/2005/02/rm/CreateSequence"));
    // A server that knows no such thing refuses the action.
    let at = position(&payload, b"\x44\x1a\xad").unwrap() + 3;
    let id: [u8; 16] = payload[at..at + 16].try_into().unwrap();
    let mut fault = b"\x00\x56\x02\x0b\x01s\x04\x0b\x01a\x06\x56\x08\x44\x12\xad".to_vec();
    fault.extend_from_slice(&id);
    // s:Body, s:Fault without anything in it.
    fault.extend_from_slice(b"\x01\x56\x0e\x56\x86\x01\x01\x01\x01");
    let failure = network.pair.bring_back(&fault).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported);
    assert!(failure.hint().unwrap().contains("reliable=on"));
}

/// A stranger's session, told by hand.
mod attacks {
    use super::*;
    use crate::soap_support::strangers::*;

    fn server() -> (Pair, String) {
        granted(serving(Dialect { session: false, ..Dialect::WS }, &remote_object()))
    }

    #[test]
    fn n8_messages_beyond_the_window_are_not_kept() {
        let (mut pair, id) = server();
        // A gap, and everything the window holds behind it; then far more.
        for number in 2..=200 {
            pair.hand_over(&message(&id, &number.to_string()), None).unwrap();
            assert!(pair.server.poll().is_none());
            while pair.server_says().is_some() {}
        }
        pair.hand_over(&message(&id, "1"), None).unwrap();
        let mut calls = 0;
        while pair.server.poll().is_some() {
            calls += 1;
        }
        assert_eq!(calls, 64);
    }

    #[test]
    fn n8_a_gap_that_stays_ends_the_session() {
        let (mut pair, id) = server();
        pair.hand_over(&message(&id, "2"), None).unwrap();
        pair.server.expire(pair.now + Duration::from_secs(59)).unwrap();
        let failure = pair.server.expire(pair.now + Duration::from_secs(61)).unwrap_err();
        assert_eq!((failure.code(), failure.completed()), (Some("rm Gap"), Completed::Maybe));
    }

    #[test]
    fn n8_repeated_messages_are_served_once() {
        let (mut pair, id) = server();
        for _ in 0..50 {
            pair.hand_over(&message(&id, "1"), None).unwrap();
        }
        let incoming = pair.incoming();
        assert!(pair.server.poll().is_none());
        let (answered, _) = pair.answer(incoming.id, Answer::Done(&Nothing));
        assert!(answered.sends);
    }

    #[test]
    fn n8_one_channel_has_one_session() {
        let config = Config { wire_state: Some(wire_state(remote_object(), KEY)), ..Config::default() };
        let (mut pair, _) = granted(Pair::with(Dialect::WS, &config, |settings| {
            settings.binding = everywire_wcf::settings::Binding::NetTcp;
        }));
        // The same question again gets the same answer; another one is refused.
        pair.hand_over(&create(1), None).unwrap();
        assert!(!pair.server_says().unwrap().0.fault);
        for id in 2..20 {
            pair.hand_over(&create(id), None).unwrap();
            assert!(fault(&mut pair).contains("CreateSequenceRefused"));
        }
    }

    #[test]
    fn n8_a_node_has_so_many_sessions_over_http() {
        let (mut pair, first) = server();
        let used = |pair: &mut Pair, id: &str| {
            pair.hand_over(&message(id, "1"), None).unwrap();
            let incoming = pair.incoming();
            pair.answer(incoming.id, Answer::Done(&Nothing));
        };
        used(&mut pair, &first);
        let mut granted = 1;
        for id in 2..2000 {
            pair.hand_over(&create(id), None).unwrap();
            let (flushed, payload) = pair.server_says().unwrap();
            let text = String::from_utf8(payload).unwrap();
            if flushed.fault {
                assert!(text.contains("CreateSequenceRefused"));
                break;
            }
            used(&mut pair, &between(&text, "<Identifier>", "<"));
            granted += 1;
        }
        assert_eq!(granted, 1024);
        // Those that there are go on, and one that ends makes room.
        pair.hand_over(&message(&first, "2"), None).unwrap();
        assert!(pair.server.poll().is_some());
        let about =
            format!("<r:TerminateSequence><r:Identifier>{first}</r:Identifier></r:TerminateSequence>");
        let action = "http://schemas.xmlsoap.org/ws/2005/02/rm/TerminateSequence";
        pair.hand_over(&envelope(action, "", &about), None).unwrap();
        while pair.server_says().is_some() {}
        // That is looked for ten times a second.
        pair.now += Duration::from_millis(100);
        pair.hand_over(&create(3000), None).unwrap();
        assert!(!pair.server_says().unwrap().0.fault);
    }

    #[test]
    fn n8_sessions_that_nobody_uses_make_room_for_others() {
        let (mut pair, first) = server();
        let mut fresh = String::new();
        for id in 2..3000 {
            pair.hand_over(&create(id), None).unwrap();
            let (flushed, payload) = pair.server_says().unwrap();
            let text = String::from_utf8(payload).unwrap();
            assert!(!flushed.fault, "{id}: {text}");
            fresh = between(&text, "<Identifier>", "<");
            if id == 100 {
                pair.hand_over(&message(&first, "1"), None).unwrap();
                assert!(pair.server.poll().is_some());
            }
        }
        // Neither the one that is used nor the youngest has gone.
        for (id, number) in [(&first, "2"), (&fresh, "1")] {
            pair.hand_over(&message(id, number), None).unwrap();
            assert!(pair.server.poll().is_some());
        }
        // Where places are scarce the others are kept for a short time only.
        pair.now += Duration::from_secs(31);
        for id in 3000..3600 {
            pair.hand_over(&create(id), None).unwrap();
            assert!(!pair.server_says().unwrap().0.fault);
        }
        for (id, number) in [(&first, "3"), (&fresh, "2")] {
            pair.hand_over(&message(id, number), None).unwrap();
            assert!(pair.server.poll().is_some());
        }
    }

    #[test]
    fn n8_whoever_takes_no_answers_gets_no_more_of_them() {
        let config = Config { wire_state: Some(wire_state(remote_object(), KEY)), ..Config::default() };
        let connection = || {
            Pair::with(Dialect { session: false, ..Dialect::WS }, &config, |settings| {
                settings.binding = everywire_wcf::settings::Binding::Ws;
            })
        };
        let (mut pair, id) = granted(connection());
        let mut served = 0;
        for number in 1..=100 {
            pair.hand_over(&message(&id, &number.to_string()), None).unwrap();
            while let Some(event) = pair.server.poll() {
                let Event::Call(incoming) = event else { panic!("{event:?}") };
                pair.answer(incoming.id, Answer::Done(&Nothing));
                served += 1;
            }
            while pair.server_says().is_some() {}
        }
        // Eight are under way, and 64 wait behind them.
        assert_eq!(served, 72);
        // Those that are acknowledged make room, by whichever connection that comes.
        let said = "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>\
             <r:AcknowledgementRange Lower=\"1\" Upper=\"8\"/></r:SequenceAcknowledgement>";
        let action = "http://schemas.xmlsoap.org/ws/2005/02/rm/SequenceAcknowledgement";
        let mut other = connection();
        other.hand_over(&envelope(action, said, ""), None).unwrap();
        assert!(other.server_says().is_none());
        pair.hand_over(&message(&id, "9"), None).unwrap();
        assert!(pair.server_says().is_some(), "an answer that waited");
        pair.hand_over(&message(&id, "73"), None).unwrap();
        assert!(pair.server.poll().is_some());
    }

    #[test]
    fn n8_sequences_of_others_are_unknown() {
        let (mut pair, _) = server();
        pair.hand_over(&message("urn:other", "1"), None).unwrap();
        assert!(fault(&mut pair).contains("UnknownSequence"));
        assert!(pair.server.poll().is_none());
        let config = Config { wire_state: Some(wire_state(remote_object(), KEY)), ..Config::default() };
        let (mut pair, _) = granted(Pair::with(Dialect::WS, &config, |settings| {
            settings.binding = everywire_wcf::settings::Binding::NetTcp;
        }));
        let outside = envelope(
            "http://tempuri.org/IRemoteObject/VoidCall",
            "<a:MessageID>urn:x</a:MessageID>",
            "<VoidCall/>",
        );
        pair.hand_over(&outside, None).unwrap();
        assert!(fault(&mut pair).contains("WsrmRequired"));
        assert!(pair.server.poll().is_none());
    }

    #[test]
    fn n8_acknowledgements_of_what_was_never_sent_and_impossible_numbers_end_the_channel() {
        for header in [
            "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier><r:AcknowledgementRange Lower=\"1\" \
             Upper=\"9\"/></r:SequenceAcknowledgement>",
            "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier><r:AcknowledgementRange Lower=\"3\" \
             Upper=\"2\"/></r:SequenceAcknowledgement>",
            "<r:Sequence><r:Identifier>x</r:Identifier><r:MessageNumber>0</r:MessageNumber></r:Sequence>",
            "<r:Sequence><r:Identifier>x</r:Identifier><r:MessageNumber>99999999999999999999</r:MessageNumber></r:Sequence>",
            "<r:Sequence><r:Identifier>x</r:Identifier></r:Sequence>",
        ] {
            let (mut pair, _) = server();
            pair.hand_over(&envelope("urn:x", header, ""), None).unwrap_err();
        }
        let ranges = "<r:AcknowledgementRange Lower=\"1\" Upper=\"1\"/>".repeat(100);
        let (mut pair, _) = server();
        let header = format!(
            "<r:SequenceAcknowledgement><r:Identifier>urn:offer</r:Identifier>{ranges}</r:SequenceAcknowledgement>"
        );
        pair.hand_over(&envelope("urn:x", &header, ""), None).unwrap_err();
    }
}
