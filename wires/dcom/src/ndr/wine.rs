//! How NDR of Wine's COM differs ([`crate::wine`]): packed structs, discriminators, the elements of arrays.
//!
//! All of it was measured with Wine as a peer, and Windows does none of it. None of this applies unless a
//! reference says `dialect=wine`.

use super::alignment;
use everywire_model::shape::{Order, Shape, Struct};

/// What stands behind the discriminator of a union is aligned so, even if it is nothing: Wine's interface compiler has each
/// discriminator as a number of 32 bits.
pub(crate) const DISCRIMINATOR: usize = 4;

/// Whether the members of a struct are packed: it is not copied as a whole, because values in it have other forms in memory
/// than on the wire (enumerations of 16 bits, pointers, unions, strings).
pub(crate) fn is_packed(shape: &Struct) -> bool {
    let last = shape.fields.len().saturating_sub(1);
    shape.fields.iter().enumerate().any(|(index, field)| is_transformed(&field.shape, index == last))
}

/// What the elements of an array are aligned to, even if there are none.
pub(crate) fn element_alignment(array: &Shape) -> usize {
    match array.element().map(Shape::resolved) {
        Some(Shape::Variant) => 8,
        Some(Shape::Reference(_)) | None => 1,
        Some(element) => alignment(element, false),
    }
}

/// Whether a value has another form in memory; `tail` says that an array here belongs to the struct around.
fn is_transformed(shape: &Shape, tail: bool) -> bool {
    match shape.resolved() {
        Shape::Enum(shape) => shape.bits == 16,
        Shape::Struct(shape) => is_packed(shape),
        Shape::Array(array) => is_transformed(&array.element, false),
        Shape::Sequence(sequence) if tail && sequence.order == Order::Conformant => {
            is_transformed(&sequence.element, false)
        }
        Shape::Char | Shape::WideChar => false,
        shape => shape.width().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ndr::{NdrSink, NdrSource, References, WINE};
    use bytes::Bytes;
    use everywire_model::shape::{Enum, Field, Hold};
    use everywire_model::visit::{Sink, Source};
    use everywire_model::{Budget, Reference, Visit, WireState};
    use std::borrow::Cow;
    use std::sync::Arc;

    /// References of this dialect, of which there are none.
    struct NullReferences;

    impl References for NullReferences {
        fn unmarshal(&self, _: Bytes, offset: usize) -> Visit<Reference> {
            Err(crate::Violation::BadObjref.at(offset))
        }
        fn marshal(&self, _: &Reference) -> Visit<Bytes> {
            Ok(Bytes::from_static(b"MEOW!"))
        }
        fn dialect(&self) -> u32 {
            WINE
        }
    }

    impl WireState for NullReferences {}

    fn structure(shapes: Vec<Shape>) -> Shape {
        let name = || Cow::Borrowed("S");
        let fields = shapes.into_iter().map(|shape| Field { name: Cow::Borrowed("f"), shape }).collect();
        Shape::Struct(Hold::new(Struct { name: name(), id: name(), fields: Cow::Owned(fields) }))
    }

    #[test]
    fn structs_with_short_enumerations_are_packed_and_others_are_not() {
        let members = Cow::Owned(vec![(Cow::Borrowed("A"), 5)]);
        let short = Enum { name: Cow::Borrowed("E"), id: Cow::Borrowed("E"), members, bits: 16, open: false };
        let packed = structure(vec![Shape::Enum(Hold::new(short.clone())), Shape::U32]);
        let plain = structure(vec![Shape::U16, Shape::U32]);
        let mut sink = NdrSink::new(true).with_references(Arc::new(NullReferences));
        for _ in 0..2 {
            sink.open(&packed, 2).unwrap();
            sink.enumerant(&short, 5).unwrap();
            sink.u32(7).unwrap();
            sink.close(&packed).unwrap();
        }
        sink.open(&plain, 2).unwrap();
        sink.u16(5).unwrap();
        sink.u32(7).unwrap();
        sink.close(&plain).unwrap();
        sink.reference(Some(&Reference::default())).unwrap();
        sink.reference(None).unwrap();
        let mut body = sink.into_body(Budget::default()).unwrap();
        let expected = [
            &[5, 0, 7, 0, 0, 0, 0, 0][..],
            &[5, 0, 7, 0, 0, 0, 0, 0],
            &[5, 0, 0, 0, 7, 0, 0, 0],
            &[5, 0, 0, 0],
            b"MEOW!",
            &[0; 4],
        ];
        assert_eq!(*body.bytes, expected.concat());

        body.dialect = WINE;
        let mut source = NdrSource::new(&body);
        for _ in 0..2 {
            source.open(&packed).unwrap();
            assert_eq!((source.enumerant(&short).unwrap(), source.u32().unwrap()), (5, 7));
            source.close(&packed).unwrap();
        }
        source.open(&plain).unwrap();
        assert_eq!((source.u16().unwrap(), source.u32().unwrap()), (5, 7));
        source.close(&plain).unwrap();
        assert_eq!(source.rest(), 13);
    }

    #[test]
    fn a_length_beyond_the_message_is_refused() {
        let mut sink = NdrSink::new(true);
        sink.u32(u32::MAX).unwrap();
        sink.u32(0).unwrap();
        let mut body = sink.into_body(Budget::default()).unwrap();
        body.dialect = WINE;
        assert!(NdrSource::new(&body).reference().is_err());
    }
}
