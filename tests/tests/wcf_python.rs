//! Python's clients of WCF use our services: pynettcp over net.tcp, zeep over HTTP.

mod common;

use common::papers::{PASSWORD, Papers, USER};
use common::python::{nettcp, nettcp_windows, serving, succeeds, zeep};

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

/// zeep writes the headers of WS-Addressing when the contract's binding asks for them.
#[test]
fn zeep_reads_our_contracts_and_calls_over_ws_http() {
    calls_over_http("zeep_reads_our_contracts_and_calls_over_ws_http", "wshttp", "bench");
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
