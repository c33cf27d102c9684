//! The documents that make one description, and how one leads to another: never over a network.
//!
//! A description names the documents that it needs by addresses of the service. Copies of them lie beside it
//! under many names: as the address says, as its query says, by the namespace, or as in the tree of folders
//! of those who publish standards. All of these are tried, in this order.
//!
//! What a stranger's file can make us read is bounded: only files whose names end like those of schemas and
//! descriptions, no absolute paths, no more than `DOCUMENTS` files with `BYTES` together, each once. A folder
//! is searched by namespace only where an import says no place, and at most `BESIDE` of its files.

use super::limits::{BESIDE, BYTES, DOCUMENTS, IMPORTS, OUTER, PATH, PROJECT};
use super::names::SCHEMA;
use super::tree::{Node, WSDL};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::file;
use crate::report::Report;
use crate::xml;
use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A reference from one document to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The namespace that it defines, if that is said.
    pub namespace: String,
    /// Where it is said to be; empty where nothing is said.
    pub location: String,
}

/// The documents that a document asks for, in order; a text that cannot be read asks for none.
#[must_use]
pub fn imports(text: &str) -> Vec<Import> {
    let mut report = Report::default();
    let file = report.add_file("a document", Arc::from(text));
    let Some(root) = xml::parse_untyped(text, file, &mut report) else { return Vec::new() };
    let Some(node) = Node::of(&root, &mut report) else { return Vec::new() };
    let (mut own, mut found) = (HashSet::new(), Vec::new());
    defined(&node, &mut own);
    gather(&node, &own, &mut found);
    found
}

/// Recursion is bounded by the depth of the tree. Collects the namespaces of the schemas in a document.
fn defined<'n>(node: &'n Node<'_>, own: &mut HashSet<&'n str>) {
    if node.is(SCHEMA, "schema") {
        own.extend(node.get("targetNamespace"));
    } else {
        node.children.iter().for_each(|child| defined(child, own));
    }
}

/// Recursion is bounded by the depth of the tree. Collects imports, each once, up to `IMPORTS`. One that does not say where is
/// of the schema in the same document, if there is one (`own`): another file beside it may be of another service.
fn gather(node: &Node<'_>, own: &HashSet<&str>, found: &mut Vec<Import>) {
    let location = match (node.space, node.local) {
        (WSDL, "import") => "location",
        (SCHEMA, "import" | "include" | "redefine") => "schemaLocation",
        _ => {
            for child in &node.children {
                gather(child, own, found);
            }
            return;
        }
    };
    let import = Import {
        namespace: node.get("namespace").unwrap_or_default().to_owned(),
        location: node.get(location).unwrap_or_default().to_owned(),
    };
    let is_here =
        node.space == SCHEMA && import.location.is_empty() && own.contains(import.namespace.as_str());
    if !is_here && found.len() < IMPORTS && !found.contains(&import) {
        found.push(import);
    }
}

/// A file and all that it imports, each with its name: from its own folder and from those that imports name, never over a
/// network. Files import one another in circles, so each is read once.
pub(super) fn of_file(path: &Path) -> Result<Vec<(String, String)>, Diagnostics> {
    let mut files = Files { root: folder_of(path), beside: HashMap::new() };
    let mut paths = vec![path.to_owned()];
    let mut documents = vec![(path.to_string_lossy().into_owned(), file::text(path, xml::BYTES)?)];
    // By canonical paths.
    let mut taken = HashSet::from([whole(path)]);
    let (mut next, mut bytes) = (0, 0);
    while let Some((name, text)) = documents.get(next) {
        bytes += text.len();
        let name = name.clone();
        let folder = paths.get(next).map(|path| folder_of(path)).unwrap_or_default();
        let wanted: Vec<PathBuf> =
            imports(text).iter().flat_map(|import| files.find(&folder, import)).collect();
        for candidate in wanted {
            if !taken.insert(whole(&candidate)) {
                continue;
            }
            if documents.len() == DOCUMENTS || bytes > BYTES {
                let message = format!("more than {DOCUMENTS} files, or {} MiB, are imported", BYTES >> 20);
                return Err(Diagnostic::of_file(&name, message).into());
            }
            documents.push((candidate.to_string_lossy().into_owned(), file::text(&candidate, xml::BYTES)?));
            paths.push(candidate);
        }
        next += 1;
    }
    Ok(documents)
}

