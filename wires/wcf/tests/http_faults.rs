//! What faults that others write are to a caller.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::shape::{Hold, Struct};
use everywire_model::*;
use std::time::Instant;

/// What a fault with this detail is to the caller of `Say`.
fn answered(detail: &str) -> Outcome<Body> {
    answered_to(&interface(), detail)
}

/// The same, of another contract.
fn answered_to(contract: &Interface, detail: &str) -> Outcome<Body> {
    let profile = way("basic://127.0.0.1:8000/echo");
    let mut client = connecting(&profile);
    let operation = &contract.operations[0];
    let call = Call {
        profile: &profile,
        method: Method::Typed { interface: Some(contract), operation },
        arguments: &Values(&operation.arguments, vec![Value::Text("x".to_owned())]),
        expects: Expects::Reply,
    };
    client.start(Instant::now(), &call).unwrap();
    told(&mut client);
    let fault = envelope(&format!(
        "<s:Fault><faultcode>s:Server.userException</faultcode><faultstring>no</faultstring><detail>{detail}</detail></s:Fault>"
    ));
    let length = fault.len();
    let head = format!("HTTP/1.1 500 No\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n");
    send(&mut client, (head + &fault).as_bytes()).unwrap();
    replies(&mut client).remove(0).1
}

/// Axis 1 calls the element of a detail as the class of the exception is called in Java, whatever the description says.
#[test]
fn details_may_be_called_as_classes_of_java() {
    let shape = Shape::Struct(Hold::new(trouble()));
    for name in ["Trouble", "net.shop.Trouble"] {
        let Outcome::Raised(raised) = answered(&format!("<{name}><why>because</why></{name}>")) else {
            panic!("{name}")
        };
        assert!(raised.id.ends_with("Trouble"), "{}", raised.id);
        assert_eq!(first(&raised.body, &shape), Value::Text("because".to_owned()));
    }
    for other in ["net.shop.Trouble.Other", "netTrouble", "x.trouble"] {
        let outcome = answered(&format!("<{other}><why>because</why></{other}>"));
        assert!(matches!(outcome, Outcome::Failed(_)), "{other}");
    }
    let placed = answered("<x:net.Trouble xmlns:x=\"urn:x\"><why>because</why></x:net.Trouble>");
    assert!(matches!(placed, Outcome::Failed(_)));
}

/// Axis calls the details of all faults of a service `fault`: their types tell them apart.
#[test]
fn details_of_one_name_are_told_by_their_types() {
    let mut contract = interface();
    let kind = |name: &'static str| Struct {
        name: name.into(),
        id: format!("{{urn:t}}{name}").into(),
        fields: trouble().fields,
    };
    let say = &mut contract.operations.to_mut()[0];
    say.raises = ["Broke", "Shut"].map(|name| Hold::new(kind(name))).to_vec().into();
    let element = |name: &str| (format!("wcf:detail:{{urn:t}}{name}").into(), "{urn:t}fault".into());
    say.notes = vec![element("Broke"), element("Shut")].into();
    let told = |start: &str, kind: &str| {
        let spaces = "xmlns:t='urn:t' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'";
        let name = start.split(' ').next().unwrap();
        match answered_to(&contract, &format!("<{start} {spaces} {kind}><t:why>so</t:why></{name}>")) {
            Outcome::Raised(raised) => {
                let shape = Shape::Struct(Hold::new(trouble()));
                assert_eq!(first(&raised.body, &shape), Value::Text("so".to_owned()));
                Some(raised.id.to_string())
            }
            _ => None,
        }
    };
    // Axis writes the element of such a part in no namespace.
    for element in ["t:fault", "fault"] {
        for kind in ["Broke", "Shut"] {
            let raised = told(element, &format!("i:type='t:{kind}'"));
            assert_eq!(raised.as_deref(), Some(&*format!("{{urn:t}}{kind}")), "{element}");
        }
        for other in ["", "i:type='t:Odd'", "i:type='Shut'", "i:type='x:Shut'"] {
            assert_eq!(told(element, other), None, "{element} {other}");
        }
    }
}
