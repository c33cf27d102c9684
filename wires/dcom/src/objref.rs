//! Marshalled interface pointers: OBJREF (MS-DCOM 2.2.18).
//!
//! An OBJREF names an interface of an object for everybody: by its exporter (OXID), object (OID) and
//! interface (IPID), with the resolver that knows where the exporter is. It also carries references that the
//! sender has counted for the receiver. All of it is little-endian in any stub.
//!
//! States: none.
//!
//! Invariants: what was parsed and is written again has the same octets, as far as they mean something
//! (missing terminators of bindings are added). A custom OBJREF ends only with what it stands in. The number
//! of elements of an extended one is bounded; they are kept unread.

use crate::bindings::DualStringArray;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use base64_simd::forgiving_decode_to_vec;
use bytes::Bytes;
use everywire_model::Endpoint;
use std::net::IpAddr;
use uuid::Uuid;

/// The first word, `MEOW`.
pub const SIGNATURE: u32 = 0x574f_454d;
/// The word around the elements of an extended OBJREF.
const EXTENDED_SIGNATURE: u32 = 0x4e53_5956;
/// The most elements that an extended OBJREF may claim; there is but one.
const MAX_ELEMENTS: u32 = 16;

/// OBJREF_STANDARD, the form of nearly all.
const STANDARD: u32 = 1;
/// OBJREF_HANDLER.
const HANDLER: u32 = 2;
/// OBJREF_CUSTOM.
const CUSTOM: u32 = 4;
/// OBJREF_EXTENDED.
const EXTENDED: u32 = 8;

/// What the text of an OBJREF begins with.
const MONIKER: &str = "objref:";

/// What names an interface of an object anywhere: STDOBJREF (2.2.18.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StdObjRef {
    /// [`StdObjRef::NO_PING`] or 0.
    pub flags: u32,
    /// References that the receiver gets.
    pub public_refs: u32,
    /// The object exporter.
    pub oxid: u64,
    /// The object.
    pub oid: u64,
    /// The interface of the object.
    pub ipid: Uuid,
}

impl StdObjRef {
    /// The object lives without pings (SORF_NOPING).
    pub const NO_PING: u32 = 0x1000;
    /// Length in bytes.
    pub const LEN: usize = 40;

    pub(crate) fn get(stub: &mut Get<'_>) -> Result<Self, Violation> {
        Ok(Self {
            flags: stub.u32()?,
            public_refs: stub.u32()?,
            oxid: stub.u64()?,
            oid: stub.u64()?,
            ipid: stub.uuid()?,
        })
    }

    pub(crate) fn put<'p>(&self, out: &'p mut StubWriter) -> &'p mut StubWriter {
        out.u32(self.flags).u32(self.public_refs).u64(self.oxid).u64(self.oid).uuid(self.ipid)
    }
}

/// A marshalled interface pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjRef {
    /// OBJREF_STANDARD.
    Standard {
        /// The interface.
        iid: Uuid,
        /// OXID, OID and IPID of the object, and how many references come with it.
        std: StdObjRef,
        /// The exporter's resolver.
        resolver: DualStringArray,
    },
    /// OBJREF_HANDLER, whose client shall put a handler in front of it, or OBJREF_EXTENDED, with the exporter's context: neither is used here.
    Further {
        /// The interface.
        iid: Uuid,
        /// OXID, OID and IPID of the object, and how many references come with it.
        std: StdObjRef,
        /// The exporter's resolver.
        resolver: DualStringArray,
        /// Which of the two it is.
        form: u32,
        /// What stands before the bindings, as it came: the handler's class, or a signature.
        before: Bytes,
        /// What stands behind them: nothing, or the number of DATAELEMENTs, the signature again, and the DATAELEMENTs.
        behind: Bytes,
    },
    /// OBJREF_CUSTOM: marshalled by the object itself.
    Custom {
        /// The interface.
        iid: Uuid,
        /// The class that knows how to read `data` in the receiver's process.
        clsid: Uuid,
        /// Size of the extension, which is never used.
        extension: u32,
        /// A word that means nothing, but mostly is the length of the data, or 8 more.
        reserved: u32,
        /// What the object wrote.
        data: Bytes,
    },
}

impl ObjRef {
    /// Reads one (always little-endian), and says how many bytes it took. A custom one takes everything.
    pub fn parse(raw: &Bytes) -> Result<(Self, usize), Violation> {
        let mut stub = Get::new(raw, true);
        if stub.u32()? != SIGNATURE {
            return Err(Violation::BadObjref);
        }
        let flags = stub.u32()?;
        let iid = stub.uuid()?;
        let found = match flags {
            STANDARD => {
                Self::Standard { iid, std: StdObjRef::get(&mut stub)?, resolver: bindings(&mut stub, raw)? }
            }
            HANDLER | EXTENDED => Self::further(iid, flags, &mut stub, raw)?,
            CUSTOM => {
                let clsid = stub.uuid()?;
                let extension = stub.u32()?;
                let reserved = stub.u32()?;
                let data = raw.slice(stub.position()..);
                stub.take(data.len())?;
                Self::Custom { iid, clsid, extension, reserved, data }
            }
            _ => return Err(Violation::BadObjref),
        };
        Ok((found, stub.position()))
    }

