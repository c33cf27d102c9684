//! The servant: a plain type that implements the generated trait.

use crate::org::example::{Player, PlayerFinished};
use everywire::model::body::Handle;
use everywire::model::{Variant, describe::Shape};
use everywire::{Failure, Initiator, Kind, Node, Ref, Signaller, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error that `Play` answers with.
pub const NO_SUCH_TITLE: &str = "org.example.Player.Error.NoSuchTitle";

const TITLES: [(&str, &str); 2] = [("Dawn", "It is getting light.\n"), ("Dusk", "It is getting dark.\n")];

/// Plays nothing, but says that it does.
pub struct Jukebox {
    state: Mutex<State>,
    /// Emits the object's signals, without holding the node that holds the object.
    signals: Signaller<dyn Player>,
}

struct State {
    playing: usize,
    volume: f64,
}

impl Jukebox {
    /// A player, exported under this key.
    pub fn export(node: &Node, key: &str) -> Ref<dyn Player> {
        let state = Mutex::new(State { playing: 0, volume: 0.5 });
        node.export(key, Arc::new(Self { state, signals: node.signaller(key) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Player for Jukebox {
    fn play(&self, title: &str) -> Result<(), Failure> {
        let Some(at) = TITLES.iter().position(|(held, _)| *held == title) else {
            let message = format!("there is no `{title}` here");
            return Err(Failure::new(Kind::BadArgument, Initiator::User, message).with_code(NO_SUCH_TITLE));
        };
        self.state().playing = at;
        self.signals.changed("Title")
    }

    fn stop(&self) -> Result<(), Failure> {
        let details = BTreeMap::from([("skipped".to_owned(), Variant::new(Shape::Bool, Value::Bool(true)))]);
        self.signals.emit(&PlayerFinished { title: self.title()?, details })
    }

    fn lyrics(&self) -> Result<Handle, Failure> {
        let broken = |error: std::io::Error| Failure::new(Kind::Internal, Initiator::Here, error.to_string());
        let (reader, mut writer) = std::io::pipe().map_err(broken)?;
        let (_, text) = TITLES[self.state().playing];
        writer.write_all(text.as_bytes()).map_err(broken)?;
        Ok(Arc::new(OwnedFd::from(reader)))
    }

    fn title(&self) -> Result<String, Failure> {
        Ok(TITLES[self.state().playing].0.to_owned())
    }

    fn volume(&self) -> Result<f64, Failure> {
        Ok(self.state().volume)
    }

    fn set_volume(&self, volume: f64) -> Result<(), Failure> {
        if !(0.0..=1.0).contains(&volume) {
            return Err(Failure::new(Kind::BadArgument, Initiator::User, "a volume is from 0 to 1"));
        }
        self.state().volume = volume;
        self.signals.changed("Volume")
    }
}
