//! Answers: what the program says about a call, and what is said for it if it says nothing.
//!
//! A line with an `id` answers the call of that number: `fail` with a failure, `raise` with an
//! exception of the contract, anything else with results, which may be missing where there are none. A line with nothing but members that
//! mean nothing here is a mistake: a misspelled `raise` would be a success.
//!
//! Invariants: a call that is taken out of the list of pending ones is answered exactly once here. An
//! answer that does not fit the contract is told to the caller as a failure of the server, and to
//! whoever runs the server as a note.

use super::pending::Pending;
use super::{asked, lines};
use everywire::model::failure::Completed;
use everywire::model::visit::WithHeaders;
use everywire::model::{Answer, Hold, Operation, Shape, Sink};
use everywire::{Failure, Initiator, Interface, Kind, Value};
use everywire_dynamic::json::{self, JsonMismatch, NodeNotation};
use everywire_dynamic::{headers, wording::last_part};
use serde_json::{Map, Value as Json};
use std::io;

/// The call that it answers; `None` if the line is about something else. Calls are numbered from 1.
pub(super) fn number(said: &Map<String, Json>) -> Option<u64> {
    said.get("id").and_then(lines::id)
}

/// Answers a call as the program says.
///
/// # Errors
/// The program's answer does not fit the contract; the caller was told.
pub(super) fn give(
    mut call: Pending,
    said: &Map<String, Json>,
    interface: &Hold<Interface>,
    words: &NodeNotation,
) -> Result<(), String> {
    let Some(operation) = interface.operations.get(call.index) else { return Ok(()) };
    let done = if let Some(message) = said.get("fail") {
        let message = message.as_str().map_or_else(|| message.to_string(), ToOwned::to_owned);
        let mut failure =
            Failure::new(Kind::Internal, Initiator::Peer, message).with_completed(Completed::Yes);
        if let Some(code) = said.get("code").and_then(Json::as_str) {
            failure = failure.with_code(code);
        }
        call.request.answer(Answer::Failed(&failure));
        Ok(())
    } else if let Some(name) = said.get("raise") {
        raise(&mut call, operation, name, said.get("fields"), words)
    } else if let Some(other) = stray(said) {
        Err(format!(
            "`{other}` is no part of an answer, which has `results`, `raise` with `fields`, or `fail`"
        ))
    } else {
        results(&mut call, operation, said, words)
    };
    done.map_err(|why| {
        let why = format!("the answer to `{}` does not fit: {why}", operation.name);
        let failure =
            Failure::new(Kind::Internal, Initiator::Peer, why.clone()).with_completed(Completed::Yes);
        call.request.answer(Answer::Failed(&failure));
        why
    })
}

/// A member that means nothing, of a line that says nothing else. Whoever repeats the call beside the results may do so.
fn stray(said: &Map<String, Json>) -> Option<&str> {
    let means = |name: &&String| {
        let name = name.as_str();
        matches!(name, "id" | "results" | "code" | "headers" | "operation" | "arguments")
    };
    if said.contains_key("results") {
        None
    } else {
        said.keys().find(|name| !means(name)).map(String::as_str)
    }
}

/// Answers with results. They are read whole before anything is sent, so that a misfit does not leave
/// half an answer.
fn results(
    call: &mut Pending,
    operation: &Operation,
    said: &Map<String, Json>,
    words: &NodeNotation,
) -> Result<(), String> {
    let nothing = Json::Object(Map::new());
    let status = said.get("code").map_or(Ok(0), status)?;
    let headers = said.get("headers").map(headers::given).transpose()?;
    let said = said.get("results").filter(|said| !said.is_null()).unwrap_or(&nothing);
    let mut value = read_results(&operation.results, said, words).map_err(|misfit| misfit.to_string())?;
    asked::name(call, operation, &mut value, words);
    let values = |sink: &mut dyn Sink| {
        sink.status(status)?;
        value.encode(&operation.results, sink)
    };
    match headers {
        Some(headers) => {
            call.request.answer(Answer::Done(&WithHeaders { values: &values, headers: &headers }))
        }
        None => call.request.answer(Answer::Done(&values)),
    }
    Ok(())
}

