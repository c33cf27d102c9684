//! Lists of descriptions that begin with those of bases, made when the program is compiled.

use crate::contract::{Attribute, Interface, Operation, Parameter};
use crate::shape::{Hold, Name, Shape, Struct};
use std::borrow::Cow;

/// The operations of a derived interface: those of parts of its bases (the base, the first operation, how many), then its own.
#[must_use]
pub const fn inherit_operations<const N: usize>(
    parts: &[(&'static Interface, usize, usize)],
    own: &'static [Operation],
) -> [Operation; N] {
    let mut all = [const { NOTHING }; N];
    let mut next = 0;
    let mut part = 0;
    while part < parts.len() {
        let (base, first, count) = parts[part];
        let list = operations(&base.operations);
        let mut index = 0;
        while index < count {
            put(&mut all[next], operation(&list[first + index]));
            next += 1;
            index += 1;
        }
        part += 1;
    }
    let mut index = 0;
    while index < own.len() {
        put(&mut all[next], operation(&own[index]));
        next += 1;
        index += 1;
    }
    assert!(next == N, "the parts are not as long as the list");
    all
}

/// The attributes of a derived interface: those of parts of its bases (the base, the first attribute, how many, and by how much the numbers of
/// their operations are greater here), then its own.
#[must_use]
pub const fn inherit_attributes<const N: usize>(
    parts: &[(&'static Interface, usize, usize, usize)],
    own: &'static [Attribute],
) -> [Attribute; N] {
    let mut all = [const { NO_ATTRIBUTE }; N];
    let mut next = 0;
    let mut part = 0;
    while part < parts.len() {
        let (base, first, count, further) = parts[part];
        let list = attributes(&base.attributes);
        let mut index = 0;
        while index < count {
            put(&mut all[next], attribute(&list[first + index], further));
            next += 1;
            index += 1;
        }
        part += 1;
    }
    let mut index = 0;
    while index < own.len() {
        put(&mut all[next], attribute(&own[index], 0));
        next += 1;
        index += 1;
    }
    assert!(next == N, "the parts are not as long as the list");
    all
}

/// Puts a value where one stands that has nothing to drop: a constant function cannot drop it.
const fn put<T>(place: &mut T, value: T) {
    std::mem::forget(std::mem::replace(place, value));
}

const NOTHING: Operation = Operation {
    name: Cow::Borrowed(""),
    label: Cow::Borrowed(""),
    parameters: Cow::Borrowed(&[]),
    returns: Shape::Void,
    arguments: Shape::Void,
    results: Shape::Void,
    raises: Cow::Borrowed(&[]),
    oneway: false,
    idempotent: false,
    id: None,
    notes: Cow::Borrowed(&[]),
    doc: Cow::Borrowed(""),
};

const NO_ATTRIBUTE: Attribute = Attribute {
    name: Cow::Borrowed(""),
    shape: Shape::Void,
    getter: 0,
    setter: None,
    notify: crate::contract::Notify::Value,
};

const fn operation(from: &'static Operation) -> Operation {
    Operation {
        name: name(&from.name),
        label: name(&from.label),
        parameters: Cow::Borrowed(parameters(&from.parameters)),
        returns: shape(&from.returns),
        arguments: shape(&from.arguments),
        results: shape(&from.results),
        raises: Cow::Borrowed(raises(&from.raises)),
        oneway: from.oneway,
        idempotent: from.idempotent,
        id: from.id,
        notes: Cow::Borrowed(notes(&from.notes)),
        doc: name(&from.doc),
    }
}

const fn attribute(from: &'static Attribute, further: usize) -> Attribute {
    Attribute {
        name: name(&from.name),
        shape: shape(&from.shape),
        getter: from.getter + further,
        setter: match from.setter {
            Some(setter) => Some(setter + further),
            None => None,
        },
        notify: from.notify,
    }
}

const fn name(from: &'static Name) -> Name {
    match from {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(_) => panic!("{}", STATIC),
    }
}

const STATIC: &str = "only descriptions of generated code can be inherited";

/// What a `Cow` of generated code borrows.
macro_rules! borrowed {
    ($($name:ident $of:ty),*) => {$(
        // Only of what is borrowed can more than a reference be kept.
        #[allow(clippy::ptr_arg)]
        const fn $name(from: &'static Cow<'static, [$of]>) -> &'static [$of] {
            match from {
                Cow::Borrowed(list) => list,
                Cow::Owned(_) => panic!("{}", STATIC),
            }
        }
    )*};
}

borrowed!(operations Operation, attributes Attribute, parameters Parameter, raises Hold<Struct>, notes (Name, Name));

const fn hold<T>(from: &'static Hold<T>) -> Hold<T> {
    match from {
        Hold::Static(held) => Hold::Static(held),
        _ => panic!("{}", STATIC),
    }
}

const fn shape(from: &'static Shape) -> Shape {
    match from {
        Shape::Void => Shape::Void,
        Shape::Bool => Shape::Bool,
        Shape::U8 => Shape::U8,
        Shape::I8 => Shape::I8,
        Shape::U16 => Shape::U16,
        Shape::I16 => Shape::I16,
        Shape::U32 => Shape::U32,
        Shape::I32 => Shape::I32,
        Shape::U64 => Shape::U64,
        Shape::I64 => Shape::I64,
        Shape::F32 => Shape::F32,
        Shape::F64 => Shape::F64,
        Shape::Char => Shape::Char,
        Shape::WideChar => Shape::WideChar,
        Shape::Variant => Shape::Variant,
        Shape::TypeCode => Shape::TypeCode,
        Shape::Handle => Shape::Handle,
        Shape::Text(text) => Shape::Text(*text),
        Shape::Struct(held) => Shape::Struct(hold(held)),
        Shape::Union(held) => Shape::Union(hold(held)),
        Shape::Enum(held) => Shape::Enum(hold(held)),
        Shape::Sequence(held) => Shape::Sequence(hold(held)),
        Shape::Array(held) => Shape::Array(hold(held)),
        Shape::Map(held) => Shape::Map(hold(held)),
        Shape::Optional(held) => Shape::Optional(hold(held)),
        Shape::Pointer(held) => Shape::Pointer(hold(held)),
        Shape::Reference(held) => Shape::Reference(hold(held)),
        Shape::Alias(held) => Shape::Alias(hold(held)),
    }
}
