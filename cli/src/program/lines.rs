//! Lines of a program as JSON, and what can be told of those that are none.
//!
//! Beside JSON the words are read that programs write for numbers that JSON has not, as `json.dumps` of Python does:
//! `NaN`, `Infinity`, `-Infinity`. They are read as the texts of these words, which is the notation of such numbers here.

use everywire_dynamic::json;
use serde_json::{Map, Value as Json};

/// The words, the one that is the beginning of no other first.
const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];

/// A line that cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// Why, for a note.
    pub(crate) why: String,
    /// The calls that it was to answer, as far as they can be seen: whoever made them need not wait. More than one where it is a
    /// list of answers.
    pub(crate) ids: Vec<u64>,
}

/// A line as an object.
///
/// # Errors
/// It is none, or has a member twice.
pub(crate) fn object(line: &[u8]) -> Result<Map<String, Json>, Unreadable> {
    let read = json::parse(line).or_else(|error| match quoted(line) {
        Some(line) => json::parse(&line),
        None => Err(error),
    });
    match read {
        Ok(Json::Object(object)) => Ok(object),
        Ok(other) => {
            let items = other.as_array().map(Vec::as_slice).unwrap_or_default();
            let ids = items.iter().filter_map(|item| id(item.get("id")?)).collect();
            Err(Unreadable { why: "a line is not a JSON object".into(), ids })
        }
        Err(error) => {
            let ids = id_of(line).into_iter().collect();
            Err(Unreadable { why: format!("a line cannot be read as JSON ({error})"), ids })
        }
    }
}

/// A number of a call, or of a write. Some languages write all numbers as text, or with a point.
pub(crate) fn id(said: &Json) -> Option<u64> {
    let text = match said {
        Json::Number(number) => number.to_string(),
        Json::String(text) => text.clone(),
        _ => return None,
    };
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

/// The line with the words in quotes, if it has some outside of texts.
fn quoted(line: &[u8]) -> Option<Vec<u8>> {
    let mut written = Vec::with_capacity(line.len() + 16);
    let mut rest = line;
    let mut found = false;
    while let Some((first, behind)) = rest.split_first() {
        let len = match WORDS.iter().find(|word| rest.starts_with(word)) {
            Some(word) => {
                found = true;
                written.push(b'"');
                written.extend_from_slice(word);
                written.push(b'"');
                rest = rest.get(word.len()..)?;
                continue;
            }
            None if *first == b'"' => text_len(behind) + 1,
            None => 1,
        };
        let (taken, left) = rest.split_at_checked(len)?;
        written.extend_from_slice(taken);
        rest = left;
    }
    found.then_some(written)
}

/// What follows the first `"id":` of the outermost object, if that is a number: also of a line that is broken elsewhere.
fn id_of(line: &[u8]) -> Option<u64> {
    let mut depth = 0_usize;
    let mut rest = line;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        match first {
            b'{' | b'[' => depth = depth.saturating_add(1),
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let (text, left) = behind.split_at_checked(text_len(behind))?;
                rest = left;
                if depth == 1
                    && text == b"id\""
                    && let Some(said) = left.trim_ascii_start().strip_prefix(b":")
                {
                    let end = |octet: &u8| matches!(octet, b',' | b'}') || octet.is_ascii_whitespace();
                    let said = said.trim_ascii_start().split(end).next()?;
                    return json::parse(said).ok().as_ref().and_then(id);
                }
            }
            _ => {}
        }
    }
    None
}

/// How long the rest of a text is behind its opening quote, with the closing one; all, where that lacks.
fn text_len(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text.iter().position(|octet| {
        let ends = *octet == b'"' && !escaped;
        escaped = *octet == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_that_json_has_not_are_read_as_python_writes_them() {
        let line =
            br#"{"id": 1, "results": {"a": NaN, "b": [-Infinity, Infinity], "c": "NaN \" -Infinity"}}"#;
        let read = json!({"a": "NaN", "b": ["-Infinity", "Infinity"], "c": "NaN \" -Infinity"});
        assert_eq!(object(line).unwrap()["results"], read);
    }

    #[test]
    fn the_call_of_a_line_that_is_no_json_is_found() {
        for (line, id) in [
            (&b"{\"id\": 7, \"results\": {\"return\": 1e400}}"[..], Some(7)),
            (b"{\"results\": {\"id\": 3, \"x\": \"\xff\"}, \"id\":\"8\"}", Some(8)),
            (b"{\"fail\": \"\\\"id\\\": 3\", \"id\" : 9.0, \"fail\": 1}", Some(9)),
            (b"{\"id\": 7, \"id\": 8}", Some(7)),
            (b"{\"id\": 12", Some(12)),
            (b"{\"results\": {\"id\": 3}", None),
            (b"{\"id\": -1, }", None),
            (b"{\"id\": \"x\", }", None),
            (b"\"id\": 3", None),
            (b"{\"id", None),
            (b"{\"id\"", None),
            (b"{\"id\":", None),
            (b"Hello, {name}!", None),
        ] {
            assert_eq!(object(line).unwrap_err().ids, Vec::from_iter(id), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn the_calls_of_a_line_that_is_no_object_are_found() {
        for (line, ids) in [
            (&br#"[{"id": 7, "results": {"return": 5}}]"#[..], &[7][..]),
            (br#"[{"id": 7}, {"id": "8", "fail": "x"}, {"results": {"id": 9}}, 3]"#, &[7, 8]),
            (b"[7]", &[]),
            (b"7", &[]),
            (b"\"id\"", &[]),
        ] {
            assert_eq!(object(line).unwrap_err().ids, ids, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn numbers_of_calls_may_be_text_or_have_a_point() {
        for said in [json!(14), json!(14.0), json!("14"), json!("14.0")] {
            assert_eq!(id(&said), Some(14));
        }
        for said in [json!(14.5), json!(-14), json!([14]), json!(1e30), json!("")] {
            assert_eq!(id(&said), None, "{said}");
        }
    }
}
