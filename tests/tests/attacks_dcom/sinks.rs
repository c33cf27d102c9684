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
use std::collections::BTreeMap;
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
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
        self.advise_raw(&stub)
    }

    /// The same with anything for a sink.
    fn advise_raw(&mut self, stub: &[u8]) -> Result<u32, u32> {
        match self.cook.orpc(POINT, 5, Some(self.point), stub) {
            Answer::Done(stub) => {
                let word = |at: usize| u32::from_le_bytes(stub[at..at + 4].try_into().expect("four"));
                let (cookie, hresult) = (word(8), word(stub.len() - 4));
                if hresult == 0 { Ok(cookie) } else { Err(hresult) }
            }
            Answer::Fault(status) => Err(status),
            other => panic!("{other:?}"),
        }
    }

    /// Unadvise: the HRESULT.
    fn unadvise(&mut self, cookie: u32) -> u32 {
        self.cook.orpc(POINT, 6, Some(self.point), &words(&[cookie])).hresult()
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

/// A connection, what came by it, and whether it is over.
struct Heard {
    stream: TcpStream,
    bytes: Vec<u8>,
    over: bool,
}

/// Somebody at an address who takes every connection, keeps what it says, and answers nothing.
struct Listener {
    at: (&'static str, u16),
    heard: Arc<Mutex<Vec<Heard>>>,
    over: Arc<AtomicBool>,
}

impl Listener {
    fn new(host: &'static str) -> Self {
        let listener = TcpListener::bind((host, 0)).expect("an address of this machine");
        let at = (host, listener.local_addr().expect("bound").port());
        let this = Self { at, heard: Arc::default(), over: Arc::default() };
        let (heard, over) = (Arc::clone(&this.heard), Arc::clone(&this.over));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let at = {
                    let mut heard = heard.lock().expect("whole");
                    let stream = stream.try_clone().expect("a socket");
                    heard.push(Heard { stream, bytes: Vec::new(), over: false });
                    heard.len() - 1
                };
                let heard = Arc::clone(&heard);
                std::thread::spawn(move || {
                    let mut piece = [0; 4096];
                    while let Ok(len @ 1..) = stream.read(&mut piece) {
                        heard.lock().expect("whole")[at].bytes.extend_from_slice(&piece[..len]);
                    }
                    heard.lock().expect("whole")[at].over = true;
                });
            }
        });
        this
    }

    fn connections(&self) -> usize {
        self.heard.lock().expect("whole").len()
    }

    /// Whether all connections are over.
    fn is_left(&self) -> bool {
        self.heard.lock().expect("whole").iter().all(|heard| heard.over)
    }

    /// Whether it was told who somebody is.
    fn knows_an_account(&self) -> bool {
        let heard = self.heard.lock().expect("whole");
        heard.iter().any(|heard| heard.bytes.windows(8).any(|part| part == b"NTLMSSP\0"))
    }
}

impl Drop for Listener {
    /// Nobody is there any more: whoever waits for an answer learns it at once.
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // It wakes the listener, which may have ended.
        let _ = TcpStream::connect(self.at);
        for heard in self.heard.lock().expect("whole").iter() {
            // The other side may have closed it.
            let _ = heard.stream.shutdown(Shutdown::Both);
        }
    }
}

/// The third host learns no credentials: neither those of the caller, which are not here, nor any of the server's own, unless
/// the server was told that they are for that host.
#[test]
fn o3_a_reference_to_another_host_is_given_no_credentials() {
    const STRANGER: &str = "127.0.0.2";
    const FRIEND: &str = "127.0.0.3";
    let account = format!("{DOMAIN};{COOK}:{PASSWORD}@");
    for own in ["", &account] {
        let options = if own.is_empty() { String::new() } else { format!("&hosts={FRIEND}") };
        let target = Target::with(&Settings { own: own.to_owned(), options, ..Settings::default() });
        let mut kitchen = Kitchen::new(&target);
        // The peer is 127.0.0.1; these are somebody else.
        let (stranger, friend) = (Listener::new(STRANGER), Listener::new(FRIEND));
        kitchen.advise(&sink_at(STRANGER, stranger.at.1, 1)).expect("it is taken");
        kitchen.advise(&sink_at(FRIEND, friend.at.1, 2)).expect("it is taken");
        kitchen.fire(1);
        // Whoever may know the account is told it: this test would see it.
        until("the friend is called", || {
            friend.connections() > 0 && friend.knows_an_account() != own.is_empty()
        });
        until("the stranger is called", || stranger.connections() > 0);
        kitchen.fire(10);
        drop((kitchen, friend));
        target.honest();
        // All that the stranger will ever hear was said when the server is gone.
        drop(target);
        until("the connections of the stranger end", || stranger.is_left());
        assert!(
            !stranger.knows_an_account(),
            "with `{own}`: the server authenticates to any host that a reference names"
        );
    }
}

