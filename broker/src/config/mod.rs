//! The file that says what the broker does (`broker.toml`), read with the place of each value. docs/broker.md
//! describes the fields; each struct here is one table of the file, and each field has the name of the
//! file's, in snake case.
//!
//! `section` reads tables field by field, `read` makes a `Config` of them, `mistakes` has what was wrong, and
//! where. A configuration may also be made of two addresses, without a file (`Config::of_addresses`).
//!
//! States: none; a configuration is read and given to `Broker::start` or `reload`, or to `check`. Invariants:
//! a configuration says only what its file says; what addresses and contracts mean is looked up later
//! (`plan`). Names of files are relative to the folder of the file. Values have their defaults here, so
//! nobody asks later whether a field was there.

mod mistakes;
mod read;
mod section;

use mistakes::Lines;
pub(crate) use mistakes::meant;
pub use mistakes::{Mistake, Mistakes, Position};
pub(crate) use section::WithPosition;

use everywire::layer::{Caller, Pattern};
use everywire_model::Edit;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A configuration: listeners, routes, and what looks after them.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The file, as it was named; what messages begin with.
    pub(crate) file: String,
    /// Where calls come in.
    pub(crate) listens: Vec<Listen>,
    /// What becomes of them: the first route that is for a call has it.
    pub(crate) routes: Vec<RouteConfig>,
    /// Where people look after the broker, if anywhere.
    pub(crate) admin: Option<AdminConfig>,
    /// How long calls under way may take when the broker ends, or a listener goes.
    pub(crate) grace: Duration,
    /// The largest message on either side, in bytes; none: what each wire has.
    pub(crate) max_message: Option<u64>,
    /// Whether connections and each call are logged, too.
    pub(crate) verbose: bool,
    /// Brokers that a call may pass, this one not counted; 0: nobody counts.
    pub(crate) hops: Hops,
}

/// See [`Config::hops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hops(pub(crate) u32);

impl Default for Hops {
    fn default() -> Self {
        Self(crate::hops::MOST)
    }
}

/// How long calls under way may take unless the file says otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(30);
/// Octets of a file that are read at the most: 100,000 routes have a tenth of it, and a device never ends.
const LARGEST: u64 = 256 << 20;
/// The time limit of a call unless the route says otherwise.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// `[listen.NAME]`: where calls come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listen {
    /// What the file calls it, and routes name it by.
    pub(crate) name: String,
    /// The address as it stands in the file.
    pub(crate) address: String,
    /// Where that stands.
    pub(crate) spot: Position,
}

/// `[[route]]`. What each field means in full is in docs/broker.md, under the same name.
#[derive(Debug, Clone, Default)]
pub(crate) struct RouteConfig {
    /// Its name, for logs and metrics.
    pub(crate) name: WithPosition<String>,
    /// Names of listeners; none: all of them.
    pub(crate) from: Vec<WithPosition<String>>,
    /// Which calls it is for.
    pub(crate) matches: Match,
    /// Its targets, as addresses.
    pub(crate) to: Vec<WithPosition<String>>,
    /// The file of its contract; without one, calls pass as they came.
    pub(crate) contract: Option<WithPosition<String>>,
    /// Folders in which files are looked for that the contract includes.
    pub(crate) include: Vec<PathBuf>,
    /// What the preprocessor of the contract is given.
    pub(crate) define: Vec<String>,
    /// The interface of the targets, where the contract has several.
    pub(crate) interface: Option<WithPosition<String>>,
    /// What becomes of a call.
    pub(crate) mode: WithPosition<Mode>,
    /// The listener by which targets call back what callers pass.
    pub(crate) callbacks: Option<WithPosition<String>>,
    /// References that may be passed on at one time; `None`: `references::MOST`.
    pub(crate) references: Option<u64>,
    /// The time limit of a call, with all its attempts; `None`: `TIMEOUT`.
    pub(crate) timeout: Option<Duration>,
    /// Attempts after the first.
    pub(crate) retries: u32,
    /// Operations that may run twice.
    pub(crate) idempotent: Vec<WithPosition<Pattern>>,
    /// Of a route without a contract: operations that have no answer, though messages do not say so.
    pub(crate) oneway: Vec<WithPosition<Pattern>>,
    /// When a target that fails is left alone for a while.
    pub(crate) breaker: Option<BreakerConfig>,
    /// How much of it is let through.
    pub(crate) limit: LimitConfig,
    /// Which of several targets gets a call.
    pub(crate) balance: Balance,
    /// How often targets are asked whether they are there.
    pub(crate) probe: Option<Duration>,
    /// Who may call; nobody named: everybody.
    pub(crate) allow: Vec<Caller>,
    /// Who may not, though `allow` names them.
    pub(crate) deny: Vec<Caller>,
    /// Whether arguments are read before they are passed on.
    pub(crate) validate: Option<WithPosition<bool>>,
    /// Where copies of calls go.
    pub(crate) copies: Vec<CopyConfig>,
    /// What is changed in headers.
    pub(crate) edits: Vec<EditConfig>,
}

/// One of `edits = [...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditConfig {
    /// The change.
    pub(crate) edit: Edit,
    /// Where the file names the header.
    pub(crate) spot: Position,
    /// Of answers, not of calls.
    pub(crate) answers: bool,
    /// Copies have it, too.
    pub(crate) before_copy: bool,
}

