//! From what a file says to a contract: names are looked up, pointers and arrays become shapes.
//!
//! Three passes over the tree. `announce` notes identities of interfaces and the names that typedefs give to
//! tags, since both may be used before they are defined. `items` defines everything in the order of the file.
//! `classes` makes up for coclasses that name interfaces which come later. `settle` then closes what was
//! mentioned and never defined.
//!
//! State: tables by name for types, tags, constants, identities and interfaces, and where each name was
//! defined. A name of a type stands for a `Ty`, because a pointer means something else at each place (a
//! parameter, a field, an element), so it becomes a shape only where it is used (`places`).
//!
//! Two ways to fail are kept apart. A mistake is reported, and None comes back. What has no form on a wire is
//! no mistake: None comes back with the reason in `stays`, which whoever leaves the thing out must take, so
//! that it does not stand there at the next failure.
//!
//! Definitions of files in the background are built in the same way and kept apart; an own definition of the
//! same name replaces one of them.

mod background;
mod cells;
mod classes;
mod constants;
mod exceptions;
mod interfaces;
mod later;
mod methods;
mod pidl;
mod places;
mod typedefs;
mod types;
mod unions;

use super::ast::{self, Attribute, Declarator, Item, ItemKind, TypeKind, TypeSpec};
use super::known;
use crate::omg::limits;
use crate::report::{Problem, Report, Span};
use everywire_model::contract::Constant;
use everywire_model::shape::{Name, PointerKind, Referent, Struct};
use everywire_model::{Contract, Definition, Hold, Interface, Shape, Value};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// A type before its place is known; the place decides what a pointer or an array becomes. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) enum Ty {
    /// Something that travels as it is.
    Value(Typed),
    Void,
    /// An interface; only pointers to it travel.
    Object(Referent),
    Pointer(Rc<Pointer>),
    /// A struct or union that is mentioned, by its key in [`Builder::records`]. It may be defined later, or
    /// never.
    Mention(String),
    /// A type that has no form on a wire, and why.
    Stays(Rc<str>),
}

/// A shape as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) shape: Shape,
    /// How many levels it contains; bounded, because codecs and destructors walk them.
    pub(super) depth: usize,
    /// It is not complete yet: only pointers can point to it.
    pub(super) open: bool,
}

impl Typed {
    pub(super) fn leaf(shape: Shape) -> Self {
        Self { shape, depth: 1, open: false }
    }
}

/// A pointer that a `typedef` made.
#[derive(Debug)]
pub(super) struct Pointer {
    pub(super) to: Ty,
    /// None where the place decides.
    pub(super) kind: Option<PointerKind>,
    /// `string` stood at the typedef.
    pub(super) string: bool,
    /// Pointers to here.
    pub(super) levels: usize,
}

/// Asks for unions whose arms are aligned alike, at an interface, a type or a method (`everywire_model::ms_union`).
const MS_UNION: &str = "ms_union";

/// The most pointers behind the names of pointers: each typedef may add eight, and everything that follows
/// them recurses.
const LEVELS: usize = 16;

