//! Mono's WCF calls our services, and we call Mono's: every binding and every feature of contracts that Mono has.

use crate::common::cellar::contract::cellar::ICellar;
use crate::common::cellar::{Cellar, use_all};
use crate::common::foreign::patient;
use crate::common::forwarder::Hop;
use crate::common::hello::bench::IRemoteObject;
use crate::common::hello::duplex::IHello;
use crate::common::hello::{Hello, Remote, use_bench, use_hello};
use crate::common::mono::{
    BASIC, BASICS, BINARY, BINARYS, Binding, Mono, SOAP_12, STREAMED, TCP, TEXT, WS, WSS,
};
use crate::common::papers::Papers;
use everywire::{Node, Ref};
use std::sync::Arc;

/// What came of the objects that Mono sends for a value of any type: what the contract knows with its types, else as text.
const OBJECTS: [&str; 6] = [
    "EchoAny 17",
    "EchoAny \"text\"",
    "EchoAny Label{Text=\"one\", Year=1901}",
    "EchoAny Champagne{Name=\"Brut\", Bar=6.25, House=\"R.\"}",
    "EchoAny Crate{Count=3, Front=Label{Text=\"one\", Year=1901}, Names=[\"a\", \"b\"]}",
    "EchoAny null",
];

/// What a client hears of the values of `cellar.wsdl` from a server that has them right. An absent text is an empty one to us.
const CELLAR: &str = r#"EchoBoolean true
EchoByte 200
EchoSByte -100
EchoInt16 -30000
EchoUInt16 60000
EchoInt32 -2000000000
EchoUInt32 4000000000
EchoInt64 -9000000000000000000
EchoUInt64 18000000000000000000
EchoSingle 1.5
EchoDouble -0.1
EchoDecimal 123456789012345.6700
EchoChar '223'
EchoString true
EchoDateTime 2020-01-02T03:04:05Z
EchoTimeSpan P1DT2H3M4.5S
EchoGuid 00112233-4455-6677-8899-aabbccddeeff
EchoUri http://example.test/a?b=c&d
EchoBytes x0001027f80feff
EchoGrape PinotNoir
EchoBooleans [true, false, true]
EchoInts [1, -2, 70000, 0, -2147483648, 2147483647]
EchoLongs [0, -1, 9223372036854775807, -9223372036854775808]
EchoDoubles [0, 1.5, -2.25, INF, -INF, NaN, 1E+300]
EchoStrings ["a", "", "", "d e"]
EchoDates [2020-01-02T03:04:05Z, 1999-12-31T23:59:59.1234567]
EchoGuids [00112233-4455-6677-8899-aabbccddeeff, 00000000-0000-0000-0000-000000000000]
EchoGrapes [Syrah, PinotNoir, Riesling]
EchoLabels [Label{Text="one", Year=1901}, Label{Text="", Year=0}]
EchoStock {"red":3, "white":-4}
EchoPlaces {-1:Label{Text="minus", Year=-1}, 7:Label{Text="seven", Year=1977}}
EchoPrimitives true
EchoMaybe Maybe{Date=2020-01-02T03:04:05Z, Double=2, Grape=Syrah, Int=0, Nothing=null}
EchoMaybe.not Maybe{Date=null, Double=null, Grape=null, Int=null, Nothing=null}
EchoMaybeInt -2000000000
EchoMaybeInt.not null
EchoRack Rack{Front=Label{Text="front", Year=2001}, Labels=[Label{Text="one", Year=1901}, Label{Text="", Year=0}], Next=Rack{Front=null, Labels=[], Next=null, Stock={"red":3, "white":-4}}, Stock={}}
EchoShelf OrderedShelf{A=1, B=2, C="three", Seldom=0}
EchoWine Champagne{Name="Brut", Bar=6.25, House="R."}
EchoWines [Wine{Name="plain"}, Sparkling{Name="Sekt", Bar=3}, Champagne{Name="Brut", Bar=6.25, House="R."}]
Buy Receipt{Till="till 3", Total=37.50}
Nothing true
Split [4, 3, "abab"]
Ring "ding ding"
Notes ["one-way"]
Take 17
Take.1 ["OutOfStock", OutOfStock{Left=2, Name="Brut"}, "none left"]
Take.2 ["Broken", Broken{Why="dropped"}, "broken"]"#;

