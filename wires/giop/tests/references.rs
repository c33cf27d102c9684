//! References as text.

#![allow(clippy::unwrap_used)]

use crate::support::*;
use everywire_giop::codesets::Dialect;
use everywire_giop::{GIOP, components};
use everywire_model::layered::TLS;
use everywire_model::*;

/// Made by omniORB's `genior IDL:x:1.0 127.0.0.1 1234 key`.
const GENIOR: &str = "IOR:010000000a00000049444c3a783a312e30000000010000000000000054000000010102000a0000003132372e302e302e3100d204030000006b6579000200000000000000080000000100000000545441010000001c00000001000000010001000100000001000105090101000100000009010100";

/// Of an omniORB server that listens at a Unix socket alone, on a host called `xy`.
const UNIX_ONLY: &str = "IOR:010000002b00000049444c3a6f6d672e6f72672f436f734e616d696e672f4e616d696e67436f6e746578744578743a312e300000010000000000000098000000010102000300000078790000000000000b0000004e616d6553657276696365000400000000000000080000000100000000545441010000001c000000010000000100010001000000010001050901010001000000090101000254544125000000010000000300000078790000150000002f72756e2f6f6d6e692f6e616d65732e736f636b0000000003545441080000009425016b01002101";

fn tcp(host: &str, port: u16) -> Endpoint {
    Endpoint::Tcp { host: host.into(), port }
}

/// It would come out as nil, which is another thing.
#[test]
fn a_reference_of_another_wire_alone_is_refused() {
    let profile = Profile { wire: "dbus", endpoints: vec![tcp("h", 1)], ..Profile::default() };
    let foreign = Reference { profiles: vec![profile.clone()], ..Reference::default() };
    let write =
        |reference: Option<&Reference>| everywire_giop::CDR.write(&mut |sink| sink.reference(reference));
    let failure = write(Some(&foreign)).unwrap_err();
    assert_eq!(failure.kind(), Kind::BadArgument);
    assert!(failure.message().contains("an object of another wire only"), "{failure}");
    write(None).unwrap();
    let mut both = GIOP.parse(GENIOR).unwrap();
    both.profiles.push(profile);
    write(Some(&both)).unwrap();
}

#[test]
fn an_ior_of_omniorb_is_read_and_written_back_the_same() {
    let reference = GIOP.parse(GENIOR).unwrap();
    assert_eq!(reference.type_id, "IDL:x:1.0");
    let profile = &reference.profiles[0];
    assert_eq!(
        (profile.version, &*profile.key, &profile.endpoints[..]),
        ((1, 2), &b"key"[..], &[tcp("127.0.0.1", 1234)][..])
    );
    assert_eq!(profile.components.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [0, 1]);
    // Blanks around it and capitals do not matter.
    assert_eq!(GIOP.parse(&format!("  {}\n", GENIOR.to_uppercase())).unwrap(), reference);
    if cfg!(target_endian = "little") {
        assert_eq!(GIOP.print(&reference), GENIOR);
    }
    assert_eq!(GIOP.print_friendly(&reference), "iiop://127.0.0.1:1234/key");
}

#[test]
fn a_unix_socket_of_another_host_is_kept_and_not_used() {
    let reference = GIOP.parse(UNIX_ONLY).unwrap();
    let profile = &reference.profiles[0];
    assert_eq!(profile.components.len(), 4);
    assert!(profile.components.iter().any(|(tag, _)| *tag == components::TAG_OMNIORB_UNIX_TRANS));
    assert_eq!(profile.endpoints, [], "a socket elsewhere, and port 0, are no endpoints");
    let own = GIOP.publish(
        "IDL:x:1.0",
        &[BindAddress::socket("giop", Endpoint::Unix { path: "/run/x".into() })],
        b"k",
    );
    // The same of this host is used, and has the form that omniORB gives it.
    assert_eq!(GIOP.parse(&GIOP.print(&own)).unwrap(), own);
    assert_eq!(own.profiles[0].endpoints, [Endpoint::Unix { path: "/run/x".into() }]);
    let (_, data) = own.profiles[0]
        .components
        .iter()
        .find(|(tag, _)| *tag == components::TAG_OMNIORB_UNIX_TRANS)
        .unwrap();
    assert!(data.ends_with(b"/run/x\0"), "{data:?}");
}

