//! What references say of TLS: the component of SSLIOP (CORBA Security Service 1.8, section "SSLIOP") and, in what others write,
//! the transports of CSIv2 (CORBA 3.3 part 2, section 10.5).

use crate::cdr::{DecodeError, Get, ReadCdr, encapsulation};
use bytes::Bytes;
use everywire_model::layered::TLS;
use everywire_model::{Endpoint, LayerOptions};
use std::fmt::Write;

/// The port of the profile's host that speaks TLS, and what the server offers and wants there.
pub const TAG_SSL_SEC_TRANS: u32 = 20;
/// The security mechanisms of CSIv2, each with its transport.
pub const TAG_CSI_SEC_MECH_LIST: u32 = 33;
/// TLS as a transport within those.
pub const TAG_TLS_SEC_TRANS: u32 = 36;

/// The bits of `Security::AssociationOptions`, which say what can be offered or wanted, and their names for
/// listings.
const OPTIONS: [(u16, &str); 10] = [
    (NO_PROTECTION, "no protection"),
    (INTEGRITY, "integrity"),
    (CONFIDENTIALITY, "confidentiality"),
    (8, "detect replay"),
    (0x10, "detect misordering"),
    (TRUST_IN_TARGET, "trust in target"),
    (TRUST_IN_CLIENT, "trust in client"),
    (0x80, "no delegation"),
    (0x100, "simple delegation"),
    (0x200, "composite delegation"),
];
/// The server also takes calls in the clear.
const NO_PROTECTION: u16 = 1;
/// TLS always gives the two, so they are supported and required.
const INTEGRITY: u16 = 2;
const CONFIDENTIALITY: u16 = 4;
/// Replay and misordering are detected by TLS.
const DETECTION: u16 = 8 | 0x10;
/// What a connection without TLS cannot give.
const OF_TRANSPORT: u16 = INTEGRITY | CONFIDENTIALITY | DETECTION | TRUST_IN_TARGET | TRUST_IN_CLIENT;
/// The server shows a certificate.
const TRUST_IN_TARGET: u16 = 0x20;
/// The client shows one.
const TRUST_IN_CLIENT: u16 = 0x40;

/// What a component says of one port, or of some. (These are `target_supports` and `target_requires` of the
/// specification.)
pub(crate) struct Offer {
    supports: u16,
    requires: u16,
    /// Whether the server wants no calls without TLS.
    demands: bool,
    /// Host and port; an empty host is that of the profile.
    places: Vec<(String, u16)>,
}

impl Offer {
    /// Reads the component with this tag. Of CSIv2's list only the transport of the first mechanism is read,
    /// which its server prefers. Nothing for other tags, and for mechanisms without TLS.
    fn read(tag: u32, data: &[u8]) -> Result<Option<Self>, DecodeError> {
        let mut get = Get::encapsulation(data)?;
        if tag == TAG_SSL_SEC_TRANS {
            let (supports, requires) = (get.u16()?, get.u16()?);
            let demands = requires & OF_TRANSPORT != 0 && supports & NO_PROTECTION == 0;
            return Ok(Some(Self { supports, requires, demands, places: vec![(String::new(), get.u16()?)] }));
        }
        if tag != TAG_CSI_SEC_MECH_LIST {
            return Ok(None);
        }
        // Stateful or not; then the mechanisms, the preferred first.
        get.u8()?;
        let mechanisms = get.count()?;
        if mechanisms == 0 {
            return Ok(None);
        }
        let requires = get.u16()?;
        if get.u32()? != TAG_TLS_SEC_TRANS {
            return Ok(None);
        }
        let mut transport = Get::encapsulation(get.octets()?)?;
        let supports = transport.u16()?;
        let wanted = transport.u16()?;
        // Trust in the client may be what a layer above TLS gives. Of several mechanisms another one may be content with less.
        let protection = wanted & OF_TRANSPORT | requires & (INTEGRITY | CONFIDENTIALITY);
        let demands = mechanisms == 1 && protection != 0 && supports & NO_PROTECTION == 0;
        let mut places = Vec::new();
        for _ in 0..transport.parts()? {
            places.push((transport.text()?, transport.u16()?));
        }
        Ok(Some(Self { supports, requires: requires | wanted, demands, places }))
    }
}

