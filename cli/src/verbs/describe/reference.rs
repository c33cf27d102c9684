//! What a reference says, and whether its object answers.

use super::document;
use crate::contract;
use crate::output::{Envelope, line};
use crate::people;
use crate::trouble::{Done, Trouble};
use everywire::model::Endpoint;
use everywire::{Failure, Interface, Kind, Node, Reference};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// Describes the object behind a reference. If it does not answer, the exit code says how: 1 no such object, 3 no such
/// server, 5 no answer in time.
pub(super) fn describe(
    text: &str,
    with: Option<&Path>,
    ask: bool,
    deadline: Option<Duration>,
    json: bool,
) -> Done {
    let node = Node::from(Node::builder().deadline(deadline).shards(1).build());
    let object = node
        .object(text)
        .map_err(|failure| Trouble::failure("this is neither a file nor a reference", &failure))?;
    let reference = object.reference();
    let loaded = with.map(|path| contract::load(path).map(|contract| (path, contract))).transpose()?;
    let interface = match &loaded {
        Some((path, contract)) => {
            Some(contract::interface_of(contract, path, None, &reference.type_id, None)?)
        }
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
            Err(Trouble::failure("the object does not answer", &failure).with_value(value))
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
            Ok(())
        }
    }
}

fn print(
    node: &Node,
    reference: &Reference,
    interface: Option<&Interface>,
    answer: Option<&Result<(), Failure>>,
    elapsed: Duration,
) {
    let row = |name: &str, value: &str| line(&format!("{name:<12} {value}"));
    row("type", if reference.type_id.is_empty() { "(not told)" } else { &reference.type_id });
    row("address", &node.print_friendly(reference));
    for profile in &reference.profiles {
        let title = everywire::wires::named(profile.wire).map_or(profile.wire, |wire| wire.title());
        let (major, minor) = profile.version;
        row("profile", &format!("{} {major}.{minor} ({title})", profile.wire));
        profile.endpoints.iter().for_each(|endpoint| row("  endpoint", &endpoint.to_string()));
        row("  key", &people::octets(&profile.key));
        for (tag, data) in &profile.components {
            row("  component", &format!("tag {tag:#x}, {} octets: {}", data.len(), people::octets(data)));
        }
        row("  security", security(&profile.endpoints));
    }
    for (tag, data) in &reference.foreign {
        row("profile", &format!("tag {tag:#x}, unknown here, {} octets", data.len()));
    }
    match answer {
        Some(Ok(())) => row("answers", &format!("yes, in {elapsed:.1?}")),
        Some(Err(failure)) if failure.kind() == Kind::Unsupported => row("answers", "(this wire cannot ask)"),
        Some(Err(_)) => row("answers", "no"),
        None => row("answers", "(not asked)"),
    }
    if let Some(interface) = interface {
        row("interface", &interface.name);
        for operation in interface.operations.iter() {
            line(&format!("  {}", people::signature(operation)));
        }
    }
}

fn as_json(
    node: &Node,
    reference: &Reference,
    interface: Option<&Interface>,
    answer: Option<&Result<(), Failure>>,
) -> Json {
    let blobs = |list: &[(u32, everywire::Bytes)]| -> Vec<Json> {
        list.iter().map(|(tag, data)| json!({"tag": tag, "hex": hex(data)})).collect()
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
            "key": {"hex": hex(&profile.key), "text": std::str::from_utf8(&profile.key).ok()},
            "components": blobs(&profile.components),
            "security": security(&profile.endpoints),
        })).collect::<Vec<_>>(),
        "foreign": blobs(&reference.foreign),
        "answers": answers,
        "interface": interface.map(document::interface),
    })
}

/// The plain truth about who may listen in and who may call.
fn security(endpoints: &[Endpoint]) -> &'static str {
    if endpoints.iter().any(|endpoint| matches!(endpoint, Endpoint::Tcp { .. })) {
        "none: no authentication, no encryption; whoever reaches the port can call"
    } else if endpoints.iter().all(|endpoint| matches!(endpoint, Endpoint::InProcess { .. })) {
        "not needed: nothing leaves the process"
    } else {
        "no authentication, no encryption; whoever may open the socket can call"
    }
}

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}
