//! Mono's WCF: a client and a server of our own in C# (`rivals/mono/`), built where Mono is installed,
//! over every binding that both of its sides speak.
//!
//! As shipped Mono sleeps 50 ms before each receive of net.tcp and up to 100 ms before each accept of
//! HTTP. So each binding races twice: as shipped, and with a copy of its library in which the two
//! sleeps are taken out. The copy is made by a program that edits the library (`unsleep.cs`, with
//! Mono.Cecil), and is found through `MONO_PATH` by the processes of the contestant alone.
//!
//! Invariant: nothing of the installed Mono is changed. Contestants that sleep have one operation and
//! one second, since every further call says the same.

use super::published::{BYTES_NET_TCP, BYTES_WS_HTTP};
use super::workshop::Workshop;
use super::{Contestant, Missing, OPERATION, Route, ServerPlace, Setup};
use crate::broken;
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::Race;
use crate::relay::RelayAddress;
use everywire_model::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the wire, and the first word of the names.
pub(super) const WIRE: &str = "wcf";
pub(super) const FAMILY: &str = "mono";

/// The mode of those that sleep.
const AS_SHIPPED: &str = "as-shipped";
/// One operation of those that sleep takes so long at the most: more calls say the same.
const SLEEPY: Duration = Duration::from_secs(1);

/// A binding that both of its sides speak.
#[derive(Debug)]
struct Binding {
    /// For the programs, and the second part of names.
    name: &'static str,
    title: &'static str,
    /// How it sleeps as shipped.
    sleep: &'static str,
    published: Option<[&'static str; 2]>,
}

const ACCEPT: &str = "sleeps up to 100 ms before each accept";

static BINDINGS: [Binding; 4] = [
    Binding {
        name: "tcp",
        title: "NetTcp",
        sleep: "sleeps 50 ms before each receive",
        published: Some([BYTES_NET_TCP; 2]),
    },
    Binding { name: "basic", title: "BasicHttp", sleep: ACCEPT, published: None },
    Binding { name: "ws", title: "WSHttp", sleep: ACCEPT, published: Some([BYTES_WS_HTTP; 2]) },
    Binding { name: "binhttp", title: "binary over HTTP", sleep: ACCEPT, published: None },
];

/// Every binding, without the sleeps and with them.
pub(super) fn all() -> Vec<Contestant> {
    let of = |binding: &'static Binding, sleeps: bool| Contestant {
        name: format!("{FAMILY}-{}{}", binding.name, if sleeps { "-shipped" } else { "" }),
        title: if sleeps {
            format!("Mono WCF, {}, as shipped ({})", binding.title, binding.sleep)
        } else {
            format!("Mono WCF, {}, its sleeps taken out", binding.title)
        },
        family: FAMILY,
        wire: Some(WIRE),
        transport: "tcp",
        mode: if sleeps { AS_SHIPPED } else { "default" },
        route: Route::Direct,
        published: binding.published,
        setup: Box::new(Mono { binding, sleeps }),
    };
    let awake = BINDINGS.iter().map(|binding| of(binding, false));
    // One binding over HTTP sleeps as the other.
    let shipped = BINDINGS.iter().filter(|binding| binding.published.is_some() || binding.name == "basic");
    awake.chain(shipped.map(|binding| of(binding, true))).collect()
}

struct Mono {
    binding: &'static Binding,
    sleeps: bool,
}

