//! What peers may take of a server, as options. Whatever is not given is the node's own default, which
//! stands in the texts of the options.

use clap::Args;
use everywire::Quotas;
use everywire::model::units;

/// Quotas for all peers together.
#[derive(Args)]
pub(crate) struct Shares {
    /// Connections at a time (16384 unless set, or as many as there are descriptors for).
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Quotas")]
    max_connections: Option<u32>,
    /// Memory that messages, requests and answers of all connections may hold together, such as 64MiB (a quarter of what this
    /// process can have unless set); beyond it the source that holds most loses a connection.
    #[arg(long, value_name = "SIZE", value_parser = units::size, help_heading = "Quotas")]
    memory: Option<u64>,
    /// How long a connection may be silent, such as 5m (10m unless set), on wires whose clients connect again by themselves; `none`:
    /// for ever.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, help_heading = "Quotas")]
    idle: Option<units::Deadline>,
    /// How long a new connection may take for its first whole message (60s unless set).
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = "Quotas")]
    first_message: Option<std::time::Duration>,
    /// Answers that may wait for a peer that does not read them, such as 1MiB (8 MiB unless set); until it does, none of its
    /// requests is served.
    #[arg(long, value_name = "SIZE", value_parser = units::size, help_heading = "Quotas")]
    max_unsent: Option<u64>,
}

impl Shares {
    /// The quotas that were asked for, and the usual ones.
    pub(crate) fn quotas(&self) -> Quotas {
        let usual = Quotas::default();
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Quotas {
            connections: self.max_connections.map_or(usual.connections, |count| count as usize),
            memory: self.memory.map(size).or(usual.memory),
            idle: self.idle.map_or(usual.idle, |idle| idle.0),
            first_message: self.first_message.unwrap_or(usual.first_message),
            unsent: self.max_unsent.map_or(usual.unsent, size),
            ..usual
        }
    }
}
