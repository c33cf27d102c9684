//! What clients and servers have in common: identities and flags of the standard, and what they are in Rust.

use crate::FileTime;
use crate::contract::{FILETIME, GUID};
use everywire_model::guid;

/// The class of the list of servers.
pub const OPC_ENUM: &str = "13486d51-4821-11d2-a494-3cb306c10000";

/// The categories of servers: Data Access 1.0, 2.0, 3.0.
pub(crate) const DA_1: &str = "63d5f430-cfe4-11d1-b2c8-0060083ba1fb";
pub(crate) const DA_2: &str = "63d5f432-cfe4-11d1-b2c8-0060083ba1fb";
pub(crate) const DA_3: &str = "cc603642-66d7-48f1-b69a-b625e73652d7";

/// An element has something beneath it (`OPC_BROWSE_HASCHILDREN`), or is an item (`OPC_BROWSE_ISITEM`).
pub(crate) const HAS_CHILDREN: u32 = 1;
pub(crate) const IS_ITEM: u32 = 2;

/// An identity as text.
pub(crate) fn text_of(id: &GUID) -> String {
    guid::text((id.data1, id.data2, id.data3, id.data4))
}

/// An identity that was written as text.
pub(crate) fn guid_of(text: &str) -> Option<GUID> {
    guid::parse(text).map(|(data1, data2, data3, data4)| GUID { data1, data2, data3, data4 })
}

/// A time as it travels, in two halves.
pub(crate) fn time_of(time: &FILETIME) -> FileTime {
    FileTime(u64::from(time.dw_high_date_time) << 32 | u64::from(time.dw_low_date_time))
}
