//! The exchange of tokens.

use crate::abi::{Buffer, KERBEROS};
use crate::context::Context;
use crate::credential::Credential;
use crate::library::LibraryBuffer;
use crate::name::Name;
use crate::status::{Error, Status};
use std::ptr::{null, null_mut};

/// What a context is asked for, or has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The acceptor proves itself too.
    pub const MUTUAL: Self = Self(2);
    /// Messages that come again are noticed.
    pub const REPLAY: Self = Self(4);
    /// Messages out of their order are noticed.
    pub const SEQUENCE: Self = Self(8);
    /// Messages can be sealed.
    pub const CONFIDENTIALITY: Self = Self(16);
    /// Messages can be signed.
    pub const INTEGRITY: Self = Self(32);
    /// Three legs, no frames around the tokens, signatures behind the messages (MS-RPCE 3.3.1.5.2.2).
    pub const DCE_STYLE: Self = Self(0x1000);

    /// Both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Both, if so.
    #[must_use]
    pub const fn with_if(self, condition: bool, other: Self) -> Self {
        if condition { self.with(other) } else { self }
    }

    /// Whether all of the other's are among these.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What comes of a token.
pub enum Step<E> {
    /// This is to be sent, and another token is waited for.
    More(Vec<u8>, E),
    /// This is to be sent, if it is not empty, and the context stands.
    Done(Vec<u8>, Context),
}

/// An exchange, seen by the side that wants in.
pub struct Initiation {
    context: Context,
    credential: Credential,
    target: Name,
    wanted: Flags,
    begun: bool,
}

impl Initiation {
    /// An exchange with a service.
    pub fn new(credential: Credential, target: Name, wanted: Flags) -> Self {
        let context = Context::empty(credential.functions);
        Self { context, credential, target, wanted, begun: false }
    }

    /// Takes the acceptor's token, the first time none. The first step asks the key distribution centre for a ticket.
    ///
    /// # Errors
    ///
    /// There is no ticket for the service, or the token is not right. The exchange is over.
    pub fn step(mut self, token: &[u8]) -> Result<Step<Self>, Error> {
        let functions = self.context.functions;
        let mut out = LibraryBuffer::new(functions);
        let (mut minor, mut agreed) = (0, 0);
        let given = Buffer::reading(token);
        let given = if std::mem::replace(&mut self.begun, true) { &raw const given } else { null() };
        // SAFETY: all that is pointed to lives until it returns, and the handles are the library's own; the context is null
        // the first time, then what the library made of it. No channel bindings; what is not wanted may be null.
        let major = unsafe {
            (functions.gss_init_sec_context)(
                &raw mut minor,
                self.credential.handle,
                &raw mut self.context.handle,
                self.target.handle,
                &raw const KERBEROS,
                self.wanted.0,
                0,
                null(),
                given,
                null_mut(),
                &raw mut out.buffer,
                &raw mut agreed,
                null_mut(),
            )
        };
        let more = Status { major, minor }.check(functions)?;
        let token = out.bytes().to_vec();
        if more {
            return Ok(Step::More(token, self));
        }
        self.context.agreed = Flags(agreed);
        Ok(Step::Done(token, self.context))
    }
}

/// An exchange, seen by the side that lets in.
pub struct Acceptance {
    context: Context,
    credential: Credential,
}

impl Acceptance {
    /// An exchange with whoever comes.
    pub fn new(credential: Credential) -> Self {
        Self { context: Context::empty(credential.functions), credential }
    }

    /// Takes the initiator's token.
    ///
    /// # Errors
    ///
    /// The token is not right: it is for another service, too old, came before, or proves nothing. The exchange is over.
    pub fn step(mut self, token: &[u8]) -> Result<Step<Self>, Error> {
        let functions = self.context.functions;
        let mut out = LibraryBuffer::new(functions);
        let (mut minor, mut agreed) = (0, 0);
        let given = Buffer::reading(token);
        // SAFETY: as for the initiator.
        let major = unsafe {
            (functions.gss_accept_sec_context)(
                &raw mut minor,
                &raw mut self.context.handle,
                self.credential.handle,
                &raw const given,
                null(),
                null_mut(),
                null_mut(),
                &raw mut out.buffer,
                &raw mut agreed,
                null_mut(),
                null_mut(),
            )
        };
        let more = Status { major, minor }.check(functions)?;
        let token = out.bytes().to_vec();
        if more {
            return Ok(Step::More(token, self));
        }
        self.context.agreed = Flags(agreed);
        Ok(Step::Done(token, self.context))
    }
}
