//! Signal connections.

use crate::server::net::{Net, Received, send, text};
use everywire_dcop::ice::minor;

const CONNECT: &str = "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)";
const DISCONNECT: &str = "disconnectSignal(QCString,QCString,QCString,QCString,QCString)";

fn connect(net: &mut Net, id: u64, wish: [&str; 5], volatile: bool) -> bool {
    let mut data = wish.map(text).concat();
    data.push(volatile.into());
    yes(&net.ask(id, CONNECT, &data))
}

fn disconnect(net: &mut Net, id: u64, wish: [&str; 5]) -> bool {
    yes(&net.ask(id, DISCONNECT, &wish.map(text).concat()))
}

fn yes(reply: &Received) -> bool {
    assert_eq!((reply.minor, reply.fields()[2].as_str()), (minor::REPLY, "bool"));
    reply.payload.last() == Some(&1)
}

/// Emits, and returns what the receiver got: sender, receiver, object, function.
fn emit(net: &mut Net, emitter: (u64, &str), signal: &str, receiver: u64) -> Vec<Vec<String>> {
    net.feed(emitter.0, &send(emitter.1, "DCOPServer", "emit", signal, &[0, 0, 0, 5]));
    let messages = net.messages(receiver);
    assert!(messages.iter().all(|message| (message.minor, message.key) == (minor::SEND, 1)));
    assert!(messages.iter().all(|message| message.payload.ends_with(&[0, 0, 0, 4, 0, 0, 0, 5])));
    messages.iter().map(|message| message.fields()[..4].to_vec()).collect()
}

#[test]
fn signals_reach_those_who_asked() {
    let mut net = Net::new();
    let (e, r) = (net.application("e"), net.application("r"));
    assert!(connect(&mut net, r, ["e", "obj", "s(int)", "to", "f(int)"], false));
    assert_eq!(emit(&mut net, (e, "e"), "obj#s(int)", r), [["e", "r", "to", "f(int)"]]);
    assert!(emit(&mut net, (e, "e"), "other#s(int)", r).is_empty());
    assert!(emit(&mut net, (e, "e"), "obj#s()", r).is_empty());
    assert!(emit(&mut net, (r, "r"), "obj#s(int)", r).is_empty(), "of another application");
    assert!(!connect(&mut net, r, ["e", "obj", "s(int)", "to", "f(QString)"], false), "arguments differ");
    assert!(connect(&mut net, r, ["", "", "s(int)", "any", "f ()"], false));
    let both = emit(&mut net, (e, "e"), "obj#s(int)", r);
    assert_eq!(both, [["e", "r", "to", "f(int)"], ["e", "r", "any", "f()"]]);
    assert_eq!(emit(&mut net, (r, "r"), "s(int)", r), [["r", "r", "any", "f()"]], "also to itself");
    assert!(disconnect(&mut net, r, ["e", "obj", "s(int)", "", ""]));
    assert!(!disconnect(&mut net, r, ["e", "obj", "s(int)", "", ""]));
    assert_eq!(emit(&mut net, (e, "e"), "obj#s(int)", r).len(), 1);
    assert!(disconnect(&mut net, r, ["", "", "", "any", ""]));
    assert!(emit(&mut net, (e, "e"), "obj#s(int)", r).is_empty());
}

#[test]
fn lasting_connections_follow_the_id_and_volatile_ones_the_process() {
    let mut net = Net::new();
    let r = net.application("r");
    assert!(!connect(&mut net, r, ["e", "", "s(int)", "v", "f()"], true), "there is no e");
    assert!(connect(&mut net, r, ["e", "", "s(int)", "l", "f()"], false));
    let e = net.application("e");
    assert!(connect(&mut net, r, ["e", "", "s(int)", "v", "f()"], true));
    assert_eq!(net.register(e, "renamed"), "renamed");
    assert_eq!(emit(&mut net, (e, "renamed"), "s(int)", r), [["renamed", "r", "v", "f()"]]);
    net.hang_up(e);
    let e = net.application("e");
    assert_eq!(emit(&mut net, (e, "e"), "s(int)", r), [["e", "r", "l", "f()"]]);
    net.hang_up(r);
    net.hang_up(e);
    assert_eq!(net.server.entries(), 0);
}

#[test]
fn nobody_emits_in_the_servers_name() {
    let mut net = Net::new();
    let (e, r) = (net.application("e"), net.application("r"));
    assert!(connect(&mut net, r, ["DCOPServer", "", "terminateKDE()", "o", "quit()"], false));
    assert!(emit(&mut net, (e, "e"), "terminateKDE()", r).is_empty());
    let unregistered = net.client();
    assert!(emit(&mut net, (unregistered, ""), "terminateKDE()", r).is_empty());
}

#[test]
fn large_signals_arrive_whole() {
    let mut net = Net::new();
    let (e, r) = (net.application("e"), net.application("r"));
    assert!(connect(&mut net, r, ["e", "", "s(QByteArray)", "o", "f(QByteArray)"], false));
    assert!(connect(&mut net, r, ["e", "", "s(QByteArray)", "p", "f(QByteArray)"], false));
    let large: Vec<u8> = (0..=255).cycle().take(50_000).collect();
    net.feed(e, &send("e", "DCOPServer", "emit", "s(QByteArray)", &large));
    let messages = net.messages(r);
    assert_eq!(messages.len(), 2);
    assert!(messages.iter().all(|message| message.payload.ends_with(&large)));
}
