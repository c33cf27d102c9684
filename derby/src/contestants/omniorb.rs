//! omniORB: a real object request broker, with a client and a server of our own in C++
//! (`rivals/omniorb/`), built where its packages are installed. It races over Unix sockets and over
//! TCP.
//!
//! The contracts are those that our own contestants compile, and are given to `omniidl`; all sources
//! are compiled at the same time, as many as there are CPUs.
//!
//! Invariant: both sides let messages of `LARGEST_MESSAGE` through, since the default of 2 MB is near
//! the race's largest.

use super::published::{BYTES_CORBA, CALLS_CORBA};
use super::workshop::{Workshop, compiler};
use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::process::Launch;
use crate::race::{CONNECTION_POINT, Race};
use crate::relay::RelayAddress;
use everywire_model::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Over Unix sockets and over TCP.
pub(super) fn all() -> Vec<Contestant> {
    let contestant = |transport: &'static str, title: &str| Contestant {
        name: format!("omniorb-{transport}"),
        title: title.to_owned(),
        family: "omniorb",
        wire: Some("giop"),
        transport,
        mode: "default",
        route: Route::Direct,
        published: Some([CALLS_CORBA, BYTES_CORBA]),
        setup: Box::new(OmniOrb { transport }),
    };
    vec![contestant("unix", "omniORB, Unix socket"), contestant("tcp", "omniORB, TCP")]
}

struct OmniOrb {
    transport: &'static str,
}

/// `giopMaxMsgSize` of both sides: 128 MB, as much as ours.
const LARGEST_MESSAGE: &str = "134217728";

impl Setup for OmniOrb {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        build().map(|built| Some(built.version))
    }

    fn enters(&self, race: &Race) -> bool {
        !race.signals && !race.reads() && !race.passes()
    }

    /// Its clients pass references; CORBA has no connection points.
    fn does(&self, race: &Race, operation: &str) -> bool {
        race.counts(operation) && operation != CONNECTION_POINT
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let endpoint = match self.transport {
            "tcp" => {
                format!(
                    "giop:tcp:{}:{}",
                    stand.host,
                    stand.port.map(|port| port.to_string()).unwrap_or_default()
                )
            }
            _ => format!("giop:unix:{}", stand.socket().display()),
        };
        let launch = Launch::new(built()?.server).with(["--ref-file"]).with([&stand.ref_file]).with([
            "-ORBendPoint",
            &endpoint,
            "-ORBgiopMaxMsgSize",
            LARGEST_MESSAGE,
        ]);
        Ok(Some(match stand.publish {
            Some(RelayAddress::Tcp(port)) => {
                launch.with(["-ORBendPointPublish", &format!("giop:tcp:127.0.0.1:{port}")])
            }
            Some(RelayAddress::Unix(path)) => {
                launch.with(["-ORBendPointPublish", &format!("giop:unix:{}", path.display())])
            }
            None => launch,
        }))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let launch = Launch::new(built()?.client)
            .with([&stand.ref_file])
            .with(["race", race.name])
            .with(plan.arguments());
        let launch = match (race.cycles, self.transport) {
            (false, _) => launch,
            (true, "tcp") => launch.with(["-ORBendPoint", &format!("giop:tcp:{}:", stand.client_host)]),
            (true, _) => {
                launch.with(["-ORBendPoint", &format!("giop:unix:{}", stand.client_socket().display())])
            }
        };
        Ok(launch
            .with(["-ORBgiopMaxMsgSize", LARGEST_MESSAGE])
            .with(["-ORBclientTransportRule", &format!("* {}", self.transport)]))
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        Some(super::frames::giop_frames)
    }
}

/// The programs; `prepare` has built them, so this only finds them.
fn built() -> Result<BuiltPrograms, Failure> {
    Ok(build()?)
}

/// The programs, built.
#[derive(Debug, Clone)]
pub struct BuiltPrograms {
    /// Calls the objects of a file of references; see its source for what it can do.
    pub client: PathBuf,
    /// Serves the contracts, and writes a file of references.
    pub server: PathBuf,
    /// The broker and its version.
    pub version: String,
}

