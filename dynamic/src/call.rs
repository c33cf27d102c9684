//! One call: values go out; results, an exception or a failure come back.

use crate::headers;
use crate::json::{self, Notation, Written};
use crate::mistake::Mistake;
use everywire::Object;
use everywire_model::object::unexpected;
use everywire_model::visit::WithHeaders;
use everywire_model::{
    Body, Completed, Encode, Failure, Header, Headers, Initiator, Kind, Operation, Outcome, Raised, Shape,
    Sink, Source, Value,
};
use serde_json::{Value as Json, json};
use std::fmt;

/// What an operation came back with.
#[derive(Debug)]
pub struct Results {
    /// The results as one struct: `return`, then the parameters that come back, by their names.
    pub value: Value,
    /// Their types.
    pub shape: Shape,
    /// By which code the operation succeeded, on wires that tell: 0 plainly. A positive number on COM
    /// (`S_FALSE` is 1).
    pub status: i32,
    /// The headers beside the answer.
    pub headers: Vec<Header>,
    /// Octets of the encoded results.
    pub octets: usize,
}

impl Results {
    /// As JSON: an object with a member for each result.
    pub fn json(&self, notation: &dyn Notation) -> Json {
        json::write(&self.shape, &self.value, notation)
    }

    /// The same for a serializer: no tree of them is made.
    pub fn written<'v>(&'v self, notation: &'v dyn Notation) -> Written<'v> {
        Written { shape: &self.shape, value: &self.value, notation }
    }

    /// The only result and its type; nothing if there are none, or several.
    pub fn only(&self) -> Option<(&Shape, &Value)> {
        match (self.shape.fields(), &self.value) {
            ([field], Value::Struct(values)) => values.first().map(|(_, value)| (&field.shape, value)),
            _ => None,
        }
    }
}

/// An exception that the contract names.
#[derive(Debug)]
pub struct RaisedException {
    /// Its name in the contract.
    pub name: String,
    /// Its identity on the wire.
    pub id: String,
    /// The types of its fields.
    pub shape: Shape,
    /// Its fields as one struct.
    pub value: Value,
    /// What the peer says of it to people, beside its fields; mostly empty.
    pub text: String,
}

impl RaisedException {
    /// Its fields as JSON.
    pub fn json(&self, notation: &dyn Notation) -> Json {
        json::write(&self.shape, &self.value, notation)
    }
}

impl fmt::Display for RaisedException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer raised {}", self.name)?;
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

/// Why a call has no results. With `?` it becomes a [`Failure`], which keeps all but the fields of an exception.
#[derive(Debug)]
pub enum CallError {
    /// Nobody was called: what was asked for does not fit the contract.
    Mistake(Mistake),
    /// The operation raised an exception that the contract names.
    Raised(Box<RaisedException>),
    /// The call failed.
    Failed(Failure),
}

