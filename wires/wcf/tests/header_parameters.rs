//! Parameters that travel as headers: a block of the parameter's qualified name that is for this side, and none else.

#![allow(clippy::unwrap_used)]

use crate::common::binary;
use crate::soap_support::*;
use everywire_model::*;
use everywire_wcf::soap::Dialect;
use everywire_wcf::values::Form;

const SOAP_11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const SOAP_12: &str = "http://www.w3.org/2003/05/soap-envelope";

/// `Note` takes a text and, where the contract says so, a ticket as the header `{urn:own}Ticket`.
fn contract(is_noted: bool) -> Interface {
    let text = |name| parameter(Direction::In, name, text());
    let mut note = operation("Note", vec![text("a"), text("Ticket")], Shape::Void);
    if is_noted {
        note.notes = vec![("wcf:header:Ticket".into(), "{urn:own}Ticket".into())].into();
    }
    interface("{http://tempuri.org/}INote", vec![note], vec![])
}

/// The arguments that the servant reads of a request with these headers and this body.
fn heard(dialect: Dialect, contract: &Interface, headers: &str, body: &str) -> Vec<String> {
    let soap = if dialect == Dialect::BASIC { SOAP_11 } else { SOAP_12 };
    let action = "http://tempuri.org/INote/Note";
    let own = if dialect.addressing {
        format!("<a:Action>{action}</a:Action><a:To>http://localhost:10170/tcp/ro</a:To>")
    } else {
        String::new()
    };
    let document = format!(
        "<s:Envelope xmlns:s='{soap}' xmlns:a='http://www.w3.org/2005/08/addressing' xmlns:o='urn:own' xmlns:x='urn:infra'>\
         <s:Header>{own}{headers}</s:Header><s:Body><Note xmlns='http://tempuri.org/'>{body}</Note></s:Body></s:Envelope>"
    );
    let document = if dialect.form == Form::Binary { binary(&document) } else { document.into_bytes() };
    let mut pair = serving(dialect, contract);
    let mut found = Vec::new();
    // A second time, since heads that came before are not read again.
    for _ in 0..2 {
        pair.hand_over(&document, Some(action)).unwrap();
        let incoming = pair.incoming();
        let said = read(&incoming.body, &find(contract, "Note").arguments).unwrap();
        let said = said.into_iter().map(|arg| match arg {
            Arg::Said(text) => text,
            other => panic!("{other:?}"),
        });
        found.push(said.collect::<Vec<_>>());
    }
    assert_eq!(found[0], found[1]);
    found.remove(0)
}

/// SOAP 1.1, 4.2; SOAP 1.2 part 1, 5.2.
#[test]
fn a_parameter_is_the_header_of_its_qualified_name_for_this_side() {
    let contract = contract(true);
    for dialect in [Dialect::WS, Dialect::BINARY, Dialect::BASIC] {
        let role = if dialect == Dialect::BASIC { "actor" } else { "role" };
        let heard = |headers: &str| heard(dialect, &contract, headers, "<a>q</a>");
        for (headers, ticket) in [
            ("<o:Ticket>own</o:Ticket>", "own"),
            ("<x:Ticket>infra</x:Ticket>", ""),
            ("<x:Ticket>infra</x:Ticket><o:Ticket>own</o:Ticket>", "own"),
            ("<o:Ticket>own</o:Ticket><o:Ticket>two</o:Ticket><x:Ticket>infra</x:Ticket>", "own"),
            ("<x:a>infra</x:a><x:Other><o:Ticket>inner</o:Ticket></x:Other>", ""),
        ] {
            assert_eq!(heard(headers), ["q", ticket], "{headers}");
        }
        let other = format!("<o:Ticket s:{role}='urn:other'>other</o:Ticket>");
        assert_eq!(heard(&other), ["q", ""]);
        assert_eq!(heard(&format!("{other}<o:Ticket>own</o:Ticket>")), ["q", "own"]);
    }
}

/// What the contract does not send as a header is in the body or nowhere.
#[test]
fn other_parameters_are_no_headers() {
    let contract = contract(false);
    for dialect in [Dialect::WS, Dialect::BINARY, Dialect::BASIC] {
        let headers = "<x:a>infra</x:a><a xmlns='http://tempuri.org/'>own</a><o:Ticket>own</o:Ticket>";
        assert_eq!(heard(dialect, &contract, headers, ""), ["", ""]);
    }
}
