//! Interfaces and dispinterfaces.
//!
//! Methods of COM and procedures are called by number, so nothing may change the order: a method that cannot
//! travel, is local, or has an unknown type leaves a placeholder without parameters, and a note that says
//! why. Methods of a dispinterface are called by DISPID, so there nothing is left behind.
//!
//! `Draft` collects the operations while the body is read: first those of the base, then the own ones.
//! Accessors are joined to attributes at the end (`properties`), when all names are known.
//!
//! Bounds: bases above one another, and operations with parameters, the inherited ones counted in each
//! interface (`room`).

use super::super::ast::{self, Attribute, ExprKind, Ident, Item, ItemKind, Method, find, has};
use super::super::known;
use super::methods::{Access, Style};
use super::places::Role;
use super::{Builder, doc, kind_named};
use crate::omg::limits;
use crate::report::Problem;
use everywire_model::contract::LEFT_OUT;
use everywire_model::shape::{Field, Name, PointerKind};
use everywire_model::{
    Attribute as Property, Definition, Direction, Hold, Interface, InterfaceKind, Operation, Parameter, Shape,
};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The most interfaces that one is derived from.
const ANCESTORS: usize = 64;

/// Whether an interface is for callers in the same process alone. One for Automation is not, whatever it says: `local` has
/// no proxy made for it, and Automation brings its own.
fn is_local(attributes: &[Attribute]) -> bool {
    has(attributes, "local") && !["dual", "oleautomation"].iter().any(|name| has(attributes, name))
}

/// What an interface has so far.
#[derive(Default)]
struct Draft {
    operations: Vec<Operation>,
    /// Own accessors by property: name, number of the operation, what it does.
    accessors: Vec<(String, usize, Access)>,
    attributes: Vec<Property>,
    /// Names of all operations so far; a second one is a mistake.
    names: HashSet<Name>,
    /// What has no form on a wire, and why.
    left_out: Vec<(Name, Name)>,
}

impl Draft {
    /// A method has no form on a wire. Where methods are called by their numbers, its own is taken all the
    /// same. The placeholder must never be called; it only keeps the number.
    fn leave_out(&mut self, name: &str, why: &str, style: Style) {
        self.left_out.push((Name::Borrowed(LEFT_OUT), Name::from(format!("`{name}`: {why}"))));
        let name = Name::from(name.to_owned());
        if style != Style::Dispatch && self.names.insert(name.clone()) {
            let mut placeholder = Operation::new(name, Vec::new(), Shape::Void);
            placeholder.doc = Name::from("Left out: it has no form on a wire.");
            self.operations.push(placeholder);
        }
    }
}

