//! HTTP with programs of others: curl asks our server, our client asks Python's.

use bytes::{Bytes, BytesMut};
use everywire_http::{Bounds, Client, ClientOutcome, Server, ServerEvent};
use everywire_peers::here;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a body that are taken: more than a socket holds.
const MOST: u64 = 1 << 20;

/// Serves one connection: what is put comes back, and what somebody may not ask is told at the door.
fn echo(mut stream: TcpStream) -> usize {
    let bounds = Bounds { body: MOST, idle: Duration::MAX, too_large: |most| format!("at most {most}\n") };
    let mut server: Server<()> = Server::new(
        bounds,
        Arc::new(|head| {
            let mut refusal = Response::new(Bytes::from_static(b"not here\n"));
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            (head.uri.path() != "/echo").then_some(refusal)
        }),
    );
    let (mut piece, mut requests) = ([0; 4096], 0);
    while !server.is_over() {
        let count = stream.read(&mut piece).unwrap();
        if count == 0 {
            break;
        }
        server.feed(Instant::now(), &mut BytesMut::from(&piece[..count]));
        while let Ok(Some(received)) = server.next(Instant::now()) {
            let ServerEvent::New(parts, body) = received else { panic!("nothing was kept") };
            let mut response = Response::new(vec![body]);
            if let Some(kind) = parts.headers.get(CONTENT_TYPE) {
                response.headers_mut().insert(CONTENT_TYPE, kind.clone());
            }
            requests += 1;
            server.respond(response);
        }
        let told = server.transmit().to_vec();
        stream.write_all(&told).unwrap();
        server.transmit().consume(told.len());
    }
    // Who is refused may still be sending, and would lose the answer if nobody read.
    let _ = stream.shutdown(Shutdown::Write).and_then(|()| io::copy(&mut stream, &mut io::sink()));
    requests
}

#[test]
fn curl_puts_octets_and_gets_them_back() {
    if !here("curl_puts_octets_and_gets_them_back", &["curl"]) {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let octets: Vec<u8> = (0..700_000_u32).map(|n| ((n * 31) >> 3) as u8).collect();
    let curl = |arguments: &[&str], more: &[String]| {
        let mut child = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--data-binary",
                "@-",
                "--write-out",
                "%{response_code} %{num_connects}\n",
            ])
            .args(arguments)
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            let served = scope.spawn(|| echo(listener.accept().unwrap().0));
            // A server that refuses reads no further.
            let _ = input.write_all(&octets);
            drop(input);
            let output = child.wait_with_output().unwrap();
            (output.stdout, served.join().unwrap())
        })
    };
    // Chunked, since the length of the input is not told; two requests on one connection.
    let echoed = format!("http://{address}/echo");
    let (told, requests) = curl(
        &["--header", "Transfer-Encoding: chunked", "--header", "Expect:"],
        std::slice::from_ref(&echoed),
    );
    assert_eq!((requests, told.len()), (1, octets.len() + "200 1\n".len()));
    assert!(told.starts_with(&octets) && told.ends_with(b"200 1\n"));
    let (told, requests) = curl(&[], &[echoed.clone(), echoed]);
    assert_eq!(requests, 2, "on one connection");
    assert!(told.starts_with(&octets) && told.ends_with(b"200 0\n"));
    let (told, requests) = curl(&[], &[format!("http://{address}/other")]);
    assert_eq!((requests, String::from_utf8(told).unwrap()), (0, "not here\n403 1\n".to_owned()));
}

/// A program that ends with the test, however that ends.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn pythons_server_gives_what_is_asked_for() {
    if !here("pythons_server_gives_what_is_asked_for", &["python3"]) {
        return;
    }
    let here = env!("CARGO_MANIFEST_DIR");
    let python = Command::new("python3")
        .args([
            "-u",
            "-m",
            "http.server",
            "--protocol",
            "HTTP/1.1",
            "--bind",
            "127.0.0.1",
            "--directory",
            here,
            "0",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut python = Ending(python.unwrap());
    let mut line = String::new();
    BufReader::new(python.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // Serving HTTP on 127.0.0.1 port 12345 (http://127.0.0.1:12345/) ...
    let port = line.split(' ').nth(5).unwrap();
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let mut client = Client::new(MOST);
    let wanted = std::fs::read(format!("{here}/src/server.rs")).unwrap();
    let mut piece = [0; 4096];
    for (path, status) in [("/src/server.rs", 200), ("/src/../src/server.rs", 200), ("/none", 404)] {
        let mut request = Request::new(Vec::new());
        *request.uri_mut() = path.parse().unwrap();
        request.headers_mut().insert(HOST, HeaderValue::from_static("localhost"));
        assert!(client.is_idle() && !client.is_over());
        client.send(request);
        let (parts, body) = loop {
            match client.advance() {
                Some(ClientOutcome::Response(parts, body)) => break (parts, body),
                Some(ClientOutcome::Failed { message, .. }) => panic!("{message}"),
                Some(ClientOutcome::TooLarge) => panic!("larger than the file"),
                None => {}
            }
            let told = client.transmit().to_vec();
            stream.write_all(&told).unwrap();
            client.transmit().consume(told.len());
            let count = stream.read(&mut piece).unwrap();
            client.feed(&mut BytesMut::from(&piece[..count]));
        };
        assert_eq!(parts.status, status);
        assert_eq!(status == 200, body == wanted);
    }
    assert!(client.is_over(), "its errors end the connection");
}
