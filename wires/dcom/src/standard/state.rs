//! What the standard interfaces keep for a node.

use super::mapper::Traffic;
use super::points::Points;

/// What the standard interfaces keep for a node.
#[derive(Default)]
pub struct State {
    pub(super) points: Points,
    /// What the management interface tells of.
    pub traffic: Traffic,
}
