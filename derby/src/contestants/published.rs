//! The published figures, from the five documents that the races come from.

use crate::race::{CALLBACK, CONNECTION_POINT, Published};

/// Microseconds for 10,000 calls, as published.
const fn ten_thousand(system: &'static str, operation: &'static str, us: u32) -> Published {
    Published { system, operation, us: us as f64 / 10_000.0, kb_per_s: None }
}

/// Kilobytes a second as published; a kilobyte is taken as 1000 bytes.
const fn throughput(system: &'static str, operation: &'static str, payload: u32, kb_per_s: u32) -> Published {
    Published {
        system,
        operation,
        us: payload as f64 * 1000.0 / kb_per_s as f64,
        kb_per_s: Some(kb_per_s as f64),
    }
}

/// Microseconds for one of so many, in so many milliseconds.
const fn each(system: &'static str, operation: &'static str, ms: u32, many: u32) -> Published {
    Published { system, operation, us: ms as f64 * 1000.0 / many as f64, kb_per_s: None }
}

/// The system whose figures stand beside every contestant of the same wire in race 2.
pub const CALLS_CORBA: &str = "ORBit2 (CORBA)";
/// The same in race 4.
pub const BYTES_CORBA: &str = "IIOP.NET (CORBA)";
/// The same of DCOP in race 2.
pub const CALLS_DCOP: &str = "DCOP";
/// The same of D-Bus in race 2.
pub const CALLS_DBUS: &str = "D-Bus (GLib)";

/// The wire that race 1 was published of.
pub const CALLBACKS_WIRE: &str = "dcom";
/// The system whose figures stand beside it, where both sides are on one machine.
pub const CALLBACKS_LOCAL: &str = "DCOM, one machine";
/// The same, where they are on two.
pub const CALLBACKS_REMOTE: &str = "DCOM, two machines";

/// Race 1: 1000 cycles, runs 2 to 5 (their median), the first dropped.
pub const CALLBACKS: &[Published] = &[
    Published { system: CALLBACKS_LOCAL, operation: CONNECTION_POINT, us: 5412.5, kb_per_s: None },
    Published { system: CALLBACKS_LOCAL, operation: CALLBACK, us: 7015.0, kb_per_s: None },
    Published { system: CALLBACKS_REMOTE, operation: CONNECTION_POINT, us: 8958.0, kb_per_s: None },
    Published { system: CALLBACKS_REMOTE, operation: CALLBACK, us: 10154.5, kb_per_s: None },
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
pub const CALLS: &[Published] = &[
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
];

/// Race 3, P233, local, one client: seconds for so many reads.
pub const ITEMS: &[Published] =
    &[each("OPC over DCOM", "read 100", 16_000, 10_000), each("OPC over DCOM", "read 1", 15_000, 50_000)];

/// Race 4, one PC, Core 2 Duo 2.66 GHz.
pub const BYTES: &[Published] = &[
    throughput(BYTES_CORBA, "GetBytes 100 B", 100, 2583),
    throughput(BYTES_CORBA, "GetBytes 1 MB", 1_000_000, 249_840),
    throughput("WCF NetTcpBinding", "GetBytes 100 B", 100, 444),
    throughput("WCF NetTcpBinding", "GetBytes 1 MB", 1_000_000, 251_610),
    throughput("WCF NetNamedPipeBinding", "GetBytes 100 B", 100, 397),
    throughput("WCF NetNamedPipeBinding", "GetBytes 1 MB", 1_000_000, 516_017),
    throughput("WCF WSHttpBinding", "GetBytes 100 B", 100, 174),
    throughput("WCF WSHttpBinding", "GetBytes 1 MB", 1_000_000, 31_480),
];

/// Race 5: forwarded messages a second.
pub const BROKER: &[Published] = &[
    each("WCF broker", "copy, forward", 1000, 11_317),
    each("WCF broker", "change a header, copy, forward", 1000, 6854),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_documents() {
        let of = |operation: &str| CALLS.iter().find(|f| f.operation == operation).unwrap().us;
        assert!((of("in_out_int_call") - 68.685).abs() < 1e-9);
        // 1 MB at 249,840 KB/s takes 4 ms.
        assert!((BYTES[1].us - 4002.56).abs() < 0.01, "{}", BYTES[1].us);
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
