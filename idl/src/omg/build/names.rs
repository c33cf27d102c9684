//! Scopes: what a name means, and what may be called what (CORBA 3.0, 3.20).
//!
//! State: `symbols` maps the scoped name in lower case to what is defined, because OMG IDL forbids names that
//! differ only in case; `used` remembers names that a scope has used from outside, because it may not define
//! them differently afterwards. Both grow only. `declare` is the only way into `symbols`.
//!
//! A look-up goes from the innermost scope outwards; in each it tries the scope itself, and then what an
//! interface inherits. The same name from two bases is a mistake unless one base hides the other's. A found
//! name must be written in the same case.
//!
//! Where the specification is stricter than contracts in the wild, values (operations, attributes, members,
//! parameters) may have the name of a type but for its case: `Event event` is common.
//!
//! Bounds: `declare` limits the length of a scoped name and the number of symbols, so that deep modules with
//! long names do not multiply to more than the text itself has.

use super::super::ast::{Ident, ScopedName};
use super::super::ids::join;
use super::super::lexer::KEYWORDS;
use super::super::limits;
use super::Builder;
use super::named_item::NamedItem;
use super::types::sized;
use crate::report::{Problem, Span};
use everywire_model::Shape;
use std::rc::Rc;

/// Something that has a name.
pub(super) struct Symbol {
    /// Scoped name as written where it was defined.
    pub(super) name: String,
    pub(super) span: Span,
    pub(super) what: NamedItem,
}

/// A scope that is open.
pub(super) struct Scope {
    /// Scoped name.
    pub(super) name: String,
    /// Scoped names of the interfaces it inherits from, all of them. Empty for everything but interfaces.
    pub(super) ancestors: Rc<[String]>,
}

/// The first use of a name in a scope. Its spelling and its place are for the message.
pub(super) struct Use {
    name: String,
    span: Span,
}

