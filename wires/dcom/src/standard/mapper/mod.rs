//! The endpoint mapper and the management interface (C706 appendices O and Q; MS-RPCE 2.2.1.2, 3.1.1.5).

mod contracts;
mod entries;
mod lookup;
mod management;
mod traffic;

pub(super) use contracts::MANAGEMENT;
pub(crate) use contracts::{Handle, LOOKUP, MAP, MAPPER};
pub(super) use lookup::answer_mapper;
pub(crate) use lookup::{NOT_REGISTERED, Octets};
pub(super) use management::answer_management;
pub use traffic::Traffic;
