//! `everywire watch`: prints the signals of an object as they come.
//!
//! States: *subscribed*, in a round that has a number; *lost*, when a connection broke because a server
//! or a bus was started anew: then subscriptions are made again, with pauses that grow from `FIRST` to
//! `LONGEST`, until they stand (`again`) and the next round begins. It ends by a signal, a count, or a
//! time.
//!
//! Callbacks come on threads of the node, and are sent to the main thread, which prints; they wait when it is far
//! behind (`backlog`). What is told carries the number of its round, so that what earlier subscriptions say of their end
//! counts once.
//!
//! Invariants: "watching" is noted only when the subscriptions stand: from then on nothing is missed. A
//! peer that is gone, or cannot answer yet, is waited for (`may_pass`); any other failure ends the
//! program. Other objects are asked for their contracts at most `MOST_OTHERS` times, and until these have `MOST_MEMBERS`.

mod backlog;
mod listening;

use crate::cli_error::{CliError, Done};
use crate::complete;
use crate::contract::{self, Preprocess};
use crate::opcda;
use crate::output::{self, Style, line, note, tinted, visible, visible_lines};
use crate::people;
use crate::secrets::hidden;
use crate::stranger;
use crate::target;
use crate::trace::{time_of_day, timestamp};
use backlog::{BacklogReceiver, BacklogSender, backlog};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::signal::Listener;
use everywire::model::units::{self, Deadline};
use everywire::model::{Hold, Incoming, Shape, SignalEvent, Subscription, Wire};
use everywire::{Bytes, Failure, Interface, Kind, Node, Object, Value};
use everywire_dynamic::json::{self, NodeNotation, Notation, Types};
use everywire_dynamic::listening::Registration;
use everywire_dynamic::watching::{self, SignalFilter, decode, fields_of};
use everywire_dynamic::{CallError, Mistake, wire_of};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = include_str!("../../help/watch.txt");

/// The first pause before a server that is gone is looked for again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);

/// Objects that are asked what their signals' fields are called: each question is remembered, so they
/// must not grow without end.
const MOST_OTHERS: usize = 1024;
/// Operations, attributes and signals that they may have together before no more is asked.
const MOST_MEMBERS: usize = 1 << 17;

