//! The bytes of a stub with NDR alignment, for the system interfaces, whose layout is fixed: the resolver,
//! the activators, IRemUnknown, the endpoint mapper.
//!
//! Those need no shapes: their readers and writers call these methods in the order of the wire. `Get` reads
//! both byte orders, `StubWriter` writes little-endian. Referents are not deferred by themselves; whoever writes a
//! struct with pointers writes the pointers first and their referents behind.
//!
//! Invariants: a count from the wire is compared with the octets that are left before anything is allocated
//! (`conformance`, `items`, `wide`). Every read is checked; padding is never looked at. Alignment counts from
//! the first octet of the stub.

use crate::violations::Violation;
use bytes::Bytes;
use everywire_model::Body;
use uuid::Uuid;

/// Referent ids as Windows gives them: the first, and how far apart they are.
pub(crate) const FIRST_REFERENT: u32 = 0x0002_0000;
/// Each id has to be another one, or a reader with full pointers takes two of them for the same.
const NEXT_REFERENT: u32 = 4;

/// A stub to read. Padding is skipped unseen: real peers leave in it what was there before.
#[derive(Debug, Clone, Copy)]
pub struct Get<'a> {
    bytes: &'a [u8],
    /// Offset of `bytes` in what alignment is counted from.
    base: usize,
    at: usize,
    little: bool,
}

macro_rules! number {
    ($($name:ident $type:ty),*) => {$(
        #[doc = concat!("The next aligned `", stringify!($type), "`.")]
        pub fn $name(&mut self) -> Result<$type, Violation> {
            self.align(size_of::<$type>());
            let raw = self.take(size_of::<$type>())?;
            let raw = raw.try_into().map_err(|_| Violation::Truncated)?;
            Ok(if self.little { <$type>::from_le_bytes(raw) } else { <$type>::from_be_bytes(raw) })
        }
    )*};
}

impl<'a> Get<'a> {
    /// A whole stub, or what follows a part of it whose length is a multiple of 8.
    pub fn new(bytes: &'a [u8], little: bool) -> Self {
        Self::after(bytes, 0, little)
    }

    /// What follows `base` bytes of a stub.
    pub fn after(bytes: &'a [u8], base: usize, little: bool) -> Self {
        Self { bytes, base, at: 0, little }
    }

    /// The values of a message.
    pub fn of(body: &'a Body) -> Self {
        Self::after(&body.bytes, body.base, body.little)
    }

    number!(u8 u8, u16 u16, u32 u32, u64 u64);

    /// The next aligned UUID.
    pub fn uuid(&mut self) -> Result<Uuid, Violation> {
        self.align(4);
        let raw = self.take(16)?.try_into().map_err(|_| Violation::Truncated)?;
        Ok(if self.little { Uuid::from_bytes_le(raw) } else { Uuid::from_bytes(raw) })
    }

    /// The next numbers of 32 bits.
    pub(crate) fn words<const N: usize>(&mut self) -> Result<[u32; N], Violation> {
        let mut words = [0; N];
        for word in &mut words {
            *word = self.u32()?;
        }
        Ok(words)
    }

    /// Whether the next pointer points to something.
    pub fn pointer(&mut self) -> Result<bool, Violation> {
        Ok(self.u32()? != 0)
    }

    /// A pointer that must point to something.
    pub fn reference(&mut self) -> Result<(), Violation> {
        if self.pointer()? { Ok(()) } else { Err(Violation::NullReference) }
    }

    /// The maximum count of an array of elements of at least `least` bytes: no more than the rest can hold, and no less
    /// than `count`, if the count is known already.
    /// The elements follow only after the fields around them, so what is left is an upper bound.
    pub fn conformance(&mut self, least: usize, count: Option<usize>) -> Result<usize, Violation> {
        let found = self.u32()? as usize;
        if found > self.left() / least.max(1) {
            return Err(Violation::CountBeyondMessage);
        }
        match count {
            Some(count) if count != found => Err(Violation::BadVariance),
            _ => Ok(found),
        }
    }

    /// As many values as `count`, each of at least `least` bytes.
    /// The vector grows as elements are read; the check bounds it beforehand.
    pub fn items<T>(
        &mut self,
        count: usize,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        if count > self.left() / least.max(1) {
            return Err(Violation::CountBeyondMessage);
        }
        (0..count).map(|_| item(self)).collect()
    }

    /// An array behind its maximum count, which must be `count`; each element has at least `least` bytes.
    pub fn array<T>(
        &mut self,
        count: usize,
        least: usize,
        item: impl FnMut(&mut Self) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        self.conformance(least, Some(count))?;
        self.items(count, least, item)
    }

    /// Such an array behind a pointer, which may be null if there are no elements.
    pub fn pointed<T>(
        &mut self,
        count: usize,
        least: usize,
        item: impl FnMut(&mut Self) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        match (self.pointer()?, count) {
            (true, _) => self.array(count, least, item),
            (false, 0) => Ok(Vec::new()),
            (false, _) => Err(Violation::NullReference),
        }
    }

    /// A count of 16 bits, and an array of as many elements of at least this size.
    pub fn counted<T>(
        &mut self,
        least: usize,
        item: impl FnMut(&mut Self) -> Result<T, Violation>,
    ) -> Result<Vec<T>, Violation> {
        let count = self.u16()?.into();
        self.array(count, least, item)
    }

    /// A COMVERSION (MS-DCOM 2.2.11).
    pub fn version(&mut self) -> Result<(u16, u16), Violation> {
        Ok((self.u16()?, self.u16()?))
    }

