use super::{Plant, codes, rate};
use everywire_opc::{Children, Code, Data, FileTime, Item, Quotas, Settings, Source, VarType, Vqt, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// A source with one item, which counts how often it was read and tells nothing by itself.
#[derive(Default)]
pub(crate) struct Counter {
    reads: AtomicI32,
    fails: AtomicBool,
}

impl Counter {
    pub(crate) fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }
}

impl Source for Counter {
    fn find(&self, id: &str) -> Option<Arc<Item>> {
        (id == "count").then(|| Arc::new(Item::new("count", VarType::I4)))
    }

    fn children(&self, _: &str, _: Option<&str>) -> Option<Children> {
        None
    }

    fn read(&self, items: &[Arc<Item>]) -> Vec<Result<Vqt, Code>> {
        let fails = self.fails.load(Ordering::SeqCst);
        let one = |_| {
            let number = self.reads.fetch_add(1, Ordering::SeqCst) + 1;
            if fails {
                Err(Code::FAIL)
            } else {
                Ok(Vqt::good(number, FileTime(number.unsigned_abs().into())))
            }
        };
        items.iter().map(one).collect()
    }

    fn write(&self, writes: &[Write]) -> Vec<Code> {
        writes.iter().map(|_| Code::BAD_RIGHTS).collect()
    }
}

#[test]
fn an_item_may_be_sampled_more_slowly_than_its_group() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    let items = plant.add(&group, &["Tank.Level", "Name"]);
    assert_eq!(group.sampling(&items).map(codes), Ok(vec![Code::RATE_NOT_SET; 2]));
    let set = group.set_sampling(&items[..1], &[999]).expect("it lives");
    assert_eq!(set, [Ok((1000, Code::UNSUPPORTED_RATE))]);
    plant.pass(0);
    for step in 1..=20_u8 {
        plant.set("Tank.Level", f32::from(step));
        let batches = plant.pass(100);
        assert_eq!(batches.len(), usize::from(step % 10 == 0), "{step}");
    }
    assert_eq!(codes(group.clear_sampling(&items[..1]).expect("it lives")), [Code::OK]);
    plant.set("Tank.Level", 99.0_f32);
    assert_eq!(plant.pass(100).len(), 1);
}

#[test]
fn buffered_samples_come_together_and_in_order() {
    let mut plant = Plant::new();
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level"]);
    group.set_sampling(&items, &[100]).expect("it lives");
    assert_eq!(codes(group.set_buffered(&items, &[true]).expect("it lives")), [Code::OK]);
    assert_eq!(group.buffered(&items), Ok(vec![Ok(true)]));
    plant.pass(0);
    // Twice in each interval: the later one counts.
    for step in 1..=8_u8 {
        plant.set("Tank.Level", f32::from(step));
        assert_eq!(plant.pass(50), []);
    }
    let batches = plant.pass(1000);
    let values: Vec<_> = batches.iter().flat_map(|(_, b)| &b.samples).map(|s| s.value.data.clone()).collect();
    assert_eq!(values, [2.0, 4.0, 6.0, 8.0].map(Data::R4));
    assert!(batches.iter().all(|(_, batch)| batch.master_error() == Code::OK));
}

#[test]
fn a_buffer_that_is_full_loses_the_oldest_and_says_so() {
    let quotas = Quotas { buffer: 3, ..Quotas::default() };
    let mut plant = Plant::with(Settings { quotas, ..Settings::default() });
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["Tank.Level"]);
    group.set_sampling(&items, &[10]).expect("it lives");
    group.set_buffered(&items, &[true]).expect("it lives");
    plant.pass(0);
    for step in 1..=5_u8 {
        plant.set("Tank.Level", f32::from(step));
        plant.pass(10);
    }
    let batches = plant.pass(1000);
    let found: Vec<_> =
        batches.iter().flat_map(|(_, b)| &b.samples).map(|s| (s.value.data.clone(), s.error)).collect();
    let expected = [(3.0, Code::OK), (4.0, Code::OK), (5.0, Code::DATA_QUEUE_OVERFLOW)];
    assert_eq!(found, expected.map(|(value, code)| (Data::R4(value), code)));
    plant.set("Tank.Level", 9.0_f32);
    assert_eq!(plant.pass(1000).first().map(|(_, batch)| batch.master_error()), Some(Code::OK));
}

#[test]
fn a_buffered_item_that_is_read_is_read_at_its_own_rate() {
    let mut plant = Plant::new();
    plant.engine = everywire_opc::Engine::new(Arc::new(Counter::default()), Settings::default());
    plant.client = plant.engine.client().expect("a client");
    let group = plant.group(rate(1000));
    let items = plant.add(&group, &["count"]);
    group.set_sampling(&items, &[250]).expect("it lives");
    group.set_buffered(&items, &[true]).expect("it lives");
    let counts =
        |plant: &mut Plant| plant.pass(1000).iter().map(|(at, b)| (*at, b.samples.len())).collect::<Vec<_>>();
    assert_eq!(counts(&mut plant), [(0, 1), (1000, 4)]);
    assert_eq!(counts(&mut plant), [(2000, 4)]);
}

/// A file that is read again, or a program that is started again, describes an item a second time.
#[test]
fn an_item_that_is_added_again_goes_on_telling_its_groups() {
    let mut plant = Plant::new();
    let group = plant.group(rate(100));
    plant.add(&group, &["Tank.Level"]);
    plant.pass(100);
    let point = plant.table.point("Tank.Level").expect("an item of the table");
    plant.table.add(Item::new("Tank.Level", VarType::R4).described("once more"), 7.0_f32);
    let told = plant.pass(100);
    assert_eq!(told.last().expect("it is told").1.samples[0].value.data, Data::R4(7.0));
    let item = plant.table.find("Tank.Level").expect("an item");
    assert_eq!(item.description.as_deref(), Some("once more"), "it is as it was described last");
    plant.set("Tank.Level", 8.0_f32);
    let told = plant.pass(100);
    assert_eq!(told.last().expect("it is told").1.samples[0].value.data, Data::R4(8.0));
    // A point that was taken before means the same item.
    point.set(9.0_f32);
    let told = plant.pass(100);
    assert_eq!(told.last().expect("it is told").1.samples[0].value.data, Data::R4(9.0));
}
