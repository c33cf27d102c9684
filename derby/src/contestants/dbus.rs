//! The libraries that speak D-Bus today: sd-bus, libdbus, GDBus and zbus, each with a client and a
//! server of its own (`rivals/dbus/`, `rivals/zbus/`), built where they are installed. Each races over
//! both buses, and peer to peer.
//!
//! The sources are part of this program, and are written to a fresh directory and compiled there; the
//! programs are kept in the cache of the user (`workshop`). Those in C++ need a package that
//! `pkg-config` knows; zbus is fetched by cargo as its lock file says, which takes long once.
//!
//! Invariant: a client and its server are of the same library and version. All of them have the same
//! options (`measure.h`, `bench.h`), so that nothing but the library differs.

use super::published::CALLS_DBUS;
use super::workshop::{Workshop, compiler};
use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::process::Launch;
use crate::race::{CONNECTION_POINT, Race};
use crate::relay::RelayAddress;
use everywire_model::Failure;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The wire's name.
pub(super) const WIRE: &str = "dbus";

/// Ways between client and server, the second parts of names.
pub(super) const ROUTES: [(Route, &str); 3] =
    [(Route::Direct, "unix"), (Route::DbusDaemon, "daemon"), (Route::DbusBroker, "broker")];

/// Every library on every route.
pub(super) fn all() -> Vec<Contestant> {
    let mut all = Vec::new();
    for library in [Library::SdBus, Library::LibDbus, Library::Zbus, Library::GDbus] {
        for (route, suffix) in ROUTES {
            let title = match route {
                Route::Direct => format!("{}, Unix socket", library.title()),
                _ => format!("{}, {}", library.title(), route.title()),
            };
            all.push(Contestant {
                name: format!("{}-{suffix}", library.family()),
                title,
                family: library.family(),
                wire: Some(WIRE),
                transport: "unix",
                mode: "default",
                route,
                published: Some([CALLS_DBUS; 2]),
                setup: Box::new(Rival { library, route }),
            });
        }
    }
    all
}

/// A library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Library {
    /// That of systemd.
    SdBus,
    /// The reference implementation.
    LibDbus,
    /// That of `GLib`.
    GDbus,
    /// That of Rust programs.
    Zbus,
}

/// The programs, built.
#[derive(Debug, Clone)]
pub struct BuiltPrograms {
    /// `client REF-FILE race calls|signals|bytes [PLAN]`.
    pub client: PathBuf,
    /// `server --ref-file FILE (--bus ADDRESS | --listen SOCKET)`.
    pub server: PathBuf,
    /// The library and its version.
    pub version: String,
}

struct Rival {
    library: Library,
    route: Route,
}

impl Setup for Rival {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        let router = self.route.version()?;
        let library = self.library.build()?.version;
        Ok(Some(match router {
            Some(router) => format!("{library} over {router}"),
            None => library,
        }))
    }

    fn enters(&self, race: &Race) -> bool {
        !race.reads() && !race.passes() && (!race.cycles || self.library == Library::SdBus)
    }

    /// Between peers nobody has to say that they listen.
    fn does(&self, race: &Race, operation: &str) -> bool {
        race.counts(operation) && (operation != CONNECTION_POINT || self.route != Route::Direct)
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let launch = Launch::new(self.built()?.server).with(["--ref-file"]).with([&stand.ref_file]);
        let launch = match stand.router {
            Some(address) => launch.with(["--bus", address]),
            None => launch.with(["--listen"]).with([stand.socket()]),
        };
        Ok(Some(match stand.publish {
            Some(RelayAddress::Unix(path)) => launch.with(["--publish"]).with([path]),
            _ => launch,
        }))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        Ok(Launch::new(self.built()?.client)
            .with([&stand.ref_file])
            .with(["race", race.name])
            .with(plan.arguments()))
    }

    fn building(&self) -> Duration {
        // Those with a package compile in seconds.
        let built = self.library.package().is_some()
            || self.library.workshop().version_is_built(|workshop| self.library.version(workshop));
        if built { Duration::ZERO } else { Duration::from_secs(75) }
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        Some(super::frames::dbus_frames)
    }
}

impl Rival {
    /// The programs; `prepare` has built them, so this only finds them.
    fn built(&self) -> Result<BuiltPrograms, Failure> {
        Ok(self.library.build()?)
    }
}

