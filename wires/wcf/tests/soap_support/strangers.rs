//! Messages of reliable sessions as strangers write them, by hand.

use super::*;

pub fn envelope(action: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:a=\"http://www.w3.org/2005/08/addressing\" xmlns:r=\"http://schemas.xmlsoap.org/ws/2005/02/rm\">\
         <s:Header><a:Action>{action}</a:Action>{headers}</s:Header><s:Body>{body}</s:Body></s:Envelope>"
    )
    .into_bytes()
}

/// Asks for a sequence; each number is another message.
pub fn create(id: u32) -> Vec<u8> {
    envelope(
        "http://schemas.xmlsoap.org/ws/2005/02/rm/CreateSequence",
        &format!("<a:MessageID>urn:uuid:00000000-0000-0000-0000-{id:012}</a:MessageID>"),
        "<r:CreateSequence><r:AcksTo><a:Address>http://www.w3.org/2005/08/addressing/anonymous</a:Address></r:AcksTo>\
         <r:Offer><r:Identifier>urn:offer</r:Identifier></r:Offer></r:CreateSequence>",
    )
}

/// A call in a sequence.
pub fn message(sequence: &str, number: &str) -> Vec<u8> {
    envelope(
        "http://tempuri.org/IRemoteObject/VoidCall",
        &format!(
            "<a:MessageID>urn:m{number}</a:MessageID><r:Sequence s:mustUnderstand=\"1\"><r:Identifier>{sequence}</r:Identifier>\
             <r:MessageNumber>{number}</r:MessageNumber></r:Sequence>"
        ),
        "<VoidCall xmlns=\"http://tempuri.org/\"/>",
    )
}

/// The sequence that a server grants to the first one who asks.
pub fn granted(mut pair: Pair) -> (Pair, String) {
    let id = ask(&mut pair, 1).expect("there is room");
    (pair, id)
}

/// Asks for a sequence: its identifier, or the fault.
pub fn ask(pair: &mut Pair, id: u32) -> Result<String, String> {
    pair.hand_over(&create(id), None).unwrap();
    let (flushed, payload) = pair.server_says().expect("an answer");
    let text = String::from_utf8(payload).unwrap();
    if flushed.fault {
        return Err(text);
    }
    assert!(text.contains("CreateSequenceResponse"), "{text}");
    Ok(between(&text, "<Identifier>", "<"))
}

/// Calls in a sequence, and has the call answered: nothing, or the fault in its place.
pub fn call(pair: &mut Pair, sequence: &str, number: u32) -> Result<(), String> {
    pair.hand_over(&message(sequence, &number.to_string()), None).unwrap();
    match pair.server.poll() {
        Some(Event::Call(incoming)) => {
            pair.answer(incoming.id, Answer::Done(&visit::Nothing));
            Ok(())
        }
        Some(other) => panic!("{other:?}"),
        None => Err(fault(pair)),
    }
}

pub fn fault(pair: &mut Pair) -> String {
    let (flushed, payload) = pair.server_says().expect("a fault");
    let text = String::from_utf8(payload).unwrap();
    assert!(flushed.fault, "{text}");
    text
}

/// The text between two others, the first time.
pub fn between(text: &str, before: &str, after: &str) -> String {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}")).1;
    rest.split_once(after).unwrap().0.to_owned()
}
