//! What passes between others, with the names of items: what AddItems answered is remembered, so that a
//! handle that is read, written or called back about can be told by the item's name.
//!
//! States. A request that is to be understood in its answer is in `asked` until that comes. What was learned
//! from answers stays:
//! * `objects`, which object an interface pointer belongs to, from references and from RemQueryInterface;
//! * `groups`, the client's number for a group, from AddGroup;
//! * `server` and `client`, what a handle means, from AddItems.
//!
//! Invariants.
//! * A handle of the server means something in a group, a handle of the client in the group's client. Where
//!   it was not overheard which group an interface pointer belongs to, a handle that means one item only is
//!   still told, and one that may mean several is told as all of them.
//! * What does not decode is not told, and nothing is learned from it but its references.
//! * Nothing is claimed of what was said before the listing began.
//!
//! Bounds. A table has `MOST` entries at the most, and is forgotten as a whole when it is full; of a message
//! `TOLD` items are told. Layouts are those of the contract, but for RemQueryInterface (MS-DCOM 3.1.1.5.6),
//! which is read by hand.

use crate::contract::{
    FILETIME, GUID, IOPCAsyncIO2, IOPCDataCallback, IOPCItemIO, IOPCItemMgt, IOPCServer, IOPCSyncIO,
    OPCDATASOURCE, OPCITEMDEF, OPCITEMRESULT, OPCITEMSTATE,
};
use crate::{Code, Data, Quality};
use everywire::{Bytes, Remote};
use everywire_model::counts::Present;
use everywire_model::marshal::UnmarshalList;
use everywire_model::{Operation, Variant};
use std::collections::HashMap;
use std::sync::Arc;

/// Entries of a table before it is forgotten.
const MOST: usize = 1 << 16;
/// Items that are told of one message.
const TOLD: usize = 20;
/// The HRESULT behind results.
const HRESULT: usize = 4;
/// Octets of what RemQueryInterface answers of an interface: HRESULT, flags, references, OXID, OID, IPID.
const QUERIED: usize = 48;

/// A message of ORPC, as far as a listing tells.
#[derive(Debug, Clone, Copy)]
pub struct OrpcMessage<'m> {
    /// Number of its connection.
    pub connection: usize,
    /// Whether it went from the connecting to the accepting side.
    pub outward: bool,
    /// Its number on the connection.
    pub call: &'m str,
    /// Of a request: the names of interface and method.
    pub method: Option<(&'m str, &'m str)>,
    /// Of a request: the IPID that it is for.
    pub object: Option<&'m str>,
    /// Who sent it, and to whom: `HOST:PORT`.
    pub from: &'m str,
    /// To whom.
    pub to: &'m str,
    /// References in it: OID and IPID.
    pub references: &'m [(&'m str, &'m str)],
    /// Its arguments or results.
    pub stub: &'m [u8],
    /// In which order its octets are.
    pub little: bool,
}

/// What was asked, until it is answered.
enum OpenRequest {
    /// AddGroup, with the client's number for the group.
    Group(u32),
    /// AddItems, and what the answer gives handles to.
    Add { place: HandleScope, items: Vec<(Arc<str>, u32)> },
    /// RemQueryInterface of this pointer.
    Query(String),
    /// IOPCSyncIO::Read: values with the client's handles.
    States,
    /// IOPCItemIO::Read of these items.
    Values(Vec<Arc<str>>),
    /// A write of these items, as they are told: a code for each.
    Codes(Vec<String>),
}

/// Where handles mean something: a host, and an object of it, if that is known.
#[derive(Clone)]
struct HandleScope {
    host: String,
    object: Option<String>,
}

/// An item that a handle may mean, and the group in which it does.
type HandleMeaning<K> = (Option<K>, Arc<str>);

