//! What an open composite knows of its values beyond what the visit says with each: which are held in another form, and
//! which count others (`size_is`).
//!
//! Invariants: `Counts` has one entry for each field of the struct, in order; `field` is the one that is
//! being visited. Sequence and size may come in either order, so each of both compares with the other if that
//! was seen already. A sequence that may be shorter than its room (`length_is`) must not exceed the size; any
//! other must equal it.

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
}

/// The counts of an open struct: sequences, and the fields that say how long they are.
#[derive(Debug)]
pub(super) struct Counts {
    shape: Hold<Struct>,
    /// The field that is being visited.
    field: usize,
    seen: Vec<FieldCount>,
}

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
}

/// The length of a sequence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    elements: u32,
    /// Whether the field beside it must say just that; else it may say more.
    exact: bool,
}

/// What contradicts each other.
#[derive(Debug)]
pub(super) struct Contradiction {
    pub(super) count: u32,
    pub(super) size: i64,
    pub(super) name: String,
}

impl Counts {
    /// Of a struct, if a field of it is sized by another.
    pub(super) fn of(shape: &Hold<Struct>) -> Option<Self> {
        // Most structs hold none: tell that without allocating.
        shape.fields.iter().find(|field| sized(field).is_some())?;
        let sized_by = |field: &Field| {
            let name = sized(field)?.size.as_ref()?;
            shape.fields.iter().position(|other| other.name == *name)
        };
        let seen = shape
            .fields
            .iter()
            .map(|field| FieldCount { sized_by: sized_by(field), ..FieldCount::default() });
        let seen: Vec<FieldCount> = seen.collect();
        seen.iter().any(|seen| seen.sized_by.is_some()).then(|| Self { shape: shape.clone(), field: 0, seen })
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
        let mut counted = self.seen.iter().filter(|seen| seen.sized_by == Some(sizing));
        counted.try_for_each(|seen| seen.count.map_or(Ok(()), |count| self.agree(count, value, sizing)))
    }

    /// The number that says how long the field is, if it came before.
    pub(super) fn size(&self) -> Option<i64> {
        self.seen.get(self.seen.get(self.field)?.sized_by?)?.value
    }

    /// The field is a sequence so long.
    pub(super) fn count(&mut self, count: Count) -> Result<(), Contradiction> {
        let size = self.size();
        let Some(seen) = self.seen.get_mut(self.field) else { return Ok(()) };
        seen.count = Some(count);
        match (seen.sized_by, size) {
            (Some(sizing), Some(size)) => self.agree(count, size, sizing),
            _ => Ok(()),
        }
    }

    /// Whether a sequence is as long as the field number `sizing` says. A varying array may be shorter: it
    /// carries only a part of its room.
    fn agree(&self, count: Count, size: i64, sizing: usize) -> Result<(), Contradiction> {
        let Count { elements: count, exact } = count;
        if i64::from(count) == size || (!exact && i64::from(count) < size) {
            return Ok(());
        }
        let name = self.shape.fields.get(sizing).map(|field| field.name.to_string()).unwrap_or_default();
        Err(Contradiction { count, size, name })
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

/// How the count of a sequence in this order relates to its size.
pub(super) fn count_in(order: Order, max: Option<u32>, actual: u32) -> Count {
    match max.filter(|_| order != Order::Varying) {
        Some(max) => Count { elements: max, exact: true },
        None => Count { elements: actual, exact: false },
    }
}
