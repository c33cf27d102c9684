//! Getting in: the handshake, and a name (`registerAs`).
//!
//! A server of Trinity knows that function by its own types only; so where the first spelling is refused the
//! other is tried, and from then on this side speaks as Trinity's programs do. All of it has to be over in
//! `limits::ADMISSION`. Only then is the session open: it has a name, by which others answer, and
//! `Event::Ready` is told.

use crate::address::SERVER;
use crate::ice::{self, Framing, Progress, minor};
use crate::limits;
use crate::request_templates::RequestTemplate;
use crate::session::{DcopSession, Phase};
use crate::strings::{StringReader, put_name};
use crate::violations::ProtocolError;
use bytes::{Bytes, BytesMut};
use everywire_idl::kidl::types;
use everywire_model::{Event, Peer, Violation};
use std::borrow::Cow;
use std::time::Instant;

impl DcopSession {
    /// Says hello, the first time that somebody looks what is to be sent.
    pub(crate) fn greet(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Broken) {
            Phase::Greeting(initiator) => {
                initiator.greet(self.out.flat());
                Phase::Handshake(initiator)
            }
            other => other,
        };
    }

    /// Goes on with the handshake; whether it is over.
    ///
    /// # Errors
    /// The server refuses this side, or breaks the protocol. If there was no cookie, the failure says why.
    pub(crate) fn shake(&mut self, now: Instant, input: &mut BytesMut) -> Result<bool, Violation> {
        self.greet();
        let Phase::Handshake(initiator) = &mut self.phase else { return Ok(true) };
        self.due.allow(now, limits::ADMISSION);
        let before = input.len();
        let progress = initiator.receive(input, self.out.flat()).map_err(|mut violation| {
            if violation.name == ice::ProtocolError::REFUSED && !self.without_cookie.is_empty() {
                violation.message = format!("{}; {}", violation.message, self.without_cookie);
            }
            violation
        })?;
        self.missing = initiator.wanted();
        self.received += (before - input.len()) as u64;
        let Some(framing) = Framing::new(progress, limits::largest(&self.limits)) else {
            debug_assert_eq!(progress, Progress::More);
            return Ok(false);
        };
        self.framing = Some(framing);
        self.register();
        Ok(true)
    }

    /// Asks for a name. The key is 0, as this side has none yet; any key may come back.
    fn register(&mut self) {
        self.phase = Phase::Registration;
        let way = RequestTemplate::new(b"", SERVER, b"", self.spelled("registerAs(QCString)").as_bytes());
        let mut arguments = Vec::new();
        put_name(&mut arguments, &self.wanted);
        self.put_small(minor::CALL, 0, &way, &arguments);
    }

    /// A signature in the spelling of the server.
    pub(crate) fn spelled<'a>(&self, signature: &'a str) -> Cow<'a, str> {
        if self.trinity { Cow::Owned(types::of_trinity(signature)) } else { Cow::Borrowed(signature) }
    }

    /// The server answers the registration. A name with a suffix is taken only if the address says so.
    ///
    /// # Errors
    /// It gives no name, or another one than was wanted.
    pub(crate) fn registered(&mut self, kind: u8, payload: &Bytes) -> Result<(), ProtocolError> {
        match kind {
            minor::REPLY => {}
            minor::REPLY_FAILED if !self.trinity => {
                self.trinity = true;
                self.register();
                return Ok(());
            }
            minor::REPLY_FAILED => return Err(ProtocolError::NotRegistered),
            // News for everybody.
            minor::SEND => return Ok(()),
            other => return Err(ProtocolError::TooEarly { kind: minor::word(other) }),
        }
        let mut walk = StringReader::new(payload);
        for _ in 0..3 {
            walk.name()?;
        }
        let data = payload.slice(walk.data()?);
        let granted = data.slice(StringReader::new(&data).name()?);
        if granted.is_empty() {
            return Err(ProtocolError::NotRegistered);
        }
        if !self.suffix && granted != self.wanted {
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            return Err(ProtocolError::NameTaken { wanted: text(&self.wanted), granted: text(&granted) });
        }
        self.name = Bytes::copy_from_slice(&granted);
        self.ways.trinity = self.trinity;
        self.emitted.trinity = self.trinity;
        if let Some(tree) = self.tree {
            tree.set_trinity(self.trinity);
        }
        self.phase = Phase::Open;
        self.due.stop();
        let authentication = if self.without_cookie.is_empty() { "MIT-MAGIC-COOKIE-1" } else { "none" };
        self.events.push_back(Event::Ready(Peer::admitted(self.peer.clone(), authentication)));
        Ok(())
    }
}
