//! Network Data Representation: values of DCE/RPC and DCOM calls.
//!
//! Where a neutral shape leaves open how NDR holds a value, its place decides:
//!
//! * the fields of the nameless struct are the parameters of an operation; what their pointers point to follows each;
//! * a string or a sequence of MIDL that is a parameter, or stands directly behind a pointer, is written in place; a string among the
//!   results of an interface of another contract language stands behind a pointer;
//! * a sequence of MIDL that ends a struct is part of it, and its maximum count is moved in front of the outermost struct;
//! * any other string or sequence of MIDL inside a struct, array or union is carried by a pointer that is never null;
//! * a sequence of another contract language, and a map, is a struct of the count and a pointer to as many elements, null if there
//!   are none;
//! * an optional value is a unique pointer;
//! * the name of an alias counts where automation has a form of its own: a `VARIANT_BOOL` of a boolean has 16 bits, a
//!   `SAFEARRAY` of a sequence is the whole of what MIDL calls so, both of its pointers included; in VARIANTs `DATE`,
//!   `CURRENCY`, `SCODE`, `INT`, `UINT`, `NULL` and `DECIMAL` choose the type;
//! * a SAFEARRAY of several dimensions is a sequence of rows. Its lower bounds are not kept: they are written as 0;
//! * a sequence whose size a field or parameter beside it says must be so long, in both directions.

mod cells;
mod layout;
mod references;
mod segment;
mod sink;
mod skip;
mod source;
mod stack;
mod variant;
mod watch;
mod window;

pub(crate) use layout::alignment;
pub use references::{Hook, References};
pub use sink::NdrSink;
pub use source::NdrSource;
pub(crate) use variant::{
    DECIMAL_SHAPE, is_decimal, plain, scalar, shape_of as vartype_shape, type_of as vartype,
};

use everywire_model::visit::{Sink, Source, Visit};
use everywire_model::{Body, Budget, Codec, Header};

/// What [`Body::dialect`] says of results whose texts stand behind pointers ([`NdrSink::with_texts_behind_pointers`]).
pub(crate) const POINTED: u32 = 2;
/// What [`Body::dialect`] says of a body whose headers are the ORPCTHIS in front of it,
pub(crate) const THIS: u32 = 4;
/// of one whose headers are an ORPCTHAT,
pub(crate) const THAT: u32 = 8;
/// of one that is all of its stub behind those: an answer with its HRESULT,
pub(crate) const WHOLE: u32 = 32;
/// and of the status of a fault, that stands for an answer.
pub(crate) const FAULT: u32 = 16;

/// What bodies that pass are known by: see [`Codec::name`].
pub(crate) const NAME: &str = "ndr";

/// The codec of transfer syntax 8a885d04-1ceb-11c9-9fe8-08002b104860, version 2.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ndr;

/// The codec, for [`Body::codec`]. [`Body::base`] is the offset of the body in its stub, [`Body::little`] what the
/// PDU's data representation label says.
pub static NDR: Ndr = Ndr;

impl Codec for Ndr {
    fn name(&self) -> &'static str {
        NAME
    }

    fn headers(&self, body: &Body) -> Visit<Vec<Header>> {
        crate::passing::headers(body)
    }

    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()> {
        visit(&mut NdrSource::new(body))
    }

    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body> {
        let mut sink = NdrSink::new(true);
        visit(&mut sink)?;
        sink.into_body(Budget::default())
    }
}
