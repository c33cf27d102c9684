//! SPNEGO (RFC 4178, MS-SPNG): agreeing on Kerberos or NTLM.
//!
//! Both sides sign the list of mechanisms wherever the mechanism can sign, so that nobody on the way can talk them into a
//! weaker one.

mod acceptor;
mod der;
mod initiator;
#[cfg(test)]
mod tests;
mod token;

pub(super) use acceptor::SpnegoAcceptor;
pub(super) use initiator::SpnegoInitiator;
