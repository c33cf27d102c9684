//! `everywire watch`: prints the signals of an object as they come.
//!
//! A connection that breaks, because a server or a bus is started anew, ends its subscriptions: they are made again until they stand
//! ([`again`]). What is told carries the number of the subscriptions that told it, so that what earlier ones say of their end counts once.

use crate::complete;
use crate::contract::{self, Known, Preprocess, last_part};
use crate::json::{self, Notation, Types, Words};
use crate::opcda;
use crate::output::{Style, line, note, tinted};
use crate::people;
use crate::secrets::hidden;
use crate::stranger;
use crate::target;
use crate::trace::{time_of_day, timestamp};
use crate::trouble::{Done, Trouble};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::object::unexpected;
use everywire::model::units::{self, Deadline};
use everywire::model::{
    Hold, Incoming, Operation, Outcome, Shape, Signal, SignalEvent, Sink, Source, Subscription, Wire,
};
use everywire::{Bytes, Failure, Interface, Kind, Node, Object, Value};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const EXAMPLES: &str = include_str!("../../help/watch.txt");

/// The first pause before a server that is gone is looked for again; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(250);
/// The longest.
const LONGEST: Duration = Duration::from_secs(30);

/// Objects that are asked what their signals' fields are called.
const MOST_OTHERS: usize = 1024;

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
        let watched = opcda::Watched {
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
        return Err(Trouble::usage("only OPC servers have items", format!("`{text}` is no opcda address"))
            .hint("name one signal"));
    }
    let object = node
        .object(&text)
        .map_err(|failure| target::unfit(format!("`{text}` is no reference"), &text, &failure))?;
    let wire = contract::wire_of(object.reference()).ok();
    if let Some(wire) = wire.filter(|wire| !wire.capabilities().signals) {
        return Err(Trouble::usage(
            format!("cannot watch `{text}`"),
            format!("on {}, objects emit no signals", wire.name()),
        )
        .hint("ask the object instead, by `everywire call`"));
    }
    // What a signal's fields are called is good to know, but not needed.
    let known = match &arguments.contract {
        Some(path) => Ok(Known::of_file(path, &arguments.preprocess)?),
        None => Known::of_object(&object),
    };
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| Trouble::local("cannot watch for signals", &error))?;
    let (tell, told) = mpsc::channel();
    let stop = tell.clone();
    let types = known.as_ref().map(|known| Types::of(&known.contract)).unwrap_or_default();
    let interfaces: Vec<Interface> = known
        .iter()
        .flat_map(|known| known.contract.interfaces().map(|interface| (**interface).clone()))
        .collect();
    // Why nobody can be asked also says why nobody can be heard, where that takes a contract.
    let silent = known.err().filter(|failure| {
        matches!(failure.kind(), Kind::Unreachable | Kind::Refused | Kind::TimedOut | Kind::NoObject)
    });
    let asking = Asking { arguments, object: &object, interfaces: &interfaces, tell, told: &told };
    let mut round = 0;
    let mut subscriptions = asking.subscribe(silent.as_ref(), round)?;
    if wire.is_some_and(|wire| wire.capabilities().callbacks_on_connection) {
        ask_to_be_called(arguments, &object, &interfaces)?;
    }
    // From now on nothing is missed.
    note(&format!("watching {}", hidden(&text)));
    std::thread::spawn(move || {
        signals.forever().next();
        // The main thread may have ended first.
        let _ = stop.send(None);
    });
    let others = RefCell::default();
    let printer = Printer {
        words: Words { node: node.clone(), types },
        object: &object,
        interfaces: &interfaces,
        others,
        json: arguments.json,
        style,
    };
    let until = arguments.duration.0.map(|duration| Instant::now() + duration);
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        let news = match until {
            Some(until) => told.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
            None => told.recv().ok(),
        };
        match news {
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

/// What was told, by which subscriptions; nothing when it is time to end.
type News = Option<(u32, SignalEvent<Incoming>)>;

/// What is asked for, and of whom.
struct Asking<'a> {
    arguments: &'a Arguments,
    object: &'a Object,
    interfaces: &'a [Interface],
    tell: mpsc::Sender<News>,
    told: &'a mpsc::Receiver<News>,
}

