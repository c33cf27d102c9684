//! Captured connections, most of them between Windows hosts: every PDU is taken apart to its last byte, and where a
//! writer has no choice, what was read is written to the same bytes. The numbers are exact, so that a loss is noticed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use crate::support::raw;
use bytes::Bytes;
use everywire_dcom::activation::{Activation, remote, scm};
use everywire_dcom::explain::explain;
use everywire_dcom::frame::{FIRST, LAST};
use everywire_dcom::objref::ObjRef;
use everywire_dcom::orpc::{OrpcThat, OrpcThis};
use everywire_dcom::pdu::Pdu;
use everywire_dcom::stub::Get;
use everywire_dcom::tower::Tower;
use everywire_dcom::{Violation, remunknown, resolver};
use std::collections::HashMap;
use uuid::{Uuid, uuid};

const CAPTURES: &str = include_str!("golden/captures.tsv");

const EPMAPPER: Uuid = uuid!("e1af8308-5d1f-11c9-91a4-08002b14a0fa");
const OBJECT_EXPORTER: Uuid = uuid!("99fcfec4-5260-101b-bbcb-00aa0021347a");
const SAMR: Uuid = uuid!("12345778-1234-abcd-ef00-0123456789ac");
const BACKUP_KEY: Uuid = uuid!("3dde7c30-165d-11d1-ab8f-00805f14db40");
const REMOTE_ACTIVATION: Uuid = uuid!("4d9f4ab8-7d1c-11cf-861e-0020af6e7c57");
const SCM_ACTIVATOR: Uuid = uuid!("000001a0-0000-0000-c000-000000000046");
const REM_UNKNOWN2: Uuid = uuid!("00000143-0000-0000-c000-000000000046");

/// Presentation contexts of connections whose begin was not captured, as the verification trailers of their calls tell.
const EARLIER: [((&str, &str), u16, Uuid); 6] = [
    (("mmc20", "0"), 0, SCM_ACTIVATOR),
    (("mmc20", "1"), 0, REM_UNKNOWN2),
    (("mmc20", "1"), 4, uuid!("b196b283-bab4-101a-b69c-00aa00341d07")),
    (("mmc20", "1"), 5, uuid!("00020401-0000-0000-c000-000000000046")),
    (("mmc20", "1"), 6, uuid!("00020400-0000-0000-c000-000000000046")),
    (("opcda", "0"), 0, REM_UNKNOWN2),
];

const PRIVACY: u8 = 6;
const VERIFICATION: [u8; 8] = [0x8a, 0xe3, 0x13, 0x71, 0x02, 0xf4, 0x36, 0x71];

struct Captured {
    /// Capture and connection.
    connection: (&'static str, &'static str),
    from_client: bool,
    bytes: Bytes,
}

fn captured() -> Vec<Captured> {
    let line = |line: &'static str| {
        let [capture, stream, direction, digits] = *line.split('\t').collect::<Vec<_>>() else {
            panic!("{line}")
        };
        let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes = digits.as_bytes().chunks(2).map(octet).collect();
        Captured { connection: (capture, stream), from_client: direction == ">", bytes }
    };
    CAPTURES.lines().map(line).collect()
}