/// The checks of the contract, in the order of the text above.
const CHECKS: [&str; 6] = ["types", "arrays", "classes", "operations", "oneway", "faults"];

/// A server of ours: the contracts, and the port.
fn serving(binding: Binding) -> (Node, u16) {
    serving_at(&binding.listen())
}

fn serving_at(address: &str) -> (Node, u16) {
    let node = patient();
    let address = node.listen(address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let port = address.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
    let _ = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
    let _ = node.export::<dyn ICellar>("cellar", Arc::new(Cellar::default()));
    let signaller = node.signaller::<dyn IHello>("hello");
    let _ = node.export::<dyn IHello>("hello", Arc::new(Hello(signaller)));
    (node, port.unwrap_or_else(|| panic!("no port in {address}")))
}

/// What Mono hears of our faults must be the beginning; what follows is what no contract tells.
fn mono_uses_our_cellar(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_node, port) = serving(binding);
    // Its streamed client waits for an answer to a one-way call, and there is none.
    let streamed = binding.name == STREAMED.name;
    let checks: Vec<&str> = CHECKS.into_iter().filter(|&check| !streamed || check != "oneway").collect();
    let wanted: Vec<&str> = CELLAR.lines().filter(|line| !streamed || !line.starts_with("Notes ")).collect();
    let said = mono.call("cellar", binding, port, &checks);
    for (number, wanted) in wanted.iter().enumerate() {
        let got = said.get(number).map_or("(nothing)", String::as_str);
        // A fault's reason is ours; its name and its detail are the contract's.
        let (got, wanted) = match wanted.rsplit_once(", \"") {
            Some((head, _)) if wanted.starts_with("Take.") => (got.get(..head.len()).unwrap_or(got), head),
            _ => (got, *wanted),
        };
        assert_eq!(got, wanted, "over {}", binding.name);
    }
    let rest = &said[wanted.len().min(said.len())..];
    assert!(rest.len() == 3 && rest[2] == "Take.after 17", "{rest:?}");
    assert!(rest[0].starts_with("Take.3 ") && rest[0].contains("closed today"), "{rest:?}");
    assert!(rest[1].starts_with("Take.4 ") && rest[1].contains("InternalServiceFault"), "{rest:?}");
}

fn mono_uses_our_bench(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_node, port) = serving(binding);
    let said = mono.call("bench", binding, port, &["bench=1000000"]);
    assert_eq!(said.len(), 19, "{said:?}");
    assert!(
        said.contains(&"GetBytes.1000000 true".to_owned())
            && said.contains(&"PutBytes.1000000 1000000".to_owned())
    );
    assert_eq!(said[14..17], ["OutInt 42", "InOutInt 43", "InString true"], "{said:?}");
}

fn we_use_monos_cellar(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_server, port) = mono.serve(binding, "cellar");
    let node = patient();
    let cellar: Ref<dyn ICellar> = node.connect(&binding.object(port, "cellar")).expect("an address");
    use_all(&*cellar, &["a", "", "", "d e"]);
}

fn we_use_monos_bench(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let (_server, port) = mono.serve(binding, "bench");
    let node = patient();
    let remote: Ref<dyn IRemoteObject> = node.connect(&binding.object(port, "bench")).expect("an address");
    use_bench(&*remote, 1_000_000);
}

fn mono_calls_us_over_tls(test: &str, binding: Binding) {
    let (Some(mono), Some(papers)) = (Mono::awake(test), Papers::get(test)) else { return };
    let (_node, port) = serving_at(&binding.listen_with(papers));
    let said = mono.with(papers).call("cellar", binding, port, &["types", "arrays", "classes", "operations"]);
    let wanted: Vec<&str> = CELLAR.lines().take_while(|line| !line.starts_with("Notes ")).collect();
    assert_eq!(said, wanted, "over {}", binding.name);
}

