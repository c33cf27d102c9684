//! What framing begins in the middle of a connection, after an Upgrade Request (MC-NMF 2.2.3): nothing,
//! TLS, or NegotiateStream. Over HTTP a connection begins with TLS, which is a layer below this wire.

use crate::settings::{Security, Settings};
use bytes::BytesMut;
use everywire_auth::nns;
use everywire_auth::security::{Credentials, Secret, UserTable};
use everywire_model::{Failure, SendBuffer};
use everywire_tls::Channel;
use std::sync::Arc;

/// Protects a connection from some byte on. It is a state machine: `receive` takes what came, `send` yields what has to go, be it
/// the handshake's or the caller's.
/// The order is `receive`, then `send`, until `is_established`; from then on both go on as the connection
/// does. Nothing goes back from a protected layer to a plain one: with its channel the connection ends.
pub enum Layer {
    /// Bytes pass as they are.
    Plain,
    /// TLS (RFC 5246, 8446), inside the framing's stream: no record of framing is outside it once it began.
    Tls(Box<Channel>),
    /// MS-NNS: a handshake of records, then messages of `len(4, little-endian) token`.
    Windows(Box<nns::Channel>),
}

impl Layer {
    /// Whether there is nothing in between, so that bytes need not go through here.
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Takes what came, and appends to `plain` what it says. Incomplete records stay in `input`.
    ///
    /// Answers of the handshake are kept for [`send`](Self::send), which has to be called afterwards, even when this fails: an
    /// alert may have to go.
    ///
    /// # Errors
    ///
    /// The peer is not who it should be, does not let this side in, or what came was changed on its way. Nothing more may be
    /// received.
    pub fn receive(&mut self, input: &mut BytesMut, plain: &mut BytesMut) -> Result<(), Failure> {
        match self {
            // The usual case moves nothing: the two buffers change places.
            Self::Plain if plain.is_empty() => std::mem::swap(input, plain),
            Self::Plain => plain.unsplit(input.split()),
            Self::Tls(channel) => channel.receive(input, plain)?,
            Self::Windows(channel) => channel.receive(input, plain)?,
        }
        Ok(())
    }

    /// Puts into `out` what has to go: the handshake's answers, and once it is over all of `plain`, protected. Until then `plain`
    /// is left alone.
    ///
    /// # Errors
    ///
    /// The keys are used up.
    pub fn send(&mut self, plain: &mut SendBuffer, out: &mut SendBuffer) -> Result<(), Failure> {
        match self {
            Self::Plain => out.append(plain),
            Self::Tls(channel) => channel.send(plain, out)?,
            Self::Windows(channel) => channel.send(plain, out)?,
        }
        Ok(())
    }

    /// Says that nothing more will be sent, where the protocol has words for it; [`send`](Self::send) yields them.
    pub fn close(&mut self) {
        if let Self::Tls(channel) = self {
            channel.close();
        }
    }

    /// How many bytes are missing until something more can be understood, as far as is known.
    pub fn wanted(&self, input: &[u8]) -> usize {
        match self {
            // TLS takes all that came.
            Self::Plain | Self::Tls(_) => 0,
            Self::Windows(channel) => channel.wanted(input),
        }
    }

    /// Whether the peer is known, and bytes of the caller may go.
    pub fn is_established(&self) -> bool {
        match self {
            Self::Plain => true,
            Self::Tls(channel) => channel.is_established(),
            Self::Windows(channel) => channel.is_established(),
        }
    }

    /// Who the peer proved to be: the user's account in the table of users, whichever way he writes its name, or `DOMAIN\USER` of his
    /// ticket; the server's name that its certificate vouches for; the thumbprint of a client's certificate.
    pub fn account(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Tls(channel) => channel.peer_identity(),
            Self::Windows(channel) => channel.account(),
        }
    }

    /// How it did, for people.
    pub fn authentication(&self) -> &'static str {
        match self {
            Self::Plain => "none",
            Self::Tls(channel) => channel.authentication(),
            Self::Windows(channel) => channel.authentication(),
        }
    }
}

impl Settings {
    /// The client's layer. With framing it begins right behind the UpgradeResponse.
    ///
    /// # Errors
    ///
    /// There are no credentials to begin with, or the certificates cannot be used.
    pub fn client_layer(&self) -> Result<Layer, Failure> {
        Ok(match self.transport_security {
            Security::None | Security::Unix => Layer::Plain,
            Security::Tls => Layer::Tls(Box::new(self.tls_channel()?)),
            Security::Windows => {
                self.check_account()?;
                // Without a name and a password the tickets that the user has may do. The first token is made at once, which may
                // ask a key distribution centre.
                let nobody = || Credentials {
                    domain: String::new(),
                    user: String::new(),
                    password: Secret::parse(""),
                };
                let known = self.credentials.as_ref().map_or_else(nobody, |known| (**known).clone());
                let (options, level) = (self.options(), self.protection_level);
                Layer::Windows(Box::new(nns::Channel::client(self.mechanism, &known, &options, level)?))
            }
        })
    }

    /// The server's layer. With framing it begins right behind the UpgradeResponse.
    ///
    /// # Errors
    ///
    /// The keys of this side cannot be used.
    pub fn server_layer(&self) -> Result<Layer, Failure> {
        Ok(match self.transport_security {
            Security::None | Security::Unix => Layer::Plain,
            Security::Tls => Layer::Tls(Box::new(self.tls_server_channel()?)),
            Security::Windows => {
                // Without users and without a keytab nobody is let in: `address::options` refuses such a place
                // before.
                let users = self.users.clone().unwrap_or_else(|| Arc::<UserTable>::default());
                let channel = nns::Channel::server(users, &self.options(), self.protection_level)?;
                Layer::Windows(Box::new(channel))
            }
        })
    }
}