/// Whether these components say that their server is called over TLS alone.
pub(crate) fn demands<'c>(components: impl IntoIterator<Item = &'c (u32, Bytes)>) -> bool {
    components
        .into_iter()
        .any(|(tag, data)| matches!(Offer::read(*tag, data), Ok(Some(Offer { demands: true, .. }))))
}

/// The component of SSLIOP for a port with TLS. `asks_clients`: clients have to show a certificate there. `beside_plain`: the same
/// objects are there without TLS, too.
pub(crate) fn component(port: u16, asks_clients: bool, beside_plain: bool) -> (u32, Bytes) {
    let requires = INTEGRITY | CONFIDENTIALITY | if asks_clients { TRUST_IN_CLIENT } else { 0 };
    let supports = requires | DETECTION | TRUST_IN_TARGET | if beside_plain { NO_PROTECTION } else { 0 };
    let data = encapsulation(|put| {
        put.u16(supports);
        put.u16(requires);
        put.u16(port);
    });
    (TAG_SSL_SEC_TRANS, data.into())
}

/// An endpoint with TLS over TCP: its host, its port, and whether clients have to show a certificate. Nothing
/// for any other endpoint, and for TLS over a Unix socket, which no component can say.
pub(crate) fn place(endpoint: &Endpoint) -> Option<(&str, u16, bool)> {
    let layered = endpoint.layer().filter(|layered| layered.layer == TLS)?;
    match &layered.over {
        Endpoint::Tcp { host, port } => Some((host, *port, layered.options.get("clients").is_some())),
        _ => None,
    }
}

/// Where a profile's server speaks TLS. Components that do not decode are passed over. `host` is the
/// profile's, for components that name none. They come without options: which certificates to trust is the
/// user's to say.
pub(crate) fn endpoints<'c>(
    host: &'c str,
    components: &'c [(u32, Bytes)],
) -> impl Iterator<Item = Endpoint> + 'c {
    let offers = components.iter().filter_map(|(tag, data)| Offer::read(*tag, data).ok().flatten());
    let places = offers.flat_map(|offer| offer.places);
    let called = places
        .map(move |(named, port)| if named.is_empty() { (host.to_owned(), port) } else { (named, port) });
    let usable = called.filter(|(host, port)| !host.is_empty() && *port != 0);
    usable.map(|(host, port)| Endpoint::layered(TLS, LayerOptions::default(), Endpoint::Tcp { host, port }))
}

/// What a component says, in words.
pub(crate) fn words(tag: u32, data: &[u8]) -> Option<String> {
    let offer = Offer::read(tag, data).ok()??;
    let mut text = if tag == TAG_SSL_SEC_TRANS {
        "SSL".to_owned()
    } else {
        "security mechanisms (CSIv2): TLS".to_owned()
    };
    for (host, port) in &offer.places {
        let (host, colon) = if host.is_empty() { ("port ", "") } else { (host.as_str(), ":") };
        // Writing to a string does not fail.
        let _ = write!(text, ", {host}{colon}{port}");
    }
    let _ = write!(text, "; supports {}; requires {}", named(offer.supports), named(offer.requires));
    Some(text)
}

