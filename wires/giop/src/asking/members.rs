//! The operations and attributes of an interface, made out of what a repository tells of it.
//!
//! Input is the `FullInterfaceDescription` of the specification (CORBA 3.3 part 1, chapter 14) and, where the
//! repository has it, its extended form with the exceptions of attributes. Output is an `Interface` of the
//! model, numbered as a contract's reader numbers it: inherited operations first, in the order of the bases,
//! then its own operations, then the accessors of its own attributes.
//!
//! Repositories disagree on whether `operations` and `attributes` include inherited ones. So whatever has a
//! name that a base brought is passed over, which gives the same result for both. What this side cannot hold
//! is left out and noted (`LEFT_OUT`), so that `describe` can say what is missing.

use super::questions::Questions;
use super::types::Types;
use crate::contracts::corba::interface_attr_extension::ExtFullInterfaceDescription;
use crate::contracts::corba::interface_def::FullInterfaceDescription;
use crate::contracts::corba::{
    AttributeMode, ExceptionDescription, OperationDescription, OperationMode, ParameterMode,
};
use crate::requests::CONTEXT;
use everywire_model::contract::LEFT_OUT;
use everywire_model::describe::{
    Attribute, Direction, Field, Interface, Name, Notify, Operation, Parameter, Struct,
};
use everywire_model::{Failure, Hold, Initiator, Kind, Shape};
use std::borrow::Cow;
use std::collections::HashMap;

/// What a repository told of one interface, gathered by `Asking::interface`.
pub(super) struct InterfaceAnswer<'a> {
    /// The plain description.
    pub(super) told: &'a FullInterfaceDescription,
    /// The description with the exceptions of attributes; nothing where the repository does not have it.
    pub(super) extended: Option<&'a ExtFullInterfaceDescription>,
    /// Its scoped name.
    pub(super) name: String,
    /// Its direct bases, which are complete already.
    pub(super) bases: Vec<Hold<Interface>>,
}

/// An interface that is being made. Operations are only ever added, so their numbers stay valid.
#[derive(Default)]
struct Draft {
    /// All operations, inherited ones first.
    operations: Vec<Operation>,
    /// The number of each operation by its name.
    numbers: HashMap<Name, usize>,
    /// All attributes; their getters and setters are numbers in `operations`.
    attributes: Vec<Attribute>,
    /// Notes on what could not be held: `LEFT_OUT`, and a sentence with the name and the reason.
    left_out: Vec<(Name, Name)>,
}

impl Draft {
    /// Adds what a base has. An operation that another base brought before keeps its number, and so an
    /// attribute whose getter was there before is not added a second time.
    ///
    /// # Errors
    /// The interfaces of the contract inherit too much.
    fn inherit(&mut self, base: &Interface, types: &mut Types) -> Result<(), Failure> {
        let known = self.operations.len();
        let mut places = Vec::with_capacity(base.operations.len());
        for operation in base.operations.iter() {
            types.inherits(operation)?;
            places.push(self.push(operation.clone()));
        }
        for attribute in base.attributes.iter() {
            // `known` is the number of operations before this base: a getter below it came with another base.
            let Some(getter) = places.get(attribute.getter).copied().filter(|place| *place >= known) else {
                continue;
            };
            let setter = attribute.setter.and_then(|setter| places.get(setter).copied());
            self.attributes.push(Attribute { getter, setter, ..attribute.clone() });
        }
        Ok(())
    }

    /// The number of an operation, which is added unless one of that name is there.
    fn push(&mut self, operation: Operation) -> usize {
        if let Some(number) = self.numbers.get(&operation.name) {
            return *number;
        }
        let number = self.operations.len();
        self.numbers.insert(operation.name.clone(), number);
        self.operations.push(operation);
        number
    }

    /// Notes that a member was left out, and why.
    fn leave_out(&mut self, name: &str, why: &Failure) {
        let what = format!("`{name}`: {}", why.message());
        self.left_out.push((Name::Borrowed(LEFT_OUT), Name::from(what)));
    }
}

