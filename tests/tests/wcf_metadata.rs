//! Services tell their contracts: ours to us and to Mono's tools, Mono's to us.

use crate::common::cellar::Cellar;
use crate::common::cellar::contract::cellar::ICellar;
use crate::common::foreign::run;
use crate::common::hello::Remote;
use crate::common::hello::bench::IRemoteObject;
use crate::common::mono::{BASIC, Mono};
use everywire::model::contract::note;
use everywire::model::{Contract, Discovery, Interface, Remote as _};
use everywire::{Kind, Node};
use everywire_tests::peers::here;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;

const OPTIONS: &str = "security=none";

/// A server of ours on several bindings, and the place of each: `HOST:PORT`.
fn serving(schemes: &[&str]) -> (Node, Vec<String>) {
    let node = Node::new();
    let _ = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
    let _ = node.export::<dyn ICellar>("cellar", Arc::new(Cellar::default()));
    let places = schemes.iter().map(|scheme| {
        let address = node.listen(&format!("{scheme}://127.0.0.1:0?{OPTIONS}")).expect("to listen");
        let place = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
        place.split(['/', '?']).next().unwrap_or(place).to_owned()
    });
    let places = places.collect();
    (node, places)
}

fn discover(address: &str) -> Result<Discovery, everywire::Failure> {
    let node = Node::new();
    let object = node.object(address)?;
    everywire::wires::named("wcf").expect("the wire").discover(&object)
}

fn interface<'c>(contract: &'c Contract, id: &str) -> &'c Interface {
    contract.interface(id).unwrap_or_else(|| panic!("{id} is missing"))
}

/// What callers and servants of both must agree on.
fn same(told: &Interface, ours: &Interface) {
    assert_eq!(told.operations.len(), ours.operations.len());
    for (told, ours) in told.operations.iter().zip(ours.operations.iter()) {
        assert_eq!(told.name, ours.name);
        let shape = |parameters: &[everywire::model::Parameter]| {
            let told = parameters.iter().map(|p| (p.direction, p.field.name.clone(), p.field.shape.noun()));
            told.collect::<Vec<_>>()
        };
        assert_eq!(shape(&told.parameters), shape(&ours.parameters), "{}", told.name);
        assert_eq!((told.oneway, told.returns.noun()), (ours.oneway, ours.returns.noun()), "{}", told.name);
        for what in ["wcf:action", "wcf:reply", "wcf:request", "wcf:response"] {
            assert_eq!(note(&told.notes, what), note(&ours.notes, what), "{}", told.name);
        }
    }
}

#[test]
fn our_services_tell_their_contracts_on_every_binding() {
    let schemes = ["net.tcp", "basic", "wshttp", "binhttp"];
    let (_node, places) = serving(&schemes);
    for (scheme, place) in schemes.into_iter().zip(&places) {
        let told = discover(&format!("{scheme}://{place}/cellar?{OPTIONS}"))
            .unwrap_or_else(|failure| panic!("{scheme}: {failure}"));
        let cellar = interface(&told.contract, "{http://everywire.test/cellar}ICellar");
        same(cellar, <dyn ICellar>::interface());
        let ports = cellar.notes.iter().filter(|(what, _)| what == "wcf:port");
        assert_eq!(ports.count(), schemes.len(), "{scheme}");
        let told = discover(&format!("{scheme}://{place}/bench?{OPTIONS}")).expect("a contract");
        same(
            interface(&told.contract, "{http://tempuri.org/}IRemoteObject"),
            <dyn IRemoteObject>::interface(),
        );
    }
}

#[test]
fn a_node_tells_of_all_its_services() {
    let (_node, places) = serving(&["net.tcp"]);
    let address = format!("net.tcp://{}?{OPTIONS}", places[0]);
    let told = discover(&address).expect("contracts");
    let mut children: Vec<String> =
        told.children.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect();
    children.sort();
    assert_eq!(children, ["bench", "cellar"]);
    let listed = Node::new().list(&address).expect("a list");
    let mut names: Vec<&str> = listed.iter().map(|presence| presence.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["ICellar", "IRemoteObject"]);
    assert!(listed.iter().all(|presence| presence.address.contains(&places[0])), "{listed:?}");
}

