//! The plan: which module each definition goes to, and what everything is called.
//!
//! State: modules with their items in the order of the contract, and for each definition its place. The plan
//! is made in one pass and only read afterwards, so whoever writes a name asks the plan and never makes one.
//!
//! Names are given in this order: first the definitions themselves, then bases that the contract does not
//! define, and then, one definition after another, types that it uses without a definition and what follows
//! from it (error types, the asynchronous trait, signals). So the names that people know from the contract
//! stay, and the others
//! give way.
//!
//! Invariants: in a module no two types, values, inner modules or statics have one name; the numbers of
//! methods are those of operations; an inherited method is called as its base calls it, because a stub
//! implements the base's trait as well.
//!
//! A type without a name is found by its fingerprint (`gather`), since equal ones are one type.

use super::definitions::{is_tuple, literal, local, name_of, scope_of};
use super::gather::{TypeUse, fingerprint, gather};
use super::graph::TypeGraph;
use crate::names::{self, UniqueNames, camel, screaming};
use everywire_model::contract::{SUCCESS, note};
use everywire_model::shape::{Shape, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, InterfaceKind, Operation};
use std::collections::HashMap;

/// Where something is: modules from the root of the generated text, and its name there.
#[derive(Debug, Clone, Default)]
pub(super) struct ItemPath {
    /// The modules around it, the outermost first.
    pub(super) path: Vec<String>,
    /// Its name there; empty where it is not shown.
    pub(super) name: String,
    /// The static of [`super::describe`] that describes it.
    pub(super) described: String,
    /// Whether it has a name in Rust; else it is another spelling of a type that has.
    pub(super) shown: bool,
}

/// One module of the generated text.
#[derive(Debug, Default)]
pub(super) struct Module<'c> {
    /// Its name in the contract.
    pub(super) scope: String,
    pub(super) path: Vec<String>,
    /// In the order of the contract.
    pub(super) items: Vec<Item<'c>>,
    /// Inner modules: numbers in [`Plan::modules`].
    pub(super) inner: Vec<usize>,
    /// Names that are taken in it: each kind has its own.
    types: UniqueNames,
    values: UniqueNames,
    modules: UniqueNames,
    statics: UniqueNames,
}