impl InterfaceAnswer<'_> {
    /// Makes the interface. Consumes what was told. The accessors of an attribute `x` are the operations
    /// `_get_x` and `_set_x`, as they travel (CORBA 3.3 part 2, section 9.4.2.1); their labels are the names
    /// that users see.
    ///
    /// # Errors
    /// The interfaces of the contract inherit too much.
    pub(super) fn interface(
        self,
        types: &mut Types,
        questions: &mut Questions,
    ) -> Result<Interface, Failure> {
        let mut draft = Draft::default();
        for base in &self.bases {
            draft.inherit(base, types)?;
        }
        let inherited = draft.operations.len();
        for told in &self.told.operations {
            if draft.numbers.contains_key(told.name.as_str()) {
                continue;
            }
            match operation(told, types, questions) {
                Ok(operation) => {
                    draft.push(operation);
                }
                Err(failure) => draft.leave_out(&told.name, &failure),
            }
        }
        for told in &self.told.attributes {
            let getter = format!("_get_{}", told.name);
            if draft.numbers.contains_key(getter.as_str()) {
                continue;
            }
            let shape = match types.of(&told.r#type, questions).and_then(typed) {
                Ok(shape) => shape,
                Err(failure) => {
                    draft.leave_out(&told.name, &failure);
                    continue;
                }
            };
            let more = self.extended.and_then(|all| all.attributes.iter().find(|more| more.id == told.id));
            let mut raised = |all: Option<&Vec<ExceptionDescription>>| {
                raises(all.map_or(&[], Vec::as_slice), types, questions)
            };
            let mut get = Operation::new(getter, Vec::new(), shape.clone());
            get.label = Name::from(told.name.clone());
            get.raises = Cow::Owned(raised(more.map(|more| &more.get_exceptions)));
            let getter = draft.push(get);
            let setter = (told.mode == AttributeMode::AttrNormal).then(|| {
                let field = Field { name: Cow::Borrowed("value"), shape: shape.clone() };
                let value = Parameter { direction: Direction::In, field };
                let mut set = Operation::new(format!("_set_{}", told.name), vec![value], Shape::Void);
                set.raises = Cow::Owned(raised(more.map(|more| &more.put_exceptions)));
                // The label is left to an operation of the contract that is really called so.
                let label = format!("set_{}", told.name);
                if !draft.numbers.contains_key(label.as_str()) {
                    set.label = label.into();
                }
                draft.push(set)
            });
            let name = Name::from(told.name.clone());
            draft.attributes.push(Attribute { name, shape, getter, setter, notify: Notify::Value });
        }
        Ok(Interface {
            name: self.name.into(),
            id: self.told.id.clone().into(),
            bases: self.bases.into(),
            operations: draft.operations.into(),
            inherited,
            attributes: draft.attributes.into(),
            notes: Cow::Owned(draft.left_out),
            ..Interface::default()
        })
    }
}

/// An operation out of its description.
///
/// # Errors
/// The type of its result or of a parameter cannot be held here: then nobody could call it.
fn operation(
    told: &OperationDescription,
    types: &mut Types,
    questions: &mut Questions,
) -> Result<Operation, Failure> {
    let returns = types.of(&told.result, questions)?;
    let mut parameters = Vec::with_capacity(told.parameters.len());
    for parameter in &told.parameters {
        let direction = match parameter.mode {
            ParameterMode::ParamIn => Direction::In,
            ParameterMode::ParamOut => Direction::Out,
            ParameterMode::ParamInout => Direction::InOut,
        };
        let shape = types.of(&parameter.r#type, questions)?;
        let field = Field { name: parameter.name.clone().into(), shape };
        parameters.push(Parameter { direction, field });
    }
    let mut made = Operation::new(told.name.clone(), parameters, returns);
    made.oneway = told.mode == OperationMode::OpOneway;
    made.raises = Cow::Owned(raises(&told.exceptions, types, questions));
    if !told.contexts.is_empty() {
        made.notes = Cow::Owned(vec![(Name::Borrowed(CONTEXT), told.contexts.join(",").into())]);
    }
    Ok(made)
}

/// The exceptions of an operation that this side can hold. One that it cannot hold is left out: when it is
/// raised, it is told by its repository id alone.
fn raises(told: &[ExceptionDescription], types: &mut Types, questions: &mut Questions) -> Vec<Hold<Struct>> {
    told.iter().filter_map(|told| types.exception(&told.r#type, questions).ok()).collect()
}

/// The type of an attribute. JacORB's repository finds no type of attributes that can be written.
fn typed(shape: Shape) -> Result<Shape, Failure> {
    match shape {
        Shape::Void => {
            Err(Failure::new(Kind::Unsupported, Initiator::Peer, "the repository tells no type of it"))
        }
        shape => Ok(shape),
    }
}