impl Asking<'_> {
    fn subscribe(&self, silent: Option<&Failure>, round: u32) -> Done<Vec<Subscription>> {
        subscribe(self.arguments, self.object, self.interfaces, silent, &(self.tell.clone(), round))
    }

    /// Subscribes anew, as soon as somebody answers again; nothing when it is time to end.
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
                match self.told.recv_timeout(end.saturating_duration_since(Instant::now())) {
                    Ok(None) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(None),
                    Ok(Some(_)) => {}
                    Err(mpsc::RecvTimeoutError::Timeout) => break,
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

fn subscribe(
    arguments: &Arguments,
    object: &Object,
    interfaces: &[Interface],
    silent: Option<&Failure>,
    (tell, round): &(mpsc::Sender<News>, u32),
) -> Done<Vec<Subscription>> {
    let round = *round;
    let failed = |failure: &Failure| {
        let trouble = Trouble::failure(format!("cannot watch `{}`", arguments.reference), failure);
        stranger::named(trouble, object.reference())
    };
    let listener = |tell: mpsc::Sender<News>| -> everywire::model::signal::Listener {
        let tell = std::sync::Mutex::new(tell);
        Arc::new(move |event| {
            if let Ok(tell) = tell.lock() {
                // The program is ending.
                let _ = tell.send(Some((round, event)));
            }
        })
    };
    // Where listeners have a contract of their own, it takes that to understand what they are told.
    let with_listeners =
        interfaces.iter().flat_map(|interface| interface.signals.iter()).any(|signal| signal.sink.is_some());
    if arguments.interface.is_none() && arguments.signal.is_none() && !with_listeners {
        match object.subscribe(None, listener(tell.clone())) {
            Ok(subscription) => return Ok(vec![subscription]),
            Err(failure) if failure.kind() != Kind::Unsupported || interfaces.is_empty() => {
                return Err(failed(silent.unwrap_or(&failure)));
            }
            // This wire wants to know more.
            Err(_) => {}
        }
    }
    let meant = |interface: &&Interface| {
        !interface.signals.is_empty()
            && arguments.interface.as_ref().is_none_or(|name| {
                interface.id == *name || interface.name == *name || last_part(&interface.name) == name
            })
    };
    let mut made = Vec::new();
    for interface in interfaces.iter().filter(meant) {
        let object = object.clone().typed(Hold::new(interface.clone()));
        if arguments.signal.is_none() {
            match object.subscribe(None, listener(tell.clone())) {
                Ok(subscription) => {
                    made.push(subscription);
                    continue;
                }
                Err(failure) if failure.kind() != Kind::Unsupported => return Err(failed(&failure)),
                // This wire wants each signal named.
                Err(_) => {}
            }
        }
        for signal in interface.signals.iter().filter(|signal| is_meant(signal, arguments.signal.as_deref()))
        {
            made.push(
                object.subscribe(Some(signal), listener(tell.clone())).map_err(|failure| failed(&failure))?,
            );
        }
    }
    let all: Vec<&str> =
        interfaces.iter().flat_map(|i| i.signals.iter().map(|signal| signal.label.as_ref())).collect();
    if let (true, None, Some(name)) = (all.is_empty(), &arguments.interface, &arguments.signal) {
        // Nobody says which signals there are: then the word is believed. What comes may tell its own shape.
        let signal = Signal::new(name.clone(), Vec::new());
        let subscription = object.subscribe(Some(&signal), listener(tell.clone()));
        made.push(subscription.map_err(|failure| failed(silent.unwrap_or(&failure)))?);
    }
    if made.is_empty() {
        let why =
            if all.is_empty() { "none is known".into() } else { format!("known are {}", all.join(", ")) };
        let near = arguments
            .signal
            .as_deref()
            .and_then(|name| everywire::model::words::nearest(name, all.iter().copied()));
        return Err(Trouble::usage(format!("`{}` has no such signal", arguments.reference), why).hint(
            match near {
                Some(near) => format!("did you mean `{near}`?"),
                None if all.is_empty() => "name the signal, or the contract with --contract FILE".into(),
                None => "choose one of these, or name the contract with --contract FILE".into(),
            },
        ));
    }
    Ok(made)
}

/// Whoever is to be called back over its connection has to say so where the contract has an operation for that.
fn ask_to_be_called(arguments: &Arguments, object: &Object, interfaces: &[Interface]) -> Done {
    let heard = |signal: &Signal| signal.sink.is_some() && is_meant(signal, arguments.signal.as_deref());
    for interface in interfaces.iter().filter(|interface| interface.signals.iter().any(heard)) {
        let asks = |operation: &&Operation| {
            operation.label.eq_ignore_ascii_case("subscribe") && operation.arguments.fields().is_empty()
        };
        let Some(operation) = interface.operations.iter().find(asks) else { continue };
        let object = object.clone().typed(Hold::new(interface.clone()));
        let what = || format!("`{}` does not call back", arguments.reference);
        match object.invoke(operation, &|_: &mut dyn Sink| Ok(())) {
            Outcome::Failed(failure) => return Err(Trouble::failure(what(), &failure)),
            Outcome::Raised(raised) => return Err(Trouble::failure(what(), &unexpected(&raised.id))),
            Outcome::Done(_) | Outcome::Moved(_) => {}
        }
    }
    Ok(())
}

fn is_meant(signal: &Signal, name: Option<&str>) -> bool {
    name.is_none_or(|name| signal.label == name || signal.name == name)
}

struct Printer<'p> {
    words: Words,
    /// The one that was asked for.
    object: &'p Object,
    interfaces: &'p [Interface],
    /// What other objects of the service told of themselves, by their keys.
    others: RefCell<HashMap<Bytes, Vec<Interface>>>,
    json: bool,
    style: Style,
}

