//! `everywire serve`: serves an interface that a program implements; a class of such objects; or items
//! of OPC (`opc`).
//!
//! Order: the contract is read; the program is started and the object exported; the node listens, so that
//! not even the first caller misses the object (a bus that starts the server has a call waiting already); and
//! only when all of that is done, and the program waits for calls as far as that can be seen, the addresses are printed. A class
//! starts a program for each object that is asked for.
//!
//! States: it runs until a signal, or until the program of a single object ends with a failure before
//! it did anything (`FailureHook`). Then no new calls are taken, the program's input is closed, calls
//! under way have the grace time, and the program is killed if it does not end. A second signal ends it
//! at once.
//!
//! Invariants: signals that cannot be delivered are told also without `--verbose`, since nobody else
//! would hear of it. A file of references is whole or not there.

mod classes;
mod opc;
mod quotas;

use crate::cli_error::{CliError, Done};
use crate::contract::{self, Preprocess};
use crate::output::{Envelope, line, note};
use crate::program::{ContractExtras, FailureHook, ProgramServant};
use crate::secrets::hidden;
use crate::stranger;
use clap::{Args, ValueEnum};
use classes::Class;
use everywire::model::units;
use everywire::model::{Constant, Hold, InterfaceKind, Request, Servant};
use everywire::{Failure, Initiator, Interface, Kind, Latency, Node, Notice, Reference};
use everywire_dynamic::ObjectContract;
use everywire_dynamic::json::{NodeNotation, Notation, Types};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

const EXAMPLES: &str = include_str!("../../help/serve.txt");

/// Serve an interface implemented by a program that speaks JSON lines.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The contract.
    #[arg(required_unless_present_any = ["classes", "opc"])]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// The interface to serve; not needed where the contract has only one, beside those that it calls back.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// The program that implements it: a command line of the shell.
    #[arg(long, value_name = "PROGRAM", required_unless_present_any = ["classes", "simulate", "csv"])]
    exec: Option<String>,
    /// The object's key (unless given, the identity of a class, or the last part of the interface's name).
    #[arg(long)]
    key: Option<String>,
    /// Serve a class: whoever asks for an object gets a new one, with a program of its own that ends with it. On wires where
    /// objects can be asked for.
    #[arg(long)]
    class: bool,
    /// Serve the classes of this table, each as by --class: lines of CLASS CONTRACT INTERFACE COMMAND...
    #[arg(long, value_name = "FILE", conflicts_with_all = ["contract", "interface", "exec", "key", "class"])]
    classes: Option<PathBuf>,
    #[command(flatten)]
    data_access: opc::DataAccess,
    /// Where to listen; may be given several times. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", required = true)]
    on: Vec<String>,
    /// How eagerly to wait for calls.
    #[arg(long, value_enum, default_value = "default")]
    latency: LatencyOption,
    /// Largest message to accept or to send, such as 64MiB (4 MiB unless raised).
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_message: Option<u64>,
    /// In how many levels received values may nest (64 unless raised).
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_depth: Option<u32>,
    /// How long calls under way may take when the server is told to end (SIGTERM or SIGINT), such as 5s; `none` waits for ever.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = units::deadline)]
    grace: units::Deadline,
    #[command(flatten)]
    shares: quotas::Shares,
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
pub(crate) enum LatencyOption {
    /// Costs an idle process no CPU.
    Default,
    /// Looks for the next call for longer before it sleeps.
    Lowest,
}

impl From<LatencyOption> for Latency {
    fn from(eagerness: LatencyOption) -> Self {
        match eagerness {
            LatencyOption::Default => Self::Default,
            LatencyOption::Lowest => Self::Lowest,
        }
    }
}

