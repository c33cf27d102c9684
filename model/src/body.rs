//! Bodies: encoded values that nobody has looked at yet.
//!
//! A [`Body`] is what a message carries behind its header, with all that reading it needs: byte order, place
//! in the message, the wire's [`Codec`]. Whoever knows the contract decodes it; whoever passes it on does not.
//!
//! States: none; bytes are shared and never change. Changes of headers are kept beside them (`beside`).
//!
//! Invariants: a body keeps the budget that its connection has for decoding, so reading it later costs no
//! more than reading it at once. A body passes to another session as it is only if the
//! codec there has the same name.

use crate::budget::Budget;
use crate::failure::{Failure, needs_contract};
use crate::headers::{Header, Headers};
use crate::reference::Reference;
use crate::shape::Shape;
use crate::typecode::TypeCode;
use crate::visit::{Encode, MessageContents, Sink, Source, Visit};
use bytes::Bytes;
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// An operating-system handle that travels with a message; closed when the last holder drops it.
pub type Handle = Arc<OwnedFd>;

/// What a wire does with values: reads a [`Body`], writes to a buffer of its own.
pub trait Codec: Send + Sync {
    /// Its name: bodies of the same name pass between sessions as they are. Empty where none do.
    fn name(&self) -> &'static str {
        ""
    }

    /// Hands a source over the body to `visit`.
    fn read<'a>(&self, body: &'a Body, visit: &mut dyn FnMut(&mut dyn Source<'a>) -> Visit<()>) -> Visit<()>;

    /// Encodes values into a body of their own: for tests, for bridges, for storage.
    fn write(&self, visit: &mut dyn FnMut(&mut dyn Sink) -> Visit<()>) -> Visit<Body>;

    /// The shape of the values in a body, as one nameless struct, on wires whose messages describe themselves.
    fn shape(&self, _body: &Body) -> Option<Shape> {
        None
    }

    /// The headers that came with a body ([`Body::headers`]), in order, without the edits.
    ///
    /// # Errors
    /// They do not decode.
    fn headers(&self, _body: &Body) -> Visit<Vec<Header>> {
        Ok(Vec::new())
    }

    /// How many hops a call with this body has passed, as the headers that came with it say
    /// ([`crate::Wire::hop_header`]); 0 if they say nothing.
    ///
    /// # Errors
    /// They do not decode.
    fn hops(&self, _body: &Body) -> Visit<u32> {
        Ok(0)
    }

    /// Whether a header of this name that says this can be written, so that a configuration is refused and not each of its calls.
    ///
    /// # Errors
    /// The wire has no such header, or none at all.
    fn check_header(&self, _header: &Header) -> Visit<()> {
        Err(Failure::bad_argument("calls have no headers on this wire"))
    }
}

/// Encoded values: shared, immutable bytes and what is needed to read them. Copying one is counting a reference.
#[derive(Clone)]
pub struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// Offset of the first byte in its message: what alignment is counted from.
    pub base: usize,
    /// Whether numbers are little-endian.
    pub little: bool,
    /// What else the codec needs to know, in its own terms (protocol version, character sets).
    pub dialect: u32,
    /// What else it needs of the message.
    pub context: Context,
    /// What decoding may cost.
    pub budget: Budget,
    /// Who can read it.
    pub codec: &'static dyn Codec,
    /// What else belongs to it, if anything.
    pub beside: Option<Arc<Attachments>>,
}

/// What a codec needs of a message, opaque to everybody else (a type signature); mostly empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Context(Option<Arc<[u8]>>);

impl Context {
    /// These bytes; without a copy of them if they are what it was.
    pub fn again(&mut self, bytes: &[u8]) -> Self {
        if **self != *bytes {
            *self = bytes.into();
        }
        self.clone()
    }
}

impl Deref for Context {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<&[u8]> for Context {
    fn from(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context(b\"{}\")", self.escape_ascii())
    }
}

/// What a wire keeps for a node ([`crate::WireState`]), as far as whoever has a body needs to know: a codec of that wire knows which it
/// is.
pub trait NodeState: Any + Send + Sync {
    /// Of a hop to `to`: where a call of this object goes on, if that is not the object of the same key there.
    fn leads_on(&self, key: &[u8], to: &Reference) -> Option<Reference>;
}

/// Values of [`crate::native`] without bytes, in the order in which they are read.
#[derive(Debug, Clone, Default)]
pub struct Parts(pub(crate) Vec<Part>);

impl Parts {
    /// Bytes that the parts themselves take, octets included, beside what else they lead to.
    pub fn size(&self) -> usize {
        let octets = |part: &Part| if let Part::Octets(octets) = part { octets.len() } else { 0 };
        self.0.iter().map(|part| size_of::<Part>() + octets(part)).sum()
    }

