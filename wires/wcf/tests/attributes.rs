//! Members as XmlSerializer has them: attributes, texts beside them, lists without an element around them, choices; in both forms.

#![allow(clippy::unwrap_used)]

use crate::common;
use crate::common::{arguments, body_in, decode, encode, unhex};
use everywire_model::shape::{Hold, Struct};
use everywire_model::{Body, Budget, Definition, Failure, Interface, SendBuffer, Shape, Sink, Value};
use everywire_wcf::dictionary::{Outgoing, StringTable, static_word};
use everywire_wcf::nbfx::xml::to_xml;
use everywire_wcf::values::{BodyContext, Form, ReaderQuotas, write_detail};

const ORDERS: &str = include_str!("contracts/orders.wsdl");

fn contract() -> everywire_model::Contract {
    everywire_idl::wsdl::parse(ORDERS, "orders.wsdl").unwrap()
}

fn interface() -> Hold<Interface> {
    contract().interfaces().next().unwrap().clone()
}

/// The parameters of `Send`: an order, and numbers.
fn parameters() -> Shape {
    interface().operations[0].arguments.clone()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn record(fields: &[(&str, Value)]) -> Value {
    Value::Struct(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
}

fn integers(list: &[i128]) -> Value {
    Value::List(list.iter().map(|value| Value::Integer(*value)).collect())
}

fn arm(number: i64, name: &str, value: Value) -> Value {
    Value::Union(number, Some(Box::new((name.to_owned(), value))))
}

fn firm() -> Value {
    let fields =
        [("Key", text("k\"")), ("Name", text("N")), ("Register", Value::Integer(-1)), ("Seat", text(""))];
    arm(1, "Firm", record(&fields))
}

fn order() -> Value {
    let line = record(&[("Count", Value::Integer(3)), ("What", text("a"))]);
    let price = record(&[("Currency", text("€")), ("Value", text("1.50"))]);
    record(&[
        ("Id", Value::Integer(-7)),
        ("Name", text("<a> & \"b\"\t")),
        ("Rank", Value::Integer(0)),
        ("Colour", Value::Member("Dark Blue".to_owned())),
        ("Version", text("1.0")),
        ("Sizes", integers(&[1, -2])),
        ("When", text("2020-01-02T03:04:05Z")),
        ("lang", text("de")),
        ("Octets", Value::Bytes(vec![0, 255].into())),
        ("Batch", text("x")),
        ("Rack", Value::Integer(9)),
        ("Note", text("note")),
        ("Count", Value::Nothing),
        ("Sum", text("0.5")),
        ("Line", Value::List(vec![line])),
        ("Number", integers(&[4, 5])),
        ("Weeks", Value::Integer(8)),
        ("Sender", firm()),
        ("Card", Value::Nothing),
        ("Cash", text("2.5")),
        (
            "Items",
            Value::List(vec![
                arm(0, "Text", text("t")),
                arm(2, "Whole", Value::Integer(6)),
                arm(1, "Price", price),
            ]),
        ),
    ])
}

/// What an order is of which nothing is said but what must be.
fn bare() -> Value {
    record(&[
        ("Id", Value::Integer(0)),
        ("Name", text("")),
        ("Rank", Value::Nothing),
        ("Colour", Value::Member("Green".to_owned())),
        ("Version", text("1.0")),
        ("Sizes", integers(&[])),
        ("When", Value::Nothing),
        ("lang", text("")),
        ("Octets", Value::Bytes(vec![].into())),
        ("Batch", text("")),
        ("Rack", Value::Nothing),
        ("Note", text("")),
        ("Count", Value::Nothing),
        ("Sum", text("0")),
        ("Line", Value::List(vec![])),
        ("Number", integers(&[])),
        ("Weeks", Value::Integer(7)),
        ("Sender", Value::Nothing),
        ("Card", Value::Nothing),
        ("Cash", Value::Nothing),
        ("Items", Value::List(vec![])),
    ])
}

fn sent(order: Value, more: Value) -> Value {
    record(&[("order", order), ("more", more)])
}

/// The value as a request, in a form.
fn written(form: Form, value: &Value) -> Vec<u8> {
    let fields = parameters();
    let layout = arguments("Send", "urn:shop", &fields);
    encode(form, value, &mut Outgoing::statics(), &layout, &fields)
}

fn read(form: Form, bytes: &[u8]) -> Value {
    decode(form, bytes, &StringTable::default(), &parameters())
}

fn refused(form: Form, bytes: &[u8]) -> Failure {
    refused_with(form, bytes, ReaderQuotas::default())
}

fn refused_with(form: Form, bytes: &[u8], quotas: ReaderQuotas) -> Failure {
    let reading = BodyContext { quotas, ..Default::default() };
    let body: Body = common::body_with(form, bytes.to_vec(), 0, reading, Budget::default());
    body.read(|source| Value::decode(&parameters(), source)).expect_err("it is wrong and was read")
}

/// An order with this start tag and this inside, in text.
fn spelled(attributes: &str, inside: &str) -> Vec<u8> {
    format!("<Send xmlns=\"urn:shop\"><order {attributes}>{inside}</order></Send>").into_bytes()
}

fn order_of(value: Value) -> Value {
    let Value::Struct(mut fields) = value else { panic!("{value:?}") };
    fields.remove(0).1
}

fn field(value: &Value, name: &str) -> Value {
    let Value::Struct(fields) = value else { panic!("{value:?}") };
    fields.iter().find(|(known, _)| known == name).unwrap().1.clone()
}

#[test]
fn attributes_stand_in_the_start_tag_and_lists_among_the_members() {
    let value = sent(order(), integers(&[10, 20]));
    let wanted = concat!(
        "<Send xmlns=\"urn:shop\"><order xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" ",
        "xmlns:b=\"urn:shop\" xmlns:c=\"urn:parts\" Id=\"-7\" Name=\"&lt;a> &amp; &quot;b&quot;&#x9;\" Rank=\"0\" ",
        "Colour=\"Dark Blue\" Version=\"1.0\" Sizes=\"1 -2\" b:When=\"2020-01-02T03:04:05Z\" xml:lang=\"de\" ",
        "Octets=\"AP8=\" Batch=\"x\" c:Rack=\"9\"><Note>note</Note><Sum>0.5</Sum>",
        "<Line Count=\"3\"><b:What>a</b:What></Line><Number>4</Number><Number>5</Number><Weeks>8</Weeks>",
        "<Sender i:type=\"b:Firm\" Register=\"-1\" Key=\"k&quot;\"><b:Name>N</b:Name><b:Seat/></Sender>",
        "<Cash>2.5</Cash><Text>t</Text><Whole>6</Whole><Price Currency=\"€\">1.50</Price></order>",
        "<more>10</more><more>20</more></Send>",
    );
    let got = String::from_utf8(written(Form::Text, &value)).unwrap();
    assert_eq!(got, wanted);
    assert_eq!(read(Form::Text, got.as_bytes()), value);
    let binary = written(Form::Binary, &value);
    // The listing of records spells the same characters in another way.
    let listed = wanted.replace("&lt;a>", "&lt;a&gt;").replace("&#x9;", "\t");
    assert_eq!(to_xml(&binary, static_word).unwrap(), listed);
    assert_eq!(read(Form::Binary, &binary), value);
}

#[test]
fn what_holds_nothing_is_left_out() {
    let value = sent(bare(), integers(&[]));
    let got = String::from_utf8(written(Form::Text, &value)).unwrap();
    let inside = got.split_once("urn:parts\" ").unwrap().1;
    assert_eq!(
        inside,
        "Id=\"0\" Colour=\"Green\" Version=\"1.0\"><Note/><Sum>0</Sum><Weeks>7</Weeks></order></Send>"
    );
    for form in [Form::Text, Form::Binary] {
        assert_eq!(read(form, &written(form, &value)), value);
        // No order at all is no element.
        let nothing = sent(Value::Nothing, integers(&[3]));
        let bytes = written(form, &nothing);
        assert_eq!(read(form, &bytes), nothing);
    }
    assert_eq!(
        written(Form::Text, &sent(Value::Nothing, integers(&[3]))),
        b"<Send xmlns=\"urn:shop\"><more>3</more></Send>"
    );
}

/// Attributes that nobody asked for are ignored, those that are missing have the contract's values, and members are taken in any
/// order, also those of lists between others.
#[test]
fn what_is_unknown_is_ignored_and_what_is_missing_has_its_default() {
    assert_eq!(order_of(read(Form::Text, &spelled("", ""))), bare());
    assert_eq!(order_of(read(Form::Text, b"<Send><order/></Send>")), bare());
    assert_eq!(order_of(read(Form::Text, b"<Send/>")), Value::Nothing);
    let odd = spelled(
        "Other='1' xmlns:z='urn:z' z:Id='5' z:Name='no' Id=' 12 ' xmlns:s='urn:shop' s:When='1999-12-31T00:00:00' When='no' Sizes=' 1\n2 '",
        "<Whole>1</Whole><Other Id='9'><Line/></Other><Number>1</Number><Line Count='1'/><Text>x</Text>\
         <Number>2</Number><!-- --><Note>n</Note><Line Count='2'/><Whole>3</Whole>",
    );
    let got = order_of(read(Form::Text, &odd));
    assert_eq!(field(&got, "Id"), Value::Integer(12));
    assert_eq!(field(&got, "Name"), text(""));
    assert_eq!(field(&got, "When"), text("1999-12-31T00:00:00"));
    assert_eq!(field(&got, "Sizes"), integers(&[1, 2]));
    assert_eq!(field(&got, "Number"), integers(&[1, 2]));
    assert_eq!(field(&got, "Note"), text("n"));
    let Value::List(lines) = field(&got, "Line") else { panic!() };
    let counts: Vec<Value> = lines.iter().map(|line| field(line, "Count")).collect();
    assert_eq!(counts, [Value::Integer(1), Value::Integer(2)]);
    let items =
        [arm(2, "Whole", Value::Integer(1)), arm(0, "Text", text("x")), arm(2, "Whole", Value::Integer(3))];
    assert_eq!(field(&got, "Items"), Value::List(items.to_vec()));
    // A base type beside one that extends it, and attributes that come late in the contract.
    let sender = spelled("", "<Sender Register='no number' Key='k'><Name>N</Name></Sender>");
    let party = arm(0, "Party", record(&[("Key", text("k")), ("Name", text("N"))]));
    assert_eq!(field(&order_of(read(Form::Text, &sender)), "Sender"), party);
}

#[test]
fn texts_beside_attributes_come_in_pieces() {
    let price = |inside: &str, attributes: &str| {
        let bytes = spelled("", &format!("<Price {attributes}>{inside}</Price>"));
        field(&order_of(read(Form::Text, &bytes)), "Items")
    };
    let wanted = |value: &str, currency: &str| {
        Value::List(vec![arm(1, "Price", record(&[("Currency", text(currency)), ("Value", text(value))]))])
    };
    assert_eq!(price("1<!-- -->.<![CDATA[5]]>", "Currency='E'"), wanted("1.5", "E"));
    assert_eq!(price("<!-- -->2", ""), wanted("2", ""));
    let failure = refused(Form::Text, &spelled("", "<Price/>"));
    assert_eq!(failure.code(), Some("nbfx BadValue"), "{failure}");
    let failure = refused(Form::Text, &spelled("", "<Price><b/></Price>"));
    assert_eq!(failure.code(), Some("nbfx UnexpectedElement"), "{failure}");
}

#[test]
fn attributes_that_are_wrong_are_refused() {
    for (attributes, wanted) in [
        ("Id='1' Id='2'", "Markup"),
        ("Id='x'", "BadValue"),
        ("Id='99999999999'", "BadValue"),
        ("Colour='Pink'", "UnknownEnumerant"),
        ("Sizes='1 x'", "BadValue"),
        ("Octets='*'", "BadValue"),
        ("xmlns:a='urn:shop' xmlns:b='urn:shop' a:When='1' b:When='2'", "DuplicateAttribute"),
        ("Id='&x;'", "Entity"),
    ] {
        let failure = refused(Form::Text, &spelled(attributes, ""));
        assert!(failure.code().is_some_and(|code| code.ends_with(wanted)), "{attributes}: {failure:?}");
    }
    // MC-NBFX: <order Id="1" Id="2">.
    let order = "40056f72646572";
    let (id, one, two) = ("04024964", "980131", "980132");
    let twice = unhex(&format!("400453656e64{order}{id}{one}{id}{two}0101"));
    assert_eq!(refused(Form::Binary, &twice).code(), Some("nbfx DuplicateAttribute"));
    // Numbers of a list count as those of any other.
    let quotas = ReaderQuotas { max_array_length: 100, ..ReaderQuotas::default() };
    let sizes = |count: usize| spelled(&format!("Sizes='{}'", "1 ".repeat(count)), "");
    let failure = refused_with(Form::Text, &sizes(101), quotas);
    assert_eq!(failure.code(), Some("wcf MaxArrayLength"));
    let numbers = spelled("", &"<Number>1</Number>".repeat(101));
    assert_eq!(refused_with(Form::Text, &numbers, quotas).code(), Some("wcf MaxArrayLength"));
    let quotas = ReaderQuotas { max_string_content_length: 100, ..ReaderQuotas::default() };
    let long = spelled(&format!("Name='{}'", "x".repeat(101)), "");
    assert_eq!(refused_with(Form::Text, &long, quotas).code(), Some("wcf MaxStringContentLength"));
}

/// What binary readers of .NET see in attributes may be records of values.
#[test]
fn attributes_of_binary_xml_may_be_typed() {
    let order = "40056f72646572";
    // Id: an 8-bit number; Name: true; Rank: a word of the static dictionary.
    let bytes = unhex(&format!("400453656e64{order}0402496488f9 04044e616d6586 0101").replace(' ', ""));
    let got = order_of(read(Form::Binary, &bytes));
    assert_eq!(field(&got, "Id"), Value::Integer(-7));
    assert_eq!(field(&got, "Name"), text("true"));
}

#[test]
fn every_cut_is_refused_or_read() {
    for form in [Form::Text, Form::Binary] {
        let whole = written(form, &sent(order(), integers(&[1])));
        for cut in (0..whole.len()).step_by(3) {
            let body = body_in(form, whole[..cut].to_vec(), &StringTable::default(), Budget::default());
            let _ = body.read(|source| Value::decode(&parameters(), source));
        }
        for at in (0..whole.len()).step_by(5) {
            let mut bent = whole.clone();
            bent[at] ^= 0x11;
            let body = body_in(form, bent, &StringTable::default(), Budget::default());
            let _ = body.read(|source| Value::decode(&parameters(), source));
        }
    }
}

/// A fault's detail is an element with attributes too.
#[test]
fn details_of_faults_have_attributes() {
    let contract = contract();
    let shape = |wanted: &str| {
        let types = contract.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Struct(shape)) if shape.name == wanted => Some(shape.clone()),
            _ => None,
        });
        types.unwrap()
    };
    let detail = |shape: &Hold<Struct>, value: &Value, form| {
        let mut out = SendBuffer::new();
        let fields = Shape::Struct(shape.clone());
        let encode = |sink: &mut dyn Sink| value.encode(&fields, sink);
        write_detail(form, shape, None, false, &mut Outgoing::statics(), &encode, &mut out).unwrap();
        out.to_vec()
    };
    let firm = record(&[
        ("Key", text("k")),
        ("Name", text("N")),
        ("Register", Value::Integer(5)),
        ("Seat", text("S")),
    ]);
    let written = detail(&shape("shop::Firm"), &firm, Form::Text);
    let wanted = "<Firm xmlns=\"urn:shop\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\" Register=\"5\" Key=\"k\">\
                  <Name>N</Name><Seat>S</Seat></Firm>";
    assert_eq!(String::from_utf8(written).unwrap(), wanted);
    for form in [Form::Text, Form::Binary] {
        let of = shape("shop::Firm");
        let bytes = detail(&of, &firm, form);
        assert_eq!(decode(form, &bytes, &StringTable::default(), &Shape::Struct(of)), firm);
    }
    let price = record(&[("Currency", text("E")), ("Value", text("1.5"))]);
    let written = detail(&shape("shop::Price"), &price, Form::Text);
    assert!(String::from_utf8(written).unwrap().ends_with("Currency=\"E\">1.5</Price>"));
}