/// Serves until it is told to end.
pub(crate) fn run(arguments: &Arguments) -> Done {
    if arguments.data_access.is_asked_for() {
        return opc::run(arguments);
    }
    let (wanted, command) = wanted(arguments)?;
    // From here on these signals end the server in order.
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let classes = arguments.class || arguments.classes.is_some();
    if classes {
        arguments.on.iter().try_for_each(|address| makes_objects(address))?;
    }
    let node = node(arguments);
    // A program that cannot start ends the server.
    let dead: Arc<Mutex<Option<String>>> = Arc::default();
    let hopeless: FailureHook = {
        let (dead, signals) = (Arc::clone(&dead), signals.handle());
        Arc::new(move |status| {
            *dead.lock().unwrap_or_else(PoisonError::into_inner) = Some(status.to_owned());
            signals.close();
        })
    };
    let programs = Arc::<Programs>::default();
    let mut kept: Vec<Arc<ProgramServant>> = Vec::new();
    let mut served = Vec::new();
    for class in wanted {
        let (name, key) = (class.interface.name.to_string(), class.key.clone());
        if classes {
            serve_class(class, &node, &programs);
        } else {
            let words = NodeNotation::new(node.clone(), class.types).opening_files();
            let hopeless = Arc::clone(&hopeless);
            let servant = ProgramServant::start(class.interface, &class.command, words, &key, hopeless)
                .map_err(|error| CliError::local(format!("cannot start `{command}`"), &error))?;
            let servant = Arc::new(servant.telling(class.told));
            programs.add(&servant);
            kept.push(Arc::clone(&servant));
            let exported: Arc<ProgramServant> = servant;
            node.export_servant(&key, exported);
        }
        served.push(ServedObject { name, key });
    }
    crate::output::serve_on();
    let announced = listen(arguments, &node).and_then(|()| {
        // Whoever waits for the addresses is to find a server: not one whose program could not start.
        kept.iter().for_each(|program| program.settle());
        let is_dead = dead.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_dead { Ok(()) } else { announce(arguments, &served, &node) }
    });
    if announced.is_ok() {
        signals.forever().next();
        let running = Arc::clone(&programs);
        super::end_at_once(signals, move || running.all().iter().for_each(|program| program.kill()));
    }
    // Nothing new comes in. The programs hear it first: they answer what they have, and end.
    node.drain();
    programs.all().iter().for_each(|program| program.tell_end());
    node.stop_within(arguments.grace.0.unwrap_or(Duration::MAX));
    kept.iter().for_each(|program| program.stop());
    let dead = dead.lock().unwrap_or_else(PoisonError::into_inner).take();
    match dead.filter(|_| announced.is_ok()) {
        Some(status) => Err(CliError::local(
            format!("cannot start `{command}`"),
            &io::Error::other(format!("it ended ({status}) before it said or was asked anything")),
        )
        .hint("run the command by itself in this folder: it must go on, and wait for calls on its standard input")),
        None => announced,
    }
}

/// What to serve: the classes of a table, or the one object of the options; and the command of the
/// latter, for failures.
fn wanted(arguments: &Arguments) -> Done<(Vec<Class>, String)> {
    if let Some(file) = &arguments.classes {
        return Ok((classes::read(file, &arguments.preprocess)?, String::new()));
    }
    // The parser of the command line sees to it that all of these are there.
    let (Some(path), Some(command)) = (&arguments.contract, &arguments.exec) else {
        return Err(CliError::usage("there is nothing to serve", "a contract and --exec are needed"));
    };
    let known = contract::of_file(path, &arguments.preprocess)?;
    let interface = match &arguments.interface {
        Some(name) => known.interface(name)?.clone(),
        None => only_interface(&known)?,
    };
    let usual = if interface.kind == InterfaceKind::Class {
        interface.id.as_ref()
    } else {
        contract::last_part(&interface.name)
    };
    let key = arguments.key.as_deref().unwrap_or(usual).to_owned();
    let types = Types::of(&known.contract);
    let told = ContractExtras::of(&known.contract, &interface);
    Ok((vec![Class { key, interface, types, told, command: command.clone() }], command.clone()))
}

