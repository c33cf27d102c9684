//! The interface repository: what is served, described for clients that have no contract (CORBA 3.x part 1, chapter "Interface
//! Repository"). It can be read only; definitions come with the objects that are served and go with them.
//!
//! A [`Repository`] is a snapshot: definitions in one list, each known by its repository id, with the numbers of what it contains and
//! of the types that it uses. `build` makes it of the interfaces of servants, `answers` and `describing` say what it knows in the
//! words of the specification.
//!
//! What has no place in it: constants of scopes in which nothing is served; signals; documentation; operations with values that do not travel on
//! this wire.

mod answers;
mod build;
mod describing;
pub(crate) mod key;
mod object;
mod shapes;

use crate::contracts::OBJECT;
use crate::contracts::corba::{DefinitionKind, PrimitiveKind};
use crate::wire_state::{Node, NodeServant, RepositoryQuery};
use everywire_model::{
    Constant, Failure, Hold, Initiator, Interface, Kind, Objects, Request, Servant, Shape,
};
use std::collections::HashMap;
use std::iter;
use std::sync::{Arc, Weak};

/// All definitions. It never changes once it is made; `wire_state` makes another when what is served has
/// changed.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// The first is the repository itself.
    definitions: Vec<Definition>,
    /// Numbers by repository id; of several definitions with one id, the first.
    by_id: HashMap<String, usize>,
    /// Numbers by absolute name (`::a::b`), of what has one; the repository itself has the empty name.
    by_name: HashMap<String, usize>,
}

/// A definition.
#[derive(Debug)]
pub(crate) struct Definition {
    /// What it is; decides which operations its object answers.
    kind: DefinitionKind,
    /// Repository id; of types without a name, the id of their user, `#` and a number.
    id: String,
    /// Without its scopes; empty for types without a name.
    name: String,
    /// Scopes and name, with `::` in front; empty for types without a name.
    absolute_name: String,
    /// The number of what contains it.
    within: usize,
    /// The numbers of what it contains.
    contents: Vec<usize>,
    what: DefinitionDetail,
}

/// What is known of a definition, depending on its kind.
#[derive(Debug)]
enum DefinitionDetail {
    /// The repository, or a module.
    Scope,
    Primitive(PrimitiveKind),
    Interface(Hold<Interface>),
    /// An operation: the number of its interface, and its own there; types of the result and of the parameters.
    Operation {
        interface: usize,
        index: usize,
        types: Vec<Type>,
    },
    /// An attribute: the number of its interface, and its own there.
    Attribute {
        interface: usize,
        index: usize,
        of: Type,
    },
    /// A constant, and its type.
    Constant {
        held: Constant,
        of: Type,
    },
    /// A type: what its values look like, and the types that it is made of: of members in order, of a union's discriminator first, of
    /// elements, of what another name stands for.
    Type {
        shape: Shape,
        parts: Vec<Type>,
    },
}

/// A type that a definition uses.
#[derive(Debug, Clone)]
enum Type {
    /// The definition with this number.
    At(usize),
    /// The interface with this id, if it is known.
    Interface(String),
}

impl Repository {
    /// Of all that is served.
    pub(crate) fn of(objects: &dyn Objects) -> Self {
        build::build(objects)
    }

    /// Whether there is a definition with this id; the repository itself has the empty one.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// The number of the definition of this kind with this id. Nothing, if the id belongs to a definition of
    /// another kind.
    pub(crate) fn find(&self, kind: DefinitionKind, id: &str) -> Option<usize> {
        let number = *self.by_id.get(id)?;
        (self.get(number)?.kind == kind).then_some(number)
    }

    fn get(&self, number: usize) -> Option<&Definition> {
        self.definitions.get(number)
    }

    /// The definition of a type. An interface that is not served has no definition; `Object` stands for it.
    fn type_at(&self, of: &Type) -> Option<&Definition> {
        match of {
            Type::At(number) => self.get(*number),
            Type::Interface(id) => match self.by_id.get(id) {
                Some(number) => self.get(*number),
                None => self.primitive(PrimitiveKind::PkObjref),
            },
        }
    }

    /// The definition of a primitive type, if this repository has it.
    fn primitive(&self, kind: PrimitiveKind) -> Option<&Definition> {
        self.get(*self.by_id.get(build::primitive_id(kind)?)?)
    }
}

/// The servants that stand by: the one that answers for all objects, and one for each kind of definition.
pub(crate) fn servants(node: &Weak<Node>) -> Vec<Arc<dyn Servant>> {
    let objects = NodeServant::serving(node, &OBJECT, object::answer);
    let of_kind = |kind: &key::Definition| NodeServant::serving(node, kind.interface, answer);
    iter::once(objects).chain(key::DEFINITIONS.iter().map(of_kind)).collect()
}

/// Whether a servant with this interface answers for this key. Those of definitions answer for keys of their
/// kind only; all others always.
pub(crate) fn answers(interface: &Interface, key: &[u8]) -> bool {
    let own = key::DEFINITIONS.iter().find(|definition| std::ptr::eq(definition.interface, interface));
    own.is_none_or(|own| key::parse(key).is_some_and(|(asked, _)| asked.kind == own.kind))
}

/// Answers for the definition under the key that is called.
fn answer(node: &Node, request: &mut Request) -> Result<(), Failure> {
    let Some((definition, id)) = key::parse(request.key()) else { return Err(gone(request.key())) };
    // What is asked of the repository itself concerns all that is served now.
    let whole = definition.kind == DefinitionKind::DkRepository;
    let repository =
        node.repository(if whole { RepositoryQuery::Any } else { RepositoryQuery::Definition(id) });
    let number = repository.find(definition.kind, id).ok_or_else(|| gone(request.key()))?;
    answers::answer(&answers::DefinitionRef { node, repository: &repository, number }, request)
}

/// The failure for a definition that is served no longer, or never was.
fn gone(key: &[u8]) -> Failure {
    let key = everywire_model::reference::escape(key);
    Failure::new(Kind::NoObject, Initiator::Peer, format!("the repository has no definition `{key}`"))
}
