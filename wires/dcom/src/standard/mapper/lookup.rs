//! The endpoint mapper: page by page, bounded, without anything to remember between pages. A handle says by itself where its
//! next page begins, and in which association group it was given out.

use super::contracts::{Handle, MAPPER};
use super::entries::{Entry, addresses, admit, entries, tower};
use crate::exporter::{Correspondence, Exporter};
use crate::hresult::{self, NCA_FAULT_CONTEXT_MISMATCH};
use crate::standard::guid::Guid;
use crate::tower::Tower;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Marshal, Request};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use uuid::Uuid;

/// `ept_s_not_registered`.
pub(crate) const NOT_REGISTERED: u32 = 0x16c9_a0d6;
/// `ept_s_cant_perform_op`.
const CANT_PERFORM: u32 = 0x16c9_a0cd;
/// `ept_s_invalid_entry`.
const INVALID_ENTRY: u32 = 0x16c9_a0d0;
/// Entries of one answer.
const PAGE: u32 = 500;

/// A tower as the operations carry it, behind a pointer.
pub(crate) type Octets = Option<(u32, Vec<u8>)>;
/// The identity of an interface, behind a pointer.
type Identity = Option<(Guid, u16, u16)>;

/// Answers the endpoint mapper.
pub(in super::super) fn answer_mapper(
    exporter: &Arc<Exporter>,
    request: &mut Request,
) -> Result<(), Failure> {
    match request.index() {
        // What is served here follows from what this node exports; nobody else adds to it or takes from it.
        0 | 1 | 6 => request.reply::<_, Failure>(Ok((CANT_PERFORM,))),
        2 => lookup(exporter, request),
        3 => map(exporter, request),
        4 => {
            let (handle,) = request.arguments::<(Handle,)>()?;
            Group::of(request).position(handle)?;
            request.reply::<_, Failure>(Ok((Handle::default(), 0_u32)))
        }
        5 => inquire(request),
        _ => Err(no_operation(&MAPPER)),
    }
}

/// `kind` is the inquiry type: 0 all, 1 by interface, 2 by object, 3 by both.
fn lookup(exporter: &Exporter, request: &mut Request) -> Result<(), Failure> {
    admit(exporter, request)?;
    let (kind, object, interface, option, handle, most) =
        request.arguments::<(u32, Option<Guid>, Identity, u32, Handle, u32)>()?;
    let group = Group::of(request);
    let at = group.position(handle)?;
    // Objects are not registered: what is asked by a certain one is not found.
    let by_object = matches!(kind, 2 | 3) && object.is_some_and(|object| !object.0.is_nil());
    let by_interface = matches!(kind, 1 | 3);
    let fits = |entry: &Entry| match (&interface, by_interface) {
        (_, _) if by_object => false,
        (_, false) => true,
        (Some(wanted), true) => is_version(entry, wanted, option),
        (None, true) => false,
    };
    let told = |entry: &Entry, tower: Octets| (Guid::default(), tower, annotation(&entry.annotation));
    answer_page(exporter, request, (&group, at, most), fits, told)
}

/// ept_map: the towers of one interface by TCP. Any other protocol is not found here.
fn map(exporter: &Exporter, request: &mut Request) -> Result<(), Failure> {
    admit(exporter, request)?;
    let (_, tower_of, handle, most) = request.arguments::<(Option<Guid>, Octets, Handle, u32)>()?;
    let group = Group::of(request);
    let at = group.position(handle)?;
    let asked = tower_of.and_then(|(_, octets)| Tower::parse(&octets).ok());
    let Some(asked) = asked else {
        let none: Vec<Octets> = Vec::new();
        return request.reply::<_, Failure>(Ok((Handle::default(), 0_u32, most, none, INVALID_ENTRY)));
    };
    let wanted = (Guid(asked.interface.0), asked.interface.1, asked.interface.2);
    let by_tcp = asked.port().is_some();
    let fits = |entry: &Entry| by_tcp && is_version(entry, &wanted, 2);
    answer_page(exporter, request, (&group, at, most), fits, |_, tower| tower)
}

/// Answers with the page that begins at a place: each interface that fits at each address, as `told` tells its tower.
fn answer_page<T: Marshal>(
    exporter: &Exporter,
    request: &mut Request,
    (group, at, most): (&Group, usize, u32),
    fits: impl Fn(&Entry) -> bool,
    told: impl Fn(&Entry, Octets) -> T,
) -> Result<(), Failure> {
    let (addresses, known) = (addresses(exporter), entries(exporter));
    let fitting = known.iter().filter(|entry| fits(entry));
    let all: Vec<_> =
        fitting.flat_map(|entry| addresses.iter().map(move |address| (entry, *address))).collect();
    let (page, next) = group.page(&all, at, most);
    let found: Vec<T> =
        page.iter().map(|(entry, address)| told(entry, octets(tower(entry, *address)))).collect();
    let status = if found.is_empty() { NOT_REGISTERED } else { 0 };
    request.reply::<_, Failure>(Ok((next, found.len() as u32, most, found, status)))
}