/// Its methods return None after a mistake, and for what `stays` tells of.
struct Builder<'a> {
    report: &'a mut Report,
    /// Types by their names. Names of the tables in `known` are not in here.
    types: HashMap<String, Ty>,
    /// Names of structs that are sequences and maps.
    made: HashSet<String>,
    /// Structs, unions and enums by keyword and tag.
    records: HashMap<String, types::Record>,
    /// Structs and unions that are known to have no form on a wire before their definition comes, and why; by key.
    formless: HashMap<String, Rc<str>>,
    /// The names that typedefs give to what has a tag. By keyword and tag, as `types::key` writes them.
    named: HashMap<String, String>,
    /// Values of integer and character constants, of members of enumerations too.
    constants: HashMap<String, i128>,
    /// Values of constants with a point.
    reals: HashMap<String, f64>,
    /// Identities of all interfaces and classes of the files, by name: the UUID, or else the name.
    ids: HashMap<String, String>,
    /// The names in `ids` by their small letters.
    spellings: HashMap<String, Vec<String>>,
    /// Interfaces that are built, by name, local ones and classes too.
    interfaces: HashMap<String, Hold<Interface>>,
    /// What methods may raise, by name, and where each was defined.
    exceptions: HashMap<String, (Hold<Struct>, Span)>,
    /// Where each interface stands.
    announced: HashMap<&'a str, &'a Item>,
    /// Interfaces that were defined before their turn, because their methods are the signals of others, or others are
    /// derived from them.
    early: HashSet<String>,
    /// Where types and constants of pidl are defined, by name: its files import one another in circles.
    later: HashMap<&'a str, &'a Item>,
    /// The items among them whose definition has begun, by their addresses.
    begun: HashSet<usize>,
    /// Definitions of own interfaces that a file in the background needed first, until their turn comes.
    aside: HashMap<String, Vec<Definition>>,
    /// How many of them are being defined inside one another.
    ahead: usize,
    /// Whether `definitions` and `background` have changed places: what is defined is in the background.
    behind: bool,
    /// Bytes of attributes that are kept as text, so far. Bounded by `TEXTS`.
    texts: usize,
    /// Where each name was defined.
    places: HashMap<String, Span>,
    definitions: Vec<Definition>,
    /// Definitions of files that come with every compiler: those that are used become part of the contract.
    background: Vec<Definition>,
    /// Why what was looked at last has no form on a wire; then no mistake was reported. Whoever handles it
    /// takes it.
    stays: Option<Rc<str>>,
    /// The names of the parameters or fields that are declared now: a size of one of these names means it, and no constant.
    beside: HashSet<String>,
    /// Everything but classes is defined.
    is_last: bool,
    /// The files are in Samba's dialect.
    is_pidl: bool,
    /// The kind of pointers without an attribute, except at the top of parameters.
    pointer_default: PointerKind,
    /// Whether the unions that are defined now are those of `ms_union`: it stands at the interface around, or at the type.
    ms_union: bool,
    /// The types in interfaces with `ms_union`, by the addresses of their items: types of pidl are defined where they are needed.
    ms_unions: HashSet<usize>,
    /// Operations and parameters made so far, the inherited ones counted in each interface.
    inherited: usize,
    /// Bytes of the documentation of inherited operations so far; bounded by `DOCS`.
    docs: usize,
}

/// Builds the contract; mistakes go to the report.
///
/// A struct may be used before it turns out to have no form on a wire. Then everything is built once more, with that known from the
/// start: what uses the struct has no form, either.
pub(super) fn build(items: &[Item], report: &mut Report) -> Contract {
    let mut builder = Builder::new(report, HashMap::new());
    builder.all(items);
    let formless = builder.formless_too_late();
    if !formless.is_empty() && !builder.report.failed() {
        let Builder { report, .. } = builder;
        builder = Builder::new(report, formless);
        builder.all(items);
    }
    let missing = builder.settle();
    builder.settle_exceptions();
    let Builder { report, background, definitions, .. } = builder;
    let definitions = background::joined(background, definitions, missing, report);
    let mut contract = Contract { definitions };
    // After a mistake nobody uses the contract.
    if !report.failed() {
        known::complete(&mut contract);
    }
    contract
}

impl<'a> Builder<'a> {
    fn new(report: &'a mut Report, formless: HashMap<String, Rc<str>>) -> Self {
        Self {
            report,
            types: HashMap::new(),
            made: HashSet::new(),
            records: HashMap::new(),
            formless,
            named: HashMap::new(),
            constants: HashMap::new(),
            reals: HashMap::new(),
            ids: HashMap::new(),
            spellings: HashMap::new(),
            interfaces: HashMap::new(),
            exceptions: HashMap::new(),
            announced: HashMap::new(),
            early: HashSet::new(),
            later: HashMap::new(),
            begun: HashSet::new(),
            aside: HashMap::new(),
            ahead: 0,
            behind: false,
            texts: 0,
            places: HashMap::new(),
            definitions: Vec::new(),
            background: Vec::new(),
            stays: None,
            beside: HashSet::new(),
            is_last: false,
            is_pidl: false,
            pointer_default: PointerKind::Unique,
            ms_union: false,
            ms_unions: HashSet::new(),
            inherited: 0,
            docs: 0,
        }
    }

