//! Which set narrow text goes out in, by what a reference says of its server (CORBA 3.3 part 2, section 7.10.2).

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_giop::GIOP;
use everywire_model::*;

/// The octets of the first request for an object, whose argument is this text; or why there is none.
fn asked(profile: &Profile, text: &'static str) -> Result<Vec<u8>, Failure> {
    let mut client = GIOP.connect(&Config::default());
    let operation = in_out("echo", everywire_model::Shape::Text(everywire_model::shape::Text::NARROW));
    let put = |sink: &mut dyn Sink| sink.text(&everywire_model::shape::Text::NARROW, text);
    let method = Method::Typed { interface: None, operation: &operation };
    let call = Call { profile, method, arguments: &put, expects: Expects::Reply };
    client.start(std::time::Instant::now(), &call)?;
    Ok(drain(&mut *client))
}

/// CORBA 3.3 part 2, section 7.10.2.4: its server's set for narrow text is then ISO 8859-1.
#[test]
fn an_ior_without_code_sets_gets_narrow_text_in_iso_8859_1() {
    // As an ORB writes it that has no component at all.
    let text = GIOP.print(&GIOP.parse("iiop://h:1/key").unwrap());
    let foreign = GIOP.parse(&text).unwrap().profiles.remove(0);
    assert!(asked(&foreign, "grüße").unwrap().ends_with(b"gr\xfc\xdfe\0"));
    assert_eq!(asked(&foreign, "→").unwrap_err().code(), Some("CORBA::DATA_CONVERSION"));
    // Addresses that people write say nothing of the server.
    for text in ["iiop://h:1/key", "corbaloc::1.2@h:1/key", "corbaloc::1.1@h:1/key"] {
        let told = GIOP.parse(text).unwrap().profiles.remove(0);
        assert!(asked(&told, "→").unwrap().ends_with("→\0".as_bytes()), "{text}");
    }
}
