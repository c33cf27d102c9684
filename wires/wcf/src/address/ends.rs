//! What follows from where an address leads, and what this process gives beside it: users, and who it is.

use super::notation::{CREDENTIALS, usual_port};
use crate::settings::Settings;
use everywire_auth::security::{Credentials, UserTable};
use everywire_model::{Endpoint, Failure};
use std::path::Path;
use std::sync::Arc;

/// Fills in what a URI says in place of the endpoint: `HOST[:PORT]` over
/// TCP, the socket's path for framing on sockets, and `localhost` for HTTP on sockets, whose requests have
/// to name some host. Where the port is 0, this is done again once the real one is known (`publish`).
pub(super) fn placed(mut settings: Settings, endpoint: &Endpoint) -> Settings {
    settings.local = is_local(Some(endpoint));
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let usual = usual_port(settings.uri_scheme);
            // An IPv6 address stands in brackets in a URI (RFC 3986, 3.2.2). The usual port is left out, as
            // WCF does.
            let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
            settings.authority = if *port == usual { shown } else { format!("{shown}:{port}") };
            settings.host.clone_from(host);
            settings.socket.clear();
        }
        Endpoint::Unix { path } | Endpoint::Shm { path } if settings.uri_scheme.starts_with("net.") => {
            if settings.uri_scheme == "net.tcp" {
                // net.tcp URIs cannot name a socket; .NET's own scheme for it can.
                settings.uri_scheme = "net.uds";
            }
            settings.socket.clone_from(path);
        }
        _ => {
            settings.authority = "localhost".to_owned();
        }
    }
    settings
}

/// Whether an endpoint is of this machine alone: then nobody on a network can listen in, and passwords may
/// go without TLS. An unknown endpoint counts as remote.
pub(super) fn is_local(endpoint: Option<&Endpoint>) -> bool {
    !matches!(endpoint, Some(Endpoint::Tcp { .. }) | None)
}

/// The credentials of this process, if it was given any.
/// An empty variable counts as none. What is wrong with the file names the variable.
pub(super) fn ambient_credentials() -> Result<Option<Arc<Credentials>>, Failure> {
    match std::env::var_os(CREDENTIALS) {
        Some(path) if !path.is_empty() => Ok(Some(Arc::new(
            Credentials::read_file(path).map_err(|failure| failure.at(format_args!("${CREDENTIALS}")))?,
        ))),
        _ => Ok(None),
    }
}

/// The users that a place knows, from a file. Only whoever listens reads them. Errors without a hint of
/// their own get one that says what the lines look like.
pub(super) fn read_users(path: &Path) -> Result<UserTable, Failure> {
    UserTable::read_file(path).map_err(|failure| {
        let failure = failure.at("users=");
        let hint = "users= names a file of lines USER:PASSWORD, readable by this user only (mode 0600)";
        if failure.hint().is_some() { failure } else { failure.with_hint(hint) }
    })
}
