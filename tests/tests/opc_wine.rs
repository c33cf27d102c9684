//! Our OPC client and a server under Wine: its marshalling, its references and its VARIANTs are of others. Wine calls nobody back, so
//! values are asked for.

use crate::common::foreign::PATIENCE;
use crate::common::wine::{Cupboard, awake};
use everywire::Node;
use everywire_opc::remote::{
    Branch, DataAccess, Event, ItemValue, SubscriptionRequest, TransferMode, UpdateMode,
};
use everywire_opc::{Access, Code, Data, VarType};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The next values, however they are packed.
fn values(events: &Receiver<Event>) -> Vec<ItemValue> {
    loop {
        match events.recv_timeout(PATIENCE).expect("an event") {
            Event::Values(values) => return values,
            Event::Live(_) => {}
            other => panic!("no values: {other:?}"),
        }
    }
}

#[test]
fn a_server_under_wine_is_browsed_read_written_and_polled() {
    awake(|| {
        let test = "a_server_under_wine_is_browsed_read_written_and_polled";
        let Some(wine) = Cupboard::serve(test, "opc.exe") else { return };
        let node = Node::new();
        let server = DataAccess::connect(&node, &wine.reference).expect("a server");
        let status = server.status().expect("an answer");
        assert_eq!(
            (status.vendor.as_str(), status.state_name, status.version),
            ("Wine", "running", (2, 5, 7))
        );
        assert_eq!(server.version().expect("an answer"), "2.05a");

        let root = server.browse(&Branch::root()).expect("the root");
        let ids: Vec<_> = root.iter().map(|element| element.id.as_str()).collect();
        let all = ["Name", "Tank.Deep.Price", "Tank.Deep.Since", "Tank.Level", "Tank.Setpoint", "Valve"];
        assert_eq!((ids.as_slice(), root.iter().all(|element| element.is_item)), (all.as_slice(), true));
        assert_eq!(server.all_items().expect("items"), all);

        let ids = ["Tank.Level", "No.Such", "Name", "Valve", "Tank.Deep.Price", "Tank.Deep.Since"];
        // One at a time: in arrays Wine writes each VARIANT in place, where NDR has them behind all elements.
        let read: Vec<_> = ids.iter().map(|id| server.read(&[id]).expect("an answer").remove(0)).collect();
        let data: Vec<_> = read.iter().map(|one| one.as_ref().map(|vqt| vqt.data.clone())).collect();
        let expected = [
            Ok(Data::R4(50.0)),
            Err(&Code::UNKNOWN_ITEM),
            Ok("Tank nº one".into()),
            Ok(Data::Bool(false)),
            Ok(Data::Currency(12_500)),
            Ok(Data::Date(36_526.5)),
        ];
        assert_eq!(data, expected);
        assert!(read[0].as_ref().is_ok_and(|vqt| vqt.quality.is_good() && vqt.time.0 > 0));
        // Wine's own automation converts what is written.
        let write = |id, data| server.write(&[(id, data)]).expect("an answer").remove(0);
        assert_eq!(write("Tank.Setpoint", Data::R8(32.6)), Ok(Code::OK));
        assert_eq!(write("Tank.Level", Data::R4(1.0)), Err(Code::BAD_RIGHTS));
        assert_eq!(write("Valve", Data::I4(1)), Ok(Code::OK));
        assert_eq!(write("Tank.Setpoint", "no number".into()), Err(Code::BAD_TYPE));
        let now = |id| server.read(&[id]).expect("an answer").remove(0).map(|vqt| vqt.data);
        assert_eq!((now("Tank.Setpoint"), now("Valve")), (Ok(Data::I2(33)), Ok(Data::Bool(true))));
        let info = server.infos(&["Tank.Setpoint"]).expect("an answer")[0];
        assert_eq!(info.map(|info| (info.canonical, info.access)), Ok((VarType::I2, Access::BOTH)));
        let group = server.group(&["Tank.Setpoint"]).expect("a group");
        let TransferMode::Waiting { why } = group.way() else { panic!("{:?}", group.way()) };
        assert!(why.contains("neither IOPCAsyncIO3 nor IOPCAsyncIO2"), "{why}");
        let now = group.read(&[0], Duration::ZERO).expect("done").wait(PATIENCE).expect("done");
        assert_eq!(now[0].as_ref().map(|vqt| vqt.data.clone()), Ok(Data::I2(33)));

        let (tell, events) = channel();
        let wanted =
            SubscriptionRequest { rate: Duration::from_millis(10), ..SubscriptionRequest::default() };
        let subscription =
            server.subscribe(&["Tank.Setpoint", "x"], wanted, move |event| drop(tell.send(event)));
        let subscription = subscription.expect("a thread");
        let Event::Live(live) = events.recv_timeout(PATIENCE).expect("an event") else { panic!("not live") };
        let UpdateMode::Polling { why } = live.manner else { panic!("Wine calls back") };
        assert!(why.contains("does not take callbacks"), "{why}");
        assert_eq!(live.refused, [("x".into(), Code::UNKNOWN_ITEM)]);
        assert_eq!(values(&events)[0].value.data, Data::I2(33));
        assert_eq!(server.write(&[("Tank.Setpoint", Data::I2(34))]).expect("an answer"), [Ok(Code::OK)]);
        assert_eq!(values(&events)[0].value.data, Data::I2(34));
        subscription.end();
    });
}
