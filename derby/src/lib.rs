//! The derby: five published races between distributed-object systems, run again on today's machine.
//!
//! [`run`] is the coordinator. It starts the servers and the clients of every contestant as processes of their own
//! ([`child`] is what this program becomes in them), in turn and in rounds, at three placements on the CPUs, and makes
//! a [`Report`] of what they say: as a table, as JSON, and as a page to look at.
//!
//! * [`race`] is what is raced, `contestants` who races, [`stats`] what is made of the samples.
//! * Nothing here knows how a contestant speaks; [`contestants`] is the one place where foreign things have names.

pub mod buses;
mod capture;
pub mod child;
pub mod contestants;
mod emulator;
mod engine;
mod fresh;
mod interruption;
pub mod link;
mod load;
pub mod machine;
pub mod measure;
pub mod options;
mod pace;
pub mod placement;
mod process;
mod progress;
pub mod race;
mod relay;
pub mod report;
mod sides;
pub mod stats;
pub mod traced;

pub use contestants::ours::{Serve, serve, serve_with};
pub use engine::run;
pub use interruption::{interrupt, interrupted};
pub use load::Load;
pub use options::Options;
pub use report::{OmittedEntry, Report, Row};

use everywire_model::{Failure, Initiator, Kind};

/// Something on this side failed, with one sentence on what.
#[cold]
pub(crate) fn broken(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, message)
}

/// Prints to standard output. Whoever closed the pipe has seen enough, which is no failure of the derby's.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// The user asked for something that is not there.
#[cold]
pub(crate) fn unknown(message: impl Into<String>) -> Failure {
    Failure::new(Kind::BadArgument, Initiator::User, message)
}
