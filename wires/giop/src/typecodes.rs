//! Type codes: the shapes that travel with an `any`, and those that are values (CORBA 3.3 part 2, section 9.3.5.1).
//!
//! Three attacks are known on readers of these: nesting that exhausts the stack, indirections that run in circles or
//! forward, and small codes that stand for huge types. So nodes are counted, the height of each finished node is kept
//! with it, and an indirection may only name a node that is finished, or one around it by a sequence in a struct or
//! a union: each level of such a type is made when a value has it ([`unfold`]), and charged to the budget of its message.

mod read;
mod unfold;
mod values;
mod write;

pub(crate) use read::get;
pub(crate) use values::{get_value, put_value};
pub(crate) use write::{OpenTypes, put};

use everywire_model::Shape;
use everywire_model::fixed::Fixed;
use everywire_model::shape::{Alias, Hold, Name, Struct};

/// In place of a kind: an offset to a node before this place follows.
const INDIRECTION: u32 = u32::MAX;

/// Kinds of type codes (CORBA 3.3 part 2, table 9-2), besides what follows 30, which only [`values`] knows.
mod kind {
    pub(super) const NULL: u32 = 0;
    pub(super) const VOID: u32 = 1;
    pub(super) const SHORT: u32 = 2;
    pub(super) const LONG: u32 = 3;
    pub(super) const USHORT: u32 = 4;
    pub(super) const ULONG: u32 = 5;
    pub(super) const FLOAT: u32 = 6;
    pub(super) const DOUBLE: u32 = 7;
    pub(super) const BOOLEAN: u32 = 8;
    pub(super) const CHAR: u32 = 9;
    pub(super) const OCTET: u32 = 10;
    pub(super) const ANY: u32 = 11;
    pub(super) const TYPE_CODE: u32 = 12;
    pub(super) const PRINCIPAL: u32 = 13;
    pub(super) const OBJREF: u32 = 14;
    pub(super) const STRUCT: u32 = 15;
    pub(super) const UNION: u32 = 16;
    pub(super) const ENUM: u32 = 17;
    pub(super) const STRING: u32 = 18;
    pub(super) const SEQUENCE: u32 = 19;
    pub(super) const ARRAY: u32 = 20;
    pub(super) const ALIAS: u32 = 21;
    pub(super) const EXCEPT: u32 = 22;
    pub(super) const LONGLONG: u32 = 23;
    pub(super) const ULONGLONG: u32 = 24;
    pub(super) const LONG_DOUBLE: u32 = 25;
    pub(super) const WCHAR: u32 = 26;
    pub(super) const WSTRING: u32 = 27;
    pub(super) const FIXED: u32 = 28;
    pub(super) const VALUE: u32 = 29;
    pub(super) const BOX: u32 = 30;
}

/// Remarks on shapes, which only this wire reads. A shape of the model has no kind for exceptions,
/// fixed-point numbers and value boxes; so such a shape is an alias without a name, whose id begins with `#`
/// and says what it is. No repository id begins so.
const EXCEPTION: &str = "#exception";
const BOXED: &str = "#boxed ";

/// A shape with a remark on it.
fn remark(id: impl Into<Name>, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::default(), id: id.into(), target }))
}

/// The shape of an exception, for its type code.
pub(crate) fn of_exception(held: Hold<Struct>) -> Shape {
    remark(EXCEPTION, Shape::Struct(held))
}

/// Whether a shape was remarked to be a fixed-point number. Such a shape is an array of octets, so its values
/// pass as they are.
pub(crate) fn is_fixed(shape: &Shape) -> bool {
    Fixed::of(shape).is_some()
}

/// Digits and scale of a fixed-point number.
pub(crate) fn digits_and_scale(shape: &Shape) -> Option<(u16, u16)> {
    Fixed::of(shape).map(|fixed| (fixed.digits, fixed.scale))
}

/// The exception that a shape was remarked to be: its value in an `any` begins with its repository id (9.3.5.2).
pub(crate) fn exception(shape: &Shape) -> Option<&Struct> {
    match shape {
        Shape::Alias(held) if held.name.is_empty() && held.id == EXCEPTION => match &held.target {
            Shape::Struct(held) => Some(held),
            _ => None,
        },
        _ => None,
    }
}

/// A value box that an `any` holds (9.3.4), as the remark on the shape of what is in it says: `#boxed ID
/// VALUE NAME`. An id or a value with a space in it would not read back, so `shape` refuses it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Boxed<'s> {
    /// Repository id and name of its type.
    pub(crate) id: &'s str,
    pub(crate) name: &'s str,
    /// How its value names that type: [`OWN`], [`NONE`], or another repository id; [`NULL`]: there is no value in it, and
    /// the shape is optional.
    pub(crate) value: &'s str,
}

/// A value that names the type of its box.
pub(crate) const OWN: &str = "=";
/// A value that names no type.
pub(crate) const NONE: &str = "-";
/// The tags of values that name one type, and of values that name none (9.3.4.1). The last bits of a tag say
/// what follows: 2 one repository id, 0 none.
pub(crate) const TYPED: u32 = 0x7fff_ff02;
pub(crate) const UNTYPED: u32 = 0x7fff_ff00;
/// A box without a value.
pub(crate) const NULL: &str = "0";

impl Boxed<'_> {
    /// The shape of what is in it, with the remark. Nothing, if its identities would not come back from that.
    pub(crate) fn shape(&self, content: Shape) -> Option<Shape> {
        let Self { id, name, value } = self;
        let plain = !id.contains(' ') && !value.contains(' ') && !value.is_empty();
        plain.then(|| remark(format!("{BOXED}{id} {value} {name}"), content))
    }
}

/// The value box that a shape was remarked to be in, and what is in it.
pub(crate) fn boxed(shape: &Shape) -> Option<(Boxed<'_>, &Shape)> {
    let Shape::Alias(held) = shape else { return None };
    let mut parts = held.id.strip_prefix(BOXED).filter(|_| held.name.is_empty())?.splitn(3, ' ');
    let (id, value, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Boxed { id, name, value }, &held.target))
}
