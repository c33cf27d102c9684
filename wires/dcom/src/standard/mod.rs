//! The interfaces that every node serves: those of DCOM itself, and what peers expect of every object.
//!
//! For the exporter:
//! * it keeps one [`State`] for its node and gives it by `Exporter::standard(&self) -> &State`;
//! * its `emit`, `subscribe`, `withdrawn`, `due` and `tend` call those of [`points`];
//! * when an object is asked for an interface that none of its servants has, [`offers`] says whether one of [`servants`]
//!   answers instead.
//!
//! For sessions: the operations for which [`keeps_hresult`] holds tell their HRESULT themselves.

pub mod activation;
mod asking;
pub mod categories;
pub mod contracts;
pub mod dispatch;
pub mod enumerators;
pub mod guid;
mod kinds;
pub mod mapper;
pub mod object_exporter;
pub mod points;
pub mod rem_unknown;
mod servants;
mod serving;
mod state;
pub(crate) mod typeinfo;
mod values;

pub use kinds::{dispatch_index, keeps_hresult};
pub(crate) use kinds::{is_dispatch, is_ordinary, is_standard, tells_hresult};
pub use servants::{offers, servants};
pub(crate) use serving::host_of;
pub use state::State;
