//! Contexts that stand: signing and sealing (RFC 4121 4.2).
//!
//! A `Context` owns the library's handle and releases it when it is dropped. It is made empty, is
//! filled by the exchange of tokens, and handed out when both sides agree. Messages are protected in
//! two forms: pieces in place with the signature apart (`seal`, `unseal`, `sign`, `check`: DCE/RPC),
//! and one token that holds the message (`wrap`, `unwrap`: NegotiateStream).
//!
//! Invariants: every call of the library here gets pieces that live until it returns, with the lengths
//! that they have. What the library says that it wrote is compared with the room it was given
//! (`same_length`), and a message that it points to has to lie within its token. A call that was to
//! seal and did not is an error, and not a message in the clear. The library counts messages: a check
//! that failed leaves the context of no use.

use crate::abi::{
    Buffer, Functions, Handle, IOV_DATA, IOV_HEADER, IOV_MIC, IOV_SIGN_ONLY, IOV_STREAM, Iov, SESSION_KEY,
};
use crate::exchange::Flags;
use crate::library::OwnedSet;
use crate::name::Name;
use crate::status::{Error, Reason, Status};
use std::ffi::c_int;
use std::fmt;
use std::ops::Range;
use std::ptr::null_mut;

/// A context that stands.
pub struct Context {
    /// The library, which stays loaded.
    pub(crate) functions: &'static Functions,
    pub(crate) handle: Handle,
    /// What both sides agreed on; empty until the exchange has ended.
    pub(crate) agreed: Flags,
}

// SAFETY: the library keeps no reference to the thread that made it, and only its owner uses it.
unsafe impl Send for Context {}

