//! Python's clients of WCF use our services: pynettcp over net.tcp, zeep over HTTP.

use crate::common::foreign::{Beside, script};
use crate::common::forwarder::Hop;
use crate::common::hello::bench::IRemoteObject;
use crate::common::hello::bytes;
use crate::common::mono::{BASIC, Binding, Mono, WS};
use crate::common::papers::{PASSWORD, Papers, USER};
use crate::common::python::{nettcp, nettcp_windows, serving, succeeds, zeep};
use everywire::{Node, Ref};
use everywire_tests::peers::here;
use std::process::Command;

const ROOMY: &str = "MaxReceivedMessageSize=67108864";

fn calls_over_tcp(test: &str, deed: &str, service: &str) {
    let Some(mut python) = nettcp(test) else { return };
    let (_node, place) = serving("net.tcp", &format!("security=none&{ROOMY}"));
    succeeds(python.arg(deed).arg(format!("net.tcp://{place}/{service}")));
}

fn calls_over_http(test: &str, scheme: &str, service: &str) {
    let Some(mut python) = zeep(test) else { return };
    let (_node, place) = serving(scheme, &format!("security=none&{ROOMY}"));
    succeeds(python.arg(service).arg(format!("http://{place}/{service}?wsdl")));
}

/// Over TLS, its certificate checked; `options` are the server's, `says` what the client says of itself.
fn calls_over_tls(test: &str, scheme: &str, deed: &str, service: &str, options: &str, says: &str) {
    let (Some(mut python), Some(papers)) = (zeep(test), Papers::get(test)) else { return };
    let users = if options.is_empty() {
        String::new()
    } else {
        format!("&users={}&{options}", papers.path("users").display())
    };
    let (_node, place) = serving(scheme, &format!("{ROOMY}&{}{users}", papers.listening()));
    python.arg(deed).arg(format!("https://{place}/{service}?wsdl"));
    python.arg(format!("ca={}", papers.path("ca.pem").display()));
    if !says.is_empty() {
        python.arg(says);
    }
    succeeds(&mut python);
}

#[test]
fn pynettcp_makes_a_client_of_our_metadata_and_uses_it() {
    calls_over_tcp("pynettcp_makes_a_client_of_our_metadata_and_uses_it", "bench", "bench");
}

#[test]
fn pynettcp_calls_us_with_classes_lists_and_faults() {
    calls_over_tcp("pynettcp_calls_us_with_classes_lists_and_faults", "cellar", "cellar");
}

#[test]
fn pynettcp_is_told_of_wrong_paths_and_actions() {
    calls_over_tcp("pynettcp_is_told_of_wrong_paths_and_actions", "wrong", "cellar");
}

#[test]
fn pynettcp_keeps_sessions_apart() {
    calls_over_tcp("pynettcp_keeps_sessions_apart", "session", "cellar");
}

/// NegotiateStream: NTLM in SPNEGO, signed and encrypted, by a library that none of us wrote. A wrong password is refused.
#[test]
fn pynettcp_calls_us_as_a_windows_user() {
    const TEST: &str = "pynettcp_calls_us_as_a_windows_user";
    let (Some(mut python), Some(papers)) = (nettcp_windows(TEST), Papers::get(TEST)) else { return };
    let users = papers.path("users");
    let (_node, place) = serving("net.tcp", &format!("security=windows&users={}&{ROOMY}", users.display()));
    python.arg("windows").arg(format!("net.tcp://{place}/cellar"));
    succeeds(python.args([USER, PASSWORD]));
}

#[test]
fn pynettcp_is_told_which_quota_it_exceeds() {
    let Some(mut python) = nettcp("pynettcp_is_told_which_quota_it_exceeds") else { return };
    let (_node, place) = serving("net.tcp", &format!("security=none&{QUOTAS}"));
    succeeds(python.arg("quotas").arg(format!("net.tcp://{place}/cellar")));
}

#[test]
fn zeep_reads_our_contracts_and_calls_over_basic_http() {
    calls_over_http("zeep_reads_our_contracts_and_calls_over_basic_http", "basic", "bench");
    calls_over_http("zeep_reads_our_contracts_and_calls_over_basic_http", "basic", "cellar");
}

/// Attributes, texts beside them, lists without an element around them, choices: as our WSDL has them.
#[test]
fn zeep_reads_our_contract_of_xml_serializer_and_calls() {
    calls_over_http("zeep_reads_our_contract_of_xml_serializer_and_calls", "basic", "mill");
    calls_over_http("zeep_reads_our_contract_of_xml_serializer_and_calls", "wshttp", "mill");
}

/// zeep writes the headers of WS-Addressing when the contract's binding asks for them.
#[test]
fn zeep_reads_our_contracts_and_calls_over_ws_http() {
    calls_over_http("zeep_reads_our_contracts_and_calls_over_ws_http", "wshttp", "bench");
}

/// Without addressing the action is a parameter of the content type.
#[test]
fn zeep_reads_our_contracts_and_calls_over_soap_12() {
    const TEST: &str = "zeep_reads_our_contracts_and_calls_over_soap_12";
    ["bench", "cellar", "mill"].into_iter().for_each(|service| calls_over_http(TEST, "soap12", service));
}

