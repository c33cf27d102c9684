//! Bodies that pass or are refused: of another wire, that do not hold together, and at the limits.

use super::*;

#[test]
fn a_body_of_another_wire_is_refused_before_anything_is_sent() {
    let mut hop = Hop::new();
    let incoming = hop.takes(&message(true, 1, 0, &call_fields(true), b""));
    let other = Body { codec: &OTHER, ..incoming.body.clone() };
    let failure = hop.tries(&incoming, &other).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported);
    assert!(hop.back.said().is_empty() && hop.back.session.outstanding() == 0);
    let failure = hop.front.session.answer(incoming.id, Answer::Done(&other)).unwrap_err();
    assert_eq!(failure.kind(), Kind::Unsupported);
    assert!(says(&hop.front.said(), "org.freedesktop.DBus.Error.NotSupported"));
}

#[test]
fn a_body_that_does_not_hold_together_is_not_passed_on() {
    let word = |text: &str| string(text);
    let odd = |signature: &str| {
        let mut out = vec![u8::try_from(signature.len()).unwrap()];
        out.extend_from_slice(signature.as_bytes());
        out.push(0);
        out
    };
    let cases: &[(&str, Vec<u8>)] = &[
        ("b", number(true, 2)),
        ("u", vec![1, 2]),
        ("u", vec![1, 0, 0, 0, 9]),
        ("s", vec![2, 0, 0, 0, 0xff, 0xfe, 0]),
        ("s", vec![3, 0, 0, 0, b'a', 0, b'b', 0]),
        ("s", vec![1, 0, 0, 0, b'a', 1]),
        ("o", word("a/b")),
        ("g", odd("a")),
        ("v", odd("ii")),
        ("v", [odd("b"), vec![0; 1], number(true, 3)].concat()),
        ("h", number(true, 0)),
        ("au", [number(true, 6), vec![0; 6]].concat()),
        ("as", [number(true, 3), word("x")].concat()),
        ("ab", [number(true, 4), number(true, 9)].concat()),
        ("yu", vec![1, 1, 0, 0, 0, 0, 0, 0]),
        ("a{sv}", [number(true, 2000), vec![0; 4]].concat()),
        ("(u)", Vec::new()),
    ];
    for (kind, body) in cases {
        let mut hop = Hop::new();
        let mut fields = call_fields(true);
        fields.push((8, "g", signature(kind)));
        let incoming = hop.takes(&message(true, 1, 0, &fields, body));
        let failure = hop.tries(&incoming, &incoming.body).expect_err(kind);
        assert_eq!(failure.kind(), Kind::Malformed, "{kind}: {failure}");
        assert!(hop.back.said().is_empty() && hop.back.session.outstanding() == 0, "{kind}");
        // Nor back.
        let failure = hop.front.session.answer(incoming.id, Answer::Done(&incoming.body)).unwrap_err();
        assert_eq!(failure.kind(), Kind::Malformed, "{kind}");
        assert!(says(&hop.front.said(), "org.freedesktop.DBus.Error."), "{kind}");
    }
    // Nested more deeply than anybody takes.
    let mut deep = odd("v").repeat(70);
    deep.extend(odd("y"));
    deep.push(1);
    let mut hop = Hop::new();
    let mut fields = call_fields(true);
    fields.push((8, "g", signature("v")));
    let incoming = hop.takes(&message(true, 1, 0, &fields, &deep));
    assert_eq!(hop.tries(&incoming, &incoming.body).unwrap_err().kind(), Kind::Malformed);
}

#[test]
fn all_that_holds_together_passes() {
    let word = |text: &str| string(text);
    let cases: &[(&str, Vec<u8>)] = &[
        ("", Vec::new()),
        ("y", vec![1]),
        ("ayas", [number(true, 3), vec![1, 2, 3, 0], number(true, 0)].concat()),
        ("a(yu)", [number(true, 8), vec![0; 4], vec![1, 0, 0, 0], number(true, 2)].concat()),
        ("a{yv}", [number(true, 9), vec![0; 4], vec![1, 1, b'u', 0], number(true, 2), vec![]].concat()),
        ("go", [signature("a{sv}"), vec![0; 1], word("/a")].concat()),
        ("at", [number(true, 0), vec![0; 4]].concat()),
        ("d", vec![0xff; 8]),
    ];
    for (kind, body) in cases {
        let mut hop = Hop::new();
        let mut fields = call_fields(true);
        if !kind.is_empty() {
            fields.push((8, "g", signature(kind)));
        }
        let mut body = body.clone();
        if *kind == "a{yv}" {
            // The element ends with its number.
            body[0] = 8;
        }
        let incoming = hop.takes(&message(true, 1, 0, &fields, &body));
        let passed = received(&hop.passes(&incoming));
        assert_eq!((&passed.body.bytes, &*passed.body.context), (&body.into(), kind.as_bytes()), "{kind}");
    }
}

#[test]
fn a_body_larger_than_the_next_limit_is_refused() {
    let mut config = config();
    config.limits = everywire_model::Limits::default().with_message(64 << 10);
    let mut back = Side::new(DBUS.admitted(&config));
    back.events();
    let mut hop = Hop::new();
    let mut fields = call_fields(true);
    fields.push((8, "g", signature("ay")));
    let body = [number(true, 70_000), vec![7; 70_000]].concat();
    let incoming = hop.takes(&message(true, 1, 0, &fields, &body));
    let failure = start(&mut back, &Profile::default(), &incoming, &incoming.body).unwrap_err();
    assert_eq!(failure.kind(), Kind::LimitExceeded);
    assert!(back.said().is_empty());
    assert_eq!(received(&hop.passes(&incoming)).body.bytes, body);
}

#[test]
fn a_header_that_grows_over_the_limit_fails_its_call_alone() {
    // The limit holds for all fields of a header: the peer would end the connection.
    for (size, fits) in [(32 << 10, false), ((32 << 10) - 40, false), ((32 << 10) - 400, true)] {
        let mut hop = Hop::new();
        let incoming = hop.takes(&message(true, 1, 0, &call_fields(true), b""));
        let mut headers = Headers::default();
        headers.add(Header::text("77", "x".repeat(size - 16)));
        let sent = hop.tries(&incoming, &WithHeaders { values: &incoming.body, headers: &headers });
        let values = hop.tries(&incoming, &WithHeaders { values: nothing(), headers: &headers });
        for sent in [&sent, &values] {
            assert_eq!(
                sent.as_ref().err().map(Failure::kind),
                (!fits).then_some(Kind::LimitExceeded),
                "{size}"
            );
        }
        let said = hop.back.said();
        assert_eq!(said.is_empty(), !fits);
        Side::admitted().hear(&said).unwrap();
    }
}