impl Builder<'_> {
    /// Scoped name of the current scope; empty in the file itself.
    pub(super) fn scope(&self) -> &str {
        self.scopes.last().map_or("", |scope| &scope.name)
    }

    /// Does something inside a scope of the current one. The scope is closed again whatever the work returns.
    pub(super) fn inside<T>(
        &mut self,
        name: &str,
        ancestors: Rc<[String]>,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let name = join(self.scope(), name);
        self.scopes.push(Scope { name, ancestors });
        let result = work(self);
        self.scopes.pop();
        result
    }

    /// Gives something a name in the current scope, unless the name is taken. None after a mistake. The order
    /// of the checks decides which message a user sees: first the bounds, then a second definition, then a
    /// name that is in use, the name of the scope, and last an inherited operation.
    pub(super) fn declare(&mut self, ident: &Ident, what: NamedItem) -> Option<()> {
        let full = join(self.scope(), &ident.name);
        let key = full.to_ascii_lowercase();
        if full.len() > limits::SCOPED_NAME || self.symbols.len() >= limits::NODES {
            self.report.add(Problem::new(ident.span, "this scoped name is too long"));
            return None;
        }
        if self.definitions.len() >= limits::DEFINITIONS {
            self.report.add(Problem::new(ident.span, "the contract has too many definitions"));
            return None;
        }
        if let Some(earlier) = self.symbols.get(&key) {
            let problem = if earlier.name == full {
                Problem::new(ident.span, format!("`{full}` is defined already"))
            } else {
                let shown = format!("`{}` differs from `{}` only in case", ident.name, last(&earlier.name));
                Problem::new(ident.span, shown)
            };
            self.report.add(problem.note(earlier.span, format!("{} is defined here", earlier.name)));
            return None;
        }
        // Names of values that are those of types but for their case stand in many contracts (`Event event`).
        let inner = what.is_value();
        if let Some(used) = self.used.get(&key).filter(|used| !inner || used.name == ident.name) {
            let message =
                format!("`{}` cannot be defined here, the name is in use in this scope", ident.name);
            let problem =
                Problem::new(ident.span, message).note(used.span, format!("`{}` is used here", used.name));
            self.report.add(problem.help("use the other thing by its whole name, with a leading `::`"));
            return None;
        }
        let scope = last(self.scope());
        let same = scope == ident.name || (!inner && scope.eq_ignore_ascii_case(&ident.name));
        if same && !matches!(what, NamedItem::Parameter) {
            let message = format!("`{}` has the name of the scope it stands in", ident.name);
            self.report.add(Problem::new(ident.span, message));
            return None;
        }
        if matches!(what, NamedItem::Operation | NamedItem::Attribute) {
            let ancestors = self.scopes.last().map_or(&[][..], |scope| &scope.ancestors);
            // An operation cannot be overloaded or defined again in a derived interface (CORBA 3.0, 3.8.5).
            let inherited = ancestors.iter().find_map(|ancestor| {
                self.symbols
                    .get(&join(ancestor, &ident.name).to_ascii_lowercase())
                    .filter(|symbol| matches!(symbol.what, NamedItem::Operation | NamedItem::Attribute))
            });
            if let Some(earlier) = inherited {
                let message = format!("`{}` is inherited already", ident.name);
                let note = format!("{} is defined here", earlier.name);
                self.report.add(Problem::new(ident.span, message).note(earlier.span, note));
                return None;
            }
        }
        self.symbols.insert(key, Symbol { name: full, span: ident.span, what });
        Some(())
    }

    /// Opens a module, perhaps again.
    pub(super) fn open_module(&mut self, ident: &Ident) -> Option<()> {
        let full = join(self.scope(), &ident.name);
        match self.symbols.get(&full.to_ascii_lowercase()) {
            Some(symbol) if symbol.name == full && matches!(symbol.what, NamedItem::Module) => Some(()),
            _ => self.declare(ident, NamedItem::Module),
        }
    }

    /// Announces an interface, struct or union; once more does no harm, and neither does it after the
    /// definition. `what` is made only to be compared or stored.
    pub(super) fn announce(&mut self, ident: &Ident, what: impl FnOnce() -> NamedItem) -> Option<()> {
        let full = join(self.scope(), &ident.name);
        let what = what();
        let same = self.symbols.get(&full.to_ascii_lowercase()).is_some_and(|symbol| {
            symbol.name == full
                && match (&symbol.what, &what) {
                    (NamedItem::Interface(_), NamedItem::Interface(_)) | (NamedItem::Broken, _) => true,
                    (NamedItem::Open { keyword, .. }, NamedItem::Open { keyword: new, .. }) => keyword == new,
                    (NamedItem::Type(typed), NamedItem::Open { keyword: "struct", .. }) => {
                        matches!(typed.shape, Shape::Struct(_))
                    }
                    (NamedItem::Type(typed), NamedItem::Open { keyword: "valuetype", .. }) => {
                        matches!(typed.shape, Shape::Optional(_))
                    }
                    (NamedItem::Type(typed), NamedItem::Open { .. }) => {
                        matches!(typed.shape, Shape::Union(_))
                    }
                    _ => false,
                }
        });
        if same { Some(()) } else { self.declare(ident, what) }
    }

    /// What a name means here; reports names that mean nothing. None is silent for what is broken; then
    /// `lacking` says whether it is not supported.
    pub(super) fn resolve(&mut self, name: &ScopedName) -> Option<NamedItem> {
        let key = self.find(name, true)?;
        let what = self.symbols.get(&key)?.what.clone();
        if matches!(what, NamedItem::Broken) {
            self.needs(&key);
            return None;
        }
        Some(what)
    }

    /// The key in `symbols` of what a name means here. With `complain`, an unknown name is reported and the
    /// use is remembered; without, the question leaves no trace but a mistake in the case of letters.
    pub(super) fn find(&mut self, name: &ScopedName, complain: bool) -> Option<String> {
        let (first, rest) = name.parts.split_first()?;
        let mut found = None;
        if name.absolute {
            found = Some(first.name.to_ascii_lowercase()).filter(|key| self.symbols.contains_key(key));
        } else {
            for index in (0..self.scopes.len()).rev() {
                let scope = self.scopes.get(index)?;
                // `?` ends the search: an ambiguous name is a mistake even where an outer scope has one of
                // this name.
                found = self.member(&scope.name.clone(), &Rc::clone(&scope.ancestors), first)?;
                if found.is_some() {
                    break;
                }
            }
            found = found.or_else(|| {
                Some(first.name.to_ascii_lowercase()).filter(|key| self.symbols.contains_key(key))
            });
        }
        let mut parts = rest.iter();
        let mut current = first;
        loop {
            let Some(key) = found else {
                if !complain {
                    return None;
                }
                let known = self.of_the_orb(name);
                if known.is_none() {
                    self.unknown(name, current);
                }
                return known;
            };
            let symbol = self.symbols.get(&key)?;
            if last(&symbol.name) != current.name {
                if !complain && sized(&current.name).is_some() {
                    // A type of IDL 4: `Int8` may be an enumerator beside it.
                    return None;
                }
                let message =
                    format!("`{}` differs from `{}` only in case", current.name, last(&symbol.name));
                let note = format!("`{}` is defined here", symbol.name);
                self.report.add(Problem::new(current.span, message).note(symbol.span, note));
                return None;
            }
            let Some(next) = parts.next() else {
                if !name.absolute && complain {
                    self.note_use(first);
                }
                return Some(key);
            };
            let ancestors = match &symbol.what {
                NamedItem::Interface(Some(built)) => Rc::clone(&built.ancestors),
                // One that is being read names what it inherits by its own name, too.
                NamedItem::Interface(None) => {
                    let open = self.scopes.iter().find(|scope| scope.name == symbol.name);
                    open.map(|scope| Rc::clone(&scope.ancestors)).unwrap_or_default()
                }
                NamedItem::Broken => {
                    self.needs(&key);
                    return None;
                }
                _ => self.value_bases.get(&key).cloned().unwrap_or_default(),
            };
            found = self.member(&symbol.name.clone(), &ancestors, next)?;
            current = next;
        }
    }

    /// The key of a name in a scope or what it inherits; nothing at all where several are inherited.
    fn member(&mut self, scope: &str, ancestors: &[String], ident: &Ident) -> Option<Option<String>> {
        let own = join(scope, &ident.name).to_ascii_lowercase();
        if let Some(symbol) = self.symbols.get(&own) {
            // `Level level();`: the operation is called as its type is but for case, and is not what is meant.
            if last(&symbol.name) == ident.name || !symbol.what.is_value() {
                return Some(Some(own));
            }
        }
        let mut inherited = ancestors.iter().filter_map(|ancestor| {
            let key = join(ancestor, &ident.name).to_ascii_lowercase();
            self.symbols.contains_key(&key).then_some((ancestor, key))
        });
        let Some((base, key)) = inherited.next() else { return Some(None) };
        // A base may hide what its own bases define; `ancestors` has the nearer first.
        let hidden = |other: &String| match self.symbols.get(&base.to_ascii_lowercase()).map(|s| &s.what) {
            Some(NamedItem::Interface(Some(built))) => built.ancestors.contains(other),
            _ => self.value_bases.get(&base.to_ascii_lowercase()).is_some_and(|bases| bases.contains(other)),
        };
        if let Some((other, _)) = inherited.find(|(other, _)| !hidden(other)) {
            let message = format!("`{}` is inherited from both `{base}` and `{other}`", ident.name);
            self.report.add(Problem::new(ident.span, message).help("say which by a scoped name"));
            return None;
        }
        Some(Some(key))
    }

    /// Remembers that the current scope uses a name, which it may not define differently any more. Names with
    /// a leading `::` are not in the way of anything, and neither are names of the file's own scope.
    fn note_use(&mut self, ident: &Ident) {
        let key = join(self.scope(), &ident.name).to_ascii_lowercase();
        if !self.symbols.contains_key(&key) && !self.scope().is_empty() {
            self.used.entry(key).or_insert_with(|| Use { name: ident.name.clone(), span: ident.span });
        }
    }

    /// Reports a name that means nothing, with the nearest one that does; a name of the ORB's own modules is
    /// not supported instead.
    fn unknown(&mut self, name: &ScopedName, part: &Ident) {
        // The modules of the ORB itself, of which orb.idl and its like tell other compilers.
        let of_orb = name.parts.len() > 1
            && name.parts.first().is_some_and(|first| ORB_MODULES.contains(&first.name.as_str()))
            && (name.parts.first().is_some_and(|first| first.name == "CORBA") || part.name == first_of(name));
        if of_orb {
            self.lacking = Some(format!("`{}`", name.text()).into());
            return;
        }
        let message = match name.parts.len() {
            1 => format!("`{}` is not defined", part.name),
            _ => format!("`{}` in `{}` is not defined", part.name, name.text()),
        };
        let help = familiar(&part.name)
            .map(|word| format!("OMG IDL calls it `{word}`"))
            .or_else(|| self.similar(&part.name).map(|similar| format!("did you mean `{similar}`?")));
        self.report.add(Problem::new(part.span, message).maybe_help(help));
    }

    /// The defined name or keyword nearest to a wrong one. Names of up to four letters may differ by one
    /// edit, longer ones by two. The whole table is searched, for each unknown name that is reported.
    fn similar(&self, wrong: &str) -> Option<String> {
        if self.report.is_full() {
            return None;
        }
        let most = if wrong.len() < 5 { 1 } else { 2 };
        let names = self.symbols.values().map(|symbol| (last(&symbol.name), symbol.name.as_str()));
        let keywords = KEYWORDS.iter().map(|keyword| (*keyword, *keyword));
        names
            .chain(keywords)
            .filter(|(name, _)| name.len().abs_diff(wrong.len()) <= most)
            .map(|(name, full)| (if name == wrong { 0 } else { distance(name, wrong) }, full))
            .filter(|(distance, _)| *distance <= most)
            .min()
            .map(|(_, full)| full.to_owned())
    }
}

