//! Who is on a bus, and which objects somebody there, or a peer without a bus, has.
//!
//! For the command line: all of it blocks. Many calls go out at once (`wait`), since a bus has hundreds of
//! names, and each is asked three things. Objects are found by walking descriptions level by level. Whatever
//! peers say is checked before it becomes part of an address, and levels, nodes, octets and the time of each object
//! and of all are bounded, so that a peer cannot make the walk endless.

use super::contracts::INTROSPECT;
use super::discover::{describable, own_interfaces, read};
use super::driver::{self, BUS};
use super::people::{Users, process_name};
use super::wait::call_each;
use crate::address::{self, TAG_BUS, TAG_NAME};
use crate::names::{is_bus_name, path_of_key};
use everywire_model::{
    Bytes, Discovery, Endpoint, Failure, Hold, Object, Operation, Presence, Reference, Resolver, Unmarshal,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long an object may take to describe itself: one that hangs is left out. Walks would otherwise wait for
/// the usual time limit of a call at each of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// Levels below the object that a walk begins at. Deeper objects are not listed.
const LEVELS: usize = 32;
/// Objects and nodes that a walk visits. Further ones are not listed.
const NODES: usize = 10_000;
/// Octets of descriptions that a walk reads: 64 MiB. Further objects are not listed.
const OCTETS: usize = 64 << 20;
/// Descriptions that are held at a time before they are read.
const TOGETHER: usize = 16;
/// How long a walk takes. Objects that were not come to are not listed.
const TIME: Duration = Duration::from_secs(60);

/// Who is on a bus (`dbus:session`, `dbus:system`, `dbus:ADDRESS`), or which objects somebody there has
/// (`dbus:session/NAME`, `dbus:ADDRESS#NAME`), or a peer (`dbus:ADDRESS#/`, `dbus+unix:///sock`). With a path, only the
/// objects at and below it.
///
/// # Errors
/// The address cannot be understood; nobody is there; or those of the first calls.
pub fn list(text: &str, resolver: &dyn Resolver) -> Result<Vec<Presence>, Failure> {
    let mut way = Way { reference: address::parse(text)?, resolver };
    if way.component(TAG_BUS).is_none() && way.key().is_empty() && !text.contains("://") {
        // An address alone is that of a bus here: a peer without one is asked for an object.
        way.reference = address::parse(&format!("{}#{}", text.trim(), driver::NAME))?;
        return names(&way);
    }
    if way.component(TAG_BUS).is_some() && way.component(TAG_NAME).is_none() {
        names(&way)
    } else {
        objects(&way)
    }
}

/// The way to whoever is asked: a reference, and how it becomes an object.
struct Way<'a> {
    reference: Reference,
    resolver: &'a dyn Resolver,
}

impl Way<'_> {
    /// A component of its first profile.
    fn component(&self, tag: u32) -> Option<&Bytes> {
        self.reference.profiles.first().and_then(|profile| profile.component(tag))
    }

    /// The path that was given; empty if none was.
    fn key(&self) -> Bytes {
        self.reference.profiles.first().map_or_else(Bytes::new, |profile| profile.key.clone())
    }

    /// One of the objects there. It is reached in the same way.
    fn to(&self, key: &Bytes) -> Reference {
        let mut reference = self.reference.clone();
        for profile in &mut reference.profiles {
            profile.key = key.clone();
        }
        reference
    }

    /// Somebody on the bus. `key` is the object's.
    fn to_name(&self, name: &str, key: &'static str) -> Reference {
        let mut reference = self.to(&Bytes::from_static(key.as_bytes()));
        for profile in &mut reference.profiles {
            profile.components.retain(|(tag, _)| *tag != TAG_NAME);
            profile.components.push((TAG_NAME, Bytes::copy_from_slice(name.as_bytes())));
        }
        reference
    }

    /// Ready to be called.
    fn object(&self, key: &Bytes) -> Result<Object, Failure> {
        self.resolver.resolve(&self.to(key))
    }

    /// Whether processes there are processes of this host, as far as the address says.
    fn is_here(&self) -> bool {
        let mut endpoints = self.reference.profiles.iter().flat_map(|profile| &profile.endpoints);
        !endpoints.any(|endpoint| matches!(endpoint, Endpoint::Tcp { .. }))
    }
}

