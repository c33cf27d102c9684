//! Captured sessions of Microsoft's, Mono's and real .NET peers, replayed against this side's: as one, byte by byte, and cut off
//! anywhere.

#![allow(clippy::unwrap_used)]

use crate::channels::*;
use bytes::BytesMut;
use everywire_model::*;
use everywire_wcf::explain::explain;
use std::time::Instant;

/// Connections on which calls were made, with how many.
fn with_calls() -> Vec<(String, usize, usize)> {
    let protected = ["msclient-ntlm-miniserver", "msclient-tcptls-upgrade", "msclient-tcpwin-upgrade"];
    let calls = |capture: &str, connection| {
        let messages = explain(&streams(capture, connection).0).messages;
        messages.iter().filter(|message| ["request", "message"].contains(&message.kind.as_str())).count()
    };
    connections()
        .into_iter()
        .filter(|(capture, _)| !protected.contains(&capture.as_str()))
        .map(|(capture, connection)| {
            let calls = calls(&capture, connection);
            (capture, connection, calls)
        })
        .collect()
}

/// Plays a client's bytes to a server that answers nothing but failures; returns what came of it.
fn play(bytes: &[u8], piece: usize) -> Result<(usize, Vec<u8>), Violation> {
    let mut server = accepting("security=none&MaxReceivedMessageSize=1000000");
    let (mut input, mut calls, mut said) = (BytesMut::new(), 0, Vec::new());
    for part in bytes.chunks(piece.max(1)) {
        input.extend_from_slice(part);
        server.receive(Instant::now(), &mut input, &mut Vec::new())?;
        while let Some(event) = server.poll() {
            if let Event::Call(call) = event {
                calls += 1;
                let failure = Failure::new(Kind::NoOperation, Initiator::Here, "nothing is served");
                // One-way calls are not answered.
                let _ = server.answer(call.id, Answer::Failed(&failure));
            }
        }
        said.extend(sent(&mut server));
    }
    assert!(server.wanted() > 0 || input.is_empty());
    Ok((calls, said))
}

#[test]
fn every_captured_client_is_understood() {
    let all = with_calls();
    assert!(all.len() > 25);
    for (capture, connection, calls) in all {
        let (client, server) = streams(&capture, connection);
        let (taken, said) =
            play(&client, usize::MAX).unwrap_or_else(|violation| panic!("{capture}: {violation}"));
        // Replies to callbacks are no calls.
        assert_eq!(taken, calls, "{capture}");
        assert_eq!(said[0], 0x0b, "{capture}");
        // Whoever said the end was told the end.
        let ended = explain(&client).messages.last().is_some_and(|message| message.kind == "End");
        assert_eq!(said.last() == Some(&0x07), ended, "{capture}");
        assert!(!server.is_empty());
    }
}

#[test]
fn every_captured_client_is_understood_in_pieces() {
    for (capture, connection, _) in with_calls() {
        let (client, _) = streams(&capture, connection);
        let whole = play(&client, usize::MAX).unwrap().0;
        for piece in [1, 2, 5, 41] {
            assert_eq!(play(&client, piece).unwrap().0, whole, "{capture} in pieces of {piece}");
        }
    }
}

/// Up to every byte of a capture: what was whole is taken, the rest is waited for.
#[test]
fn every_captured_client_may_stop_anywhere() {
    for (capture, connection, _) in with_calls() {
        let (client, _) = streams(&capture, connection);
        let mut before = 0;
        let step = (client.len() / 100).max(1);
        for cut in (0..=client.len()).step_by(step) {
            let (calls, _) = play(&client[..cut], usize::MAX)
                .unwrap_or_else(|violation| panic!("{capture} cut at {cut}: {violation}"));
            assert!(calls >= before, "{capture} cut at {cut}");
            before = calls;
        }
    }
}

/// One bit wrong anywhere: a violation or not, but no panic and no more memory wanted than the quota.
#[test]
fn every_captured_client_may_be_wrong_anywhere() {
    for capture in ["real-dotnet-nettcp-none", "msclient-tcpstream-VoidCall", "msclient-texttcp-VoidCall"] {
        let (client, server) = streams(capture, 0);
        for at in 0..client.len() {
            let mut wrong = client.clone();
            wrong[at] ^= 1 << (at % 8);
            let _ = play(&wrong, usize::MAX);
        }
        for at in 0..server.len() {
            let mut wrong = server.clone();
            wrong[at] ^= 1 << (at % 8);
            let mut client = connecting(VIA);
            call(&mut client, Expects::Reply).unwrap();
            let mut input = BytesMut::from(&wrong[..]);
            let _ = client.receive(Instant::now(), &mut input, &mut Vec::new());
            assert!(client.wanted() <= 65_536 + 5);
            events(&mut client);
        }
    }
}

/// The 16 bytes behind the first occurrence of a head.
fn id_behind(bytes: &[u8], head: [u8; 3]) -> Option<usize> {
    bytes.windows(3).position(|window| window == head).map(|at| at + 3)
}

/// The replies of real servers, told to this side's client: each is for the call that it names.
#[test]
fn every_captured_server_is_understood() {
    for capture in
        ["real-dotnet-nettcp-none", "msclient-tcp-VoidCall", "tcp-VoidCall", "msclient-tcpstream-VoidCall"]
    {
        let streamed = capture.contains("stream");
        for piece in [1, 3, usize::MAX] {
            let (_, server) = streams(capture, 0);
            let mut client =
                connecting(&if streamed { format!("{VIA}?mode=streamed") } else { VIA.to_owned() });
            let id = call(&mut client, Expects::Reply).unwrap();
            sent(&mut client);
            give(&mut client, &server[..1]).unwrap();
            let request = sent(&mut client);
            // a:MessageID there, a:RelatesTo here; both are universal identifiers.
            let asked = id_behind(&request, [0x44, 0x1a, 0xad]).unwrap();
            let mut reply = server[1..].to_vec();
            let related = id_behind(&reply, [0x44, 0x12, 0xad]).unwrap();
            reply[related..related + 16].copy_from_slice(&request[asked..asked + 16]);
            // The second reply of a session is to nobody here.
            let end = explain(&[&server[..1], &reply].concat()).messages[1].len;
            let mut input = BytesMut::new();
            for part in reply[..end].chunks(piece.min(end)) {
                input.extend_from_slice(part);
                client.receive(Instant::now(), &mut input, &mut Vec::new()).unwrap();
            }
            let events = events(&mut client);
            let done = |event: &Event| matches!(event, Event::Reply { id: replied, outcome: Outcome::Done(_) } if *replied == id);
            assert!(events.iter().any(done), "{capture}: {events:?}");
        }
    }
}
