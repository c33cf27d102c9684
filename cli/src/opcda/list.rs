//! `everywire list opcda://HOST`: the servers of a machine; of a server, its items.
//!
//! Each server of a machine is asked for its status, for which it may have to be started; one that does
//! not answer is listed with why.

use super::{address, connect};
use crate::cli_error::{CliError, Done};
use everywire::Node;
use everywire::model::{Presence, PresenceList};
use everywire_opc::remote::{DataAccess, servers};

/// The servers that a machine has, and how they are; the items of a server, where the address names one.
pub(crate) fn list(node: &Node, text: &str) -> Done<PresenceList> {
    let place = address(text)?;
    let failed = |failure| CliError::failure(format!("cannot list `{place}`"), &failure);
    if place.server().is_some() {
        let items = connect(node, &place)?.all_items().map_err(failed)?;
        let presence = |name: String| {
            let address = place.with_item(&name).to_string();
            Presence { name, address, details: Vec::new() }
        };
        return Ok(items.into_iter().map(presence).collect::<Vec<_>>().into());
    }
    let found = servers(node, &place).map_err(failed)?;
    let presence = |one: everywire_opc::remote::ServerEntry| {
        let place = place.with_server(if one.prog_id.is_empty() { &one.class } else { &one.prog_id });
        // By its class: the name was just asked for.
        let by_class = place.with_server(&one.class);
        // One that does not start is on the list all the same.
        let status = DataAccess::at(node, by_class).and_then(|server| server.status());
        let (vendor, version, state) = match status {
            Ok(status) => {
                let (major, minor, build) = status.version;
                (status.vendor, format!("{major}.{minor}.{build}"), status.state_name.to_owned())
            }
            Err(failure) => (String::new(), String::new(), format!("does not answer: {failure}")),
        };
        Presence {
            address: place.to_string(),
            details: vec![
                ("description", one.name),
                ("vendor", vendor),
                ("version", version),
                ("speaks", one.versions.join(", ")),
                ("class", one.class),
                ("state", state),
            ],
            name: one.prog_id,
        }
    };
    Ok(found.into_iter().map(presence).collect::<Vec<_>>().into())
}
