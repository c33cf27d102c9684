//! Ours: `everywire broker`, of the same program, as anybody would start it.

use super::{Hop, Lane};
use crate::broken;
use crate::contestants::published::{CHANGE_COPY, COPY, COPY_CHANGE, PASS, TYPED};
use crate::contestants::{Missing, Stand};
use crate::process::Launch;
use everywire_model::Failure;

/// The broker in one of its forms.
pub(super) struct Broker {
    pub(super) lane: Lane,
    pub(super) form: &'static str,
}

impl Hop for Broker {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        Ok(None)
    }

    fn launch(&self, stand: &Stand<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let program =
            std::env::current_exe().map_err(|error| broken(format!("this program's own file: {error}")))?;
        let launch = Launch::new(program).with(["broker"]);
        let launch = launch.with(["--from", &self.lane.front(front, stand.dir)]);
        let launch = launch.with(["--to", &self.lane.back(back)]);
        let launch = match self.form {
            PASS => launch,
            COPY => launch.with(["--copy", "count"]),
            CHANGE_COPY => launch.with(["--edit", "before", "--copy", "count"]),
            COPY_CHANGE => launch.with(["--copy", "count", "--edit", "after"]),
            TYPED => {
                launch.with(["--contract"]).with([contract(stand)?]).with(["--interface", "OrderService"])
            }
            other => return Err(broken(format!("nobody knows the form {other}"))),
        };
        Ok(launch)
    }
}

/// The contract of the race as a file.
fn contract(stand: &Stand<'_>) -> Result<std::path::PathBuf, Failure> {
    let path = stand.dir.join("orders.idl");
    std::fs::write(&path, include_str!("../../../contracts/orders.idl"))
        .map_err(|error| broken(format!("{}: {error}", path.display())))?;
    Ok(path)
}