/// The folder of a file, which can be listed.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// One path for one file, by whatever way it is reached.
fn whole(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Where imported files are looked for.
struct Files {
    /// The folder of the first file, where copies of everything may lie.
    root: PathBuf,
    /// The documents of a folder by their namespaces, of folders that were asked for one.
    beside: HashMap<PathBuf, HashMap<String, Vec<PathBuf>>>,
}

impl Files {
    /// The files that an import of a document in this folder means; none if there is none. Paths first, then
    /// names in the document's folder and in the first one, then namespaces.
    fn find(&mut self, folder: &Path, import: &Import) -> Vec<PathBuf> {
        if let Some(path) =
            relative(&import.location).map(|path| folder.join(path)).filter(|path| path.is_file())
        {
            return vec![path];
        }
        let root = self.root.clone();
        let folders: &[&Path] = if root == folder { &[folder] } else { &[folder, &root] };
        let names = candidates(import);
        for folder in folders {
            let named = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
            if let Some(path) = named.or_else(|| published(folder, &import.location)) {
                return vec![path];
            }
        }
        if let Some(path) = of_project(folder, &import.location) {
            return vec![path];
        }
        for folder in folders {
            let found = self.by_namespace(folder, import);
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Schemas and descriptions in a folder, of the namespace that an import wants; for imports that do not say where, or say
    /// it in terms of a service. A namespace may be divided among several files.
    fn by_namespace(&mut self, folder: &Path, import: &Import) -> Vec<PathBuf> {
        let foreign = import.location.is_empty() || import.location.contains("://");
        if !foreign || import.namespace.is_empty() || import.namespace == SCHEMA {
            return Vec::new();
        }
        let known = self.beside.entry(folder.to_owned()).or_insert_with(|| namespaces(folder));
        known.get(&import.namespace).cloned().unwrap_or_default()
    }
}

/// What the documents of a folder are about: what stands first as a target namespace. The text is searched,
/// not parsed: files that are no XML do no harm.
fn namespaces(folder: &Path) -> HashMap<String, Vec<PathBuf>> {
    let mut found: HashMap<String, Vec<PathBuf>> = HashMap::new();
    let Ok(entries) = std::fs::read_dir(folder) else { return found };
    let mut files: Vec<PathBuf> = entries
        .take(BESIDE)
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_document(path))
        .collect();
    files.sort();
    for path in files.into_iter().filter(|path| path.is_file()) {
        let Ok(text) = file::text(&path, xml::BYTES) else { continue };
        let Some((_, rest)) = text.split_once("targetNamespace=") else { continue };
        let Some(quote) = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'')) else { continue };
        if let Some(namespace) = rest.get(1..).and_then(|rest| rest.split(quote).next()) {
            found.entry(namespace.to_owned()).or_default().push(path);
        }
    }
    found
}

/// Whether a file's name is that of a schema or a description.
fn is_document(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    ["xsd", "wsdl", "xml"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// A location as the path of a document, from the folder of the document that says it: no address, no absolute path, and
/// nothing but schemas and descriptions, since what an import leads to is shown where it is wrong. None where
/// it is no such path.
fn relative(location: &str) -> Option<PathBuf> {
    let plain = plain(location);
    let path = PathBuf::from(&plain);
    let leads_on = path
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir | Component::ParentDir));
    let is_path = !plain.contains("://") && !plain.contains('\0') && !plain.contains(':');
    (is_path && leads_on && plain.len() < PATH && is_document(&path)).then_some(path)
}

/// A location without what addresses and Windows have in them: `%20`, `\\`, what follows a `#`.
fn plain(location: &str) -> String {
    let location = location.split('#').next().unwrap_or_default();
    location.trim().replace("%20", " ").replace('\\', "/")
}

/// A document whose path starts at a folder around the one at hand, as descriptions in projects of Java have it: from where
/// the project lies (`src/main/resources/a.xsd`), or from the root of the class path (`classpath:wsdl/a.xsd`).
/// The path must name a folder, so that no file of the same name is taken for it.
fn of_project(folder: &Path, location: &str) -> Option<PathBuf> {
    let of_class_path = location.trim().strip_prefix("classpath:").map(|path| path.trim_start_matches('/'));
    let path = relative(of_class_path.unwrap_or(location))?;
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let named = inside && path.components().count() > 1;
    let whole = whole(folder);
    let mut outer = whole.ancestors().take(PROJECT).filter(|outer| named && outer.parent().is_some());
    outer.find_map(|outer| Some(outer.join(&path)).filter(|path| path.is_file()))
}

/// Where in a copy of what is published elsewhere a document lies: `http://host/ver10/schema/a.xsd` may be `../schema/a.xsd`
/// beside `ver10/device`, or `host/ver10/schema/a.xsd`. At least a folder and the name must be the same. The address may be cut at its
/// front by the host and up to `OUTER` parts, and looked for up to `OUTER` folders further out.
fn published(folder: &Path, location: &str) -> Option<PathBuf> {
    let (_, path) = location.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"))?;
    let parts: Vec<&str> = path.split('/').collect();
    let mut outer = vec![folder.to_owned()];
    outer.extend((1..=OUTER).map(|levels| folder.join(["..", "/"].concat().repeat(levels))));
    (0..parts.len().saturating_sub(1).min(OUTER + 1)).find_map(|skipped| {
        let tail = relative(&parts.get(skipped..)?.join("/"))?;
        let inside = tail.components().all(|part| matches!(part, Component::Normal(_)));
        outer.iter().filter(|_| inside).map(|outer| outer.join(&tail)).find(|path| path.is_file())
    })
}

/// File names under which an imported document may lie beside the one that imports it: as it is said, by the query of its
/// address (`Shop?xsd=xsd0` is `Shop.xsd0.xsd` or `xsd0.xsd`), or by its namespace, as Microsoft's tools name files.
fn candidates(import: &Import) -> Vec<String> {
    let mut names = Vec::new();
    let location = import.location.as_str();
    if !location.is_empty() {
        let (path, query) = location.split_once('?').unwrap_or((location, ""));
        match query.split_once('=') {
            Some((kind @ ("xsd" | "wsdl"), name)) => {
                let service = path.rsplit('/').next().unwrap_or_default();
                names.extend([format!("{service}.{name}.{kind}"), format!("{name}.{kind}")]);
            }
            // Whoever keeps copies keeps them in one folder.
            _ if is_document(Path::new(path)) || path.contains("://") => {
                names.push(plain(path).rsplit('/').next().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    let space = import.namespace.split_once("://").map_or(import.namespace.as_str(), |(_, rest)| rest);
    let space = space.trim_end_matches('/').replace(['/', ':'], ".");
    if !space.is_empty() {
        names.extend([format!("{space}.xsd"), format!("{space}.wsdl")]);
    }
    names.retain(|name| {
        !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']) && name.len() < 256
    });
    names
}
