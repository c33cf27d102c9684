//! The end of a node: what was let go is given back while its connections still stand.

use super::Exporter;
use std::sync::mpsc;
use std::time::Duration;

/// How long the end of a node waits for others to take references back: those that answer do so within milliseconds, unless their machine
/// is busy. What others do not take back they run down, if they hear nothing more, and some never do.
const FAREWELL: Duration = Duration::from_secs(5);

impl Exporter {
    /// Gives back what nobody here holds any more. What somebody holds goes on working.
    pub(super) fn give_back(&self) {
        let Some(this) = self.arc().filter(|_| self.imports.owes()) else { return };
        let (tell, told) = mpsc::channel();
        let flush = move || {
            this.flush();
            // Nobody may wait any more.
            let _ = tell.send(());
        };
        if std::thread::Builder::new().name("farewell".into()).spawn(flush).is_ok() {
            let _ = told.recv_timeout(FAREWELL);
        }
    }
}