impl Setup for Mono {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        build().map(|built| Some(built.version))
    }

    /// Seven times the same sleep says nothing that one does not.
    fn does(&self, race: &Race, operation: &str) -> bool {
        race.counts(operation) && (!self.sleeps || race.transfers() || operation == race.headline)
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let built = built()?;
        let listen =
            stand.port.map_or_else(|| stand.host.to_owned(), |port| format!("{}:{port}", stand.host));
        let launch =
            self.mono(&built, stand)?.with([&built.server]).with(["--ref-file"]).with([&stand.ref_file]);
        let launch = launch.with(["--binding", self.binding.name, "--listen", &listen]);
        Ok(Some(match stand.publish {
            Some(RelayAddress::Tcp(port)) => launch.with(["--publish", &format!("{}:{port}", stand.host)]),
            _ => launch,
        }))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let built = built()?;
        let mut plan = plan.clone();
        if self.sleeps && !race.transfers() {
            plan.operation = Some(race.headline.to_owned());
        }
        Ok(self
            .mono(&built, stand)?
            .with([&built.client])
            .with([&stand.ref_file])
            .with([self.binding.name, "race", race.name])
            .with(plan.arguments()))
    }

    /// What sleeps does so wherever it runs.
    fn runs_at(&self, placement: &Placement) -> bool {
        !self.sleeps || !(placement.is_pinned() || placement.remote)
    }

    fn starts_slowly(&self) -> bool {
        true
    }

    fn building(&self) -> Duration {
        // All of them share one build: the first one waits for it.
        if WORKSHOP.was_used() || self.binding.name != BINDINGS[0].name || self.sleeps {
            Duration::ZERO
        } else {
            Duration::from_secs(10)
        }
    }

    fn longest(&self) -> Duration {
        if self.sleeps { SLEEPY } else { OPERATION }
    }

    /// Its HTTP server knows itself by the port that it listens on.
    fn passes_a_relay(&self, _: &Race) -> bool {
        self.binding.name == "tcp" && !self.sleeps
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        Some(super::frames::wcf_frames)
    }
}

impl Mono {
    /// The virtual machine, with the library of the contestant: the copy without sleeps, or none but
    /// the installed one.
    fn mono(&self, built: &BuiltPrograms, stand: &ServerPlace<'_>) -> Result<Launch, Failure> {
        let launch = if stand.placement.remote { named(stand)? } else { Launch::new("mono") };
        Ok(if self.sleeps { launch } else { launch.where_is("MONO_PATH", &built.awake) })
    }
}

/// Mono asks for the names of addresses, which nobody answers between two namespaces. So it is started
/// in a mount namespace of its own, with a table of hosts that has both names.
fn named(stand: &ServerPlace<'_>) -> Result<Launch, Failure> {
    let hosts = stand.dir.join("hosts");
    let text =
        format!("127.0.0.1 localhost\n{} server-side\n{} client-side\n", stand.host, stand.client_host);
    std::fs::write(&hosts, text).map_err(|error| broken(format!("{}: {error}", hosts.display())))?;
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    Ok(Launch::new("unshare").with(["--mount", "sh", "-c", script]).with([&hosts]).with(["mono"]))
}

/// The programs, built.
pub(super) struct BuiltPrograms {
    /// `client.exe REF-FILE BINDING race calls|bytes [PLAN]`.
    client: PathBuf,
    /// `server.exe --ref-file FILE --binding BINDING --listen HOST[:PORT] [--publish HOST:PORT]`.
    server: PathBuf,
    /// `router.exe --binding BINDING --listen HOST:PORT --to HOST:PORT --form FORM`.
    pub(super) router: PathBuf,
    /// Where the library without sleeps is.
    pub(super) awake: PathBuf,
    pub(super) version: String,
}

const WORKSHOP: Workshop = Workshop {
    rival: "Mono's WCF",
    name: FAMILY,
    sources: &[
        ("bench.cs", include_str!("../../rivals/mono/bench.cs")),
        ("measure.cs", include_str!("../../rivals/mono/measure.cs")),
        ("client.cs", include_str!("../../rivals/mono/client.cs")),
        ("server.cs", include_str!("../../rivals/mono/server.cs")),
        ("router.cs", include_str!("../../rivals/mono/router.cs")),
        ("unsleep.cs", include_str!("../../rivals/mono/unsleep.cs")),
    ],
    flags: &["-optimize"],
    peers: &["mono"],
};

