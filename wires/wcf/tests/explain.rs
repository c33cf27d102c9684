//! Listings of captured sessions, whole and cut off anywhere.

#![allow(clippy::unwrap_used)]

use crate::channels::{connections, streams};
use everywire_model::wire::MessageListing;
use everywire_wcf::explain::explain;

fn part<'a>(message: &'a MessageListing, name: &str) -> Vec<&'a str> {
    message.parts.iter().filter(|part| part.name == name).map(|part| part.value.as_str()).collect()
}

#[test]
fn a_session_is_listed_record_by_record() {
    let (client, server) = streams("real-dotnet-nettcp-none", 0);
    let (calls, answers) = (explain(&client).messages, explain(&server).messages);
    let kinds: Vec<&str> = calls.iter().map(|message| message.kind.as_str()).collect();
    assert_eq!(kinds, ["Preamble", "Preamble End", "request", "request", "End"]);
    assert_eq!(calls[0].summary, "Preamble Duplex net.tcp://localhost:8898/Demo, 38 bytes");
    assert_eq!(part(&calls[0], "known encoding"), ["8 (application/soap+msbinsession1)"]);
    assert_eq!(part(&calls[2], "session word").len(), 5);
    assert_eq!(part(&calls[2], "session word")[4], "9 = \"text\"");
    assert_eq!(part(&calls[2], "to"), ["net.tcp://localhost:8898/Demo"]);
    // The second message has no words of its own.
    assert_eq!(part(&calls[3], "action"), ["urn:DemoService/IDemoService/Echo"]);
    assert_eq!(part(&calls[3], "body"), ["<Echo xmlns=\"urn:DemoService\"><text>hello1</text></Echo>"]);
    let kinds: Vec<&str> = answers.iter().map(|message| message.kind.as_str()).collect();
    assert_eq!(kinds, ["Preamble Ack", "reply", "reply", "End"]);
    assert_eq!(part(&answers[2], "action"), ["urn:DemoService/IDemoService/EchoResponse"]);
    assert_eq!(part(&answers[1], "relates to"), part(&calls[2], "message id"));
}

#[test]
fn streamed_and_textual_envelopes_are_listed() {
    let (client, server) = streams("msclient-tcpstream-VoidCall", 0);
    let calls = explain(&client).messages;
    assert_eq!(calls[2].summary, "request http://tempuri.org/IRemoteObject/VoidCall, 168 bytes in 1 chunks");
    assert_eq!(part(&calls[2], "body"), ["<VoidCall xmlns=\"http://tempuri.org/\"/>"]);
    assert_eq!(explain(&server).messages[1].kind, "reply");
    let (client, _) = streams("msclient-texttcp-VoidCall", 0);
    let calls = explain(&client).messages;
    assert_eq!(calls[2].summary, "request http://tempuri.org/IRemoteObject/VoidCall, 519 bytes");
    assert_eq!(part(&calls[2], "to"), ["net.tcp://localhost:10500/texttcp/ro"]);
    assert!(part(&calls[2], "body")[0].starts_with("<VoidCall xmlns="), "{calls:?}");
}

#[test]
fn a_table_of_words_whose_size_is_the_sign_of_xml_is_a_table() {
    // Sixty octets of words, the first with 42, the second with 16; the start of an envelope.
    let mut payload = vec![0x3c, 42];
    payload.extend_from_slice(&[b'a'; 42]);
    payload.push(16);
    payload.extend_from_slice(&[b'b'; 16]);
    payload.extend_from_slice(&[0x56, 0x02, 0x0b, 0x01, b's', 0x04, 0x01]);
    let mut message = vec![0x06, u8::try_from(payload.len()).unwrap()];
    message.extend_from_slice(&payload);
    let listed = explain(&message).messages;
    assert_eq!(part(&listed[0], "session word").len(), 2, "{listed:?}");
}

#[test]
fn what_an_upgrade_protects_is_cut_where_it_cuts_itself() {
    let (client, server) = streams("msclient-ntlm-miniserver", 0);
    let said = |bytes: &[u8]| -> Vec<(String, String)> {
        let listed = explain(bytes).messages.into_iter().skip_while(|message| message.kind != "protected");
        listed.map(|message| (message.kind, message.summary.split(", ").next().unwrap().to_owned())).collect()
    };
    let (client, server) = (said(&client), said(&server));
    assert!(client.iter().chain(&server).all(|(kind, _)| kind == "protected"));
    let handshake = |said: &[(String, String)]| {
        said.iter().filter(|(_, what)| what.starts_with("NegotiateStream Handshake")).count()
    };
    assert_eq!((handshake(&client), handshake(&server)), (2, 2), "{client:?} {server:?}");
    assert_eq!(client.last().unwrap().1, "NegotiateStream data", "{client:?}");
}

