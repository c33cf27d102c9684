//! What a call shows: which of its values people see, and what the others follow from.
//!
//! A number that only says how long arrays beside it are (`size_is`, `length_is`) is not shown. Whoever sends
//! takes it from the arrays, whoever receives checks them by it. An array that comes out is shown without the
//! pointer to it.
//!
//! `values` decides the `Role` of each value of a list: an operation's arguments, its results, or the fields
//! of a struct. `Call` then joins the two lists of an operation: a result may be as long as an argument says
//! (`like`), have room for so many elements (`room`), or be the interface that an argument names
//! (`identity`).
//!
//! Invariants: a count is hidden only where every array that it counts is shown, and none of them can be null
//! with another meaning than empty; a value that goes both ways has the same role on both. The checks that
//! are written here are what keeps a peer from sending an array that contradicts its count.

use super::plan::Plan;
use super::types::Types;
use crate::names::{distinct, is_identifier, snake};
use crate::page::Page;
use everywire_model::contract::Direction;
use everywire_model::shape::{Field, Shape};
use everywire_model::{Interface, Operation};

/// Where values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueRole {
    /// In and inout parameters.
    Arguments,
    /// What a call yields.
    Results,
    /// In a struct.
    Fields,
}

/// What becomes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Role {
    /// It is shown as it is.
    Shown,
    /// It is the length of these arrays, by their numbers in the list; people do not see it.
    Counts(Vec<usize>),
    /// An array that is shown without its pointer.
    Bare,
}

/// One value of a list.
#[derive(Debug)]
pub(super) struct Value<'o> {
    pub(super) field: &'o Field,
    /// Its name in Rust.
    pub(super) name: String,
    pub(super) role: Role,
    /// Of a result: the argument that says how long the array is.
    like: Option<usize>,
    /// Of a result: the argument that says how many elements there is room for.
    room: Option<usize>,
    /// Of a result: the argument that says which interface it is to have.
    identity: Option<usize>,
}

/// The values of an operation.
#[derive(Debug)]
pub(super) struct Call<'o> {
    pub(super) arguments: Vec<Value<'o>>,
    pub(super) results: Vec<Value<'o>>,
    /// Whether it tells how it succeeded.
    pub(super) succeeds: bool,
}

/// An array whose length stands beside it.
struct Array<'s> {
    /// The name of the value that says how long it is.
    counted_by: &'s str,
    /// The name of the value that says how much room there is, where another one says the length.
    room: Option<&'s str>,
    /// The shape behind the pointer to it, if there is one.
    behind: Option<&'s Shape>,
}

/// The array that a value is, if its length stands beside it. A length that is an expression is no name, and
/// then nothing is hidden.
fn array(shape: &Shape) -> Option<Array<'_>> {
    let (mut at, mut behind, mut length) = (shape, None, None);
    loop {
        match at {
            Shape::Alias(alias) => {
                if let Some(written) = alias.name.strip_prefix("length_is(") {
                    length = Some(written.strip_suffix(')').filter(|name| is_identifier(name))?);
                }
                at = &alias.target;
            }
            Shape::Optional(target) if behind.is_none() => {
                behind = Some(&**target);
                at = target;
            }
            Shape::Sequence(sequence) => {
                let size = sequence.size.as_deref();
                let counted_by = length.or(size)?;
                return Some(Array { counted_by, room: size.filter(|_| length.is_some()), behind });
            }
            _ => return None,
        }
    }
}

/// Whether a shape can be a count.
fn is_integer(shape: &Shape) -> bool {
    !matches!(shape.resolved(), Shape::Bool | Shape::F32 | Shape::F64) && shape.width().is_some()
}

/// The values of a list, and what becomes of each. The names are distinct, and in the order of the fields.
pub(super) fn values(fields: &[Field], place: ValueRole) -> Vec<Value<'_>> {
    let arrays: Vec<_> = fields.iter().map(|field| array(&field.shape)).collect();
    let names = distinct(fields.iter().map(|field| field.name.as_ref()), snake);
    let mut values: Vec<Value<'_>> = Vec::with_capacity(fields.len());
    for (field, name) in fields.iter().zip(names) {
        let counted: Vec<usize> = arrays
            .iter()
            .enumerate()
            .filter(|(_, array)| array.as_ref().is_some_and(|array| array.counted_by == field.name))
            .map(|(index, _)| index)
            .collect();
        // An argument that may be null is another thing than an empty array: then the number tells more than its length.
        let bare = |index: &usize| {
            place != ValueRole::Arguments
                || arrays.get(*index).and_then(Option::as_ref).is_some_and(|array| array.behind.is_none())
        };
        let role = if !counted.is_empty() && is_integer(&field.shape) && counted.iter().all(bare) {
            Role::Counts(counted)
        } else {
            Role::Shown
        };
        values.push(Value { field, name, role, like: None, room: None, identity: None });
    }
    bare(&mut values, place);
    values
}

