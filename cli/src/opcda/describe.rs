//! `everywire describe opcda://HOST/SERVER[/ITEM]`: how a server is and what it has; the properties of an item.

use super::shown::{json, time};
use super::{address, connect};
use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, note, shown};
use everywire::{Failure, Node};
use everywire_opc::Code;
use everywire_opc::remote::{Address, Branch, DataAccess, ItemProperty};
use serde_json::{Map, Value as Json, json};

/// Elements of the tree that are asked for and shown; more are cut, and that is said. A server may have
/// millions.
const MOST: usize = 10_000;

/// How it is asked for.
pub(crate) struct OpcDescribeOptions {
    /// How many levels of branches are shown.
    pub(crate) depth: usize,
    /// One JSON object.
    pub(crate) json: bool,
}

/// Describes a server, a branch or an item.
pub(crate) fn describe(node: &Node, text: &str, asked: &OpcDescribeOptions) -> Done {
    let place = address(text)?;
    let failed = |failure: Failure| CliError::failure(format!("cannot describe `{place}`"), &failure);
    let server = connect(node, &place)?;
    let Some(id) = place.item() else { return whole(&server, &place, asked) };
    match server.properties(id) {
        Ok(properties) => item(id, &properties, asked.json),
        // It may be a branch.
        Err(failure) if [Code::UNKNOWN_ITEM, Code::INVALID_ITEM].contains(&Code::of(&failure)) => {
            let tree = Tree::of(&server, &Branch::named(id), asked.depth);
            let tree = tree.map_err(|_| failed(failure))?;
            if asked.json { Envelope::of(tree.json()).print() } else { tree.print() }
        }
        Err(failure) => return Err(failed(failure)),
    }
    Ok(())
}

/// The properties of an item (IOPCItemProperties).
fn item(id: &str, properties: &[ItemProperty], as_json: bool) {
    if as_json {
        let one = |property: &ItemProperty| {
            let (value, error) = match &property.value {
                Ok(value) => (json(value), None),
                Err(code) => (Json::Null, Some(code.to_string())),
            };
            json!({
                "id": property.id, "description": property.description, "type": property.data_type.to_string(),
                "value": value, "error": error,
            })
        };
        let all: Vec<Json> = properties.iter().map(one).collect();
        return Envelope::of(json!({"item": id, "properties": all})).print();
    }
    shown(id);
    for property in properties {
        let value = match &property.value {
            Ok(value) => value.to_string(),
            Err(code) => format!("({code})"),
        };
        let head = format!("{} {}", property.id, property.description);
        shown(&format!("  {head:<28} {:<16} {value}", property.data_type.to_string()));
    }
}

/// A server: its status, and the tree of its items.
fn whole(server: &DataAccess, place: &Address, asked: &OpcDescribeOptions) -> Done {
    let failed = |failure: Failure| CliError::failure(format!("cannot describe `{place}`"), &failure);
    let status = server.status().map_err(failed)?;
    let version = server.version().map_err(failed)?;
    let tree = Tree::of(server, &Branch::root(), asked.depth).map_err(failed)?;
    let (major, minor, build) = status.version;
    if asked.json {
        let own = json!({
            "vendor": status.vendor, "version": format!("{major}.{minor}.{build}"), "state": status.state_name,
            "started": time(status.started), "now": time(status.now), "last_update": time(status.last_update),
            "groups": status.groups, "speaks": version,
        });
        Envelope::of(json!({"server": own, "items": tree.json()})).print();
        return Ok(());
    }
    shown(&format!("vendor   {}", status.vendor));
    shown(&format!("version  {major}.{minor}.{build}, speaks {version}"));
    shown(&format!("state    {}, {} groups", status.state_name, status.groups));
    shown(&format!("started  {}", time(status.started).unwrap_or_else(|| "not told".to_owned())));
    shown("items");
    tree.print();
    Ok(())
}

/// Branches and items, in the order in which the server tells them, each with its level.
struct Tree {
    nodes: Vec<TreeElement>,
    is_cut: bool,
}

/// An element of the tree, which may be branch and item at once.
struct TreeElement {
    level: usize,
    name: String,
    id: String,
    is_branch: bool,
    is_item: bool,
}

impl Tree {
    /// Browses from this branch on, `depth` levels of branches.
    fn of(server: &DataAccess, branch: &Branch, depth: usize) -> Result<Self, Failure> {
        let mut tree = Self { nodes: Vec::new(), is_cut: false };
        tree.add(server, branch, 1, depth)?;
        Ok(tree)
    }

    /// Adds the elements of one branch, and goes into those below. It stops at `MOST`.
    fn add(
        &mut self,
        server: &DataAccess,
        branch: &Branch,
        level: usize,
        depth: usize,
    ) -> Result<(), Failure> {
        for element in server.browse(branch)? {
            if self.nodes.len() >= MOST {
                self.is_cut = true;
                return Ok(());
            }
            let goes_on = element.has_children && level < depth;
            let (is_branch, is_item) = (element.has_children, element.is_item);
            self.nodes.push(TreeElement { level, name: element.name, id: element.id, is_branch, is_item });
            if goes_on {
                self.add(server, &element.branch, level + 1, depth)?;
            }
        }
        Ok(())
    }

    fn print(&self) {
        for node in &self.nodes {
            let branch = if node.is_branch { "/" } else { "" };
            let head = format!("{}{}{branch}", "  ".repeat(node.level), node.name);
            if node.is_item && node.id != node.name {
                shown(&format!("{head:<32} {}", node.id));
            } else {
                shown(&head);
            }
        }
        if self.is_cut {
            note(&format!("there are more: {MOST} are shown; name a branch, or a smaller --depth"));
        }
    }

    fn json(&self) -> Json {
        let one = |node: &TreeElement| {
            let mut out = Map::new();
            out.insert("level".into(), node.level.into());
            out.insert("name".into(), node.name.as_str().into());
            out.insert("id".into(), node.id.as_str().into());
            out.insert("branch".into(), node.is_branch.into());
            out.insert("item".into(), node.is_item.into());
            Json::Object(out)
        };
        self.nodes.iter().map(one).collect()
    }
}
