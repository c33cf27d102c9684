//! What an open composite knows of its values beyond what the visit says with each: which are held in another form, and
//! which count others (`size_is`) or choose their arms (`switch_is`).
//!
//! Invariants: `Counts` has one entry for each field of the struct, in order; `field` is the one that is
//! being visited. Sequence and size may come in either order, so each of both compares with the other if that
//! was seen already. Where a maximum count travels, it must equal the size; any other sequence must not exceed
//! it. The elements that travel must be as many as the length says (`length_is`). What is written in another
//! way than as one name (`extent.rs`) is computed as soon as all its names have values. A union and what chooses its
//! arm are compared in the same way.

use super::extent::{Computed, Extent, compute, switch_of};
use super::layout::{Form, alignment, form};
use everywire_model::shape::{Field, Hold, Order, Sequence, Shape, Struct};

/// The forms of the values in a composite.
#[derive(Debug, Clone, Default)]
pub(super) enum Forms {
    /// All values are held as their shape says.
    #[default]
    Plain,
    /// All values have this form.
    All(Form),
    /// Of a map: the form of the keys and that of the values.
    Pairs(Form, Form),
    /// Each field has a form of its own.
    Fields(Hold<Struct>),
}

impl Forms {
    /// Of the elements of a sequence or array, of the keys and values of a map, of what a pointer points to.
    pub(super) fn of_items(shape: &Shape) -> Self {
        let forms = match shape {
            Shape::Map(map) => Self::Pairs(form(&map.key).0, form(&map.value).0),
            Shape::Optional(target) => Self::All(form(target).0),
            Shape::Pointer(pointer) => Self::All(form(&pointer.target).0),
            other => Self::All(other.element().map_or(Form::Plain, |element| form(element).0)),
        };
        match forms {
            Self::All(Form::Plain) | Self::Pairs(Form::Plain, Form::Plain) => Self::Plain,
            forms => forms,
        }
    }

    /// Of the fields of a struct. Only an alias can change the form of a value, so a struct without aliases
    /// is plain and need not be kept.
    pub(super) fn of_fields(shape: &Hold<Struct>) -> Self {
        let mut aliases = shape.fields.iter().filter(|field| matches!(field.shape, Shape::Alias(_)));
        let plain = aliases.all(|field| form(&field.shape).0 == Form::Plain);
        if plain { Self::Plain } else { Self::Fields(shape.clone()) }
    }

    /// Of the next value, where `left` are to come.
    /// Of a map the keys come at even numbers of values to come, since each is followed by its value.
    #[inline]
    pub(super) fn next(&self, left: usize) -> Form {
        match self {
            Self::Plain => Form::Plain,
            Self::All(form) => *form,
            Self::Pairs(key, value) => *if left.is_multiple_of(2) { key } else { value },
            Self::Fields(shape) => {
                let index = shape.fields.len().checked_sub(left);
                let field = index.and_then(|index| shape.fields.get(index));
                field.map_or(Form::Plain, |field| form(&field.shape).0)
            }
        }
    }
}

/// What was found out about the structs opened last: arrays of structs open the same few again and again.
#[derive(Debug, Default)]
pub(super) struct StructCache {
    facts: [Option<(Hold<Struct>, StructFacts)>; 4],
    next: usize,
}

/// What a struct looks like as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct StructFacts {
    /// Its alignment inside others.
    pub(super) alignment: usize,
    /// Whether no field is held in another form, and none counts another.
    pub(super) plain: bool,
}

impl StructCache {
    /// What is known of a struct; what was not known takes the oldest of the four places. Structs are told
    /// apart by their address: comparing contents would cost as much as finding out anew.
    pub(super) fn of(&mut self, shape: &Shape, fields: &Hold<Struct>) -> StructFacts {
        for (known, facts) in self.facts.iter().flatten() {
            if std::ptr::eq::<Struct>(&**known, &**fields) {
                return *facts;
            }
        }
        let plain = matches!(Forms::of_fields(fields), Forms::Plain) && Counts::of(fields).is_none();
        let facts = StructFacts { alignment: alignment(shape, false), plain };
        if let Some(place) = self.facts.get_mut(self.next % 4) {
            // The shape is kept with it, so that no other can come to be at its address.
            *place = Some((fields.clone(), facts));
        }
        self.next = self.next.wrapping_add(1);
        facts
    }
}

/// Whether a number or a sequence here takes part in the counts of the struct around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountRole {
    /// No.
    No,
    /// It is a field.
    Field,
    /// It stands behind the pointer that is the field.
    Behind,
    /// It is the discriminator of a union, of so many bits.
    Discriminator(u32),
}

