//! Clients of OPC Data Access that others wrote, on our server: Utgard in Java and node-opc-da in JavaScript, each in a program of our own
//! (`rivals/opc/`). Neither signs, so our server lets them in at level connect.
//!
//! Both look for port 135 alone, so they race between two network namespaces only, each with a server at an address of its own.

use super::ours::opc::{Open, open};
use super::workshop::Workshop;
use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::contestants::published::{CALLBACKS_WIRE, ITEMS_DCOM};
use crate::link::INTERFACE;
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::{Clients, Race};
use everywire_model::Failure;
use std::path::PathBuf;
use std::time::Duration;

/// The domain of the account. Our server takes any, but node-dcom fails with an empty one.
const DOMAIN: &str = "DERBY";

/// A library of the list of peers.
#[derive(Debug)]
struct Library {
    /// For the list, and the first word of its contestant's name.
    name: &'static str,
    title: &'static str,
    /// Where its server is, on the link.
    host: &'static str,
    /// What runs its program.
    engine: &'static str,
    /// The program, built.
    product: &'static str,
    workshop: Workshop,
}

static UTGARD: Library = Library {
    name: "utgard",
    title: "Utgard",
    host: "10.77.0.10",
    engine: "java",
    product: "client.jar",
    workshop: Workshop {
        rival: "Utgard's client",
        name: "utgard",
        sources: &[("OpcUtgard.java", include_str!("../../rivals/opc/OpcUtgard.java"))],
        flags: &[],
        peers: &["java", "mvn", "utgard"],
    },
};
static NODE: Library = Library {
    name: "node-opc-da",
    title: "node-opc-da",
    host: "10.77.0.11",
    engine: "node",
    product: "client.js",
    workshop: Workshop {
        rival: "node-opc-da's client",
        name: "node-opc-da",
        sources: &[("client.js", include_str!("../../rivals/opc/client.js"))],
        flags: &[],
        peers: &["node", "npm", "node-opc-da"],
    },
};

/// Both.
pub(super) fn all() -> Vec<Contestant> {
    let of = |library: &'static Library| Contestant {
        name: format!("{}-tcp", library.name),
        title: format!("{} on our server", library.title),
        family: library.name,
        wire: Some(CALLBACKS_WIRE),
        transport: "tcp",
        mode: "default",
        route: Route::Direct,
        published: Some([ITEMS_DCOM; 2]),
        setup: Box::new(Client { library }),
    };
    [&UTGARD, &NODE].map(of).into()
}

struct Client {
    library: &'static Library,
}

impl Client {
    /// The folder of the library, and the program.
    fn find(&self) -> Result<(PathBuf, PathBuf), Missing> {
        let (library, workshop) = (self.library, &self.library.workshop);
        let peer = everywire_peers::peer(library.name);
        workshop.needs(library.engine, "--version")?;
        let folder = peer.folder().filter(|folder| folder.join("done").exists());
        let Some(folder) = folder else {
            return Err(workshop.missing(format!("{} is not installed", library.title)));
        };
        let libraries = format!("{}/lib/*", folder.display());
        let dir = workshop.products(peer.version, &[library.product], |dir| {
            if library.engine == "java" {
                let source =
                    ["-nowarn", "-encoding", "UTF-8", "-cp", &libraries, "-d", "classes", "OpcUtgard.java"];
                workshop.run(dir, "javac", &source)?;
                workshop.run(dir, "jar", &["--create", "--file", library.product, "-C", "classes", "."])?;
            }
            Ok(())
        })?;
        Ok((folder, dir.join(library.product)))
    }
}

impl Setup for Client {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        self.find()?;
        Ok(Some(format!("{} {}", self.library.title, everywire_peers::version(self.library.name))))
    }

    fn enters(&self, race: &Race) -> bool {
        race.reads() && !race.rated
    }

    fn does(&self, race: &Race, operation: &str) -> bool {
        let found = race.operations.iter().find(|known| known.name == operation);
        found.and_then(|operation| operation.reads).is_some_and(|reads| reads.clients == Clients::One)
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let host = self.library.host;
        let script = format!("ip address add {host}/24 dev {INTERFACE} && exec \"$0\" \"$@\"");
        Ok(Some(open(stand, host)?.launch.by("sh", ["-c", &script])))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let (folder, program) = self.find()?;
        let Open { user, password, class, .. } = open(stand, self.library.host)?;
        let launch = if self.library.engine == "java" {
            let classes = format!("{}:{}/lib/*", program.display(), folder.display());
            // It looks for files in its directory.
            let home = format!("-Duser.home={}", stand.dir.display());
            Launch::new("java").with([&home, "-cp", &classes, "OpcUtgard"])
        } else {
            // Its NTLM is made of ciphers that are no longer on by default.
            Launch::new("node")
                .where_is("NODE_PATH", folder.join("node_modules"))
                .with(["--openssl-legacy-provider"])
                .with([program])
        };
        let account = [self.library.host, DOMAIN, user, password, class];
        Ok(launch.with(account).with([race.name]).with(plan.arguments()))
    }

    fn runs_at(&self, placement: &Placement) -> bool {
        placement.remote
    }

    fn starts_slowly(&self) -> bool {
        true
    }

    /// The compiler of Java.
    fn building(&self) -> Duration {
        if self.library.engine == "java" && !self.library.workshop.was_used() {
            Duration::from_secs(8)
        } else {
            Duration::ZERO
        }
    }

    fn passes_a_relay(&self, _: &Race) -> bool {
        false
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}
