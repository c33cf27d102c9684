//! Who is on a bus, and which objects somebody there, or a peer without a bus, has.
//!
//! For the command line: all of it blocks. Many calls go out at once (`wait`), since a bus has hundreds of
//! names, and each is asked three things. Objects are found by walking descriptions level by level.
//!
//! States: none but those of one walk. Invariants: whatever peers say is checked before it becomes part of an
//! address. Levels, nodes, octets and the time of each object and of all are bounded, so that a peer cannot
//! make the walk endless; a list that is not whole says so.

use super::contracts::INTROSPECT;
use super::discover::{describable, own_interfaces, read};
use super::driver::{self, BUS};
use super::people::{Users, process_name};
use super::wait::call_each;
use crate::address::{self, TAG_BUS, TAG_NAME};
use crate::names::{is_bus_name, path_of_key};
use everywire_model::{
    Bytes, Discovery, Endpoint, Failure, Hold, Kind, Object, Operation, Presence, PresenceList, Reference,
    Resolver, Unmarshal,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// How long an object may take to describe itself: one that hangs is left out. Walks would otherwise wait for
/// the usual time limit of a call at each of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// Descriptions that are held at a time before they are read.
const TOGETHER: usize = 16;

/// How far a walk goes. What is further is not listed, but it is told that there is more.
struct Bounds {
    /// Levels below the object that it begins at.
    levels: usize,
    /// Objects and nodes.
    nodes: usize,
    /// Octets of descriptions.
    octets: usize,
    /// How long all of it takes.
    time: Duration,
}

/// Seconds of a walk. Under Miri, where all takes about a hundred times as long, it is the walk that is tested and not the clock.
const SECONDS: u64 = if cfg!(miri) { 6_000 } else { 60 };

/// Those of every walk but in tests.
const BOUNDS: Bounds =
    Bounds { levels: 32, nodes: 10_000, octets: 64 << 20, time: Duration::from_secs(SECONDS) };

/// Who is on a bus (`dbus:session`, `dbus:system`, `dbus:ADDRESS`), or which objects somebody there has
/// (`dbus:session/NAME`, `dbus:ADDRESS#NAME`), or a peer (`dbus:ADDRESS#/`, `dbus+unix:///sock`). With a path, only the
/// objects at and below it.
///
/// # Errors
/// The address cannot be understood; nobody is there; or those of the first calls.
pub fn list(text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
    let mut way = Referral { reference: address::parse(text)?, resolver };
    if way.component(TAG_BUS).is_none() && way.key().is_empty() && !text.contains("://") {
        // An address alone is that of a bus here: a peer without one is asked for an object.
        way.reference = address::parse(&format!("{}#{}", text.trim(), driver::NAME))?;
        return names(&way).map(PresenceList::from);
    }
    if way.component(TAG_BUS).is_some() && way.component(TAG_NAME).is_none() {
        names(&way).map(PresenceList::from)
    } else {
        objects(&way, &BOUNDS)
    }
}

/// The way to whoever is asked: a reference, and how it becomes an object.
struct Referral<'a> {
    reference: Reference,
    resolver: &'a dyn Resolver,
}

impl Referral<'_> {
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
fn names(way: &Referral<'_>) -> Result<Vec<Presence>, Failure> {
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
fn objects(way: &Referral<'_>, bounds: &Bounds) -> Result<PresenceList, Failure> {
    let start = if way.key().is_empty() { Bytes::from_static(b"/") } else { way.key() };
    let (first,) = describable(way.object(&start)?).call::<_, (String,), Failure>(INTROSPECT, ())?;
    let mut walk = Walk { bounds, read: first.len(), begun: Instant::now(), end: None, silent: None };
    let mut found: BTreeMap<Bytes, Vec<String>> = BTreeMap::new();
    let mut seen = BTreeSet::from([start.clone()]);
    let mut level = vec![(start.clone(), read(&first, &start)?)];
    for depth in 1..=bounds.levels {
        let mut next = Vec::new();
        for (key, discovery) in level {
            for child in &discovery.children {
                if seen.contains(child) {
                    continue;
                }
                if seen.len() >= bounds.nodes {
                    walk.ends(child, || format!("{} objects were asked", bounds.nodes));
                } else {
                    seen.insert(child.clone());
                    next.push(child.clone());
                }
            }
            if discovery.own > 0 {
                found.insert(key, own_interfaces(&discovery));
            }
        }
        let Some(deeper) = next.first() else { break };
        if depth == bounds.levels {
            walk.ends(deeper, || format!("objects {} levels below are not asked", bounds.levels));
            break;
        }
        level = walk.describe_all(way, &next)?;
    }
    let present = |(key, interfaces): (Bytes, Vec<String>)| Presence {
        name: path_of_key(&key),
        address: address::print_friendly(&way.to(&key)),
        details: vec![("interfaces", interfaces.join(", "))],
    };
    Ok(PresenceList { found: found.into_iter().map(present).collect(), left_out: walk.left_out(way) })
}

/// How far a walk has come, and what it left out.
struct Walk<'b> {
    bounds: &'b Bounds,
    /// Octets of descriptions that were read.
    read: usize,
    begun: Instant,
    /// The first bound that was met, and the first object that was not asked because of it.
    end: Option<(String, Bytes)>,
    /// How many objects did not describe themselves, the first of them, and what was the matter with it.
    silent: Option<(usize, Bytes, String)>,
}