/// A piece of a message that is sealed.
pub enum Part<'m> {
    /// Signed.
    Signed(&'m mut [u8]),
    /// Signed and encrypted.
    Sealed(&'m mut [u8]),
    /// The signature, which the pieces are in front of in DCE style, and behind otherwise.
    Signature(&'m mut [u8]),
}

impl Context {
    /// A context that the exchange has still to fill.
    pub(crate) fn empty(functions: &'static Functions) -> Self {
        Self { functions, handle: null_mut(), agreed: Flags::NONE }
    }

    /// What both sides agreed on.
    pub fn agreed(&self) -> Flags {
        self.agreed
    }

    /// Who the initiator is: `user@REALM`.
    ///
    /// # Errors
    ///
    /// It cannot be told.
    pub fn initiator(&self) -> Result<String, Error> {
        let mut name = Name::empty(self.functions);
        let mut minor = 0;
        // SAFETY: the handle is the library's; the name is released by its owner. What is not wanted may be null.
        let major = unsafe {
            (self.functions.gss_inquire_context)(
                &raw mut minor,
                self.handle,
                &raw mut name.handle,
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
            )
        };
        Status { major, minor }.check(self.functions)?;
        name.text()
    }

    /// The key that both sides share.
    ///
    /// # Errors
    ///
    /// The library does not tell it.
    pub fn session_key(&self) -> Result<Vec<u8>, Error> {
        let mut told = OwnedSet::new(self.functions);
        let mut minor = 0;
        // SAFETY: the handle is the library's; the answer is released by its owner.
        let major = unsafe {
            (self.functions.gss_inquire_sec_context_by_oid)(
                &raw mut minor,
                self.handle,
                &raw const SESSION_KEY,
                &raw mut told.set,
            )
        };
        Status { major, minor }.check(self.functions)?;
        Ok(told.first().unwrap_or_default().to_vec())
    }

    /// Octets of the signature of a message of which nothing is sealed.
    ///
    /// # Errors
    ///
    /// The context does not sign.
    pub fn signature_len(&mut self) -> Result<usize, Error> {
        let mut parts = [iov(IOV_DATA, &mut []), Iov { kind: IOV_MIC, buffer: Buffer::EMPTY }];
        let mut minor = 0;
        // SAFETY: it writes lengths only.
        let major = unsafe {
            (self.functions.gss_get_mic_iov_length)(
                &raw mut minor,
                self.handle,
                0,
                parts.as_mut_ptr(),
                count(&parts),
            )
        };
        Status { major, minor }.check(self.functions)?;
        Ok(parts[1].buffer.length)
    }

    /// Octets of the signature of a message that is sealed in part.
    ///
    /// # Errors
    ///
    /// The context does not seal.
    pub fn sealing_len(&mut self) -> Result<usize, Error> {
        let empty = || Buffer::EMPTY;
        let mut parts = [
            Iov { kind: IOV_SIGN_ONLY, buffer: empty() },
            Iov { kind: IOV_DATA, buffer: empty() },
            Iov { kind: IOV_SIGN_ONLY, buffer: empty() },
            Iov { kind: IOV_HEADER, buffer: empty() },
        ];
        let mut minor = 0;
        // SAFETY: it writes lengths only.
        let major = unsafe {
            (self.functions.gss_wrap_iov_length)(
                &raw mut minor,
                self.handle,
                1,
                0,
                null_mut(),
                parts.as_mut_ptr(),
                count(&parts),
            )
        };
        Status { major, minor }.check(self.functions)?;
        Ok(parts[3].buffer.length)
    }

    /// Signs a message.
    ///
    /// # Errors
    ///
    /// The context is too old, or the place for the signature has not [`signature_len`](Self::signature_len).
    pub fn sign(&mut self, message: &[u8], signature: &mut [u8]) -> Result<(), Error> {
        let length = signature.len();
        let mut parts = [Iov { kind: IOV_DATA, buffer: Buffer::reading(message) }, iov(IOV_MIC, signature)];
        let mut minor = 0;
        // SAFETY: the pieces live until it returns; it writes to the signature only, and not more than there is room for.
        let major = unsafe {
            (self.functions.gss_get_mic_iov)(
                &raw mut minor,
                self.handle,
                0,
                parts.as_mut_ptr(),
                count(&parts),
            )
        };
        Status { major, minor }.check(self.functions)?;
        same_length(parts[1].buffer.length, length)
    }

    /// Checks the signature of a message.
    ///
    /// # Errors
    ///
    /// It is wrong, came before, or it is not the next one's turn.
    pub fn check(&mut self, message: &[u8], signature: &[u8]) -> Result<(), Error> {
        let mut parts = [
            Iov { kind: IOV_DATA, buffer: Buffer::reading(message) },
            Iov { kind: IOV_MIC, buffer: Buffer::reading(signature) },
        ];
        let mut minor = 0;
        // SAFETY: the pieces live until it returns, and it writes to none of them.
        let major = unsafe {
            (self.functions.gss_verify_mic_iov)(
                &raw mut minor,
                self.handle,
                null_mut(),
                parts.as_mut_ptr(),
                count(&parts),
            )
        };
        Status { major, minor }.check(self.functions).map(|_| ())
    }

    /// Signs a message and encrypts part of it, all in place.
    ///
    /// # Errors
    ///
    /// The context is too old, or the place for the signature has not [`sealing_len`](Self::sealing_len).
    pub fn seal<const N: usize>(&mut self, parts: [Part<'_>; N]) -> Result<(), Error> {
        let mut iovs = parts.map(Part::iov);
        let lengths = iovs.each_ref().map(|iov| iov.buffer.length);
        let (mut minor, mut sealed) = (0, 0);
        // SAFETY: the pieces are exclusively ours and live until it returns; it writes within them.
        let major = unsafe {
            (self.functions.gss_wrap_iov)(
                &raw mut minor,
                self.handle,
                1,
                0,
                &raw mut sealed,
                iovs.as_mut_ptr(),
                count(&iovs),
            )
        };
        Status { major, minor }.check(self.functions)?;
        if sealed == 0 {
            return Err(Error::new(Reason::Other, "the context does not encrypt"));
        }
        iovs.iter().zip(lengths).try_for_each(|(iov, length)| same_length(iov.buffer.length, length))
    }

    /// Appends to `out` a token that holds the message, signed and, if `sealed`, encrypted.
    ///
    /// # Errors
    ///
    /// The context is too old, or does not encrypt.
    pub fn wrap(&mut self, message: &[u8], sealed: bool, out: &mut Vec<u8>) -> Result<(), Error> {
        let conf = c_int::from(sealed);
        let (start, mut minor) = (out.len(), 0);
        let mut parts = [
            Iov { kind: IOV_HEADER, buffer: Buffer::EMPTY },
            Iov { kind: IOV_DATA, buffer: Buffer::reading(message) },
        ];
        let pieces = count(&parts);
        let length = self.functions.gss_wrap_iov_length;
        // SAFETY: it writes lengths only.
        let major =
            unsafe { length(&raw mut minor, self.handle, conf, 0, null_mut(), parts.as_mut_ptr(), pieces) };
        Status { major, minor }.check(self.functions)?;
        let header = parts[0].buffer.length;
        out.resize(start + header, 0);
        out.extend_from_slice(message);
        let (signature, data) = out.get_mut(start..).unwrap_or_default().split_at_mut(header);
        let mut parts = [iov(IOV_HEADER, signature), iov(IOV_DATA, data)];
        let (wrap, mut done) = (self.functions.gss_wrap_iov, 0);
        // SAFETY: the pieces are exclusively ours and live until it returns; it writes within them.
        let major =
            unsafe { wrap(&raw mut minor, self.handle, conf, 0, &raw mut done, parts.as_mut_ptr(), pieces) };
        Status { major, minor }.check(self.functions)?;
        if sealed && done == 0 {
            return Err(Error::new(Reason::Other, "the context does not encrypt"));
        }
        same_length(parts[0].buffer.length, header)
    }

    /// Checks such a token in place, and yields where in it the message stands.
    ///
    /// # Errors
    ///
    /// The token is none, came before, or it is not the next one's turn; or nothing was encrypted although it is `sealed`.
    pub fn unwrap(&mut self, token: &mut [u8], sealed: bool) -> Result<Range<usize>, Error> {
        let mut parts = [iov(IOV_STREAM, token), Iov { kind: IOV_DATA, buffer: Buffer::EMPTY }];
        let base = parts[0].buffer.value as usize;
        let whole = parts[0].buffer.length;
        let (mut minor, mut conf) = (0, 0);
        // SAFETY: the token is exclusively ours and lives until it returns. It writes within it, and points the second piece into it,
        // as nothing may be allocated for that.
        let major = unsafe {
            (self.functions.gss_unwrap_iov)(
                &raw mut minor,
                self.handle,
                &raw mut conf,
                null_mut(),
                parts.as_mut_ptr(),
                count(&parts),
            )
        };
        Status { major, minor }.check(self.functions)?;
        if sealed && conf == 0 {
            return Err(Error::new(Reason::Damaged, "the message was not encrypted"));
        }
        let Buffer { length, value } = parts[1].buffer;
        let start = (value as usize).wrapping_sub(base);
        let end = start.checked_add(length).filter(|end| *end <= whole);
        let end = end.ok_or_else(|| Error::new(Reason::Other, "the message lies outside of its token"))?;
        Ok(start..end)
    }

    /// Decrypts a message in place, the signature included, and checks it.
    ///
    /// # Errors
    ///
    /// The signature is wrong, came before, or it is not the next one's turn; or nothing was encrypted.
    pub fn unseal<const N: usize>(&mut self, parts: [Part<'_>; N]) -> Result<(), Error> {
        let mut iovs = parts.map(Part::iov);
        let (mut minor, mut sealed) = (0, 0);
        // SAFETY: as for sealing.
        let major = unsafe {
            (self.functions.gss_unwrap_iov)(
                &raw mut minor,
                self.handle,
                &raw mut sealed,
                null_mut(),
                iovs.as_mut_ptr(),
                count(&iovs),
            )
        };
        Status { major, minor }.check(self.functions)?;
        if sealed == 0 {
            return Err(Error::new(Reason::Damaged, "the message was not encrypted"));
        }
        Ok(())
    }
}

impl Part<'_> {
    fn iov(self) -> Iov {
        match self {
            Self::Signed(bytes) => iov(IOV_SIGN_ONLY, bytes),
            Self::Sealed(bytes) => iov(IOV_DATA, bytes),
            Self::Signature(bytes) => iov(IOV_HEADER, bytes),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it came from the library, and is not used afterwards; the peer gets no token about it.
            unsafe { (self.functions.gss_delete_sec_context)(&mut 0, &raw mut self.handle, null_mut()) };
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({:?})", self.agreed)
    }
}

/// A piece that the library may write to.
fn iov(kind: u32, bytes: &mut [u8]) -> Iov {
    Iov { kind, buffer: Buffer { length: bytes.len(), value: bytes.as_mut_ptr().cast() } }
}

/// There are few of them.
fn count(parts: &[Iov]) -> c_int {
    parts.len() as c_int
}

/// The library used as much room as it was given: a signature of another length would not be read by
/// the peer.
fn same_length(used: usize, given: usize) -> Result<(), Error> {
    if used == given {
        return Ok(());
    }
    Err(Error::new(Reason::Other, format!("a signature has {used} octets, and there is room for {given}")))
}
