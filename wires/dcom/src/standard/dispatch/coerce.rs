//! Between VARIANTs and the shapes of parameters, as VariantChangeType converts (MS-OAUT 3.1.4.4.4).
//!
//! A caller by name gives whatever VARIANT its language has; a servant has the parameters that its contract
//! says. `to_shape` goes from the one to the other: references are followed, numbers, texts and booleans
//! converted with checks of their range (`variant::PlainValue`), arrays and structs element by element.
//! `to_variant` goes back: every value gets the VARTYPE that is nearest; what automation has no type for
//! (enumerations, structs, characters) becomes numbers, arrays and texts.
//!
//! Invariants: a failure is the HRESULT that the caller of Invoke has to get. Nesting is bounded by `DEPTH`
//! in both directions. Unions, maps and handles have no VARIANT. Aliases by name (DATE, CURRENCY, SCODE,
//! NULL) count on both sides, for their shapes alone are those of plain numbers.

use super::decimal::Decimal;
use crate::hresult::{DISP_E_BADVARTYPE, DISP_E_OVERFLOW, DISP_E_PARAMNOTFOUND, DISP_E_TYPEMISMATCH};
use crate::ndr::{self, DECIMAL_SHAPE, is_decimal};
use crate::standard::contracts::BSTR;
use crate::variant::PlainValue;
use everywire_model::Bytes;
use everywire_model::describe::Hold;
use everywire_model::shape::Shape;
use everywire_model::value::{TypedShape, Value};

/// Nesting of arrays that is converted.
/// As deep as VARIANTs may be nested on the wire (`limits::VARIANT_DEPTH`).
const DEPTH: u32 = 16;

/// An IDispatch pointer.
pub(crate) const DISPATCH: Shape = Shape::Reference(Hold::Static(&ndr::DISPATCH));

/// An empty VARIANT.
pub(crate) fn empty() -> Value {
    Value::Variant(Box::new((TypedShape(Shape::Void), Value::Nothing)))
}

/// The content of a VARIANT without references around it: what a VT_BYREF leads to.
pub(crate) fn content(variant: &Value) -> (&Shape, &Value) {
    let Value::Variant(held) = variant else { return (&Shape::Void, &Value::Nothing) };
    let (shape, value) = (&held.0.0, &held.1);
    match shape {
        Shape::Variant => content(value),
        Shape::Pointer(pointer) => match value {
            Value::Nothing => (&Shape::Void, &Value::Nothing),
            value => (&pointer.target, value),
        },
        _ => (shape, value),
    }
}

/// Whether a VARIANT stands for an argument that was left out: VT_ERROR with DISP_E_PARAMNOTFOUND.
pub(crate) fn is_missing(variant: &Value) -> bool {
    let (shape, value) = content(variant);
    alias_of(shape) == Some("SCODE")
        && matches!(value, Value::Integer(code) if *code == i128::from(DISP_E_PARAMNOTFOUND.cast_signed()) || *code == i128::from(DISP_E_PARAMNOTFOUND))
}

/// A VARIANT's value at the shape of a parameter.
///
/// # Errors
/// The HRESULT that says why it does not fit.
pub(crate) fn to_shape(variant: &Value, target: &Shape) -> Result<Value, u32> {
    let (shape, value) = content(variant);
    convert(shape, value, target, DEPTH)
}