/// What the build leaves: three programs, and the library, which no program may find by chance.
const CLIENT: &str = "client.exe";
const SERVER: &str = "server.exe";
const ROUTER: &str = "router.exe";
const AWAKE: &str = "awake";
const LIBRARY: &str = "System.ServiceModel.dll";
const PLACES: [&str; 2] = ["/usr/lib/mono", "/usr/local/lib/mono"];

/// The programs; `prepare` has built them, so this only finds them.
fn built() -> Result<BuiltPrograms, Failure> {
    Ok(build()?)
}

/// Builds client, server, router and library, once for these sources and this version of Mono.
pub(super) fn build() -> Result<BuiltPrograms, Missing> {
    WORKSHOP.needs("mono", "--version")?;
    WORKSHOP.needs("mcs", "--version")?;
    let said = WORKSHOP.run(Path::new("/"), "mono", &["--version"])?;
    let version = said.lines().next().unwrap_or_default();
    let number = version.split("version ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    let library = format!("{AWAKE}/{LIBRARY}");
    let dir = WORKSHOP.products(version, &[CLIENT, SERVER, ROUTER, &library], compile)?;
    let (client, server, router, awake) =
        (dir.join(CLIENT), dir.join(SERVER), dir.join(ROUTER), dir.join(AWAKE));
    Ok(BuiltPrograms { client, server, router, awake, version: format!("Mono {number}") })
}

/// Compiles the three programs and the editor, and has the editor copy the library. Runs in the
/// directory of the sources.
fn compile(dir: &Path) -> Result<(), Missing> {
    let libraries = ["-r:System.ServiceModel.dll", "-r:System.Runtime.Serialization.dll"];
    for (program, main) in [(CLIENT, "client.cs"), (SERVER, "server.cs"), (ROUTER, "router.cs")] {
        let out = format!("-out:{program}");
        let files = ["-optimize", &out, main, "bench.cs", "measure.cs"];
        WORKSHOP.run(dir, "mcs", &[&libraries[..], &files].concat())?;
    }
    let (library, editor) = (library()?, editor()?);
    WORKSHOP.run(dir, "mcs", &["-out:unsleep.exe", &format!("-r:{editor}"), "unsleep.cs"])?;
    // A program finds libraries beside itself.
    std::fs::copy(&editor, dir.join("Mono.Cecil.dll"))
        .and_then(|_| std::fs::create_dir_all(dir.join(AWAKE)))
        .map_err(|error| WORKSHOP.missing(format!("{editor}: {error}")))?;
    WORKSHOP.run(dir, "mono", &["unsleep.exe", &library, &format!("{AWAKE}/{LIBRARY}")]).map(drop)
}

/// The library as shipped.
fn library() -> Result<String, Missing> {
    let places = PLACES.map(|place| format!("{place}/4.5/{LIBRARY}"));
    places
        .into_iter()
        .find(|path| Path::new(path).exists())
        .ok_or_else(|| WORKSHOP.missing(format!("Mono's {LIBRARY} is not where it usually is")))
}

/// The library that edits libraries, the newest of them.
fn editor() -> Result<String, Missing> {
    let all = PLACES
        .iter()
        .flat_map(|place| std::fs::read_dir(format!("{place}/gac/Mono.Cecil")).into_iter().flatten());
    let mut all: Vec<PathBuf> = all.flatten().map(|entry| entry.path().join("Mono.Cecil.dll")).collect();
    // 0.11 comes after 0.9.
    all.sort_by_key(|path| {
        let version =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let numbers = version.split('_').next().unwrap_or_default().split('.');
        numbers.map(|number| number.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>()
    });
    all.pop()
        .and_then(|path| path.to_str().map(str::to_owned))
        .ok_or_else(|| WORKSHOP.missing("Mono.Cecil, which edits Mono's libraries, is not there"))
}
