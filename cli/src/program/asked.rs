//! The interface that a caller asked for, of a reference among the results (`iid_is` in MIDL).
//!
//! A program names an object and not an interface of it. So a reference that it gives back is of the interface that the argument
//! names: the wire refuses one that the object does not offer (E_NOINTERFACE), since the caller would call another.

use super::pending::Pending;
use everywire::Value;
use everywire::model::Operation;
use everywire_dynamic::json::{self, NodeNotation};

/// Gives each reference among the results the type that the caller asked for.
pub(super) fn name(call: &Pending, operation: &Operation, results: &mut Value, words: &NodeNotation) {
    let fields = operation.results.fields();
    if !fields.iter().any(|field| field.shape.interface_argument().is_some()) {
        return;
    }
    let decode = |source: &mut dyn everywire::model::Source<'_>| Value::decode(&operation.arguments, source);
    // What was asked was read before, when it was handed to the program.
    let Ok(asked) = call.request.body().read(decode) else { return };
    let asked = json::write(&operation.arguments, &asked, words);
    let Value::Struct(results) = results else { return };
    for (field, (_, value)) in fields.iter().zip(results) {
        let iid = field.shape.interface_argument().and_then(|argument| asked.get(argument)?.as_str());
        if let (Some(iid), Value::Reference(Some(reference))) = (iid, value) {
            iid.clone_into(&mut reference.type_id);
        }
    }
}
