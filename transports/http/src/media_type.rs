//! Media types: what a body is written in (RFC 9110 §8.3.1).

/// The parameters of a media type: name and value, quotes undone.
pub type Parameters = Vec<(String, String)>;

/// Splits a media type into its essence and its parameters (RFC 9110 §8.3.1).
pub fn split(text: &str) -> Option<(&str, Parameters)> {
    let (essence, mut rest) = text.split_once(';').unwrap_or((text, ""));
    let mut parameters = Parameters::new();
    while !rest.trim().is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (name, after) = (name.trim_matches([' ', '\t', ';']), after.trim_start());
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted)?,
            None => {
                let (value, after) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), after)
            }
        };
        parameters.push((name.to_owned(), value));
        // No media type of a message has more.
        if parameters.len() > 16 {
            return None;
        }
        rest = after.trim_start().trim_start_matches(';');
    }
    Some((essence.trim(), parameters))
}

/// Reads a quoted string behind its first quote.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_come_apart() {
        let (essence, parameters) = split("Multipart/Related; type=\"a;b\\\"c\" ;start=<x>").unwrap();
        assert_eq!(essence, "Multipart/Related");
        assert_eq!(parameters, [("type".into(), "a;b\"c".into()), ("start".into(), "<x>".into())]);
        for broken in ["a/b; c", "a/b; c=\"d", "a/b; c=\"d\\"] {
            assert!(split(broken).is_none(), "{broken}");
        }
    }
}
