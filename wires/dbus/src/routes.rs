//! What is said again and again: the whole header of a call or signal, kept as bytes until something in it
//! changes.
//!
//! A `Route` is one object's method, getter, setter or signal. It is found by what the caller gives (object,
//! interface, operation), and yields what stands on the wire. Making one costs look-ups, spelling and checks
//! of names; using it again costs a copy and a few patches.
//!
//! States: `Routes` holds the last `REMEMBERED` different ones, and replaces the oldest. A route's header is
//! empty until the first message, and is written anew when the signature of the values changes. `list` says
//! for which list of values the header is right, so that the next message with that list need not spell the
//! signature.
//!
//! Invariant: all names in a route are valid on this wire (`checked`), since a bus disconnects who sends
//! others.

use crate::address::{TAG_CALL, TAG_NAME};
use crate::basics::{BasicWriter, NATIVE_LITTLE, WriteText};
use crate::frame::{self, field};
use crate::sink::CheckedList;
use crate::{limits, names};
use bytes::Bytes;
use everywire_model::recent::Recent;
use everywire_model::shape::{Name, Struct};
use everywire_model::{Failure, Hold, Initiator, Interface, Kind, Operation, Profile, Signal, Visit};
use std::borrow::Cow;

/// How a call travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum CallForm {
    /// As a method, or as a signal.
    #[default]
    Plain,
    /// It reads an attribute: by `Get`.
    Get,
    /// It writes one: by `Set`.
    Set,
}

/// One object's method, getter, setter or signal.
#[derive(Debug, Default)]
pub(crate) struct Route {
    // What it is found by.
    /// METHOD_CALL or SIGNAL.
    kind: u8,
    /// The object.
    key: Bytes,
    /// The name on the bus; empty without one, and for signals.
    destination: Bytes,
    /// Flags that the reference asks for with every call.
    options: u8,
    /// The interface, if one is known.
    interface: Option<InterfaceIdentity>,
    /// The operation or signal, as the contract calls it.
    name: Name,
    /// Whether it was asked for by the names that it has on the wire, by somebody without a contract.
    named: bool,

    // What it yields.
    /// How an attribute's accessor travels.
    pub(crate) asks: CallForm,
    /// The object's path on the wire.
    path: String,
    /// The interface on the wire; that of properties for an accessor; empty where the object may choose.
    wire_interface: String,
    /// The method or signal on the wire; `Get` or `Set` for an accessor.
    member: String,
    /// The strings that go in front of the arguments of `Get` and `Set`.
    pub(crate) prefix: Vec<u8>,
    /// The header, without serial number, length and flags.
    pub(crate) header: Vec<u8>,
    /// What the header says of the values.
    signature: String,
    /// Whether the header has a field for the count of handles.
    handles: bool,
    /// The list of values that the header was written for.
    list: Option<CheckedList>,
}

/// What an interface is known by. The interface itself may be dropped and another made at its address, so its
/// names are kept.
#[derive(Debug)]
struct InterfaceIdentity {
    id: Name,
    name: Name,
    identities: Cow<'static, [(Name, Name)]>,
}

impl InterfaceIdentity {
    fn of(interface: &Interface) -> Self {
        let Interface { id, name, identities, .. } = interface;
        Self { id: id.clone(), name: name.clone(), identities: identities.clone() }
    }

    /// Names of generated code are compared by address, which mostly suffices.
    #[inline]
    fn is(&self, interface: &Interface) -> bool {
        same_name(&self.id, &interface.id)
            && same_name(&self.name, &interface.name)
            && self.identities.len() == interface.identities.len()
            && (self.identities.is_empty() || self.identities == interface.identities)
    }
}

/// The last different ones.
#[derive(Debug, Default)]
pub(crate) struct Routes(Recent<Route, { limits::REMEMBERED }>);

