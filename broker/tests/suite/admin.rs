//! The administrator's pages.

use super::{Running, Scratch, contract, shop_at, start, try_start};
use everywire::Node;
use everywire_tests::shop::market::Shop;
use std::io::{Read, Write};
use std::net::TcpStream;

fn broker(target: &str, admin: &str) -> String {
    format!(
        r#"
[admin]
{admin}
[listen.front]
address = "iiop://127.0.0.1:0"
[[route]]
name = "shop"
to = "{target}"
contract = "{}"
interface = "Shop"
breaker = {{ failures = 1, pause = "1000s" }}
"#,
        contract()
    )
}

fn get(broker: &Running, path: &str, more: &str) -> (u16, String) {
    ask(broker, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n"))
}

fn ask(broker: &Running, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(broker.broker.admin().unwrap()).unwrap();
    stream.set_read_timeout(Some(super::LONG)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.split(' ').nth(1).unwrap_or("0").parse().unwrap(), body.to_owned())
}

#[test]
fn pages_tell_how_the_broker_is() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = start(&broker(&target, "address = \"127.0.0.1:0\""));
    assert_eq!(get(&broker, "/healthz", ""), (200, "ok\n".into()));
    assert_eq!(get(&broker, "/ready", ""), (200, "ready\n".into()));
    assert_eq!(get(&broker, "/other", "").0, 404);
    assert_eq!(ask(&broker, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n").0, 405);
    // Balancers of load ask so.
    assert_eq!(ask(&broker, "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"), (200, String::new()));
    assert_eq!(ask(&broker, "nonsense\r\n\r\n").0, 400);
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    shop.noted().unwrap();
    // The caller has its answer a moment before the call is counted as over.
    let over = "everywire_broker_calls_under_way{route=\"shop\"} 0";
    super::until("the call is over", || get(&broker, "/metrics", "").1.lines().any(|line| line == over));
    let (status, page) = get(&broker, "/metrics", "");
    assert_eq!(status, 200);
    for line in [
        "everywire_broker_calls_total{route=\"shop\",outcome=\"done\"} 1",
        "everywire_broker_connections{listener=\"front\"} 1",
    ] {
        assert!(page.lines().any(|held| held == line), "{line} is not in {page}");
    }
    assert!(page.ends_with("# EOF\n"));
    backend.stop();
    super::until("the breaker opens", || shop.noted().is_err() && get(&broker, "/ready", "").0 == 503);
    assert_eq!(get(&broker, "/healthz", "").0, 200, "it lives");
}

#[test]
fn the_same_place_in_other_words_stays_open() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let running = start(&broker(&target, "address = \"127.0.0.1:0\""));
    let place = running.broker.admin().unwrap();
    let again = super::config(&broker(&target, &format!("address = \"{place}\""))).unwrap();
    running.broker.reload(again).unwrap();
    assert_eq!(running.broker.admin(), Some(place));
    assert_eq!(get(&running, "/healthz", "").0, 200);
}

/// A page of a browser may give this machine's address to a name of its own (DNS rebinding), and then read what comes.
#[test]
fn without_a_token_only_loopback_hosts_are_answered() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = start(&broker(&target, "address = \"127.0.0.1:0\""));
    let status =
        |place: &str, host: &str| ask(&broker, &format!("GET {place} HTTP/1.1\r\nHost: {host}\r\n\r\n")).0;
    for host in ["localhost", "LocalHost:9100", "127.0.0.1", "127.1.2.3:80", "[::1]:9100"] {
        assert_eq!(status("/healthz", host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:9100", "127.0.0.1.evil.example", "10.0.0.1"] {
        assert_eq!(status("/healthz", host), 421, "{host}");
    }
    assert_eq!(status("http://evil.example/metrics", "localhost"), 421);
    assert_eq!(status("http://localhost/healthz", "localhost"), 200);
    // Old programs say no host.
    assert_eq!(ask(&broker, "GET /healthz HTTP/1.0\r\n\r\n").0, 200);
}

#[test]
fn a_token_is_asked_for_where_one_is_set_and_needed_off_loopback() {
    let (scratch, (_backend, _, target)) = (Scratch::new(), shop_at("iiop://127.0.0.1:0"));
    let file = scratch.path("token");
    std::fs::write(&file, "open sesame\n").unwrap();
    let text = broker(&target, &format!("address = \"127.0.0.1:0\"\ntoken-file = \"{file}\""));
    let running = start(&text);
    assert_eq!(get(&running, "/metrics", "").0, 401);
    assert_eq!(get(&running, "/metrics", "Authorization: Bearer open sesam\r\n").0, 401);
    assert_eq!(get(&running, "/metrics", "Authorization: Bearer open sesame\r\n").0, 200);
    let mistakes = try_start(&broker(&target, "address = \"0.0.0.0:0\"")).err().unwrap().to_string();
    assert!(mistakes.starts_with("broker.toml:3:11: ") && mistakes.contains("token-file"), "{mistakes}");
    let mistakes =
        try_start(&broker(&target, "address = \"127.0.0.1:0\"\ntoken-file = \"none\"")).err().unwrap();
    assert!(mistakes.to_string().contains("cannot be read"), "{mistakes}");
}

#[test]
fn slow_readers_hold_nobody_up() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = start(&broker(&target, "address = \"127.0.0.1:0\""));
    let address = broker.broker.admin().unwrap();
    let mut held: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in &mut held {
        stream.write_all(b"GET /metrics HT").unwrap();
    }
    assert_eq!(get(&broker, "/healthz", "").0, 200);
}

/// Whoever connects and never asks has no token to show, and does not keep those who have one from the pages.
#[test]
fn connections_that_never_ask_make_room() {
    let (_backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let broker = start(&broker(&target, "address = \"127.0.0.1:0\""));
    let address = broker.broker.admin().unwrap();
    let mut held = Vec::new();
    for turn in 0..4 {
        held.extend((0..50).map(|_| TcpStream::connect(&address).unwrap()));
        assert_eq!(get(&broker, "/healthz", ""), (200, "ok\n".into()), "{turn}");
    }
    // Those that came first were ended for it, and not those that came last.
    held[0].set_read_timeout(Some(super::LONG)).unwrap();
    assert_eq!(held[0].read(&mut [0]).unwrap(), 0);
    let last = held.last_mut().unwrap();
    last.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut text = String::new();
    last.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// Without a breaker and without probes, what is told of a target is what the last attempt to reach it has found.
#[test]
fn a_target_that_was_not_to_be_reached_is_told_to_be_down() {
    let (backend, _, target) = shop_at("iiop://127.0.0.1:0");
    let text = broker(&target, "address = \"127.0.0.1:0\"").replace("breaker", "# breaker");
    let broker = start(&text);
    backend.stop();
    assert_eq!(get(&broker, "/ready", ""), (200, "ready\n".into()), "nobody has tried");
    let client = Node::new();
    let shop = client.connect::<dyn Shop>(&broker.reference("shop")).unwrap();
    let up = || {
        let page = get(&broker, "/metrics", "").1;
        let line = page.lines().find(|line| line.starts_with("everywire_broker_target_up{")).unwrap();
        line.ends_with(" 1")
    };
    assert!(up());
    shop.noted().unwrap_err();
    assert_eq!(get(&broker, "/ready", "").0, 503);
    assert!(!up());
    // It is still tried with each call.
    let again = Node::new();
    let address = target.rsplit_once('/').unwrap().0;
    again.listen(address).unwrap();
    again.export::<dyn Shop>("shop", super::Store::new());
    shop.noted().unwrap();
    assert_eq!(get(&broker, "/ready", ""), (200, "ready\n".into()));
    assert!(up());
}
