//! Where peers listen.

use crate::layered::Layered;
use std::fmt;

/// Where a peer listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP: host name or address, and port.
    Tcp {
        /// Host name or address literal, without brackets.
        host: String,
        /// Port.
        port: u16,
    },
    /// A Unix-domain stream socket at this path; a leading `@` means the abstract name space.
    Unix {
        /// Path.
        path: String,
    },
    /// Shared memory, set up over a Unix-domain socket at this path.
    Shm {
        /// Path of the socket.
        path: String,
    },
    /// This process, under this name.
    InProcess {
        /// Name of the server.
        name: String,
    },
    /// A layer, such as TLS, over another endpoint.
    Layered(Box<Layered>),
}

impl Endpoint {
    /// The transport's name: `tcp`, `unix`, `shm` or `inproc`; that below all layers.
    pub fn transport(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Unix { .. } => "unix",
            Self::Shm { .. } => "shm",
            Self::InProcess { .. } => "inproc",
            Self::Layered(layered) => layered.over.transport(),
        }
    }

    /// By what ways to an object are to be tried first: those of this host, the fastest before.
    pub fn distance(&self) -> u8 {
        match self {
            Self::Shm { .. } => 0,
            Self::Unix { .. } => 1,
            _ => 2,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
            Self::Unix { path } => write!(f, "unix:{path}"),
            Self::Shm { path } => write!(f, "shm:{path}"),
            Self::InProcess { name } => write!(f, "inproc:{name}"),
            Self::Layered(layered) => write!(f, "{}:{}", layered.layer, layered.over),
        }
    }
}
