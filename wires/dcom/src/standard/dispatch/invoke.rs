//! Invoke, of the objects served here (MS-OAUT 3.1.4.4).
//!
//! A call is arranged (`arrange`: the member by its DISPID and flags, each argument to the parameter that it
//! is for, converted to its shape), then the servant is asked like any other caller would (`asking`), then
//! what it says is put back into VARIANTs (`conclude`).
//!
//! States: none; everything of one call is in `Call`, and later in the closure that waits for the servant.
//!
//! Invariants: counts that a caller says twice must agree, or the call is E_INVALIDARG. Each parameter gets
//! one argument at the most. An argument that is missing is allowed where the parameter can be empty.
//! Arguments by reference go back to the caller, with new values or as they came, whatever the outcome. The
//! servant's failure is an exception of the member; only what is wrong with the call itself is another
//! HRESULT.

use super::call::variant_of;
use super::coerce::{content, empty, is_missing, room, to_shape, to_variant};
use super::members::{Access, PROPERTY_PUT, members};
use super::omitted;
use super::{ExcepInfo, ZERO_ARGERR, ZERO_EXCEPINFO, ZERO_RESULT};
use crate::IDISPATCH;
use crate::exporter::Exporter;
use crate::hresult::{
    self, DISP_E_BADPARAMCOUNT, DISP_E_EXCEPTION, DISP_E_MEMBERNOTFOUND, DISP_E_OVERFLOW,
    DISP_E_PARAMNOTFOUND, DISP_E_PARAMNOTOPTIONAL, DISP_E_TYPEMISMATCH, DISP_E_UNKNOWNINTERFACE, E_FAIL,
    E_INVALIDARG,
};
use crate::standard::asking::{ServantReply, ask};
use crate::standard::guid::Guid;
use crate::standard::serving::own_servants;
use crate::standard::values::body_of;
use everywire_idl::midl::default_of;
use everywire_model::contract::{Direction, Interface};
use everywire_model::shape::{Hold, Pointer, PointerKind, Shape};
use everywire_model::value::Value;
use everywire_model::variant::Variant;
use everywire_model::{Body, Failure, Request, Servant};
use std::sync::Arc;

/// DISPPARAMS: arguments in reverse order, the DISPIDs of those that are named, and how many there are of both.
type DispParams = (Option<Vec<Variant>>, Option<Vec<i32>>, u32, u32);
/// What Invoke is given.
type InvokeArguments = (i32, Guid, u32, u32, DispParams, u32, Vec<u32>, Vec<Variant>);

/// Why a call cannot be made: an HRESULT, and the number of the argument that is wrong.
type BadArgument = (u32, u32);

/// What is to be asked of whom, and what is to be done with what it says.
struct Call {
    /// Whose member it is.
    servant: Arc<dyn Servant>,
    /// The operation.
    index: usize,
    /// The `in` parameters as one struct.
    arguments: Body,
    /// For each parameter that comes out, the number of the argument by reference that gets it.
    out: Vec<Option<usize>>,
}

/// Serves one call.
pub(super) fn invoke(exporter: &Arc<Exporter>, request: Request) {
    let given = match request.arguments::<InvokeArguments>() {
        Ok(given) => given,
        Err(failure) => return request.finish(Err(failure)),
    };
    let arranged = arrange(exporter, request.key(), &given);
    let (_, _, _, flags, params, _, _, mut references) = given;
    // What was given is in `arranged` now, and may be large.
    drop(params);
    let Call { servant, index, arguments, out } = match arranged {
        Ok(call) => call,
        Err(wrong) => return answer(request, flags, Err(InvokeError::Wrong(wrong)), references),
    };
    let (key, held, asked) = (request.key().to_vec(), Arc::clone(exporter), Arc::clone(&servant));
    ask(exporter, &key, servant, index, arguments, move |told| {
        let result = conclude(&held, asked.interface(), index, told, &out, &mut references);
        answer(request, flags, result, references);
    });
}

