//! Descriptions as statics: what generated code writes at the foot of each module.
//!
//! A `static` may hold no temporary with a destructor, so the parts of a description that are held by reference are
//! made by macros, each in a static of its own (a constant could not be part of a type that contains itself); what is
//! held by value is made by functions.
//!
//! ```
//! use everywire_model::describe::*;
//!
//! pub static POINT: Struct = record!("Point", "IDL:Point:1.0", { "x": Shape::F64, "y": Shape::F64 });
//! pub static CANVAS_OPERATIONS: [Operation; 2] = [
//!     operation!("draw", (in "at": structure(&POINT), out "touched": sequence!(structure(&POINT))) -> Shape::Bool),
//!     operation!(oneway "clear", () -> Shape::Void),
//! ];
//! pub static CANVAS: Interface = interface!("Canvas", "IDL:Canvas:1.0", [], 0, &CANVAS_OPERATIONS);
//!
//! assert_eq!(CANVAS.operations[0].results.fields().len(), 2);
//! ```

pub use crate::contract::{
    Attribute, Constant, Direction, Interface, InterfaceKind, Notify, Operation, Parameter, Signal,
};
pub use crate::shape::{
    Alias, Arm, Array, Enum, Field, Hold, Map, Name, Order, Pointer, PointerKind, Referent, Sequence, Shape,
    Struct, Text, TextKind, Union,
};
pub use crate::value::Value;
pub use std::borrow::Cow;

/// Narrow text without a bound.
pub const TEXT: Shape = Shape::Text(Text::NARROW);
/// Wide text without a bound.
pub const WIDE_TEXT: Shape = Shape::Text(Text::WIDE);
/// A reference to any object.
pub const ANY_OBJECT: Shape =
    Shape::Reference(Hold::Static(&Referent { name: Cow::Borrowed(""), id: Cow::Borrowed("") }));

/// A constant of a contract: its scoped name, what it looks like, its value.
pub const fn constant(name: &'static str, shape: Shape, value: Value) -> Constant {
    Constant { name: Cow::Borrowed(name), shape, value, doc: Cow::Borrowed("") }
}

/// The shape of a struct or exception.
pub const fn structure(shape: &'static Struct) -> Shape {
    Shape::Struct(Hold::Static(shape))
}

/// The shape of a union.
pub const fn union(shape: &'static Union) -> Shape {
    Shape::Union(Hold::Static(shape))
}

/// The shape of an enumeration.
pub const fn enumeration(shape: &'static Enum) -> Shape {
    Shape::Enum(Hold::Static(shape))
}

/// The shape behind another name.
pub const fn alias(shape: &'static Alias) -> Shape {
    Shape::Alias(Hold::Static(shape))
}

/// Text of this kind with at most `bound` characters.
pub const fn text(kind: TextKind, bound: Option<u32>) -> Shape {
    Shape::Text(Text { kind, bound })
}

/// A field of a struct.
pub const fn field(name: &'static str, shape: Shape) -> Field {
    Field { name: Cow::Borrowed(name), shape }
}

/// A parameter of an operation.
pub const fn parameter(direction: Direction, name: &'static str, shape: Shape) -> Parameter {
    Parameter { direction, field: field(name, shape) }
}

/// An attribute with the numbers of its accessors.
pub const fn attribute(name: &'static str, shape: Shape, getter: usize, setter: Option<usize>) -> Attribute {
    notifying(name, shape, getter, setter, Notify::Value)
}

/// An attribute, and what subscribers are told when it changes.
pub const fn notifying(
    name: &'static str,
    shape: Shape,
    getter: usize,
    setter: Option<usize>,
    notify: Notify,
) -> Attribute {
    Attribute { name: Cow::Borrowed(name), shape, getter, setter, notify }
}

/// An operation with the number that its contract gives it for callers who look it up by name.
pub const fn numbered(mut operation: Operation, id: i32) -> Operation {
    operation.id = Some(id);
    operation
}

/// An operation that may run twice, as its contract says.
pub const fn idempotent(mut operation: Operation) -> Operation {
    operation.idempotent = true;
    operation
}

/// An interface of another kind than [`InterfaceKind::Plain`].
pub const fn of_kind(mut interface: Interface, kind: InterfaceKind) -> Interface {
    interface.kind = kind;
    interface
}

