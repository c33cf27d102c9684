//! A router on Mono's WCF (`rivals/mono/router.cs`): WCF's own message classes, in each of the forms that were published, with and without the
//! sleeps of Mono's dispatchers.

use super::{Hop, Lane};
use crate::contestants::mono::{self, BuiltPrograms};
use crate::contestants::{Missing, ServerPlace};
use crate::process::Launch;
use everywire_model::Failure;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

pub(super) const FAMILY: &str = mono::FAMILY;

/// What it writes when it is ready.
const READY: &str = "ready";

/// The router with one of Mono's bindings, in one form.
pub(super) struct Router {
    pub(super) binding: &'static str,
    /// The word for it.
    pub(super) form: &'static str,
    pub(super) sleeps: bool,
}

/// Mono's name of a lane's binding, where it has one.
pub(super) fn binding(lane: Lane) -> Option<&'static str> {
    match lane {
        Lane::NetTcp => Some("tcp"),
        Lane::BasicHttp => Some("basic"),
        Lane::WsHttp => Some("ws"),
        Lane::Iiop | Lane::Dbus | Lane::Dcom => None,
    }
}

impl Hop for Router {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        built().map(|built| Some(built.version.clone()))
    }

    fn launch(&self, stand: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let BuiltPrograms { router, awake, .. } = built()?;
        let launch =
            Launch::new("mono").with([router]).with(["--binding", self.binding, "--form", self.form]);
        let launch = launch.with(["--listen", &format!("127.0.0.1:{front}")]);
        let launch = launch.with(["--to", &format!("127.0.0.1:{back}")]);
        let launch = launch.with(["--ready"]).with([stand.dir.join(READY)]);
        Ok(if self.sleeps { launch } else { launch.where_is("MONO_PATH", awake) })
    }

    /// A connection that says nothing keeps its listener from the next one.
    fn ready(&self, dir: &Path) -> Option<PathBuf> {
        Some(dir.join(READY))
    }

    fn starting(&self) -> Duration {
        Duration::from_millis(1500)
    }

    fn sleeps(&self) -> bool {
        self.sleeps
    }
}

/// All of them share one build, and ask for it once.
fn built() -> Result<&'static BuiltPrograms, Missing> {
    static BUILT: OnceLock<Result<BuiltPrograms, Missing>> = OnceLock::new();
    BUILT.get_or_init(mono::build).as_ref().map_err(Clone::clone)
}
