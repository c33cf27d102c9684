use super::{Plant, codes, rate};
use everywire_opc::{
    Children, Code, Data, Engine, Feed, FileTime, Item, Moment, Quality, ReadFrom, Settings, Source, VarType,
    Vqt, Write, WriteVqt,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

#[test]
fn a_read_has_value_quality_and_time() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    plant.set("Tank.Level", 7.5_f32);
    for from in [ReadFrom::Cache, ReadFrom::Device, ReadFrom::Ages(&[0, 1000])] {
        let read = group.read(&items, from, plant.now).expect("it lives");
        let first = read.first().and_then(|read| read.as_ref().ok()).expect("a value");
        assert_eq!((first.client, &first.value), (1, &Vqt::good(7.5_f32, plant.now.time)), "{from:?}");
    }
    assert_eq!(group.read(&items, ReadFrom::Ages(&[0]), plant.now).err(), Some(Code::INVALID_ARGUMENT));
}

/// A source that does not tell changes: each item's value is how many items were read before it.
#[derive(Default)]
struct Counting(AtomicI32);

impl Source for Counting {
    fn find(&self, id: &str) -> Option<Arc<Item>> {
        Some(Arc::new(Item::new(id, VarType::I4)))
    }

    fn children(&self, _: &str, _: Option<&str>) -> Option<Children> {
        None
    }

    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
        let count = |_| Ok(Vqt::good(self.0.fetch_add(1, Ordering::SeqCst), FileTime::default()));
        items.iter().map(count).collect()
    }

    fn write(&self, writes: &[Write]) -> Vec<Code> {
        vec![Code::BAD_RIGHTS; writes.len()]
    }

    fn watch(&self, _: &Arc<Item>, _: Feed) -> bool {
        false
    }
}

/// Clients that never listen, and read the cache in turn, are many.
#[test]
fn the_cache_is_no_older_than_the_rate_though_nobody_listens() {
    let engine = Engine::new(Arc::<Counting>::default(), Settings::default());
    let client = engine.client().expect("a client");
    let group = client.add_group(rate(1000)).expect("a group");
    let mut now = Moment { ticks: 1_000_000, time: FileTime(133_000_000_000_000_000) };
    let added = group.add_items(&[super::def("a", 1), super::def("b", 2)], now).expect("it lives");
    let items = super::server(added);
    let read = |now: Moment| {
        let read = group.read(&items, ReadFrom::Cache, now).expect("it lives");
        read.into_iter().map(|read| read.expect("a value").value).collect::<Vec<_>>()
    };
    let data = |now| read(now).into_iter().map(|value| value.data).collect::<Vec<_>>();
    assert_eq!(data(now), [Data::I4(0), Data::I4(1)]);
    now = now.after(999);
    assert_eq!(data(now), [Data::I4(0), Data::I4(1)], "it is young enough");
    now = now.after(1);
    assert_eq!(data(now), [Data::I4(2), Data::I4(3)]);
    // One that is not active is not read, and keeps what it had.
    group.set_active(&items[..1], false).expect("it lives");
    now = now.after(5000);
    let [first, second] = read(now).try_into().expect("two items");
    assert_eq!((first.data, first.quality), (Data::I4(2), Quality::OUT_OF_SERVICE));
    assert_eq!((second.data, second.quality), (Data::I4(4), Quality::GOOD));
    // Where somebody listens, the updates read; what none has read yet is not waited for.
    group.set_active(&items[..1], true).expect("it lives");
    group.set_listeners(1);
    now = now.after(5000);
    assert_eq!(data(now), [Data::I4(2), Data::I4(4)]);
}

