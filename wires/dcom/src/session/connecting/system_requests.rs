//! System requests: what this side asks the peer by itself, so that a call can be made (MS-DCOM 3.2.4.1, 3.2.4.2,
//! 3.2.4.4).
//!
//! A system request is a `Task` with the serials of the calls that wait for it. It waits among the jobs until its
//! interface has a presentation context, then it is sent and stands in `waiting` as a `Purpose::System`. Its
//! answer becomes an `Outcome::Moved` (the call goes on at the reference that was found), or wakes the jobs
//! that need what was learnt (`SystemRequest::Query`). Where procedures are served, the endpoint mapper of their host is
//! asked (C706 appendix O, `ept_map`).
//!
//! Invariants: whoever waits for a system request gets its failure if it fails. An activation is tried by
//! IRemoteSCMActivator, then by the older IRemoteActivation, and by lower versions of ORPC, as long as the
//! peer says that it has not executed anything. References that an answer grants are entered in the proxy
//! before anybody is told.

use super::binding::syntax;
use super::calls::{lower, no_node, no_such_interface};
use super::state::{
    Connecting, ContextState, Job, PROTSEQS, PendingRequest, Progress, Purpose, Results, SystemRequest,
    Target, Task,
};
use crate::activation::{Activated, Activation, remote, scm};
use crate::bindings::RESOLVER_PORT;
use crate::exporter::{InterfaceResult, Proxy, RemoteOxid};
use crate::hresult;
use crate::limits::PROXY_INTERFACES;
use crate::ndr;
use crate::orpc::{OrpcThat, error_info};
use crate::pdu::Syntax;
use crate::remunknown::{self, PUBLIC_REFS, Query, Refs};
use crate::resolver;
use crate::session::values::{self, empty_body};
use crate::standard::guid::Guid;
use crate::standard::mapper::{Handle, MAP, NOT_REGISTERED, Octets};
use crate::stub::Get;
use crate::tower::Tower;
use crate::{
    ENDPOINT_MAPPER, IUNKNOWN, OBJECT_EXPORTER, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION, SCM_ACTIVATOR,
    VERSION, is_orpc,
};
use bytes::Bytes;
use everywire_model::{
    Body, Endpoint, Expects, Failure, Initiator, Kind, MarshalList, Outcome, Profile, Reference, Sink,
};
use std::net::Ipv4Addr;
use uuid::Uuid;

/// What a system request says.
struct RequestParts {
    iid: Uuid,
    opnum: u16,
    object: Option<Uuid>,
    minor: u16,
    stub: Vec<u8>,
}

impl Connecting {
    /// Sends a system request, if the peer has an interface for it.
    pub(super) fn advance_request(&mut self, mut task: Box<Task>) -> Progress {
        let (RequestParts { iid, opnum, object, minor, stub }, context) = loop {
            let question = match self.question(&task.request) {
                Ok(question) => question,
                Err(failure) => {
                    self.fail_task(*task, &failure);
                    return Progress::Done;
                }
            };
            match self.way(&syntax(question.iid)) {
                ContextState::Open(context) => break (question, context),
                ContextState::Missing { asked } => {
                    if !asked {
                        self.send_alter(syntax(question.iid));
                    }
                    return Progress::Waits(Job::System(task));
                }
                ContextState::Refused => {
                    if !fall_back(&mut task.request) {
                        let failure = no_such_interface(question.iid);
                        self.fail_task(*task, &failure);
                        return Progress::Done;
                    }
                }
            }
        };
        let results = Results { orpc: is_orpc(iid), ..Results::default() };
        let target = Target { syntax: syntax(iid), context, opnum, object, minor, results };
        let lead = match &task.request {
            SystemRequest::Activate { lead, .. } => lead.as_ref(),
            _ => None,
        };
        let sent = self.send_request(&target, Expects::Reply, lead, |out, _| {
            out.extend_from_slice(&stub);
            Ok(())
        });
        match sent {
            Ok(call) => {
                // Asked for while the activation is under way, which saves a round trip.
                let next = self.next_interface(&task.request);
                self.waiting.push_back(PendingRequest { call, purpose: Purpose::System(task) });
                if let Some(next) = next {
                    self.send_alter(next);
                }
            }
            Err(failure) => self.fail_task(*task, &failure),
        }
        Progress::Done
    }

