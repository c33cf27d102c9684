//! Connection points: signals as calls of interfaces that the listener implements (ocidl.idl: IConnectionPointContainer,
//! IConnectionPoint and their enumerators).
//!
//! * A signal belongs to a *source interface*: the one that its contract names ([`everywire_model::Signal::sink`]), or one
//!   that follows from the interface which declares it ([`sources`]).
//! * A sink is called in the order of the signals, one call at a time. Signals wait for it up to [`WAITING`] and [`WAITING_BYTES`]; then
//!   the oldest is lost, so that no listener holds up an emitter. All sinks of a principal share [`PRINCIPAL_BYTES`]. What was lost is
//!   told when the sink has taken what waited ([`Failed`](everywire_model::signal::Audience::Failed)), or has lost as much again.
//! * A sink that cannot be called (it asks for another account or level) keeps its place; the node's observer is told, and what is
//!   emitted meanwhile is lost for it: it is tried again after [`REFUSED`].
//! * A sink that is no more is unadvised when a call says so, or when it was silent for [`SILENCE`] and does not
//!   answer: says that it is gone, or lets three questions time out.

mod advising;
mod container;
mod duties;
mod listening;
mod missed_replies;
mod point;
mod sink;
mod source;
mod store;
mod subscribe;
mod tables;
mod task_queue;

pub use advising::{SINKS, SINKS_OF_PRINCIPAL};
pub use duties::{SILENCE, backlog, dismiss, due, emit, leave, tend, withdrawn};
pub use point::ASKED;
pub use sink::REFUSED;
pub use source::{Source, sources};
pub use store::{PRINCIPAL_BYTES, WAITING, WAITING_BYTES};
pub use subscribe::subscribe;

pub(super) use advising::sources_of;
pub(super) use container::answer_container;
pub(super) use tables::Points;
