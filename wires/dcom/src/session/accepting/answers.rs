//! Answers: results, failing HRESULTs with blank results, exceptions, faults (MS-DCOM 3.1.1.5.4, 2.2.13.4).
//!
//! Which form a failure has: what no servant saw is a fault (the status says what went wrong before the call
//! was executed); what a servant said of an ORPC call is an HRESULT behind blank results, with the text in an
//! error extension; plain DCE/RPC has no HRESULT, so everything is a fault there. An answer that cannot be
//! encoded becomes a failure of its own, marked as executed.

use super::state::{Accepting, InboundCall};
use crate::frame::PduKind;
use crate::hresult;
use crate::orpc::{ErrorInfo, Extent, OrpcThat, error_extent};
use crate::pdu::Heading;
use crate::session::security_context::ValueContext;
use crate::session::{blank, exception, values};
use everywire_model::visit::Nothing;
use everywire_model::{Answer, Completed, Encode, Failure, Initiator, Kind, Sink, Visit};

impl Accepting {
    /// Answers a call; one whose results do not encode gets that failure instead.
    /// `Err` tells the runtime that the servant's results did not travel; the peer has got its failure by
    /// then.
    pub(super) fn answer_call(&mut self, serving: &InboundCall, answer: Answer<'_>) -> Result<(), Failure> {
        self.count(0, 1);
        if let Answer::Moved(_) = answer {
            // No HRESULT: that would say that the method ran.
            let status = hresult::E_NOTIMPL;
            self.send_fault_by(serving.shield, serving.call, serving.context, status, true);
            return Ok(());
        }
        if let Some(asked) = &serving.hop {
            return self.answer_asked(serving, asked, answer);
        }
        let sent = match answer {
            Answer::Done(results) => {
                let carries = results.carries();
                match (carries.body, carries.headers) {
                    (None, None) => self.put_results(serving, results),
                    _ => self.put_beside(serving, results, carries),
                }
            }
            Answer::Raised { shape, fields } if serving.orpc => exception::put(shape, fields)
                .and_then(|extent| self.put_failed(serving, hresult::DISP_E_EXCEPTION, vec![extent])),
            Answer::Raised { shape, .. } => {
                let what = format!("the servant raised {}, which plain RPC cannot carry", shape.name);
                Err(unsupported(what))
            }
            Answer::Passed { encoded, failure } if serving.orpc => {
                self.put_encoded(serving, encoded, failure)
            }
            Answer::Failed(failure) | Answer::Passed { failure, .. } => {
                self.put_failure(serving, failure);
                return Ok(());
            }
            Answer::Moved(_) => Err(unsupported("a call cannot be told where its object went")),
        };
        sent.inspect_err(|failure| {
            // The servant ran, only its results do not travel.
            let failure = failure.clone().with_completed(Completed::Yes);
            self.put_failure(serving, &failure);
        })
    }

    /// ORPCTHAT is eight zeros: no flags, no extensions. Results that keep their HRESULT themselves
    /// (`InboundCall::keeps_hresult`) end with it already.
    #[inline]
    fn put_results(&mut self, serving: &InboundCall, results: &dyn Encode) -> Visit<()> {
        let talk = self.talk_of(serving);
        let (orpc, keeps) = (serving.orpc, serving.keeps_hresult);
        self.channel.message(&heading(serving), serving.shield, true, |out| {
            let stub = out.len();
            if orpc {
                out.extend_from_slice(&[0; OrpcThat::LEN]);
            }
            let code = values::put_as(out, stub, results, talk.as_ref(), serving.foreign)?;
            if orpc && !keeps {
                values::put_u32(out, stub, code);
            }
            Ok(())
        })
    }