/// Modules of ORBs (CORBA 3.0, 4, 11, 13, 21 and others) whose names contracts use without including them.
const ORB_MODULES: &[&str] = &[
    "CORBA",
    "PortableServer",
    "PortableInterceptor",
    "IOP",
    "Dynamic",
    "DynamicAny",
    "Messaging",
    "RTCORBA",
    "Security",
];

/// The first part of a scoped name.
fn first_of(name: &ScopedName) -> &str {
    name.parts.first().map_or("", |first| &first.name)
}

/// The last part of a scoped name.
pub(super) fn last(name: &str) -> &str {
    name.rsplit_once("::").map_or(name, |(_, last)| last)
}

/// What people from other languages look for.
fn familiar(word: &str) -> Option<&'static str> {
    Some(match word {
        "int" | "int32" | "int32_t" | "i32" => "long",
        "uint" | "uint32" | "uint32_t" | "u32" => "unsigned long",
        "int64" | "int64_t" | "i64" => "long long",
        "uint64" | "uint64_t" | "u64" => "unsigned long long",
        "int16" | "int16_t" | "i16" => "short",
        "uint16" | "uint16_t" | "u16" => "unsigned short",
        "byte" | "uint8" | "uint8_t" | "u8" => "octet",
        "bool" => "boolean",
        "String" | "str" => "string",
        "f32" => "float",
        "f64" => "double",
        "true" => "TRUE",
        "false" => "FALSE",
        "vector" | "list" => "sequence",
        "TypeCode" => "CORBA::TypeCode",
        _ => return None,
    })
}

/// Edits from one word to another; both are short. The usual table of Levenshtein, of which one row is kept.
/// The case of letters counts nothing.
pub(super) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().map(|c| c.to_ascii_lowercase()).enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (cb, above) in b.iter().zip(row.iter().skip(1)) {
            left = (left + 1).min(above + 1).min(diagonal + usize::from(ca != *cb));
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