impl Builder<'_> {
    /// Defines an interface. One that is wrong is not defined; its identity is known all the same, from the
    /// first pass.
    pub(super) fn interface(&mut self, item: &Item, interface: &ast::Interface) {
        let ident = &interface.ident;
        // The roots of all interfaces are known; their methods never travel as such.
        if known::is_root(&ident.name) || !self.declare(&ident.name, ident.span) {
            return;
        }
        let attributes = &item.attributes;
        let default =
            find(attributes, "pointer_default").and_then(Attribute::value).and_then(ast::Expr::name);
        // It counts for this interface alone, so it is set back behind it.
        let kind = default.and_then(kind_named).unwrap_or(PointerKind::Unique);
        let around = std::mem::replace(&mut self.pointer_default, kind);
        let built = self.built(item, interface);
        self.pointer_default = around;
        let Some(built) = built else { return };
        let hold = Hold::new(built);
        self.interfaces.insert(ident.name.clone(), hold.clone());
        // A local interface is never called from another process; only its types and its name are used.
        if !is_local(attributes) {
            self.definitions.push(Definition::Interface(hold));
        }
    }

    /// The interface with all its operations. None after a mistake in what it stands on; mistakes in methods
    /// cost only those.
    fn built(&mut self, item: &Item, interface: &ast::Interface) -> Option<Interface> {
        let attributes = &item.attributes;
        let name = interface.ident.name.clone();
        // Without an attribute, an interface with a base is one of COM, as MIDL has it.
        let style = if interface.dispatch {
            Style::Dispatch
        } else if interface.base.is_some() || ["object", "dual", "odl"].iter().any(|a| has(attributes, a)) {
            Style::Object
        } else {
            Style::Procedure
        };
        let base = match (&interface.base, style) {
            (Some(base), _) => Some(self.base(base)?),
            (None, Style::Dispatch) => known::root("IDispatch"),
            (None, Style::Object) => known::root("IUnknown"),
            (None, Style::Procedure) => None,
        };
        let mut draft = Draft::default();
        if let Some(base) = &base {
            let parts = base.operations.iter().map(|operation| 1 + operation.parameters.len()).sum();
            self.room(parts, interface.ident.span)?;
            draft.operations = base.operations.to_vec();
            for operation in &mut draft.operations {
                self.docs += operation.doc.len();
                if self.docs > limits::DOCS {
                    operation.doc = Name::default();
                }
            }
            draft.attributes = base.attributes.to_vec();
            draft.names = base.operations.iter().map(|operation| operation.name.clone()).collect();
        }
        let inherited = draft.operations.len();
        if let Some(wraps) = &interface.wraps {
            self.wrap(wraps, &mut draft)?;
        }
        self.methods(interface, is_local(attributes), style, &mut draft);
        self.raises(interface, draft.operations.get_mut(inherited..).unwrap_or_default());
        let signals = self.signals(interface, base.as_deref());
        properties(&mut draft);
        let kind = if style == Style::Procedure {
            InterfaceKind::Procedures
        } else if interface.dispatch {
            InterfaceKind::Dispatch
        } else if has(attributes, "dual") {
            InterfaceKind::Dual
        } else {
            InterfaceKind::Plain
        };
        let identities = if style == Style::Procedure { self.syntax(attributes) } else { Vec::new() };
        Some(Interface {
            id: Name::from(self.ids.get(&name).cloned().unwrap_or_default()),
            name: Name::from(name),
            identities: Cow::Owned(identities),
            types: None,
            notes: Cow::Owned(draft.left_out),
            kind,
            bases: base.into_iter().collect(),
            operations: Cow::Owned(draft.operations),
            inherited,
            attributes: Cow::Owned(draft.attributes),
            signals: Cow::Owned(signals),
            doc: doc(attributes, &item.doc),
        })
    }

    /// An interface that another is derived from. None after a mistake.
    fn base(&mut self, ident: &Ident) -> Option<Hold<Interface>> {
        let known =
            |builder: &Self, name: &str| builder.interfaces.get(name).cloned().or_else(|| known::root(name));
        let spelled = self.spelled(&ident.name);
        let found = known(self, &ident.name).or_else(|| known(self, spelled.as_deref()?));
        let found = found.or_else(|| self.ahead(&ident.name)).or_else(|| self.ahead(spelled.as_deref()?));
        let found = found.or_else(|| self.adopt(&ident.name)).or_else(|| self.adopt(spelled.as_deref()?));
        if let Some(base) = found {
            // A chain is as long as all that walks it recurses.
            let (mut deep, mut above) = (0, base.clone());
            while let Some(next) = above.bases.first().cloned() {
                deep += 1;
                above = next;
            }
            if deep >= ANCESTORS {
                self.problem(ident.span, "this interface has too many bases above one another");
                return None;
            }
            return Some(base);
        }
        let message = if known::interface(&ident.name).is_some() {
            format!("the methods of `{}` are not known here", ident.name)
        } else {
            format!("there is no interface `{}` before this", ident.name)
        };
        self.report.add(Problem::new(ident.span, message).help("define it before this, or import it"));
        None
    }

    /// An interface that comes behind one that is derived from it: it is defined now. None where there is none, or where too
    /// many wait for one another.
    fn ahead(&mut self, name: &str) -> Option<Hold<Interface>> {
        let item = self.announced.get(name).copied()?;
        let ItemKind::Interface(interface) = &item.kind else { return None };
        if self.ahead >= ANCESTORS || self.places.contains_key(name) || !self.early.insert(name.to_owned()) {
            return None;
        }
        self.ahead += 1;
        // Its definitions are not inside of the interface that is derived from it.
        let around = std::mem::replace(&mut self.pointer_default, PointerKind::Unique);
        // What the background needs of the contract keeps its place there.
        let kept = self.behind && !self.report.is_background(item.span);
        let own = self.background.len();
        self.at_its_place(item, |builder| builder.whole_interface(item, interface));
        if kept {
            let aside = self.background.split_off(own.min(self.background.len()));
            self.aside.insert(name.to_owned(), aside);
        }
        self.pointer_default = around;
        self.ahead -= 1;
        self.interfaces.get(name).cloned()
    }

    /// An interface whose methods are known here becomes part of the contract when another is derived from
    /// it. None for interfaces whose methods the tables do not have.
    fn adopt(&mut self, name: &str) -> Option<Hold<Interface>> {
        let base = known::base(name)?;
        self.interfaces.insert(name.to_owned(), base.clone());
        self.definitions.push(Definition::Interface(base.clone()));
        Some(base)
    }

    /// `dispinterface X { interface Y; }`: the methods of the other, by name. They are copied, so that this
    /// interface calls them by its own DISPIDs.
    fn wrap(&mut self, ident: &Ident, draft: &mut Draft) -> Option<()> {
        let base = self.base(ident)?;
        self.room(base.operations.len(), ident.span)?;
        let first = draft.operations.len();
        draft.names.extend(base.operations.iter().map(|operation| operation.name.clone()));
        draft.operations.extend(base.operations.iter().cloned());
        draft.attributes.extend(base.attributes.iter().cloned().map(|mut property| {
            property.getter += first;
            property.setter = property.setter.map(|setter| setter + first);
            property
        }));
        Some(())
    }

    /// All methods in their order. A local method with a remote form (`call_as`) is called in that form.
    fn methods(&mut self, interface: &ast::Interface, local: bool, style: Style, draft: &mut Draft) {
        // The remote form of a local method takes the place of that.
        let mut remote: HashMap<&str, &Method> = HashMap::new();
        for method in &interface.methods {
            if let Some(of) = find(&method.attributes, "call_as").and_then(Attribute::value) {
                remote.extend(of.name().map(|of| (of, method)));
            }
        }
        let called = |method: &Method| {
            let of = find(&method.attributes, "call_as").and_then(Attribute::value).and_then(ast::Expr::name);
            of.is_some_and(|of| {
                interface
                    .methods
                    .iter()
                    .any(|local| local.declarator.ident.name == of && has(&local.attributes, "local"))
            })
        };
        for method in &interface.methods {
            // In pidl a function may have no number (`noopnum`).
            if called(method) || has(&method.attributes, "noopnum") {
                continue;
            }
            let name = method.declarator.ident.name.as_str();
            let stays = local || has(&method.attributes, "local");
            match remote.get(name).filter(|_| stays) {
                Some(remote) => self.add(remote, style, draft),
                None if stays => {
                    // Its number is taken all the same.
                    let mut placeholder = Operation::new(name.to_owned(), Vec::new(), Shape::Void);
                    placeholder.doc = Name::from("Local: never called from elsewhere.");
                    draft.names.insert(placeholder.name.clone());
                    draft.operations.push(placeholder);
                }
                None => self.add(method, style, draft),
            }
        }
    }

    /// One method of the interface, or its placeholder.
    fn add(&mut self, method: &Method, style: Style, draft: &mut Draft) {
        let span = method.declarator.ident.span;
        if self.room(1, span).is_none() {
            return;
        }
        if method.parameters.is_none() {
            self.property(method, draft);
            return;
        }
        let mark = self.report.mark();
        let Some((operation, access)) = self.method(method, style) else {
            // Without a reason and without a mistake, a type was unknown in the background.
            let why = self.stays.take();
            if self.report.mark() == mark {
                let why = why.as_deref().unwrap_or("a type is not known here");
                draft.leave_out(&method.declarator.ident.name, why, style);
            }
            return;
        };
        if !draft.names.insert(operation.name.clone()) {
            self.problem(span, &format!("there are two methods `{}`", operation.name));
            return;
        }
        if let Some(access) = access {
            draft.accessors.push((method.declarator.ident.name.clone(), draft.operations.len(), access));
        }
        draft.operations.push(operation);
    }

    /// A property of a dispinterface: both accessors have its number.
    fn property(&mut self, method: &Method, draft: &mut Draft) {
        let ident = &method.declarator.ident;
        let attributes = &method.attributes;
        let ty = self.spec(&method.returns, &ident.name, attributes, None);
        let typed = ty.and_then(|ty| self.declared(&ty, attributes, &method.declarator, Role::Inner));
        let Some(typed) = typed else {
            if let Some(why) = self.stays.take() {
                draft.leave_out(&ident.name, &why, Style::Dispatch);
            }
            return;
        };
        let Some(id) = self.dispid(attributes) else { return };
        let doc = doc(attributes, &method.doc);
        let mut accessors = vec![(
            Access::Get,
            Operation::new(format!("get_{}", ident.name), Vec::new(), typed.shape.clone()),
        )];
        if !has(attributes, "readonly") {
            let field = Field { name: Name::from("value"), shape: typed.shape };
            let parameters = vec![Parameter { direction: Direction::In, field }];
            accessors
                .push((Access::Put, Operation::new(format!("put_{}", ident.name), parameters, Shape::Void)));
        }
        // A number that both have, as `id(n)` of the property says.
        for (access, mut operation) in accessors {
            if !draft.names.insert(operation.name.clone()) {
                self.problem(ident.span, &format!("there are two methods `{}`", operation.name));
                return;
            }
            operation.id = id;
            operation.doc = doc.clone();
            draft.accessors.push((ident.name.clone(), draft.operations.len(), access));
            draft.operations.push(operation);
        }
    }

    /// The abstract syntax of remote procedures, `UUID/MAJOR.MINOR` (the version alone without a UUID), and
    /// where they are served. The version is of two numbers, 0.0 where none is written.
    fn syntax(&mut self, attributes: &[Attribute]) -> Vec<(Name, Name)> {
        let version = find(attributes, "version").map_or("0.0", |version| version.text.as_str());
        let dot = if version.contains('.') { "" } else { ".0" };
        let uuid = self.uuid(attributes).map(|uuid| uuid + "/").unwrap_or_default();
        let mut identities = vec![(Name::from("dce"), Name::from(format!("{uuid}{version}{dot}")))];
        for value in find(attributes, "endpoint").into_iter().flat_map(|endpoint| &endpoint.values).flatten()
        {
            if let ExprKind::Text(value) = &value.kind {
                identities.push((Name::from("endpoint"), Name::from(value.clone())));
            }
        }
        identities
    }
}

