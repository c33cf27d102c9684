//! Our own: in process, and each of our wires over shared memory, Unix sockets and TCP, in the default
//! mode, at the lowest latency, or at another level of protection.
//!
//! This file has both ends of it. `Ours` and `Against` are what the coordinator sees (`Setup`); `child`
//! is what this program becomes in the processes that they launch. What differs between wires is in
//! `courses`; which objects are served is in `servants` and in the file of the wire.
//!
//! States of a server's child: it listens, exports, writes the file of references in one step, and then
//! stays until it is killed. A client's child reads that file, connects, and measures.
//!
//! Invariants: whoever sees a file of references sees all of it. The same generated trait is called in
//! process and over every wire.

mod client;
mod courses;
mod cycles;
mod dbus;
mod dcom;
mod dcop;
mod hearing;
pub(super) mod opc;
pub(super) mod orders;
mod servants;
mod split;
mod stubs;
mod wcf;

use super::{Contestant, Missing, Route, ServerPlace, Setup};
use crate::measure::Plan;
use crate::placement::Placement;
use crate::process::Launch;
use crate::race::{ALL, CALLBACK, CONNECTION_POINT, Race};
use crate::relay::RelayAddress;
use crate::{broken, say, unknown};
use courses::{BOTH_WAYS, CourseRoute, INTEGRITY, WireCourse};
use everywire::model::{Endpoint, Reference};
use everywire::{Failure, Latency, Node};
use std::path::{Path, PathBuf};

/// The first word of the names of our contestants.
pub(crate) const FAMILY: &str = "everywire";

/// The wire whose contestants' names do not say it: `everywire-tcp` is GIOP. It came first.
const USUAL: WireCourse = WireCourse::Giop;

/// Messages of this size are let through by both sides.
const LARGEST_MESSAGE: u64 = 128 << 20;

/// The address of a client that is not called back, as an argument: an empty one would be hard to see.
const NOWHERE: &str = "-";

/// The modes, as in names and arguments: how eagerly a node waits for messages.
const LOWEST: &str = "lowest-latency";
const DEFAULT: &str = "default";

/// All of them, the default modes first.
pub(super) fn all() -> Vec<Contestant> {
    let mut all = vec![Contestant {
        name: format!("{FAMILY}-inproc"),
        title: "Everywire, in process".to_owned(),
        family: FAMILY,
        wire: None,
        transport: "in-process",
        mode: DEFAULT,
        route: Route::Direct,
        published: None,
        setup: Box::new(Ours { course: USUAL, way: None, mode: DEFAULT, level: "" }),
    }];
    let contestant = |course: WireCourse, way: &'static CourseRoute, name, title, mode, setup| Contestant {
        name,
        title,
        family: FAMILY,
        wire: Some(course.wire()),
        transport: way.transport,
        mode,
        route: way.route,
        published: way.published,
        setup: Box::new(setup),
    };
    for (mode, suffix, note) in [(DEFAULT, "", ""), (LOWEST, "-lowest", ", lowest latency")] {
        all.extend(USUAL.ways().iter().map(|way| {
            let name = format!("{FAMILY}-{}{suffix}", way.name);
            let title = format!("Everywire, {}{note}", way.title);
            let setup = Ours { course: USUAL, way: Some(way), mode, level: "" };
            contestant(USUAL, way, name, title, mode, setup)
        }));
    }
    if let Some(way) = USUAL.ways().iter().find(|way| way.transport == "tcp") {
        let setup = Ours { course: USUAL, way: Some(way), mode: DEFAULT, level: BOTH_WAYS };
        let name = format!("{FAMILY}-{}-{BOTH_WAYS}", way.name);
        let title = format!("Everywire, {}, called back on the client's connection", way.title);
        all.push(contestant(USUAL, way, name, title, BOTH_WAYS, setup));
    }
    for course in WireCourse::ALL.into_iter().filter(|course| *course != USUAL && course.speech().is_some()) {
        for way in course.ways() {
            all.extend(course.levels(way.transport).iter().enumerate().map(|(at, level)| {
                let usual = at == 0;
                let (suffix, note) = if usual {
                    (String::new(), String::new())
                } else {
                    (format!("-{level}"), format!(", level {level}"))
                };
                let name = format!("{FAMILY}-{}-{}{suffix}", course.wire(), way.name);
                let title = format!("Everywire {}, {}{note}", course.title(), way.title);
                let setup = Ours { course, way: Some(way), mode: DEFAULT, level };
                contestant(course, way, name, title, if usual { DEFAULT } else { level }, setup)
            }));
        }
    }
    all.extend(opc::all());
    all
}

