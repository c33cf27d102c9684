//! The published figures, from the five documents that the races come from, as they were published:
//! nothing is rounded or corrected. A unit that differs is converted by the function that writes the
//! figure down.
//!
//! Figures are of the machines of their time, and stand beside those of today without being scaled.
//! Where a document has several runs the median of those that count is here, and the notes of the race
//! have all of them.
//!
//! Invariant: each operation named here is one of its race, and each system is named by a constant, by
//! which contestants say what stands beside them.

use crate::race::{
    CALLBACK, CONNECTION_POINT, FOUR_PROCESSES, FOUR_THREADS, PublishedFigure, READ_1, READ_100,
};

/// Microseconds for 10,000 calls, as published.
const fn ten_thousand(system: &'static str, operation: &'static str, us: u32) -> PublishedFigure {
    PublishedFigure { system, operation, us: us as f64 / 10_000.0, kb_per_s: None, remote: false, cpu: "" }
}

/// Kilobytes a second as published; a kilobyte is taken as 1000 bytes.
const fn throughput(system: &'static str, payload: u32, kb_per_s: u32, remote: bool) -> PublishedFigure {
    PublishedFigure {
        system,
        operation: if payload == 100 { SMALL } else { LARGE },
        us: payload as f64 * 1000.0 / kb_per_s as f64,
        kb_per_s: Some(kb_per_s as f64),
        remote,
        cpu: "",
    }
}

/// Of one machine: 100 B and 1 MB, in kilobytes a second.
const fn local(system: &'static str, small: u32, large: u32) -> [PublishedFigure; 2] {
    [throughput(system, 100, small, false), throughput(system, 1_000_000, large, false)]
}

/// The same of two.
const fn remote(system: &'static str, small: u32, large: u32) -> [PublishedFigure; 2] {
    [throughput(system, 100, small, true), throughput(system, 1_000_000, large, true)]
}

/// Microseconds for one of so many, in so many milliseconds.
const fn each(system: &'static str, operation: &'static str, ms: u32, many: u32) -> PublishedFigure {
    PublishedFigure {
        system,
        operation,
        us: ms as f64 * 1000.0 / many as f64,
        kb_per_s: None,
        remote: false,
        cpu: "",
    }
}

/// Milliseconds for 1000 cycles, which is microseconds for one.
const fn cycles(operation: &'static str, ms: f64, remote: bool) -> PublishedFigure {
    PublishedFigure { system: CALLBACKS_DCOM, operation, us: ms, kb_per_s: None, remote, cpu: "" }
}

/// The system whose figures stand beside every contestant of the same wire in race 2.
pub const CALLS_CORBA: &str = "ORBit2 (CORBA)";
/// The same in race 4.
pub const BYTES_CORBA: &str = "IIOP.NET (CORBA)";
/// Of the bindings of WCF in race 4: SOAP and addressing over HTTP.
pub const BYTES_WS_HTTP: &str = "WCF WSHttpBinding";
/// Binary messages over TCP.
pub const BYTES_NET_TCP: &str = "WCF NetTcpBinding";
/// The same between processes of one machine.
pub const BYTES_NAMED_PIPE: &str = "WCF NetNamedPipeBinding";
/// The same of DCOP in race 2.
pub const CALLS_DCOP: &str = "DCOP";
/// The same of D-Bus in race 2.
pub const CALLS_DBUS: &str = "D-Bus (GLib)";

/// The wire that race 1 was published of.
pub const CALLBACKS_WIRE: &str = "dcom";
/// The system whose figures stand beside it.
pub const CALLBACKS_DCOM: &str = "DCOM";

/// Race 1: 1000 cycles, runs 2 to 5 (their median), the first dropped.
pub const CALLBACKS: &[PublishedFigure] = &[
    cycles(CONNECTION_POINT, 5412.5, false),
    cycles(CALLBACK, 7015.0, false),
    cycles(CONNECTION_POINT, 8958.0, true),
    cycles(CALLBACK, 10154.5, true),
];

/// What is to be said about race 1.
pub const CALLBACKS_NOTES: &[&str] = &[
    "Published, ms per 1000 cycles, runs 1 to 5: on one machine connection points (6219,) 5498, 5228, 5327, 5578 and callbacks \
      (7471,) 7020, 7010, 6920, 7271; on two machines connection points (10365,) 8583, 8923, 9003, 8993 and callbacks (9744,) 9673, \
      10385, 10485, 9924. The first of each was a warm-up.",
    "On DCOM activation makes the server object; on the other wires a factory does, so that a cycle is the same work. Nobody is \
      called back while the clock runs, as published; before it starts, each contestant whose server can call back does so once.",
];

