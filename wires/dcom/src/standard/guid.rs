//! GUIDs as values of operations (MS-DTYP 2.3.4.1).

use super::contracts;
use everywire_model::describe::{Shape, structure};
use everywire_model::{Marshal, Sink, Source, Unmarshal, Visit};
use uuid::Uuid;

/// The shape of a GUID: three numbers, then octets.
pub const GUID_SHAPE: Shape = structure(&contracts::GUID_STRUCT);

/// A GUID as an argument or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Guid(pub Uuid);

impl Marshal for Guid {
    fn marshal<S: Sink + ?Sized>(&self, _: &Shape, sink: &mut S) -> Visit<()> {
        contracts::GUID::from(self.0).marshal(&GUID_SHAPE, sink)
    }
}

impl<'a> Unmarshal<'a> for Guid {
    fn unmarshal<S: Source<'a> + ?Sized>(_: &Shape, source: &mut S) -> Visit<Self> {
        // Not by the generated structure: that reads an array of octets by way of a list, and a GUID is read in nearly every call.
        source.open(&GUID_SHAPE)?;
        let (data1, data2, data3) = (source.u32()?, source.u16()?, source.u16()?);
        let mut data4 = [0; 8];
        let octets = &contracts::GUID_STRUCT.fields[3].shape;
        for (to, from) in data4.iter_mut().zip(source.bytes(octets)?.iter()) {
            *to = *from;
        }
        source.close(&GUID_SHAPE)?;
        Ok(Self(Uuid::from_fields(data1, data2, data3, &data4)))
    }
}

impl From<Uuid> for contracts::GUID {
    fn from(id: Uuid) -> Self {
        Self::from_u128(id.as_u128())
    }
}

impl From<contracts::GUID> for Uuid {
    fn from(id: contracts::GUID) -> Self {
        Self::from_fields(id.data1, id.data2, id.data3, &id.data4)
    }
}