/// A foreign server, called by our client. `reference` is a reference or a file of `NAME<TAB>REFERENCE`
/// lines; its wire, and the published figures beside it, are told by the first one.
///
/// # Errors
/// The file cannot be read, has no such line, or its first reference is of no wire that we know.
pub(super) fn against(reference: &str) -> Result<Contestant, Failure> {
    let path = Path::new(reference);
    let text = if path.is_file() {
        std::fs::read_to_string(path).map_err(|error| broken(format!("{reference}: {error}")))?
    } else {
        // One object is taken for whatever the race asks for.
        ["benchmarking", "IRemoteObject"].map(|name| format!("{name}\t{reference}\n")).concat()
    };
    let first = text.lines().find_map(|line| line.split_once('\t')).map(|(_, reference)| reference);
    let Some(first) = first else {
        return Err(unknown(format!("`{reference}` holds no references"))
            .with_hint("a line of it is NAME<TAB>REFERENCE"));
    };
    let parsed = Node::new().parse(first)?;
    let profile = parsed.profiles.first();
    let course = profile.and_then(|profile| WireCourse::of(profile.wire)).unwrap_or(USUAL);
    let endpoint = profile.and_then(|profile| profile.endpoints.first());
    let scheme = first.split(['+', ':']).next().unwrap_or_default();
    let scheme = course.ways().iter().find(|way| way.scheme == scheme).or_else(|| course.ways().first());
    Ok(Contestant {
        name: "against".to_owned(),
        title: "foreign server, called by Everywire".to_owned(),
        family: "against",
        wire: profile.map(|profile| profile.wire),
        transport: endpoint.map_or("tcp", Endpoint::transport),
        mode: DEFAULT,
        route: Route::Direct,
        published: scheme.map(|way| way.published).unwrap_or_default(),
        setup: Box::new(Against { course, references: text }),
    })
}

/// One of our contestants: a wire, a way to its server, and how eagerly or how well protected it goes.
struct Ours {
    course: WireCourse,
    /// `None`: in process.
    way: Option<&'static CourseRoute>,
    mode: &'static str,
    /// Of protection, or `BOTH_WAYS`; empty where there are none.
    level: &'static str,
}

impl Setup for Ours {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        self.route().version()
    }

    fn enters(&self, race: &Race) -> bool {
        if race.cycles {
            self.course.cycles(self.route()) != [false; 2]
        } else {
            // Without callbacks it is the same as another one.
            self.level != BOTH_WAYS
                && !race.reads()
                && !race.passes()
                && (!race.signals || self.course.signals())
        }
    }

    fn does(&self, race: &Race, operation: &str) -> bool {
        let [connection_point, callback] = self.course.cycles(self.route());
        match operation {
            CONNECTION_POINT => connection_point,
            CALLBACK => callback,
            _ => race.counts(operation),
        }
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        let Some(way) = self.way else { return Ok(None) };
        let address = self.course.address(way, &stand.socket(), stand.port, stand.router, stand.host);
        let address = self.course.protected(address, self.level, way.transport, stand.dir);
        self.course.introduce(stand.dir)?;
        let launch = self
            .at_home(Launch::own("serve")?, stand.dir)
            .with([self.mode])
            .with([&stand.ref_file])
            .with([self.course.wire(), &address]);
        Ok(Some(match stand.publish {
            Some(RelayAddress::Tcp(port)) => launch.with(["tcp".to_owned(), port.to_string()]),
            Some(RelayAddress::Unix(path)) => launch.with(["unix"]).with([path]),
            None => launch,
        }))
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        let launch = Launch::own(if self.way.is_none() { "race-in-process" } else { "race" })?;
        Ok(self
            .at_home(launch, stand.dir)
            .with([self.mode])
            .with([&stand.ref_file])
            .with([self.course.wire()])
            .with([self.home(stand, race)])
            .with([race.name])
            .with(plan.arguments()))
    }

    fn runs_at(&self, placement: &Placement) -> bool {
        self.way.is_some() || !placement.parts_the_sides()
    }

    fn passes_a_relay(&self, race: &Race) -> bool {
        !self.course.hands_out(race)
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        // The secret of our hub is that of its own socket: nobody gets past a relay.
        let seen =
            |way: &CourseRoute| matches!(way.transport, "unix" | "tcp") && way.route != Route::Dcopserver;
        self.way.is_some_and(seen).then_some(self.course.frames())
    }
}

