//! OPC UA, which came after OPC Data Access: asyncua in Python, and open62541, which is C, by its package for Python. A server and a client
//! of our own for each (`rivals/opcua/`) read as many floats with time and status.

use super::workshop::Workshop;
use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::process::Launch;
use crate::race::{Clients, Race};
use everywire_model::Failure;
use std::path::PathBuf;

/// A library of the list of peers.
#[derive(Debug)]
struct Library {
    /// For the list, and the first word of its contestant's name.
    name: &'static str,
    title: &'static str,
    workshop: Workshop,
}

const RACE: (&str, &str) = ("race.py", include_str!("../../rivals/opcua/race.py"));
/// Client and server in one file.
const SIDES: &str = "sides.py";

static ASYNCUA: Library = Library {
    name: "asyncua",
    title: "asyncua",
    workshop: Workshop {
        rival: "asyncua",
        name: "asyncua",
        sources: &[RACE, (SIDES, include_str!("../../rivals/opcua/asyncua_sides.py"))],
        flags: &[],
        peers: &["asyncua"],
    },
};
static O6: Library = Library {
    name: "o6",
    title: "open62541 (o6)",
    workshop: Workshop {
        rival: "open62541 (o6)",
        name: "o6",
        sources: &[RACE, (SIDES, include_str!("../../rivals/opcua/o6_sides.py"))],
        flags: &[],
        peers: &["o6"],
    },
};

/// Both.
pub(super) fn all() -> Vec<Contestant> {
    let of = |library: &'static Library| Contestant {
        name: format!("{}-tcp", library.name),
        title: format!("{}, OPC UA over TCP", library.title),
        family: library.name,
        wire: Some("opcua"),
        transport: "tcp",
        mode: "default",
        route: Route::Direct,
        published: None,
        setup: Box::new(Rival { library }),
    };
    [&O6, &ASYNCUA].map(of).into()
}

struct Rival {
    library: &'static Library,
}

impl Rival {
    /// Its Python, and the program.
    fn find(&self) -> Result<(PathBuf, PathBuf), Missing> {
        let (library, peer) = (self.library, everywire_peers::peer(self.library.name));
        let folder = peer.folder().filter(|folder| folder.join("done").exists());
        let Some(folder) = folder else {
            return Err(library.workshop.missing(format!("{} is not installed", library.title)));
        };
        let dir = library.workshop.products(peer.version, &[RACE.0, SIDES], |_| Ok(()))?;
        Ok((folder.join("bin/python"), dir.join(SIDES)))
    }

    fn launch(&self) -> Result<Launch, Failure> {
        let (python, program) = self.find()?;
        // Nothing is written beside the programs.
        Ok(Launch::new(python).where_is("PYTHONDONTWRITEBYTECODE", "1").with([program]))
    }
}

impl Setup for Rival {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        self.find()?;
        Ok(Some(format!("{} {}", self.library.title, everywire_peers::version(self.library.name))))
    }

    fn enters(&self, race: &Race) -> bool {
        race.reads()
    }

    /// One client; nothing of a hundred thousand items.
    fn does(&self, race: &Race, operation: &str) -> bool {
        let found = race.operations.iter().find(|known| known.name == operation);
        let reads = found.and_then(|operation| operation.reads);
        reads.is_some_and(|reads| reads.clients == Clients::One)
            && (!race.rated || operation == crate::race::TYPICAL)
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        Ok(Some(self.launch()?.with(["serve"]).with([&stand.ref_file]).with([stand.host])))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        Ok(self.launch()?.with([&stand.ref_file]).with(["race", race.name]).with(plan.arguments()))
    }

    fn starts_slowly(&self) -> bool {
        true
    }

    fn passes_a_relay(&self, _: &Race) -> bool {
        false
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}
