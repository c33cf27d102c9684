//! What the client and the server have in common.

use std::error::Error;

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

pub const TEXT: &str = "Hello, World! 0123456789";
pub const NAME: &str = "benchmarking.dbus";