impl Ours {
    fn route(&self) -> Route {
        self.way.map_or(Route::Direct, |way| way.route)
    }

    /// With the variables by which both sides find what they must know beside the address: the secrets
    /// of a router, or the credentials.
    fn at_home(&self, launch: Launch, dir: &Path) -> Launch {
        let launch = self.route().at_home(launch, dir);
        match self.course.credentials(dir) {
            Some((name, path)) => launch.where_is(name, path),
            None => launch,
        }
    }

    /// Where the client can be called back, or `NOWHERE`: only cycles call back, and only some wires
    /// need a connection of its own for that.
    fn home(&self, stand: &ServerPlace<'_>, race: &Race) -> String {
        let home = self.way.and_then(|way| {
            let address = self.course.home(way, &stand.client_socket(), stand.client_host)?;
            Some(self.course.protected(address, self.level, way.transport, stand.dir))
        });
        home.filter(|_| race.cycles).unwrap_or_else(|| NOWHERE.to_owned())
    }
}

/// A server that somebody else started: nothing is launched for it but our client.
struct Against {
    course: WireCourse,
    references: String,
}

impl Setup for Against {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        Ok(None)
    }

    fn server(&self, stand: &ServerPlace<'_>) -> Result<Option<Launch>, Failure> {
        std::fs::write(&stand.ref_file, &self.references)
            .map_err(|error| broken(format!("{}: {error}", stand.ref_file.display())))?;
        Ok(None)
    }

    fn client(&self, stand: &ServerPlace<'_>, race: &Race, plan: &Plan) -> Result<Launch, Failure> {
        Ok(Launch::own("race-foreign")?
            .with([DEFAULT])
            .with([&stand.ref_file])
            .with([self.course.wire(), race.name])
            .with(plan.arguments()))
    }

    /// Nobody knows where the server runs.
    fn runs_at(&self, placement: &Placement) -> bool {
        placement.client.is_none()
    }

    fn frames(&self) -> Option<fn(&[u8]) -> usize> {
        None
    }
}

/// The interface that an operation of this name belongs to, on a wire whose calls say only the operation.
pub(super) fn interface_of(wire: &str, operation: &str) -> Option<&'static str> {
    match WireCourse::of(wire)? {
        WireCourse::Giop => cycles::giop::interface_of(operation),
        WireCourse::Dbus | WireCourse::Dcop | WireCourse::Dcom | WireCourse::Wcf => None,
    }
}

/// The name of an interface of the races, by its identity.
pub(super) fn name_of(id: &str) -> Option<&'static str> {
    cycles::dcom::KNOWN.iter().find(|known| known.id.eq_ignore_ascii_case(id)).map(|known| known.name)
}

/// The name of an operation of that interface, by its number on the wire.
pub(super) fn operation_of(id: &str, number: usize) -> Option<&'static str> {
    let known = cycles::dcom::KNOWN.iter().find(|known| known.id.eq_ignore_ascii_case(id))?;
    known.operations.get(number.checked_sub(cycles::dcom::FIRST)?).copied()
}

/// The child that measures the parts of a call alone, see `split`.
pub(crate) fn split() -> Result<Launch, Failure> {
    Launch::own("split")
}

