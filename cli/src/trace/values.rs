//! The values of messages, where their types are known: from a contract, from what the peer told, or
//! because they say so themselves.
//!
//! A member is an interface of the contract, by its place, and an operation or a signal of it. A
//! contract may be of something else than what passes: a value that cannot be read by it is read by
//! what the message says itself, or not shown.

use super::seen_message::SeenMessage;
use crate::people;
use everywire::Value;
use everywire::model::wire::{MemberIndex, Wire};
use everywire::model::{Body, Contract, Shape};
use everywire::{Interface, Node};
use everywire_dynamic::json::{self, NodeNotation, Types};
use serde_json::Value as Json;

/// Characters of XML that are shown on one line.
const MOST: usize = 200;

/// An operation or a signal of the contract: the place of its interface, and what is called.
pub(super) type Member = (usize, MemberIndex);

/// What is known of the types.
pub(crate) struct KnownTypes {
    contract: Contract,
    words: NodeNotation,
}

/// Values, for people and for programs.
pub(super) struct RenderedValues {
    pub(super) text: String,
    pub(super) json: Json,
}

impl KnownTypes {
    /// What a contract says; an empty one leaves only what messages say themselves.
    pub(crate) fn of(contract: Contract, node: Node) -> Self {
        let types = Types::of(&contract);
        Self { contract, words: NodeNotation::new(node, types) }
    }

    /// What a call or a signal is of, by the wire's own way to name operations. If several interfaces
    /// have one of that name, the interface that the message names decides; else the first.
    pub(super) fn member(&self, passed: &SeenMessage<'_>, interface: Option<&str>) -> Option<Member> {
        let wire = everywire::wires::named(passed.wire)?;
        let all = self.contract.interfaces().enumerate();
        let mut found = all.filter_map(|(index, held)| {
            wire.called(passed.explained, held).map(|called| (index, held, called))
        });
        let of_name = |held: &Interface| interface.is_none_or(|name| held.name == name || held.id == name);
        let mut any = None;
        let named = found.find_map(|(index, held, called)| {
            any = any.or(Some((index, called)));
            (of_name(held) || held.name.replace("::", ".") == interface.unwrap_or_default())
                .then_some((index, called))
        });
        named.or(any)
    }

    /// The name of a member's interface.
    pub(super) fn interface_of(&self, member: Member) -> Option<String> {
        self.contract.interfaces().nth(member.0).map(|interface| interface.name.to_string())
    }

    /// The name of a member, as people call it.
    pub(super) fn name_of(&self, (interface, called): Member) -> Option<String> {
        let interface = self.contract.interfaces().nth(interface)?;
        match called {
            MemberIndex::Operation(index) => {
                interface.operations.get(index).map(|held| held.label.to_string())
            }
            MemberIndex::Signal(index) => interface.signals.get(index).map(|held| held.label.to_string()),
        }
    }

    /// Whether a member is a method of objects. A procedure of DCE/RPC, whose interface has an identity of
    /// that language, returns what it likes.
    pub(super) fn is_method(&self, (interface, _): Member) -> bool {
        let interface = self.contract.interfaces().nth(interface);
        interface.is_some_and(|held| held.identities.iter().all(|(language, _)| language != "dce"))
    }

    /// The values of a message: `asks` of a call or a signal, `answers` of the answer to one.
    pub(super) fn values(
        &self,
        passed: &SeenMessage<'_>,
        asks: Option<Member>,
        answers: Option<Member>,
    ) -> Option<RenderedValues> {
        let wire: &dyn Wire = everywire::wires::named(passed.wire)?;
        self.decoded(wire, passed, asks, answers).or_else(|| as_xml(passed))
    }

    /// Those whose types are known.
    fn decoded(
        &self,
        wire: &dyn Wire,
        passed: &SeenMessage<'_>,
        asks: Option<Member>,
        answers: Option<Member>,
    ) -> Option<RenderedValues> {
        let called = asks
            .or(answers)
            .and_then(|(interface, _)| self.contract.interfaces().nth(interface))
            .map(|held| &**held);
        let body = wire.body_of(passed.bytes, passed.explained, called)?;
        let known = match (asks, answers) {
            (Some((interface, called)), _) => self.asked(interface, called),
            (None, Some((interface, MemberIndex::Operation(index)))) => {
                self.answered(wire, interface, index, passed)
            }
            (None, _) => None,
        };
        // A contract may be another one's.
        let read = |shape: Shape| Some((read(&body, &shape)?, shape));
        let (value, shape) = known.and_then(read).or_else(|| read(body.codec.shape(&body)?))?;
        let text = people::shown(&shape, &value, &self.words);
        let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        Some(RenderedValues { text, json: json::write(&shape, &value, &self.words) })
    }

    /// The shape of a call's arguments, or of a signal's fields.
    fn asked(&self, interface: usize, called: MemberIndex) -> Option<Shape> {
        let interface = self.contract.interfaces().nth(interface)?;
        match called {
            MemberIndex::Operation(index) => {
                interface.operations.get(index).map(|held| held.arguments.clone())
            }
            MemberIndex::Signal(index) => interface.signals.get(index).map(|held| held.fields.clone()),
        }
    }

    /// The shape of an answer: results, or the fields of the exception that it raises.
    fn answered(
        &self,
        wire: &dyn Wire,
        interface: usize,
        index: usize,
        passed: &SeenMessage<'_>,
    ) -> Option<Shape> {
        let operation = self.contract.interfaces().nth(interface)?.operations.get(index)?;
        if ["exception", "ERROR_NAME"].iter().all(|name| passed.explained.part(name).is_none()) {
            return Some(operation.results.clone());
        }
        let raised = operation.raises.iter().find(|raised| wire.is_raised(passed.explained, raised))?;
        Some(Shape::Struct(raised.clone()))
    }
}

/// Values that are XML, as they are.
fn as_xml(passed: &SeenMessage<'_>) -> Option<RenderedValues> {
    let xml = passed.explained.part("body").filter(|text| text.starts_with('<'))?;
    let short: String = xml.chars().take(MOST).collect();
    let more = if short.len() < xml.len() { "..." } else { "" };
    Some(RenderedValues { text: format!("{short}{more}"), json: xml.into() })
}

/// The value, if the body has that shape.
fn read(body: &Body, shape: &Shape) -> Option<Value> {
    body.read(|source| Value::decode(shape, source)).ok()
}
