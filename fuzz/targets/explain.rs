//! The annotated listing: works on anything, and never points outside its message.
#![no_main]

use everywire_giop::GIOP;
use everywire_model::Wire;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let listing = GIOP.explain(data);
    for message in listing.messages {
        assert!(message.offset + message.len <= data.len());
        for part in message.parts {
            assert!(part.offset + part.len <= message.len, "{part:?}");
        }
    }
});