/// Print signals and changes of attributes as they come.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The object, or the server whose objects are meant.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    reference: String,
    /// Only this signal; of an OPC server, another item.
    #[arg(add = ArgValueCompleter::new(complete::signals))]
    signal: Option<String>,
    /// Further items of an OPC server.
    #[arg(value_name = "ITEM")]
    more: Vec<String>,
    /// The contract that describes the object; not needed where objects tell it themselves.
    #[arg(short, long, value_name = "FILE")]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// Only signals of this interface.
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::interfaces))]
    interface: Option<String>,
    /// End after so many signals.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// End after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = units::deadline, default_value = "none")]
    duration: Deadline,
    /// Where this program listens, for objects that call their listeners back [default: a free port].
    #[arg(long, value_name = "ADDRESS")]
    on: Option<String>,
    /// For an OPC server: how often values come at most.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "1s")]
    rate: Deadline,
    /// For an OPC server: by how many percent of its range an item must change.
    #[arg(long, value_name = "PERCENT")]
    deadband: Option<f32>,
    /// For an OPC server: print lines of CSV.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON object a signal.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watches.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let node = Node::from(Node::builder().shards(1).build());
    let text = target::text(&arguments.reference)?;
    if opcda::is_meant(&text) {
        let others = arguments.signal.iter().chain(&arguments.more).map(String::as_str).collect();
        let watched = opcda::WatchOptions {
            text: &text,
            others,
            rate: arguments.rate.0.unwrap_or_default(),
            deadband: arguments.deadband,
            count: arguments.count,
            duration: arguments.duration.0,
            csv: arguments.csv,
            json: arguments.json,
        };
        return opcda::watch(&node, &watched, style);
    }
    if !arguments.more.is_empty() || arguments.csv || arguments.deadband.is_some() {
        return Err(CliError::usage("only OPC servers have items", format!("`{text}` is no opcda address"))
            .hint("name one signal"));
    }
    let object = node
        .object(&text)
        .map_err(|failure| target::unfit(format!("`{text}` is no reference"), &text, &failure))?;
    let wire = wire_of(object.reference()).ok();
    // Without signals there are listeners, which only a contract tells.
    let called = wire.filter(|wire| !wire.capabilities().signals);
    let open = called.map(|wire| listening::open(arguments, wire, &object, &node));
    // What a signal's fields are called is good to know, but not needed.
    let known = match &arguments.contract {
        Some(path) => Ok(contract::of_file(path, &arguments.preprocess)?),
        None => contract::of_object(&object),
    };
    let calls = match open {
        Some(open) => {
            let known = match &known {
                Ok(known) => known,
                Err(_) => &contract::of(&object, None, &arguments.preprocess)?,
            };
            let own: Vec<Hold<Interface>> = known.contract.interfaces().take(known.own).cloned().collect();
            let registration = listening::prepare(arguments, &object, (&known.contract, &own))?;
            open?;
            Some(registration)
        }
        None => None,
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let (tell, heard) = backlog();
    let stop = tell.clone();
    let types = known.as_ref().map(|known| Types::of(&known.contract)).unwrap_or_default();
    let interfaces: Vec<Hold<Interface>> =
        known.iter().flat_map(|known| known.contract.interfaces().cloned()).collect();
    // What every object of the wire may have can be asked for by name, too, though no contract tells of it.
    let told = |common: &&Hold<Interface>| interfaces.iter().any(|held| held.id == common.id);
    let common = wire.map_or(&[][..], |wire| wire.common());
    let common: Vec<Hold<Interface>> = common.iter().filter(|common| !told(common)).cloned().collect();
    let described: Vec<Hold<Interface>> = interfaces.iter().chain(&common).cloned().collect();
    // Where signals are calls over this connection, a contract without any is the whole truth.
    let waits = wire.is_some_and(|wire| wire.capabilities().callbacks_on_connection);
    let silent_contract = interfaces.iter().all(|interface| interface.signals.is_empty());
    if waits && silent_contract && !interfaces.is_empty() && arguments.signal.is_none() {
        return Err(not_watched(arguments, watching::none(&interfaces)));
    }
    // Why nobody can be asked also says why nobody can be heard, where that takes a contract.
    let silent = known.err().filter(|failure| {
        matches!(failure.kind(), Kind::Unreachable | Kind::Refused | Kind::TimedOut | Kind::NoObject)
    });
    let calls = calls.as_ref().map(|registration| (&node, registration));
    let asking = Asking {
        arguments,
        object: &object,
        interfaces: &interfaces,
        common: &common,
        calls,
        tell,
        told: &heard,
    };
    let mut round = 0;
    let mut subscriptions = asking.subscribe(silent.as_ref(), round)?;
    if wire.is_some_and(|wire| wire.capabilities().callbacks_on_connection) {
        ask_to_be_called(arguments, &object, &interfaces)?;
    }
    // From now on nothing is missed.
    note(&format!("watching {}", hidden(&text)));
    std::thread::spawn(move || {
        signals.forever().next();
        stop.tell(None);
    });
    let (others, members) = (RefCell::default(), Cell::new(0));
    let printer = Printer {
        words: NodeNotation::new(node.clone(), types),
        object: &object,
        interfaces: &described,
        others,
        members,
        json: arguments.json,
        style,
    };
    let until = arguments.duration.0.map(|duration| Instant::now() + duration);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        let within = until.map(|until| until.saturating_duration_since(Instant::now()));
        match heard.next(within).ok() {
            Some(Some((_, SignalEvent::Signal(heard)))) => {
                printer.print(&heard);
                left -= 1;
            }
            Some(Some((_, SignalEvent::OwnerLost(failure) | SignalEvent::Undecodable(failure)))) => {
                printer.lost(&failure)
            }
            Some(Some((of, SignalEvent::Disconnected(failure)))) if of == round => {
                printer.lost(&failure);
                drop(subscriptions);
                round += 1;
                let Some(made) = asking.again(wire, round, until)? else { return Ok(()) };
                subscriptions = made;
                printer.back();
            }
            Some(Some((_, SignalEvent::Disconnected(_)))) => {}
            Some(None) | None => break,
        }
    }
    drop(subscriptions);
    Ok(())
}

