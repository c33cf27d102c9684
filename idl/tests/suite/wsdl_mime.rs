//! Bindings with MIME (WSDL 1.1, 5): what stands in the body, and what goes beside it as an attachment, which is not carried.

use everywire_idl::wsdl::{names, parse, print};
use everywire_model::contract::{left_out, note};
use everywire_model::{Contract, Interface, Operation};

/// Two operations of the style `rpc`, whose messages have the parts `a` and `b`. `input` is the binding of the first one's request; the
/// second one's body is bound as usual.
fn described(style: &str, input: &str) -> String {
    let bound = |name: &str, input: &str| {
        format!(
            "<operation name=\"{name}\"><soap:operation soapAction=\"\"/><input>{input}</input>\
             <output><soap:body use=\"literal\"/></output></operation>"
        )
    };
    let operation = |name: &str| {
        format!("<operation name=\"{name}\"><input message=\"t:In\"/><output message=\"t:Out\"/></operation>")
    };
    format!(
        "<definitions xmlns=\"http://schemas.xmlsoap.org/wsdl/\" targetNamespace=\"urn:t\" xmlns:t=\"urn:t\" \
         xmlns:soap=\"http://schemas.xmlsoap.org/wsdl/soap/\" xmlns:mime=\"http://schemas.xmlsoap.org/wsdl/mime/\" \
         xmlns:xs=\"http://www.w3.org/2001/XMLSchema\"><message name=\"In\"><part name=\"a\" type=\"xs:int\"/>\
         <part name=\"b\" type=\"xs:base64Binary\"/></message><message name=\"Out\"><part name=\"r\" type=\"xs:int\"/></message>\
         <portType name=\"T\">{}{}</portType><binding name=\"B\" type=\"t:T\"><soap:binding style=\"{style}\" \
         transport=\"http://schemas.xmlsoap.org/soap/http\"/>{}{}</binding></definitions>",
        operation("Send"),
        operation("Ask"),
        bound("Send", input),
        bound("Ask", "<soap:body use=\"literal\"/>"),
    )
}

fn read(text: &str) -> Contract {
    parse(text, "t.wsdl").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn only(contract: &Contract) -> &Interface {
    contract.interfaces().next().unwrap_or_else(|| panic!("no interface"))
}

fn arguments(operation: &Operation) -> Vec<String> {
    operation.arguments.fields().iter().map(|field| field.name.to_string()).collect()
}

fn multipart(parts: &[&str]) -> String {
    let parts: String = parts.iter().map(|part| format!("<mime:part>{part}</mime:part>")).collect();
    format!("<mime:multipartRelated>{parts}</mime:multipartRelated>")
}

/// The body is one of the parts of a multipart message; what it says holds (WSDL 1.1, 3.5).
#[test]
fn a_body_inside_of_a_multipart_message_says_what_any_other_does() {
    let body = "<soap:body use=\"literal\" namespace=\"urn:far\"/>";
    let contract = read(&described("rpc", &multipart(&[body])));
    let interface = only(&contract);
    let send = &interface.operations[0];
    let wrapper = names::request_wrapper(Some(interface), send);
    assert_eq!(wrapper, Some(names::QName::new("urn:far", "Send")));
    assert_eq!(arguments(send), ["a", "b"]);
    print(&contract).unwrap();
}

/// An attachment is no element of the body: an operation that has one is left out, and it is said why.
#[test]
fn an_operation_with_an_attachment_is_left_out() {
    let content = "<mime:content part=\"b\" type=\"image/png\"/>";
    for body in ["<soap:body use=\"literal\" parts=\"a\"/>", "<soap:body use=\"literal\"/>"] {
        let contract = read(&described("rpc", &multipart(&[body, content])));
        let interface = only(&contract);
        let names: Vec<_> = interface.operations.iter().map(|operation| &*operation.name).collect();
        assert_eq!(names, ["Ask"]);
        let lacks: Vec<_> = left_out(&interface.notes).collect();
        assert_eq!(lacks, ["Send: the part `b` is sent as an attachment (MIME), which is not carried"]);
    }
    // Nothing is left: then it is an error.
    let text = described("rpc", &multipart(&[content]))
        .replace("<operation name=\"Ask\"><input message", "<operation><input message");
    let mistake = parse(&text, "t.wsdl").unwrap_err().to_string();
    assert!(mistake.contains("attachment"), "{mistake}");
}

/// `parts` names what stands in the body. Other parts of the message are nowhere, which is told.
#[test]
fn parts_that_a_binding_leaves_out_of_the_body_are_no_parameters() {
    let contract = read(&described("rpc", "<soap:body use=\"literal\" parts=\" a \"/>"));
    let interface = only(&contract);
    assert_eq!(arguments(&interface.operations[0]), ["a"]);
    assert_eq!(arguments(&interface.operations[1]), ["a", "b"]);
    let unread = note(&interface.notes, "wcf:unread");
    assert_eq!(unread, Some("{urn:t}T.Send: the part `b` is left out, no binding carries it"));
    // Names that the message does not have say nothing.
    let contract = read(&described("rpc", "<soap:body use=\"literal\" parts=\"parameters\"/>"));
    assert_eq!(arguments(&only(&contract).operations[0]), ["a", "b"]);
    let contract = read(&described("rpc", "<soap:body use=\"literal\" parts=\"\"/>"));
    assert_eq!(arguments(&only(&contract).operations[0]), [""; 0]);
}
