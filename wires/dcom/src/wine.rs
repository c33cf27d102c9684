//! What Wine's COM does in its own way where a process of it listens on TCP (`RpcServerUseProtseqEp`), seen on Wine 8: the
//! dialect of addresses with `?dialect=wine`.
//!
//! * It neither activates nor resolves there: an object is named by its OBJREF, and where its process listens is said beside
//!   it. Of the exporter nothing has to be asked: the IPID of its IRemUnknown follows from the OXID.
//! * A connection carries one interface, which its bind names, with a transfer syntax of zeros; there is no alter_context. So
//!   connections are told apart by interface, and a call that comes to another one's is sent on
//!   (`session/connecting/wine.rs`).
//! * ORPC is 5.3 at most, nothing is authenticated, nothing is pinged.
//! * In NDR, an interface pointer is a length and the OBJREF, without a referent; the members of structs that are not copied as
//!   a whole are not aligned; the elements of a SAFEARRAY stand in place (see `ndr`).
//! * An object with a free-threaded marshaler may be an OBJREF of the custom form that holds a standard one.
//!
//! Callbacks are not to be had: Wine looks for every object in a process of its own machine.

use crate::bindings::DualStringArray;
use crate::ndr::alignment;
use crate::objref::{ObjRef, StdObjRef};
use crate::resolver::Resolved;
use crate::security::Security;
use crate::stub::Get;
use crate::{IUNKNOWN, Level, REM_UNKNOWN};
use bytes::Bytes;
use everywire_model::shape::{Order, Shape, Struct};
use everywire_model::{Endpoint, Failure, Initiator, Kind, Profile, Reference, Visit};
use uuid::{Uuid, uuid};

/// What [`everywire_model::Body::dialect`] says of values of this dialect.
pub(crate) const WINE: u32 = 1;

/// The newest minor version of ORPC that it takes.
pub(crate) const MINOR: u16 = 3;

/// What stands behind the discriminator of a union is aligned so, even if it is nothing: Wine's interface compiler has each
/// discriminator as a number of 32 bits.
pub(crate) const DISCRIMINATOR: usize = 4;

/// Octets of a standard OBJREF before its bindings.
const NAMING: usize = 24 + StdObjRef::LEN;

/// The component of a way that says which interface is called by it: 16 octets.
const TAG_INTERFACE: u32 = 0x4649_574e;

/// The class of what the standard marshaler wrote, where an OBJREF of the custom form says so.
const STANDARD_MARSHALER: Uuid = uuid!("00000017-0000-0000-c000-000000000046");

/// How the other end departs from the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Not at all.
    #[default]
    Standard,
    /// As Wine does; all objects are in a process that listens here.
    Wine(Endpoint),
}

impl Dialect {
    /// Whether it is Wine's.
    pub fn is_wine(&self) -> bool {
        matches!(self, Self::Wine(_))
    }

    /// An OBJREF as others would have sent it, with where the object is.
    pub(crate) fn plain(&self, objref: &ObjRef) -> Option<ObjRef> {
        let Self::Wine(at) = self else { return None };
        let resolver = DualStringArray::of(std::slice::from_ref(at), Vec::new());
        let (iid, std) = match objref {
            ObjRef::Custom { iid, clsid: STANDARD_MARSHALER, data, .. } => (*iid, marshalled(data)?),
            other => (other.iid(), *other.standard()?.0),
        };
        Some(ObjRef::Standard { iid, std, resolver })
    }

    /// The octets of an OBJREF as the other end takes it: Wine takes none that says where its resolver is.
    pub(crate) fn sent(&self, objref: &ObjRef) -> Bytes {
        let raw = objref.write();
        match (self, objref, raw.get(..NAMING)) {
            (Self::Wine(_), ObjRef::Standard { .. }, Some(naming)) => [naming, &[0; 4]].concat().into(),
            _ => raw,
        }
    }

    /// What an OXID resolver would say of an exporter.
    pub(crate) fn resolution(&self, oxid: u64) -> Option<Resolved> {
        let Self::Wine(at) = self else { return None };
        let bindings = DualStringArray::of(std::slice::from_ref(at), Vec::new());
        // A UUID whose last 8 octets are those of the number.
        let mut ipid = [0xff; 16];
        if let Some(last) = ipid.last_chunk_mut() {
            *last = oxid.to_le_bytes();
        }
        let rem_unknown = Uuid::from_bytes_le(ipid);
        Some(Resolved { bindings, rem_unknown, authn_hint: 1, version: (5, MINOR) })
    }

