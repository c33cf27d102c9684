//! Which operation a request over HTTP asks for.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::*;
use everywire_wcf::{http, plan};

/// The contract, whose first two operations have this note.
fn noted(name: &'static str, value: &str) -> Interface {
    let mut contract = interface();
    for operation in &mut contract.operations.to_mut()[..2] {
        operation.notes = vec![(name.into(), value.to_owned().into())].into();
    }
    contract
}

/// What a binding says of several operations tells none of them; the action of one goes before what is said of another.
#[test]
fn operations_are_found_by_what_is_said_of_them_alone() {
    let mut contract = interface();
    let operations = contract.operations.to_mut();
    let next = |name: &str| format!("{ACTION}{name}");
    let label = operations[1].label.to_string();
    let said = |what: &str| vec![("wcf:soapAction".into(), what.to_owned().into())].into();
    operations[0].notes = said("urn:all");
    let found = |contract: &Interface, asked: &str| everywire_wcf::plan::index_of(contract, asked.as_bytes());
    assert_eq!(found(&contract, "urn:all"), Some(0));
    contract.operations.to_mut()[1].notes = said("urn:all");
    assert_eq!(found(&contract, "urn:all"), None);
    contract.operations.to_mut()[0].notes = said(&next(&label));
    assert_eq!(found(&contract, &next(&label)), Some(1));
}

/// Older services say the same SOAPAction for all their operations, and tell them apart by the body.
#[test]
fn operations_that_share_an_action_are_told_by_their_bodies() {
    let turn = envelope("<Turn xmlns=\"http://tempuri.org/\"><data>eA==</data></Turn>");
    for note in ["wcf:action", "wcf:soapAction"] {
        let contract = noted(note, "urn:all");
        let mut session =
            http::Accepting::new(&place_with("basic://127.0.0.1:8000?security=none", &contract));
        let headers = "Content-Type: text/xml\r\nSOAPAction: \"urn:all\"\r\n";
        // Each twice: a head that came before is not read again.
        for (envelope, index) in [(say("x"), 0), (turn.clone(), 1), (say("x"), 0), (turn.clone(), 1)] {
            send(&mut session, &post("/echo", headers, envelope.as_bytes())).unwrap();
            let call = calls(&mut session).remove(0);
            assert_eq!(plan::index_of(&contract, &call.operation), Some(index), "{note}");
            session.answer(call.id, Answer::Failed(&Failure::malformed("seen", 0))).unwrap();
            told(&mut session);
        }
        let other = envelope("<Other xmlns=\"http://tempuri.org/\"/>");
        send(&mut session, &post("/echo", headers, other.as_bytes())).unwrap();
        let call = calls(&mut session).remove(0);
        assert_eq!(plan::index_of(&contract, &call.operation), None, "{note}");
    }
}
