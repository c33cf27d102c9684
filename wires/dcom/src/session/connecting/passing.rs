//! Calls that pass without a contract, on their way to the object that they are for; and what is asked for on
//! behalf of somebody else.
//!
//! A call is sent at once where its object, its interface's presentation context and the peer's version are
//! known, else kept until they are, as any other. Activations and questions for interfaces are not passed on:
//! this side asks for the same by itself, keeps what it gets ([`Adopted`]), and the session by which they
//! came hands out references of its own.
//!
//! States: none of its own; kept calls are jobs like those of `calls`, with the body that passes in
//! `QueuedCall::passed`.
//!
//! Invariants: the bytes of a stub are never read, but for the arguments of activations and of
//! RemQueryInterface, which are addressed to the node, and for the HRESULT at the end of an answer. An answer
//! passes if and only if its call did. A call of plain DCE/RPC, and one to Wine, cannot pass: they need the
//! contract.

use super::binding::syntax;
use super::calls::{is_at_exporter, no_node};
use super::replies::{last_number, leading_that};
use super::state::{
    Connecting, ContextState, Goal, IDENTIFY, OpaqueCall, PROTSEQS, QueuedCall, Results, SystemRequest,
    Target,
};
use super::system_requests::after_that;
use crate::activation::{Activated, remote, scm};
use crate::exporter::{Adopted, InterfaceResult, Proxy};
use crate::ndr::{FAULT, THAT, THIS};
use crate::objref::ObjRef;
use crate::passing::MessagePrefix;
use crate::remunknown::{self, opnum};
use crate::session::values::{self, empty_body};
use crate::stub::Get;
use crate::tags::TAG_PASSED;
use crate::ways::class_of;
use crate::{IUNKNOWN, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION, SCM_ACTIVATOR, hresult, is_orpc};
use bytes::Bytes;
use everywire_idl::midl::clsid_of_key;
use everywire_model::message::needs_contract;
use everywire_model::visit::MessageContents;
use everywire_model::{
    Attachments, Body, Call, CallId, Encoded, Failure, Outcome, Profile, Reference, Visit, WireState,
};
use std::sync::Arc;
use uuid::Uuid;

impl Connecting {
    /// Begins a call of an operation that nobody here knows.
    pub(super) fn begin_named(
        &mut self,
        call: &Call<'_>,
        interface: &[u8],
        operation: &[u8],
    ) -> Result<CallId, Failure> {
        let iid = interface.try_into().ok().map(Uuid::from_bytes_le);
        let opnum = operation.try_into().ok().map(u16::from_le_bytes);
        let Some((iid, opnum)) = iid.zip(opnum) else {
            let what = "an operation is named by 16 octets of its interface and 2 of its number";
            return Err(Failure::bad_argument(what));
        };
        // A connection to Wine is made for one interface, which must be known beforehand.
        if self.only.is_some() {
            return Err(needs_contract("a call to Wine's COM"));
        }
        let carries = call.arguments.carries();
        let lead = MessagePrefix::of(carries, THIS)?;
        if !is_orpc(iid) {
            return Err(needs_contract("a call of plain RPC"));
        }
        let profile = call.profile;
        if let Some(moved) = self.unmarshalled(profile)? {
            return Ok(moved);
        }
        let meant = self.meant(profile)?;
        if matches!(iid, SCM_ACTIVATOR | REMOTE_ACTIVATION) {
            return self.activate_for(carries, iid, opnum, meant, profile);
        }
        // A way to a class: an object of it has to be there before it can be called.
        let Some(proxy) = meant else {
            return match class_of(profile) {
                Some(clsid) => Ok(self.activate(clsid, IUNKNOWN, profile)),
                None => Err(needs_contract("a call of the node itself")),
            };
        };
        let resolution = proxy.oxid().resolution().filter(|_| is_at_exporter(profile));
        let Some(resolution) = resolution else { return self.resolve_for(proxy, profile) };
        if matches!(iid, REM_UNKNOWN | REM_UNKNOWN2) {
            return self.query_for(carries.body, opnum, proxy);
        }
        let minor = self.orpc_minor.min(resolution.version.1);
        if proxy.oxid().has_releases() && self.may_send() {
            self.send_releases(proxy.oxid(), resolution.rem_unknown, minor);
        }
        let results = Results { orpc: true, passed: true, ..Results::default() };
        let mut target = Target { syntax: syntax(iid), opnum, minor, results, ..Target::default() };
        if let (Some(object), true, ContextState::Open(context)) =
            (proxy.ipid(iid), self.proven, self.way(&target.syntax))
            && self.may_send()
        {
            (target.object, target.context) = (Some(object), context);
            return self.send_now(&target, call.expects, Some(&lead), |out, stub, talk| match carries.body {
                Some(body) => {
                    out.extend_from_slice(&body.bytes);
                    Ok(())
                }
                None => values::put(out, stub, call.arguments, talk),
            });
        }
        // What passes is counted, not copied; only arguments of this process are encoded now.
        let mut values = Vec::new();
        if carries.body.is_none() {
            values::put(&mut values, 0, call.arguments, self.talk.as_ref())?;
        }
        let passed = OpaqueCall { body: carries.body.cloned(), edits: carries.headers.cloned() };
        let (serial, goal, expects) = (self.take_serial(), Goal::Object(proxy), call.expects);
        let passed = Some(Box::new(passed));
        Ok(self.keep(QueuedCall { serial, goal, target, values, passed, expects, operation: None }))
    }

