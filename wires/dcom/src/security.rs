//! The security that goes with a way: how calls are protected, who calls, and who may.
//!
//! A `Security` is the options of an address ([`everywire_model::Options`]). What always holds:
//!
//! * Two are equal if callers by them may share connections: the same account with the same password, level, mechanism, service, trusted
//!   hosts and dialect. What only a place has (users, keys, the period of pings) does not count.
//! * Neither its text nor its hash has anything of a password in it.
//! * An account that somebody wrote into an address is shown to the host of that address (`home`), to the hosts of `hosts=`, and to nobody
//!   else, wherever references lead. Accounts of a place are shown to whoever called, to this machine, and to `hosts=` (`trusted`).
//! * Who asks for NTLM above level `None` and has no credentials is refused here, before anything is sent.

mod home;

use crate::wine::Dialect;
use everywire_auth::security::{Credentials, Mechanism, Options, Users};
use everywire_model::{Endpoint, Failure, Initiator, Kind, PeerAddress, Profile, named_variants};
use home::{HERE, Home, address_of, is_called};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

named_variants! {
    /// How much each message is protected (MS-RPCE 2.2.1.1.8). The words are those of addresses.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Level: u8 {
        /// Nobody says who calls.
        None = 1 "none",
        /// The caller is known when the connection begins.
        Connect = 2 "connect",
        /// As `Packet`.
        Call = 3 "call",
        /// Each fragment is known to come from the caller; in practice as `Integrity`.
        Packet = 4 "packet",
        /// Each fragment is signed.
        #[default]
        Integrity = 5 "integrity",
        /// Each fragment is signed and encrypted.
        Privacy = 6 "privacy",
    }
}

impl Level {
    /// The level that the hint of a resolver says.
    pub(crate) fn of_hint(hint: u32) -> Option<Self> {
        u8::try_from(hint).ok().and_then(Self::of_number)
    }

    /// Whether each fragment carries a signature.
    pub fn is_signed(self) -> bool {
        self >= Self::Call
    }
}

/// Hosts that references from a caller may lead to.
#[derive(Clone, PartialEq, Eq, Hash)]
struct TrustedHosts {
    /// Hosts by their addresses, in canonical form.
    addresses: Vec<IpAddr>,
    /// Hosts by their names, as `hosts=` has them.
    names: Vec<String>,
}

/// See the module. It stands in [`Profile::options`] of a way and of a place.
#[derive(Clone, Default)]
pub struct Security {
    /// How calls are protected; of a place, how they must be at least.
    pub level: Level,
    /// How the caller proves who it is.
    pub mechanism: Mechanism,
    /// Whom the caller says it is.
    pub credentials: Option<Arc<Credentials>>,
    /// Of a place: whom it knows.
    pub users: Option<Arc<dyn Users>>,
    /// Of a place: whether the NTLM2 session response will do, which old clients send in place of NTLMv2.
    pub ntlm1_session: bool,
    /// Of a place: whether anybody may look up what is served here; otherwise only who is known, or on this machine.
    pub open_lookups: bool,
    /// Of a place: how often clients say what they hold, if not every two minutes ([`crate::exporter::PING_PERIOD`]).
    pub ping: Option<Duration>,
    /// The principal name of the service; empty for the usual one.
    pub target: String,
    /// The host as the address names it: the service is known by it where only numbers are known otherwise.
    pub host: String,
    /// Whether objects are called where their class was asked for, whatever their node says of where it is: through a relay
    /// or a tunnel.
    pub here: bool,
    /// Of a place: the file of its Kerberos keys.
    pub keytab: Option<PathBuf>,
    /// How the other end departs from the specification.
    pub dialect: Dialect,
    /// Hosts that references may lead to beside the one that they come from (and, of a place, this one); an account is shown to
    /// no others. `*` stands for all.
    pub hosts: Vec<String>,
    /// Of a way that somebody wrote: the host that the account was given for.
    home: Option<Arc<Home>>,
    /// The hosts that an account may be shown to; `None` stands for all.
    trusted: Option<TrustedHosts>,
}

impl Security {
    /// What is right without any wish: integrity where others might listen in, nothing where the system vouches for the
    /// caller.
    pub fn of_endpoint(endpoint: Option<&Endpoint>) -> Self {
        Self::new(if is_tcp(endpoint) { Level::Integrity } else { Level::None })
    }

    /// This level, and nothing else.
    pub fn new(level: Level) -> Self {
        Self { level, mechanism: Mechanism::Ntlm, ..Self::default() }
    }

