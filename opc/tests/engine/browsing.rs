use super::Plant;
use everywire_opc::browse::{Direction, Elements, Filter, Kind, Position, page};
use everywire_opc::{Code, Data, Engine, Item, Settings, Source, Table, VarType};
use std::sync::Arc;

fn names(engine: &Engine, position: &Position, kind: Kind, filter: &Filter) -> Vec<String> {
    position.names(engine.source(), kind, filter.clone()).expect("a branch").collect()
}

fn all() -> Filter {
    Filter::new("", VarType::EMPTY, 0).expect("a filter")
}

#[test]
fn a_client_walks_through_branches() {
    let plant = Plant::new();
    let source = plant.engine.source();
    let mut position = Position::default();
    assert_eq!(names(&plant.engine, &position, Kind::Branches, &all()), ["Tank"]);
    assert_eq!(names(&plant.engine, &position, Kind::Leaves, &all()), ["Curve", "Name"]);
    assert_eq!(position.go(&**source, Direction::Up, ""), Err(Code::FAIL));
    assert_eq!(position.go(&**source, Direction::Down, "Name"), Err(Code::INVALID_ARGUMENT));
    assert_eq!(position.go(&**source, Direction::Down, "Nothing"), Err(Code::INVALID_ARGUMENT));
    position.go(&**source, Direction::Down, "Tank").expect("a branch");
    assert_eq!(names(&plant.engine, &position, Kind::Branches, &all()), Vec::<String>::new());
    let leaves = ["Level", "Mode", "Setpoint", "Valve"];
    assert_eq!(names(&plant.engine, &position, Kind::Leaves, &all()), leaves);
    assert_eq!(position.id(&**source, "Level"), Ok("Tank.Level".to_owned()));
    assert_eq!(position.id(&**source, ""), Ok("Tank".to_owned()));
    assert_eq!(position.id(&**source, "Name"), Ok("Name".to_owned()), "an id is its own");
    assert_eq!(position.id(&**source, "Nothing"), Err(Code::INVALID_ARGUMENT));
    position.go(&**source, Direction::Up, "").expect("the root");
    assert_eq!(position.branch(), "");
    position.go(&**source, Direction::To, "Tank").expect("a branch");
    assert_eq!(position.branch(), "Tank");
    assert_eq!(position.go(&**source, Direction::To, "Name"), Err(Code::INVALID_ARGUMENT));
    position.go(&**source, Direction::To, "").expect("the root");
    assert_eq!(position.branch(), "");
}

#[test]
fn a_flat_list_has_ids_from_every_depth() {
    let plant = Plant::new();
    let ids = names(&plant.engine, &Position::default(), Kind::Flat, &all());
    assert_eq!(ids, ["Curve", "Name", "Tank.Level", "Tank.Mode", "Tank.Setpoint", "Tank.Valve"]);
}

#[test]
fn lists_are_filtered_by_name_type_and_rights() {
    let plant = Plant::new();
    let flat = |text, canonical, access| {
        let filter = Filter::new(text, canonical, access).expect("a filter");
        names(&plant.engine, &Position::default(), Kind::Flat, &filter)
    };
    assert_eq!(flat("tank.[l-m]*", VarType::EMPTY, 0), ["Tank.Level", "Tank.Mode"]);
    assert_eq!(flat("", VarType::BSTR, 0), ["Name"]);
    assert_eq!(flat("", VarType::EMPTY, 2), ["Name", "Tank.Setpoint", "Tank.Valve"]);
    assert_eq!(flat("*", VarType::BOOL, 3), ["Tank.Valve"]);
    assert_eq!(Filter::new("[", VarType::EMPTY, 0).err(), Some(Code::INVALID_FILTER));
    assert_eq!(Filter::new("", VarType::EMPTY, 4).err(), Some(Code::INVALID_ARGUMENT));
}

#[test]
fn a_flat_address_space_has_no_branches() {
    let table = Table::flat();
    table.add(Item::new("a.b", VarType::I2), 1_i16);
    table.add(Item::new("a.c", VarType::I2), 1_i16);
    let engine = Engine::new(Arc::new(table), Settings::default());
    let mut position = Position::default();
    assert_eq!(names(&engine, &position, Kind::Leaves, &all()), ["a.b", "a.c"]);
    assert_eq!(names(&engine, &position, Kind::Flat, &all()), ["a.b", "a.c"]);
    assert_eq!(names(&engine, &position, Kind::Branches, &all()), Vec::<String>::new());
    assert_eq!(position.go(&**engine.source(), Direction::Down, "a"), Err(Code::FAIL));
    assert_eq!(position.id(&**engine.source(), "a.b"), Ok("a.b".to_owned()));
}

#[test]
fn names_that_begin_alike_are_different_branches() {
    let table = Table::new();
    for id in ["P.x", "P-2.x", "P 3", "P", "P!", "Q.P.x", "Q.P", "Q.P-.x"] {
        table.add(Item::new(id, VarType::I2), 1_i16);
    }
    let children = |branch: &str, after: Option<&str>| {
        let children = table.children(branch, after).expect("a branch");
        children.map(|child| (child.name, child.branch.is_some(), child.item.is_some())).collect::<Vec<_>>()
    };
    let expected = [
        ("P", true, true),
        ("P 3", false, true),
        ("P!", false, true),
        ("P-2", true, false),
        ("Q", true, false),
    ];
    let expected = expected.map(|(name, branch, item)| (name.to_owned(), branch, item));
    assert_eq!(children("", None), expected);
    assert_eq!(children("", Some("P")), expected[1..]);
    assert_eq!(children("", Some("P!")), expected[3..]);
    assert_eq!(children("Q", None).len(), 2);
    assert!(table.children("P 3", None).is_none());
    for (name, branch, item) in expected {
        let child = table.child("", &name).expect("a child");
        assert_eq!((child.branch.is_some(), child.item.is_some()), (branch, item), "{name}");
    }
    assert_eq!(table.child("Q", "P").and_then(|child| child.item).as_deref(), Some("Q.P"));
}

