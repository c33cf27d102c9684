//! What COM has beside calls, between two nodes over TCP: success with a code, arrays without their counts, objects by the interface
//! that a caller asks for, objects that end, who listens, enumerators.

use crate::common::dcom::{DOMAIN, PASSWORD, USER, alone, impacket, listening, users};
use crate::common::foreign::run;
use crate::common::scratch;
use everywire::com::{enumerators, hresult};
use everywire::model::{Body, Hold, Outcome, Shape, Value, Variant};
use everywire::{
    Audience, Failure, Kind, LoanHandle, Node, Notice, Ref, Reference, Signaller, Success, WeakNode,
};
use everywire_broker::{Broker, Config};
use everywire_dcom::standard::contracts;
use everywire_dcom::standard::guid::Guid;
use everywire_tests::peers::root;
use station::{
    FILETIME, HRESULT, IEnumSAMPLE, IID, IStation, IStationEvents, IStationGroup, IStationName, SAMPLE,
    STATION_E_UNKNOWNITEM, STATION_S_RATE, StationGroup, StationGroupOnChange, Works,
};
use std::fs;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[allow(unreachable_pub, missing_docs, clippy::pedantic)]
mod station {
    everywire::include_contract!("station");
}

/// How long a test waits at the most; it ends with an event.
const PATIENCE: Duration = Duration::from_secs(300);
/// The class of stations.
const WORKS: &str = "7c1b1b40-6a0c-4e77-9f5c-0c6f7e3a2b08";
/// Items from here on are not known.
const UNKNOWN: u32 = 100;

struct Station {
    node: WeakNode,
    ended: Sender<usize>,
    told: Sender<Audience>,
}

impl Works for Station {}

struct Group {
    node: WeakNode,
    name: String,
    events: Signaller<dyn StationGroup>,
}

fn number(value: f32) -> Variant {
    Variant::new(Shape::F32, Value::Float(value.into()))
}

fn sample(item: u32) -> SAMPLE {
    SAMPLE {
        h_item: item,
        ft_time: FILETIME { dw_low_date_time: item, dw_high_date_time: 1 },
        w_quality: 192,
        v_value: number(1.5),
        p_blob: vec![7; item as usize % 3].into(),
    }
}

impl IStation for Station {
    fn add_group(
        &self,
        sz_name: &str,
        dw_rate: u32,
        _: &IID,
    ) -> Result<Success<(u32, Option<Reference>)>, Failure> {
        let node = self.node.upgrade().expect("it runs");
        let group = node.lend::<dyn StationGroup>(|own: &LoanHandle<dyn StationGroup>| {
            let (ended, told, number) = (self.ended.clone(), self.told.clone(), dw_rate as usize);
            // Nobody could have called yet, and it is known what it will be.
            node.on_end(own.key(), move || ended.send(number).expect("somebody waits"));
            node.on_audience(own.key(), move |event| drop(told.send(event.clone())));
            Arc::new(Group { node: self.node.clone(), name: sz_name.to_owned(), events: own.signaller() })
        });
        let code = if dw_rate < 50 { STATION_S_RATE } else { Success::PLAIN };
        Ok(Success::with(code, (dw_rate.max(50), Some(group.reference().clone()))))
    }

    fn fail(&self, hr_code: HRESULT) -> Result<Success<Vec<u32>>, Failure> {
        match hr_code {
            code if code < 0 => Err(Failure::of_status(code, "as asked")),
            // A failure that is told as a success.
            0x7fff => Ok(Success::with(-1, Vec::new())),
            code => Ok(Success::with(code, vec![1, 2, 3])),
        }
    }

    fn level(&self, hr_code: HRESULT) -> Result<Success<f64>, Failure> {
        Ok(Success::with(hr_code, 2.5))
    }

    fn names(&self) -> Result<Option<Reference>, Failure> {
        let names = (0..600).map(|number| format!("Item{number}"));
        let node = self.node.upgrade().expect("it runs");
        Ok(Some(node.lend_servants(vec![enumerators::strings(names)])))
    }
}

