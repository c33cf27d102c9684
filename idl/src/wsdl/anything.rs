//! Types that may hold any elements: their values are XML, as text.

use super::builtin::{self, Typed};
use super::members::is_schema;
use super::names::{QName, SCHEMA};
use super::tree::Node;
use super::types::{Types, is_of_graphs};

impl<'n, 't> Types<'n, 't, '_> {
    /// A type that says nothing of what is in it. None for any other, and for one that others extend: what they add has names.
    pub(super) fn anything(&mut self, name: &QName, node: &'n Node<'t>) -> Option<Typed> {
        let content = content(node).filter(|_| !self.schemas.is_extended(name))?;
        if content.one("anyAttribute").is_some() {
            self.remark(format!("{name}: any attribute is left out"));
        }
        let typed = builtin::markup();
        // A type that stands where it is used has no name that anybody could know.
        if node.get("name").is_none() {
            return Some(typed);
        }
        let shape = self.aliased(name, &name.to_string(), typed.shape);
        Some(Typed { name: name.clone(), shape, depth: typed.depth + 1, ..typed })
    }
}

/// The content of a type that says nothing of what is in it: any elements, perhaps with their schema before them, as a data
/// set of .NET has it. None where the type has a member of its own.
fn content<'n, 't>(complex: &'n Node<'t>) -> Option<&'n Node<'t>> {
    let content = match complex.one("complexContent") {
        Some(content) => {
            let content = content.one("restriction").or_else(|| content.one("extension"))?;
            let base = content.resolve(content.get("base")?.trim());
            (base.namespace == SCHEMA && base.local == "anyType").then_some(content)?
        }
        None => complex,
    };
    let own = |node: &'n Node<'t>| {
        node.children.iter().filter(|child| child.space == SCHEMA && child.local != "annotation")
    };
    let mut parts = own(content);
    let sequence = parts.next().filter(|part| matches!(part.local, "sequence" | "choice"))?;
    let only = parts.all(|part| part.local == "anyAttribute" || is_of_graphs(part));
    let others = own(sequence).filter(|part| !is_schema(part));
    let known = others.clone().any(|part| part.local != "any");
    (only && !known && others.count() > 0).then_some(content)
}
