//! What a reference says, and whether its object answers.
//!
//! The object is asked for its contract, unless one is given or `--offline`: if it tells one, that is
//! printed, with the values of its attributes. Otherwise it is only asked whether it is there. Where it
//! does not answer, what the reference says beyond its address is still printed, or stands in the JSON
//! of the failure.
//!
//! Exit codes: 1 no such object, 3 no such server, 5 no answer in time; a wire on which nobody can be
//! asked is no failure.
//!
//! Invariant: nothing is called that could change the object: reading attributes and asking for the
//! contract are all.

use super::values::{self, AttributeValue};
use super::{Form, document};
use crate::cli_error::{CliError, Done};
use crate::contract::{self, Preprocess};
use crate::output::{self, Envelope, shown};
use crate::{people, stranger, target};
use everywire::model::{Endpoint, InterfaceKind, Profile, Wire};
use everywire::{Failure, Interface, Kind, Node, Object, Reference};
use everywire_dynamic::ObjectContract;
use everywire_dynamic::attributes::{attributes, is_accessor};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// What is asked for.
pub(super) struct DescribeOptions<'a> {
    /// The contract of the object.
    pub(super) with: Option<&'a Path>,
    /// What the contract's preprocessor is given.
    pub(super) preprocess: &'a Preprocess,
    /// Whether to ask the object itself.
    pub(super) ask: bool,
    /// How to print a contract that it tells.
    pub(super) form: Option<Form>,
    /// How long to wait.
    pub(super) deadline: Option<Duration>,
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// Describes the object behind a reference. If it does not answer, the exit code says how: 1 no such object, 3 no such
/// server, 5 no answer in time.
pub(super) fn describe(text: &str, asked: &DescribeOptions<'_>) -> Done {
    let DescribeOptions { with, preprocess, ask, form, deadline, json } = *asked;
    let node = Node::from(Node::builder().deadline(deadline).shards(1).build());
    let object = node
        .object(text)
        .map_err(|failure| target::unfit("this is neither a file nor a reference", text, &failure))?;
    let reference = object.reference();
    let mut untold = None;
    let known = match with {
        Some(path) => Some(contract::of_file(path, preprocess)?),
        None if ask => match contract::of_object(&object) {
            Ok(known) => Some(known),
            // Not to tell is one thing, not to be there another: that shows below.
            Err(failure) if failure.kind() == Kind::Unsupported => {
                untold = Some(failure);
                None
            }
            Err(failure) if failure.kind() == Kind::BadReference => {
                return Err(CliError::failure("there is no object to ask", &failure));
            }
            Err(failure) => {
                let answer = Err(failure.clone());
                if says_more(reference) && !json && form.is_none() {
                    print(&node, reference, None, Some(&answer), Duration::ZERO);
                }
                let value = as_json(&node, reference, None, Some(&answer));
                let trouble = CliError::failure("the object does not answer", &failure);
                return Err(stranger::named(trouble, reference).with_value(value));
            }
        },
        None => None,
    };
    if let (Some(known), None) = (&known, with) {
        return match form {
            Some(Form::Language(language)) => {
                let text = super::printed(&known.alone(), language)?;
                output::text(text.strip_suffix('\n').unwrap_or(&text));
                Ok(())
            }
            Some(Form::Json) => told(known, &object, &node, true),
            None => told(known, &object, &node, json),
        };
    }
    if form.is_some() {
        let why = untold.as_ref().map_or("it did not tell its contract", Failure::message);
        return Err(CliError::usage("there is no contract to print in any form", why)
            .hint("describe the contract's file instead"));
    }
    let interface = match &known {
        Some(known) => Some(known.interface_of(None, &reference.type_id, None)?),
        None => None,
    };
    let begun = Instant::now();
    let answer = ask.then(|| object.target().probe());
    let elapsed = begun.elapsed();
    let value = as_json(&node, reference, interface.map(|held| &**held), answer.as_ref());
    match answer {
        // Not to be able to ask is no answer either way.
        Some(Err(failure)) if failure.kind() != Kind::Unsupported => {
            if !json {
                print(&node, reference, interface.map(|held| &**held), Some(&Err(failure.clone())), elapsed);
            }
            Err(stranger::named(CliError::failure("the object does not answer", &failure), reference)
                .with_value(value))
        }
        answer if json => {
            let profile = reference.profiles.first();
            Envelope {
                value,
                peer: profile.and_then(|profile| profile.endpoints.first()).map(ToString::to_string),
                wire: profile.map(|profile| profile.wire),
                elapsed: answer.map(|_| elapsed),
                ..Envelope::default()
            }
            .print();
            Ok(())
        }
        answer => {
            print(&node, reference, interface.map(|held| &**held), answer.as_ref(), elapsed);
            if let Some(untold) = untold.filter(|_| ask) {
                shown(&format!(
                    "{:<12} not told: {}; give its file with --contract",
                    "contract",
                    untold.message()
                ));
            }
            Ok(())
        }
    }
}