impl IStationGroup for Group {
    fn read(&self, ph_items: &[u32]) -> Result<Success<(Vec<SAMPLE>, Vec<HRESULT>)>, Failure> {
        let error = |item: &u32| if *item < UNKNOWN { 0 } else { STATION_E_UNKNOWNITEM };
        let errors: Vec<HRESULT> = ph_items.iter().map(error).collect();
        let code = if errors.iter().all(|error| *error == 0) { Success::PLAIN } else { Success::LESS };
        // A servant's mistake, to see who is told.
        let samples = ph_items.iter().filter(|item| **item != 13).map(|item| sample(*item)).collect();
        Ok(Success::with(code, (samples, errors)))
    }

    fn write(&self, ph_items: &[u32], p_values: &[Variant]) -> Result<Vec<HRESULT>, Failure> {
        assert_eq!(ph_items.len(), p_values.len());
        self.events
            .emit(&StationGroupOnChange { ph_items: ph_items.to_vec(), p_values: p_values.to_vec() })?;
        Ok(vec![0; ph_items.len()])
    }

    fn browse_item_ids(&self) -> Result<(Vec<Option<String>>, Vec<u32>), Failure> {
        Ok((vec![Some("Level".to_owned()), Some("Speed".to_owned())], vec![1, 2]))
    }

    fn create_enumerator(&self, riid: &IID) -> Result<Option<Reference>, Failure> {
        assert_eq!(*riid, IID::of::<dyn IEnumSAMPLE>());
        let samples = (0..5).map(sample).collect();
        let node = self.node.upgrade().expect("it runs");
        Ok(Some(node.lend_servants(vec![enumerators::of::<dyn IEnumSAMPLE, _>(samples)])))
    }
}

impl IStationName for Group {
    fn get_name(&self) -> Result<Option<String>, Failure> {
        Ok(Some(self.name.clone()))
    }
}

impl StationGroup for Group {}

/// A server, a client, and what the server was told.
struct Plant {
    server: Node,
    client: Node,
    station: Ref<dyn IStation>,
    ended: Receiver<usize>,
    told: Receiver<Audience>,
}

fn plant() -> Plant {
    let server = Node::new();
    server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    plant_of(server)
}

/// A plant whose server listens already.
fn plant_of(server: Node) -> Plant {
    let client = Node::new();
    let ((ended, endings), (told, tellings)) = (channel(), channel());
    let station = Station { node: server.downgrade(), ended, told };
    server.export::<dyn Works>("station", Arc::new(station));
    client.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let station = client.narrow::<dyn IStation>(server.reference("station").unwrap()).unwrap();
    Plant { server, client, station, ended: endings, told: tellings }
}

impl Plant {
    fn group(&self, rate: u32) -> Ref<dyn IStationGroup> {
        let iid = IID::of::<dyn IStationGroup>();
        let added = self.station.add_group("Reactor", rate, &iid).unwrap();
        self.client.narrow::<dyn IStationGroup>(added.value.1.unwrap()).unwrap()
    }
}

#[test]
fn a_method_says_how_it_succeeded_and_the_caller_sees_it() {
    let plant = plant();
    let iid = IID::of::<dyn IStationGroup>();
    let added = plant.station.add_group("fast", 10, &iid).unwrap();
    assert_eq!((added.code, added.value.0), (STATION_S_RATE, 50));
    assert_eq!(plant.station.add_group("slow", 500, &iid).unwrap().code, 0);
    let group = plant.group(100);
    let all = group.read(&[1, 2]).unwrap();
    assert!(all.is_plain());
    assert_eq!(all.value, (vec![sample(1), sample(2)], vec![0, 0]));
    let some = group.read(&[1, UNKNOWN]).unwrap();
    assert_eq!((some.code, some.value.1), (1, vec![0, STATION_E_UNKNOWNITEM]));
    // Any code that is none of a failure, and any that is.
    assert_eq!(plant.station.fail(0x4000E).unwrap(), Success::with(0x4000E, vec![1, 2, 3]));
    let failure = plant.station.fail(STATION_E_UNKNOWNITEM).unwrap_err();
    assert_eq!((failure.status(), failure.message()), (Some(STATION_E_UNKNOWNITEM), "as asked"));
    // One that is said with results reaches the caller as a mistake of the servant's, not as results.
    let wrong = plant.station.fail(0x7fff).unwrap_err();
    assert_eq!(wrong.status().map(i32::cast_unsigned), Some(hresult::E_INVALIDARG), "{wrong}");
}

