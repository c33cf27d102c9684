//! Asking an object for its contract: the interface repository that its server names (`_interface`), and what
//! that says of the interface and of those that it is derived from.
//!
//! One `Asking` lives for one contract. It walks the interfaces depth first, bases before the derived
//! (`interface`), learns scoped names and types on the way (`types`), then looks for the interfaces of those
//! whom the object calls back (`listeners`), and at the end asks the scopes around for constants (`constants`). All calls are blocking calls, made through `questions`, which counts
//! them.
//!
//! Another side's repository is asked, so everything is bounded: interfaces (`INTERFACES`), inheritance
//! (`DEPTH`), questions and time (`questions`), types in its answers (`types`) and what they keep for ever (`cells`), beyond what every message is
//! bounded by. An interface that is told to be its own base is an error. Operations with types whose values
//! this side cannot hold are left out, and said to be.

mod cells;
mod constants;
mod members;
mod questions;
mod types;

use crate::contracts::corba::describe;
use crate::contracts::corba::interface_attr_extension::ExtFullInterfaceDescription;
use crate::contracts::corba::interface_def::FullInterfaceDescription;
use crate::contracts::{INTERFACE, IS_A};
use everywire_model::shape::Name;
use everywire_model::wire::Discovery;
use everywire_model::{
    Contract, Definition, Endpoint, Failure, Hold, Initiator, Interface, Kind, Object, Operation, Reference,
};
use questions::Questions;
use std::collections::{HashMap, HashSet};
use types::Types;

/// Most interfaces of one contract, bases included. Larger systems have fewer in one hierarchy; the bound is
/// for repositories that invent bases.
const INTERFACES: usize = 200;
/// Most interfaces that are looked at for being listeners' ones. Each costs some ten questions.
const LISTENERS: usize = 16;
/// Deepest inheritance that is followed. The walk recurses once for each level, so this bounds the stack too.
const DEPTH: usize = 32;

/// Asks an object for its contract.
///
/// # Errors
/// Its server has no interface repository ([`Kind::Unsupported`]), or does not answer; there is no such object.
pub(crate) fn discover(object: &Object) -> Result<Discovery, Failure> {
    let described = match object.call::<_, (Option<Reference>,), Failure>(INTERFACE, ()) {
        Ok((Some(described),)) => described,
        Ok((None,)) => return Err(lacking("nil")),
        Err(failure) if is_lack(&failure) => {
            return Err(lacking(failure.code().unwrap_or_else(|| failure.message())));
        }
        Err(failure) => return Err(failure),
    };
    let mut asking = Asking {
        questions: Questions::new(object),
        made: HashMap::new(),
        order: Vec::new(),
        scopes: Vec::new(),
        types: Types::told_at(host(object)),
    };
    let first = asking
        .interface(&described, DEPTH)
        .map_err(|failure| failure.at("a question to the interface repository"))?;
    // (Everywire's own repository makes such an interface for an object with several, see
    // `repository::build`.)
    // One that stands for several is nobody's own: what it is made of is.
    let own: Vec<Hold<Interface>> =
        if first.id.starts_with("LOCAL:") { first.bases.to_vec() } else { vec![first.clone()] };
    asking.listeners(&own);
    let known = |other: &Hold<Interface>| other.id == first.id || own.iter().any(|held| held.id == other.id);
    let rest: Vec<Hold<Interface>> = asking.order.into_iter().filter(|other| !known(other)).collect();
    let count = own.len();
    let constants = constants::of(asking.scopes, &mut asking.types, &mut asking.questions);
    let mut definitions = asking.types.into_definitions()?;
    definitions.extend(constants.into_iter().map(Definition::Constant));
    definitions.extend(own.into_iter().chain(rest).map(Definition::Interface));
    Ok(Discovery { contract: Contract { definitions }, own: count, ..Discovery::default() })
}