impl Library {
    /// The first word of its contestants' names.
    #[must_use]
    pub fn family(self) -> &'static str {
        match self {
            Self::SdBus => "sdbus",
            Self::LibDbus => "libdbus",
            Self::GDbus => "gdbus",
            Self::Zbus => "zbus",
        }
    }

    /// The library for people.
    fn title(self) -> &'static str {
        self.workshop().rival
    }

    /// Builds client and server, once for these sources and this version of the library: later calls find them in the
    /// user's cache directory.
    ///
    /// # Errors
    /// A package is missing, or the compiler fails.
    pub fn build(self) -> Result<BuiltPrograms, Missing> {
        let workshop = self.workshop();
        let version = self.version(&workshop)?;
        let dir = workshop.programs(&version, |dir| match self.package() {
            Some(package) => self.compile(&workshop, dir, package),
            None => cargo(&workshop, dir),
        })?;
        Ok(BuiltPrograms { client: dir.join("client"), server: dir.join("server"), version })
    }

    /// Its name for `pkg-config`; `None` for the one that cargo builds.
    fn package(self) -> Option<&'static str> {
        match self {
            Self::SdBus => Some("libsystemd"),
            Self::LibDbus => Some("dbus-1"),
            Self::GDbus => Some("gio-2.0"),
            Self::Zbus => None,
        }
    }

    /// Its sources, and what must be installed to compile them.
    fn workshop(self) -> Workshop {
        match self {
            Self::SdBus => Workshop {
                rival: "sd-bus",
                name: self.family(),
                sources: &[
                    MEASURE,
                    BENCH,
                    ("sdbus.h", include_str!("../../rivals/dbus/sdbus.h")),
                    ("client.cc", include_str!("../../rivals/dbus/sdbus_client.cc")),
                    ("server.cc", include_str!("../../rivals/dbus/sdbus_server.cc")),
                ],
                flags: FLAGS,
                peers: &["g++", "pkg-config", "sd-bus"],
            },
            Self::LibDbus => Workshop {
                rival: "libdbus",
                name: self.family(),
                sources: &[
                    MEASURE,
                    BENCH,
                    ("client.cc", include_str!("../../rivals/dbus/libdbus_client.cc")),
                    ("server.cc", include_str!("../../rivals/dbus/libdbus_server.cc")),
                ],
                flags: FLAGS,
                peers: &["g++", "pkg-config", "libdbus"],
            },
            Self::GDbus => Workshop {
                rival: "GDBus",
                name: self.family(),
                sources: &[
                    MEASURE,
                    BENCH,
                    ("client.cc", include_str!("../../rivals/dbus/gdbus_client.cc")),
                    ("server.cc", include_str!("../../rivals/dbus/gdbus_server.cc")),
                ],
                flags: FLAGS,
                peers: &["g++", "pkg-config", "gio"],
            },
            Self::Zbus => Workshop {
                rival: "zbus",
                name: self.family(),
                sources: &[
                    // Under another name, since cargo leaves a package within a package out of it.
                    ("Cargo.toml", include_str!("../../rivals/zbus/manifest.toml")),
                    ("Cargo.lock", LOCK),
                    ("src/bench.rs", include_str!("../../rivals/zbus/src/bench.rs")),
                    ("src/measure.rs", include_str!("../../rivals/zbus/src/measure.rs")),
                    ("src/client.rs", include_str!("../../rivals/zbus/src/client.rs")),
                    ("src/server.rs", include_str!("../../rivals/zbus/src/server.rs")),
                ],
                flags: &["--release"],
                peers: &[],
            },
        }
    }

    /// Name and version of the library: what is installed, or what the lock file says.
    fn version(self, workshop: &Workshop) -> Result<String, Missing> {
        let Some(package) = self.package() else {
            workshop.needs("cargo", "--version")?;
            let locked =
                LOCK.split("name = \"zbus\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
            return Ok(format!("zbus {}", locked.unwrap_or_default()));
        };
        workshop.needs(&compiler(), "--version")?;
        workshop.needs("pkg-config", "--version")?;
        let version = workshop.run(Path::new("/"), "pkg-config", &["--modversion", package])?;
        Ok(format!("{} {version}", workshop.rival))
    }

    /// Compiles client and server at the same time, one compiler each.
    fn compile(self, workshop: &Workshop, dir: &Path, package: &str) -> Result<(), Missing> {
        let libraries = workshop.run(dir, "pkg-config", &["--cflags", "--libs", package])?;
        std::thread::scope(|scope| {
            let builds = ["client", "server"].map(|program| {
                let libraries: Vec<&str> = libraries.split_whitespace().collect();
                scope.spawn(move || {
                    let source = format!("{program}.cc");
                    let arguments = [FLAGS, &[&source, "-o", program], &libraries].concat();
                    workshop.cxx(dir, &arguments)
                })
            });
            builds.into_iter().try_for_each(|build| {
                build.join().unwrap_or_else(|_| Err(workshop.missing("a compiler thread panicked")))
            })
        })
    }
}

/// Builds both programs with cargo, in release mode, of exactly the versions in the lock file.
fn cargo(workshop: &Workshop, dir: &Path) -> Result<(), Missing> {
    let target = dir.join("target");
    let target = target.to_str().ok_or_else(|| workshop.missing("a path that is no text"))?;
    workshop.run(dir, "cargo", &["build", "--release", "--locked", "--quiet", "--target-dir", target])?;
    for program in ["client", "server"] {
        std::fs::rename(dir.join("target/release").join(program), dir.join(program))
            .map_err(|error| workshop.missing(format!("{program}: {error}")))?;
    }
    Ok(())
}

const MEASURE: (&str, &str) = ("measure.h", include_str!("../../rivals/measure.h"));
const BENCH: (&str, &str) = ("bench.h", include_str!("../../rivals/dbus/bench.h"));
const LOCK: &str = include_str!("../../rivals/zbus/Cargo.lock");
const FLAGS: &[&str] = &["-std=c++17", "-O2", "-I.", "-pthread"];
