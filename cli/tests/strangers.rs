//! Clients that meet a server of another wire hear which protocol answers there.

use crate::support::{Running, Said, Scratch, data, run_in};
use serde_json::json;

/// A wire: how to serve on it, how to call on it, and what its servers are called.
struct Wire {
    name: &'static str,
    /// An address to listen at over TCP, and its like at a socket.
    tcp: Option<&'static str>,
    unix: Option<&'static str>,
    protocol: &'static str,
    /// Whether one can ask there who is to be called.
    lists: bool,
}

const WIRES: [Wire; 6] = [
    Wire {
        name: "giop",
        tcp: Some("iiop://AT"),
        unix: Some("iiop+unix://AT"),
        protocol: "GIOP (CORBA)",
        lists: false,
    },
    Wire {
        name: "dbus",
        tcp: Some("dbus://AT?auth=anonymous"),
        unix: Some("dbus+unix://AT"),
        protocol: "D-Bus",
        lists: true,
    },
    Wire {
        name: "dcom",
        tcp: Some("dcom://AT?level=none"),
        unix: Some("dcom+unix://AT"),
        protocol: "DCE/RPC (DCOM)",
        lists: true,
    },
    Wire {
        name: "net.tcp",
        tcp: Some("net.tcp://AT?security=none"),
        unix: Some("net.uds://AT?security=none"),
        protocol: "net.tcp (WCF)",
        lists: true,
    },
    Wire {
        name: "http",
        tcp: Some("basic://AT?security=none"),
        unix: Some("basic+unix://AT"),
        protocol: "HTTP",
        lists: true,
    },
    Wire { name: "dcop", tcp: None, unix: Some("dcop"), protocol: "ICE (DCOP)", lists: true },
];

/// Whether a client of one does not belong to a server of the other.
fn are_strangers(client: &Wire, server: &Wire) -> bool {
    client.name != server.name
}

/// What is wrong with what a client said, if anything is.
fn silence(said: &Said, client: &Wire, server: &Wire) -> Option<String> {
    // Some clients know the other protocol by its first octets, and use the first word of its name.
    let word = server.protocol.split(' ').next().unwrap();
    let why = said.err.lines().find(|line| line.starts_with("  why: ")).unwrap_or_default();
    let named = said.code != 0 && why.contains(word);
    (!named).then(|| format!("a client of {} at a server of {}: {}", client.name, server.name, said.err))
}

#[test]
fn each_client_names_the_server_of_each_other_wire_over_tcp() {
    let contract = data("bank.idl");
    let exec = format!("python3 {}", data("bank.py"));
    let mut silent = Vec::new();
    for server in WIRES.iter().filter(|wire| wire.tcp.is_some()) {
        let on = server.tcp.unwrap().replace("AT", "127.0.0.1:0");
        let words = ["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on, "--json"];
        let mut running = Running::start(&words);
        let told: serde_json::Value = serde_json::from_str(&running.line()).unwrap();
        let address = told["value"]["addresses"][0].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        let port = address.split("127.0.0.1:").nth(1).unwrap().split(['/', '?']).next().unwrap().to_owned();
        for client in WIRES.iter().filter(|wire| wire.tcp.is_some() && are_strangers(wire, server)) {
            let (scheme, options) = client.tcp.unwrap().split_once("AT").unwrap();
            let options = if client.name == "dbus" { "" } else { options };
            let address = format!("{scheme}127.0.0.1:{port}/Account{options}");
            let said = run_in(&[], &["call", &address, "title", "-c", &contract, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server));
            if client.lists {
                let said = run_in(&[], &["list", &address.replace("/Account", ""), "--deadline", "3s"]);
                silent.extend(silence(&said, client, server).map(|said| format!("list: {said}")));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn each_client_names_the_server_of_each_other_wire_at_a_socket() {
    let (contract, scratch) = (data("bank.idl"), Scratch::new());
    let exec = format!("python3 {}", data("bank.py"));
    let mut silent = Vec::new();
    for server in &WIRES {
        let socket = scratch.path(&format!("{}.sock", server.name));
        let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
        let on = server.unix.unwrap().replace("AT", &socket);
        let words = match server.name {
            "dcop" => vec!["dcopserver", "--socket", &socket],
            _ => vec!["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on],
        };
        let mut running = Running::start_in(&env, &words);
        running.line();
        for client in WIRES.iter().filter(|wire| are_strangers(wire, server)) {
            let place = client.unix.unwrap().replace("AT", &socket);
            let (place, options) = place.split_once('?').unwrap_or((&place, ""));
            let question = if options.is_empty() { "" } else { "?" };
            let address = match client.name {
                "dcop" => "dcop:bank/account".to_owned(),
                "net.tcp" => format!("{place}/Account{question}{options}"),
                _ => format!("{place}#Account{question}{options}"),
            };
            let env = [("DCOPSERVER", format!("local/here:{socket}")), env[1].clone()];
            let said = run_in(&env, &["call", &address, "title", "-c", &contract, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server));
            if client.lists {
                let place =
                    address.replace("#Account", "").replace("/Account", "").replace("bank/account", "");
                let said = run_in(&env, &["list", &place, "--deadline", "3s"]);
                silent.extend(silence(&said, client, server).map(|said| format!("list: {said}")));
            }
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn a_server_of_the_right_wire_is_no_stranger() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    let words = ["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", "iiop://127.0.0.1:0"];
    let mut running = Running::start(&words);
    let address = running.line();
    let missing = run_in(&[], &["call", &address.replace("Account", "Nobody"), "title", "-c", &contract]);
    assert!(missing.code != 0 && !missing.err.contains("answers there"), "{}", missing.err);
    let listed = json!(run_in(&[], &["call", "iiop://127.0.0.1:1/x", "title", "-c", &contract]).err);
    assert!(!listed.to_string().contains("answers there"), "{listed}");
}