    /// The object that a way leads to, if it leads to one.
    /// `TAG_PASSED` names an object of this node that stands for one elsewhere: its proxy is in the
    /// exporter's table.
    fn meant(&self, profile: &Profile) -> Result<Option<Arc<Proxy>>, Failure> {
        if profile.component(TAG_PASSED).is_none() {
            return Ok(profile.lease.share::<Proxy>());
        }
        let exporter = self.exporter.as_ref().ok_or_else(no_node)?;
        exporter.passed(&profile.key).map(Some).ok_or_else(let_go)
    }

    /// Whether an object is there that one of this node's stands for: it is held, so that it is.
    #[cold]
    pub(super) fn probe_passed(&mut self, profile: &Profile) -> Result<CallId, Failure> {
        let proxy = self.meant(profile)?.ok_or_else(let_go)?;
        if proxy.oxid().resolution().is_none() || !is_at_exporter(profile) {
            return self.resolve_for(proxy, profile);
        }
        Ok(self.answer_at_once(self.nothing()))
    }

    /// Sends a call that was kept.
    /// What passes keeps its own ORPCTHIS and byte order; ordinary values are behind an ORPCTHIS of this
    /// side.
    pub(super) fn send_held(&mut self, held: &QueuedCall) -> Visit<u32> {
        let Some(passed) = &held.passed else {
            return self.send_request(&held.target, held.expects, None, |out, _| {
                out.extend_from_slice(&held.values);
                Ok(())
            });
        };
        let lead = MessagePrefix::of(passed.carries(), THIS)?;
        self.send_request(&held.target, held.expects, Some(&lead), |out, _| {
            out.extend_from_slice(passed.body.as_ref().map_or(&*held.values, |body| &*body.bytes));
            Ok(())
        })
    }

    /// Asks for an object that somebody else asked for.
    #[cold]
    fn activate_for(
        &mut self,
        carries: MessageContents<'_>,
        iid: Uuid,
        opnum: u16,
        meant: Option<Arc<Proxy>>,
        profile: &Profile,
    ) -> Result<CallId, Failure> {
        let body = carries.body.ok_or_else(|| needs_contract("an activation that is no message"))?;
        let parsed = match iid {
            REMOTE_ACTIVATION => remote::parse_request(Get::of(body), (crate::VERSION.0.into(), 0)),
            _ => scm::parse_request(Get::of(body), opnum),
        };
        let mut asked = parsed.map_err(|violation| violation.at(body.base))?;
        if let Some(proxy) = meant {
            // It is there already.
            return Ok(self.ask(SystemRequest::QueryFor { proxy, iids: asked.iids }));
        }
        if !profile.key.is_empty() {
            asked.clsid = clsid_of_key(&profile.key);
        }
        (asked.protseqs, asked.impersonation) = (PROTSEQS.to_vec(), IDENTIFY);
        let lead = MessagePrefix::hops(carries.headers);
        Ok(self.ask(SystemRequest::Activate {
            asked,
            profile: profile.clone(),
            old: false,
            passed: true,
            lead,
        }))
    }

