//! What addresses say beside endpoint and key is a part of the reference: it compares and prints, on each wire, and no password is shown.

use everywire::model::{Reference, Wire};
use std::collections::HashSet;

fn parse(wire: &dyn Wire, text: &str) -> Reference {
    wire.parse(text).unwrap_or_else(|failure| panic!("{text}: {failure}"))
}

/// Addresses of one endpoint and one key that mean different ways of calling it.
const ADDRESSES: [(&str, &[&str]); 4] = [
    ("giop", &["iiop+tls://h:2809/k", "iiop+tls://h:2809/k?ca=/a.pem", "iiop+tls://h:2809/k?ca=/b.pem"]),
    ("dbus", &["dbus:tls:host=h,port=7,ca=/a.pem#/org/x", "dbus:tls:host=h,port=7,ca=/b.pem#/org/x"]),
    (
        "dcom",
        &[
            "dcom://ada:engine@h/Class",
            "dcom://ada:motor@h/Class",
            "dcom://eve:engine@h/Class",
            "dcom://W;ada:engine@h/Class",
            "dcom://ada:engine@h/Class?level=privacy",
            "dcom://ada:engine@h/Class?mech=kerberos",
            "dcom://ada:engine@h/Class?exporter=here",
            "dcom://ada:engine@h/Class?hosts=other",
            "dcom://h/Class?level=none",
        ],
    ),
    (
        "wcf",
        &[
            "net.tcp://ada:engine@h/a",
            "net.tcp://ada:motor@h/a",
            "net.tcp://eve:engine@h/a",
            "net.tcp://h/a",
            "net.tcp://h/a?mode=streamed",
            "net.tcp://h/a?MaxArrayLength=7",
            "net.tcp://h/a?reliable=on",
            "basics://ada:engine@h:808/a?insecure=on",
        ],
    ),
];

#[test]
fn references_differ_by_what_their_addresses_say() {
    for (name, texts) in ADDRESSES {
        let wire = everywire::wires::named(name).expect("a wire");
        let all: HashSet<Reference> = texts.iter().map(|text| parse(wire, text)).collect();
        assert_eq!(all.len(), texts.len(), "{name}");
        // What is read again is the same.
        assert!(texts.iter().all(|text| all.contains(&parse(wire, text))), "{name}");
    }
    let dcop = everywire::wires::named("dcop").expect("a wire");
    let at = |text: &str| parse(dcop, text);
    assert_eq!(at("dcop+unix:///run/a#app/object"), at("dcop+unix:///run/a#app/object"));
    assert_ne!(at("dcop+unix:///run/a#app/object"), at("dcop+unix:///run/b#app/object"));
}

#[test]
fn accounts_print_and_passwords_do_not() {
    for (name, text, said) in [
        ("dcom", "dcom://W;ada:engine@h/Class", "level=integrity&account=W\\ada"),
        ("dcom", "dcom://h/Class?level=none", ""),
        (
            "wcf",
            "net.tcp://W;ada:engine@h/a?mode=streamed",
            "net.tcp?security=windows&mode=streamed&account=W\\ada",
        ),
        ("wcf", "wshttp://h/a", "wshttp"),
    ] {
        let wire = everywire::wires::named(name).expect("a wire");
        let reference = parse(wire, text);
        let way = &reference.profiles[0];
        assert_eq!(way.options.to_string(), said, "{text}");
        let shown = format!("{reference:?} {} {}", wire.print(&reference), wire.print_friendly(&reference));
        assert!(!shown.contains("engine"), "{shown}");
    }
}
