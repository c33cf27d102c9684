//! Values whose own type stands beside them, and objects that others refer to.

#![allow(clippy::unwrap_used)]

use crate::common::*;
use everywire_model::shape::{Field, Hold, Struct, Text};
use everywire_model::value::TypedShape;
use everywire_model::{Budget, Shape, Value};
use everywire_wcf::dictionary::Outgoing;
use everywire_wcf::limits::MAX_REFERENCES;
use everywire_wcf::nbfx::{Prefix, Record, Text as Chars, Word, Writer};
use everywire_wcf::{BodyContext, Form};

const HEAD: &str = "<Op xmlns='urn:o' xmlns:i='http://www.w3.org/2001/XMLSchema-instance' \
                    xmlns:z='http://schemas.microsoft.com/2003/10/Serialization/' xmlns:a='urn:a'>";

fn text() -> Shape {
    Shape::Text(Text::WIDE)
}

fn record(fields: &[(&'static str, Shape)]) -> Shape {
    let fields = fields.iter().map(|(name, shape)| Field { name: (*name).into(), shape: shape.clone() });
    Shape::Struct(Hold::new(Struct { name: "T".into(), id: "{urn:a}T".into(), fields: fields.collect() }))
}

/// Reads one parameter `v`.
fn read(shape: Shape, content: &str) -> Result<Value, String> {
    let parameters = Shape::Struct(Hold::new(Struct {
        name: "".into(),
        id: "".into(),
        fields: vec![Field { name: "v".into(), shape }].into(),
    }));
    let body = format!("{HEAD}{content}</Op>").into_bytes();
    let body = body_with(Form::Text, body, 0, BodyContext::default(), Budget::default());
    match body.read(|source| Value::decode(&parameters, source)) {
        Ok(Value::Struct(mut fields)) => Ok(fields.remove(0).1),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.to_string()),
    }
}

fn any(content: &str) -> Result<String, String> {
    read(Shape::Variant, content).map(|value| match value {
        Value::Variant(held) => format!("{:?}", held.1),
        other => panic!("{other:?}"),
    })
}

#[test]
fn structs_of_unknown_types_read_as_what_they_hold() {
    for (content, expected) in [
        (
            "<v i:type='a:T'><a:x>1</a:x><a:y><a:k/></a:y><a:n i:nil='true'/></v>",
            r#"Struct([("x", Text("1")), ("y", Struct([("k", Text(""))])), ("n", Nothing)])"#,
        ),
        (
            "<v i:type='a:T'><a:l><a:e>1</a:e><a:e>2</a:e></a:l><a:any i:type='b:int' \
             xmlns:b='http://www.w3.org/2001/XMLSchema'>7</a:any></v>",
            r#"Struct([("l", List([Text("1"), Text("2")])), ("any", Variant((TypedShape(I32), Integer(7))))])"#,
        ),
        (
            "<v i:type='a:ArrayOfT'><a:T><a:x>1</a:x></a:T><a:T><a:y>2</a:y></a:T></v>",
            r#"List([Struct([("x", Text("1")), ("y", Text(""))]), Struct([("x", Text("")), ("y", Text("2"))])])"#,
        ),
        ("<v i:type='a:Color'>Red</v>", r#"Text("Red")"#),
        // Clients that are not .NET's name no type.
        ("<v>5</v>", r#"Text("5")"#),
        ("<v><x>1</x><y i:nil='true'/></v>", r#"Struct([("x", Text("1")), ("y", Nothing)])"#),
        // `new object()` is something.
        ("<v/>", r#"Text("")"#),
        ("<v></v>", r#"Text("")"#),
        ("<v i:nil='true'/>", "Nothing"),
    ] {
        assert_eq!(any(content).as_deref(), Ok(expected), "{content}");
    }
    // What no struct can say is the XML that stands there.
    let around = r#" xmlns:a=\"urn:a\" xmlns=\"urn:o\""#;
    for (content, expected) in [
        (
            "<v i:type='a:T'><a:x>1</a:x><a:y/><a:x>2</a:x></v>".to_owned(),
            format!(r#"Text("<a:x{around}>1</a:x><a:y{around}/><a:x{around}>2</a:x>")"#),
        ),
        (
            "<v i:type='a:T'><x xmlns=''><k>1</k></x><x xmlns='' b='2'>3</x></v>".to_owned(),
            r#"Text("<x xmlns=\"\"><k>1</k></x><x xmlns=\"\" b=\"2\">3</x>")"#.to_owned(),
        ),
        ("<v>some <b xmlns=''>text</b></v>".to_owned(), r#"Text("some <b xmlns=\"\">text</b>")"#.to_owned()),
    ] {
        assert_eq!(any(&content), Ok(expected), "{content}");
    }
    // Too many members, of one element, or of all elements of one name.
    let many: String = (0..300).map(|number| format!("<a:m{number}/>")).collect();
    assert!(any(&format!("<v i:type='a:T'>{many}</v>")).unwrap().starts_with(r#"Text("<a:m0 xmlns"#));
    let many: String = (0..300).map(|number| format!("<a:x><a:m{number}/></a:x>")).collect();
    assert!(any(&format!("<v i:type='a:T'>{many}</v>")).unwrap().starts_with(r#"Text("<a:x xmlns"#));
}

/// An enumeration that no operation names is text, and keeps the name of its type.
#[test]
fn a_text_of_an_unknown_type_keeps_its_name() {
    let Ok(Value::Variant(held)) = read(Shape::Variant, "<v i:type='a:Color'>Red</v>") else { panic!() };
    let (TypedShape(shape), value) = *held;
    assert!(matches!(&shape, Shape::Alias(alias) if alias.id == "{urn:a}Color"), "{shape:?}");
    assert_eq!(value, Value::Text("Red".to_owned()));
}

#[test]
fn objects_that_are_referred_to_are_read_where_they_are_meant() {
    let leaf = record(&[("x", text())]);
    let pair = || record(&[("a", leaf.clone()), ("b", leaf.clone()), ("c", text())]);
    let one = "<a:a z:Id='i1'><a:x>1</a:x></a:a>";
    let twice =
        r#"Struct([("a", Struct([("x", Text("1"))])), ("b", Struct([("x", Text("1"))])), ("c", Text("2"))])"#;
    for content in [
        format!("<v>{one}<a:b z:Ref='i1' i:nil='true'/><a:c>2</a:c></v>"),
        // In another order, and before what it refers to.
        format!("<v><a:c>2</a:c><a:b z:Ref='i1'></a:b>{one}</v>"),
        format!(
            "<v>{one}<a:b y:Ref='i1' xmlns:y='http://schemas.microsoft.com/2003/10/Serialization/'/><a:c>2</a:c></v>"
        ),
    ] {
        assert_eq!(
            read(pair(), &content).map(|value| format!("{value:?}")).as_deref(),
            Ok(twice),
            "{content}"
        );
    }
    // An attribute of that name, which is another's.
    let other = format!("<v>{one}<a:b a:Ref='i1'><a:x>1</a:x></a:b><a:c>2</a:c></v>");
    assert_eq!(read(pair(), &other).map(|value| format!("{value:?}")).as_deref(), Ok(twice));
    let list = Shape::sequence(leaf.clone());
    let items = format!(
        "<v>{}<a:T z:Ref='i1'/><a:T z:Ref='i1'/><a:T><a:x>3</a:x></a:T></v>",
        one.replace("a:a", "a:T")
    );
    let Ok(Value::List(items)) = read(list, &items) else { panic!("no list") };
    assert_eq!(items.len(), 4);

    for (content, why) in [
        ("<v><a:a z:Ref='i9'/></v>".to_owned(), "not there"),
        ("<v z:Id='i1'><a:a z:Ref='i1'/></v>".to_owned(), "contains itself"),
    ] {
        let failure = read(pair(), &content).unwrap_err();
        assert!(failure.contains(why), "{content}: {failure}");
    }
}

/// What declares a prefix by itself says nothing of the elements beside it.
#[test]
fn a_prefix_of_references_may_mean_something_else_elsewhere() {
    const OURS: &str = "xmlns:p='http://schemas.microsoft.com/2003/10/Serialization/'";
    const OTHER: &str = "xmlns:p='urn:other'";
    let leaf = record(&[("x", text())]);
    let fields = ["a", "b", "c", "d"].map(|name| (name, leaf.clone()));
    let one = "<a:a z:Id='i1'><a:x>1</a:x></a:a>";
    let refers = |name: &str, declares: &str| format!("<a:{name} {declares} p:Ref='i1'/>");
    let stands =
        |name: &str, declares: &str| format!("<a:{name} {declares} p:ref='5'><a:x>1</a:x></a:{name}>");
    for content in [
        format!("<v>{one}{}{}{}</v>", stands("b", OTHER), refers("c", OURS), stands("d", OTHER)),
        format!("<v>{one}{}{}{}</v>", refers("b", OURS), stands("c", OTHER), refers("d", OURS)),
        // Where it is inherited, and declared anew.
        format!("<v {OURS}>{one}{}{}{}</v>", refers("b", ""), stands("c", OTHER), refers("d", "")),
        format!("<v {OTHER}>{one}{}{}{}</v>", stands("b", ""), refers("c", OURS), stands("d", "")),
        format!("<v {OTHER}>{one}{}{}{}</v>", refers("b", OURS), stands("c", ""), refers("d", OURS)),
        // A reference without a prefix between them.
        format!("<v {OURS}>{one}{}<a:c href='#i1'/>{}</v>", refers("b", ""), refers("d", "")),
    ] {
        let Ok(Value::Struct(read)) = read(record(&fields), &content) else { panic!("{content}") };
        assert!(read.iter().all(|(_, value)| *value == read[0].1), "{content}: {read:?}");
    }
}

/// As PHP writes what occurs twice, and Axis everything that is no plain value.
#[test]
fn elements_of_soap_s_encoding_are_read_where_they_are_meant() {
    let leaf = record(&[("x", text())]);
    let pair = || record(&[("a", leaf.clone()), ("b", leaf.clone()), ("c", text())]);
    let twice =
        r#"Struct([("a", Struct([("x", Text("1"))])), ("b", Struct([("x", Text("1"))])), ("c", Text("2"))])"#;
    let encoding = "xmlns:enc='http://www.w3.org/2003/05/soap-encoding'";
    for content in [
        "<v><a:a id='ref1'><a:x>1</a:x></a:a><a:b href='#ref1'/><a:c>2</a:c></v>".to_owned(),
        format!("<v {encoding}><a:a enc:id='ref1'><a:x>1</a:x></a:a><a:b enc:ref='#ref1'/><a:c>2</a:c></v>"),
        format!("<v {encoding}><a:a enc:id='ref1'><a:x>1</a:x></a:a><a:b enc:ref='ref1'/><a:c>2</a:c></v>"),
        "<v href='#id0'/><multiRef id='id0'><a href='#id1'/><b href='#id1'></b><c href='#id2'/></multiRef>\
         <multiRef id='id1'><x>1</x></multiRef><multiRef id='id2'>2</multiRef>"
            .to_owned(),
        // Of other namespaces, and beside content, they mean nothing.
        "<v><a:a><a:x a:ref='#9'>1</a:x></a:a><a:b href='#9'><a:x href='9'>1</a:x></a:b><a:c>2</a:c></v>"
            .to_owned(),
    ] {
        let value = read(pair(), &content).map(|value| format!("{value:?}"));
        assert_eq!(value.as_deref(), Ok(twice), "{content}");
    }
    let items = "<v><a:T id='r'><a:x>1</a:x></a:T><a:T href='#r'/><a:T href='#r'/></v>";
    let Ok(Value::List(items)) = read(Shape::sequence(leaf.clone()), items) else { panic!("no list") };
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| *item == items[0]), "{items:?}");
    for (content, why) in [
        ("<v><a:a href='#r9'/></v>", "not there"),
        ("<v><a:a id='r'><a:x href='#r'/></a:a></v>", "contains itself"),
        ("<v id='r'><a:a href='#r'/></v>", "contains itself"),
    ] {
        let failure = read(pair(), content).unwrap_err();
        assert!(failure.contains(why), "{content}: {failure}");
    }
}

/// A message of a few hundred octets that means 2^20 texts.
#[test]
fn references_to_references_are_bounded() {
    for (id, reference) in [("z:Id='", "z:Ref='"), ("id='", "href='#")] {
        bounds(id, reference);
    }
}

fn bounds(id: &str, reference: &str) {
    let mut shape = text();
    let mut content = format!("<a:l {id}i0'>ha</a:l>");
    let mut fields = vec![("l", text())];
    const NAMES: [&str; 20] =
        ["a", "b", "c", "d", "e", "f", "g", "h", "j", "k", "m", "n", "o", "p", "q", "r", "s", "t", "u", "w"];
    for (number, name) in NAMES.into_iter().enumerate() {
        shape = record(&[("x", shape.clone()), ("y", shape)]);
        fields.push((name, shape.clone()));
        content.push_str(&format!(
            "<a:{name} {id}i{}'><a:x {reference}i{number}'/><a:y {reference}i{number}'/></a:{name}>",
            number + 1
        ));
    }
    let failure = read(record(&fields), &format!("<v>{content}</v>")).unwrap_err();
    assert!(failure.contains(&MAX_REFERENCES.to_string()), "{failure}");
}

/// Writes records: `<b:e` with a letter's prefix, and so on.
struct Records(Writer);

impl Records {
    fn start(&mut self, prefix: Option<char>, name: &str) {
        let prefix = prefix.map_or(Prefix::None, |prefix| Prefix::Letter(prefix as u8 - b'a'));
        self.0.put(&Record::Element(prefix, Word::Inline(name)));
    }

    fn declare(&mut self, prefix: Option<&str>, namespace: &str) {
        self.0.put(&Record::Xmlns(prefix, Word::Inline(namespace)));
    }

    fn say(&mut self, prefix: Prefix<'_>, name: &str, value: &str) {
        self.0.put(&Record::Attribute(prefix, Word::Inline(name), Chars::Chars(value)));
    }

    fn leaf(&mut self, prefix: char, name: &str, value: &str) {
        self.start(Some(prefix), name);
        self.0.chars(value);
        self.0.end();
    }
}

/// The values of a list of what has this shape, written by `fill`.
fn list_of(shape: Shape, budget: Budget, fill: impl FnOnce(&mut Records)) -> Result<Vec<Value>, String> {
    let mut records = Records(Writer::new());
    records.start(None, "Op");
    records.declare(Some("b"), "urn:b");
    records.declare(Some("i"), "http://www.w3.org/2001/XMLSchema-instance");
    records.start(None, "v");
    fill(&mut records);
    records.0.end();
    records.0.end();
    let parameters = Shape::Struct(Hold::new(Struct {
        name: "".into(),
        id: "".into(),
        fields: vec![Field { name: "v".into(), shape: Shape::sequence(shape) }].into(),
    }));
    let body = body(records.0.into_bytes(), None, budget);
    match body.read(|source| Value::decode(&parameters, source)) {
        Ok(Value::Struct(mut fields)) => match fields.remove(0).1 {
            Value::List(items) => Ok(items),
            other => panic!("{other:?}"),
        },
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.to_string()),
    }
}

/// What is called so in binary form may be written as text: it must be a name there, too.
#[test]
fn values_of_unknown_types_have_names_of_xml() {
    for content in ["<v i:type='a;T'><a:x>1</a:x></v>", "<v i:type='a:'><a:x>1</a:x></v>"] {
        assert!(any(content).unwrap_err().contains("a name is not one of XML"), "{content}");
    }
    for (kind, member) in [("b:T", "x><evil/><b:y"), ("b:T", "x y"), ("b:T;i,k,v", "x"), ("b:>", "x")] {
        let read = list_of(Shape::Variant, Budget::default(), |records| {
            records.start(Some('b'), "e");
            records.say(Prefix::Letter(b'i' - b'a'), "type", kind);
            records.leaf('b', member, "1");
            records.0.end();
        });
        assert!(read.unwrap_err().contains("a name is not one of XML"), "{kind} {member}");
    }
}

/// What a prefix stands for is not looked for from the front of the document each time.
#[test]
fn many_structs_of_unknown_types_cost_what_they_weigh() {
    const MANY: usize = 10_000;
    for own in [false, true] {
        let items = list_of(Shape::Variant, Budget::default(), |records| {
            for _ in 0..MANY {
                records.start(Some('b'), "e");
                if own {
                    records.declare(Some("c"), "urn:c");
                    records.declare(Some("d"), "urn:d");
                }
                let (prefix, inner) = if own { ('c', 'd') } else { ('b', 'b') };
                records.say(Prefix::Letter(b'i' - b'a'), "type", &format!("{prefix}:T"));
                records.leaf(prefix, "x", "1");
                records.start(Some(prefix), "y");
                records.leaf(inner, "z", "2");
                records.0.end();
                records.0.end();
            }
        })
        .unwrap_or_else(|failure| panic!("declared in each: {own}: {failure}"));
        assert_eq!(items.len(), MANY);
        let Some(Value::Variant(last)) = items.last() else { panic!("a value of its own type") };
        let Shape::Struct(outer) = &last.0.0 else { panic!("a struct") };
        let Shape::Struct(within) = &outer.fields[1].shape else { panic!("a struct") };
        let ids = if own { ["{urn:c}T", "{urn:d}y"] } else { ["{urn:b}T", "{urn:b}y"] };
        assert_eq!([&*outer.id, &*within.id], ids);
    }
}

/// The document is looked through once, whatever the prefix of references is, the empty one included.
#[test]
fn many_references_look_through_the_document_once() {
    const MANY: usize = 3_000;
    let leaf = record(&[("x", text())]);
    let items = list_of(leaf, Budget { elements: 100_000, ..Budget::default() }, |records| {
        for at in 0..MANY {
            records.start(Some('b'), "T");
            records.declare(None, "http://schemas.microsoft.com/2003/10/Serialization/");
            if at == 0 {
                records.say(Prefix::Inline(""), "Id", "i1");
                records.leaf('b', "x", "1");
            } else {
                records.say(Prefix::Inline(""), "Ref", "i1");
            }
            records.0.end();
        }
    });
    assert_eq!(items.map(|items| items.len()), Ok(MANY));
}

/// A qualified name among values of any type is told with its namespace: its prefix means nothing elsewhere. And XML Schema has
/// a duration beside that of .NET, the only one that others know.
#[test]
fn plain_types_of_values_keep_what_only_their_place_tells() {
    let schema = "xmlns:b='http://www.w3.org/2001/XMLSchema'";
    for (content, id, wanted) in [
        (
            format!("<v i:type='b:QName' {schema} xmlns:q='urn:q'>q:n</v>"),
            "{http://www.w3.org/2001/XMLSchema}QName",
            "{urn:q}n",
        ),
        (
            format!("<v i:type='b:duration' {schema}>P1D</v>"),
            "{http://www.w3.org/2001/XMLSchema}duration",
            "P1D",
        ),
        (
            "<v i:type='z:duration'>P1D</v>".to_owned(),
            "{http://schemas.microsoft.com/2003/10/Serialization/}duration",
            "P1D",
        ),
    ] {
        let Ok(Value::Variant(held)) = read(Shape::Variant, &content) else { panic!("{content}") };
        let (TypedShape(shape), value) = *held;
        let Shape::Alias(alias) = &shape else { panic!("{shape:?}") };
        assert_eq!((alias.id.as_ref(), &value), (id, &Value::Text(wanted.to_owned())));
    }
    assert!(read(Shape::Variant, &format!("<v i:type='b:QName' {schema}>nowhere:n</v>")).is_err());
}

/// A type that others extend is one among several where the contract has it. Where a value says that it is of this type, it is
/// of no other, and can be written as it was read.
#[test]
fn a_value_of_any_type_may_be_of_one_that_others_extend() {
    use crate::http_support::*;

    let text = "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:t='urn:t' targetNamespace='urn:t' \
        xmlns:s='http://www.w3.org/2001/XMLSchema'><types><s:schema targetNamespace='urn:t' elementFormDefault='qualified'>\
        <s:element name='Echo'><s:complexType><s:sequence><s:element name='v' type='s:anyType'/></s:sequence></s:complexType></s:element>\
        <s:element name='EchoResponse'><s:complexType><s:sequence><s:element name='v' type='s:anyType'/><s:element name='p' type='t:Person'/>\
        </s:sequence></s:complexType></s:element>\
        <s:complexType name='Person'><s:sequence><s:element name='name' type='s:string'/></s:sequence></s:complexType>\
        <s:complexType name='Boss'><s:complexContent><s:extension base='t:Person'><s:sequence><s:element name='level' type='s:int'/>\
        </s:sequence></s:extension></s:complexContent></s:complexType></s:schema></types>\
        <message name='M'><part name='p' element='t:Echo'/></message><message name='R'><part name='p' element='t:EchoResponse'/></message>\
        <portType name='T'><operation name='Echo'><input message='t:M'/><output message='t:R'/></operation></portType></definitions>";
    let contract = everywire_idl::wsdl::parse(text, "t.wsdl").unwrap_or_else(|e| panic!("{e}"));
    let interface = contract.interfaces().next().unwrap().clone();
    let operation = &interface.operations[0];
    for (name, more) in [("Person", ""), ("Boss", "<level>3</level>")] {
        let place = place_with("basic://127.0.0.1:8000?security=none", &interface);
        let mut session = everywire_wcf::http::Accepting::new(&place);
        let body = format!(
            "<Echo xmlns='urn:t' xmlns:t='urn:t'><v xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='t:{name}'>\
             <name>Z</name>{more}</v></Echo>"
        );
        let headers = "Content-Type: text/xml\r\nSOAPAction: \"\"\r\n";
        send(&mut session, &post("/echo", headers, envelope(&body).as_bytes())).unwrap();
        let call = calls(&mut session).remove(0);
        let any = first(&call.body, &operation.arguments);
        let Value::Variant(held) = &any else { panic!("{any:?}") };
        let (TypedShape(shape), _) = &**held;
        assert!(matches!(shape, Shape::Struct(own) if own.id == format!("{{urn:t}}{name}")), "{shape:?}");
    }
}

/// SOAP 1.1, 5.4.2.1 and 5.4.2.2: an array of which only some items come. A sequence has no holes: read by their order, items would
/// have other places than their sender gave them.
#[test]
fn parts_of_arrays_are_refused() {
    let list = || Shape::sequence(Shape::I32);
    let array = |array: &str, first: &str, second: &str| {
        format!(
            "<v xmlns:e='http://schemas.xmlsoap.org/soap/encoding/' xmlns:o='urn:o' e:arrayType='xsd:int[4]' {array}>\
             <item {first}>1</item><item {second}>2</item></v>"
        )
    };
    for shape in [list(), Shape::Variant] {
        for (offset, first, second) in
            [("e:offset='[2]'", "", ""), ("", "e:position='[1]'", "e:position='[3]'")]
        {
            let failure = read(shape.clone(), &array(offset, first, second)).unwrap_err();
            assert!(failure.contains("SOAP"), "{failure}");
        }
    }
    // The whole array, in its order; and attributes of others of these names.
    for (offset, first, second) in [
        ("e:offset='[0]'", "", ""),
        ("", "e:position='[0]'", "e:position='[1]'"),
        ("o:offset='[2]'", "o:position='[9]'", "o:position='[9]'"),
    ] {
        let whole = Value::List(vec![Value::Integer(1), Value::Integer(2)]);
        assert_eq!(read(list(), &array(offset, first, second)), Ok(whole));
    }
}

/// Who reads a value of any type that tells none, and writes it again, does not give it a type that nobody has: no reader would know it.
#[test]
fn a_value_that_tells_no_type_is_written_without_one() {
    let fields = vec![Field { name: "v".into(), shape: Shape::Variant }];
    let (name, id) = ("".into(), "".into());
    let parameters = Shape::Struct(Hold::new(Struct { name, id, fields: fields.into() }));
    for content in ["<v><a:x>1</a:x><a:y><a:k>q</a:k></a:y></v>", "<v><x xmlns=''>1</x></v>"] {
        let document = format!("{HEAD}{content}</Op>");
        for form in [Form::Text, Form::Binary] {
            let bytes = if form == Form::Text { document.clone().into_bytes() } else { binary(&document) };
            let body = body_with(form, bytes, 0, BodyContext::default(), Budget::default());
            let value = body.read(|source| Value::decode(&parameters, source)).unwrap();
            let layout = arguments("Op", "urn:o", &parameters);
            let again = encode(form, &value, &mut Outgoing::inline(), &layout, &parameters);
            let told = String::from_utf8_lossy(&again).into_owned();
            assert!(!told.contains("type"), "{form:?}: {told}");
            let body = body_with(form, again, 0, BodyContext::default(), Budget::default());
            assert_eq!(
                body.read(|source| Value::decode(&parameters, source)).unwrap(),
                value,
                "{form:?}: {told}"
            );
        }
    }
}
