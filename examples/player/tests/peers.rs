//! The guide's claims about the player, without a bus: over a Unix socket, peer to peer.

use everywire::model::SignalEvent;
use everywire::{Kind, Node};
use player::org::example::{Player, PlayerFinished};
use player::{Jukebox, NO_SUCH_TITLE};
use std::fs::File;
use std::io::Read;
use std::sync::mpsc;

#[test]
fn a_peer_sees_all_of_the_player() {
    let socket = std::env::temp_dir().join(format!("everywire-player-{}", std::process::id()));
    let address = format!("dbus+unix://{}", socket.display());
    let server = Node::new();
    Jukebox::export(&server, "player");
    server.listen(&address).unwrap();
    let player = Node::new().connect::<dyn Player>(&format!("{address}#player")).unwrap();

    let (tell, told) = mpsc::channel();
    let subscription =
        player.signals().watch(move |event: SignalEvent<PlayerFinished>| tell.send(event).unwrap()).unwrap();
    player.play("Dusk").unwrap();
    assert_eq!(player.title().unwrap(), "Dusk");
    let refused = player.play("Noon").unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Some(NO_SUCH_TITLE), "there is no `Noon` here"));

    player.set_volume(0.25).unwrap();
    assert_eq!(player.volume().unwrap().to_bits(), 0.25f64.to_bits());
    assert_eq!(player.set_volume(2.0).unwrap_err().kind(), Kind::BadArgument);

    let mut lyrics = String::new();
    File::from(player.lyrics().unwrap().try_clone().unwrap()).read_to_string(&mut lyrics).unwrap();
    assert_eq!(lyrics, "It is getting dark.\n");

    player.stop().unwrap();
    match told.recv().unwrap() {
        SignalEvent::Signal(finished) => {
            assert_eq!(finished.title, "Dusk");
            assert!(finished.details.contains_key("skipped"));
        }
        SignalEvent::OwnerLost(failure)
        | SignalEvent::Undecodable(failure)
        | SignalEvent::Disconnected(failure) => panic!("{failure}"),
    }
    drop(subscription);
}