#[test]
fn pages_go_on_where_they_ended() {
    let plant = Plant::new();
    let source = plant.engine.source();
    let names = |page: &everywire_opc::browse::Page| {
        page.elements.iter().map(|element| element.name.clone()).collect::<Vec<_>>()
    };
    let first = page(&**source, "Tank", "", 3, Elements::All, "").expect("a branch");
    assert_eq!(names(&first), ["Level", "Mode", "Setpoint"]);
    assert!(!first.continuation.is_empty());
    let second = page(&**source, "Tank", &first.continuation, 3, Elements::All, "").expect("the rest");
    assert_eq!((names(&second), second.continuation.as_str()), (vec!["Valve".to_owned()], ""));
    let root = page(&**source, "", "", 0, Elements::All, "").expect("the root");
    let found: Vec<_> = root
        .elements
        .iter()
        .map(|e| (e.name.as_str(), e.id.as_str(), e.has_children, e.item.is_some()))
        .collect();
    assert_eq!(
        found,
        [("Curve", "Curve", false, true), ("Name", "Name", false, true), ("Tank", "Tank", true, false)]
    );
    assert_eq!(names(&page(&**source, "", "", 0, Elements::Branches, "").expect("the root")), ["Tank"]);
    assert_eq!(names(&page(&**source, "", "", 0, Elements::Items, "N*").expect("the root")), ["Name"]);
    // An item has nothing beneath it.
    assert_eq!(page(&**source, "Name", "", 0, Elements::All, ""), Ok(Default::default()));
}

#[test]
fn a_continuation_point_is_of_its_own_list() {
    let plant = Plant::new();
    let source = &**plant.engine.source();
    let first = page(source, "Tank", "", 1, Elements::All, "").expect("a branch");
    let invalid = Err(Code::INVALID_CONTINUATION);
    assert_eq!(page(source, "", &first.continuation, 1, Elements::All, ""), invalid);
    assert_eq!(page(source, "Tank", &first.continuation, 1, Elements::Items, ""), invalid);
    assert_eq!(page(source, "Tank", "made up", 1, Elements::All, ""), invalid);
    assert_eq!(page(source, "Nothing", "", 1, Elements::All, ""), Err(Code::UNKNOWN_ITEM));
    assert_eq!(page(source, "", "", 1, Elements::All, "[").err(), Some(Code::INVALID_FILTER));
}

/// A million items in one branch: who looks at ten of them pays for ten.
#[test]
fn a_part_of_a_branch_does_not_cost_the_whole() {
    /// A source that makes its million children as they are asked for, and counts them.
    struct Endless(Arc<std::sync::atomic::AtomicUsize>);
    impl Source for Endless {
        fn find(&self, id: &str) -> Option<Arc<Item>> {
            Some(Arc::new(Item::new(id, VarType::I4)))
        }
        fn children(&self, _: &str, after: Option<&str>) -> Option<everywire_opc::Children> {
            let counter = Arc::clone(&self.0);
            let first = after.and_then(|name| name.parse::<u32>().ok()).map_or(0, |last| last + 1);
            Some(Box::new((first..1_000_000).map(move |number| {
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let name = format!("{number:07}");
                everywire_opc::Child { name: name.clone(), branch: None, item: Some(name) }
            })))
        }
        fn read(&self, items: &[Arc<Item>]) -> Vec<Result<everywire_opc::Vqt, Code>> {
            items.iter().map(|_| Err(Code::FAIL)).collect()
        }
        fn write(&self, writes: &[everywire_opc::Write]) -> Vec<Code> {
            writes.iter().map(|_| Code::FAIL).collect()
        }
    }
    let counter = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let source = Arc::new(Endless(Arc::clone(&counter)));
    let engine = Engine::new(source, Settings::default());
    let names: Vec<_> =
        Position::default().names(engine.source(), Kind::Leaves, all()).expect("the root").take(10).collect();
    assert_eq!(names.last().map(String::as_str), Some("0000009"));
    let mut continuation = String::new();
    for _ in 0..5 {
        continuation =
            page(&**engine.source(), "", &continuation, 10, Elements::All, "").expect("a page").continuation;
    }
    assert!(counter.load(std::sync::atomic::Ordering::Relaxed) < 100);
    assert!(continuation.ends_with("0000049"), "{continuation}");
}

#[test]
fn who_browses_while_items_are_added_goes_on_in_what_was() {
    let table = Arc::new(Table::new());
    table.extend((0..100).map(|number| (Item::new(format!("a.{number:03}"), VarType::I2), Data::I2(0))));
    let engine = Engine::new(Arc::clone(&table) as Arc<_>, Settings::default());
    let mut names = Position::default().names(engine.source(), Kind::Flat, all()).expect("the root");
    assert_eq!(names.next().as_deref(), Some("a.000"));
    table.add(Item::new("a.000a", VarType::I2), 0_i16);
    assert_eq!(names.count(), 99);
    assert_eq!(names_of(&engine), 101);
}

fn names_of(engine: &Engine) -> usize {
    names(engine, &Position::default(), Kind::Flat, &all()).len()
}