#[test]
fn who_calls_without_types_sees_the_code_beside_the_results() {
    let plant = plant();
    let object = plant.client.resolve(plant.station.reference()).unwrap();
    let object = object.typed(Hold::Static(&station::describe::I_STATION));
    let fail = &station::describe::I_STATION.operations[1];
    let arguments = Value::Struct(vec![("hrCode".to_owned(), Value::Integer(7))]);
    let called = |sink: &mut dyn everywire::model::Sink| arguments.encode(&fail.arguments, sink);
    let body: Body = match object.invoke(fail, &called) {
        Outcome::Done(body) => body,
        other => panic!("{other:?}"),
    };
    assert_eq!(body.status(), 7);
    let list = body.read(|source| Value::decode(&fail.results, source)).unwrap();
    assert!(matches!(list, Value::Struct(fields) if fields.len() == 2));
}

#[test]
fn codes_of_success_cross_no_other_wire() {
    let plant = plant();
    plant.server.listen("iiop://127.0.0.1:0").unwrap();
    let mut reference = plant.server.reference("station").unwrap();
    reference.profiles.retain(|profile| profile.wire == "giop");
    let station = plant.client.narrow::<dyn IStation>(reference).unwrap();
    assert_eq!(station.level(7).unwrap(), Success::from(2.5));
    assert_eq!(plant.station.level(7).unwrap(), Success::with(7, 2.5));
}

#[test]
fn arrays_have_no_counts_beside_them_and_agree_all_the_same() {
    let plant = plant();
    let group = plant.group(100);
    let (names, handles) = group.browse_item_ids().unwrap();
    assert_eq!((names.len(), handles), (2, vec![1, 2]));
    assert_eq!(group.read(&[]).unwrap().value, (vec![], vec![]));
    let failure = group.write(&[1, 2], &[number(1.0)]).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
    assert_eq!(
        failure.message(),
        "`phItems` has 2 elements and `pValues` has 1: `dwCount` counts both of them"
    );
    let failure = group.read(&[1, 13]).unwrap_err();
    assert!(failure.message().contains("1 elements of `ppSamples` where `dwCount` is 2"), "{failure}");
}

#[test]
fn a_caller_gets_the_interface_that_it_asks_for() {
    let plant = plant();
    let iid = IID::of::<dyn IStationName>();
    let added = plant.station.add_group("Reactor", 100, &iid).unwrap();
    let reference = added.value.1.unwrap();
    assert_eq!(reference.type_id, iid.to_string());
    let name = plant.client.narrow::<dyn IStationName>(reference).unwrap();
    assert_eq!(name.get_name().unwrap().as_deref(), Some("Reactor"));
    // From one interface to another, and to one that it has not.
    let group = name.query::<dyn IStationGroup>().unwrap().expect("it is a group");
    assert!(group.read(&[1]).is_ok());
    assert!(name.query::<dyn IStation>().unwrap().is_none());
    // The servant hands out what it has; the caller gets what it asked for, or E_NOINTERFACE.
    let none = plant.station.add_group("Reactor", 100, &IID::of::<dyn IStation>()).unwrap_err();
    assert_eq!(none.status().map(i32::cast_unsigned), Some(hresult::E_NOINTERFACE), "{none}");
}

#[test]
fn objects_that_were_lent_end_when_nobody_refers_to_them() {
    const OBJECTS: usize = 1000;
    let plant = plant();
    let before = plant.server.exported().len();
    let groups: Vec<_> = (0..OBJECTS).map(|number| plant.group(number as u32)).collect();
    assert!(groups.iter().all(|group| group.read(&[1]).is_ok()));
    assert!(plant.server.exported().len() >= before + OBJECTS);
    assert!(plant.ended.try_recv().is_err(), "one ended though it is referred to");
    drop(groups);
    let mut ended: Vec<usize> =
        (0..OBJECTS).map(|_| plant.ended.recv_timeout(PATIENCE).expect("it ends")).collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..OBJECTS).collect::<Vec<_>>());
    assert_eq!(plant.server.exported().len(), before);
}

