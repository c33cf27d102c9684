//! Headers of complex types: whatever a header's type has in it and whatever is left out of it, the message is a document,
//! and is read as it was written.

#![allow(clippy::unwrap_used)]

use crate::common::{binary, body_with, records};
use everywire_idl::wsdl::marks::Mark;
use everywire_model::value::TypedShape;
use everywire_model::{Budget, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::plan::Plan;
use everywire_wcf::values::{BodyContext, Form, Layout, write_body};

/// What a header may hold; `@` is a name of its own.
const ELEMENTS: [&str; 12] = [
    "<xs:element name='@' type='xs:int'/>",
    "<xs:element name='@' type='xs:string' minOccurs='0'/>",
    "<xs:element name='@' type='xs:int' minOccurs='0'/>",
    "<xs:element name='@' type='xs:string' minOccurs='0' maxOccurs='unbounded'/>",
    "<xs:element name='@' type='xs:int' nillable='true'/>",
    "<xs:element name='@' type='t:Inner'/>",
    "<xs:element name='@' type='t:Inner' minOccurs='0' maxOccurs='unbounded'/>",
    "<xs:element name='@' type='t:Lines' minOccurs='0'/>",
    "<xs:choice><xs:element name='@a' type='xs:int'/><xs:element name='@b' type='t:Inner'/></xs:choice>",
    "<xs:choice minOccurs='0' maxOccurs='unbounded'><xs:element name='@a' type='xs:int'/><xs:element name='@b' type='xs:string'/></xs:choice>",
    "<xs:element name='@'><xs:complexType><xs:sequence><xs:any namespace='##other' processContents='lax'/></xs:sequence></xs:complexType></xs:element>",
    "<xs:element name='@' type='xs:anyType' minOccurs='0'/>",
];

const ATTRIBUTES: [&str; 3] = [
    "",
    "<xs:attribute name='at' type='xs:int'/>",
    "<xs:attribute name='at' type='xs:string'/><xs:attribute name='words'><xs:simpleType><xs:list itemType='xs:int'/></xs:simpleType></xs:attribute>",
];

/// An operation whose request and answer have two headers of a type with this content, beside a parameter.
fn contract(content: &str) -> String {
    format!(
        "<definitions xmlns='http://schemas.xmlsoap.org/wsdl/' xmlns:t='urn:t' targetNamespace='urn:t' \
           xmlns:xs='http://www.w3.org/2001/XMLSchema' xmlns:soap='http://schemas.xmlsoap.org/wsdl/soap/'><types>\
         <xs:schema targetNamespace='urn:t' elementFormDefault='qualified'>\
           <xs:complexType name='Inner'><xs:sequence><xs:element name='o' type='xs:string' minOccurs='0'/>\
             <xs:element name='r' type='xs:int' minOccurs='0' maxOccurs='unbounded'/></xs:sequence>\
             <xs:attribute name='k' type='xs:int'/></xs:complexType>\
           <xs:complexType name='Lines'><xs:sequence><xs:element name='Line' type='t:Inner' nillable='true' \
             minOccurs='0' maxOccurs='unbounded'/></xs:sequence></xs:complexType>\
           <xs:complexType name='Held'>{content}</xs:complexType>\
           <xs:element name='H1' type='t:Held'/><xs:element name='H2' type='t:Held'/>\
           <xs:element name='Put'><xs:complexType><xs:sequence><xs:element name='p' type='xs:string' minOccurs='0'/>\
             </xs:sequence></xs:complexType></xs:element>\
           <xs:element name='PutResponse'><xs:complexType><xs:sequence><xs:element name='r' type='xs:string' minOccurs='0'/>\
             </xs:sequence></xs:complexType></xs:element>\
         </xs:schema></types>\
         <message name='I'><part name='parameters' element='t:Put'/><part name='H1' element='t:H1'/><part name='H2' element='t:H2'/></message>\
         <message name='O'><part name='parameters' element='t:PutResponse'/><part name='H1' element='t:H1'/><part name='H2' element='t:H2'/></message>\
         <portType name='P'><operation name='Put'><input message='t:I'/><output message='t:O'/></operation></portType>\
         <binding name='B' type='t:P'><soap:binding transport='http://schemas.xmlsoap.org/soap/http'/><operation name='Put'>\
           <soap:operation soapAction='urn:Put'/>\
           <input><soap:body use='literal' parts='parameters'/><soap:header message='t:I' part='H1' use='literal'/>\
             <soap:header message='t:I' part='H2' use='literal'/></input>\
           <output><soap:body use='literal' parts='parameters'/><soap:header message='t:O' part='H1' use='literal'/>\
             <soap:header message='t:O' part='H2' use='literal'/></output></operation></binding></definitions>"
    )
}

/// Makes values of shapes: what may be empty is, where the next bit is 0.
struct Maker(u32);

impl Maker {
    fn is_full(&mut self) -> bool {
        let bit = self.0 & 1 == 1;
        self.0 = self.0.rotate_right(1);
        bit
    }

    fn make(&mut self, shape: &Shape) -> Value {
        match shape.resolved() {
            Shape::Optional(held) => {
                if self.is_full() {
                    self.make(held)
                } else {
                    Value::Nothing
                }
            }
            Shape::Sequence(list) => {
                let count = if self.is_full() { 2 } else { 0 };
                Value::List((0..count).map(|_| self.make(&list.element)).collect())
            }
            Shape::Struct(record) => {
                let mut chosen = Vec::new();
                let fields = record.fields.iter().map(|field| {
                    let value = match Mark::of(&field.shape) {
                        // One alternative of a choice is given at most.
                        Some(Mark::Left(Some(choice), _)) if chosen.contains(&choice) => Value::Nothing,
                        Some(Mark::Left(Some(choice), _)) => {
                            let value = self.make(&field.shape);
                            if !matches!(value, Value::Nothing) {
                                chosen.push(choice);
                            }
                            value
                        }
                        _ => self.make(&field.shape),
                    };
                    (field.name.to_string(), value)
                });
                Value::Struct(fields.collect())
            }
            Shape::Union(union) => {
                let number = usize::from(self.is_full());
                let field = &union.arms[number].field;
                let held = (field.name.to_string(), self.make(&field.shape));
                Value::Union(number as i64, Some(Box::new(held)))
            }
            Shape::Variant => Value::Variant(Box::new((TypedShape(Shape::I32), Value::Integer(3)))),
            Shape::Text(_) if matches!(shape, Shape::Alias(alias) if alias.id.ends_with("anyXML")) => {
                Value::Text("<x xmlns=\"urn:x\">1</x>".into())
            }
            Shape::Text(_) => Value::Text(if self.is_full() { "x<" } else { "" }.into()),
            Shape::I32 => Value::Integer(7),
            other => panic!("{other:?}"),
        }
    }
}

/// Checks the values of one message in both forms; `patterns`: what is full of them.
fn check(name: &str, plan: &Layout, shape: &Shape, patterns: &[u32]) {
    for &bits in patterns {
        let value = Maker(bits).make(shape);
        for form in [Form::Text, Form::Binary] {
            let mut out = SendBuffer::new();
            let encode = |sink: &mut dyn Sink| value.encode(shape, sink);
            let headers = write_body(form, plan, &mut Outgoing::statics(), &encode, &mut out).unwrap();
            let (headers, body) = (headers.unwrap(), out.to_vec());
            let (start, between, end) = ("<Envelope><Header>", "</Header><Body>", "</Body></Envelope>");
            let (envelope, base) = match form {
                Form::Text => {
                    let start = [start.as_bytes(), &headers, between.as_bytes()].concat();
                    ([&start, &*body, end.as_bytes()].concat(), start.len())
                }
                Form::Binary => {
                    let outline = binary("<Envelope><Header></Header><Body></Body></Envelope>");
                    // An end is one octet; the body's start stands before two of them, behind that of the header's.
                    let (start, rest) = outline.split_at(2 + "Envelope".len() + 2 + "Header".len());
                    let (between, end) = rest.split_at(rest.len() - 2);
                    let start = [start, &headers, between].concat();
                    ([&start, &*body, end].concat(), start.len())
                }
            };
            let shown = match form {
                Form::Text => String::from_utf8_lossy(&envelope).into_owned(),
                Form::Binary => {
                    records(&envelope).unwrap();
                    to_xml(&envelope, static_word).unwrap()
                }
            };
            let told = || format!("{name} {form:?} {bits:x}: {shown}");
            assert_eq!(parsed(&shown), Ok(["H1", "H2"].map(String::from).to_vec()), "{}", told());
            let body = body_with(form, envelope.clone(), base, BodyContext::default(), Budget::default());
            let read = body.read(|source| Value::decode(shape, source));
            assert_eq!(read.map_err(|failure| failure.to_string()), Ok(value.clone()), "{}", told());
        }
    }
}

/// The local names of the headers of a document, as another parser finds them; or why it is none.
fn parsed(document: &str) -> Result<Vec<String>, String> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::NsReader::from_str(document);
    let (mut open, mut headers) = (Vec::<String>::new(), Vec::new());
    loop {
        let (namespace, event) = reader.read_resolved_event().map_err(|error| error.to_string())?;
        if let quick_xml::name::ResolveResult::Unknown(prefix) = namespace {
            return Err(format!("{prefix:?}"));
        }
        let is_empty = matches!(event, Event::Empty(_));
        match event {
            Event::Start(tag) | Event::Empty(tag) => {
                for attribute in tag.attributes() {
                    attribute.map_err(|error| error.to_string())?;
                }
                let name = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
                if open == ["Envelope", "Header"] {
                    headers.push(name.clone());
                }
                if !is_empty {
                    open.push(name);
                }
            }
            Event::End(_) => drop(open.pop()),
            Event::Text(text) if text.contains(&b'>') || open.is_empty() => return Err("text".into()),
            Event::Eof if open.is_empty() => return Ok(headers),
            Event::Eof => return Err(format!("open: {open:?}")),
            _ => {}
        }
    }
}

#[test]
fn a_header_of_any_type_is_a_whole_element() {
    let mut contents = vec![
        "<xs:simpleContent><xs:extension base='xs:string'><xs:attribute name='at' type='xs:int'/></xs:extension></xs:simpleContent>"
            .to_owned(),
    ];
    for (row, first) in ELEMENTS.iter().enumerate() {
        for (column, second) in ELEMENTS.iter().enumerate() {
            // Each with each other, and each with all attributes.
            let attributes = ATTRIBUTES[(row + column) % ATTRIBUTES.len()];
            let (first, second) = (first.replace('@', "m"), second.replace('@', "n"));
            contents.push(format!("<xs:sequence>{first}{second}</xs:sequence>{attributes}"));
        }
    }
    for content in contents {
        let contract = everywire_idl::wsdl::parse(&contract(&content), "t.wsdl").unwrap();
        let interface = contract.interfaces().next().unwrap();
        let operation = &interface.operations[0];
        let plan = Plan::of(Some(interface), operation);
        check(&content, &plan.arguments, &operation.arguments, &[0, u32::MAX, 0xaaaa_aaaa]);
        check(&content, &plan.results, &operation.results, &[0x1248_1248]);
    }
}
