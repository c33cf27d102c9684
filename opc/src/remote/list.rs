//! Which servers a machine has: OpcEnum, asked (OPC Common 1.10, 6).

use super::address::Address;
use super::trouble::advised;
use super::wire::{missing, violation};
use crate::contract::{GUID, IOPCServerList, IOPCServerList2};
use crate::wire::{DA_1, DA_2, DA_3, OPC_ENUM, guid_of, text_of};
use everywire::{Failure, Kind, Node, Success};

/// The categories, newest first, and what they mean.
const CATEGORIES: [(&str, &str); 3] = [(DA_3, "3.0"), (DA_2, "2.0"), (DA_1, "1.0")];

/// Classes that a list may have.
const MOST: usize = 10_000;
/// How many are asked for at a time.
const PAGE: u32 = 64;

/// A server that a machine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// Its CLSID.
    pub class: String,
    /// Its name for programs.
    pub prog_id: String,
    /// The same without a version, where the list tells that.
    pub version_independent: Option<String>,
    /// Its name for people.
    pub name: String,
    /// The versions of Data Access that it says it speaks, newest first.
    pub versions: Vec<&'static str>,
}

/// ProgID, name for people, ProgID without a version.
type Details = (Option<String>, Option<String>, Option<String>);

/// The list of one machine, by its newer or its older interface.
enum List {
    Newer(everywire::Ref<dyn IOPCServerList2>),
    Older(everywire::Ref<dyn IOPCServerList>),
}

impl List {
    fn of(node: &Node, address: &Address) -> Result<Self, Failure> {
        let object = node.object(&address.of_class(OPC_ENUM)?)?;
        let older = object.into_typed::<dyn IOPCServerList>();
        let newer = older.query::<dyn IOPCServerList2>().map_err(absent)?;
        Ok(newer.map_or(Self::Older(older), Self::Newer))
    }

    fn classes(&self, category: &GUID) -> Result<Vec<GUID>, Failure> {
        let asked = std::slice::from_ref(category);
        match self {
            Self::Newer(list) => {
                let found = list.enum_classes_of_categories(asked, &[])?;
                let found = found.ok_or_else(|| missing("enumerator"))?;
                all(|count| found.next(count))
            }
            Self::Older(list) => {
                let found = list.enum_classes_of_categories(asked, &[])?;
                let found = found.ok_or_else(|| missing("enumerator"))?;
                all(|count| found.next(count))
            }
        }
    }

    fn details(&self, class: &GUID) -> Result<Details, Failure> {
        match self {
            Self::Newer(list) => list.get_class_details(class),
            Self::Older(list) => list.get_class_details(class).map(|(prog_id, name)| (prog_id, name, None)),
        }
    }

    fn class_of(&self, prog_id: &str) -> Result<GUID, Failure> {
        match self {
            Self::Newer(list) => list.clsid_from_prog_id(prog_id),
            Self::Older(list) => list.clsid_from_prog_id(prog_id),
        }
    }
}

/// The servers of a machine, as its OpcEnum tells them, by name.
///
/// # Errors
/// The machine cannot be reached, does not let us in, or has no OpcEnum.
pub fn servers(node: &Node, address: &Address) -> Result<Vec<ServerEntry>, Failure> {
    let list = List::of(node, address)?;
    let mut found: Vec<(GUID, Vec<&'static str>)> = Vec::new();
    let mut refused = None;
    for (category, version) in CATEGORIES {
        let Some(category) = guid_of(category) else { continue };
        // A machine that has no server of a category may say so with a failure.
        let classes = match list.classes(&category) {
            Ok(classes) => classes,
            Err(failure) => {
                refused = Some(failure);
                continue;
            }
        };
        for class in classes {
            match found.iter_mut().find(|(held, _)| *held == class) {
                Some((_, versions)) => versions.push(version),
                None => found.push((class, vec![version])),
            }
        }
    }
    if let (true, Some(failure)) = (found.is_empty(), refused) {
        return Err(advised(failure));
    }
    let mut servers: Vec<_> = found
        .into_iter()
        .map(|(class, versions)| {
            // An entry that cannot be read is still a server.
            let (prog_id, name, version_independent) = list.details(&class).unwrap_or_default();
            ServerEntry {
                class: text_of(&class),
                prog_id: prog_id.unwrap_or_default(),
                version_independent: version_independent.filter(|text| !text.is_empty()),
                name: name.unwrap_or_default(),
                versions,
            }
        })
        .collect();
    servers.sort_by(|a, b| a.prog_id.cmp(&b.prog_id));
    Ok(servers)
}

/// The class of a server that is named by its ProgID.
pub(super) fn class_of(node: &Node, address: &Address, prog_id: &str) -> Result<String, Failure> {
    let class = List::of(node, address)?.class_of(prog_id);
    class
        .map(|class| text_of(&class))
        .map_err(|failure| advised(failure.at(format_args!("ProgID `{prog_id}`"))))
}

/// Everything that an enumerator has.
fn all<T>(next: impl Fn(u32) -> Result<Success<Vec<T>>, Failure>) -> Result<Vec<T>, Failure> {
    super::enumerated(MOST, PAGE, next)
}

/// Why the list itself cannot be asked.
fn absent(failure: Failure) -> Failure {
    if failure.kind() == Kind::NoObject && failure.code() == Some("0x80040154") {
        return failure.at("OpcEnum").with_hint(
            "the machine has no OpcEnum, which knows ProgIDs: name the server by its CLSID, opcda://HOST/CLSID",
        );
    }
    advised(failure.at("OpcEnum"))
}

/// Too many for one answer.
pub(super) fn too_many(most: usize) -> Failure {
    violation(format!("the server enumerates more than {most}"))
}
