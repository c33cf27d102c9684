//! `everywire trace`: explains what passes between two peers, from a capture file, through a relay, or
//! at a router that lets one listen in.
//!
//! Which of the three it is follows from the arguments: `--on` makes a relay; a file is a capture; an
//! address without `--on` is that of a router. What is known of types comes from a contract file, or is
//! asked of the server before the relay begins, for `SOON` at the most.
//!
//! Invariant: a reference that is printed leads through the relay only, with the other profiles and
//! endpoints taken out.

use crate::cli_error::{CliError, Done, UNREACHABLE};
use crate::contract::{self, Preprocess};
use crate::output::{Envelope, Style, line, note};
use crate::secrets::hidden;
use crate::target;
use crate::trace::{Detail, KnownTypes, MessagePrinter, Selection, capture, monitor, relay};
use clap::{ArgAction, Args};
use everywire::model::{Contract, Endpoint, Profile};
use everywire::{Kind, Node, Reference};
use everywire_trace::Writer;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const EXAMPLES: &str = include_str!("../../help/trace.txt");

/// How long a server may take to tell its contract before a relay to it begins.
const SOON: Duration = Duration::from_secs(2);

/// Explain what passes between two peers: from a capture, or as a relay between them.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A capture file; or the server to relay to: an address, a reference, @FILE, @FILE:NAME, HOST:PORT, unix:PATH.
    #[arg(value_name = "FILE|ADDRESS")]
    target: String,
    /// Where the relay listens: an address, HOST:PORT or unix:PATH. Port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    on: Option<String>,
    /// The contract that says what types values have; not needed where messages say it, or where the server tells its contract.
    #[arg(short, long, value_name = "FILE")]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    #[command(flatten)]
    selection: Selection,
    /// Write what is told into a capture, too: pcapng, for Wireshark and its like.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// -v: the parts of each message; -vv: every octet.
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// Print one JSON object a message.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Traces.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let file = Path::new(&arguments.target);
    match &arguments.on {
        None if file.is_file() => capture::print(file, telling(arguments, style, Node::new(), None)?),
        None if plain(&arguments.target).is_none() && arguments.target.contains(':') => {
            overhear(arguments, style)
        }
        None => Err(CliError::usage(
            format!("cannot trace `{}`", arguments.target),
            "there is no such capture file, and a relay needs a place to listen",
        )
        .hint("give the relay an address with --on, such as --on 127.0.0.1:9999")),
        Some(on) => live(arguments, on, style),
    }
}

/// What is to be told, with what is known of values: `told` is the contract that a server told, unless
/// a file says otherwise. The capture to write is begun here, so that one that cannot be written is
/// told at once.
fn telling(arguments: &Arguments, style: Style, node: Node, told: Option<Contract>) -> Done<MessagePrinter> {
    let contract = match &arguments.contract {
        Some(path) => contract::of_file(path, &arguments.preprocess)?.contract,
        None => told.unwrap_or_default(),
    };
    let writer = arguments.write.as_ref().map(|path| {
        let made = File::create(path).and_then(Writer::new);
        made.map_err(|error| CliError::local(format!("cannot write {}", path.display()), &error))
    });
    Ok(MessagePrinter {
        detail: Detail { level: arguments.verbose, json: arguments.json, style },
        selection: arguments.selection.clone(),
        knowledge: KnownTypes::of(contract, node),
        writer: writer.transpose()?,
    })
}

/// Listens in at a router, until a signal or its end.
fn overhear(arguments: &Arguments, style: Style) -> Done {
    let node = Node::new();
    let text = target::text(&arguments.target)?;
    let reference = node
        .parse(&text)
        .map_err(|failure| CliError::failure(format!("cannot overhear `{text}`"), &failure))?;
    // An address alone is that of a bus, as for `list`.
    let alone = !text.contains("://") && reference.profiles.iter().all(|profile| profile.key.is_empty());
    if !alone && !leads_to_router(&reference) {
        let why = "nothing at this address lets anybody overhear what others say";
        return Err(CliError::usage(format!("cannot overhear `{text}`"), why)
            .hint("put a relay in between, with --on ADDRESS"));
    }
    let telling = telling(arguments, style, node.clone(), None)?;
    let monitor = node.monitor(&text).map_err(|failure| {
        let trouble = CliError::failure(format!("cannot overhear `{text}`"), &failure);
        if failure.kind() == Kind::Unsupported {
            trouble.hint("put a relay in between, with --on ADDRESS")
        } else {
            trouble
        }
    })?;
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let ended = Arc::new(AtomicBool::new(false));
    let end = Arc::clone(&ended);
    std::thread::spawn(move || {
        signals.forever().next();
        end.store(true, Ordering::Relaxed);
    });
    note(&format!("listening to {}", hidden(&text)));
    monitor::print(&monitor, &ended, telling)
}

/// Whether there is a router at this address: there, an address that names no server names nobody.
fn leads_to_router(reference: &Reference) -> bool {
    let mut nobody = reference.clone();
    nobody.profiles.iter_mut().for_each(|profile| profile.key = everywire::Bytes::new());
    everywire_dynamic::check_object(&nobody).is_err()
}

