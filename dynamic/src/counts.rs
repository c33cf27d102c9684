//! Arguments that say how many elements another one has (`size_is(n)` of MIDL), where the caller left them out.

use everywire_model::Value;
use everywire_model::shape::{Field, Name, Shape};

/// Pointers in one another that are looked through; more are no array of an argument.
const POINTERS: usize = 8;

/// The argument that counts the elements of this one.
fn size_of(shape: &Shape) -> Option<&Name> {
    let mut shape = shape;
    for _ in 0..POINTERS {
        shape = match shape.resolved() {
            Shape::Pointer(pointer) => &pointer.target,
            Shape::Optional(target) => target,
            Shape::Sequence(sequence) => return sequence.size.as_ref(),
            _ => return None,
        };
    }
    None
}

/// Whether an argument is a number that counts another argument.
pub(crate) fn counts(fields: &[Field], field: &Field) -> bool {
    let integer = matches!(
        field.shape.resolved(),
        Shape::I8 | Shape::U8 | Shape::I16 | Shape::U16 | Shape::I32 | Shape::U32 | Shape::I64 | Shape::U64
    );
    integer && fields.iter().any(|other| size_of(&other.shape) == Some(&field.name))
}

/// Gives each number that is missing and counts an array that is there the number of its elements. Those of other arrays with the same
/// count are compared where they are written.
pub(crate) fn fill_in(fields: &[Field], values: &mut [Option<Value>]) {
    for index in 0..fields.len() {
        let Some(field) = fields.get(index).filter(|field| counts(fields, field)) else { continue };
        if values.get(index).is_none_or(Option::is_some) {
            continue;
        }
        let counted = fields.iter().zip(values.iter()).find_map(|(other, value)| {
            let len = match value.as_ref()? {
                Value::List(items) => items.len(),
                Value::Bytes(octets) => octets.len(),
                _ => return None,
            };
            (size_of(&other.shape) == Some(&field.name)).then_some(len)
        });
        if let Some(value) = values.get_mut(index) {
            *value = counted.and_then(|len| i128::try_from(len).ok()).map(Value::Integer);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::operation::arguments;
    use crate::operation::tests::Nothing;
    use everywire_model::Value;
    use serde_json::json;

    #[test]
    fn a_count_that_is_left_out_is_that_of_the_array() {
        let text = "[uuid(6f0e8c5a-0b1d-4b0e-9a3c-7d1f0d9a2c01), pointer_default(unique)] interface counted {
            long put([in] unsigned long n, [in, size_is(n)] short *v, [in, unique, size_is(n)] byte *raw);
            long get([in] unsigned long n, [out, size_is(n)] short *v); };";
        let contract = everywire_idl::midl::parse(text, "counted.idl").unwrap();
        let given = |name: &str, words: &[&str], document| {
            let operations = &contract.interface("counted").unwrap().operations;
            let operation = operations.iter().find(|operation| operation.name == name).unwrap();
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let Value::Struct(fields) =
                arguments(operation, &words, document, &Nothing).map_err(|m| m.why().to_owned())?
            else {
                return Err("no struct".to_owned());
            };
            Ok(fields.into_iter().find(|(name, _)| name == "n").map(|(_, value)| value))
        };
        let count = |count| Ok(Some(Value::Integer(count)));
        assert_eq!(given("put", &[], Some(json!({"v": [7, 8]}))), count(2));
        assert_eq!(given("put", &[], Some(json!([null, [7, 8, 9]]))), count(3));
        assert_eq!(given("put", &["v=[7]"], None), count(1));
        // What is said is not changed, and what nothing tells is missing.
        assert_eq!(given("put", &[], Some(json!({"n": 5, "v": [7, 8]}))), count(5));
        assert_eq!(given("get", &[], None), Err("missing: n".to_owned()));
        assert!(given("get", &[], Some(json!([null]))).is_err());
        assert_eq!(given("put", &[], Some(json!({"n": null}))), Err("missing: n, v".to_owned()));
    }
}
