//! Stubs that no marshaller of COM makes: texts that are none, and counts that differ from the arrays beside them. A relay between a client and a server
//! of ours puts other octets in the place of some, of the same length; what it puts is what arrives.
//!
//! Each test ends with somebody else who is served.

use super::hostile::is_served;
use super::{Site, def, iid};
use everywire::{Failure, Kind, Node, Ref};
use everywire_opc::contract::{DataAccessGroup, DataAccessServer, IOPCItemMgt, IOPCSyncIO, OPCDATASOURCE};
use everywire_opc::{Code, Data};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What is put in the place of what, in both directions.
type Changes = Arc<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>;

/// A server behind a relay, and a client that knows the relay alone.
struct Relayed {
    site: Site,
    changes: Changes,
    server: Ref<dyn DataAccessServer>,
    group: Ref<dyn DataAccessGroup>,
    _client: Node,
}

impl Relayed {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let site = Site::served(Node::new(), &format!("level=none&publish=127.0.0.1:{port}"));
        let bound = site.address.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place");
        let bound = bound.parse().expect("an address and a port");
        let changes = Changes::default();
        relay(listener, bound, Arc::clone(&changes));
        let client = Node::new();
        client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
        let address = format!("dcom://127.0.0.1:{port}/{}?level=none", super::CLASS);
        let server = client.connect::<dyn DataAccessServer>(&address).expect("an address");
        let added =
            server.add_group("g", 1, 1000, 7, &None, &None, 0, &iid::<dyn IOPCItemMgt>()).expect("a group");
        let group = client.narrow::<dyn DataAccessGroup>(added.value.2.expect("an object")).expect("a group");
        Self { site, changes, server, group, _client: client }
    }

    /// While something is done, these octets arrive in place of those. They must be met.
    fn mangled<T>(&self, from: &[u8], to: &[u8], deed: impl FnOnce() -> T) -> T {
        assert_eq!(from.len(), to.len());
        self.changes.lock().expect("nobody panicked").push((from.to_vec(), to.to_vec()));
        let done = deed();
        let mut changes = self.changes.lock().expect("nobody panicked");
        assert!(changes.is_empty(), "the octets were never met");
        changes.clear();
        done
    }
}

/// Passes on what comes, whole messages at a time; each change is made once.
fn relay(listener: TcpListener, to: std::net::SocketAddr, changes: Changes) {
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let far = TcpStream::connect(to).expect("the server listens");
            let back = (far.try_clone().expect("a socket"), near.try_clone().expect("a socket"));
            let (one, other) = (Arc::clone(&changes), Arc::clone(&changes));
            std::thread::spawn(move || pass(near, far, &one));
            std::thread::spawn(move || pass(back.0, back.1, &other));
        }
    });
}

