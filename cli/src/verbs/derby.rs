//! `everywire derby`: the races, and the server that foreign clients can race.
//!
//! A race runs on the main thread; a second one waits for signals. The first signal has the derby end
//! with what it has, which is printed and written like a whole one; a second signal ends the program at
//! once. The exit code is then that of a program that a signal ended.

use super::exit_of;
use super::serve::LatencyOption;
use crate::cli_error::{CliError, Done};
use clap::{Args, Subcommand};
use everywire::model::units;
use everywire_derby::link::Shape;
use everywire_derby::{Options, Serve};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = include_str!("../../help/derby.txt");
/// Enough for the largest transfer of the races.
const LARGEST_MESSAGE: u64 = 128 << 20;

/// Race object systems against each other, on this machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: DerbyCommand,
}

#[derive(Subcommand)]
enum DerbyCommand {
    /// Callbacks against connection points: create, advise, unadvise, release (the first published race).
    #[command(after_help = EXAMPLES)]
    Callbacks(CourseOptions),
    /// Seven functions, many small calls (the second published race).
    #[command(after_help = EXAMPLES)]
    Calls(CourseOptions),
    /// Reads of process data, by OPC Data Access and by OPC UA (the third published race).
    #[command(after_help = EXAMPLES)]
    Opc(CourseOptions),
    /// Large replies, on one machine and between two (the fourth published race).
    #[command(after_help = EXAMPLES)]
    Bytes(CourseOptions),
    /// What stands between client and backend: a message passed, copied, changed (the fifth published race).
    #[command(after_help = EXAMPLES)]
    Broker(CourseOptions),
    /// Every race.
    #[command(after_help = EXAMPLES)]
    All(CourseOptions),
    /// Serve the interfaces of the races, so that any client can race this server.
    #[command(after_help = EXAMPLES)]
    Serve(ServeOptions),
}

#[derive(Args)]
struct CourseOptions {
    /// One minute, for a race or for all of them, and three rounds.
    #[arg(long, conflicts_with_all = ["thorough", "time"])]
    quick: bool,
    /// As many calls as were published, six rounds, every placement: it takes as long as it takes, some hours for all.
    #[arg(long, conflicts_with = "time")]
    thorough: bool,
    /// All of it ends within this time, such as 90s or 10m; three minutes for a race, fifteen for all, unless given.
    #[arg(long, value_name = "DURATION", value_parser = units::time)]
    time: Option<Duration>,
    /// Contestants, by name, by wire, or by the beginning of names up to a `-`.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds; the first is dropped.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..))]
    rounds: Option<u16>,
    /// The most calls of each operation in a round; without it the time decides.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    calls: Option<u64>,
    /// Where client and server run: same, different (CPUs), unpinned, remote (two network namespaces), busy or busy-different (same
    /// and different CPUs, each beside a loop that never rests).
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    placement: Vec<String>,
    /// The link of the remote placement: a delay, a rate, or both, such as 1ms,100mbit; as fast as it goes otherwise.
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    link: Option<Shape>,
    /// Leave out the wire trace of single cycles.
    #[arg(long)]
    no_trace: bool,
    /// Race a foreign server too: its reference, or a file of lines NAME, tab, reference.
    #[arg(long, value_name = "REF")]
    against: Option<String>,
    /// Write the results as JSON; - for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the results as one self-contained page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the table that is printed to a file too.
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
}

#[derive(Args)]
struct ServeOptions {
    /// Where to listen; may be given several times. Port 0 takes a free one.
    #[arg(long, value_name = "URL", required = true)]
    on: Vec<String>,
    /// Write the references as lines of NAME, tab, reference.
    #[arg(long, value_name = "FILE")]
    ref_file: Option<PathBuf>,
    /// How eagerly to wait for calls.
    #[arg(long, value_enum, default_value = "default")]
    latency: LatencyOption,
    /// Largest message to accept or to send (128 MiB unless given: the races transfer 64 MB).
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_message: Option<u64>,
    /// Report failures as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Races write their JSON to a file.
    pub(crate) fn json(&self) -> bool {
        matches!(&self.what, DerbyCommand::Serve(served) if served.json)
    }
}

/// Races, or serves.
pub(crate) fn run(arguments: &Arguments) -> Done {
    match &arguments.what {
        DerbyCommand::Callbacks(course) => race(vec!["callbacks".into()], course),
        DerbyCommand::Calls(course) => race(vec!["calls".into()], course),
        DerbyCommand::Opc(course) => race(vec!["opc".into()], course),
        DerbyCommand::Bytes(course) => race(vec!["bytes".into()], course),
        DerbyCommand::Broker(course) => race(vec!["broker".into()], course),
        DerbyCommand::All(course) => race(Vec::new(), course),
        DerbyCommand::Serve(served) => serve(served),
    }
}

/// What clap calls for `--link`.
fn shape(text: &str) -> Result<Shape, String> {
    Shape::parse(text).map_err(|failure| failure.to_string())
}

/// One side of a race: what `derby-child` is, which nobody types.
pub(crate) fn child(rest: &[String]) -> ExitCode {
    everywire_derby::child::main(rest)
}

/// Runs these races, all if there is none.
fn race(races: Vec<String>, course: &CourseOptions) -> Done {
    let to_stdout = course.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    let options = Options {
        races,
        quick: course.quick,
        thorough: course.thorough,
        time: course.time,
        only: course.only.clone(),
        rounds: course.rounds.map(usize::from),
        calls: course.calls,
        placements: course.placement.clone(),
        link: course.link,
        no_trace: course.no_trace,
        against: course.against.clone(),
        json: course.json.clone(),
        html: course.html.clone(),
        text: course.text.clone(),
        silent: to_stdout,
        command: String::new(),
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    // The first signal ends the derby with what it has; whoever does not want to wait for that sends another.
    let watch = move || {
        for (at, signal) in signals.forever().enumerate() {
            if at > 0 {
                std::process::exit(exit_of(signal).into());
            }
            everywire_derby::interrupt(signal);
        }
    };
    let watching = std::thread::Builder::new().name("signals".into()).spawn(watch);
    watching.map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let done = everywire_derby::run(&options);
    if let Some(signal) = everywire_derby::interrupted() {
        return Err(CliError::usage("the derby was interrupted", format!("signal {signal} came"))
            .hint("the results so far have been printed and written")
            .as_kind(exit_of(signal), "interrupted"));
    }
    done.map_err(|failure| CliError::failure("the derby did not end as it should", &failure))?;
    Ok(())
}

/// Serves the interfaces of the races until a signal; that is no failure.
fn serve(served: &ServeOptions) -> Done {
    let serve = Serve { on: served.on.clone(), ref_file: served.ref_file.clone() };
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    // Serving goes on until the process ends, and being asked to end is no failure.
    let watch = move || {
        signals.forever().next();
        std::process::exit(0);
    };
    let watching = std::thread::Builder::new().name("signals".into()).spawn(watch);
    watching.map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let largest = served.max_message.unwrap_or(LARGEST_MESSAGE);
    everywire_derby::serve_with(&serve, served.latency.into(), largest)
        .map_err(|failure| CliError::failure("cannot serve the interfaces of the races", &failure))
}