#[test]
fn the_cache_of_what_is_not_active_is_out_of_service() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    group.set_active(&items[..1], false).expect("it lives");
    let qualities = |from| {
        let read = group.read(&items, from, plant.now).expect("it lives");
        read.into_iter().map(|read| read.expect("a value").value.quality).collect::<Vec<_>>()
    };
    assert_eq!(qualities(ReadFrom::Cache), [Quality::OUT_OF_SERVICE, Quality::GOOD]);
    assert_eq!(qualities(ReadFrom::Device), [Quality::GOOD; 2]);
    let rest = everywire_opc::Change { active: Some(false), ..Default::default() };
    group.change(&rest).expect("it lives");
    assert_eq!(qualities(ReadFrom::Cache), [Quality::OUT_OF_SERVICE; 2]);
}

#[test]
fn rights_types_and_handles_are_checked_item_by_item() {
    let plant = Plant::new();
    let hidden = Item { access: everywire_opc::Access::WRITE, ..Item::new("Hidden", VarType::I2) };
    plant.table.add(hidden, 1_i16);
    let group = plant.group(rate(1000));
    let mut items = plant.add(&group, &["Hidden", "Name", "Tank.Level"]);
    group.set_types(&items[1..2], &[VarType::I4]).expect("it lives");
    items.push(0);
    let expected = [Code::BAD_RIGHTS, Code::BAD_TYPE, Code::OK, Code::INVALID_HANDLE];
    for from in [ReadFrom::Cache, ReadFrom::Device] {
        assert_eq!(codes(group.read(&items, from, plant.now).expect("it lives")), expected, "{from:?}");
    }
}

#[test]
fn a_write_takes_any_type_that_fits() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let items =
        plant.add(&group, &["Tank.Setpoint", "Tank.Valve", "Tank.Setpoint", "Tank.Setpoint", "Tank.Level"]);
    let values = [
        WriteVqt::from(Data::from("123")),
        Data::I4(-1).into(),
        Data::R8(1e9).into(),
        Data::from("much").into(),
        Data::R4(1.0).into(),
    ];
    let written = group.write(&items, &values).expect("it lives");
    assert_eq!(written, [Code::OK, Code::OK, Code::RANGE, Code::BAD_TYPE, Code::BAD_RIGHTS]);
    assert_eq!(plant.table.get("Tank.Setpoint").map(|value| value.data), Some(Data::I2(123)));
    assert_eq!(plant.table.get("Tank.Valve").map(|value| value.data), Some(Data::Bool(true)));
    assert_eq!(group.write(&items, &values[..1]).err(), Some(Code::INVALID_ARGUMENT));
}

#[test]
fn a_write_may_be_limited_or_refused_by_the_source() {
    let plant = Plant::new();
    plant.table.on_write(|write| match (&write.data, write.quality) {
        (_, Some(_)) => Code::NOT_SUPPORTED,
        (Data::I2(value), None) if *value > 100 => Code::CLAMP,
        _ => Code::OK,
    });
    let group = plant.group(rate(1000));
    let item = plant.add(&group, &["Tank.Setpoint"]);
    let write = |given: WriteVqt| group.write(&item, &[given]).expect("it lives");
    assert_eq!(write(Data::I2(5).into()), [Code::OK]);
    assert_eq!(write(Data::I2(500).into()), [Code::CLAMP]);
    let with_quality = WriteVqt { data: Data::I2(5), quality: Some(Quality::UNCERTAIN), time: None };
    assert_eq!(write(with_quality), [Code::NOT_SUPPORTED]);
}

#[test]
fn quality_and_time_may_be_written() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let item = plant.add(&group, &["Tank.Setpoint"]);
    let given =
        WriteVqt { data: Data::I2(5), quality: Some(Quality::LOCAL_OVERRIDE), time: Some(plant.now.time) };
    assert_eq!(group.write(&item, &[given]), Ok(vec![Code::OK]));
    let expected = Vqt { data: Data::I2(5), quality: Quality::LOCAL_OVERRIDE, time: plant.now.time };
    assert_eq!(plant.table.get("Tank.Setpoint"), Some(expected));
}