    /// The object references among them.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.0.iter().filter_map(|part| match part {
            Part::Reference(reference) => reference.as_ref(),
            Part::Shape(_) | Part::TypeCode(_) | Part::Octets(_) => None,
        })
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Reference(Option<Reference>),
    Shape(Shape),
    TypeCode(TypeCode),
    /// A large run, from where it lies.
    Octets(Bytes),
}

/// What belongs to a body beside its bytes.
#[derive(Default, Clone)]
pub struct Attachments {
    /// Handles that came with the message.
    pub handles: Vec<Handle>,
    /// What the wire keeps for this node: a codec may need it to make references of what it reads.
    pub wire_state: Option<Arc<dyn NodeState>>,
    /// How the operation succeeded whose results these are; see [`Body::status`].
    pub status: i32,
    /// What has no bytes of its own, of values that stay in this process.
    pub parts: Parts,
    /// The headers that came with the message, where it was one that may be passed on.
    pub headers: Headers,
}

/// A body is passed on as it came, by sessions of the same wire.
impl Encode for Body {
    fn encode(&self, _: &mut dyn Sink) -> Visit<()> {
        Err(needs_contract("a body of another wire"))
    }

    fn carries(&self) -> MessageContents<'_> {
        MessageContents { body: Some(self), headers: None }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} bytes at {})", self.bytes.len(), self.base)
    }
}

impl Body {
    /// The handles that came with the message.
    pub fn handles(&self) -> &[Handle] {
        self.beside.as_ref().map(|beside| beside.handles.as_slice()).unwrap_or_default()
    }

    /// What the wire keeps for this node, where its codec needs that.
    pub fn wire_state(&self) -> Option<&Arc<dyn NodeState>> {
        self.beside.as_ref()?.wire_state.as_ref()
    }

    /// How the operation succeeded whose results these are, on wires that tell it by a number beside them (an HRESULT); 0 is
    /// plain success, and what all others say.
    pub fn status(&self) -> i32 {
        self.beside.as_ref().map_or(0, |beside| beside.status)
    }

    /// The same results of an operation that succeeded so.
    #[must_use]
    pub fn with_status(mut self, status: i32) -> Self {
        if status != self.status() {
            self.beside = Some(Arc::new(Attachments { status, ..self.copy_beside() }));
        }
        self
    }

    /// The headers that came with it: read by [`Headers::list`].
    pub fn headers(&self) -> Option<&Headers> {
        self.beside.as_ref().map(|beside| &beside.headers)
    }

    /// The same values with these headers beside, if there are any.
    #[must_use]
    pub fn with_headers(mut self, headers: impl Into<Option<Headers>>) -> Self {
        if let Some(headers) = headers.into() {
            self.beside = Some(Arc::new(Attachments { headers, ..self.copy_beside() }));
        }
        self
    }

    fn copy_beside(&self) -> Attachments {
        self.beside.as_deref().cloned().unwrap_or_default()
    }

    /// Octets of this body that outlive it. A short run out of a long message is copied, so that keeping it does not keep the message.
    pub fn share(&self, run: &[u8]) -> Bytes {
        const COPIED: usize = 256;
        if run.len() <= COPIED && self.bytes.len() > 4 * COPIED {
            return Bytes::copy_from_slice(run);
        }
        self.bytes.slice_ref(run)
    }

    /// Reads with whatever the closure makes of the source.
    pub fn read<'a, T>(&'a self, mut visit: impl FnMut(&mut dyn Source<'a>) -> Visit<T>) -> Visit<T> {
        let mut result = None;
        self.codec.read(self, &mut |source| {
            result = Some(visit(source)?);
            Ok(())
        })?;
        result.ok_or_else(|| Failure::malformed("the codec did not visit the body", 0))
    }
}

impl Headers {
    /// All headers of a message with this body, with the changes.
    ///
    /// # Errors
    /// Those that came do not decode.
    pub fn list(&self, body: &Body) -> Visit<Vec<Header>> {
        let mut all = if self.raw().is_empty() { Vec::new() } else { body.codec.headers(body)? };
        all.retain(|header| self.keeps(&header.name));
        all.extend(self.brought().cloned());
        Ok(all)
    }
}
