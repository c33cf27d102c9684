//! How it was measured, and on what: the last part of the page. What is true of every derby is a
//! sentence of its text; what differs (machine, versions, rounds, command) is put in.

use super::markup::escape;
use super::{Report, grouped};
use std::fmt::Write;

/// The end of the page.
pub(super) fn html(report: &Report) -> String {
    let machine = &report.machine;
    let mut facts = String::new();
    let mut fact = |name: &str, value: String| {
        let _ = write!(facts, "<dt>{name}</dt><dd>{}</dd>", escape(&value));
    };
    fact(
        "CPU",
        format!(
            "{} × {}{}",
            machine.cpus,
            machine.cpu,
            if machine.virtual_machine { ", a virtual machine" } else { "" }
        ),
    );
    fact("Memory", format!("{} MiB", grouped(machine.memory_mib as f64)));
    fact("System", format!("{}, {}", machine.system, machine.kernel));
    if let Some(governor) = &machine.governor {
        fact("Governor", governor.clone());
    }
    if let Some(load) = machine.load {
        fact("Load before", format!("{load:.2}"));
    }
    fact("Everywire", format!("{}, {} build", machine.everywire, machine.build));
    let mut versions: Vec<&str> =
        report.contestants.iter().filter_map(|contestant| contestant.version.as_deref()).collect();
    versions.dedup();
    if !versions.is_empty() {
        fact("Rivals", versions.join(", "));
    }
    fact("Begun", format!("{}, {:.0} s in all", machine.date, report.seconds));
    let debug = if machine.build == "debug" {
        "<p class=\"over\">This is a debug build: these are no figures to quote.</p>"
    } else {
        ""
    };
    format!(
        "<h2>How it was measured</h2>{debug}<p>Client and server are two processes for everybody but the contestants in process. They are placed \
         on the same CPU, on different CPUs, or nowhere in particular, because a wake-up across CPUs costs more than a call. The \
         contestants come in turn, {} rounds of {} each, a new client process each time; the first \
         round is dropped. Percentiles are of the merged histograms of all kept rounds. Confidence intervals come from a \
         bootstrap over rounds and over blocks of calls within them. Raw bytes are requests and replies of the same size through plain \
         blocking I/O. Frames and bytes were counted by a relay in between, in a run of their own. A kilobyte has 1000 bytes.</p>\
         <p>The same again:</p><pre>{}</pre><dl class=\"facts\">{facts}</dl>",
        report.rounds,
        match (report.calls, report.time_s) {
            (Some(calls), None) => format!("{} calls (large transfers fewer)", grouped(calls as f64)),
            (Some(calls), Some(_)) =>
                format!("an equal time, and {} calls at the most", grouped(calls as f64)),
            (None, _) => "an equal time".to_owned(),
        },
        escape(&report.command)
    )
}
