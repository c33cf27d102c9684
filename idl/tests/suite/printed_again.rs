//! WSDL that is printed, read and printed again: the second text is the first one, and operations keep their parameters.

use everywire_idl::omg;
use everywire_idl::wsdl::{parse, print};
use everywire_model::contract::note;
use everywire_model::{Contract, Definition};

/// A description of one operation `weigh` for each pair of elements, and what stands in its schema.
fn service(head: &str, operations: &[(&str, &str, &str)]) -> String {
    let (mut messages, mut listed) = (String::new(), String::new());
    for (name, request, reply) in operations {
        messages.push_str(&format!(
            "<w:message name='{name}In'><w:part name='p' element='{request}'/></w:message>\
             <w:message name='{name}Out'><w:part name='p' element='{reply}'/></w:message>"
        ));
        listed.push_str(&format!(
            "<w:operation name='{name}'><w:input message='t:{name}In'/><w:output message='t:{name}Out'/></w:operation>"
        ));
    }
    format!(
        "<w:definitions xmlns:w='http://schemas.xmlsoap.org/wsdl/' xmlns:s='http://www.w3.org/2001/XMLSchema' \
         xmlns:t='urn:mill' targetNamespace='urn:mill'><w:types>\
         <s:schema targetNamespace='urn:mill' elementFormDefault='qualified'>{head}\
         <s:element name='weighResponse'><s:complexType/></s:element></s:schema></w:types>{messages}\
         <w:portType name='Mill'>{listed}</w:portType></w:definitions>"
    )
}

/// A request of this type beside an answer without members.
fn weigh(request: &str) -> String {
    let head = format!("<s:element name='weigh'><s:complexType>{request}</s:complexType></s:element>");
    service(&head, &[("weigh", "t:weigh", "t:weighResponse")])
}

