//! Structs without a name and signed octets, printed as OMG IDL: callers with stubs of that must send the same octets.

use everywire_idl::{dbus_xml, midl, omg};
use everywire_model::{Contract, Definition, Shape};

/// What the parameters of the operations are, one for each line.
fn parameters(contract: &Contract) -> Vec<String> {
    let interfaces = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Interface(interface) => Some(interface),
        _ => None,
    });
    let mut all = Vec::new();
    for operation in interfaces.flat_map(|interface| interface.operations.iter()) {
        for parameter in operation.parameters.iter() {
            let mut text = String::new();
            write(&parameter.field.shape, &mut text);
            all.push(format!("{} {text}", parameter.field.name));
        }
    }
    all
}

/// What travels: the parts, without the names of types.
fn write(shape: &Shape, text: &mut String) {
    match shape.resolved() {
        Shape::Struct(body) => {
            text.push('(');
            body.fields.iter().for_each(|field| write(&field.shape, text));
            text.push(')');
        }
        Shape::Sequence(sequence) => {
            text.push('a');
            write(&sequence.element, text);
        }
        other => text.push_str(&format!("{} ", other.noun())),
    }
}

#[test]
fn a_struct_without_a_name_gets_one() {
    let xml = r#"<node><interface name="o.Shelf">
        <method name="Put"><arg name="what" type="(is)" direction="in"/><arg name="all" type="a(i(ys))" direction="in"/>
            <arg name="again" type="(is)" direction="in"/></method>
        <method name="Get"><arg type="(is)" direction="out"/></method>
        <method name="put_what"/>
        <property name="Best" type="a(is)" access="read"/>
        <signal name="Fell"><arg name="what" type="(d)"/></signal>
    </interface></node>"#;
    let contract = dbus_xml::parse(xml, "shelf.xml").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let text = omg::print(&contract);
    assert!(!text.contains("any"), "{text}");
    let again = omg::parse(&text, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    assert_eq!(parameters(&again), parameters(&contract), "{text}");
    // Equal ones are one, and it stands in front of where it is used.
    assert_eq!(text.matches("struct ").count(), 4, "{text}");
    assert!(text.contains("in Put_what_s what"), "{text}");
    assert!(text.contains("in Put_what_s again"), "{text}");
}

#[test]
fn a_signed_octet_is_an_octet_as_which_it_travels() {
    let contract = midl::parse(
        "[object, uuid(0e3b4b1c-0013-4c1e-8a57-2f6b1f0e7d24)] interface I { HRESULT f([in] small a, [out] small *b); };",
        "i.midl",
    )
    .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let text = omg::print(&contract);
    assert!(text.contains("in octet /* signed */ a, out octet /* signed */ b"), "{text}");
    omg::parse(&text, "again.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
}
