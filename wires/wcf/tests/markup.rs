//! Values that are XML: whatever stands in an element that may hold any others, in both forms.

#![allow(clippy::unwrap_used)]

use crate::common::{arguments, body_in, body_with, decode, encode};
use everywire_model::value::TypedShape;
use everywire_model::{Body, Budget, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::{BodyContext, Form, write_body};

/// .NET's XElement, an array of nodes, a named type of anything, an object, and a list of elements.
const CONTRACT: &str = r#"<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:t="urn:m" targetNamespace="urn:m"
  xmlns:s="http://www.w3.org/2001/XMLSchema"><types><s:schema targetNamespace="urn:m" elementFormDefault="qualified">
  <s:complexType name="Anything" mixed="true"><s:sequence><s:any minOccurs="0" maxOccurs="unbounded"/></s:sequence></s:complexType>
  <s:complexType name="Items"><s:sequence><s:element name="Item" minOccurs="0" maxOccurs="unbounded" nillable="true"><s:complexType>
    <s:sequence><s:any minOccurs="0" processContents="lax"/></s:sequence></s:complexType></s:element></s:sequence></s:complexType>
  <s:complexType name="Mixed"><s:choice minOccurs="0" maxOccurs="unbounded"><s:element name="n" type="s:int"/>
    <s:element name="x"><s:complexType><s:sequence><s:any/></s:sequence></s:complexType></s:element>
    <s:element name="q" type="s:QName"/></s:choice></s:complexType>
  <s:element name="Put"><s:complexType><s:sequence>
    <s:element name="doc" minOccurs="0" nillable="true"><s:complexType><s:sequence><s:any minOccurs="0"/></s:sequence></s:complexType></s:element>
    <s:element name="all" type="t:Anything"/>
    <s:element name="any" type="s:anyType" minOccurs="0" nillable="true"/>
    <s:element name="items" type="t:Items"/>
    <s:element name="mixed" type="t:Mixed" minOccurs="0"/>
  </s:sequence></s:complexType></s:element>
  <s:element name="PutResponse"><s:complexType><s:sequence/></s:complexType></s:element></s:schema></types>
  <message name="in"><part name="parameters" element="t:Put"/></message>
  <message name="out"><part name="parameters" element="t:PutResponse"/></message>
  <portType name="M"><operation name="Put"><input message="t:in"/><output message="t:out"/></operation></portType></definitions>"#;

fn parameters() -> Shape {
    let contract = everywire_idl::wsdl::parse(CONTRACT, "m.wsdl").unwrap();
    contract.interfaces().next().unwrap().operations[0].arguments.clone()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// A value of any type that is none.
fn nothing() -> Value {
    Value::Variant(Box::new((TypedShape(Shape::Void), Value::Nothing)))
}

fn values(doc: Value, all: &str, any: Value, items: &[&str]) -> Value {
    let items = Value::List(items.iter().map(|item| text(item)).collect());
    let arm = |number, name: &str, value| Value::Union(number, Some(Box::new((name.to_owned(), value))));
    let arms = vec![
        arm(1, "x", text("<m xmlns=\"urn:m\"/>")),
        arm(0, "n", Value::Integer(5)),
        arm(2, "q", text("{urn:q}name")),
    ];
    let mixed = Value::Struct(vec![("Items".to_owned(), Value::List(arms))]);
    let fields = [("doc", doc), ("all", text(all)), ("any", any), ("items", items), ("mixed", mixed)];
    Value::Struct(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// What is written, as XML, and what is read of it.
fn both(form: Form, value: &Value) -> (String, Value) {
    let shape = parameters();
    let mut words = Outgoing::statics();
    let bytes = encode(form, value, &mut words, &arguments("Put", "urn:m", &shape), &shape);
    let read = decode(form, &bytes, &StringTable::default(), &shape);
    let shown = match form {
        Form::Text => String::from_utf8(bytes).unwrap(),
        Form::Binary => to_xml(&bytes, static_word).unwrap(),
    };
    (shown, read)
}

fn read(form: Form, content: &str) -> Result<Value, String> {
    let document = format!(
        "<s:E xmlns:s='urn:s' xmlns:q='urn:q' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>\
         <Put xmlns='urn:m'>{content}</Put></s:E>"
    );
    let shape = parameters();
    let inner = match form {
        Form::Text => document.into_bytes(),
        Form::Binary => crate::common::binary(&document),
    };
    let at = match form {
        Form::Text => memchr(&inner, b"<Put"),
        Form::Binary => inner.windows(3).position(|part| part == b"Put").unwrap() - 2,
    };
    let body: Body = body_with(form, inner, at, BodyContext::default(), Budget::default());
    body.read(|source| Value::decode(&shape, source)).map_err(|failure| failure.to_string())
}

fn memchr(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|part| part == what).unwrap()
}

fn field(value: &Value, name: &str) -> Value {
    let Value::Struct(fields) = value else { panic!("{value:?}") };
    fields.iter().find(|(known, _)| known == name).unwrap().1.clone()
}

#[test]
fn elements_stand_where_their_text_is_given() {
    let doc = "<a:root xmlns:a=\"urn:a\" k=\"1\">x &lt; <b>y</b> z</a:root>";
    let value = values(text(doc), "some <i>words</i>", nothing(), &["<p/>", "<p xmlns=\"urn:p\">1</p>"]);
    for form in [Form::Text, Form::Binary] {
        let (shown, read) = both(form, &value);
        // What has no namespace gets none from the elements around it.
        for part in ["<b xmlns=\"\">y</b>", "some <i xmlns=\"\">words</i>", "<p xmlns=\"urn:p\">1</p>"] {
            let part = if part.starts_with("<b") { "<b>y</b> z</a:root>" } else { part };
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(
            field(&read, "doc"),
            text("<a:root xmlns=\"\" xmlns:a=\"urn:a\" k=\"1\">x &lt; <b>y</b> z</a:root>"),
            "{form:?}"
        );
        assert_eq!(field(&read, "all"), text("some <i xmlns=\"\">words</i>"));
        let items = Value::List(vec![text("<p xmlns=\"\"/>"), text("<p xmlns=\"urn:p\">1</p>")]);
        assert_eq!(field(&read, "items"), items);
        // Elements of several names in any order.
        assert_eq!(field(&read, "mixed"), field(&value, "mixed"));
        assert_eq!(both(form, &read).1, read, "a second time it is the same");
        // Nothing is another thing than an element without anything in it.
        let empty = values(Value::Nothing, "", nothing(), &[]);
        let (shown, read) = both(form, &empty);
        assert!(shown.contains("nil=\"true\"") && read == empty, "{shown}");
        let empty = values(text(""), "", nothing(), &[]);
        assert_eq!(both(form, &empty).1, empty);
    }
}

#[test]
fn what_is_no_xml_of_its_own_is_refused() {
    let shape = parameters();
    let deep = format!("{}{}", "<a>".repeat(40), "</a>".repeat(40));
    for broken in [
        "<a>",
        "</doc><doc>",
        "<p:a/>",
        "<a p:b='1'/>",
        "&nbsp;",
        "<!DOCTYPE a><a/>",
        "<?x?>",
        "<1/>",
        &deep,
        // Namespaces in XML 1.0, 2.2 and 3.
        "<a xmlns:p=''/>",
        "<a xmlns:xml='urn:x'/>",
        "<a xmlns:xmlns='urn:x'/>",
        "<a xmlns:p='http://www.w3.org/2000/xmlns/'/>",
    ] {
        for form in [Form::Text, Form::Binary] {
            let value = values(text(broken), "", nothing(), &[]);
            let layout = arguments("Put", "urn:m", &shape);
            let (mut words, mut out) = (Outgoing::statics(), SendBuffer::new());
            let encode = &|sink: &mut dyn Sink| value.encode(&shape, sink);
            let failure = write_body(form, &layout, &mut words, encode, &mut out).unwrap_err();
            assert!(failure.to_string().contains("is not their XML"), "{broken}: {failure}");
        }
    }
    // A declaration of a document may stand before it.
    let value = values(text("<?xml version='1.0' encoding='utf-8'?>\n<a/>"), "", nothing(), &[]);
    assert!(both(Form::Text, &value).0.contains("<doc>\n<a xmlns=\"\"/></doc>"));
}

/// Prefixes of the elements around go along, in names and in what looks like one.
#[test]
fn what_comes_needs_nothing_around_it() {
    for form in [Form::Text, Form::Binary] {
        let read = |content: &str| read(form, content).unwrap();
        let value = read(
            "<doc xmlns:d='urn:d'><q:a d:k='q:v'>s:x</q:a><b/></doc><all>q:t, <s:c>http://x</s:c></all>",
        );
        let doc = "<q:a xmlns:q=\"urn:q\" xmlns=\"urn:m\" xmlns:d=\"urn:d\" xmlns:s=\"urn:s\" d:k=\"q:v\">s:x</q:a>\
                   <b xmlns=\"urn:m\"/>";
        assert_eq!(field(&value, "doc"), text(doc), "{form:?}");
        let all = "q:t, <s:c xmlns:s=\"urn:s\" xmlns=\"urn:m\">http://x</s:c>";
        assert_eq!(field(&value, "all"), text(all));
        assert_eq!(field(&read("<all/>"), "doc"), Value::Nothing);
        assert_eq!(field(&read("<doc i:nil='true'/><all/>"), "doc"), Value::Nothing);
        assert_eq!(field(&read("<doc/><all/>"), "doc"), text(""));
        // Members in another order.
        assert_eq!(field(&read("<all>1</all><doc><x xmlns=''/></doc>"), "doc"), text("<x xmlns=\"\"/>"));
    }
}

#[test]
fn objects_that_are_xml_are_its_text() {
    for form in [Form::Text, Form::Binary] {
        let content = "<all/><any><x xmlns='' k='1'>a<y/>b</x></any>";
        let value = read(form, content).unwrap();
        let Value::Variant(held) = field(&value, "any") else { panic!("{value:?}") };
        assert_eq!(held.1, text("<x xmlns=\"\" k=\"1\">a<y/>b</x>"), "{form:?}");
        // It is written as it came, and says no type.
        let (shown, again) = both(form, &value);
        assert!(shown.contains("><x xmlns=\"\" k=\"1\">a<y/>b</x></"), "{shown}");
        assert_eq!(again, value);
        // A type that nobody knows is told again.
        let told = "<all/><any i:type='q:T'><x xmlns='' k='1'/></any>";
        let value = read(form, told).unwrap();
        let (shown, again) = both(form, &value);
        assert!(shown.contains(":T\"") && shown.contains("urn:q"), "{shown}");
        assert_eq!(again, value);
    }
}

/// .NET writes control characters as references, which XML as a value keeps.
#[test]
fn control_characters_stay_references() {
    let value = read(Form::Text, "<doc><x k='&#x1;' xmlns=''>&#x1F;a</x></doc><all/>").unwrap();
    let doc = text("<x k=\"&#x1;\" xmlns=\"\">&#x1F;a</x>");
    assert_eq!(field(&value, "doc"), doc);
    for form in [Form::Text, Form::Binary] {
        assert_eq!(field(&both(form, &value).1, "doc"), doc, "{form:?}");
    }
}

/// What a few octets stand for is charged as what it becomes.
#[test]
fn namespaces_of_many_pieces_are_charged() {
    let content = format!("<doc xmlns:z='urn:{}'>{}</doc>", "z".repeat(6000), "<z:a/>".repeat(9000));
    let document = format!("<Put xmlns='urn:m'>{content}<all/></Put>").into_bytes();
    let body = body_in(Form::Text, document, &StringTable::default(), Budget::for_message(64 << 10));
    let failure = body.read(|source| Value::decode(&parameters(), source)).unwrap_err();
    assert!(failure.to_string().contains("bytes of decoded values"), "{failure}");
}
