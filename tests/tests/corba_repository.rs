//! Interface repositories: ours, read by us, by omniORB's stubs and by JacORB's; JacORB's, read by us; and servers that have none, or
//! whose repository lies.

use crate::common::foreign::{Beside, contract, patient, run, script, until};
use crate::common::{Server, omniorb, scratch, shelf};
use everywire::model::contract::left_out;
use everywire::model::describe::{Field, Name, Shape};
use everywire::model::{Answer, Constant, Contract, Discovery, Hold, Operation, Request, Servant, Sink};
use everywire::{Failure, Initiator, Interface, Kind, Node, Object, Reference, Value};
use everywire_tests::peers::{cached, here, root};
use everywire_tests::workshop::once;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An object that is asked only what it is.
struct Silent(Hold<Interface>, Vec<Constant>);

impl Servant for Silent {
    fn interface(&self) -> &Interface {
        &self.0
    }

    fn constants(&self) -> Vec<Constant> {
        self.1.clone()
    }

    fn dispatch(&self, mut request: Request) {
        let silent = Failure::new(Kind::Unsupported, Initiator::Peer, "it does nothing");
        request.answer(Answer::Failed(&silent));
    }
}

fn read(path: &Path) -> Contract {
    everywire_idl::read(path).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A node that serves an object of each interface of a contract, under the interface's name.
fn serving(contract: &Contract) -> Node {
    let node = patient();
    node.listen("iiop://127.0.0.1:0").expect("a free port");
    for interface in contract.interfaces() {
        let constants = contract.constants().cloned().collect();
        node.export_servant(&*interface.name, Arc::new(Silent(interface.clone(), constants)));
    }
    node
}

fn discover(object: &Object) -> Result<Discovery, Failure> {
    everywire::wires::named("giop").expect("the wire").discover(object)
}

/// What an object of a node tells, asked from outside.
fn told_by(node: &Node, key: &str) -> Discovery {
    let reference = node.print(&node.reference(key).expect("served"));
    let asker = patient();
    discover(&asker.object(&reference).expect("a reference"))
        .unwrap_or_else(|failure| panic!("{key}: {failure}"))
}

/// A shape with all that is in it; of a type within itself, the name.
fn deep(shape: &Shape, around: &mut Vec<String>) -> String {
    let mut named = |name: &Name, id: &Name, inside: &mut dyn FnMut(&mut Vec<String>) -> String| {
        let known = format!("{name} {id}");
        if around.contains(&known) {
            return known;
        }
        around.push(known.clone());
        let text = format!("{known} {{{}}}", inside(around));
        around.pop();
        text
    };
    let fields = |fields: &[Field], around: &mut Vec<String>| {
        let each = fields.iter().map(|field| format!("{} {}", deep(&field.shape, around), field.name));
        each.collect::<Vec<_>>().join("; ")
    };
    match shape {
        Shape::Struct(held) => named(&held.name, &held.id, &mut |around| fields(&held.fields, around)),
        Shape::Union(held) => named(&held.name, &held.id, &mut |around| {
            let arms = held.arms.iter().map(|arm| {
                let labels: BTreeSet<i64> = arm.labels.iter().copied().collect();
                format!("{labels:?} {} {} {}", arm.default, deep(&arm.field.shape, around), arm.field.name)
            });
            let arms = arms.collect::<Vec<_>>().join("; ");
            format!("{} {arms}", deep(&held.discriminator, around))
        }),
        Shape::Enum(held) => {
            named(&held.name, &held.id, &mut |_| format!("{:?} {}", held.members, held.bits))
        }
        Shape::Alias(held) if !held.name.is_empty() => {
            named(&held.name, &held.id, &mut |around| deep(&held.target, around))
        }
        Shape::Alias(held) => format!("#{} {}", held.id, deep(&held.target, around)),
        Shape::Sequence(held) => format!("sequence {:?} {}", held.bound, deep(&held.element, around)),
        Shape::Array(held) => format!("array {} {}", held.len, deep(&held.element, around)),
        Shape::Reference(held) => format!("reference {} {}", held.name, held.id),
        plain => format!("{plain:?}"),
    }
}

/// All that a caller needs to know of an interface. Attributes have no place among the operations in a repository.
fn members(interface: &Interface) -> BTreeSet<String> {
    let around = &mut Vec::new();
    let mut all = BTreeSet::new();
    for operation in interface.operations.iter() {
        let mut text = format!("{} {} {}(", operation.name, operation.label, operation.oneway);
        for parameter in operation.parameters.iter() {
            let shape = deep(&parameter.field.shape, around);
            text += &format!("{:?} {shape} {}, ", parameter.direction, parameter.field.name);
        }
        text += &format!(") {}", deep(&operation.returns, around));
        let raises = operation.raises.iter().map(|raised| deep(&Shape::Struct(raised.clone()), around));
        text += &format!(" {:?}", raises.collect::<BTreeSet<_>>());
        text += &format!(" of {}", interface.declaring(&operation.name).id);
        all.insert(text);
    }
    for attribute in interface.attributes.iter() {
        let accessor = |index: usize| interface.operations[index].name.clone();
        all.insert(format!(
            "attribute {} {} {} {:?}",
            attribute.name,
            deep(&attribute.shape, around),
            accessor(attribute.getter),
            attribute.setter.map(accessor),
        ));
    }
    let bases: BTreeSet<String> =
        interface.bases.iter().map(|base| format!("base {} {}", base.name, base.id)).collect();
    all.extend(bases);
    all.insert(format!("interface {} {}", interface.name, interface.id));
    all
}

/// The constants of an interface, of its bases, and of the modules around them, each as text.
fn constants(contract: &Contract, of: &Interface) -> BTreeSet<String> {
    let mut scopes = BTreeSet::new();
    let mut all = vec![of];
    while let Some(next) = all.pop() {
        all.extend(next.bases.iter().map(|base| &**base));
        let parts: Vec<&str> = next.name.split("::").collect();
        scopes.extend(
            (0..=parts.len()).map(|count| parts.iter().take(count).copied().collect::<Vec<_>>().join("::")),
        );
    }
    let scope = |name: &str| name.rsplit_once("::").map(|(scope, _)| scope.to_owned()).unwrap_or_default();
    let within = contract.constants().filter(|constant| scopes.contains(&scope(&constant.name)));
    within
        .map(|constant| {
            format!("{} {} {:?}", constant.name, deep(&constant.shape, &mut Vec::new()), constant.value)
        })
        .collect()
}

/// The object of each interface of a contract tells the same as the contract; how many did.
fn same_as_the_file(contract: &Contract) -> usize {
    let node = serving(contract);
    for interface in contract.interfaces() {
        let told = told_by(&node, &interface.name);
        assert_eq!(told.own, 1);
        assert_eq!(
            constants(&told.contract, interface),
            constants(contract, interface),
            "{}",
            interface.name
        );
        let ours = told.contract.interface(&interface.id).expect("its own interface");
        assert_eq!(members(ours), members(interface), "{}", interface.name);
        for base in interface.bases.iter() {
            let told = told.contract.interface(&base.id).expect("its bases");
            assert_eq!(members(told), members(base), "{}", base.name);
        }
    }
    contract.interfaces().count()
}

/// Type codes of value types are told, and read by nobody here yet: what needs them is named.
#[test]
fn what_needs_a_value_type_is_left_out_by_name() {
    let text = "valuetype V { public long x; }; valuetype S string; struct Inner { V held; };
        interface A { void f(in V v); long g(in long x); S h(); void i(in Inner v); readonly attribute V w; };";
    let contract = everywire_idl::omg::parse(text, "a.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let told = told_by(&serving(&contract), "A");
    let ours = told.contract.interface("IDL:A:1.0").expect("its own interface");
    let names: Vec<&str> = ours.operations.iter().map(|operation| &*operation.name).collect();
    assert_eq!(names, ["g"]);
    let missing: Vec<&str> =
        left_out(&ours.notes).filter_map(|note| note.strip_prefix('`')?.split('`').next()).collect();
    assert_eq!(missing, ["f", "h", "i", "w"]);
}

#[test]
fn an_object_tells_what_the_file_of_its_contract_says() {
    for file in ["tests/contracts/plant.idl", "derby/rivals/omniorb/interop.idl", "derby/contracts/bench.idl"]
    {
        assert!(same_as_the_file(&read(&root().join(file))) >= 2, "{file}");
    }
    // Prefixes, raising attributes, and ids that do not show a name.
    let odd = r#"
        #pragma prefix "acme.example"
        module outer {
          exception Jammed { long code; };
          struct Odd { long x; };
          #pragma ID Odd "IDL:quite/another/thing:7.3"
          typedef sequence<Odd> Odds;
          module inner { interface Valve { Odds pick(in Odd o); }; };
          interface Plain : inner::Valve {
            attribute Odd setting getraises (Jammed) setraises (Jammed);
          };
        };
    "#;
    let contract = everywire_idl::omg::parse(odd, "odd.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(same_as_the_file(&contract), 2);
}

/// The contracts of the OMG's services, as omniORB's packages install them: whatever an interface has is told, and nothing else.
#[test]
fn the_contracts_of_the_services_are_told_as_their_files_say() {
    let test = "the_contracts_of_the_services_are_told_as_their_files_say";
    if !here(test, &["omniorb-contracts"]) {
        return;
    }
    let mut count = 0;
    for file in std::fs::read_dir("/usr/share/idl/omniORB/COS").expect("installed") {
        let path = file.expect("a file").path();
        // Some are no contracts of their own, or need files that are not there.
        if let Ok(contract) = everywire_idl::read(&path)
            && contract.interfaces().all(|interface| left_out(&interface.notes).next().is_none())
        {
            count += same_as_the_file(&contract);
        }
    }
    assert!(count > 100, "only {count} interfaces were compared");
}

#[test]
fn an_object_with_several_interfaces_tells_all_of_them() {
    let contract = read(&contract("plant.idl"));
    let node = serving(&contract);
    let second =
        everywire_idl::omg::parse("interface Second { long more(in long n); };", "second.idl").unwrap();
    let second = second.interface("Second").expect("defined").clone();
    node.export_servant("plant::Tank", Arc::new(Silent(second, Vec::new())));
    let told = told_by(&node, "plant::Tank");
    let names: Vec<&str> = told.contract.interfaces().take(told.own).map(|held| held.name.as_ref()).collect();
    assert_eq!(names, ["plant::Tank", "Second"]);
    assert!(told.contract.interface("plant::Base").is_some());
}

/// What is served later, and what is served no longer.
#[test]
fn the_repository_follows_what_is_served() {
    let contract = read(&contract("plant.idl"));
    let node = serving(&contract);
    told_by(&node, "plant::Tank");
    let later = everywire_idl::omg::parse("interface Later { void f(); };", "later.idl").unwrap();
    node.export_servant(
        "later",
        Arc::new(Silent(later.interface("Later").expect("defined").clone(), Vec::new())),
    );
    assert_eq!(told_by(&node, "later").contract.interfaces().count(), 1);
    let reference = node.print(&node.reference("later").expect("served"));
    node.withdraw("later");
    let asker = patient();
    let gone = discover(&asker.object(&reference).expect("a reference")).expect_err("it is gone");
    assert_eq!(gone.kind(), Kind::NoObject, "{gone}");
    // A key that nobody has, and the operations that every object answers.
    let object = |key: &str| {
        let reference = node.published_as("", key);
        asker.object(&node.print(&reference)).expect("a reference")
    };
    assert_eq!(discover(&object("nobody")).expect_err("nobody").kind(), Kind::NoObject);
    let nothing = |_: &mut dyn Sink| Ok(());
    let reference = Shape::Reference(Hold::new(everywire::model::describe::Referent {
        name: Name::default(),
        id: Name::default(),
    }));
    let component = Operation::new("_component", Vec::new(), reference);
    let answer = object("plant::Tank").call::<_, (Option<Reference>,), Failure>(&component, ());
    assert_eq!(answer.expect("answered"), (None,));
    let id = Operation::new("_repository_id", Vec::new(), everywire::model::describe::TEXT);
    let answer = object("plant::Tank").call::<_, (String,), Failure>(&id, ());
    assert_eq!(answer.expect("answered").0, "IDL:plant/Tank:1.0");
    // Definitions are objects: they can be asked whether they are there, and of what type they are.
    let definition = object("InterfaceRepository/InterfaceDef/IDL:plant/Tank:1.0");
    definition.target().probe().expect("it is there");
    assert_eq!(
        object("InterfaceRepository/InterfaceDef/IDL:no:1.0").target().probe().unwrap_err().kind(),
        Kind::NoObject
    );
    let own = definition.call::<_, (String,), Failure>(&id, ()).expect("answered").0;
    assert!(own.contains("InterfaceDef"), "{own}");
    // What one kind of definition answers, another does not, nor does an object of the user's.
    for (key, operation) in
        [("plant::Tank", "describe_interface"), ("InterfaceRepository", "describe_interface")]
    {
        let wrong = Operation::new(operation, Vec::new(), Shape::Void);
        let outcome = object(key).invoke(&wrong, &nothing);
        let everywire::model::Outcome::Failed(failure) = outcome else { panic!("{key} answers {operation}") };
        assert!(matches!(failure.kind(), Kind::NoOperation | Kind::NoObject), "{failure}");
    }
}

/// omniORB's stubs of the repository, compiled; or nothing, said loudly.
fn omniorb_reader(test: &str) -> Option<PathBuf> {
    here(test, &["g++", "omniorb"]).then(|| {
        let source = script("corba_repository.cc");
        once(env!("CARGO_TARGET_TMPDIR"), "corba_repository", std::slice::from_ref(&source), |fresh| {
            run(Command::new("g++").args(["-O1", "-Wall", "-o"]).arg(fresh).arg(&source).args([
                "-lomniDynamic4",
                "-lomniORB4",
                "-lomnithread",
                "-lpthread",
            ]));
        })
    })
}

#[test]
fn omniorb_reads_our_repository() {
    let Some(reader) = omniorb_reader("omniorb_reads_our_repository") else { return };
    for (file, interface) in [
        ("tests/contracts/plant.idl", "plant::Tank"),
        ("derby/rivals/omniorb/interop.idl", "interop::Kitchen"),
    ] {
        let node = serving(&read(&root().join(file)));
        let reference = node.print(&node.reference(interface).expect("served"));
        let said = run(Command::new(&reader).arg(&reference).args(["-ORBendPoint", "giop:tcp:127.0.0.1:"]));
        if interface != "plant::Tank" {
            assert!(said.contains("interface ::interop::Kitchen IDL:interop/Kitchen:1.0"), "{said}");
            continue;
        }
        for line in [
            "interface ::plant::Tank IDL:plant/Tank:1.0 version 1.0",
            "base IDL:plant/Base:1.0",
            "operation void ping() of IDL:plant/Base:1.0",
            "operation double fill(in double litres, out IDL:plant/Point:1.0 at) raises IDL:plant/Empty:1.0 long code string why of IDL:plant/Tank:1.0",
            "operation string<8> shorten(in IDL:plant/Brief:1.0 s, in IDL:plant/Trio:1.0 a) of IDL:plant/Tank:1.0",
            "operation oneway void hint(in string what) of IDL:plant/Tank:1.0",
            "attribute readonly string name of IDL:plant/Base:1.0",
            "definition ::plant IDL:plant:1.0",
            "definition ::plant::Node IDL:plant/Node:1.0 string label IDL:plant/Nodes:1.0 children",
            "definition ::plant::Choice IDL:plant/Choice:1.0 switch IDL:plant/Colour:1.0 long number string text string text",
            "definition ::plant::Brief IDL:plant/Brief:1.0 sequence<string<4>,3>",
            "definition ::plant::Trio IDL:plant/Trio:1.0 long[3]",
            "definition ::plant::CAPACITY IDL:plant/CAPACITY:1.0 long = 500",
            "definition ::plant::FAVOURITE IDL:plant/FAVOURITE:1.0 IDL:plant/Colour:1.0 =",
            "definition ::plant::Tank::UNIT IDL:plant/Tank/UNIT:1.0 string = l",
            "definition ::plant::Tank::HALF IDL:plant/Tank/HALF:1.0 double = 0.500000",
        ] {
            assert!(said.lines().any(|said| said == line), "{line} in\n{said}");
        }
    }
}

/// omniORB has no repository of its own: that is said, and what to do.
#[test]
fn a_server_without_a_repository_is_told_from_others() {
    let Some(peer) = omniorb("a_server_without_a_repository_is_told_from_others") else { return };
    let server = Server::omniorb(&peer, "tcp", &scratch("no-repository"));
    let node = patient();
    let object = |name: &str| node.object(&server.reference(name)).expect("a reference");
    let lacking = discover(&object("Kitchen")).expect_err("there is none");
    assert_eq!(lacking.kind(), Kind::Unsupported, "{lacking}");
    assert!(lacking.message().contains("CORBA::INTF_REPOS"), "{lacking}");
    assert!(lacking.hint().is_some_and(|hint| hint.contains("--contract")), "{lacking}");
}

/// JacORB's program, compiled with the contract; or nothing, said loudly.
fn jacorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let libraries = format!("{}/lib/*", cached(test, "jacorb")?.display());
    let sources = [script("corba_JacORB.java"), contract("plant.idl")];
    let compiled = once(env!("CARGO_TARGET_TMPDIR"), "jacorb", &sources, |fresh| {
        let generated = shelf().join("jacorb");
        std::fs::create_dir_all(fresh).expect("a directory");
        let mut idl = Command::new("java");
        idl.args(["-XX:TieredStopAtLevel=1", "-cp", &libraries, "org.jacorb.idl.parser", "-ir", "-d"]);
        run(idl.arg(&generated).arg(&sources[1]));
        let of_plant = std::fs::read_dir(generated.join("plant")).expect("generated");
        let of_plant: Vec<PathBuf> = of_plant.map(|file| file.expect("a file").path()).collect();
        let mut javac = Command::new("javac");
        javac.args(["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-cp", &libraries, "-d"]);
        run(javac.arg(fresh).arg(&sources[0]).args(of_plant));
    });
    Some(move |words: &[&str]| {
        let mut command = Command::new("java");
        command.args(["-XX:TieredStopAtLevel=1", "-cp"]).arg(format!("{}:{libraries}", compiled.display()));
        command.arg("corba_JacORB").args(words);
        command
    })
}

#[test]
fn jacorb_reads_our_repository() {
    let Some(java) = jacorb("jacorb_reads_our_repository") else { return };
    let node = serving(&read(&contract("plant.idl")));
    let said = run(&mut java(&["read", &node.print(&node.reference("plant::Tank").expect("served"))]));
    for line in [
        "interface ::plant::Tank IDL:plant/Tank:1.0",
        "base IDL:plant/Base:1.0 true",
        "operation fill kind 7, 0 litres kind 7, 1 at IDL:plant/Point:1.0 raises IDL:plant/Empty:1.0 of IDL:plant/Tank:1.0",
        "operation history IDL:plant/Path:1.0, 0 n kind 3, 2 c IDL:plant/Colour:1.0 of IDL:plant/Tank:1.0",
        "operation other IDL:plant/Base:1.0, 0 of IDL:plant/Tank:1.0, 0 any_object IDL:omg.org/CORBA/Object:1.0 of IDL:plant/Tank:1.0",
        "attribute name kind 18 1 of IDL:plant/Base:1.0",
        "definition ::plant::Node 10 IDL:omg.org/CORBA/TypeDescription:1.0",
        "definition ::plant::CAPACITY 3 IDL:omg.org/CORBA/ConstantDescription:1.0",
        "definition ::plant::Tank::UNIT 3 IDL:omg.org/CORBA/ConstantDescription:1.0",
        "definition ::plant::Tank::fill 7 IDL:omg.org/CORBA/OperationDescription:1.0",
    ] {
        assert!(said.lines().any(|said| said == line), "{line} in\n{said}");
    }
}

#[test]
fn we_read_the_repository_of_jacorb() {
    let Some(java) = jacorb("we_read_the_repository_of_jacorb") else { return };
    let dir = scratch("jacorb-repository");
    let file = |name: &str| dir.join(name).display().to_string();
    let written = |name: &str| {
        let path = dir.join(name);
        until("a reference is written", || std::fs::metadata(&path).is_ok_and(|data| data.len() > 100));
        std::fs::read_to_string(path).expect("a reference").trim().to_owned()
    };
    let _repository = Beside::start(&mut java(&["repository", &file("repository")]));
    written("repository");
    let _server = Beside::start(&mut java(&["serve", &file("repository"), &file("tank")]));
    let node = patient();
    let object = node.object(&written("tank")).expect("a reference");
    let told = discover(&object).unwrap_or_else(|failure| panic!("{failure}"));
    let tank = told.contract.interfaces().next().expect("an interface").clone();
    // Java's reflection is where its repository has its contracts from: bounds of strings and signs of numbers are lost, and the contract
    // has none of these but one.
    let ours = read(&contract("plant.idl"));
    let ours = ours.interface("plant::Tank").expect("defined");
    let (told, file): (BTreeSet<String>, BTreeSet<String>) = (members(&tank), members(ours));
    let differs: Vec<&String> = file.difference(&told).collect();
    assert!(
        differs.iter().all(|line| line.starts_with("shorten ") || line.starts_with("hint ")),
        "{differs:#?}\n{told:#?}"
    );
    // What was told is called.
    let fill = tank.operations.iter().find(|operation| operation.name == "fill").expect("an operation");
    let results = object.call::<_, (f64, (f64, f64)), Failure>(fill, (3.0,));
    assert_eq!(results.map(|(level, _)| level).ok().map(|level| level.to_bits()), Some(7_f64.to_bits()));
}

/// A repository that lies in one of these ways.
struct Liar {
    interface: Interface,
    way: Way,
    node: everywire::WeakNode,
    asked: Arc<AtomicU32>,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// An interface is derived from itself.
    Itself,
    /// Each base has another one, and so on.
    Endless,
    /// There are a thousand bases.
    Many,
    /// What answers as an interface is none.
    Nothing,
}

impl Servant for Liar {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn dispatch(&self, mut request: Request) {
        let name = self.interface.operations.get(request.index()).map(|operation| operation.name.to_string());
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let Some(node) = self.node.upgrade() else { return };
        let me = node.published_as("IDL:omg.org/CORBA/InterfaceDef:1.0", request.key());
        let text = |text: String| Value::Text(text);
        let id = match self.way {
            Way::Itself => "IDL:liar:1.0".to_owned(),
            _ => format!("IDL:liar{asked}:1.0"),
        };
        let value = match name.as_deref() {
            Some("_interface") => Value::Reference(Some(me)),
            Some("describe_interface") if !matches!(self.way, Way::Nothing) => {
                let code = everywire::model::TypeCode::new(Shape::Void);
                let field = |name: &str, value: Value| (name.to_owned(), value);
                let ends = matches!(self.way, Way::Many) && asked > 1;
                let bases = if ends { Vec::new() } else { vec![text("IDL:other:1.0".into())] };
                Value::Struct(vec![
                    field("name", text("liar".into())),
                    field("id", text(id)),
                    field("defined_in", text(String::new())),
                    field("version", text("1.0".into())),
                    field("operations", Value::List(Vec::new())),
                    field("attributes", Value::List(Vec::new())),
                    field("base_interfaces", Value::List(bases)),
                    field("type", Value::TypeCode(Box::new(code))),
                ])
            }
            Some("_get_base_interfaces") => {
                let count = if matches!(self.way, Way::Many) { 1000 } else { 1 };
                Value::List(vec![Value::Reference(Some(me)); count])
            }
            Some("_get_absolute_name") => text("::liar".to_owned()),
            _ => {
                let silent = Failure::new(Kind::Internal, Initiator::Peer, "it does not say");
                return request.answer(Answer::Failed(&silent));
            }
        };
        let results = &self.interface.operations[request.index()].results;
        let values = Value::Struct(vec![("return".to_owned(), value)]);
        request.answer(Answer::Done(&|sink: &mut dyn Sink| values.encode(results, sink)));
    }
}

#[test]
fn a_repository_that_lies_ends_the_question() {
    let repository = read(&root().join("wires/giop/contracts/repository.idl"));
    let definition = repository.interface("CORBA::InterfaceDef").expect("defined");
    let mut interface = (**definition).clone();
    let reference = Shape::Reference(Hold::new(everywire::model::describe::Referent {
        name: Name::default(),
        id: Name::default(),
    }));
    interface.operations.to_mut().push(Operation::new("_interface", Vec::new(), reference));
    for (way, kind, most) in [
        (Way::Itself, Kind::Malformed, 10),
        (Way::Endless, Kind::LimitExceeded, 200),
        (Way::Many, Kind::LimitExceeded, 3_000),
        (Way::Nothing, Kind::Internal, 10),
    ] {
        let node = patient();
        node.listen("iiop://127.0.0.1:0").expect("a free port");
        let asked = Arc::new(AtomicU32::new(0));
        let liar =
            Liar { interface: interface.clone(), way, node: node.downgrade(), asked: Arc::clone(&asked) };
        let reference = node.export_servant("liar", Arc::new(liar));
        let object = patient();
        let object = object.object(&node.print(&reference)).expect("a reference");
        let failure = discover(&object).expect_err("it lies");
        assert_eq!(failure.kind(), kind, "{way:?}: {failure}");
        assert!(asked.load(Ordering::Relaxed) < most, "{way:?}: asked {asked:?} times");
    }
}