impl Printer<'_> {
    fn print(&self, heard: &Incoming) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (interface, name) = (text(&heard.interface), text(&heard.operation));
        let known = find(self.interfaces, heard).or_else(|| self.ask(heard));
        let decode = |shape: &Shape| {
            heard
                .body
                .read(|source: &mut dyn Source<'_>| Value::decode(shape, source))
                .map(|value| (shape.clone(), value))
        };
        let told = heard.body.codec.shape(&heard.body);
        let read = known.and_then(|fields| decode(&fields).ok());
        let read = read.or_else(|| told.as_ref().and_then(|shape| decode(shape).ok()));
        let notation: &dyn Notation = &self.words;
        if self.json {
            let value = read.as_ref().map(|(shape, value)| json::write(shape, value, notation));
            let octets = heard.body.bytes.len();
            line(
                &json!({
                    "time": timestamp(now), "sender": text(&heard.sender), "key": text(&heard.key),
                    "interface": interface, "signal": name, "fields": value, "octets": octets,
                })
                .to_string(),
            );
            return;
        }
        let fields = match &read {
            Some((_, Value::Struct(fields))) if fields.is_empty() => String::new(),
            Some((shape, value)) => people::shown(shape, value, notation),
            None => format!("({} octets)", heard.body.bytes.len()),
        };
        let dot = if interface.is_empty() { "" } else { "." };
        let from =
            if heard.sender.is_empty() { String::new() } else { format!(" from {}", text(&heard.sender)) };
        let key = if heard.key.is_empty() { String::new() } else { format!("{} ", text(&heard.key)) };
        line(&format!(
            "{} {key}{interface}{dot}{} {fields}{}",
            tinted(&time_of_day(now), "2", self.style.out),
            tinted(&name, "36", self.style.out),
            tinted(&from, "2", self.style.out),
        ));
    }

    /// What the fields of a signal of another object are called, as that object says.
    fn ask(&self, heard: &Incoming) -> Option<Shape> {
        let mut others = self.others.borrow_mut();
        if !others.contains_key(&heard.key) && others.len() < MOST_OTHERS {
            let mut reference = self.object.reference().clone();
            reference.profiles.iter_mut().for_each(|profile| profile.key = heard.key.clone());
            let told = self.words.node.resolve(&reference).and_then(|object| Known::of_object(&object));
            let interfaces = told.map(|known| known.contract.interfaces().map(|i| (**i).clone()).collect());
            others.insert(heard.key.clone(), interfaces.unwrap_or_default());
        }
        find(others.get(&heard.key)?, heard)
    }

    fn back(&self) {
        if self.json {
            line(&json!({"back": true}).to_string());
        } else {
            note("back: signals go on");
        }
    }

    fn lost(&self, failure: &Failure) {
        if self.json {
            line(&json!({"lost": failure.message()}).to_string());
        } else {
            note(&format!("lost: {failure}"));
        }
    }
}

/// The fields of a signal, if one of these interfaces has it, or calls it by way of an interface of listeners.
fn find(interfaces: &[Interface], heard: &Incoming) -> Option<Shape> {
    let is =
        |held: &Interface| held.id.as_bytes() == heard.interface || held.name.as_bytes() == heard.interface;
    let by_itself = interfaces
        .iter()
        .filter(|held| heard.interface.is_empty() || is(held))
        .find_map(|held| held.signal(&heard.operation));
    let found = by_itself.or_else(|| {
        let signals = interfaces.iter().flat_map(|held| held.signals.iter());
        let by_listener = |signal: &&Signal| signal.sink.as_ref().is_some_and(|(listener, _)| is(listener));
        signals.filter(by_listener).find(|signal| signal.name.as_bytes() == heard.operation)
    });
    found.map(|signal| signal.fields.clone())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