impl CallError {
    /// As JSON: `kind`, `message`, `code`, `place`, `completed`, `hint`; of an exception its fields as `value`, too.
    pub fn json(self, notation: &dyn Notation) -> Json {
        let (kind, value) = match &self {
            Self::Raised(raised) => (Some("exception"), Some(raised.json(notation))),
            Self::Mistake(_) | Self::Failed(_) => (None, None),
        };
        let failure = Failure::from(self);
        let mut told = json!({
            "kind": kind.unwrap_or_else(|| failure.kind().word()),
            "message": failure.message(),
            "code": failure.code(),
            "place": Some(failure.place()).filter(|place| !place.is_empty()),
            "completed": failure.completed().word(),
            "hint": failure.hint(),
        });
        if let (Some(value), Some(told)) = (value, told.as_object_mut()) {
            told.insert("value".into(), value);
        }
        told
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistake(mistake) => mistake.fmt(f),
            Self::Raised(raised) => raised.fmt(f),
            Self::Failed(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Mistake> for CallError {
    fn from(mistake: Mistake) -> Self {
        Self::Mistake(mistake)
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Mistake(mistake) => mistake.into(),
            CallError::Raised(raised) => Self::new(Kind::Internal, Initiator::Peer, raised.to_string())
                .with_code(raised.id)
                .with_completed(Completed::Yes)
                .with_hint("the contract says when the operation raises it"),
            CallError::Failed(failure) => failure,
        }
    }
}

/// How a call is made, beside what it carries.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Headers beside the arguments.
    pub headers: Option<&'a Headers>,
    /// Whether the answer may say itself what the results are, since nobody here knows their types.
    pub open: bool,
}

/// Calls an operation, and waits for what it comes back with. `values` are its arguments as one struct
/// ([`crate::operation::arguments`]). A oneway operation comes back with nothing as soon as the call has left.
///
/// # Errors
/// The operation raised an exception, or the call failed.
pub fn invoke(
    object: &Object,
    operation: &Operation,
    values: &Value,
    options: Options<'_>,
) -> Result<Results, CallError> {
    let encode = |sink: &mut dyn Sink| values.encode(&operation.arguments, sink);
    let with = options.headers.map(|headers| WithHeaders { values: &encode, headers });
    let encode: &dyn Encode = match &with {
        Some(with) => with,
        None => &encode,
    };
    if operation.oneway {
        object.send(operation, encode)?;
        return Ok(sent(operation));
    }
    conclude(operation, object.invoke(operation, encode), options.open)
}

/// The same, for a caller that has no thread to wait with. Dropping the future withdraws the call.
///
/// # Errors
/// As [`invoke`].
pub async fn invoke_async(
    object: &Object,
    operation: &Operation,
    values: &Value,
) -> Result<Results, CallError> {
    let encode = |sink: &mut dyn Sink| values.encode(&operation.arguments, sink);
    if operation.oneway {
        object.send(operation, &encode)?;
        return Ok(sent(operation));
    }
    conclude(operation, object.invoke_async(operation, encode).await, false)
}

/// What a oneway operation comes back with.
fn sent(operation: &Operation) -> Results {
    let (value, shape) = (Value::Struct(Vec::new()), operation.results.clone());
    Results { value, shape, status: 0, headers: Vec::new(), octets: 0 }
}

/// What an outcome is to the caller.
fn conclude(operation: &Operation, outcome: Outcome<Body>, open: bool) -> Result<Results, CallError> {
    match outcome {
        Outcome::Done(body) => results(operation, &body, open).map_err(CallError::Failed),
        Outcome::Raised(told) => Err(raised(operation, &told)),
        Outcome::Failed(failure) => Err(failure.into()),
        // The runtime follows an object to where it moved, up to its own limit.
        Outcome::Moved(_) => Err(CallError::Failed(Failure::new(
            Kind::Unreachable,
            Initiator::Peer,
            "the object pointed elsewhere too often",
        ))),
    }
}

/// Reads the results. The operation was executed, whatever is wrong with its answer.
fn results(operation: &Operation, body: &Body, open: bool) -> Result<Results, Failure> {
    let told = if open { body.codec.shape(body) } else { None };
    let shape = told.unwrap_or_else(|| operation.results.clone());
    let decode = |source: &mut dyn Source<'_>| Value::decode(&shape, source);
    let value = body.read(decode).map_err(|failure| {
        let limited = failure.kind() == Kind::LimitExceeded;
        let failure =
            failure.at(format_args!("results of {}", operation.name)).with_completed(Completed::Yes);
        if limited { failure } else { failure.with_hint("compare the contract of both sides") }
    })?;
    let headers = headers::beside(body);
    Ok(Results { value, shape, status: body.status(), headers, octets: body.bytes.len() })
}

/// Reads an exception. One that the contract does not name is a failure.
fn raised(operation: &Operation, told: &Raised<Body>) -> CallError {
    let id = &told.id;
    let Some(known) = operation.raises.iter().find(|raised| raised.is_called(id)) else {
        return CallError::Failed(unexpected(id));
    };
    let (name, shape) = (known.name.to_string(), Shape::Struct(known.clone()));
    match told.body.read(|source| Value::decode(&shape, source)) {
        Ok(value) => {
            let text = told.text.clone();
            CallError::Raised(Box::new(RaisedException { name, id: id.clone(), shape, value, text }))
        }
        Err(failure) => CallError::Failed(failure.at(format_args!("exception {id}"))),
    }
}
