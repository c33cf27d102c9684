//! Programs of Trinity at the server: its classes are called TQString, TQCString, ..., also in messages.

use crate::server::net::{Net, send, text};
use everywire_dcop::ice::minor;
use everywire_model::Hub;

const CONNECT: &str = "connectSignal(TQCString,TQCString,TQCString,TQCString,TQCString,bool)";
const DISCONNECT: &str = "disconnectSignal(TQCString,TQCString,TQCString,TQCString,TQCString)";

/// A program of Trinity with this id.
fn application(net: &mut Net, name: &str) -> u64 {
    let id = net.client();
    let reply = net.ask(id, "registerAs(TQCString)", &text(name));
    assert_eq!(reply.minor, minor::REPLY);
    assert_eq!(reply.fields()[2..], ["TQCString", name]);
    id
}

fn connect(net: &mut Net, id: u64, function: &str, wish: [&str; 5]) -> bool {
    let mut data = wish.map(text).concat();
    if function.starts_with("connect") {
        data.push(0);
    }
    let reply = net.ask(id, function, &data);
    assert_eq!((reply.minor, reply.fields()[2].as_str()), (minor::REPLY, "bool"));
    reply.payload.last() == Some(&1)
}

#[test]
fn programs_of_trinity_register_and_are_answered_in_their_spelling() {
    let mut net = Net::new();
    let kicker = application(&mut net, "kicker");
    let known = net.ask(kicker, "isApplicationRegistered(TQCString)", &text("kicker"));
    assert_eq!(known.fields()[2], "bool");
    assert!(known.payload.ends_with(&[0, 0, 0, 4, 0, 0, 0, 1]));
    // This type has kept its name.
    assert_eq!(net.ask(kicker, "registeredApplications()", b"").fields()[2], "QCStringList");
    let other = net.client();
    assert_eq!(net.register(other, "kicker"), "kicker-2", "one table of ids for both");
}

#[test]
fn everybody_hears_of_registrations_in_his_own_spelling() {
    let mut net = Net::new();
    let (trinity, kde) = (application(&mut net, "kicker"), net.application("konsole"));
    for id in [trinity, kde] {
        net.ask(id, "setNotifications(bool)", &[1]);
    }
    let other = net.client();
    net.feed(other, &crate::server::net::call("", "DCOPServer", "", "registerAs(TQCString)", &text("third")));
    net.hang_up(other);
    for (id, spelling) in [(trinity, "TQCString"), (kde, "QCString")] {
        let heard: Vec<String> = net.messages(id).iter().map(|told| told.fields()[3].clone()).collect();
        assert_eq!(
            heard,
            [format!("applicationRegistered({spelling})"), format!("applicationRemoved({spelling})")]
        );
    }
}

#[test]
fn signals_pass_between_the_spellings() {
    let mut net = Net::new();
    let (trinity, kde) = (application(&mut net, "kicker"), net.application("konsole"));
    assert!(connect(&mut net, trinity, CONNECT, ["", "", "said(QString,int)", "o", "hear(TQString)"]));
    let kde_connect = CONNECT.replace('T', "");
    assert!(connect(&mut net, kde, &kde_connect, ["", "", "said(QString,int)", "p", "hear(QString,int)"]));
    assert!(!connect(&mut net, kde, &kde_connect, ["", "", "said(QString,int)", "p", "hear(TQRect)"]));
    for (id, name, signal) in
        [(trinity, "kicker", "obj#said(TQString,int)"), (kde, "konsole", "obj#said(QString,int)")]
    {
        net.feed(id, &send(name, "DCOPServer", "emit", signal, &[0; 8]));
        // Each is told of its function as it wrote it.
        assert_eq!(net.one(trinity).fields()[..4], [name, "kicker", "o", "hear(TQString)"]);
        assert_eq!(net.one(kde).fields()[..4], [name, "konsole", "p", "hear(QString,int)"]);
    }
    assert!(connect(&mut net, trinity, DISCONNECT, ["", "", "said(TQString,int)", "o", "hear(TQString)"]));
    net.feed(kde, &send("konsole", "DCOPServer", "emit", "said(QString,int)", &[0; 8]));
    assert!(net.messages(trinity).is_empty());
}

#[test]
fn the_end_of_the_session_has_the_names_of_both() {
    let mut net = Net::new();
    let (trinity, kde) = (application(&mut net, "kicker"), net.application("konsole"));
    assert!(connect(&mut net, trinity, CONNECT, ["DCOPServer", "", "terminateTDE()", "o", "quit()"]));
    assert!(connect(
        &mut net,
        kde,
        &CONNECT.replace('T', ""),
        ["DCOPServer", "", "terminateKDE()", "o", "quit()"]
    ));
    net.server.close();
    net.pump();
    assert_eq!(net.one(trinity).fields()[3], "quit()");
    assert_eq!(net.one(kde).fields()[3], "quit()");
}
