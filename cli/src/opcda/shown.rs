//! Values of items, for people and for programs.

use crate::trace::timestamp;
use everywire_opc::{Code, Data, FileTime, VarType};
use serde_json::{Number, Value as Json};
use std::time::UNIX_EPOCH;

/// A time as RFC 3339 writes it; `None` for one before 1970, which servers send for no time.
pub(super) fn time(time: FileTime) -> Option<String> {
    let epoch = FileTime::from(UNIX_EPOCH);
    (time > epoch).then(|| timestamp(time.since(epoch)))
}

/// The words for numbers that JSON has not, as every part of the program reads and writes them.
const WORDS: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

/// A fraction as JSON: one that JSON has not by its word.
fn fraction(value: f64) -> Json {
    let word =
        || WORDS.iter().find(|(_, named)| named.total_cmp(&value).is_eq()).map_or("NaN", |(word, _)| word);
    Number::from_f64(value).map_or_else(|| word().into(), Json::Number)
}

/// A value as JSON. A number that JSON has not becomes its word; money, dates and codes become text, and a
/// date that no calendar has its number of days since the end of 1899.
pub(crate) fn json(data: &Data) -> Json {
    match data {
        Data::Empty | Data::Null => Json::Null,
        Data::I1(value) => (*value).into(),
        Data::U1(value) => (*value).into(),
        Data::I2(value) => (*value).into(),
        Data::U2(value) => (*value).into(),
        Data::I4(value) => (*value).into(),
        Data::U4(value) => (*value).into(),
        Data::I8(value) => (*value).into(),
        Data::U8(value) => (*value).into(),
        // With the digits that it has, not those of the wider type.
        Data::R4(value) => fraction(value.to_string().parse().unwrap_or_else(|_| f64::from(*value))),
        Data::R8(value) => fraction(*value),
        Data::Bool(value) => (*value).into(),
        Data::Array(array) => array.items.iter().map(json).collect(),
        Data::Date(days) if data.coerce(VarType::BSTR).is_err() => fraction(*days),
        Data::Currency(_) | Data::Date(_) | Data::Error(_) | Data::Text(_) => data.to_string().into(),
    }
}

/// A text as a value of a type without elements. The words for numbers that JSON has not are those of fractions alone.
///
/// # Errors
/// The code of OPC for a text that is no such value.
pub(crate) fn of_text(text: &str, data_type: VarType) -> Result<Data, Code> {
    match (WORDS.iter().find(|(word, _)| *word == text), data_type) {
        (Some((_, value)), VarType::R8) => Ok(Data::R8(*value)),
        (Some((_, value)), VarType::R4) => Ok(Data::R4(*value as f32)),
        _ => Data::from(text).coerce(data_type),
    }
}

/// A word as a value of a type: an array is written as JSON.
///
/// # Errors
/// The code of OPC for a word that is no such value.
pub(super) fn read(word: &str, data_type: VarType) -> Result<Data, Code> {
    match data_type.element() {
        None => of_text(word, data_type),
        Some(element) => {
            let list: Vec<Json> = serde_json::from_str(word).map_err(|_| Code::TYPE_MISMATCH)?;
            let one = |item: &Json| match item {
                Json::String(text) => of_text(text, element),
                other => Data::from(other.to_string()).coerce(element),
            };
            Ok(Data::array(element, list.iter().map(one).collect::<Result<_, _>>()?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_become_values_of_the_items_type() {
        for (word, data_type, shown) in [
            ("21.5", VarType::R4, json!(21.5)),
            ("0.1", VarType::R4, json!(0.1)),
            ("7", VarType::I2, json!(7)),
            ("true", VarType::BOOL, json!(true)),
            ("on", VarType::BSTR, json!("on")),
            ("[1, 2]", VarType::I4.array(), json!([1, 2])),
            ("NaN", VarType::R8, json!("NaN")),
            ("-Infinity", VarType::R4, json!("-Infinity")),
            (r#"["Infinity", 1.5]"#, VarType::R4.array(), json!(["Infinity", 1.5])),
            ("NaN", VarType::BSTR, json!("NaN")),
        ] {
            assert_eq!(read(word, data_type).map(|data| super::json(&data)), Ok(shown), "{word}");
        }
        assert_eq!(read("70000", VarType::I2), Err(Code::OVERFLOW));
        assert_eq!(read("NaN", VarType::I2), Err(Code::TYPE_MISMATCH));
        assert_eq!(read("1", VarType::I4.array()), Err(Code::TYPE_MISMATCH));
    }

    #[test]
    fn dates_that_no_calendar_has_are_numbers() {
        let shown = [2.5, 1e300, f64::NAN].map(|days| super::json(&Data::Date(days)));
        assert_eq!(shown, [json!("1900-01-01 12:00:00"), json!(1e300), json!("NaN")]);
    }

    #[test]
    fn times_are_those_of_people() {
        assert_eq!(time(FileTime(0)), None);
        assert_eq!(time(FileTime(132_537_600_000_000_000)).as_deref(), Some("2020-12-30T00:00:00.000000Z"));
    }
}