/// `from` is the shape by which the value came, which tells a DATE from a number.
fn convert(from: &Shape, value: &Value, target: &Shape, depth: u32) -> Result<Value, u32> {
    let depth = depth.checked_sub(1).ok_or(DISP_E_TYPEMISMATCH)?;
    // An element of an array of VARIANTs.
    if let (Shape::Variant, Value::Variant(_)) = (from, value) {
        let (from, value) = content(value);
        return convert(from, value, target, depth);
    }
    Ok(match (target.resolved(), value) {
        (Shape::Variant, Value::Variant(_)) => value.clone(),
        (Shape::Variant, _) => Value::Variant(Box::new((TypedShape(from.clone()), value.clone()))),
        (Shape::Optional(_) | Shape::Pointer(_), Value::Nothing) => Value::Nothing,
        (Shape::Optional(inner), _) => convert(from, value, inner, depth)?,
        (Shape::Pointer(pointer), _) => convert(from, value, &pointer.target, depth)?,
        // NULL is no value of any other type.
        (_, Value::Nothing) if alias_of(from) == Some("NULL") => return Err(DISP_E_TYPEMISMATCH),
        (Shape::Bool, _) => Value::Bool(number(from, value, PlainValue::truth)?),
        (Shape::U8, _) => integer(from, value, target, 0, u8::MAX.into())?,
        (Shape::I8, _) => integer(from, value, target, i8::MIN.into(), i8::MAX.into())?,
        (Shape::U16, _) => integer(from, value, target, 0, u16::MAX.into())?,
        (Shape::I16, _) => integer(from, value, target, i16::MIN.into(), i16::MAX.into())?,
        (Shape::U32, _) => integer(from, value, target, 0, u32::MAX.into())?,
        (Shape::I32, _) => integer(from, value, target, i32::MIN.into(), i32::MAX.into())?,
        (Shape::U64, _) => integer(from, value, target, 0, u64::MAX.into())?,
        (Shape::I64, _) => integer(from, value, target, i64::MIN.into(), i64::MAX.into())?,
        (Shape::F32, _) => Value::Float(number(from, value, PlainValue::single)?.into()),
        (Shape::F64, _) if alias_of(target) == Some("DATE") => {
            Value::Float(number(from, value, PlainValue::date)?)
        }
        (Shape::F64, _) => Value::Float(number(from, value, PlainValue::real)?),
        (Shape::Text(_), _) => Value::Text(text(from, value)?),
        (Shape::Char | Shape::WideChar, _) => {
            let text = text(from, value)?;
            let mut characters = text.chars();
            match (characters.next(), characters.next()) {
                (Some(only), None) => Value::Char(only),
                _ => return Err(DISP_E_TYPEMISMATCH),
            }
        }
        (Shape::Enum(members), Value::Text(name)) if members.value_of(name).is_some() => {
            Value::Member(name.clone())
        }
        (Shape::Enum(members), _) => {
            let number = integer(from, value, target, i32::MIN.into(), i32::MAX.into())?;
            let Value::Integer(number) = number else { return Err(DISP_E_TYPEMISMATCH) };
            Value::member(members, members.number(number).ok_or(DISP_E_TYPEMISMATCH)?)
        }
        (Shape::Reference(_), Value::Reference(reference)) => Value::Reference(reference.clone()),
        (Shape::Reference(_), Value::Nothing) => Value::Reference(None),
        (Shape::Sequence(_) | Shape::Array(_), _) => {
            let element = target.element().unwrap_or(&Shape::Void);
            let items = items(from, value, element, depth)?;
            if let Shape::Array(array) = target.resolved()
                && array.len as usize != items.len()
            {
                return Err(DISP_E_TYPEMISMATCH);
            }
            if matches!(element.resolved(), Shape::U8) { octets(&items)? } else { Value::List(items) }
        }
        (Shape::Struct(fields), Value::Struct(_)) if is_decimal(fields) && is_decimal_shape(from) => {
            value.clone()
        }
        (Shape::Struct(fields), _) if is_decimal(fields) => decimal(from, value)?.value(),
        // A struct is an array of its fields.
        (Shape::Struct(fields), Value::List(items)) => {
            let inner = from.element().unwrap_or(&Shape::Void);
            if items.len() != fields.fields.len() {
                return Err(DISP_E_TYPEMISMATCH);
            }
            let fields = fields.fields.iter().zip(items).map(|(field, item)| {
                Ok((field.name.to_string(), convert(inner, item, &field.shape, depth)?))
            });
            Value::Struct(fields.collect::<Result<_, u32>>()?)
        }
        (Shape::Reference(_) | Shape::Struct(_), _) => return Err(DISP_E_TYPEMISMATCH),
        _ => return Err(DISP_E_BADVARTYPE),
    })
}

