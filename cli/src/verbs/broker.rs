//! `everywire broker`: passes calls on, from wire to wire, by the routes of a file, or by addresses on
//! the command line.
//!
//! States: the configuration is read and checked as a whole (all mistakes are told at once); with
//! `--check` that is all. Then the broker runs until a signal: SIGHUP reads the file again, SIGINT and
//! SIGTERM end it in order. A file that is wrong at a SIGHUP changes nothing.
//!
//! Invariant: nothing is printed on standard output before every listener listens, so a script that
//! waits for the first line may call.

use crate::cli_error::{CliError, Done};
use crate::output::line;
use clap::Args;
use everywire::model::units;
use everywire_broker::{Broker, Config, Fidelity, Mistakes, Report, RouteOptions, check};
use serde_json::{Value as Json, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const EXAMPLES: &str = include_str!("../../help/broker.txt");

/// Pass calls on from listeners to targets, on any wires, by the routes of a file.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file of listeners and routes.
    #[arg(required_unless_present_all = ["from", "to"], conflicts_with_all = ["from", "to", "contract", "include", "define", "interface", "key"])]
    file: Option<PathBuf>,
    /// Without a file: where to listen; may be given several times.
    #[arg(long, value_name = "ADDRESS", requires = "to")]
    from: Vec<String>,
    /// Without a file: whom to call; several share the calls.
    #[arg(long, value_name = "ADDRESS", requires = "from")]
    to: Vec<String>,
    /// Without a file: the contract.
    #[arg(short, long, value_name = "FILE")]
    contract: Option<PathBuf>,
    /// Without a file: where files that the contract includes or imports are looked for, after its own directory.
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    include: Vec<PathBuf>,
    /// Without a file: a macro for the contract's preprocessor.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    define: Vec<String>,
    /// Without a file: the interface, unless the contract has one only.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// Without a file: the key that callers name (unless given, that of the target on the same wire, else the last part of the
    /// interface's name).
    #[arg(long)]
    key: Option<String>,
    /// Without a file: how long calls under way may take when the broker is told to end.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::deadline)]
    grace: units::Deadline,
    /// Print what is wrong, or what each operation loses on its way, and run nothing.
    #[arg(long)]
    check: bool,
    /// Write the references of the routes to this file, as lines of the route's name, a tab and the reference in the notation of
    /// foreign programs.
    #[arg(long, value_name = "FILE")]
    ref_file: Option<PathBuf>,
    /// Log each connection and each failed call.
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object once it runs, or of what was checked.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Runs until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let config = config(arguments).map_err(|mistakes| wrong(&mistakes))?;
    if arguments.check {
        let reports = check(config).map_err(|mistakes| wrong(&mistakes))?;
        for report in &reports {
            if arguments.json {
                line(&told(report).to_string());
            } else {
                line(report.to_string().trim_end());
            }
        }
        return Ok(());
    }
    // From here on these signals are words to the broker.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let log = Arc::new(|text: &str| {
        // A line in one write. Whoever closed standard error wants no log.
        let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
    });
    let broker = Broker::start(config, log).map_err(|mistakes| wrong(&mistakes))?;
    crate::output::serve_on();
    announce(arguments, &broker)?;
    for signal in signals.forever() {
        match (&arguments.file, signal) {
            // What is wrong with the file is in the log, and the routes are as they were.
            (Some(file), SIGHUP) => {
                let _ = broker.reload_file(file);
            }
            (None, SIGHUP) => {}
            _ => break,
        }
    }
    super::end_at_once(signals, || {});
    broker.stop();
    Ok(())
}

/// The configuration: that of the file, or one made of the options.
fn config(arguments: &Arguments) -> Result<Config, Mistakes> {
    let config = match &arguments.file {
        Some(file) => Config::read(file)?,
        None => Config::of_addresses(
            &arguments.from,
            &arguments.to,
            RouteOptions {
                contract: arguments.contract.clone(),
                include: arguments.include.clone(),
                define: arguments.define.clone(),
                interface: arguments.interface.clone(),
                key: arguments.key.clone(),
            },
        )
        .grace(arguments.grace.0.unwrap_or(Duration::MAX)),
    };
    Ok(if arguments.verbose { config.verbose() } else { config })
}

/// Tells where the broker listens: writes the references to the file that was asked for, then prints
/// them.
fn announce(arguments: &Arguments, broker: &Broker) -> Done {
    let references = broker.references();
    if let Some(file) = &arguments.ref_file {
        let lines: String =
            references.iter().map(|(name, _, foreign)| format!("{name}\t{foreign}\n")).collect();
        super::serve::put(file, &lines)
            .map_err(|error| CliError::local(format!("cannot write `{}`", file.display()), &error))?;
    }
    if arguments.json {
        let routes: Vec<Json> = references
            .iter()
            .map(
                |(name, friendly, foreign)| json!({"route": name, "address": friendly, "reference": foreign}),
            )
            .collect();
        let listeners: Vec<Json> = broker
            .addresses()
            .iter()
            .map(|(name, address)| json!({"listener": name, "address": address}))
            .collect();
        line(
            &json!({"ok": true, "listeners": listeners, "routes": routes, "admin": broker.admin()})
                .to_string(),
        );
        return Ok(());
    }
    for (name, friendly, _) in &references {
        line(&format!("{name}\t{friendly}"));
    }
    if let Some(address) = broker.admin() {
        line(&format!("admin\thttp://{address}/"));
    }
    Ok(())
}

/// All mistakes at once, as those of a contract.
fn wrong(mistakes: &Mistakes) -> Box<CliError> {
    CliError::configuration(mistakes.to_string())
}

/// What one route loses on its way, as JSON.
fn told(report: &Report) -> Json {
    let each = |all: &[(String, Fidelity)]| -> Vec<Json> {
        let one = |(name, crossing): &(String, Fidelity)| match crossing {
            Fidelity::Whole => json!({"name": name, "crosses": true, "loses": []}),
            Fidelity::Loses(lost) => json!({"name": name, "crosses": true, "loses": lost}),
            Fidelity::Never(why) => json!({"name": name, "crosses": false, "why": why}),
        };
        all.iter().map(one).collect()
    };
    json!({
        "route": report.route, "listener": report.listener, "from": report.wires.0, "to": report.wires.1,
        "interface": report.interface, "key": report.key,
        "operations": each(&report.operations), "may_run_twice": report.twice, "signals": each(&report.signals),
        "callbacks": each(&report.callbacks),
        "notes": report.notes,
    })
}
