//! Contracts from files, and the interface that is meant.

use crate::operation;
use crate::trouble::{Done, Trouble};
use everywire::Interface;
use everywire::model::{Contract, Hold};
use std::path::Path;

/// Reads a contract.
pub(crate) fn load(path: &Path) -> Done<Contract> {
    everywire_idl::read(path).map_err(|diagnostics| Trouble::contract(diagnostics.to_string()))
}

/// The interface of a contract with this scoped name, identity or last part of a name.
pub(crate) fn interface<'c>(contract: &'c Contract, name: &str, path: &Path) -> Done<&'c Hold<Interface>> {
    if let Some(found) = contract.interface(name) {
        return Ok(found);
    }
    let mut last = contract.interfaces().filter(|interface| last_part(&interface.name) == name);
    match (last.next(), last.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(Trouble::usage(
            format!("`{name}` is more than one interface"),
            format!("{} defines {}", path.display(), names(contract)),
        )
        .hint("give the whole name")),
        (None, _) => Err(Trouble::usage(
            format!("there is no interface `{name}`"),
            format!("{} defines {}", path.display(), names(contract)),
        )
        .hint("choose one of these")),
    }
}

/// The interface of an object: the one asked for, the one its reference names, the only one, or the only one that
/// declares the operation.
pub(crate) fn interface_of<'c>(
    contract: &'c Contract,
    path: &Path,
    asked: Option<&str>,
    type_id: &str,
    wanted: Option<&str>,
) -> Done<&'c Hold<Interface>> {
    if let Some(name) = asked {
        return interface(contract, name, path);
    }
    if let Some(found) =
        contract.interfaces().find(|interface| !type_id.is_empty() && interface.id == type_id)
    {
        return Ok(found);
    }
    let mut all = contract.interfaces();
    if let (Some(only), None) = (all.next(), all.next()) {
        return Ok(only);
    }
    if let Some(wanted) = wanted {
        let mut declaring = contract.interfaces().filter(|interface| operation::declares(interface, wanted));
        if let (Some(only), None) = (declaring.next(), declaring.next()) {
            return Ok(only);
        }
    }
    let told = if type_id.is_empty() { "says nothing".into() } else { format!("says `{type_id}`") };
    Err(Trouble::usage(
        "the object's interface is not known",
        format!("its reference {told}, and {} defines {}", path.display(), names(contract)),
    )
    .hint("name it with --interface"))
}

fn names(contract: &Contract) -> String {
    let names: Vec<_> = contract.interfaces().map(|interface| interface.name.as_ref()).collect();
    if names.is_empty() { "no interface".into() } else { names.join(", ") }
}

/// The last part of a scoped name.
pub(crate) fn last_part(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
