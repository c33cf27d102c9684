//! What is known of an object: a contract from a file, or the object's own answer; and the choice of the
//! interface that is meant.
//!
//! States: none; a contract does not change once it is read.
//!
//! Invariants: the object's own interfaces come first (`own`), each behind those that it is derived from. An
//! interface of `common` is never one of the contract. A name that fits several interfaces is a mistake that
//! names them all: nothing is chosen by chance.

use crate::mistake::{Mistake, Remedy};
use crate::operation;
use crate::wording::last_part;
use everywire::Object;
use everywire_idl::Preprocessing;
use everywire_model::contract::left_out;
use everywire_model::shape::Name;
use everywire_model::{
    Bytes, Contract, Definition, Failure, Hold, Initiator, Interface, Kind, Reference, Wire,
};
use std::collections::HashSet;
use std::path::Path;

/// A contract, and where it is from.
#[derive(Debug, Clone)]
pub struct ObjectContract {
    /// Types, exceptions and interfaces.
    pub contract: Contract,
    /// For messages: the file, or the object itself.
    pub source: String,
    /// How many of its interfaces, from the first, are the object's own; others every object of its wire has.
    /// The definitions of `contract` begin with them.
    pub own: usize,
    /// Keys of objects below the object, if it told.
    pub children: Vec<Bytes>,
    /// Where the object says that it answers, if that is not how it was asked.
    pub addresses: Vec<String>,
    /// Interfaces that may be tried on the object, though neither it nor its contract tells of them ([`Wire::common`]).
    pub common: Vec<Hold<Interface>>,
}

impl ObjectContract {
    /// A contract that somebody has read already; `source` says where it is from.
    pub fn new(contract: Contract, source: impl Into<String>) -> Self {
        let own = contract.interfaces().count();
        Self {
            contract: contract.with_known_types(),
            source: source.into(),
            own,
            children: Vec::new(),
            addresses: Vec::new(),
            common: Vec::new(),
        }
    }

    /// A contract from a file, in the language that its name or its text shows.
    ///
    /// # Errors
    /// The file cannot be read, or has mistakes ([`Kind::BadReference`]): the message shows all of them, with file, line and column.
    pub fn from_file(path: &Path, given: &Preprocessing) -> Result<Self, Failure> {
        let contract = everywire_idl::read_with(path, given)
            .map_err(|mistakes| Failure::new(Kind::BadReference, Initiator::User, mistakes.to_string()))?;
        Ok(Self::new(contract, path.display().to_string()))
    }

    /// What an object tells of itself.
    ///
    /// # Errors
    /// It does not answer, or its wire or the object cannot tell ([`Kind::Unsupported`]).
    pub fn from_object(object: &Object) -> Result<Self, Failure> {
        let wire = wire_of(object.reference())?;
        check_object(object.reference())?;
        let told = wire.discover(object)?;
        let source = "the object".to_owned();
        let known = Self {
            contract: told.contract,
            source,
            own: told.own,
            children: told.children,
            addresses: told.addresses,
            common: Vec::new(),
        };
        Ok(known.on(wire))
    }

    /// The contract of an object that is called by this wire: what may be tried on every object of it can be asked for.
    #[must_use]
    pub fn on(mut self, wire: &dyn Wire) -> Self {
        let told = |common: &&Hold<Interface>| self.contract.interfaces().any(|held| held.id == common.id);
        self.common = wire.common().iter().filter(|common| !told(common)).cloned().collect();
        self
    }

