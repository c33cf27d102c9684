//! What the contract became, and a servant of it.

mod jukebox;

everywire::include_contract!("player");

pub use jukebox::{Jukebox, NO_SUCH_TITLE};