/// `match = { ... }`: the calls that a route is for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Match {
    /// The object's key.
    pub(crate) key: Option<WithPosition<Pattern>>,
    /// The operation's name.
    pub(crate) operation: Option<WithPosition<Pattern>>,
    /// Where the caller is.
    pub(crate) peer: Vec<Caller>,
    /// Who the caller proved to be.
    pub(crate) user: Option<Pattern>,
    /// Names of headers, and what they say.
    pub(crate) header: Vec<(WithPosition<String>, Pattern)>,
    /// The interface's name on the wire.
    pub(crate) interface: Option<Pattern>,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// It is passed on, and its answer back.
    #[default]
    Forward,
    /// The caller is told where the target is, and goes there.
    Redirect,
}

/// Which of several targets gets a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Balance {
    /// The one with the fewest calls under way.
    #[default]
    LeastOutstanding,
    /// One after the other.
    RoundRobin,
    /// The first that can be used, in the order of the file.
    First,
}

/// `breaker = { ... }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BreakerConfig {
    /// Failures in a row that open it.
    pub(crate) failures: u32,
    /// How long no call goes to the target then.
    pub(crate) pause: Duration,
}

/// `limit = { ... }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LimitConfig {
    /// Calls under way on the route.
    pub(crate) calls: Option<u64>,
    /// Calls a second on the route.
    pub(crate) rate: Option<u64>,
    /// Calls under way of one caller.
    pub(crate) per_peer: Option<u64>,
}

/// `copy = { ... }`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyConfig {
    /// The place.
    pub(crate) to: CopyTo,
    /// Where it stands in the file.
    pub(crate) spot: Position,
    /// A call whose copy cannot be taken is refused.
    pub(crate) required: bool,
    /// Whether answers are copied, too.
    pub(crate) answers: bool,
    /// Copies that may wait for the place.
    pub(crate) queue: usize,
}

/// Where copies go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CopyTo {
    /// A file of JSON lines.
    Lines(PathBuf),
    /// A capture.
    Capture(PathBuf),
    /// The standard input of a program, as JSON lines: a command line of the shell.
    Program(String),
    /// Another route, whose answers nobody hears.
    Route(String),
    /// Nowhere: a thread counts their octets.
    Count,
}

/// `[admin]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdminConfig {
    /// Where to listen.
    pub(crate) address: WithPosition<String>,
    /// The file with the token; needed where it can be reached from elsewhere.
    pub(crate) token_file: Option<PathBuf>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place.
    pub fn read(file: &Path) -> Result<Self, Mistakes> {
        let shown = file.display().to_string();
        let wrong = |why: String| Mistakes::of(&shown, Position::default(), why);
        let mut octets = Vec::new();
        std::fs::File::open(file)
            .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut octets))
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        if octets.len() as u64 > LARGEST {
            return Err(wrong(format!("this is larger than {} MiB, and no file of routes", LARGEST >> 20)));
        }
        match std::str::from_utf8(&octets) {
            Ok(text) => Self::parse(text, &shown, file.parent().unwrap_or_else(|| Path::new(""))),
            Err(error) => {
                let good = octets.get(..error.valid_up_to()).unwrap_or_default();
                let spot = Lines::of(&String::from_utf8_lossy(good)).position(usize::MAX);
                Err(Mistakes::of(&shown, spot, "this is no text in UTF-8".into()))
            }
        }
    }

    /// The configuration in a text; messages call it `file`, and names of files in it are relative to `folder`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, Mistakes> {
        read::parse(text, file, folder)
    }

    /// One route from an address to another: what `everywire broker --from ADDRESS --to ADDRESS` runs.
    #[must_use]
    pub fn of_addresses(from: &[String], to: &[String], given: RouteOptions) -> Self {
        let listens = from.iter().enumerate().map(|(at, address)| {
            let name = if at == 0 { "from".to_owned() } else { format!("from-{}", at + 1) };
            Listen { name, address: address.clone(), spot: Position::default() }
        });
        let at = |value: String| WithPosition { value, spot: Position::default() };
        let route = RouteConfig {
            name: at("route".into()),
            to: to.iter().cloned().map(at).collect(),
            contract: given.contract.map(|path| at(path.display().to_string())),
            include: given.include,
            define: given.define,
            interface: given.interface.map(at),
            matches: Match {
                key: given
                    .key
                    .map(|key| WithPosition { value: Pattern::new(&key), spot: Position::default() }),
                ..Match::default()
            },
            ..RouteConfig::default()
        };
        Self {
            file: "command line".into(),
            listens: listens.collect(),
            routes: vec![route],
            grace: GRACE,
            ..Self::default()
        }
    }

    /// The same, which logs connections and calls, too.
    #[must_use]
    pub fn verbose(self) -> Self {
        Self { verbose: true, ..self }
    }

    /// The same, where calls under way may take so long when the broker ends.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, ..self }
    }
}

/// What a route without a file may have beside its addresses.
#[derive(Debug, Clone, Default)]
pub struct RouteOptions {
    /// The contract.
    pub contract: Option<PathBuf>,
    /// Folders for the contract's preprocessor.
    pub include: Vec<PathBuf>,
    /// Macros for it.
    pub define: Vec<String>,
    /// The interface of the contract that the objects have.
    pub interface: Option<String>,
    /// The key that callers name.
    pub key: Option<String>,
}