/// The one interface of a contract, beside those that it calls back and those that it is derived from.
fn only_interface(known: &ObjectContract) -> Done<Hold<Interface>> {
    let listeners = known.listeners();
    let all: Vec<&Hold<Interface>> = known.contract.interfaces().collect();
    let is_base =
        |one: &Hold<Interface>| all.iter().any(|other| other.bases.iter().any(|base| base.name == one.name));
    let is_sink = |one: &Hold<Interface>| {
        let mut signals =
            all.iter().flat_map(|other| other.signals.iter()).filter_map(|signal| signal.sink.as_ref());
        listeners.iter().any(|held| held.name == one.name) || signals.any(|(held, _)| held.name == one.name)
    };
    let mut served = all.iter().filter(|one| !is_base(one) && !is_sink(one));
    match (served.next(), served.next()) {
        (Some(only), None) => Ok(Hold::clone(only)),
        (found, _) => {
            let names: Vec<&str> = all.iter().map(|interface| interface.name.as_ref()).collect();
            let why = match names.as_slice() {
                [] => format!("{} defines no interface", known.source),
                names => format!("{} defines {}", known.source, names.join(", ")),
            };
            let trouble = CliError::usage("it is not clear which interface to serve", why);
            Err(if found.is_some() || !names.is_empty() {
                trouble.hint("name one of these with --interface")
            } else {
                trouble
            })
        }
    }
}

/// A node with the options of the command line.
fn node(arguments: &Arguments) -> Node {
    let mut builder = Node::builder().latency(arguments.latency.into()).quotas(arguments.shares.quotas());
    if let Some(bytes) = arguments.max_message {
        builder = builder.max_message(bytes);
    }
    if let Some(levels) = arguments.max_depth {
        builder = builder.max_depth(levels);
    }
    let is_verbose = arguments.verbose;
    builder = builder.observer(Arc::new(move |notice: &Notice| {
        // Nobody else would hear of a signal that is lost.
        if is_verbose || matches!(notice, Notice::Undelivered { .. }) {
            note(&hidden(&told(notice)));
        }
    }));
    Node::from(builder.build())
}

/// Listens at every address that was given.
///
/// # Errors
/// One cannot be listened on. If it names an object, the hint says how the key is given.
fn listen(arguments: &Arguments, node: &Node) -> Done {
    for address in &arguments.on {
        node.listen(address).map_err(|failure| {
            let mut trouble = CliError::failure(format!("cannot listen on `{address}`"), &failure);
            if let Some(hint) = stranger::bus(address).filter(|_| failure.kind() == Kind::Unreachable) {
                trouble = trouble.hint(hint);
            }
            match key_in(address, node).filter(|_| failure.kind() == Kind::BadReference) {
                Some(key) => trouble.hint(format!("the object's key has an option of its own: --key {key}")),
                None => trouble,
            }
        })?;
    }
    Ok(())
}

/// Refuses an address on whose wire nobody can ask for objects of a class. Unknown schemes are left to
/// the node.
fn makes_objects(address: &str) -> Done {
    let scheme = address.split(['+', ':']).next().unwrap_or_default();
    let wire = everywire::wires::ALL.iter().find(|wire| wire.schemes().contains(&scheme));
    match wire.filter(|wire| !wire.makes_objects()) {
        None => Ok(()),
        Some(wire) => {
            let able = everywire::wires::ALL.iter().filter(|wire| wire.makes_objects());
            let able: Vec<_> = able.map(|wire| wire.name()).collect();
            let why = format!("on {}, nobody can ask for objects of a class", wire.name());
            Err(CliError::usage(format!("cannot serve a class on `{address}`"), why)
                .hint(format!("serve one object, without --class; there are classes on {}", able.join(", "))))
        }
    }
}

/// Serves a class whose objects have a program each.
fn serve_class(class: Class, node: &Node, programs: &Arc<Programs>) {
    let Class { key, interface, types, told: of_contract, command } = class;
    let (of, words) = (interface.clone(), NodeNotation::new(node.clone(), types).opening_files());
    let programs = Arc::clone(programs);
    node.export_class_servants(&key, interface, move |key| {
        let key = String::from_utf8_lossy(key);
        // Other objects of the class may do better; whoever calls this one hears that its program ended.
        let told: FailureHook = Arc::new(|status| note(&format!("program: ended ({status})")));
        let servant =
            ProgramServant::start(of.clone(), &command, words.clone(), &key, told).map_err(|error| {
                Failure::new(Kind::Internal, Initiator::Here, format!("cannot start `{command}`: {error}"))
            })?;
        let servant = Arc::new(servant.telling(of_contract.clone()));
        programs.add(&servant);
        Ok(vec![Arc::new(Instance(servant)) as Arc<dyn Servant>])
    });
}