#[test]
fn what_is_published_is_read_back_with_the_nearest_way_first() {
    let ends = [
        tcp("::1", 2809),
        tcp("other", 99),
        Endpoint::Unix { path: "/run/s".into() },
        Endpoint::Shm { path: "@shm".into() },
        Endpoint::InProcess { name: "here".into() },
    ];
    let reference =
        GIOP.publish("IDL:a/B:1.0", &ends.clone().map(|end| BindAddress::socket("giop", end)), b"\0\xffkey");
    let expected = [ends[3].clone(), ends[2].clone(), ends[0].clone(), ends[1].clone()];
    assert_eq!(reference.profiles[0].endpoints, expected);
    assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap(), reference);
    let tags: Vec<_> = reference.profiles[0].components.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(&tags[..2], [components::TAG_ORB_TYPE, components::TAG_CODE_SETS]);
}

#[test]
fn profiles_and_components_that_nobody_knows_survive() {
    let mut reference = GIOP.publish("IDL:x:1.0", &[BindAddress::socket("giop", tcp("h", 1))], b"k");
    reference.profiles[0].components.push((0x1234_5678, bytes(b"\x01data")));
    reference.foreign.push((99, bytes(b"whatever")));
    assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap(), reference);
}

#[test]
fn corbaname_without_a_name_is_its_context() {
    for (text, version, key) in [
        ("corbaname::host:1", (1, 0), "NameService"),
        ("corbaname::host:1#", (1, 0), "NameService"),
        ("CORBANAME:iiop:1.2@host:1/a/b", (1, 2), "a/b"),
    ] {
        let profile =
            GIOP.parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}")).profiles.remove(0);
        assert_eq!((profile.version, &profile.key[..]), (version, key.as_bytes()), "{text}");
        assert_eq!(profile.endpoints, [tcp("host", 1)], "{text}");
    }
    // A name has to be looked up, which reading does not.
    let failure = GIOP.parse("corbaname::host:1#a/b").expect_err("it is not looked up");
    assert!(failure.message().contains("`a/b`"), "{failure}");
    assert!(GIOP.parse("corbaname:host").is_err());
}

#[test]
fn corbaloc_in_its_forms() {
    for (written, version, ends, key) in [
        ("corbaloc::host:1/key", (1, 0), vec![tcp("host", 1)], &b"key"[..]),
        ("corbaloc:iiop:1.2@host:1/a/b", (1, 2), vec![tcp("host", 1)], b"a/b"),
        ("corbaloc::1.2@host/NameService", (1, 2), vec![tcp("host", 2809)], b"NameService"),
        (
            "corbaloc:iiop:1.2@a:1,:1.1@b:2,iiop:1.2@[::1]:3//%00%fFk",
            (1, 1),
            vec![tcp("a", 1), tcp("b", 2), tcp("::1", 3)],
            b"/\0\xffk",
        ),
        ("CorbaLoc::1.2@h:5", (1, 2), vec![tcp("h", 5)], b""),
    ] {
        let reference = GIOP.parse(written).unwrap_or_else(|failure| panic!("{written}: {failure}"));
        let profile = &reference.profiles[0];
        assert_eq!((profile.version, &profile.endpoints, &*profile.key), (version, &ends, key), "{written}");
        assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap().profiles[0].endpoints, ends, "{written}");
    }
}

/// IIOP 1.0 has no components, and SSLIOP is one.
#[test]
fn tls_of_a_corbaloc_is_not_lost_by_its_version() {
    let secured = |port| Endpoint::layered(TLS, LayerOptions::default(), tcp("h", port));
    for (written, version, ends) in [
        ("corbaloc:ssliop:1.0@h:2/k", (1, 1), vec![secured(2)]),
        ("corbaloc:ssliop:h:2/k", (1, 2), vec![secured(2)]),
        ("corbaloc::h:1,ssliop:h:2/k", (1, 1), vec![tcp("h", 1), secured(2)]),
    ] {
        let reference = GIOP.parse(written).unwrap();
        let passed_on = GIOP.parse(&GIOP.print(&reference)).unwrap();
        for profile in [&reference.profiles[0], &passed_on.profiles[0]] {
            assert_eq!((profile.version, &profile.endpoints), (version, &ends), "{written}");
        }
    }
}

