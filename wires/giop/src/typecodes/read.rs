//! Reading type codes (CORBA 3.3 part 2, section 9.3.5.1).
//!
//! Each node has a `TypeCodeNode` in the outermost type code. A node that an indirection names is taken from those
//! that are finished; one around the indirection is made anew when it is looked at (`unfold`), from the
//! octets of the outermost type code, which are kept for that. So nothing holds what holds it, and a reader
//! is at work in two cases: on a message, where all is checked and the places are noted, and on what was
//! kept, for one level more.
//!
//! States of a `Reader`: `open` are the nodes around the present one, outermost first; a node moves to
//! `finished` when its parts are read. `unfolded` are the open nodes that an indirection has named. `encoded`
//! is set at the first of those, and completed with all places at the end.
//!
//! Bounds, each for one outermost type code: nodes (`TYPECODE_NODES`), nesting while reading (`depth`) and of
//! the finished shape with indirections followed (`height`), both `TYPECODE_DEPTH`; octets and elements are
//! charged to the budget of the message. A count of members is checked against the octets that are left
//! before anything is reserved. A level of a type that contains itself is read when a value has it, and
//! charged then.

use super::unfold::{EncodedTypeCode, LazyLevel, Recursive, TypeCodeNode};
use super::write::is_repository_id;
use super::{Boxed, EXCEPTION, INDIRECTION, OWN, kind, remark};
use crate::cdr::{DecodeError, Get, ReadCdr};
use crate::limits::{TYPECODE_DEPTH, TYPECODE_NODES};
use everywire_model::fixed::Fixed;
use everywire_model::long_double;
use everywire_model::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Name, Order, Referent, Sequence, Struct, Text, TextKind, Union,
};
use everywire_model::{Budget, Failure, Initiator, Shape, Visit};
use std::borrow::Cow;
use std::sync::Arc;

/// Reads a type code and gives the shape of its values.
///
/// # Errors
/// It is malformed, exceeds a bound, or describes values that this side does not read (`Kind::Unsupported`).
pub(crate) fn get(get: &mut Get<'_>, budget: &mut Budget) -> Visit<Shape> {
    get.align(4);
    let message = get.bytes.get(get.pos..).unwrap_or_default();
    let mut reader = Reader::new(message, None, budget);
    // Offsets count from the outermost type code.
    let (shape, _) = reader.node(get, 0usize.wrapping_sub(get.pos), TYPECODE_DEPTH)?;
    if let Some(encoded) = reader.encoded {
        encoded.complete(reader.places);
    }
    Ok(shape)
}

/// Reads one level of a type that contains itself; it was checked when all of it was read. The budget is
/// without limits here: the octets were charged when they came, and the level is charged by whoever reads a
/// value of it.
pub(super) fn again<T: Recursive>(encoded: &Arc<EncodedTypeCode>, place: TypeCodeNode) -> Visit<T> {
    let mut budget = Budget { bytes: u64::MAX, elements: u64::MAX, ..Budget::default() };
    let mut reader = Reader::new(&encoded.octets, Some(Arc::clone(encoded)), &mut budget);
    let (shape, _) = reader.bare(place, TYPECODE_DEPTH)?;
    T::out_of(shape).ok_or_else(|| Failure::malformed("a type code changed its kind", place.at))
}

/// Reads the nodes of one outermost type code. All offsets count from its first octet.
struct Reader<'a, 'b> {
    /// The octets from the outermost type code on.
    octets: &'a [u8],
    /// Those of it that are kept, once a type was met that contains itself.
    encoded: Option<Arc<EncodedTypeCode>>,
    /// Nodes that an indirection may name: (offset, shape, height).
    finished: Vec<(usize, Shape, usize)>,
    /// The nodes around the one being read.
    open: Vec<TypeCodeNode>,
    /// Where all nodes are.
    places: Vec<TypeCodeNode>,
    /// What indirections to nodes around them stand for: (offset of the node, shape).
    unfolded: Vec<(usize, Shape)>,
    /// Nodes that were read.
    nodes: usize,
    /// What reading may still cost: that of the message.
    budget: &'b mut Budget,
}