/// The names of a bus: the well-known ones first, then connections in the order in which they came. Those
/// that nobody owns, but that the bus would start, are told as well.
fn names(way: &Way<'_>) -> Result<Vec<Presence>, Failure> {
    let bus = way.resolver.resolve(&way.to_name(driver::NAME, driver::KEY))?.typed(Hold::Static(&BUS));
    let (owned,) = bus.call::<_, (Vec<String>,), Failure>(driver::LIST_NAMES, ())?;
    let (activatable,) = bus.call::<_, (Vec<String>,), Failure>(driver::LIST_ACTIVATABLE_NAMES, ())?;
    let activatable: BTreeSet<String> = activatable.into_iter().collect();
    let all: BTreeSet<&String> = owned.iter().chain(&activatable).collect();
    // Names are put into addresses: only what may be one is taken.
    let mut all: Vec<&String> = all.into_iter().filter(|name| is_bus_name(name.as_bytes())).collect();
    all.sort_by_key(|name| connection_number(name));

    let calls: Vec<(Object, (String,))> = all.iter().map(|name| (bus.clone(), ((*name).clone(),))).collect();
    let owners = per_name::<String>(&calls, driver::GET_NAME_OWNER);
    let pids = per_name::<u32>(&calls, driver::GET_CONNECTION_UNIX_PROCESS_ID);
    let uids = per_name::<u32>(&calls, driver::GET_CONNECTION_UNIX_USER);

    let here = way.is_here();
    let users = if here { Users::read() } else { Users::default() };
    let mut processes: HashMap<u32, String> = HashMap::new();
    let mut list = Vec::with_capacity(all.len());
    for (((name, owner), pid), uid) in all.into_iter().zip(owners).zip(pids).zip(uids) {
        let starts = activatable.contains(name);
        if owner.is_none() && !starts {
            // It left meanwhile.
            continue;
        }
        let process = match pid {
            Some(pid) if here => {
                processes.entry(pid).or_insert_with(|| process_name(pid).unwrap_or_default()).clone()
            }
            _ => String::new(),
        };
        list.push(Presence {
            address: address::print_friendly(&way.to_name(name, "")),
            name: name.clone(),
            details: vec![
                ("pid", pid.map(|pid| pid.to_string()).unwrap_or_default()),
                ("process", process),
                ("user", uid.map(|uid| users.name(uid)).unwrap_or_default()),
                ("unique name", owner.unwrap_or_default()),
                ("activatable", if starts { "yes" } else { "no" }.to_owned()),
            ],
        });
    }
    Ok(list)
}

/// What the bus says of each name; nothing where it does not know.
fn per_name<R>(calls: &[(Object, (String,))], operation: &Operation) -> Vec<Option<R>>
where
    R: for<'a> Unmarshal<'a>,
{
    call_each::<_, (R,)>(calls, operation)
        .into_iter()
        .map(|result| result.ok().map(|(value,)| value))
        .collect()
}

/// Sorts connections by their number, and behind other names. Names that are no connections come first, in
/// the order that they are in.
fn connection_number(name: &str) -> (bool, u64) {
    match name.strip_prefix(':').and_then(|rest| rest.rsplit('.').next()) {
        Some(number) => (true, number.parse().unwrap_or(u64::MAX)),
        None => (false, 0),
    }
}

/// The objects at and below a path: those that have interfaces of their own. Level by level, some objects of one level
/// at once.
fn objects(way: &Way<'_>) -> Result<Vec<Presence>, Failure> {
    let start = if way.key().is_empty() { Bytes::from_static(b"/") } else { way.key() };
    let (first,) = describable(way.object(&start)?).call::<_, (String,), Failure>(INTROSPECT, ())?;
    let (mut left, begun) = (OCTETS.saturating_sub(first.len()), Instant::now());
    let mut found: BTreeMap<Bytes, Vec<String>> = BTreeMap::new();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut level = vec![(start.clone(), read(&first, &start)?)];
    for depth in 1..=LEVELS {
        let mut next = Vec::new();
        for (key, discovery) in level {
            for child in &discovery.children {
                if seen.len() < NODES && seen.insert(child.clone()) {
                    next.push(child.clone());
                }
            }
            if discovery.own > 0 {
                found.insert(key, own_interfaces(&discovery));
            }
        }
        if next.is_empty() || depth == LEVELS {
            break;
        }
        level = describe_all(way, &next, &mut left, begun)?;
    }
    Ok(found
        .into_iter()
        .map(|(key, interfaces)| Presence {
            name: path_of_key(&key),
            address: address::print_friendly(&way.to(&key)),
            details: vec![("interfaces", interfaces.join(", "))],
        })
        .collect())
}

/// The descriptions of objects; those that do not tell, or nothing that can be understood, are left out. So are those that
/// are not come to: `left` are octets that may still be read.
fn describe_all(
    way: &Way<'_>,
    keys: &[Bytes],
    left: &mut usize,
    begun: Instant,
) -> Result<Vec<(Bytes, Discovery)>, Failure> {
    let mut described = Vec::new();
    for keys in keys.chunks(TOGETHER) {
        if *left == 0 || begun.elapsed() >= TIME {
            break;
        }
        let calls = keys.iter().map(|key| {
            let object = describable(way.object(key)?).with_deadline(Some(PATIENCE));
            Ok((object, ()))
        });
        let calls: Vec<(Object, ())> = calls.collect::<Result<_, Failure>>()?;
        for (key, told) in keys.iter().zip(call_each::<(), (String,)>(&calls, INTROSPECT)) {
            let Ok((told,)) = told else { continue };
            *left = left.saturating_sub(told.len());
            described.extend(read(&told, key).ok().map(|discovery| (key.clone(), discovery)));
        }
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_last_and_in_order() {
        let mut names = vec![":1.10", "b.c", ":1.9", "a.b"];
        names.sort();
        names.sort_by_key(|name| connection_number(name));
        assert_eq!(names, ["a.b", "b.c", ":1.9", ":1.10"]);
    }
}
