//! Contracts from files, and the interface that is meant.

use crate::output::note;
use crate::trouble::{Done, Trouble};
use crate::{operation, stranger};
use everywire::model::contract::left_out;
use everywire::model::shape::Name;
use everywire::model::{Contract, Definition, Hold, Wire};
use everywire::{Failure, Initiator, Interface, Kind, Object, Reference};
use everywire_idl::Preprocessing;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What the preprocessor of a contract's language is given, where it has one.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Preprocess {
    /// Where files that the contract includes or imports are looked for, after its own directory.
    #[arg(short = 'I', long = "include", value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// A macro for the contract's preprocessor; it stands for 1 unless a value is given.
    #[arg(short = 'D', long = "define", value_name = "NAME[=VALUE]")]
    macros: Vec<String>,
}

/// Reads a contract. What it has and cannot be used is told on standard error.
pub(crate) fn load(path: &Path, given: &Preprocess) -> Done<Contract> {
    let given =
        given.macros.iter().fold(
            Preprocessing { directories: given.directories.clone(), macros: Vec::new() },
            |all, option| all.define(option),
        );
    let contract = everywire_idl::read_with(path, &given)
        .map_err(|diagnostics| Trouble::contract(diagnostics.to_string()))?;
    warn(&contract, &path.display().to_string());
    Ok(contract)
}

/// Tells what the interfaces of a contract lack of what their source has.
fn warn(contract: &Contract, source: &str) {
    for interface in contract.interfaces() {
        for what in left_out(&interface.notes) {
            note(&format!("warning: {source}: {} is used without {what}", interface.name));
        }
    }
}

/// A contract, and where it is from.
pub(crate) struct Known {
    pub(crate) contract: Contract,
    /// For messages: the file, or the object itself.
    pub(crate) source: String,
    /// How many of its interfaces, from the first, are the object's own; others every object of its wire has.
    pub(crate) own: usize,
    /// Keys of objects below the object, if it told.
    pub(crate) children: Vec<everywire::Bytes>,
}

impl Known {
    /// A contract from a file.
    pub(crate) fn of_file(path: &Path, given: &Preprocess) -> Done<Self> {
        let contract = load(path, given)?;
        let own = contract.interfaces().count();
        Ok(Self { contract, source: path.display().to_string(), own, children: Vec::new() })
    }

    /// What an object tells of itself.
    pub(crate) fn of_object(object: &Object) -> Result<Self, Failure> {
        let wire = wire_of(object.reference())?;
        somebody(object.reference())?;
        let told = wire.discover(object)?;
        let source = "the object".to_owned();
        warn(&told.contract, &source);
        Ok(Self { contract: told.contract, source, own: told.own, children: told.children })
    }

    /// The contract of an object alone, without what every object of its wire has; with the interfaces that its own are made of, each
    /// behind those that it is derived from.
    pub(crate) fn alone(&self) -> Contract {
        let mut names = HashSet::new();
        self.contract.interfaces().take(self.own).for_each(|interface| gather(interface, &mut names));
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

    /// Adds an interface that is not there yet, after its bases.
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

    /// From a file if one is given, else from the object itself.
    pub(crate) fn of(object: &Object, path: Option<&Path>, given: &Preprocess) -> Done<Self> {
        match path {
            Some(path) => Self::of_file(path, given),
            None => Self::of_object(object).map_err(|failure| {
                let what = match failure.kind() {
                    // Who is not let in, or finds nobody, has not asked yet.
                    Kind::Refused | Kind::Unreachable | Kind::TimedOut | Kind::Busy => {
                        "the object cannot be asked for its contract"
                    }
                    _ => "the object does not tell its contract",
                };
                let trouble = stranger::named(Trouble::failure(what, &failure), object.reference());
                if failure.kind() == Kind::Unsupported {
                    trouble.hint("give the contract with --contract FILE")
                } else {
                    trouble
                }
            }),
        }
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

/// The wire by which an object is reached first.
pub(crate) fn wire_of(reference: &Reference) -> Result<&'static dyn Wire, Failure> {
    let wire = reference.profiles.iter().find_map(|profile| everywire::wires::named(profile.wire));
    wire.ok_or_else(|| {
        Failure::new(Kind::Unsupported, Initiator::User, "objects of this process need no contract told")
    })
}

/// The interface of a contract with this scoped name, identity or last part of a name.
pub(crate) fn interface<'c>(contract: &'c Contract, name: &str, source: &str) -> Done<&'c Hold<Interface>> {
    if let Some(found) = contract.interface(name) {
        return Ok(found);
    }
    let mut last = contract.interfaces().filter(|interface| last_part(&interface.name) == name);
    match (last.next(), last.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(Trouble::usage(
            format!("`{name}` is more than one interface"),
            format!("{source} defines {}", names(contract)),
        )
        .hint("give the whole name")),
        (None, _) => Err(Trouble::usage(
            format!("there is no interface `{name}`"),
            format!("{source} defines {}", names(contract)),
        )
        .hint("choose one of these")),
    }
}

/// The interface of an object: the one asked for, the one its reference names, the only one, or the only one that
/// declares the operation; of those that every object has, if none of its own does.
pub(crate) fn interface_of<'c>(
    known: &'c Known,
    asked: Option<&str>,
    type_id: &str,
    wanted: Option<&str>,
) -> Done<&'c Hold<Interface>> {
    let Known { contract, source, .. } = known;
    if let Some(name) = asked {
        return interface(contract, name, source);
    }
    if let Some(found) =
        contract.interfaces().find(|interface| !type_id.is_empty() && interface.id == type_id)
    {
        return Ok(found);
    }
    // INTERFACE.OPERATION, where an interface has such a name.
    let scope = wanted.and_then(operation::scope);
    if let Some(found) = scope.and_then(|name| interface(contract, name, source).ok()) {
        return Ok(found);
    }
    let all: Vec<&Hold<Interface>> = contract.interfaces().collect();
    let (own, others) = all.split_at(known.own.min(all.len()));
    match (all.as_slice(), own, wanted) {
        ([only], _, _) | (_, [only], None) => return Ok(*only),
        ([], _, _) | (_, _, None) => {}
        (_, _, Some(wanted)) => {
            let mut candidates = Vec::new();
            for set in [own, others] {
                candidates = set.iter().copied().filter(|held| operation::declares(held, wanted)).collect();
                match candidates.as_slice() {
                    [only] => return Ok(*only),
                    [] => {}
                    _ => break,
                }
            }
            return Err(operation::unclear(wanted, &candidates, if own.is_empty() { others } else { own }));
        }
    }
    let told = if type_id.is_empty() { "says nothing".into() } else { format!("says `{type_id}`") };
    Err(Trouble::usage(
        "the object's interface is not known",
        format!("its reference {told}, and {source} defines {}", names(contract)),
    )
    .hint("name it with --interface"))
}

fn names(contract: &Contract) -> String {
    let names: Vec<_> = contract.interfaces().map(|interface| interface.name.as_ref()).collect();
    if names.is_empty() { "no interface".into() } else { names.join(", ") }
}

/// Sees to it that a reference leads to somebody, and not only to a router between others.
pub(crate) fn somebody(reference: &Reference) -> Result<(), Failure> {
    let Some(profile) = reference.profiles.first().filter(|profile| profile.key.is_empty()) else {
        return Ok(());
    };
    let Some(wire) = everywire::wires::named(profile.wire) else { return Ok(()) };
    // Where nobody is named, no object can be: such an address does not read back.
    let mut with_key = profile.clone();
    with_key.key = everywire::Bytes::from_static(b"x");
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

/// The last part of a scoped name.
pub(crate) fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