/// Makes attributes of the accessors that have no parameters but the value, and names them for people. A
/// property with more parameters stays a pair of operations.
fn properties(draft: &mut Draft) {
    let labels: HashSet<Name> = draft.operations.iter().map(|operation| operation.label.clone()).collect();
    let accessors = std::mem::take(&mut draft.accessors);
    for (name, getter, _) in accessors.iter().filter(|(_, _, access)| *access == Access::Get) {
        let Some(get) = draft.operations.get(*getter) else { continue };
        if !get.parameters.is_empty() || matches!(get.returns, Shape::Void) {
            continue;
        }
        let shape = get.returns.clone();
        // The setter must take what the getter returns.
        let sets = |number: usize| {
            draft.operations.get(number).is_some_and(|set| match set.parameters.as_ref() {
                [only] => {
                    only.direction == Direction::In
                        && matches!(set.returns, Shape::Void)
                        && std::mem::discriminant(text_of(&only.field.shape))
                            == std::mem::discriminant(text_of(&shape))
                }
                _ => false,
            })
        };
        let setter = [Access::Put, Access::PutReference].into_iter().find_map(|wanted| {
            accessors
                .iter()
                .find(|(of, number, access)| of == name && *access == wanted && sets(*number))
                .map(|(_, number, _)| *number)
        });
        for (number, label) in [(Some(*getter), name.clone()), (setter, format!("set_{name}"))] {
            if let Some(operation) = number.and_then(|number| draft.operations.get_mut(number))
                && !labels.contains(label.as_str())
            {
                operation.label = Name::from(label);
            }
        }
        draft.attributes.push(Property {
            name: Name::from(name.clone()),
            shape,
            getter: *getter,
            setter,
            notify: everywire_model::Notify::Nothing,
        });
    }
}

/// A type without its names. A text that may lack is a text: behind `[out]` the pointer of a text is one that may be null
/// (`pointer_default(unique)`), and that of a parameter is none.
fn text_of(shape: &Shape) -> &Shape {
    match shape.resolved() {
        Shape::Optional(content) if matches!(content.resolved(), Shape::Text(_)) => content.resolved(),
        other => other,
    }
}