#[test]
fn friendly_addresses_in_their_forms() {
    for written in
        ["iiop://host:2809/a%00", "iiop+unix:///run/s#key", "iiop+shm:///run/s#key", "iiop://[::1]:9/k"]
    {
        let reference = GIOP.parse(written).unwrap();
        assert_eq!(reference.profiles[0].version, (1, 2));
        assert_eq!(GIOP.print_friendly(&reference), written);
        // Passed on as a value it leads to the same place.
        assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap(), reference);
    }
    assert_eq!(GIOP.listen("iiop://127.0.0.1:0").unwrap(), BindAddress::socket("giop", tcp("127.0.0.1", 0)));
    assert_eq!(
        GIOP.listen("iiop+unix:///x").unwrap(),
        BindAddress::socket("giop", Endpoint::Unix { path: "/x".into() })
    );
}

#[test]
fn wrong_references_say_what_is_wrong() {
    let cut = &GENIOR[..GENIOR.len() - 1];
    let short = &GENIOR[..60];
    for (written, word) in [
        ("", "://"),
        ("IOR:", "byte order"),
        ("IOR:zz", "hexadecimal"),
        (cut, "odd number"),
        (short, "does not decode"),
        ("IOR:01000000010000000000000000000000", "nil"),
        ("corbaloc:rir:/NameService", "rir"),
        ("corbaloc::2.0@h:1/k", "2.0"),
        ("corbaloc::h:1/%z", "%"),
        ("corbaloc:h", "`:`"),
        ("dbus://h:1/k", "dbus"),
        ("iiop://h/k", "HOST:PORT"),
    ] {
        let failure = GIOP.parse(written).unwrap_err();
        assert_eq!(failure.kind(), Kind::BadReference, "{written}");
        assert!(failure.message().contains(word), "{written}: {failure}");
    }
    assert_eq!(GIOP.parse(&format!("IOR:{}", "0".repeat(1 << 20))).unwrap_err().kind(), Kind::LimitExceeded);
    let many = |count| GIOP.parse(&format!("corbaloc:{}/k", vec![":h:1"; count].join(",")));
    assert_eq!(many(33).unwrap_err().kind(), Kind::LimitExceeded);
    assert_eq!(many(32).unwrap().profiles[0].endpoints.len(), 32);
    // Whoever read the reference would have no address of it.
    for way in ["corbaloc::{}:9/k", "corbaloc:ssliop:{}:9/k", "iiop://{}:9/k", "iiop+unix:///{}#k"] {
        let failure = GIOP.parse(&way.replace("{}", &"h".repeat(256))).unwrap_err();
        assert_eq!(failure.kind(), Kind::LimitExceeded, "{way}: {failure}");
    }
    assert_eq!(
        GIOP.parse(&format!("corbaloc::{}:9/k", "h".repeat(255))).unwrap().profiles[0].endpoints.len(),
        1
    );
}

#[test]
fn no_damage_to_an_ior_does_harm() {
    for written in [GENIOR, UNIX_ONLY] {
        for at in 4..written.len() {
            let _ = GIOP.parse(&written[..at]);
            for digit in ["0", "7", "8", "f"] {
                let mut damaged = written.to_owned();
                damaged.replace_range(at..=at, digit);
                if let Ok(reference) = GIOP.parse(&damaged) {
                    assert!(reference.profiles.len() + reference.foreign.len() <= 256);
                }
            }
        }
    }
}