/// References that name very many hosts: nobody waits for them, no thread for each.
#[test]
fn o3_references_to_silent_hosts_cost_no_threads() {
    let target = Target::new();
    target.recovers();
    let (threads, resident) = (target.threads(), target.resident());
    let silent = Listener::new("127.0.0.1");
    let port = silent.at.1;
    let mut kitchen = Kitchen::new(&target);
    let mut taken = 0;
    for number in 0..256 {
        taken += u64::from(kitchen.advise(&sink_at("127.0.0.1", port, number)).is_ok());
    }
    assert_eq!(taken, 256);
    // Whoever fires does not wait for any of them: none has been given up by then.
    kitchen.fire(10);
    until("a sink is called", || silent.connections() > 0);
    assert!(!silent.is_left(), "who fires waits for sinks");
    let most = (0..20).map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        target.threads()
    });
    let most = most.max().unwrap_or_default();
    target.honest();
    assert!(most <= threads + 32, "{threads} threads before, {most} for {taken} sinks");
    let grown = target.resident().saturating_sub(resident);
    assert!(grown < 64 << 20, "the server grew by {grown} bytes");
    drop((kitchen, silent));
    target.recovers();
}

#[test]
fn o5_sinks_of_a_connection_point_are_bounded() {
    let target = Target::new();
    let silent = Listener::new("127.0.0.1");
    let port = silent.at.1;
    let mut kitchen = Kitchen::new(&target);
    let mut refusals = Vec::new();
    for number in 0..3000 {
        refusals.extend(kitchen.advise(&sink_at("127.0.0.1", port, number)).err());
    }
    assert_eq!(refusals.len(), 3000 - 256, "sinks of one principal");
    assert!(refusals.iter().all(|code| *code == hresult::CONNECT_E_ADVISELIMIT), "{:x?}", refusals.first());
    drop((kitchen, silent));
    target.recovers();
}

/// Cookies of others, and cookies that there are not.
#[test]
fn o5_a_cookie_that_there_is_not_ends_nothing() {
    let target = Target::new();
    let silent = Listener::new("127.0.0.1");
    let port = silent.at.1;
    let mut kitchen = Kitchen::new(&target);
    let cookie = kitchen.advise(&sink_at("127.0.0.1", port, 1)).expect("a sink");
    for wrong in [0, cookie + 1, u32::MAX] {
        assert_eq!(kitchen.unadvise(wrong), hresult::CONNECT_E_NOCONNECTION, "{wrong}");
    }
    assert_eq!(kitchen.unadvise(cookie), 0);
    drop((kitchen, silent));
    target.recovers();
}

/// Signals for somebody who never takes them: the newest are kept, up to a bound.
#[test]
fn o5_signals_for_a_sink_that_never_answers_are_bounded() {
    let target = Target::new();
    let silent = Listener::new("127.0.0.1");
    let port = silent.at.1;
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
    drop((kitchen, silent));
    target.recovers();
}

/// What is said to be a sink: nonsense of every kind.
#[test]
fn o5_sinks_that_are_none_are_refused() {
    let target = Target::new();
    let mut kitchen = Kitchen::new(&target);
    // One that says that its addresses are without end.
    let mut many = sink_at("127.0.0.1", 9, 2);
    if let ObjRef::Standard { resolver, .. } = &mut many {
        resolver.strings = vec![resolver.strings[0].clone(); 1500];
    }
    let taken = kitchen.advise(&many);
    assert_eq!(taken, Ok(1), "the addresses are many, and all the same");
    let good = sink_at("127.0.0.1", 9, 1).write();
    let mut refusals = BTreeMap::<_, usize>::new();
    for at in 0..good.len() {
        for octet in [0, 0x7f, 0xff] {
            let mut raw = good.to_vec();
            raw[at] = octet;
            let len = u32::try_from(raw.len()).expect("small");
            let mut stub = [words(&[0x0002_0000, len, len]), raw].concat();
            stub.resize(stub.len().next_multiple_of(4), 0);
            match kitchen.advise_raw(&stub) {
                // So are very many others: they do not take the place of more.
                Ok(cookie) => assert_eq!(kitchen.unadvise(cookie), 0),
                Err(status) => {
                    let name = hresult::name(status).unwrap_or_else(|| panic!("{at} {octet}: {status:#x}")).0;
                    *refusals.entry(name).or_default() += 1;
                }
            }
        }
    }
    assert!(refusals["NCA_FAULT_NDR"] > 20, "{refusals:?}");
    // An interface pointer that is read, and is none of the events.
    let names: Vec<_> = refusals.keys().copied().collect();
    assert_eq!(names, ["CONNECT_E_CANNOTCONNECT", "NCA_FAULT_NDR"]);
    // A sink that is no object at all.
    let answer = kitchen.cook.orpc(POINT, 5, Some(kitchen.point), &words(&[0]));
    assert_eq!(answer.hresult(), hresult::E_POINTER);
    kitchen.fire(1);
    drop(kitchen);
    target.recovers();
}
