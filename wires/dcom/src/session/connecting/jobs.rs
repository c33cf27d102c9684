//! What waits: calls that miss something, and system requests for what they miss, in the order in which they came.
//!
//! States: `jobs` holds what cannot be sent. Every event that may change that (an answer, an accepted
//! context, readiness) calls `pump`, which looks at each job once, in order.
//!
//! Invariants: what a job needs stands before it in the queue, or was sent already. Two calls that need the
//! same interface share one system request. Where the peer takes one call at a time, nothing is sent before its last
//! answer has come.
//!
//! Wine's connections carry one interface: what is another's goes on to a connection of its own, by a way that says so. Wine's
//! servers accept one presentation context for a connection and do not number their answers; so calls go one at a time, a call given
//! up ends the connection, and RemQueryInterface has a connection to IRemUnknown of its own.

use super::binding::syntax;
use super::calls::{no_interface, no_node, no_such_interface};
use super::state::{
    Connecting, ContextState, Goal, Job, PendingRequest, Progress, Purpose, QueuedCall, Stage, SystemRequest,
    Target, Task,
};
use super::system_requests::may_be_elsewhere;
use crate::exporter::Proxy;
use crate::frame::Header;
use crate::pdu::Syntax;
use crate::session::channel::State;
use crate::{IUNKNOWN, REM_UNKNOWN, REM_UNKNOWN2, iid_of};
use everywire_model::{Call, CallId, Completed, Expects, Failure, Initiator, Kind, Outcome, Reference};
use std::collections::VecDeque;
use std::sync::Arc;
use uuid::Uuid;

impl Connecting {
    /// Sends what can be sent.
    pub(super) fn pump(&mut self) {
        let mut at = 0;
        while at < self.jobs.len() && self.ready && self.channel.state == State::Open {
            if !self.channel.multiplex && !self.is_idle() {
                return;
            }
            let Some(job) = self.jobs.remove(at) else { return };
            // Each job goes as far as it can now: it is sent, must wait, needs a system request first, or has failed.
            let progress = match job {
                Job::Call(held) => self.advance_call(held),
                Job::System(task) => self.advance_request(task),
            };
            match progress {
                Progress::Done => {}
                Progress::Waits(job) => {
                    self.jobs.insert(at, job);
                    at += 1;
                }
                Progress::Needs(job, task) => {
                    self.jobs.insert(at, job);
                    // What it waits for goes first, unless somebody asked for that already.
                    if self.is_asked(&task) {
                        at += 1;
                    } else {
                        self.jobs.insert(at, Job::System(task));
                    }
                }
            }
        }
    }

