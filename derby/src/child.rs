//! What this program is in the processes that a derby starts.
//!
//! The first argument is the kind of the child: a server or a client of raw sockets, the holder of a
//! network namespace, an emulated link, a capture, or (everything else) one of our own contestants. A
//! child tells on standard output only what its starter reads there, its failure on standard error, and
//! whether it failed by its status.

pub use crate::process::COMMAND;

use crate::contestants::{omniorb, ours, raw};
use crate::{broken, capture, emulator, link, unknown};
use everywire_model::Failure;
use std::process::ExitCode;

/// Runs a child; `arguments` are those after `COMMAND`. A server returns only when it fails: its
/// starter kills it.
pub fn main(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// By the kind of the child.
fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((kind, arguments)) = arguments.split_first() else {
        return Err(unknown("a kind of child is missing"));
    };
    match kind.as_str() {
        "raw-server" => raw::serve(arguments),
        "raw-client" => raw::race(arguments),
        "raw-member" => raw::member(arguments),
        "namespace" => link::hold(arguments),
        "link" => emulator::run(arguments),
        "capture" => capture::run(arguments),
        // For scripts: builds the rival's programs, and prints where they are.
        "omniorb-programs" => omniorb::build()
            .map(|built| println!("{}", built.client.parent().unwrap_or(&built.client).display()))
            .map_err(|missing| broken(format!("{}; {}", missing.what, missing.install))),
        other => ours::child(other, arguments),
    }
}
