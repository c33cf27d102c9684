//! Names: the context that every node serves, read by omniORB's `nameclt`; omniORB's naming service, walked by us.

use crate::common::foreign::{Beside, contract, run, run_with, until};
use crate::common::scratch;
use everywire::model::visit::Encode;
use everywire::model::{Answer, Contract, Hold, Outcome, PresenceList, Request, Servant, Sink};
use everywire::{Failure, Initiator, Interface, Kind, Node, Reference, Value, WeakNode};
use everywire_tests::peers::{cached, here, root};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An object that only is there.
struct Silent(Hold<Interface>);

impl Servant for Silent {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn dispatch(&self, mut request: Request) {
        let silent = Failure::new(Kind::Unsupported, Initiator::Peer, "it does nothing");
        request.answer(Answer::Failed(&silent));
    }
}

fn base() -> Hold<Interface> {
    let plant = everywire_idl::read(contract("plant.idl")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    plant.interface("plant::Base").expect("defined").clone()
}

/// A context whose names are large, and its iterator, which has a hundred pages of one.
struct Large {
    interface: Interface,
    node: WeakNode,
    pages: Arc<AtomicU32>,
}

impl Servant for Large {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, mut request: Request) {
        let Some(node) = self.node.upgrade() else { return };
        let Some(operation) = self.interface.operations.get(request.index()) else { return };
        let field = |name: &str, value: Value| (name.to_owned(), value);
        let page = || {
            let kind = field("binding_type", Value::Member("nobject".to_owned()));
            let large = name(&[(&"large ".repeat(1 << 19), "")]);
            Value::List(vec![Value::Struct(vec![field("binding_name", large), kind])])
        };
        let results = match &*operation.name {
            "list" => {
                let rest = node.published_as("IDL:omg.org/CosNaming/BindingIterator:1.0", b"pages");
                vec![field("bl", page()), field("bi", Value::Reference(Some(rest)))]
            }
            "next_n" => {
                let more = self.pages.fetch_add(1, Ordering::Relaxed) < 100;
                vec![field("return", Value::Bool(more)), field("bl", page())]
            }
            "destroy" => Vec::new(),
            _ => {
                let silent = Failure::new(Kind::Internal, Initiator::Peer, "it does not say");
                return request.answer(Answer::Failed(&silent));
            }
        };
        let values = Value::Struct(results);
        request.answer(Answer::Done(&|sink: &mut dyn Sink| values.encode(&operation.results, sink)));
    }
}

#[test]
fn a_naming_service_cannot_fill_the_memory_of_who_lists_it() {
    let (node, pages) = (Node::new(), Arc::new(AtomicU32::new(0)));
    let address = node.listen("iiop://127.0.0.1:0").expect("a free port");
    for (key, interface) in [("names", "CosNaming::NamingContext"), ("pages", "CosNaming::BindingIterator")] {
        let interface = (**naming().interface(interface).expect("defined")).clone();
        node.export_servant(
            key,
            Arc::new(Large { interface, node: node.downgrade(), pages: Arc::clone(&pages) }),
        );
    }
    // What there was of them is told.
    assert!(!list(&format!("{address}names")).expect("it answers").is_empty());
    // Each has 3 MiB.
    assert!(pages.load(Ordering::Relaxed) < 30, "{pages:?} pages");
}

/// A node that serves an object under each of these keys, and its address.
fn serving<'k>(keys: impl IntoIterator<Item = &'k [u8]>) -> (Node, String) {
    let node = Node::new();
    let address = node.listen("iiop://127.0.0.1:0").expect("a free port");
    let base = base();
    keys.into_iter().for_each(|key| drop(node.export_servant(key, Arc::new(Silent(base.clone())))));
    (node, address.trim_end_matches('/').to_owned())
}

fn list(address: &str) -> Result<PresenceList, Failure> {
    Node::new().list(address)
}