fn pass(mut from: TcpStream, mut to: TcpStream, changes: &Changes) {
    let mut head = [0; 16];
    while from.read_exact(&mut head).is_ok() {
        // The length of a fragment (C706, 12.6.3.1).
        let whole = usize::from(u16::from_le_bytes([head[8], head[9]]));
        let mut message = head.to_vec();
        message.resize(whole, 0);
        if from.read_exact(&mut message[16..]).is_err() {
            break;
        }
        changes.lock().expect("nobody panicked").retain(|(wanted, other)| {
            let at = message.windows(wanted.len()).position(|part| part == wanted);
            if let Some(at) = at {
                message[at..at + other.len()].copy_from_slice(other);
            }
            at.is_none()
        });
        if to.write_all(&message).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn wide(text: &[u16]) -> Vec<u8> {
    text.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

/// A text whose middle unit the relay looks for.
const TEXT: &str = "Q\u{4711}Q";
const UNITS: [u16; 3] = [0x51, 0x4711, 0x51];

fn is_malformed(failure: &Failure) -> bool {
    // A server tells a caller whose call it cannot decode that the arguments are bad.
    matches!(failure.kind(), Kind::Malformed | Kind::Violation | Kind::BadArgument)
}

#[test]
fn a_lone_surrogate_in_a_wide_string_is_refused() {
    let relayed = Relayed::new();
    for lone in [0xd800, 0xdbff, 0xdc00, 0xdfff] {
        let (from, to) = (wide(&UNITS), wide(&[0x51, lone, 0x51]));
        // LPWSTR on top, and in a struct of an array.
        let named =
            relayed.mangled(&from, &to, || relayed.server.get_group_by_name(TEXT, &iid::<dyn IOPCItemMgt>()));
        assert!(is_malformed(&named.expect_err("no name")), "{lone:x}");
        let added = relayed.mangled(&from, &to, || relayed.group.add_items(&[def(TEXT, 1)]));
        assert!(is_malformed(&added.expect_err("no name")), "{lone:x}");
    }
    // Two halves in the right order are a character.
    let pair =
        relayed.mangled(&wide(&[0x51, 0x4711, 0x51, 0x51]), &wide(&[0x51, 0xd83d, 0xde00, 0x51]), || {
            relayed.group.add_items(&[def("Q\u{4711}QQ", 1)])
        });
    assert_eq!(pair.expect("a name").value.1, [Code::UNKNOWN_ITEM.signed()]);
    // The connection goes on, and so do others.
    assert!(relayed.group.add_items(&[def("Tank.Level", 1)]).is_ok());
    is_served(&relayed.site);
}

/// One that is no text, among values that are fine, is judged alone.
#[test]
fn a_bstr_that_is_no_text_is_a_bad_type_for_its_item_alone() {
    let relayed = Relayed::new();
    let name = everywire_opc::Item::new("Text", everywire_opc::VarType::BSTR).writable();
    relayed.site.table.add(name, "before");
    let added =
        relayed.group.add_items(&[def("Text", 1), def("Tank.Setpoint", 2)]).expect("it lives").value.0;
    let handles = [added[0].server, added[1].server];
    let io = relayed.group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let write = |number: i16| {
        let values = [Data::from(TEXT).to_variant(), Data::I2(number).to_variant()];
        io.write(&handles, &values).map(|written| (written.code, written.value))
    };
    // A half of a surrogate pair, either half, and an odd number of octets.
    let head = words(&[3, 6, 3]);
    let blob = |head: &[u8], units: [u16; 3]| [head, &wide(&units)].concat();
    for (number, other) in [
        blob(&head, [0x51, 0xd800, 0x51]),
        blob(&head, [0x51, 0xdc00, 0x51]),
        blob(&words(&[3, 5, 3]), UNITS),
    ]
    .iter()
    .enumerate()
    {
        let number = i16::try_from(number).expect("few");
        let written = relayed.mangled(&blob(&head, UNITS), other, || write(number));
        assert_eq!(written.expect("an answer"), (1, vec![Code::BAD_TYPE.signed(), 0]));
        let values =
            ["Text", "Tank.Setpoint"].map(|name| relayed.site.table.get(name).map(|value| value.data));
        assert_eq!(values, [Some("before".into()), Some(Data::I2(number))]);
    }
    // So is one in an answer, by a client.
    assert_eq!(write(7).expect("it lives"), (0, vec![0, 0]));
    let read = || io.read(OPCDATASOURCE::OpcDsCache, &handles);
    let told = relayed.mangled(&wide(&UNITS), &wide(&[0x51, 0xdfff, 0x51]), read).expect("an answer").value.0;
    let told: Vec<_> = told.iter().map(|state| Data::from_variant(&state.value)).collect();
    assert_eq!(told, [Err(Code::BAD_TYPE), Ok(Data::I2(7))]);
    assert_eq!(read().expect("it lives").value.1, [0, 0]);
    is_served(&relayed.site);
}

/// A record, and an array of them, which nobody can write here.
#[test]
fn a_record_is_a_bad_type_for_its_item_alone() {
    let relayed = Relayed::new();
    let name = everywire_opc::Item::new("Text", everywire_opc::VarType::BSTR).writable();
    relayed.site.table.add(name, "before");
    let added =
        relayed.group.add_items(&[def("Text", 1), def("Tank.Setpoint", 2)]).expect("it lives").value.0;
    let io = relayed.group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    // What stands there of a text of six units has as many octets as a record of four (MS-OAUT 2.2.28.2.1).
    let text = "Q\u{4711}QQQQ";
    let units: Vec<u16> = text.encode_utf16().collect();
    let blob = [words(&[6, 12, 6]), wide(&units)].concat();
    let record = words(&[0, 4, 0, 2, 4, 0x0403_0201]);
    let values = [Data::from(text).to_variant(), Data::I2(5).to_variant()];
    for vt in [36, 36 | 0x4000] {
        let written = relayed.mangled(&words(&[8, 0, 8]), &words(&[vt, 0, vt]), || {
            let write = || io.write(&[added[0].server, added[1].server], &values);
            relayed.mangled(&blob, &record, write)
        });
        let written = written.expect("an answer");
        assert_eq!((written.code, written.value), (1, vec![Code::BAD_TYPE.signed(), 0]), "{vt:x}");
    }
    is_served(&relayed.site);
}

#[test]
fn counts_that_differ_from_their_arrays_are_refused() {
    let relayed = Relayed::new();
    let defs = [def("Tank.Level", 0x1122_3344), def("Tank.Setpoint", 0x5566_7788)];
    let added = relayed.group.add_items(&defs).expect("it lives").value.0;
    let [one, two] = [added[0].server, added[1].server];
    let io = relayed.group.query::<dyn IOPCSyncIO>().expect("it can be asked").expect("it has it");
    let read = || io.read(OPCDATASOURCE::OpcDsCache, &[one, two]);
    // dwCount, how many follow, and what follows.
    let sent = words(&[2, 2, one, two]);
    for (count, conformance) in [
        (3, 2),
        (1, 2),
        (0, 2),
        (2, 3),
        (2, 1),
        (2, 0),
        (u32::MAX, u32::MAX),
        (2, u32::MAX),
        (0x8000_0000, 2),
    ] {
        let failed = relayed.mangled(&sent, &words(&[count, conformance, one, two]), read);
        let failure = failed.expect_err("it does not fit");
        assert!(
            is_malformed(&failure) || Code::of(&failure) == Code::INVALID_ARGUMENT,
            "{count} {conformance}: {failure}"
        );
    }
    // Two arrays of one count.
    let handles = || relayed.group.set_client_handles(&[one, two], &[0xaaaa_0001, 0xaaaa_0002]);
    let beside = words(&[2, 0xaaaa_0001, 0xaaaa_0002]);
    for conformance in [0, 1, 3, u32::MAX] {
        let failed = relayed.mangled(&beside, &words(&[conformance, 0xaaaa_0001, 0xaaaa_0002]), handles);
        let failure = failed.expect_err("it does not fit");
        assert!(
            is_malformed(&failure) || Code::of(&failure) == Code::INVALID_ARGUMENT,
            "{conformance}: {failure}"
        );
    }
    // A server that says more than it has, or less: values for two, and codes for two behind them.
    let states = words(&[2, 0x1122_3344]);
    for conformance in [0, 1, 3, 0x0100_0000, u32::MAX] {
        let failed = relayed.mangled(&states, &words(&[conformance, 0x1122_3344]), read);
        let failure = failed.expect_err("it does not fit");
        assert!(is_malformed(&failure), "{conformance}: {failure}");
    }
    assert_eq!(read().expect("it lives").value.1, [0, 0]);
    is_served(&relayed.site);
}
