//! How a server ends.

use crate::server::net::{COOKIE, Net, text};
use everywire_dcop::server::{Server, Settings};
use everywire_model::Hub;
use std::time::Duration;

fn alone() -> Net {
    Net::of(Server::unannounced(COOKIE.as_slice().into(), Settings::default()).ending_alone())
}

/// Has an application want to know when the session ends.
fn listen(net: &mut Net, id: u64) {
    let mut data = ["", "", "terminateKDE()", "app", "quit()"].map(text).concat();
    data.push(0);
    net.ask(id, "connectSignal(QCString,QCString,QCString,QCString,QCString,bool)", &data);
}

#[test]
fn a_server_alone_ends_after_a_while() {
    let mut net = alone();
    let daemon = net.application("kded");
    net.ask(daemon, "setDaemonMode(bool)", &[1]);
    listen(&mut net, daemon);
    let a = net.application("a");
    net.hang_up(a);
    net.pass(Duration::from_secs(9));
    let a = net.application("a");
    net.pass(Duration::from_secs(20));
    assert!(net.take(daemon).is_empty(), "somebody came");
    net.hang_up(a);
    net.pass(Duration::from_secs(11));
    assert_eq!(net.one(daemon).fields()[..4], ["DCOPServer", "kded", "app", "quit()"]);
    assert!(!net.finished, "the daemon is still there");
    net.hang_up(daemon);
    assert!(net.finished);
}

#[test]
fn applications_that_stay_do_not_keep_it() {
    let mut net = alone();
    let a = net.application("a");
    listen(&mut net, a);
    net.server.close();
    net.pump();
    assert_eq!(net.one(a).fields()[3], "quit()");
    assert!(!net.finished);
    net.pass(Duration::from_secs(2));
    assert!(net.finished);
    let mut net = Net::new();
    net.application("a");
    net.server.close();
    net.server.close();
    net.pump();
    assert!(net.finished, "asked twice");
    let mut net = Net::new();
    net.client();
    net.server.close();
    net.pump();
    assert!(net.finished, "nobody is registered");
}

#[test]
fn without_being_told_to_it_never_ends() {
    let mut net = Net::new();
    let a = net.application("a");
    net.hang_up(a);
    net.pass(Duration::from_secs(1000));
    assert!(!net.finished);
}