/// What is called, as a route is found by it.
struct RouteKey<'a> {
    profile: &'a Profile,
    interface: Option<&'a Interface>,
    operation: &'a Operation,
    destination: Option<&'a Bytes>,
    options: u8,
}

impl Routes {
    /// The way of a call of an operation that a contract describes.
    ///
    /// # Errors
    /// A name of it is not valid on this wire.
    #[inline]
    pub(crate) fn call(
        &mut self,
        profile: &Profile,
        interface: Option<&Interface>,
        operation: &Operation,
    ) -> Visit<&mut Route> {
        let (destination, options) = asked_of(profile);
        let wanted = RouteKey { profile, interface, operation, destination, options };
        let index = match self.0.find(|route| route.leads(&wanted)) {
            Some(index) => index,
            None => self.0.keep(Route::call(&wanted)?),
        };
        self.get(index)
    }

    /// The way of a signal.
    pub(crate) fn signal(&mut self, key: &[u8], interface: &Interface, signal: &Signal) -> Visit<&mut Route> {
        let same = |route: &Route| {
            route.kind == frame::SIGNAL
                && !route.named
                && same_name(&route.name, &signal.name)
                && route.key == key
                && route.is_of(Some(interface))
        };
        let index = match self.0.find(same) {
            Some(index) => index,
            None => self.0.keep(Route::signal(key, interface, signal)?),
        };
        self.get(index)
    }

    /// The way of a call by names that nobody here knows.
    pub(crate) fn named_call(
        &mut self,
        profile: &Profile,
        interface: &[u8],
        member: &[u8],
    ) -> Visit<&mut Route> {
        let (destination, options) = asked_of(profile);
        let destination = destination.cloned().unwrap_or_default();
        self.named(frame::METHOD_CALL, &profile.key, destination, options, interface, member)
    }

    /// The way of a signal by names that nobody here knows.
    pub(crate) fn named_signal(&mut self, key: &[u8], interface: &[u8], member: &[u8]) -> Visit<&mut Route> {
        self.named(frame::SIGNAL, key, Bytes::new(), 0, interface, member)
    }

    /// The path is made of the key; names are taken as they are, and checked.
    fn named(
        &mut self,
        kind: u8,
        key: &[u8],
        destination: Bytes,
        options: u8,
        interface: &[u8],
        member: &[u8],
    ) -> Visit<&mut Route> {
        let same = |route: &Route| {
            route.named
                && route.kind == kind
                && route.member.as_bytes() == member
                && route.key == key
                && route.wire_interface.as_bytes() == interface
                && route.destination == destination
                && route.options == options
        };
        let index = match self.0.find(same) {
            Some(index) => index,
            None => {
                let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
                let route = Route::to(kind, Bytes::copy_from_slice(key), text(interface), text(member));
                self.0.keep(Route { destination, options, named: true, ..route }.checked()?)
            }
        };
        self.get(index)
    }

    fn get(&mut self, index: usize) -> Visit<&mut Route> {
        let found = self.0.get_mut(index);
        found.ok_or_else(|| Failure::new(Kind::Internal, Initiator::Here, "a route is lost"))
    }
}

/// The bus name that a reference leads to, if it has one, and the flags of calls to it.
#[inline]
fn asked_of(profile: &Profile) -> (Option<&Bytes>, u8) {
    let options = profile.component(TAG_CALL).and_then(|flags| flags.first()).copied().unwrap_or(0);
    (profile.component(TAG_NAME), options)
}

impl Route {
    /// A way to an object, by these names on the wire and without a destination. Its header is not written yet.
    fn to(kind: u8, key: Bytes, wire_interface: String, member: String) -> Self {
        Self { kind, path: names::path_of_key(&key), key, wire_interface, member, ..Self::default() }
    }