#[test]
fn an_object_that_is_lent_stays_as_long_as_this_process_refers_to_it() {
    let node = Node::new();
    node.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let (ended, endings) = channel();
    let lent = node.lend::<dyn IStationName>(|own| {
        node.on_end(own.key(), move || ended.send(()).expect("somebody waits"));
        Arc::new(Fixed)
    });
    let copy = lent.reference().clone();
    drop(lent);
    assert_eq!(node.exported().len(), 1);
    drop(copy);
    endings.recv_timeout(PATIENCE).expect("it ends");
    assert!(node.exported().is_empty());
}

struct Fixed;

impl IStationName for Fixed {
    fn get_name(&self) -> Result<Option<String>, Failure> {
        Ok(None)
    }
}

#[test]
fn a_servant_hears_who_listens_and_whom_a_signal_does_not_reach() {
    let plant = plant();
    let group = plant.group(100);
    let object = plant.client.resolve(group.reference()).unwrap().into_typed::<dyn StationGroup>();
    let (tell, heard) = channel();
    let tell = Mutex::new(tell);
    let listen = || {
        let tell = tell.lock().unwrap().clone();
        object.signals().on(move |change: StationGroupOnChange| drop(tell.send(change.ph_items))).unwrap()
    };
    let (first, second) = (listen(), listen());
    let next = || plant.told.recv_timeout(PATIENCE).expect("it is told");
    let joined = [next(), next()];
    assert!(matches!(&joined[0], Audience::Joined { listeners: 1, .. }), "{joined:?}");
    let Audience::Joined { interface, listener, listeners: 2, .. } = joined[1].clone() else {
        panic!("{joined:?}");
    };
    assert_eq!(interface, "7c1b1b40-6a0c-4e77-9f5c-0c6f7e3a2b04");
    group.write(&[4], &[number(4.0)]).unwrap();
    assert_eq!((heard.recv_timeout(PATIENCE), heard.recv_timeout(PATIENCE)), (Ok(vec![4]), Ok(vec![4])));
    drop(first);
    assert!(matches!(next(), Audience::Left { listeners: 1, .. }));
    // One that nobody hears any more without a word: its node ended.
    drop((second, tell));
    let left = next();
    assert!(
        matches!(&left, Audience::Left { listener: left, listeners: 0, .. } if *left == listener),
        "{left:?}"
    );
}

/// A sink that will hear nothing.
struct Deaf;

impl IStationEvents for Deaf {
    fn on_change(&self, _: &[u32], _: &[Variant]) -> Result<(), Failure> {
        Err(Failure::of_status(hresult::E_ACCESSDENIED.cast_signed(), "not now"))
    }
}

#[test]
fn a_servant_hears_which_sink_fails_and_why_and_may_let_it_go() {
    let plant = plant();
    let group = plant.group(100);
    let container = plant.client.resolve(group.reference()).unwrap();
    let container = container.typed(Hold::Static(&contracts::CONNECTION_POINT_CONTAINER));
    let iid = Guid("7c1b1b40-6a0c-4e77-9f5c-0c6f7e3a2b04".parse().unwrap());
    let (point,): (Option<Reference>,) =
        container.call::<_, _, Failure>(contracts::FIND_CONNECTION_POINT, (iid,)).unwrap();
    let point = plant.client.resolve(&point.unwrap()).unwrap();
    let point = point.typed(Hold::Static(&contracts::CONNECTION_POINT));
    let sink = plant.client.export_anonymous::<dyn IStationEvents>(Arc::new(Deaf));
    let advise = (Some(sink.reference().clone()),);
    let (cookie,): (u32,) = point.call::<_, _, Failure>(contracts::ADVISE, advise).unwrap();
    let next = || plant.told.recv_timeout(PATIENCE).expect("it is told");
    assert!(matches!(next(), Audience::Joined { listener, listeners: 1, .. } if listener == cookie));
    group.write(&[4], &[number(4.0)]).unwrap();
    let told = next();
    let Audience::Failed { interface, listener, failure, .. } = &told else { panic!("{told:?}") };
    assert_eq!((*listener, failure.message()), (cookie, "not now"));
    assert_eq!(failure.status().map(i32::cast_unsigned), Some(hresult::E_ACCESSDENIED));
    let keys = plant.server.exported().into_iter().map(|(key, _)| key);
    let dismissed: Vec<bool> = keys.map(|key| plant.server.dismiss(key, interface, cookie)).collect();
    assert_eq!(dismissed.iter().filter(|dismissed| **dismissed).count(), 1);
    assert!(matches!(next(), Audience::Left { listener, listeners: 0, .. } if listener == cookie));
}