/// A hop without any contract stands between zeep and Mono; the contract is read from us.
fn zeep_calls_mono_by_a_hop(test: &str, binding: Binding) {
    let (Some(mut python), Some(mono)) = (zeep(test), Mono::awake(test)) else { return };
    let (_ours, place) = serving(binding.scheme, &format!("security=none&{ROOMY}"));
    let (_server, port) = mono.serve(binding, "bench");
    let (_hop, between) = Hop::before(&binding.object(port, "elsewhere"), &binding.listen());
    python.args(["bench".to_owned(), format!("http://{place}/bench?wsdl")]);
    succeeds(python.arg(format!("at={}", binding.address(between, "bench"))));
}

#[test]
fn zeep_calls_mono_by_a_hop_over_basic_http() {
    zeep_calls_mono_by_a_hop("zeep_calls_mono_by_a_hop_over_basic_http", BASIC);
}

#[test]
fn zeep_calls_mono_by_a_hop_over_ws_http() {
    zeep_calls_mono_by_a_hop("zeep_calls_mono_by_a_hop_over_ws_http", WS);
}

#[test]
fn zeep_calls_over_tls() {
    for (scheme, service) in [("basics", "cellar"), ("wshttps", "bench")] {
        calls_over_tls("zeep_calls_over_tls", scheme, service, service, "", "");
    }
}

/// TransportWithMessageCredential, and HTTP's Basic authentication.
#[test]
fn zeep_says_a_user_and_a_password_over_tls() {
    let token = format!("token={USER}:{PASSWORD}");
    for (scheme, service) in [("basics", "cellar"), ("wshttps", "bench")] {
        calls_over_tls(
            "zeep_says_a_user_and_a_password_over_tls",
            scheme,
            service,
            service,
            "security=username",
            &token,
        );
    }
    let login = format!("login={USER}:{PASSWORD}");
    calls_over_tls(
        "zeep_says_a_user_and_a_password_over_tls",
        "basics",
        "bench",
        "bench",
        "security=tls",
        &login,
    );
}

#[test]
fn zeep_is_refused_with_another_password() {
    for scheme in ["basics", "wshttps"] {
        let token = format!("token={USER}:other");
        calls_over_tls(
            "zeep_is_refused_with_another_password",
            scheme,
            "strangers",
            "bench",
            "security=username",
            &token,
        );
        calls_over_tls(
            "zeep_is_refused_with_another_password",
            scheme,
            "strangers",
            "bench",
            "security=username",
            "",
        );
    }
}

/// Both ways, by Python's gzip.
#[test]
fn zeep_sends_and_takes_gzip() {
    for (scheme, service) in [("basic", "bench"), ("basic", "cellar"), ("wshttp", "bench")] {
        let Some(mut python) = zeep("zeep_sends_and_takes_gzip") else { return };
        let (_node, place) = serving(scheme, &format!("security=none&compression=gzip&{ROOMY}"));
        python.arg(service).arg(format!("http://{place}/{service}?wsdl"));
        succeeds(python.arg("gzip=on"));
    }
}

/// A server of Python's that compresses what it passes on, before one of ours that does not.
#[test]
fn we_send_and_take_gzip() {
    if !here("we_send_and_take_gzip", &["python3"]) {
        return;
    }
    let (_node, place) = serving("basic", &format!("security=none&{ROOMY}"));
    let proxy = Beside::start(Command::new("python3").arg(script("gzip_proxy.py")).arg(&place));
    let port = proxy.hear("port").pop().expect("a port").replace("port ", "");
    for (options, line) in [
        ("", "request plain answer plain"),
        ("&compression=gzip", "request plain answer gzip"),
        ("&compression=gzip%2Brequests", "request gzip answer gzip"),
    ] {
        let node = Node::new();
        let address = format!("basic://127.0.0.1:{port}/bench?{ROOMY}{options}");
        let remote: Ref<dyn IRemoteObject> = node.connect(&address).expect("an address");
        assert_eq!(remote.put_bytes(bytes(300_000)).expect("PutBytes"), 300_000, "{options}");
        proxy.hear(line);
        assert_eq!(remote.get_bytes(300_000).expect("GetBytes"), bytes(300_000), "{options}");
    }
    // What the quota counts is what comes out.
    let address = format!("basic://127.0.0.1:{port}/bench?compression=gzip");
    let remote: Ref<dyn IRemoteObject> = Node::new().connect(&address).expect("an address");
    let failure = remote.get_bytes(300_000).expect_err("MaxReceivedMessageSize");
    assert!(failure.to_string().contains("(65536)"), "{failure}");
    assert_eq!(remote.out_int().expect("OutInt"), 42);
}

/// Octets in parts of their own (MTOM), which zeep puts in their places.
#[test]
fn zeep_reads_octets_that_stand_beside_the_envelope() {
    let Some(mut python) = zeep("zeep_reads_octets_that_stand_beside_the_envelope") else { return };
    let (_node, place) = serving("basic", &format!("security=none&encoding=mtom&{ROOMY}"));
    let said = succeeds(python.arg("mtom").arg(format!("http://{place}/bench?wsdl")));
    assert!(said.contains("parts 2"), "{said}");
}

/// What the scripts exceed.
const QUOTAS: &str =
    "MaxReceivedMessageSize=100000&MaxArrayLength=1000&MaxStringContentLength=2000&MaxDepth=12";

#[test]
fn zeep_is_told_which_quota_it_exceeds() {
    for scheme in ["basic", "wshttp"] {
        let Some(mut python) = zeep("zeep_is_told_which_quota_it_exceeds") else { return };
        let (_node, place) = serving(scheme, &format!("security=none&{QUOTAS}"));
        succeeds(python.arg("quotas").arg(format!("http://{place}/cellar?wsdl")));
    }
}
