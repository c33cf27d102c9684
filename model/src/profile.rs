//! One way to reach an object: where, by which key, and with which options of its wire.
//!
//! What is in it. The wire and its version, the places where the peer listens, the object's key, what else
//! the wire has stored in it (components), how the peer is to be talked to (`ProfileOptions`), and what this
//! process holds of the object (`Lease`). A reference has one or several of them.
//!
//! Invariants.
//! * Two profiles are equal if they lead to the same object in the same manner. The lease is no part of that:
//!   it says nothing about where the object is, so a profile that was made anew from text equals the one that
//!   is held.
//! * Options are of the wire's own type, and only that wire reads them; all others compare, hash, print and
//!   pass them on. A hash that two options share need not mean that they are equal, since it reads no secret.
//! * No secret is printed: neither by `Display` nor by `Debug`.
//! * A profile is a value: it is copied freely, and copies share options and lease. What a lease holds ends
//!   with the last copy, wherever that is.
//!
//! The runtime keeps connections by endpoint, options and `Options::scope`: ways that agree in these share
//! one.

use crate::endpoint::Endpoint;
use bytes::Bytes;
use std::any::Any;
use std::fmt::{self, Debug, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The component of a way by which one call goes on that has left before, and may have run: a wire that moves a call there
/// ([`crate::Outcome::Moved`]) takes up again what it knows of it. Nothing else is called by such a way.
pub const RESUME_TOKEN: u32 = 0x5741_5957;

/// One way to reach an object. Two are equal if they lead to the same object in the same manner, whatever this process holds of it.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Name of the wire.
    pub wire: &'static str,
    /// Protocol version, (major, minor).
    pub version: (u8, u8),
    /// Where the peer listens; alternatives, the preferred first.
    pub endpoints: Vec<Endpoint>,
    /// The object's key: opaque to everybody but the peer.
    pub key: Bytes,
    /// What else the wire stored in the profile: (tag, data), passed on untouched.
    pub components: Vec<(u32, Bytes)>,
    /// How the peer is to be talked to, as the address says: account, protection, encoding.
    pub options: ProfileOptions,
    /// What this process holds of the object; not compared.
    pub lease: Lease,
}

impl Profile {
    /// The data of the component with this tag.
    #[inline]
    pub fn component(&self, tag: u32) -> Option<&Bytes> {
        self.components.iter().find(|(held, _)| *held == tag).map(|(_, data)| data)
    }

    fn identity(&self) -> impl Eq + Hash {
        let Self { wire, version, endpoints, key, components, options, lease: _ } = self;
        (wire, version, endpoints, key, components, options)
    }
}

impl PartialEq for Profile {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Profile {}

impl Hash for Profile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// What a wire's addresses say beside endpoint and key. `Display` writes no password and no other secret, and `Hash` reads none:
/// a hash may be printed.
pub trait Options: Any + Eq + Hash + Display + Send + Sync {
    /// The part of a way that a connection is for, where it is not for all ways with its endpoint and these options: such as the key,
    /// if a session leads to one object.
    fn scope(&self, _profile: &Profile) -> Bytes {
        Bytes::new()
    }
}

/// The options of a profile: one value of the wire's own type, shared by the copies of the profile, or none.
#[derive(Clone, Default)]
pub struct ProfileOptions(Option<Arc<dyn AnyOptions>>);

/// [`Options`] of any wire.
trait AnyOptions: Any + Display + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn hash_into(&self, state: &mut dyn Hasher);
    fn scope_of(&self, profile: &Profile) -> Bytes;
}

impl<T: Options> AnyOptions for T {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }

    fn hash_into(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }

    fn scope_of(&self, profile: &Profile) -> Bytes {
        self.scope(profile)
    }
}

impl ProfileOptions {
    /// The options as a wire of the type `T` has them.
    pub fn get<T: Options>(&self) -> Option<Arc<T>> {
        let shared: Arc<dyn Any + Send + Sync> = Arc::clone(self.0.as_ref()?) as _;
        shared.downcast().ok()
    }

