//! What the README says of the plant: two nodes on TCP of this machine.

use everywire::Node;
use everywire_opc::remote::{Address, Branch, DataAccess, Event, SubscriptionRequest, UpdateMode, servers};
use everywire_opc::{Code, Data};
use plant::{NAME, Tank};
use std::sync::mpsc;
use std::time::Duration;

/// As long as nothing is wrong nobody waits so long.
const PATIENCE: Duration = Duration::from_secs(300);

#[test]
fn a_client_finds_the_plant_hears_of_it_and_closes_the_valve() {
    let (server, client) = (Node::new(), Node::new());
    let tank = Tank::new();
    let _served = tank.serve(&server).unwrap();
    let address = server.listen("dcom://127.0.0.1:0?level=none").unwrap();
    let place = address.trim_start_matches("dcom://").split(['/', '?']).next().unwrap().to_owned();

    let host = Address::parse(&format!("opcda://{place}?level=none")).unwrap();
    let found = servers(&client, &host).unwrap();
    assert_eq!(found[0].prog_id, format!("{NAME}.1"));
    let plant = DataAccess::at(&client, host.with_server(NAME)).unwrap();
    let root = plant.browse(&Branch::root()).unwrap();
    let ids: Vec<_> = plant.browse(&root[0].branch).unwrap().into_iter().map(|item| item.id).collect();
    assert_eq!(ids, ["Tank.Level", "Tank.Valve"]);

    let (tell, told) = mpsc::channel();
    let wanted = SubscriptionRequest { rate: Duration::from_millis(10), ..SubscriptionRequest::default() };
    let subscription = plant.subscribe(&["Tank.Level"], wanted, move |event| drop(tell.send(event))).unwrap();
    let next = || told.recv_timeout(PATIENCE).unwrap();
    let Event::Live(live) = next() else { panic!("it is not live") };
    assert_eq!(live.manner, UpdateMode::Callbacks);
    let level = || match next() {
        Event::Values(values) => values[0].value.data.clone(),
        other => panic!("no values: {other:?}"),
    };
    assert_eq!(level(), Data::R4(0.0));
    tank.step().unwrap();
    assert_eq!(level(), Data::R4(1.0));

    let written = plant.write(&[("Tank.Valve", false.into()), ("Tank.Level", 50.0_f32.into())]).unwrap();
    assert_eq!(written, [Ok(Code::OK), Err(Code::BAD_RIGHTS)]);
    tank.step().unwrap();
    assert_eq!(level(), Data::R4(0.0));
    let read = plant.read(&["Tank.Valve"]).unwrap().remove(0).unwrap();
    assert_eq!(read.data, Data::Bool(false));
    subscription.end();
}