/// An IOR of GIOP 1.0 whose components stand in a profile of their own, as ORBit2 writes it, with these code sets.
fn with_components_beside(narrow: u32) -> String {
    let string = |text: &[u8]| [&(text.len() as u32 + 1).to_le_bytes()[..], text, b"\0"].concat();
    let padded = |mut raw: Vec<u8>| {
        raw.resize(raw.len().next_multiple_of(4), 0);
        raw
    };
    let evened = |mut raw: Vec<u8>| {
        raw.resize(raw.len().next_multiple_of(2), 0);
        raw
    };
    let counted = |raw: Vec<u8>| padded([&(raw.len() as u32).to_le_bytes()[..], &raw].concat());
    let iiop = {
        let mut raw = evened([&[1, 1, 0, 0][..], &string(b"10.0.0.1")].concat());
        raw.extend(1234u16.to_le_bytes());
        let mut raw = padded(raw);
        raw.extend(3u32.to_le_bytes());
        raw.extend(b"key");
        raw
    };
    let sets =
        [&[1, 0, 0, 0][..], &narrow.to_le_bytes(), &[0; 4], &0x0001_0109u32.to_le_bytes(), &[0; 4]].concat();
    let other = {
        let mut raw = evened([&[1, 0, 0, 0][..], &string(b"10.0.0.2")].concat());
        raw.extend(4321u16.to_le_bytes());
        raw
    };
    let beside = [
        &[1, 0, 0, 0][..],
        &2u32.to_le_bytes(),
        &components::TAG_CODE_SETS.to_le_bytes(),
        &counted(sets),
        &components::TAG_ALTERNATE_IIOP_ADDRESS.to_le_bytes(),
        &counted(other),
    ]
    .concat();
    let raw = [
        &[1, 0, 0, 0][..],
        &padded(string(b"IDL:x:1.0")),
        &2u32.to_le_bytes(),
        &0u32.to_le_bytes(),
        &counted(iiop),
        &1u32.to_le_bytes(),
        &counted(beside),
    ]
    .concat();
    raw.iter().fold("IOR:".to_owned(), |text, octet| text + &format!("{octet:02x}"))
}

#[test]
fn components_beside_the_profiles_are_used_and_passed_on() {
    const ISO_8859_1: u32 = 0x0001_0001;
    let text = with_components_beside(ISO_8859_1);
    let reference = GIOP.parse(&text).unwrap();
    let profile = &reference.profiles[0];
    assert_eq!(profile.version, (1, 0));
    assert_eq!(profile.endpoints, [tcp("10.0.0.1", 1234), tcp("10.0.0.2", 4321)]);
    // What is passed on has them where they were.
    assert_eq!(reference.foreign.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), [1]);
    let again = GIOP.parse(&GIOP.print(&reference)).unwrap();
    assert_eq!(again, reference);
    // The code sets count as if they stood in the profile.
    let spoken = Profile { version: (1, 2), ..profile.clone() };
    for (narrow, wanted) in [(ISO_8859_1, &b"gr\xfc\xdfe\0"[..]), (0x0501_0001, "grüße\0".as_bytes())] {
        let lease = GIOP.parse(&with_components_beside(narrow)).unwrap().profiles.remove(0).lease;
        let profile = Profile { lease, ..spoken.clone() };
        let mut client = GIOP.connect(&Config::default());
        let operation = in_out("echo", everywire_model::Shape::Text(everywire_model::shape::Text::NARROW));
        let put = |sink: &mut dyn Sink| sink.text(&everywire_model::shape::Text::NARROW, "grüße");
        let call = Call {
            profile: &profile,
            method: Method::Typed { interface: None, operation: &operation },
            arguments: &put,
            expects: Expects::Reply,
        };
        client.start(std::time::Instant::now(), &call).unwrap();
        let sent = drain(&mut *client);
        assert!(sent.ends_with(wanted), "{}", sent.escape_ascii());
    }
}

#[test]
fn what_stands_beside_and_does_not_decode_is_kept_and_not_used() {
    let text = with_components_beside(0x0001_0001);
    for cut in 1..60 {
        let mut raw = text.clone();
        raw.truncate(text.len() - 2 * cut);
        // A reference that is cut off is refused, or has lost its end: never more.
        let _ = GIOP.parse(&raw);
    }
    let broken = text.replace("0100010000000000", "ffffffffffffffff");
    let reference = GIOP.parse(&broken).unwrap();
    assert_eq!(reference.foreign.len(), 1);
}

/// A big-endian encapsulation, or a message's part, that is written by hand.
#[derive(Default)]
struct Raw(Vec<u8>);

impl Raw {
    fn u16(&mut self, number: u16) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(2), 0);
        self.0.extend(number.to_be_bytes());
        self
    }

    fn u32(&mut self, number: usize) -> &mut Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(u32::try_from(number).unwrap().to_be_bytes());
        self
    }

    fn octets(&mut self, octets: &[u8]) -> &mut Self {
        self.u32(octets.len()).0.extend_from_slice(octets);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.octets(format!("{text}\0").as_bytes())
    }
}