    /// OBJREF_HANDLER (2.2.18.5) or OBJREF_EXTENDED (2.2.18.7). The signature of the latter stands twice, before the bindings and
    /// behind the count. The elements are not understood here: they are measured, and passed on as they came.
    fn further(iid: Uuid, form: u32, stub: &mut Get<'_>, raw: &Bytes) -> Result<Self, Violation> {
        let std = StdObjRef::get(stub)?;
        let before = Bytes::copy_from_slice(stub.take(if form == HANDLER { 16 } else { 4 })?);
        let resolver = bindings(stub, raw)?;
        let from = stub.position();
        if form == EXTENDED {
            // Fields behind the bindings, whose length may be odd in words, follow without padding.
            let count = packed(stub)?;
            if *before != EXTENDED_SIGNATURE.to_le_bytes() || packed(stub)? != EXTENDED_SIGNATURE {
                return Err(Violation::BadObjref);
            }
            if count > MAX_ELEMENTS {
                return Err(Violation::BoundExceeded);
            }
            for _ in 0..count {
                // A DATAELEMENT: its GUID and its size; then the size rounded up to 8, which is what it takes
                // (2.2.18.8).
                stub.take(20)?;
                let rounded = packed(stub)?;
                stub.take(usize::try_from(rounded).map_err(|_| Violation::Truncated)?)?;
            }
        }
        let behind = raw.slice(from..stub.position());
        Ok(Self::Further { iid, std, resolver, form, before, behind })
    }

    /// One that an object writes itself, for what this class reads. The word that means nothing counts `more` than the data.
    pub(crate) fn custom(iid: Uuid, clsid: Uuid, data: Vec<u8>, more: usize) -> Self {
        let reserved = u32::try_from(data.len() + more).unwrap_or_default();
        Self::Custom { iid, clsid, extension: 0, reserved, data: data.into() }
    }

    /// Its bytes.
    pub fn write(&self) -> Bytes {
        let form = match self {
            Self::Standard { .. } => STANDARD,
            Self::Further { form, .. } => *form,
            Self::Custom { .. } => CUSTOM,
        };
        let mut out = StubWriter::default();
        out.u32(SIGNATURE).u32(form).uuid(self.iid());
        match self {
            Self::Standard { std, resolver, .. } => resolver.write(&mut std.put(&mut out).bytes),
            Self::Further { std, resolver, before, behind, .. } => {
                resolver.write(&mut std.put(&mut out).raw(before).bytes);
                out.raw(behind);
            }
            Self::Custom { clsid, extension, reserved, data, .. } => {
                out.uuid(*clsid).u32(*extension).u32(*reserved).raw(data);
            }
        }
        out.bytes.into()
    }

    /// The interface.
    pub fn iid(&self) -> Uuid {
        match self {
            Self::Standard { iid, .. } | Self::Further { iid, .. } | Self::Custom { iid, .. } => *iid,
        }
    }

    /// What names the object and who resolves it; nothing if it is marshalled by itself.
    pub fn standard(&self) -> Option<(&StdObjRef, &DualStringArray)> {
        match self {
            Self::Standard { std, resolver, .. } | Self::Further { std, resolver, .. } => {
                Some((std, resolver))
            }
            Self::Custom { .. } => None,
        }
    }

    /// The same with another place of the exporter's resolver; one that is marshalled by itself stays as it is.
    #[must_use]
    pub fn resolved_at(mut self, at: &Endpoint) -> Self {
        if let Some(resolver) = self.resolver() {
            let security = std::mem::take(&mut resolver.security);
            *resolver = DualStringArray::of(std::slice::from_ref(at), security);
        }
        self
    }

    /// The same for the peer of a connection that ends here at this address: see [`DualStringArray::seen_at`].
    #[must_use]
    pub fn seen_at(mut self, local: Option<IpAddr>) -> Self {
        if let Some(resolver) = self.resolver() {
            *resolver = std::mem::take(resolver).seen_at(local);
        }
        self
    }

    /// The exporter's resolver; none of what is marshalled by itself.
    fn resolver(&mut self) -> Option<&mut DualStringArray> {
        match self {
            Self::Standard { resolver, .. } | Self::Further { resolver, .. } => Some(resolver),
            Self::Custom { .. } => None,
        }
    }

    /// The `objref:BASE64:` moniker (MS-DCOM does not name it; it is what CreateObjrefMoniker prints).
    pub fn moniker(&self) -> String {
        format!("{MONIKER}{}:", base64_simd::STANDARD.encode_to_string(self.write()))
    }

