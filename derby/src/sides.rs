//! The two sides of a contestant: a server that stays, with its router, and clients that come and go.

use crate::broken;
use crate::contestants::{Contestant, Intermediary, OPERATION, Route, Router, ServerPlace};
use crate::fresh::Fresh;
use crate::link::{self, Link};
use crate::measure::{Line, Plan};
use crate::placement::Placement;
use crate::process::{ChildGuard, ProcessPlacement, complete};
use crate::race::Race;
use crate::relay::{RelayAddress, free_port};
use everywire_model::Failure;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

/// A server has this long to become ready: Python and Java read their libraries from a disk that may be busy.
pub(crate) const READY: Duration = Duration::from_secs(60);
/// Where both sides meet on one machine.
const LOOPBACK: &str = "127.0.0.1";

/// A server that is ready, or none where none is needed.
pub(crate) struct Server {
    pub(crate) dir: PathBuf,
    running: Option<ChildGuard>,
    hop: Option<ChildGuard>,
    router: Option<Router>,
    pub(crate) link: Option<Rc<Link>>,
}

impl Server {
    /// Only its directory, and its router if it needs one.
    pub(crate) fn prepare(
        fresh: &Fresh,
        contestant: &Contestant,
        placement: &Placement,
        link: Option<&Rc<Link>>,
    ) -> Result<Self, Failure> {
        let dir = fresh.path().join(&contestant.name);
        std::fs::create_dir_all(&dir).map_err(|error| broken(format!("{}: {error}", dir.display())))?;
        let router = contestant.route.start(&dir, placement)?;
        Ok(Self { dir, running: None, hop: None, router, link: link.cloned() })
    }

    pub(crate) fn start(
        mut self,
        contestant: &Contestant,
        placement: &Placement,
        port: Option<u16>,
        publish: Option<&RelayAddress>,
    ) -> Result<Self, Failure> {
        if contestant.setup.lane().is_some() {
            return self.start_lane(contestant, placement);
        }
        let stand = ServerPlace { port, publish, ..self.stand(placement) };
        let ref_file = stand.ref_file.clone();
        if let Some(launch) = contestant.setup.server(&stand)? {
            let net = self.link.as_ref().map(|link| link.server.descriptors());
            let spot = ProcessPlacement { cpu: placement.server, net };
            let mut running = ChildGuard::start(&launch, &spot, &self.dir, "server")?;
            running.await_file(&ref_file, READY)?;
            self.running = Some(running);
        }
        Ok(self)
    }

    /// A backend that says it is where the hop listens, and the hop.
    fn start_lane(mut self, contestant: &Contestant, placement: &Placement) -> Result<Self, Failure> {
        let (front, back) = (free_port()?, free_port()?);
        let place = (contestant.route != Route::Direct).then_some(RelayAddress::Tcp(front));
        let stand = ServerPlace { port: Some(back), publish: place.as_ref(), ..self.stand(placement) };
        let (ref_file, mut backend) = (stand.ref_file.clone(), None);
        if let Some(launch) = contestant.setup.server(&stand)? {
            let mut running = ChildGuard::start(&launch, &placement.backend().into(), &self.dir, "backend")?;
            running.await_file(&ref_file, READY)?;
            backend = Some(running);
        }
        let hop = contestant.setup.hop(&stand, front, back)?;
        self.running = backend;
        if let Some(Intermediary { launch, ready }) = hop {
            let mut running = ChildGuard::start(&launch, &placement.server.into(), &self.dir, "hop")?;
            match ready {
                Some(file) => running.await_file(&file, READY)?,
                None => running.await_port(front, READY)?,
            }
            self.hop = Some(running);
        }
        Ok(self)
    }

    pub(crate) fn stand<'a>(&'a self, placement: &'a Placement) -> ServerPlace<'a> {
        ServerPlace {
            dir: &self.dir,
            ref_file: self.dir.join("refs"),
            router: self.router.as_ref().map(|router| router.address.as_str()),
            port: None,
            publish: None,
            placement,
            host: if self.link.is_some() { link::SERVER } else { LOOPBACK },
            client_host: if self.link.is_some() { link::CLIENT } else { LOOPBACK },
        }
    }

    /// The socket that a client connects to.
    pub(crate) fn socket(&self, placement: &Placement) -> PathBuf {
        self.router.as_ref().map_or_else(|| self.stand(placement).socket(), |router| router.socket.clone())
    }

    /// Its process, and that of its router.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let router = self.router.as_ref().map(|router| router.id);
        self.running.as_ref().map(ChildGuard::id).into_iter().chain(router).collect()
    }

    /// The process between client and server that is neither's.
    pub(crate) fn hops(&self) -> Vec<u32> {
        self.hop.as_ref().map(ChildGuard::id).into_iter().collect()
    }
}

/// What a client says.
pub(crate) struct ClientOutput {
    /// A line for each operation.
    pub(crate) lines: Vec<Line>,
    /// What it has to remark, for people.
    pub(crate) remarks: String,
}

/// Runs a client, and reads what it says. It is killed after `limit`, and after the time in which every contestant has long ended.
pub(crate) fn client(
    stand: &ServerPlace<'_>,
    link: Option<&Link>,
    contestant: &Contestant,
    race: &Race,
    plan: &Plan,
    limit: Option<Duration>,
) -> Result<ClientOutput, Failure> {
    let launch = contestant.setup.client(stand, race, plan)?;
    let operations = u32::try_from(race.operations.len()).unwrap_or(1);
    let longest = contestant.setup.longest().max(OPERATION) * operations + READY;
    let limit = limit.map_or(longest, |limit| limit.min(longest));
    let spot =
        ProcessPlacement { cpu: stand.placement.client, net: link.map(|link| link.client.descriptors()) };
    let text = complete(&launch, &spot, stand.dir, "client", limit)?;
    let read = |line: &str| {
        serde_json::from_str(line)
            .map_err(|error| broken(format!("{} says what is no result: {error}", contestant.name)))
    };
    let lines: Vec<Line> = text.lines().map(read).collect::<Result<_, _>>()?;
    let missing = race
        .operations
        .iter()
        .filter(|operation| plan.wants(operation.name) && contestant.setup.does(race, operation.name))
        .find(|operation| !lines.iter().any(|line| line.operation == operation.name && line.calls > 0));
    match missing {
        Some(operation) => Err(broken(format!("{} says nothing about {}", contestant.name, operation.name))),
        None => {
            let remarks = std::fs::read_to_string(stand.dir.join("client.stderr")).unwrap_or_default();
            Ok(ClientOutput { lines, remarks })
        }
    }
}