impl<'a, 'b> Reader<'a, 'b> {
    fn new(octets: &'a [u8], encoded: Option<Arc<EncodedTypeCode>>, budget: &'b mut Budget) -> Self {
        let (finished, open, places) = (Vec::new(), Vec::new(), Vec::new());
        Self { octets, encoded, finished, open, places, unfolded: Vec::new(), nodes: 0, budget }
    }

    /// One node and its height; `origin` (wrapping) is the offset of `get`'s first byte in the outermost type
    /// code. `depth` is how many levels may still follow.
    fn node(&mut self, get: &mut Get<'_>, origin: usize, depth: usize) -> Visit<(Shape, usize)> {
        let code = get.u32()?;
        let at = origin.wrapping_add(get.pos - 4);
        self.count_node()?;
        if code == INDIRECTION {
            return self.indirection(get, origin, depth);
        }
        let start = at + 4;
        if let Some(shape) = simple(code, get)? {
            if depth == 0 {
                return Err(too_deep());
            }
            self.places.push(TypeCodeNode { at, code, start, end: start, little: get.little });
            self.finished.push((at, shape.clone(), 1));
            return Ok((shape, 1));
        }
        // It has no parameters: what follows is the value.
        if code == kind::PRINCIPAL {
            return Err(unknown(code));
        }
        let content = get.octets()?;
        let end = origin.wrapping_add(get.pos);
        self.budget.charge_bytes(content.len() as u64)?;
        let place = TypeCodeNode { at, code, start: end - content.len(), end, little: get.little };
        self.places.push(place);
        self.place(place, depth)
    }

    /// Charges one node.
    ///
    /// # Errors
    /// There are too many.
    fn count_node(&mut self) -> Visit<()> {
        self.nodes += 1;
        if self.nodes > TYPECODE_NODES {
            let (nodes, limit) = (self.nodes as u64, TYPECODE_NODES as u64);
            return Err(Failure::over_limit(Initiator::Peer, "nodes in a type code", nodes, limit));
        }
        self.budget.charge_elements(1)
    }

    /// Reads the node at a place and notes it as finished; its shape and its height.
    fn place(&mut self, place: TypeCodeNode, depth: usize) -> Visit<(Shape, usize)> {
        let (shape, height) = self.bare(place, depth)?;
        if height > TYPECODE_DEPTH {
            return Err(too_deep());
        }
        let is_named = || self.unfolded.iter().any(|(at, _)| *at == place.at);
        let shape = match &self.encoded {
            // Its own parts name it, or it may stand within one that they name and is made anew with each level of that: it is known by the same
            // identity each time.
            Some(encoded) if matches!(place.code, kind::STRUCT | kind::UNION) || is_named() => {
                super::unfold::outermost(encoded, place, shape)
            }
            _ => shape,
        };
        self.finished.push((place.at, shape.clone(), height));
        Ok((shape, height))
    }

    /// The same, without a look at whether its parts name it, and without noting it.
    fn bare(&mut self, place: TypeCodeNode, depth: usize) -> Visit<(Shape, usize)> {
        let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
        let octets = self.octets;
        if is_simple(place.code) {
            let mut get = Get { bytes: octets, pos: place.start, base: 0, little: place.little };
            return simple(place.code, &mut get)?.map(|shape| (shape, 1)).ok_or_else(|| unknown(place.code));
        }
        let content = octets.get(place.start..place.end).unwrap_or_default();
        let mut inner = Get::encapsulation(content)?;
        self.open.push(place);
        let (shape, below) = self.complex(place.code, &mut inner, place.start, depth)?;
        self.open.pop();
        Ok((shape, below + 1))
    }

