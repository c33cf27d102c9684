//! Between what a client says and the types of the contract.

use crate::contract::{FILETIME, GUID, OPCITEMDEF, OPCITEMSTATE, OPCITEMVQT};
use crate::wire::time_of;
use crate::{Code, Data, Quality, Vqt};
use everywire::{Bytes, Failure, Initiator, Kind, Remote};
use everywire_model::{Variant, guid};

/// The identity of an interface.
pub(super) fn iid<I: Remote + ?Sized>() -> GUID {
    let (data1, data2, data3, data4) = guid::of::<I>();
    GUID { data1, data2, data3, data4 }
}

/// A value as the server gave it. One that items cannot have is an error value, which says so.
pub(super) fn vqt_of(value: &Variant, quality: u16, time: &FILETIME) -> Vqt {
    let data = Data::from_variant(value).unwrap_or(Data::Error(Code::BAD_TYPE));
    Vqt { data, quality: Quality(quality), time: time_of(time) }
}

/// The same of an item that was read.
pub(super) fn vqt_of_state(state: &OPCITEMSTATE) -> Vqt {
    vqt_of(&state.value, state.quality, &state.timestamp)
}

/// A value to write, whose quality and time the server says itself.
pub(super) fn given(data: &Data) -> OPCITEMVQT {
    OPCITEMVQT {
        value: data.to_variant(),
        quality_specified: 0,
        quality: 0,
        reserved: 0,
        timestamp_specified: 0,
        reserved2: 0,
        timestamp: FILETIME::default(),
    }
}

/// An item to add, in its own type. Its access path is an empty text, as Windows and Utgard send it, not a null.
pub(super) fn def(id: &str, client: u32) -> OPCITEMDEF {
    OPCITEMDEF {
        access_path: Some(String::new()),
        item_id: Some(id.to_owned()),
        active: 1,
        client,
        blob: Bytes::new(),
        requested_type: 0,
        reserved: 0,
    }
}

/// The code of an item, as it travels.
pub(super) fn code_of(code: i32) -> Code {
    Code(code.cast_unsigned())
}

/// Values, or the codes of those that failed. A server that answers about more or fewer items than it was asked for is not believed.
pub(super) fn each<T>(asked: usize, values: Vec<T>, errors: &[i32]) -> Result<Vec<Result<T, Code>>, Failure> {
    if values.len() != asked || errors.len() != asked {
        return Err(violation(format!(
            "{asked} items were asked for, and the server answered {} values and {} codes",
            values.len(),
            errors.len()
        )));
    }
    let one = |(value, error): (T, &i32)| {
        let code = code_of(*error);
        if code.is_failure() { Err(code) } else { Ok(value) }
    };
    Ok(values.into_iter().zip(errors).map(one).collect())
}

/// What a method did not give although it succeeded.
pub(super) fn missing(what: &str) -> Failure {
    violation(format!("the server says that it succeeded, and gave no {what}"))
}

pub(super) fn violation(what: impl Into<String>) -> Failure {
    Failure::new(Kind::Violation, Initiator::Peer, what)
}
