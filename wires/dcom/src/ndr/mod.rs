//! Network Data Representation: values of DCE/RPC and DCOM calls.
//!
//! Where a neutral shape leaves open how NDR holds a value, its place decides:
//!
//! * the fields of the nameless struct are the parameters of an operation; what their pointers point to follows each;
//! * a string or a sequence of MIDL that is a parameter, or stands directly behind a pointer, is written in place; a string among the
//!   results of an interface of another contract language stands behind a pointer;
//! * a sequence of MIDL that ends a struct is part of it, and its maximum count is moved in front of the outermost struct;
//! * a string in an array of a fixed size, which an alias `string(20)` tells, stands in place wherever it is;
//! * any other string or sequence of MIDL inside a struct, array or union is carried by a pointer that is never null;
//! * a sequence of another contract language, and a map, is a struct of the count and a pointer to as many elements, null if there
//!   are none;
//! * an optional value is a unique pointer;
//! * the name of an alias counts where automation has a form of its own: a `VARIANT_BOOL` of a boolean has 16 bits, a
//!   `SAFEARRAY` of a sequence is the whole of what MIDL calls so, both of its pointers included; in VARIANTs `DATE`,
//!   `CURRENCY`, `SCODE`, `INT`, `UINT`, `NULL` and `DECIMAL` choose the type;
//! * a SAFEARRAY of several dimensions is a sequence of rows. Its lower bounds are not kept: they are written as 0;
//! * a sequence whose size a field or parameter beside it says must be so long, in both directions; so must one whose size,
//!   or the number of whose elements that travel, is computed from values beside it (`size_is(n / 2)`); and a union has the arm
//!   that is chosen beside it (`switch_is`).

mod bodies;
mod cells;
mod codec;
mod extent;
mod frame;
mod layout;
mod references;
mod segment;
mod sink;
mod source;
mod stack;
mod variant;
mod watch;
mod window;
mod wine;

pub(crate) use bodies::{FAULT, HANDED, NAME, POINTED, THAT, THIS, WHOLE, WINE, body};
pub use bodies::{NDR, Ndr};
pub(crate) use codec::extents;
pub(crate) use layout::alignment;
pub use references::{References, ReferencesState};
pub use sink::NdrSink;
pub use source::NdrSource;
pub(crate) use variant::{
    DECIMAL_SHAPE, DISPATCH, is_decimal, plain, scalar, shape_of as vartype_shape, type_of as vartype,
};
