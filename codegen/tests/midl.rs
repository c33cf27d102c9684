//! Code of MIDL contracts: what the statics say, and that a class is its interfaces.

use crate::memory::World;
use crate::model::shape::{Order, Shape};
use crate::model::{Failure, Initiator, InterfaceKind, Kind, Ref, Reference, Remote};
use crate::plant_midl::{GUID, IRecorder, ITank, Node, Phase, Reading, Setting, Tank};
use crate::{derby_midl, plant_midl};
use std::sync::{Arc, Mutex};

#[test]
fn statics_say_what_the_contract_says() {
    let tank = <dyn plant_midl::ITank as Remote>::interface();
    assert_eq!((tank.kind, tank.operations[3].id), (InterfaceKind::Dual, Some(2)));
    assert!(tank.is_a("00020400-0000-0000-c000-000000000046"));
    let alarms = tank.operations[4].results.fields();
    assert!(alarms.iter().all(|f| matches!(&f.shape, Shape::Alias(alias) if alias.name == "SAFEARRAY")));
    let recorder = <dyn plant_midl::IRecorder as Remote>::interface();
    let Shape::Sequence(ids) = &recorder.operations[2].results.fields()[0].shape else { panic!() };
    assert_eq!((ids.size.as_deref(), ids.order), (Some("wanted"), Order::ConformantVarying));
    let class = <dyn derby_midl::SlowConnectionPoints as Remote>::interface();
    assert_eq!(
        (class.kind, class.id.as_ref()),
        (InterfaceKind::Class, "606de2c0-1a8c-11d3-b68f-00c04f8b72e7")
    );
    let (sink, index) = class.signals[0].sink.as_ref().unwrap();
    assert_eq!((sink.id.as_ref(), *index), ("606de2c1-1a8c-11d3-b68f-00c04f8b72e7", 0));
}

/// Sizes that a wire computes are part of what is written, or a program of ours would write other octets than one that reads the contract.
#[test]
fn statics_say_what_sizes_are_computed_from() {
    let contract = everywire_idl::midl::parse(
        "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B009)] interface I : IUnknown {
             typedef struct Label { USHORT length; USHORT room; [size_is(room / 2), length_is(length / 2)] USHORT *units; } Label;
             typedef [switch_type(long)] union U { [case(1)] long one; [default] ; } U;
             HRESULT Put([in] long n, [in, size_is(n), length_is(n)] long *all, [in, max_is(n)] long *more, [in, range(1, 9)] long how,
                 [in, string] char name[20], [in, switch_is(how)] U *u);
         };",
        "label.midl",
    );
    let text = everywire_codegen::rust::generate(&contract.unwrap(), &everywire_codegen::Options::default());
    assert!(
        text.contains(r#"renamed!("length_is(length / 2)", renamed!("size_is(room / 2)", sequence!("#),
        "{text}"
    );
    assert!(text.contains(r#"renamed!("max_is(n)", sequence!("#), "{text}");
    assert!(text.contains(r#"renamed!("string(20)", text(TextKind::Narrow, Some(19)))"#), "{text}");
    assert!(text.contains(r#"renamed!("switch_is(how)", union("#), "{text}");
    // These are checked by the code itself, or decide no octets.
    assert!(!text.contains("length_is(n)") && !text.contains("range("), "{text}");
}

/// The statics of the generated code and the contract that is read say the same.
#[test]
fn a_class_numbers_what_its_interfaces_have() {
    let class = <dyn plant_midl::Tank as Remote>::interface();
    let names: Vec<&str> = class.operations.iter().map(|operation| operation.name.as_ref()).collect();
    let (tank, recorder) = names.split_at(6);
    assert_eq!(tank, ["get_Name", "put_Name", "get_Level", "Fill", "Alarms", "get_Since"]);
    assert_eq!(recorder, ["Read", "Find", "Next", "Set", "Chain", "IRecorder_Fill"]);
    let told: Vec<_> = class.signals.iter().map(|s| s.sink.as_ref().map(|(_, index)| *index)).collect();
    assert_eq!(told, [Some(0), Some(1)]);
}

/// A tank that is not there, but for its two methods of one name.
#[derive(Default)]
struct Fills(Mutex<Vec<i32>>);

fn nothing<T>() -> Result<T, Failure> {
    Err(Failure::new(Kind::Unsupported, Initiator::Here, "nothing"))
}

impl ITank for Fills {
    fn name(&self) -> Result<String, Failure> {
        nothing()
    }
    fn set_name(&self, _: &str) -> Result<(), Failure> {
        nothing()
    }
    fn level(&self) -> Result<f64, Failure> {
        nothing()
    }
    fn fill(&self, litres: f64, slowly: bool) -> Result<bool, Failure> {
        Ok(litres > 1.0 && slowly)
    }
    fn alarms(&self) -> Result<(Vec<String>, Vec<i32>), Failure> {
        nothing()
    }
    fn since(&self) -> Result<f64, Failure> {
        nothing()
    }
}

impl IRecorder for Fills {
    fn read(&self, _: &[Option<String>]) -> Result<(Vec<Reading>, Vec<i32>), Failure> {
        nothing()
    }
    fn find(&self, _: &str, _: &GUID) -> Result<Option<Reference>, Failure> {
        nothing()
    }
    fn next(&self, _: u32) -> Result<Vec<GUID>, Failure> {
        nothing()
    }
    fn set(&self, _: &Setting, _: &Option<f64>, _: Phase) -> Result<(), Failure> {
        nothing()
    }
    fn chain(&self, _: &Node) -> Result<(), Failure> {
        nothing()
    }
    fn fill(&self, how: i32) -> Result<(), Failure> {
        self.0.lock().unwrap().push(how);
        Ok(())
    }
}

impl Tank for Fills {}

/// Where a class has two methods of one name, each call reaches the one of its interface.
#[test]
fn methods_of_one_name_are_called_by_their_interfaces() {
    let world = World::default();
    let servant = Arc::new(Fills::default());
    world.serve::<dyn Tank>("tank", servant.clone());
    let tank: Ref<dyn Tank> = world.object("tank").into_typed();
    assert!(ITank::fill(&**tank.as_arc(), 2.0, true).unwrap());
    IRecorder::fill(&**tank.as_arc(), 7).unwrap();
    assert_eq!(*servant.0.lock().unwrap(), [7]);
    assert_eq!(tank.level().unwrap_err().message(), "nothing");
}

/// Members of one value are one variant, by whichever name.
#[test]
fn members_may_share_a_value() {
    assert_eq!((Phase::PhaseFirst, Phase::PhaseFirst.0), (Phase::PhaseIdle, 1));
}