/// The sources; those that end in `.cc` are compiled.
const SOURCES: &[(&str, &str)] = &[
    ("bench.idl", include_str!("../../contracts/bench.idl")),
    ("callbacks.idl", include_str!("../../contracts/callbacks.idl")),
    ("interop.idl", include_str!("../../rivals/omniorb/interop.idl")),
    ("bench_servants.h", include_str!("../../rivals/omniorb/bench_servants.h")),
    ("callbacks_servants.h", include_str!("../../rivals/omniorb/callbacks_servants.h")),
    ("interop_servants.h", include_str!("../../rivals/omniorb/interop_servants.h")),
    ("check.h", include_str!("../../rivals/omniorb/check.h")),
    ("measure.h", include_str!("../../rivals/measure.h")),
    ("refs.h", include_str!("../../rivals/omniorb/refs.h")),
    ("check_bench.cc", include_str!("../../rivals/omniorb/check_bench.cc")),
    ("check_interop.cc", include_str!("../../rivals/omniorb/check_interop.cc")),
    ("client.cc", include_str!("../../rivals/omniorb/client.cc")),
    ("server.cc", include_str!("../../rivals/omniorb/server.cc")),
];

/// Compiled as well: what the IDL compiler makes of the contracts.
const GENERATED: &[&str] = &[
    "benchSK.cc",
    "benchDynSK.cc",
    "callbacksSK.cc",
    "callbacksDynSK.cc",
    "interopSK.cc",
    "interopDynSK.cc",
];
const CLIENT: &[&str] = &["client", "check_bench", "check_interop"];
const FLAGS: &[&str] = &["-std=c++17", "-O2", "-I."];
const LIBRARIES: &[&str] = &["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"];

const WORKSHOP: Workshop = Workshop {
    rival: "omniORB",
    name: "omniorb",
    sources: SOURCES,
    flags: FLAGS,
    peers: &["g++", "omniorb"],
};

/// Builds client and server, once for these sources and this version of the broker: later calls find them in the user's
/// cache directory.
///
/// # Errors
/// A package is missing, or the compiler fails.
pub fn build() -> Result<BuiltPrograms, Missing> {
    let version = version()?;
    let dir = WORKSHOP.programs(&version, compile)?;
    Ok(BuiltPrograms { client: dir.join("client"), server: dir.join("server"), version })
}

/// The version of the installed broker.
fn version() -> Result<String, Missing> {
    WORKSHOP.needs(&compiler(), "--version")?;
    WORKSHOP.needs("omniidl", "-V")?;
    let header = ["/usr/include", "/usr/local/include"]
        .iter()
        .find_map(|dir| fs::read_to_string(Path::new(dir).join("omniORB4/acconfig.h")).ok());
    let Some(header) = header else {
        return Err(WORKSHOP.missing("omniORB cannot be built: its headers are not installed"));
    };
    let version = header.lines().find_map(|line| line.strip_prefix("#define PACKAGE_VERSION ")).unwrap_or("");
    Ok(format!("omniORB {}", version.trim_matches('"')).trim_end().to_owned())
}

/// Stubs of the contracts first, then all objects in parallel, then the two programs.
fn compile(dir: &Path) -> Result<(), Missing> {
    for (name, _) in SOURCES.iter().filter(|(name, _)| name.ends_with(".idl")) {
        WORKSHOP.run(dir, "omniidl", &["-bcxx", "-Wba", name])?;
    }
    let own = SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".cc"));
    let sources: Vec<&str> = own.chain(GENERATED.iter().copied()).collect();
    let next = Mutex::new(sources.iter());
    let results: Vec<Result<(), Missing>> = std::thread::scope(|scope| {
        let work = || {
            loop {
                let source = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(source) = source else { return Ok(()) };
                WORKSHOP.cxx(dir, &[FLAGS, &["-c", source]].concat())?;
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| {
                worker.join().unwrap_or_else(|_| Err(WORKSHOP.missing("a compiler thread panicked")))
            })
            .collect()
    });
    results.into_iter().collect::<Result<(), Missing>>()?;

    let stubs: Vec<String> = GENERATED.iter().map(|name| name.replace(".cc", ".o")).collect();
    for (program, parts) in [("client", CLIENT), ("server", &["server"])] {
        let parts: Vec<String> = parts.iter().map(|part| format!("{part}.o")).collect();
        let mut arguments = vec!["-o", program];
        arguments.extend(parts.iter().chain(&stubs).map(String::as_str));
        arguments.extend(LIBRARIES);
        WORKSHOP.cxx(dir, &arguments)?;
    }
    Ok(())
}
