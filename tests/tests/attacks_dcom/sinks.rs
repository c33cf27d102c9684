//! Sinks: very many of them, at hosts that nobody knows, which never answer, or die.

use super::attacker::*;
use super::pantry::{EVENTS, PANTRY};
use super::target::{COOK, DOMAIN, PASSWORD, Settings, Target, until};
use everywire::Bytes;
use everywire::model::Endpoint;
use everywire_dcom::bindings::DualStringArray;
use everywire_dcom::objref::{ObjRef, StdObjRef};
use everywire_dcom::remunknown::{Query, parse_query_reply, query_request};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID as ACTIVATOR;
use everywire_dcom::standard::rem_unknown::REM_UNKNOWN_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{hresult, iid_of};
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::{Uuid, uuid};

const CONTAINER: Uuid = uuid!("b196b284-bab4-101a-b69c-00aa00341d07");
const POINT: Uuid = uuid!("b196b286-bab4-101a-b69c-00aa00341d07");

/// A connection of the cook, an object of it, and the connection point of its events.
struct Kitchen {
    cook: Attacker,
    pantry: Uuid,
    point: Uuid,
}

impl Kitchen {
    fn new(target: &Target) -> Self {
        let all = [ACTIVATOR, iid_of(&PANTRY), REM_UNKNOWN_ID, CONTAINER, POINT];
        let mut cook = Attacker::cook(target, &all);
        let (activated, objrefs) = cook.activate(&[iid_of(&PANTRY)]);
        let pantry = objrefs[0].ipid;
        let query = query_request(&Query { ipid: pantry, refs: 5, iids: vec![CONTAINER] });
        let stub = cook.orpc(REM_UNKNOWN_ID, 3, Some(activated.resolved.rem_unknown), &query).results();
        let found = parse_query_reply(Get::after(&stub, 8, true)).expect("good").expect("found");
        let container = found[0].expect("it has events").ipid;
        // FindConnectionPoint.
        let events = iid_of(&EVENTS).to_bytes_le();
        let stub = cook.orpc(CONTAINER, 4, Some(container), &events).results();
        // Referent, conformance, size.
        let point = std_of(&Bytes::copy_from_slice(&stub[12..])).ipid;
        Self { cook, pantry, point }
    }

    /// Advise: the HRESULT, and the cookie.
    fn advise(&mut self, sink: &ObjRef) -> Result<u32, u32> {
        let raw = sink.write();
        let len = u32::try_from(raw.len()).expect("small");
        let mut stub = [words(&[0x0002_0000, len, len]), raw.to_vec()].concat();
        stub.resize(stub.len().next_multiple_of(4), 0);
        match self.cook.orpc(POINT, 5, Some(self.point), &stub) {
            Answer::Done(stub) => {
                let word = |at: usize| u32::from_le_bytes(stub[at..at + 4].try_into().expect("four"));
                let (cookie, hresult) = (word(8), word(stub.len() - 4));
                if hresult == 0 { Ok(cookie) } else { Err(hresult) }
            }
            Answer::Fault(status) => Err(status),
            other => panic!("{other:?}"),
        }
    }

    /// Fire: the pantry calls all its sinks.
    fn fire(&mut self, times: u32) {
        self.cook.orpc(iid_of(&PANTRY), 11, Some(self.pantry), &words(&[times])).results();
    }
}

/// A sink that is said to be at a TCP address.
fn sink_at(host: &str, port: u16, number: u64) -> ObjRef {
    let endpoint = Endpoint::Tcp { host: host.into(), port };
    let std = StdObjRef {
        flags: 0,
        public_refs: 5,
        oxid: 0x1000 + number,
        oid: 0x2000 + number,
        ipid: Uuid::from_u128(u128::from(number) + 1),
    };
    ObjRef::Standard { iid: iid_of(&EVENTS), std, resolver: DualStringArray::of(&[endpoint], Vec::new()) }
}

/// Somebody at an address who takes every connection, keeps what it says, and answers what it is told to.
fn listener(host: &str, answer: &'static [u8]) -> (u16, Arc<Mutex<Vec<Vec<u8>>>>) {
    let listener = TcpListener::bind((host, 0)).expect("an address of this machine");
    let port = listener.local_addr().expect("bound").port();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&heard);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, noted): (TcpStream, _) = (stream.expect("a connection"), Arc::clone(&noted));
            let at = {
                let mut noted = noted.lock().expect("whole");
                noted.push(Vec::new());
                noted.len() - 1
            };
            std::thread::spawn(move || {
                use std::io::Write;
                let _ = stream.write_all(answer);
                let mut piece = [0; 4096];
                while let Ok(len @ 1..) = stream.read(&mut piece) {
                    noted.lock().expect("whole")[at].extend_from_slice(&piece[..len]);
                }
            });
        }
    });
    (port, heard)
}

/// The third host learns no credentials: neither those of the caller, which are not here, nor any of the server's own.
#[test]
fn o3_a_reference_to_another_host_is_given_no_credentials() {
    for own in [String::new(), format!("{DOMAIN};{COOK}:{PASSWORD}@")] {
        let target = Target::with(&Settings { own: own.clone(), ..Settings::default() });
        let mut kitchen = Kitchen::new(&target);
        // The peer is 127.0.0.1; this is somebody else.
        let (port, heard) = listener("127.0.0.2", &[]);
        let taken = kitchen.advise(&sink_at("127.0.0.2", port, 1));
        println!("advised: {taken:x?}");
        kitchen.fire(1);
        std::thread::sleep(Duration::from_millis(1500));
        let said = heard.lock().expect("whole").clone();
        let told = said.iter().any(|bytes| bytes.windows(8).any(|part| part == b"NTLMSSP\0"));
        assert!(
            !told,
            "with `{own}`: the server authenticates to any host that a reference names: {said:x?}"
        );
        drop(kitchen);
        target.recovers();
    }
}

