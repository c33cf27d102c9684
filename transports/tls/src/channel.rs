//! One connection's TLS: a state machine without I/O, for both sides.
//!
//! States: *handshake*, as long as the library says that it is handshaking: the caller's bytes wait, and what
//! comes is counted; *established*: the peer is known, and bytes go and come encrypted; *failed*, for good,
//! after the first error of `receive`: nothing more is taken, and an alert that says why may still have to
//! go. `close` leads from any of them to a goodbye, which is sent as the rest is.
//!
//! Invariants.
//! * After each `receive` the caller calls `send` or `flush`, even when it failed, so that the alert leaves
//!   before the connection ends.
//! * All that came is taken: nothing stays in `input` but after a failure, and what comes behind the peer's
//!   goodbye is thrown away.
//! * No byte of the caller goes before the peer is established, and no identity is told before that, or where
//!   no certificate was checked.
//! * What is no TLS at all is known by its first two octets, before the library sees it; the answer is an
//!   alert that any TLS understands.
//! * A failure says who is to blame and, for certificates, what to do about it (`failed`).
//!
//! Bounds. `MAX_HANDSHAKE` octets before the peer is known; `PIECE` octets are encrypted at once. Records and
//! alerts: RFC 8446, sections 5 and 6; checking names and chains is the library's, or that of `verify`.

use crate::violations::ProtocolError;
use crate::{ClientSettings, ServerSettings};
use bytes::{Buf, BytesMut};
use everywire_model::{Failure, Initiator, Kind, SendBuffer};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConnection, Connection, Error, ServerConnection};
use sha1_smol::Sha1;
use std::io::{Read, Write};
use std::sync::Arc;

/// A fatal alert, `unexpected_message`, before there are keys (RFC 8446, section 6): the library has none for what is no record.
const UNEXPECTED: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 10];

/// Octets that are encrypted at once.
const PIECE: usize = 256 << 10;

/// Octets that a peer may send until it is known who it is: a chain of certificates, twice over.
const MAX_HANDSHAKE: u64 = 256 << 10;

/// The first octet of what a peer says that speaks TLS: a record of the handshake, or an alert (RFC 8446, section 5.1).
const FIRST: [u8; 2] = [0x15, 0x16];

/// A state machine: [`receive`](Self::receive) takes what came, [`send`](Self::send) yields what has to go.
pub struct Channel {
    /// The library's side of it.
    tls: Connection,
    /// Of a client: nobody's certificate is checked.
    insecure: bool,
    /// The name that the server's certificate was checked against, or one of the client's.
    peer: Option<String>,
    /// What came during the handshake.
    heard: u64,
    /// Whether receiving has failed: nothing more is taken.
    failed: bool,
    /// The peer speaks something else, and is to be told that TLS is spoken here.
    owes_alert: bool,
}

impl Channel {
    /// The side that connects: asks for `host`, and takes a certificate of `name` only. Either may be an address.
    ///
    /// # Errors
    ///
    /// A name is none.
    pub fn client(settings: &ClientSettings, host: &str, name: &str) -> Result<Self, Failure> {
        // The name is what is both asked for and checked: a server that has several certificates shows the right one.
        let wanted = if name.is_empty() { host } else { name };
        settings.check_name(wanted)?;
        let server = ServerName::try_from(wanted.to_owned())
            .map_err(|error| Failure::new(Kind::Internal, Initiator::Here, error.to_string()))?;
        let mut tls =
            ClientConnection::new(Arc::clone(&settings.config), server).map_err(|error| failed(&error))?;
        tls.set_buffer_limit(None);
        let (insecure, peer) = (settings.is_insecure(), Some(wanted.to_owned()));
        Ok(Self::over(Connection::Client(tls), insecure, peer))
    }

    /// The side that accepts.
    ///
    /// # Errors
    ///
    /// The library cannot begin.
    pub fn server(settings: &ServerSettings) -> Result<Self, Failure> {
        let mut tls = ServerConnection::new(Arc::clone(&settings.config)).map_err(|error| failed(&error))?;
        tls.set_buffer_limit(None);
        Ok(Self::over(Connection::Server(tls), false, None))
    }

    fn over(tls: Connection, insecure: bool, peer: Option<String>) -> Self {
        Self { tls, insecure, peer, heard: 0, failed: false, owes_alert: false }
    }