/// Race 2, Athlon XP 2800.
pub const CALLS: &[PublishedFigure] = &[
    ten_thousand(CALLS_CORBA, "void_call", 626_480),
    ten_thousand(CALLS_CORBA, "in_int_call", 629_227),
    ten_thousand(CALLS_CORBA, "out_int_call", 660_020),
    ten_thousand(CALLS_CORBA, "in_out_int_call", 686_850),
    ten_thousand(CALLS_CORBA, "in_string_call", 650_098),
    ten_thousand(CALLS_CORBA, "out_string_call", 730_118),
    ten_thousand(CALLS_CORBA, "in_out_string_call", 682_283),
    ten_thousand(CALLS_DCOP, "void_call", 1_769_354),
    ten_thousand(CALLS_DCOP, "in_int_call", 1_859_219),
    ten_thousand(CALLS_DCOP, "out_int_call", 1_824_046),
    ten_thousand(CALLS_DCOP, "in_out_int_call", 1_903_499),
    ten_thousand(CALLS_DCOP, "in_string_call", 1_902_107),
    ten_thousand(CALLS_DCOP, "out_string_call", 1_870_306),
    ten_thousand(CALLS_DCOP, "in_out_string_call", 1_952_853),
    ten_thousand(CALLS_DBUS, "void_call", 9_783_550),
    ten_thousand(CALLS_DBUS, "in_int_call", 10_469_005),
    ten_thousand(CALLS_DBUS, "out_int_call", 10_399_278),
    ten_thousand(CALLS_DBUS, "in_out_int_call", 11_162_058),
    ten_thousand(CALLS_DBUS, "in_string_call", 10_510_298),
    ten_thousand(CALLS_DBUS, "out_string_call", 10_455_126),
    ten_thousand(CALLS_DBUS, "in_out_string_call", 11_239_133),
];

/// What is to be said about race 2.
pub const CALLS_NOTES: &[&str] = &[
    "KDE 3's own dcopserver cannot be installed any more. Measured with kdelibs 3.5 and all processes on one \
      CPU of a machine like today's: void 49.7 us (6.4 x raw), inout int 56.3 us, 1 MB 1817 us, a signal 20.5 us.",
    MONO_NOTE,
];

/// What is to be said where Mono races.
const MONO_NOTE: &str = "Mono as shipped sleeps 50 ms before each receive of net.tcp, and up to 100 ms before each accept of HTTP. The \
      figures to beat are those of the same library with both sleeps taken out; what sleeps races for a second at the most.";

/// So many reads in so many seconds by each client, and the CPU of client and server.
const fn reads(
    system: &'static str,
    operation: &'static str,
    many: u32,
    seconds: f64,
    remote: bool,
    cpu: &'static str,
) -> PublishedFigure {
    PublishedFigure { system, operation, us: seconds * 1e6 / many as f64, kb_per_s: None, remote, cpu }
}

/// The system of race 3.
pub const ITEMS_DCOM: &str = "OPC over DCOM";
/// The same with the server in the client's process.
pub const ITEMS_IN_PROCESS: &str = "OPC in process";

/// Race 3, P233. Four clients read 18,775 items a second together, so 1000 reads of each took 21.3 s.
pub const ITEMS: &[PublishedFigure] = &[
    reads(ITEMS_DCOM, READ_100, 10_000, 16.0, false, "40 / 60"),
    reads(ITEMS_DCOM, READ_1, 50_000, 15.0, false, "50 / 50"),
    reads(ITEMS_DCOM, READ_100, 1000, 15.0, true, "10 / 12"),
    reads(ITEMS_DCOM, READ_1, 3000, 9.0, true, "10 / 10"),
    reads(ITEMS_DCOM, FOUR_THREADS, 1000, 4.0 * 100_000.0 / 18_775.0, true, "4-25 / 10"),
    reads(ITEMS_DCOM, FOUR_PROCESSES, 1000, 4.0 * 100_000.0 / 18_775.0, true, "4-25 / 10"),
    reads(ITEMS_IN_PROCESS, READ_100, 100_000, 9.0, false, "100"),
    reads(ITEMS_IN_PROCESS, READ_1, 5_000_000, 22.0, false, "100"),
];

/// What is to be said about race 3.
pub const ITEMS_NOTES: &[&str] = &[
    "Published of a Pentium of 233 MHz: client and server in one process, in two, and on two machines, with one client and with four on \
      machines of their own (17 to 25 s for 1000 reads each). Its percentages are of the CPU of the client's machine and of the server's.",
    "Everywire's DCOM signs each message at level integrity, which Windows has demanded since 2023, and seals it at level privacy; \
      at level connect it does neither. The rivals of OPC UA and those that call our server neither sign nor seal.",
    "A value is made of its timestamp and of the item's number, so that the reader sees if any of the three does not belong to the others; \
      quality is to be good, and no time goes back.",
];