/// Remembers what was said.
#[derive(Default)]
pub struct HandleTracker {
    /// Requests that were not answered yet, by connection, direction and number.
    asked: HashMap<(usize, bool, String), OpenRequest>,
    /// The object of an IPID.
    objects: HashMap<String, String>,
    /// The client's number for a group, by the group's object.
    groups: HashMap<String, u32>,
    /// By the server's host and its handle.
    server: HashMap<(String, u32), Vec<HandleMeaning<String>>>,
    /// By the client's host and its handle.
    client: HashMap<(String, u32), Vec<HandleMeaning<u32>>>,
}

/// A method of the contract by its name.
fn method<I: Remote + ?Sized>(name: &str) -> Option<&'static Operation> {
    let interface = I::interface();
    interface.operations.get(interface.index_of(name.as_bytes())?)
}

/// The host of `HOST:PORT`.
fn host(place: &str) -> String {
    place.rsplit_once(':').map_or(place, |(host, _)| host).to_owned()
}

/// Puts an entry into a table, which is emptied first if it is full.
fn put<K, V>(table: &mut HashMap<K, V>, key: K, value: V)
where
    K: std::hash::Hash + Eq,
{
    if table.len() >= MOST {
        table.clear();
    }
    table.insert(key, value);
}

/// A handle means an item from now on, in this group.
fn mean<K: PartialEq>(
    table: &mut HashMap<(String, u32), Vec<HandleMeaning<K>>>,
    key: (String, u32),
    of: Option<K>,
    item: &Arc<str>,
) {
    if table.len() >= MOST {
        table.clear();
    }
    let meanings = table.entry(key).or_default();
    // The same group gives a handle again once the item was removed.
    meanings.retain(|(held, _)| *held != of);
    if meanings.len() < TOLD {
        meanings.push((of, Arc::clone(item)));
    }
}

/// What a handle means in a group, or all that it may mean.
fn meaning<K: PartialEq>(meanings: Option<&Vec<HandleMeaning<K>>>, of: Option<&K>, handle: u32) -> String {
    let unknown = || format!("handle {handle:#x}");
    let Some(meanings) = meanings else { return unknown() };
    let own = |(held, _): &&HandleMeaning<K>| of.is_some() && held.as_ref() == of;
    if let Some((_, item)) = meanings.iter().find(own) {
        return item.to_string();
    }
    let mut names: Vec<&str> = meanings.iter().map(|(_, item)| &**item).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { unknown() } else { names.join(" or ") }
}

impl HandleTracker {
    /// Nothing was heard yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a message; what it says of items, if anything.
    pub fn hear(&mut self, said: &OrpcMessage<'_>) -> Option<String> {
        for (object, pointer) in said.references {
            put(&mut self.objects, (*pointer).to_owned(), (*object).to_owned());
        }
        match said.method {
            Some((interface, name)) => self.request(said, interface, name),
            None => {
                let asked = self.asked.remove(&(said.connection, !said.outward, said.call.to_owned()))?;
                self.answer(said, asked)
            }
        }
    }

    /// Where the handles of a request mean something.
    fn place(&self, said: &OrpcMessage<'_>) -> HandleScope {
        let object = said.object.map(|pointer| {
            // Without anything better the pointer stands for its object.
            self.objects.get(pointer).cloned().unwrap_or_else(|| pointer.to_owned())
        });
        HandleScope { host: host(said.to), object }
    }

    /// The name of an item by the server's handle.
    fn of_server(&self, place: &HandleScope, handle: u32) -> String {
        meaning(self.server.get(&(place.host.clone(), handle)), place.object.as_ref(), handle)
    }

    /// The name of an item by the client's handle.
    fn of_client(&self, host: &str, group: Option<u32>, handle: u32) -> String {
        meaning(self.client.get(&(host.to_owned(), handle)), group.as_ref(), handle)
    }

    /// Keeps what was asked until it is answered.
    fn remember(&mut self, said: &OrpcMessage<'_>, asked: OpenRequest) {
        put(&mut self.asked, (said.connection, said.outward, said.call.to_owned()), asked);
    }

