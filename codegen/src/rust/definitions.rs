//! What definitions of a contract are called, and what some of them are in Rust: for the plan and for all who write by it.

use crate::names::{self, camel, distinct, is_identifier};
use everywire_model::shape::{Alias, Enum, Shape, Struct, Union};
use everywire_model::{Definition, Value};

/// Whether a struct is a tuple in Rust: it has no name, and no more fields than tuples that can be compared.
/// The standard library compares tuples of up to twelve.
pub(super) fn is_tuple(shape: &Struct) -> bool {
    const MOST: usize = 12;
    shape.name.is_empty() && (1..=MOST).contains(&shape.fields.len())
}

/// Names of an enumeration's members.
pub(super) fn member_names(shape: &Enum) -> Vec<String> {
    distinct(shape.members.iter().map(|(name, _)| name.as_ref()), camel)
}

/// Names of a union's arms, and of the variant for discriminators that select none. The variant is called
/// `Empty`, unless an arm is.
pub(super) fn arm_names(shape: &Union) -> (Vec<String>, String) {
    let mut names = distinct(shape.arms.iter().map(|arm| arm.field.name.as_ref()).chain(["Empty"]), camel);
    let empty = names.pop().unwrap_or_default();
    (names, empty)
}

/// The scoped name of a definition. It may be empty for a type.
pub(super) fn name_of(definition: &Definition) -> &str {
    match definition {
        Definition::Type(shape) => type_name(shape),
        Definition::Exception(exception) => &exception.name,
        Definition::Constant(constant) => &constant.name,
        Definition::Interface(interface) => &interface.name,
    }
}

/// The scoped name of a type; empty if it has none.
pub(super) fn type_name(shape: &Shape) -> &str {
    match shape {
        Shape::Struct(shape) => &shape.name,
        Shape::Union(shape) => &shape.name,
        Shape::Enum(shape) => &shape.name,
        Shape::Alias(shape) if is_spelling(shape) => "",
        Shape::Alias(shape) => &shape.name,
        _ => "",
    }
}

/// Whether an alias only says how a value is held: an attribute, or one word for arrays of anything.
pub(super) fn is_spelling(alias: &Alias) -> bool {
    alias.name.contains('(') || alias.name == INLINE
}

/// Whether an alias is an attribute that decides bytes: codecs compute sizes by it and compare them. A length that is the name of a
/// value beside it is checked by the code that is generated, and the others decide no bytes.
pub(super) fn is_on_the_wire(alias: &Alias) -> bool {
    let attributes = ["size_is(", "max_is(", "first_is(", "last_is(", "length_is(", "string(", "switch_is("];
    let plain = |name: &str| is_identifier(name.strip_prefix("length_is(")?.strip_suffix(')')?).then_some(());
    attributes.iter().any(|attribute| alias.name.starts_with(attribute)) && plain(&alias.name).is_none()
}

/// The name that many shapes share, so each of them is described where it stands.
pub(super) const INLINE: &str = "SAFEARRAY";

/// The last part of a scoped name.
pub(super) fn local(name: &str) -> &str {
    names::split(name).1
}

/// The scope of a scoped name; empty for the root.
pub(super) fn scope_of(name: &str) -> &str {
    names::split(name).0
}

/// A constant's value as an expression; values without a literal have none. A number that
/// is not finite has no literal.
pub(super) fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => format!("Value::Bool({value})"),
        Value::Integer(value) => format!("Value::Integer({value})"),
        Value::Float(value) if value.is_finite() => format!("Value::Float({value:?})"),
        Value::Char(value) => format!("Value::Char({value:?})"),
        Value::Bytes(value) => format!("Value::Bytes(vec!{:?}.into())", &value[..]),
        Value::Text(value) => format!("Value::Text({value:?}.into())"),
        Value::Member(value) => format!("Value::Member({value:?}.into())"),
        _ => return None,
    })
}