/// A signal that is a call of the operation number `index` of an interface that the listener implements.
pub const fn sunk(mut signal: Signal, interface: &'static Interface, index: usize) -> Signal {
    // What stood there has nothing to drop; a constant function cannot drop it.
    std::mem::forget(signal.sink.replace((Hold::Static(interface), index)));
    signal
}

/// An interface that has other identities as well: pairs of contract language and identity.
pub const fn known_as(mut interface: Interface, identities: &'static [(Name, Name)]) -> Interface {
    // As in `sunk`.
    std::mem::forget(std::mem::replace(&mut interface.identities, Cow::Borrowed(identities)));
    interface
}

/// An operation of which its contract says more: pairs of what, and the value.
pub const fn noted(mut operation: Operation, notes: &'static [(Name, Name)]) -> Operation {
    // As in `sunk`.
    std::mem::forget(std::mem::replace(&mut operation.notes, Cow::Borrowed(notes)));
    operation
}

/// An interface of which its contract says more: pairs of what, and the value.
pub const fn annotated(mut interface: Interface, notes: &'static [(Name, Name)]) -> Interface {
    // As in `sunk`.
    std::mem::forget(std::mem::replace(&mut interface.notes, Cow::Borrowed(notes)));
    interface
}

/// An interface that has values of any type, and the named types of its contract.
pub const fn knowing(mut interface: Interface, types: &'static Types) -> Interface {
    // As in `sunk`.
    std::mem::forget(interface.types.replace(Hold::Static(types)));
    interface
}

/// The named types of a contract.
pub type Types = Cow<'static, [Shape]>;

/// An arm of a union.
pub const fn arm(labels: &'static [i64], default: bool, name: &'static str, shape: Shape) -> Arm {
    Arm { labels: Cow::Borrowed(labels), default, field: field(name, shape) }
}

/// Another name for a shape.
pub const fn named(name: &'static str, id: &'static str, target: Shape) -> Alias {
    Alias { name: Cow::Borrowed(name), id: Cow::Borrowed(id), target }
}

/// A part held by reference: `held!(in Type = value)`, or a slice `held!([Type] items)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_held {
    (in $type:ident = $value:expr) => {{
        static __HELD: $crate::shape::$type = $value;
        $crate::shape::Hold::Static(&__HELD)
    }};
    ([$type:ty] $($item:expr),* $(,)?) => {{
        static __HELD: &'static [$type] = &[$($item),*];
        ::std::borrow::Cow::Borrowed(__HELD)
    }};
}

/// A [`Struct`]: `record!("Point", "IDL:Point:1.0", { "x": Shape::F64, "y": Shape::F64 })`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_record {
    ($name:expr, $id:expr, { $($field:literal : $shape:expr),* $(,)? }) => {
        $crate::shape::Struct {
            name: ::std::borrow::Cow::Borrowed($name),
            id: ::std::borrow::Cow::Borrowed($id),
            fields: $crate::__describe_held!([$crate::shape::Field]
                $($crate::describe::field($field, $shape)),*),
        }
    };
}

/// The named types of a contract ([`Types`]): `types!(structure(&POINT), enumeration(&COLOR))`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_types {
    ($($shape:expr),* $(,)?) => { $crate::__describe_held!([$crate::shape::Shape] $($shape),*) };
}

/// The shape of a struct without a name: `nameless!({ "field_1": Shape::I32, "field_2": TEXT })`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_nameless {
    ($fields:tt) => {
        $crate::shape::Shape::Struct($crate::__describe_held!(in Struct =
            $crate::__describe_record!("", "", $fields)))
    };
}

/// The same with the field names that languages without them go by: `tuple!(Shape::I32, TEXT)`, up to 12.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_tuple {
    (@ [$($fields:tt)*] [$($names:literal)*]) => { $crate::__describe_nameless!({ $($fields)* }) };
    (@ [$($fields:tt)*] [$name:literal $($names:literal)*] $shape:expr $(, $rest:expr)*) => {
        $crate::__describe_tuple!(@ [$($fields)* $name: $shape,] [$($names)*] $($rest),*)
    };
    ($($shape:expr),* $(,)?) => {
        $crate::__describe_tuple!(@ [] ["field_1" "field_2" "field_3" "field_4" "field_5" "field_6" "field_7"
            "field_8" "field_9" "field_10" "field_11" "field_12"] $($shape),*)
    };
}

