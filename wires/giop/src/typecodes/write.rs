//! Writing type codes (CORBA 3.3 part 2, section 9.3.5.1).
//!
//! The shape is walked once, and each type with parts becomes an encapsulation in place. A type that is met
//! again while it is being written becomes an indirection, which is the only way that the walk ends for a
//! type that contains itself. A type that is complete is written again where it is used again: indirections
//! to siblings would be shorter, but are not written.
//!
//! Bounds: nesting (`depth`) and nodes (`TYPECODE_WRITTEN`), since a shape that came in a message may share
//! parts that grow when they are written out.

use super::{INDIRECTION, NULL, boxed, exception, kind};
use crate::cdr::{CdrWriter, WriteCdr};
use crate::limits::{TYPECODE_DEPTH, TYPECODE_WRITTEN};
use everywire_model::fixed::Fixed;
use everywire_model::long_double;
use everywire_model::shape::{Arm, Field, Struct, TextKind, Union};
use everywire_model::value_type::{Levels, ValueType};
use everywire_model::{Failure, Initiator, Shape, Visit};

/// Types whose codes are being written: (identity of the description, index of the code). One for each
/// outermost type code.
#[derive(Debug, Default)]
pub(crate) struct OpenTypes {
    /// From the outermost to the innermost.
    open: Vec<(usize, usize)>,
    /// Nodes that were written.
    nodes: usize,
    /// Whether value types may be described: no value of them follows, which an `any` could not hold.
    has_value_types: bool,
    /// Whether a signed octet was told as an octet, since CDR has no other word for it.
    pub(crate) has_signed_octet: bool,
}

impl OpenTypes {
    /// For a type code that is a value itself.
    pub(crate) fn of_a_value() -> Self {
        Self { has_value_types: true, ..Self::default() }
    }
}