/// The contract of naming services.
fn naming() -> Contract {
    everywire_idl::read(root().join("wires/giop/contracts/naming.idl"))
        .unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Asks the context behind a reference.
fn ask(node: &Node, context: &str, operation: &str, arguments: Value) -> Result<Value, Failure> {
    let naming = naming();
    let interface = naming.interface("CosNaming::NamingContextExt").expect("defined");
    let held = interface.operations.iter().find(|held| held.name == operation).expect("an operation");
    let object = node.object(context).expect("a reference");
    let encode = |sink: &mut dyn Sink| arguments.encode(&held.arguments, sink);
    let encode: &dyn Encode = &encode;
    match object.invoke(held, encode) {
        Outcome::Done(body) => body.read(|source| Value::decode(&held.results, source)),
        Outcome::Failed(failure) => Err(failure),
        Outcome::Raised(raised) => Err(Failure::new(Kind::Internal, Initiator::Peer, raised.id.clone())),
        Outcome::Moved(_) => panic!("it moved"),
    }
}

fn name(parts: &[(&str, &str)]) -> Value {
    let component = |(id, kind): &(&str, &str)| {
        let text = |text: &str| Value::Text(text.to_owned());
        Value::Struct(vec![("id".to_owned(), text(id)), ("kind".to_owned(), text(kind))])
    };
    Value::List(parts.iter().map(component).collect())
}

fn named(value: Value) -> Value {
    Value::Struct(vec![("n".to_owned(), value)])
}

/// Binds a name to an object, or a context.
fn bind(node: &Node, context: &str, operation: &str, parts: &[(&str, &str)], to: &Reference) {
    let (given, what) = (name(parts), Value::Reference(Some(to.clone())));
    let arguments = Value::Struct(vec![("n".to_owned(), given), ("obj".to_owned(), what)]);
    ask(node, context, operation, arguments).unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_node_lists_what_it_serves() {
    let many: Vec<String> = (0..450).map(|number| format!("many/{number:03}")).collect();
    let odd: [&[u8]; 4] = [b"tank.v1", b"/org/example/Tank", b"\xff\x01", b"x."];
    let (node, address) = serving(odd.into_iter().chain(many.iter().map(String::as_bytes)));
    let found = list(&address).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(found.len(), 454);
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    for name in ["tank.v1", r"\/org\/example\/Tank", "%ff%01", r"x\.", r"many\/449"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    // Each name leads to its object, by its address and as a name.
    let asker = Node::new();
    for one in found.iter().step_by(75).chain(&found[..4]) {
        let by_address = asker.object(&one.address).expect("an address");
        by_address.target().probe().unwrap_or_else(|failure| panic!("{}: {failure}", one.name));
        let escaped = everywire::model::reference::escape(one.name.as_bytes());
        let text = format!("corbaname::{}#{escaped}", address.trim_start_matches("iiop://"));
        let by_name = asker.object(&text).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert_eq!(by_name.reference().type_id, "IDL:plant/Base:1.0", "{text}");
        by_name.target().probe().unwrap_or_else(|failure| panic!("{text}: {failure}"));
    }
    let none = asker.object(&format!("corbaname::{}#none", address.trim_start_matches("iiop://")));
    assert_eq!(none.expect_err("no such name").kind(), Kind::NoObject);
    // What is no context, and what is not there.
    assert_eq!(list(&format!("{address}/tank.v1")).expect_err("an object").kind(), Kind::BadArgument);
    assert_eq!(list(&format!("{address}/nobody")).expect_err("nobody").kind(), Kind::NoObject);
    drop(node);
}

#[test]
fn the_names_of_a_node_can_only_be_read() {
    let (node, address) = serving([&b"tank"[..]]);
    let context = format!("{address}/NameService");
    let to_tank = node.reference("tank").expect("served");
    let arguments = Value::Struct(vec![
        ("n".to_owned(), name(&[("a", "")])),
        ("obj".to_owned(), Value::Reference(Some(to_tank))),
    ]);
    let refused = ask(&node, &context, "bind", arguments).expect_err("it is not bound");
    assert_eq!(refused.kind(), Kind::Refused, "{refused}");
    for (parts, raised) in [
        (&[][..], "IDL:omg.org/CosNaming/NamingContext/InvalidName:1.0"),
        (&[("none", "")][..], "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0"),
        (&[("tank", ""), ("x", "")][..], "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0"),
    ] {
        let failure = ask(&node, &context, "resolve", named(name(parts))).expect_err("no such name");
        assert_eq!(failure.message(), raised, "{parts:?}");
    }
}

/// omniORB's naming service, beside a test.
struct OmniNames {
    context: String,
    nameclt: PathBuf,
    _service: Beside,
}

impl OmniNames {
    fn start(test: &str) -> Option<Self> {
        if !here(test, &["omniorb"]) {
            return None;
        }
        let programs = cached(test, "omniorb-naming")?.join("usr/bin");
        let dir = scratch(&format!("names-{test}"));
        let mut command = Command::new(programs.join("omniNames"));
        command.args(["-start", "-ignoreport", "-ORBendPoint", "giop:tcp:127.0.0.1:", "-datadir"]).arg(&dir);
        let service = Beside::start(&mut command);
        let told = || {
            let log = service.errors();
            let reference = log.split_once("Root context is ")?.1.split_whitespace().next()?.to_owned();
            log.contains("Checkpointing completed").then_some(reference)
        };
        until("the naming service tells its reference", || told().is_some());
        let context = told().expect("just told");
        Some(Self { context, nameclt: programs.join("nameclt"), _service: service })
    }
}

#[test]
fn the_names_of_omniorb_are_walked() {
    let Some(names) = OmniNames::start("the_names_of_omniorb_are_walked") else { return };
    let (served, _address) = serving([&b"tank"[..], b"pump"]);
    let [tank, pump] = ["tank", "pump"].map(|key| served.reference(key).expect("served"));
    let node = Node::new();
    let context = names.context.as_str();
    // By omniORB's own tool, and many by its contract.
    let tool = |words: &[&str]| {
        let context = format!("NameService={context}");
        run(Command::new(&names.nameclt).args(["-ORBInitRef", &context]).args(words))
    };
    tool(&["bind_new_context", "plant"]);
    tool(&["bind", "plant/tank.v1", &node.print(&tank)]);
    tool(&["bind", r"plant/a\.b", &node.print(&pump)]);
    for number in 0..450 {
        bind(&node, context, "bind", &[(&format!("n{number}"), "kind")], &pump);
    }
    // A context within itself.
    let around = ask(&node, context, "resolve", named(name(&[("plant", "")]))).expect("bound");
    let Value::Struct(results) = around else { panic!("no results") };
    let Some((_, Value::Reference(Some(plant)))) = results.into_iter().next() else { panic!("no reference") };
    let arguments = Value::Struct(vec![
        ("n".to_owned(), name(&[("plant", ""), ("again", "")])),
        ("nc".to_owned(), Value::Reference(Some(plant))),
    ]);
    ask(&node, context, "bind_context", arguments).unwrap_or_else(|failure| panic!("{failure}"));
    let found = list(context).unwrap_or_else(|failure| panic!("{failure}"));
    let of = |name: &str| {
        let one = found.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} in {found:#?}"));
        (one.details[0].1.clone(), one.details[1].1.clone())
    };
    assert_eq!(found.len(), 450 + 4);
    assert_eq!(of("plant/tank.v1"), ("object".into(), "IDL:plant/Base:1.0".into()));
    assert_eq!(of(r"plant/a\.b").0, "object");
    assert_eq!(of("plant").0, "context");
    assert_eq!(of("plant/again").0, "context");
    assert_eq!(of("n449.kind").0, "object");
    // As the address of a host, as a context, by a name.
    let profile = node.parse(context).expect("a reference").profiles.remove(0);
    let place = profile.endpoints[0].to_string().trim_start_matches("tcp:").to_owned();
    assert_eq!(list(&format!("iiop://{place}")).map(|found| found.len()).ok(), Some(454));
    assert_eq!(list(&format!("corbaloc::{place}/NameService")).map(|found| found.len()).ok(), Some(454));
    assert_eq!(list(&format!("corbaname::{place}#plant")).map(|found| found.len()).ok(), Some(3));
    let by_name = node
        .object(&format!("corbaname::{place}#plant/tank.v1"))
        .unwrap_or_else(|failure| panic!("{failure}"));
    by_name.target().probe().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(by_name.reference().type_id, "IDL:plant/Base:1.0");
    for missing in ["plant/none", "none/tank"] {
        let missing = node.object(&format!("corbaname::{place}#{missing}")).expect_err("no such name");
        assert_eq!(missing.kind(), Kind::NoObject, "{missing}");
    }
}

#[test]
fn nameclt_reads_the_names_of_a_node() {
    let test = "nameclt_reads_the_names_of_a_node";
    if !here(test, &["omniorb"]) {
        return;
    }
    let Some(programs) = cached(test, "omniorb-naming") else { return };
    let many: Vec<String> = (0..150).map(|number| format!("n{number:03}.kind")).collect();
    let (node, address) = serving(std::iter::once(&b"tank"[..]).chain(many.iter().map(String::as_bytes)));
    let place = address.trim_start_matches("iiop://");
    let context = format!("NameService=corbaloc::1.2@{place}/NameService");
    let tool = |words: &[&str]| {
        run_with(
            Command::new(programs.join("usr/bin/nameclt")).args(["-ORBInitRef", &context]).args(words),
            b"",
        )
    };
    let listed = tool(&["list"]);
    assert!(listed.success, "{}{}", listed.out, listed.err);
    let names: Vec<&str> = listed.out.lines().map(str::trim).collect();
    assert_eq!(names.len(), 151, "{names:?}");
    assert!(names.contains(&"tank") && names.contains(&"n149.kind"), "{names:?}");
    let resolved = tool(&["resolve", "n007.kind"]);
    let reference =
        node.parse(resolved.out.trim()).unwrap_or_else(|failure| panic!("{failure}: {}", resolved.out));
    assert_eq!(reference.profiles[0].key, "n007.kind");
    let bound = tool(&["bind", "other", resolved.out.trim()]);
    assert!(!bound.success, "{}", bound.out);
}