/// An [`Enum`] of 32 bits: `variants!("Color", "IDL:Color:1.0", { "red" = 0, "green" = 1 })`; one of other bits, or one that is open:
/// `variants!("Flags", "", 16, open, { .. })`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_variants {
    ($name:expr, $id:expr, { $($member:literal = $value:expr),* $(,)? }) => {
        $crate::__describe_variants!($name, $id, 32, { $($member = $value),* })
    };
    ($name:expr, $id:expr, $bits:literal, { $($member:literal = $value:expr),* $(,)? }) => {
        $crate::shape::Enum { open: false, ..$crate::__describe_variants!($name, $id, $bits, open, { $($member = $value),* }) }
    };
    ($name:expr, $id:expr, $bits:literal, open, { $($member:literal = $value:expr),* $(,)? }) => {
        $crate::shape::Enum {
            name: ::std::borrow::Cow::Borrowed($name),
            id: ::std::borrow::Cow::Borrowed($id),
            members: $crate::__describe_held!([($crate::shape::Name, i32)]
                $((::std::borrow::Cow::Borrowed($member), $value)),*),
            bits: $bits,
            open: true,
        }
    };
}

/// A [`Union`]: `arms!("Shape", "IDL:Shape:1.0", enumeration(&KIND), { [0] "radius": Shape::F64, default [] "x": .. })`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_arms {
    ($name:expr, $id:expr, $discriminator:expr, {
        $($(@$default:ident)? [$($label:expr),*] $arm:literal : $shape:expr),* $(,)?
    }) => {
        $crate::shape::Union {
            name: ::std::borrow::Cow::Borrowed($name),
            id: ::std::borrow::Cow::Borrowed($id),
            discriminator: $discriminator,
            arms: $crate::__describe_held!([$crate::shape::Arm]
                $($crate::describe::arm(
                    &[$($label),*], $crate::__describe_flag!($($default)?), $arm, $shape,
                )),*),
        }
    };
}

/// What stands there, or an empty list.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_or_none {
    () => {
        &[]
    };
    ($list:expr) => {
        $list
    };
}

/// The operations of a derived interface: parts of its bases, then its own: `inherit!([(&BASE, 0, 2)], [operation!(..)])`, with the first
/// operation of each part and how many they are.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_inherit {
    ([$($part:expr),* $(,)?], [$($own:expr),* $(,)?]) => {{
        static __OWN: &'static [$crate::contract::Operation] = &[$($own),*];
        $crate::generated::inherit_operations(&[$($part),*], __OWN)
    }};
}

/// The attributes of an interface, mostly its own; of a derived one how many they are and, of each part of its bases, the first attribute, their
/// number, and by how much the numbers of their operations are greater here.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_attributes {
    ([$($attribute:expr),*]) => {
        $crate::__describe_held!([$crate::contract::Attribute] $($attribute),*)
    };
    ($all:literal [$($part:expr),*] [$($attribute:expr),*]) => {{
        static __OWN: &'static [$crate::contract::Attribute] = &[$($attribute),*];
        static __ALL: [$crate::contract::Attribute; $all] =
            $crate::generated::inherit_attributes(&[$($part),*], __OWN);
        ::std::borrow::Cow::Borrowed(&__ALL)
    }};
}

/// Whether a word stands there.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_flag {
    () => {
        false
    };
    ($word:ident) => {
        true
    };
}

/// The shape of a sequence: `sequence!(Shape::I32)`, or `sequence!(Shape::I32, 10)` with a bound; MIDL's, whose count is said
/// beside it, as `sequence!(Shape::I32, None, Conformant)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_sequence {
    ($element:expr) => {
        $crate::__describe_sequence!(@ $element, None, Free, None)
    };
    ($element:expr, $bound:literal) => {
        $crate::__describe_sequence!(@ $element, Some($bound), Free, None)
    };
    ($element:expr, $bound:expr, $order:ident) => {
        $crate::__describe_sequence!(@ $element, $bound, $order, None)
    };
    (@ $element:expr, $bound:expr, $order:ident, $size:expr) => {
        $crate::shape::Shape::Sequence($crate::__describe_held!(in Sequence =
            $crate::shape::Sequence {
                element: $element,
                bound: $bound,
                order: $crate::shape::Order::$order,
                size: $size,
            }))
    };
}

/// The shape of a sequence whose count stands in a field beside it: `counted!(Shape::I32, "count", Conformant)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_counted {
    ($element:expr, $size:literal, $order:ident) => {
        $crate::__describe_sequence!(@ $element, None, $order, Some(::std::borrow::Cow::Borrowed($size)))
    };
}

