//! Type codes: the shapes that travel with an `any` (CORBA 3.3 part 2, section 9.3.5.1).
//!
//! Three attacks are known on readers of these: nesting that exhausts the stack, indirections that run in circles or
//! forward, and small codes that stand for huge types. So nodes are counted, the height of each finished node is kept
//! with it, and an indirection may only name a node that is finished. Types that contain themselves are therefore
//! refused when read.

use crate::cdr::{Bad, Get, Put};
use crate::limits::{TYPECODE_DEPTH, TYPECODE_NODES};
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Name, Order, Referent, Sequence, Struct, Text, TextKind, Union,
};
use everywire_model::{Budget, Failure, Initiator, Kind, Shape, Visit};
use std::borrow::Cow;

const INDIRECTION: u32 = u32::MAX;

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

/// Structs and unions whose type codes are being written: (address of the description, index of the code).
#[derive(Debug, Default)]
pub(crate) struct Enclosing(Vec<(usize, usize)>);

/// Writes the type code of a shape; one that contains itself ends in an indirection.
pub(crate) fn put(shape: &Shape, put: &mut Put<'_>, enclosing: &mut Enclosing, depth: usize) -> Visit<()> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::over_limit(Initiator::Here, "nesting of a type code", 1, TYPECODE_DEPTH as u64));
    };
    match shape {
        Shape::Void => put.u32(kind::VOID),
        Shape::Bool => put.u32(kind::BOOLEAN),
        Shape::U8 | Shape::I8 => put.u32(kind::OCTET),
        Shape::U16 => put.u32(kind::USHORT),
        Shape::I16 => put.u32(kind::SHORT),
        Shape::U32 => put.u32(kind::ULONG),
        Shape::I32 => put.u32(kind::LONG),
        Shape::U64 => put.u32(kind::ULONGLONG),
        Shape::I64 => put.u32(kind::LONGLONG),
        Shape::F32 => put.u32(kind::FLOAT),
        Shape::F64 => put.u32(kind::DOUBLE),
        Shape::Char => put.u32(kind::CHAR),
        Shape::WideChar => put.u32(kind::WCHAR),
        Shape::Variant => put.u32(kind::ANY),
        Shape::Text(text) => {
            let wide = matches!(text.kind, TextKind::Wide | TextKind::Counted);
            put.u32(if wide { kind::WSTRING } else { kind::STRING });
            put.u32(text.bound.unwrap_or(0));
        }
        Shape::Struct(held) => {
            let address = std::ptr::from_ref::<Struct>(held).addr();
            return compound(kind::STRUCT, address, put, enclosing, |put, enclosing| {
                names(&held.id, &held.name, put);
                put.count(held.fields.len());
                held.fields.iter().try_for_each(|field| member(field, put, enclosing, depth))
            });
        }
        Shape::Union(held) => {
            let address = std::ptr::from_ref::<Union>(held).addr();
            return compound(kind::UNION, address, put, enclosing, |put, enclosing| {
                put_union(held, put, enclosing, depth)
            });
        }
        Shape::Enum(held) => {
            put.u32(kind::ENUM);
            return put.encapsulate(|put| {
                names(&held.id, &held.name, put);
                put.count(held.members.len());
                held.members.iter().for_each(|(name, _)| put.string(name.as_bytes()));
                Ok(())
            });
        }
        Shape::Sequence(held) => {
            put.u32(kind::SEQUENCE);
            return put.encapsulate(|put| {
                self::put(&held.element, put, enclosing, depth)?;
                put.u32(held.bound.unwrap_or(0));
                Ok(())
            });
        }
        Shape::Array(held) => {
            put.u32(kind::ARRAY);
            return put.encapsulate(|put| {
                self::put(&held.element, put, enclosing, depth)?;
                put.u32(held.len);
                Ok(())
            });
        }
        Shape::Reference(held) => {
            put.u32(kind::OBJREF);
            return put.encapsulate(|put| {
                let id = if held.id.is_empty() { "IDL:omg.org/CORBA/Object:1.0" } else { &held.id };
                names(id, if held.name.is_empty() { "Object" } else { &held.name }, put);
                Ok(())
            });
        }
        Shape::Alias(held) if let Some((digits, scale)) = fixed(held) => {
            put.u32(kind::FIXED);
            put.u16(digits);
            put.u16(scale);
        }
        Shape::Alias(_) if let Some(held) = exception(shape) => {
            let address = std::ptr::from_ref::<Struct>(held).addr();
            return compound(kind::EXCEPT, address, put, enclosing, |put, enclosing| {
                names(&held.id, &held.name, put);
                put.count(held.fields.len());
                held.fields.iter().try_for_each(|field| member(field, put, enclosing, depth))
            });
        }
        // Without a name it is another language's remark on a shape; compact type codes have none either, but an identifier.
        Shape::Alias(held) if held.name.is_empty() && !is_repository_id(&held.id) => {
            return self::put(&held.target, put, enclosing, depth);
        }
        Shape::Alias(held) => {
            put.u32(kind::ALIAS);
            return put.encapsulate(|put| {
                names(&held.id, &held.name, put);
                self::put(&held.target, put, enclosing, depth)
            });
        }
        Shape::Pointer(held) => return self::put(&held.target, put, enclosing, depth),
        Shape::Map(_) | Shape::Optional(_) | Shape::Handle => {
            return Err(Failure::new(
                Kind::Unsupported,
                Initiator::Here,
                format!("a type code cannot describe a {}", shape.noun()),
            ));
        }
    }
    Ok(())
}