/// The counts of an open struct: sequences, and the fields that say how long they are.
#[derive(Debug)]
pub(super) struct Counts {
    shape: Hold<Struct>,
    /// The field that is being visited.
    field: usize,
    seen: Vec<FieldCount>,
    /// Maximum counts that were written before the size was known, and now are.
    late: Vec<(Place, u32)>,
}

/// Where a maximum count stands that was written: the number of the segment, and the octet there.
pub(super) type Place = (usize, usize);

/// What was met of one field. A size and its sequence come in any order: whichever comes second is compared
/// with the first.
#[derive(Debug, Clone, Copy, Default)]
struct FieldCount {
    /// The number that the field holds.
    value: Option<i64>,
    /// How long the sequence is.
    count: Option<Count>,
    /// The field that says how long it is.
    sized_by: Option<usize>,
    /// Whether attributes around it say more of its size ([`Extent`]).
    written: bool,
    /// Whether it is a union that something beside it chooses.
    switched: bool,
    /// The discriminator of the union, and the bits of it that travel.
    choice: Option<(i64, u32)>,
}

/// The length of a sequence or string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    /// The maximum count, if one travels.
    max: Option<u32>,
    actual: u32,
    /// Where the maximum count stands, if it may still become another one.
    open: Option<Place>,
}

/// What contradicts each other.
#[derive(Debug)]
pub(super) struct Contradiction {
    pub(super) what: Subject,
    /// What is said of it.
    pub(super) said: i64,
    /// What says it: a field, or an expression with fields.
    pub(super) name: String,
}

/// What is said to be otherwise than it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject {
    /// A sequence has so many elements, or room for so many.
    Elements(u32),
    /// A sequence begins with the first element of its array, as all do here.
    Offset,
    /// A union has the arm for this.
    Arm(i64),
}

impl Counts {
    /// Of a struct, if a field of it is sized or chosen by another.
    pub(super) fn of(shape: &Hold<Struct>) -> Option<Self> {
        // Most structs hold none: tell that without allocating.
        shape
            .fields
            .iter()
            .find(|field| sized(field).is_some() || is_written(field) || switch_of(&field.shape).is_some())?;
        let sized_by = |field: &Field| {
            let name = sized(field)?.size.as_ref()?;
            shape.fields.iter().position(|other| other.name == *name)
        };
        let seen = shape.fields.iter().map(|field| FieldCount {
            sized_by: sized_by(field),
            written: is_written(field),
            switched: switch_of(&field.shape).is_some(),
            ..FieldCount::default()
        });
        let seen: Vec<FieldCount> = seen.collect();
        let counts = seen.iter().any(|seen| seen.sized_by.is_some() || seen.written || seen.switched);
        counts.then(|| Self { shape: shape.clone(), field: 0, seen, late: Vec::new() })
    }

    /// Goes to the next field; `left` are to come after it.
    pub(super) fn begin(&mut self, left: usize) {
        self.field = self.seen.len().saturating_sub(left + 1);
    }

    /// The field holds this number.
    pub(super) fn value(&mut self, value: i64) -> Result<(), Contradiction> {
        let sizing = self.field;
        let Some(seen) = self.seen.get_mut(sizing) else { return Ok(()) };
        seen.value = Some(value);
        for field in 0..self.seen.len() {
            let Some(seen) = self.seen.get(field) else { continue };
            if seen.count.is_some() && (seen.written || seen.sized_by == Some(sizing)) {
                self.agree(field)?;
            } else if seen.choice.is_some() {
                self.chosen(field)?;
            }
        }
        Ok(())
    }

    /// The number that says how long the field is, if it is known already.
    pub(super) fn size(&self) -> Option<i64> {
        self.size_of(self.field).map(|size| size.value)
    }

    /// The field is a sequence or string so long.
    pub(super) fn count(&mut self, count: Count) -> Result<(), Contradiction> {
        let Some(seen) = self.seen.get_mut(self.field) else { return Ok(()) };
        seen.count = Some(count);
        if seen.written || seen.sized_by.is_some() { self.agree(self.field) } else { Ok(()) }
    }

    /// The field is a union whose discriminator is this, in so many bits.
    pub(super) fn choose(&mut self, discriminator: i64, bits: u32) -> Result<(), Contradiction> {
        let Some(seen) = self.seen.get_mut(self.field).filter(|seen| seen.switched) else { return Ok(()) };
        seen.choice = Some((discriminator, bits));
        self.chosen(self.field)
    }