#[test]
fn every_pdu_is_taken_apart_and_put_together_again() {
    let (mut all, mut same) = (0, 0);
    for Captured { connection, bytes, .. } in captured() {
        let (header, pdu, trailer) =
            Pdu::parse(&bytes).unwrap_or_else(|breach| panic!("{connection:?}: {breach}"));
        assert_eq!(usize::from(header.length), bytes.len());
        let end = trailer.map_or(bytes.len(), |trailer| {
            assert_eq!(trailer.value() + usize::from(header.auth_length), bytes.len());
            trailer.contents_end()
        });
        let stub = match &pdu {
            Pdu::Request(request) => request.stub.clone(),
            Pdu::Response(response) => response.stub.clone(),
            Pdu::Fault(fault) => fault.stub.clone(),
            _ => end..end,
        };
        assert_eq!(stub.end, end, "{connection:?} #{}", header.call);
        let mut again = Vec::new();
        pdu.write(&mut again, header.flags, header.call, &bytes[stub]);
        assert_eq!(again.len(), end, "{connection:?} #{}", header.call);
        // Lengths count the trailer, which is left out here.
        let differing: Vec<usize> =
            (0..end).filter(|at| !(8..12).contains(at) && again[*at] != bytes[*at]).collect();
        let padding = padding(&pdu);
        assert!(
            differing.iter().all(|at| padding.contains(at)),
            "{connection:?} #{}: {differing:?}",
            header.call
        );
        all += 1;
        same += usize::from(differing.is_empty());
    }
    assert_eq!((all, same), (893, 867));
}

/// Where in a PDU its sender may write whatever it likes.
fn padding(pdu: &Pdu) -> std::ops::Range<usize> {
    match pdu {
        Pdu::Bind(_) | Pdu::AlterContext(_) => 25..28,
        Pdu::BindAck(ack) | Pdu::AlterContextResponse(ack) => {
            let address = ack.address.len() + usize::from(!ack.address.is_empty());
            26 + address..(26 + address).next_multiple_of(4)
        }
        Pdu::Auth3 => 16..20,
        _ => 0..0,
    }
}

/// A call whose stubs are not encrypted.
#[derive(Default)]
struct Call {
    connection: (&'static str, &'static str),
    iid: Option<Uuid>,
    opnum: u16,
    request: Option<Bytes>,
    response: Option<Bytes>,
}

/// The calls, in the order of their first fragments, and how many PDUs carry encrypted stubs.
fn calls() -> (Vec<Call>, usize) {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: HashMap<_, usize> = HashMap::new();
    let mut contexts = HashMap::from(EARLIER.map(|(connection, id, iid)| ((connection, id), iid)));
    let mut fragments: HashMap<_, Vec<u8>> = HashMap::new();
    let mut encrypted = 0;
    for Captured { connection, from_client, bytes } in captured() {
        let (header, pdu, trailer) = Pdu::parse(&bytes).unwrap();
        let stub = match &pdu {
            Pdu::Bind(bind) | Pdu::AlterContext(bind) => {
                for context in &bind.contexts {
                    contexts.insert((connection, context.id), context.interface.id);
                }
                continue;
            }
            Pdu::Request(request) => request.stub.clone(),
            Pdu::Response(response) => response.stub.clone(),
            _ => continue,
        };
        if trailer.is_some_and(|trailer| trailer.level == PRIVACY) {
            encrypted += 1;
            continue;
        }
        let id = (connection, header.call);
        if let Pdu::Request(request) = &pdu
            && header.has(FIRST)
        {
            let iid = contexts.get(&(connection, request.context)).copied();
            open.insert(id, calls.len());
            calls.push(Call { connection, iid, opnum: request.opnum, ..Call::default() });
        }
        let so_far = fragments.entry((id, from_client)).or_default();
        if header.has(FIRST) {
            so_far.clear();
        }
        so_far.extend_from_slice(&bytes[stub]);
        if header.has(LAST)
            && let Some(call) = open.get(&id).and_then(|index| calls.get_mut(*index))
        {
            let stub = Some(Bytes::from(std::mem::take(so_far)));
            if from_client {
                call.request = stub;
            } else {
                call.response = stub;
            }
        }
    }
    (calls, encrypted)
}

/// What all calls of a kind came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Stubs of system interfaces that were read to the end.
    system: usize,
    /// Those that were written to the same bytes.
    same: usize,
    orpc: usize,
    orpc_same: usize,
    objrefs: usize,
    objrefs_same: usize,
    towers: usize,
}

