//! References as text, and operations by signature.

#![allow(clippy::unwrap_used)]

use crate::support::{body, operation};
use bytes::Bytes;
use everywire_dcop::{ANY_SUFFIX, APPLICATION, DATA_STREAM, DCOP};
use everywire_model::*;

#[test]
fn references_survive_a_round_trip() {
    for (text, app, object) in [
        ("dcop+unix:///tmp/s#konqueror/konqueror-mainwindow%231", "konqueror", "konqueror-mainwindow#1"),
        ("dcop+unix:///tmp/s#app/a/b", "app", "a/b"),
        ("dcop+unix:///tmp/s#app", "app", ""),
        ("dcop://host:1/app/o", "app", "o"),
    ] {
        let reference = DCOP.parse(text).unwrap();
        let profile = &reference.profiles[0];
        assert_eq!(
            (&**profile.component(APPLICATION).unwrap(), &*profile.key),
            (app.as_bytes(), object.as_bytes())
        );
        assert_eq!(DCOP.print(&reference), text);
        assert_eq!(DCOP.parse(&DCOP.print_friendly(&reference)).unwrap(), reference);
    }
    for wrong in [
        "dcop+unix://relative#a",
        "dcop+unix:///s#a%zz/o",
        "dcop+unix:///s#a?x=y",
        "iiop://h:1/k",
        "dcop+unix:///s#a%00",
    ] {
        assert_eq!(DCOP.parse(wrong).unwrap_err().kind(), Kind::BadReference, "{wrong}");
    }
}

#[test]
fn a_place_to_serve_is_a_name_at_a_server() {
    let place = DCOP.listen("dcop+unix:///tmp/s#app?unique=no").unwrap();
    assert!(matches!(place, BindAddress::Join(_)) && place.profile().component(ANY_SUFFIX).is_some());
    let published = DCOP.publish("Bench", &[place], b"bench");
    assert_eq!(DCOP.print(&published), "dcop+unix:///tmp/s#app/bench");
    assert!(published.profiles[0].component(ANY_SUFFIX).is_none());
    for (wrong, word) in [
        ("dcop+unix:///tmp/s", "names no application"),
        ("dcop+unix:///tmp/s#app/o", "names an object"),
        ("dcop+unix:///tmp/s#app*", "`*` is no part of an application's name"),
        ("dcop+unix:///tmp/s#a%2A", "`*` is no part of an application's name"),
    ] {
        assert!(DCOP.listen(wrong).unwrap_err().message().contains(word));
    }
}

#[test]
fn operations_are_found_by_signature_and_by_types_with_the_same_bytes() {
    let mut plain = Operation::new("plain", vec![], Shape::Void);
    plain.arguments = operation("x(int,QString)", "void").arguments;
    let interface = Interface {
        name: "X".into(),
        id: "X".into(),
        identities: (&[]).into(),
        types: None,
        notes: (&[]).into(),
        kind: everywire_model::InterfaceKind::Plain,
        bases: (&[]).into(),
        operations: vec![
            operation("f(int)", "void"),
            operation("f(unsigned int)", "void"),
            operation("g(long int)", "void"),
            plain,
        ]
        .into(),
        inherited: 0,
        attributes: (&[]).into(),
        signals: (&[]).into(),
        doc: "".into(),
    };
    for (asked, found) in [
        ("f(int)", Some(0)),
        ("f(uint)", Some(1)),
        ("g(long)", Some(2)),
        ("g(Q_INT64)", Some(2)),
        ("plain(int,QString)", Some(3)),
        ("plain(int)", None),
        ("f( int )", None),
        ("f", None),
        ("h(int)", None),
    ] {
        let incoming = Incoming {
            id: CallId(1),
            sender: Bytes::new(),
            key: Bytes::new(),
            interface: Bytes::new(),
            operation: Bytes::copy_from_slice(asked.as_bytes()),
            body: body(b"", ""),
            expects: Expects::Reply,
        };
        assert_eq!(DCOP.operation(&interface, &incoming), found, "{asked}");
    }
    assert_eq!(
        DCOP.operation(&interface, &Incoming { operation: Bytes::from_static(b"\xff"), ..empty() }),
        None
    );
    assert!(DATA_STREAM.shape(&body(b"", "QPixmap")).is_none());
}

fn empty() -> Incoming {
    Incoming {
        id: CallId(1),
        sender: Bytes::new(),
        key: Bytes::new(),
        interface: Bytes::new(),
        operation: Bytes::new(),
        body: body(b"", ""),
        expects: Expects::Reply,
    }
}
