//! Places: where a process serves.

use crate::endpoint::Endpoint;
use crate::profile::Profile;

/// Where a process serves: a way to it with an empty key. Its components are the wire's to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// At a listening socket, the first endpoint of the profile.
    Listen(Profile),
    /// Behind a router that this process connects to.
    Join(Profile),
}

impl BindAddress {
    /// A listening socket of this wire, without anything else to know about it.
    pub fn socket(wire: &'static str, endpoint: Endpoint) -> Self {
        Self::Listen(Profile { wire, endpoints: vec![endpoint], ..Profile::default() })
    }

    /// The way to it.
    pub fn profile(&self) -> &Profile {
        match self {
            Self::Listen(profile) | Self::Join(profile) => profile,
        }
    }

    /// The way to it.
    pub fn profile_mut(&mut self) -> &mut Profile {
        match self {
            Self::Listen(profile) | Self::Join(profile) => profile,
        }
    }
}