#[test]
fn every_stub_in_clear_text_is_read_to_its_end_and_written_again() {
    let mut tally = Tally::default();
    let (calls, encrypted) = calls();
    for call in &calls {
        let plain = call.iid.is_some_and(|iid| [EPMAPPER, OBJECT_EXPORTER, SAMR, BACKUP_KEY].contains(&iid));
        if let Some(stub) = &call.request {
            let mut at = 0;
            if !plain {
                let (this, taken) = OrpcThis::parse(stub, true).unwrap();
                let mut again = Vec::new();
                this.write(&mut again);
                assert_eq!(this.version.0, 5);
                assert_eq!(again.len(), taken);
                tally.orpc += 1;
                tally.orpc_same += usize::from(again == stub[..taken]);
                at = taken;
            }
            check(call, true, &stub.slice(at..), &mut tally);
        }
        if let Some(stub) = &call.response {
            let mut at = 0;
            if !plain {
                let (that, taken) = OrpcThat::parse(stub, true).unwrap();
                let mut again = Vec::new();
                that.write(&mut again);
                assert_eq!(again.len(), taken);
                tally.orpc += 1;
                tally.orpc_same += usize::from(again == stub[..taken]);
                at = taken;
            }
            check(call, false, &stub.slice(at..), &mut tally);
        }
    }
    let expected = Tally {
        system: 223,
        same: 209,
        orpc: 724,
        orpc_same: 724,
        objrefs: 48,
        objrefs_same: 48,
        towers: 346,
    };
    assert_eq!((calls.len(), encrypted, tally), (382, 19, expected));
}

/// Reads the values of a stub, which begin at a multiple of 8, and writes them.
fn check(call: &Call, request: bool, values: &Bytes, tally: &mut Tally) {
    let what = format!("{:?} {:?} {}", call.connection, call.iid, call.opnum);
    for at in (0..values.len()).filter(|at| values[*at..].starts_with(b"MEOW")) {
        // The counts of its MInterfacePointer; those in another OBJREF have one of them behind a pointer as well.
        let len = u32::from_le_bytes(values[at - 4..at].try_into().unwrap()) as usize;
        let objref = values.slice(at..at + len);
        let (read, taken) = ObjRef::parse(&objref).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
        assert!(len - taken < 8, "{what}: {taken} of {len}");
        tally.objrefs += 1;
        tally.objrefs_same += usize::from(read.write() == objref);
    }
    if call.iid == Some(EPMAPPER) && !request {
        tally.towers += ept_lookup_reply(values).unwrap();
    }
    let Some(again) = again(call, request, values) else { return };
    let again = again.unwrap_or_else(|violation| panic!("{what}: {violation}"));
    let tail = values.get(again.len()..).unwrap_or_else(|| panic!("{what}: {} is too long", again.len()));
    // Windows appends a verification trailer, j-Interop zeros, or, to RemoteActivation, ten octets of something.
    let verified =
        tail.starts_with(&VERIFICATION) || tail.get(4..).is_some_and(|tail| tail.starts_with(&VERIFICATION));
    let junk = call.iid == Some(REMOTE_ACTIVATION) && tail.len() == 10;
    assert!(verified || junk || tail.iter().all(|octet| *octet == 0), "{what}: {tail:02x?}");
    // Referents may have other ids; padding may be anything.
    let words = values[..again.len()].chunks(4).zip(again.chunks(4)).enumerate();
    for (index, (old, new)) in words.filter(|(_, (old, new))| old != new) {
        let id = |word: &[u8]| word.try_into().map(u32::from_le_bytes).unwrap_or_default();
        let referents = id(old) != 0 && (0x2_0000..0x2_0100).contains(&id(new));
        let padding = new[2..] == [0, 0] && new[..2] == old[..2];
        assert!(referents || padding, "{what}, word {index}: {old:02x?} {new:02x?}");
    }
    tally.system += 1;
    tally.same += usize::from(values.starts_with(&again));
}

