//! `opcda://` addresses: what the verbs do with OPC Data Access servers and their items.
//!
//! An address names a host, and maybe a server and an item. A verb asks `is_meant` first, and leaves
//! the rest to this module: no contract is needed, since servers of OPC tell the types of their items.

mod call;
mod describe;
mod list;
mod shown;
mod watch;

pub(crate) use call::call;
pub(crate) use describe::{OpcDescribeOptions, describe};
pub(crate) use list::list;
pub(crate) use shown::{json as value_json, of_text as value_of_text};
pub(crate) use watch::{WatchOptions, watch};

use crate::cli_error::{CliError, Done};
use everywire::Node;
use everywire_opc::remote::{Address, DataAccess};

/// Whether an address is of these.
pub(crate) fn is_meant(text: &str) -> bool {
    text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("opcda://"))
}

/// Understands an address.
fn address(text: &str) -> Done<Address> {
    Address::parse(text).map_err(|failure| CliError::failure(format!("`{text}` is no address"), &failure))
}

/// Where the host of an address answers.
pub(crate) fn host(text: &str) -> Done<everywire::model::Endpoint> {
    address(text).map(|address| crate::verbs::status::of_host(address.place()))
}

/// Reaches the server of an address: finds its class by its name, and makes an object of it.
fn connect(node: &Node, address: &Address) -> Done<DataAccess> {
    DataAccess::at(node, address.clone())
        .map_err(|failure| CliError::failure(format!("cannot reach `{address}`"), &failure))
}
