//! Calls and answers that pass without a contract, and what is asked for of objects elsewhere for which this
//! node stands.
//!
//! Whoever answers for keys by how they begin gets activations of classes that are not here, and questions for
//! interfaces that nobody here knows, as calls of such a key. Their answers say what came of it elsewhere
//! ([`Adopted`]), and the caller gets references of this node's own.
//!
//! States: none; what was asked waits with the call (`RemoteQuery`). Invariants: what cannot be read, or exceeds a
//! bound, is left to the servant here to refuse, in its own words.

use super::answers::{heading, unsupported};
use super::state::{Accepting, InboundCall, RemoteQuery};
use crate::activation::{Activated, Activation, remote, scm};
use crate::exporter::{Adopted, raw};
use crate::hresult::{self, E_UNEXPECTED, REGDB_E_CLASSNOTREG};
use crate::ndr::{FAULT, HANDED, THAT};
use crate::objref::{ObjRef, StdObjRef};
use crate::orpc::{ErrorInfo, OrpcThat, error_extent};
use crate::passing::MessagePrefix;
use crate::pdu::Heading;
use crate::remunknown::{self, opnum};
use crate::session::values;
use crate::standard::host_of;
use crate::stub::Get;
use crate::{IUNKNOWN, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION, SCM_ACTIVATOR, VERSION};
use bytes::Bytes;
use everywire_model::visit::MessageContents;
use everywire_model::{Answer, Body, Encode, Encoded, Failure, Initiator, Kind, Visit};
use std::any::Any;
use uuid::Uuid;

impl Accepting {
    /// The key of what is asked for, if that is elsewhere: what cannot be read, or is known here, is answered here.
    /// Asked only for interfaces of the node (`!ordinary`), so that calls of objects do not pay for it.
    #[cold]
    pub(super) fn asked_elsewhere(
        &self,
        iid: Uuid,
        heading: &Heading,
        stub: &Bytes,
        base: usize,
        little: bool,
    ) -> Option<(Bytes, Box<RemoteQuery>)> {
        let exporter = self.exporter.as_ref()?;
        let get = || Get::after(stub.get(base..).unwrap_or_default(), base, little);
        match (iid, heading.opnum) {
            (REM_UNKNOWN | REM_UNKNOWN2, opnum::REM_QUERY_INTERFACE | opnum::REM_QUERY_INTERFACE2) => {
                let second = heading.opnum == opnum::REM_QUERY_INTERFACE2;
                // The servant tells what is wrong with it.
                let query = remunknown::parse_query_request(get(), second).ok()?;
                let (key, proxy) = exporter.passed_by(query.ipid)?;
                let known = |iid: &Uuid| *iid == IUNKNOWN || proxy.ipid(*iid).is_some();
                let small = query.iids.len() <= crate::limits::INTERFACES_ASKED;
                (small && !query.iids.iter().all(known))
                    .then(|| (key, Box::new(RemoteQuery::Interfaces { query, second })))
            }
            (REMOTE_ACTIVATION, remote::REMOTE_ACTIVATION) => {
                let activation = remote::parse_request(get(), (VERSION.0.into(), VERSION.1.into())).ok()?;
                self.class_elsewhere(activation, true)
            }
            (SCM_ACTIVATOR, scm::GET_CLASS_OBJECT | scm::CREATE_INSTANCE) => {
                self.class_elsewhere(scm::parse_request(get(), heading.opnum).ok()?, false)
            }
            _ => None,
        }
    }

    /// The key of the object here that stands for a class elsewhere. A version or a number of interfaces that
    /// the activator would refuse is left to it to refuse.
    fn class_elsewhere(&self, activation: Activation, old: bool) -> Option<(Bytes, Box<RemoteQuery>)> {
        let usable = hresult::check_version(activation.version).is_ok();
        let some = (1..=crate::limits::INTERFACES_ASKED).contains(&activation.iids.len());
        let key = self.exporter.as_ref()?.passing_class(activation.clsid).filter(|_| usable && some)?;
        Some((key, Box::new(RemoteQuery::Object { activation, old })))
    }