    /// Whether a union has the arm that is chosen beside it, as far as that is known. What chooses may be wider than the discriminator,
    /// which is as many of its bits as travel.
    fn chosen(&self, field: usize) -> Result<(), Contradiction> {
        let Some((discriminator, bits)) = self.seen.get(field).and_then(|seen| seen.choice) else {
            return Ok(());
        };
        let text = self.shape.fields.get(field).and_then(|field| switch_of(&field.shape)).unwrap_or_default();
        let Some(value) = compute(text, &|name| self.value_of(name)) else { return Ok(()) };
        if (value ^ discriminator) << i64::BITS.saturating_sub(bits).min(63) == 0 {
            return Ok(());
        }
        Err(Computed { value, text }.contradicts(Subject::Arm(discriminator)))
    }

    /// The maximum count of the field was written there, and its size is not known yet.
    pub(super) fn open(&mut self, place: Place) {
        if let Some(seen) = self.seen.get_mut(self.field)
            && (seen.written || seen.sized_by.is_some())
            && let Some(count) = &mut seen.count
        {
            count.open = Some(place);
        }
    }

    /// A maximum count that is to be written again, since its size is known by now.
    pub(super) fn late(&mut self) -> Option<(Place, u32)> {
        self.late.pop()
    }

    fn size_of(&self, field: usize) -> Option<Computed<'_>> {
        let seen = self.seen.get(field)?;
        if let Some(sizing) = seen.sized_by {
            let text = self.shape.fields.get(sizing)?.name.as_ref();
            return Some(Computed { value: self.seen.get(sizing)?.value?, text });
        }
        self.extent(field)?.size(&|name| self.value_of(name))
    }

    fn extent(&self, field: usize) -> Option<Extent<'_>> {
        self.seen.get(field).filter(|seen| seen.written)?;
        Extent::of(&self.shape.fields.get(field)?.shape)
    }

    /// The number that the field of this name holds, if it is known already.
    fn value_of(&self, name: &str) -> Option<i64> {
        let at = self.shape.fields.iter().position(|field| field.name == name)?;
        self.seen.get(at)?.value
    }

    /// Whether a sequence is as long as is said, as far as that is known.
    fn agree(&mut self, field: usize) -> Result<(), Contradiction> {
        let Some(mut count) = self.seen.get(field).and_then(|seen| seen.count) else { return Ok(()) };
        if let Some(size) = self.size_of(field) {
            match (count.open.take(), u32::try_from(size.value)) {
                (Some(place), Ok(max)) if max >= count.actual => {
                    count.max = Some(max);
                    self.late.push((place, max));
                }
                _ => size.check(count.max.unwrap_or(count.actual), count.max.is_some())?,
            }
            if let Some(seen) = self.seen.get_mut(field) {
                seen.count = Some(count);
            }
        }
        let Some(extent) = self.extent(field) else { return Ok(()) };
        let beside = |name: &str| self.value_of(name);
        if let Some(first) = extent.first(&beside).filter(|first| first.value != 0) {
            return Err(first.contradicts(Subject::Offset));
        }
        extent.length(&beside).map_or(Ok(()), |length| length.check(count.actual, true))
    }
}

impl Computed<'_> {
    /// Whether so many elements are as many as is said; or not more, where that is enough.
    fn check(self, count: u32, exact: bool) -> Result<(), Contradiction> {
        let fits = if exact { i64::from(count) == self.value } else { i64::from(count) <= self.value };
        if fits { Ok(()) } else { Err(self.contradicts(Subject::Elements(count))) }
    }

    fn contradicts(self, what: Subject) -> Contradiction {
        Contradiction { what, said: self.value, name: self.text.to_owned() }
    }
}

/// The sequence that a field is, or points to, if its size is said beside it.
fn sized(field: &Field) -> Option<&Sequence> {
    let mut shape = &field.shape;
    loop {
        match shape.resolved() {
            Shape::Pointer(pointer) => shape = &pointer.target,
            Shape::Optional(target) => shape = target,
            Shape::Sequence(sequence) => return Some(&**sequence).filter(|sequence| sequence.size.is_some()),
            _ => return None,
        }
    }
}

/// Whether attributes around a field say how long it is.
fn is_written(field: &Field) -> bool {
    Extent::of(&field.shape).is_some()
}

/// The counts of a sequence in this order.
pub(super) fn count_in(order: Order, max: Option<u32>, actual: u32) -> Count {
    Count { max: max.filter(|_| order != Order::Varying), actual, open: None }
}
