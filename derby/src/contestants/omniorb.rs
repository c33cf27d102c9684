//! omniORB: a real object request broker, with a client and a server of our own in C++ (`rivals/omniorb/`), built where its
//! packages are installed.

use super::published::{BYTES_CORBA, CALLS_CORBA};
use super::{Contestant, Missing, Setup, Stand};
use crate::measure::Plan;
use crate::process::{Fresh, Launch};
use crate::race::Race;
use crate::relay::Place;
use everywire_model::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
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
        published: Some([CALLS_CORBA, BYTES_CORBA]),
        setup: Box::new(OmniOrb { transport }),
    };
    vec![contestant("unix", "omniORB, Unix socket"), contestant("tcp", "omniORB, TCP")]
}

struct OmniOrb {
    transport: &'static str,
}

/// Messages of this size are let through by both sides.
const LARGEST_MESSAGE: &str = "134217728";

impl Setup for OmniOrb {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        build().map(|built| Some(built.version))
    }

    fn server(&self, stand: &Stand<'_>) -> Result<Option<Launch>, Failure> {
        let endpoint = match self.transport {
            "tcp" => {
                format!("giop:tcp:127.0.0.1:{}", stand.port.map(|port| port.to_string()).unwrap_or_default())
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
            Some(Place::Tcp(port)) => {
                launch.with(["-ORBendPointPublish", &format!("giop:tcp:127.0.0.1:{port}")])
            }
            Some(Place::Unix(path)) => {
                launch.with(["-ORBendPointPublish", &format!("giop:unix:{}", path.display())])
            }
            None => launch,
        }))
    }

    fn client(&self, stand: &Stand<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        Ok(Launch::new(built()?.client)
            .with([&stand.ref_file])
            .with(["race", race.name])
            .with(plan.arguments())
            .with(["-ORBgiopMaxMsgSize", LARGEST_MESSAGE])
            .with(["-ORBclientTransportRule", &format!("* {}", self.transport)]))
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        Some(super::ours::frames)
    }
}

fn built() -> Result<Built, Failure> {
    build().map_err(|missing| crate::broken(missing.what).with_hint(missing.install))
}

/// The programs, built.
#[derive(Debug, Clone)]
pub struct Built {
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
    ("interop.idl", include_str!("../../rivals/omniorb/interop.idl")),
    ("bench_servants.h", include_str!("../../rivals/omniorb/bench_servants.h")),
    ("interop_servants.h", include_str!("../../rivals/omniorb/interop_servants.h")),
    ("check.h", include_str!("../../rivals/omniorb/check.h")),
    ("measure.h", include_str!("../../rivals/omniorb/measure.h")),
    ("refs.h", include_str!("../../rivals/omniorb/refs.h")),
    ("check_bench.cc", include_str!("../../rivals/omniorb/check_bench.cc")),
    ("check_interop.cc", include_str!("../../rivals/omniorb/check_interop.cc")),
    ("client.cc", include_str!("../../rivals/omniorb/client.cc")),
    ("server.cc", include_str!("../../rivals/omniorb/server.cc")),
];

/// Compiled as well: what the IDL compiler makes of the contracts.
const GENERATED: &[&str] = &["benchSK.cc", "benchDynSK.cc", "interopSK.cc", "interopDynSK.cc"];
const CLIENT: &[&str] = &["client", "check_bench", "check_interop"];
const FLAGS: &[&str] = &["-std=c++17", "-O2", "-I."];
const LIBRARIES: &[&str] = &["-lomniDynamic4", "-lomniORB4", "-lomnithread", "-lpthread"];