/// Writes the type code of a shape; one that contains itself ends in an indirection. `depth` is how many
/// levels may still follow.
///
/// # Errors
/// A bound is exceeded, or a part of the shape has no type code.
pub(crate) fn put(
    shape: &Shape,
    put: &mut CdrWriter<'_>,
    enclosing: &mut OpenTypes,
    depth: usize,
) -> Visit<()> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    // Types that were read may have parts in common, which are written wherever they stand.
    enclosing.nodes += 1;
    if enclosing.nodes > TYPECODE_WRITTEN {
        let (nodes, limit) = (enclosing.nodes as u64, TYPECODE_WRITTEN as u64);
        return Err(Failure::over_limit(Initiator::Here, "nodes in a type code", nodes, limit));
    }
    match shape {
        Shape::Void => put.u32(kind::VOID),
        Shape::Bool => put.u32(kind::BOOLEAN),
        Shape::U8 => put.u32(kind::OCTET),
        Shape::I8 => {
            enclosing.has_signed_octet = true;
            put.u32(kind::OCTET);
        }
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
        Shape::TypeCode => put.u32(kind::TYPE_CODE),
        Shape::Text(text) => {
            let wide = matches!(text.kind, TextKind::Wide | TextKind::Counted);
            put.u32(if wide { kind::WSTRING } else { kind::STRING });
            put.u32(text.bound.unwrap_or(0));
        }
        Shape::Struct(held) => {
            return compound(kind::STRUCT, held.identity(), put, enclosing, |put, enclosing| {
                put_struct(held, put, enclosing, depth)
            });
        }
        Shape::Union(held) => {
            return compound(kind::UNION, held.identity(), put, enclosing, |put, enclosing| {
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
            return compound(kind::SEQUENCE, held.identity(), put, enclosing, |put, enclosing| {
                self::put(&held.element, put, enclosing, depth)?;
                put.u32(held.bound.unwrap_or(0));
                Ok(())
            });
        }
        Shape::Array(held) if long_double::is_array(held) => put.u32(kind::LONG_DOUBLE),
        Shape::Array(held) => {
            return compound(kind::ARRAY, held.identity(), put, enclosing, |put, enclosing| {
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
        Shape::Alias(held) if let Some(Fixed { digits, scale }) = Fixed::of_alias(held) => {
            put.u32(kind::FIXED);
            put.u16(digits);
            put.u16(scale);
        }
        Shape::Alias(_) if let Some(held) = exception(shape) => {
            let identity = std::ptr::from_ref(held).addr();
            return compound(kind::EXCEPT, identity, put, enclosing, |put, enclosing| {
                put_struct(held, put, enclosing, depth)
            });
        }
        // A box inside another type is one of many values that share each other, and nothing that was read has one.
        Shape::Alias(held)
            if enclosing.open.is_empty()
                && let Some((of, target)) = boxed(shape) =>
        {
            let target = match target {
                Shape::Optional(target) if of.value == NULL => &**target,
                target => target,
            };
            return compound(kind::BOX, held.identity(), put, enclosing, |put, enclosing| {
                names(of.id, of.name, put);
                self::put(target, put, enclosing, depth)
            });
        }
        // Without a name it is another language's remark on a shape; compact type codes have none either, but an identifier.
        Shape::Alias(held) if held.name.is_empty() && !is_repository_id(&held.id) => {
            return self::put(&held.target, put, enclosing, depth);
        }
        Shape::Alias(held) => {
            return compound(kind::ALIAS, held.identity(), put, enclosing, |put, enclosing| {
                names(&held.id, &held.name, put);
                self::put(&held.target, put, enclosing, depth)
            });
        }
        Shape::Pointer(held) => return self::put(&held.target, put, enclosing, depth),
        // Of the values in an `any` only boxes are written: as one inside another type is one of many values that share each other.
        Shape::Optional(content)
            if enclosing.has_value_types
                || (enclosing.open.is_empty()
                    && matches!(ValueType::of(content), Some(ValueType::Boxed { .. }))) =>
        {
            return put_value_type(content, put, enclosing, depth);
        }
        Shape::Optional(_) => {
            let what = "CORBA has no word for an optional value inside a value of any type";
            return Err(Failure::unsupported(what).with_hint("say the type in the contract, without an any"));
        }
        Shape::Map(_) | Shape::Handle => {
            let what = format!("a type code cannot describe a {}", shape.noun());
            return Err(Failure::unsupported(what));
        }
    }
    Ok(())
}

/// The failure of a shape that nests too deeply.
#[cold]
fn too_deep() -> Failure {
    Failure::over_limit(Initiator::Here, "nesting of a type code", 1, TYPECODE_DEPTH as u64)
}

/// Whether this may identify a type: a format's name comes first (CORBA 3.3 part 1, 14.7: `IDL:`, `RMI:`, `DCE:`, `LOCAL:`).
pub(super) fn is_repository_id(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// A type with parts: its encapsulation, filled by `fill`, or an indirection if it is being written already.
fn compound(
    code: u32,
    identity: usize,
    put: &mut CdrWriter<'_>,
    enclosing: &mut OpenTypes,
    fill: impl FnOnce(&mut CdrWriter<'_>, &mut OpenTypes) -> Visit<()>,
) -> Visit<()> {
    if let Some(&(_, index)) = enclosing.open.iter().find(|(known, _)| *known == identity) {
        put.u32(INDIRECTION);
        // Both lie in one buffer, the target before this place: the difference is negative and small.
        let back = u32::try_from(put.out.len() - index).unwrap_or(u32::MAX);
        put.u32(back.wrapping_neg());
        return Ok(());
    }
    put.u32(code);
    enclosing.open.push((identity, put.out.len() - 4));
    let result = put.encapsulate(|put| fill(put, enclosing));
    enclosing.open.pop();
    result
}

/// Repository id, and the name without its scopes.
fn names(id: &str, name: &str, put: &mut CdrWriter<'_>) {
    put.string(id.as_bytes());
    put.string(name.rsplit("::").next().unwrap_or(name).as_bytes());
}

/// A member of a struct, exception or union: its name and its type.
fn member(field: &Field, put: &mut CdrWriter<'_>, enclosing: &mut OpenTypes, depth: usize) -> Visit<()> {
    put.string(field.name.as_bytes());
    self::put(&field.shape, put, enclosing, depth)
}

/// The content of the encapsulation of a struct or exception.
fn put_struct(held: &Struct, put: &mut CdrWriter<'_>, enclosing: &mut OpenTypes, depth: usize) -> Visit<()> {
    names(&held.id, &held.name, put);
    put.count(held.fields.len());
    held.fields.iter().try_for_each(|field| member(field, put, enclosing, depth))
}

/// A value type or a value box.
fn put_value_type(
    content: &Shape,
    put: &mut CdrWriter<'_>,
    enclosing: &mut OpenTypes,
    depth: usize,
) -> Visit<()> {
    match (ValueType::of(content), content.resolved(), content) {
        (Some(ValueType::State(levels)), Shape::Struct(held), _) => {
            compound(kind::VALUE, held.identity(), put, enclosing, |put, enclosing| {
                put_state(levels, &held.name, &held.fields, put, enclosing, depth)
            })
        }
        (Some(ValueType::Boxed { id, name }), _, Shape::Alias(held)) => {
            compound(kind::BOX, held.identity(), put, enclosing, |put, enclosing| {
                names(id, name, put);
                self::put(&held.target, put, enclosing, depth)
            })
        }
        _ => Err(Failure::unsupported("a type code cannot describe an optional value")),
    }
}

/// The content of the encapsulation of a value type: names, whether it may be cut down, its base, its own members. `levels` are its own
/// and those of its bases, `fields` the members of all.
fn put_state(
    levels: Levels<'_>,
    name: &str,
    fields: &[Field],
    put: &mut CdrWriter<'_>,
    enclosing: &mut OpenTypes,
    depth: usize,
) -> Visit<()> {
    /// `VM_TRUNCATABLE`; without it there is nothing to say of such types (`VM_NONE`).
    const TRUNCATABLE: u16 = 3;
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    let mut bases = levels;
    let own = bases.next().ok_or_else(|| Failure::unsupported("a value type without a type"))?;
    names(own.id, name, put);
    put.u16(if own.truncatable { TRUNCATABLE } else { 0 });
    let (inherited, members) = fields.split_at(fields.len().saturating_sub(own.members.len()));
    let base = { bases }.next();
    match base {
        None => put.u32(kind::NULL),
        Some(base) => {
            // Only the id of a base is known here; the name is its last part.
            let path = base.id.rsplit_once(':').map_or(base.id, |(path, _)| path);
            let name = path.rsplit(['/', ':']).next().unwrap_or(path);
            put.u32(kind::VALUE);
            put.encapsulate(|put| put_state(bases, name, inherited, put, enclosing, depth))?;
        }
    }
    put.count(members.len());
    for (field, seen) in members.iter().zip(own.members.chars()) {
        member(field, put, enclosing, depth)?;
        put.u16((seen == 'u').into());
    }
    Ok(())
}

/// The content of the encapsulation of a union: names, discriminator, index of the default case, cases.
fn put_union(held: &Union, put: &mut CdrWriter<'_>, enclosing: &mut OpenTypes, depth: usize) -> Visit<()> {
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

/// A wide character is written as in GIOP 1.2: a count of octets, then the unit, big-endian.
fn put_label(discriminator: &Shape, label: i64, put: &mut CdrWriter<'_>) -> Visit<()> {
    // The low bytes of the label in the width of the discriminator; its range was checked by the contract's reader.
    let [b0, b1, b2, b3, ..] = label.to_le_bytes();
    match discriminator.resolved() {
        Shape::Bool | Shape::Char | Shape::U8 | Shape::I8 => put.u8(b0),
        Shape::U16 | Shape::I16 => put.u16(u16::from_le_bytes([b0, b1])),
        Shape::U32 | Shape::I32 => put.u32(u32::from_le_bytes([b0, b1, b2, b3])),
        Shape::Enum(held) => {
            let ordinal = i32::try_from(label).ok().and_then(|value| held.ordinal_of(value));
            let none = || Failure::bad_argument(format!("{label} is no member of {}", held.name));
            put.u32(ordinal.ok_or_else(none)?);
        }
        Shape::U64 | Shape::I64 => put.u64(label.cast_unsigned()),
        Shape::WideChar => put.out.extend_from_slice(&[2, b1, b0]),
        other => {
            let what = format!("{} cannot discriminate a union", other.noun());
            return Err(Failure::bad_argument(what));
        }
    }
    Ok(())
}
