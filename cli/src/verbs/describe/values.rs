//! What the attributes of an object hold: each is asked for, since to read one changes nothing.

use crate::json::{self, Types, Words};
use crate::operation;
use crate::output::visible;
use crate::people;
use everywire::model::{Contract, Hold, Notify, Outcome, Shape, Sink};
use everywire::{Failure, Interface, Kind, Node, Object, Value};
use everywire_idl::signature;
use serde_json::{Map, Value as Json};

/// The most attributes that are asked for.
const MOST: usize = 256;
/// Characters of a value that are shown on its line.
const SHOWN: usize = 200;

/// One attribute.
pub(super) struct Held {
    /// For people and for programs; nothing if nobody was asked, or why it cannot be had.
    value: Option<Result<(String, Json), Failure>>,
    /// Its type, where its wire has a notation for types.
    signature: Option<String>,
    /// What is told of its changes, where its wire says so.
    notify: Option<Notify>,
}

impl Held {
    /// Behind its name.
    pub(super) fn text(&self) -> String {
        let value = match &self.value {
            Some(Ok((text, _))) => {
                let short: String = text.chars().take(SHOWN).collect();
                let more = if short.len() < text.len() { "..." } else { "" };
                format!(" = {}{more}", visible(&short))
            }
            Some(Err(failure)) => format!(" (cannot be read: {})", visible(failure.message())),
            None => String::new(),
        };
        let notify = self.notify.map(|notify| match notify {
            Notify::Value => "changes are told",
            Notify::Change => "changes are told without the value",
            Notify::Constant => "constant",
            Notify::Nothing => "changes are not told",
        });
        let signature = self.signature.as_ref().map(|signature| format!("signature {signature}"));
        let flags: Vec<&str> = signature.as_deref().into_iter().chain(notify).collect();
        if flags.is_empty() { value } else { format!("{value}  [{}]", flags.join(", ")) }
    }

    /// For programs.
    pub(super) fn json(&self) -> Map<String, Json> {
        let mut told = Map::new();
        match &self.value {
            Some(Ok((_, value))) => drop(told.insert("value".into(), value.clone())),
            Some(Err(failure)) => drop(told.insert("unreadable".into(), failure.message().into())),
            None => {}
        }
        if let Some(signature) = &self.signature {
            told.insert("signature".into(), signature.as_str().into());
        }
        if let Some(notify) = self.notify {
            let word = match notify {
                Notify::Value => "value",
                Notify::Change => "change",
                Notify::Constant => "constant",
                Notify::Nothing => "nothing",
            };
            told.insert("notify".into(), word.into());
        }
        told
    }
}

/// What is read by one operation and perhaps written by another: an attribute, or what another language's contract calls one, where the
/// wire tells operations alone (`_get_Level`).
pub(super) struct Readable<'i> {
    pub(super) name: &'i str,
    pub(super) shape: &'i Shape,
    pub(super) written: bool,
    getter: usize,
    notify: Notify,
}

/// Those of an interface: its attributes first, in their order.
pub(super) fn readable(interface: &Interface) -> Vec<Readable<'_>> {
    let writes = |name: &str| operation::accessor(interface, name, &operation::WRITES).is_some();
    let attributes = interface.attributes.iter().map(|attribute| Readable {
        name: &attribute.name,
        shape: &attribute.shape,
        written: attribute.setter.is_some() || writes(&attribute.name),
        getter: attribute.getter,
        notify: attribute.notify,
    });
    let told = interface.operations.iter().enumerate().filter_map(|(getter, held)| {
        let name = held.label.strip_prefix(operation::READS[0])?;
        let [result] = held.results.fields() else { return None };
        let plain = held.arguments.fields().is_empty() && interface.attribute_of(getter).is_none();
        let shape = &result.shape;
        plain.then(|| Readable { name, shape, written: writes(name), getter, notify: Notify::default() })
    });
    attributes.chain(told).collect()
}

/// Whether an operation is told as an attribute.
pub(super) fn is_accessor(interface: &Interface, index: usize) -> bool {
    let Some(held) = interface.operations.get(index) else { return false };
    if interface.attribute_of(index).is_some() {
        return true;
    }
    let marks = operation::READS.iter().take(1).chain(&operation::WRITES);
    let name = marks.filter_map(|mark| held.label.strip_prefix(mark)).next();
    name.is_some_and(|name| readable(interface).iter().any(|readable| readable.name == name))
}

/// What the attributes of an object's own interfaces hold.
pub(super) fn of(object: &Object, node: &Node, contract: &Contract, own: usize) -> Vec<Vec<Held>> {
    let words = Words { node: node.clone(), types: Types::of(contract) };
    // Properties have types in a notation, and say what is told of them, on one wire.
    let tells = object.reference().profiles.first().is_some_and(|profile| profile.wire == "dbus");
    let mut left = MOST;
    let interfaces = contract.interfaces().take(own);
    interfaces
        .map(|interface| {
            readable(interface)
                .iter()
                .map(|attribute| {
                    let value = (left > 0).then(|| read(object, interface, attribute.getter, &words));
                    left = match &value {
                        // Whoever is gone, or takes too long, is not asked again.
                        Some(Err(failure)) if is_over(failure) => 0,
                        _ => left.saturating_sub(1),
                    };
                    let mut spelled = String::new();
                    let signature = signature::of(attribute.shape, &mut spelled).ok().filter(|()| tells);
                    Held {
                        value,
                        signature: signature.map(|()| spelled),
                        notify: tells.then_some(attribute.notify),
                    }
                })
                .collect()
        })
        .collect()
}

fn is_over(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::TimedOut | Kind::Unreachable | Kind::Busy)
}

fn read(
    object: &Object,
    interface: &Hold<Interface>,
    getter: usize,
    words: &Words,
) -> Result<(String, Json), Failure> {
    let lost =
        || Failure::new(Kind::NoOperation, everywire::Initiator::Here, "it has no operation that reads it");
    let getter = interface.operations.get(getter).ok_or_else(lost)?;
    // A class is called by its interfaces.
    let (interface, getter) = operation::of_class(interface, getter);
    let object = object.clone().typed(interface.clone());
    let nothing = |sink: &mut dyn Sink| Value::Struct(Vec::new()).encode(&getter.arguments, sink);
    match object.invoke(getter, &nothing) {
        Outcome::Done(body) => {
            let value = body.read(|source| Value::decode(&getter.results, source))?;
            let Value::Struct(fields) = &value else { return Err(lost()) };
            let first = getter.results.fields().first().zip(fields.first());
            let (field, (_, value)) = first.ok_or_else(lost)?;
            let text = people::shown(&field.shape, value, words);
            let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            Ok((text, json::write(&field.shape, value, words)))
        }
        Outcome::Failed(failure) => Err(failure),
        Outcome::Raised(raised) => Err(everywire::model::object::unexpected(&raised.id)),
        Outcome::Moved(_) => Err(lost()),
    }
}
