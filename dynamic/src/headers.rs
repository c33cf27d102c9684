//! Headers on the command line and in the lines of programs: `NAME=VALUE`, and JSON objects of texts.
//!
//! A header of bytes is written as `0x` and hexadecimal digits, in both directions.

use everywire_model::headers::Content;
use everywire_model::{Body, Bytes, Header, Headers};
use serde_json::{Map, Value as Json};

/// A header as the command line gives it. The value may hold a `=`.
///
/// # Errors
/// There is no `=`, or no name before it.
pub fn parse(text: &str) -> Result<Header, String> {
    // A name may be a namespace and a local name in braces, with a `=` in the namespace.
    let from = if text.starts_with('{') { text.find('}').unwrap_or(text.len()) } else { 0 };
    let at = text.get(from..).and_then(|rest| rest.find('=')).map(|at| at + from);
    match at.and_then(|at| text.split_at_checked(at)) {
        Some((name, value)) if !name.is_empty() => Ok(read(name, value.get(1..).unwrap_or_default())),
        _ => Err("a header is NAME=VALUE, such as {urn:shop}Priority=high or 0x45570001=0x0102".into()),
    }
}

/// Octets where all of it is pairs of digits behind `0x`, else text.
fn read(name: &str, value: &str) -> Header {
    let bytes = value.strip_prefix("0x").and_then(|digits| everywire_model::hex::decode(digits.as_bytes()));
    match bytes {
        Some(bytes) => Header::bytes(name, Bytes::from(bytes)),
        None => Header::text(name, value),
    }
}

/// What a header says, as it is written.
pub fn written(header: &Header) -> String {
    match &header.content {
        Content::Text(text) => text.clone(),
        Content::Bytes(_) => format!("0x{}", header.display()),
    }
}

/// The headers that came beside a body; none where they do not decode.
pub fn beside(body: &Body) -> Vec<Header> {
    body.headers().and_then(|headers| headers.list(body).ok()).unwrap_or_default()
}

/// Headers as JSON: of several of one name a list.
pub fn json(headers: &[Header]) -> Json {
    let mut all: Map<String, Json> = Map::new();
    for header in headers {
        let value = Json::from(written(header));
        match all.get_mut(&header.name) {
            None => {
                all.insert(header.name.clone(), value);
            }
            Some(Json::Array(several)) => several.push(value),
            Some(one) => *one = Json::Array(vec![one.take(), value]),
        }
    }
    Json::Object(all)
}

/// Headers that a program gives.
///
/// # Errors
/// They are no object of texts, or of lists of texts.
pub fn given(said: &Json) -> Result<Headers, String> {
    let wrong = || "`headers` is an object whose values are texts or lists of texts".to_owned();
    let mut headers = Headers::default();
    for (name, value) in said.as_object().ok_or_else(wrong)? {
        let several = match value {
            Json::Array(several) => several.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in several {
            headers.add(read(name, value.as_str().ok_or_else(wrong)?));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::{given, json, parse, written};
    use everywire_model::Header;

    #[test]
    fn a_name_may_hold_a_namespace_with_an_equals_sign() {
        assert_eq!(parse("{urn:a=b}P=1=2"), Ok(Header::text("{urn:a=b}P", "1=2")));
        assert_eq!(parse("0x45570001=0x0aff"), Ok(Header::bytes("0x45570001", vec![0x0a, 0xff])));
        assert_eq!(parse("a=0x1"), Ok(Header::text("a", "0x1")));
        assert_eq!(parse("a=0x+f"), Ok(Header::text("a", "0x+f")));
        assert!(parse("a").is_err() && parse("=b").is_err() && parse("{a=b").is_err());
    }

    #[test]
    fn headers_of_one_name_are_a_list() {
        let text = r#"{"a":["1","0x02"],"b":"3"}"#;
        let headers = given(&serde_json::from_str(text).expect("JSON")).expect("headers");
        let all: Vec<_> = headers.brought().cloned().collect();
        assert_eq!(all.iter().map(written).collect::<Vec<_>>(), ["1", "0x02", "3"]);
        assert_eq!(json(&all).to_string(), text);
        assert!(given(&serde_json::from_str(r#"{"a":5}"#).expect("JSON")).is_err());
    }
}
