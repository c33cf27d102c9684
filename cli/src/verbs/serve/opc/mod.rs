//! `everywire serve --opc`: a server of OPC Data Access, for values that are simulated, stand in a
//! table, or come from a program.
//!
//! The server of values (`Origin`) is opened first, then the node listens, and then the class and the
//! list of servers (OpcEnum) are exported. It runs until a signal, or until a program that gives the
//! values ends. Clients are then asked to leave, and calls under way have the grace time.

mod program;
mod sheet;

use super::{Arguments, makes_objects, put};
use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, line};
use crate::program::child;
use crate::verbs::end_at_once;
use clap::Args;
use everywire::Node;
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Settings, Simulation, Source};
use program::Program;
use serde_json::json;
use sheet::Sheet;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What clients are told when the server ends (IOPCShutdown).
const FAREWELL: &str = "the server was told to end";

/// What an OPC server serves.
#[derive(Args)]
pub(crate) struct DataAccess {
    /// Serve OPC Data Access as the server NAME (ProgID NAME.1): the items of --simulate, --csv or --exec, without a contract.
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        default_missing_value = "Everywire.Server",
        conflicts_with_all = ["contract", "interface", "key", "class", "classes"]
    )]
    opc: Option<String>,
    /// The items of an OPC server: random numbers, waves, counters, items that can be written, and bad ones.
    #[arg(long, requires = "opc", conflicts_with_all = ["csv", "exec"])]
    simulate: bool,
    /// The items of an OPC server: the rows of this file, which is read again when it changes.
    #[arg(long, value_name = "FILE", requires = "opc", conflicts_with = "exec")]
    csv: Option<PathBuf>,
    /// The CLSID of an OPC server (unless given, one that is made from its name, always the same).
    #[arg(long, value_name = "CLSID", requires = "opc")]
    clsid: Option<String>,
}

impl DataAccess {
    pub(super) fn is_asked_for(&self) -> bool {
        self.opc.is_some()
    }

    fn info(&self) -> ServerInfo {
        let name = self.opc.as_deref().unwrap_or_default();
        match &self.clsid {
            Some(class) => ServerInfo::new(class.trim_matches(['{', '}']), name),
            None => ServerInfo::named(name),
        }
    }
}

/// Where the items come from, and what keeps them up to date. It lives as long as the server.
enum Origin {
    Simulation(Arc<Simulation>),
    Sheet(Sheet),
    Program(Program),
}

impl Origin {
    /// Opens what the options ask for.
    fn open(arguments: &Arguments) -> Done<Self> {
        let wanted = &arguments.data_access;
        match (&wanted.csv, &arguments.exec) {
            _ if wanted.simulate => Ok(Self::Simulation(Arc::default())),
            (Some(file), _) => Sheet::open(file).map(Self::Sheet),
            (None, Some(command)) => Program::start(command).map(Self::Program),
            (None, None) => Err(CliError::usage(
                "there are no items to serve",
                "one of --simulate, --csv and --exec is needed",
            )),
        }
    }

    /// The items, for the server.
    fn source(&self) -> Arc<dyn Source> {
        match self {
            Self::Simulation(source) => Arc::clone(source) as _,
            Self::Sheet(sheet) => Arc::clone(sheet.table()) as _,
            Self::Program(program) => Arc::clone(program.table()) as _,
        }
    }
}

/// Serves until it is told to end.
pub(super) fn run(arguments: &Arguments) -> Done {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    arguments.on.iter().try_for_each(|address| makes_objects(address))?;
    let info = arguments.data_access.info();
    let origin = Origin::open(arguments)?;
    let node = super::node(arguments);
    super::listen(arguments, &node)?;
    OpcEnum::serve(&node).add(&info);
    let failed = |failure| CliError::failure(format!("cannot serve `{}`", info.prog_id), &failure);
    let server = Server::serve(&node, info.clone(), origin.source(), Settings::default()).map_err(failed)?;
    if let Origin::Program(program) = &origin {
        // A program that cannot go on ends the server.
        let handle = signals.handle();
        program.on_end(move || handle.close());
    }
    crate::output::serve_on();
    announce(arguments, &info, &node)?;
    signals.forever().next();
    let child = match &origin {
        Origin::Program(program) => Some(program.child()),
        Origin::Simulation(_) | Origin::Sheet(_) => None,
    };
    end_at_once(signals, move || child.iter().for_each(|child| child::kill(child)));
    // Clients that cannot be told see it from the end of their connections.
    let _ = server.request_shutdown(FAREWELL);
    node.stop_within(arguments.grace.0.unwrap_or(Duration::MAX));
    match origin {
        Origin::Program(program) => program.stop(),
        Origin::Simulation(_) | Origin::Sheet(_) => Ok(()),
    }
}

/// Writes and prints where the server can be reached, by its name and by the reference of its class.
fn announce(arguments: &Arguments, info: &ServerInfo, node: &Node) -> Done {
    let reference = node.class_reference(&info.class).unwrap_or_default();
    let objects = node.addresses(&reference);
    let by_name: Vec<_> = objects.iter().filter_map(|address| by_name(address, &info.prog_id)).collect();
    if let Some(file) = &arguments.ref_file {
        let lines: String = objects.iter().map(|address| format!("{}\t{address}\n", info.prog_id)).collect();
        put(file, &lines)
            .map_err(|error| CliError::local(format!("cannot write {}", file.display()), &error))?;
    }
    if arguments.json {
        let value =
            json!({"server": info.prog_id, "clsid": info.class, "addresses": by_name, "objects": objects});
        Envelope::of(value).print();
        return Ok(());
    }
    by_name.iter().chain(&objects).for_each(|address| line(address));
    Ok(())
}

/// The address of a class as that of an OPC server by its name.
fn by_name(address: &str, prog_id: &str) -> Option<String> {
    let (_, rest) = address.split_once("://")?;
    let (host, _) = rest.split_once('/')?;
    Some(format!("opcda://{host}/{prog_id}"))
}
