//! `trace` of what Windows hosts said to one another over OPC (OISF/suricata-verify, tests/bug-6191): handles are told by the items' names.

use crate::support::{Scratch, run};
use std::collections::HashMap;
use std::fmt::Write as _;

const PDUS: &str = include_str!("../../wires/dcom/tests/golden/captures.tsv");
const ITEM: &str = "Channel_0_User_Defined.Sine.Sine5";

/// The number of the call that a PDU is of.
fn call(pdu: &[u8]) -> u32 {
    u32::from_le_bytes(pdu[12..16].try_into().unwrap())
}

/// The PDUs of the capture: its connection, whether it went to the accepting side, its octets; each answer behind its question.
fn conversation() -> Vec<(u8, bool, Vec<u8>)> {
    let octets = |digits: &str| -> Vec<u8> {
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
    };
    let mut rows = Vec::new();
    for line in PDUS.lines().filter(|line| line.starts_with("opcda\t")) {
        let [_, stream, direction, digits] = *line.split('\t').collect::<Vec<_>>() else { panic!("{line}") };
        rows.push((stream.parse::<u8>().unwrap(), direction == ">", octets(digits)));
    }
    // The capture begins in the middle of both connections, with an alter_context, which says what a bind says. As that it is found.
    for (stream, outward, alter, bind) in
        [(0, true, 14, 11), (0, false, 15, 12), (1, true, 14, 11), (1, false, 15, 12)]
    {
        let first = rows.iter_mut().find(|(own, out, _)| (*own, *out) == (stream, outward)).unwrap();
        assert_eq!(std::mem::replace(&mut first.2[2], bind), alter);
    }
    let (asked, mut answered): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, outward, _)| *outward);
    let mut all = Vec::new();
    for question in asked {
        let (stream, number) = (question.0, call(&question.2));
        all.push(question);
        if let Some(at) = answered.iter().position(|(own, _, pdu)| *own == stream && call(pdu) == number) {
            all.push(answered.remove(at));
        }
    }
    all
}

/// A capture of IP packets, one for each PDU. The second connection is the one that the server makes to call back.
fn pcap() -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 101] {
        file.extend(word.to_le_bytes());
    }
    let (client, server) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let mut sent: HashMap<(u8, bool), u32> = HashMap::new();
    // Both connections begin with the segments that ask for them, and grant them.
    let (asks, grants, goes_on) = (0x02, 0x12, 0x10);
    let openings = [(0, true, asks), (0, false, grants), (1, true, asks), (1, false, grants)]
        .map(|(stream, outward, flags)| (stream, outward, flags, Vec::new()));
    let said = conversation().into_iter().map(|(stream, outward, pdu)| (stream, outward, goes_on, pdu));
    for (second, (stream, outward, flags, pdu)) in (1_u32..).zip(openings.into_iter().chain(said)) {
        let (from, to) = if (stream == 0) == outward { (client, server) } else { (server, client) };
        let ports = if stream == 0 { [49_000_u16, 135] } else { [49_001, 50_001] };
        let ports = if outward { ports } else { [ports[1], ports[0]] };
        let sequence = sent.entry((stream, outward)).or_insert(0);
        let len = u16::try_from(40 + pdu.len()).unwrap();
        let mut packet = vec![0x45, 0];
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend(from);
        packet.extend(to);
        ports.iter().for_each(|port| packet.extend(port.to_be_bytes()));
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend(&pdu);
        // Such a segment counts as an octet.
        *sequence += u32::try_from(pdu.len()).unwrap() + u32::from(flags & asks != 0);
        for word in [second, 0, len.into(), len.into()] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

#[test]
fn handles_of_a_capture_are_told_by_the_items_names() {
    let scratch = Scratch::new();
    let path = scratch.path("opcda.pcap");
    std::fs::write(&path, pcap()).unwrap();
    let said = run(&["trace", &path, "--no-color"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let mut seen = String::new();
    for (method, tells) in [
        ("IOPCItemMgt.AddItems", format!(": {ITEM}")),
        ("to AddItems", format!(": {ITEM} is handle 0x19e8158")),
        ("IOPCItemMgt.SetActiveState", ITEM.to_owned()),
        ("IOPCItemMgt.SetClientHandles", ITEM.to_owned()),
        ("IOPCSyncIO.Read", ITEM.to_owned()),
        ("to Read", format!("{ITEM} = ")),
        ("IOPCDataCallback.OnDataChange", format!("{ITEM} = 0 good")),
    ] {
        let mut lines = said.out.lines().filter(|line| line.contains(method));
        if !lines.any(|line| line.contains(&tells)) {
            writeln!(seen, "no line with {method} tells {tells}").unwrap();
        }
    }
    assert_eq!(seen, "", "{}", said.out);
    let json = run(&["trace", &path, "--json"]);
    assert!(json.out.lines().any(|line| line.contains(&format!("\"items\":\"{ITEM}\""))), "{}", json.out);
}