    /// What a request tells of items.
    fn request(&mut self, said: &OrpcMessage<'_>, interface: &str, name: &str) -> Option<String> {
        let place = self.place(said);
        let by_handle = |handles: Vec<u32>| listed(handles.iter().map(|one| self.of_server(&place, *one)));
        let told = match (interface, name) {
            ("IRemUnknown" | "IRemUnknown2", "RemQueryInterface") => {
                let pointer = pointer_of(said.stub)?;
                self.remember(said, OpenRequest::Query(pointer));
                return None;
            }
            ("IOPCServer", "AddGroup") => {
                let client = added_group(said)?;
                self.remember(said, OpenRequest::Group(client));
                return None;
            }
            ("IOPCItemMgt", "AddItems" | "ValidateItems") => {
                let items = defined(said, name)?;
                let names = listed(items.iter().map(|(item, _)| item.to_string()));
                if name == "AddItems" {
                    self.remember(said, OpenRequest::Add { place, items });
                }
                names
            }
            ("IOPCItemMgt", "RemoveItems" | "SetActiveState" | "SetClientHandles" | "SetDatatypes") => {
                by_handle(handles(said.stub, said.little)?)
            }
            ("IOPCSyncIO" | "IOPCSyncIO2", "Read") => {
                let read = method::<dyn IOPCSyncIO>("Read")?;
                let (_, _, items): (OPCDATASOURCE, u32, Vec<u32>) = arguments(said, read)?;
                let told = by_handle(items);
                self.remember(said, OpenRequest::States);
                told
            }
            ("IOPCSyncIO" | "IOPCSyncIO2", "Write") => {
                let (_, items, values): (u32, Vec<u32>, Vec<Variant>) =
                    arguments(said, method::<dyn IOPCSyncIO>("Write")?)?;
                let told = self.given(&place, &items, &values);
                self.expect_codes(said, &place, &items);
                told
            }
            ("IOPCSyncIO2", "WriteVQT") => {
                let items = handles(said.stub, said.little)?;
                let told = by_handle(items.clone());
                self.expect_codes(said, &place, &items);
                told
            }
            ("IOPCAsyncIO2" | "IOPCAsyncIO3", "Read") => {
                let (_, items, _): (u32, Vec<u32>, u32) =
                    arguments(said, method::<dyn IOPCAsyncIO2>("Read")?)?;
                by_handle(items)
            }
            ("IOPCAsyncIO2" | "IOPCAsyncIO3", "Write") => {
                let (_, items, values, _): (u32, Vec<u32>, Vec<Variant>, u32) =
                    arguments(said, method::<dyn IOPCAsyncIO2>("Write")?)?;
                self.given(&place, &items, &values)
            }
            ("IOPCSyncIO2", "ReadMaxAge")
            | ("IOPCAsyncIO3", "ReadMaxAge" | "WriteVQT")
            | ("IOPCItemDeadbandMgt" | "IOPCItemSamplingMgt", _) => {
                by_handle(handles(said.stub, said.little)?)
            }
            ("IOPCItemIO", "Read") => {
                let (_, items, _): (u32, Vec<Option<String>>, Vec<u32>) =
                    arguments(said, method::<dyn IOPCItemIO>("Read")?)?;
                let items: Vec<Arc<str>> =
                    items.into_iter().map(|item| Arc::from(item.unwrap_or_default())).collect();
                let told = listed(items.iter().map(ToString::to_string));
                self.remember(said, OpenRequest::Values(items));
                told
            }
            ("IOPCDataCallback", "OnDataChange" | "OnReadComplete") => self.called_back(said, name)?,
            ("IOPCDataCallback", "OnWriteComplete") => {
                let (_, group, _, _, items, errors): (u32, u32, i32, u32, Vec<u32>, Vec<i32>) =
                    arguments(said, method::<dyn IOPCDataCallback>(name)?)?;
                let host = host(said.to);
                listed(items.iter().zip(&errors).map(|(item, error)| {
                    format!("{} {}", self.of_client(&host, Some(group), *item), Code(error.cast_unsigned()))
                }))
            }
            _ => return None,
        };
        Some(told)
    }

