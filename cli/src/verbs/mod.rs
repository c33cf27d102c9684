//! One file for each verb: its options, its help, and what it does.

pub(crate) mod broker;
pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod derby;
pub(crate) mod describe;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod hub;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod watch;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// The exit code of a program that a signal ended, as shells count it.
pub(crate) fn exit_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The first signal ends a server in order. Whoever does not want to wait for that sends another: from now on SIGINT and SIGTERM end it
/// at once. `last` is done before.
pub(crate) fn end_at_once(mut signals: Signals, last: impl FnOnce() + Send + 'static) {
    let wait = move || {
        if let Some(signal) = signals.forever().find(|signal| matches!(*signal, SIGINT | SIGTERM)) {
            last();
            std::process::exit(exit_of(signal).into());
        }
    };
    // Without the thread it ends when the calls are over.
    drop(std::thread::Builder::new().name("signals".into()).spawn(wait));
}
