//! What the file says to what it means: names are looked up, types completed, constants evaluated.
//!
//! One pass over the tree in the order of the file, since a name must be defined before it is used (CORBA
//! 3.0, 3.20). State: the table of symbols, the scopes that are open, and the definitions so far, which
//! become the contract in this order.
//!
//! Two ways to fail are kept apart. A mistake is reported, and what depends on it is `Broken` in silence.
//! Something that is not supported is no mistake: its name is remembered in `lacks`, everything that needs it
//! is left out as well, and the operation at the end of such a chain gets a note in its interface that says
//! why it is missing.
//!
//! Bounds: number of definitions, length of scoped names, levels of a type, the texts of constants, and the copies that inheritance
//! makes.

mod constants;
mod decimals;
mod interfaces;
mod named_item;
mod names;
mod orb;
pub(super) use orb::is_of_the_orb;
mod signals;
mod types;
mod unions;
mod values;

use super::ast::{self, Forward, Item, ItemKind, TypeKind};
use super::ids::{Ids, join};
use crate::report::{Problem, Report};
use everywire_model::shape::{Alias, Name};
use everywire_model::{Constant, Contract, Definition, Hold, Shape};
use named_item::{NamedItem, Typed};
use names::{Scope, Symbol};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Makes a contract; where the report then has mistakes, it is not complete and must not be used.
pub(crate) fn build(items: &[Item], ids: &Ids, report: &mut Report) -> Contract {
    let mut builder = Builder {
        report,
        ids,
        symbols: HashMap::new(),
        used: HashMap::new(),
        scopes: Vec::new(),
        value_bases: HashMap::new(),
        definitions: Vec::new(),
        inherited: 0,
        texts: 0,
        docs: 0,
        abstract_interfaces: HashSet::new(),
        lacks: HashMap::new(),
        lacking: None,
    };
    builder.items(items);
    builder.finish()
}

/// Its methods return None after a mistake or for something that is left out; the caller then defines
/// nothing.
struct Builder<'a> {
    report: &'a mut Report,
    ids: &'a Ids,
    /// What is defined, by scoped name in lower case: names that differ only in case collide.
    symbols: HashMap<String, Symbol>,
    /// Names that a scope uses and may therefore not define any more; keys as in `symbols`.
    used: HashMap<String, names::Use>,
    /// The scopes around, outermost first.
    scopes: Vec<Scope>,
    /// The bases of each value type that has one, the nearest first; keys as in `symbols`.
    value_bases: HashMap<String, Rc<[String]>>,
    definitions: Vec<Definition>,
    /// Operations and parameters of all interfaces so far. Bounded by `INHERITED`.
    inherited: usize,
    /// Bytes of the texts of constants so far. Bounded by `TEXTS`.
    texts: usize,
    /// Bytes of the documentation of operations so far. Bounded by `DOCS`.
    docs: usize,
    /// The abstract interfaces so far, which are no types here; keys as in `symbols`.
    abstract_interfaces: HashSet<String>,
    /// What definitions need that is not supported; keys as in `symbols`.
    lacks: HashMap<String, Rc<str>>,
    /// The last such thing that was met. It is reset before each item and each operation, and says why a
    /// method returned None; None means a mistake.
    lacking: Option<Rc<str>>,
}