/// The names of the bits that are set.
fn named(options: u16) -> String {
    let known: Vec<_> = OPTIONS.iter().filter(|(bit, _)| options & bit != 0).map(|(_, name)| *name).collect();
    if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::WriteCdr;

    #[test]
    fn a_component_reads_as_written() {
        let (tag, data) = component(4711, true, false);
        // supports 0x7e, requires 0x46, the port; the encapsulation begins with its byte order.
        let words = words(tag, &data).unwrap();
        assert!(
            words.starts_with("SSL, port 4711; supports integrity, confidentiality, detect replay"),
            "{words}"
        );
        assert!(words.ends_with("requires integrity, confidentiality, trust in client"), "{words}");
        let found: Vec<_> = endpoints("host", &[(tag, data)]).map(|endpoint| endpoint.to_string()).collect();
        assert_eq!(found, ["tls:tcp:host:4711"]);
        assert!(endpoints("", &[component(1, false, false)]).next().is_none(), "no host is known");
        assert!(endpoints("host", &[component(0, false, false)]).next().is_none(), "port 0 is none");
    }

    #[test]
    fn the_transport_of_a_mechanism_is_found() {
        let transport = encapsulation(|put| {
            put.u16(0x66);
            put.u16(0x06);
            put.u32(1);
            put.string(b"there");
            put.u16(684);
        });
        let list = encapsulation(|put| {
            put.u8(1);
            put.u32(1);
            put.u16(0x46);
            put.u32(TAG_TLS_SEC_TRANS);
            put.octets(&transport);
            // What follows of the mechanism is not looked at.
        });
        let held = [(TAG_CSI_SEC_MECH_LIST, Bytes::from(list))];
        let found: Vec<_> = endpoints("host", &held).map(|endpoint| endpoint.to_string()).collect();
        assert_eq!(found, ["tls:tcp:there:684"]);
        assert_eq!(
            words(held[0].0, &held[0].1).unwrap(),
            "security mechanisms (CSIv2): TLS, there:684; supports integrity, confidentiality, trust in target, trust in \
             client; requires integrity, confidentiality, trust in client"
        );
    }

    #[test]
    fn who_demands_tls_is_known_by_what_it_requires_and_does_not_support() {
        let ssl = |supports: u16, requires: u16| {
            let data =
                encapsulation(|put| [supports, requires, 684].into_iter().for_each(|number| put.u16(number)));
            demands(&[(TAG_SSL_SEC_TRANS, Bytes::from(data))])
        };
        assert!(ssl(0x66, 0x06) && ssl(0x66, 0x20) && ssl(0x66, 0x40));
        // It says that it takes calls in the clear; or requires nothing, or what is no matter of a connection (delegation).
        assert!(!ssl(0x67, 0x06) && !ssl(0x66, 0) && !ssl(0xe6, 0x80));
        assert!(demands(&[component(1, false, false)]) && !demands(&[component(1, false, true)]));
        let mechanisms = |count: u32, requires: u16, wanted: u16| {
            let transport = encapsulation(|put| {
                put.u16(0x66);
                put.u16(wanted);
                put.u32(0);
            });
            let data = encapsulation(|put| {
                put.u8(0);
                put.u32(count);
                put.u16(requires);
                put.u32(TAG_TLS_SEC_TRANS);
                put.octets(&transport);
            });
            demands(&[(TAG_CSI_SEC_MECH_LIST, Bytes::from(data))])
        };
        assert!(mechanisms(1, 0x02, 0) && mechanisms(1, 0, 0x06));
        // Names and passwords are what is wanted here.
        assert!(!mechanisms(1, 0x40, 0) && !mechanisms(2, 0x02, 0x06));
        assert!(!demands(&[(0, Bytes::new()), (TAG_SSL_SEC_TRANS, Bytes::from_static(b"\0"))]));
    }

    #[test]
    fn hostile_components_are_passed_over() {
        for tag in [TAG_SSL_SEC_TRANS, TAG_CSI_SEC_MECH_LIST] {
            for data in [&b""[..], b"\x01", b"\x01\0\0\0", &[0xff; 40], &[0; 40], &[1; 12]] {
                let _ = words(tag, data);
                assert!(endpoints("host", &[(tag, Bytes::copy_from_slice(data))]).count() <= 1);
            }
        }
    }
}