fn we_call_mono_over_tls(test: &str, binding: Binding) {
    let (Some(mono), Some(papers)) = (Mono::awake(test), Papers::get(test)) else { return };
    let (_server, port) = mono.with(papers).serve(binding, "cellar");
    let node = patient();
    let address = binding.object_with(port, "cellar", papers);
    let cellar: Ref<dyn ICellar> = node.connect(&address).expect("an address");
    use_all(&*cellar, &["a", "", "", "d e"]);
    // Whoever trusts other authorities is not connected.
    let others = address.split("&ca=").next().expect("an address");
    let cellar: Ref<dyn ICellar> = node.connect(others).expect("an address");
    let failure = cellar.take(0).expect_err("nobody vouches for it");
    assert!(failure.to_string().contains("vouches"), "{failure}");
}

/// Structs in values of any type, and objects that are written once and referred to (`IsReference`).
fn mono_sends_us_objects(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let node = patient();
    let address = node.listen(&binding.listen()).expect("it listens");
    let port = address.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse().ok());
    let cellar = Arc::new(Cellar::default());
    let _ = node.export::<dyn ICellar>("cellar", Arc::clone(&cellar) as _);
    let said = mono.call("cellar", binding, port.expect("a port"), &["objects"]);
    let objects = cellar.objects.lock().expect("whole");
    assert_eq!(said[..6], OBJECTS);
    // What the contract knows came with its types.
    let shown: Vec<String> = objects.iter().map(|object| format!("{:?}", object.value())).collect();
    assert!(shown[2].contains("Integer(1901)") && shown[3].contains("Float(6.25)"), "{shown:?}");
    assert!(shown[4].contains("(\"Count\", Text(\"3\"))"), "{shown:?}");
    let leaf = "Knot{Left=null, Name=\"leaf\", Right=null}";
    let twice = format!("Knot{{Left={leaf}, Name=\"twice\", Right={leaf}}}");
    assert_eq!(said[6], format!("EchoKnot Knot{{Left={twice}, Name=\"root\", Right={twice}}}"));
    assert!(said[7].contains("contains itself") && said[8].contains("exceeds the limit"), "{said:?}");
    assert_eq!(said[9..], ["Take 17"]);
}

/// What Mono hears when it sends more than we take, and that the next call works.
fn mono_exceeds_our_quotas(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let quotas = "MaxReceivedMessageSize=100000&MaxArrayLength=1000&MaxStringContentLength=2000&MaxDepth=12";
    let (_node, port) = serving_at(&format!("{}://127.0.0.1:0?security=none&{quotas}", binding.scheme));
    let said = mono.call("cellar", binding, port, &["quotas"]);
    assert_eq!(said.len(), 8, "{said:?}");
    for (pair, (quota, value)) in
        said.chunks(2).zip([("MaxArrayLength", 1000), ("MaxStringContentLength", 2000), ("MaxDepth", 12)])
    {
        let named = pair[0].contains(&format!("({value})")) && pair[0].contains(&format!("`{quota}="));
        assert!(named && pair[0].starts_with(quota), "{pair:?}");
        assert_eq!(pair[1], "Take 17");
    }
    // Mono's client knows no fault records, and shows no body of a refusal.
    let told = if binding.scheme == "net.tcp" { "Packet type 8" } else { "413" };
    assert!(said[6].contains(told) && said[7] == "Take 17", "{said:?}");
}

