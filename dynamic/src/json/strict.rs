//! JSON text to JSON, where no object has a member twice.
//!
//! `serde_json` takes the last of several members of one name and says nothing: half of what somebody wrote would be
//! lost. Depth is bounded as `serde_json` bounds it (128).

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};
use std::fmt;

/// Reads a text of JSON (RFC 8259) whole.
///
/// # Errors
/// It is no JSON, or an object has a member twice; the message names the place, and the member.
pub fn parse(text: &[u8]) -> Result<Json, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Strict.deserialize(&mut reader)?;
    reader.end()?;
    Ok(json)
}

/// Reads one value.
struct Strict;

impl<'t> DeserializeSeed<'t> for Strict {
    type Value = Json;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'t> Visitor<'t> for Strict {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'t>>(self, mut members: A) -> Result<Json, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(Error::custom(format!("the member `{name}` stands there twice")));
            }
            let value = members.next_value_seed(Self)?;
            object.insert(name, value);
        }
        Ok(object.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_json_is_read_as_serde_json_reads_it() {
        let text =
            r#" {"b":[null,true,-1,18446744073709551615,0.1,1e300,"\u00e4\n",{}],"a":{"b":{"b":[]}}} "#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Json>(text).unwrap());
        for wrong in ["", "{", "[1,]", "1 2", "NaN", "1e400", "{1:2}"] {
            let (ours, theirs) = (parse(wrong.as_bytes()), serde_json::from_str::<Json>(wrong));
            assert_eq!(ours.unwrap_err().to_string(), theirs.unwrap_err().to_string());
        }
        parse("[".repeat(1_000_000).as_bytes()).unwrap_err();
    }

    #[test]
    fn a_member_that_stands_there_twice_is_named() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"x":{"b":1,"a":2,"\u0061":3}}]"#] {
            let why = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(why.starts_with("the member `a` stands there twice"), "{why}");
        }
    }
}
