//! NTLM (MS-NLMP): the exchange of three messages, and signing and sealing afterwards.
//!
//! Version 2 of the answers, and extended session security for the messages. The older NTLM2 session response is taken
//! only by acceptors that were told to; LM, NTLMv1 and their signatures are not spoken at all.

mod acceptor;
mod flags;
mod initiator;
mod keys;
mod message;
mod pairs;
mod protection;
#[cfg(test)]
mod tests;

pub(super) use acceptor::NtlmAcceptor;
pub(super) use initiator::NtlmInitiator;
pub(super) use keys::nt_hash;
pub(super) use message::is_message;

use crate::Random;
use everywire_model::{Failure, Initiator, Kind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The first of January 1601, where Windows' clock starts, lies so many seconds before Unix'.
const EPOCH: Duration = Duration::from_secs(11_644_473_600);

/// Now, in tenths of microseconds since 1601.
fn file_time() -> [u8; 8] {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + EPOCH;
    let ticks = since.as_secs() * 10_000_000 + u64::from(since.subsec_nanos() / 100);
    ticks.to_le_bytes()
}

/// Octets that nobody can foresee.
fn draw<const N: usize>(random: Random) -> Result<[u8; N], Failure> {
    let mut octets = [0; N];
    random(&mut octets).map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("the kernel has no random numbers: {error}"))
    })?;
    Ok(octets)
}

/// This host's names: NetBIOS and DNS, without a domain.
fn host_names() -> (String, String) {
    let uname = rustix::system::uname();
    let node = uname.nodename().to_string_lossy().into_owned();
    let short = node.split('.').next().filter(|name| !name.is_empty()).unwrap_or("localhost");
    (short.chars().take(15).collect::<String>().to_uppercase(), short.to_lowercase())
}
