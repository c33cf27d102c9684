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
pub(crate) use write::{Enclosing, put};

use everywire_model::Shape;
use everywire_model::shape::{Alias, Hold, Name, Struct};

const INDIRECTION: u32 = u32::MAX;

/// Kinds of type codes (CORBA 3.3 part 2, table 9-2), besides 29 and what follows 30, which only [`values`] knows.
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
    pub(super) const BOX: u32 = 30;
}

/// Remarks on shapes, which only this wire reads: exceptions, fixed-point numbers, opened value boxes.
const EXCEPTION: &str = "#exception";
const FIXED: &str = "#fixed ";
const BOXED: &str = "#boxed";

fn remark(id: impl Into<Name>, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::default(), id: id.into(), target }))
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

/// What a value box that an `any` holds has in it.
pub(crate) fn boxed(shape: &Shape) -> Option<&Shape> {
    match shape {
        Shape::Alias(held) if held.name.is_empty() && held.id == BOXED => Some(&held.target),
        _ => None,
    }
}

/// Digits and scale of a fixed-point number, as a remark says them.
fn fixed(held: &Alias) -> Option<(u16, u16)> {
    let (digits, scale) = held.id.strip_prefix(FIXED).filter(|_| held.name.is_empty())?.split_once(' ')?;
    Some((digits.parse().ok()?, scale.parse().ok()?))
}
