//! Prefixes that a description uses and does not declare.

use everywire_idl::wsdl::{parse, print};
use everywire_model::Contract;
use everywire_model::contract::left_out;

/// A description whose definitions declare what is given, with a message that `parts` make and another one of plain text.
fn description(declared: &str, schema: &str, parts: &str) -> String {
    format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' {declared} targetNamespace='urn:mill'><w:types>\
         <x:schema xmlns:x='http://www.w3.org/2001/XMLSchema' targetNamespace='urn:mill'>{schema}</x:schema></w:types>\
         <w:message name='ask'>{parts}</w:message>\
         <w:message name='say'><w:part xmlns:y='http://www.w3.org/2001/XMLSchema' name='p' type='y:string'/></w:message>\
         <w:portType name='Mill'>\
         <w:operation name='weigh'><w:input message='tns:ask'/></w:operation>\
         <w:operation name='tell'><w:input message='tns:say'/></w:operation></w:portType></w:definitions>"
    )
}

fn read(text: &str) -> Contract {
    parse(text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The operations of the one interface, each with its parameters.
fn operations(contract: &Contract) -> Vec<String> {
    let operations = contract.interfaces().next().unwrap().operations.iter();
    let fields = |fields: &[everywire_model::shape::Field]| {
        fields
            .iter()
            .map(|field| format!("{}: {}", field.name, field.shape.noun()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    operations
        .map(|operation| format!("{}({})", operation.name, fields(operation.arguments.fields())))
        .collect()
}

fn remarks(contract: &Contract) -> Vec<String> {
    let notes = contract.interfaces().next().unwrap().notes.iter();
    notes.filter(|(what, _)| what == "wcf:unread").map(|(_, value)| value.to_string()).collect()
}

/// A prefix that the document declares elsewhere means the same; `xsd`, `xs` and `tns` mean what they do by convention; all is told.
#[test]
fn prefixes_that_are_not_declared_mean_what_they_do_elsewhere() {
    let text = description(
        "",
        "",
        "<w:part name='a' type='x:int'/><w:part name='b' type='xsd:long'/><w:part name='c' type='xs:boolean'/>",
    );
    let contract = read(&text);
    assert_eq!(operations(&contract), ["weigh(a: i32, b: i64, c: boolean)", "tell(p: text)"]);
    let remarks = remarks(&contract);
    let schema = "http://www.w3.org/2001/XMLSchema";
    for (prefix, namespace) in [("x", schema), ("xsd", schema), ("xs", schema), ("tns", "urn:mill")] {
        let told = format!("the prefix `{prefix}` is not declared: it is read as `{namespace}`");
        assert!(remarks.contains(&told), "{told}: {remarks:?}");
    }
    print(&contract).unwrap_or_else(|refused| panic!("{refused}"));
}

/// What needs a prefix of which nobody knows the meaning is left out, and the rest can be used: an operation, an element of
/// somebody's extension, and a prefix that means two things elsewhere.
#[test]
fn what_needs_an_unknown_prefix_is_left_out() {
    let own = "xmlns:tns='urn:mill'";
    let two = "<x:element xmlns:q='urn:a' name='a'/><x:element xmlns:q='urn:b' name='b'/>";
    for (parts, schema) in [
        ("<w:part name='a' type='far:Sack'/>", ""),
        ("<w:part name='a' element='far:Sack'/>", ""),
        ("<w:part name='a' type='q:Sack'/>", two),
    ] {
        let contract = read(&description(own, schema, parts));
        assert_eq!(operations(&contract), ["tell(p: text)"], "{parts}");
        let interface = contract.interfaces().next().unwrap();
        let lost: Vec<&str> = left_out(&interface.notes).collect();
        assert!(lost[0].starts_with("weigh: the prefix of the "), "{lost:?}");
        assert!(remarks(&contract)[0].ends_with("is not declared: what needs it is left out"), "{parts}");
    }
    let extension = "<far:policy><w:part name='b' type='x:int'/></far:policy><w:part name='a' type='x:int'/>";
    let contract =
        read(&description(&format!("{own} xmlns:x='http://www.w3.org/2001/XMLSchema'"), "", extension));
    assert_eq!(operations(&contract), ["weigh(a: i32)", "tell(p: text)"]);
}

/// Where nothing is left the description is refused, with what is missing. So is one whose first element nobody knows.
#[test]
fn nothing_but_unknown_prefixes_is_refused() {
    let text = description("xmlns:tns='urn:mill'", "", "<w:part name='a' type='far:Sack'/>");
    let mistakes = parse(&text.replace("y:string", "far:Text"), "mill.wsdl").unwrap_err().to_string();
    assert!(mistakes.contains("the prefix of the type `far:Sack` is not declared"), "{mistakes}");
    assert!(mistakes.contains("declare it: `xmlns:far`"), "{mistakes}");
    let mistakes = parse("<w:definitions/>", "mill.wsdl").unwrap_err().to_string();
    assert!(mistakes.contains("the prefix of `w:definitions` is not declared"), "{mistakes}");
}
