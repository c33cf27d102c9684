//! The annotated listing: works on anything, and never points outside its message.

use everywire_giop::GIOP;
use everywire_model::Wire;

/// Gives the octets to this case.
pub fn explain(data: &[u8]) {
    let listing = GIOP.explain(data);
    for message in listing.messages {
        assert!(message.offset + message.len <= data.len());
        for part in message.parts {
            assert!(part.offset + part.len <= message.len, "{part:?}");
        }
    }
}