/// No value is none that an item could have: other servers refuse it, too, and do not write 0.
#[test]
fn no_value_is_not_written_and_quality_or_time_may_be_without_one() {
    let plant = Plant::new();
    let group = plant.group(rate(1000));
    let item = plant.add(&group, &["Tank.Setpoint"]);
    plant.set("Tank.Setpoint", 7_i16);
    let before = plant.table.get("Tank.Setpoint").expect("a value");
    let nothing = WriteVqt::from(Data::Empty);
    assert_eq!(group.write(&item, std::slice::from_ref(&nothing)), Ok(vec![Code::BAD_TYPE]));
    let ids = ["Tank.Setpoint".to_owned()];
    assert_eq!(plant.engine.write_items(&ids, std::slice::from_ref(&nothing)), Ok(vec![Code::BAD_TYPE]));
    assert_eq!(plant.table.get("Tank.Setpoint"), Some(before));
    let quality = WriteVqt { quality: Some(Quality::SENSOR_CAL), ..nothing.clone() };
    assert_eq!(group.write(&item, &[quality]), Ok(vec![Code::OK]));
    let held = plant.table.get("Tank.Setpoint").expect("a value");
    assert_eq!((held.data, held.quality), (Data::I2(7), Quality::SENSOR_CAL));
    let time = WriteVqt { time: Some(FileTime(7)), ..nothing };
    assert_eq!(plant.engine.write_items(&ids, &[time]), Ok(vec![Code::OK]));
    let stamped = Vqt { data: Data::I2(7), quality: Quality::SENSOR_CAL, time: FileTime(7) };
    assert_eq!(plant.table.get("Tank.Setpoint"), Some(stamped));
}

#[test]
fn items_are_read_and_written_without_a_group() {
    let plant = Plant::new();
    let ids = ["Tank.Level", "Tank.Nothing", ""].map(str::to_owned);
    let read = plant.engine.read_items(&ids, &[0, 0, 0], plant.now).expect("as many ages");
    assert_eq!(codes(read), [Code::OK, Code::UNKNOWN_ITEM, Code::INVALID_ITEM]);
    let ids = ["Tank.Setpoint", "Tank.Level"].map(str::to_owned);
    let values = [WriteVqt::from(Data::I4(5)), Data::R4(0.0).into()];
    assert_eq!(plant.engine.write_items(&ids, &values), Ok(vec![Code::OK, Code::BAD_RIGHTS]));
    assert_eq!(plant.engine.write_items(&ids, &values[..1]), Err(Code::INVALID_ARGUMENT));
    assert_eq!(plant.engine.items_in_use(), 0);
}

#[test]
fn properties_are_those_that_an_item_has() {
    let plant = Plant::new();
    let numbers = |id: &str| {
        let available = plant.engine.available_properties(id).expect("an item");
        available.into_iter().map(|property| property.id).collect::<Vec<_>>()
    };
    assert_eq!(numbers("Tank.Level"), [1, 2, 3, 4, 5, 6, 7, 8, 100, 102, 103]);
    assert_eq!(numbers("Name"), [1, 2, 3, 4, 5, 6, 7, 101]);
    assert_eq!(plant.engine.available_properties("x").err(), Some(Code::UNKNOWN_ITEM));
    let values =
        plant.engine.properties("Tank.Level", &[1, 2, 3, 5, 7, 8, 100, 102, 103, 101, 999], plant.now);
    let range = Data::array(VarType::R8, vec![Data::R8(0.0), Data::R8(100.0)]);
    let expected = [
        Ok(Data::I2(4)),
        Ok(Data::R4(50.0)),
        Ok(Data::I2(192)),
        Ok(Data::I4(1)),
        Ok(Data::I4(1)),
        Ok(range),
        Ok("cm".into()),
        Ok(Data::R8(100.0)),
        Ok(Data::R8(0.0)),
        Err(Code::INVALID_PROPERTY),
        Err(Code::INVALID_PROPERTY),
    ];
    assert_eq!(values, Ok(expected.to_vec()));
    let items = plant.engine.property_items("Tank.Level", &[2, 999]);
    assert_eq!(items, Ok(vec![Err(Code::FAIL), Err(Code::INVALID_PROPERTY)]));
}