    /// The same at no lower level than the one that the peer says it wants, as far as there are credentials for it
    /// (the hint of ResolveOxid2, MS-DCOM 3.1.2.5.1.5).
    pub(crate) fn hinted(self: &Arc<Self>, hint: u32) -> Arc<Self> {
        match Level::of_hint(hint) {
            Some(level) if level > self.level && self.credentials.is_some() => {
                Arc::new(Self { level, ..Self::clone(self) })
            }
            _ => Arc::clone(self),
        }
    }

    /// What callers by it share connections by. The home is left out, for it follows from the address; so is what a place alone has.
    fn identity(&self) -> impl Eq + Hash {
        let how = (self.level, self.mechanism, &self.target, &self.host, self.here, &self.dialect);
        (&self.credentials, how, &self.hosts, &self.trusted)
    }

    /// For a way that somebody wrote: the account is for the hosts that it names.
    #[must_use]
    pub(crate) fn at_home(mut self, way: &[Endpoint]) -> Self {
        let names = way.iter().flat_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, .. } => vec![host.to_ascii_lowercase()],
            // By a socket this machine is meant.
            _ => ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec(),
        });
        let names: Vec<_> = names.collect();
        self.home = (!names.is_empty()).then(|| Home::of(self.credentials.clone(), names));
        self
    }

    /// Whether a way is known to lead to the host that the account was given for.
    pub(crate) fn is_home(&self, way: &Endpoint) -> bool {
        let (Some(home), Endpoint::Tcp { host, .. }) = (&self.home, way) else { return true };
        address_of(host).is_some_and(|at| home.was_at(at)) || home.is_named(host)
    }

    /// Whether a way is known to lead to a host that the account may be shown to: such ways are tried first.
    pub(crate) fn may_show(&self, way: &Endpoint) -> bool {
        match way {
            Endpoint::Tcp { host, .. } => self.is_home(way) || self.allows(host, address_of(host)),
            _ => true,
        }
    }

    /// Whether `hosts=` names this host: as it is called there, by its first label, or by its address.
    fn allows(&self, host: &str, at: Option<IpAddr>) -> bool {
        self.hosts.iter().any(|name| name == "*" || is_called(name, host, at))
    }

    /// What a context of this level is asked for; `host` is where the service runs.
    pub fn options(&self, host: &str) -> Options {
        let number = host.parse::<IpAddr>().is_ok();
        let target = match (&*self.target, &*self.host) {
            ("", named) if number && !named.is_empty() => format!("host/{named}"),
            ("", _) => format!("host/{host}"),
            (target, _) => target.to_owned(),
        };
        Options {
            integrity: self.level.is_signed(),
            confidentiality: self.level == Level::Privacy,
            dce_style: true,
            allow_ntlm1_session: self.ntlm1_session,
            target,
            keytab: self.keytab.clone(),
        }
    }

    /// The same for references that a peer sends to this place: whoever it names is shown an account of this side's only on the peer's
    /// own host, on this one, and where the place says so. Anybody else could use what it is shown elsewhere.
    pub(crate) fn for_references_of(&self, peer: &PeerAddress, place: &Profile) -> Self {
        let (numbers, names) = self.hosts.iter().partition::<Vec<_>, _>(|host| address_of(host).is_some());
        let own = place.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, .. } => address_of(host),
            _ => None,
        });
        let addresses = HERE.into_iter().chain(own).chain(address_of_peer(peer));
        let addresses = addresses.chain(numbers.into_iter().filter_map(|host| address_of(host))).collect();
        let all = self.hosts.iter().any(|host| host == "*");
        let trusted = TrustedHosts { addresses, names: names.into_iter().cloned().collect() };
        Self { trusted: (!all).then_some(trusted), ..self.clone() }
    }

    /// Why this side does not say who it is at the other end of a connection, if so.
    pub(crate) fn distrusts(&self, peer: &PeerAddress, way: &Profile) -> Option<Failure> {
        let (Some(Endpoint::Tcp { host, .. }), true) = (way.endpoints.first(), self.level > Level::None)
        else {
            return None;
        };
        // Where the connection really leads to counts, not how that place is called.
        let at = address_of_peer(peer).or_else(|| address_of(host));
        if let Some(home) = &self.home {
            return self.is_away(home, host, at);
        }
        let trusted = self.trusted.as_ref()?;
        if at.is_some_and(|at| trusted.addresses.contains(&at))
            || trusted.names.iter().any(|name| name.eq_ignore_ascii_case(host))
        {
            return None;
        }
        let what = format!(
            "a caller's reference leads to {host}, which is neither its host nor this one: no account is shown there"
        );
        Some(
            Failure::new(Kind::Refused, Initiator::Here, what)
                .with_hint("if it is right, name the host where this node listens: ?hosts=HOST,HOST"),
        )
    }

    /// Why an account is not shown to a host, if that is not the one that it was given for.
    fn is_away(&self, home: &Home, host: &str, at: Option<IpAddr>) -> Option<Failure> {
        if home.is_named(host) {
            // Whoever has that name now is meant.
            at.into_iter().for_each(|at| home.is_at(at));
            return None;
        }
        if at.is_some_and(|at| home.knows(at)) || self.allows(host, at) {
            return None;
        }
        let what = format!(
            "a reference from {} leads to {host}, which is not known to be the same host: the account is not shown there",
            home.name()
        );
        Some(Failure::new(Kind::Refused, Initiator::Here, what).with_hint(format!(
            "if it is right, end the address with ?hosts={host} (hosts=* stands for all); if it is the same host behind a relay, with ?exporter=here"
        )))
    }

    /// Why a call cannot be made with it, if so.
    pub fn lack(&self) -> Option<Failure> {
        // The others look for tickets, and say what they lack.
        let needs_them = self.level > Level::None && self.mechanism == Mechanism::Ntlm;
        (needs_them && self.credentials.is_none()).then(|| {
            let what = format!("calls at level `{}` need credentials, and there are none", self.level.word());
            Failure::new(Kind::Refused, Initiator::User, what).with_hint(
                "write USER:PASSWORD@ before the host, name a file of credentials in $EVERYWIRE_DCOM_CREDENTIALS, or end the address with ?level=none if the server takes that",
            )
        })
    }
}