/// Whether a reference says more than an address does.
fn says_more(reference: &Reference) -> bool {
    !reference.type_id.is_empty() || reference.profiles.len() > 1
}

/// Prints what an object told of itself: its own interfaces with the values of attributes, interfaces
/// beside them, and the objects below it.
fn told(known: &ObjectContract, object: &Object, node: &Node, json: bool) -> Done {
    let interfaces: Vec<&Interface> =
        known.contract.interfaces().take(known.own).map(|interface| &**interface).collect();
    let profile = object.reference().profiles.first();
    let address = node.print_friendly(object.reference());
    let security = profile.map(security);
    let children: Vec<String> = known.children.iter().map(|key| people::octets(key)).collect();
    let held = values::of(object, node, &known.contract, known.own);
    if json {
        let own = interfaces.iter().zip(&held);
        let own: Vec<Json> =
            own.map(|(interface, held)| with_values(document::interface(interface), held)).collect();
        let mut value = as_json(node, object.reference(), interfaces.first().copied(), Some(&Ok(())));
        value["security"] = json!(security);
        value["interfaces"] = own.into();
        value["callbacks"] = known.listeners().iter().map(|listener| document::interface(listener)).collect();
        value["children"] = json!(children);
        value["answers_at"] = json!(known.addresses);
        Envelope {
            value,
            peer: profile.and_then(|profile| profile.endpoints.first()).map(ToString::to_string),
            wire: profile.map(|profile| profile.wire),
            ..Envelope::default()
        }
        .print();
        return Ok(());
    }
    if says_more(object.reference()) {
        rows(node, object.reference());
    } else {
        shown(&format!("{:<12} {address}", "address"));
        security.iter().for_each(|security| shown(&format!("{:<12} {security}", "security")));
    }
    known.addresses.iter().for_each(|address| shown(&format!("{:<12} {address}", "answers at")));
    for (interface, held) in interfaces.iter().zip(&held) {
        shown(&format!("{:<12} {}", title(interface), named(interface)));
        print_members(interface, held);
    }
    let listeners = known.listeners();
    for listener in &listeners {
        shown(&format!("{:<12} {}", "calls back", named(listener)));
        print_members(listener, &[]);
    }
    let others = known.contract.interfaces().skip(known.own);
    let others = others.filter(|other| listeners.iter().all(|listener| listener.name != other.name));
    let others: Vec<String> = others.map(|other| named(other)).collect();
    if !others.is_empty() {
        shown(&format!("{:<12} {}", "also", others.join(", ")));
    }
    for key in &known.children {
        // As it is to be described next.
        let mut child = object.reference().clone();
        child.profiles.iter_mut().for_each(|profile| profile.key = key.clone());
        shown(&format!("{:<12} {}", "below", node.print_friendly(&child)));
    }
    Ok(())
}

/// What an interface is, for people.
fn title(interface: &Interface) -> &'static str {
    if interface.kind == InterfaceKind::Class { "class" } else { "interface" }
}

/// An interface by its name, and by its identity if that says more.
fn named(interface: &Interface) -> String {
    if interface.id.is_empty() || interface.id == interface.name {
        interface.name.to_string()
    } else {
        format!("{} ({})", interface.name, interface.id)
    }
}

/// An interface, with what its attributes hold.
fn with_values(mut interface: Json, held: &[AttributeValue]) -> Json {
    let attributes = interface.get_mut("attributes").and_then(Json::as_array_mut);
    for (attribute, held) in attributes.into_iter().flatten().zip(held) {
        if let Some(attribute) = attribute.as_object_mut() {
            attribute.extend(held.json());
        }
    }
    interface
}

/// Its members; `held` is what its attributes hold, where somebody was asked.
fn print_members(interface: &Interface, held: &[AttributeValue]) {
    let accessor = |index: usize| is_accessor(interface, index);
    for (_, operation) in interface.operations.iter().enumerate().filter(|(index, _)| !accessor(*index)) {
        shown(&format!("  {}", people::signature(operation)));
    }
    for (index, attribute) in attributes(interface).iter().enumerate() {
        let access = if attribute.written { "" } else { "readonly " };
        let held = held.get(index).map(AttributeValue::text).unwrap_or_default();
        shown(&format!("  {access}attribute {} {}{held}", people::noun(attribute.shape), attribute.name));
    }
    for signal in interface.signals.iter() {
        let fields: Vec<String> = signal
            .fields
            .fields()
            .iter()
            .map(|field| format!("{} {}", people::noun(&field.shape), field.name))
            .collect();
        shown(&format!("  signal {}({})", signal.label, fields.join(", ")));
    }
}

/// A line of the table: a name and a value.
fn row(name: &str, value: &str) {
    shown(&format!("{name:<12} {value}"));
}

