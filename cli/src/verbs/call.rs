//! `everywire call`: calls an operation whose types are known no earlier than now.
//!
//! Order: the reference; the contract (of a signature, a file, or the object itself); the operation in
//! it; the values from words or JSON; the call; and what came back. Before the call the object has at
//! most been asked for its contract.
//!
//! Where a `--signature` leaves results open, the answer tells their types. Items of OPC servers need
//! no contract and go to `opcda`.
//!
//! Invariants: the exit code is 1 only if the peer answered with an error. A result that holds a
//! reference is not given back to its server when the program ends, so that the printed reference can
//! be used.

use crate::cli_error::{CliError, Done};
use crate::contract::{self, Preprocess};
use crate::negative::unmarked;
use crate::output::{self, Envelope, EnvelopeOf, Style, line, tinted, visible};
use crate::{complete, opcda, people, stranger, target};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::units::{self, Deadline};
use everywire::model::{Header, Headers, Operation};
use everywire::{Node, Object, Reference, Value};
use everywire_dynamic::call::{CallError, Options, RaisedException, Results, invoke};
use everywire_dynamic::explicit::{self, MemberKind};
use everywire_dynamic::json::{self, NodeNotation, Notation, Types};
use everywire_dynamic::{ObjectContract, check_object, headers, operation, wire_of};
use serde_json::Value as Json;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EXAMPLES: &str = include_str!("../../help/call.txt");

/// Call an operation of an object, and print its results.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The object: an address, a reference, @FILE, or @FILE:NAME.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    reference: String,
    /// Operation or attribute; ATTRIBUTE=VALUE writes the attribute.
    #[arg(add = ArgValueCompleter::new(complete::operations))]
    operation: String,
    /// Arguments by position, or NAME=VALUE.
    #[arg(allow_negative_numbers = true, value_parser = unmarked)]
    arguments: Vec<String>,
    /// The contract that describes the object; not needed where objects tell it themselves.
    #[arg(short, long, value_name = "FILE")]
    contract: Option<PathBuf>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// The object's interface, if its reference does not tell.
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::interfaces))]
    interface: Option<String>,
    /// The types of the operation, where nobody tells a contract: `su` or `su->i` on D-Bus, `int seek(int)` on DCOP, and
    /// `long deposit(in long amount)` on IIOP.
    #[arg(long, value_name = "TYPES", conflicts_with = "contract", allow_hyphen_values = true)]
    signature: Option<String>,
    /// Arguments as a JSON object, @FILE, or - for standard input.
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    data: Option<String>,
    /// A header beside the arguments, such as {urn:shop}Priority=high; may be given more than once.
    #[arg(long, value_name = "NAME=VALUE", value_parser = headers::parse)]
    header: Vec<Header>,
    /// Print the headers beside the answer, too.
    #[arg(long)]
    headers: bool,
    /// Print a request to fill in, and do not call.
    #[arg(long)]
    template: bool,
    /// Time limit of the call, such as 5s, 250ms or none.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "30s")]
    deadline: Deadline,
    /// Largest message to send or to accept, such as 64MiB (4 MiB unless raised).
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    max_message: Option<u64>,
    /// In how many levels received values may nest (64 unless raised).
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u32).range(1..=1000))]
    max_depth: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
impl Arguments {
    /// The values given as words.
    pub(crate) fn words(&self) -> &[String] {
        &self.arguments
    }

    /// The values given as JSON, and the signature.
    pub(crate) fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.data.as_deref(), self.signature.as_deref())
    }
}

