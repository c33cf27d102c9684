//! The dialect of the other end, as it stands in a way's security: which OBJREFs it takes and sends, and what follows from them.

use crate::bindings::DualStringArray;
use crate::objref::{ObjRef, StdObjRef};
use crate::resolver::OxidResolution;
use crate::stub::Get;
use crate::tags::TAG_INTERFACE;
use crate::{IUNKNOWN, REM_UNKNOWN};
use bytes::Bytes;
use everywire_model::{Endpoint, Profile};
use uuid::{Uuid, uuid};

/// The newest minor version of ORPC that it takes.
/// Wine's `COM_MINOR_VERSION`; it refuses a greater one.
pub(crate) const MINOR: u16 = 3;

/// Octets of a standard OBJREF before its bindings.
/// Signature, flags and IID take 24 of them.
const NAMING: usize = 24 + StdObjRef::LEN;

/// The class of what the standard marshaler wrote, where an OBJREF of the custom form says so.
pub(super) const STANDARD_MARSHALER: Uuid = uuid!("00000017-0000-0000-c000-000000000046");

/// How the other end departs from the specification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As the specification says.
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
    pub(crate) fn resolution(&self, oxid: u64) -> Option<OxidResolution> {
        let Self::Wine(at) = self else { return None };
        let bindings = DualStringArray::of(std::slice::from_ref(at), Vec::new());
        // A UUID whose last 8 octets are those of the number.
        // Wine makes the IPID of an apartment's IRemUnknown like this, so it can be told without asking.
        let mut ipid = [0xff; 16];
        if let Some(last) = ipid.last_chunk_mut() {
            *last = oxid.to_le_bytes();
        }
        let rem_unknown = Uuid::from_bytes_le(ipid);
        Some(OxidResolution { bindings, rem_unknown, authn_hint: 1, version: (5, MINOR) })
    }

    /// The components of a way to an interface.
    pub(crate) fn components(&self, iid: Uuid) -> Vec<(u32, Bytes)> {
        let iid = if iid == IUNKNOWN { REM_UNKNOWN } else { iid };
        match self {
            Self::Standard => Vec::new(),
            Self::Wine(_) => vec![(TAG_INTERFACE, Bytes::copy_from_slice(&iid.to_bytes_le()))],
        }
    }
}

/// The only interface that may be called by a way, where connections carry one.
pub(crate) fn interface_of(profile: &Profile, dialect: &Dialect) -> Option<Uuid> {
    let named = || profile.component(TAG_INTERFACE)?.as_ref().try_into().ok().map(Uuid::from_bytes_le);
    dialect.is_wine().then(|| named().unwrap_or(REM_UNKNOWN))
}

/// What its standard marshaler wrote: an OBJREF, or only the part that names the object.
fn marshalled(data: &Bytes) -> Option<StdObjRef> {
    match ObjRef::parse(data) {
        Ok((objref, _)) => objref.standard().map(|(std, _)| *std),
        Err(_) => StdObjRef::get(&mut Get::new(data, true)).ok(),
    }
}