    /// The passes over the tree.
    fn all(&mut self, items: &'a [Item]) {
        self.is_pidl = pidl::is_pidl(items);
        // Names first: a method may refer to an interface that comes later.
        self.announce(items);
        self.items(items);
        self.is_last = true;
        self.classes(items);
    }

    /// Notes what may be mentioned before it is defined: interfaces, and the names of structs.
    fn announce(&mut self, items: &'a [Item]) {
        for item in items {
            if self.is_pidl {
                self.note_for_later(item);
            }
            match &item.kind {
                ItemKind::Interface(interface) => {
                    let id = self.uuid(&item.attributes).unwrap_or_else(|| interface.ident.name.clone());
                    self.identify(&interface.ident.name, id);
                    self.announced.entry(interface.ident.name.as_str()).or_insert(item);
                    if ast::has(&item.attributes, MS_UNION) {
                        self.ms_unions
                            .extend(interface.items.iter().map(|item| std::ptr::from_ref(item).addr()));
                    }
                    self.announce(&interface.items);
                }
                ItemKind::Class(ident, _) => {
                    let id = self.uuid(&item.attributes).unwrap_or_else(|| ident.name.clone());
                    self.identify(&ident.name, id);
                }
                ItemKind::Library(items) => self.announce(items),
                // Where a program's own type does not travel, the name is not that of the tag.
                // Nor where the name is that of a narrower range.
                ItemKind::Typedef(..)
                    if typedefs::travels_otherwise(&item.attributes)
                        || ast::has(&item.attributes, "range") => {}
                ItemKind::Typedef(spec, declarators) => {
                    let plain = declarators.iter().find(|d| d.pointers == 0 && d.dimensions.is_empty());
                    if let (Some(why), Some(plain)) = (self.other_bytes(&item.attributes), plain) {
                        let keyword =
                            if matches!(spec.kind, TypeKind::Union(_)) { "union" } else { "struct" };
                        let key =
                            types::key(spec).unwrap_or_else(|| format!("{keyword} {}", plain.ident.name));
                        self.formless.insert(key, Rc::from(why));
                    }
                    if let (Some(key), Some(plain)) = (types::key(spec), plain) {
                        self.named.entry(key).or_insert_with(|| plain.ident.name.clone());
                    }
                }
                ItemKind::Type(spec) => {
                    if let (Some(why), Some(key)) = (self.other_bytes(&item.attributes), types::key(spec)) {
                        self.formless.insert(key, Rc::from(why));
                    }
                }
                _ => {}
            }
        }
    }

    /// Notes the identity of an interface or class, unless it has one.
    fn identify(&mut self, name: &str, id: String) {
        if !self.ids.contains_key(name) {
            self.spellings.entry(name.to_ascii_lowercase()).or_default().push(name.to_owned());
            self.ids.insert(name.to_owned(), id);
        }
    }

    /// Defines a list of things. Those of a file in the background go to the list for the background.
    fn items(&mut self, items: &[Item]) {
        for item in items {
            self.at_its_place(item, |builder| builder.item(item));
        }
    }

    /// Defines something that belongs to an item: among the contract's definitions or among those of the background.
    fn at_its_place<T>(&mut self, item: &Item, define: impl FnOnce(&mut Self) -> T) -> T {
        let turns = self.report.is_background(item.span) != self.behind;
        if turns {
            std::mem::swap(&mut self.definitions, &mut self.background);
            self.behind = !self.behind;
        }
        let defined = define(self);
        if turns {
            std::mem::swap(&mut self.definitions, &mut self.background);
            self.behind = !self.behind;
        }
        defined
    }

    /// Defines classes that name interfaces which come later in the files.
    fn classes(&mut self, items: &[Item]) {
        for item in items {
            match &item.kind {
                ItemKind::Class(ident, _)
                    if !self.places.contains_key(&ident.name) && !self.report.is_background(item.span) =>
                {
                    self.item(item);
                }
                ItemKind::Library(items) => self.classes(items),
                _ => {}
            }
        }
    }