    /// Answers with a failing HRESULT where the caller can expect one, else with a fault.
    pub(super) fn put_failure(&mut self, serving: &InboundCall, failure: &Failure) {
        let ran = failure.completed() == Completed::Yes;
        // What no servant saw is the runtime's to tell, not an object's.
        let fault = match failure.kind() {
            _ if ran && serving.orpc => None,
            // The servant has chosen its status.
            _ if ran && failure.code().is_some() => Some(hresult::fault_status(failure)),
            _ if ran => Some(hresult::not_denying(hresult::fault_status(failure))),
            Kind::NoObject if serving.orpc && failure.code().is_none() => Some(hresult::RPC_E_DISCONNECTED),
            Kind::NoObject | Kind::NoOperation if failure.code().is_none() => Some(hresult::NCA_OP_RNG_ERROR),
            Kind::Malformed if failure.initiator() == Initiator::Peer => Some(hresult::NCA_FAULT_NDR),
            _ if !serving.orpc => Some(hresult::fault_status(failure)),
            // The node or a broker has refused the call, or lost it on its way: an HRESULT would say that the method ran. So would
            // one for what another hop behind here said by a fault.
            kind if failure.initiator() == Initiator::Peer
                && (failure.status().is_none() || failure.completed() == Completed::No) =>
            {
                hresult::of_no_method(kind, failure.completed())
            }
            _ => None,
        };
        // `DID_NOT_EXECUTE` lets the client repeat the call, so it is said only where that is known.
        let unexecuted = failure.completed() == Completed::No;
        let status = match fault {
            Some(status) => status,
            None => {
                let code = hresult::of(failure);
                let info = ErrorInfo { description: failure.message().to_owned(), ..ErrorInfo::default() };
                let extensions =
                    if failure.message().is_empty() { Vec::new() } else { vec![error_extent(&info)] };
                match self.put_failed(serving, code, extensions) {
                    Ok(()) => return,
                    Err(_) if failure.completed() != Completed::No => hresult::not_denying(code),
                    Err(_) => code,
                }
            }
        };
        self.send_fault_by(serving.shield, serving.call, serving.context, status, unexecuted);
    }

    /// A failing HRESULT behind blank results.
    /// Fails if the results are not known, as for an interface that passes without a contract; then the
    /// failure becomes a fault.
    fn put_failed(&mut self, serving: &InboundCall, code: u32, extensions: Vec<Extent>) -> Visit<()> {
        let exporter = self.exporter.as_ref().filter(|_| !serving.keeps_hresult);
        let shape = exporter.and_then(|exporter| exporter.results(&serving.key, serving.iid, serving.opnum));
        let unknown = || Failure::new(Kind::NoOperation, Initiator::Here, "the results are not known");
        let shape = shape.ok_or_else(unknown)?;
        let talk = self.talk_of(serving);
        self.channel.message(&heading(serving), serving.shield, true, |out| {
            let stub = out.len();
            OrpcThat { flags: 0, extensions }.write(out);
            let fields = shape.fields();
            if fields.is_empty() {
                values::put(out, stub, &Nothing, talk.as_ref())?;
            } else {
                let blank = |sink: &mut dyn Sink| blank::put(&shape, sink);
                values::put_as(out, stub, &blank, talk.as_ref(), serving.foreign)?;
            }
            values::put_u32(out, stub, code);
            Ok(())
        })
    }

    /// What references in the answer are counted for: the caller by its security context, or the connection
    /// as a whole.
    pub(super) fn talk_of(&self, serving: &InboundCall) -> Option<ValueContext> {
        let shield = self.channel.shield(serving.shield);
        shield.map_or(self.talk.as_ref(), |shield| shield.correspondence.as_ref()).cloned()
    }
}

/// What stands before the stub of an answer to this call.
pub(super) fn heading(serving: &InboundCall) -> Heading {
    // As Windows and Samba have it: one octet. Whoever called knows by which context.
    Heading::answer(PduKind::Response, serving.call, serving.context & 0xff)
}

/// The failure of what this side of a connection cannot do.
#[cold]
pub(super) fn unsupported(what: impl Into<String>) -> Failure {
    Failure::unsupported(what)
}