/// Whether an endpoint of a way is reached by TCP, as one is that is not named.
pub(crate) fn is_tcp(endpoint: Option<&Endpoint>) -> bool {
    matches!(endpoint, Some(Endpoint::Tcp { .. }) | None)
}

/// Where a peer is, if the transport knows its address.
pub(crate) fn address_of_peer(peer: &PeerAddress) -> Option<IpAddr> {
    let text = peer.text.rsplit_once("tcp:").map_or(peer.text.as_str(), |(_, text)| text);
    let address = text.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| text.parse::<IpAddr>());
    address.ok().map(|address| address.to_canonical())
}

impl PartialEq for Security {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Security {}

impl Hash for Security {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.credentials.as_ref().map(|known| (&known.domain, &known.user));
        write!(
            f,
            "Security({}, {:?}, {who:?}, users: {})",
            self.level.word(),
            self.mechanism,
            self.users.is_some()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str) -> Endpoint {
        Endpoint::Tcp { host: host.to_owned(), port: 135 }
    }

    /// Whether an account for `way` is shown at `host`, which is found at `at`.
    fn shown(security: &Security, host: &str, at: &str) -> bool {
        let peer = PeerAddress { text: format!("tcp:{at}:135"), credentials: None };
        let way = Profile { endpoints: vec![tcp(host)], ..Profile::default() };
        security.distrusts(&peer, &way).is_none()
    }

    #[test]
    fn an_account_is_for_the_host_that_it_was_given_for() {
        let security = |level, hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
            let host = "server.example.org".to_owned();
            Security { host, hosts, ..Security::new(level) }.at_home(&[tcp("server.example.org")])
        };
        let strict = security(Level::Integrity, &[]);
        assert!(!shown(&strict, "192.0.2.1", "192.0.2.1"), "nobody knows yet that it is the same");
        assert!(shown(&strict, "Server.Example.org", "192.0.2.1"));
        assert!(shown(&strict, "192.0.2.1", "192.0.2.1"));
        assert!(shown(&strict, "alias.example.org", "192.0.2.1"));
        assert!(shown(&strict, "SERVER", "192.0.2.2"), "another address of it");
        assert!(strict.is_home(&tcp("192.0.2.2")) && !strict.is_home(&tcp("192.0.2.3")));
        for (host, at) in
            [("192.0.2.3", "192.0.2.3"), ("server.example.com", "192.0.2.3"), ("127.0.0.1", "127.0.0.1")]
        {
            assert!(!shown(&strict, host, at), "{host}");
            assert!(shown(&security(Level::Integrity, &["*"]), host, at), "{host}");
            assert!(shown(&security(Level::Integrity, &["other", host]), host, at), "{host}");
            // Without an account there is nothing to be shown.
            assert!(shown(&security(Level::None, &[]), host, at), "{host}");
        }
    }

    #[test]
    fn behind_a_socket_is_this_machine() {
        let security = Security::new(Level::Integrity).at_home(&[Endpoint::Unix { path: "/run/x".into() }]);
        assert!(shown(&security, "127.0.0.1", "127.0.0.1"));
        assert!(!shown(&security, "192.0.2.1", "192.0.2.1"));
    }
}
