//! Hops: how many brokers a call has passed.
//!
//! Routes may lead back to one another, over any number of brokers and wires. So each broker tells the next one in a header how many
//! there were ([`everywire_model::Wire::hop_header`]), and a call that has passed too many goes no further: it did not run anywhere. Whoever
//! does not know the header passes over it. Wires without headers carry no count: a circle that is closed by one of them
//! ends by the limits of connections and of time.

use everywire_model::failure::Completed;
use everywire_model::{Body, Edit, Failure, Header, Headers, Initiator, Kind};

/// Brokers that a call may pass unless the file says otherwise.
pub(crate) const MOST: u32 = 16;

/// How many brokers a message has passed with this one; 0 where nobody counts, because it may pass any number (`most` of 0).
///
/// # Errors
/// It has passed `most` before, or says so in headers that cannot be read: it goes no further.
pub(crate) fn count(body: &Body, most: u32) -> Result<u32, Failure> {
    if most == 0 {
        return Ok(0);
    }
    match body.codec.hops(body) {
        Ok(passed) if passed < most => Ok(passed + 1),
        // Refused, and not beyond a limit: so each wire says that it did not run, and nobody tries again.
        Ok(_) => {
            let what =
                format!("the call has passed more brokers than {most}: routes lead back to one another");
            let failure = Failure::new(Kind::Refused, Initiator::Peer, what).with_completed(Completed::No);
            Err(failure.with_hint("if they do not, raise `hops` in the brokers' files"))
        }
        Err(failure) => {
            let what = format!("how many brokers the call has passed cannot be read: {}", failure.message());
            Err(Failure::new(Kind::BadArgument, Initiator::Peer, what).with_completed(Completed::No))
        }
    }
}

/// What the next one is told by a header of that name; nothing where nobody counts.
pub(crate) fn tell(name: Option<&str>, hops: u32) -> Option<Edit> {
    name.filter(|_| hops > 0).map(|name| Edit::Put(Header::text(name, hops.to_string())))
}

/// The same behind changes.
pub(crate) fn beside(changes: &Headers, name: Option<&str>, hops: u32) -> Headers {
    let mut headers = changes.clone();
    tell(name, hops).into_iter().for_each(|edit| headers.edit(edit));
    headers
}
