//! Types that contain themselves and came with a value: each level is read from the octets of the type code when it is
//! looked at. A level holds the octets and the levels below it, never one above, so all of them end with the value.

use super::read;
use bytes::Bytes;
use everywire_model::shape::{Array, Field, Hold, Name, Sequence, Struct, Unfold, Union};
use everywire_model::{Shape, shape::Order};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// How many bytes of descriptions are made of each octet of a type code, at the most: what a level is charged
/// for. (A member takes 9 octets at least, as `Reader::complex` checks.)
const GROWTH: u64 = 16;

/// A node of a type code: the offset of its kind, the kind, where its encapsulation is, and the byte order around it.
/// One without an encapsulation has its parameters from `start` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeCodeNode {
    /// Offset in the outermost type code.
    pub(super) at: usize,
    pub(super) code: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Byte order of its kind, and of parameters without an encapsulation.
    pub(super) little: bool,
}

/// The octets of an outermost type code, and where its nodes are. Shared by all levels of the types in it.
#[derive(Debug)]
pub(super) struct EncodedTypeCode {
    pub(super) octets: Bytes,
    /// Ascending by offset; empty until the whole type code was read.
    places: OnceLock<Vec<TypeCodeNode>>,
}

impl EncodedTypeCode {
    /// Copies the octets, so that the message is not kept alive.
    pub(super) fn new(octets: &[u8]) -> Self {
        Self { octets: Bytes::copy_from_slice(octets), places: OnceLock::new() }
    }

    /// Tells where the nodes are, when all of them have been read.
    pub(super) fn complete(&self, mut places: Vec<TypeCodeNode>) {
        places.sort_unstable_by_key(|place| place.at);
        // Nobody else tells it.
        let _ = self.places.set(places);
    }

    /// The node at an offset. Nothing, before all of them are told, and where no node begins.
    pub(super) fn place(&self, at: usize) -> Option<TypeCodeNode> {
        let places = self.places.get()?;
        let index = places.binary_search_by_key(&at, |place| place.at).ok()?;
        places.get(index).copied()
    }
}

/// One level of a type that contains itself. It is made at most once, by whoever looks at it first.
pub(super) struct LazyLevel<T> {
    encoded: Arc<EncodedTypeCode>,
    place: TypeCodeNode,
    made: OnceLock<T>,
    /// Whether a budget has paid for it; the first reader pays.
    charged: AtomicBool,
}

impl<T> LazyLevel<T> {
    pub(super) fn new(encoded: Arc<EncodedTypeCode>, place: TypeCodeNode) -> Self {
        Self { encoded, place, made: OnceLock::new(), charged: AtomicBool::new(false) }
    }
}

impl<T: Recursive> Unfold<T> for LazyLevel<T> {
    fn unfolded(&self) -> &T {
        self.made
            .get_or_init(|| read::again(&self.encoded, self.place).unwrap_or_else(|_| T::without_values()))
    }

    /// The address of the octets tells types of different messages apart.
    fn identity(&self) -> usize {
        self.encoded.octets.as_ptr().addr() + self.place.at
    }

    fn due(&self) -> u64 {
        if self.charged.swap(true, Ordering::Relaxed) {
            return 0;
        }
        (self.place.end - self.place.at) as u64 * GROWTH
    }
}

/// The kinds of types that may contain themselves.
pub(super) trait Recursive: Sized + Send + Sync + 'static {
    /// The description in a shape that was just made.
    fn out_of(shape: Shape) -> Option<Self>;
    /// The shape of a description.
    fn shape(hold: Hold<Self>) -> Shape;
    /// One that no value fits, for octets that are not what they were; that cannot be, and yet nothing may be misread.
    fn without_values() -> Self;

    /// The shape of a level.
    fn held(level: LazyLevel<Self>) -> Shape {
        Self::shape(Hold::Again(Arc::new(level)))
    }
}

macro_rules! recursive {
    ($($kind:ident = $without:expr;)*) => {$(
        impl Recursive for $kind {
            fn out_of(shape: Shape) -> Option<Self> {
                match shape {
                    Shape::$kind(Hold::Shared(held)) => Arc::into_inner(held),
                    _ => None,
                }
            }

            fn shape(hold: Hold<Self>) -> Shape {
                Shape::$kind(hold)
            }

            fn without_values() -> Self {
                $without
            }
        }
    )*};
}

recursive! {
    Struct = Struct {
        name: Name::default(),
        id: Name::default(),
        fields: Cow::Owned(vec![Field { name: Name::default(), shape: Shape::Handle }]),
    };
    Union = Union {
        name: Name::default(),
        id: Name::default(),
        discriminator: Shape::Handle,
        arms: Cow::Borrowed(&[]),
    };
    Sequence = Sequence { element: Shape::Handle, bound: Some(0), order: Order::Free, size: None };
    Array = Array { element: Shape::Handle, len: u32::MAX };
}

/// The outermost level, which was just made, as a level: its parts know it by the same identity. It was
/// charged with the type code, and other kinds stay as they are.
pub(super) fn outermost(encoded: &Arc<EncodedTypeCode>, place: TypeCodeNode, shape: Shape) -> Shape {
    fn wrap<T: Recursive>(encoded: &Arc<EncodedTypeCode>, place: TypeCodeNode, shape: Shape) -> Shape {
        let made = OnceLock::from(T::out_of(shape).unwrap_or_else(T::without_values));
        T::held(LazyLevel { encoded: Arc::clone(encoded), place, made, charged: AtomicBool::new(true) })
    }
    match shape {
        Shape::Struct(_) => wrap::<Struct>(encoded, place, shape),
        Shape::Union(_) => wrap::<Union>(encoded, place, shape),
        Shape::Sequence(_) => wrap::<Sequence>(encoded, place, shape),
        Shape::Array(_) => wrap::<Array>(encoded, place, shape),
        other => other,
    }
}