/// The host, or the place on this one, where an object is reached first.
fn host(object: &Object) -> String {
    let first = object.reference().profiles.iter().flat_map(|profile| &profile.endpoints).next();
    match first.map(Endpoint::stream) {
        Some(Endpoint::Tcp { host, .. }) => host.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// Whether a failure is that of a server without an interface repository: what ORBs answer which do not know
/// the operation, or know of no repository. Such servers answer BAD_OPERATION, NO_IMPLEMENT or INTF_REPOS; JacORB
/// answers INITIALIZE, since it was started without the initial reference `InterfaceRepository`.
fn is_lack(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unsupported | Kind::NoOperation)
        || failure.code().is_some_and(|code| code.starts_with("CORBA::INITIALIZE"))
}

/// The failure that tells the user to give a contract himself; `answer` is what the server said.
fn lacking(answer: &str) -> Failure {
    let what = format!("its server has no interface repository: to `_interface` it answers {answer}");
    Failure::new(Kind::Unsupported, Initiator::Peer, what).with_hint("give the contract with --contract FILE")
}

/// What is known so far of one contract.
struct Asking {
    questions: Questions,
    /// Interfaces by their repository ids; `None` while the bases of the interface are being asked for, which
    /// shows a circle.
    made: HashMap<String, Option<Hold<Interface>>>,
    /// The complete interfaces, each after its bases.
    order: Vec<Hold<Interface>>,
    /// The repository's definitions of those interfaces: where to ask for constants.
    scopes: Vec<Reference>,
    types: Types,
}

impl Asking {
    /// An interface and its bases. Each is asked for once, whatever number of interfaces derive from it;
    /// `depth` is how many levels may still follow.
    ///
    /// # Errors
    /// A question failed, a bound was met, or the interface is told to derive from itself.
    fn interface(&mut self, described: &Reference, depth: usize) -> Result<Hold<Interface>, Failure> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Failure::over_limit(Initiator::Peer, "levels of inheritance", DEPTH + 1, DEPTH));
        };
        let told: FullInterfaceDescription =
            self.questions.ask(described, &describe::INTERFACE_DEF, "describe_interface", ())?;
        match self.made.get(&told.id) {
            Some(Some(made)) => return Ok(made.clone()),
            Some(None) => {
                let what = format!("the interface `{}` is told to be derived from itself", told.id);
                return Err(Failure::new(Kind::Malformed, Initiator::Peer, what));
            }
            None => {}
        }
        if self.made.len() == INTERFACES {
            let limit = INTERFACES as u64;
            return Err(Failure::over_limit(Initiator::Peer, "interfaces of one contract", limit + 1, limit));
        }
        self.made.insert(told.id.clone(), None);
        let name = self.absolute_name(described, &told)?;
        let mut bases = Vec::new();
        if !told.base_interfaces.is_empty() {
            let told: Vec<Option<Reference>> =
                self.questions.ask(described, &describe::INTERFACE_DEF, "base_interfaces", ())?;
            for base in told.iter().flatten() {
                bases.push(self.interface(base, depth)?);
            }
        }
        let extended = self.extended(described, &told)?;
        let told_of = members::InterfaceAnswer { told: &told, extended: extended.as_ref(), name, bases };
        self.scopes.push(described.clone());
        let interface = Hold::new(told_of.interface(&mut self.types, &mut self.questions)?);
        self.made.insert(told.id, Some(interface.clone()));
        self.order.push(interface.clone());
        Ok(interface)
    }

    /// The interfaces of listeners: those that the repository knows of the objects that operations take, and that only listen. What it
    /// does not tell of them is not missed: the contract is whole without.
    fn listeners(&mut self, own: &[Hold<Interface>]) {
        let mut seen = HashSet::new();
        let taken = own.iter().flat_map(|interface| interface.operations.iter()).flat_map(Operation::takes);
        let ids: Vec<&Name> = taken.map(|taken| &taken.id).filter(|id| seen.insert(*id)).collect();
        for id in ids.into_iter().filter(|id| !id.is_empty()).take(LISTENERS) {
            if self.made.contains_key(id.as_ref()) {
                continue;
            }
            let (interfaces, scopes) = (self.order.len(), self.scopes.len());
            let found = self.questions.find(id).map(|found| self.interface(&found, DEPTH));
            match found {
                Some(Ok(found)) if found.only_listens() => self.keep(&found),
                _ => {
                    self.order.truncate(interfaces);
                    self.scopes.truncate(scopes);
                }
            }
        }
    }

    /// Has an interface in the order, behind its bases: one of them may have been made for a listener that was not taken. As deep as the
    /// walk that made it.
    fn keep(&mut self, interface: &Hold<Interface>) {
        interface.bases.iter().for_each(|base| self.keep(base));
        if !self.order.iter().any(|held| held.id == interface.id) {
            self.order.push(interface.clone());
        }
    }

    /// The scoped name of an interface, which also shows the prefix of its id and of others. From the two
    /// together `types` learns which prefix stands before the scopes in repository ids.
    fn absolute_name(
        &mut self,
        described: &Reference,
        told: &FullInterfaceDescription,
    ) -> Result<String, Failure> {
        // Some repositories do not know it.
        let name: Result<String, Failure> =
            self.questions.ask(described, &describe::INTERFACE_DEF, "absolute_name", ());
        let name = name.unwrap_or_default();
        let name = name.trim_start_matches("::");
        let name = if name.is_empty() { &told.name } else { name };
        self.types.learn(&told.id, name);
        Ok(name.to_owned())
    }

    /// What the repository tells of attributes that raise exceptions; nothing if there are no attributes, or
    /// if the definition is no `ExtInterfaceDef` (older repositories). It is asked by `_is_a`, since the
    /// reference may have been published with the older type.
    fn extended(
        &mut self,
        described: &Reference,
        told: &FullInterfaceDescription,
    ) -> Result<Option<ExtFullInterfaceDescription>, Failure> {
        if told.attributes.is_empty() {
            return Ok(None);
        }
        let object = self.questions.to(described, &describe::EXT_INTERFACE_DEF)?;
        let is = object.call::<_, (bool,), Failure>(&IS_A, (&*describe::EXT_INTERFACE_DEF.id,));
        if !matches!(is, Ok((true,))) {
            return Ok(None);
        }
        Ok(self.questions.ask(described, &describe::EXT_INTERFACE_DEF, "describe_ext_interface", ()).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cdr::Get;
    use crate::exceptions::SystemException;

    /// The failure of a reply with a system exception of this name.
    fn raised(name: &str) -> Failure {
        let id = format!("IDL:omg.org/CORBA/{name}:1.0\0");
        let mut octets = u32::try_from(id.len()).unwrap_or_default().to_be_bytes().to_vec();
        octets.extend(id.as_bytes());
        octets.resize(octets.len().next_multiple_of(4) + 8, 0);
        let mut get = Get { bytes: &octets, pos: 0, base: 0, little: false };
        SystemException::get(&mut get).map_or_else(Failure::from, |exception| exception.into_failure(None))
    }

    #[test]
    fn what_orbs_without_a_repository_raise_is_a_lack() {
        for name in ["INTF_REPOS", "NO_IMPLEMENT", "BAD_OPERATION", "INITIALIZE"] {
            assert!(is_lack(&raised(name)), "{name}");
        }
        for name in ["OBJECT_NOT_EXIST", "NO_PERMISSION", "TRANSIENT", "INTERNAL", "UNKNOWN"] {
            assert!(!is_lack(&raised(name)), "{name}");
        }
    }
}