fn again(call: &Call, request: bool, values: &[u8]) -> Option<Result<Vec<u8>, Violation>> {
    let get = Get::new(values, true);
    Some(match (call.iid?, call.opnum, request) {
        (OBJECT_EXPORTER, resolver::opnum::SIMPLE_PING, true) => {
            resolver::parse_simple_ping_request(get).map(resolver::simple_ping_request)
        }
        (OBJECT_EXPORTER, resolver::opnum::SIMPLE_PING, false) => {
            resolver::parse_status_reply(get).map(resolver::status_reply)
        }
        (OBJECT_EXPORTER, resolver::opnum::SERVER_ALIVE2, false) => resolver::parse_server_alive2_reply(get)
            .map(Result::unwrap)
            .map(|(version, bindings)| resolver::server_alive2_reply(version, &bindings)),
        (REMOTE_ACTIVATION, _, true) => {
            remote::parse_request(get, (5, 2)).map(|asked| remote::write_request(&asked))
        }
        (REMOTE_ACTIVATION, _, false) => {
            remote::parse_reply(get, &asked(call).iids).map(|found| remote::write_reply(&found))
        }
        (SCM_ACTIVATOR, opnum, true) => {
            scm::parse_properties(get, opnum).map(|request| scm::write_properties(&request, opnum))
        }
        (SCM_ACTIVATOR, _, false) => scm::parse_reply(get).map(|found| scm::write_reply(&found)),
        (REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE, true) => {
            remunknown::parse_query_request(get, false).map(|query| remunknown::query_request(&query))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE, false) => {
            remunknown::parse_query_reply(get).map(|found| remunknown::query_reply(&found.unwrap()))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE2, true) => {
            remunknown::parse_query_request(get, true)
                .map(|query| remunknown::query2_request(query.ipid, &query.iids))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_QUERY_INTERFACE2, false) => {
            remunknown::parse_query2_reply(get).map(|found| remunknown::query2_reply(&found.unwrap()))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_ADD_REF | remunknown::opnum::REM_RELEASE, true) => {
            remunknown::parse_refs_request(get).map(|refs| remunknown::refs_request(&refs))
        }
        (REM_UNKNOWN2, remunknown::opnum::REM_ADD_REF, false) => remunknown::parse_add_ref_reply(get)
            .map(|(results, hresult)| remunknown::add_ref_reply(&results, hresult)),
        (REM_UNKNOWN2, remunknown::opnum::REM_RELEASE, false) => {
            resolver::parse_status_reply(get).map(resolver::status_reply)
        }
        _ => return None,
    })
}

/// What the request of this RemoteActivation asks for.
fn asked(call: &Call) -> Activation {
    let stub = call.request.as_ref().unwrap();
    remote::parse_request(Get::new(&stub[OrpcThis::LEN..], true), (5, 2)).unwrap()
}

/// Reads the results of ept_lookup to their end, and says how many towers were written to the same bytes.
fn ept_lookup_reply(stub: &[u8]) -> Result<usize, Violation> {
    let mut get = Get::new(stub, true);
    get.take(20)?;
    let count = get.u32()? as usize;
    get.u32()?;
    get.u32()?;
    assert_eq!(get.u32()? as usize, count);
    let held = get.items(count, 28, |get| {
        get.uuid()?;
        let held = get.pointer()?;
        get.u32()?;
        let len = get.u32()? as usize;
        get.take(len)?;
        Ok(held)
    })?;
    let mut same = 0;
    for _ in held.into_iter().filter(|held| *held) {
        let room = get.conformance(1, None)?;
        let len = get.u32()? as usize;
        assert_eq!(room, len);
        let octets = get.take(len)?;
        same += usize::from(Tower::parse(octets)?.write() == octets);
    }
    assert_eq!(get.u32()?, 0);
    assert_eq!(get.left(), 0);
    Ok(same)
}

/// What went one way over a connection.
struct Direction {
    connection: (&'static str, &'static str),
    from_client: bool,
    pdus: usize,
    bytes: Vec<u8>,
}

