//! The types that a contract names: what a value of any type may say that it is.
//!
//! A value of any type (`object`, `anyType`) tells its type by `i:type`, and the reader must find the shape
//! behind that name. WCF asks for KnownType attributes; here every type is known that an
//! operation of the interface names, or that the contract defines (`Interface::types`). The table is made
//! for operations that have such values, and for nobody else.

use super::names::is_derived;
use everywire_idl::wsdl::names::{self, QName, SCHEMA, SERIALIZATION};
use everywire_model::shape::{Field, Shape};
use everywire_model::{Interface, Operation};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Named types and collections of them, by the local part of their names.
#[derive(Debug, Default)]
pub struct Types(HashMap<Box<str>, Vec<(Box<str>, Shape)>>);

impl Types {
    /// Those of an interface, if the operation has values of any type.
    pub(crate) fn of(interface: Option<&Interface>, operation: &Operation) -> Option<Arc<Self>> {
        let mut walk = Walk::default();
        walk.operation(operation);
        if !walk.any {
            return None;
        }
        for other in interface.iter().flat_map(|interface| interface.operations.iter()) {
            walk.operation(other);
        }
        let types = interface.and_then(|interface| interface.types.as_ref());
        types.iter().flat_map(|types| types.iter()).for_each(|shape| walk.shape(shape));
        Some(Arc::new(walk.found))
    }

    /// All of both.
    /// For bodies of several operations on one channel: the table goes beside all of them.
    pub(crate) fn with(&self, other: &Self) -> Self {
        let mut all = Self(self.0.clone());
        for (local, types) in &other.0 {
            types.iter().for_each(|(namespace, shape)| all.add(local, namespace, shape));
        }
        all
    }

    /// Whether it has all of the other's.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|(local, types)| {
            let known = self.named(local);
            types.iter().all(|(namespace, _)| known.iter().any(|(known, _)| known == namespace))
        })
    }

    /// The types of this name, in whatever namespace.
    /// More than one only where two namespaces have a type of that name.
    pub(super) fn named(&self, local: &str) -> &[(Box<str>, Shape)] {
        self.0.get(local).map(Vec::as_slice).unwrap_or_default()
    }

    fn add(&mut self, local: &str, namespace: &str, shape: &Shape) {
        let types = self.0.entry(local.into()).or_default();
        if !types.iter().any(|(known, _)| **known == *namespace) {
            types.push((namespace.into(), shape.clone()));
        }
    }
}

#[derive(Default)]
struct Walk {
    found: Types,
    /// Where the definitions are that were walked through.
    /// A type that contains itself would be walked for ever.
    seen: HashSet<usize>,
    /// Whether a value of any type was met.
    any: bool,
}

impl Walk {
    fn operation(&mut self, operation: &Operation) {
        self.fields(operation.arguments.fields());
        self.fields(operation.results.fields());
        operation.raises.iter().for_each(|detail| self.fields(&detail.fields));
    }

    fn fields(&mut self, fields: &[Field]) {
        fields.iter().for_each(|field| self.shape(&field.shape));
    }

    fn found(&mut self, shape: &Shape) {
        let name = names::of_shape(shape);
        self.found.add(&name.local, &name.namespace, shape);
    }

    fn shape(&mut self, shape: &Shape) {
        let mut is_new = |at: usize| self.seen.insert(at);
        match shape {
            Shape::Variant => self.any = true,
            Shape::Struct(held) if is_new(held.identity()) => {
                self.found(shape);
                self.fields(&held.fields);
            }
            Shape::Enum(_) => self.found(shape),
            Shape::Union(held) if is_new(held.identity()) => {
                // Of a type that others extend the union has the name, too; a value that tells this name is of the type itself.
                if !is_derived(held) {
                    self.found(shape);
                }
                held.arms.iter().for_each(|arm| self.shape(&arm.field.shape));
            }
            Shape::Alias(held) if is_new(held.identity()) => {
                // Flags are text under a name of their own, and so are restrictions of text; types of XML Schema need no contract.
                let is_named = || {
                    let name = QName::parse(&held.id);
                    name.is_some_and(|name| ![SCHEMA, SERIALIZATION].contains(&&*name.namespace))
                };
                if matches!(shape.resolved(), Shape::Sequence(_) | Shape::Map(_)) || is_named() {
                    self.found(shape);
                }
                self.shape(&held.target);
            }
            Shape::Sequence(_) | Shape::Array(_) => {
                self.found(shape);
                shape.element().into_iter().for_each(|element| self.shape(element));
            }
            Shape::Map(held) => {
                self.found(shape);
                self.shape(&held.key);
                self.shape(&held.value);
            }
            Shape::Optional(target) => self.shape(target),
            Shape::Pointer(pointer) => self.shape(&pointer.target),
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
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
        let operation =
            Operation::new("Put", vec![Parameter { direction: Direction::In, field }], Shape::Void);
        let interface = Interface { operations: vec![operation.clone()].into(), ..Interface::default() };
        let members = vec![("red".into(), 0)].into();
        let color = Enum {
            name: "paint::Color".into(),
            id: "IDL:paint/Color:1.0".into(),
            members,
            bits: 32,
            open: false,
        };
        let definitions = vec![
            Definition::Type(Shape::Enum(Hold::new(color))),
            Definition::Interface(Hold::new(interface)),
        ];
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
        let parameter =
            |shape| Parameter { direction: Direction::In, field: Field { name: "p".into(), shape } };
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
}