/// The mapper is no object: nil. A caller that sends an object does not expect one.
fn inquire(request: &mut Request) -> Result<(), Failure> {
    if request.body().bytes.len() >= 16 {
        return request.reply::<_, Failure>(Ok((0_u32,)));
    }
    request.answer(everywire_model::Answer::Done(&|sink: &mut dyn everywire_model::Sink| {
        use everywire_model::MarshalList;
        (Guid::default(), 0_u32).marshal_list(&INQUIRED, sink)
    }));
    Ok(())
}

/// What `ept_inq_object` answers a caller who sends nothing.
const INQUIRED: everywire_model::Shape = everywire_model::describe::structure(&INQUIRED_STRUCT);
static INQUIRED_STRUCT: everywire_model::describe::Struct = everywire_model::describe::record!("", "", {
    "ept_object": crate::standard::guid::GUID_SHAPE, "status": everywire_model::Shape::U32
});

/// The association group of a caller: its handles are good in it alone (C706 5.1.6).
struct Group(u32);

impl Group {
    fn of(request: &Request) -> Self {
        Self(Correspondence::of_call(request).map_or(0, |call| call.association))
    }

    /// Where a handle says that the next page begins.
    fn position(&self, handle: Handle) -> Result<usize, Failure> {
        let raw = handle.1.0;
        if raw.is_nil() {
            return Ok(0);
        }
        let (seal, at) = raw.as_u64_pair();
        usize::try_from(at)
            .ok()
            .filter(|_| seal == self.seal(at))
            .ok_or_else(|| hresult::fault_failure(NCA_FAULT_CONTEXT_MISMATCH, true))
    }

    /// The entries of a page, and the handle of the next one: null after the last.
    fn page<'a, T>(&self, all: &'a [T], at: usize, most: u32) -> (&'a [T], Handle) {
        let rest = all.get(at..).unwrap_or_default();
        let len = rest.len().min(most.min(PAGE) as usize);
        let next = if len < rest.len() && len > 0 {
            let at = (at + len) as u64;
            (0, Guid(Uuid::from_u64_pair(self.seal(at), at)))
        } else {
            Handle::default()
        };
        (rest.get(..len).unwrap_or_default(), next)
    }

    /// What nobody knows to whom it was not given.
    /// The key is made for this process and the handle names group and place, so a handle cannot be made up
    /// or carried elsewhere, and nothing has to be remembered for it.
    fn seal(&self, at: u64) -> u64 {
        // Made once: a handle has to be known again for as long as the process lives.
        static KEYS: OnceLock<RandomState> = OnceLock::new();
        KEYS.get_or_init(RandomState::new).hash_one((self.0, at))
    }
}

/// Whether an entry is of the interface and of a version that fits (C706, `vers_option`).
fn is_version(entry: &Entry, wanted: &(Guid, u16, u16), option: u32) -> bool {
    let (major, minor) = entry.version;
    let fits = match option {
        1 => true,
        2 => major == wanted.1 && minor >= wanted.2,
        3 => (major, minor) == (wanted.1, wanted.2),
        4 => major == wanted.1,
        5 => (major, minor) <= (wanted.1, wanted.2),
        _ => false,
    };
    entry.iid == wanted.0.0 && fits
}

/// A tower as the operations carry it: its length twice, for the inner one is that of the conformant array.
fn octets(tower: Vec<u8>) -> Octets {
    Some((tower.len() as u32, tower))
}

/// An annotation as the 64 octets that it may have at most, with the NUL that ends it.
fn annotation(text: &str) -> Vec<u8> {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut octets = text.get(..end).unwrap_or_default().as_bytes().to_vec();
    octets.push(0);
    octets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_one_another_to_the_end() {
        let all: Vec<u32> = (0..7).collect();
        let group = Group(7);
        let (mut at, mut seen) = (Handle::default(), Vec::new());
        loop {
            let (items, next) = group.page(&all, group.position(at).unwrap(), 3);
            seen.extend_from_slice(items);
            if next == Handle::default() {
                break;
            }
            at = next;
        }
        assert_eq!(seen, all);
        assert_eq!(group.page(&all, 0, 0), (&[][..], Handle::default()));
        assert_eq!(group.page(&all, 99, 3), (&[][..], Handle::default()));
    }

    #[test]
    fn a_strange_handle_is_refused() {
        let (_, of_another) = Group(1).page(&[0; 9], 0, 3);
        assert_eq!(Group(1).position(of_another).unwrap(), 3);
        for strange in [(0, Guid(Uuid::from_u128(1))), of_another] {
            let failure = Group(2).position(strange).unwrap_err();
            assert_eq!(crate::hresult::fault_status(&failure), NCA_FAULT_CONTEXT_MISMATCH);
        }
    }

    #[test]
    fn annotations_are_cut_between_characters() {
        assert_eq!(annotation("ab"), b"ab\0");
        assert_eq!(annotation(&"ä".repeat(40)).len(), 63);
    }
}