    /// Defines one thing. Nothing comes back: mistakes are in the report, and what failed is not defined.
    fn item(&mut self, item: &Item) {
        if self.is_pidl && !self.begins(item) {
            return;
        }
        let aligned =
            ast::has(&item.attributes, MS_UNION) || self.ms_unions.contains(&std::ptr::from_ref(item).addr());
        let around = std::mem::replace(&mut self.ms_union, aligned);
        self.defined(item);
        self.ms_union = around;
    }

    /// Defines one thing whose surroundings are known.
    fn defined(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Typedef(spec, declarators) => self.typedef(item, spec, declarators),
            // `enum X;` says no more than that there will be one.
            ItemKind::Type(TypeSpec { kind: TypeKind::Enum(members), .. }) if members.members.is_none() => {}
            ItemKind::Type(spec) => {
                self.spec(spec, "", &item.attributes, None);
                self.stays = None;
            }
            ItemKind::Constant(spec, declarator, value) => {
                self.constant(item, spec, declarator, value);
            }
            // The interface may be defined in a file that is not there: then references to it have the known
            // IID, or its name.
            ItemKind::Forward(ident) => {
                let known = known::interface(&ident.name);
                let id = known.map_or_else(|| ident.name.clone(), |known| known.id.to_string());
                self.identify(&ident.name, id);
            }
            ItemKind::Interface(interface) => {
                if self.early.contains(&interface.ident.name) {
                    let aside = self.aside.remove(&interface.ident.name);
                    self.definitions.extend(aside.into_iter().flatten());
                    return;
                }
                self.whole_interface(item, interface);
            }
            ItemKind::Exception(exception) => self.exception(exception),
            ItemKind::Class(ident, interfaces) => self.class(item, ident, interfaces),
            ItemKind::Library(items) => self.items(items),
        }
    }

    /// Defines an interface with what stands in it. Types inside an interface are visible everywhere, like those beside it.
    fn whole_interface(&mut self, item: &Item, interface: &ast::Interface) {
        self.items(&interface.items);
        // In pidl such an interface only groups types, and may be called as one of them.
        if self.is_pidl && interface.methods.is_empty() {
            return;
        }
        self.listeners(interface);
        self.interface(item, interface);
    }

    /// Defines a constant that other languages can use; others are passed over in silence.
    fn constant(&mut self, item: &Item, spec: &TypeSpec, declarator: &Declarator, value: &ast::Expr) {
        let ident = &declarator.ident;
        let Some(ty) = self.spec(spec, "", &[], None) else {
            self.stays = None;
            return;
        };
        // `const char a[] = "..."` is a text as well.
        let pointed =
            declarator.pointers > 0 || !declarator.dimensions.is_empty() || matches!(ty, Ty::Pointer(_));
        let mut at = &ty;
        while let Ty::Pointer(pointer) = at {
            at = &pointer.to;
        }
        // A number that stands for a pointer is of use to programs in C alone.
        let is_text = matches!(value.kind, ast::ExprKind::Text(_));
        if matches!(at, Ty::Stays(_) | Ty::Void | Ty::Object(_)) || pointed && !is_text {
            return;
        }
        let Ty::Value(typed) = at else {
            self.problem(spec.span, "a constant is a number, a character or a string");
            return;
        };
        // `const char *a = "..."` is a text.
        let shape = if pointed {
            match types::text_of(&typed.shape) {
                Some(text) => Shape::Text(text),
                None => {
                    self.problem(spec.span, "a constant cannot be a pointer, unless to characters");
                    return;
                }
            }
        } else {
            typed.shape.clone()
        };
        let Some(value) = self.literal(value, &shape) else { return };
        // Two files of Samba may have one constant.
        let is_again = |value: &Value| match value {
            Value::Integer(value) => self.constants.get(&ident.name) == Some(value),
            _ => false,
        };
        if self.is_pidl && is_again(&value) || !self.declare(&ident.name, ident.span) {
            return;
        }
        match value {
            Value::Integer(value) => drop(self.constants.insert(ident.name.clone(), value)),
            Value::Float(value) => drop(self.reals.insert(ident.name.clone(), value)),
            Value::Char(value) => drop(self.constants.insert(ident.name.clone(), u32::from(value).into())),
            _ => {}
        }
        let (name, doc) = (Name::from(ident.name.clone()), Name::from(item.doc.clone()));
        self.definitions.push(Definition::Constant(Constant { name, shape, value, doc }));
    }

    /// Says where a name is defined; false, and a mistake, if it is taken. An own definition may replace one
    /// in the background.
    fn declare(&mut self, name: &str, span: Span) -> bool {
        if let Some(first) = self.places.get(name).copied() {
            if self.report.is_background(first) && !self.report.is_background(span) {
                // The contract's own definition counts.
                self.places.insert(name.to_owned(), span);
                self.types.remove(name);
                // The old definition must not come into the contract beside the new one.
                self.background.retain(|definition| background::name(definition) != name);
                return true;
            }
            let problem = Problem::new(span, format!("`{name}` is defined twice"));
            self.report.add(problem.note(first, "it is defined here first"));
            return false;
        }
        self.places.insert(name.to_owned(), span);
        true
    }

    /// The UUID among these attributes, in lower case. None where there is none, and after a mistake. Both
    /// forms are taken: bare, and as a text with or without braces.
    fn uuid(&mut self, attributes: &[Attribute]) -> Option<String> {
        let attribute = ast::find(attributes, "uuid")?;
        let text = match &attribute.value()?.kind {
            ast::ExprKind::Uuid(uuid) => uuid.clone(),
            ast::ExprKind::Text(value) => value.trim_matches(['{', '}']).to_ascii_lowercase(),
            _ => String::new(),
        };
        if super::ids::plain(&text).is_some() {
            return Some(text);
        }
        // Some of Samba's only group types, and are called by nobody.
        if self.is_pidl {
            return None;
        }
        let problem = Problem::new(attribute.span, "this is not a UUID");
        self.report.add(problem.expected(["a UUID such as 00000000-0000-0000-c000-000000000046"]));
        None
    }

    /// One level more, if there may be one. None, after a message, where there may not.
    fn deeper(&mut self, depth: usize, span: Span) -> Option<usize> {
        if depth >= limits::NESTING {
            let message = format!("this type has more than {} levels", limits::NESTING);
            self.problem(span, &message);
            return None;
        }
        Some(depth + 1)
    }

    /// Says that what is looked at has no form on a wire. `why` is for the note in the contract.
    fn stay<T>(&mut self, why: impl Into<Rc<str>>) -> Option<T> {
        self.stays = Some(why.into());
        None
    }

    /// Reports a mistake without more to say.
    fn problem(&mut self, span: Span, message: &str) {
        self.report.add(Problem::new(span, message));
    }
}

/// The kind of pointer that attributes ask for.
fn pointer_kind(attributes: &[Attribute]) -> Option<PointerKind> {
    attributes.iter().find_map(|attribute| kind_named(&attribute.name))
}

/// The kind of pointer that a word asks for, if it asks for one.
fn kind_named(name: &str) -> Option<PointerKind> {
    match name {
        "ref" => Some(PointerKind::Ref),
        "unique" => Some(PointerKind::Unique),
        "ptr" => Some(PointerKind::Full),
        _ => None,
    }
}

/// What documents a definition: its help string, else the comment before it.
fn doc(attributes: &[Attribute], comment: &str) -> Name {
    let help = ast::find(attributes, "helpstring").and_then(ast::Attribute::value);
    match help.map(|help| &help.kind) {
        Some(ast::ExprKind::Text(value)) => Name::from(value.clone()),
        _ => Name::from(comment.to_owned()),
    }
}

/// Whether a type is this name.
fn is_named(spec: &TypeSpec, name: &str) -> bool {
    matches!(&spec.kind, TypeKind::Name(ident) if ident.name == name)
}
