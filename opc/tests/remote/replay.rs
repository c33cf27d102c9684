//! The client against what Windows hosts said to one another (OISF/suricata-verify, tests/bug-6191): a server whose group answers AddItems
//! and Read, with the captured stubs as they are, and calls OnDataChange with the captured values. What the client asks is compared with what the captured client
//! asked, octet by octet, but for what a client chooses: its handle of the item, and padding.

use super::{next_live, quick, values};
use crate::captures::{HRESULT, THAT, THIS, stub};
use crate::server::PATIENCE;
use everywire::model::describe::{Array, Cow, Field, Hold, Shape, Struct};
use everywire::model::{Answer, Encode, Interface, Request, Servant, Sink, Variant, Visit};
use everywire::{Failure, Node, Reference, Remote, Signaller, Success};
use everywire_opc::contract::{
    DataAccessGroup, DataAccessGroupOnDataChange, FILETIME, GUID, IOPCDataCallback, IOPCServer, OPCENUMSCOPE,
    OPCSERVERSTATE, OPCSERVERSTATUS,
};
use everywire_opc::remote::{DataAccess, UpdateMode};
use everywire_opc::{Code, Data, Quality, VarType};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

const CLASS: &str = "8b1c5f0e-3d57-4a0e-9a5b-0f3c1e7d2a11";
const ITEM: &str = "Channel_0_User_Defined.Sine.Sine5";
/// The captured client's handle of the item, which stands in what it sends and is sent.
const HANDLE: u32 = 0x0114_0268;

/// The results of a captured answer; the wire adds the HRESULT.
fn results(name: &str) -> Vec<u8> {
    let stub = stub(name);
    stub[THAT..stub.len() - HRESULT].to_vec()
}

/// With the client's own handle in place of the captured one.
fn with_handle(mut stub: Vec<u8>, handle: u32) -> Vec<u8> {
    let old = HANDLE.to_le_bytes();
    let at = stub.windows(4).position(|window| window == old).expect("the handle");
    stub[at..at + 4].copy_from_slice(&handle.to_le_bytes());
    stub
}

/// A stub as it was captured.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        let len = u32::try_from(self.0.len()).expect("a short stub");
        let octets = Shape::Array(Hold::new(Array { element: Shape::U8, len }));
        let fields = vec![Field { name: Cow::Borrowed("stub"), shape: octets.clone() }];
        let name = Cow::Borrowed("");
        let list = Shape::Struct(Hold::new(Struct { id: name.clone(), name, fields: Cow::Owned(fields) }));
        sink.open(&list, 1)?;
        sink.bytes(&octets, &self.0)?;
        sink.close(&list)
    }
}

/// OnDataChange as it was captured, about the item with this handle. That these values are written to the captured octets again, another
/// test shows (`captures`).
fn captured_change(handle: u32) -> DataAccessGroupOnDataChange {
    type Change = (u32, u32, i32, i32, u32, Vec<u32>, Vec<Variant>, Vec<u16>, Vec<FILETIME>, Vec<i32>);
    let interface = <dyn IOPCDataCallback as Remote>::interface();
    let method = interface.operations.get(interface.index_of(b"OnDataChange").expect("a method"));
    let stub = with_handle(stub("OnDataChange.request")[THIS..].to_vec(), handle);
    let body = everywire::com::overheard(stub.into(), true);
    let (transaction, group, master_quality, master_error, _, items, values, qualities, timestamps, errors) =
        body.decode::<Change>(&method.expect("its description").arguments).expect("what Windows sent");
    DataAccessGroupOnDataChange {
        transaction,
        group,
        master_quality,
        master_error,
        items,
        values,
        qualities,
        timestamps,
        errors,
    }
}

/// What a client asked, by the method's name.
type Asked = (String, Vec<u8>);

/// A group that answers with captured stubs.
struct Group {
    asked: Mutex<Sender<Asked>>,
    /// What reads are answered with, one after the other, the last one again and again.
    reads: Mutex<Vec<Vec<u8>>>,
    signaller: Signaller<dyn DataAccessGroup>,
}

