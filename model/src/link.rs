//! Links: the answering half of a connection, and who is at its other end.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::message::{Answer, CallId, Emission};
use crate::object::{BoxFuture, Object, Resolver};
use std::fmt;
use std::sync::Arc;

/// What the transport knows about the peer.
#[derive(Debug, Clone, Default)]
pub struct PeerAddress {
    /// Transport and address, as text.
    pub text: String,
    /// Process and user, where the kernel vouches for them: (pid, uid).
    pub credentials: Option<(i32, u32)>,
}

/// An authenticated peer. Only a session can obtain one, by reaching the state in which its protocol lets calls through;
/// code that needs an authenticated peer takes `&Peer`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Peer {
    /// Where it is.
    pub address: PeerAddress,
    /// How it was authenticated, such as `none`, `unix credentials`.
    pub authentication: &'static str,
    /// The account that it proved to be, the same text whichever of its names was used; nothing where it proved nothing, or
    /// where the kernel's word for its user ([`PeerAddress::credentials`]) is all there is.
    pub account: Option<Arc<str>>,
    /// Whether users share the connection, so that each call tells the account that it proved: then the sender of a call is that account
    /// and no router's name for it. The security contexts of DCE/RPC are such (C706 §13.2.4), of which `account` is the last one's.
    pub shared: bool,
}

impl Peer {
    /// For sessions only: the protocol of `address` reached the state in which calls are let through.
    pub fn admitted(address: PeerAddress, authentication: &'static str) -> Self {
        Self { address, authentication, account: None, shared: false }
    }

    /// The same, which proved to be this account.
    #[must_use]
    pub fn with_account(self, account: &str) -> Self {
        Self { account: Some(account.into()), ..self }
    }

    /// The same, whose calls tell by themselves which account has proved to make them.
    #[must_use]
    pub fn with_account_by_call(self) -> Self {
        Self { shared: true, ..self }
    }
}

impl fmt::Display for Peer {
    /// For people: the account, if one was proved, and the address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.account {
            Some(account) => write!(f, "{account} at {}", self.address.text),
            None => f.write_str(&self.address.text),
        }
    }
}

/// The answering half of a connection, and what a servant may need beside: implemented by the runtime's links.
pub trait Link: Send + Sync {
    /// Answers a call.
    fn answer(&self, id: CallId, answer: Answer<'_>);
    /// A call that wants no answer is over: what it came with is not held any more.
    fn let_go(&self, _id: CallId) {}
    /// Runs a future on the runtime's threads.
    fn spawn(&self, task: BoxFuture<'static, ()>);
    /// Turns references into objects.
    fn resolver(&self) -> Arc<dyn Resolver>;
    /// Who is at the other end.
    fn peer(&self) -> Option<Peer> {
        None
    }
    /// Which endpoint it came in by, for messages.
    fn endpoint(&self) -> Endpoint;
    /// Tells the other end of a signal, and nobody else; where a router is there, everybody behind it who listens.
    ///
    /// # Errors
    /// It does not encode, or the wire carries no signals.
    fn emit(&self, _emission: &Emission<'_>) -> Result<(), Failure> {
        Err(Failure::unsupported("this connection carries no signals"))
    }
    /// A number that no other connection of this process has or had; 0 where it is none.
    fn serial_number(&self) -> u64 {
        0
    }
    /// Whether the connection has ended: nobody reads an answer any more.
    fn is_over(&self) -> bool {
        false
    }
    /// Ends the connection with a goodbye, soon: what was answered goes first. Does not wait for that.
    fn end(&self, _why: &Failure) {}
    /// The way back: objects that the caller serves on this very connection, where the wire carries calls both ways. Which of
    /// them a call is for follows from its interface.
    fn caller(&self) -> Option<Object> {
        None
    }
}
