//! Both halves together, in any pieces, and each against a captured peer.

#![allow(clippy::unwrap_used)]

use crate::support;
use crate::support::{GUID, Scratch, capture};
use bytes::BytesMut;
use everywire_auth::own_uid;
use everywire_auth::sasl::{
    Accept, Authenticated, AuthenticatedClient, Client, ClientOptions, Identity, Keyring, Mechanism,
    Progress, SaslError, Server, ServerOptions,
};

/// Lets both talk, in pieces of this many bytes, until both are done or one fails.
fn talk(
    client: &mut Client,
    server: &mut Server,
    piece: usize,
) -> Result<(Authenticated, AuthenticatedClient), SaslError> {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    let (mut server_input, mut client_input) = (BytesMut::new(), BytesMut::new());
    client.start(&mut up)?;
    let (mut ours, mut theirs) = (None, None);
    for _ in 0..10_000 {
        server_input.extend(up.drain(..piece.min(up.len())));
        if let Progress::Done(done) = server.receive(&mut server_input, &mut down)? {
            theirs = Some(done);
        }
        client_input.extend(down.drain(..piece.min(down.len())));
        if let Progress::Done(done) = client.receive(&mut client_input, &mut up)? {
            ours = Some(done);
        }
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            return Ok((ours, theirs));
        }
    }
    panic!("nobody says anything any more: {client:?} {server:?}");
}

#[test]
fn all_mechanisms_in_any_pieces() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    for mechanism in [Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous] {
        for case in 0..8 {
            for piece in [1, 2, 7, 10_000] {
                let mut client = Client::new(ClientOptions {
                    mechanisms: vec![mechanism],
                    uid: (case & 1 == 0).then(own_uid),
                    pipelined: case & 2 == 0,
                    negotiate_handles: case & 4 == 0,
                    keyring: keyring.clone(),
                    expected_guid: Some(GUID),
                    ..ClientOptions::default()
                });
                let mut server = Server::new(ServerOptions {
                    mechanisms: vec![mechanism],
                    peer_uid: Some(own_uid()),
                    handles: true,
                    keyring: keyring.clone(),
                    ..ServerOptions::new(GUID)
                });
                let (ours, theirs) = talk(&mut client, &mut server, piece).unwrap();
                let handles = case & 4 == 0;
                assert_eq!(ours, Authenticated { guid: GUID, handles, mechanism });
                let identity = match mechanism {
                    Mechanism::Anonymous => Identity::Anonymous,
                    _ => Identity::User(own_uid()),
                };
                assert_eq!(theirs, AuthenticatedClient { identity, mechanism, handles });
            }
        }
    }
}

#[test]
fn another_keyring_is_no_proof() {
    let scratch = Scratch::new();
    let (ours, theirs) = (Keyring::at(scratch.join("ours")), Keyring::at(scratch.join("theirs")));
    let real = theirs.current("org_freedesktop_general", everywire_auth::system_random).unwrap();
    // The same number, another secret.
    ours.current("org_freedesktop_general", support::fixed).unwrap();
    let file = scratch.join("ours/org_freedesktop_general");
    std::fs::write(file, format!("{} {} {}\n", real.id, real.created, "00".repeat(24))).unwrap();
    let mechanisms = vec![Mechanism::CookieSha1];
    let mut client = Client::new(ClientOptions {
        mechanisms: mechanisms.clone(),
        keyring: ours,
        ..ClientOptions::default()
    });
    let mut server = Server::new(ServerOptions { mechanisms, keyring: theirs, ..ServerOptions::new(GUID) });
    let Err(SaslError::Rejected { tried, keyring, .. }) = talk(&mut client, &mut server, 100) else {
        panic!()
    };
    assert_eq!((tried, keyring), (Some(Mechanism::CookieSha1), None));
}

/// The captured clients all claim to be root, and get the same answers from us as from `dbus-daemon`.
#[test]
fn captured_clients_against_our_server() {
    for name in ["connect-gdbus.txt", "connect-libdbus.txt", "connect-sdbus.txt", "connect-zbus.txt"] {
        let turns = capture(name);
        let mut server = Server::new(ServerOptions {
            peer_uid: Some(0),
            accept: Accept::Users(vec![0]),
            handles: true,
            ..ServerOptions::new(GUID)
        });
        let (mut input, mut out) = (BytesMut::new(), Vec::new());
        let mut done = None;
        let mut said = turns.iter().filter(|(client, _)| !client).map(|(_, bytes)| bytes.as_slice());
        for (_, bytes) in turns.iter().filter(|(client, _)| *client) {
            input.extend_from_slice(bytes);
            if done.is_none() {
                if let Progress::Done(admitted) = server.receive(&mut input, &mut out).unwrap() {
                    done = Some(admitted);
                }
                if !out.is_empty() {
                    let captured = said.next().unwrap();
                    assert!(captured.starts_with(&out), "{name}: {:?}", String::from_utf8_lossy(&out));
                    out.clear();
                }
            }
        }
        let identity = Identity::User(0);
        assert_eq!(
            done,
            Some(AuthenticatedClient { identity, mechanism: Mechanism::External, handles: true }),
            "{name}"
        );
        assert_eq!(input.first(), Some(&b'l'), "{name}: Hello follows");
    }
}

/// Our client against the captured `dbus-daemon`: it says what the libraries say, byte for byte.
#[test]
fn our_client_against_the_captured_server() {
    for (name, uid, pipelined) in [
        ("connect-libdbus.txt", Some(0), false),
        ("connect-sdbus.txt", None, true),
        ("connect-zbus.txt", Some(0), true),
    ] {
        let mut client = Client::new(ClientOptions {
            mechanisms: vec![Mechanism::External],
            uid,
            pipelined,
            expected_guid: Some(GUID),
            ..ClientOptions::default()
        });
        let (mut input, mut out) = (BytesMut::new(), Vec::new());
        client.start(&mut out).unwrap();
        let mut done = None;
        for (from_client, bytes) in capture(name) {
            if done.is_some() {
                break;
            }
            if from_client {
                assert!(bytes.starts_with(&out), "{name}: {:?}", String::from_utf8_lossy(&out));
                out.clear();
            } else {
                input.extend_from_slice(&bytes);
                if let Progress::Done(authenticated) = client.receive(&mut input, &mut out).unwrap() {
                    done = Some(authenticated);
                }
            }
        }
        let mechanism = Mechanism::External;
        assert_eq!(done, Some(Authenticated { guid: GUID, handles: true, mechanism }), "{name}");
    }
}
