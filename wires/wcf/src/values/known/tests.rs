//! Types by name, and values of them under the type of all types.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::dictionary::Outgoing;
use crate::values::{BINARY, BodyContext, Form, Layout, TEXT, XML, write_body};
use everywire_model::body::Attachments;
use everywire_model::shape::{Alias, Arm, Enum, Hold, Text, Union};
use everywire_model::value::TypedShape;
use everywire_model::{
    Body, Budget, Context, Contract, Definition, Direction, Parameter, SendBuffer, Sink, Value,
};

/// A value of any type may be of a type that no operation names, as those of CORBA's `any` often are.
#[test]
fn types_that_no_operation_names_are_known_from_the_contract() {
    let field = Field { name: "value".into(), shape: Shape::Variant };
    let operation = Operation::new("Put", vec![Parameter { direction: Direction::In, field }], Shape::Void);
    let interface = Interface { operations: vec![operation.clone()].into(), ..Interface::default() };
    let members = vec![("red".into(), 0)].into();
    let color = Enum {
        name: "paint::Color".into(),
        id: "IDL:paint/Color:1.0".into(),
        members,
        bits: 32,
        open: false,
    };
    let definitions =
        vec![Definition::Type(Shape::Enum(Hold::new(color))), Definition::Interface(Hold::new(interface))];
    let contract = Contract { definitions }.with_known_types();
    let types = Types::of(contract.interfaces().next().map(|held| &**held), &operation);
    let [(namespace, Shape::Enum(_))] =
        types.as_deref().map(|types| types.named("Color")).unwrap_or_default()
    else {
        panic!("{types:?}")
    };
    assert_eq!(&**namespace, "http://schemas.datacontract.org/2004/07/paint");
}

/// Flags are a text under a name, and a value of any type may be some of them.
#[test]
fn flags_are_known_by_their_name() {
    let alias = |id: &'static str| {
        let target = Shape::Text(Text::NARROW);
        Shape::Alias(Hold::new(Alias { name: "".into(), id: id.into(), target }))
    };
    let shapes = [
        Shape::Variant,
        alias("{urn:a}Kinds;list,One=1,Two=2"),
        alias("{http://www.w3.org/2001/XMLSchema}decimal"),
    ];
    let parameter = |shape| Parameter { direction: Direction::In, field: Field { name: "p".into(), shape } };
    let operation = Operation::new("Do", shapes.into_iter().map(parameter).collect(), Shape::Void);
    let types = Types::of(None, &operation);
    let types = types.as_deref();
    assert_eq!(types.map(|types| types.named("Kinds").len()), Some(1));
    assert_eq!(types.map(|types| types.named("decimal").len()), Some(0));
}

/// A union has a name as a struct has one, and a value of any type may tell it.
#[test]
fn a_value_of_any_type_may_be_a_union() {
    let field = |name: &'static str, shape| Field { name: name.into(), shape };
    let text = || Shape::Text(Text::NARROW);
    let arm = |label: i64, name, shape| Arm {
        labels: vec![label].into(),
        default: false,
        field: field(name, shape),
    };
    let arms = vec![arm(1, "number", Shape::I32), arm(2, "said", text())].into();
    let (name, id) = ("paint::Choice".into(), "IDL:paint/Choice:1.0".into());
    let union = Shape::Union(Hold::new(Union { name, id, discriminator: Shape::I32, arms }));
    let fields = [field("v", Shape::Variant), field("known", union.clone())];
    let parameter = |field: &Field| Parameter { direction: Direction::In, field: field.clone() };
    let operation = Operation::new("Op", fields.iter().map(parameter).collect(), Shape::Void);
    let parameters = &operation.arguments;
    let one = |label, arm: &str, value| Value::Union(label, Some(Box::new((arm.to_owned(), value))));
    let said = one(2, "said", Value::Text("x".into()));
    let value = Value::Struct(vec![
        ("v".into(), Value::Variant(Box::new((TypedShape(union), said)))),
        ("known".into(), one(1, "number", Value::Integer(5))),
    ]);
    for form in [Form::Text, Form::Binary] {
        let wrapper = QName::new("urn:o".to_owned(), "Op".to_owned());
        let layout = Layout::new(Some(wrapper), "urn:o", parameters, "", &[]);
        let mut out = SendBuffer::new();
        let put = |sink: &mut dyn Sink| value.encode(parameters, sink);
        write_body(form, &layout, &mut Outgoing::inline(), &put, &mut out).unwrap();
        let reading = BodyContext { types: Types::of(None, &operation), ..BodyContext::default() };
        let beside = Attachments { wire_state: Some(Arc::new(reading)), ..Attachments::default() };
        let body = Body {
            bytes: out.to_vec().into(),
            base: 0,
            little: true,
            dialect: if form == Form::Text { TEXT } else { BINARY },
            budget: Budget::default(),
            codec: &XML,
            context: Context::default(),
            beside: Some(Arc::new(beside)),
        };
        assert_eq!(body.read(|source| Value::decode(parameters, source)).unwrap(), value, "{form:?}");
    }
}