/// References that name very many hosts: nobody waits for them, no thread for each.
#[test]
fn o3_references_to_silent_hosts_cost_no_threads() {
    let target = Target::new();
    target.recovers();
    let (threads, resident) = (target.threads(), target.resident());
    let (port, _heard) = listener("127.0.0.1", &[]);
    let mut kitchen = Kitchen::new(&target);
    let mut taken = 0;
    for number in 0..256 {
        taken += u64::from(kitchen.advise(&sink_at("127.0.0.1", port, number)).is_ok());
    }
    println!("{taken} sinks at a host that never answers");
    // Whoever fires does not wait for any of them.
    let begun = std::time::Instant::now();
    kitchen.fire(10);
    assert!(begun.elapsed() < Duration::from_secs(20), "who fires waits for sinks: {:?}", begun.elapsed());
    let most = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        target.threads()
    });
    let most = most.max().unwrap_or_default();
    target.honest();
    assert!(most <= threads + 32, "{threads} threads before, {most} for {taken} sinks");
    let grown = target.resident().saturating_sub(resident);
    assert!(grown < 64 << 20, "the server grew by {grown} bytes");
    drop(kitchen);
    target.recovers();
}

#[test]
fn o5_sinks_of_a_connection_point_are_bounded() {
    let target = Target::new();
    let (port, _heard) = listener("127.0.0.1", &[]);
    let mut kitchen = Kitchen::new(&target);
    let mut refusals = Vec::new();
    for number in 0..3000 {
        refusals.extend(kitchen.advise(&sink_at("127.0.0.1", port, number)).err());
    }
    assert_eq!(refusals.len(), 3000 - 256, "sinks of one principal");
    assert!(refusals.iter().all(|code| *code == hresult::CONNECT_E_ADVISELIMIT), "{:x?}", refusals.first());
    drop(kitchen);
    target.recovers();
}

/// Cookies of others, and cookies that there are not.
#[test]
fn o5_a_cookie_that_there_is_not_ends_nothing() {
    let target = Target::new();
    let (port, _heard) = listener("127.0.0.1", &[]);
    let mut kitchen = Kitchen::new(&target);
    let cookie = kitchen.advise(&sink_at("127.0.0.1", port, 1)).expect("a sink");
    for wrong in [0, cookie + 1, u32::MAX] {
        let answer = kitchen.cook.orpc(POINT, 6, Some(kitchen.point), &words(&[wrong])).hresult();
        assert_eq!(answer, hresult::CONNECT_E_NOCONNECTION, "{wrong}");
    }
    assert_eq!(kitchen.cook.orpc(POINT, 6, Some(kitchen.point), &words(&[cookie])).hresult(), 0);
    drop(kitchen);
    target.recovers();
}

/// Signals for somebody who never takes them: the newest are kept, up to a bound.
#[test]
fn o5_signals_for_a_sink_that_never_answers_are_bounded() {
    // Firing takes a while, and nobody pings.
    let target = Target::with(&Settings { period: Duration::from_secs(4), ..Settings::default() });
    let (port, _heard) = listener("127.0.0.1", &[]);
    let mut kitchen = Kitchen::new(&target);
    for number in 0..4 {
        kitchen.advise(&sink_at("127.0.0.1", port, number)).expect("a sink");
    }
    let before = target.resident();
    for _ in 0..30 {
        kitchen.fire(1000);
    }
    let grown = target.resident().saturating_sub(before);
    println!("30000 signals for 4 sinks cost {grown} bytes");
    assert!(grown < 32 << 20, "the server grew by {grown} bytes");
    drop(kitchen);
    target.recovers();
}

/// What is said to be a sink: nonsense of every kind.
#[test]
fn o5_sinks_that_are_none_are_refused() {
    let target = Target::new();
    let mut kitchen = Kitchen::new(&target);
    let good = sink_at("127.0.0.1", 9, 1).write();
    for at in 0..good.len() {
        for octet in [0, 0x7f, 0xff] {
            let mut raw = good.to_vec();
            raw[at] = octet;
            let len = u32::try_from(raw.len()).expect("small");
            let mut stub = [words(&[0x0002_0000, len, len]), raw].concat();
            stub.resize(stub.len().next_multiple_of(4), 0);
            let answer = kitchen.cook.orpc(POINT, 5, Some(kitchen.point), &stub);
            assert!(matches!(answer, Answer::Done(_) | Answer::Fault(_)), "{at} {octet}: {answer:?}");
        }
    }
    // A sink that is no object at all, and one that says that its addresses are without end.
    let answer = kitchen.cook.orpc(POINT, 5, Some(kitchen.point), &words(&[0]));
    assert_eq!(answer.hresult(), hresult::E_POINTER);
    let mut many = sink_at("127.0.0.1", 9, 2);
    if let ObjRef::Standard { resolver, .. } = &mut many {
        resolver.strings = vec![resolver.strings[0].clone(); 1500];
    }
    println!("{:x?}", kitchen.advise(&many));
    kitchen.fire(1);
    drop(kitchen);
    until("the server is at rest", || target.held().living == 0);
    target.recovers();
}
