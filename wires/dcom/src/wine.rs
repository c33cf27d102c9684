//! What Wine's COM does in its own way where a process of it listens on TCP (`RpcServerUseProtseqEp`), seen on Wine 8: the
//! dialect of addresses with `?dialect=wine`.
//!
//! * It neither activates nor resolves there: an object is named by its OBJREF, and where its process listens is said beside
//!   it. Of the exporter nothing has to be asked: the IPID of its IRemUnknown follows from the OXID.
//! * A connection carries one interface, which its bind names, with a transfer syntax of zeros; there is no alter_context. So
//!   connections are told apart by interface, and a call that comes to another one's is sent on
//!   (`session/connecting/jobs.rs`).
//! * ORPC is 5.3 at most, nothing is authenticated, nothing is pinged.
//! * In NDR, an interface pointer is a length and the OBJREF, without a referent; the members of structs that are not copied as
//!   a whole are not aligned; the elements of a SAFEARRAY stand in place (see `ndr`).
//! * An object with a free-threaded marshaler may be an OBJREF of the custom form that holds a standard one.
//!
//! Callbacks are not to be had: Wine looks for every object in a process of its own machine.

mod dialect;

pub use dialect::Dialect;
pub(crate) use dialect::{MINOR, interface_of};

use crate::Level;
use crate::security::Security;
use everywire_model::{Endpoint, Failure, Initiator, Kind, Reference, Visit};

impl Dialect {
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

/// The security of a way to objects of a process of Wine that listens here.
pub(crate) fn security(at: Endpoint) -> Security {
    let mut security = Security::new(Level::None);
    security.dialect = Dialect::Wine(at);
    security
}

/// The failure of an address that asks Wine for more than there is.
#[cold]
pub(crate) fn refusal(what: &str) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::User, format!("Wine's COM {what} over TCP"))
        .with_hint("name the object by its OBJREF: objref:BASE64:?dialect=wine&at=HOST:PORT")
}

#[cfg(test)]
mod tests {
    use super::dialect::STANDARD_MARSHALER;
    use super::*;
    use crate::bindings::DualStringArray;
    use crate::objref::{ObjRef, StdObjRef};
    use crate::{IUNKNOWN, REM_UNKNOWN, address};
    use everywire_model::Profile;
    use uuid::Uuid;

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
            let security = security(at(1));
            let components = security.dialect.components(Uuid::from_u128(iid));
            Profile { endpoints: vec![at(1)], components, options: security.into(), ..Profile::default() }
        };
        let scope = |way: Profile| way.options.scope(&way);
        assert_eq!(way(1).options, way(2).options);
        assert_eq!(scope(way(1)), scope(way(1)));
        assert_ne!(scope(way(1)), scope(way(2)));
        // IUnknown has no calls: its objects are asked by IRemUnknown.
        assert_eq!(scope(way(IUNKNOWN.as_u128())), scope(way(REM_UNKNOWN.as_u128())));
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
}