    /// What its interfaces lack of what their source has, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let of = |interface: &Interface| -> Vec<String> {
            let lacks = left_out(&interface.notes);
            lacks.map(|what| format!("{}: {} is used without {what}", self.source, interface.name)).collect()
        };
        self.contract.interfaces().flat_map(|interface| of(interface)).collect()
    }

    /// The contract of an object alone, without what every object of its wire has; with the interfaces that its own are made of, each
    /// behind those that it is derived from. It is what a user sees and may print; the common interfaces of a
    /// wire are no part of anybody's contract.
    pub fn alone(&self) -> Contract {
        let mut names = HashSet::new();
        self.contract.interfaces().take(self.own).for_each(|interface| gather(interface, &mut names));
        self.listeners().iter().for_each(|listener| gather(listener, &mut names));
        let keep = |definition: &&Definition| match definition {
            Definition::Interface(interface) => names.contains(&interface.name),
            _ => true,
        };
        let mut definitions: Vec<Definition> = Vec::new();
        for definition in self.contract.definitions.iter().filter(keep) {
            match definition {
                Definition::Interface(interface) => self.behind_bases(interface, &names, &mut definitions),
                other => definitions.push(other.clone()),
            }
        }
        Contract { definitions }
    }

    /// The interfaces of those whom the object calls back, where its contract says them ([`Contract::listeners`]).
    pub fn listeners(&self) -> Vec<Hold<Interface>> {
        let own = self.contract.interfaces().take(self.own);
        let mut found: Vec<Hold<Interface>> = Vec::new();
        for listener in own.flat_map(|interface| self.contract.listeners(interface)) {
            if !found.iter().any(|held| held.id == listener.id && held.name == listener.name) {
                found.push(listener);
            }
        }
        found
    }

    /// Adds an interface that is not there yet, after its bases. Bases may be described by the contract once
    /// more, in full; that definition is taken.
    fn behind_bases(&self, interface: &Interface, names: &HashSet<Name>, into: &mut Vec<Definition>) {
        let same = |definition: &Definition| match definition {
            Definition::Interface(held) => held.name == interface.name,
            _ => false,
        };
        if into.iter().any(same) || !names.contains(&interface.name) {
            return;
        }
        interface.bases.iter().for_each(|base| self.behind_bases(base, names, into));
        // As the contract defines it, if it does.
        into.extend(self.contract.definitions.iter().find(|definition| same(definition)).cloned());
    }

    /// The interface with this scoped name, identity or last part of a name.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn interface(&self, name: &str) -> Result<&Hold<Interface>, Mistake> {
        let whole = |held: &&Hold<Interface>| held.name == name || held.id == name;
        if let Some(found) = self.contract.interface(name).or_else(|| self.common.iter().find(whole)) {
            return Ok(found);
        }
        let mut last = self.contract.interfaces().filter(|interface| last_part(&interface.name) == name);
        let why = || format!("{} defines {}", self.source, names(&self.contract));
        match (last.next(), last.next()) {
            (Some(found), None) => Ok(found),
            (Some(_), Some(_)) => {
                Err(Mistake::interface(format!("`{name}` is more than one interface"), why())
                    .hint("give the whole name"))
            }
            (None, _) => Err(Mistake::interface(format!("there is no interface `{name}`"), why())
                .hint("choose one of these")),
        }
    }

    /// The interface of an object whose reference names the type `type_id` (or none): the one `asked` for, the one that the
    /// reference names, the only one, or the only one that declares what is `wanted`; of those that every object has, or may have, if none
    /// of its own does.
    ///
    /// # Errors
    /// None of these, or more than one.
    pub fn interface_of(
        &self,
        asked: Option<&str>,
        type_id: &str,
        wanted: Option<&str>,
    ) -> Result<&Hold<Interface>, Mistake> {
        let Self { contract, source, .. } = self;
        if let Some(name) = asked {
            return self.interface(name);
        }
        if let Some(found) =
            contract.interfaces().find(|interface| !type_id.is_empty() && interface.id == type_id)
        {
            return Ok(found);
        }
        // INTERFACE.OPERATION, where an interface has such a name.
        let scope = wanted.and_then(operation::scope);
        if let Some(found) = scope.and_then(|name| self.interface(name).ok()) {
            return Ok(found);
        }
        let mut all: Vec<&Hold<Interface>> = contract.interfaces().collect();
        // A told contract has the listeners of the object, too: it calls them, and has none of their operations.
        if self.own < all.len() {
            let listeners = self.listeners();
            let mut number = 0..;
            let own = self.own;
            all.retain(|held| {
                number.next().is_some_and(|number| number < own)
                    || !listeners.iter().any(|listener| listener.name == held.name)
            });
        }
        if let Some(wanted) =
            wanted.filter(|wanted| !all.iter().any(|held| operation::declares(held, wanted)))
            && let Some(common) = self.common.iter().find(|held| operation::declares(held, wanted))
        {
            return Ok(common);
        }
        let (own, others) = all.split_at(self.own.min(all.len()));
        match (all.as_slice(), own, wanted) {
            ([only], _, _) | (_, [only], None) => return Ok(*only),
            ([], _, _) | (_, _, None) => {}
            (_, _, Some(wanted)) => {
                let mut candidates = Vec::new();
                for set in [own, others] {
                    candidates =
                        set.iter().copied().filter(|held| operation::declares(held, wanted)).collect();
                    match candidates.as_slice() {
                        [only] => return Ok(*only),
                        [] => {}
                        _ => break,
                    }
                }
                return Err(operation::unclear(
                    wanted,
                    &candidates,
                    if own.is_empty() { others } else { own },
                ));
            }
        }
        let told = if type_id.is_empty() { "says nothing".into() } else { format!("says `{type_id}`") };
        Err(Mistake::interface(
            "the object's interface is not known",
            format!("its reference {told}, and {source} defines {}", names(contract)),
        )
        .hint("name it")
        .remedy(Remedy::ThatInterface))
    }
}