    /// A conformant-varying string of UTF-16 units, without its terminator.
    pub fn wide(&mut self) -> Result<String, Violation> {
        let most = self.u32()?;
        let offset = self.u32()?;
        let actual = self.u32()?;
        if offset != 0 || actual > most {
            return Err(Violation::BadVariance);
        }
        let len = (actual as usize).checked_mul(2).ok_or(Violation::CountBeyondMessage)?;
        if len > self.left() {
            return Err(Violation::CountBeyondMessage);
        }
        let raw = self.take(len)?;
        let units = raw.as_chunks::<2>().0.iter();
        let units: Vec<u16> = units
            .map(|pair| if self.little { u16::from_le_bytes(*pair) } else { u16::from_be_bytes(*pair) })
            .take_while(|unit| *unit != 0)
            .collect();
        Ok(String::from_utf16_lossy(&units))
    }

    /// An MInterfacePointer behind its pointer: two counts and an OBJREF (MS-DCOM 2.2.14).
    pub fn interface_pointer(&mut self) -> Result<Bytes, Violation> {
        let most = self.conformance(1, None)?;
        let len = self.u32()? as usize;
        if len != most {
            return Err(Violation::BadVariance);
        }
        self.take(len).map(Bytes::copy_from_slice)
    }

    /// The next bytes as they are.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Violation> {
        let end = self.at.checked_add(len).ok_or(Violation::Truncated)?;
        let taken = self.bytes.get(self.at..end).ok_or(Violation::Truncated)?;
        self.at = end;
        Ok(taken)
    }

    /// Skips padding.
    /// The place may pass the end; the next read then fails.
    pub fn align(&mut self, alignment: usize) {
        let place = self.base.wrapping_add(self.at);
        self.at += place.next_multiple_of(alignment) - place;
    }

    /// Offset of the next byte in the bytes given.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// Whether numbers are little-endian.
    pub fn little(&self) -> bool {
        self.little
    }
}

macro_rules! put_number {
    ($($name:ident $type:ty),*) => {$(
        #[doc = concat!("An aligned `", stringify!($type), "`.")]
        pub fn $name(&mut self, value: $type) -> &mut Self {
            self.align(size_of::<$type>());
            self.bytes.extend_from_slice(&value.to_le_bytes());
            self
        }
    )*};
}

/// A little-endian stub to write; alignment is counted from its first byte.
#[derive(Debug)]
pub struct StubWriter {
    /// What was written.
    pub bytes: Vec<u8>,
    /// Pointers written so far, each of which has an id of its own.
    pointers: u32,
}

impl Default for StubWriter {
    /// An empty stub with room for most.
    fn default() -> Self {
        Self::beginning(Vec::with_capacity(256))
    }
}

impl StubWriter {
    /// A stub that begins with these bytes.
    pub fn beginning(bytes: Vec<u8>) -> Self {
        Self { bytes, pointers: 0 }
    }

    put_number!(u16 u16, u32 u32, u64 u64);

    /// An aligned UUID.
    pub fn uuid(&mut self, value: Uuid) -> &mut Self {
        self.align(4);
        self.bytes.extend_from_slice(&value.to_bytes_le());
        self
    }

    /// Numbers of 32 bits.
    pub(crate) fn words(&mut self, words: &[u32]) -> &mut Self {
        words.iter().fold(self, |put, word| put.u32(*word))
    }

    /// The length of something in memory; more than NDR can count is cut, which nobody can have sent.
    pub fn count(&mut self, count: usize) -> &mut Self {
        self.u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// An array behind its maximum count.
    pub fn array<T>(
        &mut self,
        items: impl ExactSizeIterator<Item = T>,
        put: impl Fn(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        self.count(items.len());
        items.fold(self, put)
    }

    /// A count of 16 bits, a pointer if the array is `pointed` to, and the array; what is more than the count can say is left out.
    pub fn counted<T: Copy>(
        &mut self,
        pointed: bool,
        items: &[T],
        put: impl Fn(&mut Self, T) -> &mut Self,
    ) -> &mut Self {
        let items = items.get(..items.len().min(u16::MAX.into())).unwrap_or_default();
        self.u16(u16::try_from(items.len()).unwrap_or_default());
        if pointed {
            self.pointer(true);
        }
        self.array(items.iter().copied(), put)
    }

    /// A COMVERSION.
    pub fn version(&mut self, (major, minor): (u16, u16)) -> &mut Self {
        self.u16(major).u16(minor)
    }

    /// A pointer to something, or to nothing.
    pub fn pointer(&mut self, points: bool) -> &mut Self {
        let id = if points { FIRST_REFERENT + self.pointers * NEXT_REFERENT } else { 0 };
        self.pointers += u32::from(points);
        self.u32(id)
    }

    /// A conformant-varying string with terminator.
    pub fn wide(&mut self, text: &str) -> &mut Self {
        self.units(&text.encode_utf16().chain([0]).collect::<Vec<_>>())
    }

    /// The same of these UTF-16 units.
    pub(crate) fn units(&mut self, units: &[u16]) -> &mut Self {
        self.count(units.len()).u32(0).array(units.iter().copied(), Self::u16)
    }

    /// An MInterfacePointer behind its pointer.
    pub fn interface_pointer(&mut self, objref: &[u8]) -> &mut Self {
        self.count(objref.len()).count(objref.len()).raw(objref).align(4)
    }

    /// Octets as they are.
    pub(crate) fn raw(&mut self, octets: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(octets);
        self
    }

    /// Pads with zeros.
    pub fn align(&mut self, alignment: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self
    }

    /// What was written, at the end.
    pub fn done(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}
