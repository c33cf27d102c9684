//! What a node exports and imports: OXID, OIDs, IPIDs, reference counts, pings (MS-DCOM 3.1, 3.2).
//!
//! * Exports ([`Exporter::export`], [`Exporter::served`]): each marshalled object has an OID, each of its interfaces an IPID and
//!   counts. An object that nobody refers to, or whose holders are silent for three ping periods, leaves the tables; if it was
//!   made for the wire (by activation, by [`Exporter::serve`]), it is served no longer.
//! * Imports ([`Exporter::adopt`]): each object elsewhere has one [`Proxy`], the lease of all references to it.
//! * The keeper ([`tend`](everywire_model::WireState::tend)) pings, runs down, and gives back references that no call carried away.
//!
//! Locks are private to the parts, and none is held while code of others runs: servants, [`Objects`](everywire_model::Objects), drops of leases.
//! `exports`, `sets` and `imports` say in which order theirs are taken.

mod activating;
mod associations;
mod classes;
mod clock;
mod correspondence;
mod exports;
mod imports;
mod interfaces;
mod keeper;
mod leaving;
mod marshalling;
mod node_bindings;
mod numbers;
mod passing;
mod pinger;
pub(crate) mod raw;
mod serving;
mod sets;
mod tables;
mod wire_state;

pub use crate::tags::{TAG_OXID, TAG_RESOLVER};
pub use associations::Associations;
pub use correspondence::Correspondence;
pub use exports::IpidEntry;
pub(crate) use exports::SEPARATOR;
pub(crate) use imports::InterfaceResult;
pub use imports::{Proxy, RemoteOxid};
pub use marshalling::ExportGuard;
pub(crate) use marshalling::exposed;
pub(crate) use numbers::random_uuid;
pub(crate) use passing::{Adopted, handed_over};
pub use tables::{Counts, Exporter, PING_PERIOD};
