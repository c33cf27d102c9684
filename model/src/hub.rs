//! Hubs: servers that route between their peers instead of serving objects, as some wires need one. Without I/O, as
//! sessions are; the runtime drives one over real sockets.

use crate::body::Handle;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Violation};
use crate::link::PeerAddress;
use crate::send_buffer::SendBuffer;
use bytes::BytesMut;
use std::time::Instant;

/// A peer of a hub, as long as it is connected. Numbers are not used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PeerId(pub u64);

/// What the driver of a hub is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubEvent {
    /// Send what [`Hub::transmit`] holds for this peer.
    Flush(PeerId),
    /// Send it, as far as it goes at once, and close the connection.
    Close(PeerId),
    /// End: close everything.
    Finish,
}

/// A router's protocol with all its peers.
pub trait Hub: Send {
    /// Where it wants to listen.
    fn endpoints(&self) -> Vec<Endpoint>;

    /// It listens there now: time to tell the world (files, a line on standard output).
    fn opened(&mut self, bound: &[Endpoint]) -> Result<(), Failure>;

    /// Somebody connected.
    fn connected(&mut self, id: PeerId, peer: PeerAddress, now: Instant);

    /// Takes complete messages from the front of `input`, and leaves the rest for the next time.
    ///
    /// # Errors
    /// The peer broke the protocol. What the hub wants to tell it is in `transmit`; then the driver closes it, and
    /// calls `disconnected`.
    fn receive(
        &mut self,
        id: PeerId,
        now: Instant,
        input: &mut BytesMut,
        handles: &mut Vec<Handle>,
    ) -> Result<(), Violation>;

    /// How many bytes are missing from the message that this peer has begun; 0 if none.
    fn wanted(&self, id: PeerId) -> usize;

    /// What is to be sent to a peer.
    fn transmit(&mut self, id: PeerId) -> Option<&mut SendBuffer>;

    /// What is to be done, in order.
    fn poll(&mut self) -> Option<HubEvent>;

    /// A peer is gone.
    fn disconnected(&mut self, id: PeerId, now: Instant);

    /// When `expire` wants to be called.
    fn deadline(&self) -> Option<Instant>;

    /// Time has passed.
    fn expire(&mut self, now: Instant);

    /// The process is asked to end: say goodbye to everybody, take back what the world was told.
    fn close(&mut self);
}

/// A server program that a wire brings along.
#[derive(Clone, Copy)]
pub struct Program {
    /// The name it is run by.
    pub name: &'static str,
    /// One line on what it does.
    pub about: &'static str,
    /// Its options.
    pub options: &'static [ProgramOption],
    /// Makes it from the options that were given: (name, value).
    pub open: fn(&[OptionText<'_>]) -> HubResult,
}

/// A hub, or why there is none.
pub type HubResult = Result<Box<dyn Hub>, Failure>;

/// An option that was given: its name, and its value unless it is a flag.
pub type OptionText<'g> = (&'g str, Option<&'g str>);

/// An option of a [`Program`].
#[derive(Debug, Clone, Copy)]
pub struct ProgramOption {
    /// Name, without dashes.
    pub name: &'static str,
    /// What its value is called; `None` for a flag.
    pub value: Option<&'static str>,
    /// One line on what it does.
    pub help: &'static str,
}