impl Builder<'_> {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.item(item);
        }
    }

    /// Defines one item. A mistake is reported once; definitions that depend on the wrong one stay undefined
    /// without a further message. So do definitions that depend on something unsupported, and an operation
    /// that needs one of these is left out with a note.
    fn item(&mut self, item: &Item) -> Option<()> {
        self.lacking = None;
        match &item.kind {
            ItemKind::Module(ident, items) => {
                self.open_module(ident)?;
                self.inside(&ident.name, Rc::default(), |b| b.items(items));
            }
            ItemKind::Interface(interface) => self.interface(interface, &item.doc)?,
            ItemKind::ForwardInterface(Forward { ident, is_abstract }) => {
                self.announce(ident, || NamedItem::Interface(None))?;
                self.mark_abstract(ident, *is_abstract);
            }
            ItemKind::ForwardStruct(ident) => {
                self.announce(ident, || NamedItem::Open { keyword: "struct", shape: None })?;
            }
            ItemKind::ForwardUnion(ident) => {
                self.announce(ident, || NamedItem::Open { keyword: "union", shape: None })?;
            }
            ItemKind::ForwardValue(ident) => {
                self.announce(ident, || NamedItem::Open { keyword: "valuetype", shape: None })?;
            }
            ItemKind::Value(value) => self.value(value)?,
            ItemKind::ValueBox(ident, spec) => self.value_box(ident, spec)?,
            // It takes its name, so that a second definition of the name is still a mistake.
            ItemKind::Unsupported(ident, what) => {
                self.give_up(&ident.name);
                self.announce(ident, || NamedItem::Broken)?;
                let full = join(self.scope(), &ident.name);
                self.lacking = Some(format!("{what} `{full}`").into());
                self.lacks_too(&ident.name);
            }
            ItemKind::Type(spec) => {
                self.spec(spec)?;
            }
            ItemKind::Typedef(spec, declarators) => {
                // The type is looked at once, also where it is wrong: its mistake is reported once, and all
                // names become `Broken`.
                let typed = self.spec(spec);
                for declarator in declarators {
                    let whole = typed.clone().and_then(|typed| self.dimensions(typed, declarator));
                    if whole.as_ref().is_some_and(|whole| self.is_told_again(&declarator.ident, &whole.shape))
                    {
                        continue;
                    }
                    let what = match whole {
                        Some(_) if matches!(whole.as_ref().map(|t| &t.shape), Some(Shape::Void)) => {
                            self.report.add(Problem::new(spec.span, "`void` cannot have another name"));
                            NamedItem::Broken
                        }
                        Some(whole) => {
                            let (name, id) = self.identity(&declarator.ident.name);
                            let alias = Alias { name, id, target: whole.shape };
                            NamedItem::Type(Typed { shape: Shape::Alias(Hold::new(alias)), ..whole })
                        }
                        None => NamedItem::Broken,
                    };
                    if let NamedItem::Type(typed) = &what {
                        let shape = typed.shape.clone();
                        if self.declare(&declarator.ident, what).is_some() {
                            self.definitions.push(Definition::Type(shape));
                        }
                    } else if self.declare(&declarator.ident, what).is_some() {
                        self.lacks_too(&declarator.ident.name);
                    }
                }
            }
            ItemKind::Exception(structure) => self.exception(structure)?,
            ItemKind::Constant(spec, ident, expr) => {
                let value = match spec.kind {
                    TypeKind::FixedConstant => self.fixed_constant(expr),
                    _ => self
                        .spec(spec)
                        .and_then(|typed| Some((self.constant(expr, &typed.shape)?, typed.shape))),
                };
                let Some((value, shape)) = value else {
                    self.declare(ident, NamedItem::Broken)?;
                    self.lacks_too(&ident.name);
                    return None;
                };
                self.declare(ident, NamedItem::Constant(shape.clone(), value.clone()))?;
                let name = self.identity(&ident.name).0;
                let doc = Name::from(item.doc.clone());
                self.definitions.push(Definition::Constant(Constant { name, shape, value, doc }));
            }
            ItemKind::Signal(ast::Signal { ident, .. }) | ItemKind::Idempotent(ident) => {
                let is_signal = matches!(item.kind, ItemKind::Signal(_));
                let pragma = if is_signal { "signal" } else { "idempotent" };
                let problem = Problem::new(ident.span, format!("`#pragma {pragma}` stands in an interface"));
                self.report.add(problem.help("put it between the `{` and the `}` of the interface"));
            }
            // Operations and attributes are taken by their interface, identities before.
            _ => {}
        }
        Some(())
    }

    /// The thing of this name in the current scope could not be defined: because of what was met last, if that is not supported.
    fn lacks_too(&mut self, name: &str) {
        if let Some(lacking) = self.lacking.clone() {
            self.lacks.insert(join(self.scope(), name).to_ascii_lowercase(), lacking);
        }
    }

    /// The definition under this key is needed, and there is none.
    fn needs(&mut self, key: &str) {
        if let Some(lacking) = self.lacks.get(key) {
            self.lacking = Some(Rc::clone(lacking));
        }
    }

    /// Scoped name and repository id of a name in the current scope. The id is empty where `ids` gave none.
    fn identity(&self, name: &str) -> (Name, Name) {
        let full = join(self.scope(), name);
        let id = self.ids.get(&full).cloned().unwrap_or_default();
        (Name::from(full), Name::from(id))
    }

    fn finish(self) -> Contract {
        // This is checked last, since a definition may follow anywhere, in another file too.
        for symbol in self.symbols.values() {
            if let NamedItem::Open { keyword: "valuetype", shape } = &symbol.what {
                values::fill(&symbol.name, shape.as_ref());
            } else if let NamedItem::Open { keyword, .. } = symbol.what {
                let message = format!("{keyword} `{}` is announced but never defined", symbol.name);
                self.report.add(Problem::new(symbol.span, message));
            }
        }
        Contract { definitions: self.definitions }
    }
}
