//! Reading again what an address to listen at says, while its socket stays open: accounts, certificates, authorities.
//!
//! States: *read* (`Node::read_again`): everything that may fail is done, and nothing has changed; *applied*
//! (`Renewal::apply`): whoever connects from then on is let in by what was read. Connections that are open keep what
//! they were accepted by.

use crate::node::Node;
use crate::quotas;
use crate::shared::{Shared, listening};
use crate::sync::lock;
use crate::transport::listener::{AcceptTerms, Listener};
use everywire_model::reach::Publish;
use everywire_model::{BindAddress, Failure, options};
use std::sync::Arc;

/// What an address and its files say now of a listener that is open. It counts once it is applied.
pub struct Renewal {
    node: Arc<Shared>,
    listener: Arc<Listener>,
    terms: Arc<AcceptTerms>,
    /// The address that it was opened by, and the one of now.
    before: String,
    now: String,
    publish: Option<Publish>,
}

impl Node {
    /// Reads again an address that this node listens at, and all files that it names (accounts, keys, certificates,
    /// authorities): `before` is the address as it was given to [`Node::listen`], or was renewed by last, and `now` the
    /// same place, perhaps with other options. Yields nothing where the node does not listen at `before` with a socket
    /// of its own, or `now` is another place.
    ///
    /// # Errors
    /// The address is wrong, a file that it names cannot be used, or an option has changed that an open socket keeps:
    /// quotas and `publish`. Nothing has changed then.
    pub fn read_again(&self, before: &str, now: &str) -> Result<Option<Renewal>, Failure> {
        let shared = &self.guard.shared;
        let held = lock(&shared.open).iter().find(|(held, _)| held == before).map(|(_, held)| held.clone());
        let Some(listener) = held.and_then(|held| held.upgrade()) else { return Ok(None) };
        if place(before) != place(now) {
            return Ok(None);
        }
        let (bound, own, publish) = shared.place_at(listener.wire, now)?;
        drop(own);
        let BindAddress::Listen(profile) = bound else { return Ok(None) };
        if let Some(name) = kept(before, now)? {
            let why = format!("`{name}=` of an address that is listened at already cannot change");
            return Err(
                options::wrong(now, &why).with_hint("let the old value stand, or start the program anew")
            );
        }
        let terms = Arc::new(listener.terms_of(profile)?);
        let (before, now) = (before.to_owned(), now.to_owned());
        let node = Arc::clone(shared);
        Ok(Some(Renewal { node, listener, terms, before, now, publish }))
    }
}

impl Renewal {
    /// Lets in by what was read whoever connects from now on, and publishes the place as it is now described.
    pub fn apply(self) {
        let Self { node, listener, terms, before, now, publish } = self;
        let place = BindAddress::Listen(terms.profile.clone());
        node.addresses.say(listening(&place), publish);
        for (held, open) in lock(&node.open).iter_mut() {
            if std::ptr::eq(open.as_ptr(), Arc::as_ptr(&listener)) {
                held.clone_from(&now);
            }
        }
        let was = BindAddress::Listen(listener.terms().profile.clone());
        for (held, address) in lock(&node.places).iter_mut() {
            if *address == before && *held == was {
                (*held, *address) = (place.clone(), now.clone());
            }
        }
        listener.renew(terms);
    }
}

/// What stands before the options of an address, and what behind them: the place without what is said of it.
fn place(address: &str) -> (&str, &str) {
    let (place, rest) = address.split_once('?').unwrap_or((address, ""));
    (place, rest.find('#').and_then(|at| rest.get(at..)).unwrap_or_default())
}

/// The first option of those that an open socket keeps which two addresses do not say alike.
fn kept<'a>(before: &'a str, now: &'a str) -> Result<Option<&'a str>, Failure> {
    let names: Vec<&str> = quotas::OPTIONS.iter().copied().chain([Publish::OPTION]).collect();
    let ((_, before), (_, now)) = (options::take(before, &names)?, options::take(now, &names)?);
    let (mut gone, mut new) =
        (before.iter().filter(|held| !now.contains(held)), now.iter().filter(|held| !before.contains(held)));
    Ok(gone.next().or_else(|| new.next()).map(|(name, _)| *name))
}