/// Calls.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let mut builder = Node::builder().deadline(arguments.deadline.0).shards(1);
    if let Some(bytes) = arguments.max_message {
        builder = builder.max_message(bytes);
    }
    if let Some(levels) = arguments.max_depth {
        builder = builder.max_depth(levels);
    }
    let node = Node::from(builder.build());
    let text = target::text(&arguments.reference)?;
    if opcda::is_meant(&text) {
        if arguments.contract.is_some()
            || arguments.interface.is_some()
            || arguments.signature.is_some()
            || arguments.data.is_some()
            || arguments.template
        {
            return Err(CliError::usage(
                "an item of an OPC server is called without a contract",
                "its server tells its type",
            )
            .hint("everywire call opcda://HOST/PROGID/ITEM read, or write VALUE"));
        }
        return opcda::call(&node, &text, &arguments.operation, &arguments.arguments, arguments.json);
    }
    let object = node
        .object(&text)
        .map_err(|f| target::unfit(format!("`{}` is no reference", short(&text)), &short(&text), &f))?;
    check_object(object.reference())
        .map_err(|failure| CliError::failure(format!("cannot call `{}`", arguments.operation), &failure))?;
    let (known, asked) = match &arguments.signature {
        // It says itself which interface is meant.
        Some(signature) => (signed(&object, arguments, signature)?, None),
        None => (
            contract::of(&object, arguments.contract.as_deref(), &arguments.preprocess)?,
            arguments.interface.as_deref(),
        ),
    };
    let type_id = &object.reference().type_id;
    let word = &arguments.operation;
    let interface = known.interface_of(asked, type_id, Some(word)).map_err(|mistake| {
        let trouble = mistake.into();
        if known.own == 0 { unnamed(trouble, word, &object, &node) } else { trouble }
    })?;
    let (operation, words) =
        operation::find(interface, word, &arguments.arguments, arguments.data.is_some())?;
    // A class is called by its interfaces.
    let (interface, operation) = operation::of_class(interface, operation);
    let object = object.typed(interface.clone());
    if arguments.template {
        return template(operation, arguments.json);
    }
    let notation = NodeNotation::new(node.clone(), Types::of(&known.contract)).opening_files();
    let document = arguments.data.as_deref().map(document).transpose()?;
    let values = operation::arguments(operation, &words, document, &notation)?;
    let what = format!("cannot call `{}` at {}", operation.name, place(&node, object.reference()));
    let mut beside = Headers::default();
    arguments.header.iter().cloned().for_each(|header| beside.add(header));
    let beside = (arguments.headers || !beside.is_empty()).then_some(&beside);
    // What a signature leaves open, the answer tells.
    let open = arguments.signature.as_deref().is_some_and(|signature| {
        wire_of(object.reference()).is_ok_and(|wire| explicit::leaves_results(wire, signature))
    });
    let sent = sent(object.reference(), operation, &values);
    let begun = Instant::now();
    let results = invoke(&object, operation, &values, Options { headers: beside, open });
    let elapsed = begun.elapsed();
    let results = results.map_err(|error| match error {
        CallError::Mistake(mistake) => mistake.into(),
        CallError::Raised(exception) => raised(&exception, &notation, &what),
        CallError::Failed(failure) => {
            stranger::named(CliError::of_call(what.as_str(), &failure), object.reference())
        }
    })?;
    let answer = Answer { results, sent, elapsed };
    print(&answer, operation, &object, &notation, arguments, style);
    if has_reference(&answer.results.value) {
        // What was printed is to work for whoever reads it: its object is not given back, as it is otherwise when the node ends.
        // A server that counts references lets go of it after a while.
        std::mem::forget(node);
    }
    Ok(())
}

/// The contract that a signature stands for: one interface with one operation.
fn signed(object: &Object, arguments: &Arguments, signature: &str) -> Done<ObjectContract> {
    let wire = wire_of(object.reference())
        .map_err(|failure| CliError::failure(format!("cannot call `{}`", arguments.operation), &failure))?;
    let interface = arguments.interface.as_deref();
    Ok(explicit::contract(wire, &arguments.operation, interface, signature, MemberKind::Operation)?)
}

/// Whether a value has a reference anywhere in it.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::Reference(reference) => reference.is_some(),
        Value::List(items) => items.iter().any(has_reference),
        Value::Struct(fields) => fields.iter().any(|(_, value)| has_reference(value)),
        Value::Union(_, arm) => arm.as_ref().is_some_and(|arm| has_reference(&arm.1)),
        Value::Map(pairs) => pairs.iter().any(|(key, value)| has_reference(key) || has_reference(value)),
        Value::Variant(content) => has_reference(&content.1),
        _ => false,
    }
}

/// Says that the address names no object, where nothing fits because of that; else leaves the failure
/// as it is.
fn unnamed(trouble: Box<CliError>, word: &str, object: &Object, node: &Node) -> Box<CliError> {
    let reference = object.reference();
    if reference.profiles.first().is_none_or(|profile| !profile.key.is_empty()) {
        return trouble;
    }
    let address = place(node, reference);
    CliError::usage(format!("there is no operation `{word}`"), format!("`{address}` names no object"))
        .hint(format!("`everywire list {address}` tells which there are"))
}