    /// Keeps whose codes the answer to a write tells.
    fn expect_codes(&mut self, said: &OrpcMessage<'_>, place: &HandleScope, items: &[u32]) {
        let items = items.iter().map(|item| self.of_server(place, *item)).collect();
        self.remember(said, OpenRequest::Codes(items));
    }

    /// Values that are written.
    fn given(&self, place: &HandleScope, items: &[u32], values: &[Variant]) -> String {
        listed(
            items
                .iter()
                .zip(values)
                .map(|(item, value)| format!("{} = {}", self.of_server(place, *item), shown(value))),
        )
    }

    /// Values that a callback brings.
    fn called_back(&self, said: &OrpcMessage<'_>, name: &str) -> Option<String> {
        type Change = (u32, u32, i32, i32, u32, Vec<u32>, Vec<Variant>, Vec<u16>, Vec<FILETIME>, Vec<i32>);
        let (_, group, _, _, _, items, values, qualities, _, errors): Change =
            arguments(said, method::<dyn IOPCDataCallback>(name)?)?;
        let host = host(said.to);
        let each = items.iter().zip(&values).zip(qualities.iter().zip(&errors));
        Some(listed(each.map(|((item, value), (quality, error))| {
            told(&self.of_client(&host, Some(group), *item), value, *quality, *error)
        })))
    }

    /// What an answer tells of items, and what is learned from it.
    fn answer(&mut self, said: &OrpcMessage<'_>, asked: OpenRequest) -> Option<String> {
        match asked {
            OpenRequest::Group(client) => {
                let (object, _) = said.references.first()?;
                put(&mut self.groups, (*object).to_owned(), client);
                None
            }
            OpenRequest::Query(pointer) => {
                for (object, found) in queried(said)? {
                    // What was asked is of the same object.
                    put(&mut self.objects, pointer.clone(), object.clone());
                    put(&mut self.objects, found, object);
                }
                None
            }
            OpenRequest::Add { place, items } => {
                type AddItemsResults = (Present<Vec<OPCITEMRESULT>>, Present<Vec<i32>>);
                let (Present(added), Present(errors)): AddItemsResults =
                    results(said, method::<dyn IOPCItemMgt>("AddItems")?)?;
                let client_host = host(said.to);
                let group = place.object.as_ref().and_then(|object| self.groups.get(object)).copied();
                let mut told = Vec::new();
                for (((item, client), added), error) in items.iter().zip(&added).zip(&errors) {
                    let code = Code(error.cast_unsigned());
                    if code.is_failure() {
                        told.push(format!("{item} {code}"));
                        continue;
                    }
                    told.push(format!("{item} is handle {:#x}", added.server));
                    mean(&mut self.server, (place.host.clone(), added.server), place.object.clone(), item);
                    mean(&mut self.client, (client_host.clone(), *client), group, item);
                }
                Some(listed(told.into_iter()))
            }
            OpenRequest::States => {
                let (Present(states), Present(errors)): (Present<Vec<OPCITEMSTATE>>, Present<Vec<i32>>) =
                    results(said, method::<dyn IOPCSyncIO>("Read")?)?;
                let host = host(said.to);
                let each = states.iter().zip(&errors);
                Some(listed(each.map(|(state, error)| {
                    let item = self.of_client(&host, None, state.client);
                    told(&item, &state.value, state.quality, *error)
                })))
            }
            OpenRequest::Codes(items) => {
                // What WriteVQT answers has the same form.
                let (Present(errors),): (Present<Vec<i32>>,) =
                    results(said, method::<dyn IOPCSyncIO>("Write")?)?;
                let each = items.iter().zip(&errors);
                Some(listed(each.map(|(item, error)| format!("{item} {}", Code(error.cast_unsigned())))))
            }
            OpenRequest::Values(items) => {
                type Values =
                    (Present<Vec<Variant>>, Present<Vec<u16>>, Present<Vec<FILETIME>>, Present<Vec<i32>>);
                let (Present(values), Present(qualities), _, Present(errors)): Values =
                    results(said, method::<dyn IOPCItemIO>("Read")?)?;
                let each = items.iter().zip(&values).zip(qualities.iter().zip(&errors));
                Some(listed(
                    each.map(|((item, value), (quality, error))| told(item, value, *quality, *error)),
                ))
            }
        }
    }
}