/// What we say when we send more than Mono takes: its answer, and that the next call works. (Of Mono's readers only that of
/// binary XML has quotas; over net.tcp its server does not answer at all.)
#[test]
fn we_exceed_monos_quota_over_binary_http() {
    let Some(mono) = Mono::awake("we_exceed_monos_quota_over_binary_http") else { return };
    let binding = BINARY.with_few("binhttp-");
    let (_server, port) = mono.serve(binding, "bench");
    let node = patient();
    let remote: Ref<dyn IRemoteObject> = node.connect(&binding.object(port, "bench")).expect("an address");
    assert_eq!(remote.put_bytes(vec![0; 900].into()).expect("PutBytes"), 900);
    let failure = remote.put_bytes(vec![0; 1200].into()).expect_err("MaxArrayLength");
    assert!(failure.to_string().contains("1000"), "{failure:?}");
    assert_eq!(remote.put_bytes(vec![0; 900].into()).expect("PutBytes"), 900);
}

/// A message over BasicHttp that says where it goes, as routers pass it on: the header must be understood.
#[test]
fn mono_calls_us_with_an_address_in_the_message() {
    let Some(mono) = Mono::awake("mono_calls_us_with_an_address_in_the_message") else { return };
    let (_node, port) = serving(BASIC);
    assert_eq!(mono.call("cellar", BASIC, port, &["addressed"]), ["Take 17"]);
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
    mono_uses_our_cellar_over_net_tcp: mono_uses_our_cellar(TCP);
    mono_uses_our_cellar_over_text_on_tcp: mono_uses_our_cellar(TEXT);
    mono_uses_our_cellar_streamed: mono_uses_our_cellar(STREAMED);
    mono_uses_our_cellar_over_basic_http: mono_uses_our_cellar(BASIC);
    mono_uses_our_cellar_over_ws_http: mono_uses_our_cellar(WS);
    mono_uses_our_cellar_over_soap_12: mono_uses_our_cellar(SOAP_12);
    mono_uses_our_cellar_over_binary_http: mono_uses_our_cellar(BINARY);
    mono_uses_our_bench_over_net_tcp: mono_uses_our_bench(TCP);
    mono_uses_our_bench_streamed: mono_uses_our_bench(STREAMED);
    mono_uses_our_bench_over_basic_http: mono_uses_our_bench(BASIC);
    mono_uses_our_bench_over_ws_http: mono_uses_our_bench(WS);
    mono_uses_our_bench_over_soap_12: mono_uses_our_bench(SOAP_12);
    mono_uses_our_bench_over_binary_http: mono_uses_our_bench(BINARY);
    a_hop_stands_between_mono_and_mono_over_net_tcp: a_hop_stands_between(TCP);
    a_hop_stands_between_mono_and_mono_over_text_on_tcp: a_hop_stands_between(TEXT);
    a_hop_stands_between_mono_and_mono_over_basic_http: a_hop_stands_between(BASIC);
    a_hop_stands_between_mono_and_mono_over_ws_http: a_hop_stands_between(WS);
    a_hop_stands_between_mono_and_mono_over_soap_12: a_hop_stands_between(SOAP_12);
    a_hop_stands_between_mono_and_mono_over_binary_http: a_hop_stands_between(BINARY);
    mono_calls_us_over_basic_https: mono_calls_us_over_tls(BASICS);
    mono_calls_us_over_ws_https: mono_calls_us_over_tls(WSS);
    mono_calls_us_over_binary_https: mono_calls_us_over_tls(BINARYS);
    we_call_mono_over_basic_https: we_call_mono_over_tls(BASICS);
    we_call_mono_over_ws_https: we_call_mono_over_tls(WSS);
    we_call_mono_over_binary_https: we_call_mono_over_tls(BINARYS);
    mono_sends_us_objects_over_net_tcp: mono_sends_us_objects(TCP);
    mono_sends_us_objects_over_basic_http: mono_sends_us_objects(BASIC);
    mono_exceeds_our_quotas_over_net_tcp: mono_exceeds_our_quotas(TCP);
    mono_exceeds_our_quotas_over_basic_http: mono_exceeds_our_quotas(BASIC);
    mono_exceeds_our_quotas_over_ws_http: mono_exceeds_our_quotas(WS);
    we_use_monos_cellar_over_net_tcp: we_use_monos_cellar(TCP);
    we_use_monos_cellar_over_text_on_tcp: we_use_monos_cellar(TEXT);
    we_use_monos_cellar_over_basic_http: we_use_monos_cellar(BASIC);
    we_use_monos_cellar_over_ws_http: we_use_monos_cellar(WS);
    we_use_monos_cellar_over_soap_12: we_use_monos_cellar(SOAP_12);
    we_use_monos_cellar_over_binary_http: we_use_monos_cellar(BINARY);
    we_use_monos_bench_over_net_tcp: we_use_monos_bench(TCP);
    we_use_monos_bench_over_basic_http: we_use_monos_bench(BASIC);
    we_use_monos_bench_over_ws_http: we_use_monos_bench(WS);
    we_use_monos_bench_over_soap_12: we_use_monos_bench(SOAP_12);
    we_use_monos_bench_over_binary_http: we_use_monos_bench(BINARY);
}

