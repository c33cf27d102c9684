//! Where the listeners of a configuration are to be.

use crate::config::{Config, Mistakes, Position, meant};
use crate::loops;
use crate::route::shown;
use everywire::{Bytes, Node};
use everywire_model::{BindAddress, Endpoint, Wire};

/// The wire of an address.
pub(crate) fn wire_at(
    file: &str,
    spot: Position,
    address: &str,
    mistakes: &mut Mistakes,
) -> Option<&'static dyn Wire> {
    let scheme = address.split([':', '+']).next().unwrap_or_default();
    let all = everywire::wires::ALL;
    let found = all.iter().find(|wire| wire.schemes().iter().any(|known| known.eq_ignore_ascii_case(scheme)));
    if found.is_none() {
        let known = all.iter().flat_map(|wire| wire.schemes().iter().copied());
        let message = format!("no wire has addresses that begin with `{scheme}:`");
        mistakes.add(file, spot, message, meant(scheme, known));
    }
    found.copied()
}

/// Looks whether somebody can listen at the addresses, as far as the addresses and the files that they name tell; and whether two listeners want the
/// same one, or the administrator's that of a listener. Returns whose callers can be called back.
pub(crate) fn places(
    config: &Config,
    wires: &[&'static dyn Wire],
    node: &Node,
    mistakes: &mut Mistakes,
) -> Vec<bool> {
    let mut taken: Vec<(&str, Endpoint)> = Vec::new();
    let mut calls_back = vec![false; config.listens.len()];
    for ((listen, wire), back) in config.listens.iter().zip(wires).zip(&mut calls_back) {
        let place = match node.place(&listen.address) {
            Ok(BindAddress::Listen(profile)) => profile,
            Ok(BindAddress::Join(_)) => continue,
            Err(failure) => {
                let message = format!("cannot listen at `{}`: {failure}", shown(&listen.address));
                mistakes.add(&config.file, listen.spot, message, failure.hint().map(Into::into));
                continue;
            }
        };
        *back = wire.called_back(&place, &Bytes::new()).is_some();
        let Some(endpoint) = place.endpoints.first() else { continue };
        if let Some(other) = holder(&taken, endpoint) {
            let message = format!("the listener `{other}` is at `{}` already", shown(&listen.address));
            mistakes.add(
                &config.file,
                listen.spot,
                message,
                Some("give each listener a place of its own".into()),
            );
        }
        taken.push((&listen.name, endpoint.clone()));
    }
    if let Some(admin) = &config.admin
        && let Some((host, port)) = admin.address.value.rsplit_once(':')
        && let Ok(port) = port.parse()
    {
        let host = host.trim_start_matches('[').trim_end_matches(']').into();
        if let Some(other) = holder(&taken, &Endpoint::Tcp { host, port }) {
            let message = format!("the listener `{other}` is at `{}` already", admin.address.value);
            let hint = "the administrator's pages need a port of their own";
            mistakes.add(&config.file, admin.address.spot, message, Some(hint.into()));
        }
    }
    calls_back
}

/// The listener that is at an endpoint already.
fn holder<'n>(taken: &[(&'n str, Endpoint)], endpoint: &Endpoint) -> Option<&'n str> {
    let both = |held: &Endpoint| loops::is_same(held, endpoint) || loops::is_same(endpoint, held);
    taken.iter().find(|(_, held)| both(held)).map(|(name, _)| *name)
}