fn directions() -> Vec<Direction> {
    let mut found: Vec<Direction> = Vec::new();
    for Captured { connection, from_client, bytes } in captured() {
        let known =
            |other: &&mut Direction| (other.connection, other.from_client) == (connection, from_client);
        match found.iter_mut().find(known) {
            Some(direction) => {
                direction.pdus += 1;
                direction.bytes.extend_from_slice(&bytes);
            }
            None => found.push(Direction { connection, from_client, pdus: 1, bytes: bytes.to_vec() }),
        }
    }
    found
}

#[test]
fn every_byte_is_explained() {
    for Direction { connection, pdus, bytes, .. } in directions() {
        let listing = explain(&bytes);
        assert_eq!((listing.messages.len(), listing.rest), (pdus, 0), "{connection:?}");
        for message in &listing.messages {
            let broken = message.parts.iter().find(|part| part.name == "ends early");
            assert!(broken.is_none(), "{connection:?}: {broken:?}");
            // Parts follow one another without a gap larger than padding; some lie within others.
            let mut end = 0;
            for part in &message.parts {
                assert!(part.offset <= end + 7, "{connection:?}: {message:?}");
                end = end.max(part.offset + part.len);
            }
            assert_eq!(end, message.len, "{connection:?}: {message:?}");
        }
    }
}

fn summaries(connection: (&str, &str), from_client: bool) -> Vec<String> {
    let mut directions = directions().into_iter();
    let known = |other: &Direction| (other.connection, other.from_client) == (connection, from_client);
    let direction = directions.find(known).unwrap();
    explain(&direction.bytes).messages.into_iter().map(|message| message.summary).collect()
}

#[test]
fn a_listing_names_what_is_known() {
    let expected = [
        "bind #3 IRemoteSCMActivator (NTLM integrity), 120 bytes",
        "auth3 #3 (NTLM integrity), 482 bytes",
        "request #3 IRemoteSCMActivator.RemoteGetClassObject (NTLM integrity), 896 bytes",
    ];
    assert_eq!(summaries(("ctxids", "1"), true), expected);
    let group = summaries(("opcda", "0"), true);
    assert_eq!(
        group[1],
        "request #69 IOPCItemMgt.AddItems on 0000e80d-0fac-0000-b3e5-6eb40a46f16e, 204 bytes"
    );
    assert!(
        group[2].starts_with("request #70 operation 3 of an unknown interface on 00009401-"),
        "{}",
        group[2]
    );
    let server = summaries(("kerberos", "0"), false);
    assert_eq!(server[0], "bind_ack #8 accepted: NDR features 0x3 agreed on (SPNEGO connect), 261 bytes");
}

#[test]
fn a_listing_of_a_connection_cut_anywhere_ends_there() {
    for Direction { connection, bytes, .. } in directions().into_iter().filter(|one| one.bytes.len() < 3000) {
        // Each place of what is short, and of the beginning of what is long; then every seventh, which is now the first octet of
        // a word, now the last one. All of them would cost the square of the length.
        let dense = bytes.len().min(600);
        for len in (0..dense).chain((dense..bytes.len()).step_by(7)) {
            let listing = explain(&bytes[..len]);
            let explained: usize = listing.messages.iter().map(|message| message.len).sum();
            assert!(explained == len || explained + listing.rest == len, "{connection:?} cut to {len}");
        }
    }
}

#[test]
fn counts_of_references_are_added_without_overflow() {
    let refs = [remunknown::Refs { ipid: Uuid::max(), public: u32::MAX, private: 1 }];
    let mut stub = raw::orpc_this();
    stub.extend(remunknown::refs_request(&refs));
    let mut bytes = raw::bind(1, &[(REM_UNKNOWN2, 0)]);
    bytes.extend(raw::request(2, FIRST | LAST, 0, 5, Some(Uuid::max()), &stub));
    let listing = explain(&bytes);
    assert!(listing.messages[1].part("arguments").unwrap().starts_with("4294967296 of "));
}