    /// The offset counts from where it stands itself, and is negative. It may name a node that is finished,
    /// or one around it.
    ///
    /// # Errors
    /// It leads elsewhere, or to a type that would contain itself without end.
    fn indirection(&mut self, get: &mut Get<'_>, origin: usize, depth: usize) -> Visit<(Shape, usize)> {
        let offset = get.u32()?.cast_signed();
        let from = origin.wrapping_add(get.pos - 4);
        let target = isize::try_from(offset).ok().and_then(|offset| from.checked_add_signed(offset));
        let nothing = || Failure::malformed("an indirection in a type code names no node before it", from);
        let target = target.ok_or_else(nothing)?;
        if let Some((_, shape, height)) = self.finished.iter().find(|(at, ..)| *at == target) {
            return Ok((shape.clone(), *height));
        }
        if let Some(index) = self.open.iter().position(|place| place.at == target) {
            let around = self.open.get(index..).unwrap_or_default();
            let Some(place) = around.first().copied() else { return Err(nothing()) };
            // A level without a count would have no end, and only structs and unions are declared before they are known.
            let has = |codes: &[u32]| around.iter().any(|place| codes.contains(&place.code));
            if !has(&[kind::SEQUENCE]) || !has(&[kind::STRUCT, kind::UNION]) {
                let what =
                    "a type in a type code contains itself other than by a sequence in a struct or a union";
                return Err(Failure::malformed(what, from));
            }
            return Ok((self.unfold(place)?, 1));
        }
        match self.encoded.as_ref().and_then(|encoded| encoded.place(target)) {
            Some(place) if place.end > from => Ok((self.unfold(place)?, 1)),
            Some(place) => self.place(place, depth),
            None => Err(nothing()),
        }
    }

    /// What an indirection to a node around it stands for: a shape that reads its level when it is looked at.
    /// The octets are copied and charged once for each outermost type code.
    fn unfold(&mut self, place: TypeCodeNode) -> Visit<Shape> {
        if let Some((_, shape)) = self.unfolded.iter().find(|(at, _)| *at == place.at) {
            return Ok(shape.clone());
        }
        let encoded = match &self.encoded {
            Some(encoded) => Arc::clone(encoded),
            None => {
                let end = self.open.first().map_or(0, |outermost| outermost.end);
                let octets = self.octets.get(..end).unwrap_or_default();
                self.budget.charge_bytes(octets.len() as u64)?;
                let encoded = Arc::new(EncodedTypeCode::new(octets));
                self.encoded = Some(Arc::clone(&encoded));
                encoded
            }
        };
        let shape = match place.code {
            kind::STRUCT => Struct::held(LazyLevel::new(encoded, place)),
            kind::UNION => Union::held(LazyLevel::new(encoded, place)),
            kind::SEQUENCE => Sequence::held(LazyLevel::new(encoded, place)),
            kind::ARRAY => Array::held(LazyLevel::new(encoded, place)),
            // Another name for a type that contains itself: the name again, and what is behind it.
            kind::ALIAS => {
                let content = self.octets.get(place.start..place.end).unwrap_or_default();
                let mut inner = Get::encapsulation(content)?;
                let (id, name) = self.names(&mut inner)?;
                inner.align(4);
                let behind = place.start + inner.pos;
                let open = self.open.iter().find(|place| place.at == behind).copied();
                let target = open.or_else(|| encoded.place(behind));
                let target = target.ok_or_else(|| inner.bad("another name for nothing"))?;
                return Ok(aliased(name, id, self.unfold(target)?));
            }
            _ => {
                return Err(Failure::malformed("a type in a type code cannot contain itself", place.at));
            }
        };
        self.unfolded.push((place.at, shape.clone()));
        Ok(shape)
    }

