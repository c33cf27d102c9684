//! Repository ids: which identity each name of a file has.
//!
//! `#pragma prefix` counts for what follows in its scope, and replaces what the scopes around contributed; an
//! included file starts without a prefix. `typeprefix` counts for a whole scope, the part before it too.
//! `#pragma version` changes the end, and `typeid` or `#pragma ID` all of it. (CORBA 3.0, 3.15 and 10.7.5.)
//!
//! The id is what an object reference carries as its type, so it must be the same in every compiler:
//! `IDL:prefix/A/B:1.0`. One pass gives each name the id of its place; `finish` then applies what may also
//! come after a definition, in the order prefixes, versions, whole ids. A name has the id of its first
//! mention, which may be an announcement.

use super::ast::{Forward, Item, ItemKind, ScopedName, TypeKind, TypeSpec};
use super::limits;
use crate::report::{Problem, Report, Span};
use std::collections::HashMap;

/// The repository id of each scoped name.
pub(crate) type Ids = HashMap<String, String>;

/// Finds the repository ids of all names.
pub(crate) fn assign(items: &[Item], report: &mut Report) -> Ids {
    let mut finder =
        Finder { report, ids: Ids::new(), given: HashMap::new(), versions: Ids::new(), prefixes: vec![] };
    let mut paths = vec![String::new()];
    finder.items(items, "", &mut paths);
    finder.finish()
}

struct Finder<'a> {
    report: &'a mut Report,
    /// By scoped name, in the case of the file.
    ids: Ids,
    /// Ids that were given whole, and where.
    given: HashMap<String, (String, Span)>,
    /// By scoped name; the last one counts.
    versions: Ids,
    /// `typeprefix`: scoped name and prefix, in the order of the file; at most `NESTING`.
    prefixes: Vec<(String, String)>,
}

