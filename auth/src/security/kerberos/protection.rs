//! Signing and sealing (RFC 4121 4.2, and MS-RPCE 3.3.1.5.2.2 for DCE/RPC).

use super::context::failed;
use crate::security::{Cause, Options, Protection};
use everywire_gss::{Context, Error, Flags, Part};
use everywire_model::{Failure, Kind};
use std::ops::Range;

/// Sealed octets are a multiple of this in DCE/RPC, as Windows has it.
const DCE_PAD: usize = 16;
/// No signature is longer: two headers, a confounder and the longest checksum.
const MAX_SIGNATURE: usize = 128;

/// A context that stands.
pub(super) struct GssProtection {
    context: Context,
    dce_style: bool,
    /// Whether both sides agreed that messages are signed.
    integrity: bool,
    /// Octets of the signature of a message of which nothing is sealed.
    signing: usize,
    /// Octets of the signature of messages as the options want them.
    signature: usize,
}

impl GssProtection {
    pub(super) fn new(mut context: Context, options: &Options) -> Result<Self, Failure> {
        let length = |error: Error| failed("the length of signatures", &error);
        let integrity = context.agreed().has(Flags::INTEGRITY);
        let signing = context.signature_len().map_err(length)?;
        let signature =
            if options.confidentiality { context.sealing_len().map_err(length)? } else { signing };
        if signature.max(signing) > MAX_SIGNATURE {
            let what = "the signatures of this Kerberos are too long";
            return Err(Failure::unsupported(what));
        }
        Ok(Self { context, dce_style: options.dce_style, integrity, signing, signature })
    }
}

impl Protection for GssProtection {
    fn signature_len(&self) -> usize {
        self.signature
    }

    fn pad(&self) -> usize {
        if self.dce_style { DCE_PAD } else { 1 }
    }

    fn integrity(&self) -> bool {
        self.integrity
    }

    fn confidentiality(&self) -> bool {
        self.context.agreed().has(Flags::CONFIDENTIALITY)
    }

    fn wrap(&mut self, message: &[u8], sealed: bool, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.context.wrap(message, sealed, out).map_err(|error| failed("signing", &error))
    }

    fn unwrap(&mut self, token: &mut [u8], sealed: bool) -> Result<Range<usize>, Failure> {
        self.context.unwrap(token, sealed).map_err(|error| tampered(&error))
    }

    fn protect(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &mut [u8],
    ) -> Result<(), Failure> {
        let (length, failed) =
            (if sealed.is_some() { self.signature } else { self.signing }, |error: Error| {
                failed("signing", &error)
            });
        if signature.len() != length {
            return Err(wrong_length());
        }
        let Some(range) = sealed else { return self.context.sign(message, signature).map_err(failed) };
        self.context.seal(parts(message, range, signature, self.dce_style)?).map_err(failed)
    }

    fn verify(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &[u8],
    ) -> Result<(), Failure> {
        let Some(range) = sealed else { return self.check_mic(message, signature) };
        // The library decrypts the signature too, in place.
        let mut place = [0; MAX_SIGNATURE];
        let copy = place.get_mut(..signature.len()).ok_or_else(wrong_length)?;
        copy.copy_from_slice(signature);
        self.context.unseal(parts(message, range, copy, self.dce_style)?).map_err(|error| tampered(&error))
    }

    fn mic(&mut self, octets: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut code = vec![0; self.signing];
        self.context.sign(octets, &mut code).map_err(|error| failed("signing", &error))?;
        Ok(code)
    }

    fn check_mic(&mut self, octets: &[u8], code: &[u8]) -> Result<(), Failure> {
        self.context.check(octets, code).map_err(|error| tampered(&error))
    }
}

/// The message in the order in which the library wants it: the signature stands last in DCE/RPC, and first otherwise.
fn parts<'m>(
    message: &'m mut [u8],
    range: Range<usize>,
    signature: &'m mut [u8],
    dce_style: bool,
) -> Result<[Part<'m>; 4], Failure> {
    let outside =
        || Failure::new(Kind::Internal, Cause::Here, "the part to be sealed lies outside of the message");
    let (front, behind) = message.split_at_mut_checked(range.end).ok_or_else(outside)?;
    let (front, data) = front.split_at_mut_checked(range.start).ok_or_else(outside)?;
    let (front, data, behind) = (Part::Signed(front), Part::Sealed(data), Part::Signed(behind));
    let signature = Part::Signature(signature);
    Ok(if dce_style { [front, data, behind, signature] } else { [signature, front, data, behind] })
}

#[cold]
fn tampered(error: &Error) -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, format!("the signature of a message is wrong: {error}"))
        .with_hint("something on the way changed it, or the peer lost count of its messages")
}

#[cold]
fn wrong_length() -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, "a signature does not have the length that was agreed")
}
