//! Calls by IDispatch of objects elsewhere.
//!
//! An operation of an interface that is called by name only ([`everywire_model::InterfaceKind::Dispatch`]) is a call of
//! Invoke: [`Invocation`] is what it carries, [`results`] what its answer means.
//!
//! Invariants: the arguments of Invoke stand in reverse order, and those by reference stand in a second list,
//! with their places in the first; both are undone when the answer is read. An exception of the member comes
//! as DISP_E_EXCEPTION with EXCEPINFO, and is told by its own code. Which shape a result has is what the
//! contract says, whatever VARIANT came: it is converted.

use super::ExcepInfo;
use super::coerce::{empty, room, to_shape, to_variant};
use super::members::{Access, PROPERTY_PUT, members};
use crate::hresult::{self, DISP_E_EXCEPTION, E_FAIL};
use crate::standard::contracts::{DISPATCH, INVOKE};
use crate::standard::guid::Guid;
use crate::standard::values::{body_of, kept, value_of};
use crate::{IDISPATCH, iid_of};
use everywire_model::contract::{Interface, InterfaceKind, Operation};
use everywire_model::shape::{Pointer, PointerKind, Shape};
use everywire_model::value::Value;
use everywire_model::variant::Variant;
use everywire_model::{
    Body, Completed, Encode, Failure, Hold, Initiator, Kind, MarshalList, Method, Object, Outcome, Sink,
    Visit,
};
use uuid::Uuid;

/// English of the United States: what servers understand who know one language.
const LCID: u32 = 0x409;

/// A call of Invoke: writes its arguments.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// DISPID of the member.
    id: i32,
    /// How it is called: method, get, put or putref (`DISPATCH_METHOD` and so on, MS-OAUT 3.1.4.4).
    flags: u32,
    /// In reverse order; those by reference are empty here.
    values: Vec<Variant>,
    /// DISPIDs of named arguments: only DISPID_PROPERTYPUT, for the new value of a property.
    names: Vec<i32>,
    /// For each argument by reference, its number among `values`.
    indices: Vec<u32>,
    /// The arguments by reference.
    references: Vec<Variant>,
}

impl Encode for Invocation {
    fn encode(&self, sink: &mut dyn Sink) -> Visit<()> {
        let some = |len: usize| len > 0;
        let params = (
            some(self.values.len()).then_some(&self.values),
            some(self.names.len()).then_some(&self.names),
            self.values.len() as u32,
            self.names.len() as u32,
        );
        let guid = Guid(Uuid::nil());
        let count = self.indices.len() as u32;
        (self.id, guid, LCID, self.flags, params, count, &self.indices, &self.references)
            .marshal_list(&INVOKE.arguments, sink)
    }
}

impl Invocation {
    /// The call that an operation of an interface is.
    ///
    /// # Errors
    /// The arguments do not encode, or one has a type that no VARIANT holds.
    pub fn new(
        interface: &Interface,
        operation: &Operation,
        arguments: &dyn Encode,
    ) -> Result<Self, Failure> {
        let index = interface.operations.iter().position(|held| held.name == operation.name);
        let member =
            index.and_then(|index| members(interface).into_iter().find(|member| member.index == index));
        let member = member.ok_or_else(|| everywire_model::object::no_operation(interface))?;
        let Value::Struct(fields) = value_of(&kept(arguments)?, &operation.arguments)? else {
            return Err(Failure::new(Kind::BadArgument, Initiator::Here, "arguments are one struct"));
        };
        let mut given = fields.into_iter();
        let (mut values, mut references) = (Vec::new(), Vec::new());
        for parameter in operation.parameters.iter() {
            let held = match parameter.direction.goes_in().then(|| given.next()).flatten() {
                Some((name, value)) => {
                    let variant = to_variant(&parameter.field.shape, &value);
                    variant
                        .map_err(|code| hresult::failure(code, None).at(format_args!("parameter {name}")))?
                }
                None => empty(),
            };
            if parameter.direction.comes_out() {
                references.push((values.len(), by_reference(&parameter.field.shape, held)?));
                values.push(variant_of(empty()));
            } else {
                values.push(variant_of(held));
            }
        }
        let count = values.len();
        values.reverse();
        references.reverse();
        let indices = references.iter().map(|(place, _)| (count - 1 - place) as u32).collect();
        let puts = matches!(member.access, Access::Put | Access::PutRef);
        Ok(Self {
            id: member.id,
            // What is read may be a method or a property, as far as a caller can tell.
            flags: member.access as u32,
            values,
            names: if puts { vec![PROPERTY_PUT] } else { Vec::new() },
            indices,
            references: references.into_iter().map(|(_, variant)| variant).collect(),
        })
    }
}

/// A VARIANT by reference, of a type that has room for a value of this shape.
fn by_reference(shape: &Shape, held: Value) -> Result<Variant, Failure> {
    let Some(target) = room(shape) else {
        return Ok(Variant::new(Shape::Variant, held));
    };
    let value = to_shape(&held, &target).map_err(|code| hresult::failure(code, None))?;
    let pointer = Pointer { kind: PointerKind::Unique, target };
    Ok(Variant::new(Shape::Pointer(Hold::new(pointer)), value))
}

/// The VARIANT that a value is; an empty one if it is none.
pub(super) fn variant_of(value: Value) -> Variant {
    match value {
        Value::Variant(held) => Variant::new(held.0.0, held.1),
        _ => Variant::default(),
    }
}

