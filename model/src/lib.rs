//! What an interface is, and what a call is: the neutral core of Everywire.
//!
//! Everything else depends on this crate and it on nothing: no I/O, no threads, no wire. The way of a call:
//!
//! ```text
//! caller ─ stub ─ codec ─ session ─ link ═══ link ─ session ─ codec ─ skeleton ─ servant
//! ```
//!
//! * [`Interface`], [`Operation`], [`Shape`]: what can be asked, from any contract language.
//! * [`Sink`], [`Source`]: the visit by which typed values become a wire's bytes and back.
//! * [`Body`]: encoded values nobody has looked at; [`SendBuffer`]: bytes to send.
//! * [`Session`], [`Event`]: one connection's protocol, without I/O.
//! * [`Wire`]: what a protocol's crate exports; [`TransportLayer`]: what the crate of a layer below wires does.
//! * [`Object`], [`Ref`], [`Servant`], [`Request`]: callers and servants.
//! * [`Failure`], [`Violation`]; [`Budget`], [`Limits`].

#![forbid(unsafe_code)]

pub mod aligned;
pub mod bind_address;
pub mod body;
pub mod budget;
pub mod cells;
pub mod contract;
pub mod counts;
pub mod date;
pub mod describe;
pub mod endpoint;
pub mod failure;
pub mod fixed;
#[doc(hidden)]
pub mod generated;
pub mod guid;
pub mod headers;
pub mod hex;
pub mod hub;
pub mod layered;
pub mod link;
pub mod long_double;
pub mod marshal;
pub mod message;
pub mod message_clock;
pub mod ms_union;
pub mod named_numbers;
pub mod native;
pub mod number_hasher;
pub mod object;
pub mod options;
pub mod percent;
pub mod pipe;
pub mod profile;
pub mod reach;
pub mod recent;
pub mod reference;
pub mod same;
pub mod scalar;
pub mod send_buffer;
pub mod session;
pub mod shape;
pub mod signal;
pub mod success;
pub mod typecode;
pub mod union;
pub mod units;
pub mod value;
pub mod value_type;
pub mod variant;
pub mod violations;
pub mod visit;
pub mod wire;
pub mod wire_state;
pub mod words;

pub use body::{Attachments, Body, Codec, Context, Handle, NodeState};
pub use budget::{Budget, Limits};
pub use bytes::Bytes;
pub use contract::{
    Attribute, Constant, Contract, Definition, Direction, Interface, InterfaceKind, Notes, Notify, Operation,
    Parameter, Signal,
};
pub use endpoint::Endpoint;
pub use failure::{Completed, Failure, Initiator, Kind, Violation};
pub use generated::{Skeleton, Stub};
#[doc(hidden)]
pub use generated::{
    arms, asynchronous, blocking, counted_fields, errors, exceptions, faces, fields, guid, members, numbers,
    signals, words,
};
pub use headers::{Edit, Header, Headers};
pub use hub::{Hub, HubEvent, PeerId, Program};
pub use layered::{LayerOptions, LayerSide, Layered, TransportLayer};
pub use marshal::{Marshal, MarshalList, Unmarshal, UnmarshalList};
pub use message::{Answer, Call, Encoded, Expects, Incoming, Method, Outcome, Raised, SignalFilter};
pub use message_clock::MessageClock;
pub use object::{BoxFuture, Exception, Object, Raises, Ref, Remote, Request, Resolver, Servant, Target};
pub use profile::{Lease, Options, Profile, ProfileOptions, RESUME_TOKEN};
pub use reach::Reach;
pub use reference::{Address, Reference};
pub use same::same_bytes;
pub use send_buffer::SendBuffer;
pub use session::{CallId, Config, Emission, Event, Link, Peer, PeerAddress, Purpose, Session, Topic};
pub use shape::{Hold, Shape};
pub use signal::{Emits, Emitter, SignalEvent, Signaller, Subscription, TypedSignal};
pub use success::Success;
pub use typecode::TypeCode;
pub use value::Value;
pub use variant::{Scalar, Variant};
pub use visit::{Encode, Sink, Source, Visit};
pub use wire::{
    BindAddress, Capabilities, ChangeSignal, Discovery, Listing, MessageListing, Part, Presence,
    PresenceList, Sniff, Wire,
};
pub use wire_state::{Objects, WireState};
