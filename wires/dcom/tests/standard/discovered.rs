//! What objects and hosts tell of themselves: contracts, type information, lists.

use super::*;

#[test]
fn an_object_tells_its_contract() {
    let house = house();
    let discovery = DCOM.discover(&house.lamp).unwrap();
    assert_eq!(discovery.own, 1);
    let told = discovery.contract.interfaces().next().unwrap();
    assert_eq!(iid_of(told), iid_of(&LAMP));
    assert_eq!(told.operations.len(), LAMP.operations.len());
}

#[test]
fn type_information_tells_the_members_and_the_events() {
    let house = house();
    let discovery = everywire_dcom::discover::by_type_information(&house.lamp).unwrap();
    let told = discovery.contract.interfaces().next().unwrap();
    assert_eq!(
        (told.name.as_ref(), iid_of(told), told.kind),
        ("ILamp", iid_of(&LAMP), InterfaceKind::Dispatch)
    );
    let members: Vec<_> = told.operations.iter().map(|held| (held.name.as_ref(), held.id.unwrap())).collect();
    assert_eq!(
        members,
        [("Light", 7), ("Split", 2), ("Break", 3), ("get_Color", 0), ("put_Color", 0), ("Sort", 6)]
    );
    let split: Vec<_> = told.operations[1]
        .parameters
        .iter()
        .map(|held| (held.field.name.as_ref(), held.direction, held.field.shape.noun()))
        .collect();
    let expected = [
        ("whole", Direction::In, "f64"),
        ("left", Direction::Out, "i32"),
        ("right", Direction::InOut, "i32"),
    ];
    assert_eq!(split, expected.map(|(name, direction, noun)| (name, direction, noun.into())));
    assert_eq!(told.attributes[0].name, "Color");
    assert_eq!(told.attributes[0].setter, Some(4));
    let signals: Vec<_> = told.signals.iter().map(|held| held.name.as_ref()).collect();
    assert_eq!(signals, ["Lit", "Dark", "Warm", "Noted"]);
    let (sink, index) = told.signals[0].sink.as_ref().unwrap();
    assert_eq!((iid_of(sink), *index), (iid_of(&EVENTS), 0));
}

#[test]
fn a_host_tells_what_it_serves() {
    let house = house();
    let all = house.client.list(&format!("{}?level=none", house.place)).unwrap();
    assert_eq!(all[0].name, "OXID resolver");
    let names: Vec<&str> = all.iter().map(|presence| presence.name.as_str()).collect();
    assert!(names.contains(&"ILamp"), "{names:?}");
    assert!(names.contains(&"Endpoint mapper"), "{names:?}");
}

/// One of many interfaces.
struct Plain(Interface);

impl Servant for Plain {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| request.reply::<_, Failure>(Ok(())));
    }
}

#[test]
fn a_long_list_of_interfaces_comes_page_by_page() {
    let house = house();
    for number in 0..250_u128 {
        let id = Uuid::from_u128(0x7a1e_0b1c_0c55_4d0e_9b6e_0000_0000_0000 + number).to_string().into();
        let interface = Interface { name: format!("INumber{number}").into(), id, ..EVENTS.clone() };
        house.server.export_servant(format!("number-{number}"), Arc::new(Plain(interface)));
    }
    let all = house.client.list(&format!("{}?level=none", house.place)).unwrap();
    for number in 0..250 {
        let name = format!("INumber{number}");
        assert_eq!(all.iter().filter(|presence| presence.name == name).count(), 1, "{name}");
    }
}