/// The pages of `?wsdl` are the same for all bindings, and `http://` alone means SOAP 1.1.
#[test]
fn a_service_of_another_binding_is_told_where_it_answers() {
    let (_node, places) = serving(&["soap12", "basic"]);
    let wanted = format!("soap12://{}/cellar", places[0]);
    for asked in [format!("http://{}/cellar?wsdl", places[0]), format!("basic://{}/cellar", places[0])] {
        let told = discover(&asked).expect("a contract");
        assert_eq!(told.addresses, [wanted.as_str()], "{asked}");
    }
    for right in [wanted, format!("basic://{}/cellar", places[1])] {
        assert_eq!(discover(&right).expect("a contract").addresses, [""; 0], "{right}");
    }
}

/// A server that closes the connection instead of an answer, as one does whose time for an idle connection has just passed.
#[test]
fn a_description_is_asked_for_again_when_the_connection_ended() {
    let (_node, places) = serving(&["basic"]);
    let between = TcpListener::bind("127.0.0.1:0").expect("to listen");
    let place = between.local_addr().expect("an address");
    let server = places[0].clone();
    std::thread::spawn(move || {
        let (mut first, _) = between.accept().expect("a connection");
        assert_ne!(first.read(&mut [0; 4096]).expect("a request"), 0);
        drop(first);
        let (mut client, _) = between.accept().expect("another connection");
        let mut server = TcpStream::connect(server).expect("to connect");
        let (mut from, mut to) = (client.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut server, &mut client);
    });
    let told = discover(&format!("basic://{place}/cellar?{OPTIONS}")).expect("a contract");
    same(interface(&told.contract, "{http://everywire.test/cellar}ICellar"), <dyn ICellar>::interface());
}

#[test]
fn nobody_tells_of_what_is_not_there() {
    let (_node, places) = serving(&["net.tcp", "basic"]);
    for (scheme, place) in ["net.tcp", "basic"].into_iter().zip(&places) {
        let failure =
            discover(&format!("{scheme}://{place}/nothing?{OPTIONS}")).expect_err("nothing is there");
        assert!(matches!(failure.kind(), Kind::NoObject | Kind::Refused), "{scheme}: {failure:?}");
    }
}

fn get(place: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(place).expect("to connect");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n").expect("to ask");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    page
}

#[test]
fn pages_of_a_service_are_served() {
    let (_node, places) = serving(&["basic"]);
    let wsdl = get(&places[0], "/cellar?wsdl");
    assert!(wsdl.starts_with("HTTP/1.1 200") && wsdl.contains("text/xml"), "{wsdl}");
    assert!(wsdl.contains(&format!("location=\"http://{}/cellar\"", places[0])));
    assert_eq!(get(&places[0], "/cellar?singleWsdl").matches("<wsdl:portType").count(), 1);
    assert!(get(&places[0], "/cellar?xsd=xsd0").contains("<xs:schema "));
    assert!(get(&places[0], "/cellar?xsd=xsd99").starts_with("HTTP/1.1 404"));
    assert!(get(&places[0], "/cellar?wsdl=wsdl0").contains("<wsdl:definitions "));
    let help = get(&places[0], "/cellar");
    assert!(help.contains("text/html") && help.contains("ICellar") && help.contains("?wsdl"), "{help}");
    assert!(get(&places[0], "/nothing?wsdl").starts_with("HTTP/1.1 404"));
}

/// Mono's tool for WCF finds every operation in what we tell.
#[test]
fn svcutil_reads_our_contracts() {
    if !here("svcutil_reads_our_contracts", &["svcutil"]) {
        return;
    }
    let (_node, places) = serving(&["basic"]);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("svcutil");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (service, operations) in [("bench", 9), ("cellar", <dyn ICellar>::interface().operations.len())] {
        let out = format!("/out:{service}.cs");
        let mut tool = Command::new("svcutil");
        let _ = run(tool.current_dir(&folder).arg(out).arg(format!("http://{}/{service}?wsdl", places[0])));
        let code = std::fs::read_to_string(folder.join(format!("{service}.cs"))).expect("code");
        assert_eq!(code.matches("OperationContractAttribute(").count(), operations, "{service}");
    }
}

#[test]
fn we_read_what_mono_tells() {
    let Some(mono) = Mono::awake("we_read_what_mono_tells") else { return };
    let (_server, port) = mono.serve(BASIC, "bench");
    let told = discover(&BASIC.object(port, "bench")).expect("a contract");
    let bench = interface(&told.contract, "{http://tempuri.org/}IRemoteObject");
    let named =
        |interface: &Interface| interface.operations.iter().map(|o| o.name.clone()).collect::<Vec<_>>();
    assert_eq!(named(bench), named(<dyn IRemoteObject>::interface()));
}