/// A reference of `profiles` small profiles and, beside them, components that name `addresses` hosts, with and without TLS.
fn crowded(profiles: usize, addresses: usize, host: &str) -> Vec<u8> {
    let mut shared = Raw(vec![0]);
    shared.u32(addresses + 1);
    let mut transport = Raw(vec![0]);
    transport.u16(0x66).u16(6).u32(addresses);
    for port in 1..=addresses {
        let port = u16::try_from(port).unwrap();
        let mut address = Raw(vec![0]);
        address.text(host).u16(port);
        shared.u32(3).octets(&address.0);
        transport.text(host).u16(port);
    }
    let mut mechanisms = Raw(vec![0, 1]);
    mechanisms.u32(1).u16(0x46).u32(36).octets(&transport.0);
    shared.u32(33).octets(&mechanisms.0);
    let mut profile = Raw(vec![0, 1, 0]);
    profile.text("h").u16(1).octets(b"k");
    let mut reference = Raw::default();
    reference.text("IDL:x:1.0").u32(profiles + 1);
    for _ in 0..profiles {
        reference.u32(0).octets(&profile.0);
    }
    reference.u32(1).octets(&shared.0);
    reference.0
}

/// A reference in a message that may cost `bytes`.
fn taken(raw: Vec<u8>, bytes: u64) -> Result<Value, Failure> {
    let any = Shape::Reference(Hold::new(shape::Referent { name: "".into(), id: "".into() }));
    let budget = Budget { bytes, ..Budget::default() };
    let body = everywire_giop::Cdr::body(raw.into(), 0, false, Dialect::OURS, budget);
    body.read(|source| Value::decode(&any, source))
}

#[test]
fn a_profile_has_few_endpoints_and_its_own_is_among_them() {
    let Value::Reference(Some(reference)) = taken(crowded(4, 200, "far"), 1 << 20).unwrap() else { panic!() };
    for profile in &reference.profiles {
        assert!(profile.endpoints.len() <= 32, "{} endpoints", profile.endpoints.len());
        assert_eq!(profile.endpoints[0], tcp("h", 1));
    }
}

#[test]
fn endpoints_that_profiles_share_are_paid_for_by_each() {
    let raw = crowded(100, 32, "far");
    assert!(raw.len() < 8 << 10, "{}", raw.len());
    let failure = taken(raw.clone(), 32 << 10).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded, "{failure}");
    assert!(taken(raw, 1 << 20).is_ok());
    // A name that no host can have is copied to no profile.
    let Value::Reference(Some(reference)) = taken(crowded(4, 32, &"x".repeat(300)), 1 << 20).unwrap() else {
        panic!()
    };
    assert!(reference.profiles.iter().all(|profile| profile.endpoints == [tcp("h", 1)]));
}

/// An IOR of these profiles: tags with their data.
fn ior(profiles: &[(usize, &Raw)]) -> String {
    let mut raw = Raw(vec![0]);
    raw.text("IDL:x:1.0").u32(profiles.len());
    for (tag, profile) in profiles {
        raw.u32(*tag).octets(&profile.0);
    }
    raw.0.iter().fold("IOR:".to_owned(), |text, octet| text + &format!("{octet:02x}"))
}

/// As ORBit2 writes it of a server that listens where nobody told it to: at a Unix socket alone.
fn of_orbit(host: &str, path: &str) -> String {
    let (mut generic, mut specific, mut beside) = (Raw(vec![0, 1, 2]), Raw(vec![0, 1, 2]), Raw(vec![0]));
    generic.text("UNIX").text(host).text(path).u32(0);
    specific.text(path).u16(0).octets(b"k\0");
    beside.u32(2).u32(5).octets(b"k\0");
    let mut sets = Raw(vec![0]);
    sets.u32(0x0501_0001).u32(0).u32(0x0001_0109).u32(0);
    beside.u32(1).octets(&sets.0);
    ior(&[(0x4f42_5400, &generic), (0xbadf_aeca, &specific), (1, &beside)])
}