    /// Asks an object for interfaces that somebody else asked it for.
    #[cold]
    fn query_for(&mut self, body: Option<&Body>, number: u16, proxy: Arc<Proxy>) -> Result<CallId, Failure> {
        let body =
            body.filter(|_| matches!(number, opnum::REM_QUERY_INTERFACE | opnum::REM_QUERY_INTERFACE2));
        let body = body.ok_or_else(|| needs_contract("a call of the node itself"))?;
        let query = remunknown::parse_query_request(Get::of(body), number == opnum::REM_QUERY_INTERFACE2);
        let query = query.map_err(|violation| violation.at(body.base))?;
        Ok(self.ask(SystemRequest::QueryFor { proxy, iids: query.iids }))
    }

    /// The object that was made on behalf of somebody else.
    pub(super) fn adopted(
        &self,
        reference: &Reference,
        activated: Activated,
    ) -> Result<Outcome<Body>, Failure> {
        let mut held = reference.profiles.iter();
        let proxy = held.find_map(|profile| profile.lease.share::<Proxy>()).ok_or_else(no_node)?;
        let found = activated.interfaces.into_iter().map(|(iid, hresult, objref)| {
            let objref = objref.and_then(|raw| ObjRef::parse(&raw).ok());
            let refs = objref.and_then(|(objref, _)| Some(objref.standard()?.0.public_refs));
            InterfaceResult { iid, hresult, refs: refs.unwrap_or_default() }
        });
        Ok(self.told(Adopted { proxy, found: found.collect() }))
    }

    /// The interfaces that were asked for on behalf of somebody else.
    pub(super) fn queried(
        &self,
        stub: &Bytes,
        little: bool,
        proxy: &Arc<Proxy>,
        iids: &[Uuid],
    ) -> Result<Outcome<Body>, Failure> {
        let (results, base) = after_that(stub, little)?;
        let found = proxy.learn_answer(Get::after(results, base, little), base, iids)?;
        Ok(self.told(Adopted { proxy: Arc::clone(proxy), found }))
    }

    /// What was got elsewhere, beside no values.
    fn told(&self, adopted: Adopted) -> Outcome<Body> {
        let wire_state = Arc::new(adopted) as Arc<dyn WireState>;
        let beside = Attachments { wire_state: Some(wire_state), ..Attachments::default() };
        let body = Body { beside: Some(Arc::new(beside)), ..empty_body(self.channel.limits.budget) };
        Outcome::Done(body)
    }

    /// What a method said that nobody here knows. Whether it failed is told by the last number of its results, as all methods of COM have
    /// it; the bytes are the same either way.
    /// A method without an HRESULT would be misread, but object interfaces have none.
    pub(super) fn passed_outcome(&self, stub: &Bytes, little: bool) -> Result<Outcome<Body>, Failure> {
        let budget = self.channel.limits.budget;
        let (that, taken) = leading_that(stub, little)?;
        let body = values::passing(stub, taken, little, budget, self.talk.as_ref(), THAT);
        let code = last_number(stub, taken, little).map(|(_, code)| code);
        let Some(code) = code.filter(|code| hresult::is_failure(*code)) else {
            return Ok(Outcome::Done(body));
        };
        match self.failed(code, that) {
            Ok(Outcome::Raised(mut raised)) => {
                raised.encoded = Some(Arc::new(Encoded { id: raised.id.clone(), raised: true, body }));
                Ok(Outcome::Raised(raised))
            }
            Ok(other) => Ok(other),
            Err(failure) => {
                let encoded = Encoded { id: format!("{code:#010x}"), raised: false, body };
                Ok(Outcome::Failed(failure.with_encoded(encoded)))
            }
        }
    }

    /// The failure of a fault that passes.
    #[cold]
    pub(super) fn as_fault(&self, failure: Failure, status: u32) -> Failure {
        let mut body = empty_body(self.channel.limits.budget);
        body.dialect = FAULT;
        failure.with_encoded(Encoded { id: format!("{status:#010x}"), raised: false, body })
    }
}

/// The failure of a call of what nobody refers to any more.
#[cold]
fn let_go() -> Failure {
    hresult::failure(hresult::RPC_E_DISCONNECTED, None).with_completed(everywire_model::Completed::No)
}