/// What is asked for, and of whom.
struct Asking<'a> {
    arguments: &'a Arguments,
    object: &'a Object,
    interfaces: &'a [Hold<Interface>],
    /// What every object of the wire may have beside them.
    common: &'a [Hold<Interface>],
    /// On wires without signals: who is called back, and how.
    calls: Option<(&'a Node, &'a Registration)>,
    tell: BacklogSender,
    told: &'a BacklogReceiver,
}

impl Asking<'_> {
    fn subscribe(&self, silent: Option<&Failure>, round: u32) -> Done<Vec<Subscription>> {
        subscribe(self, silent, &(self.tell.clone(), round))
    }

    /// Subscribes anew, as soon as somebody answers again; `None` when it is time to end.
    ///
    /// # Errors
    /// The peer is there, and what it says will not pass.
    fn again(
        &self,
        wire: Option<&dyn Wire>,
        round: u32,
        until: Option<Instant>,
    ) -> Done<Option<Vec<Subscription>>> {
        let mut pause = FIRST;
        loop {
            let next = Instant::now() + pause;
            let end = until.map_or(next, |until| until.min(next));
            // What earlier subscriptions still say is passed over.
            loop {
                match self.told.next(Some(end.saturating_duration_since(Instant::now()))) {
                    Ok(None) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
                    Ok(Some(_)) => {}
                    Err(RecvTimeoutError::Timeout) => break,
                }
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(None);
            }
            let made = self.subscribe(None, round).and_then(|made| {
                if wire.is_some_and(|wire| wire.capabilities().callbacks_on_connection) {
                    ask_to_be_called(self.arguments, self.object, self.interfaces)?;
                }
                Ok(made)
            });
            match made {
                Ok(made) => return Ok(Some(made)),
                // Nobody is there yet, or nobody who can answer.
                Err(trouble) if trouble.may_pass() => pause = (pause * 2).min(LONGEST),
                Err(trouble) => return Err(trouble),
            }
        }
    }
}

/// Subscribes to what the command line wants. `silent` is why the object did not tell its contract: it
/// says more than that a subscription failed.
fn subscribe(
    asking: &Asking<'_>,
    silent: Option<&Failure>,
    (tell, round): &(BacklogSender, u32),
) -> Done<Vec<Subscription>> {
    let Asking { arguments, object, interfaces, common, calls, .. } = *asking;
    let round = *round;
    let tell = tell.clone();
    let listener: Listener = Arc::new(move |event| tell.tell(Some((round, event))));
    let made = match calls {
        Some((node, registration)) => {
            listening::subscribe(object, node, registration, &listener).map(|made| vec![made])
        }
        None => watching::subscribe(object, interfaces, common, wanted(arguments), &listener),
    };
    made.map_err(|error| match error {
        CallError::Mistake(mistake) => not_watched(arguments, mistake),
        error => {
            let failure = Failure::from(error);
            let failure = silent.unwrap_or(&failure);
            let trouble = CliError::failure(format!("cannot watch `{}`", arguments.reference), failure);
            stranger::named(trouble, object.reference())
        }
    })
}

/// There is nothing to watch, or nothing of that name.
fn not_watched(arguments: &Arguments, mistake: Mistake) -> Box<CliError> {
    let what = match arguments.signal {
        Some(_) => format!("`{}` has no such signal", arguments.reference),
        None => format!("there is nothing to watch at `{}`", arguments.reference),
    };
    Box::<CliError>::from(mistake).about(what)
}

/// Which signals are wanted.
fn wanted(arguments: &Arguments) -> SignalFilter<'_> {
    SignalFilter { interface: arguments.interface.as_deref(), signal: arguments.signal.as_deref() }
}