/// Whether this may identify a type: a format's name comes first (CORBA 3.3 part 1, 14.7: `IDL:`, `RMI:`, `DCE:`, `LOCAL:`).
fn is_repository_id(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// A struct or union: an indirection if it is being written already.
fn compound(
    code: u32,
    address: usize,
    put: &mut Put<'_>,
    enclosing: &mut Enclosing,
    fill: impl FnOnce(&mut Put<'_>, &mut Enclosing) -> Visit<()>,
) -> Visit<()> {
    if let Some(&(_, index)) = enclosing.0.iter().find(|(known, _)| *known == address) {
        put.u32(INDIRECTION);
        // Both lie in one buffer, the target before this place: the difference is negative and small.
        let back = u32::try_from(put.out.len() - index).unwrap_or(u32::MAX);
        put.u32(back.wrapping_neg());
        return Ok(());
    }
    put.u32(code);
    enclosing.0.push((address, put.out.len() - 4));
    let result = put.encapsulate(|put| fill(put, enclosing));
    enclosing.0.pop();
    result
}

/// Repository id, and the name without its scopes.
fn names(id: &str, name: &str, put: &mut Put<'_>) {
    put.string(id.as_bytes());
    put.string(name.rsplit("::").next().unwrap_or(name).as_bytes());
}

fn member(field: &Field, put: &mut Put<'_>, enclosing: &mut Enclosing, depth: usize) -> Visit<()> {
    put.string(field.name.as_bytes());
    self::put(&field.shape, put, enclosing, depth)
}

fn put_union(held: &Union, put: &mut Put<'_>, enclosing: &mut Enclosing, depth: usize) -> Visit<()> {
    names(&held.id, &held.name, put);
    self::put(&held.discriminator, put, enclosing, depth)?;
    // An arm with several labels stands once for each; a default arm once more, with a label nobody looks at.
    let cases = |arm: &Arm| arm.labels.len() + usize::from(arm.default);
    let before = |index| held.arms.iter().take(index).map(cases).sum::<usize>();
    let default = held.arms.iter().position(|arm| arm.default);
    let used = default.and_then(|index| Some(before(index) + held.arms.get(index)?.labels.len()));
    put.u32(used.map_or(u32::MAX, |used| u32::try_from(used).unwrap_or(u32::MAX)));
    put.count(before(held.arms.len()));
    for arm in held.arms.iter() {
        let labels = arm.labels.iter().copied().chain(arm.default.then_some(0));
        for label in labels {
            put_label(&held.discriminator, label, put)?;
            member(&arm.field, put, enclosing, depth)?;
        }
    }
    Ok(())
}

fn put_label(discriminator: &Shape, label: i64, put: &mut Put<'_>) -> Visit<()> {
    // The low bytes of the label in the width of the discriminator; its range was checked by the contract's reader.
    let [b0, b1, b2, b3, ..] = label.to_le_bytes();
    match discriminator.resolved() {
        Shape::Bool | Shape::Char | Shape::U8 | Shape::I8 => put.u8(b0),
        Shape::U16 | Shape::I16 => put.u16(u16::from_le_bytes([b0, b1])),
        Shape::U32 | Shape::I32 | Shape::Enum(_) => put.u32(u32::from_le_bytes([b0, b1, b2, b3])),
        Shape::U64 | Shape::I64 => put.u64(label.cast_unsigned()),
        Shape::WideChar => put.out.extend_from_slice(&[2, b1, b0]),
        other => {
            return Err(Failure::new(
                Kind::BadArgument,
                Initiator::User,
                format!("{} cannot discriminate a union", other.noun()),
            ));
        }
    }
    Ok(())
}

/// Reads a type code.
pub(crate) fn get(get: &mut Get<'_>, budget: &mut Budget) -> Visit<Shape> {
    let mut reader = Reader { finished: Vec::new(), open: Vec::new(), nodes: 0, budget };
    reader.node(get, 0, TYPECODE_DEPTH).map(|(shape, _)| shape)
}

struct Reader<'b> {
    /// Nodes that an indirection may name: (offset, shape, height).
    finished: Vec<(usize, Shape, usize)>,
    /// Offsets of the nodes around the one being read.
    open: Vec<usize>,
    nodes: usize,
    budget: &'b mut Budget,
}

impl Reader<'_> {
    /// One node and its height; `origin` is the offset of `get`'s first byte in the outermost stream.
    fn node(&mut self, get: &mut Get<'_>, origin: usize, depth: usize) -> Visit<(Shape, usize)> {
        let too_deep =
            || Failure::over_limit(Initiator::Peer, "nesting of a type code", 33, TYPECODE_DEPTH as u64);
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        self.nodes += 1;
        if self.nodes > TYPECODE_NODES {
            let (nodes, limit) = (self.nodes as u64, TYPECODE_NODES as u64);
            return Err(Failure::over_limit(Initiator::Peer, "nodes in a type code", nodes, limit));
        }
        self.budget.charge_elements(1)?;
        let code = get.u32()?;
        let at = origin + get.pos - 4;
        if code == INDIRECTION {
            return self.indirection(get, origin);
        }
        if let Some(shape) = simple(code, get)? {
            self.finished.push((at, shape.clone(), 1));
            return Ok((shape, 1));
        }
        // These have no parameters: what follows is the value.
        if matches!(code, 12 | 13 | 25) {
            return Err(Failure::new(
                Kind::Unsupported,
                Initiator::Here,
                format!("an `any` holds a value of kind {code}, which this side does not know"),
            ));
        }
        let content = get.octets()?;
        let inner_origin = origin + get.pos - content.len();
        self.budget.charge_bytes(content.len() as u64)?;
        let mut inner = Get::encapsulation(content)?;
        self.open.push(at);
        let (shape, below) = self.complex(code, &mut inner, inner_origin, depth)?;
        self.open.pop();
        let height = below + 1;
        if height > TYPECODE_DEPTH {
            return Err(too_deep());
        }
        self.finished.push((at, shape.clone(), height));
        Ok((shape, height))
    }

    fn indirection(&self, get: &mut Get<'_>, origin: usize) -> Visit<(Shape, usize)> {
        let offset = get.u32()?.cast_signed();
        let from = origin + get.pos - 4;
        let target = isize::try_from(offset).ok().and_then(|offset| from.checked_add_signed(offset));
        let found = self.finished.iter().find(|(at, ..)| Some(*at) == target);
        if let Some((_, shape, height)) = found {
            return Ok((shape.clone(), *height));
        }
        if target.is_some_and(|target| self.open.contains(&target)) {
            return Err(Failure::new(
                Kind::Unsupported,
                Initiator::Peer,
                "an `any` holds a type that contains itself",
            )
            .with_hint("pass such values at their own type instead of `any`"));
        }
        Err(Failure::malformed("an indirection in a type code names no finished node before it", from))
    }

    fn complex(
        &mut self,
        code: u32,
        get: &mut Get<'_>,
        origin: usize,
        depth: usize,
    ) -> Visit<(Shape, usize)> {
        Ok(match code {
            kind::OBJREF => {
                let (id, name) = self.names(get)?;
                let any = id == "IDL:omg.org/CORBA/Object:1.0";
                let (id, name) = if any { (Name::default(), Name::default()) } else { (id, name) };
                (Shape::Reference(Hold::new(Referent { name, id })), 0)
            }
            kind::STRUCT | kind::EXCEPT => {
                let (id, name) = self.names(get)?;
                let mut height = 0;
                let mut fields = Vec::new();
                for _ in 0..self.count(get, 9)? {
                    let name = name_of(get)?;
                    let (shape, below) = self.node(get, origin, depth)?;
                    height = height.max(below);
                    fields.push(Field { name, shape });
                }
                let shape = Shape::Struct(Hold::new(Struct { name, id, fields: Cow::Owned(fields) }));
                match code {
                    kind::STRUCT => (shape, height),
                    // No type has an exception as its part.
                    _ if self.open.len() > 1 => {
                        return Err(get.bad("an exception inside another type").into());
                    }
                    _ => (remark(EXCEPTION, shape), height),
                }
            }
            kind::UNION => return self.union(get, origin, depth),
            kind::ENUM => {
                let (id, name) = self.names(get)?;
                let count = self.count(get, 5)?;
                let mut members = Vec::new();
                for value in (0..i32::MAX).take(count) {
                    members.push((name_of(get)?, value));
                }
                (Shape::Enum(Hold::new(Enum { name, id, members: Cow::Owned(members), bits: 32 })), 0)
            }
            kind::SEQUENCE => {
                let (element, height) = self.node(get, origin, depth)?;
                let bound = some(get.u32()?);
                (
                    Shape::Sequence(Hold::new(Sequence { element, bound, order: Order::Free, size: None })),
                    height,
                )
            }
            kind::ARRAY => {
                let (element, height) = self.node(get, origin, depth)?;
                (Shape::Array(Hold::new(Array { element, len: get.u32()? })), height)
            }
            kind::ALIAS => {
                let (id, name) = self.names(get)?;
                let (target, height) = self.node(get, origin, depth)?;
                (Shape::Alias(Hold::new(Alias { name, id, target })), height)
            }
            // A box inside another type is one of many values that share each other.
            kind::BOX if self.open.len() == 1 => {
                self.names(get)?;
                let (target, height) = self.node(get, origin, depth)?;
                (remark(BOXED, target), height)
            }
            29..=33 => {
                return Err(Failure::new(
                    Kind::Unsupported,
                    Initiator::Here,
                    format!("an `any` holds a value of kind {code}, which this side does not know"),
                ));
            }
            _ => return Err(Failure::malformed(format_args!("{code} is no kind of type code"), get.pos)),
        })
    }

    fn union(&mut self, get: &mut Get<'_>, origin: usize, depth: usize) -> Visit<(Shape, usize)> {
        let (id, name) = self.names(get)?;
        let (discriminator, mut height) = self.node(get, origin, depth)?;
        let default = usize::try_from(get.u32()?.cast_signed()).ok();
        let mut arms: Vec<Arm> = Vec::new();
        for index in 0..self.count(get, 10)? {
            let label = label(&discriminator, get)?;
            let field_name = name_of(get)?;
            let (shape, below) = self.node(get, origin, depth)?;
            height = height.max(below);
            let is_default = default == Some(index);
            // An arm with several labels came once for each.
            match arms.last_mut().filter(|arm| arm.field.name == field_name) {
                Some(arm) if is_default => arm.default = true,
                Some(arm) => arm.labels.to_mut().push(label),
                None => arms.push(Arm {
                    labels: if is_default { Cow::Borrowed(&[]) } else { Cow::Owned(vec![label]) },
                    default: is_default,
                    field: Field { name: field_name, shape },
                }),
            }
        }
        Ok((Shape::Union(Hold::new(Union { name, id, discriminator, arms: Cow::Owned(arms) })), height))
    }

    fn names(&mut self, get: &mut Get<'_>) -> Visit<(Name, Name)> {
        let id = get.text()?;
        let mut name = get.text()?;
        if let Some((_, bare)) = name.rsplit_once("::") {
            name = bare.to_owned();
        }
        // The code holds the bare name; the scopes are part of an OMG identity.
        let scoped = id
            .strip_prefix("IDL:")
            .and_then(|rest| rest.split(':').next())
            .map(|path| path.replace('/', "::"));
        let name = scoped.filter(|scoped| !name.is_empty() && scoped.ends_with(&name)).unwrap_or(name);
        Ok((Cow::Owned(id), Cow::Owned(name)))
    }

    /// A count of members, each at least `least` bytes.
    fn count(&mut self, get: &mut Get<'_>, least: usize) -> Visit<usize> {
        let count = get.count()?;
        if count > get.left() / least {
            return Err(get.bad("a count of members exceeds the type code").into());
        }
        self.budget.charge_elements(count as u64)?;
        Ok(count)
    }
}