/// The shape of an array: `array!(Shape::I32, 3)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_array {
    ($element:expr, $len:expr) => {
        $crate::shape::Shape::Array($crate::__describe_held!(in Array =
            $crate::shape::Array { element: $element, len: $len }))
    };
}

/// The shape of a map: `map!(TEXT, Shape::I32)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_map {
    ($key:expr, $value:expr) => {
        $crate::shape::Shape::Map($crate::__describe_held!(in Map =
            $crate::shape::Map { key: $key, value: $value }))
    };
}

/// The shape of an optional value: `optional!(Shape::I32)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_optional {
    ($target:expr) => {
        $crate::shape::Shape::Optional($crate::__describe_held!(in Shape =
            $target))
    };
}

/// The shape of a pointer: `pointer!(Unique, Shape::I32)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_pointer {
    ($kind:ident, $target:expr) => {
        $crate::shape::Shape::Pointer($crate::__describe_held!(in Pointer =
            $crate::shape::Pointer { kind: $crate::shape::PointerKind::$kind, target: $target }))
    };
}

/// A shape under a name that only some wires mind: `renamed!("SAFEARRAY", sequence!(Shape::I32))`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_renamed {
    ($name:expr, $target:expr) => {
        $crate::shape::Shape::Alias($crate::__describe_held!(in Alias =
            $crate::describe::named($name, "", $target)))
    };
}

/// A shape with a remark that only some wires mind: `remarked!("@Id", Shape::I32)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_remarked {
    ($id:expr, $target:expr) => {
        $crate::shape::Shape::Alias($crate::__describe_held!(in Alias =
            $crate::describe::named("", $id, $target)))
    };
}

/// The shape of a reference: `reference!("Account", "IDL:Account:1.0")`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_reference {
    ($name:expr, $id:expr) => {
        $crate::shape::Shape::Reference($crate::__describe_held!(in Referent =
            $crate::shape::Referent {
                name: ::std::borrow::Cow::Borrowed($name),
                id: ::std::borrow::Cow::Borrowed($id),
            }))
    };
}

/// An [`Operation`]: `operation!("read", (in "count": Shape::I32, out "rest": Shape::I32) -> TEXT, raises [&BROKEN])`.
///
/// Begins with `oneway` where there is no reply. Parameters are `in`, `out` or `inout`; what a request and a reply
/// carry follows from them. A second name is the one people see, where it differs.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_operation {
    (oneway $($rest:tt)*) => { $crate::__describe_operation!(@names (true) $($rest)*) };
    (@names ($oneway:expr) $name:literal, ($($parameters:tt)*) -> $($rest:tt)*) => {
        $crate::__describe_operation!(@returns ($oneway, $name, $name) ($($parameters)*) $($rest)*)
    };
    (@names ($oneway:expr) $name:literal as $label:literal, ($($parameters:tt)*) -> $($rest:tt)*) => {
        $crate::__describe_operation!(@returns ($oneway, $name, $label) ($($parameters)*) $($rest)*)
    };
    (@returns $head:tt ($($parameters:tt)*) Shape::Void $(, raises [$($raised:expr),*])?) => {
        $crate::__describe_operation!(
            @split ($head, $crate::shape::Shape::Void, [$($($raised),*)?]) [] [] [] $($parameters)*
        )
    };
    (@returns $head:tt ($($parameters:tt)*) $returns:expr $(, raises [$($raised:expr),*])?) => {
        $crate::__describe_operation!(
            @split ($head, $returns, [$($($raised),*)?]) [] [] ["return": $returns,] $($parameters)*
        )
    };
    (@split $head:tt [$($all:tt)*] [$($in:tt)*] [$($out:tt)*] in $name:literal : $shape:expr $(, $($rest:tt)*)?) => {
        $crate::__describe_operation!(
            @split $head [$($all)* In $name: $shape,] [$($in)* $name: $shape,] [$($out)*] $($($rest)*)?
        )
    };
    (@split $head:tt [$($all:tt)*] [$($in:tt)*] [$($out:tt)*] out $name:literal : $shape:expr $(, $($rest:tt)*)?) => {
        $crate::__describe_operation!(
            @split $head [$($all)* Out $name: $shape,] [$($in)*] [$($out)* $name: $shape,] $($($rest)*)?
        )
    };
    (@split $head:tt [$($all:tt)*] [$($in:tt)*] [$($out:tt)*] inout $name:literal : $shape:expr $(, $($rest:tt)*)?) => {
        $crate::__describe_operation!(
            @split $head [$($all)* InOut $name: $shape,] [$($in)* $name: $shape,] [$($out)* $name: $shape,]
            $($($rest)*)?
        )
    };
    (@split (($oneway:expr, $name:expr, $label:expr), $returns:expr, [$($raised:expr),*])
        [$($direction:ident $parameter:literal : $shape:expr,)*] [$($in:tt)*] [$($out:tt)*]
    ) => {
        $crate::contract::Operation {
            name: ::std::borrow::Cow::Borrowed($name),
            label: ::std::borrow::Cow::Borrowed($label),
            parameters: $crate::__describe_held!([$crate::contract::Parameter]
                $($crate::describe::parameter($crate::contract::Direction::$direction, $parameter, $shape)),*),
            returns: $returns,
            arguments: $crate::__describe_nameless!({ $($in)* }),
            results: $crate::__describe_nameless!({ $($out)* }),
            raises: $crate::__describe_held!([$crate::shape::Hold<$crate::shape::Struct>]
                $($crate::shape::Hold::Static($raised)),*),
            oneway: $oneway,
            idempotent: false,
            id: None,
            notes: ::std::borrow::Cow::Borrowed(&[]),
            doc: ::std::borrow::Cow::Borrowed(""),
        }
    };
    ($($rest:tt)*) => { $crate::__describe_operation!(@names (false) $($rest)*) };
}