    /// Takes all that came, and appends to `plain` what it says. [`send`](Self::send) has to be called afterwards, even when this
    /// fails: an alert may have to go.
    ///
    /// # Errors
    ///
    /// The peer is not who it should be, does not let this side in, or what came was changed on its way. Nothing more may be
    /// received.
    pub fn receive(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        if self.failed {
            return Err(failed(&Error::General("it has failed before".to_owned())));
        }
        let taken = self.take(input, plain);
        self.failed = taken.is_err();
        taken
    }

    /// What `receive` does, without remembering how it went.
    fn take(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        if self.heard == 0
            && let Some(first) = input.first()
            && (!FIRST.contains(first) || input.get(1).is_some_and(|major| *major != 3))
        {
            let failure = ProtocolError::not_tls(input, matches!(self.tls, Connection::Client(_)));
            input.clear();
            self.owes_alert = true;
            return Err(failure);
        }
        while !input.is_empty() {
            if self.tls.is_handshaking() && self.heard > MAX_HANDSHAKE {
                let what = "octets of a handshake of TLS";
                return Err(Failure::over_limit(Initiator::Peer, what, self.heard, MAX_HANDSHAKE));
            }
            let taken = self.tls.read_tls(&mut input.as_ref()).map_err(|error| broken(&error))?;
            if taken == 0 {
                // The peer has said goodbye: what comes behind that is nobody's.
                input.clear();
                break;
            }
            input.advance(taken);
            self.heard = self.heard.saturating_add(taken as u64);
            let state = self.tls.process_new_packets().map_err(|error| failed(&error))?;
            let ready = state.plaintext_bytes_to_read();
            if ready > 0 {
                let start = plain.len();
                plain.resize(start + ready, 0);
                let place = plain.get_mut(start..).unwrap_or_default();
                self.tls.reader().read_exact(place).map_err(|error| broken(&error))?;
            }
        }
        if self.peer.is_none() && !self.tls.is_handshaking() {
            self.peer = self.tls.peer_certificates().and_then(|shown| shown.first()).map(name_of);
        }
        Ok(())
    }

    /// Puts into `out` what has to go: the handshake's messages, and once it is over all of `plain`, encrypted. Until then `plain` is
    /// left alone.
    ///
    /// # Errors
    ///
    /// The keys are used up.
    pub fn send(&mut self, plain: &mut SendBuffer, out: &mut SendBuffer) -> Result<(), Failure> {
        if self.is_established() {
            let sealed = self.seal(plain, out)?;
            plain.consume(sealed);
        }
        self.flush(out)
    }

    /// Puts all of `plain` into `out`, encrypted, and leaves it where it is. Returns how many bytes that were. To be called once
    /// the peer is known.
    pub(crate) fn seal(&mut self, plain: &SendBuffer, out: &mut SendBuffer) -> Result<usize, Failure> {
        let mut sealed = 0;
        for slice in plain.slices(usize::MAX, usize::MAX) {
            for piece in slice.chunks(PIECE) {
                self.tls.writer().write_all(piece).map_err(|error| broken(&error))?;
                sealed += piece.len();
                self.flush(out)?;
            }
        }
        Ok(sealed)
    }

