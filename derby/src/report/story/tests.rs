use super::super::tests::sample;
use super::*;
use crate::contestants::published::{CALLS_CORBA, CALLS_DBUS};
use crate::race::Race;

fn race(name: &str) -> &'static Race {
    ALL.iter().find(|race| race.name == name).unwrap()
}

fn chapter(report: &Report, name: &str) -> Chapter {
    chapters(report).into_iter().find(|chapter| chapter.race.name == name).unwrap()
}

/// A row of `calls` on one machine.
fn call(contestant: &'static str, title: &str, system: &'static str, us: f64) -> Row {
    let mut row = sample().rows[1].clone();
    (row.contestant, row.title, row.name) = (contestant, title.into(), title.into());
    (row.wire, row.placement, row.published_by) = (Some("a wire"), "different", Some(system));
    (row.median_us, row.median_low_us, row.median_high_us) = (us, us * 0.99, us * 1.01);
    row
}

#[test]
fn all_five_are_told_and_who_did_not_race_says_how_to() {
    let mut report = sample();
    report.rows.clear();
    let all = chapters(&report);
    assert_eq!(all.iter().map(|chapter| chapter.race.number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(all.iter().all(|chapter| chapter.here.is_none()));
    let page = html(&report);
    for part in [
        "5,412 ms against 7,015 ms",
        "8,958 ms against 10,154 ms",
        "68.7 µs with ORBit2 (CORBA), 190 µs with DCOP and 1116 µs with D-Bus (GLib)",
        "62,500 items a second on one machine and at 6,667 on two",
        "31.5 MB/s with WCF WSHttpBinding",
        "11,317 messages a second, and 6,854 if it had changed a header before the copy: 39 % fewer",
        "<code>everywire derby broker</code>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn the_winner_and_the_loser_are_named_and_a_draw_is_a_draw() {
    let mut report = sample();
    report.rows = vec![
        call("everywire", "Everywire, TCP", CALLS_CORBA, 10.0),
        call("omniorb", "omniORB, TCP", CALLS_CORBA, 20.0),
        call("everywire", "Everywire D-Bus, TCP", CALLS_DBUS, 30.0),
        call("sdbus", "sd-bus, TCP", CALLS_DBUS, 15.0),
    ];
    let (here, verdict) = chapter(&report, "calls").here.unwrap();
    assert_eq!(
        here,
        "Everywire, TCP: 10.0 µs (omniORB, TCP: 20.0 µs); Everywire D-Bus, TCP: 30.0 µs (sd-bus, TCP: 15.0 µs), with client and server on a CPU each."
    );
    assert_eq!(
        verdict,
        "Everywire is 2.00 times as fast as omniORB and sd-bus is 2.00 times as fast as Everywire D-Bus."
    );
    report.rows.truncate(2);
    report.rows[1].median_low_us = 9.0;
    assert_eq!(chapter(&report, "calls").here.unwrap().1, "Everywire and omniORB cannot be told apart.");
}

#[test]
fn contestants_of_different_transports_are_not_compared() {
    let mut report = sample();
    let mut unix = call("omniorb", "omniORB, Unix socket", CALLS_CORBA, 20.0);
    unix.transport = "unix";
    report.rows = vec![call("everywire", "Everywire, TCP", CALLS_CORBA, 10.0), unix];
    let (here, verdict) = chapter(&report, "calls").here.unwrap();
    assert!(!here.contains("omniORB"), "{here}");
    assert_eq!(verdict, "No rival raced on this machine.");
}

#[test]
fn the_placement_is_that_where_rivals_raced() {
    let mut report = sample();
    let mut alone = call("everywire", "Everywire, TCP", CALLS_CORBA, 99.0);
    alone.placement = "unpinned";
    report.rows = vec![
        alone,
        call("everywire", "Everywire, TCP", CALLS_CORBA, 10.0),
        call("omniorb", "omniORB, TCP", CALLS_CORBA, 20.0),
    ];
    let (here, _) = chapter(&report, "calls").here.unwrap();
    assert!(here.contains("10.0 µs (omniORB, TCP: 20.0 µs), with client and server on a CPU each"), "{here}");
}

#[test]
fn ways_of_the_first_race_are_compared_on_the_published_wire() {
    let mut report = sample();
    let row = |operation, us| {
        let mut row = call("everywire", "Everywire DCOM, TCP", CALLS_CORBA, us);
        (row.race, row.operation, row.wire) = ("callbacks", operation, Some(CALLBACKS_WIRE));
        row.round_trips = Some(if operation == CALLBACK { 4.0 } else { 6.0 });
        row
    };
    report.rows = vec![row(CALLBACK, 100.0), row(CONNECTION_POINT, 150.0)];
    let (here, verdict) = chapter(&report, "callbacks").here.unwrap();
    assert_eq!(
        here,
        "1000 cycles of Everywire DCOM, TCP took 150 ms with a connection point and 100 ms with a callback, with client and server on a CPU each."
    );
    assert_eq!(
        verdict,
        "The callback is 1.50 times as fast. A cycle with a connection point has 6 round trips, one with a callback 4."
    );
    for row in &mut report.rows {
        row.wire = Some("another");
    }
    assert!(chapter(&report, "callbacks").here.is_none());
}

#[test]
fn what_a_change_before_the_copy_costs_is_said() {
    let mut report = sample();
    let passes =
        race("broker").operations.iter().find(|o| o.name == HEADLINE_PASSED).unwrap().passes.unwrap();
    let row = |mode, rate: f64| {
        let mut row = call("everywire", "A lane: broker", CALLS_CORBA, 1.0);
        (row.race, row.operation, row.mode) = ("broker", HEADLINE_PASSED, mode);
        row.passing = Some(super::super::PassFigures::new("A lane", passes, rate, None, None));
        row
    };
    report.rows = vec![row(COPY, 20_000.0), row(CHANGE_COPY, 15_000.0)];
    let (here, verdict) = chapter(&report, "broker").here.unwrap();
    assert!(here.ends_with("on a CPU each: A lane 20,000 and 15,000."), "{here}");
    assert_eq!(
        verdict,
        "A change before the copy costs Everywire's broker 25 % of its messages a second at the most."
    );
    report.rows[1] = row(CHANGE_COPY, 19_950.0);
    assert!(chapter(&report, "broker").here.unwrap().1.ends_with("costs Everywire's broker nothing."));
}

#[test]
fn items_of_one_machine_and_of_two_are_told() {
    let mut report = sample();
    let row = |contestant, title: &str, placement, us: f64| {
        let mut row = call(contestant, title, CALLS_CORBA, us);
        (row.race, row.operation, row.placement) = ("opc", READ_100, placement);
        row.items_per_s = Some(1e8 / us);
        row
    };
    report.rows = vec![
        row("everywire", "Everywire OPC, TCP", "different", 100.0),
        row("everywire", "Everywire OPC, TCP", "remote", 200.0),
        row("opcua", "open62541", "remote", 400.0),
    ];
    let (here, verdict) = chapter(&report, "opc").here.unwrap();
    assert_eq!(
        here,
        "Everywire OPC, TCP reads 1,000,000 items a second with client and server on a CPU each and 500,000 items a second between two \
         network namespaces."
    );
    assert_eq!(verdict, "Everywire OPC is 2.00 times as fast as open62541 between two network namespaces.");
}