    /// See [`Options::scope`].
    pub fn scope(&self, profile: &Profile) -> Bytes {
        self.0.as_ref().map(|options| options.scope_of(profile)).unwrap_or_default()
    }
}

impl<T: Options> From<Arc<T>> for ProfileOptions {
    fn from(options: Arc<T>) -> Self {
        Self(Some(options))
    }
}

impl<T: Options> From<T> for ProfileOptions {
    fn from(options: T) -> Self {
        Arc::new(options).into()
    }
}

impl PartialEq for ProfileOptions {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one.equals(&**other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Eq for ProfileOptions {}

impl Hash for ProfileOptions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.0.is_some().into());
        self.0.iter().for_each(|options| options.hash_into(state));
    }
}

impl Display for ProfileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|options| Display::fmt(options, f))
    }
}

impl Debug for ProfileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileOptions({self})")
    }
}

/// What this process holds of an object as long as a copy of the profile lives, such as a counted reference: the wire is told when the
/// last copy is gone. It says nothing about where the object is, so it is no part of what profiles compare by.
#[derive(Clone, Default)]
pub struct Lease(Option<Arc<dyn Any + Send + Sync>>);

impl Lease {
    /// A lease that drops this when its last copy is gone.
    pub fn new(held: Arc<dyn Any + Send + Sync>) -> Self {
        Self(Some(held))
    }

    /// What the wire keeps in it.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_deref()?.downcast_ref()
    }

    /// Whether nothing is kept in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The same, shared.
    pub fn share<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        Arc::clone(self.0.as_ref()?).downcast().ok()
    }
}

impl Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Lease(held)" } else { "Lease(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[derive(PartialEq, Eq)]
    struct Account {
        user: &'static str,
        password: &'static str,
    }

    impl Hash for Account {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.user.hash(state);
        }
    }

    impl Display for Account {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "user={}", self.user)
        }
    }

    impl Options for Account {}

    #[derive(PartialEq, Eq, Hash)]
    struct OneObject;

    impl Display for OneObject {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("session=one")
        }
    }

    impl Options for OneObject {
        fn scope(&self, profile: &Profile) -> Bytes {
            profile.key.clone()
        }
    }

    fn way(options: impl Into<ProfileOptions>) -> Profile {
        Profile { wire: "x", key: Bytes::from_static(b"k"), options: options.into(), ..Profile::default() }
    }

    #[test]
    fn profiles_differ_by_their_options_and_not_by_what_is_held() {
        let ada = || way(Account { user: "ada", password: "engine" });
        let held = Profile { lease: Lease::new(Arc::new(7_u8)), ..ada() };
        assert_eq!(ada(), held);
        let others = [
            Profile { options: ProfileOptions::default(), ..ada() },
            way(Account { user: "ada", password: "motor" }),
            way(Account { user: "eve", password: "engine" }),
            way(OneObject),
        ];
        let all: HashSet<_> = others.iter().cloned().chain([ada(), held]).collect();
        assert_eq!(all.len(), others.len() + 1);
        assert_eq!(ada().options.get::<Account>().map(|account| account.user), Some("ada"));
        assert!(ada().options.get::<OneObject>().is_none());
    }

    #[test]
    fn options_print_and_say_what_a_connection_is_for() {
        let ada = way(Account { user: "ada", password: "engine" });
        assert_eq!(ada.options.to_string(), "user=ada");
        let debug = format!("{ada:?}");
        assert!(debug.contains("user=ada") && !debug.contains("engine"), "{debug}");
        assert_eq!(ada.options.scope(&ada), Bytes::new());
        let one = way(OneObject);
        assert_eq!(
            (one.options.scope(&one), one.options.to_string()),
            (one.key.clone(), "session=one".into())
        );
        assert_eq!(ProfileOptions::default().to_string(), "");
    }
}
