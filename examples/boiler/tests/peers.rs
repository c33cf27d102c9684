//! The guide's claims about the boiler: over a Unix socket, and over TCP with users.

use boiler::{Boiler, BoilerBoiled, CLASS, IGauge, Kettle, TOO_HOT};
use everywire::model::SignalEvent;
use everywire::{Failure, Kind, Node};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

struct Dial(mpsc::Sender<f64>);

impl IGauge for Dial {
    fn moved(&self, degrees: f64) -> Result<(), Failure> {
        self.0.send(degrees).unwrap();
        Ok(())
    }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("everywire-boiler-{name}-{}", std::process::id()))
}

/// Heats a boiler to its limit, and hears of it in both ways.
fn heat(client: &Node, class: &str) {
    let boiler = client.connect::<dyn Boiler>(class).unwrap();
    let (move_to, moved) = mpsc::channel();
    boiler.attach(Some(client.export_anonymous::<dyn IGauge>(Arc::new(Dial(move_to))))).unwrap();
    let (tell, told) = mpsc::channel();
    let subscription =
        boiler.signals().watch(move |event: SignalEvent<BoilerBoiled>| tell.send(event).unwrap()).unwrap();

    boiler.set_limit(60.0).unwrap();
    assert_eq!(boiler.limit().unwrap().to_bits(), 60f64.to_bits());
    let refused = boiler.heat(50.0).unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Some(TOO_HOT), "60 degrees are the limit"));
    assert_eq!(boiler.heat(40.0).unwrap().to_bits(), 60f64.to_bits());
    assert_eq!(moved.recv().unwrap().to_bits(), 60f64.to_bits());
    match told.recv().unwrap() {
        SignalEvent::Signal(boiled) => assert_eq!(boiled.text, "switched off"),
        SignalEvent::OwnerLost(failure)
        | SignalEvent::Undecodable(failure)
        | SignalEvent::Disconnected(failure) => panic!("{failure}"),
    }
    drop(subscription);
    // Whoever asks for an object of the class gets one of their own.
    let other = client.connect::<dyn Boiler>(class).unwrap();
    assert_eq!(other.temperature().unwrap().to_bits(), 20f64.to_bits());
}

#[test]
fn a_peer_on_this_machine_sees_all_of_the_boiler() {
    let socket = scratch("socket");
    let (server, client) = (Node::new(), Node::new());
    Kettle::serve(&server);
    server.listen(&format!("dcom+unix://{}", socket.display())).unwrap();
    client.listen(&format!("dcom+unix://{}", scratch("callbacks").display())).unwrap();
    heat(&client, &format!("dcom+unix://{}#{CLASS}", socket.display()));
}

#[test]
fn users_are_called_back_where_the_server_has_an_account() {
    let users = scratch("users");
    fs::write(&users, "ada:lovelace\n").unwrap();
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).unwrap();
    let server = Node::new();
    Kettle::serve(&server);
    let address =
        server.listen(&format!("dcom://ada:lovelace@127.0.0.1:0?users={}", users.display())).unwrap();
    fs::remove_file(&users).unwrap();
    let place = address.trim_start_matches("dcom://").trim_end_matches('/');

    let client = Node::new();
    client.listen("dcom://ada:lovelace@127.0.0.1:0").unwrap();
    heat(&client, &format!("dcom://ada:lovelace@{place}/{CLASS}"));
    let stranger = client.connect::<dyn Boiler>(&format!("dcom://ada:byron@{place}/{CLASS}")).unwrap();
    assert_eq!(stranger.temperature().unwrap_err().kind(), Kind::Refused);
}
