//! OPC Data Access 2.05a and 3.0: what plants speak over DCOM.
//!
//! Whoever has data implements [`Source`], or puts values into a [`Table`]; the rest is here:
//!
//! * [`contract`]: the interfaces, generated from MIDL of our own.
//! * [`Engine`], [`Client`], [`Group`]: groups and items, exception mode, asynchronous calls, browsing, properties. Without I/O; time is
//!   an argument.
//! * [`remote`]: a client: servers of other machines, read, written and subscribed to.
//! * [`handle_tracker`]: what passes between others, with the names of items.
//! * [`browse`], [`properties`]: the address space, and what is known of items beside their values.
//!
//! What works, and how, is in `docs/opc.md`.

#![forbid(unsafe_code)]

pub mod browse;
mod cell;
mod client;
mod codes;
mod coerce;
mod data;
mod direct;
mod engine;
mod group;
pub mod handle_tracker;
mod item;
mod packed_vqt;
pub mod pattern;
pub mod properties;
mod quality;
pub mod remote;
pub mod server;
mod share;
mod simulation;
mod source;
mod sync;
mod table;
mod time;
mod wire;

pub use client::{Client, LOCALES};
pub use codes::Code;
pub use data::{Array, Data, VarType, Vqt};
pub use engine::{Engine, Quotas, Settings};
pub use group::{
    Attributes, Batch, Change, Group, GroupState, ItemDef, ItemResult, ReadFrom, Refresh, Report, Sample,
    StartedTransaction, WriteVqt,
};
pub use item::{Access, EngineeringUnits, Item, Property};
pub use quality::{Limit, Quality};
pub use simulation::Simulation;
pub use source::{Child, Children, Feed, ServerState, Source, Write};
pub use table::{Point, Table};
pub use time::{FileTime, Moment};

/// The interfaces of OPC Common, OpcEnum and Data Access, and the classes of our objects.
#[allow(missing_docs, clippy::pedantic, clippy::all, non_shorthand_field_patterns, unreachable_pub)]
pub mod contract {
    everywire::include_contract!("opc");
}
