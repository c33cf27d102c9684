//! A client of OPC Data Access over DCOM: servers of a machine, their address spaces, values, and subscriptions that come back by
//! themselves.
//!
//! * [`Address`] says where: `opcda://USER@HOST/PROGID/ITEM`. [`servers`] asks a machine which servers it has.
//! * [`DataAccess`] is a server: browsed, read, written. What 3.0 added is used where it is offered, else what 2.05a has.
//! * [`Subscription`] is told of values as they change, and of gaps; it makes itself anew when the server or the network was away.
//! * [`ItemGroup`] reads and writes without waiting.
//!
//! ```no_run
//! use everywire::Node;
//! use everywire_opc::remote::{DataAccess, Event, SubscriptionRequest};
//!
//! let node = Node::new();
//! let plant = DataAccess::connect(&node, "opcda://historian/Matrikon.OPC.Simulation.1?credentials=ada.cred")?;
//! let values = plant.read(&["Random.Real4"])?;
//! let _subscription = plant.subscribe(&["Random.Real4"], SubscriptionRequest::default(), |event| {
//!     if let Event::Values(values) = event {
//!         values.iter().for_each(|one| println!("{} {} {}", one.item, one.value.data, one.value.quality));
//!     }
//! })?;
//! # Ok::<(), everywire::Failure>(())
//! ```

mod address;
mod browse;
mod feed;
mod items;
mod keeper;
mod list;
mod session;
mod single;
mod state;
mod subscription;
mod transfer;
mod trouble;
mod wire;

pub use address::Address;
pub use browse::{Branch, Element};
pub use items::{ItemInfo, ItemProperty};
pub use list::{ServerEntry, servers};
pub use single::ItemWanted;
pub use subscription::{
    ActiveSubscription, Event, ItemValue, Pauses, Subscription, SubscriptionRequest, UpdateMode,
};
pub use transfer::{ItemGroup, Transfer, TransferMode};
pub use trouble::refused;

use crate::contract::OPCSERVERSTATUS;
use crate::sync::lock;
use crate::wire::time_of;
use crate::{Code, Data, FileTime, Vqt};
use everywire::{Failure, Node, Success};
use everywire_model::Completed;
use session::Session;
use std::sync::{Arc, Mutex};

/// A server elsewhere. Clones are the same one. When the last is dropped, and every subscription, the server's object is released.
#[derive(Clone)]
pub struct DataAccess {
    link: Arc<Link>,
}

/// How a server is (GetStatus).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Whose it is.
    pub vendor: String,
    /// Its version: major, minor, build.
    pub version: (u16, u16, u16),
    /// What it is doing: 1 running, 2 failed, 3 no configuration, 4 suspended, 5 test, 6 communication fault.
    pub state: i64,
    /// The same in a word.
    pub state_name: &'static str,
    /// Since when.
    pub started: FileTime,
    /// What time it is there.
    pub now: FileTime,
    /// When it last sent a value to this client.
    pub last_update: FileTime,
    /// Groups that it has.
    pub groups: u32,
}

/// The way to a server, and its object as long as that lives.
pub(super) struct Link {
    address: Address,
    session: Mutex<Option<Arc<Session>>>,
    /// Who looks after the subscriptions, if there are any.
    keeper: Mutex<Option<keeper::SubscriptionThread>>,
    /// Last, so that it is dropped last: where nobody else holds it, it ends then, and can give back only what was let go before.
    node: Node,
}

impl Link {
    /// The object there is, or a new one. Whoever asks while another one connects waits for that.
    fn session(&self) -> Result<Arc<Session>, Failure> {
        let mut held = lock(&self.session);
        if let Some(session) = &*held {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::open(&self.node, &self.address)?);
        *held = Some(Arc::clone(&session));
        Ok(session)
    }

    /// The object is no more, or is to be left.
    fn forget(&self, gone: &Arc<Session>) {
        let mut held = lock(&self.session);
        let forgotten =
            if held.as_ref().is_some_and(|held| Arc::ptr_eq(held, gone)) { held.take() } else { None };
        drop(held);
        drop(forgotten);
    }

    /// Does something with the object. If it turns out to be no more, a new one is made and it is done once more, unless it may have been
    /// done already and must not be done twice.
    fn with<T>(&self, repeatable: bool, job: impl Fn(&Session) -> Result<T, Failure>) -> Result<T, Failure> {
        let session = self.session()?;
        let failure = match job(&session) {
            Err(failure) if trouble::is_gone(&failure) => failure,
            other => return other.map_err(trouble::advised),
        };
        self.forget(&session);
        if repeatable || failure.completed() == Completed::No {
            return job(&*self.session()?).map_err(trouble::advised);
        }
        Err(trouble::advised(failure))
    }
}

impl DataAccess {
    /// Connects to a server by its address, and asks for its object.
    ///
    /// # Errors
    /// The address is none, nobody is there, or we are not let in.
    pub fn connect(node: &Node, address: &str) -> Result<Self, Failure> {
        Self::at(node, Address::parse(address)?)
    }

    /// The same with an address that was read.
    ///
    /// # Errors
    /// Nobody is there, or we are not let in.
    pub fn at(node: &Node, address: Address) -> Result<Self, Failure> {
        let server = Self::later(node, address);
        server.link.session()?;
        Ok(server)
    }