/// Parts of a line, not too many.
fn listed(parts: impl Iterator<Item = String>) -> String {
    let mut shown = Vec::new();
    let mut more = 0_usize;
    for part in parts {
        if shown.len() < TOLD {
            shown.push(part);
        } else {
            more += 1;
        }
    }
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// A value as it is told.
fn shown(value: &Variant) -> String {
    match Data::from_variant(value) {
        Ok(Data::Empty) => "nothing".to_owned(),
        Ok(data) => data.to_string(),
        Err(code) => code.to_string(),
    }
}

/// An item with what was said of it: its value and quality, or why it has none.
fn told(item: &str, value: &Variant, quality: u16, error: i32) -> String {
    let code = Code(error.cast_unsigned());
    if code.is_failure() {
        return format!("{item} {code}");
    }
    format!("{item} = {} {}", shown(value), Quality(quality))
}

/// The arguments of a request, if they are what the method has.
fn arguments<L>(said: &OrpcMessage<'_>, method: &'static Operation) -> Option<L>
where
    L: for<'a> UnmarshalList<'a>,
{
    let body = everywire::com::overheard(Bytes::copy_from_slice(said.stub), said.little);
    body.decode(&method.arguments).ok()
}

/// The results of an answer, without the HRESULT behind them.
fn results<L>(said: &OrpcMessage<'_>, method: &'static Operation) -> Option<L>
where
    L: for<'a> UnmarshalList<'a>,
{
    let stub = said.stub.get(..said.stub.len().checked_sub(HRESULT)?)?;
    let body = everywire::com::overheard(Bytes::copy_from_slice(stub), said.little);
    body.decode(&method.results).ok()
}

/// The items of AddItems: names, and the client's handles.
fn defined(said: &OrpcMessage<'_>, name: &str) -> Option<Vec<(Arc<str>, u32)>> {
    let method = method::<dyn IOPCItemMgt>(name)?;
    let items: Vec<OPCITEMDEF> = if name == "AddItems" {
        let (_, items): (u32, Vec<OPCITEMDEF>) = arguments(said, method)?;
        items
    } else {
        let (_, items, _): (u32, Vec<OPCITEMDEF>, i32) = arguments(said, method)?;
        items
    };
    Some(items.into_iter().map(|item| (Arc::from(item.item_id.unwrap_or_default()), item.client)).collect())
}

/// The client's number for a group that it adds.
fn added_group(said: &OrpcMessage<'_>) -> Option<u32> {
    type Group = (String, i32, u32, u32, Option<i32>, Option<f32>, u32, GUID);
    let (_, _, _, client, ..): Group = arguments(said, method::<dyn IOPCServer>("AddGroup")?)?;
    Some(client)
}

/// The 32 bits at a place.
fn number(octets: &[u8], at: usize, little: bool) -> Option<u32> {
    let four = *octets.get(at..)?.first_chunk()?;
    Some(if little { u32::from_le_bytes(four) } else { u32::from_be_bytes(four) })
}

/// The handles that a method's arguments begin with: a count, the count of the array, the handles.
fn handles(stub: &[u8], little: bool) -> Option<Vec<u32>> {
    let count = number(stub, 4, little)?;
    let octets = stub.get(8..)?;
    // What is told of is bounded, whatever the count says.
    (0..usize::try_from(count).ok()?.min(octets.len() / 4)).map(|at| number(octets, at * 4, little)).collect()
}

/// The IPID that a stub begins with, as listings write it.
fn pointer_of(stub: &[u8]) -> Option<String> {
    Some(uuid::Uuid::from_bytes_le(*stub.first_chunk()?).to_string())
}

/// Objects and IPIDs that RemQueryInterface answered: a pointer, a count, and what there is of each.
fn queried(said: &OrpcMessage<'_>) -> Option<Vec<(String, String)>> {
    let one = |octets: &[u8]| {
        let object = *octets.get(24..)?.first_chunk::<8>()?;
        let object = if said.little { u64::from_le_bytes(object) } else { u64::from_be_bytes(object) };
        let succeeded = number(octets, 0, said.little)? == 0;
        succeeded.then_some((format!("{object:#018x}"), pointer_of(octets.get(32..)?)?))
    };
    Some(said.stub.get(8..)?.chunks_exact(QUERIED).filter_map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_means_what_its_group_says_or_all_that_it_may() {
        let mut table = HashMap::new();
        let key = ("h".to_owned(), 1);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        mean(&mut table, key.clone(), Some(7), &a);
        assert_eq!(meaning(table.get(&key), None, 1), "a");
        mean(&mut table, key.clone(), Some(8), &b);
        assert_eq!(meaning(table.get(&key), Some(&8), 1), "b");
        assert_eq!(meaning(table.get(&key), Some(&9), 1), "a or b");
        mean(&mut table, key.clone(), Some(8), &a);
        assert_eq!(
            (meaning(table.get(&key), None, 1), meaning(table.get(&key), Some(&8), 1)),
            ("a".into(), "a".into())
        );
        assert_eq!(meaning::<u32>(None, None, 16), "handle 0x10");
    }

    #[test]
    fn what_is_cut_off_is_not_told() {
        let mut heard = HandleTracker::new();
        for (interface, method) in [
            ("IOPCItemMgt", "AddItems"),
            ("IOPCItemMgt", "RemoveItems"),
            ("IOPCSyncIO", "Read"),
            ("IOPCSyncIO", "Write"),
            ("IOPCSyncIO2", "WriteVQT"),
            ("IOPCServer", "AddGroup"),
            ("IOPCItemIO", "Read"),
            ("IOPCDataCallback", "OnDataChange"),
            ("IOPCDataCallback", "OnWriteComplete"),
            ("IRemUnknown", "RemQueryInterface"),
        ] {
            for len in 0..40 {
                let stub = vec![0xff; len];
                let said = OrpcMessage {
                    connection: 1,
                    outward: true,
                    call: "1",
                    method: Some((interface, method)),
                    object: None,
                    from: "a:1",
                    to: "b:2",
                    references: &[],
                    stub: &stub,
                    little: true,
                };
                heard.hear(&said);
                heard.hear(&OrpcMessage { method: None, outward: false, ..said });
            }
        }
    }

    #[test]
    fn the_answer_to_a_write_tells_the_code_of_each_item() {
        let mut heard = HandleTracker::new();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        // Two handles; the values are not looked at.
        let (asked, answered) = (words(&[2, 2, 16, 17]), words(&[0x2_0000, 2, 0, 0xc004_0006, 1]));
        let said = OrpcMessage {
            connection: 1,
            outward: true,
            call: "1",
            method: Some(("IOPCSyncIO2", "WriteVQT")),
            object: None,
            from: "a:1",
            to: "b:2",
            references: &[],
            stub: &asked,
            little: true,
        };
        assert_eq!(heard.hear(&said).as_deref(), Some("handle 0x10, handle 0x11"));
        let answer = OrpcMessage { method: None, outward: false, stub: &answered, ..said };
        let told = heard.hear(&answer);
        assert_eq!(
            told.as_deref(),
            Some("handle 0x10 S_OK (0x00000000), handle 0x11 OPC_E_BADRIGHTS (0xc0040006)")
        );
        assert_eq!(heard.hear(&answer), None);
    }

    #[test]
    fn long_lists_are_cut() {
        assert!(listed((0..25).map(|number| number.to_string())).ends_with("19, and 5 more"));
    }
}