/// Mono serves one streamed call on a connection, and closes it.
#[test]
fn we_call_monos_streamed_service() {
    let Some(mono) = Mono::awake("we_call_monos_streamed_service") else { return };
    let (_server, port) = mono.serve(STREAMED, "bench");
    for x in [1, 41] {
        let node = patient();
        let remote: Ref<dyn IRemoteObject> =
            node.connect(&STREAMED.object(port, "bench")).expect("an address");
        assert_eq!(remote.in_out_int(x).expect("InOutInt"), x + 1);
    }
}

#[test]
fn mono_hears_our_callbacks_and_answers_them() {
    let Some(mono) = Mono::awake("mono_hears_our_callbacks_and_answers_them") else { return };
    let (_node, port) = serving(TCP);
    let said = mono.call("hello", TCP, port, &["duplex"]);
    assert_eq!(said, ["OnHello \"first\"", "OnHello.20 true", "AskBack 41", "AskBack.again -1", "Waiting 0"]);
}

#[test]
fn we_hear_monos_callbacks_and_answer_them() {
    let Some(mono) = Mono::awake("we_hear_monos_callbacks_and_answer_them") else { return };
    let (_server, port) = mono.serve(TCP, "hello");
    use_hello(&TCP.object(port, "hello"));
}

/// A hop without any contract stands between Mono and Mono: what Mono hears is what it hears without one, faults too. Then between us
/// and Mono.
fn a_hop_stands_between(test: &str, binding: Binding) {
    let Some(mono) = Mono::awake(test) else { return };
    let heard = {
        let (_server, port) = mono.serve(binding, "cellar");
        mono.call("cellar", binding, port, &CHECKS)
    };
    let (_server, port) = mono.serve(binding, "cellar");
    let (_hop, between) = Hop::before(&binding.object(port, "elsewhere"), &binding.listen());
    assert_eq!(mono.call("cellar", binding, between, &CHECKS), heard, "over {}", binding.name);
    let (_server, port) = mono.serve(binding, "cellar");
    let (_hop, between) = Hop::before(&binding.object(port, "elsewhere"), &binding.listen());
    let node = patient();
    let cellar: Ref<dyn ICellar> = node.connect(&binding.object(between, "cellar")).expect("an address");
    use_all(&*cellar, &["a", "", "", "d e"]);
    let (_server, port) = mono.serve(binding, "bench");
    let (_hop, between) = Hop::before(&binding.object(port, "elsewhere"), &binding.listen());
    assert_eq!(mono.call("bench", binding, between, &["bench=1000000"]).len(), 19);
}

/// With its sleeps, too, in both directions.
#[test]
fn mono_as_shipped_calls_us_and_is_called() {
    let Some(mono) = Mono::shipped("mono_as_shipped_calls_us_and_is_called") else { return };
    let (node, port) = serving(TCP);
    assert_eq!(mono.call("cellar", TCP, port, &["types"]).len(), 20);
    let (_server, port) = mono.serve(WS, "bench");
    let remote: Ref<dyn IRemoteObject> = node.connect(&WS.object(port, "bench")).expect("an address");
    assert_eq!(remote.in_out_int(41).expect("InOutInt"), 42);
}
