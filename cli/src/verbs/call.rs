//! `everywire call`: calls an operation whose types are known no earlier than now.

use crate::contract::{Known, Preprocess};
use crate::json::{Notation, Types, Words};
use crate::output::{self, Envelope, Style, line, tinted};
use crate::signed::{self, Wanted};
use crate::trouble::{Done, Trouble};
use crate::{complete, contract, headers, json, opcda, operation, people, stranger, target};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::model::object::unexpected;
use everywire::model::units::{self, Deadline};
use everywire::model::visit::WithHeaders;
use everywire::model::{Body, Encode, Header, Headers, Operation, Outcome, Shape, Sink, Source};
use everywire::{Failure, Initiator, Kind, Node, Object, Reference, Value};
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
    #[arg(allow_negative_numbers = true)]
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
    #[arg(long, value_name = "TYPES", conflicts_with = "contract")]
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
            return Err(Trouble::usage(
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
    contract::somebody(object.reference())
        .map_err(|failure| Trouble::failure(format!("cannot call `{}`", arguments.operation), &failure))?;
    let (known, asked) = match &arguments.signature {
        // It says itself which interface is meant.
        Some(signature) => (signed(&object, arguments, signature)?, None),
        None => (
            Known::of(&object, arguments.contract.as_deref(), &arguments.preprocess)?,
            arguments.interface.as_deref(),
        ),
    };
    let type_id = &object.reference().type_id;
    let word = &arguments.operation;
    let interface = contract::interface_of(&known, asked, type_id, Some(word))
        .map_err(|trouble| if known.own == 0 { unnamed(trouble, word, &object, &node) } else { trouble })?;
    let (operation, words) =
        operation::find(interface, word, &arguments.arguments, arguments.data.is_some())?;
    // A class is called by its interfaces.
    let (interface, operation) = operation::of_class(interface, operation);
    let object = object.typed(interface.clone());
    if arguments.template {
        return template(operation, arguments.json);
    }
    let words_of = Words { node: node.clone(), types: Types::of(&known.contract) };
    let document = arguments.data.as_deref().map(document).transpose()?;
    let values = operation::arguments(operation, &words, document, &words_of)?;
    let what = format!("cannot call `{}` at {}", operation.name, place(&node, object.reference()));
    let mut beside = Headers::default();
    arguments.header.iter().cloned().for_each(|header| beside.add(header));
    let beside = (arguments.headers || !beside.is_empty()).then_some(&beside);
    // What a signature leaves open, the answer tells.
    let open = arguments.signature.as_deref().is_some_and(|signature| {
        contract::wire_of(object.reference()).is_ok_and(|wire| signed::leaves_results(wire, signature))
    });
    let answer = call(&object, operation, &values, beside, &words_of, &Asked { what: &what, open })?;
    print(&answer, operation, &object, &words_of, arguments, style);
    if has_reference(&answer.value) {
        // What was printed is to work for whoever reads it: its object is not given back, as it is otherwise when the node ends.
        // A server that counts references lets go of it after a while.
        std::mem::forget(node);
    }
    Ok(())
}

/// The contract that a signature stands for.
fn signed(object: &Object, arguments: &Arguments, signature: &str) -> Done<Known> {
    let wire = contract::wire_of(object.reference())
        .map_err(|failure| Trouble::failure(format!("cannot call `{}`", arguments.operation), &failure))?;
    let interface = arguments.interface.as_deref();
    signed::contract(wire, &arguments.operation, interface, signature, Wanted::Operation)
}

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

/// Nothing fits because the address ends before it names an object.
fn unnamed(trouble: Box<Trouble>, word: &str, object: &Object, node: &Node) -> Box<Trouble> {
    let reference = object.reference();
    if reference.profiles.first().is_none_or(|profile| !profile.key.is_empty()) {
        return trouble;
    }
    let address = place(node, reference);
    Trouble::usage(format!("there is no operation `{word}`"), format!("`{address}` names no object"))
        .hint(format!("`everywire list {address}` tells which there are"))
}

/// What came back.
struct Answer {
    value: Value,
    shape: Shape,
    /// How the operation succeeded, where that is told: 0 plainly.
    status: i32,
    headers: Vec<Header>,
    sent: usize,
    received: usize,
    elapsed: Duration,
}

/// How a call is made, beside what it carries.
struct Asked<'a> {
    /// What is told to have failed.
    what: &'a str,
    /// Whether the answer tells what the results are.
    open: bool,
}

