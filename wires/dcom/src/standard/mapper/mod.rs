//! The endpoint mapper and the management interface (C706 appendices O and Q; MS-RPCE 2.2.1.2, 3.1.1.5).

mod contracts;
mod entries;
mod lookup;
mod management;
mod traffic;

pub(crate) use contracts::{Handle, LOOKUP, MAPPER};
pub(super) use lookup::Mapper;
pub(crate) use lookup::NOT_REGISTERED;
pub(super) use management::Management;
pub use traffic::Traffic;