/// Finds the servant and its operation, and gives each parameter its value: named arguments by their number,
/// the others from the last to the first, as DISPPARAMS has them reversed.
fn arrange(exporter: &Exporter, key: &[u8], given: &InvokeArguments) -> Result<Call, BadArgument> {
    let (id, riid, _, flags, (values, names, arguments, named), count, indices, references) = given;
    let (values, names) = (values.as_deref().unwrap_or_default(), names.as_deref().unwrap_or_default());
    if !riid.0.is_nil() {
        return Err((DISP_E_UNKNOWNINTERFACE, 0));
    }
    // DISPPARAMS says each count twice: once as a number, once by its array.
    let counts = values.len() == *arguments as usize
        && names.len() == *named as usize
        && names.len() <= values.len()
        && indices.len() == *count as usize
        && references.len() == indices.len();
    if !counts {
        return Err((E_INVALIDARG, 0));
    }
    let (servant, index) = find(exporter, key, *id, *flags).ok_or((DISP_E_MEMBERNOTFOUND, 0))?;
    let interface = servant.interface();
    let operation = interface.operations.get(index).ok_or((DISP_E_MEMBERNOTFOUND, 0))?;
    // For each parameter the number of its argument.
    let parameters = operation.parameters.len();
    let mut places: Vec<Option<usize>> = vec![None; parameters];
    for (argument, name) in names.iter().enumerate() {
        let place = match *name {
            PROPERTY_PUT => parameters.checked_sub(1),
            name => usize::try_from(name).ok(),
        };
        match place.and_then(|place| places.get_mut(place)) {
            Some(place @ None) => *place = Some(argument),
            _ => return Err((DISP_E_PARAMNOTFOUND, number(argument))),
        }
    }
    if values.len() > parameters {
        return Err((DISP_E_BADPARAMCOUNT, 0));
    }
    for (place, argument) in (names.len()..values.len()).rev().enumerate() {
        match places.get_mut(place) {
            Some(place @ None) => *place = Some(argument),
            _ => return Err((DISP_E_BADPARAMCOUNT, 0)),
        }
    }
    // Arguments by reference are empty among the others; `indices` says which they are.
    let by_reference = |argument: usize| indices.iter().position(|index| *index as usize == argument);
    let (mut fields, mut out) = (Vec::new(), Vec::new());
    for (parameter, argument) in operation.parameters.iter().zip(&places) {
        let reference = argument.and_then(by_reference);
        if parameter.direction.comes_out() {
            out.push(reference);
        }
        if !parameter.direction.goes_in() {
            continue;
        }
        let given = match (reference, argument) {
            (Some(reference), _) => references.get(reference),
            (None, Some(argument)) => values.get(*argument),
            (None, None) => None,
        };
        let given = given.cloned().map(Value::from).filter(|given| !is_missing(given));
        let shape = &parameter.field.shape;
        let value = match (&given, shape.resolved()) {
            // An alias tells money and dates from numbers.
            (Some(given), _) => {
                to_shape(given, shape).map_err(|code| (code, number(argument.unwrap_or_default())))?
            }
            (None, _) if let Some(default) = default_of(operation, &parameter.field.name) => {
                let said = omitted::value(default, shape).ok_or((DISP_E_PARAMNOTOPTIONAL, 0))?;
                to_shape(&said, shape).map_err(|_| (DISP_E_PARAMNOTOPTIONAL, 0))?
            }
            (None, Shape::Optional(_)) => Value::Nothing,
            (None, Shape::Pointer(pointer)) if pointer.kind != PointerKind::Ref => Value::Nothing,
            (None, Shape::Variant) => empty(),
            (None, _) if parameter.direction == Direction::InOut => {
                to_shape(&empty(), shape).map_err(|_| (DISP_E_PARAMNOTOPTIONAL, 0))?
            }
            (None, _) => return Err((DISP_E_PARAMNOTOPTIONAL, number(argument.unwrap_or_default()))),
        };
        fields.push((parameter.field.name.to_string(), value));
    }
    let arguments = body_of(&Value::Struct(fields), &operation.arguments);
    let arguments = arguments.map_err(|_| (DISP_E_TYPEMISMATCH, 0))?;
    Ok(Call { servant: Arc::clone(&servant), index, arguments, out })
}

/// The first servant of the object that has a member with this DISPID, called in this way.
fn find(exporter: &Exporter, key: &[u8], id: i32, flags: u32) -> Option<(Arc<dyn Servant>, usize)> {
    let wanted = |access: Access| flags & access as u32 != 0;
    own_servants(exporter, key).into_iter().find_map(|servant| {
        let members = members(servant.interface());
        let fits = members.iter().find(|member| member.id == id && wanted(member.access));
        // A property that is set by value is also what setting it by reference means, where there is no other way.
        let put = || {
            let sets = wanted(Access::PutRef) || wanted(Access::Put);
            members.iter().find(|member| {
                member.id == id && sets && matches!(member.access, Access::Put | Access::PutRef)
            })
        };
        let index = fits.or_else(put)?.index;
        Some((servant, index))
    })
}

/// The number of an argument as `puArgErr` has it.
fn number(argument: usize) -> u32 {
    u32::try_from(argument).unwrap_or_default()
}

