//! GUIDs as values of operations (MS-DTYP 2.3.4.1).

use everywire_model::describe::{Array, Hold, Shape, Struct, record, structure};
use everywire_model::{Marshal, Sink, Source, Unmarshal, Visit};
use uuid::Uuid;

/// The shape of a GUID: three numbers, then octets.
pub const GUID: Shape = structure(&GUID_STRUCT);

static GUID_STRUCT: Struct =
    record!("GUID", "", { "data1": Shape::U32, "data2": Shape::U16, "data3": Shape::U16, "data4": DATA4 });

/// The last eight octets, which have no byte order.
const DATA4: Shape = Shape::Array(Hold::Static(&OCTETS));
static OCTETS: Array = Array { element: Shape::U8, len: 8 };

/// A GUID as an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Guid(pub Uuid);

impl Marshal for Guid {
    fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Visit<()> {
        let (data1, data2, data3, data4) = self.0.as_fields();
        sink.open(&GUID, 4)?;
        sink.u32(data1)?;
        sink.u16(data2)?;
        sink.u16(data3)?;
        sink.bytes(&DATA4, data4)?;
        sink.close(&GUID)
    }
}

impl<'a> Unmarshal<'a> for Guid {
    fn unmarshal<S: Source<'a> + ?Sized>(_: &Shape, source: &mut S) -> Visit<Self> {
        source.open(&GUID)?;
        let (data1, data2, data3) = (source.u32()?, source.u16()?, source.u16()?);
        let mut data4 = [0; 8];
        for (to, from) in data4.iter_mut().zip(source.bytes(&DATA4)?.iter()) {
            *to = *from;
        }
        source.close(&GUID)?;
        Ok(Self(Uuid::from_fields(data1, data2, data3, &data4)))
    }
}
