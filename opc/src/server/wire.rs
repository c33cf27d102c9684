//! Between the engine's types and those of the contract.

use crate::contract::{FILETIME, GUID, OPCITEMDEF, OPCITEMRESULT, OPCITEMVQT};
use crate::group::{ItemDef, ItemResult, WriteVqt};
use crate::wire::time_of;
use crate::{Code, Data, FileTime, Quality, VarType};
use everywire::Success;
use everywire_model::Failure;

/// An identity that was written as text; all zeros if it is none.
pub(super) fn guid_of(text: &str) -> GUID {
    crate::wire::guid_of(text).unwrap_or_default()
}

#[allow(clippy::cast_possible_truncation)]
pub(super) fn filetime(time: FileTime) -> FILETIME {
    FILETIME { dw_low_date_time: time.0 as u32, dw_high_date_time: (time.0 >> 32) as u32 }
}

/// Codes as they travel.
pub(super) fn signed(codes: &[Code]) -> Vec<i32> {
    codes.iter().map(|code| code.signed()).collect()
}

/// The answer of a method whose items have codes: `S_FALSE` where not all went well.
pub(super) fn answer<T>(codes: &[Code], value: impl FnOnce(Vec<i32>) -> T) -> Result<Success<T>, Failure> {
    let code = Code::of_items(codes.iter().copied());
    Ok(Success::with(code.signed(), value(signed(codes))))
}

/// Results and codes, each for itself; what failed has a result as `nothing` makes it.
pub(super) fn apart<T, U>(
    results: Vec<Result<T, Code>>,
    keep: impl Fn(T) -> U,
    nothing: impl Fn() -> U,
) -> (Vec<U>, Vec<Code>) {
    results
        .into_iter()
        .map(|result| match result {
            Ok(value) => (keep(value), Code::OK),
            Err(code) => (nothing(), code),
        })
        .unzip()
}

/// The codes of results that say no more.
pub(super) fn codes(results: Vec<Result<(), Code>>) -> Vec<Code> {
    results.into_iter().map(|result| result.err().unwrap_or(Code::OK)).collect()
}

pub(super) fn def_of(def: &OPCITEMDEF) -> ItemDef {
    ItemDef {
        id: def.item_id.clone().unwrap_or_default(),
        access_path: def.access_path.clone().unwrap_or_default(),
        active: def.active != 0,
        client: def.client,
        requested: VarType(def.requested_type),
    }
}

pub(super) fn result_of(added: Option<ItemResult>) -> OPCITEMRESULT {
    let (server, canonical_type, access_rights) =
        added.map(|added| (added.server, added.canonical.0, added.access.0)).unwrap_or_default();
    OPCITEMRESULT { server, canonical_type, reserved: 0, access_rights, blob: everywire::Bytes::new() }
}

/// What a client gives; a value that is of no type for items has the code of that.
pub(super) fn given_of(vqt: &OPCITEMVQT) -> WriteVqt {
    WriteVqt {
        data: data_of(&vqt.value),
        quality: (vqt.quality_specified != 0).then_some(Quality(vqt.quality)),
        time: (vqt.timestamp_specified != 0).then(|| time_of(&vqt.timestamp)),
    }
}

/// A value from the wire. One that items cannot have becomes an error value, which nothing can be made of.
pub(super) fn data_of(variant: &everywire_model::Variant) -> Data {
    Data::from_variant(variant).unwrap_or(Data::Error(Code::BAD_TYPE))
}