fn call(
    object: &Object,
    operation: &Operation,
    values: &Value,
    beside: Option<&Headers>,
    notation: &dyn Notation,
    asked: &Asked<'_>,
) -> Done<Answer> {
    let what = asked.what;
    let failed = |failure: &Failure| stranger::named(Trouble::of_call(what, failure), object.reference());
    let encode = |sink: &mut dyn Sink| values.encode(&operation.arguments, sink);
    let with = beside.map(|headers| WithHeaders { values: &encode, headers });
    let encode: &dyn Encode = match &with {
        Some(with) => with,
        None => &encode,
    };
    let sent = sent(object.reference(), operation, values);
    let begun = Instant::now();
    if operation.oneway {
        object.send(operation, encode).map_err(|failure| failed(&failure))?;
        let (value, elapsed) = (Value::Struct(Vec::new()), begun.elapsed());
        let shape = operation.results.clone();
        return Ok(Answer { value, shape, status: 0, headers: Vec::new(), sent, received: 0, elapsed });
    }
    let outcome = object.invoke(operation, encode);
    let elapsed = begun.elapsed();
    match outcome {
        Outcome::Done(body) => {
            let told = if asked.open { body.codec.shape(&body) } else { None };
            let shape = told.unwrap_or_else(|| operation.results.clone());
            let decode = |source: &mut dyn Source<'_>| Value::decode(&shape, source);
            let value = body.read(decode).map_err(|failure| {
                let limited = failure.kind() == Kind::LimitExceeded;
                let trouble = failed(&failure.at(format_args!("results of {}", operation.name)));
                if limited { trouble } else { trouble.hint("compare the contract of both sides") }
            })?;
            let headers = headers::beside(&body);
            Ok(Answer {
                value,
                shape,
                status: body.status(),
                headers,
                sent,
                received: body.bytes.len(),
                elapsed,
            })
        }
        Outcome::Raised(told) => Err(raised(operation, &told.id, &told.body, notation, what)),
        Outcome::Failed(failure) => Err(failed(&failure)),
        Outcome::Moved(_) => Err(failed(&Failure::new(
            Kind::Unreachable,
            Initiator::Peer,
            "the object pointed elsewhere too often",
        ))),
    }
}

fn raised(operation: &Operation, id: &str, body: &Body, notation: &dyn Notation, what: &str) -> Box<Trouble> {
    let Some(known) = operation.raises.iter().find(|raised| raised.id == id || raised.name == id) else {
        return Trouble::of_call(what, &unexpected(id));
    };
    let shape = Shape::Struct(known.clone());
    match body.read(|source| Value::decode(&shape, source)) {
        Ok(value) => {
            let shown = match &value {
                Value::Struct(fields) if fields.is_empty() => String::new(),
                value => people::shown(&shape, value, notation),
            };
            Trouble::raised(what, &known.name, id, json::write(&shape, &value, notation), &shown)
        }
        Err(failure) => Trouble::of_call(what, &failure.at(format_args!("exception {id}"))),
    }
}

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
    let status = (answer.status != 0).then(|| {
        let wire = profile.and_then(|profile| everywire::wires::named(profile.wire));
        wire.map_or_else(|| answer.status.to_string(), |wire| wire.status(answer.status))
    });
    if arguments.json {
        let notes = if operation.oneway {
            vec!["oneway: nobody tells whether it arrived".into()]
        } else {
            Vec::new()
        };
        return Envelope {
            value: json::write(&answer.shape, &answer.value, notation),
            peer: profile.and_then(|profile| profile.endpoints.first()).map(ToString::to_string),
            wire: profile.map(|profile| profile.wire),
            bytes: Some((answer.sent, answer.received)),
            elapsed: Some(answer.elapsed),
            status: status.map(|_| answer.status),
            headers: arguments.headers.then(|| headers::json(&answer.headers)),
            notes,
        }
        .print();
    }
    if arguments.headers {
        for header in &answer.headers {
            output::note(&format!("header {}={}", header.name, headers::written(header)));
        }
    }
    if let Some(status) = status {
        output::note(&format!("succeeded with {status}"));
    }
    if !answer.shape.fields().is_empty() {
        line(&people::results(&answer.shape, &answer.value, notation));
    } else if style.out {
        let done = if operation.oneway { "sent" } else { "done" };
        output::note(&tinted(&format!("{done} in {:?}", answer.elapsed), "2", style.err));
    }
}

fn template(operation: &Operation, envelope: bool) -> Done {
    let value = json::template(&operation.arguments);
    if envelope {
        Envelope::of(value).print();
    } else {
        line(&serde_json::to_string_pretty(&value).unwrap_or_default());
    }
    Ok(())
}

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
        text.map_err(|error| Trouble::local(format!("the arguments in {place} cannot be read"), &error))?;
    serde_json::from_str(&text).map_err(|error| {
        Trouble::usage(format!("the arguments in {place} are not JSON"), error.to_string())
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

/// Where an object is, for people.
fn place(node: &Node, reference: &Reference) -> String {
    short(&node.print_friendly(reference))
}

/// References can be very long.
fn short(text: &str) -> String {
    if text.chars().count() > 80 {
        format!("{}...", text.chars().take(76).collect::<String>())
    } else {
        text.to_owned()
    }
}