    /// The interface that will be called of what is asked for, if that may well be on this same connection: a resolver on the
    /// port that all look for mostly serves no objects itself.
    fn next_interface(&self, request: &SystemRequest) -> Option<Syntax> {
        let SystemRequest::Activate { asked, profile, passed: false, .. } = request else { return None };
        let next = syntax(*asked.iids.first()?);
        let here = self.channel.multiplex && !may_be_elsewhere(profile) && next.id != IUNKNOWN;
        (here && matches!(self.way(&next), ContextState::Missing { asked: false })).then_some(next)
    }

    /// How a system request is said. `Err`: what it asks for cannot be asked, since the proxy is not resolved.
    fn question(&self, request: &SystemRequest) -> Result<RequestParts, Failure> {
        let minor = self.orpc_minor;
        let of_node = |iid, opnum, stub| RequestParts { iid, opnum, object: None, minor, stub };
        Ok(match request {
            SystemRequest::Activate { asked, old, .. } => {
                let ours = Activation { version: (VERSION.0.into(), minor), ..asked.clone() };
                match old {
                    true => of_node(REMOTE_ACTIVATION, 0, remote::write_request(&ours)),
                    false => of_node(SCM_ACTIVATOR, scm::opnum(&ours), scm::write_request(&ours)),
                }
            }
            SystemRequest::QueryFor { proxy, iids } => self.querying(proxy, iids.clone())?,
            SystemRequest::Resolve { proxy, .. } => {
                let stub = resolver::resolve_oxid2_request(proxy.oxid().id(), &PROTSEQS);
                of_node(OBJECT_EXPORTER, resolver::opnum::RESOLVE_OXID2, stub)
            }
            SystemRequest::Query { proxy, iid } => self.querying(proxy, vec![*iid])?,
            SystemRequest::Map { syntax, .. } => of_node(ENDPOINT_MAPPER, MAP_NUMBER, map_request(syntax)?),
            SystemRequest::Alive => of_node(OBJECT_EXPORTER, resolver::opnum::SERVER_ALIVE, Vec::new()),
            SystemRequest::Release { node, minor, refs } => {
                let (opnum, stub) = (remunknown::opnum::REM_RELEASE, remunknown::refs_request(refs));
                RequestParts { iid: self.node_interface(), opnum, object: Some(*node), minor: *minor, stub }
            }
        })
    }

    /// RemQueryInterface, addressed to the exporter's own IRemUnknown; any IPID of the object will do.
    fn querying(&self, proxy: &Proxy, iids: Vec<Uuid>) -> Result<RequestParts, Failure> {
        let resolution = proxy.oxid().resolution().ok_or_else(no_node)?;
        let query = Query { ipid: proxy.any_ipid(), refs: PUBLIC_REFS, iids };
        let stub = remunknown::query_request(&query);
        let minor = resolution.version.1.min(VERSION.1.into());
        let opnum = remunknown::opnum::REM_QUERY_INTERFACE;
        Ok(RequestParts {
            iid: self.node_interface(),
            opnum,
            object: Some(resolution.rem_unknown),
            minor,
            stub,
        })
    }

    /// IRemUnknown2, or IRemUnknown at peers that have no other.
    fn node_interface(&self) -> Uuid {
        if self.only.is_some() || matches!(self.way(&syntax(REM_UNKNOWN2)), ContextState::Refused) {
            REM_UNKNOWN
        } else {
            REM_UNKNOWN2
        }
    }