impl Servant for Group {
    fn interface(&self) -> &Interface {
        <dyn DataAccessGroup as Remote>::interface()
    }

    fn dispatch(&self, mut request: Request) {
        let name = self.interface().operations.get(request.index()).expect("a method").name.to_string();
        let first = self.interface().index_of(name.as_bytes()) == Some(request.index());
        let stub = request.body().bytes.to_vec();
        // Of methods of one name the first one counts: Read is that of IOPCSyncIO.
        let known = first.then_some(name.as_str());
        match known {
            Some("GetState") => {
                let state = (1000_u32, 1_i32, Some("g".to_owned()), 0_i32, 0.0_f32, 0x409_u32, 1_u32, 2_u32);
                request.reply::<_, Failure>(Ok(state)).expect("it is told");
            }
            Some("AddItems") => request.answer(Answer::Done(&Raw(results("AddItems.response")))),
            Some("Read") => {
                let mut reads = self.reads.lock().expect("nobody panicked");
                let next =
                    if reads.len() > 1 { reads.remove(0) } else { reads.first().expect("one").clone() };
                request.answer(Answer::Done(&Raw(next)));
            }
            Some("Refresh2") => {
                request.reply::<_, Failure>(Ok((1_u32,))).expect("it is told");
                self.signaller.emit(&captured_change(0)).expect("somebody listens");
            }
            _ => request.finish(Err(Code::NOT_IMPLEMENTED.into())),
        }
        // The test may be over.
        let _ = self.asked.lock().expect("nobody panicked").send((name, stub));
    }
}

struct Scripted {
    group: Reference,
}

impl IOPCServer for Scripted {
    fn add_group(
        &self,
        _: &str,
        _: i32,
        _: u32,
        _: u32,
        _: &Option<i32>,
        _: &Option<f32>,
        _: u32,
        _: &GUID,
    ) -> Result<Success<(u32, u32, Option<Reference>)>, Failure> {
        Ok((2, 10, Some(self.group.clone())).into())
    }

    fn get_error_string(&self, _: i32, _: u32) -> Result<Option<String>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    fn get_group_by_name(&self, _: &str, _: &GUID) -> Result<Option<Reference>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }

    fn get_status(&self) -> Result<Option<OPCSERVERSTATUS>, Failure> {
        Ok(Some(OPCSERVERSTATUS {
            start_time: Default::default(),
            current_time: Default::default(),
            last_update_time: Default::default(),
            state: OPCSERVERSTATE::OpcStatusRunning,
            group_count: 1,
            band_width: 0,
            major_version: 1,
            minor_version: 2,
            build_number: 3,
            reserved: 0,
            vendor_info: Some("as captured".to_owned()),
        }))
    }

    fn remove_group(&self, _: u32, _: i32) -> Result<Success<()>, Failure> {
        Ok(().into())
    }

    fn create_group_enumerator(
        &self,
        _: OPCENUMSCOPE,
        _: &GUID,
    ) -> Result<Success<Option<Reference>>, Failure> {
        Err(Code::NOT_IMPLEMENTED.into())
    }
}

/// A server that answers reads so, a client of it, and what the client asks.
fn scripted(reads: &[&str]) -> (Node, Node, String, Receiver<Asked>) {
    let node = Node::new();
    // What is served before has no way to it.
    let address = node.listen("dcom://127.0.0.1:0?level=none").expect("a port");
    let place = address.trim_start_matches("dcom://").split(['/', '?']).next().expect("a place").to_owned();
    let (asked, heard) = channel();
    let signaller = node.signaller::<dyn DataAccessGroup>("group");
    let reads = Mutex::new(reads.iter().map(|name| results(name)).collect());
    let group = node.export_servant("group", Arc::new(Group { asked: Mutex::new(asked), reads, signaller }));
    node.export_class::<dyn IOPCServer>(CLASS, move |_| {
        let server: Arc<dyn IOPCServer> = Arc::new(Scripted { group: group.clone() });
        Ok(server)
    });
    let client = Node::new();
    client.listen("dcom://127.0.0.1:0?level=none").expect("a port");
    (node, client, format!("opcda://{place}/{CLASS}?level=none"), heard)
}