/// Takes the pointers from arrays whose length is known without them. Results always, since an array that is
/// missing and one that is empty are the same to people.
fn bare(values: &mut [Value<'_>], place: ValueRole) {
    for index in 0..values.len() {
        let counted =
            values.iter().any(|value| matches!(&value.role, Role::Counts(arrays) if arrays.contains(&index)));
        let known = place == ValueRole::Results || (place == ValueRole::Fields && counted);
        let Some(value) = values.get_mut(index).filter(|value| value.role == Role::Shown) else { continue };
        if known && array(&value.field.shape).is_some_and(|array| array.behind.is_some()) {
            value.role = Role::Bare;
        }
    }
}

impl<'o> Call<'o> {
    /// The values of an operation of `owner`.
    pub(super) fn of(plan: &Plan<'_>, owner: &Interface, operation: &'o Operation) -> Self {
        let mut arguments = values(operation.arguments.fields(), ValueRole::Arguments);
        let mut results = values(operation.results.fields(), ValueRole::Results);
        for both in operation.parameters.iter().filter(|parameter| parameter.direction == Direction::InOut) {
            let named = |value: &&mut Value<'_>| value.field.name == both.field.name;
            let into = arguments.iter_mut().find(named);
            let out = results.iter_mut().find(named);
            if let (Some(into), Some(out)) = (into, out)
                // Hidden in one direction alone, it would be a parameter that nobody can give.
                && (matches!(into.role, Role::Counts(_)) != matches!(out.role, Role::Counts(_)))
            {
                into.role = Role::Shown;
                out.role = Role::Shown;
            }
        }
        let argument = |name: &str| {
            arguments.iter().position(|value| value.field.name == name && is_integer(&value.field.shape))
        };
        let own: Vec<&str> = operation.results.fields().iter().map(|field| field.name.as_ref()).collect();
        for value in &mut results {
            if let Some(array) = array(&value.field.shape) {
                // Only an argument that is no result itself: a result checks its own arrays.
                value.like = argument(array.counted_by).filter(|_| !own.contains(&array.counted_by));
                value.room = array.room.filter(|room| !own.contains(room)).and_then(argument);
            }
            value.identity = value.field.shape.interface_argument().and_then(|name| {
                arguments.iter().position(|value| value.field.name == name && is_guid(&value.field.shape))
            });
        }
        Self { arguments, results, succeeds: !operation.oneway && plan.succeeds_variously(owner, operation) }
    }

    /// The parameters that people see.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &Value<'o>> {
        self.arguments.iter().filter(|value| value.is_shown())
    }

    /// The results that people see.
    pub(super) fn yields(&self) -> impl Iterator<Item = &Value<'o>> {
        self.results.iter().filter(|value| value.is_shown())
    }

    /// Whether results are returned as they are received.
    pub(super) fn yields_as_is(&self) -> bool {
        self.results.iter().all(|value| value.role == Role::Shown && value.like.is_none())
    }

    /// Whether results travel as a servant returns them.
    pub(super) fn answers_as_is(&self) -> bool {
        let bound = |value: &Value<'_>| value.room.is_some() || value.identity.is_some();
        self.yields_as_is() && !self.results.iter().any(bound)
    }

    /// Names of all arguments.
    pub(super) fn argument_names(&self) -> Vec<String> {
        self.arguments.iter().map(|value| value.name.clone()).collect()
    }

    /// What a call yields, as a type. Without the error.
    pub(super) fn ok(&self, types: &Types<'_, '_>) -> String {
        let yields: Vec<String> = self.yields().map(|value| value.shown(types)).collect();
        let plain = match yields.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        if self.succeeds { format!("ew::Success<{plain}>") } else { plain }
    }

    /// Writes, by `check`, that results are as long as the arguments of these names say. `length` says how
    /// the length of an array is written there.
    pub(super) fn check_like(
        &self,
        check: &str,
        arguments: &[String],
        results: &[String],
        length: Length,
        page: &mut Page,
    ) {
        for (index, argument) in self.arguments.iter().enumerate() {
            let like = self.results.iter().zip(results).filter(|(value, _)| value.like == Some(index));
            let lengths: Vec<_> = like.map(|(value, name)| length(value, name)).collect();
            if let (false, Some(name)) = (lengths.is_empty(), arguments.get(index)) {
                check_lengths(check, argument, name, &lengths, page);
            }
        }
    }

    /// Writes that results have no more elements than the arguments of these names say.
    pub(super) fn check_room(&self, arguments: &[String], results: &[String], page: &mut Page) {
        for (value, name) in self.results.iter().zip(results) {
            let Some(room) = value.room else { continue };
            if let (Some(argument), Some(said)) = (self.arguments.get(room), arguments.get(room)) {
                check_lengths("within", argument, said, &[length(value, name)], page);
            }
        }
    }

    /// The expression by which a skeleton answers with a result of this name. The wrappers are of
    /// `everywire_model::counts`.
    pub(super) fn answered(&self, value: &Value<'_>, name: &str, arguments: &[String]) -> String {
        let mut text = name.to_owned();
        if let Some(iid) = value.identity.and_then(|index| arguments.get(index)) {
            return format!("{iid}.identify({text})");
        }
        if let Some(room) = value.room.and_then(|index| arguments.get(index)) {
            text = format!("ew::counts::Within({text}, {room})");
        }
        if value.role == Role::Bare { format!("ew::counts::Present({text})") } else { text }
    }
}