    /// A call of an accessor becomes one of `Get` or `Set`, with the interface and the name of the attribute
    /// in front of the value.
    fn call(wanted: &RouteKey<'_>) -> Visit<Self> {
        let RouteKey { profile, interface, operation, destination, options } = *wanted;
        let accessed = interface.and_then(|interface| {
            let index = interface.operations.iter().position(|held| held.name == operation.name)?;
            interface.attribute_of(index)
        });
        let declaring = interface.map(|interface| names::of_interface(interface.declaring(&operation.name)));
        let declaring = declaring.map(String::from).unwrap_or_default();
        let member = names::of_operation(operation).to_owned();
        let mut route = Self {
            destination: destination.cloned().unwrap_or_default(),
            options,
            interface: interface.map(InterfaceIdentity::of),
            name: operation.name.clone(),
            ..Self::to(frame::METHOD_CALL, profile.key.clone(), declaring, member)
        };
        if let Some((attribute, writes)) = accessed {
            let mut put = BasicWriter::new(&mut route.prefix, NATIVE_LITTLE);
            put.string(route.wire_interface.as_bytes());
            put.string(attribute.name.as_bytes());
            (route.asks, route.member) =
                if writes { (CallForm::Set, "Set".to_owned()) } else { (CallForm::Get, "Get".to_owned()) };
            names::PROPERTIES.clone_into(&mut route.wire_interface);
        }
        route.checked()
    }

    /// It is for everybody who listens, so it has no destination.
    fn signal(key: &[u8], interface: &Interface, signal: &Signal) -> Visit<Self> {
        let declaring = names::of_interface(names::declaring_signal(interface, signal)).into_owned();
        let member = names::of_signal(signal).to_owned();
        let route = Self::to(frame::SIGNAL, Bytes::copy_from_slice(key), declaring, member);
        Self { interface: Some(InterfaceIdentity::of(interface)), name: signal.name.clone(), ..route }
            .checked()
    }

    /// Checks all names. A bus closes the connection of whoever sends it an invalid one.
    ///
    /// # Errors
    /// One of them is not valid.
    fn checked(self) -> Visit<Self> {
        let wrong = |what: &str, name: &str| Failure::bad_argument(format!("`{name}` is no {what} of D-Bus"));
        if !names::is_member(self.member.as_bytes()) {
            return Err(wrong("member", &self.member));
        }
        // Only a call may leave it to the object.
        let may_be_nameless = self.kind == frame::METHOD_CALL && self.wire_interface.is_empty();
        if !may_be_nameless && !names::is_interface(self.wire_interface.as_bytes()) {
            return Err(wrong("interface", &self.wire_interface));
        }
        if !names::is_path(self.path.as_bytes()) {
            return Err(wrong("object path", &self.path));
        }
        if !self.destination.is_empty() && !names::is_bus_name(&self.destination) {
            return Err(wrong("bus name", &String::from_utf8_lossy(&self.destination)));
        }
        Ok(self)
    }

    /// Whether it is the way of this call. What differs most often is compared first.
    #[inline]
    fn leads(&self, wanted: &RouteKey<'_>) -> bool {
        self.kind == frame::METHOD_CALL
            && !self.named
            && same_name(&self.name, &wanted.operation.name)
            && same_bytes(&self.key, &wanted.profile.key)
            && match wanted.destination {
                Some(name) => same_bytes(&self.destination, name),
                None => self.destination.is_empty(),
            }
            && self.options == wanted.options
            && self.is_of(wanted.interface)
    }

    /// Whether the contract's interface is the same.
    #[inline]
    fn is_of(&self, interface: Option<&Interface>) -> bool {
        match (&self.interface, interface) {
            (None, None) => true,
            (Some(known), Some(interface)) => known.is(interface),
            _ => false,
        }
    }

    /// Whether the header is the one for values in this list; if it is, whether their signature has handles.
    #[inline]
    pub(crate) fn writes(&self, list: &Hold<Struct>) -> Option<bool> {
        self.list.as_ref().filter(|held| held.is(list)).map(|held| held.handles)
    }

    /// Notes the list of values that the header is for.
    pub(crate) fn wrote(&mut self, list: Option<CheckedList>) {
        self.list = list;
    }

