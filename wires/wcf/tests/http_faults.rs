//! What faults that others write are to a caller.

#![allow(clippy::unwrap_used)]

use crate::common::decode;
use crate::http_support::*;
use everywire_idl::wsdl::marks::Mark;
use everywire_idl::wsdl::names;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::*;
use everywire_wcf::dictionary::{Outgoing, StringTable};
use everywire_wcf::values::{Form, write_detail};
use std::time::Instant;

/// What a fault with this detail is to the caller of `Say`.
fn answered(detail: &str) -> Outcome<Body> {
    answered_to(&interface(), detail)
}

/// The same, of another contract.
fn answered_to(contract: &Interface, detail: &str) -> Outcome<Body> {
    let fault = envelope(&format!(
        "<s:Fault><faultcode>s:Server.userException</faultcode><faultstring>no</faultstring><detail>{detail}</detail></s:Fault>"
    ));
    let length = fault.len();
    let head = format!("HTTP/1.1 500 No\r\nContent-Type: text/xml\r\nContent-Length: {length}\r\n\r\n");
    answered_by(contract, &way("basic://127.0.0.1:8000/echo"), &(head + &fault))
}

/// What this response is to the caller of `Say` at this address.
fn answered_by(contract: &Interface, profile: &Profile, response: &str) -> Outcome<Body> {
    let mut client = connecting(profile);
    let operation = &contract.operations[0];
    let call = Call {
        profile,
        method: Method::Typed { interface: Some(contract), operation },
        arguments: &Values(&operation.arguments, vec![Value::Text("x".to_owned())]),
        expects: Expects::Reply,
    };
    client.start(Instant::now(), &call).unwrap();
    told(&mut client);
    send(&mut client, response.as_bytes()).unwrap();
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

/// `FaultContract(typeof(int))`: the detail is the serializer's own element, in text and as a record.
#[test]
fn a_detail_may_be_a_plain_value() {
    const SER: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
    let mut contract = interface();
    let field = Field { name: "Value".into(), shape: Mark::Text.on(Shape::I32) };
    let detail = Struct {
        name: "ser::intFault".into(),
        id: format!("{{{SER}}}intFault").into(),
        fields: vec![field].into(),
    };
    let say = &mut contract.operations.to_mut()[0];
    say.raises = vec![Hold::new(detail.clone())].into();
    say.notes = vec![(format!("wcf:detail:{}", detail.id).into(), format!("{{{SER}}}int").into())].into();
    let Outcome::Raised(raised) = answered_to(&contract, &format!("<int xmlns='{SER}'>-7</int>")) else {
        panic!("no exception")
    };
    let shape = Shape::Struct(Hold::new(detail.clone()));
    assert_eq!((&*raised.id, first(&raised.body, &shape)), (&*detail.id, Value::Integer(-7)));
    let element = names::detail(&contract.operations[0], &detail);
    let value = Value::Struct(vec![("Value".to_owned(), Value::Integer(-7))]);
    for form in [Form::Text, Form::Binary] {
        let mut out = SendBuffer::new();
        let encode = |sink: &mut dyn Sink| value.encode(&shape, sink);
        write_detail(form, &detail, Some(&element), false, &mut Outgoing::statics(), &encode, &mut out)
            .unwrap();
        if form == Form::Text {
            let text = String::from_utf8(out.to_vec()).unwrap();
            assert!(
                text.starts_with(&format!("<int xmlns=\"{SER}\"")) && text.ends_with(">-7</int>"),
                "{text}"
            );
        }
        assert_eq!(decode(form, &out.to_vec(), &StringTable::default(), &shape), value);
    }
}

/// A fault of `Trouble`, which `Worse` extends, and `Worst` in another namespace.
const FAMILY: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:t" xmlns:o="urn:o" targetNamespace="urn:t"
  xmlns:w="http://www.w3.org/2006/05/addressing/wsdl" xmlns:s="http://www.w3.org/2001/XMLSchema"><types>
  <s:schema targetNamespace="urn:o" elementFormDefault="qualified">
    <s:complexType name="Worst"><s:complexContent><s:extension base="t:Worse"><s:sequence><s:element name="Most" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
  </s:schema>
  <s:schema targetNamespace="urn:t" elementFormDefault="qualified">
    <s:complexType name="Trouble"><s:sequence><s:element name="Why" type="s:string"/></s:sequence></s:complexType>
    <s:element name="Trouble" nillable="true" type="t:Trouble"/>
    <s:complexType name="Worse"><s:complexContent><s:extension base="t:Trouble"><s:sequence><s:element name="More" type="s:int"/></s:sequence></s:extension></s:complexContent></s:complexType>
    <s:element name="Say"><s:complexType><s:sequence><s:element name="text" type="s:string"/></s:sequence></s:complexType></s:element>
    <s:element name="SayResponse"><s:complexType><s:sequence/></s:complexType></s:element>
  </s:schema></types>
  <message name="in"><part name="parameters" element="t:Say"/></message>
  <message name="out"><part name="parameters" element="t:SayResponse"/></message>
  <message name="no"><part name="detail" element="t:Trouble"/></message>
  <portType name="M"><operation name="Say"><input message="t:in"/><output message="t:out"/>
    <fault name="TroubleFault" message="t:no" w:Action="urn:t/M/SayTroubleFault"/></operation></portType></definitions>"#;

/// .NET and Mono write a detail of a derived type in the element of the declared one, with its type.
#[test]
fn a_detail_of_a_derived_type_keeps_its_members() {
    let contract = everywire_idl::wsdl::parse(FAMILY, "t.wsdl").unwrap();
    let printed = everywire_idl::wsdl::print(&contract).unwrap();
    assert_eq!(printed.matches("_FaultMessage\">").count(), 1, "{printed}");
    let again = everywire_idl::wsdl::parse(&printed, "printed.wsdl").unwrap();
    let spaces = "xmlns='urn:t' xmlns:o='urn:o' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'";
    let integer = |name: &str, value| (name.to_owned(), Value::Integer(value));
    let why = ("Why".to_owned(), Value::Text("so".to_owned()));
    let (more, most) = (integer("More", 2), integer("Most", 3));
    let inside = "<Why>so</Why><More>2</More>";
    let worst = format!("{inside}<o:Most>3</o:Most>");
    let cases = [
        ("", "{urn:t}Trouble", "<Why>so</Why>", vec![why.clone()]),
        ("i:type='Trouble'", "{urn:t}Trouble", "<Why>so</Why>", vec![why.clone()]),
        ("i:type='Worse'", "{urn:t}Worse", inside, vec![why.clone(), more.clone()]),
        ("i:type='o:Worst'", "{urn:o}Worst", &worst, vec![why, more, most]),
    ];
    for contract in [contract, again] {
        let interface: &Interface = contract.interfaces().next().unwrap();
        let operation = &interface.operations[0];
        let ids: Vec<_> = operation.raises.iter().map(|detail| &*detail.id).collect();
        assert_eq!(ids, ["{urn:t}Trouble", "{urn:t}Worse", "{urn:o}Worst"]);
        for (kind, id, inside, value) in &cases {
            let detail = operation.raises.iter().find(|detail| &*detail.id == *id).unwrap();
            let shape = Shape::Struct(detail.clone());
            let element = format!("<Trouble {spaces} {kind}>{inside}</Trouble>");
            let Outcome::Raised(raised) = answered_to(interface, &element) else { panic!("{element}") };
            assert_eq!(&*raised.id, *id);
            let read = raised.body.read(|source| Value::decode(&shape, source)).unwrap();
            assert_eq!(read, Value::Struct(value.clone()));

            // As a service raises it, its client reads it.
            let place = place_with("basic://127.0.0.1:0", interface);
            let mut server = everywire_wcf::http::Accepting::new(&place);
            let body = envelope("<Say xmlns=\"urn:t\"><text>x</text></Say>");
            let head = "Content-Type: text/xml; charset=utf-8\r\nSOAPAction: \"urn:t/M/Say\"\r\n";
            send(&mut server, &post("/echo", head, body.as_bytes())).unwrap();
            let call = calls(&mut server).remove(0);
            let exception = Value::Struct(value.clone());
            let fields = |sink: &mut dyn Sink| exception.encode(&shape, sink);
            server.answer(call.id, Answer::Raised { shape: detail, fields: &fields }).unwrap();
            let said = told(&mut server);
            assert!(said.contains("<Trouble xmlns=\"urn:t\""), "{said}");
            assert_eq!(said.contains(":type="), value.len() > 1, "{said}");
            let detail = said.split_once("<detail>").unwrap().1.split_once("</detail>").unwrap().0;
            let Outcome::Raised(raised) = answered_to(interface, detail) else { panic!("{said}") };
            assert_eq!(&*raised.id, *id, "{said}");
            let read = raised.body.read(|source| Value::decode(&shape, source)).unwrap();
            assert_eq!(read, exception);
        }
    }
}

/// What the service says to people stands beside the detail; a sentence that says nothing is none.
#[test]
fn the_reason_of_an_exception_is_kept() {
    let contract = interface();
    let unsaid = "The creator of this fault did not specify a Reason.";
    let detail = "<Trouble xmlns='http://tempuri.org/'><why>because</why></Trouble>";
    for (reason, wanted) in [(" no credit ", "no credit"), ("", ""), (unsaid, "")] {
        let one = format!(
            "<faultcode>s:Server</faultcode><faultstring>{reason}</faultstring><detail>{detail}</detail>"
        );
        let two = format!(
            "<s:Code><s:Value>s:Receiver</s:Value></s:Code><s:Reason><s:Text xml:lang='en'>{reason}</s:Text></s:Reason>\
             <s:Detail>{detail}</s:Detail>"
        );
        for (scheme, kind, namespace, content) in [
            ("basic", "text/xml", "http://schemas.xmlsoap.org/soap/envelope/", one),
            ("soap12", "application/soap+xml", "http://www.w3.org/2003/05/soap-envelope", two),
        ] {
            let fault = format!(
                "<s:Envelope xmlns:s='{namespace}'><s:Body><s:Fault>{content}</s:Fault></s:Body></s:Envelope>"
            );
            let head =
                format!("HTTP/1.1 500 No\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", fault.len());
            let profile = way(&format!("{scheme}://127.0.0.1:8000/echo"));
            let outcome = answered_by(&contract, &profile, &(head + &fault));
            let Outcome::Raised(raised) = outcome else { panic!("{scheme}: {outcome:?}") };
            assert_eq!(raised.text, wanted, "{scheme}");
        }
    }
}

/// SOAP 1.2 part 1, 5.4.7 and appendix A: who knows only the other version says so in that one.
#[test]
fn an_envelope_of_the_other_version_is_told_as_such() {
    const ONE: &str = "http://schemas.xmlsoap.org/soap/envelope/";
    const TWO: &str = "http://www.w3.org/2003/05/soap-envelope";
    let contract = interface();
    let answered = |scheme: &str, status: &str, kind: &str, namespace: &str, content: &str| {
        let body = format!(
            "<?xml version='1.0'?>\n<s:Envelope xmlns:s='{namespace}'><s:Body>{content}</s:Body></s:Envelope>"
        );
        let head = format!("HTTP/1.1 {status}\r\n{kind}Content-Length: {}\r\n\r\n", body.len());
        let outcome =
            answered_by(&contract, &way(&format!("{scheme}://127.0.0.1:8000/echo")), &(head + &body));
        let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
        failure
    };
    let mismatch =
        "<s:Fault><faultcode>s:VersionMismatch</faultcode><faultstring>wrong</faultstring></s:Fault>";
    let (text, soap) =
        ("Content-Type: text/xml; charset=utf-8\r\n", "Content-Type: application/soap+xml\r\n");
    for (scheme, status, kind, namespace, spoken, use_it) in [
        ("soap12", "500 No", text, ONE, "SOAP 1.1", "basic://"),
        ("soap12", "200 OK", text, ONE, "SOAP 1.1", "basic://"),
        ("soap12", "500 No", "", ONE, "SOAP 1.1", "basic://"),
        ("basic", "500 No", soap, TWO, "SOAP 1.2", "soap12://"),
        ("basic", "500 No", "", TWO, "SOAP 1.2", "soap12://"),
    ] {
        let failure = answered(scheme, status, kind, namespace, mismatch);
        let (message, hint) = (failure.message(), failure.hint().unwrap());
        assert!(message.contains(spoken), "{scheme} {status} {kind}: {message}");
        assert!(hint.contains(use_it), "{scheme} {status} {kind}: {hint}");
        assert_eq!((failure.kind(), failure.completed()), (Kind::Unsupported, Completed::Maybe));
    }
    // The right version, of which nobody says what it is.
    for status in ["500 No", "200 OK"] {
        let failure = answered("basic", status, "", ONE, mismatch);
        assert!(failure.message().contains("without a Content-Type"), "{failure}");
    }
    // No envelope is none, whatever is in it.
    let page = answered("soap12", "500 No", text, "urn:other", ONE);
    assert!(page.hint().unwrap().contains("no envelope"), "{page}");
}

#[test]
fn a_package_with_attachments_is_called_so() {
    let contract = interface();
    let related = "multipart/related; type=\"text/xml\"; start=\"<r>\"; boundary=\"B\"";
    let body = format!(
        "--B\r\nContent-Type: text/xml\r\nContent-ID: <r>\r\n\r\n{}\r\n--B\r\nContent-Type: image/png\r\n\r\nPNG\r\n--B--\r\n",
        say("x")
    );
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {related}\r\nContent-Length: {}\r\n\r\n", body.len());
    let outcome = answered_by(&contract, &way("basic://127.0.0.1:8000/echo"), &(head + &body));
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert!(failure.message().contains("SOAP with Attachments"), "{failure}");
    assert!(!failure.hint().unwrap().contains("binding"), "{failure}");
    // The server says the same, and of MTOM to whom it does not speak that nothing is attached.
    let asked = |kind: &str| {
        let mut session = accepting("basic://127.0.0.1:8000?security=none");
        let headers = format!("Content-Type: {kind}\r\nSOAPAction: \"{ACTION}Say\"\r\n");
        send(&mut session, &post("/echo", &headers, body.as_bytes())).unwrap();
        told(&mut session)
    };
    let said = asked(related);
    assert!(said.starts_with("HTTP/1.1 415") && said.contains("SOAP with Attachments"), "{said}");
    assert!(!asked("multipart/related; type=\"application/xop+xml\"").contains("Attachments"));
}