    /// Answers with references of this node's own to what was found elsewhere.
    #[cold]
    pub(super) fn answer_asked(
        &mut self,
        serving: &InboundCall,
        asked: &RemoteQuery,
        answer: Answer<'_>,
    ) -> Result<(), Failure> {
        let unlike = unlike();
        let failure = match answer {
            Answer::Done(results) => {
                let body = results.carries().body;
                let handed = body.is_some_and(|body| body.dialect & HANDED != 0);
                let told = body.and_then(Body::wire_state);
                let told = told.map(|wire_state| &**wire_state as &dyn Any);
                match told.and_then(<dyn Any>::downcast_ref::<Adopted>) {
                    Some(adopted) => return self.put_adopted(serving, asked, adopted, handed),
                    None => &unlike,
                }
            }
            Answer::Failed(failure) | Answer::Passed { failure, .. } => failure,
            Answer::Raised { .. } | Answer::Moved(_) => &unlike,
        };
        // A failure that somebody elsewhere gave a number, that says that the object or the interface is not
        // there, or that refuses an object, is the answer to the question: beside it there is room for a text.
        let is_answer = match failure.kind() {
            Kind::NoObject | Kind::NoOperation | Kind::BadArgument => true,
            Kind::Refused => matches!(asked, RemoteQuery::Object { .. }),
            _ => false,
        };
        let told = failure.code().is_some() || is_answer;
        if !told {
            // Nobody was asked, or nobody has answered: that is no answer of the activator's.
            self.put_failure(serving, failure);
            return Ok(());
        }
        let hresult = match (failure.kind(), failure.code(), asked) {
            (Kind::NoObject, None, RemoteQuery::Object { .. }) => REGDB_E_CLASSNOTREG,
            _ => hresult::of(failure),
        };
        // The text goes along where the number does not say the same.
        let text = failure.message();
        let says_more = matches!(asked, RemoteQuery::Object { .. }) && text != hresult::describe(hresult);
        let info = ErrorInfo { description: text.to_owned(), ..ErrorInfo::default() };
        let extensions = if says_more { vec![error_extent(&info)] } else { Vec::new() };
        self.put_own(serving, &OrpcThat { flags: 0, extensions }, &asked.refused(hresult))
    }

    /// Answers with what was got from elsewhere, after it was exported anew: the caller gets OBJREFs with
    /// this node's OXID and IPIDs and comes here for each call. Bindings are those of the address by which
    /// the caller came. With `handed` an object is what it is there, and the caller goes there. A refusal
    /// travels as an HRESULT inside of an ordinary answer.
    fn put_adopted(
        &mut self,
        serving: &InboundCall,
        asked: &RemoteQuery,
        adopted: &Adopted,
        handed: bool,
    ) -> Result<(), Failure> {
        let Some(exporter) = &self.exporter else { return Ok(()) };
        let at = self.talk_of(serving).and_then(|talk| talk.references.address);
        let stub = match asked {
            RemoteQuery::Object { activation, .. } if handed => match adopted.hand_over(activation, at) {
                Ok(activated) => asked.reply_activated(&activated),
                Err(hresult) => asked.refused(hresult),
            },
            RemoteQuery::Object { activation, .. } => {
                let who = self.principal(serving);
                match exporter.activate_passed(&serving.key, activation, adopted, &who) {
                    Ok(activated) => asked.reply_activated(&activated.seen_at(at)),
                    Err(hresult) => asked.refused(hresult),
                }
            }
            RemoteQuery::Interfaces { query, .. } => {
                let bindings = exporter.bindings();
                let objref = |iid: Uuid, std: StdObjRef| {
                    ObjRef::Standard { iid, std, resolver: bindings.clone() }.seen_at(at).write()
                };
                asked.reply_found(&exporter.query_passed(&serving.key, query, adopted), objref)
            }
        };
        self.put_own(serving, &OrpcThat::default(), &stub)
    }