/// The names of an interface, of its bases, and of the interfaces of those who listen to it.
fn gather(interface: &Interface, names: &mut HashSet<Name>) {
    if names.insert(interface.name.clone()) {
        interface.bases.iter().for_each(|base| gather(base, names));
        let listeners = interface.signals.iter().filter_map(|signal| signal.sink.as_ref());
        listeners.for_each(|(listener, _)| gather(listener, names));
    }
}

fn names(contract: &Contract) -> String {
    let names: Vec<_> = contract.interfaces().map(|interface| interface.name.as_ref()).collect();
    if names.is_empty() { "no interface".into() } else { names.join(", ") }
}

/// The wire by which an object is reached first.
///
/// # Errors
/// The object is of this process, where no wire stands between ([`Kind::Unsupported`]).
pub fn wire_of(reference: &Reference) -> Result<&'static dyn Wire, Failure> {
    let wire = reference.profiles.iter().find_map(|profile| everywire::wires::named(profile.wire));
    wire.ok_or_else(|| {
        Failure::new(Kind::Unsupported, Initiator::User, "objects of this process need no contract told")
    })
}

/// Sees to it that a reference leads to an object, and not only to a router between others.
///
/// # Errors
/// It names no server behind the router ([`Kind::BadReference`]).
pub fn check_object(reference: &Reference) -> Result<(), Failure> {
    let Some(profile) = reference.profiles.first().filter(|profile| profile.key.is_empty()) else {
        return Ok(());
    };
    let Some(wire) = everywire::wires::named(profile.wire) else { return Ok(()) };
    // Where nobody is named, no object can be: such an address does not read back.
    let mut with_key = profile.clone();
    with_key.key = Bytes::from_static(b"x");
    // No wire says this of itself, so an address with a key is printed and read again.
    let with_key = Reference { profiles: vec![with_key], ..Reference::default() };
    let back = wire.parse(&wire.print_friendly(&with_key)).ok();
    if back.is_some_and(|back| back.profiles.first().is_some_and(|profile| profile.key == "x")) {
        return Ok(());
    }
    let address = wire.print_friendly(reference);
    Err(Failure::new(
        Kind::BadReference,
        Initiator::User,
        format!("`{address}` lacks the name of a server and of an object"),
    )
    .with_hint(format!("`everywire list {address}` tells who is there")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_object_of_the_wire_may_have_can_be_named() {
        let text = "<node><interface name='org.example.Lamp'><method name='Light'/></interface></node>";
        let lamp =
            || ObjectContract::new(everywire_idl::dbus_xml::parse(text, "lamp.xml").unwrap(), "lamp.xml");
        let peer = "org.freedesktop.DBus.Peer";
        assert!(lamp().interface(peer).is_err());
        let lamp = lamp().on(everywire::wires::named("dbus").unwrap());
        let found = |asked: Option<&str>, wanted: &str| {
            lamp.interface_of(asked, "", Some(wanted)).map(|held| held.id.to_string())
        };
        assert_eq!(found(Some(peer), "Ping").ok().as_deref(), Some(peer));
        assert_eq!(found(None, "org.freedesktop.DBus.Peer.Ping").ok().as_deref(), Some(peer));
        assert_eq!(found(None, "Ping").ok().as_deref(), Some(peer));
        assert_eq!(found(None, "GetAll").ok().as_deref(), Some("org.freedesktop.DBus.Properties"));
        assert_eq!(found(None, "Light").ok().as_deref(), Some("org.example.Lamp"));
        // It is nobody's interface, and stands in no list of what there is.
        assert_eq!(lamp.contract.interfaces().count(), 1);
        assert!(found(Some("org.freedesktop.DBus.Pear"), "Ping").is_err());
    }
}
