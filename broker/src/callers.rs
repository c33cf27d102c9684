//! Lists of callers at listeners behind a router.
//!
//! A bus of D-Bus and DCOP's server stand between callers and the broker. The kernel says who the router is, and not who calls, so a list of users would
//! let everybody through or nobody.

use crate::config::{Config, Mistakes, RouteConfig};
use everywire::Node;
use everywire::layer::Caller;
use everywire_model::BindAddress;

/// Looks whether a route asks for users where nobody tells who calls.
pub(crate) fn are_known(
    config: &Config,
    route: &RouteConfig,
    listens: &[usize],
    node: &Node,
    mistakes: &mut Mistakes,
) {
    let users = |callers: &[Caller]| callers.iter().any(|caller| matches!(caller, Caller::User(_)));
    let matches = &route.matches;
    let lists = [
        ("allow", users(&route.allow)),
        ("deny", users(&route.deny)),
        ("match", users(&matches.peer) || matches.user.is_some()),
    ];
    let Some((what, _)) = lists.iter().find(|(_, asks)| *asks) else { return };
    let behind =
        |listen: &&crate::config::Listen| matches!(node.place(&listen.address), Ok(BindAddress::Join(_)));
    if let Some(listen) = listens.iter().filter_map(|at| config.listens.get(*at)).find(behind) {
        let message = format!(
            "`{what}` names users, and at `{}` a bus or server stands before the callers",
            listen.name
        );
        let hint = "its own policy says who may call; give this listener a route of its own";
        mistakes.add(&config.file, route.name.spot, message, Some(hint.into()));
    }
}