/// What the client asked of a method next.
fn asked(heard: &Receiver<Asked>, wanted: &str) -> Vec<u8> {
    loop {
        let (name, stub) = heard.recv_timeout(PATIENCE).expect("the method is called");
        if name == wanted {
            return stub;
        }
    }
}

/// Compares a request with a captured one; `free` are octets of padding in the captured stub.
fn same(sent: &[u8], captured: &[u8], free: std::ops::Range<usize>) {
    let captured = &captured[THIS..];
    assert_eq!(sent.len(), captured.len());
    let differing: Vec<usize> =
        (0..sent.len()).filter(|at| sent[*at] != captured[*at] && !free.contains(&(at + THIS))).collect();
    assert_eq!(differing, Vec::<usize>::new(), "{sent:02x?}\n{captured:02x?}");
}

#[test]
fn a_subscription_hears_what_windows_calls_back() {
    let (_node, client, address, heard) = scripted(&["SyncIO.Read.response.r4"]);
    let server = DataAccess::connect(&client, &address).expect("a server");
    assert_eq!(server.status().expect("an answer").vendor, "as captured");
    assert_eq!(server.version().expect("an answer"), "2.05a");
    let (tell, events) = channel();
    let subscription = server.subscribe(&[ITEM], quick(), move |event| drop(tell.send(event)));
    let live = next_live(&events);
    assert_eq!((live.manner, live.version), (UpdateMode::Callbacks, "2.05a"));
    same(&asked(&heard, "AddItems"), &with_handle(stub("AddItems.request"), 0), 82..84);
    let change = values(&events, 1);
    assert_eq!((change[0].index, &*change[0].item), (0, ITEM));
    assert_eq!((change[0].value.data.clone(), change[0].value.quality), (Data::R4(0.0), Quality::GOOD));
    assert_eq!(change[0].value.time.0, 0x01d5_fd98_d9ba_4bf0);
    drop(subscription);
}

#[test]
fn polling_asks_and_understands_as_windows_does() {
    let reads = ["SyncIO.Read.response.empty", "SyncIO.Read.response.r4"];
    let (_node, client, address, heard) = scripted(&reads);
    let server = DataAccess::connect(&client, &format!("{address}&poll")).expect("a server");
    let (tell, events) = channel();
    let _subscription = server.subscribe(&[ITEM], quick(), move |event| drop(tell.send(event)));
    assert!(matches!(next_live(&events).manner, UpdateMode::Polling { .. }));
    same(&asked(&heard, "AddItems"), &with_handle(stub("AddItems.request"), 0), 82..84);
    same(&asked(&heard, "Read"), &stub("SyncIO.Read.request"), 0..0);
    // Not read yet: no value, and bad.
    let first = values(&events, 1);
    assert_eq!((first[0].value.data.clone(), first[0].value.quality.is_bad()), (Data::Empty, true));
    let second = values(&events, 1);
    assert_eq!(second[0].value.data, Data::R4(f32::from_bits(0x3f23_2e30)));
    assert!(second[0].value.quality.is_good());
}

#[test]
fn single_reads_know_the_type_that_windows_tells() {
    let (_node, client, address, heard) = scripted(&["SyncIO.Read.response.r4"]);
    let server = DataAccess::connect(&client, &address).expect("a server");
    let info = server.infos(&[ITEM]).expect("an answer")[0].expect("an item");
    assert_eq!((info.canonical, info.access.0), (VarType::R4, 1));
    let read = server.read(&[ITEM]).expect("an answer").remove(0).expect("a value");
    assert_eq!(read.data, Data::R4(f32::from_bits(0x3f23_2e30)));
    // Of the device: the captured client asked for the cache.
    let mut device = stub("SyncIO.Read.request");
    device[THIS] = 2;
    same(&asked(&heard, "Read"), &device, 0..0);
}