/// The elements of an array, each converted; octets are elements as well, and nothing is an array without
/// any.
fn items(from: &Shape, value: &Value, element: &Shape, depth: u32) -> Result<Vec<Value>, u32> {
    match value {
        Value::List(items) => {
            let inner = from.element().unwrap_or(&Shape::Void);
            items.iter().map(|item| convert(inner, item, element, depth)).collect()
        }
        Value::Bytes(bytes) => {
            let octet = |octet: &u8| convert(&Shape::U8, &Value::Integer((*octet).into()), element, depth);
            bytes.iter().map(octet).collect()
        }
        Value::Nothing => Ok(Vec::new()),
        _ => Err(DISP_E_TYPEMISMATCH),
    }
}

/// Numbers as octets: how sequences of `U8` are held as values.
fn octets(items: &[Value]) -> Result<Value, u32> {
    let octet = |item: &Value| match item {
        Value::Integer(number) => u8::try_from(*number).map_err(|_| DISP_E_OVERFLOW),
        _ => Err(DISP_E_TYPEMISMATCH),
    };
    items.iter().map(octet).collect::<Result<Vec<u8>, u32>>().map(|octets| Value::Bytes(Bytes::from(octets)))
}

/// The name of an alias, without its scope, by which automation knows it; two have an older name.
fn alias_of(shape: &Shape) -> Option<&str> {
    let Shape::Alias(alias) = shape else { return None };
    Some(match alias.name.rsplit("::").next().unwrap_or_default() {
        "CY" => "CURRENCY",
        "HRESULT" => "SCODE",
        name => name,
    })
}

/// A value without parts.
fn plain<'v>(from: &Shape, value: &'v Value) -> Option<PlainValue<'v>> {
    Some(match value {
        Value::Nothing => PlainValue::Empty,
        Value::Bool(flag) => PlainValue::Bool(*flag),
        Value::Integer(number) if alias_of(from) == Some("CURRENCY") => {
            PlainValue::Money(i64::try_from(*number).ok()?)
        }
        Value::Integer(number) => PlainValue::Whole(*number),
        Value::Float(number) if alias_of(from) == Some("DATE") => PlainValue::Date(*number),
        #[allow(clippy::cast_possible_truncation)]
        Value::Float(number) if matches!(from.resolved(), Shape::F32) => PlainValue::Single(*number as f32),
        Value::Float(number) => PlainValue::Real(*number),
        Value::Text(text) => PlainValue::Text(text),
        _ => return None,
    })
}

/// Something of a value without parts, or of the number that a DECIMAL is.
fn number<'v, T>(
    from: &Shape,
    value: &'v Value,
    of: impl FnOnce(&PlainValue<'v>) -> Result<T, u32>,
) -> Result<T, u32> {
    match value {
        Value::Struct(_) => of(&PlainValue::Real(decimal(from, value)?.float())),
        value => of(&plain(from, value).ok_or(DISP_E_TYPEMISMATCH)?),
    }
}

/// Whether a shape is that of a DECIMAL.
fn is_decimal_shape(shape: &Shape) -> bool {
    matches!(shape.resolved(), Shape::Struct(fields) if is_decimal(fields))
}

/// The DECIMAL that a value is, or becomes.
fn decimal(from: &Shape, value: &Value) -> Result<Decimal, u32> {
    match value {
        Value::Struct(_) if is_decimal_shape(from) => Decimal::of(value).ok_or(DISP_E_BADVARTYPE),
        Value::Integer(number) if alias_of(from) == Some("CURRENCY") => Decimal::scaled(*number, 4),
        Value::Integer(number) => Decimal::scaled(*number, 0),
        Value::Text(text) => Decimal::parse(text),
        value => Decimal::from_float(number(from, value, PlainValue::real)?),
    }
}