impl Value<'_> {
    /// Whether people see it.
    pub(super) fn is_shown(&self) -> bool {
        !matches!(self.role, Role::Counts(_))
    }

    /// Its type as a result, or in a struct.
    pub(super) fn shown(&self, types: &Types<'_, '_>) -> String {
        match self.bare() {
            Some(shape) => types.owned(shape),
            None => types.result(&self.field.shape),
        }
    }

    /// The shape without the pointer, where it is shown without.
    pub(super) fn bare(&self) -> Option<&Shape> {
        if self.role == Role::Bare { array(&self.field.shape)?.behind } else { None }
    }
}

/// How the length of an array is written. It is given the value and its name.
type Length = fn(&Value<'_>, &str) -> String;

/// `("name", value.len())`, where the compiler does not know yet what the value is.
pub(super) fn late_length(value: &Value<'_>, name: &str) -> String {
    format!("({:?}, ew::counts::len(&{name}))", value.field.name)
}

/// `("name", value.len())`.
pub(super) fn length(value: &Value<'_>, name: &str) -> String {
    format!("({:?}, {name}.len())", value.field.name)
}

/// Writes one check of a count against the lengths of arrays.
fn check_lengths(check: &str, count: &Value<'_>, name: &str, lengths: &[String], page: &mut Page) {
    let head = format!("ew::counts::{check}({:?}, {name}, &[", count.field.name);
    page.list(&head, lengths, "])?;");
}

/// Writes `let count: u32 = ..` for each count that follows from arrays of these names.
pub(super) fn write_counts(types: &Types<'_, '_>, values: &[Value<'_>], names: &[String], page: &mut Page) {
    for (value, name) in values.iter().zip(names) {
        if let Role::Counts(arrays) = &value.role {
            let lengths = lengths(values, names, arrays, length);
            let head = format!(
                "let {name}: {} = ew::counts::of({:?}, &[",
                types.owned(&value.field.shape),
                value.field.name
            );
            page.list(&head, &lengths, "])?;");
        }
    }
}

/// Writes that arrays of these names are as long as their counts say.
pub(super) fn check_counts(
    types: &Types<'_, '_>,
    values: &[Value<'_>],
    names: &[String],
    length: Length,
    page: &mut Page,
) {
    for (value, name) in values.iter().zip(names) {
        let Role::Counts(arrays) = &value.role else { continue };
        let check = format!("agree::<{}>", types.owned(&value.field.shape));
        check_lengths(&check, value, name, &lengths(values, names, arrays, length), page);
    }
}

/// The same for the fields of a struct, where an array may be null whatever its count says. An array without
/// its pointer may lack.
pub(super) fn check_fields(types: &Types<'_, '_>, values: &[Value<'_>], names: &[String], page: &mut Page) {
    for (value, name) in values.iter().zip(names) {
        let Role::Counts(arrays) = &value.role else { continue };
        let is_bare = |index: &&usize| values.get(**index).is_some_and(|value| value.role == Role::Bare);
        let (may_lack, there): (Vec<usize>, Vec<usize>) = arrays.iter().partition(is_bare);
        for (check, arrays) in [("agree_if_any", may_lack), ("agree", there)] {
            if !arrays.is_empty() {
                let check = format!("{check}::<{}>", types.owned(&value.field.shape));
                check_lengths(&check, value, name, &lengths(values, names, &arrays, late_length), page);
            }
        }
    }
}

/// The lengths of the arrays with these numbers.
fn lengths(values: &[Value<'_>], names: &[String], arrays: &[usize], length: Length) -> Vec<String> {
    let one = |index: &usize| Some(length(values.get(*index)?, names.get(*index)?));
    arrays.iter().filter_map(one).collect()
}

/// Whether a shape is the struct that a GUID is in contracts (MS-DTYP 2.3.4.1): of that name, with those members of those types. One
/// that is called so by chance is a struct like others.
pub(super) fn is_guid(shape: &Shape) -> bool {
    let is_member = |at: usize, field: &Field| match (at, &*field.name, field.shape.resolved()) {
        (0, "Data1", Shape::U32) | (1, "Data2", Shape::U16) | (2, "Data3", Shape::U16) => true,
        (3, "Data4", Shape::Array(array)) => array.len == 8 && matches!(array.element.resolved(), Shape::U8),
        _ => false,
    };
    matches!(shape.resolved(), Shape::Struct(fields)
        if fields.get().is_some_and(|fields| fields.name == "GUID"
            && fields.fields.len() == 4
            && fields.fields.iter().enumerate().all(|(at, field)| is_member(at, field))))
}