/// What is generated for one definition.
#[derive(Debug)]
pub(super) enum Item<'c> {
    /// A struct, enumeration, union or alias.
    Type(&'c Shape),
    Exception(&'c Struct),
    /// With its name in Rust.
    Constant(&'c everywire_model::Constant, String),
    Interface(&'c Interface, Box<Family>),
    /// One that the contract is based on and does not define: it is described only.
    Foreign(&'c Interface, Box<Family>),
}

/// The names of what an interface becomes.
#[derive(Debug, Clone, Default)]
pub(super) struct Family {
    /// The blocking trait.
    pub(super) blocking: String,
    /// The asynchronous one.
    pub(super) asynchronous: String,
    /// Methods, for each operation of the interface. In the order of the operations.
    pub(super) methods: Vec<String>,
    /// Error types this interface introduces: name, exceptions. Operations with the same exceptions share
    /// one.
    pub(super) errors: Vec<(String, Vec<Hold<Struct>>)>,
    /// The static that holds its operations.
    pub(super) operations: String,
    /// The static that holds its signals.
    pub(super) signals: String,
    /// The types of its own signals: number among all its signals, name.
    pub(super) occasions: Vec<(usize, String)>,
}

/// The plan.
#[derive(Debug, Default)]
pub(super) struct Plan<'c> {
    pub(super) modules: Vec<Module<'c>>,
    /// By the scoped name of the contract, or by the fingerprint of a type without a name.
    places: HashMap<String, ItemPath>,
    /// Interface, operation: where its error type is.
    errors: HashMap<(String, String), ItemPath>,
    /// By the scoped name.
    interfaces: HashMap<String, (&'c Interface, Family)>,
    /// Numbers of modules by their scope in the contract.
    scopes: HashMap<String, usize>,
    /// Which types hold one another, and which can be compared.
    pub(super) graph: TypeGraph,
    /// Whether each method of a MIDL object tells how it succeeded.
    success_codes: bool,
    /// The named types of the contract: what a value of any type may be. None where no interface has such values.
    pub(super) known: Vec<&'c Shape>,
    /// The static with them.
    pub(super) known_static: ItemPath,
}

/// What every object of MIDL is. The IID of `IUnknown`: who is based on it returns an HRESULT.
const UNKNOWN: &str = "00000000-0000-0000-c000-000000000046";

impl<'c> Plan<'c> {
    /// Plans a contract.
    pub(super) fn new(contract: &'c Contract, success_codes: bool) -> Self {
        let mut plan = Self { graph: TypeGraph::new(shapes(contract)), success_codes, ..Self::default() };
        plan.scope("");
        let mut pending = Vec::new();
        // Names of definitions first: a name that is derived from one gets a number where it is taken.
        for definition in &contract.definitions {
            let scope = plan.scope(scope_of(name_of(definition)));
            let shown = match definition {
                Definition::Type(Shape::Alias(alias)) => names::is_identifier(&alias.name),
                _ => true,
            };
            let constant = matches!(definition, Definition::Constant(_));
            plan.place(scope, name_of(definition), local(name_of(definition)), constant, shown);
            pending.push((scope, definition));
        }
        // Bases come before what is found in operations, since they are known by name.
        for interface in contract.interfaces() {
            plan.foreign(interface);
        }
        for ((scope, definition), found) in pending.into_iter().zip(gather(contract)) {
            for found in found {
                plan.found(scope, found);
            }
            let item = match definition {
                Definition::Type(shape) => Item::Type(shape),
                Definition::Exception(exception) => Item::Exception(exception),
                Definition::Constant(constant) => {
                    let name =
                        plan.places.get(constant.name.as_ref()).map_or_else(String::new, |p| p.name.clone());
                    Item::Constant(constant, name)
                }
                Definition::Interface(interface) => {
                    let family = plan.family(scope, interface);
                    plan.interfaces.insert(interface.name.to_string(), (interface, family.clone()));
                    Item::Interface(interface, Box::new(family))
                }
            };
            if let Some(module) = plan.modules.get_mut(scope) {
                module.items.push(item);
            }
        }
        if contract.interfaces().any(|interface| interface.has_any()) {
            plan.know(contract);
        }
        plan
    }

    /// Gives the list of the contract's named types its place: the innermost module around all of them.
    fn know(&mut self, contract: &'c Contract) {
        let mut around: Option<&str> = None;
        for definition in &contract.definitions {
            if let Definition::Type(shape) = definition {
                let scope = scope_of(name_of(definition));
                let mut common = around.unwrap_or(scope);
                while !(common.is_empty() || scope == common || scope.starts_with(&format!("{common}::"))) {
                    common = scope_of(common);
                }
                around = Some(common);
                self.known.push(shape);
            }
        }
        let number = self.scope(around.unwrap_or_default());
        if let Some(module) = self.modules.get_mut(number) {
            let described = module.statics.name_value("TYPES".to_owned());
            self.known_static = ItemPath { path: module.path.clone(), described, ..ItemPath::default() };
        }
    }

    /// The constants of the contract.
    pub(super) fn constants(&self) -> impl Iterator<Item = &'c everywire_model::Constant> {
        self.modules.iter().flat_map(|module| &module.items).filter_map(|item| match item {
            Item::Constant(constant, _) => Some(*constant),
            _ => None,
        })
    }

    /// Whether servants tell constants: there are some, and interfaces.
    pub(super) fn tells_constants(&self) -> bool {
        !self.interfaces.is_empty() && self.constants().any(|held| literal(&held.value).is_some())
    }

    /// Number of the module for a scope of the contract (a module, or an interface with types inside).
    fn scope(&mut self, scope: &str) -> usize {
        if let Some(number) = self.scopes.get(scope) {
            return *number;
        }
        let number = if scope.is_empty() {
            self.modules.push(Module {
                types: UniqueNames::types(),
                statics: UniqueNames::statics(),
                ..Module::default()
            });
            0
        } else {
            let outer = self.scope(scope_of(scope));
            let number = self.modules.len();
            let mut path = Vec::new();
            if let Some(outer) = self.modules.get_mut(outer) {
                path.clone_from(&outer.path);
                path.push(outer.modules.name_value(names::module(local(scope))));
                outer.inner.push(number);
            }
            self.modules.push(Module {
                scope: scope.to_owned(),
                path,
                types: UniqueNames::types(),
                statics: UniqueNames::statics(),
                ..Module::default()
            });
            number
        };
        self.scopes.insert(scope.to_owned(), number);
        number
    }

    /// Gives places to the bases that the contract does not define.
    fn foreign(&mut self, interface: &'c Interface) {
        for base in interface.bases.iter() {
            if self.places.contains_key(base.name.as_ref()) {
                continue;
            }
            self.foreign(base);
            let scope = self.scope(scope_of(&base.name));
            self.place(scope, &base.name, local(&base.name), false, false);
            let described = self.places.get(base.name.as_ref()).map_or("", |place| place.described.as_str());
            // It has no trait, and its operations must be described for those that inherit them.
            let wanted = format!("{described}_OPERATIONS");
            if let Some(module) = self.modules.get_mut(scope) {
                let family = Family { operations: module.statics.name_value(wanted), ..Family::default() };
                module.items.push(Item::Foreign(base, Box::new(family)));
            }
        }
    }

    /// Gives a place to a type that is used and nowhere defined. Only its name decides the module, except
    /// where it has none: then it is where it is used first.
    fn found(&mut self, scope: usize, found: TypeUse<'c>) {
        let (scope, shape) = match found {
            TypeUse::Named(shape, name) => {
                let scope = self.scope(scope_of(name));
                let shown = !matches!(shape, Shape::Alias(_)) || like_a_type(name);
                self.place(scope, name, local(name), false, shown);
                (scope, shape)
            }
            TypeUse::Nameless(shape, wanted) => {
                self.place(scope, &fingerprint(shape), &wanted, false, true);
                (scope, shape)
            }
        };
        if let Some(module) = self.modules.get_mut(scope) {
            module.items.push(Item::Type(shape));
        }
    }

    /// Gives a definition its place. `wanted` is the name that it would like, `shown` whether it has one in
    /// Rust.
    fn place(&mut self, scope: usize, name: &str, wanted: &str, constant: bool, shown: bool) {
        let Some(module) = self.modules.get_mut(scope) else { return };
        let described = screaming(wanted);
        let place = if constant {
            ItemPath {
                path: module.path.clone(),
                name: module.values.name_value(described),
                described: String::new(),
                shown,
            }
        } else {
            let given = if shown { module.types.name_type(names::type_name(wanted)) } else { String::new() };
            let described = module.statics.name_value(described);
            ItemPath { path: module.path.clone(), name: given, described, shown }
        };
        self.places.insert(name.to_owned(), place);
    }

    /// The names of everything that an interface becomes. Its own operations make error types, in the order
    /// in which they come.
    fn family(&mut self, scope: usize, interface: &'c Interface) -> Family {
        let Some(place) = self.places.get(interface.name.as_ref()).cloned() else { return Family::default() };
        let methods = self.methods(interface);
        let Some(module) = self.modules.get_mut(scope) else { return Family::default() };
        let mut family = Family {
            blocking: place.name.clone(),
            asynchronous: module.types.name_type(format!("{}Async", place.name)),
            methods,
            errors: Vec::new(),
            operations: module.statics.name_value(format!("{}_OPERATIONS", place.described)),
            signals: String::new(),
            occasions: Vec::new(),
        };
        if !interface.signals.is_empty() {
            family.signals = module.statics.name_value(format!("{}_SIGNALS", place.described));
        }
        let inherited =
            |name: &str| interface.bases.iter().any(|base| base.signal(name.as_bytes()).is_some());
        for (index, signal) in interface.signals.iter().enumerate() {
            if !inherited(&signal.name) {
                let name = module.types.name_type(format!("{}{}", place.name, camel(&signal.label)));
                family.occasions.push((index, name));
            }
        }
        // Operations of one interface that raise the same exceptions share an error type, named by the interface.
        let own = interface.operations.get(interface.inherited..).unwrap_or_default();
        let mut groups: Vec<(Vec<&str>, Vec<&Operation>)> = Vec::new();
        for operation in own.iter().filter(|operation| !operation.raises.is_empty()) {
            let raised: Vec<&str> = operation.raises.iter().map(|raised| raised.name.as_ref()).collect();
            match groups.iter_mut().find(|(names, _)| *names == raised) {
                Some((_, operations)) => operations.push(operation),
                None => groups.push((raised, vec![operation])),
            }
        }
        for (_, operations) in groups {
            let Some(first) = operations.first() else { continue };
            // One that a single operation has is called like the operation.
            let wanted = if operations.len() > 1 {
                format!("{}Error", place.name)
            } else {
                format!("{}Error", camel(&first.label))
            };
            let name = module.types.name_type(wanted);
            let mut exceptions: Vec<Hold<Struct>> = Vec::new();
            // An exception may be named twice by two names.
            for raised in first.raises.iter() {
                if exceptions.iter().all(|known| known.name != raised.name) {
                    exceptions.push(raised.clone());
                }
            }
            family.errors.push((name.clone(), exceptions));
            for operation in operations {
                let error = ItemPath {
                    path: place.path.clone(),
                    name: name.clone(),
                    described: String::new(),
                    shown: true,
                };
                self.errors.insert((interface.name.to_string(), operation.name.to_string()), error);
            }
        }
        family
    }

    /// Names of the methods, for each operation: those of the bases as the bases have them, then its own. An
    /// accessor is called like the attribute.
    fn methods(&self, interface: &Interface) -> Vec<String> {
        if interface.kind == InterfaceKind::Class {
            // As they are called in the interfaces that they are from; the same name may come from two of them.
            let own = Self::lineage(interface).into_iter().flat_map(|ancestor| {
                let methods = match self.interfaces.get(ancestor.name.as_ref()) {
                    Some((_, family)) => family.methods.clone(),
                    None if ancestor.kind == InterfaceKind::Class => Vec::new(),
                    None => self.methods(ancestor),
                };
                methods.into_iter().skip(ancestor.inherited)
            });
            return own.collect();
        }
        let mut taken = UniqueNames::default();
        interface
            .operations
            .iter()
            .enumerate()
            .map(|(index, operation)| {
                if index < interface.inherited
                    && let Some(name) = self.inherited_method(interface, operation)
                {
                    // The bases of a diamond may have given two operations one name.
                    return taken.name_value(name);
                }
                let attribute = interface
                    .attributes
                    .iter()
                    .find(|attribute| attribute.getter == index || attribute.setter == Some(index));
                taken.name_value(match attribute {
                    // A reader that gives accessors names for people has seen to it that they differ.
                    _ if operation.label != operation.name => names::method(&operation.label),
                    Some(attribute) if attribute.getter == index => names::method(&attribute.name),
                    Some(attribute) => format!("set_{}", names::plain_snake(&attribute.name)),
                    None => names::method(&operation.label),
                })
            })
            .collect()
    }

    /// What the first base that has an operation calls it.
    fn inherited_method(&self, interface: &Interface, operation: &Operation) -> Option<String> {
        interface.bases.iter().find_map(|base| {
            let index = base.index_of(operation.name.as_bytes())?;
            match self.interfaces.get(base.name.as_ref()) {
                Some((_, family)) => family.methods.get(index).cloned(),
                None => self.methods(base).get(index).cloned(),
            }
        })
    }

    /// The number in an interface of what is number `own` in one that it is or inherits from. None where it
    /// has none. A class may have two operations of one name, so there places are counted.
    pub(super) fn number(interface: &Interface, ancestor: &Interface, own: usize) -> Option<usize> {
        if interface.kind != InterfaceKind::Class {
            return interface.index_of(ancestor.operations.get(own)?.name.as_bytes());
        }
        let above = Self::lineage(interface);
        let before = above.iter().take_while(|known| known.name != ancestor.name);
        let first: usize = before.map(|known| known.operations.len() - known.inherited).sum();
        Some(first + own - ancestor.inherited)
    }

    /// Where a named definition is. None for a type that the contract uses and does not define.
    pub(super) fn find(&self, name: &str) -> Option<&ItemPath> {
        self.places.get(name)
    }

    /// Where a struct is; a nameless one that is a tuple is nowhere.
    pub(super) fn find_struct(&self, shape: &Struct) -> Option<&ItemPath> {
        if !shape.name.is_empty() {
            return self.find(&shape.name);
        }
        if is_tuple(shape) { None } else { self.find(&fingerprint(&Shape::Struct(Hold::new(shape.clone())))) }
    }

    /// An interface of the contract.
    pub(super) fn interface(&self, name: &str) -> Option<&(&'c Interface, Family)> {
        self.interfaces.get(name)
    }

    /// The path from a module to something in another.
    pub(super) fn path(from: &[String], to: &[String], name: &str) -> String {
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        let mut path = "super::".repeat(from.len() - common);
        for module in to.iter().skip(common) {
            path.push_str(module);
            path.push_str("::");
        }
        path + name
    }

    /// The error type of an operation, as seen from a module. A plain `Failure` where no exception can be
    /// raised.
    pub(super) fn error(&self, from: &[String], owner: &Interface, operation: &Operation) -> String {
        match self.errors.get(&(owner.name.to_string(), operation.name.to_string())) {
            Some(place) => Self::path(from, &place.path, &place.name),
            None => "ew::Failure".to_owned(),
        }
    }

    /// Whether an operation tells how it succeeded. Then it yields a `Success` with the code.
    pub(super) fn succeeds_variously(&self, owner: &Interface, operation: &Operation) -> bool {
        note(&operation.notes, SUCCESS).is_some()
            || (self.success_codes && owner.kind != InterfaceKind::Dispatch && owner.is_a(UNKNOWN))
    }

    /// This interface and all it inherits from, each once: the furthest bases first.
    pub(super) fn lineage(interface: &Interface) -> Vec<&Interface> {
        fn walk<'i>(interface: &'i Interface, seen: &mut Vec<&'i Interface>) {
            if seen.iter().any(|known| known.name == interface.name) {
                return;
            }
            for base in interface.bases.iter() {
                walk(base, seen);
            }
            seen.push(interface);
        }
        let mut seen = Vec::new();
        walk(interface, &mut seen);
        seen
    }
}

/// Whether the name of a type that the contract uses as known tells more than the type behind it: `QDate`, not
/// `Q_LONG` or `unsigned int`. Only such names become types of their own; others are spellings.
fn like_a_type(name: &str) -> bool {
    let local = local(name);
    names::is_identifier(name) && local.starts_with(char::is_uppercase) && !local.contains('_')
}

/// All shapes that stand in a contract.
fn shapes(contract: &Contract) -> impl Iterator<Item = &Shape> {
    contract.definitions.iter().flat_map(|definition| match definition {
        Definition::Type(shape) => vec![shape],
        Definition::Exception(exception) => exception.fields.iter().map(|field| &field.shape).collect(),
        Definition::Constant(constant) => vec![&constant.shape],
        Definition::Interface(interface) => {
            let operations = interface.operations.iter();
            let lists = operations.flat_map(|operation| [&operation.arguments, &operation.results]);
            let attributes = interface.attributes.iter().map(|attribute| &attribute.shape);
            let signals = interface.signals.iter().map(|signal| &signal.fields);
            lists.chain(attributes).chain(signals).collect()
        }
    })
}
