//! The documents that make one description, and how one leads to another: never over a network.

use super::limits::{BESIDE, BYTES, DOCUMENTS, IMPORTS};
use super::names::SCHEMA;
use super::tree::{Node, WSDL};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::file;
use crate::report::Report;
use crate::xml;
use std::path::Path;
use std::sync::Arc;

/// What another document is asked for by.
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
    let mut found = Vec::new();
    gather(&node, &mut found);
    found
}

/// Recursion is bounded by the depth of the tree.
fn gather(node: &Node<'_>, found: &mut Vec<Import>) {
    let location = match (node.space, node.local) {
        (WSDL, "import") => "location",
        (SCHEMA, "import" | "include") => "schemaLocation",
        _ => {
            for child in &node.children {
                gather(child, found);
            }
            return;
        }
    };
    let import = Import {
        namespace: node.get("namespace").unwrap_or_default().to_owned(),
        location: node.get(location).unwrap_or_default().to_owned(),
    };
    if found.len() < IMPORTS && !found.contains(&import) {
        found.push(import);
    }
}

/// A file and all that it imports from beside itself, each with its name.
pub(super) fn of_file(path: &Path) -> Result<Vec<(String, String)>, Diagnostics> {
    let mut documents = vec![(path.to_string_lossy().into_owned(), file::text(path, xml::BYTES)?)];
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut taken = vec![path.file_name().unwrap_or_default().to_string_lossy().into_owned()];
    let (mut next, mut bytes) = (0, 0);
    while let Some((name, text)) = documents.get(next) {
        bytes += text.len();
        let name = name.clone();
        let beside = |import: Import| {
            let named = candidates(&import).into_iter().find(|file| folder.join(file).is_file());
            named.map_or_else(|| by_namespace(folder, &import), |file| vec![file])
        };
        for candidate in imports(text).into_iter().flat_map(beside) {
            if taken.contains(&candidate) {
                continue;
            }
            if documents.len() == DOCUMENTS || bytes > BYTES {
                let message = format!("more than {DOCUMENTS} files, or {} MiB, are imported", BYTES >> 20);
                return Err(Diagnostic::of_file(&name, message).into());
            }
            let path = folder.join(&candidate);
            documents.push((path.to_string_lossy().into_owned(), file::text(&path, xml::BYTES)?));
            taken.push(candidate);
        }
        next += 1;
    }
    Ok(documents)
}

/// Schemas and descriptions beside, of the namespace that an import wants; for imports that do not say where, or say it in
/// terms of a service.
fn by_namespace(folder: &Path, import: &Import) -> Vec<String> {
    let foreign = import.location.is_empty() || import.location.contains("://");
    if !foreign || import.namespace.is_empty() || import.namespace == SCHEMA {
        return Vec::new();
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<String> = entries
        .take(BESIDE)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|file| file.ends_with(".xsd") || file.ends_with(".wsdl"))
        .collect();
    files.sort();
    let wanted = [
        format!("targetNamespace=\"{}\"", import.namespace),
        format!("targetNamespace='{}'", import.namespace),
    ];
    files.retain(|file| {
        file::text(&folder.join(file), xml::BYTES).is_ok_and(|text| {
            // What stands first is what the document is about.
            let head = text.find("targetNamespace=").and_then(|at| text.get(at..)).unwrap_or_default();
            wanted.iter().any(|wanted| head.starts_with(wanted.as_str()))
        })
    });
    files
}

/// File names under which an imported document may lie beside the one that imports it: as it is said, by the query of its
/// address (`Shop?xsd=xsd0` is `Shop.xsd0.xsd` or `xsd0.xsd`), or by its namespace, as Microsoft's tools name files. A name with a folder in it
/// leads nowhere.
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
            _ => {
                let plain = !path.contains("://");
                let last = path.rsplit('/').next().unwrap_or_default();
                if !plain || path.trim_start_matches("./") == last {
                    names.push(last.to_owned());
                }
            }
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