    /// The same without connecting: that is done when the server is first asked, so it need not be there yet.
    #[must_use]
    pub fn later(node: &Node, address: Address) -> Self {
        Self {
            link: Arc::new(Link {
                address,
                session: Mutex::default(),
                keeper: Mutex::default(),
                node: node.clone(),
            }),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.link.address
    }

    /// How it is.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn status(&self) -> Result<Status, Failure> {
        self.link.with(true, Session::status).map(Status::of)
    }

    /// The version of Data Access that is spoken with it: 3.0 if it can be browsed and read so, else 2.05a.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn version(&self) -> Result<&'static str, Failure> {
        self.link.with(true, |session| {
            Ok(if session.browse.is_some() || session.items.is_some() { "3.0" } else { "2.05a" })
        })
    }

    /// What is in a branch: one level.
    ///
    /// # Errors
    /// There is no such branch; the server cannot be browsed, or not be reached.
    pub fn browse(&self, branch: &Branch) -> Result<Vec<Element>, Failure> {
        self.link.with(true, |session| browse::elements(session, branch))
    }

    /// The ids of all items, whatever branch they are in.
    ///
    /// # Errors
    /// The server cannot be browsed, or not be reached.
    pub fn all_items(&self) -> Result<Vec<String>, Failure> {
        self.link.with(true, browse::flat)
    }

    /// The properties of an item, with their values.
    ///
    /// # Errors
    /// There is no such item; the server tells no properties, or cannot be reached.
    pub fn properties(&self, item: &str) -> Result<Vec<ItemProperty>, Failure> {
        let found = self.link.with(true, |session| items::properties(session, item));
        found.map_err(|failure| trouble::of_item(&self.link.address, item, failure))
    }

    /// The types and access rights of items.
    ///
    /// # Errors
    /// The server cannot be reached, or makes no group.
    pub fn infos(&self, items: &[&str]) -> Result<Vec<Result<ItemInfo, Code>>, Failure> {
        self.link.with(true, |session| items::infos(session, items))
    }

    /// Values of items as the device has them now, or why there is none, in the order of the items.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses all.
    pub fn read(&self, items: &[&str]) -> Result<Vec<Result<Vqt, Code>>, Failure> {
        self.link.with(true, |session| items::read(session, items))
    }

    /// Writes values, each as the type that it has; the server converts it to the item's own. What went well has a code of success, such
    /// as [`Code::CLAMP`].
    ///
    /// # Errors
    /// The server cannot be reached, or refuses all. If it went away meanwhile, nobody knows what was written; it is not done twice.
    pub fn write(&self, values: &[(&str, Data)]) -> Result<Vec<Result<Code, Code>>, Failure> {
        self.link.with(false, |session| items::write(session, values))
    }

    /// A group of items that are read and written without waiting.
    ///
    /// # Errors
    /// The server cannot be reached, or makes no group.
    pub fn group(&self, items: &[&str]) -> Result<ItemGroup, Failure> {
        let (link, session) = (&self.link, self.link.session()?);
        ItemGroup::make(link, &session, items).map_err(|failure| {
            if trouble::is_gone(&failure) {
                link.forget(&session);
            }
            trouble::advised(failure)
        })
    }

    /// Has `listener` told of values of items as they change, until what this returns is dropped. It returns at once: the server need not
    /// be there yet.
    ///
    /// # Errors
    /// The system gives no thread; more items than there are handles.
    pub fn subscribe<S: AsRef<str>>(
        &self,
        items: &[S],
        wanted: SubscriptionRequest,
        listener: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Subscription, Failure> {
        let items = items.iter().map(|item| Arc::from(item.as_ref())).collect();
        subscription::begin(&self.link, items, wanted, Box::new(listener))
    }
}

impl Status {
    fn of(status: OPCSERVERSTATUS) -> Self {
        use crate::contract::OPCSERVERSTATE as State;
        let (state, state_name) = match status.state {
            State::OpcStatusRunning => (1, "running"),
            State::OpcStatusFailed => (2, "failed"),
            State::OpcStatusNoconfig => (3, "no configuration"),
            State::OpcStatusSuspended => (4, "suspended"),
            State::OpcStatusTest => (5, "test"),
            State::OpcStatusCommFault => (6, "communication fault"),
            other => (other.0, "unknown to this side"),
        };
        Self {
            vendor: status.vendor_info.unwrap_or_default(),
            version: (status.major_version, status.minor_version, status.build_number),
            state: state.into(),
            state_name,
            started: time_of(&status.start_time),
            now: time_of(&status.current_time),
            last_update: time_of(&status.last_update_time),
            groups: status.group_count,
        }
    }
}

/// Everything that an enumerator has, asked for by pages until one is short; at most so many.
fn enumerated<T>(
    most: usize,
    page: u32,
    next: impl Fn(u32) -> Result<Success<Vec<T>>, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut found = Vec::new();
    loop {
        let Success { value, code } = next(page)?;
        let is_last = code != Success::PLAIN || value.len() < page as usize;
        found.extend(value);
        if found.len() > most {
            return Err(list::too_many(most));
        }
        if is_last {
            return Ok(found);
        }
    }
}
