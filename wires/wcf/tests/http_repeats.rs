//! Requests whose heads came before on their connection are answered octet for octet as those whose heads are new.

#![allow(clippy::unwrap_used)]

use crate::http_support::*;
use everywire_model::shape::Hold;
use everywire_model::*;
use everywire_wcf::http::Accepting;
use std::os::unix::fs::PermissionsExt;

/// What a servant says to every call.
#[derive(Clone, Copy)]
enum Says {
    Text,
    Long,
    Trouble,
    NoObject,
}

/// Sends a request, in these pieces; what came back, but for the time, and how the session took it.
fn ask(session: &mut Accepting, pieces: [&[u8]; 2], says: Says) -> (String, Option<&'static str>) {
    let mut violated = None;
    for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
        if let Err(violation) = send(session, piece) {
            violated.get_or_insert(violation.name);
        }
    }
    let operation = interface().operations[0].clone();
    for call in calls(session).into_iter().filter(|call| call.expects == Expects::Reply) {
        let text = match says {
            Says::Long => "long ".repeat(10_000),
            _ => "heard".to_owned(),
        };
        let values = Values(&operation.results, vec![Value::Text(text)]);
        let failure = Failure::new(Kind::NoObject, Initiator::Peer, "gone");
        let trouble = trouble();
        let shape = Shape::Struct(Hold::new(trouble.clone()));
        let why = Values(&shape, vec![Value::Text("so".to_owned())]);
        let answer = match says {
            Says::Text | Says::Long => Answer::Done(&values),
            Says::Trouble => Answer::Raised { shape: &trouble, fields: &why },
            Says::NoObject => Answer::Failed(&failure),
        };
        session.answer(call.id, answer).unwrap();
    }
    let told = told(session);
    let dateless = told.split("\r\n").map(|line| if line.starts_with("date: ") { "date" } else { line });
    (dateless.collect::<Vec<_>>().join("\r\n"), violated)
}

/// Each request in turn, whole on one connection and in two pieces on another: there no head is looked for.
fn both(address: &str, requests: &[(Vec<u8>, Says)]) -> Vec<String> {
    let (mut whole, mut torn) = (accepting(address), accepting(address));
    let mut all = Vec::new();
    for (at, (request, says)) in requests.iter().enumerate() {
        let (front, back) = request.split_at(request.len() - 1);
        let came = ask(&mut whole, [request, b""], *says);
        assert_eq!(came, ask(&mut torn, [front, back], *says), "{address}, request {at}");
        assert_eq!(whole.outstanding(), torn.outstanding());
        all.push(came.0);
    }
    all
}

fn status(told: &str) -> &str {
    told.split(' ').nth(1).unwrap_or("none")
}

#[test]
fn repetitions_are_answered_as_what_is_new() {
    let post = |operation: &str, body: &str| post("/echo", &basic(operation), body.as_bytes());
    let tell = envelope("<Tell xmlns=\"http://tempuri.org/\"><text>a</text></Tell>");
    let requests = [
        (post("Say", &say("one")), Says::Text),
        (post("Say", &say("two")), Says::Text),
        (post("Say", &say("of another length")), Says::Long),
        (post("Tell", &tell), Says::Text),
        (post("Tell", &tell), Says::Text),
        (post("Say", &say("three")), Says::Trouble),
        (post("Say", &say("four")), Says::NoObject),
        (post("Say", ""), Says::Text),
    ];
    let told = both("basic://127.0.0.1:8000?security=none", &requests);
    let statuses: Vec<_> = told.iter().map(|told| status(told)).collect();
    assert_eq!(statuses, ["200", "200", "200", "202", "202", "500", "500", "400"]);
    assert!(told[7].contains("connection: close"), "{}", told[7]);
    for broken in ["no envelope", "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">"] {
        let told = both(
            "basic://127.0.0.1:8000?security=none",
            &[(post("Say", &say("one")), Says::Text), (post("Say", broken), Says::Text)],
        );
        assert_eq!(status(&told[1]), "400");
    }
}

#[test]
fn repetitions_are_packed_compressed_and_limited_as_what_is_new() {
    let take = "Accept-Encoding: gzip\r\n";
    let compressed = "basic://127.0.0.1:8000?security=none&compression=gzip";
    let headers = format!("{}{take}", basic("Say"));
    let request = post("/echo", &headers, say("one").as_bytes());
    let told = both(
        compressed,
        &[(request.clone(), Says::Long), (request.clone(), Says::Long), (request, Says::Text)],
    );
    assert!(told[0].contains("content-encoding: gzip") && told[0] == told[1] && !told[2].contains("gzip"));

    let small = "basic://127.0.0.1:8000?security=none&MaxReceivedMessageSize=1000";
    let requests = [1, 2, 2000]
        .map(|length| (post("/echo", &basic("Say"), say(&"x".repeat(length)).as_bytes()), Says::Text));
    let told = both(small, &requests);
    assert_eq!((status(&told[1]), status(&told[2])), ("200", "413"));
}