/// Prints what a reference says: its type, and each profile with endpoints, key, components and
/// protection.
fn rows(node: &Node, reference: &Reference) {
    row("type", if reference.type_id.is_empty() { "(not told)" } else { &reference.type_id });
    row("address", &node.print_friendly(reference));
    for profile in &reference.profiles {
        let title = everywire::wires::named(profile.wire).map_or(profile.wire, |wire| wire.title());
        let (major, minor) = profile.version;
        row("profile", &format!("{} {major}.{minor} ({title})", profile.wire));
        profile.endpoints.iter().for_each(|endpoint| row("  endpoint", &endpoint.to_string()));
        row("  key", &people::octets(&profile.key));
        let wire = everywire::wires::named(profile.wire);
        for (tag, data) in &profile.components {
            row("  component", &component(wire, *tag, data));
        }
        row("  security", &security(profile));
    }
    for (tag, data) in &reference.foreign {
        match known(*tag, data) {
            Some((wire, components)) => {
                row("profile", &format!("tag {tag:#x}, components of all {} profiles", wire.name()));
                for (tag, data) in components {
                    row("  component", &component(Some(wire), tag, &data));
                }
            }
            None => row("profile", &format!("tag {tag:#x}, unknown here, {} octets", data.len())),
        }
    }
}

/// Prints a reference, whether its object answers, and its interface if that is known.
fn print(
    node: &Node,
    reference: &Reference,
    interface: Option<&Interface>,
    answer: Option<&Result<(), Failure>>,
    elapsed: Duration,
) {
    rows(node, reference);
    match answer {
        Some(Ok(())) => row("answers", &format!("yes, in {elapsed:.1?}")),
        Some(Err(failure)) if failure.kind() == Kind::Unsupported => row("answers", "(this wire cannot ask)"),
        Some(Err(_)) => row("answers", "no"),
        None => row("answers", "(not asked)"),
    }
    if let Some(interface) = interface {
        row("interface", &interface.name);
        print_members(interface, &[]);
    }
}

/// A component in words, or its octets.
fn component(wire: Option<&'static dyn Wire>, tag: u32, data: &[u8]) -> String {
    match wire.and_then(|wire| wire.component(tag, data)) {
        Some(words) => words,
        None => format!("tag {tag:#x}, {} octets: {}", data.len(), people::octets(data)),
    }
}

/// Tagged components of a reference: tags with their octets.
type Components = Vec<(u32, everywire::Bytes)>;

/// The wire that knows a profile which nobody calls by (such as one with components for all others),
/// and the components in it.
fn known(tag: u32, data: &[u8]) -> Option<(&'static dyn Wire, Components)> {
    everywire::wires::ALL.iter().find_map(|wire| Some((*wire, wire.components(tag, data)?)))
}

/// The same as JSON. `answers` is null where nobody was asked, or can be asked.
fn as_json(
    node: &Node,
    reference: &Reference,
    interface: Option<&Interface>,
    answer: Option<&Result<(), Failure>>,
) -> Json {
    let blobs = |wire: Option<&'static dyn Wire>, list: &[(u32, everywire::Bytes)]| -> Vec<Json> {
        let blob = |(tag, data): &(u32, everywire::Bytes)| {
            let says = wire.and_then(|wire| wire.component(*tag, data));
            json!({"tag": tag, "hex": everywire::model::hex::text(data), "says": says})
        };
        list.iter().map(blob).collect()
    };
    let foreign = |(tag, data): &(u32, everywire::Bytes)| {
        let inside = known(*tag, data).map(|(wire, components)| blobs(Some(wire), &components));
        json!({"tag": tag, "hex": everywire::model::hex::text(data), "components": inside})
    };
    let answers = match answer {
        Some(Ok(())) => Json::Bool(true),
        Some(Err(failure)) if failure.kind() != Kind::Unsupported => Json::Bool(false),
        _ => Json::Null,
    };
    json!({
        "type_id": reference.type_id,
        "address": node.print_friendly(reference),
        "reference": node.print(reference),
        "profiles": reference.profiles.iter().map(|profile| json!({
            "wire": profile.wire,
            "version": format!("{}.{}", profile.version.0, profile.version.1),
            "endpoints": profile.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "key": {"hex": everywire::model::hex::text(&profile.key), "text": std::str::from_utf8(&profile.key).ok()},
            "components": blobs(everywire::wires::named(profile.wire), &profile.components),
            "security": security(profile),
        })).collect::<Vec<_>>(),
        "foreign": reference.foreign.iter().map(foreign).collect::<Vec<_>>(),
        "answers": answers,
        "interface": interface.map(document::interface),
    })
}

/// The plain truth about who may call and who may listen in, as the profile's wire says it.
fn security(profile: &Profile) -> String {
    if profile.endpoints.is_empty() {
        return "not known: nothing here can connect to this address".to_owned();
    }
    if profile.endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::InProcess { .. })) {
        return "not needed: nothing leaves the process".to_owned();
    }
    let wire = everywire::wires::named(profile.wire);
    wire.map_or_else(|| "not known".to_owned(), |wire| wire.protection(profile))
}