    /// The components of a way to an interface.
    pub(crate) fn components(&self, iid: Uuid) -> Vec<(u32, Bytes)> {
        let iid = if iid == IUNKNOWN { REM_UNKNOWN } else { iid };
        match self {
            Self::Standard => Vec::new(),
            Self::Wine(_) => vec![(TAG_INTERFACE, Bytes::copy_from_slice(&iid.to_bytes_le()))],
        }
    }

    /// Whether a reference can be passed on to the other end.
    ///
    /// # Errors
    /// It leads elsewhere than to where the other end is, and so Wine would not find it.
    pub(crate) fn admit(&self, reference: &Reference) -> Visit<()> {
        let ways = || reference.profiles.iter().filter(|profile| profile.wire == "dcom");
        if !self.is_wine() || ways().any(|profile| Security::of(profile).dialect == *self) {
            return Ok(());
        }
        let what =
            "Wine's COM calls objects of its own machine only, so this reference cannot be passed on to it";
        Err(Failure::new(Kind::Unsupported, Initiator::User, what)
            .with_hint("pass on references that came from the same process; have events asked for instead of called back"))
    }
}

/// The only interface that may be called by a way, where connections carry one.
pub(crate) fn interface_of(profile: &Profile, dialect: &Dialect) -> Option<Uuid> {
    let named = || profile.component(TAG_INTERFACE)?.as_ref().try_into().ok().map(Uuid::from_bytes_le);
    dialect.is_wine().then(|| named().unwrap_or(REM_UNKNOWN))
}

/// What tells connections to one endpoint apart.
pub(crate) fn lane(profile: &Profile) -> Bytes {
    let security = Security::of(profile);
    match interface_of(profile, &security.dialect) {
        None => security.lane(),
        Some(iid) => [&*security.lane(), &iid.to_bytes_le()].concat().into(),
    }
}

/// The security of a way to objects of a process of Wine that listens here.
pub(crate) fn security(at: Endpoint) -> Security {
    let mut security = Security::new(Level::None);
    security.dialect = Dialect::Wine(at);
    security.sealed()
}

/// The failure of an address that asks Wine for more than there is.
#[cold]
pub(crate) fn refusal(what: &str) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::User, format!("Wine's COM {what} over TCP"))
        .with_hint("name the object by its OBJREF: objref:BASE64:?dialect=wine&at=HOST:PORT")
}

/// What its standard marshaler wrote: an OBJREF, or only the part that names the object.
fn marshalled(data: &Bytes) -> Option<StdObjRef> {
    match ObjRef::parse(data) {
        Ok((objref, _)) => objref.standard().map(|(std, _)| *std),
        Err(_) => StdObjRef::get(&mut Get::new(data, true)).ok(),
    }
}

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

