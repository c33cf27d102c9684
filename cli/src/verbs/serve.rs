//! `everywire serve`: serves an interface that a program implements.

use crate::contract;
use crate::json::Notation;
use crate::output::{Envelope, line, note};
use crate::program::ProgramServant;
use crate::trouble::{Done, Trouble};
use crate::units;
use clap::{Args, ValueEnum};
use everywire::model::{Hold, InterfaceKind, Request, Servant};
use everywire::{Failure, Initiator, Interface, Kind, Latency, Node, Notice, Reference};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const EXAMPLES: &str = include_str!("../../help/serve.txt");

/// Serve an interface implemented by a program that speaks JSON lines.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The contract.
    contract: PathBuf,
    /// The interface to serve.
    #[arg(long, value_name = "NAME")]
    interface: String,
    /// The program that implements it: a command line of the shell.
    #[arg(long, value_name = "PROGRAM")]
    exec: String,
    /// The object's key (unless given, the identity of a class, or the last part of the interface's name).
    #[arg(long)]
    key: Option<String>,
    /// Serve a class: whoever asks for an object gets a new one, with a program of its own that ends with it. On wires where
    /// objects can be asked for.
    #[arg(long)]
    class: bool,
    /// Where to listen; may be given several times. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", required = true)]
    on: Vec<String>,
    /// How eagerly to wait for calls.
    #[arg(long, value_enum, default_value = "default")]
    latency: Eagerness,
    /// Largest message to accept or to send, such as 64MiB (4 MiB unless raised).
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_message: Option<u64>,
    /// Write the reference to this file, as a line of the interface's name, a tab and the reference.
    #[arg(long, value_name = "FILE")]
    ref_file: Option<PathBuf>,
    /// Tell about connections and about peers that break the protocol.
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object once it serves.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How eagerly to wait.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Eagerness {
    /// Costs an idle process no CPU.
    Default,
    /// Looks for the next call for longer before it sleeps.
    Lowest,
}

impl From<Eagerness> for Latency {
    fn from(eagerness: Eagerness) -> Self {
        match eagerness {
            Eagerness::Default => Self::Default,
            Eagerness::Lowest => Self::Lowest,
        }
    }
}

/// Serves until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let contract = contract::load(&arguments.contract)?;
    let interface =
        contract::interface(&contract, &arguments.interface, &arguments.contract.display().to_string())?;
    // From here on these signals end the server in order.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Trouble::local("cannot watch for signals", &error))?;
    let mut builder = Node::builder().latency(arguments.latency.into());
    if let Some(bytes) = arguments.max_message {
        builder = builder.max_message(bytes);
    }
    if arguments.verbose {
        builder = builder.observer(Arc::new(|notice: &Notice| note(&told(notice))));
    }
    let node = Node::from(builder.build());
    for address in &arguments.on {
        node.listen(address).map_err(|failure| {
            let trouble = Trouble::failure(format!("cannot listen on `{address}`"), &failure);
            match key_in(address, &node).filter(|_| failure.kind() == Kind::BadReference) {
                Some(key) => trouble.hint(format!("the object's key has an option of its own: --key {key}")),
                None => trouble,
            }
        })?;
    }
    let usual = if interface.kind == InterfaceKind::Class {
        interface.id.as_ref()
    } else {
        contract::last_part(&interface.name)
    };
    let key = arguments.key.as_deref().unwrap_or(usual);
    if arguments.class {
        let reference = serve_class(arguments, &interface, &node, key);
        let announced = announce(arguments, &interface.name, key, &reference, &node);
        if announced.is_ok() {
            signals.forever().next();
        }
        node.stop();
        return announced;
    }
    let servant = ProgramServant::start(interface.clone(), &arguments.exec, node.clone(), key)
        .map_err(|error| Trouble::local(format!("cannot start `{}`", arguments.exec), &error))?;
    let servant = Arc::new(servant);
    let exported: Arc<ProgramServant> = Arc::clone(&servant);
    let reference = node.export_servant(key, exported);
    let announced = announce(arguments, &interface.name, key, &reference, &node);
    if announced.is_ok() {
        signals.forever().next();
    }
    node.stop();
    servant.stop();
    announced
}

/// Serves a class whose objects have a program each.
fn serve_class(arguments: &Arguments, interface: &Hold<Interface>, node: &Node, key: &str) -> Reference {
    let (of, command, server) = (interface.clone(), arguments.exec.clone(), node.clone());
    node.export_class_servants(key, interface.clone(), move |key| {
        let key = String::from_utf8_lossy(key);
        let servant = ProgramServant::start(of.clone(), &command, server.clone(), &key).map_err(|error| {
            Failure::new(Kind::Internal, Initiator::Here, format!("cannot start `{command}`: {error}"))
        })?;
        Ok(vec![Arc::new(Instance(Arc::new(servant))) as Arc<dyn Servant>])
    });
    node.class_reference(key).unwrap_or_default()
}

/// An object of a class: its program ends with it.
struct Instance(Arc<ProgramServant>);

impl Servant for Instance {
    fn interface(&self) -> &Interface {
        self.0.interface()
    }

    fn dispatch(&self, request: Request) {
        self.0.dispatch(request);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // The program gets a while to end by itself, which nobody here has to wait for.
        let servant = Arc::clone(&self.0);
        std::thread::spawn(move || servant.stop());
    }
}

/// The key in an address that names an object.
fn key_in(address: &str, node: &Node) -> Option<String> {
    let reference = node.parse(address).ok()?;
    let key = &reference.profiles.first()?.key;
    (!key.is_empty()).then(|| String::from_utf8_lossy(key).into_owned())
}

fn announce(arguments: &Arguments, name: &str, key: &str, reference: &Reference, node: &Node) -> Done {
    let text = Notation::print(node, reference);
    if let Some(file) = &arguments.ref_file {
        put(file, &format!("{name}\t{text}\n"))
            .map_err(|error| Trouble::local(format!("cannot write {}", file.display()), &error))?;
    }
    let addresses = addresses(reference, node);
    if arguments.json {
        let value = json!({"interface": name, "id": reference.type_id, "key": key, "addresses": addresses, "reference": text});
        Envelope::of(value).print();
    } else {
        addresses.iter().for_each(|address| line(address));
        // Some wires have one notation for both.
        if !addresses.contains(&text) {
            line(&text);
        }
    }
    Ok(())
}

/// One friendly address for each endpoint.
fn addresses(reference: &Reference, node: &Node) -> Vec<String> {
    let each = reference.profiles.iter().flat_map(|profile| {
        profile.endpoints.iter().map(|endpoint| {
            let mut profile = profile.clone();
            profile.endpoints = vec![endpoint.clone()];
            Reference { type_id: reference.type_id.clone(), profiles: vec![profile], foreign: Vec::new() }
        })
    });
    each.map(|reference| node.print_friendly(&reference)).collect()
}

/// Whoever waits for the file sees it whole or not at all.
fn put(file: &Path, text: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, file)
}

fn told(notice: &Notice) -> String {
    match notice {
        Notice::Accepted { peer } => format!("accepted: {peer}"),
        Notice::Refused { peer, why } => format!("refused: {peer}: {why}"),
        Notice::Violation { peer, violation } => format!("violation: {peer}: {violation}"),
        Notice::Unanswered { failure } => format!("unanswered: {failure}"),
        Notice::Left { failure } => format!("left: {failure}"),
        Notice::Joined { place } => format!("joined: {place}"),
        Notice::Starved { why } => format!("starved: {why}"),
        other => format!("{other:?}"),
    }
}
