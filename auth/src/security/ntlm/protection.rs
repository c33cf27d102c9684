//! Signing and sealing with extended session security (MS-NLMP 3.4).

use super::flags;
use super::keys::{self, HmacMd5, Key};
use crate::security::{Cause, Protection};
use everywire_model::{Failure, Kind};
use hmac::Mac;
use rc4::consts::U16;
use rc4::{Rc4, StreamCipher};
use std::ops::Range;
use subtle::ConstantTimeEq;

const SIGNATURE: usize = 16;
const VERSION: [u8; 4] = [1, 0, 0, 0];
/// What stands for a signature where nothing is signed (MS-NLMP 2.2.2.5, `ALWAYS_SIGN`).
const DUMMY: [u8; SIGNATURE] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Both directions of a context.
pub(super) struct NtlmProtection {
    ours: Direction,
    theirs: Direction,
    agreed: u32,
}

impl NtlmProtection {
    pub(super) fn new(session: &Key, agreed: u32, as_acceptor: bool) -> Self {
        Self {
            ours: Direction::new(session, agreed, as_acceptor),
            theirs: Direction::new(session, agreed, !as_acceptor),
            agreed,
        }
    }
}

impl Protection for NtlmProtection {
    fn signature_len(&self) -> usize {
        SIGNATURE
    }

    fn pad(&self) -> usize {
        1
    }

    fn integrity(&self) -> bool {
        self.agreed & flags::SIGN != 0
    }

    fn confidentiality(&self) -> bool {
        self.agreed & flags::SEAL != 0
    }

    fn protect(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &mut [u8],
    ) -> Result<(), Failure> {
        let place: &mut [u8; SIGNATURE] = signature.try_into().map_err(|_| wrong_length())?;
        let digest = self.ours.digest(message);
        if let Some(range) = sealed {
            self.ours.cipher.apply_keystream(message.get_mut(range).ok_or_else(outside)?);
        }
        *place = self.ours.signature(digest);
        Ok(())
    }

    fn verify(
        &mut self,
        message: &mut [u8],
        sealed: Option<Range<usize>>,
        signature: &[u8],
    ) -> Result<(), Failure> {
        let signature: &[u8; SIGNATURE] = signature.try_into().map_err(|_| wrong_length())?;
        if let Some(range) = sealed {
            self.theirs.cipher.apply_keystream(message.get_mut(range).ok_or_else(outside)?);
        }
        let digest = self.theirs.digest(message);
        let expected = self.theirs.signature(digest);
        if bool::from(expected.ct_eq(signature)) { Ok(()) } else { Err(tampered()) }
    }

    // SPNEGO's codes count as messages, but the cipher streams of the messages afterwards start anew (MS-SPNG 3.2.5.1).
    fn mic(&mut self, message: &[u8]) -> Result<Vec<u8>, Failure> {
        if !self.integrity() {
            return Ok(DUMMY.to_vec());
        }
        let digest = self.ours.digest(message);
        let code = self.ours.signature(digest).to_vec();
        self.ours.rewind();
        Ok(code)
    }

    fn check_mic(&mut self, message: &[u8], code: &[u8]) -> Result<(), Failure> {
        if !self.integrity() {
            return Ok(());
        }
        let digest = self.theirs.digest(message);
        let expected = self.theirs.signature(digest);
        self.theirs.rewind();
        if bool::from(expected.as_slice().ct_eq(code)) { Ok(()) } else { Err(tampered()) }
    }
}

/// What one side sends: its keys, and how far it is. Both sides compute both directions.
struct Direction {
    /// HMAC with its key taken in, so that a message costs no more than its own blocks.
    sign: HmacMd5,
    /// Kept to begin the cipher anew after SPNEGO's codes.
    seal_key: Key,
    /// Runs on from message to message.
    cipher: Rc4<U16>,
    /// Signatures are encrypted too.
    key_exchange: bool,
    /// Of the next message.
    number: u32,
}

impl Direction {
    fn new(session: &Key, agreed: u32, by_acceptor: bool) -> Self {
        let seal_key = keys::seal_key(session, agreed, by_acceptor);
        Self {
            sign: keys::hmac_state(&keys::sign_key(session, by_acceptor)),
            cipher: keys::rc4(&seal_key),
            seal_key,
            key_exchange: agreed & flags::KEY_EXCHANGE != 0,
            number: 0,
        }
    }

    /// The first half of the code over the number and the message.
    fn digest(&self, message: &[u8]) -> [u8; 8] {
        let mut state = self.sign.clone();
        state.update(&self.number.to_le_bytes());
        state.update(message);
        let code: [u8; 16] = state.finalize().into_bytes().into();
        *code.first_chunk().unwrap_or(&[0; 8])
    }

    /// Advances to the next message.
    fn signature(&mut self, mut digest: [u8; 8]) -> [u8; SIGNATURE] {
        if self.key_exchange {
            self.cipher.apply_keystream(&mut digest);
        }
        let number = self.number.to_le_bytes();
        self.number = self.number.wrapping_add(1);
        let mut out = [0; SIGNATURE];
        for (place, byte) in out.iter_mut().zip(VERSION.into_iter().chain(digest).chain(number)) {
            *place = byte;
        }
        out
    }

    /// Begins the cipher anew; the number goes on.
    fn rewind(&mut self) {
        self.cipher = keys::rc4(&self.seal_key);
    }
}

#[cold]
fn tampered() -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, "the signature of a message is wrong")
        .with_hint("something on the way changed it, or the peer lost count of its messages")
}

#[cold]
fn wrong_length() -> Failure {
    Failure::new(Kind::Violation, Cause::Peer, "a signature of NTLM has 16 octets")
}

#[cold]
fn outside() -> Failure {
    Failure::new(Kind::Internal, Cause::Here, "the part to be sealed lies outside of the message")
}