/// Becomes one of our servers or clients, whose arguments are those that `Ours`, `Against`, `opc` and
/// `orders` give.
///
/// # Errors
/// The kind or the arguments are unknown, or what it does fails.
pub(crate) fn child(kind: &str, arguments: &[String]) -> Result<(), Failure> {
    match (kind, arguments) {
        ("serve", [mode, ref_file, course, address, publish @ ..]) => {
            serve_child(mode, Path::new(ref_file), taken(course)?, address, publish)
        }
        ("race", [mode, ref_file, course, home, race, plan @ ..]) => {
            let plan = Plan::parse(plan)?;
            let home = Some(home.as_str()).filter(|home| *home != NOWHERE);
            client::remote(&node(mode), Path::new(ref_file), taken(course)?, home, known(race)?, &plan)
        }
        ("race-foreign", [mode, ref_file, course, race, plan @ ..]) => {
            let plan = Plan::parse(plan)?;
            client::foreign(&node(mode), Path::new(ref_file), taken(course)?, known(race)?, &plan)
        }
        ("race-in-process", [mode, _, _, _, race, plan @ ..]) => {
            client::in_process(&node(mode), known(race)?, &Plan::parse(plan)?)
        }
        ("hub", [socket]) => hub(socket),
        (kind, _) if kind.starts_with("orders-") => orders::child(kind, arguments),
        (kind, _) if kind.starts_with("opc-") => opc::child(kind, arguments),
        ("split", []) => split::run(USUAL.speech().ok_or_else(|| broken("the wire is not there"))?),
        _ => {
            Err(unknown(format!("unknown kind of child, or wrong arguments: {kind} {}", arguments.join(" "))))
        }
    }
}

/// The race of this name, for a child.
fn known(race: &str) -> Result<&'static Race, Failure> {
    ALL.iter().find(|known| known.name == race).ok_or_else(|| unknown(format!("unknown race `{race}`")))
}

/// Routes between the peers at a socket, until it is killed.
fn hub(socket: &str) -> Result<(), Failure> {
    let program = WireCourse::Dcop.speech().and_then(|wire| wire.programs().first());
    let program = program.ok_or_else(|| broken("no wire brings a hub"))?;
    let mut server = (program.open)(&[("socket", Some(socket))])?;
    everywire::hub::run(&mut *server, &everywire::hub::Settings::default(), &everywire::hub::Stop::new()?)
}

/// The course of this wire, for a child.
fn taken(course: &str) -> Result<WireCourse, Failure> {
    WireCourse::of(course).ok_or_else(|| unknown(format!("unknown course `{course}`")))
}

/// A node in this mode, which lets messages of `LARGEST_MESSAGE` through.
fn node(mode: &str) -> Node {
    let latency = if mode == LOWEST { Latency::Lowest } else { Latency::Default };
    Node::from(Node::builder().latency(latency).max_message(LARGEST_MESSAGE).build())
}

/// The child of a server. `publish` is empty, or a kind and a place that the references lead to
/// instead.
fn serve_child(
    mode: &str,
    ref_file: &Path,
    course: WireCourse,
    address: &str,
    publish: &[String],
) -> Result<(), Failure> {
    let node = node(mode);
    node.listen(address)?;
    let elsewhere = match publish {
        [kind, place] if kind == "unix" => Some(Endpoint::Unix { path: place.clone() }),
        [_, port] => {
            let port = port.parse().map_err(|_| unknown("no port to publish"))?;
            Some(Endpoint::Tcp { host: "127.0.0.1".into(), port })
        }
        _ => None,
    };
    let lines: Vec<String> = course
        .export(&node, LARGEST_MESSAGE)
        .into_iter()
        .map(|(name, mut reference)| {
            if let Some(endpoint) = &elsewhere {
                publish_at(&mut reference, endpoint);
            }
            // The friendly notation knows every transport.
            let text = node.print_friendly(&reference);
            let text = match &elsewhere {
                Some(Endpoint::Unix { path }) => course.moved(&text, address, path),
                _ => text,
            };
            format!("{name}\t{text}\n")
        })
        .collect();
    write_whole(ref_file, &lines.concat())?;
    forever()
}

/// Has a reference lead to another place, and to nothing else.
fn publish_at(reference: &mut Reference, endpoint: &Endpoint) {
    for profile in &mut reference.profiles {
        profile.endpoints = vec![endpoint.clone()];
    }
}

