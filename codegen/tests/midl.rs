//! Code of MIDL contracts: what the statics say, and that a class is its interfaces.

use crate::model::shape::{Order, Shape};
use crate::model::{InterfaceKind, Remote};
use crate::{derby_midl, plant_midl};

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

/// Where a class has two methods of one name, the skeleton says whose it calls; a call that is too long for its line ends all the same.
#[test]
fn methods_of_one_name_are_called_by_their_interfaces() {
    let method = "HRESULT Adjust([in] long theFirstOfTheNumbersThatAreGiven, [in] long theSecondOfTheNumbersThatAreGiven);";
    let interface = |number: u32, name: &str| {
        format!(
            "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B30{number})] interface {name} : IUnknown {{ {method} }};"
        )
    };
    let text = format!(
        "{}{}[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B303)] library L {{ [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B304)] coclass C {{
            [default] interface IValveOfTheFirstKind; interface IValveOfTheSecondKind; }}; }};",
        interface(1, "IValveOfTheFirstKind"),
        interface(2, "IValveOfTheSecondKind"),
    );
    let contract = everywire_idl::midl::parse(&text, "valves.midl").unwrap();
    let generated = everywire_codegen::rust::generate(&contract, &everywire_codegen::Options::default());
    let calls: Vec<&str> = generated.lines().filter(|line| line.contains("::adjust(&**servant")).collect();
    assert_eq!(calls.len(), 2, "{generated}");
    assert!(calls.iter().all(|call| call.ends_with(';')), "{calls:#?}");
}