#[test]
fn faults_and_broken_records_are_named() {
    let mut fault = vec![0x08, 0x47];
    fault.extend_from_slice(b"http://schemas.microsoft.com/ws/2006/05/framing/faults/EndpointNotFound");
    assert_eq!(explain(&fault).messages[0].summary, "Fault EndpointNotFound");
    assert_eq!(explain(&[0x0d]).messages[0].kind, "UnknownRecord");
    assert_eq!(explain(&[0x06, 0x80, 0x00]).messages[0].kind, "Size");
}

/// Every cut of every capture: nothing is pointed at outside its message, and whole messages are listed as before.
#[test]
fn cut_anywhere_the_listing_stays_inside_and_keeps_what_was_whole() {
    for (capture, connection) in connections() {
        let (client, server) = streams(&capture, connection);
        for stream in [client, server] {
            let whole = explain(&stream).messages;
            let step = (stream.len() / 100).max(1);
            for cut in (0..=stream.len()).step_by(step) {
                let listing = explain(&stream[..cut]);
                let mut end = 0;
                for (index, message) in listing.messages.iter().enumerate() {
                    assert_eq!(message.offset, end, "{capture} cut at {cut}");
                    end = message.offset + message.len;
                    assert!(end <= cut);
                    for part in &message.parts {
                        assert!(part.offset + part.len <= message.len, "{capture} cut at {cut}: {part:?}");
                    }
                    if index + 1 < listing.messages.len() {
                        assert_eq!(message.summary, whole[index].summary);
                    }
                }
                assert_eq!(end, cut, "{capture}");
            }
        }
    }
}

