//! What every ORPC request and response begins with: ORPCTHIS and ORPCTHAT (MS-DCOM 2.2.13), and the
//! extensions in them (2.2.21).
//!
//! The fixed part of ORPCTHIS is 32 octets, that of ORPCTHAT 8. Extensions are behind a pointer, in an array
//! whose length is rounded up to an even number, with null in the place that is too much; each has its size,
//! and as many octets as that rounded up to 8. This wire uses the extension of error information, and one of
//! its own for exceptions.
//!
//! States: none.
//!
//! Invariants: `MAX_EXTENSIONS` bounds the array before it is read; a size beyond the room of an extension is
//! refused; data is a slice of the stub and not copied. Error information that cannot be understood is left
//! out, since the HRESULT already says what failed.

use crate::objref::ObjRef;
use crate::stub::{FIRST_REFERENT, Get, StubWriter};
use crate::violations::Violation;
use bytes::Bytes;
use uuid::{Uuid, uuid};

/// Identifies the extension that carries error information.
pub const ERROR_EXTENSION: Uuid = uuid!("0000031c-0000-0000-c000-000000000046");
/// Identifies the extension that carries properties of a context.
pub const CONTEXT_EXTENSION: Uuid = uuid!("00000334-0000-0000-c000-000000000046");
/// Identifies the extension that tells how many hops a call has passed, in digits. It is one of ours; others pass over it.
pub(crate) const HOPS: Uuid = uuid!("45574603-9d0c-4c1e-8a57-2f6b1f0e7d24");
/// The same as the name of a header.
pub(crate) const HOPS_NAME: &str = "45574603-9d0c-4c1e-8a57-2f6b1f0e7d24";
/// Who unmarshals error information that travels by value.
const ERROR_OBJECT: Uuid = uuid!("0000031b-0000-0000-c000-000000000046");
/// IErrorInfo, the interface that the custom OBJREF of error information names.
const IERRORINFO: Uuid = uuid!("1cf2b120-547d-101b-8e65-08002b2bd119");

/// The most extensions in one message; two are known.
pub(crate) const MAX_EXTENSIONS: usize = 64;
/// What stands before a string of error information that is there.
const PRESENT: u32 = u32::MAX;

/// An ORPC_EXTENT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Which extension it is. Receivers pass over what they do not know.
    pub id: Uuid,
    /// Its data, without padding.
    pub data: Bytes,
}

/// ORPCTHIS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrpcThis {
    /// COMVERSION of the caller.
    pub version: (u16, u16),
    /// ORPCF_*; 0, or 1 for a local call.
    pub flags: u32,
    /// Causality identifier.
    pub cid: Uuid,
    /// Extensions.
    pub extensions: Vec<Extent>,
}

impl OrpcThis {
    /// Length in bytes without extensions.
    pub const LEN: usize = 32;

    /// Reads it from the begin of a request's stub, and says how many bytes it took. With extensions that may be no
    /// multiple of 8: alignment goes on counting from the begin of the stub.
    pub fn parse(stub: &Bytes, little: bool) -> Result<(Self, usize), Violation> {
        let mut get = Get::new(stub, little);
        let version = (get.u16()?, get.u16()?);
        let [flags, _] = get.words()?;
        let cid = get.uuid()?;
        let extensions = extents(&mut get, stub)?;
        Ok((Self { version, flags, cid, extensions }, get.position()))
    }

    /// Writes it, little-endian, to the begin of a stub.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.0.to_le_bytes());
        out.extend_from_slice(&self.version.1.to_le_bytes());
        out.extend_from_slice(&u64::from(self.flags).to_le_bytes());
        out.extend_from_slice(&self.cid.to_bytes_le());
        put_extents(out, true, &self.extensions, false);
    }
}

/// ORPCTHAT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrpcThat {
    /// ORPCF_*; 0.
    pub flags: u32,
    /// Extensions.
    pub extensions: Vec<Extent>,
}

impl OrpcThat {
    /// Length in bytes without extensions.
    pub const LEN: usize = 8;

    /// Reads it from the begin of a response's stub, and says how many bytes it took, as [`OrpcThis::parse`] does.
    pub fn parse(stub: &Bytes, little: bool) -> Result<(Self, usize), Violation> {
        let mut get = Get::new(stub, little);
        let flags = get.u32()?;
        let extensions = extents(&mut get, stub)?;
        Ok((Self { flags, extensions }, get.position()))
    }

    /// Writes it, little-endian, to the begin of a stub.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.flags.to_le_bytes());
        put_extents(out, true, &self.extensions, false);
    }
}