fn name_of(get: &mut Get<'_>) -> Result<Name, Bad> {
    get.text().map(Cow::Owned)
}

fn some(bound: u32) -> Option<u32> {
    if bound == 0 { None } else { Some(bound) }
}

/// Codes without an encapsulation.
fn simple(code: u32, get: &mut Get<'_>) -> Result<Option<Shape>, Bad> {
    Ok(Some(match code {
        kind::NULL | kind::VOID => Shape::Void,
        kind::SHORT => Shape::I16,
        kind::LONG => Shape::I32,
        kind::USHORT => Shape::U16,
        kind::ULONG => Shape::U32,
        kind::FLOAT => Shape::F32,
        kind::DOUBLE => Shape::F64,
        kind::BOOLEAN => Shape::Bool,
        kind::CHAR => Shape::Char,
        kind::OCTET => Shape::U8,
        kind::ANY => Shape::Variant,
        kind::LONGLONG => Shape::I64,
        kind::ULONGLONG => Shape::U64,
        kind::WCHAR => Shape::WideChar,
        kind::STRING => Shape::Text(Text { kind: TextKind::Narrow, bound: some(get.u32()?) }),
        kind::WSTRING => Shape::Text(Text { kind: TextKind::Wide, bound: some(get.u32()?) }),
        kind::FIXED => {
            let (digits, scale) = (get.u16()?, get.u16()?);
            if digits == 0 || digits > 31 {
                return Err(get.bad("a fixed-point number has no digits, or more than 31"));
            }
            let len = u32::from(digits) / 2 + 1;
            remark(
                format!("{FIXED}{digits} {scale}"),
                Shape::Array(Hold::new(Array { element: Shape::U8, len })),
            )
        }
        _ => return Ok(None),
    }))
}

fn label(discriminator: &Shape, get: &mut Get<'_>) -> Visit<i64> {
    Ok(match discriminator.resolved() {
        Shape::Bool | Shape::Char | Shape::U8 | Shape::I8 => get.u8()?.into(),
        Shape::U16 => get.u16()?.into(),
        Shape::I16 => get.u16()?.cast_signed().into(),
        Shape::U32 => get.u32()?.into(),
        Shape::I32 | Shape::Enum(_) => get.u32()?.cast_signed().into(),
        Shape::U64 | Shape::I64 => get.u64()?.cast_signed(),
        Shape::WideChar => {
            let len = get.u8()?;
            get.take(len.into())?.iter().fold(0, |label, &octet| label << 8 | i64::from(octet))
        }
        other => {
            return Err(Failure::malformed(
                format_args!("{} cannot discriminate a union", other.noun()),
                get.pos,
            ));
        }
    })
}