/// Why Invoke has no result.
enum InvokeError {
    /// Something is wrong with the call.
    Wrong(BadArgument),
    /// The member failed.
    Exception(ExcepInfo),
}

/// What the servant said as what the caller gets: the result and how the member succeeded, and the arguments by reference with new
/// values. What Invoke returns is what the member does (MS-OAUT 3.1.4.4), so that its caller sees how it succeeded.
fn conclude(
    exporter: &Exporter,
    interface: &Interface,
    index: usize,
    told: ServantReply,
    out: &[Option<usize>],
    references: &mut [Variant],
) -> Result<(Value, u32), InvokeError> {
    let exception = |description: &str, code: u32| {
        let (source, description) = (interface.name.to_string(), description.to_owned());
        Err(InvokeError::Exception((0, 0, source, description, String::new(), 0, 0, 0, code)))
    };
    let (fields, status) = match told {
        ServantReply::Done(Value::Struct(fields), status) => (fields, status.cast_unsigned()),
        ServantReply::Failed(failure) => return exception(failure.message(), hresult::of(&failure)),
        ServantReply::Raised(id) => return exception(&id, E_FAIL),
        ServantReply::Done(..) | ServantReply::Moved => return exception("the object is elsewhere", E_FAIL),
    };
    let wrong = |code: u32| InvokeError::Wrong((code, 0));
    let operation = interface.operations.get(index).ok_or_else(|| wrong(DISP_E_MEMBERNOTFOUND))?;
    let mut values = operation.results.fields().iter().zip(fields);
    let mut result = empty();
    if !matches!(operation.returns, Shape::Void)
        && let Some((field, (_, value))) = values.next()
    {
        result = automatic(exporter, to_variant(&field.shape, &value).map_err(wrong)?);
    }
    for ((field, (_, value)), place) in values.zip(out) {
        let Some(reference) = place.and_then(|place| references.get_mut(place)) else { continue };
        let variant = to_variant(&field.shape, &value).map_err(wrong)?;
        *reference = refer(reference, automatic(exporter, variant)).map_err(wrong)?;
    }
    Ok((result, status))
}

/// A new value for an argument by reference, of the type that the caller has room for.
fn refer(before: &Variant, value: Value) -> Result<Variant, u32> {
    match before.shape().resolved() {
        Shape::Variant => Ok(Variant::new(Shape::Variant, value)),
        Shape::Pointer(pointer) => {
            let value = to_shape(&value, &pointer.target)?;
            Ok(Variant::new(before.shape().clone(), value))
        }
        Shape::Void => {
            // Nobody said which type: that of the value.
            let (shape, value) = content(&value);
            let (kind, target) = (PointerKind::Unique, room(shape).ok_or(DISP_E_TYPEMISMATCH)?);
            Ok(Variant::new(Shape::Pointer(Hold::new(Pointer { kind, target })), value.clone()))
        }
        _ => Err(DISP_E_TYPEMISMATCH),
    }
}

/// References to objects of this node leave as IDispatch pointers.
fn automatic(exporter: &Exporter, variant: Value) -> Value {
    let Value::Variant(mut held) = variant else { return variant };
    if let Value::Reference(Some(reference)) = &mut held.1 {
        let here =
            reference.profiles.first().is_some_and(|way| !exporter.objects().servants(&way.key).is_empty());
        if here {
            reference.type_id = IDISPATCH.to_string();
        }
    }
    Value::Variant(held)
}

/// Answers with what came of the call, but for what the caller does not look at.
fn answer(
    mut request: Request,
    flags: u32,
    told: Result<(Value, u32), InvokeError>,
    references: Vec<Variant>,
) {
    let (mut result, mut info, mut argument) = (empty(), ExcepInfo::default(), 0);
    let code = match told {
        Ok((value, status)) => {
            result = value;
            status
        }
        Err(InvokeError::Exception(told)) => {
            info = told;
            DISP_E_EXCEPTION
        }
        Err(InvokeError::Wrong((code, number))) => {
            if matches!(code, DISP_E_TYPEMISMATCH | DISP_E_PARAMNOTFOUND | DISP_E_OVERFLOW) {
                argument = number;
            }
            code
        }
    };
    if flags & ZERO_RESULT != 0 {
        result = empty();
    }
    if flags & ZERO_EXCEPINFO != 0 {
        info = ExcepInfo::default();
    }
    if flags & ZERO_ARGERR != 0 {
        argument = 0;
    }
    let _ = request.reply::<_, Failure>(Ok((variant_of(result), info, argument, references, code)));
}
