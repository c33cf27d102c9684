//! Signing and sealing (RFC 4121 4.2, and MS-RPCE 3.3.1.5.2.2 for DCE/RPC).

use crate::security::{Cause, Options, Protection};
use everywire_model::{Failure, Kind};
use libgssapi::context::{CtxFlags, SecurityContext};
use libgssapi::util::{GssIov, GssIovFake, GssIovType};
use std::ops::Range;

/// Sealed octets are a multiple of this in DCE/RPC, as Windows has it.
const DCE_PAD: usize = 16;
/// No signature is longer: two headers, a confounder and the longest checksum.
const MAX_SIGNATURE: usize = 128;

/// A context that stands.
pub(super) struct GssProtection<C> {
    context: C,
    dce_style: bool,
    integrity: bool,
    signature: usize,
}

impl<C: SecurityContext> GssProtection<C> {
    pub(super) fn new(mut context: C, agreed: CtxFlags, options: &Options) -> Result<Self, Failure> {
        let mut parts = [GssIovType::SignOnly, GssIovType::Data, GssIovType::SignOnly, GssIovType::Header]
            .map(GssIovFake::new);
        context
            .wrap_iov_length(options.confidentiality, &mut parts)
            .map_err(|error| failed("the length of signatures", error))?;
        let [.., header] = &parts;
        let signature = header.len();
        if signature > MAX_SIGNATURE {
            return Err(Failure::new(
                Kind::Unsupported,
                Cause::Here,
                "the signatures of this Kerberos are too long",
            ));
        }
        let integrity = agreed.contains(CtxFlags::GSS_C_INTEG_FLAG);
        Ok(Self { context, dce_style: options.dce_style, integrity, signature })
    }
}

impl<C: SecurityContext + Send> Protection for GssProtection<C> {
    fn signature_len(&self) -> usize {
        self.signature
    }

    fn pad(&self) -> usize {
        if self.dce_style { DCE_PAD } else { 1 }
    }

    fn integrity(&self) -> bool {
        self.integrity
    }

    fn protect(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &mut [u8],
    ) -> Result<(), Failure> {
        let Some(range) = sealed else {
            let code = self.mic(message)?;
            return match code.len() == signature.len() {
                true => {
                    signature.copy_from_slice(&code);
                    Ok(())
                }
                false => Err(wrong_length()),
            };
        };
        if signature.len() != self.signature {
            return Err(wrong_length());
        }
        let mut parts = parts(message, range, signature, self.dce_style)?;
        self.context.wrap_iov(true, &mut parts).map_err(|error| failed("sealing", error))
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
        let mut parts = parts(message, range, copy, self.dce_style)?;
        self.context.unwrap_iov(&mut parts).map_err(tampered)
    }

    fn mic(&mut self, octets: &[u8]) -> Result<Vec<u8>, Failure> {
        self.context.get_mic(octets).map(|code| code.to_vec()).map_err(|error| failed("signing", error))
    }

    fn check_mic(&mut self, octets: &[u8], code: &[u8]) -> Result<(), Failure> {
        self.context.verify_mic(octets, code).map_err(tampered)
    }
}

/// The message in the order in which the library wants it: the signature stands last in DCE/RPC, and first otherwise.
fn parts<'m>(
    message: &'m mut [u8],
    range: Range<usize>,
    signature: &'m mut [u8],
    dce_style: bool,
) -> Result<[GssIov<'m>; 4], Failure> {
    let outside =
        || Failure::new(Kind::Internal, Cause::Here, "the part to be sealed lies outside of the message");
    let (front, behind) = message.split_at_mut_checked(range.end).ok_or_else(outside)?;
    let (front, data) = front.split_at_mut_checked(range.start).ok_or_else(outside)?;
    let header = GssIov::new(GssIovType::Header, signature);
    let front = GssIov::new(GssIovType::SignOnly, front);
    let data = GssIov::new(GssIovType::Data, data);
    let behind = GssIov::new(GssIovType::SignOnly, behind);
    Ok(if dce_style { [front, data, behind, header] } else { [header, front, data, behind] })
}

/// Kerberos did not do its part.
#[cold]
pub(super) fn failed(what: &str, error: libgssapi::error::Error) -> Failure {
    Failure::new(Kind::Refused, Cause::Here, format!("Kerberos failed at {what}: {error}"))
}

#[cold]
fn tampered(error: libgssapi::error::Error) -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, format!("the signature of a message is wrong: {error}"))
        .with_hint("something on the way changed it, or the peer lost count of its messages")
}

#[cold]
fn wrong_length() -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, "a signature does not have the length that was agreed")
}