#[test]
fn http_is_listed_by_what_its_messages_hold() {
    let body = "<s:Envelope xmlns:s=\"urn:s\"><s:Header><Action>urn:said</Action></s:Header><s:Body><Say/></s:Body></s:Envelope>";
    let first = format!(
        "POST /echo HTTP/1.1\r\nHost: h\r\nAuthorization: Basic c2VjcmV0\r\nContent-Type: text/xml; charset=utf-8\r\n\
         SOAPAction: \"urn:say\"\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let (one, two) = body.split_at(40);
    let second = format!(
        "POST /echo HTTP/1.1\r\nContent-Type: application/soap+xml; action=\"urn:say\"\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x};x\r\n{two}\r\n0\r\nT: t\r\n\r\n",
        one.len(),
        two.len()
    );
    let messages = explain(format!("{first}{second}GET /echo?wsdl HTTP/1.1\r\n\r\n").as_bytes()).messages;
    let summaries: Vec<&str> = messages.iter().map(|message| message.summary.as_str()).collect();
    let length = body.len();
    assert_eq!(
        summaries,
        [
            format!("request POST /echo urn:said, {length} bytes"),
            format!("request POST /echo urn:said, {length} bytes in 2 chunks"),
            "request GET /echo?wsdl, 0 bytes".to_owned()
        ]
    );
    assert_eq!(part(&messages[0], "body"), ["<Say/>"]);
    assert_eq!(part(&messages[1], "body"), ["<Say/>"]);
    assert!(messages[0].body.is_some_and(|(at, len)| &first[at..at + len] == "<Say/>"));
    assert!(part(&messages[0], "field").contains(&"Host: h"));
    assert!(!format!("{messages:?}").contains("c2VjcmV0"), "secrets are not shown");
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n\
                  HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/html\r\n\r\n<p>no</p>";
    let messages = explain(answer.as_bytes()).messages;
    let summaries: Vec<&str> = messages.iter().map(|message| message.summary.as_str()).collect();
    let expected = [
        "reply 100 Continue, 0 bytes",
        "reply 202 Accepted, 0 bytes",
        "reply 500 Internal Server Error, 9 bytes",
    ];
    assert_eq!(summaries, expected);
    assert_eq!(part(&messages[2], "content"), ["<p>no</p>"]);
}

#[test]
fn packages_and_binary_bodies_of_http_are_listed() {
    let package = "--B\r\nContent-ID: <root>\r\n\r\n<e:Envelope xmlns:e=\"urn:e\"><e:Body><Turn/></e:Body></e:Envelope>\
                   \r\n--B\r\nContent-ID: <a>\r\n\r\nabc\r\n--B--\r\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: multipart/related; start=\"<root>\"; boundary=\"B\"\r\n";
    let whole = format!("{head}Content-Length: {}\r\n\r\n{package}", package.len());
    let messages = explain(whole.as_bytes()).messages;
    assert_eq!(part(&messages[0], "body"), ["<Turn/>"]);
    assert_eq!(part(&messages[0], "octets"), ["3 bytes"]);
    // <s:Envelope><s:Body><a/></s:Body></s:Envelope> with inline and static names.
    let binary = [0x56, 0x02, 0x0b, 0x01, b's', 0x04, 0x56, 0x0e, 0x40, 0x01, b'a', 0x01, 0x01, 0x01];
    let head = format!(
        "POST /b HTTP/1.1\r\nContent-Type: application/soap+msbin1\r\nContent-Length: {}\r\n\r\n",
        binary.len()
    );
    let messages = explain(&[head.as_bytes(), &binary].concat()).messages;
    assert_eq!(part(&messages[0], "body"), ["<a/>"]);
}

/// Whatever is cut off or broken, nothing is pointed at outside its message.
#[test]
fn broken_http_is_listed_as_far_as_it_goes() {
    let body = "<s:Envelope xmlns:s=\"urn:s\"><s:Body><Say/></s:Body></s:Envelope>";
    let stream = format!(
        "POST /echo HTTP/1.1\r\nContent-Type: text/xml\r\nContent-Length: {}\r\n\r\n{body}\
         POST /echo HTTP/1.1\r\nContent-Type: multipart/related; boundary=B\r\nTransfer-Encoding: chunked\r\n\r\n\
         9\r\n--B\r\n\r\n<a\r\n9\r\n/>\r\n--B--\r\n0\r\n\r\n",
        body.len()
    );
    let check = |bytes: &[u8]| {
        let mut end = 0;
        for message in explain(bytes).messages {
            assert_eq!(message.offset, end);
            end = message.offset + message.len;
            for part in &message.parts {
                assert!(part.offset + part.len <= message.len, "{part:?} of {message:?}");
            }
        }
        assert_eq!(end, bytes.len());
    };
    for cut in 0..=stream.len() {
        check(&stream.as_bytes()[..cut]);
        let mut torn = stream.clone().into_bytes();
        for wrong in [0, b'\n', b'-', 0xff, b'f'] {
            if cut < torn.len() {
                torn[cut] = wrong;
                check(&torn);
            }
        }
    }
    for wrong in ["Content-Length: x", "Content-Length: 1\r\nContent-Length: 2"] {
        let message = &explain(format!("POST / HTTP/1.1\r\n{wrong}\r\n\r\n").as_bytes()).messages[0];
        assert!(message.summary.starts_with("this is broken HTTP"), "{}", message.summary);
    }
    let message =
        &explain(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+5\r\nabcde\r\n").messages[0];
    assert!(message.summary.contains("a chunk without its size"), "{}", message.summary);
}

/// Whatever breaks a message, no part of a password is shown.
#[test]
fn a_broken_header_shows_no_password() {
    let secret = "<o:Security><o:UsernameToken><o:Password>opensesame&BROKEN;</o:Password></o:UsernameToken></o:Security>";
    for header in [
        secret.replace("BROKEN", "x"),
        secret.replace("opensesame&BROKEN;", "open&x;sesame&x;opensesame"),
        secret.replace("opensesame&BROKEN;", "</o:Wrong>opensesame"),
        format!("<a:To>&x;</a:To>{}", secret.replace("&BROKEN;", "")),
        secret.replace("&BROKEN;</o:Password>", ""),
    ] {
        let envelope = format!(
            "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope' xmlns:o='urn:o' xmlns:a='urn:a'>\
             <s:Header>{header}</s:Header><s:Body/></s:Envelope>"
        );
        let head = "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Type: application/soap+xml\r\n";
        let request = format!("{head}Content-Length: {}\r\n\r\n{envelope}", envelope.len());
        let listed = explain(request.as_bytes()).messages;
        assert!(!part(&listed[0], "ends early").is_empty(), "{listed:?}");
        assert!(!format!("{listed:?}").contains("opensesame"), "{header}: {listed:?}");
    }
}
