use super::{Plant, scripted::Script};
use crate::server::PATIENCE;
use everywire::Kind;
use everywire_opc::remote::{DataAccess, ItemGroup, TransferMode};
use everywire_opc::{Code, Data};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Old enough for any value, and none at all.
const ANY: Duration = Duration::from_secs(3600);

fn group(plant: &Plant, options: &str) -> ItemGroup {
    plant.connect(options).group(&["Tank.Level", "x", "Tank.Setpoint"]).expect("a group")
}

#[test]
fn both_versions_read_and_write_without_waiting() {
    let plant = Plant::new();
    for (options, way) in [("", TransferMode::Version3), ("&version=2", TransferMode::Version2)] {
        let group = group(&plant, options);
        assert_eq!((group.way(), group.refused()), (way.clone(), vec![(1, Code::UNKNOWN_ITEM)]));
        let (first, second) = (
            group.read(&[2, 0, 1, 9], ANY).expect("begun"),
            group.read(&[0], Duration::ZERO).expect("begun"),
        );
        let second = second.wait(PATIENCE).expect("done");
        assert_eq!(second[0].as_ref().map(|vqt| vqt.data.clone()), Ok(Data::R4(50.0)), "{way:?}");
        let first = first.wait(PATIENCE).expect("done");
        let data: Vec<_> = first.into_iter().map(|one| one.map(|vqt| vqt.data)).collect();
        let refused = [Err(Code::UNKNOWN_ITEM), Err(Code::INVALID_HANDLE)];
        assert_eq!(data[..2], [Ok(Data::I2(10)), Ok(Data::R4(50.0))], "{way:?}");
        assert_eq!(data[2..], refused, "{way:?}");
        let written = group.write(&[(0, Data::R4(1.0)), (2, Data::I4(77)), (1, Data::I4(1))]);
        let written = written.expect("begun").wait(PATIENCE).expect("done");
        assert_eq!(written, [Err(Code::BAD_RIGHTS), Ok(Code::OK), Err(Code::UNKNOWN_ITEM)], "{way:?}");
        assert_eq!(plant.table.get("Tank.Setpoint").map(|vqt| vqt.data), Some(Data::I2(77)));
        // The same item twice: each has its own outcome, and there is no end of patience.
        let twice = group.write(&[(2, Data::I4(78)), (2, "no number".into())]);
        let twice = twice.expect("begun").wait(Duration::MAX).expect("done");
        assert_eq!(twice, [Ok(Code::OK), Err(Code::BAD_TYPE)], "{way:?}");
        plant.table.set("Tank.Setpoint", 10_i16).expect("an item");
        // What nobody is asked for is done at once.
        let nothing = group.read(&[1], ANY).expect("begun");
        assert!(nothing.is_done() && !nothing.cancel().expect("an answer"));
        drop(group);
        let house = plant.house.as_ref().expect("it is served");
        assert_eq!(house.1.engine().items_in_use(), 0, "the group was not removed");
    }
}

#[test]
fn items_have_deadbands_and_rates_of_their_own() {
    let plant = Plant::new();
    let group = group(&plant, "");
    let set = group.set_deadbands(&[(0, 5.0), (2, 5.0), (1, 5.0)]).expect("it is offered");
    assert_eq!(set, [Ok(()), Err(Code::DEADBAND_NOT_SUPPORTED), Err(Code::UNKNOWN_ITEM)]);
    assert_eq!(group.deadbands(&[0, 2]).expect("it is offered")[0], Ok(5.0));
    assert_eq!(group.clear_deadbands(&[0]).expect("it is offered"), [Ok(())]);
    assert_eq!(group.deadbands(&[0]).expect("it is offered"), [Err(Code::DEADBAND_NOT_SET)]);
    let rates = group.set_sampling(&[(0, Duration::from_millis(15))]).expect("it is offered");
    assert_eq!(rates, [Ok(Duration::from_millis(20))]);
    assert_eq!(
        group.set_buffers(&[(0, true), (9, true)]).expect("it is offered")[1],
        Err(Code::INVALID_HANDLE)
    );
    assert_eq!(group.clear_sampling(&[0]).expect("it is offered"), [Ok(())]);
}

#[test]
fn where_nobody_can_call_back_it_waits() {
    let script = Script { callbacks: false, ..Script::default() };
    let (_server, client, address) = script.serve();
    let server = DataAccess::connect(&client, &address).expect("a server");
    let group = server.group(&["a", "b"]).expect("a group");
    let TransferMode::Waiting { why } = group.way() else { panic!("{:?}", group.way()) };
    assert!(why.contains("neither IOPCAsyncIO3 nor IOPCAsyncIO2"), "{why}");
    let read = group.read(&[1, 0], ANY).expect("done").wait(Duration::ZERO).expect("done");
    let data: Vec<_> = read.into_iter().map(|one| one.expect("a value").data).collect();
    assert_eq!(data, [Data::I4(2), Data::I4(1)]);
    let missing = group.set_deadbands(&[(0, 1.0)]).expect_err("it is not offered");
    assert!(missing.to_string().contains("IOPCItemDeadbandMgt"), "{missing}");
}

#[test]
fn a_group_that_cannot_be_used_is_not_left_behind() {
    let script = Script { bare: true, ..Script::default() };
    let removed = Arc::clone(&script.removed);
    let (_server, client, address) = script.serve();
    let server = DataAccess::connect(&client, &address).expect("a server");
    server.group(&["a"]).err().expect("nothing can be done with it");
    assert_eq!(removed.load(Ordering::SeqCst), 1);
    server.read(&["a"]).expect_err("nothing can be done with it");
    assert_eq!(removed.load(Ordering::SeqCst), 2);
}

#[test]
fn a_transfer_is_cancelled_and_its_answer_comes_by_a_callback() {
    let (_server, client, address) = Script::default().serve();
    let server = DataAccess::connect(&client, &format!("{address}&version=2")).expect("a server");
    let group = server.group(&["a"]).expect("a group");
    assert_eq!(group.way(), TransferMode::Version2);
    // The script answers no read before it is cancelled.
    let read = group.read(&[0], ANY).expect("begun");
    let late = read.wait(Duration::ZERO).expect_err("nothing was told yet");
    assert_eq!(late.kind(), Kind::TimedOut);
    assert!(read.cancel().expect("an answer"));
    assert_eq!(read.wait(PATIENCE).expect_err("it was left").kind(), Kind::Cancelled);
    let second = group.read(&[0], ANY).expect("begun");
    drop(group);
    assert_eq!(second.wait(PATIENCE).expect_err("nobody listens").kind(), Kind::Cancelled);
}

#[test]
fn who_goes_takes_what_is_under_way_along() {
    let mut plant = Plant::new();
    let server = plant.connect("");
    let group = server.group(&["Tank.Level"]).expect("a group");
    plant.stop();
    let failure = match group.read(&[0], ANY) {
        Ok(read) => read.wait(PATIENCE).expect_err("nobody is there"),
        Err(failure) => failure,
    };
    assert_eq!(failure.kind(), Kind::Unreachable, "{failure}");
}
