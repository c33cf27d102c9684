//! SASL, both sides, under hostile bytes: pieces make no difference, nobody comes in without a proof, and nobody makes us
//! say much.

use bytes::BytesMut;
use everywire_auth::sasl::{
    Accept, Authenticated, AuthenticatedClient, Client, ClientOptions, Guid, Identity, Keyring, MAX_LINE,
    MAX_LINES, Mechanism, Progress, SaslError, Server, ServerOptions,
};
use std::io;

const ALL: [Mechanism; 3] = [Mechanism::External, Mechanism::CookieSha1, Mechanism::Anonymous];

/// The same in each run, so that runs can be compared.
fn fixed(buffer: &mut [u8]) -> io::Result<()> {
    buffer.fill(7);
    Ok(())
}

fn mechanisms(choice: u8) -> Vec<Mechanism> {
    ALL.into_iter()
        .enumerate()
        .filter(|(bit, _)| choice >> bit & 1 == 1)
        .map(|(_, mechanism)| mechanism)
        .collect()
}

fn server(choice: u8) -> Server {
    Server::new(ServerOptions {
        mechanisms: mechanisms(choice),
        peer_uid: (choice & 8 != 0).then_some(1000),
        accept: if choice & 16 != 0 { Accept::Everyone } else { Accept::Users(vec![1000]) },
        handles: choice & 32 != 0,
        keyring: Keyring::at("target/keyring"),
        random: fixed,
        ..ServerOptions::new(Guid([1; 16]))
    })
}

fn client(choice: u8) -> Client {
    Client::new(ClientOptions {
        mechanisms: mechanisms(choice),
        uid: (choice & 8 != 0).then_some(1000),
        pipelined: choice & 16 != 0,
        negotiate_handles: choice & 32 != 0,
        expected_guid: (choice & 64 != 0).then_some(Guid([1; 16])),
        keyring: Keyring::at("target/keyring"),
        random: fixed,
        ..ClientOptions::default()
    })
}

/// What came of it: the progress, what was said, and what was left in the input.
type Outcome<T> = (Result<Progress<T>, SaslError>, Vec<u8>, usize);

fn feed<T>(
    mut receive: impl FnMut(&mut BytesMut, &mut Vec<u8>) -> Result<Progress<T>, SaslError>,
    data: &[u8],
    piece: usize,
) -> Outcome<T> {
    let (mut input, mut out) = (BytesMut::new(), Vec::new());
    let mut fed = 0;
    for part in data.chunks(piece) {
        input.extend_from_slice(part);
        fed += part.len();
        let progress = receive(&mut input, &mut out);
        assert!(out.len() <= 256 * MAX_LINES, "{} bytes said", out.len());
        if !matches!(progress, Ok(Progress::More)) {
            return (progress, out, input.len() + data.len() - fed);
        }
        assert!(input.len() <= MAX_LINE, "{} bytes kept", input.len());
    }
    (Ok(Progress::More), out, input.len())
}

fn compare<T: PartialEq + std::fmt::Debug>(whole: &Outcome<T>, pieces: &Outcome<T>) {
    assert_eq!(whole.0, pieces.0);
    assert_eq!(whole.1, pieces.1);
    if whole.0.is_ok() {
        assert_eq!(whole.2, pieces.2, "bytes left to the messages");
    }
}

fn admitted(choice: u8, done: AuthenticatedClient) {
    assert!(mechanisms(choice).contains(&done.mechanism));
    match done.mechanism {
        Mechanism::External => assert!(choice & 8 != 0 && done.identity == Identity::User(1000)),
        Mechanism::Anonymous => assert_eq!(done.identity, Identity::Anonymous),
        Mechanism::CookieSha1 => panic!("let in without knowing the cookie"),
    }
    assert!(!done.handles || choice & 32 != 0);
}

fn authenticated(choice: u8, done: Authenticated) {
    assert!(mechanisms(choice).contains(&done.mechanism));
    assert!(choice & 64 == 0 || done.guid == Guid([1; 16]));
    assert!(!done.handles || choice & 32 != 0);
}

/// Gives the octets to this case.
pub fn sasl(data: &[u8]) {
    let [choice, piece, rest @ ..] = data else { return };
    let (choice, piece) = (*choice, usize::from(*piece) + 1);
    if choice & 128 == 0 {
        let run = |piece| {
            let mut server = server(choice);
            feed(|input, out| server.receive(input, out), rest, piece)
        };
        let whole = run(usize::MAX);
        compare(&whole, &run(piece));
        if let Ok(Progress::Done(done)) = whole.0 {
            admitted(choice, done);
        }
    } else {
        let run = |piece| {
            let mut client = client(choice);
            // Without mechanisms it does not start, and hears nothing.
            drop(client.start(&mut Vec::new()));
            feed(|input, out| client.receive(input, out), rest, piece)
        };
        let whole = run(usize::MAX);
        compare(&whole, &run(piece));
        if let Ok(Progress::Done(done)) = whole.0 {
            authenticated(choice, done);
        }
    }
}