    /// Sends a stub that was written here.
    fn put_own(&mut self, serving: &InboundCall, that: &OrpcThat, stub: &[u8]) -> Result<(), Failure> {
        let talk = self.talk_of(serving);
        self.channel.message(&heading(serving), serving.shield, true, |out| {
            let begin = out.len();
            that.write(out);
            values::put(out, begin, &raw::Raw(stub), talk.as_ref())
        })
    }

    /// Who asks, for quotas.
    fn principal(&self, serving: &InboundCall) -> String {
        let shield = self.channel.shield(serving.shield);
        match shield.filter(|shield| !shield.principal.is_empty()) {
            Some(shield) => String::from_utf8_lossy(&shield.principal).into_owned(),
            None => host_of(&self.peer.text).to_owned(),
        }
    }

    /// Answers with results that pass as they came, or with extensions beside values.
    #[cold]
    pub(super) fn put_beside(
        &mut self,
        serving: &InboundCall,
        results: &dyn Encode,
        carries: MessageContents<'_>,
    ) -> Visit<()> {
        if !serving.orpc {
            return Err(unsupported("extensions or an encoded answer on a call of plain RPC"));
        }
        let lead = MessagePrefix::of(carries, THAT)?;
        let talk = self.talk_of(serving);
        let keeps = serving.keeps_hresult;
        self.channel.message(&heading(serving), serving.shield, lead.little, |out| {
            let stub = out.len();
            lead.put_that(out)?;
            if let Some(body) = carries.body {
                out.extend_from_slice(&body.bytes);
                return Ok(());
            }
            let code = values::put_as(out, stub, results, talk.as_ref(), serving.foreign)?;
            if !keeps {
                values::put_u32(out, stub, code);
            }
            Ok(())
        })
    }

    /// Answers with a failure as it came: a failing HRESULT behind whatever results, or a fault.
    /// `Encoded::id` is the HRESULT or status as `0x` and eight digits. What another codec wrote cannot be
    /// sent here, and the plain failure is.
    #[cold]
    pub(super) fn put_encoded(
        &mut self,
        serving: &InboundCall,
        encoded: &Encoded,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let body = &encoded.body;
        let ours = body.codec.name() == crate::ndr::NAME;
        let status = encoded.id.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let sent = match status {
            Some(status) if ours && body.dialect & FAULT != 0 => {
                let unexecuted = failure.completed() == everywire_model::Completed::No;
                self.send_fault_by(serving.shield, serving.call, serving.context, status, unexecuted);
                return Ok(());
            }
            _ if ours => self.put_beside(serving, body, body.carries()),
            _ => Err(unlike()),
        };
        if sent.is_err() {
            self.put_failure(serving, failure);
        }
        Ok(())
    }
}

impl RemoteQuery {
    /// The answer that there is nothing.
    fn refused(&self, hresult: u32) -> Vec<u8> {
        match self {
            Self::Object { activation, .. } => self.reply_activated(&activation.refused(hresult)),
            Self::Interfaces { query, .. } => {
                self.reply_found(&vec![Err(hresult); query.iids.len()], |_, _| Bytes::new())
            }
        }
    }

    /// The answer to an activation, by the interface that was called.
    fn reply_activated(&self, activated: &Activated) -> Vec<u8> {
        match self {
            Self::Object { old: true, .. } => remote::write_reply(activated),
            _ => scm::write_reply(activated),
        }
    }

    /// The answer to a question for interfaces; the newer one has whole OBJREFs.
    fn reply_found(
        &self,
        found: &[Result<StdObjRef, u32>],
        objref: impl Fn(Uuid, StdObjRef) -> Bytes,
    ) -> Vec<u8> {
        match self {
            Self::Interfaces { query, second: true } => {
                let each = query.iids.iter().zip(found);
                let all: Vec<_> = each.map(|(iid, std)| std.map(|std| objref(*iid, std))).collect();
                remunknown::query2_reply(&all)
            }
            _ => remunknown::query_reply(found),
        }
    }
}

/// The failure of an answer that says nothing of what was asked for.
fn unlike() -> Failure {
    Failure::new(Kind::Internal, Initiator::Here, "the answer names no object")
        .with_code(format!("{E_UNEXPECTED:#010x}"))
}
