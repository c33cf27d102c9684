//! What every object answers without a contract (CORBA 3.3 part 2, section 9.4.2.2): its description in the repository, its component,
//! its type.

use super::{build, key};
use crate::contracts::corba::DefinitionKind;
use crate::contracts::{OBJECT, id_of};
use crate::naming;
use crate::wire_state::{Node, RepositoryQuery};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Initiator, Interface, Kind, Reference, Request};

/// What an object is.
enum Type {
    /// Of an interface with this id, which the repository has.
    Served(String),
    /// One of this wire's own, which no repository describes.
    Own(&'static Interface),
}

/// Answers what all objects answer, whatever their keys; the number of the operation is that in `contracts::OBJECT`.
pub(super) fn answer(node: &Node, request: &mut Request) -> Result<(), Failure> {
    let of = type_of(node, request.key()).ok_or_else(|| no_object(request.key()))?;
    match (request.index(), of) {
        (0, Type::Served(id)) => {
            let repository = node.repository(RepositoryQuery::Served(&id));
            let found = repository.find(DefinitionKind::DkInterface, &id).is_some();
            let described = found.then(|| {
                let type_id = key::definition(DefinitionKind::DkInterface).type_id;
                node.objects().publish(type_id, &key::of(DefinitionKind::DkInterface, &id))
            });
            request.reply::<(Option<Reference>,), Failure>(Ok((described,)))
        }
        // There is none: the interfaces of a repository are everybody's, and no component is served.
        (0 | 1, _) => request.reply::<(Option<Reference>,), Failure>(Ok((None,))),
        (2, Type::Served(id)) => request.reply::<(&str,), Failure>(Ok((&id,))),
        (2, Type::Own(interface)) => request.reply::<(&str,), Failure>(Ok((&interface.id,))),
        _ => Err(no_operation(&OBJECT)),
    }
}

/// What the object under a key is; nothing if there is no such object. Objects that users export come before
/// those of the wire's own.
fn type_of(node: &Node, key: &[u8]) -> Option<Type> {
    let servants = node.objects().servants(key);
    match servants.as_slice() {
        [] => {}
        [only] => {
            let interface = only.interface();
            return Some(Type::Served(id_of(&interface.id, &interface.name)));
        }
        _ => return Some(Type::Served(build::id_of_object(key))),
    }
    if let Some((definition, id)) = key::parse(key) {
        node.repository(RepositoryQuery::Definition(id)).find(definition.kind, id)?;
        return Some(Type::Own(definition.interface));
    }
    naming::locate(node, key).map(Type::Own)
}

/// The failure for a key that nobody serves.
fn no_object(key: &[u8]) -> Failure {
    let key = everywire_model::reference::escape(key);
    Failure::new(Kind::NoObject, Initiator::Peer, format!("no object has the key `{key}`"))
}
