//! The DCOM wire; for now its value codec, NDR (DCE 1.1 RPC, chapter 14; MS-RPCE; MS-OAUT for the automation types).
//!
//! Supported: transfer syntax NDR 2.0 (32 bits) in both byte orders, with fixed, conformant, varying and
//! conformant-varying arrays, strings, encapsulated unions, ref, unique and full pointers with deferred referents,
//! BSTR, VARIANT with SAFEARRAYs of one dimension, and interface pointers as opaque OBJREFs. Not supported: NDR64,
//! user-defined types (VT_RECORD), VT_DECIMAL, SAFEARRAYs of several dimensions, operating-system handles.

#![forbid(unsafe_code)]

pub mod limits;
pub mod ndr;
pub mod violations;

pub use ndr::{NDR, Ndr, NdrSink, NdrSource};
pub use violations::Violation;