/// Asks the object to call back over this connection, on wires where the contract has an operation for
/// that.
fn ask_to_be_called(arguments: &Arguments, object: &Object, interfaces: &[Hold<Interface>]) -> Done {
    watching::ask_for_callbacks(object, interfaces, wanted(arguments)).map_err(|failure| {
        CliError::failure(format!("`{}` does not call back", arguments.reference), &failure)
    })
}

/// Prints signals, and remembers what other objects told of theirs.
struct Printer<'p> {
    words: NodeNotation,
    /// The one that was asked for.
    object: &'p Object,
    interfaces: &'p [Hold<Interface>],
    /// What other objects of the service told of themselves, by their keys.
    others: RefCell<HashMap<Bytes, Vec<Hold<Interface>>>>,
    /// How many operations, attributes and signals they have.
    members: Cell<usize>,
    json: bool,
    style: Style,
}

impl Printer<'_> {
    /// Prints a signal with its fields, or with their number of octets where nobody tells the types.
    fn print(&self, heard: &Incoming) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (interface, name) = (text(&heard.interface), text(&heard.operation));
        let known = fields_of(self.interfaces, heard).or_else(|| self.ask(heard));
        let read = decode(heard, known);
        let notation: &dyn Notation = &self.words;
        if self.json {
            let value = read.as_ref().map(|(shape, value)| json::write(shape, value, notation));
            let octets = heard.body.bytes.len();
            return output::json(&json!({
                "time": timestamp(now), "sender": text(&heard.sender), "key": text(&heard.key),
                "interface": interface, "signal": name, "fields": value, "octets": octets,
            }));
        }
        let fields = match &read {
            Some((_, Value::Struct(fields))) if fields.is_empty() => String::new(),
            Some((shape, value)) => people::shown(shape, value, notation),
            None => format!("({} octets)", heard.body.bytes.len()),
        };
        let dot = if interface.is_empty() { "" } else { "." };
        let from =
            if heard.sender.is_empty() { String::new() } else { format!(" from {}", text(&heard.sender)) };
        let key = if heard.key.is_empty() { String::new() } else { format!("{} ", key_text(&heard.key)) };
        line(&format!(
            "{} {}{}{dot}{} {}{}",
            tinted(&time_of_day(now), "2", self.style.out),
            visible(&key),
            visible(&interface),
            tinted(&visible(&name), "36", self.style.out),
            visible_lines(&fields),
            tinted(&visible(&from), "2", self.style.out),
        ));
    }

    /// What the fields of a signal of another object are called, as that object says. It is asked once,
    /// and waited for.
    fn ask(&self, heard: &Incoming) -> Option<Shape> {
        let mut others = self.others.borrow_mut();
        let asks = others.len() < MOST_OTHERS && self.members.get() < MOST_MEMBERS;
        if asks && !others.contains_key(&heard.key) {
            let mut reference = self.object.reference().clone();
            reference.profiles.iter_mut().for_each(|profile| profile.key = heard.key.clone());
            let told = self.words.node().resolve(&reference).and_then(|object| contract::of_object(&object));
            let interfaces = told.map(|known| known.contract.interfaces().cloned().collect());
            let interfaces: Vec<Hold<Interface>> = interfaces.unwrap_or_default();
            let of = |one: &Hold<Interface>| one.operations.len() + one.attributes.len() + one.signals.len();
            self.members.set(self.members.get() + interfaces.iter().map(of).sum::<usize>());
            others.insert(heard.key.clone(), interfaces);
        }
        fields_of(others.get(&heard.key)?, heard)
    }

    fn back(&self) {
        if self.json {
            output::json(&json!({"back": true}));
        } else {
            note("back: signals go on");
        }
    }

    fn lost(&self, failure: &Failure) {
        if self.json {
            output::json(&json!({"lost": failure.message()}));
        } else {
            note(&visible(&format!("lost: {failure}")));
        }
    }
}

/// A key as people read it: text as it is, else digits.
fn key_text(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(text) if !text.chars().any(char::is_control) => text.to_owned(),
        _ => people::octets(key),
    }
}

/// Octets as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
