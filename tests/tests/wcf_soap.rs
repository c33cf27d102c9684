//! The SOAP libraries of PHP and Node, both directions over HTTP: their clients and their services are made of our WSDL.

use crate::common::cellar::contract::cellar::ICellar;
use crate::common::cellar::contract::everywire_::cellar::Grape;
use crate::common::cellar::contract::labels::{Label, Shelf};
use crate::common::cellar::fails;
use crate::common::foreign::{Beside, script, until};
use crate::common::python::{serving, succeeds};
use crate::common::scratch;
use everywire::{Bytes, Node, Ref};
use everywire_tests::peers::{cached, here};
use std::collections::BTreeMap;
use std::process::Command;

const OPTIONS: &str = "security=none&MaxReceivedMessageSize=67108864";

/// PHP with our script; or nothing, said loudly.
fn php(test: &str) -> Option<Command> {
    let mut command = Command::new("php");
    command.arg(script("soap.php"));
    here(test, &["php"]).then_some(command)
}

/// Node with our script; or nothing, said loudly.
fn node_soap(test: &str) -> Option<Command> {
    let library = cached(test, "node-soap").filter(|_| here(test, &["node"]))?;
    let mut command = Command::new("node");
    command.arg(script("soap.js")).env("NODE_PATH", library.join("node_modules"));
    Some(command)
}

/// Their client uses our services by SOAP 1.1 and 1.2.
fn calls_us(client: impl Fn() -> Option<Command>) {
    for (scheme, version, services) in
        [("basic", "11", &["bench", "cellar"][..]), ("soap12", "12", &["cellar"][..])]
    {
        let (_ours, place) = serving(scheme, OPTIONS);
        for service in services {
            let Some(mut client) = client() else { return };
            succeeds(client.args([*service, &*format!("http://{place}/{service}"), version]));
        }
    }
}

#[test]
fn php_calls_us() {
    calls_us(|| php("php_calls_us"));
}

#[test]
fn node_s_soap_calls_us() {
    calls_us(|| node_soap("node_s_soap_calls_us"));
}

/// Calls a service with what it can: a text that is empty, or nothing in a list, Node writes with a prefix that it does not declare.
fn use_plain(cellar: &dyn ICellar) {
    macro_rules! echoes {
        ($($operation:ident: $value:expr;)*) => {$(
            let got = cellar.$operation($value).unwrap_or_else(|failure| panic!("{}: {failure}", stringify!($operation)));
            assert_eq!(format!("{got:?}"), format!("{:?}", $value), "{}", stringify!($operation));
        )*};
    }
    let text = "Grüße <&> \"'\n\t€ 😀 ]]>";
    let grapes = [Grape::Syrah, Grape::PinotNoir];
    // PHP's service answers with one object twice.
    let labels = vec![Label { text: "twice".to_owned(), year: 1999 }; 2];
    let stock = BTreeMap::from([("red".to_owned(), 3), ("white".to_owned(), -4)]);
    echoes! {
        echo_boolean: true;
        echo_s_byte: -100;
        echo_u_int16: 60_000;
        echo_int64: i64::MIN;
        echo_double: -1.25e-300;
        echo_decimal: "123456789012345.6700";
        echo_char: 'ß';
        echo_string: text;
        echo_time_span: "P1DT2H3M4.5S";
        echo_bytes: Bytes::from((0..=255).collect::<Vec<u8>>().repeat(1000));
        echo_grape: Grape::PinotNoir;
        echo_ints: &[1, -2, i32::MIN][..];
        echo_longs: &[0, i64::MAX][..];
        echo_grapes: &grapes[..];
        echo_strings: &["a".to_owned(), text.to_owned()][..];
        echo_stock: &stock;
        echo_labels: &labels[..];
        echo_maybe_int: &Some(5);
        echo_shelf: &Some(Shelf { seldom: 7, third: "three".to_owned(), b: 2, a: 1 });
    }
    cellar.note("one-way").expect("note");
    until("the note arrives", || cellar.notes().expect("notes") == ["one-way"]);
    cellar.nothing().expect("nothing");
    assert_eq!(cellar.split(7, "ab").expect("split"), (4, "abab".to_owned(), 3));
    assert_eq!(cellar.ring(2).expect("ring"), "ding ding");
    fails(cellar);
}

/// Our client uses their service, which they have made of our WSDL, by SOAP 1.1 and 1.2.
fn is_called(start: impl FnOnce(&str) -> (Beside, String), bindings: &[&str]) {
    let (_ours, place) = serving("basic", OPTIONS);
    let (_theirs, address) = start(&format!("http://{place}/cellar?singleWsdl"));
    let node = Node::new();
    for binding in bindings {
        let address = format!("{address}?binding={binding}&MaxReceivedMessageSize=67108864");
        let cellar: Ref<dyn ICellar> = node.connect(&address).expect("an address");
        use_plain(&*cellar);
    }
}

/// What a service says where it is, up to there.
fn address_in(line: &str) -> String {
    let (_, rest) = line.split_once("http://").unwrap_or_else(|| panic!("no address in {line}"));
    format!("http://{}", rest.split([')', '/']).next().unwrap_or(rest))
}

#[test]
fn php_is_called_by_us() {
    let test = "php_is_called_by_us";
    if !here(test, &["php"]) {
        return;
    }
    let notes = scratch(test).join("notes");
    let start = |contract: &str| {
        // It says where it is on standard error.
        let mut php = Command::new("sh");
        php.args(["-c", "exec php -S 127.0.0.1:0 \"$0\" 2>&1"]).arg(script("soap.php"));
        let php = Beside::start(php.env("CONTRACT", contract).env("NOTES", &notes));
        let heard = php.hear("Development Server");
        let address = address_in(heard.last().expect("a line"));
        (php, format!("{address}/cellar"))
    };
    is_called(start, &["basic", "soap12"]);
}

#[test]
fn node_s_soap_is_called_by_us() {
    let test = "node_s_soap_is_called_by_us";
    let Some(mut node) = node_soap(test) else { return };
    let start = |contract: &str| {
        let node = Beside::start(node.args(["serve", contract]));
        let heard = node.hear("/cellar");
        let address = address_in(heard.last().expect("a line"));
        (node, format!("{address}/cellar"))
    };
    is_called(start, &["basic"]);
}