    /// Puts into `out` what this layer itself has to say.
    pub(crate) fn flush(&mut self, out: &mut SendBuffer) -> Result<(), Failure> {
        if std::mem::take(&mut self.owes_alert) {
            out.flat().extend_from_slice(&UNEXPECTED);
        }
        while self.tls.wants_write() {
            self.tls.write_tls(out.flat()).map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    /// Says goodbye; [`send`](Self::send) yields how.
    pub fn close(&mut self) {
        self.tls.send_close_notify();
    }

    /// Whether the peer is known, and bytes of the caller may go.
    pub fn is_established(&self) -> bool {
        !self.failed && !self.tls.is_handshaking()
    }

    /// Bytes that it may hold of a handshake that is not over.
    pub(crate) fn held(&self) -> usize {
        if self.tls.is_handshaking() { usize::try_from(self.heard).unwrap_or(usize::MAX) } else { 0 }
    }

    /// Who the peer proved to be: to a client, the name it asked for; to a server, `thumbprint` and the SHA-1 of the client's
    /// certificate in hexadecimal, whatever names that has. `None` before the handshake is over, and where the certificate
    /// was not checked.
    pub fn peer_identity(&self) -> Option<&str> {
        self.peer.as_deref().filter(|_| self.is_established() && !self.insecure)
    }

    /// How it did, for people.
    pub fn authentication(&self) -> &'static str {
        match &self.tls {
            Connection::Client(_) if self.insecure => "TLS, certificate not checked",
            Connection::Client(_) => "TLS certificate",
            Connection::Server(_) if self.peer.is_some() => "TLS client certificate",
            Connection::Server(_) => "TLS, client unknown",
        }
    }
}

/// Names in a client's certificate are its issuer's choice, and no two issuers need agree; the certificate itself cannot be
/// another's.
fn name_of(certificate: &CertificateDer<'_>) -> String {
    format!("thumbprint {}", Sha1::from(certificate).digest())
}

/// An error as text. Of what the library below it finds in certificates it has the names only.
#[cold]
pub(crate) fn told(error: &Error) -> String {
    let Error::InvalidCertificate(CertificateError::Other(found)) = error else { return error.to_string() };
    match found.0.to_string().as_str() {
        "UnsupportedCertVersion" => {
            "the certificate is of version 1 of X.509, and 3 is needed (RFC 5280, 4.1.2.1): make it anew with an extension, such as subjectAltName"
                .to_owned()
        }
        other => format!("the certificate is not as it should be ({other})"),
    }
}

#[cold]
fn failed(error: &Error) -> Failure {
    let refused = |by, what: String| Failure::new(Kind::Refused, by, what);
    match error {
        // An authority's certificate as a server's own: those that people sign themselves are mostly so.
        Error::InvalidCertificate(why)
            if *why == CertificateError::UnknownIssuer
                || format!("{why:?}").contains("CaUsedAsEndEntity") =>
        {
            let what = "nobody who is trusted here vouches for the peer's certificate";
            refused(Initiator::Here, what.to_owned())
                .with_hint("name the file of its authority, or of the certificate itself, by ca=FILE")
        }
        Error::InvalidCertificate(
            why @ (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }),
        ) => refused(Initiator::Here, format!("the server's certificate is of another name: {why}"))
            .with_hint("call the server by a name that is in its certificate, or say that name by identity="),
        Error::InvalidCertificate(why) => {
            let why = told(&Error::InvalidCertificate(why.clone()));
            refused(Initiator::Here, format!("the peer's certificate is not taken: {why}"))
        }
        // With TLS 1.3 a client learns this behind its own part of the handshake, when calls may have left (RFC 8446, 4.4.2.4).
        Error::AlertReceived(AlertDescription::CertificateRequired) => refused(
            Initiator::Peer,
            "the peer ends TLS: CertificateRequired: it takes only clients that show a certificate"
                .to_owned(),
        )
        .with_hint("name one that it takes, and its key, by cert=FILE and key=FILE in the address"),
        Error::AlertReceived(alert) if *alert != AlertDescription::InternalError => {
            refused(Initiator::Peer, format!("the peer ends TLS: {alert:?}"))
        }
        Error::NoCertificatesPresented => {
            refused(Initiator::Peer, "the client shows no certificate, and this side asks for one".to_owned())
        }
        _ => Failure::new(Kind::Violation, Initiator::Peer, format!("TLS: {error}")),
    }
}

#[cold]
fn broken(error: &std::io::Error) -> Failure {
    Failure::new(Kind::Violation, Initiator::Peer, format!("TLS: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::OtherError;

    #[test]
    fn a_client_that_has_to_show_a_certificate_is_told_how() {
        let failure = failed(&Error::AlertReceived(AlertDescription::CertificateRequired));
        assert_eq!(failure.kind(), Kind::Refused);
        assert!(failure.hint().is_some_and(|hint| hint.contains("cert=FILE")), "{failure:?}");
    }

    #[test]
    fn what_is_wrong_with_a_certificate_is_told_in_words() {
        let found = |name: &str| {
            let found = OtherError(Arc::new(std::io::Error::other(name.to_owned())));
            Error::InvalidCertificate(CertificateError::Other(found))
        };
        assert!(told(&found("UnsupportedCertVersion")).contains("version 1 of X.509"));
        assert!(failed(&found("UnsupportedCertVersion")).to_string().contains("version 1 of X.509"));
        assert_eq!(told(&found("BadDer")), "the certificate is not as it should be (BadDer)");
    }
}