/// Whether a value stands in place, whole, and holds nothing else.
pub(crate) fn is_scalar(shape: &Shape) -> bool {
    let shape = shape.resolved();
    shape.width().is_some() || matches!(shape, Shape::Enum(_) | Shape::Char | Shape::WideChar)
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
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::address;
    use crate::ndr::{NdrSink, NdrSource, References};
    use everywire_model::shape::{Enum, Field, Hold};
    use everywire_model::visit::{Sink, Source};
    use everywire_model::{Budget, WireState};
    use std::borrow::Cow;
    use std::sync::Arc;

    const OXID: u64 = 0x20_0000_cafe;

    fn at(port: u16) -> Endpoint {
        Endpoint::Tcp { host: "127.0.0.1".into(), port }
    }

    fn objref(clsid: Option<Uuid>) -> ObjRef {
        let (iid, ipid) = (Uuid::from_u128(7), Uuid::from_u128(9));
        let std = StdObjRef { flags: 0, public_refs: 5, oxid: OXID, oid: 4, ipid };
        let standard = ObjRef::Standard { iid, std, resolver: DualStringArray::default() };
        match clsid {
            None => standard,
            Some(clsid) => ObjRef::Custom { iid, clsid, extension: 0, reserved: 0, data: standard.write() },
        }
    }

    #[test]
    fn an_address_says_where_the_process_is() {
        let bare = objref(None).moniker();
        let reference = address::parse(&format!("{bare}?dialect=wine&at=127.0.0.1:7001")).unwrap();
        let profile = &reference.profiles[0];
        assert_eq!(profile.endpoints, [at(7001)]);
        let security = Security::of(profile);
        assert_eq!((&security.dialect, security.level), (&Dialect::Wine(at(7001)), Level::None));
        assert_eq!(interface_of(profile, &security.dialect), Some(Uuid::from_u128(7)));
        // What is printed says it itself.
        let printed = address::print_friendly(&reference);
        assert!(printed.ends_with(":?dialect=wine"), "{printed}");
        assert_eq!(address::parse(&printed).unwrap().profiles[0].endpoints, [at(7001)]);
        // One that is not from Wine may be sought elsewhere, too.
        let other = address::parse(&format!("{bare}?at=127.0.0.1:7002&level=none")).unwrap();
        assert_eq!(other.profiles[0].endpoints, [at(7002)]);
        assert_eq!(Security::of(&other.profiles[0]).dialect, Dialect::Standard);
    }

    #[test]
    fn what_wine_lacks_is_refused() {
        let bare = objref(None).moniker();
        let foreign = objref(Some(Uuid::from_u128(1))).moniker();
        for (address, part) in [
            (format!("{bare}?dialect=wine"), "does not say"),
            (format!("{bare}?dialect=wine&at=h:1&level=connect"), "level=none"),
            (format!("{bare}?dialect=beer"), "no dialect"),
            (format!("{foreign}?dialect=wine&at=h:1"), "its own class"),
            ("dcom://h:1/Class?dialect=wine".to_owned(), "neither activates nor resolves"),
        ] {
            let failure = address::parse(&address).unwrap_err();
            assert!(failure.to_string().contains(part), "{address}: {failure}");
        }
        assert!(address::listen("dcom://0.0.0.0:1?dialect=wine").is_err());
    }

    #[test]
    fn connections_are_told_apart_by_interface() {
        let way = |iid: u128| {
            let security = Arc::new(security(at(1)));
            let components = security.dialect.components(Uuid::from_u128(iid));
            Profile { endpoints: vec![at(1)], components, lease: security.lease(), ..Profile::default() }
        };
        assert_eq!(lane(&way(1)), lane(&way(1)));
        assert_ne!(lane(&way(1)), lane(&way(2)));
        // IUnknown has no calls: its objects are asked by IRemUnknown.
        assert_eq!(lane(&way(IUNKNOWN.as_u128())), lane(&way(REM_UNKNOWN.as_u128())));
        let nothing = Profile { components: Vec::new(), ..way(1) };
        assert_eq!(interface_of(&nothing, &Dialect::Wine(at(1))), Some(REM_UNKNOWN));
        assert_eq!(interface_of(&nothing, &Dialect::Standard), None);
    }

    #[test]
    fn objrefs_are_those_of_others_by_other_words() {
        let wine = Dialect::Wine(at(7001));
        let known = wine.resolution(OXID).unwrap();
        assert_eq!(known.rem_unknown.to_string(), "ffffffff-ffff-ffff-feca-000020000000");
        for form in [objref(None), objref(Some(STANDARD_MARSHALER))] {
            let plain = wine.plain(&form).unwrap();
            assert_eq!(plain.standard().unwrap().1.endpoints(135), [at(7001)]);
            assert_eq!(plain.standard().unwrap().0.oxid, OXID);
            let sent = wine.sent(&plain);
            assert_eq!((sent.len(), sent.last_chunk()), (68, Some(&[0; 4])));
        }
        assert!(wine.plain(&objref(Some(Uuid::from_u128(1)))).is_none());
        assert!(Dialect::Standard.plain(&objref(None)).is_none());
    }

    /// References of this dialect, of which there are none.
    struct Nowhere;

    impl References for Nowhere {
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

    impl WireState for Nowhere {
        fn servants(&self) -> Vec<Arc<dyn everywire_model::Servant>> {
            Vec::new()
        }
    }

    fn structure(shapes: Vec<Shape>) -> Shape {
        let name = || Cow::Borrowed("S");
        let fields = shapes.into_iter().map(|shape| Field { name: Cow::Borrowed("f"), shape }).collect();
        Shape::Struct(Hold::new(Struct { name: name(), id: name(), fields: Cow::Owned(fields) }))
    }

    #[test]
    fn structs_with_short_enumerations_are_packed_and_others_are_not() {
        let members = Cow::Owned(vec![(Cow::Borrowed("A"), 5)]);
        let short = Enum { name: Cow::Borrowed("E"), id: Cow::Borrowed("E"), members, bits: 16 };
        let packed = structure(vec![Shape::Enum(Hold::new(short.clone())), Shape::U32]);
        let plain = structure(vec![Shape::U16, Shape::U32]);
        let mut sink = NdrSink::new(true).with_references(Arc::new(Nowhere));
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
