//! Reliable sessions of WCF (WS-ReliableMessaging), where messages are acknowledged, and sent again when they are not: what the server says
//! of calls that it has received is lost between, and the connection with it.

use super::callers::{Caller, Ours, Told};
use super::{Course, ROUND, SLOTS, Sheet, calls};
use crate::common::foreign::until;
use crate::common::house::{Log, Process, Settings};
use crate::common::scratch;
use crate::faults::relay::Relay;
use std::collections::BTreeMap;
use std::ops::Range;

/// Calls that nobody hears of, each on a connection of its own.
const UNHEARD: i32 = SLOTS / 2;

/// What is lost.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// The connection, when the calls have begun.
    Acknowledgement,
    /// The connection, when the calls have ended and are answered.
    Answer,
    /// Nothing but time: acknowledgements stay away until messages come again.
    Patience,
}

/// All calls of one row.
pub(super) fn row(course: &Course<'_>, loss: Loss, what: &str, sheet: &mut Sheet) {
    let dir = scratch(&format!("e-rm-{}-{}", course.name, loss as u8));
    let (between, behind) = (dir.join("s"), dir.join("behind"));
    let log = Log::new(dir.join("log"));
    let listen = format!("{}+unix://{}{}", course.scheme, between.display(), course.serving);
    let server = Process::start(
        &listen,
        &log,
        Settings { connections: 1000, idle: 0, open: false, descriptors: None },
    );
    // Messages name the socket, so to the server it has the path that it has for clients.
    std::fs::rename(&between, &behind).expect("a socket that listens may be moved");
    let relay = Relay::calm(&between, &behind);
    let reference = format!("{}+unix://{}#counter{}", course.scheme, between.display(), course.calling);
    // Repetitions wait for the clock.
    let rounds = if loss == Loss::Patience { 1 } else { calls() / ROUND };
    let mut told = BTreeMap::new();
    for first in (0..rounds).map(|round| round * ROUND) {
        told.extend(round(&server, &relay, &log, &Ours::new(&reference), loss, first));
    }
    let all = usize::try_from(rounds * ROUND).expect("positive");
    drop(server);
    sheet.enter(course.name, "Everywire", what, &told, &log.read(), all);
}

fn round(
    server: &Process,
    relay: &Relay,
    log: &Log,
    caller: &Ours,
    loss: Loss,
    first: i32,
) -> BTreeMap<i32, Told> {
    let begin = |numbers: Range<i32>| {
        for number in numbers {
            caller.call(number, number * 2 % SLOTS);
        }
    };
    let unheard = first + UNHEARD..first + 2 * UNHEARD;
    // Sessions begin.
    server.open();
    begin(first..unheard.start);
    let mut told = caller.told(UNHEARD);
    server.shut();
    relay.mute(true);
    begin(unheard.clone());
    until("calls begin", || unheard.clone().all(|number| log.read().began.contains_key(&number)));
    let (sent, connections) = relay.passed();
    match loss {
        Loss::Acknowledgement => {
            relay.cut();
            until("clients come again, or are told", || {
                relay.passed().1 > connections || !caller.tellings().lock().expect("whole").is_empty()
            });
            server.open();
        }
        Loss::Answer => {
            server.open();
            until("calls end", || unheard.clone().all(|number| log.read().ended.contains_key(&number)));
            relay.cut();
        }
        Loss::Patience => {
            until("messages come again", || relay.passed().0 > sent);
            relay.mute(false);
            server.open();
        }
    }
    told.extend(caller.told(UNHEARD));
    begin(unheard.end..first + ROUND);
    told.extend(caller.told(ROUND - 2 * UNHEARD));
    let again = relay.passed().1 > connections;
    assert_eq!(again, loss != Loss::Patience, "connections were cut, and clients came again");
    told
}