/// An element has no two attributes of one name, by what their prefixes stand for (Namespaces in XML 1.0, 6.3).
#[test]
fn two_attributes_of_one_name_are_refused_in_text() {
    let read = |attributes: &str| {
        let xml = format!("<r xmlns:a='urn:a' xmlns:b='urn:a' xmlns:c='urn:c'><e {attributes}/></r>");
        let mut reader = everywire_wcf::text::Reader::new(xml.as_bytes(), &ReaderQuotas::default());
        loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(failure) => return Some(failure.code().unwrap().to_owned()),
            }
        }
    };
    let many = "a:p='' a:q='' a:r='' a:s='' a:t=''";
    for good in ["a:x='1' c:x='2' x='3'", "a:x='1' b:y='2'", "a:x='1' d:x='2' xmlns:d='urn:d'", many] {
        assert_eq!(read(good), None, "{good}");
    }
    let late = format!("{many} b:t=''");
    for wrong in ["a:x='1' b:x='2'", "c:x='' a:x='1' y='' b:x='2'", "a:x='1' d:x='2' xmlns:d='urn:a'", &late]
    {
        assert_eq!(read(wrong).as_deref(), Some("nbfx DuplicateAttribute"), "{wrong}");
    }
    assert_eq!(read("x='1' x='2'").as_deref(), Some("xml Markup"));
}