    /// Whether the peer has nothing to answer.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.contexts.iter().all(|context| context.stage != Stage::Asked)
    }

    /// A system request that the call needs is returned, not queued here: only `pump` knows the call's place in the
    /// queue.
    fn advance_call(&mut self, mut held: Box<QueuedCall>) -> Progress {
        // The one begins as the other, and is mostly agreed on by then.
        if held.target.syntax == syntax(REM_UNKNOWN)
            && matches!(self.way(&syntax(REM_UNKNOWN2)), ContextState::Open(_))
        {
            held.target.syntax = syntax(REM_UNKNOWN2);
        }
        let iid = held.target.syntax.id;
        held.target.object = match &held.goal {
            Goal::Node { object, .. } => *object,
            Goal::Object(proxy) => match proxy.ipid(iid) {
                Some(ipid) => Some(ipid),
                None => {
                    // The context is asked for at the same time.
                    let task = Task::new(SystemRequest::Query { proxy: Arc::clone(proxy), iid });
                    return Progress::Needs(Job::Call(held), Box::new(task));
                }
            },
        };
        if let Goal::Object(proxy) = &held.goal
            && proxy.oxid().has_releases()
            && let Some(resolution) = proxy.oxid().resolution()
        {
            self.send_releases(proxy.oxid(), resolution.rem_unknown, held.target.minor);
        }
        held.target.context = match self.way(&held.target.syntax) {
            ContextState::Open(context) => context,
            ContextState::Missing { asked } => {
                if !asked {
                    self.send_alter(held.target.syntax);
                }
                return Progress::Waits(Job::Call(held));
            }
            ContextState::Refused => {
                self.refused(*held);
                return Progress::Done;
            }
        };
        match self.send_held(&held) {
            Ok(call) if held.expects == Expects::Reply => {
                // Kept with its values: it may have to be sent again, or its results are those of Invoke.
                if held.operation.is_some() || (held.target.results.orpc && !self.proven) {
                    self.waiting.push_back(PendingRequest { call, purpose: Purpose::Held(held) });
                } else {
                    self.wait(call, held.serial, &held.target);
                }
            }
            Ok(_) => {}
            Err(failure) => self.reply(held.serial, Outcome::Failed(failure)),
        }
        Progress::Done
    }

    /// The peer does not have the interface of a call here; procedures may be elsewhere.
    fn refused(&mut self, held: QueuedCall) {
        let QueuedCall { serial, goal, target: Target { syntax, .. }, .. } = held;
        let failure = no_such_interface(syntax.id);
        match goal {
            Goal::Node { way: Some(profile), .. } if may_be_elsewhere(&profile) => {
                let request = SystemRequest::Map { syntax, profile };
                self.jobs.push_back(Job::System(Box::new(Task { request, waiters: vec![serial] })));
            }
            _ => self.reply(serial, Outcome::Failed(failure)),
        }
    }

    /// The presentation context of an interface.
    pub(super) fn way(&self, syntax: &Syntax) -> ContextState {
        match self.contexts.iter().find(|context| context.syntax == *syntax) {
            Some(context) => match context.stage {
                Stage::Accepted => ContextState::Open(context.id),
                Stage::Asked => ContextState::Missing { asked: true },
                Stage::Refused => ContextState::Refused,
            },
            // Nothing more can be asked for.
            None if self.only.is_some() => ContextState::Refused,
            None => ContextState::Missing { asked: false },
        }
    }

    /// The system requests that wait or were sent.
    pub(super) fn tasks(&mut self) -> impl Iterator<Item = &mut Task> {
        let held = self.jobs.iter_mut().filter_map(|job| match job {
            Job::System(task) => Some(&mut **task),
            Job::Call(_) => None,
        });
        let sent = self.waiting.iter_mut().filter_map(|waiting| match &mut waiting.purpose {
            Purpose::System(task) => Some(&mut **task),
            Purpose::Call { .. } | Purpose::Held(_) => None,
        });
        held.chain(sent)
    }

    /// Whether the same is being asked for.
    fn is_asked(&mut self, task: &Task) -> bool {
        self.tasks().any(|other| task.request.is_same(&other.request))
    }

    /// Asks for something on behalf of a call; calls that ask for the same share the answer.
    pub(super) fn ask(&mut self, request: SystemRequest) -> CallId {
        let serial = self.take_serial();
        let shared = self.tasks().find(|task| request.is_same(&task.request));
        if shared.map(|task| task.waiters.push(serial)).is_none() {
            self.jobs.push_back(Job::System(Box::new(Task { request, waiters: vec![serial] })));
            self.pump();
        }
        CallId(serial)
    }

    /// A job that will never be sent: whoever waits for it is told.
    pub(super) fn fail_job(&mut self, job: Job, failure: &Failure) {
        match job {
            Job::Call(held) => self.reply(held.serial, Outcome::Failed(failure.clone())),
            Job::System(task) => self.fail_task(*task, failure),
        }
    }

    /// A system request failed: so does whoever waits for it.
    /// For an interface that was asked for, the calls that need it are among the jobs and fail with it.
    /// Of calls that wait nothing was sent; an activation, and what is asked for somebody else, is the call itself.
    pub(super) fn fail_task(&mut self, task: Task, failure: &Failure) {
        let mut failure = failure.clone();
        if !task.request.is_call() {
            failure = failure.with_completed(Completed::No);
        }
        for serial in task.waiters {
            self.reply(serial, Outcome::Failed(failure.clone()));
        }
        if let SystemRequest::Query { proxy, iid } = &task.request {
            self.fail_calls(proxy, *iid, &failure);
        }
    }

    /// Calls of an object by an interface that is not to be had will not be sent.
    pub(super) fn fail_calls(&mut self, proxy: &Arc<Proxy>, iid: Uuid, failure: &Failure) {
        let jobs = std::mem::take(&mut self.jobs).into_iter();
        let (failing, rest): (VecDeque<_>, _) = jobs.partition(|job| {
            let Job::Call(held) = job else { return false };
            matches!(&held.goal, Goal::Object(p) if held.target.syntax.id == iid && Arc::ptr_eq(p, proxy))
        });
        self.jobs = rest;
        for job in failing {
            self.fail_job(job, failure);
        }
    }

    /// Sends a call of an object on if it is not this connection's to make; asks the object for the interface before that,
    /// if this is the connection where objects are asked.
    #[cold]
    pub(super) fn elsewhere(&mut self, only: Uuid, call: &Call<'_>) -> Result<Option<CallId>, Failure> {
        let Some(proxy) = call.profile.lease.share::<Proxy>() else { return Ok(None) };
        let iid = iid_of(call.method.interface().ok_or_else(no_interface)?);
        match proxy.ipid(iid) {
            Some(_) if iid == only => Ok(None),
            Some(_) => self.send_on(&proxy, iid).map(Some),
            None => self.query_first(only, proxy, iid).map(Some),
        }
    }

    /// Asks an object for an interface, on the connection where objects are asked.
    pub(super) fn query_first(
        &mut self,
        only: Uuid,
        proxy: Arc<Proxy>,
        iid: Uuid,
    ) -> Result<CallId, Failure> {
        if only != REM_UNKNOWN {
            return self.send_on(&proxy, REM_UNKNOWN);
        }
        Ok(self.ask(SystemRequest::Query { proxy, iid }))
    }

    /// Whoever asked an object for an interface in order to call it goes on to that one's connection.
    pub(super) fn found_on(&self, proxy: &Proxy, iid: Uuid) -> Result<Option<Reference>, Failure> {
        if self.only.is_none() || iid == IUNKNOWN {
            return Ok(None);
        }
        self.way_on(proxy, iid).map(Some)
    }

    /// The header of an answer with the number of the call that it answers: Wine numbers none, but calls are sent one at a time.
    #[inline]
    pub(super) fn answering(&self, header: &Header) -> Header {
        match (self.only, self.waiting.front()) {
            (Some(_), Some(waiting)) => Header { call: waiting.call, ..*header },
            _ => *header,
        }
    }

    /// A call was given up: its answer could not be told from that of the next one, which is made by another connection.
    #[cold]
    pub(super) fn lose_count(&mut self) {
        let what = "a call on this connection was given up, and Wine numbers no answers";
        let failure = Failure::new(Kind::Unreachable, Initiator::Here, what).with_completed(Completed::No);
        self.end(&failure);
    }

    /// The call ends with `Outcome::Moved`, and the runtime makes it again by the other connection.
    fn send_on(&mut self, proxy: &Proxy, iid: Uuid) -> Result<CallId, Failure> {
        let way = self.way_on(proxy, iid)?;
        Ok(self.answer_at_once(Outcome::Moved(way)))
    }

    /// The reference by which the interface `iid` of an object is called: its profiles name the interface,
    /// which keeps connections apart.
    fn way_on(&self, proxy: &Proxy, iid: Uuid) -> Result<Reference, Failure> {
        let mut way = self.exporter.as_ref().ok_or_else(no_node)?.located(proxy, None);
        for profile in &mut way.profiles {
            profile.components = self.security.dialect.components(iid);
        }
        Ok(way)
    }
}