    /// Whether the header has a place for the count of handles.
    #[inline]
    pub(crate) fn announces(&self) -> bool {
        self.handles
    }

    /// Has the header say this signature, and name handles or not.
    #[inline]
    pub(crate) fn fill(&mut self, signature: &str, handles: bool) {
        if self.header.is_empty() || self.signature != signature || self.handles != handles {
            self.write(signature, handles);
        }
    }

    /// Writes the header for this signature, with zeros for what is patched.
    fn write(&mut self, signature: &str, handles: bool) {
        signature.clone_into(&mut self.signature);
        self.handles = handles;
        self.header.clear();
        // Each field has up to 16 octets beside its text.
        let texts = [self.path.len(), self.wire_interface.len(), self.member.len(), self.destination.len()];
        self.header.reserve(texts.iter().sum::<usize>() + signature.len() + 7 * 16);
        let mut put = HeaderPut::begin(&mut self.header, self.kind, self.options);
        put.string(field::PATH, b'o', self.path.as_bytes());
        if !self.wire_interface.is_empty() {
            put.string(field::INTERFACE, b's', self.wire_interface.as_bytes());
        }
        put.string(field::MEMBER, b's', self.member.as_bytes());
        if !self.destination.is_empty() {
            put.string(field::DESTINATION, b's', &self.destination);
        }
        put.end(signature, handles);
    }
}

/// Whether two names are the same: those of generated code are known by their address, which is theirs for ever.
#[inline]
fn same_name(one: &Name, other: &Name) -> bool {
    match (one, other) {
        (Cow::Borrowed(one), Cow::Borrowed(other)) if std::ptr::eq(*one, *other) => true,
        _ => one == other,
    }
}

/// Whether bytes are the same. Those held here have an address of their own as long as they are held.
#[inline]
fn same_bytes(one: &Bytes, other: &Bytes) -> bool {
    std::ptr::eq(&raw const **one, &raw const **other) || one == other
}

/// Writes a header. Fields in any order, then `end`.
pub(crate) struct HeaderPut<'v> {
    put: BasicWriter<'v>,
    /// Where in the buffer the header begins.
    start: usize,
}

impl<'v> HeaderPut<'v> {
    /// The fixed part; length and serial number are 0 until they are patched.
    #[inline]
    pub(crate) fn begin(out: &'v mut Vec<u8>, kind: u8, flags: u8) -> Self {
        let start = out.len();
        let order = if NATIVE_LITTLE { b'l' } else { b'B' };
        out.extend_from_slice(&[order, kind, flags, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let shift = 0usize.wrapping_sub(start);
        Self { put: BasicWriter { out, shift, swap: false }, start }
    }

    /// A field that holds text.
    #[inline]
    pub(crate) fn string(&mut self, code: u8, kind: u8, text: &[u8]) {
        self.put.align(8);
        self.put.out.extend_from_slice(&[code, 1, kind, 0]);
        self.put.string(text);
    }

    /// A field that holds a number.
    #[inline]
    pub(crate) fn number(&mut self, code: u8, number: u32) {
        self.put.align(8);
        self.put.out.extend_from_slice(&[code, 1, b'u', 0]);
        self.put.u32(number);
    }

    /// The signature, room for the count of handles if there are any, and the padding before the body. The count is
    /// then the last thing in the header.
    #[inline]
    pub(crate) fn end(mut self, signature: &str, handles: bool) {
        if !signature.is_empty() {
            self.put.align(8);
            self.put.out.extend_from_slice(&[field::SIGNATURE, 1, b'g', 0]);
            self.put.signature(signature.as_bytes());
        }
        if handles {
            self.number(field::UNIX_FDS, 0);
        }
        let len = self.put.at() - frame::HEADER;
        let at = self.start + 12;
        self.put.patch(at, u32::try_from(len).unwrap_or(u32::MAX));
        self.put.align(8);
    }
}