    /// A node with an encapsulation; `origin` is the offset of `get`'s first octet. The height does not count
    /// this node.
    ///
    /// # Errors
    /// Its kind does not exist, or is not read here.
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
                    let (shape, below) = self.part(get, origin, depth)?;
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
                let members = Cow::Owned(members);
                (Shape::Enum(Hold::new(Enum { name, id, members, bits: 32, open: false })), 0)
            }
            kind::SEQUENCE => {
                let (element, height) = self.part(get, origin, depth)?;
                let bound = some(get.u32()?);
                let sequence = Sequence { element, bound, order: Order::Free, size: None };
                (Shape::Sequence(Hold::new(sequence)), height)
            }
            kind::ARRAY => {
                let (element, height) = self.part(get, origin, depth)?;
                (Shape::Array(Hold::new(Array { element, len: get.u32()? })), height)
            }
            kind::ALIAS => {
                let (id, name) = self.names(get)?;
                let (target, height) = self.node(get, origin, depth)?;
                (aliased(name, id, target), height)
            }
            // A box inside another type is one of many values that share each other.
            kind::BOX if self.open.len() == 1 => {
                let (id, name) = self.names(get)?;
                let (target, height) = self.node(get, origin, depth)?;
                let name = name.rsplit("::").next().unwrap_or_default();
                let boxed = Boxed { id: &id, name, value: OWN }.shape(target).ok_or_else(|| unknown(code))?;
                (boxed, height)
            }
            29..=36 => return Err(unknown(code)),
            _ => return Err(Failure::malformed(format_args!("{code} is no kind of type code"), get.pos)),
        })
    }

    /// A member or an element. One whose values take no octets is refused: a few octets could tell of any number of them, and OMG IDL has
    /// none (CORBA 3.3 part 1, section 8.11.3: such type codes cannot be made).
    fn part(&mut self, get: &mut Get<'_>, origin: usize, depth: usize) -> Visit<(Shape, usize)> {
        let at = get.pos;
        let (shape, height) = self.node(get, origin, depth)?;
        if has_size(&shape) {
            return Ok((shape, height));
        }
        Err(Failure::malformed(
            format_args!("{} is a part of another type, and has no values", shape.noun()),
            at,
        ))
    }

    /// A case with the index of the default has a label that means nothing.
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

    /// Repository id, and name with the scopes that the id shows, if it ends with the bare name.
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

/// Whether values take octets, of a type whose parts do.
fn has_size(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Void => false,
        // Those that contain themselves have a member at least; those that were a part before have been looked at.
        Shape::Struct(Hold::Again(_) | Hold::Later(_)) => true,
        Shape::Struct(shape) => !shape.fields.is_empty(),
        Shape::Array(Hold::Shared(array)) => array.len > 0,
        _ => true,
    }
}

/// The name of a member.
fn name_of(get: &mut Get<'_>) -> Result<Name, DecodeError> {
    get.text().map(Cow::Owned)
}

/// A bound; 0 stands for none.
fn some(bound: u32) -> Option<u32> {
    if bound == 0 { None } else { Some(bound) }
}

/// Whether no encapsulation follows a kind.
pub(super) fn is_simple(code: u32) -> bool {
    matches!(code, 0..=13 | kind::STRING | 23..=28)
}

/// A type under another name. One that names nothing is not written either.
fn aliased(name: Name, id: Name, target: Shape) -> Shape {
    if name.is_empty() && !is_repository_id(&id) {
        return target;
    }
    Shape::Alias(Hold::new(Alias { name, id, target }))
}

/// Codes without an encapsulation. Nothing for kinds that an encapsulation follows, and for those without
/// values here.
///
/// # Errors
/// The parameters end early, or a fixed-point number has digits that CORBA does not allow.
fn simple(code: u32, get: &mut Get<'_>) -> Result<Option<Shape>, DecodeError> {
    Ok(Some(match code {
        kind::NULL | kind::VOID => Shape::Void,
        kind::SHORT => Shape::I16,
        kind::LONG => Shape::I32,
        kind::USHORT => Shape::U16,
        kind::ULONG => Shape::U32,
        kind::FLOAT => Shape::F32,
        kind::DOUBLE => Shape::F64,
        kind::LONG_DOUBLE => long_double::SHAPE,
        kind::BOOLEAN => Shape::Bool,
        kind::CHAR => Shape::Char,
        kind::OCTET => Shape::U8,
        kind::ANY => Shape::Variant,
        kind::TYPE_CODE => Shape::TypeCode,
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
            Fixed { digits, scale }.shape()
        }
        _ => return Ok(None),
    }))
}

/// A label of a union, in the type of the discriminator, as the number that the model keeps. A wide character
/// is its octets in big-endian order.
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
            let what = format_args!("{} cannot discriminate a union", other.noun());
            return Err(Failure::malformed(what, get.pos));
        }
    })
}

/// The failure of a type code that nests too deeply.
#[cold]
fn too_deep() -> Failure {
    Failure::over_limit(Initiator::Peer, "nesting of a type code", 33, TYPECODE_DEPTH as u64)
}

/// The failure of a type code whose values this side does not read.
#[cold]
fn unknown(code: u32) -> Failure {
    let what = format!("values of kind {code}, which a type code describes, are unknown to this side");
    Failure::unsupported(what)
}