#[test]
fn an_ior_of_orbit_without_tcp_leads_to_its_unix_socket() {
    let path = "/tmp/orbit-ada/linc-1b2-0-4f0";
    let socket = Endpoint::Unix { path: path.into() };
    let reference = GIOP.parse(&of_orbit("localhost", path)).unwrap();
    let [profile] = &reference.profiles[..] else { panic!("{reference:?}") };
    assert_eq!((profile.version, &profile.key[..]), ((1, 2), &b"k\0"[..]));
    assert_eq!(profile.endpoints, [socket]);
    // It is passed on as it came: without a profile of IIOP, which the server did not write.
    let again = GIOP.parse(&GIOP.print(&reference)).unwrap();
    assert_eq!(again, reference);
    assert_eq!(
        reference.foreign.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(),
        [0x4f42_5400, 0xbadf_aeca, 1]
    );
    // `localhost` says nothing of whose socket it is, so only ORBit's own are used, and no sockets of other hosts.
    for (host, path) in [
        ("localhost", "/run/other.sock"),
        ("localhost", "/tmp/linc-x/../linc-1"),
        ("localhost", "/tmp/linc-1/x"),
        ("far.example.org", path),
        ("localhost", "tmp/linc-1"),
    ] {
        let reference = GIOP.parse(&of_orbit(host, path)).unwrap();
        assert_eq!((reference.profiles.len(), reference.foreign.len()), (0, 3), "{host} {path}");
    }
}

#[test]
fn an_ior_of_orbit_may_tell_a_port_of_ipv6_or_be_old() {
    let (mut generic, mut specific, mut beside) = (Raw(vec![0, 1, 1]), Raw(vec![0, 1, 2]), Raw(vec![0]));
    generic.text("IPv6").text("::1").text("4711").u32(0);
    beside.u32(1).u32(5).octets(b"key");
    let reference = GIOP.parse(&ior(&[(0x4f42_5400, &generic), (1, &beside)])).unwrap();
    assert_eq!(reference.profiles[0].endpoints, [tcp("::1", 4711)]);
    assert_eq!((reference.profiles[0].version, &reference.profiles[0].key[..]), ((1, 1), &b"key"[..]));
    specific.text("/tmp/orbit-ada/orb-1/linc-2").u16(0).octets(b"old");
    let reference = GIOP.parse(&ior(&[(0xbadf_aeca, &specific)])).unwrap();
    assert_eq!((reference.profiles[0].version, &reference.profiles[0].key[..]), ((1, 0), &b"old"[..]));
}

#[test]
fn an_ior_of_mico_without_tcp_leads_to_its_unix_socket() {
    let own = GIOP.publish(
        "IDL:x:1.0",
        &[BindAddress::socket("giop", Endpoint::Unix { path: "/run/x".into() })],
        b"k",
    );
    let (_, data) = own.profiles[0]
        .components
        .iter()
        .find(|(tag, _)| *tag == components::TAG_OMNIORB_UNIX_TRANS)
        .unwrap();
    // This host's name, as that component has it behind the byte order and its own count.
    let host = String::from_utf8(data[8..].split(|octet| *octet == 0).next().unwrap().to_vec()).unwrap();
    let of_mico = |host: &str| {
        let mut profile = Raw(vec![0, 1, 1]);
        profile.text(host).text("/tmp/mico.sock").octets(b"key").u32(1).u32(99).octets(b"whatever");
        profile
    };
    let reference = GIOP.parse(&ior(&[(20002, &of_mico(&host))])).unwrap();
    let read = &reference.profiles[0];
    assert_eq!(read.endpoints, [Endpoint::Unix { path: "/tmp/mico.sock".into() }]);
    assert_eq!((read.version, &read.key[..], read.components.len()), ((1, 1), &b"key"[..], 1));
    assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap(), reference);
    // A reference may come from anywhere: what names no host in particular opens no socket here.
    for host in ["far.example.org", "127.0.0.1", "::1", "localhost"] {
        assert!(GIOP.parse(&ior(&[(20002, &of_mico(host))])).unwrap().profiles.is_empty(), "{host}");
    }
    let profile = of_mico(&host);
    for cut in 0..profile.0.len() {
        let _ = GIOP.parse(&ior(&[(20002, &Raw(profile.0[..cut].to_vec()))])).unwrap();
    }
}