/// A [`Signal`]: `signal!("Hello", { "i": Shape::U32 })`; a second name is the one people see, where it differs.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_signal {
    ($name:literal, $fields:tt) => {
        $crate::__describe_signal!($name as $name, $fields)
    };
    ($name:literal as $label:literal, $fields:tt) => {
        $crate::contract::Signal {
            name: ::std::borrow::Cow::Borrowed($name),
            label: ::std::borrow::Cow::Borrowed($label),
            fields: $crate::__describe_nameless!($fields),
            sink: None,
            doc: ::std::borrow::Cow::Borrowed(""),
        }
    };
}

/// Pairs of texts: what a contract says more of something, and the value: `pairs!("success" = "S_FALSE")`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_pairs {
    ($($what:literal = $value:literal),*) => {
        &[$((::std::borrow::Cow::Borrowed($what), ::std::borrow::Cow::Borrowed($value))),*]
    };
}

/// An [`Interface`]: name, identity, bases, how many operations are inherited, all operations, then attributes and
/// signals if any: `interface!("A", "IDL:A:1.0", [], 0, &OPERATIONS, [attribute(..)], signals &SIGNALS)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __describe_interface {
    ($name:expr, $id:expr, [$($base:expr),*], $inherited:expr, $operations:expr
        $(, inherits $all:literal [$($part:expr),* $(,)?])? $(, [$($attribute:expr),* $(,)?])?
        $(, signals $signals:expr)? $(,)?) => {
        $crate::contract::Interface {
            name: ::std::borrow::Cow::Borrowed($name),
            id: ::std::borrow::Cow::Borrowed($id),
            identities: ::std::borrow::Cow::Borrowed(&[]),
            kind: $crate::contract::InterfaceKind::Plain,
            bases: $crate::__describe_held!([$crate::shape::Hold<$crate::contract::Interface>]
                $($crate::shape::Hold::Static($base)),*),
            operations: ::std::borrow::Cow::Borrowed($operations),
            inherited: $inherited,
            attributes: $crate::__describe_attributes!($($all [$($part),*])? [$($($attribute),*)?]),
            signals: ::std::borrow::Cow::Borrowed($crate::__describe_or_none!($($signals)?)),
            types: None,
            notes: ::std::borrow::Cow::Borrowed(&[]),
            doc: ::std::borrow::Cow::Borrowed(""),
        }
    };
}

pub use crate::{
    __describe_arms as arms, __describe_array as array, __describe_counted as counted,
    __describe_inherit as inherit, __describe_interface as interface, __describe_map as map,
    __describe_nameless as nameless, __describe_operation as operation, __describe_optional as optional,
    __describe_pairs as pairs, __describe_pointer as pointer, __describe_record as record,
    __describe_reference as reference, __describe_remarked as remarked, __describe_renamed as renamed,
    __describe_sequence as sequence, __describe_signal as signal, __describe_tuple as tuple,
    __describe_types as types, __describe_variants as variants,
};
