//! Uses a player. `remote [REFERENCE]`, by default `dbus:session/org.example.Player/player`.

use everywire::{Failure, Node};
use player::NO_SUCH_TITLE;
use player::org::example::{Player, PlayerFinished};
use std::fs::File;
use std::io::Read;
use std::sync::mpsc;

fn main() -> Result<(), Failure> {
    let given = std::env::args().nth(1);
    let reference = given.unwrap_or_else(|| "dbus:session/org.example.Player/player".to_owned());
    let node = Node::new();
    let player = node.connect::<dyn Player>(&reference)?;

    let (tell, told) = mpsc::channel();
    let _subscription = player.signals().on(move |finished: PlayerFinished| drop(tell.send(finished)))?;

    player.set_volume(0.8)?;
    player.play("Dusk")?;
    println!("playing {} at {}", player.title()?, player.volume()?);

    // Not every wire carries descriptors.
    match player.lyrics() {
        Ok(lyrics) => {
            let mut text = String::new();
            let mut file = File::from(lyrics.try_clone().map_err(unreadable)?);
            file.read_to_string(&mut text).map_err(unreadable)?;
            print!("{text}");
        }
        Err(failure) => println!("no lyrics: {failure}"),
    }
    match player.play("Noon") {
        Err(failure) if failure.code() == Some(NO_SUCH_TITLE) => println!("refused: {}", failure.message()),
        other => other?,
    }
    player.stop()?;
    if let Ok(finished) = told.recv_timeout(std::time::Duration::from_secs(5)) {
        let how = if finished.details.contains_key("skipped") { "skipped" } else { "at its end" };
        println!("finished: {}, {how}", finished.title);
    }
    Ok(())
}

fn unreadable(error: std::io::Error) -> Failure {
    Failure::new(everywire::Kind::Internal, everywire::Initiator::Here, error.to_string())
}