/// What is to be said of the rates of race 3.
pub const RATES_NOTES: &[&str] = &[
    "Typical servers were published to run at 5,000 items a second, and to send only what changes (exception mode). A percentage is of one \
      CPU. The server's part of exception mode has the changing of its values in it.",
];

/// The operations of race 4.
pub const SMALL: &str = "GetBytes 100 B";
/// The other.
pub const LARGE: &str = "GetBytes 1 MB";

/// Race 4: one PC, Core 2 Duo 2.66 GHz, and two of them on 100BASE.
pub const BYTES: &[PublishedFigure] = {
    const ALL: [[PublishedFigure; 2]; 7] = [
        local(BYTES_WS_HTTP, 174, 31_480),
        local(BYTES_NET_TCP, 444, 251_610),
        local(BYTES_CORBA, 2583, 249_840),
        local(BYTES_NAMED_PIPE, 397, 516_017),
        remote(BYTES_WS_HTTP, 111, 13_290),
        remote(BYTES_NET_TCP, 1315, 82_168),
        remote(BYTES_CORBA, 777, 80_219),
    ];
    ALL.as_flattened()
};

/// What is to be said about race 4.
pub const BYTES_NOTES: &[&str] = &[
    "Published of one PC and of two on 100BASE, 100 calls after a trial call; the figures of two PCs are more than such a link carries \
      (12,500 KB/s), and stand as published. Here the two network namespaces are joined as fast as the machine can; `--link \
      50us,100mbit` joins them by such a link.",
    "WCF takes messages of 65,536 bytes at the most unless told otherwise: each side of its bindings raises MaxReceivedMessageSize and \
      MaxArrayLength to 2,000,000 by the options of its address, as the published race did.",
    MONO_NOTE,
];

/// The system of race 5.
pub const BROKER_WCF: &str = "WCF broker";
/// The forms in which a hop forwards: it passes what comes.
pub const PASS: &str = "pass-through";
/// It hands a copy to somebody who counts its octets.
pub const COPY: &str = "copy, forward";
/// It changes a header, and then copies.
pub const CHANGE_COPY: &str = "change a header, copy, forward";
/// It copies, and then changes a header.
pub const COPY_CHANGE: &str = "copy, change a header, forward";
/// It knows the contract, and calls the backend itself.
pub const TYPED: &str = "typed";

/// Race 5: forwarded messages a second, by form.
pub const BROKER: &[PublishedFigure] =
    &[each(BROKER_WCF, COPY, 1000, 11_317), each(BROKER_WCF, CHANGE_COPY, 1000, 6854)];

/// What is to be said about race 5.
pub const BROKER_NOTES: &[&str] = &[
    "Published of a broker on WCF that the messages kept busy: copy, forward 11,317 messages/s at 98.6 % CPU, 8 % of the profile in the copy; change \
      a header, copy, forward 6854 messages/s at 98.7 % CPU, about 28 % of it in the copy, 40 % in the broker that it was taken from. The size of the \
      messages was not published.",
    "A message is a call with its answer; the answer has the orders, about 100 octets each on the tightest wire. The hop has a CPU of its own where \
      there are two, and client and backend share the other: where the hop is cheap, they are what bounds the messages a second, and the CPU of the hop \
      is what tells hops apart.",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_documents() {
        let of = |operation: &str| CALLS.iter().find(|f| f.operation == operation).unwrap().us;
        assert!((of("in_out_int_call") - 68.685).abs() < 1e-9);
        // 1 MB at 249,840 KB/s takes 4 ms.
        let corba =
            BYTES.iter().find(|figure| figure.system == BYTES_CORBA && figure.operation == LARGE).unwrap();
        assert!((corba.us - 4002.56).abs() < 0.01 && !corba.remote, "{}", corba.us);
        let rates = |system: &str| -> Vec<f64> {
            BYTES
                .iter()
                .filter(|figure| figure.system == system)
                .filter_map(|figure| figure.kb_per_s)
                .collect()
        };
        assert_eq!(rates(BYTES_WS_HTTP), [174.0, 31_480.0, 111.0, 13_290.0]);
        assert_eq!(rates(BYTES_NAMED_PIPE), [397.0, 516_017.0]);
        assert!((BROKER[0].us - 88.36).abs() < 0.01);
        let runs = |mut runs: [f64; 4]| {
            runs.sort_by(f64::total_cmp);
            f64::midpoint(runs[1], runs[2])
        };
        let medians = [
            runs([5498.0, 5228.0, 5327.0, 5578.0]),
            runs([7020.0, 7010.0, 6920.0, 7271.0]),
            runs([8583.0, 8923.0, 9003.0, 8993.0]),
            runs([9673.0, 10385.0, 10485.0, 9924.0]),
        ];
        assert_eq!(CALLBACKS.iter().map(|figure| figure.us).collect::<Vec<_>>(), medians);
    }
}