/// A whole number between these, as a CURRENCY would hold it if the target is one.
fn integer(from: &Shape, value: &Value, target: &Shape, least: i128, most: i128) -> Result<Value, u32> {
    let found = match value {
        // All of its digits count.
        Value::Struct(_) if alias_of(target) == Some("CURRENCY") => {
            PlainValue::Text(&decimal(from, value)?.text()).money()?.into()
        }
        _ if alias_of(target) == Some("CURRENCY") => number(from, value, PlainValue::money)?.into(),
        // It may have more digits than other numbers.
        Value::Struct(_) => decimal(from, value)?.rounded(),
        value => number(from, value, |plain| plain.whole(least, most))?,
    };
    if (least..=most).contains(&found) { Ok(Value::Integer(found)) } else { Err(DISP_E_OVERFLOW) }
}

/// Any value without parts as text.
fn text(from: &Shape, value: &Value) -> Result<String, u32> {
    match value {
        Value::Char(character) => Ok(character.to_string()),
        Value::Struct(_) => Ok(decimal(from, value)?.text()),
        value => number(from, value, PlainValue::text),
    }
}

/// A value of this shape as a VARIANT.
///
/// # Errors
/// The HRESULT that says that no VARIANT holds such a value.
pub(crate) fn to_variant(shape: &Shape, value: &Value) -> Result<Value, u32> {
    if let (Shape::Variant, Value::Variant(_)) = (shape.resolved(), value) {
        return Ok(value.clone());
    }
    within(shape, value, DEPTH)
}

/// What a VARIANT holds for a value.
fn held(shape: &Shape, value: &Value, depth: u32) -> Result<(Shape, Value), u32> {
    let depth = depth.checked_sub(1).ok_or(DISP_E_BADVARTYPE)?;
    Ok(match (shape.resolved(), value) {
        (Shape::Void, _) | (Shape::Optional(_) | Shape::Pointer(_), Value::Nothing) => {
            (Shape::Void, Value::Nothing)
        }
        (Shape::Optional(inner), value) => held(inner, value, depth)?,
        (Shape::Pointer(pointer), value) => held(&pointer.target, value, depth)?,
        (Shape::Text(_), value) => (BSTR, value.clone()),
        (Shape::Char | Shape::WideChar, Value::Char(character)) => (BSTR, Value::Text(character.to_string())),
        (Shape::Enum(members), Value::Member(name)) => {
            let number = members.value_of(name).ok_or(DISP_E_TYPEMISMATCH)?;
            (Shape::I32, Value::Integer(number.into()))
        }
        (Shape::Enum(_), Value::Integer(_)) => (Shape::I32, value.clone()),
        (Shape::Reference(_), value) => (DISPATCH, value.clone()),
        (Shape::Sequence(_) | Shape::Array(_), Value::Bytes(_)) => {
            (Shape::sequence(Shape::U8), value.clone())
        }
        (Shape::Sequence(_) | Shape::Array(_), Value::List(items)) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            match plain_element(element) {
                Some(inner) => (Shape::sequence(inner), value.clone()),
                None => array(items.iter().map(|item| within(element, item, depth)))?,
            }
        }
        (Shape::Struct(fields), value) if is_decimal(fields) => (DECIMAL_SHAPE, value.clone()),
        (Shape::Struct(fields), Value::Struct(values)) => {
            let pairs = fields.fields.iter().zip(values);
            array(pairs.map(|(field, (_, value))| within(&field.shape, value, depth)))?
        }
        (Shape::Variant, Value::Variant(inner)) => (inner.0.0.clone(), inner.1.clone()),
        (Shape::Union(_) | Shape::Map(_) | Shape::TypeCode | Shape::Handle, _) => {
            return Err(DISP_E_BADVARTYPE);
        }
        (Shape::Char | Shape::WideChar | Shape::Enum(_) | Shape::Variant, _) => {
            return Err(DISP_E_TYPEMISMATCH);
        }
        (Shape::Sequence(_) | Shape::Array(_) | Shape::Struct(_), _) => return Err(DISP_E_TYPEMISMATCH),
        // Numbers, as their contract names them.
        (_, value) => (shape.clone(), value.clone()),
    })
}