/// Writes the file in one step: whoever sees it sees all of it.
fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let partial = PathBuf::from(format!("{}.partial", path.display()));
    std::fs::write(&partial, text)
        .and_then(|()| std::fs::rename(&partial, path))
        .map_err(|error| broken(format!("{}: {error}", path.display())))
}

fn forever() -> ! {
    loop {
        std::thread::park();
    }
}

/// How to serve the contract to foreign clients.
#[derive(Debug, Clone, Default)]
pub struct Serve {
    /// Friendly addresses to listen on, of any wire and transport; at least one.
    pub on: Vec<String>,
    /// Where to write the references, as `NAME<TAB>REFERENCE` lines.
    pub ref_file: Option<PathBuf>,
}

/// Serves every interface of the contract of each address's wire until the process is killed. The references go to standard output and to the
/// file, in the notation that foreign programs read.
///
/// # Errors
/// There is no address, one cannot be listened on, or the file cannot be written.
pub fn serve(serve: &Serve) -> Result<(), Failure> {
    serve_with(serve, Latency::Default, LARGEST_MESSAGE)
}

/// The same with this latency and messages of at most `max_message` bytes. Addresses of one wire share
/// a node.
///
/// # Errors
/// As for `serve`.
pub fn serve_with(serve: &Serve, latency: Latency, max_message: u64) -> Result<(), Failure> {
    if serve.on.is_empty() {
        return Err(unknown("there is no address to serve on").with_hint("try iiop://127.0.0.1:0"));
    }
    let mut nodes: Vec<(WireCourse, Node)> = Vec::new();
    for address in &serve.on {
        let course = WireCourse::at(address);
        let node = match nodes.iter().find(|(held, _)| *held == course) {
            Some((_, node)) => node.clone(),
            None => {
                let node = Node::from(Node::builder().latency(latency).max_message(max_message).build());
                nodes.push((course, node.clone()));
                node
            }
        };
        eprintln!("serving on {}", node.listen(address)?);
    }
    let mut lines: Vec<String> = Vec::new();
    for (i, (course, node)) in nodes.iter().enumerate() {
        // Contracts of several wires have objects of the same name.
        let suffix = if i == 0 { String::new() } else { format!("@{}", course.wire()) };
        let references = course.export(node, max_message).into_iter();
        lines.extend(
            references.map(|(name, reference)| format!("{name}{suffix}\t{}\n", node.print(&reference))),
        );
    }
    // Whoever waits for the lines may read the file next.
    if let Some(path) = &serve.ref_file {
        write_whole(path, &lines.concat())?;
    }
    say(&lines.concat());
    forever()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_reference_stands_for_every_object() {
        let contestant = against("iiop://127.0.0.1:2809/x").unwrap();
        assert_eq!((contestant.transport, contestant.wire), ("tcp", Some("giop")));
        assert_eq!(against("iiop+unix:///run/x.sock#k").unwrap().transport, "unix");
        assert!(against("/nowhere/refs").is_err());
    }

    #[test]
    fn a_call_of_ours_is_two_frames_through_a_relay_as_well() {
        let node = node(DEFAULT);
        node.listen("iiop://127.0.0.1:0").unwrap();
        let (_, mut reference) = servants::export(&node, 1 << 20).remove(0);
        let Some(Endpoint::Tcp { port, .. }) = reference.profiles[0].endpoints.first().cloned() else {
            panic!()
        };
        let relay = crate::relay::Relay::new(&RelayAddress::Tcp(0), RelayAddress::Tcp(port)).unwrap();
        let RelayAddress::Tcp(port) = *relay.place() else { panic!() };
        publish_at(&mut reference, &Endpoint::Tcp { host: "127.0.0.1".into(), port });
        let caller = Node::new();
        let object =
            caller.connect::<dyn servants::Benchmarking>(&caller.print_friendly(&reference)).unwrap();
        assert_eq!(object.in_out_int_call(41).unwrap(), 42);
        let first = relay.take();
        assert_eq!(first.frames(crate::contestants::frames::giop_frames), 2);
    }
}
