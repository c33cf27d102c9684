//! Values that are only read, to see whether they are what the contract says: the sink of a body that is read
//! to its end and kept nowhere. Bounds (depth, counts, bytes) are the source's.

use everywire::Reference;
use everywire_model::shape::{Enum, Text};
use everywire_model::visit::Numbers;
use everywire_model::{Body, Failure, Handle, Initiator, Kind, Shape, Sink, TypeCode, Visit};

/// Reads the values of a body.
///
/// # Errors
/// They are not those of the shape, or an enumeration has no such member ([`Kind::BadArgument`]).
pub(crate) fn read(body: &Body, list: &Shape) -> Result<(), Failure> {
    body.pipe(list, &mut Reader { strict: true }).map_err(|failure| {
        let message = format!("the arguments are not what the contract says: {}", failure.message());
        Failure::new(Kind::BadArgument, Initiator::Peer, message)
    })
}

/// Takes everything and keeps nothing.
pub(crate) struct Reader {
    /// Whether enumerations have only the members that the contract names.
    pub(crate) strict: bool,
}

macro_rules! take {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(&mut self, _: $type) -> Visit<()> {
            Ok(())
        })*
    };
}

impl Sink for Reader {
    take!(bool: bool, u8: u8, i8: i8, u16: u16, i16: i16, u32: u32, i32: i32, u64: u64, i64: i64, f32: f32, f64: f64);
    take!(numbers: Numbers<'_>, reference: Option<&Reference>, type_code: &TypeCode, handle: &Handle);
    take!(content: &Shape, close: &Shape);

    fn char(&mut self, _: char, _: bool) -> Visit<()> {
        Ok(())
    }

    fn text(&mut self, _: &Text, _: &str) -> Visit<()> {
        Ok(())
    }

    fn bytes(&mut self, _: &Shape, _: &[u8]) -> Visit<()> {
        Ok(())
    }

    fn enumerant(&mut self, shape: &Enum, value: i32) -> Visit<()> {
        match shape.check(value) {
            Err(what) if self.strict => Err(Failure::malformed(what, 0)),
            _ => Ok(()),
        }
    }

    fn open(&mut self, _: &Shape, _: usize) -> Visit<()> {
        Ok(())
    }
}