impl Walk<'_> {
    /// Notes that this object, and perhaps others, are not asked.
    fn ends(&mut self, key: &Bytes, bound: impl FnOnce() -> String) {
        self.end.get_or_insert_with(|| (bound(), key.clone()));
    }

    /// Whether this object may be asked, or the walk has come to a bound.
    fn goes_on(&mut self, key: &Bytes) -> bool {
        let Bounds { octets, time, .. } = *self.bounds;
        if self.read >= octets {
            self.ends(key, || format!("{octets} octets of descriptions were read"));
        } else if self.begun.elapsed() >= time {
            self.ends(key, || format!("{} s were over", time.as_secs()));
        } else {
            return true;
        }
        false
    }

    /// The descriptions of objects; those that do not tell, or nothing that can be understood, are left out. So are those that
    /// are not come to.
    fn describe_all(
        &mut self,
        way: &Referral<'_>,
        keys: &[Bytes],
    ) -> Result<Vec<(Bytes, Discovery)>, Failure> {
        let mut described = Vec::new();
        for keys in keys.chunks(TOGETHER) {
            if !keys.first().is_some_and(|key| self.goes_on(key)) {
                break;
            }
            let calls = keys.iter().map(|key| {
                let object = describable(way.object(key)?).with_deadline(Some(PATIENCE));
                Ok((object, ()))
            });
            let calls: Vec<(Object, ())> = calls.collect::<Result<_, Failure>>()?;
            for (key, told) in keys.iter().zip(call_each::<(), (String,)>(&calls, INTROSPECT)) {
                let understood = told.and_then(|(told,)| {
                    self.read = self.read.saturating_add(told.len());
                    read(&told, key)
                });
                match understood {
                    Ok(discovery) => described.push((key.clone(), discovery)),
                    // It left meanwhile.
                    Err(failure) if failure.kind() == Kind::NoObject => {}
                    Err(failure) => {
                        let first = || (0, key.clone(), failure.to_string());
                        self.silent.get_or_insert_with(first).0 += 1;
                    }
                }
            }
        }
        Ok(described)
    }

    /// What the list has not, in words for people.
    fn left_out(self, way: &Referral<'_>) -> Vec<String> {
        let end = self.end.map(|(bound, key)| {
            let (path, address) = (path_of_key(&key), address::print_friendly(&way.to(&key)));
            format!(
                "the list is not whole, since {bound}: `{path}` is the first of the objects that were not asked; \
                 `everywire list {address}` lists what is there"
            )
        });
        let silent = self.silent.map(|(count, key, why)| {
            format!(
                "objects that do not describe themselves: {count}, the first is `{}`: {why}",
                path_of_key(&key)
            )
        });
        end.into_iter().chain(silent).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard::tests::calling::{Endless, There};
    use std::sync::Arc;

    /// What a walk within these bounds leaves out, of objects that say each that there is another one.
    fn left_out(bounds: &Bounds, descriptions: [&str; 2]) -> Vec<String> {
        let endless = Endless::new(descriptions.map(str::to_owned));
        let there = There::new(vec![Arc::new(endless)]);
        let way =
            Referral { reference: address::parse("dbus:unix:path=/run/b#a.b").unwrap(), resolver: &there };
        objects(&way, bounds).unwrap().left_out
    }

    #[test]
    fn a_walk_that_meets_a_bound_says_so() {
        let node = "<node><interface name='a.b'/><node name='x'/></node>";
        let told = |bounds: &Bounds| left_out(bounds, [node, node]);
        let once = |what: &str, path: &str| {
            [format!(
                "the list is not whole, since {what}: `{path}` is the first of the objects that were not asked; \
                 `everywire list dbus:unix:path=/run/b#a.b{path}` lists what is there"
            )]
        };
        assert_eq!(told(&Bounds { time: Duration::ZERO, ..BOUNDS }), once("0 s were over", "/x"));
        assert_eq!(told(&Bounds { nodes: 2, ..BOUNDS }), once("2 objects were asked", "/x/x"));
        assert_eq!(told(&Bounds { octets: 9, ..BOUNDS }), once("9 octets of descriptions were read", "/x"));
        assert_eq!(
            told(&Bounds { levels: 3, ..BOUNDS }),
            once("objects 3 levels below are not asked", "/x/x/x")
        );
        let whole = left_out(&BOUNDS, [node, "<node/>"]);
        assert_eq!(whole, [""; 0]);
    }

    #[test]
    fn an_object_that_does_not_describe_itself_is_told() {
        let told = left_out(&BOUNDS, ["<node><node name='x'/></node>", "<nod"]);
        let [only] = told.as_slice() else { panic!("{told:?}") };
        assert!(
            only.starts_with("objects that do not describe themselves: 1, the first is `/x/x/x/x/x`: "),
            "{only}"
        );
    }

    #[test]
    fn connections_come_last_and_in_order() {
        let mut names = vec![":1.10", "b.c", ":1.9", "a.b"];
        names.sort();
        names.sort_by_key(|name| connection_number(name));
        assert_eq!(names, ["a.b", "b.c", ":1.9", ":1.10"]);
    }
}
