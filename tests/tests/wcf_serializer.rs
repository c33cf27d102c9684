//! Contracts of XmlSerializer (`[XmlSerializerFormat]`): attributes, texts beside them, lists without an element around them,
//! choices. Mono calls our service, and we call Mono's.

use crate::common::foreign::{everywire, run};
use crate::common::mill::contract::mill::IMill;
use crate::common::mill::{Mill, use_mill};
use crate::common::mono::{BASIC, BINARY, Binding, Mono, TCP, WS};
use everywire::{Node, Ref};
use std::sync::Arc;

/// What Mono's client hears of the values from a server that has them right. An absent text is an empty one to us.
const MILL: &str = r#"EchoSack Sack{Count=0, CountSpecified=true, Filled=2020-01-02T03:04:05Z, From=Firm{Key="K "1" <&>\t\n", Name="Mill & Sons", Register=-9000000000, Seat="Uptown"}, Grain=Durum, Id=-17, Items=["first", 5, Price{Amount=37.50, Currency="€"}, "last"], Labels=[Label{Count=4000000000, Text="<flour> & "bran"\n'fine'"}, Label{Count=0, Text="x"}], Language="de", Lines=[Label{Count=4000000000, Text="<flour> & "bran"\n'fine'"}, Label{Count=0, Text="x"}], Mark="A<1>", Note="note", Numbers=[3, 0, -1], Payment=12.5, Rank=-3, RankSpecified=true, Seal=x0001feff, Sieves=Fine, Bran, Sizes=[1, -2, 70000], Weeks=9, Weight=1.250}
EchoSack.empty Sack{Count=0, CountSpecified=false, Filled=1999-12-31T00:00:00Z, From=null, Grain=Wheat, Id=0, Items=null, Labels=null, Language=null, Lines=[], Mark=null, Note="", Numbers=null, Payment="visa", Rank=0, RankSpecified=false, Seal=null, Sieves=Coarse, Sizes=null, Weeks=7, Weight=0}
EchoLabel Label{Count=4000000000, Text="<flour> & "bran"\n'fine'"}
EchoPrice Price{Amount=37.50, Currency="€"}
EchoParty Firm{Key="K "1" <&>\t\n", Name="Mill & Sons", Register=-9000000000, Seat="Uptown"}
EchoLabels [Label{Count=4000000000, Text="<flour> & "bran"\n'fine'"}, Label{Count=0, Text="x"}]
Add 42"#;

fn serving(address: &str) -> (Node, u16) {
    let node = Node::new();
    let address = node.listen(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let port = address.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
    let _ = node.export::<dyn IMill>("mill", Arc::new(Mill));
    (node, port.unwrap_or_else(|| panic!("no port in {address}")))
}

fn mono_uses_our_mill(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_node, port) = serving(&binding.listen());
    let said = mono.call("mill", binding, port, &["mill"]);
    let wanted: Vec<&str> = MILL.lines().collect();
    assert_eq!(said, wanted, "over {}", binding.name);
}

fn we_use_monos_mill(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_server, port) = mono.serve(binding, "mill");
    let node = Node::new();
    let mill: Ref<dyn IMill> = node.connect(&binding.object(port, "mill")).expect("an address");
    use_mill(&*mill);
}

macro_rules! everything {
    ($($name:ident: $does:ident($binding:expr);)*) => {$(
        #[test]
        fn $name() {
            $does(stringify!($name), $binding);
        }
    )*};
}

everything! {
    mono_uses_our_mill_over_basic_http: mono_uses_our_mill(BASIC);
    mono_uses_our_mill_over_ws_http: mono_uses_our_mill(WS);
    mono_uses_our_mill_over_binary_http: mono_uses_our_mill(BINARY);
    mono_uses_our_mill_over_net_tcp: mono_uses_our_mill(TCP);
    we_use_monos_mill_over_basic_http: we_use_monos_mill(BASIC);
    we_use_monos_mill_over_ws_http: we_use_monos_mill(WS);
    we_use_monos_mill_over_binary_http: we_use_monos_mill(BINARY);
    we_use_monos_mill_over_net_tcp: we_use_monos_mill(TCP);
}

/// The program takes such values and shows them as any others; the contract is what the service tells of itself.
#[test]
fn the_program_calls_with_values_of_the_command_line() {
    let (_node, port) = serving("basic://127.0.0.1:0?security=none");
    let place = format!("basic://127.0.0.1:{port}/mill?security=none");
    let said = |operation: &str, value: &str| {
        run(everywire().args(["call", place.as_str(), operation, value, "--json"]))
    };
    let firm = r#"{"discriminator":"Firm","arm":{"Key":"K \"1\" <&>\t\n","Name":"Mill & Sons","Register":-9000000000,"Seat":"Uptown"}}"#;
    assert!(said("EchoParty", firm).contains(firm), "{firm}");
    let sack = r#"{"Filled":"1999-12-31T00:00:00Z","Grain":"Wheat","Id":0,"lang":"","Mark":"","Rank":null,"Seal":"","Sieves":"Coarse","Sizes":[],"Count":null,"From":null,"Items":[],"Label":[],"Lines":[],"Note":"","Number":[],"Card":"visa","Cash":null,"Weeks":7,"Weight":"0"}"#;
    // Octets are shown as what they are.
    let shown = sack.replace(r#""Seal":"""#, r#""Seal":{"base64":""}"#);
    assert!(said("EchoSack", sack).contains(&shown), "{shown}");
    let described = run(everywire().args(["describe", place.as_str(), "--as", "wsdl"]));
    for part in
        [r#"<xs:attribute name="Id" use="required" type="xs:int"/>"#, r#"<xs:attribute ref="xml:lang"/>"#]
    {
        assert!(described.contains(part), "{part}: {described}");
    }
}

/// Two of ours, over each form of XML.
#[test]
fn we_use_our_own_mill() {
    for scheme in ["basic", "wshttp", "binhttp", "net.tcp"] {
        let (_node, port) = serving(&format!("{scheme}://127.0.0.1:0?security=none"));
        let mill: Ref<dyn IMill> = Node::new()
            .connect(&format!("{scheme}://127.0.0.1:{port}/mill?security=none"))
            .expect("an address");
        use_mill(&*mill);
        assert_eq!(mill.sum(&[1, -2, 70_000]).expect("Sum"), 69_999, "{scheme}");
        assert_eq!(mill.sum(&[]).expect("Sum"), 0, "{scheme}");
    }
}
