//! `trace` of calls of a COM object: by a relay, and out of a capture.

use crate::dcom::{LAMP, Lamp, of_ada};
use crate::support::{Running, data, run};
use serde_json::json;

#[test]
fn a_relay_explains_calls() {
    let lamp = Lamp::open();
    let server = format!("{}?exporter=here", lamp.address);
    let contract = data("lamp.midl");
    let mut relay =
        Running::start(&["trace", &server, "--on", "127.0.0.1:0", "--json", "-vv", "-c", &contract]);
    let opened: serde_json::Value = serde_json::from_str(&relay.line()).unwrap();
    let address = opened["value"]["address"].as_str().unwrap();
    assert!(address.ends_with(&format!("/{LAMP}?exporter=here")) && address != server, "{address}");
    assert_eq!(run(&["call", &of_ada(address), "Switch", "true", "-c", &contract]).good(), "1");
    let mut seen: Vec<serde_json::Value> = Vec::new();
    while !seen.iter().any(|message| message["answers"] == "RemRelease") {
        seen.push(serde_json::from_str(&relay.line()).unwrap());
    }
    let told = |part: &str| seen.iter().any(|message| message["summary"].as_str().unwrap().contains(part));
    for part in
        ["bind #", "auth3", "IRemoteSCMActivator.RemoteCreateInstance", "NTLM integrity", "response #"]
    {
        assert!(told(part), "{part} in {:?}", summaries(&seen));
    }
    let answers = |name: &str| seen.iter().any(|message| message["answers"] == name);
    assert!(answers("RemoteCreateInstance"), "{:?}", summaries(&seen));
    assert!(seen.iter().all(|message| message["wire"] == "dcom"));
    // The contract tells what the stub data are.
    let valued = |values: serde_json::Value| seen.iter().any(|message| message["values"] == values);
    assert!(valued(json!({"on": true})) && valued(json!({"return": 1})), "{seen:#?}");
    assert!(!format!("{seen:?}").contains("sesame"));
    assert_eq!(relay.end("-TERM").0, 0);

    // The same as a capture.
    let capture = lamp.scratch.path("calls.pcap");
    std::fs::write(&capture, pcap(&seen)).unwrap();
    let read = run(&["trace", &capture]);
    assert!(read.good().contains("RemoteCreateInstance") && read.out.contains("RemRelease"), "{}", read.out);
    let asked = seen.iter().filter(|message| message["direction"] == "->").count();
    assert!(read.out.lines().filter(|line| line.contains("#1 ->")).count() == asked, "{}", read.out);

    // With the contract it tells values, and operations by their names.
    let read = run(&["trace", &capture, "-c", &contract]);
    assert!(read.good().contains("-> request #") && read.out.contains(" ILamp.Switch on "), "{}", read.out);
    assert!(!read.out.contains(".operation 3 "), "{}", read.out);
    assert!(read.good().lines().any(|line| line.ends_with(": {on: true}")), "{}", read.out);
}

/// A method fails by its HRESULT, which is the last word of an answer like any other.
#[test]
fn a_failed_method_is_an_error() {
    let lamp = Lamp::open();
    let server = format!("{}?exporter=here", lamp.address);
    let contract = data("lamp.midl");
    let mut relay =
        Running::start(&["trace", &server, "--on", "127.0.0.1:0", "--json", "-vv", "-c", &contract]);
    let opened: serde_json::Value = serde_json::from_str(&relay.line()).unwrap();
    let address = opened["value"]["address"].as_str().unwrap();
    assert_ne!(run(&["call", &of_ada(address), "Break", "5", "-c", &contract]).code, 0);
    let mut seen: Vec<serde_json::Value> = Vec::new();
    while !seen.iter().any(|message| message["answers"] == "RemRelease") {
        seen.push(serde_json::from_str(&relay.line()).unwrap());
    }
    let failed = seen.iter().find(|message| message["answers"] == "Break").unwrap();
    assert_eq!(failed["hresult"], json!({"code": "0x80040005", "name": null, "means": null}), "{failed}");
    let others = seen.iter().filter(|message| message["answers"] != "Break");
    assert_eq!(others.filter(|message| !message["hresult"].is_null()).count(), 0, "{:?}", summaries(&seen));
    assert_eq!(relay.end("-TERM").0, 0);

    let capture = lamp.scratch.path("failed.pcap");
    std::fs::write(&capture, pcap(&seen)).unwrap();
    let read = run(&["trace", &capture, "-c", &contract, "--errors"]);
    let lines: Vec<&str> = read.good().lines().collect();
    assert!(
        matches!(lines[..], [line] if line.contains(", to Break after") && line.ends_with(": 0x80040005")),
        "{lines:?}"
    );
    // Without the contract nobody knows whether the method returns an HRESULT.
    assert_eq!(run(&["trace", &capture, "--errors"]).good(), "");
}

fn summaries(messages: &[serde_json::Value]) -> Vec<&str> {
    messages.iter().map(|message| message["summary"].as_str().unwrap()).collect()
}

/// A capture of raw IPv4 with one connection.
fn pcap(messages: &[serde_json::Value]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0xffff, 101] {
        file.extend(word.to_le_bytes());
    }
    let mut sent = [1_u32, 1];
    for (second, message) in (0_u32..).zip(messages) {
        let hex = message["hex"].as_str().unwrap();
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect();
        let back = usize::from(message["direction"] == "<-");
        let (ports, hosts) = ([[40_000_u16, 135], [135, 40_000]][back], [[1_u8, 2], [2, 1]][back]);
        let len = u32::try_from(40 + bytes.len()).unwrap();
        for word in [second, 0, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x45, 0]);
        file.extend(u16::try_from(len).unwrap().to_be_bytes());
        file.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, hosts[0], 10, 0, 0, hosts[1]]);
        ports.iter().for_each(|port| file.extend(port.to_be_bytes()));
        file.extend(sent[back].to_be_bytes());
        file.extend(sent[1 - back].to_be_bytes());
        file.extend([0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        sent[back] += u32::try_from(bytes.len()).unwrap();
        file.extend(bytes);
    }
    file
}