    /// Gives references back along with the next call, without waiting for the answer.
    /// The references are taken out of the exporter's list here: if the connection ends first, the peer finds
    /// out by the missing pings.
    #[cold]
    pub(super) fn send_releases(&mut self, oxid: &RemoteOxid, node: Uuid, minor: u16) {
        // Where only another interface goes, the keeper gives them back.
        if self.only.is_some_and(|only| only != REM_UNKNOWN) {
            return;
        }
        let released = oxid.take_releases().into_iter();
        let refs: Vec<_> = released.map(|(ipid, public)| Refs { ipid, public, private: 0 }).collect();
        for refs in refs.chunks(RELEASED_AT_ONCE) {
            let task = Box::new(Task::new(SystemRequest::Release { node, minor, refs: refs.to_vec() }));
            if self.channel.multiplex {
                if let Progress::Waits(job) = self.advance_request(task) {
                    self.jobs.push_back(job);
                }
            } else {
                // Its turn comes after the call.
                self.jobs.push_back(Job::System(task));
            }
        }
    }

    /// The answer to a system request.
    pub(super) fn request_answered(&mut self, task: Task, stub: &Bytes, little: bool) {
        let Task { request, waiters } = task;
        let outcome = match &request {
            SystemRequest::Activate { asked, profile, old, passed, .. } => {
                self.activated(stub, little, &asked.iids, *old, profile).and_then(|(found, activated)| {
                    if *passed { self.adopted(&found, activated) } else { Ok(Outcome::Moved(found)) }
                })
            }
            SystemRequest::Resolve { proxy, profile } => {
                self.resolved(stub, little, proxy, profile).map(Outcome::Moved)
            }
            SystemRequest::Map { syntax, profile } => {
                let answer = ndr::body(stub.clone(), 0, little, self.channel.limits.budget);
                moved(&answer, syntax, profile).map(Outcome::Moved)
            }
            SystemRequest::Query { proxy, iid } => {
                let way = found(stub, little, proxy, *iid).and_then(|()| self.found_on(proxy, *iid));
                way.map(|way| way.map_or_else(|| self.nothing(), Outcome::Moved))
            }
            SystemRequest::QueryFor { proxy, iids } => self.queried(stub, little, proxy, iids),
            SystemRequest::Alive | SystemRequest::Release { .. } => Ok(self.nothing()),
        };
        match outcome {
            Ok(outcome) => {
                if let SystemRequest::Query { proxy, iid } = &request
                    && proxy.ipid(*iid).is_none()
                {
                    // Asking again would get the same answer.
                    let why = if *iid == IUNKNOWN { no_such_interface(*iid) } else { not_kept(*iid) };
                    self.fail_calls(proxy, *iid, &why);
                }
                for serial in waiters {
                    self.reply(serial, outcome.clone());
                }
            }
            Err(failure) => self.fail_task(Task { request, waiters }, &failure),
        }
        self.pump();
    }

    /// An answer without values.
    pub(super) fn nothing(&self) -> Outcome<Body> {
        Outcome::Done(empty_body(self.channel.limits.budget))
    }

    /// The reference, and what the activator said of each interface.
    fn activated(
        &self,
        stub: &Bytes,
        little: bool,
        iids: &[Uuid],
        old: bool,
        profile: &Profile,
    ) -> Result<(Reference, Activated), Failure> {
        let (that, base) = OrpcThat::parse(stub, little).map_err(|violation| violation.at(0))?;
        let get = Get::after(stub.get(base..).unwrap_or_default(), base, little);
        let parsed = if old { remote::parse_reply(get, iids) } else { scm::parse_reply(get) };
        let activated = parsed.map_err(|violation| violation.at(base))?;
        if hresult::is_failure(activated.hresult) {
            return Err(hresult::failure(activated.hresult, error_info(&that.extensions).as_ref()));
        }
        let found = self.exporter.as_ref().ok_or_else(no_node)?.adopt_activated(&activated, profile)?;
        Ok((found, activated))
    }

