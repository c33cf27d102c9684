//! Values as JSON, in the notation of the program (docs/cli.md, "Values").

use base64_simd::STANDARD;
use everywire::{Failure, Initiator, Kind, Reference, Value};
use everywire_dynamic::json::{self, Notation};
use everywire_model::{Body, Shape};
use serde_json::{Value as Json, json};

/// The values of a body of this shape; nothing, if it does not hold such.
pub(crate) fn of(body: &Body, list: &Shape) -> Option<Json> {
    let value = body.read(|source| Value::decode(list, source)).ok()?;
    Some(json::write(list, &value, &OwnWires))
}

/// Octets as JSON.
pub(crate) fn octets(bytes: &[u8]) -> Json {
    json!({ "base64": STANDARD.encode_to_string(bytes) })
}

/// References as their own wires print them. Nothing is read: whoever copies has no use for it.
struct OwnWires;

impl Notation for OwnWires {
    fn parse(&self, _: &str) -> Result<Reference, Failure> {
        Err(Failure::new(Kind::Unsupported, Initiator::Here, "a copy reads no reference"))
    }

    fn print(&self, reference: &Reference) -> String {
        let wire = reference.profiles.iter().find_map(|profile| everywire::wires::named(profile.wire));
        wire.map_or_else(|| "(a reference)".to_owned(), |wire| wire.print_friendly(reference))
    }
}