impl Finder<'_> {
    /// `paths` ends with what stands before a name of this scope: prefix and scopes, each with a `/` behind
    /// it. An included file pushes an empty path and pops it again, so prefixes of the two files do not mix.
    fn items(&mut self, items: &[Item], scope: &str, paths: &mut Vec<String>) {
        for item in items {
            match &item.kind {
                ItemKind::EnterFile => paths.push(String::new()),
                ItemKind::LeaveFile => {
                    if paths.len() > 1 {
                        paths.pop();
                    }
                }
                ItemKind::Prefix(prefix) => {
                    if let Some(path) = paths.last_mut() {
                        *path = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
                    }
                }
                ItemKind::Module(ident, items) => self.scope(&ident.name, items, scope, paths),
                ItemKind::Interface(interface) => {
                    self.scope(&interface.ident.name, &interface.items, scope, paths)
                }
                ItemKind::ForwardInterface(Forward { ident, .. })
                | ItemKind::ForwardStruct(ident)
                | ItemKind::ForwardUnion(ident)
                | ItemKind::ForwardValue(ident) => {
                    self.name(&ident.name, scope, paths);
                }
                ItemKind::ValueBox(ident, spec) => {
                    self.spec(spec, scope, paths);
                    self.name(&ident.name, scope, paths);
                }
                ItemKind::Value(value) => self.scope(&value.ident.name, &value.items, scope, paths),
                ItemKind::StateMember(_, spec, _) => self.spec(spec, scope, paths),
                ItemKind::Type(spec) => self.spec(spec, scope, paths),
                ItemKind::Typedef(spec, declarators) => {
                    self.spec(spec, scope, paths);
                    for declarator in declarators {
                        self.name(&declarator.ident.name, scope, paths);
                    }
                }
                ItemKind::Exception(structure) => {
                    self.name(&structure.ident.name, scope, paths);
                    let specs = structure.members.iter().map(|(spec, _)| spec);
                    self.members(&structure.ident.name, specs, scope, paths);
                }
                ItemKind::Constant(_, ident, _) => self.name(&ident.name, scope, paths),
                ItemKind::Id(name, id) => self.give(name, id, scope),
                ItemKind::Version(name, version) => {
                    if let Some(full) = self.find(name, scope) {
                        self.versions.insert(full, version.clone());
                    }
                }
                ItemKind::TypePrefix(name, prefix) => {
                    if let Some(full) = self.find(name, scope).filter(|_| self.fits(prefix, name.span)) {
                        self.prefixes.push((full, prefix.clone()));
                    }
                    // Each of them is tried on every name.
                    if self.prefixes.len() > limits::NESTING {
                        self.prefixes.truncate(limits::NESTING);
                        let message = format!("there are more than {} prefixes of names", limits::NESTING);
                        self.report.add(Problem::new(name.span, message));
                    }
                }
                // It is left out, but directives may name it.
                ItemKind::Unsupported(ident, _) => self.name(&ident.name, scope, paths),
                ItemKind::Operation(_)
                | ItemKind::Attribute(_)
                | ItemKind::Signal(_)
                | ItemKind::Factory
                | ItemKind::Idempotent(_) => {}
            }
        }
    }

    /// Whether a prefix is not too long; reports one that is.
    fn fits(&mut self, prefix: &str, span: Span) -> bool {
        let fits = prefix.len() <= limits::IDENTIFIER;
        if !fits {
            let message = format!("this prefix is longer than {} bytes", limits::IDENTIFIER);
            self.report.add(Problem::new(span, message));
        }
        fits
    }

    fn scope(&mut self, name: &str, items: &[Item], scope: &str, paths: &mut Vec<String>) {
        self.name(name, scope, paths);
        let below = format!("{}{name}/", paths.last().map_or("", String::as_str));
        if below.len() > limits::SCOPED_NAME {
            return;
        }
        let depth = paths.len();
        paths.push(below);
        self.items(items, &join(scope, name), paths);
        // A file that was included in the scope and left open is closed with it.
        paths.truncate(depth);
    }

    fn spec(&mut self, spec: &TypeSpec, scope: &str, paths: &mut Vec<String>) {
        match &spec.kind {
            TypeKind::Struct(structure) => {
                self.name(&structure.ident.name, scope, paths);
                let specs = structure.members.iter().map(|(spec, _)| spec);
                self.members(&structure.ident.name, specs, scope, paths);
            }
            TypeKind::Union(union) => {
                self.name(&union.ident.name, scope, paths);
                let specs =
                    std::iter::once(&union.discriminator).chain(union.arms.iter().map(|arm| &arm.spec));
                self.members(&union.ident.name, specs, scope, paths);
            }
            TypeKind::Enum(members) => self.name(&members.ident.name, scope, paths),
            TypeKind::Sequence(element, _) => self.spec(element, scope, paths),
            _ => {}
        }
    }

    fn members<'s>(
        &mut self,
        name: &str,
        specs: impl Iterator<Item = &'s TypeSpec>,
        scope: &str,
        paths: &mut Vec<String>,
    ) {
        let below = format!("{}{name}/", paths.last().map_or("", String::as_str));
        if below.len() > limits::SCOPED_NAME {
            return;
        }
        paths.push(below);
        let scope = join(scope, name);
        for spec in specs {
            self.spec(spec, &scope, paths);
        }
        paths.pop();
    }

    /// The first mention decides. Beyond the bound names have no id.
    fn name(&mut self, name: &str, scope: &str, paths: &[String]) {
        if self.ids.len() <= limits::DEFINITIONS {
            let path = paths.last().map_or("", String::as_str);
            self.ids.entry(join(scope, name)).or_insert_with(|| format!("IDL:{path}{name}:1.0"));
        }
    }

    /// An id has a format before its first colon, such as `IDL`, `RMI` or `DCE`.
    fn give(&mut self, name: &ScopedName, id: &str, scope: &str) {
        let Some(full) = self.find(name, scope) else { return };
        if !is_repository_id(id) {
            let problem = Problem::new(name.span, format!("{id:?} is not a repository id"));
            self.report.add(problem.expected(["an id such as \"IDL:Module/Name:1.0\""]));
            return;
        }
        match self.given.get(&full) {
            Some((earlier, span)) if earlier != id => {
                let problem = Problem::new(name.span, format!("`{full}` has a repository id already"));
                self.report.add(problem.note(*span, format!("it was given {earlier:?} here")));
            }
            _ => {
                self.given.insert(full, (id.to_owned(), name.span));
            }
        }
    }

    /// The scoped name that is meant, of those that stand before.
    fn find(&mut self, name: &ScopedName, scope: &str) -> Option<String> {
        let wanted: Vec<&str> = name.parts.iter().map(|part| part.name.as_str()).collect();
        let wanted = wanted.join("::");
        let mut around = if name.absolute { "" } else { scope };
        loop {
            let candidate = join(around, &wanted);
            if self.ids.contains_key(&candidate) {
                return Some(candidate);
            }
            if around.is_empty() {
                self.report.add(Problem::new(name.span, format!("`{}` is not defined before", name.text())));
                return None;
            }
            around = around.rsplit_once("::").map_or("", |(outer, _)| outer);
        }
    }

    /// A prefix replaces the whole path of names below its scope, so each one starts again from the scoped
    /// name.
    fn finish(mut self) -> Ids {
        for (scope, prefix) in &self.prefixes {
            for (name, id) in &mut self.ids {
                let below = name.strip_prefix(scope.as_str());
                if below.is_some_and(|below| below.is_empty() || below.starts_with("::")) {
                    let slash = if prefix.is_empty() { "" } else { "/" };
                    *id = format!("IDL:{prefix}{slash}{}:1.0", name.replace("::", "/"));
                }
            }
        }
        for (name, version) in self.versions {
            if let Some(id) = self.ids.get_mut(&name)
                && let Some((body, _)) = id.rsplit_once(':')
            {
                *id = format!("{body}:{version}");
            }
        }
        self.ids.extend(self.given.into_iter().map(|(name, (id, _))| (name, id)));
        self.ids
    }
}

/// Whether a text can be the id of a definition: it has a format before its first colon, and characters of ISO 8859-1 alone.
pub(crate) fn is_repository_id(id: &str) -> bool {
    let is_legal = |c: char| c <= '\u{ff}' && !c.is_whitespace() && !matches!(c, '"' | '\\');
    id.contains(':') && id.len() <= limits::SCOPED_NAME && id.chars().all(is_legal)
}

/// A name in a scope; the empty scope is the file.
pub(crate) fn join(scope: &str, name: &str) -> String {
    if scope.is_empty() { name.to_owned() } else { format!("{scope}::{name}") }
}