    /// Reads such a moniker. The last colon and the padding of its base64 (RFC 4648 section 4) may be missing, white space may be in it.
    pub fn from_moniker(text: &str) -> Result<Self, Violation> {
        let (scheme, coded) = text.split_at_checked(MONIKER.len()).ok_or(Violation::BadObjref)?;
        if !scheme.eq_ignore_ascii_case(MONIKER) {
            return Err(Violation::BadObjref);
        }
        let coded = coded.strip_suffix(':').unwrap_or(coded);
        let raw = forgiving_decode_to_vec(coded.as_bytes()).map_err(|_| Violation::BadText)?;
        Self::parse(&raw.into()).map(|(objref, _)| objref)
    }
}

/// The packet version of bindings at the place of `stub`, which reads `raw`.
fn bindings(stub: &mut Get<'_>, raw: &Bytes) -> Result<DualStringArray, Violation> {
    let rest = raw.get(stub.position()..).ok_or(Violation::Truncated)?;
    let entries = rest.first_chunk().map(|raw| u16::from_le_bytes(*raw)).ok_or(Violation::Truncated)?;
    let taken = stub.take(4 + 2 * usize::from(entries)).map_err(|_| Violation::CountBeyondMessage)?;
    DualStringArray::parse(taken)
}

/// Four octets that follow without padding.
fn packed(stub: &mut Get<'_>) -> Result<u32, Violation> {
    stub.take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| Violation::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::{SecurityBinding, StringBinding};

    fn examples() -> Vec<ObjRef> {
        let iid = Uuid::from_u128(0x39c1_3a4d_011e_11d0_9675_0020_afd8_adb3);
        let clsid = Uuid::from_u128(7);
        let std = StdObjRef { flags: 0, public_refs: 5, oxid: 3, oid: 4, ipid: Uuid::from_u128(99) };
        let resolver = DualStringArray {
            strings: vec![StringBinding { tower: 7, address: "127.0.0.1[13500]".into() }],
            security: vec![SecurityBinding { service: 10, principal: String::new() }],
        };
        let data = Bytes::from_static(b"by value");
        let signature = EXTENDED_SIGNATURE.to_le_bytes();
        let elements = [&[1, 0, 0, 0], &signature[..], &[1; 20], &[8, 0, 0, 0], &[2; 8]].concat();
        let further = |form, before: &[u8], behind: Vec<u8>| {
            let (before, behind) = (Bytes::copy_from_slice(before), behind.into());
            ObjRef::Further { iid, std, resolver: resolver.clone(), form, before, behind }
        };
        vec![
            ObjRef::Standard { iid, std, resolver: resolver.clone() },
            further(HANDLER, &clsid.to_bytes_le(), Vec::new()),
            ObjRef::Custom { iid, clsid, extension: 0, reserved: 16, data },
            further(EXTENDED, &signature, elements),
        ]
    }

    #[test]
    fn every_form_reads_as_written_and_as_a_moniker() {
        for objref in examples() {
            let raw = objref.write();
            assert_eq!(ObjRef::parse(&raw), Ok((objref.clone(), raw.len())));
            let moniker = objref.moniker();
            assert!(moniker.starts_with("objref:TUVPV"), "{moniker}");
            assert_eq!(ObjRef::from_moniker(&moniker), Ok(objref));
        }
    }

    #[test]
    fn a_cut_one_is_refused_wherever_it_is_cut() {
        for objref in examples() {
            let raw = objref.write();
            let end = if matches!(objref, ObjRef::Custom { .. }) { 48 } else { raw.len() };
            for len in 0..end {
                assert!(ObjRef::parse(&raw.slice(..len)).is_err(), "{objref:?} cut to {len}");
            }
        }
    }

    #[test]
    fn other_flags_other_signatures_and_other_texts_are_refused() {
        let mut raw = examples()[0].write().to_vec();
        raw[4] = 3;
        assert_eq!(ObjRef::parse(&raw.clone().into()), Err(Violation::BadObjref));
        raw[0] = 0;
        assert_eq!(ObjRef::parse(&raw.into()), Err(Violation::BadObjref));
        assert_eq!(ObjRef::from_moniker("objref:TUVP*:"), Err(Violation::BadText));
        assert_eq!(ObjRef::from_moniker("clsid:TUVP:"), Err(Violation::BadObjref));
        assert_eq!(ObjRef::from_moniker(""), Err(Violation::BadObjref));
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (raw, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!(base64_simd::STANDARD.encode_to_string(raw), text);
            for text in [text, text.trim_end_matches('='), &format!(" {text}\r\n")] {
                assert_eq!(forgiving_decode_to_vec(text.as_bytes()).unwrap(), raw.as_bytes());
            }
        }
    }
}