/// Relays until a signal.
fn live(arguments: &Arguments, on: &str, style: Style) -> Done {
    let node = Node::new();
    let text = target::text(&arguments.target)?;
    let server = destination(&text, &node)?;
    let told = if arguments.contract.is_none() { told_by(&text, &server) } else { None };
    let telling = telling(arguments, style, node.clone(), told)?;
    let on = listening(on)?;
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let failed = |error| {
        CliError::local(format!("cannot relay from {on}"), &error)
            .as_kind(UNREACHABLE, "unreachable")
            .hint("choose another address, or port 0 for a free one")
    };
    let (listener, bound) = relay::listen(&on).map_err(failed)?;
    announce(&server, &bound, &node, arguments.json);
    relay::run(listener, server.endpoint, telling).map_err(failed)?;
    signals.forever().next();
    if let Endpoint::Unix { path } = &bound
        && !path.starts_with('@')
    {
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The contract that the object behind a relay tells, if it is there and tells one: soon, or not at all.
fn told_by(text: &str, server: &Destination) -> Option<Contract> {
    let named = server.reference.as_ref()?.profiles.first().is_some_and(|profile| !profile.key.is_empty());
    let node = Node::from(Node::builder().deadline(Some(SOON)).shards(1).build());
    let object = node.object(text).ok().filter(|_| named)?;
    contract::of_object(&object).ok().map(|known| known.contract)
}

/// Where a relay passes things on to, and the reference that led there.
struct Destination {
    endpoint: Endpoint,
    reference: Option<Reference>,
}

/// Where to relay to: an endpoint as it stands, or the first socket of a reference.
fn destination(text: &str, node: &Node) -> Done<Destination> {
    if let Some(endpoint) = plain(text) {
        return Ok(Destination { endpoint, reference: None });
    }
    let what = || "cannot tell where to relay to".to_owned();
    let reference = node.parse(text).map_err(|failure| CliError::failure(what(), &failure))?;
    let endpoints = reference.profiles.iter().flat_map(|profile| &profile.endpoints);
    let relayed = |endpoint: &&Endpoint| matches!(endpoint, Endpoint::Tcp { .. } | Endpoint::Unix { .. });
    let found = endpoints.clone().find(relayed).cloned();
    match found {
        Some(endpoint) => Ok(Destination { endpoint, reference: Some(reference) }),
        None => {
            let known: Vec<_> = endpoints.map(ToString::to_string).collect();
            let why = format!("a relay needs a TCP or Unix socket; the reference has {}", known.join(", "));
            Err(CliError::usage(what(), why).hint("let the server listen on a socket too"))
        }
    }
}

/// Where the relay listens.
fn listening(on: &str) -> Done<Endpoint> {
    if let Some(endpoint) = plain(on) {
        return Ok(endpoint);
    }
    let scheme = on.split([':', '+']).next().unwrap_or_default();
    let wire = everywire::wires::ALL.iter().find(|wire| wire.schemes().contains(&scheme));
    match wire {
        Some(wire) => {
            let failed = |failure| CliError::failure(format!("cannot relay from `{on}`"), &failure);
            let place = wire.listen(on).map_err(failed)?;
            place
                .profile()
                .endpoints
                .first()
                .cloned()
                .ok_or_else(|| CliError::usage(format!("cannot relay from `{on}`"), "it names no socket"))
        }
        None => Err(CliError::usage(format!("cannot relay from `{on}`"), "it is no address")
            .hint("an address is HOST:PORT, unix:PATH, or one of a wire, such as SCHEME://HOST:PORT")),
    }
}

/// `HOST:PORT`, `tcp:HOST:PORT` or `unix:PATH`.
fn plain(text: &str) -> Option<Endpoint> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Some(Endpoint::Unix { path: path.to_owned() });
    }
    let (host, port) = text.strip_prefix("tcp:").unwrap_or(text).rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let clean = !host.is_empty() && !host.contains(['/', '@', ',']);
    if clean { Some(Endpoint::Tcp { host: host.to_owned(), port: port.parse().ok()? }) } else { None }
}

/// Tells where the relay listens, and which reference leads through it.
fn announce(server: &Destination, bound: &Endpoint, node: &Node, json: bool) {
    let patched = server.reference.as_ref().map(|reference| through(reference, bound));
    let text = patched.as_ref().map(|reference| node.print(reference));
    let address = patched.as_ref().map(|reference| node.print_friendly(reference));
    if json {
        let value = json!({"listening": bound.to_string(), "server": server.endpoint.to_string(),
            "address": address, "reference": text});
        return Envelope::of(value).print();
    }
    note(&format!("relaying from {bound} to {}; clients use:", server.endpoint));
    match (address, text) {
        (Some(address), Some(text)) => {
            line(&address);
            line(&text);
        }
        _ => line(&bound.to_string()),
    }
}

/// The same object, reached through the relay only: other ways to it would pass it by.
fn through(reference: &Reference, relay: &Endpoint) -> Reference {
    let profiles = reference.profiles.iter().take(1);
    let patched = profiles.map(|profile| Profile { endpoints: vec![relay.clone()], ..profile.clone() });
    Reference { type_id: reference.type_id.clone(), profiles: patched.collect(), foreign: Vec::new() }
}