/// An array of VARIANTs.
fn array(items: impl Iterator<Item = Result<Value, u32>>) -> Result<(Shape, Value), u32> {
    Ok((Shape::sequence(Shape::Variant), Value::List(items.collect::<Result<_, u32>>()?)))
}

/// How an array holds elements that it holds as they are.
fn plain_element(element: &Shape) -> Option<Shape> {
    match element.resolved() {
        Shape::Text(_) => Some(BSTR),
        _ => element.width().map(|_| element.clone()),
    }
}

/// What a VARIANT by reference has room for that takes values of a shape; nothing if it had better take any VARIANT.
pub(crate) fn room(shape: &Shape) -> Option<Shape> {
    match shape.resolved() {
        Shape::Text(_) => Some(BSTR),
        Shape::Reference(_) => Some(DISPATCH),
        Shape::Struct(fields) => is_decimal(fields).then_some(DECIMAL_SHAPE),
        Shape::Sequence(_) | Shape::Array(_) => {
            let element = shape.element().unwrap_or(&Shape::Void);
            Some(Shape::sequence(plain_element(element).unwrap_or(Shape::Variant)))
        }
        resolved => resolved.width().map(|_| shape.clone()),
    }
}

/// A value as an element of an array of VARIANTs.
fn within(shape: &Shape, value: &Value, depth: u32) -> Result<Value, u32> {
    let (shape, value) = held(shape, value, depth)?;
    Ok(Value::Variant(Box::new((TypedShape(shape), value))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::shape::Alias;

    fn variant(shape: Shape, value: Value) -> Value {
        Value::Variant(Box::new((TypedShape(shape), value)))
    }

    #[test]
    fn numbers_and_text_become_one_another() {
        let text = |held: &str| variant(BSTR, Value::Text(held.to_owned()));
        assert_eq!(to_shape(&text(" 42 "), &Shape::I32), Ok(Value::Integer(42)));
        assert_eq!(to_shape(&text("2.5"), &Shape::I32), Ok(Value::Integer(2)));
        assert_eq!(to_shape(&text("3.5"), &Shape::I32), Ok(Value::Integer(4)));
        assert_eq!(to_shape(&text("4e2"), &Shape::F64), Ok(Value::Float(400.0)));
        assert_eq!(to_shape(&text("x"), &Shape::I32), Err(DISP_E_TYPEMISMATCH));
        assert_eq!(to_shape(&text("70000"), &Shape::I16), Err(DISP_E_OVERFLOW));
        assert_eq!(to_shape(&text("TRUE"), &Shape::Bool), Ok(Value::Bool(true)));
        assert_eq!(to_shape(&variant(Shape::I32, Value::Integer(-7)), &BSTR), Ok(Value::Text("-7".into())));
        assert_eq!(to_shape(&variant(Shape::Bool, Value::Bool(true)), &Shape::I16), Ok(Value::Integer(-1)));
        assert_eq!(to_shape(&variant(Shape::F64, Value::Float(1e40)), &Shape::F32), Err(DISP_E_OVERFLOW));
        assert_eq!(to_shape(&empty(), &Shape::U8), Ok(Value::Integer(0)));
    }

    #[test]
    fn what_a_reference_leads_to_counts() {
        let pointer = everywire_model::describe::pointer!(Unique, Shape::I32);
        let by_reference = variant(pointer, Value::Integer(5));
        assert_eq!(to_shape(&by_reference, &Shape::F64), Ok(Value::Float(5.0)));
        let nested = variant(Shape::Variant, variant(Shape::I16, Value::Integer(3)));
        assert_eq!(to_shape(&nested, &Shape::I32), Ok(Value::Integer(3)));
    }

    #[test]
    fn arrays_convert_by_element() {
        let mixed =
            Value::List(vec![variant(Shape::I32, Value::Integer(1)), variant(BSTR, Value::Text("2".into()))]);
        let array = variant(Shape::sequence(Shape::Variant), mixed);
        let numbers = Shape::sequence(Shape::I16);
        assert_eq!(to_shape(&array, &numbers), Ok(Value::List(vec![Value::Integer(1), Value::Integer(2)])));
        assert_eq!(
            to_shape(&array, &Shape::sequence(Shape::U8)),
            Ok(Value::Bytes(Bytes::from_static(&[1, 2])))
        );
    }

    #[test]
    fn decimals_are_numbers_and_text() {
        let half = to_shape(&variant(BSTR, Value::Text("2.5".into())), &DECIMAL_SHAPE).unwrap();
        let held = variant(DECIMAL_SHAPE, half.clone());
        assert_eq!(to_shape(&held, &DECIMAL_SHAPE), Ok(half));
        assert_eq!(to_shape(&held, &Shape::F64), Ok(Value::Float(2.5)));
        assert_eq!(to_shape(&held, &Shape::I32), Ok(Value::Integer(2)));
        assert_eq!(to_shape(&held, &Shape::Bool), Ok(Value::Bool(true)));
        assert_eq!(to_shape(&held, &BSTR), Ok(Value::Text("2.5".into())));
        let back = |shape, value| {
            to_shape(
                &to_shape(&variant(shape, value), &DECIMAL_SHAPE)
                    .map(|held| variant(DECIMAL_SHAPE, held))
                    .unwrap(),
                &BSTR,
            )
        };
        assert_eq!(back(Shape::I64, Value::Integer(-7)), Ok(Value::Text("-7".into())));
        assert_eq!(back(Shape::F64, Value::Float(0.1)), Ok(Value::Text("0.1".into())));
        let (shape, _) = held_in(&DECIMAL_SHAPE, &content(&held).1.clone());
        assert_eq!(TypedShape(shape), TypedShape(DECIMAL_SHAPE));
        // The number with a binary fraction that is nearest ends in 2.
        static MONEY: Alias = everywire_model::describe::named("CURRENCY", "", Shape::I64);
        let amount = Decimal::parse("900719925474.0993").unwrap().value();
        let amount = to_shape(&variant(DECIMAL_SHAPE, amount), &Shape::Alias(Hold::Static(&MONEY)));
        assert_eq!(amount, Ok(Value::Integer(9_007_199_254_740_993)));
    }

    fn held_in(shape: &Shape, value: &Value) -> (Shape, Value) {
        held(shape, value, DEPTH).unwrap()
    }

    #[test]
    fn references_have_room_for_what_they_lead_to() {
        let list = |element| Shape::sequence(element);
        let room = |shape: &Shape| room(shape).map(TypedShape);
        let of = |shape| Some(TypedShape(shape));
        assert_eq!(room(&list(Shape::I32)), of(list(Shape::I32)));
        assert_eq!(room(&list(everywire_model::describe::WIDE_TEXT)), of(list(BSTR)));
        assert_eq!(room(&list(list(Shape::U8))), of(list(Shape::Variant)));
        assert_eq!((room(&Shape::Variant), room(&Shape::Bool)), (None, of(Shape::Bool)));
    }

    #[test]
    fn results_travel_as_the_nearest_type() {
        let (shape, _) = held(&everywire_model::describe::WIDE_TEXT, &Value::Text("a".into()), 3).unwrap();
        assert!(matches!(shape, Shape::Text(text) if text.kind == everywire_model::shape::TextKind::Counted));
        assert_eq!(to_variant(&Shape::Handle, &Value::Nothing), Err(DISP_E_BADVARTYPE));
    }
}