/// What Invoke answers: result, exception, number of the wrong argument, arguments by reference, HRESULT.
type InvokeReply = (Variant, ExcepInfo, u32, Vec<Variant>, u32);

/// What the answer of Invoke means as the outcome of an operation; `body` holds the results of [`INVOKE`].
pub fn results(operation: &Operation, body: &Body) -> Outcome<Body> {
    let understood = |answered: InvokeReply| {
        // What tells of a failure was one.
        let status = answered.4.cast_signed();
        let value = understood(operation, answered)?;
        Ok(body_of(&value, &operation.results)?.with_status(status))
    };
    match body.decode::<InvokeReply>(&INVOKE.results).and_then(understood) {
        Ok(results) => Outcome::Done(results),
        Err(failure) => Outcome::Failed(failure),
    }
}

/// The results that an answer has, as one struct.
fn understood(operation: &Operation, answered: InvokeReply) -> Result<Value, Failure> {
    let (result, info, argument, references, code) = answered;
    check(info, argument, code)?;
    let wrong = |code: u32| hresult::failure(code, None).with_completed(Completed::Yes);
    let mut fields = Vec::new();
    let mut shapes = operation.results.fields().iter();
    if !matches!(operation.returns, Shape::Void)
        && let Some(field) = shapes.next()
    {
        let value = to_shape(&result.into(), &field.shape).map_err(wrong)?;
        fields.push((field.name.to_string(), value));
    }
    // They come in the reverse order, as they went.
    for (field, reference) in shapes.zip(references.into_iter().rev()) {
        let value = to_shape(&reference.into(), &field.shape).map_err(wrong)?;
        fields.push((field.name.to_string(), value));
    }
    if fields.len() != operation.results.fields().len() {
        return Err(Failure::malformed("Invoke answered with too few arguments by reference", 0));
    }
    Ok(Value::Struct(fields))
}

/// The failure that an answer of Invoke tells of, if it does.
fn check(info: ExcepInfo, argument: u32, code: u32) -> Result<(), Failure> {
    if !hresult::is_failure(code) {
        return Ok(());
    }
    if code != DISP_E_EXCEPTION {
        let failure = hresult::failure(code, None);
        return Err(if argument > 0 {
            failure.at(format_args!("argument {argument} from the last"))
        } else {
            failure
        });
    }
    let (word, _, source, description, help, context, _, _, scode) = info;
    let code = if scode != 0 { scode } else { E_FAIL };
    let told = crate::orpc::ErrorInfo {
        source,
        description: if description.is_empty() && word != 0 {
            format!("exception {word}")
        } else {
            description
        },
        help_file: help,
        help_context: context,
        iid: Uuid::nil(),
    };
    Err(hresult::failure(code, Some(&told)))
}

/// Whether the answer of Invoke tells of a failure; its results are of no interest.
fn heard(body: &Body) -> Result<(), Failure> {
    let (_, info, argument, _, code) = body.decode::<InvokeReply>(&INVOKE.results)?;
    check(info, argument, code)
}

/// IDispatch under the identity by which an interface is called by name: its own if it is a dispinterface.
pub fn dispatch_of(interface: &Interface) -> Interface {
    let iid = if interface.kind == InterfaceKind::Dispatch { iid_of(interface) } else { IDISPATCH };
    Interface { id: iid.to_string().into(), ..DISPATCH.clone() }
}

/// Calls an operation of an interface by name, with the arguments that a body holds.
pub(in super::super) fn notify(
    object: &Object,
    interface: &Interface,
    operation: &Operation,
    arguments: &Body,
    done: Box<dyn FnOnce(Result<(), Failure>) + Send>,
) {
    let arguments = |sink: &mut dyn Sink| arguments.pipe(&operation.arguments, sink);
    let invocation = match Invocation::new(interface, operation, &arguments) {
        Ok(invocation) => invocation,
        Err(failure) => return done(Err(failure)),
    };
    let dispatch = dispatch_of(interface);
    let method = Method::Typed { interface: Some(&dispatch), operation: INVOKE };
    let finish = move |outcome: Outcome<Body>| {
        done(match outcome {
            Outcome::Done(body) => heard(&body),
            Outcome::Failed(failure) => Err(failure),
            Outcome::Raised(_) | Outcome::Moved(_) => Ok(()),
        });
    };
    object.target().submit(method, &invocation, Box::new(finish));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a member, with an exception or without.
    fn answer(code: u32, scode: u32) -> Body {
        let info = (0_u16, 0_u16, "Boiler", "too hot", "", 0_u32, 0_u32, 0_u32, scode);
        let results = (Variant::default(), info, 0_u32, Vec::<Variant>::new(), code);
        kept(&|sink: &mut dyn Sink| results.marshal_list(&INVOKE.results, sink)).unwrap()
    }

    #[test]
    fn an_answer_to_an_event_is_success_or_the_exception_that_it_holds() {
        assert!(heard(&answer(hresult::S_OK, 0)).is_ok());
        let raised = heard(&answer(DISP_E_EXCEPTION, 0x8004_0201)).unwrap_err();
        assert_eq!(hresult::of(&raised), 0x8004_0201);
        assert_eq!((raised.message(), raised.completed()), ("too hot", Completed::Yes));
        let refused = heard(&answer(hresult::DISP_E_TYPEMISMATCH, 0)).unwrap_err();
        assert_eq!(hresult::of(&refused), hresult::DISP_E_TYPEMISMATCH);
    }
}