    /// The answer also tells the exporter's version and bindings, which are kept with the OXID.
    fn resolved(
        &self,
        stub: &Bytes,
        little: bool,
        proxy: &Proxy,
        profile: &Profile,
    ) -> Result<Reference, Failure> {
        let parsed = resolver::parse_resolve_reply(Get::new(stub, little), true);
        let resolved = parsed.map_err(|violation| violation.at(0))?;
        let resolved = resolved.map_err(|status| {
            let what = "the resolver does not know the object's exporter";
            Failure::new(Kind::NoObject, Initiator::Peer, what).with_code(format!("{status:#010x}"))
        })?;
        Ok(self.exporter.as_ref().ok_or_else(no_node)?.resolved(proxy, resolved, profile))
    }

    /// A system request failed at the peer: there may be another way.
    /// Only a fault that says "no such interface" or "not this version" has another way; whoever waits gets
    /// all others.
    pub(super) fn request_failed(&mut self, mut task: Task, status: u32, failure: &Failure) {
        let unknown = matches!(status, hresult::NCA_UNK_IF | hresult::NCA_OP_RNG_ERROR);
        let again = match &task.request {
            SystemRequest::Activate { .. } if unknown => fall_back(&mut task.request),
            SystemRequest::Activate { .. } if status == hresult::RPC_E_VERSION_MISMATCH => {
                let older = lower(self.orpc_minor);
                self.orpc_minor = older.unwrap_or(self.orpc_minor);
                older.is_some()
            }
            _ => false,
        };
        if again {
            self.jobs.push_front(Job::System(Box::new(task)));
        } else {
            self.fail_task(task, failure);
        }
        self.pump();
    }
}

/// The most references given back by one request.
const RELEASED_AT_ONCE: usize = 500;

/// Goes over to the older interface; whether there is one.
fn fall_back(request: &mut SystemRequest) -> bool {
    match request {
        SystemRequest::Activate { old, .. } => !std::mem::replace(old, true),
        // The first refusal was IRemUnknown2's: `node_interface` knows.
        _ => false,
    }
}

/// What stands behind ORPCTHAT, and how long that is.
pub(super) fn after_that(stub: &Bytes, little: bool) -> Result<(&[u8], usize), Failure> {
    let (_, taken) = OrpcThat::parse(stub, little).map_err(|violation| violation.at(0))?;
    Ok((stub.get(taken..).unwrap_or_default(), taken))
}

/// The failure of a call by an interface that the object has, and that is not kept.
#[cold]
fn not_kept(iid: Uuid) -> Failure {
    let what =
        format!("{PROXY_INTERFACES} interfaces of the object are known already, {iid} is one too many");
    Failure::new(Kind::LimitExceeded, Initiator::Here, what)
}

/// Keeps the interface that an object was asked for.
fn found(stub: &Bytes, little: bool, proxy: &Proxy, iid: Uuid) -> Result<(), Failure> {
    let (results, base) = after_that(stub, little)?;
    match proxy.learn_answer(Get::after(results, base, little), base, &[iid])?.first() {
        Some(InterfaceResult { hresult: hresult::S_OK, .. }) => Ok(()),
        // Only who asks whether the object is there asks for this; some objects that are do not name it.
        Some(InterfaceResult { hresult: hresult::E_NOINTERFACE, .. }) if iid == IUNKNOWN => Ok(()),
        Some(InterfaceResult { hresult, .. }) => {
            Err(hresult::failure(*hresult, None).at(format_args!("interface {iid}")))
        }
        None => Err(Failure::malformed("an answer to RemQueryInterface is empty", base)),
    }
}

/// The number of ept_map.
const MAP_NUMBER: u16 = 3;

/// The most towers that are asked for.
/// One host has few ports for one interface; the first that is not the mapper's own is taken.
const TOWERS: u32 = 16;

/// Whether procedures that are not served by this way may be served at another port: the mapper's own is the one that all
/// look for.
pub(super) fn may_be_elsewhere(profile: &Profile) -> bool {
    matches!(profile.endpoints.first(), Some(Endpoint::Tcp { port, .. }) if *port == RESOLVER_PORT)
}