/// The results as values. Where the operation returns nothing, `"return": null` says so: programs that serve any operation write what
/// their function returned.
fn read_results(list: &Shape, said: &Json, words: &NodeNotation) -> Result<Value, JsonMismatch> {
    let returns = || list.fields().iter().any(|field| field.name == "return");
    if let Json::Object(given) = said
        && given.get("return").is_some_and(Json::is_null)
        && !returns()
    {
        let rest = given.iter().filter(|(name, _)| *name != "return");
        let rest = rest.map(|(name, value)| (name.clone(), value.clone())).collect();
        return json::read(list, &Json::Object(rest), "results", words);
    }
    json::read(list, said, "results", words)
}

/// The code with which an operation succeeded: `"0x00000001"`, or a number. Negative numbers are
/// failures (HRESULT), which `fail` is for.
fn status(said: &Json) -> Result<i32, String> {
    let number = match said {
        Json::String(text) => text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok()),
        other => other.as_i64(),
    };
    let status = number.and_then(|number| i32::try_from(number).ok()).filter(|status| *status >= 0);
    status.ok_or_else(|| {
        format!("`code` is {said}, and the code of a success is a number from 0 to 0x7fffffff")
    })
}

/// Answers with an exception, named in full, by its identity, or by the last part of its name.
fn raise(
    call: &mut Pending,
    operation: &Operation,
    name: &Json,
    fields: Option<&Json>,
    words: &NodeNotation,
) -> Result<(), String> {
    let name = name.as_str().ok_or("`raise` is the name of an exception")?;
    let fits = |raised: &&Hold<_>| {
        let raised: &everywire::model::shape::Struct = raised;
        raised.is_called(name) || last_part(&raised.name) == name
    };
    let Some(known) = operation.raises.iter().find(fits) else {
        let names: Vec<_> = operation.raises.iter().map(|raised| raised.name.as_ref()).collect();
        let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        return Err(format!("it raises `{name}`, and the contract lets it raise {names}"));
    };
    let shape = Shape::Struct(known.clone());
    let nothing = Json::Object(Map::new());
    let value = json::read(&shape, fields.unwrap_or(&nothing), "fields", words)
        .map_err(|misfit| misfit.to_string())?;
    call.request
        .answer(Answer::Raised { shape: known, fields: &|sink: &mut dyn Sink| value.encode(&shape, sink) });
    Ok(())
}

/// What the program said of the call cannot be read: it has done what it was asked.
pub(super) fn unreadable(mut call: Pending, why: &str) {
    let failure = Failure::new(Kind::Internal, Initiator::Peer, format!("the answer of the program: {why}"))
        .with_completed(Completed::Yes);
    call.request.answer(Answer::Failed(&failure));
}

/// The line of a oneway call waits for the program: that is all the answer, where somebody wants one.
/// A program that ends before it reads the line loses the call.
pub(super) fn taken(mut call: Pending) {
    let nothing = |sink: &mut dyn Sink| sink.status(0);
    call.request.answer(Answer::Done(&nothing));
}

/// The program ended before it answered: nobody knows whether it did what it was asked.
pub(super) fn ended(mut call: Pending, status: &str) {
    let message = format!("the program behind this object ended ({status}) before it answered");
    let failure = Failure::new(Kind::Internal, Initiator::Peer, message).with_completed(Completed::Maybe);
    call.request.answer(Answer::Failed(&failure));
}

/// The program could not be started; the call was not executed.
pub(super) fn not_started(call: Option<Pending>, error: &io::Error) {
    let message = format!("the program behind this object cannot be started: {error}");
    refuse(call, &Failure::new(Kind::Internal, Initiator::Peer, message));
}

/// The program does not keep up: the caller may try again later.
/// `all`: how many lines it has not read; `own`: those of the caller.
pub(super) fn too_slow(call: Option<Pending>, all: usize, own: usize) {
    let message =
        format!("the program behind this object has {all} calls to read already, {own} of this caller");
    refuse(call, &Failure::new(Kind::Busy, Initiator::Peer, message));
}

/// Answers a call that never reached the program. `None`: it was answered already, or is oneway.
fn refuse(call: Option<Pending>, failure: &Failure) {
    if let Some(mut call) = call {
        call.request.answer(Answer::Failed(failure));
    }
}