#[test]
fn enumerators_are_ready_and_end_with_s_false() {
    let plant = plant();
    let names = plant.client.resolve(&plant.station.names().unwrap().unwrap()).unwrap();
    let all = enumerators::all_strings(&names).unwrap();
    assert_eq!((all.len(), all[0].as_str(), all[599].as_str()), (600, "Item0", "Item599"));
    // Typed, with the whole of the pattern.
    let iid = IID::of::<dyn IEnumSAMPLE>();
    let samples = plant.group(100).create_enumerator(&iid).unwrap().unwrap();
    let samples = plant.client.narrow::<dyn IEnumSAMPLE>(samples).unwrap();
    let two = samples.next(2).unwrap();
    assert_eq!((two.code, two.value), (0, vec![sample(0), sample(1)]));
    let copy = samples.clone_().unwrap().expect("a copy");
    assert_eq!(samples.skip(2).unwrap().code, 0);
    let last = samples.next(2).unwrap();
    assert_eq!((last.code, last.value), (1, vec![sample(4)]));
    assert_eq!(samples.skip(1).unwrap().code, 1);
    assert_eq!(samples.next(1).unwrap(), Success::with(1, vec![]));
    assert_eq!(copy.next(1).unwrap().value, vec![sample(2)]);
    samples.reset().unwrap();
    assert_eq!(samples.next(9).unwrap().value.len(), 5);
}

#[test]
fn impacket_sees_codes_and_counts_and_gets_the_interface_it_asks_for() {
    let test = "impacket_sees_codes_and_counts_and_gets_the_interface_it_asks_for";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let plant = plant_of(listening(""));
    for level in ["integrity", "privacy"] {
        let said = run(impacket("station").arg(level));
        assert!(said.lines().last() == Some("ok"), "{said}");
        // The group that it was given ends when it gives it back; the one that it could not have never began to be referred to.
        let ended = [plant.ended.recv_timeout(PATIENCE), plant.ended.recv_timeout(PATIENCE)];
        assert_eq!(ended, [Ok(10), Ok(10)], "{:?}", plant.server.exported());
    }
}