/// The pointer to an ORPC_EXTENT_ARRAY, and what it points to.
fn extents(get: &mut Get<'_>, stub: &Bytes) -> Result<Vec<Extent>, Violation> {
    if !get.pointer()? {
        return Ok(Vec::new());
    }
    let [count, _] = get.words()?.map(|word| word as usize);
    if !get.pointer()? {
        return Ok(Vec::new());
    }
    let slots = get.conformance(4, None)?;
    if slots > MAX_EXTENSIONS || count > slots {
        return Err(Violation::BoundExceeded);
    }
    let held = get.items(slots, 4, Get::pointer)?;
    let mut found = Vec::new();
    for _ in held.into_iter().filter(|held| *held) {
        let room = get.conformance(1, None)?;
        let id = get.uuid()?;
        let size = get.u32()? as usize;
        if size > room {
            return Err(Violation::BadVariance);
        }
        let from = get.position();
        get.take(room)?;
        found.push(Extent { id, data: stub.slice(from..from + size) });
    }
    Ok(found)
}

/// Appends the pointer to an ORPC_EXTENT_ARRAY, and what it points to, to the stub that begins with `out`, at a multiple of 4; a null
/// pointer where there are no extensions. `odd` has it end half a block of eight later.
pub(crate) fn put_extents(out: &mut Vec<u8>, little: bool, extents: &[Extent], odd: bool) {
    let word = |out: &mut Vec<u8>, value: usize| {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        out.extend_from_slice(&if little { value.to_le_bytes() } else { value.to_be_bytes() });
    };
    const REFERENT: usize = FIRST_REFERENT as usize;
    word(out, if extents.is_empty() { 0 } else { REFERENT });
    if extents.is_empty() {
        return;
    }
    let slots = extents.len().next_multiple_of(2) + usize::from(odd);
    word(out, extents.len());
    word(out, 0);
    word(out, REFERENT + 4);
    word(out, slots);
    for slot in 0..slots {
        word(out, if slot < extents.len() { REFERENT + 8 + 4 * slot } else { 0 });
    }
    for extent in extents {
        let room = extent.data.len().next_multiple_of(8);
        word(out, room);
        out.extend_from_slice(&if little { extent.id.to_bytes_le() } else { *extent.id.as_bytes() });
        word(out, extent.data.len());
        out.extend_from_slice(&extent.data);
        out.resize(out.len() + room - extent.data.len(), 0);
    }
}

/// What IErrorInfo tells (MS-DCOM 2.2.21.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The program that failed.
    pub source: String,
    /// What happened.
    pub description: String,
    /// A help file.
    pub help_file: String,
    /// A topic in it.
    pub help_context: u32,
    /// The interface that defined the error.
    pub iid: Uuid,
}

/// The error information among these extensions; nothing if it is not there, or cannot be understood.
pub fn error_info(extensions: &[Extent]) -> Option<ErrorInfo> {
    let extent = extensions.iter().find(|extent| extent.id == ERROR_EXTENSION)?;
    let (objref, _) = ObjRef::parse(&extent.data).ok()?;
    match objref {
        ObjRef::Custom { clsid: ERROR_OBJECT, data, .. } => read_error(&data).ok(),
        _ => None,
    }
}

/// Error information as an extension of ORPCTHAT.
pub fn error_extent(info: &ErrorInfo) -> Extent {
    let mut put = StubWriter::default();
    put.words(&[0, info.help_context]).uuid(info.iid);
    for text in [&info.source, &info.description, &info.help_file] {
        let mut units: Vec<u16> = text.encode_utf16().collect();
        if units.is_empty() {
            put.u32(0);
            continue;
        }
        // The specification does not say whether the next field is aligned. With one zero more where the number of
        // units is odd, nobody has to know.
        units.resize((units.len() + 1).next_multiple_of(2), 0);
        put.u32(PRESENT).units(&units);
    }
    let objref = ObjRef::custom(IERRORINFO, ERROR_OBJECT, put.bytes, 0);
    Extent { id: ERROR_EXTENSION, data: objref.write() }
}

/// The octets that OLE's error object marshals itself as; they are no NDR, and the specification leaves gaps.
fn read_error(data: &[u8]) -> Result<ErrorInfo, Violation> {
    let mut get = Get::new(data, true);
    let [_, help_context] = get.words()?;
    let iid = get.uuid()?;
    let mut at = get.position();
    let source = error_text(data, &mut at)?;
    let description = error_text(data, &mut at)?;
    let help_file = error_text(data, &mut at)?;
    Ok(ErrorInfo { source, description, help_file, help_context, iid })
}