#[test]
fn whoever_must_say_who_calls_is_asked_each_time() {
    let users = std::env::temp_dir().join(format!("everywire-users-{}", std::process::id()));
    std::fs::write(&users, "ali:secret\n").unwrap();
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut session = accepting(&format!("basic+unix:///nowhere?users={}", users.display()));
    std::fs::remove_file(&users).unwrap();
    let request = |login: &str| post("/echo", &format!("{}{login}", basic("Say")), say("x").as_bytes());
    let known = "Authorization: Basic YWxpOnNlY3JldA==\r\n";
    for (login, expected) in [
        (known, "200"),
        (known, "200"),
        ("", "401"),
        ("Authorization: Basic YTpi\r\n", "401"),
        ("", "401"),
        (known, "200"),
    ] {
        let (told, _) = ask(&mut session, [&request(login), b""], Says::Text);
        assert_eq!(status(&told), expected, "{login}");
    }
}

/// The shares of a node go by the account: it is told when a password was believed, and again when it is another user's.
#[test]
fn the_connection_is_of_the_account_whose_password_came_last() {
    let users = std::env::temp_dir().join(format!("everywire-accounts-{}", std::process::id()));
    std::fs::write(&users, "HOME\\ali:secret\nbob:secret\n").unwrap();
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mut session = accepting(&format!("basic+unix:///nowhere?users={}", users.display()));
    std::fs::remove_file(&users).unwrap();
    let login = |word: &str| format!("Authorization: Basic {word}\r\n");
    // `ali`, `HOME\ALI`, `ali` with a wrong password, `bob`.
    for (word, account) in [
        ("YWxpOnNlY3JldA==", Some("HOME\\ali")),
        ("YWxpOnNlY3JldA==", None),
        ("SE9NRVxBTEk6c2VjcmV0", None),
        ("YWxpOndyb25n", None),
        ("Ym9iOnNlY3JldA==", Some("bob")),
    ] {
        let request = post("/echo", &format!("{}{}", basic("Say"), login(word)), say("x").as_bytes());
        send(&mut session, &request).unwrap();
        let events: Vec<Event> = std::iter::from_fn(|| session.poll()).collect();
        let told = events.iter().find_map(|event| match event {
            Event::Ready(peer) => peer.account.as_deref(),
            _ => None,
        });
        assert_eq!(told, account, "{word}");
        let operation = interface().operations[0].clone();
        for event in events {
            let Event::Call(call) = event else { continue };
            let values = Values(&operation.results, vec![Value::Text("X".to_owned())]);
            session.answer(call.id, Answer::Done(&values)).unwrap();
        }
        sent(&mut session);
    }
}

#[test]
fn repetitions_that_come_together_are_answered_in_turn() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let request = |text: &str| post("/echo", &basic("Say"), say(text).as_bytes());
    ask(&mut session, [&request("first"), b""], Says::Text);
    let texts = ["one", "two", "three", "four"];
    let mut all = texts.map(request).concat();
    // The rest of the last comes later.
    let rest = all.split_off(all.len() - 5);
    send(&mut session, &all).unwrap();
    let operation = interface().operations[0].clone();
    for (at, text) in texts.into_iter().enumerate() {
        if at == 3 {
            assert!(calls(&mut session).is_empty());
            send(&mut session, &rest).unwrap();
        }
        let came = calls(&mut session);
        assert_eq!((came.len(), session.outstanding()), (1, 1), "one at a time");
        assert_eq!(first(&came[0].body, &operation.arguments), Value::Text(text.to_owned()));
        let values = Values(&operation.results, vec![Value::Text(text.to_uppercase())]);
        session.answer(came[0].id, Answer::Done(&values)).unwrap();
    }
    let told = told(&mut session);
    let places = texts.map(|text| told.find(&format!(">{}<", text.to_uppercase())).unwrap());
    assert!(places.is_sorted() && told.matches("HTTP/1.1 200 OK\r\n").count() == 4);
}

#[test]
fn another_path_has_no_heads_of_the_one_before() {
    let mut session = accepting("basic://127.0.0.1:8000?security=none");
    let request = |path: &str| post(path, &basic("Say"), say("x").as_bytes());
    for path in ["/echo", "/other", "/echo", "/echo", "/other", "/other", "/echo"] {
        let (told, _) = ask(&mut session, [&request(path), b""], Says::Text);
        assert_eq!(status(&told), if path == "/echo" { "200" } else { "404" }, "{path}");
    }
}
