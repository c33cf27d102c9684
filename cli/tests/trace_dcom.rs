//! `trace` of calls of a COM object: by a relay, and out of a capture.

use crate::dcom::{LAMP, Lamp, of_ada};
use crate::support::{Running, Scratch, data, run};
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

/// A PDU of call 2, whole and little-endian (C706, 12.6), going there or back.
fn pdu(direction: &str, kind: u8, flags: u8, body: &[&str]) -> serde_json::Value {
    let body = body.concat();
    let len = 16 + body.len() / 2;
    let hex = format!("0500{kind:02x}{flags:02x}10000000{len:02x}00000002000000{body}");
    json!({"direction": direction, "hex": hex})
}

/// Results of plain DCE/RPC may look like ORPCTHAT and a failed HRESULT; whether they are, the question tells.
#[test]
fn what_answers_begin_with_is_known_by_their_questions() {
    let sizes = "d016d016";
    let ndr = "045d888aeb1cc9119fe808002b10486002000000";
    let interface = "015ac8f61d0b0b4e9a3c7d1f0d9a2c0101000000";
    let bind = pdu("->", 0x0b, 3, &[sizes, "00000000", "01000000", "00000100", interface, ndr]);
    let accepted = pdu("<-", 0x0c, 3, &[sizes, "07000000", "02003000", "01000000", "00000000", ndr]);
    let plain = pdu("->", 0, 3, &["04000000", "00000100", "07000000"]);
    // MS-DCOM 2.2.13.3: version, flags, reserved, causality, no extensions.
    let this = "05000700".to_owned() + &"00".repeat(28);
    let method = pdu("->", 0, 0x83, &["24000000", "00000100", &"11".repeat(16), &this, "07000000"]);
    let answer = pdu("<-", 2, 3, &["0c000000", "00000000", "0000000000000000", "05000780"]);
    let folder = Scratch::new();
    let capture = folder.path("doubt.pcap");
    let traced = |question: serde_json::Value| {
        let messages = [bind.clone(), accepted.clone(), question, answer.clone()];
        std::fs::write(&capture, pcap(&messages)).unwrap();
        run(&["trace", &capture, "-v"]).good().to_owned()
    };
    let read = traced(plain);
    assert!(read.contains(", to operation 1 after") && !read.contains("ORPC"), "{read}");
    assert!(read.lines().any(|line| line.starts_with("    @24       12  results")), "{read}");
    // Of a method there is no doubt left either.
    let read = traced(method);
    assert!(read.contains("ORPCTHIS") && read.contains("ORPCTHAT") && read.contains("HRESULT"), "{read}");
    assert!(!read.contains("if this is ORPC"), "{read}");
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
