//! Ours: `everywire broker`, of the same program, as anybody would start it: by two addresses where those say all, else by a file of routes.

use super::{Hop, Lane, orders};
use crate::broken;
use crate::contestants::published::{CHANGE_COPY, COPY_CHANGE, PASS, TYPED};
use crate::contestants::{Missing, ServerPlace};
use crate::process::Launch;
use everywire_model::Failure;
use std::path::{Path, PathBuf};

/// The broker in one of its forms.
pub(super) struct Broker {
    pub(super) lane: Lane,
    pub(super) form: &'static str,
}

impl Hop for Broker {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        Ok(None)
    }

    fn launch(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let program =
            std::env::current_exe().map_err(|error| broken(format!("this program's own file: {error}")))?;
        let launch = orders::at_home(self.lane, Launch::new(program).with(["broker"]), stand);
        let (from, to) = (self.lane.front(front, stand.dir), orders::behind(stand, front, back)?);
        let launch = match self.form {
            PASS => launch.with(["--from", &from, "--to", &to]),
            TYPED => {
                let contract =
                    written(stand.dir, "orders.idl", include_str!("../../../contracts/orders.idl"))?;
                launch.with(["--from", &from, "--to", &to, "--contract"]).with([contract])
            }
            _ => launch.with([written(stand.dir, "broker.toml", &self.routes(&from, &to))?]),
        };
        Ok(launch.with(["--ref-file"]).with([stand.dir.join(READY)]))
    }

    /// Elsewhere a reference is an address and a name; there it has an identity that whoever exports the object gives it.
    fn references(&self, dir: &Path) -> Option<PathBuf> {
        (self.lane == Lane::Dcom).then(|| dir.join(READY))
    }

    /// It says so when it listens, and not before it knows its target.
    fn ready(&self, dir: &Path) -> Option<PathBuf> {
        Some(dir.join(READY))
    }
}

/// What it writes when it is ready.
const READY: &str = "broker.refs";

impl Broker {
    /// A route with copies of calls and of answers, which go to a thread that counts their octets, and with a header that is put in both, before or behind the copy.
    fn routes(&self, from: &str, to: &str) -> String {
        let header = self.lane.header();
        let edits = match self.form {
            CHANGE_COPY => Some(true),
            COPY_CHANGE => Some(false),
            _ => None,
        };
        let edits = edits.map_or_else(String::new, |before| {
            let edit = |answers: bool| {
                format!(
                    "  {{ put = {header:?}, value = \"by a broker\", before-copy = {before}, answers = {answers} }},\n"
                )
            };
            format!("edits = [\n{}{}]\n", edit(false), edit(true))
        });
        format!(
            "[listen.front]\naddress = {from:?}\n\n[[route]]\nname = \"orders\"\nto = [{to:?}]\ncopy = {{ count = true, answers = true }}\n{edits}"
        )
    }
}

/// Writes a file of the contestant's directory, and returns where it is.
fn written(dir: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = dir.join(name);
    std::fs::write(&path, text).map_err(|error| broken(format!("{}: {error}", path.display())))?;
    Ok(path)
}
