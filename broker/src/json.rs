//! Values as JSON, in the notation of the program (docs/cli.md, "Values").

use base64_simd::STANDARD;
use everywire::{Failure, Initiator, Kind, Reference};
use everywire_dynamic::json::{LimitedText, Notation};
use everywire_model::{Body, Shape};
use serde_json::json;

/// Writes the values of a body of this shape; its octets, if it does not hold such, or if they are longer as text than the body may cost.
///
/// # Errors
/// There is no room for them in the text.
pub(crate) fn write(body: &Body, list: Option<&Shape>, text: &mut LimitedText) -> Result<(), Failure> {
    let known = list.is_some_and(|list| body.read(|source| text.pass(list, source, &OwnWires)).is_ok());
    if known { Ok(()) } else { text.push(&json!({ "base64": STANDARD.encode_to_string(&body.bytes) })) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Codec as _;
    use everywire_model::native::NATIVE;

    #[test]
    fn values_that_are_too_long_as_text_are_octets() {
        let list = Shape::sequence(Shape::I32);
        let written = |body: &Body| {
            let mut text = LimitedText::new(usize::MAX);
            write(body, Some(&list), &mut text).unwrap();
            String::from_utf8(text.into_bytes()).unwrap()
        };
        let mut body = NATIVE
            .write(&mut |sink| {
                sink.open(&list, 2)?;
                sink.i32(7)?;
                sink.i32(8)?;
                sink.close(&list)
            })
            .unwrap();
        assert_eq!(written(&body), "[7,8]");
        body.budget.bytes = 4;
        assert!(written(&body).starts_with(r#"{"base64":""#), "{}", written(&body));
    }
}
