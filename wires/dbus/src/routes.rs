//! What is said again and again: the whole header of a call or signal, kept as bytes until something in it changes.

use crate::address::{TAG_CALL, TAG_NAME};
use crate::basics::{NATIVE_LITTLE, Put};
use crate::frame::{self, field};
use crate::{limits, names};
use bytes::Bytes;
use everywire_model::{Failure, Initiator, Interface, Kind, Operation, Profile, Signal, Visit};

/// How a call travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// As a method, or as a signal.
    Plain,
    /// It reads an attribute: by `Get`.
    Get,
    /// It writes one: by `Set`.
    Set,
}

/// One object's method, getter, setter or signal.
#[derive(Debug)]
pub(crate) struct Route {
    // What it is found by.
    kind: u8,
    key: Bytes,
    destination: Bytes,
    options: u8,
    /// Identity and name of the interface, if one is known.
    interface: Option<(String, String)>,
    name: String,

    // What it yields.
    pub(crate) asks: Asks,
    path: String,
    wire_interface: String,
    member: String,
    /// The strings that go in front of the arguments of `Get` and `Set`.
    pub(crate) prefix: Vec<u8>,
    /// The header, without serial number, length and flags.
    pub(crate) header: Vec<u8>,
    signature: String,
    handles: bool,
}

/// The last different ones.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    known: Vec<Route>,
    last: usize,
    oldest: usize,
}

impl Routes {
    /// The way of a call.
    #[inline]
    pub(crate) fn call(
        &mut self,
        profile: &Profile,
        interface: Option<&Interface>,
        operation: &Operation,
    ) -> Visit<&mut Route> {
        let destination = profile.component(TAG_NAME);
        let options = profile.component(TAG_CALL).and_then(|flags| flags.first()).copied().unwrap_or(0);
        let same = |route: &Route| {
            route.kind == frame::METHOD_CALL
                && route.name == operation.name
                && route.key == profile.key
                && route.destination == destination.map_or(&b""[..], |name| name)
                && route.options == options
                && route.is_of(interface)
        };
        let index = match self.position(same) {
            Some(index) => index,
            None => self.keep(Route::call(profile, interface, operation, options)?),
        };
        self.get(index)
    }

    /// The way of a signal.
    pub(crate) fn signal(&mut self, key: &[u8], interface: &Interface, signal: &Signal) -> Visit<&mut Route> {
        let same = |route: &Route| {
            route.kind == frame::SIGNAL
                && route.name == signal.name
                && route.key == key
                && route.is_of(Some(interface))
        };
        let index = match self.position(same) {
            Some(index) => index,
            None => self.keep(Route::signal(key, interface, signal)?),
        };
        self.get(index)
    }

    #[inline]
    fn position(&self, same: impl Fn(&Route) -> bool) -> Option<usize> {
        match self.known.get(self.last) {
            Some(route) if same(route) => Some(self.last),
            _ => self.known.iter().position(same),
        }
    }

    fn keep(&mut self, route: Route) -> usize {
        if self.known.len() < limits::REMEMBERED {
            self.known.push(route);
            return self.known.len() - 1;
        }
        let index = self.oldest;
        self.oldest = (index + 1) % limits::REMEMBERED;
        if let Some(place) = self.known.get_mut(index) {
            *place = route;
        }
        index
    }

    fn get(&mut self, index: usize) -> Visit<&mut Route> {
        self.last = index;
        self.known
            .get_mut(index)
            .ok_or_else(|| Failure::new(Kind::Internal, Initiator::Here, "a route is lost"))
    }
}

impl Route {
    fn call(
        profile: &Profile,
        interface: Option<&Interface>,
        operation: &Operation,
        options: u8,
    ) -> Visit<Self> {
        let accessed = interface.and_then(|interface| {
            let index = interface.operations.iter().position(|held| held.name == operation.name)?;
            interface.attribute_of(index)
        });
        let declaring = interface.map(|interface| names::of_interface(interface.declaring(&operation.name)));
        let mut route = Self {
            kind: frame::METHOD_CALL,
            key: profile.key.clone(),
            destination: profile.component(TAG_NAME).cloned().unwrap_or_default(),
            options,
            interface: interface.map(|interface| (interface.id.to_string(), interface.name.to_string())),
            name: operation.name.to_string(),
            asks: Asks::Plain,
            path: names::path_of_key(&profile.key),
            wire_interface: declaring.map(String::from).unwrap_or_default(),
            member: names::of_operation(operation).to_owned(),
            prefix: Vec::new(),
            header: Vec::new(),
            signature: String::new(),
            handles: false,
        };
        if let Some((attribute, writes)) = accessed {
            let mut put = Put::new(&mut route.prefix);
            put.string(route.wire_interface.as_bytes());
            put.string(attribute.name.as_bytes());
            (route.asks, route.member) =
                if writes { (Asks::Set, "Set".to_owned()) } else { (Asks::Get, "Get".to_owned()) };
            names::PROPERTIES.clone_into(&mut route.wire_interface);
        }
        route.checked()
    }

    fn signal(key: &[u8], interface: &Interface, signal: &Signal) -> Visit<Self> {
        let route = Self {
            kind: frame::SIGNAL,
            key: Bytes::copy_from_slice(key),
            destination: Bytes::new(),
            options: 0,
            interface: Some((interface.id.to_string(), interface.name.to_string())),
            name: signal.name.to_string(),
            asks: Asks::Plain,
            path: names::path_of_key(key),
            wire_interface: names::of_interface(names::declaring_signal(interface, signal)).into_owned(),
            member: names::of_signal(signal).to_owned(),
            prefix: Vec::new(),
            header: Vec::new(),
            signature: String::new(),
            handles: false,
        };
        route.checked()
    }

    /// A bus closes the connection of whoever sends it an invalid name.
    fn checked(self) -> Visit<Self> {
        let wrong = |what: &str, name: &str| {
            Failure::new(Kind::BadArgument, Initiator::User, format!("`{name}` is no {what} of D-Bus"))
        };
        if !names::is_member(self.member.as_bytes()) {
            return Err(wrong("member", &self.member));
        }
        if !self.wire_interface.is_empty() && !names::is_interface(self.wire_interface.as_bytes()) {
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

    #[inline]
    fn is_of(&self, interface: Option<&Interface>) -> bool {
        match (&self.interface, interface) {
            (None, None) => true,
            (Some((id, name)), Some(interface)) => *id == interface.id && *name == interface.name,
            _ => false,
        }
    }

    /// Has the header say this signature, and name handles or not.
    #[inline]
    pub(crate) fn fill(&mut self, signature: &str, handles: bool) {
        if self.header.is_empty() || self.signature != signature || self.handles != handles {
            self.write(signature, handles);
        }
    }

    fn write(&mut self, signature: &str, handles: bool) {
        signature.clone_into(&mut self.signature);
        self.handles = handles;
        self.header.clear();
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

/// Writes a header.
pub(crate) struct HeaderPut<'v> {
    put: Put<'v>,
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
        Self { put: Put { out, shift, swap: false }, start }
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