/// A string of it, from `at` on, which moves behind it.
fn error_text(data: &[u8], at: &mut usize) -> Result<String, Violation> {
    let word = |at: usize| data.get(at..)?.first_chunk().map(|raw| u32::from_le_bytes(*raw));
    // Aligned or not: whichever place holds one of the two values there are.
    let mut places = [*at, at.next_multiple_of(4)].into_iter();
    let place = places.find(|place| matches!(word(*place), Some(0 | PRESENT))).ok_or(Violation::BadObjref)?;
    *at = place + 4;
    if word(place) == Some(0) {
        return Ok(String::new());
    }
    let mut get = Get::new(data.get(*at..).unwrap_or_default(), true);
    let text = get.wide()?;
    *at += get.position();
    Ok(text)
}

/// Writes ORPCTHIS without extensions.
/// The hot path of `OrpcThis::write`.
#[inline]
pub(crate) fn put_this(out: &mut Vec<u8>, minor: u16, causality: u128) {
    let mut this = [0; OrpcThis::LEN];
    let [minor, _] = minor.to_le_bytes();
    let (head, rest) = this.split_at_mut(12);
    head.copy_from_slice(&[crate::VERSION.0, 0, minor, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    if let Some(cid) = rest.first_chunk_mut() {
        *cid = causality.to_le_bytes();
    }
    out.extend_from_slice(&this);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(description: &str) -> ErrorInfo {
        ErrorInfo {
            source: "Bank".into(),
            description: description.into(),
            help_file: String::new(),
            help_context: 7,
            iid: IERRORINFO,
        }
    }

    #[test]
    fn error_information_comes_through_an_extension_of_orpcthat() {
        for text in ["", "x", "no", "überzogen", "a longer description"] {
            let that = OrpcThat { flags: 0, extensions: vec![error_extent(&info(text))] };
            let mut stub = Vec::new();
            that.write(&mut stub);
            let len = stub.len();
            stub.extend([0x05, 0x40, 0, 0x80]);
            let (again, taken) = OrpcThat::parse(&stub.into(), true).unwrap();
            assert_eq!((&again, taken), (&that, len));
            assert_eq!(error_info(&again.extensions), Some(info(text)));
        }
    }

    #[test]
    fn error_information_is_read_whether_its_fields_are_aligned_or_not() {
        for padding in [0, 2] {
            let mut data = [0_u32, 7].map(u32::to_le_bytes).concat();
            data.extend(IERRORINFO.to_bytes_le());
            for text in ["ab", "four"] {
                data.extend(PRESENT.to_le_bytes());
                for count in [text.len() + 1, 0, text.len() + 1] {
                    data.extend(u32::try_from(count).unwrap().to_le_bytes());
                }
                data.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
                data.resize(data.len() + padding, 0);
            }
            data.extend([0; 4]);
            let read = read_error(&data).unwrap();
            assert_eq!(
                (read.source.as_str(), read.description.as_str()),
                ("ab", "four"),
                "padding {padding}"
            );
        }
    }

    #[test]
    fn orpcthis_is_read_in_both_byte_orders_and_never_beyond_its_end() {
        let cid = Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
        let extent = |octet, len| Extent { id: Uuid::from_u128(5), data: vec![octet; len].into() };
        let extensions = vec![extent(1, 3), extent(2, 8), extent(3, 0)];
        let this = OrpcThis { version: (5, 7), flags: 0, cid, extensions };
        let mut stub = Vec::new();
        this.write(&mut stub);
        let stub = Bytes::from(stub);
        assert_eq!(OrpcThis::parse(&stub, true), Ok((this, stub.len())));
        for len in 0..stub.len() {
            assert!(OrpcThis::parse(&stub.slice(..len), true).is_err());
        }
        let big = [&[0, 5, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0][..], &cid.into_bytes(), &[0; 4]].concat();
        let (read, taken) = OrpcThis::parse(&big.into(), false).unwrap();
        assert_eq!((read.version, read.cid, taken), ((5, 7), cid, OrpcThis::LEN));
    }

    #[test]
    fn claims_of_too_many_extensions_are_refused() {
        let claim = |slots: u32, count: u32| {
            let mut stub = [0, 1, count, 0, 1, slots].map(u32::to_le_bytes).concat();
            stub.resize(600, 0);
            OrpcThat::parse(&stub.into(), true)
        };
        assert!(claim(2, 0).is_ok());
        assert_eq!(claim(2, 4), Err(Violation::BoundExceeded));
        assert_eq!(claim(66, 66), Err(Violation::BoundExceeded));
        assert_eq!(claim(u32::MAX, 2), Err(Violation::CountBeyondMessage));
    }
}