fn read(text: &str) -> Contract {
    parse(text, "mill.wsdl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// Whether parameters stand alone, and what they are, of each operation.
fn operations(contract: &Contract) -> Vec<String> {
    let all = contract.interfaces().flat_map(|interface| interface.operations.iter());
    all.map(|operation| {
        let bare = note(&operation.notes, "wcf:bare").map_or("", |_| "bare ");
        let fields = operation.arguments.fields().iter();
        let fields: Vec<String> =
            fields.map(|field| format!("{}: {:?}", field.name, field.shape.noun())).collect();
        format!("{bare}{}({})", operation.name, fields.join(", "))
    })
    .collect()
}

/// The printed text, which is read as the same operations and printed again as it is.
fn stays(text: &str) -> String {
    let first = read(text);
    let printed = print(&first).unwrap_or_else(|reason| panic!("{reason}"));
    let second = read(&printed);
    assert_eq!(operations(&first), operations(&second), "{printed}");
    let again = print(&second).unwrap_or_else(|reason| panic!("{reason}"));
    assert_eq!(printed, again, "\nfrom {text}");
    printed
}

/// What no shape can hold is gone when it is printed; without it the message would look like one around parameters.
#[test]
fn messages_that_are_values_stay_values() {
    let any = "<s:sequence><s:element name='kilos' type='s:int'/><s:any minOccurs='0'/></s:sequence>";
    stays(&weigh(any));
    let repeated = "<s:sequence><s:element name='kilos' type='s:int' maxOccurs='9'/></s:sequence>\
                    <s:attribute name='at' type='s:string'/>";
    stays(&weigh(repeated));
    // Of a list, and of a type that others extend.
    let list = "<s:element name='weigh'><s:complexType><s:sequence><s:element name='kilos' type='s:int' maxOccurs='9'/>\
        </s:sequence></s:complexType></s:element><s:element name='said'><s:complexType><s:sequence/>\
        <s:anyAttribute/></s:complexType></s:element>";
    stays(&service(list, &[("weigh", "t:weigh", "t:said")]));
    let family = "<s:complexType name='Sack'><s:sequence><s:element name='kilos' type='s:int'/><s:any minOccurs='0'/>\
        </s:sequence></s:complexType><s:complexType name='BigSack'><s:complexContent><s:extension base='t:Sack'>\
        <s:sequence/></s:extension></s:complexContent></s:complexType><s:element name='weigh' type='t:Sack'/>";
    stays(&service(family, &[("weigh", "t:weigh", "t:weighResponse")]));
}

/// A class of one repeated element is no list when what stood beside it is gone.
#[test]
fn classes_of_one_repeated_element_stay_classes() {
    let head = "<s:complexType name='Sacks'><s:sequence><s:element name='sack' type='s:string' minOccurs='0' \
        maxOccurs='unbounded'/><s:any minOccurs='0'/></s:sequence></s:complexType><s:element name='weigh'>\
        <s:complexType><s:sequence><s:element name='sacks' type='t:Sacks'/></s:sequence></s:complexType></s:element>";
    stays(&service(head, &[("weigh", "t:weigh", "t:weighResponse")]));
}

/// A choice between members and groups of members is one choice in print, too.
#[test]
fn choices_between_groups_stay_choices() {
    let element = |name: &str| format!("<s:element name='{name}' type='s:int'/>");
    let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(element);
    for choice in [
        format!("<s:choice>{a}<s:sequence>{b}{c}</s:sequence></s:choice>"),
        format!("<s:choice><s:sequence>{a}{b}</s:sequence>{c}</s:choice>"),
        format!("<s:choice>{a}<s:sequence>{b}{c}</s:sequence><s:choice>{d}{e}</s:choice></s:choice>"),
        format!("<s:choice>{a}<s:sequence>{b}<s:any/></s:sequence>{c}</s:choice>"),
        format!("<s:choice>{a}<s:element name='l' type='s:int' maxOccurs='9'/>{b}</s:choice>{c}"),
    ] {
        let head = format!(
            "<s:complexType name='Sack'><s:sequence>{choice}</s:sequence></s:complexType><s:element name='weigh'>\
             <s:complexType><s:sequence><s:element name='sack' type='t:Sack'/></s:sequence></s:complexType></s:element>"
        );
        stays(&service(&head, &[("weigh", "t:weigh", "t:weighResponse")]));
    }
}

/// A number that may be left out is a parameter whether or not a text beside it tells how it is left out.
#[test]
fn numbers_that_are_left_out_stay_parameters() {
    let number = "<s:element name='limit' type='s:int' minOccurs='0'/>";
    let text = "<s:element name='start' type='s:string' minOccurs='0'/>";
    let list = "<s:element name='sack' type='s:int' minOccurs='0' maxOccurs='9'/>";
    for members in [format!("{number}{text}"), format!("{number}{list}")] {
        let printed = stays(&weigh(&format!("<s:sequence>{members}</s:sequence>")));
        assert!(!printed.contains("ew:bare"), "{printed}");
    }
    // Alone in a choice it is one, too, as descriptions were printed before.
    let alone = "<s:sequence><s:choice minOccurs='0'><s:element name='limit' type='s:int' minOccurs='0'/></s:choice></s:sequence>";
    let contract = read(&weigh(alone));
    assert!(operations(&contract)[0].starts_with("weigh(limit"), "{:?}", operations(&contract));
    stays(&weigh(alone));
}

/// One element is around parameters in one operation and a value in another one, under the same name each time.
#[test]
fn elements_that_are_both_keep_the_names_of_their_types() {
    let head = "<s:element name='weigh'><s:complexType><s:sequence><s:element name='kilos' type='s:int'/></s:sequence>\
        </s:complexType></s:element><s:element name='said' type='s:int'/>";
    let printed =
        stays(&service(head, &[("weigh", "t:weigh", "t:weighResponse"), ("again", "t:weigh", "t:said")]));
    assert!(!printed.contains("weighElement"), "{printed}");
}

/// Types in no namespace need no prefix, which could not be declared for them.
#[test]
fn types_in_no_namespace_are_named_without_a_prefix() {
    let text = weigh("<s:sequence><s:element name='sack' type='t:Sack'/></s:sequence>").replace(
        "<w:types>",
        "<w:types><s:schema><s:complexType name='Sack'><s:sequence><s:element name='kilos' type='s:int'/>\
         <s:element name='bag' type='Bag'/></s:sequence></s:complexType><s:complexType name='Bag'><s:sequence>\
         <s:element name='x' type='t:Y'/></s:sequence></s:complexType></s:schema>",
    );
    let text = text.replace("type='t:Sack'", "type='Sack'").replace(
        "<s:element name='weighR",
        "<s:complexType name='Y'>\
        <s:sequence><s:element name='z' type='s:int'/></s:sequence></s:complexType><s:element name='weighR",
    );
    let printed = stays(&text);
    assert!(!printed.contains("=\"\""), "{printed}");
}

/// Ports of several services stand in the order in which they are read.
#[test]
fn ports_of_several_services_keep_their_order() {
    let port = |name: &str| {
        format!(
            "<w:port name='{name}' binding='t:B'><p:address location='http://mill.test/{name}'/></w:port>"
        )
    };
    let services = format!(
        "<w:binding name='B' type='t:Mill'><p:binding transport='http://schemas.xmlsoap.org/soap/http'/></w:binding>\
         <w:binding name='C' type='t:Scale'><p:binding transport='http://schemas.xmlsoap.org/soap/http'/></w:binding>\
         <w:service name='One'>{}</w:service><w:service name='Two'>{}{}</w:service></w:definitions>",
        port("a"),
        port("b").replace("t:B", "t:C"),
        port("c"),
    );
    let text = weigh("<s:sequence/>").replace("</w:definitions>", &services);
    let text = text
        .replace(
            "<w:portType",
            "<w:portType name='Scale'><w:operation name='tare'><w:input message='t:weighIn'/>\
         </w:operation></w:portType><w:portType",
        )
        .replace("xmlns:t=", "xmlns:p='http://schemas.xmlsoap.org/wsdl/soap/' xmlns:t=");
    stays(&text);
}

/// Anything is printed where it stands, since it has no name, and stays what it is.
#[test]
fn anything_stays_anything() {
    let any = |more: &str| {
        format!("<s:complexType><s:sequence><s:any minOccurs='0' {more}/></s:sequence></s:complexType>")
    };
    let inner = any("maxOccurs='unbounded'");
    let head = format!(
        "<s:complexType name='All'><s:complexContent mixed='true'><s:restriction base='s:anyType'><s:sequence>\
         <s:any processContents='skip'/><s:any/></s:sequence><s:anyAttribute/></s:restriction></s:complexContent></s:complexType>\
         <s:complexType name='ArrayOfX'><s:sequence><s:element name='X' minOccurs='0' maxOccurs='unbounded' nillable='true'>{inner}\
         </s:element></s:sequence></s:complexType>\
         <s:complexType name='Sack'><s:sequence><s:element name='doc' nillable='true' minOccurs='0'>{inner}</s:element>\
         <s:element name='all' type='t:All'/><s:element name='list' type='t:ArrayOfX'/>\
         <s:element name='flat' maxOccurs='9'>{inner}</s:element></s:sequence></s:complexType>\
         <s:element name='weigh'><s:complexType><s:sequence><s:element name='sack' type='t:Sack'/>\
         <s:element name='one' nillable='true'>{inner}</s:element></s:sequence></s:complexType></s:element>\
         <s:element name='said'>{inner}</s:element>"
    );
    let printed =
        stays(&service(&head, &[("weigh", "t:weigh", "t:weighResponse"), ("say", "t:said", "t:said")]));
    assert_eq!(printed.matches("<xs:any ").count(), 6, "{printed}");
    assert!(!printed.contains("anyXML") && printed.contains("<xs:complexType name=\"All\">"), "{printed}");
}

/// The service above with a fault of an operation, whose detail is a text.
fn with_fault(answer: &str) -> String {
    let text = service(
        "<s:element name='weigh'><s:complexType/></s:element><s:element name='spilt' type='s:string'/>",
        &[("weigh", "t:weigh", "t:weighResponse")],
    );
    let fault = "<w:fault name='spilt' message='t:spilt'/></w:operation>";
    let message = "<w:message name='spilt'><w:part name='p' element='t:spilt'/></w:message><w:portType";
    let text = text.replace("</w:operation>", fault).replace("<w:portType", message);
    text.replace("<w:output message='t:weighOut'/>", answer)
}

/// What operations raise is defined in the contract, so that other languages and generated code have it.
#[test]
fn faults_that_are_a_text_are_defined() {
    let text = with_fault("<w:output message='t:weighOut'/>");
    stays(&text);
    let contract = read(&text);
    let defined = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Exception(exception) => Some(exception.name.to_string()),
        _ => None,
    });
    assert_eq!(defined.collect::<Vec<_>>(), ["mill::spilt"]);
    let printed = omg::print(&contract);
    let again = omg::parse(&printed, "mill.idl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{printed}"));
    assert_eq!(again.interfaces().next().unwrap().operations[0].raises.len(), 1);
}

/// Nobody waits for what a oneway operation could raise.
#[test]
fn oneway_operations_have_no_faults() {
    let text = with_fault("");
    let contract = read(&text);
    let mill = contract.interfaces().next().unwrap();
    assert!(mill.operations[0].oneway && mill.operations[0].raises.is_empty());
    let unread = note(&mill.notes, "wcf:unread").unwrap();
    assert_eq!(unread, "{urn:mill}Mill.weigh: the faults of a oneway operation are not typed");
    stays(&text);
}