/// What came back, and what it took.
struct Answer {
    results: Results,
    /// Octets of the encoded arguments.
    sent: usize,
    elapsed: Duration,
}

/// An exception of the contract as a failure, with its fields for people and for programs.
fn raised(exception: &RaisedException, notation: &dyn Notation, what: &str) -> Box<CliError> {
    let RaisedException { name, id, shape, value, text } = exception;
    let shown = match value {
        Value::Struct(fields) if fields.is_empty() => text.clone(),
        // What the service says to people beside the fields.
        value if !text.is_empty() => format!("{}; {text}", people::shown(shape, value, notation)),
        value => people::shown(shape, value, notation),
    };
    CliError::raised(what, name, id, exception.json(notation), &shown)
}

/// Prints results, and on a terminal that there were none. Headers and a status other than plain
/// success are notes.
fn print(
    answer: &Answer,
    operation: &Operation,
    object: &Object,
    notation: &dyn Notation,
    arguments: &Arguments,
    style: Style,
) {
    let reference = object.reference();
    let profile = reference.profiles.first();
    let results = &answer.results;
    let status = (results.status != 0).then(|| {
        let wire = profile.and_then(|profile| everywire::wires::named(profile.wire));
        wire.map_or_else(|| results.status.to_string(), |wire| wire.status(results.status))
    });
    if arguments.json {
        let notes = if operation.oneway {
            vec!["oneway: nobody tells whether it arrived".into()]
        } else {
            Vec::new()
        };
        return EnvelopeOf {
            value: results.written(notation),
            peer: profile.and_then(|profile| profile.endpoints.first()).map(ToString::to_string),
            wire: profile.map(|profile| profile.wire),
            bytes: Some((answer.sent, results.octets)),
            elapsed: Some(answer.elapsed),
            status: status.map(|_| results.status),
            headers: arguments.headers.then(|| headers::json(&results.headers)),
            notes,
        }
        .print();
    }
    if arguments.headers {
        for header in &results.headers {
            let text = format!("header {}={}", header.name, headers::written(header));
            output::note(&visible(&text));
        }
    }
    if let Some(status) = status {
        output::note(&visible(&format!("succeeded with {status}")));
    }
    if !results.shape.fields().is_empty() {
        output::text(&people::results(&results.shape, &results.value, notation));
    } else if style.out {
        let done = if operation.oneway { "sent" } else { "done" };
        output::note(&tinted(&format!("{done} in {:?}", answer.elapsed), "2", style.err));
    }
}

/// Prints the arguments of an operation as JSON to fill in.
fn template(operation: &Operation, envelope: bool) -> Done {
    let value = json::template(&operation.arguments);
    if envelope {
        Envelope::of(value).print();
    } else {
        line(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    Ok(())
}

/// Arguments or fields as JSON: as they stand, from a file (`@`), or from standard input (`-`).
pub(super) fn document(given: &str) -> Done<Json> {
    let (text, place) = match given.strip_prefix('@') {
        Some(file) => (std::fs::read_to_string(file), file),
        None if given == "-" => {
            let mut text = String::new();
            (std::io::stdin().read_to_string(&mut text).map(|_| text), "standard input")
        }
        None => (Ok(given.to_owned()), "--data"),
    };
    let text =
        text.map_err(|error| CliError::local(format!("the arguments in {place} cannot be read"), &error))?;
    json::parse(text.as_bytes()).map_err(|error| {
        CliError::usage(format!("the arguments in {place} are not JSON"), error.to_string())
            .hint("--template prints a request to fill in")
    })
}

/// Octets of the encoded arguments: what a call costs on its wire, without headers.
fn sent(reference: &Reference, operation: &Operation, values: &Value) -> usize {
    let wire = reference.profiles.first().and_then(|profile| everywire::wires::named(profile.wire));
    let encoded = wire.map(|wire| wire.codec().write(&mut |sink| values.encode(&operation.arguments, sink)));
    // A value that does not encode is reported by the call itself.
    encoded.and_then(Result::ok).map_or(0, |body| body.bytes.len())
}

/// Where an object is, for people, on one line.
fn place(node: &Node, reference: &Reference) -> String {
    short(&node.print_friendly(reference))
}

/// A text of at most 80 characters: references can be very long.
fn short(text: &str) -> String {
    if text.chars().count() > 80 {
        format!("{}...", text.chars().take(76).collect::<String>())
    } else {
        text.to_owned()
    }
}