#[test]
fn who_demands_tls_is_not_called_in_the_clear() {
    // What is supported and required, and the port with TLS; the ORB's type before it.
    let of = |orb: usize, supports: u16, requires: u16| {
        let (mut kind, mut ssl, mut profile) = (Raw(vec![0]), Raw(vec![0]), Raw(vec![0, 1, 2]));
        kind.u32(orb);
        ssl.u16(supports).u16(requires).u16(684);
        profile.text("there").u16(683).octets(b"key").u32(2).u32(0).octets(&kind.0).u32(20).octets(&ssl.0);
        GIOP.parse(&ior(&[(0, &profile)])).unwrap()
    };
    let plain = tcp("there", 683);
    let demanding = of(0x4a41_4300, 0x7e, 0x06);
    let profile = &demanding.profiles[0];
    let refused = GIOP.check_way(profile, &plain).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused, "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("?ca=FILE")), "{refused}");
    GIOP.check_way(profile, &Endpoint::layered(TLS, LayerOptions::default(), plain.clone())).unwrap();
    GIOP.check_way(profile, &Endpoint::Unix { path: "/run/x".into() }).unwrap();
    // Where it can be pasted, it leads to the port with TLS; passed on, it has both ports as before.
    assert_eq!(GIOP.print_friendly(&demanding), "iiops://there:684/key");
    assert_eq!(GIOP.parse(&GIOP.print(&demanding)).unwrap(), demanding);
    assert_eq!(demanding.profiles[0].endpoints[0], plain);
    // It takes both, it wants nothing, or it is omniORB, which writes the same of all its ports.
    for reference in [of(0x4a41_4300, 0x7f, 0x06), of(0x4a41_4300, 0x7e, 0), of(0x4154_5400, 0x66, 0x66)] {
        GIOP.check_way(&reference.profiles[0], &plain).unwrap();
        assert_eq!(GIOP.print_friendly(&reference), "iiop://there:683/key");
    }
    // Ours with both take calls on both.
    let tls = Endpoint::layered(TLS, LayerOptions::default(), tcp("there", 684));
    let places = [plain.clone(), tls.clone()].map(|endpoint| BindAddress::socket("giop", endpoint));
    GIOP.check_way(&GIOP.publish("IDL:x:1.0", &places, b"k").profiles[0], &plain).unwrap();
    let alone = GIOP.publish("IDL:x:1.0", &places[1..], b"k");
    GIOP.check_way(&alone.profiles[0], &plain).unwrap_err();
}

/// Servers that listen with TLS alone, or are known by components of other ORBs, have port 0 beside a host of their own.
#[test]
fn the_host_of_a_profile_without_a_port_is_passed_on() {
    let profile = |host: &str, port: u16| {
        let mut profile = Raw(vec![0, 1, 2]);
        profile.text(host).u16(port).octets(b"key").u32(1).u32(99).octets(b"whatever");
        profile
    };
    for (host, port) in [("far.example.org".to_owned(), 0), ("x".repeat(300), 7)] {
        let profile = profile(&host, port);
        let text = ior(&[(0, &profile)]);
        let passed = GIOP.print(&GIOP.parse(&text).unwrap());
        let expected = everywire_model::hex::text(format!("{host}\0").as_bytes());
        assert!(passed.contains(&expected), "{host}:{port} became {passed}");
        let port = if cfg!(target_endian = "little") { port.to_le_bytes() } else { port.to_be_bytes() };
        let behind = passed.split(&expected).nth(1).unwrap();
        let padding = if host.len() % 2 == 0 { "00" } else { "" };
        assert!(behind.starts_with(&format!("{padding}{}", everywire_model::hex::text(&port))), "{behind}");
    }
}

#[test]
fn a_profile_of_another_major_version_is_kept_unread() {
    let (mut known, mut later) = (Raw(vec![0, 1, 2]), Raw(vec![0, 2, 0]));
    known.text("h").u16(1).octets(b"key").u32(0);
    later.0.extend(b"\xff\xff what nobody knows");
    let reference = GIOP.parse(&ior(&[(0, &later), (0, &known)])).unwrap();
    assert_eq!(reference.profiles.len(), 1);
    assert_eq!(reference.profiles[0].endpoints, [tcp("h", 1)]);
    assert_eq!(reference.foreign, [(0, bytes(&later.0))]);
    assert_eq!(GIOP.parse(&GIOP.print(&reference)).unwrap(), reference);
    let alone = GIOP.parse(&ior(&[(0, &later)])).unwrap();
    assert_eq!((alone.profiles.len(), alone.foreign.len()), (0, 1));
    // What ends before its version is broken.
    assert!(GIOP.parse(&ior(&[(0, &Raw(vec![0, 1]))])).is_err());
}
