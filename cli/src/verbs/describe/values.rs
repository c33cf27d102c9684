//! What the attributes of an object hold: each is asked for, since to read one changes nothing.
//!
//! An attribute that cannot be read says why, and the next one is asked all the same; but a peer that
//! is gone, or takes too long, is not asked again. At most `MOST` are asked for in all.

use crate::output::visible;
use crate::people;
use everywire::model::{Contract, Hold, Notify};
use everywire::{Failure, Interface, Kind, Node, Object};
use everywire_dynamic::attributes;
use everywire_dynamic::json::{self, NodeNotation, Types};
use everywire_idl::signature;
use serde_json::{Map, Value as Json};

/// The most attributes that are asked for, of all interfaces together: each is a call.
const MOST: usize = 256;
/// Characters of a value that are shown on its line.
const SHOWN: usize = 200;

/// One attribute.
pub(super) struct AttributeValue {
    /// For people and for programs; nothing if nobody was asked, or why it cannot be had.
    value: Option<Result<(String, Json), Failure>>,
    /// Its type, where its wire has a notation for types.
    signature: Option<String>,
    /// What is told of its changes, where its wire says so.
    notify: Option<Notify>,
}

impl AttributeValue {
    /// What stands behind the attribute's name: its value, cut at `SHOWN`, and in brackets its type and
    /// what is told of changes.
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

    /// The same as members for the attribute's object: `value` or `unreadable`, `signature`, `notify`.
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

/// What the attributes of an object's own interfaces hold, in the order of interfaces and attributes.
pub(super) fn of(object: &Object, node: &Node, contract: &Contract, own: usize) -> Vec<Vec<AttributeValue>> {
    let notation = NodeNotation::new(node.clone(), Types::of(contract));
    // Properties have types in a notation, and say what is told of them, on one wire.
    let tells = object.reference().profiles.first().is_some_and(|profile| profile.wire == "dbus");
    let mut left = MOST;
    let interfaces = contract.interfaces().take(own);
    interfaces
        .map(|interface| {
            attributes::attributes(interface)
                .iter()
                .map(|attribute| {
                    let value = (left > 0).then(|| read(object, interface, attribute.getter, &notation));
                    left = match &value {
                        // Whoever is gone, or takes too long, is not asked again.
                        Some(Err(failure)) if is_over(failure) => 0,
                        _ => left.saturating_sub(1),
                    };
                    let mut spelled = String::new();
                    let signature = signature::of(attribute.shape, &mut spelled).ok().filter(|()| tells);
                    AttributeValue {
                        value,
                        signature: signature.map(|()| spelled),
                        notify: tells.then_some(attribute.notify),
                    }
                })
                .collect()
        })
        .collect()
}

/// Whether it is useless to ask this peer for more.
fn is_over(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::TimedOut | Kind::Unreachable | Kind::Busy)
}

/// Reads one attribute, for people on one line and for programs.
fn read(
    object: &Object,
    interface: &Hold<Interface>,
    getter: usize,
    notation: &NodeNotation,
) -> Result<(String, Json), Failure> {
    let (shape, value) = attributes::read(object, interface, getter)?;
    let text = people::shown(&shape, &value, notation);
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Ok((text, json::write(&shape, &value, notation)))
}