/// The stub of ept_map: towers of an interface over TCP, from the beginning (a null handle), for no object.
fn map_request(syntax: &Syntax) -> Result<Vec<u8>, Failure> {
    let interface = (syntax.id, syntax.major, syntax.minor);
    let tower = Tower::tcp(interface, RESOLVER_PORT, Ipv4Addr::UNSPECIFIED).write();
    let asked = (None::<Guid>, Some((tower.len() as u32, tower)), Handle::default(), TOWERS);
    let mut stub = Vec::new();
    values::put(&mut stub, 0, &|sink: &mut dyn Sink| asked.marshal_list(&MAP.arguments, sink), None)?;
    Ok(stub)
}

/// Where to, as the answer says: another port of the same host.
///
/// # Errors
/// The answer is malformed, or the interface is not served by TCP.
fn moved(answer: &Body, syntax: &Syntax, way: &Profile) -> Result<Reference, Failure> {
    // Towers are full pointers in the contract of the mapper, so that several of them may lead to one: such an answer is taken.
    let (_, count, _, towers, status) =
        answer.decode::<(Handle, u32, u32, Vec<Octets>, u32)>(&MAP.results)?;
    let told = u32::try_from(towers.len()).ok();
    if told != Some(count) || count > TOWERS {
        let what =
            "the towers of an answer to ept_map are not as many as it says, or more than were asked for";
        return Err(Failure::malformed(what, answer.base));
    }
    // One that is not understood is of another protocol.
    let ports = towers.into_iter().flatten().filter_map(|(_, octets)| Tower::parse(&octets).ok()?.port());
    let port = ports.into_iter().find(|port| status == 0 && *port != RESOLVER_PORT);
    let (Some(port), Some(Endpoint::Tcp { host, .. })) = (port, way.endpoints.first()) else {
        return Err(not_served(syntax, if status == 0 { NOT_REGISTERED } else { status }));
    };
    let endpoints = vec![Endpoint::Tcp { host: host.clone(), port }];
    let profile = Profile { endpoints, ..way.clone() };
    Ok(Reference { type_id: syntax.id.to_string(), profiles: vec![profile], foreign: Vec::new() })
}

#[cold]
fn not_served(syntax: &Syntax, status: u32) -> Failure {
    let Syntax { id, major, minor } = syntax;
    let what = format!("the peer's endpoint mapper knows no port of interface {id} {major}.{minor}");
    Failure::new(Kind::Unsupported, Initiator::Peer, what).with_code(format!("{status:#010x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::{BindAddress, Budget};

    #[test]
    fn towers_are_as_many_as_the_answer_says() {
        let asked = Syntax { id: Uuid::from_u128(7), major: 1, minor: 0 };
        let found = |count: u32, towers: usize| {
            let tower = Tower::tcp((asked.id, 1, 0), 4711, Ipv4Addr::LOCALHOST).write();
            let towers: Vec<Octets> = vec![Some((tower.len() as u32, tower)); towers];
            let results = (Handle::default(), count, towers.len() as u32, towers, 0_u32);
            let mut stub = Vec::new();
            values::put(&mut stub, 0, &|sink: &mut dyn Sink| results.marshal_list(&MAP.results, sink), None)
                .unwrap();
            let place =
                BindAddress::socket("dcom", Endpoint::Tcp { host: "localhost".into(), port: RESOLVER_PORT });
            moved(&ndr::body(stub.into(), 0, true, Budget::default()), &asked, place.profile())
        };
        let port = |reference: Reference| reference.profiles[0].endpoints.clone();
        let expected = vec![Endpoint::Tcp { host: "localhost".into(), port: 4711 }];
        assert_eq!(found(2, 2).map(port).unwrap(), expected);
        for (count, towers) in [(1, 2), (3, 2), (TOWERS + 1, TOWERS as usize + 1)] {
            assert_eq!(found(count, towers).unwrap_err().kind(), Kind::Malformed);
        }
        assert_eq!(found(0, 0).unwrap_err().kind(), Kind::Unsupported);
    }
}