/// Builds client and server, once for these sources and this version of the broker: later calls find them in the user's
/// cache directory.
///
/// # Errors
/// A package is missing, or the compiler fails.
pub fn build() -> Result<Built, Missing> {
    // Two threads of one process need not build the same twice.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);

    let version = version()?;
    let dir = cache().join(format!("omniorb-{:016x}", hash(&version)));
    let built = |dir: &Path| Built {
        client: dir.join("client"),
        server: dir.join("server"),
        version: version.clone(),
    };
    if built(&dir).server.exists() && built(&dir).client.exists() {
        return Ok(built(&dir));
    }
    let fresh = Fresh::new().map_err(|failure| missing(failure.to_string()))?;
    compile(fresh.path())?;
    // Whoever comes second finds the directory there, and that is as good.
    let io = |error: std::io::Error| missing(format!("{}: {error}", dir.display()));
    fs::create_dir_all(&dir).map_err(io)?;
    for program in ["client", "server"] {
        let partial = dir.join(format!("{program}.{}", std::process::id()));
        fs::copy(fresh.path().join(program), &partial).map_err(io)?;
        fs::rename(&partial, dir.join(program)).map_err(io)?;
    }
    Ok(built(&dir))
}

fn missing(what: impl Into<String>) -> Missing {
    Missing { what: what.into(), install: "apt-get install g++ omniidl libomniorb4-dev".to_owned() }
}

/// The version of the installed broker.
fn version() -> Result<String, Missing> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    for (program, argument) in [(compiler.as_str(), "--version"), ("omniidl", "-V")] {
        let found = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
        if !found {
            return Err(missing(format!("omniORB cannot be built: `{program}` is not installed")));
        }
    }
    let header = ["/usr/include", "/usr/local/include"]
        .iter()
        .find_map(|dir| fs::read_to_string(Path::new(dir).join("omniORB4/acconfig.h")).ok());
    let Some(header) = header else {
        return Err(missing("omniORB cannot be built: its headers are not installed"));
    };
    let version = header.lines().find_map(|line| line.strip_prefix("#define PACKAGE_VERSION ")).unwrap_or("");
    Ok(format!("omniORB {}", version.trim_matches('"')).trim_end().to_owned())
}

fn cache() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let base =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()).or_else(home);
    base.unwrap_or_else(std::env::temp_dir).join("everywire/derby")
}

/// FNV-1a over everything that the programs depend on.
fn hash(version: &str) -> u64 {
    let texts =
        SOURCES.iter().flat_map(|(name, text)| [*name, *text]).chain(FLAGS.iter().copied()).chain([version]);
    texts
        .flat_map(str::bytes)
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn compile(dir: &Path) -> Result<(), Missing> {
    for (name, text) in SOURCES {
        fs::write(dir.join(name), text).map_err(|error| missing(format!("{name}: {error}")))?;
    }
    for (name, _) in SOURCES.iter().filter(|(name, _)| name.ends_with(".idl")) {
        run(dir, "omniidl", &["-bcxx", "-Wba", name])?;
    }
    let own = SOURCES.iter().map(|(name, _)| *name).filter(|name| name.ends_with(".cc"));
    let sources: Vec<&str> = own.chain(GENERATED.iter().copied()).collect();
    let next = Mutex::new(sources.iter());
    let results: Vec<Result<(), Missing>> = std::thread::scope(|scope| {
        let work = || {
            loop {
                let source = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(source) = source else { return Ok(()) };
                cxx(dir, &[FLAGS, &["-c", source]].concat())?;
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err(missing("a compiler thread panicked"))))
            .collect()
    });
    results.into_iter().collect::<Result<(), Missing>>()?;

    let stubs: Vec<String> = GENERATED.iter().map(|name| name.replace(".cc", ".o")).collect();
    for (program, parts) in [("client", CLIENT), ("server", &["server"])] {
        let parts: Vec<String> = parts.iter().map(|part| format!("{part}.o")).collect();
        let mut arguments = vec!["-o", program];
        arguments.extend(parts.iter().chain(&stubs).map(String::as_str));
        arguments.extend(LIBRARIES);
        cxx(dir, &arguments)?;
    }
    Ok(())
}

fn cxx(dir: &Path, arguments: &[&str]) -> Result<(), Missing> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    run(dir, &compiler, arguments)
}

fn run(dir: &Path, program: &str, arguments: &[&str]) -> Result<(), Missing> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(dir)
        .output()
        .map_err(|error| missing(format!("omniORB cannot be built: `{program}`: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line =
        said.lines().find(|line| line.contains("error")).or_else(|| said.lines().next()).unwrap_or_default();
    Err(missing(format!("omniORB cannot be built: `{program} {}`: {line}", arguments.join(" "))))
}
