//! Messages in one direction of a connection, as the wire itself takes them apart.

/// Messages of the wire of this name in one direction of a connection, as its `explain` counts them; 0
/// if there is no such wire.
pub(super) fn messages(wire: &str, stream: &[u8]) -> usize {
    let stream = if wire == "dbus" { without_greeting(stream) } else { stream };
    everywire::wires::named(wire).map_or(0, |wire| wire.explain(stream).messages.len())
}

/// GIOP messages in one direction of a connection.
pub(super) fn giop_frames(stream: &[u8]) -> usize {
    messages("giop", stream)
}

/// Messages of WCF in one direction of a connection.
pub(super) fn wcf_frames(stream: &[u8]) -> usize {
    messages("wcf", stream)
}

/// D-Bus messages in one direction of a connection.
pub(super) fn dbus_frames(stream: &[u8]) -> usize {
    messages("dbus", stream)
}

/// What follows the lines of the authentication, in one direction of a connection.
fn without_greeting(stream: &[u8]) -> &[u8] {
    // The first message begins with the letter of its byte order and a type from 1 to 4; lines do not.
    let begins = |rest: &[u8]| matches!(rest, [b'l' | b'B', 1..=4, ..]);
    let mut rest = stream;
    while !begins(rest) {
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return &[] };
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    rest
}
