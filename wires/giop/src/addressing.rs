//! The addressing disposition of a peer: how it wants the target of a request to be named (CORBA 3.3 part 2,
//! section 9.4.2.1).
//!
//! A request names its target by the key alone until the peer answers NEEDS_ADDRESSING_MODE, which says that
//! the request was not executed. Then the same request goes out again in the way that the peer asked for,
//! under the same number: its caller sees one call. For that, requests are kept until the peer has answered
//! one; from then on its answer shows that it takes them as they are, and nothing is kept.
//!
//! States: `GiopSession::addressing` is the disposition of the next request and changes only here.
//! `GiopSession::trials` holds the requests that were sent and not answered while the peer is unproven. Each
//! request tries each of the three dispositions at most once, so a peer that always refuses cannot keep a
//! request going round. What is kept is bounded by `KEPT` octets of arguments and by the limit of outstanding
//! calls.
//!
//! Only GIOP 1.2 has dispositions, so requests of 1.0 and 1.1 are not kept. Bodies that are passed on without
//! a contract (`passing`) are not kept either: their callers get a failure that says "not executed".

use crate::addressing_trials::{Addressing, RepeatableRequest, SentCall};
use crate::cdr::{Get, NATIVE_LITTLE};
use crate::codesets::Dialect;
use crate::replies::undecodable;
use crate::session::GiopSession;
use crate::sink::CdrSink;
use bytes::Bytes;
use everywire_model::{Call, Encode, Failure, Initiator, Kind, Profile, SendBuffer, Visit};

/// Most octets of arguments that are kept on one connection, all requests together: 1 MiB. A request over it
/// is sent all the same; if the peer then refuses its addressing, it comes back to its caller as not
/// executed.
const KEPT: usize = 1 << 20;

impl GiopSession {
    /// Keeps a request that was sent. The values are encoded a second time instead of copied out of the send
    /// buffer, because the send buffer may hold parts by reference, or be cut into fragments. `says` are the
    /// code sets that the request told the peer, so that the second request tells them too.
    ///
    /// # Errors
    /// The values do not encode, or exceed what may be kept. Nothing is kept then; the request itself is not
    /// concerned.
    #[cold]
    pub(crate) fn keep_request(
        &mut self,
        id: u32,
        call: &Call<'_>,
        values: &dyn Encode,
        says: Option<Dialect>,
        dialect: Dialect,
    ) -> Visit<()> {
        let limit = KEPT.saturating_sub(self.trials.octets);
        let mut buffer = SendBuffer::new();
        // As they stand in the message, where they begin at a multiple of 8. What is over the limit is not kept.
        let mut sink = CdrSink::new(&mut buffer, 0, NATIVE_LITTLE, dialect, limit as u64);
        sink.over(self.local);
        values.encode(&mut sink)?;
        if buffer.position() > limit {
            return Ok(());
        }
        let kept = Bytes::from(buffer.to_vec());
        self.trials.octets += kept.len();
        let operation = call.method.name().into();
        self.keep(id, call.profile, Some((operation, says, dialect, kept)));
        Ok(())
    }

    /// Keeps a LocateRequest that was sent.
    #[cold]
    pub(crate) fn keep_locate(&mut self, id: u32, profile: &Profile) {
        self.keep(id, profile, None);
    }

    /// Notes a request. `call` is nothing for a LocateRequest, which has no operation and no values.
    fn keep(&mut self, id: u32, profile: &Profile, call: Option<SentCall>) {
        let tried = vec![self.addressing];
        self.trials.open.push(RepeatableRequest { id, profile: profile.clone(), call, tried });
    }

    /// Sends a request again, with its target named as the peer wants; `get` stands at the disposition in the
    /// peer's answer. Returns whether it was sent: then the call still waits. `false` means that the caller
    /// must tell the failure: the disposition does not exist, the request was not kept, the disposition was
    /// tried before, or the message got too large.
    #[cold]
    pub(crate) fn ask_again(&mut self, id: u32, mut get: Get<'_>) -> bool {
        let Some(wanted) = get.u16().ok().and_then(Addressing::of_number) else { return false };
        let Some(index) = self.trials.open.iter().position(|held| held.id == id) else { return false };
        let mut held = self.trials.open.swap_remove(index);
        if held.tried.contains(&wanted) {
            self.trials.octets -= held.octets();
            return false;
        }
        held.tried.push(wanted);
        self.addressing = wanted;
        let sent = match &held.call {
            None => self.put_locate(id, &held.profile),
            Some((operation, says, dialect, kept)) => {
                self.put_request(id, true, &held.profile, operation, *says, *dialect, |session, start| {
                    session.encoded_body(start, kept);
                    Ok(())
                })
            }
        };
        if sent.is_err() {
            // The longer name of the target makes the message exceed its limit.
            self.trials.octets -= held.octets();
            return false;
        }
        self.trials.open.push(held);
        true
    }

    /// The failure of a call whose addressing the peer refused and which cannot be sent again. From now on
    /// requests use the addressing that the peer wants, so a second try of the caller will pass.
    pub(crate) fn other_addressing(&mut self, get: &mut Get<'_>) -> Failure {
        let Some(wanted) = get.u16().ok().and_then(Addressing::of_number) else {
            let what = Failure::malformed("none of the three", get.pos);
            return undecodable("an addressing disposition", what);
        };
        self.addressing = wanted;
        let what = "the peer wants objects named in another way, as they are from now on";
        Failure::new(Kind::Busy, Initiator::Peer, what).with_hint("try again: the call was not executed")
    }
}
