//! What a body of this codec says of itself: its codec, and how its values are held.
//!
//! `Body::dialect` is a set of the bits below. `WINE` and `POINTED` change how values are read. `THIS`,
//! `THAT`, `WHOLE` and `FAULT` are set by the sessions, and tell a body that passes through this node what it
//! is made of, so that it can be sent on without being read.

use bytes::Bytes;
use everywire_model::{Body, Budget, Context};

/// What [`everywire_model::Body::dialect`] says of values of Wine's dialect ([`crate::wine`]).
pub(crate) const WINE: u32 = 1;
/// What [`everywire_model::Body::dialect`] says of results whose texts stand behind pointers
/// ([`with_texts_behind_pointers`](super::NdrSink::with_texts_behind_pointers)).
pub(crate) const POINTED: u32 = 2;
/// What [`everywire_model::Body::dialect`] says of a body whose headers are the ORPCTHIS in front of it,
pub(crate) const THIS: u32 = 4;
/// of one whose headers are an ORPCTHAT,
pub(crate) const THAT: u32 = 8;
/// of one that is all of its stub behind those: an answer with its HRESULT,
pub(crate) const WHOLE: u32 = 32;
/// and of the status of a fault, that stands for an answer.
pub(crate) const FAULT: u32 = 16;
/// Of what came of the question for an object elsewhere: whoever asked is to call it there, and gets what it is called by there.
pub(crate) const HANDED: u32 = 64;

/// What bodies that pass are known by: see [`name`](everywire_model::Codec::name).
pub(crate) const NAME: &str = "ndr";

/// The codec of transfer syntax 8a885d04-1ceb-11c9-9fe8-08002b104860, version 2.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ndr;

/// The codec, for [`everywire_model::Body::codec`]. [`everywire_model::Body::base`] is the offset of the body in its stub,
/// [`everywire_model::Body::little`] what the PDU's data representation label says.
pub static NDR: Ndr = Ndr;

/// Values that begin `base` bytes into their stub.
#[inline]
pub(crate) fn body(bytes: Bytes, base: usize, little: bool, budget: Budget) -> Body {
    Body { bytes, base, little, dialect: 0, context: Context::default(), budget, codec: &NDR, beside: None }
}