/// A broker before a station, with its contract.
fn brokered(name: &str, front: &str, to: &str) -> Broker {
    let whole = fs::read_to_string(root().join("tests/contracts/station.midl")).unwrap();
    let contract = scratch(name).join("station.midl");
    // Enumerators of texts are no part of the contract.
    fs::write(&contract, whole.replace("HRESULT Names([out] LPENUMSTRING *ppEnum);", "")).unwrap();
    let text = format!(
        "[listen.front]\naddress = \"{front}\"\n[[route]]\nname = \"station\"\nto = \"{to}\"\n\
         contract = \"{}\"\ninterface = \"Works\"\n",
        contract.display()
    );
    let config = Config::parse(&text, "broker.toml", &root()).unwrap_or_else(|wrong| panic!("{wrong}"));
    Broker::start(config, Arc::new(|_: &str| ())).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// An object passes by one interface, and has at the broker all that it has itself, as far as the contract knows them.
#[test]
fn an_object_behind_a_broker_has_the_interfaces_that_it_has() {
    let plant = plant();
    let broker = brokered(
        "interfaces",
        "dcom://127.0.0.1:0?level=none",
        &plant.server.print_friendly(&plant.server.reference("station").unwrap()),
    );
    let station = plant.client.connect::<dyn IStation>(&broker.references()[0].1).unwrap();
    let added = station.add_group("Reactor", 100, &IID::of::<dyn IStationName>()).unwrap();
    let name = plant.client.narrow::<dyn IStationName>(added.value.1.unwrap()).unwrap();
    assert_eq!(name.get_name().unwrap().as_deref(), Some("Reactor"));
    let group = name.query::<dyn IStationGroup>().unwrap().expect("it is a group");
    assert_eq!(group.browse_item_ids().unwrap().1, [1, 2]);
    // What it gives away by the other interface leads to the broker, too.
    let samples = group.create_enumerator(&IID::of::<dyn IEnumSAMPLE>()).unwrap().unwrap();
    let samples = plant.client.narrow::<dyn IEnumSAMPLE>(samples).unwrap();
    assert_eq!(samples.next(2).unwrap().value, vec![sample(0), sample(1)]);
    // What it has not, it has not at the broker; and an object of the file has the interface that the file names.
    assert!(name.query::<dyn IStation>().unwrap().is_none());
    assert!(name.query::<dyn IEnumSAMPLE>().unwrap().is_none());
    assert!(station.query::<dyn IStationName>().unwrap().is_none());
}

#[test]
fn impacket_asks_for_interfaces_behind_a_broker() {
    let test = "impacket_asks_for_interfaces_behind_a_broker";
    let Some(impacket) = impacket(test) else { return };
    if !alone(test) {
        return;
    }
    let file = users(&scratch("interfaces-users"));
    let (server, file) = (Node::new(), file.display());
    server.listen(&format!("dcom://127.0.0.1:1135?users={file}")).unwrap();
    let _plant = plant_of(server);
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let to = format!("dcom://{DOMAIN};{USER}:{password}@127.0.0.1:1135/{WORKS}");
    let _broker = brokered("interfaces-impacket", &format!("dcom://127.0.0.1:135?users={file}"), &to);
    let said = run(impacket("station").arg("privacy"));
    assert!(said.lines().last() == Some("ok"), "{said}");
}

#[test]
fn a_server_tells_its_log_why_it_lets_nobody_in_and_the_peer_does_not_hear() {
    let folder = scratch("refusals");
    let file = users(&folder);
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let observer = move |notice: &Notice| {
        if let Notice::Refused { why, .. } = notice {
            tell.lock().unwrap().send(why.clone()).expect("somebody waits");
        }
    };
    let server = Node::from(Node::builder().observer(Arc::new(observer)).build());
    let address = format!("dcom://127.0.0.1:0?users={}", file.display());
    let address = server.listen(&address).unwrap();
    server.export::<dyn IStationName>("name", Arc::new(Fixed));
    let client = Node::new();
    let port = address.split(':').nth(2).and_then(|rest| rest.split(['/', '?']).next()).unwrap();
    let call = |account: &str, options: &str| {
        let address = format!("dcom://{account}@127.0.0.1:{port}/name{options}");
        let failure = client.connect::<dyn IStationName>(&address).unwrap().get_name().unwrap_err();
        assert_eq!(failure.kind(), Kind::Refused, "{failure}");
        (failure.to_string(), told.recv_timeout(PATIENCE).expect("it is told"))
    };
    let right = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    let (unknown, why) = call(&format!("{DOMAIN};nobody:{right}"), "");
    assert_eq!(why, format!("the user or the password is wrong: there is no user `{DOMAIN}\\\\nobody` here"));
    let (wrong, why) = call(&format!("{DOMAIN};{USER}:x"), "");
    assert!(why.ends_with("has another password here"), "{why}");
    assert_eq!(unknown.replace("nobody", USER), wrong);
    let (_, why) = call(&format!("{DOMAIN};{USER}:{right}"), "?level=connect");
    assert_eq!(why, "it calls at level `connect`, and this address takes `integrity` at least (level=)");
}
