//! Wine: COM between two processes of one machine, with a client and a server of our own in C++
//! (`rivals/wine/`), built by a cross compiler. Windows raced in the first published race; here Wine
//! does so wherever it is installed.
//!
//! Everything is kept in a prefix of the derby's own (registry and drive) in the user's cache, so the
//! user's Wine is neither seen nor changed. Making it takes long, once. Wine's own server and services
//! stay for a while after their last program; they are no children of ours (`leaves_helpers`).

use super::workshop::Workshop;
use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::{Launch, output};
use crate::race::Race;
use everywire_model::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Local COM only: between machines Wine has neither activation nor a resolver.
pub(super) fn all() -> Vec<Contestant> {
    vec![Contestant {
        name: "wine-local".to_owned(),
        title: "Wine, local COM".to_owned(),
        family: "wine",
        wire: Some("dcom"),
        transport: "unix",
        mode: "default",
        route: Route::Direct,
        published: None,
        setup: Box::new(Wine),
    }]
}

struct Wine;

impl Setup for Wine {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        build().map(|built| Some(built.version))
    }

    fn enters(&self, race: &Race) -> bool {
        !race.signals && !race.reads() && !race.passes()
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let built = built()?;
        Ok(Some(built.launch("server").with([&stand.ref_file])))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let built = built()?;
        Ok(built.launch("client").with([&stand.ref_file]).with(["race", race.name]).with(plan.arguments()))
    }

    fn runs_at(&self, placement: &Placement) -> bool {
        !placement.remote
    }

    fn starts_slowly(&self) -> bool {
        true
    }

    /// The prefix is made last: when it is there, so is all the rest.
    fn building(&self) -> Duration {
        if prefix_is_made() { Duration::ZERO } else { Duration::from_secs(25) }
    }

    /// Wine's server, which every program of the prefix shares, and the services that it starts.
    fn leaves_helpers(&self) -> bool {
        true
    }

    /// A cycle takes some 30 ms, so 1000 of them take longer than other contestants' operations may.
    fn longest(&self) -> Duration {
        Duration::from_secs(120)
    }

    fn passes_a_relay(&self, _: &Race) -> bool {
        false
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}

const WORKSHOP: Workshop = Workshop {
    rival: "Wine's COM",
    name: "wine",
    sources: &[
        ("callbacks.idl", include_str!("../../contracts/derby.midl")),
        ("bench.idl", include_str!("../../contracts/bench.dcom.midl")),
        ("measure.h", include_str!("../../rivals/measure.h")),
        ("com.h", include_str!("../../rivals/wine/com.h")),
        ("proxies.h", include_str!("../../rivals/wine/proxies.h")),
        ("client.cc", include_str!("../../rivals/wine/client.cc")),
        ("server.cc", include_str!("../../rivals/wine/server.cc")),
    ],
    flags: &[],
    peers: &["wine", "wine-contracts", "mingw"],
};

const IDL: &str = "x86_64-w64-mingw32-widl";
const CC: &str = "x86_64-w64-mingw32-gcc";
const CXX: &str = "x86_64-w64-mingw32-g++";
/// Where the base interfaces' contracts are.
const INCLUDE: &str = "-I/usr/include/wine/wine/windows";
const LIBRARIES: [&str; 4] = ["-lole32", "-loleaut32", "-lrpcrt4", "-luuid"];

struct BuiltPrograms {
    programs: PathBuf,
    version: String,
}

impl BuiltPrograms {
    /// A program under Wine, with the environment of the prefix.
    fn launch(&self, program: &str) -> Launch {
        environment()
            .into_iter()
            .fold(Launch::new("wine"), |launch, (name, value)| launch.where_is(name, value))
            .with([self.programs.join(program)])
    }
}

/// The prefix, no messages of Wine's on standard error, and neither .NET nor a browser, which would ask
/// to be installed.
fn environment() -> [(&'static str, PathBuf); 3] {
    [
        // Where there is no directory for it `build` has said so, and nothing starts.
        (
            "WINEPREFIX",
            super::workshop::cache().unwrap_or_else(|_| "/nonexistent".into()).join("wine-prefix"),
        ),
        ("WINEDEBUG", "-all".into()),
        ("WINEDLLOVERRIDES", "mscoree,mshtml=".into()),
    ]
}

fn built() -> Result<BuiltPrograms, Failure> {
    Ok(build()?)
}

/// The registry is written when the prefix is whole.
fn prefix_is_made() -> bool {
    let [(_, prefix), ..] = environment();
    prefix.join("system.reg").exists()
}

/// Builds the programs and makes the prefix, once.
fn build() -> Result<BuiltPrograms, Missing> {
    for program in ["wine", IDL, CC, CXX] {
        WORKSHOP.needs(program, if program == IDL { "-V" } else { "--version" })?;
    }
    let version = WORKSHOP.run(Path::new("/"), "wine", &["--version"])?;
    let programs = WORKSHOP.programs(&version, compile)?;
    let [(_, prefix), ..] = environment();
    if !prefix_is_made() {
        let failed = |what: String| WORKSHOP.missing(format!("Wine cannot make its prefix: {what}"));
        fs::create_dir_all(&prefix).map_err(|error| failed(error.to_string()))?;
        let mut boot = Command::new("wineboot");
        boot.arg("--init").envs(environment());
        let made = output(boot).map_err(|error| failed(error.to_string()))?;
        if !made.status.success() {
            return Err(failed(String::from_utf8_lossy(&made.stderr).trim().to_owned()));
        }
        // The rest of it is made in the background: until that is done no class can be found, and nothing is on disk.
        let mut server = Command::new("wineserver");
        server.arg("--wait").envs(environment());
        output(server).map_err(|error| failed(error.to_string()))?;
    }
    Ok(BuiltPrograms { programs, version })
}

fn compile(dir: &Path) -> Result<(), Missing> {
    let mut objects = vec!["dlldata.o".to_owned()];
    for contract in ["callbacks", "bench"] {
        let idl = format!("{contract}.idl");
        for (kind, end) in [("-h", ".h"), ("-p", "_p.c"), ("-u", "_i.c")] {
            let out = format!("{contract}{end}");
            WORKSHOP.run(dir, IDL, &[INCLUDE, "--win64", "-Oicf", kind, "-o", &out, &idl])?;
        }
        objects.extend([format!("{contract}_p.o"), format!("{contract}_i.o")]);
    }
    WORKSHOP.run(dir, IDL, &["--win64", "--dlldata-only", "-o", "dlldata.c", "callbacks", "bench"])?;
    for object in &objects {
        let source = object.replace(".o", ".c");
        let flags = ["-O2", "-D_WIN32_WINNT=0x600", "-DUSE_COMPILER_EXCEPTIONS", "-include", "proxies.h"];
        WORKSHOP.run(dir, CC, &[&flags[..], &["-c", &source]].concat())?;
    }
    for program in ["client", "server"] {
        let source = format!("{program}.cc");
        let mut arguments = vec!["-std=c++17", "-O2", "-static", "-o", program, &source];
        arguments.extend(objects.iter().map(String::as_str));
        arguments.extend(LIBRARIES);
        WORKSHOP.run(dir, CXX, &arguments)?;
        // The linker adds the ending that these programs have elsewhere.
        let with_ending = dir.join(format!("{program}.exe"));
        if with_ending.exists() {
            fs::rename(&with_ending, dir.join(program))
                .map_err(|error| WORKSHOP.missing(error.to_string()))?;
        }
    }
    Ok(())
}