/// The programs that run, those of objects of classes among them: they hear when the server is told to end.
#[derive(Default)]
struct Programs(Mutex<Vec<Weak<ProgramServant>>>);

impl Programs {
    fn add(&self, program: &Arc<ProgramServant>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are gone are looked for before it grows, so seldom.
        if held.len() == held.capacity() {
            held.retain(|program| program.strong_count() > 0);
            let more = held.len() + 1;
            held.reserve(more);
        }
        held.push(Arc::downgrade(program));
    }

    fn all(&self) -> Vec<Arc<ProgramServant>> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().filter_map(Weak::upgrade).collect()
    }
}

/// What is served.
struct ServedObject {
    /// The interface's name.
    name: String,
    key: String,
}

impl ServedObject {
    /// Where it can be reached.
    fn reference(&self, node: &Node) -> Reference {
        node.reference(&self.key).or_else(|| node.class_reference(&self.key)).unwrap_or_default()
    }
}

/// An object of a class: its program ends with it.
struct Instance(Arc<ProgramServant>);

impl Servant for Instance {
    fn interface(&self) -> &Interface {
        self.0.interface()
    }

    fn constants(&self) -> Vec<Constant> {
        self.0.constants()
    }

    fn listeners(&self) -> Vec<Hold<Interface>> {
        self.0.listeners()
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

/// The key in an address that names an object; `None` if it names none, or is no address.
fn key_in(address: &str, node: &Node) -> Option<String> {
    let reference = node.parse(address).ok()?;
    let key = &reference.profiles.first()?.key;
    (!key.is_empty()).then(|| String::from_utf8_lossy(key).into_owned())
}

/// Writes and prints where the objects can be reached, in the wire's own notation and in the one that
/// all tools read.
fn announce(arguments: &Arguments, served: &[ServedObject], node: &Node) -> Done {
    let references: Vec<Reference> = served.iter().map(|one| one.reference(node)).collect();
    let texts: Vec<String> = references.iter().map(|reference| Notation::print(node, reference)).collect();
    if let Some(file) = &arguments.ref_file {
        let lines: String =
            served.iter().zip(&texts).map(|(one, text)| format!("{}\t{text}\n", one.name)).collect();
        put(file, &lines)
            .map_err(|error| CliError::local(format!("cannot write {}", file.display()), &error))?;
    }
    let mut values = Vec::new();
    for ((one, reference), text) in served.iter().zip(&references).zip(texts) {
        let addresses = node.addresses(reference);
        if arguments.json {
            values.push(json!({"interface": one.name, "id": reference.type_id, "key": one.key,
                "addresses": addresses, "reference": text}));
            continue;
        }
        // Of several, each line says whose it is.
        let whose = if arguments.classes.is_some() { format!("{}\t", one.name) } else { String::new() };
        addresses.iter().for_each(|address| line(&format!("{whose}{address}")));
        // Some wires have one notation for both.
        if !addresses.contains(&text) {
            line(&format!("{whose}{text}"));
        }
    }
    if arguments.json {
        let value =
            if arguments.classes.is_some() { values.into() } else { values.pop().unwrap_or_default() };
        Envelope::of(value).print();
    }
    Ok(())
}

/// Writes a file under another name, and then moves it: whoever waits for the file sees it whole or not
/// at all.
pub(super) fn put(file: &Path, text: &str) -> io::Result<()> {
    let mut beside = file.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, file)
}

/// What a node noticed, as a line for people.
fn told(notice: &Notice) -> String {
    match notice {
        Notice::Accepted { peer } => format!("accepted: {peer}"),
        Notice::Refused { peer, why } => format!("refused: {peer}: {why}"),
        Notice::Violation { peer, violation, .. } => format!("violation: {peer}: {violation}"),
        Notice::Unanswered { failure } => format!("unanswered: {failure}"),
        Notice::Undelivered { failure } => format!("undelivered: {failure}"),
        Notice::Left { failure } => format!("left: {failure}"),
        Notice::Joined { place } => format!("joined: {place}"),
        Notice::Starved { why } => format!("starved: {why}"),
        Notice::Closed { link } => format!("closed: connection {link}"),
        Notice::Withdrawn { link, call } => format!("withdrawn: call {} of connection {link}", call.0),
        other => format!("{other:?}"),
    }
}
