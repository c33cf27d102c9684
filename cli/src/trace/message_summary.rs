//! What a message says, in the same terms on each wire: which call it is or answers, of which operation
//! of which object, and whether it fails.
//!
//! It is read from the parts of the wire's listing, by their names: this file knows the names that the
//! wires give, and nothing of their bytes. A call gets one or more names by which its answer may know
//! it; where numbers are counted for each connection, the name holds the number of the connection and
//! the direction, or the name of the peer behind a router, so that equal numbers of different callers
//! are not confused.

use super::seen_message::SeenMessage;

/// Ends the name of a call by which an answer that names no call may still be told: it holds while one
/// call waits for its answer.
pub(super) const ONLY: &str = " alone";

/// What a message says.
#[derive(Debug, Clone, Default)]
pub(super) struct MessageSummary {
    /// Of a call, by what its answer names it.
    pub(super) asks: Vec<String>,
    /// Of an answer, by what it may name its call.
    pub(super) answers: Vec<String>,
    /// The object that is called, or whose signal it is.
    pub(super) object: Option<String>,
    /// Its interface.
    pub(super) interface: Option<String>,
    /// The operation that is called, or the signal.
    pub(super) operation: Option<String>,
    /// Who is named as a side of it, beside the addresses.
    pub(super) parties: Vec<String>,
    /// Of a call: whether its answer ends with an HRESULT, as those of methods of COM do.
    pub(super) wants_hresult: bool,
    /// Of a call of DCE/RPC: whether its interface is known and nothing stands in front of its values, as of what is no method of COM.
    pub(super) is_plain: bool,
    /// Of an answer: the HRESULT of a failure that it ends with, if the call wants one.
    pub(super) hresult: Option<u32>,
    /// Whether it tells of a failure.
    pub(super) failed: bool,
}

impl MessageSummary {
    /// What this one says.
    pub(super) fn of(passed: &SeenMessage<'_>) -> Self {
        let explained = passed.explained;
        let part = |name: &str| explained.part(name).map(|text| text.trim_matches('`').to_owned());
        let first = |names: &[&str]| names.iter().find_map(|name| part(name));
        let mut spoken = Self {
            object: first(&["object key", "PATH", "object"]),
            interface: first(&["INTERFACE"]).or_else(|| part("context id").as_deref().and_then(inner)),
            operation: first(&["operation", "MEMBER", "function", "action"]),
            parties: ["SENDER", "DESTINATION", "from"].iter().filter_map(|name| part(name)).collect(),
            wants_hresult: part("ORPCTHIS").is_some(),
            is_plain: part("operation number").is_some()
                && part("context id").as_deref().and_then(inner).is_some()
                && ["ORPCTHIS", "encrypted stub"].iter().all(|name| explained.part(name).is_none()),
            hresult: part("HRESULT").as_deref().and_then(code),
            failed: fails(passed),
            ..Self::default()
        };
        if let Some(number) = part("operation number") {
            spoken.operation = Some(inner(&number).unwrap_or_else(|| format!("operation {number}")));
        }
        if let Some(id) = part("relates to") {
            spoken.answers.push(id);
            spoken.operation = None;
        } else if let Some(id) = part("message id") {
            spoken.asks.extend([id, format!("{} {}{ONLY}", passed.connection, passed.outward)]);
        }
        // Mono's faults do not say what they answer.
        if part("fault").is_some() {
            spoken.answers.push(format!("{} {}{ONLY}", passed.connection, !passed.outward));
            spoken.operation = None;
        }
        // A response of HTTP answers the last request of its connection, and an interim one nothing.
        if part("request line").is_some() {
            spoken.asks.push(format!("{} request", passed.connection));
        } else if let Some(line) = part("status line") {
            let interim = line.split(' ').nth(1).is_some_and(|status| status.starts_with('1'));
            spoken.answers.extend((!interim).then(|| format!("{} request", passed.connection)));
            spoken.operation = None;
        }
        let along = |outward: bool, number: &str| format!("{} {outward} {number}", passed.connection);
        match (part("serial"), part("REPLY_SERIAL")) {
            // Behind a router an answer is known by who asked, and on a connection of two by its direction.
            (_, Some(number)) => {
                spoken.answers.push(along(!passed.outward, &number));
                spoken.answers.extend(part("DESTINATION").map(|to| format!("{to} {number}")));
                spoken.operation = None;
            }
            (Some(number), None) => {
                spoken.asks.push(along(passed.outward, &number));
                spoken.asks.extend(part("SENDER").map(|from| format!("{from} {number}")));
            }
            (None, None) => {
                if let Some(number) = first(&["request id", "call id", "key"]) {
                    match spoken.operation {
                        Some(_) => spoken.asks.push(along(passed.outward, &number)),
                        None => spoken.answers.push(along(!passed.outward, &number)),
                    }
                }
            }
        }
        spoken
    }
}

/// The name in parentheses behind a number, where a listing knows one.
fn inner(text: &str) -> Option<String> {
    text.split_once(" (").map(|(_, name)| name.trim_end_matches(')').to_owned())
}

/// The code of 32 bits that a text begins with.
fn code(text: &str) -> Option<u32> {
    u32::from_str_radix(text.split([',', ' ']).next()?.strip_prefix("0x")?, 16).ok()
}

/// Whether a message tells of a failure, in the words of each wire.
fn fails(passed: &SeenMessage<'_>) -> bool {
    let explained = passed.explained;
    let says = |name: &str, what: &[&str]| {
        explained.part(name).is_some_and(|text| what.iter().any(|word| text.contains(word)))
    };
    explained.part("ERROR_NAME").is_some()
        || explained.part("fault").is_some()
        || explained.part("violation").is_some()
        || says("reply status", &["USER_EXCEPTION", "SYSTEM_EXCEPTION"])
        || says("locate status", &["UNKNOWN_OBJECT", "SYSTEM_EXCEPTION"])
        || ["fault", "error", "failed", "broken", "nak"]
            .iter()
            .any(|word| explained.kind.to_ascii_lowercase().contains(word))
        || explained.summary.contains("Fault")
        || explained.summary.contains("fault ")
}
