//! Names as text (section 2.4): components are joined by `/`, of a component its kind follows a `.`, and `\` stands before one of these
//! that is part of a word.

use crate::contracts::cos_naming::NameComponent;
use bytes::Bytes;
use everywire_model::reference::{escape, unescape};

/// Reads a name. Nothing, if the text is none: it is empty, a component is empty, has two dots or ends with
/// one, or `\` stands before another character.
pub(super) fn parse(text: &str) -> Option<Vec<NameComponent>> {
    let mut name = Vec::new();
    let mut component = (String::new(), None::<String>);
    let mut characters = text.chars();
    let mut end = |component: &mut (String, Option<String>)| {
        let (id, kind) = std::mem::take(component);
        // A lone `.` is the component whose id and kind are empty; without it there is none.
        let valid = match &kind {
            Some(kind) => !kind.is_empty() || id.is_empty(),
            None => !id.is_empty(),
        };
        name.push(NameComponent { id, kind: kind.unwrap_or_default() });
        valid
    };
    while let Some(character) = characters.next() {
        match (character, &mut component) {
            ('/', _) => {
                if !end(&mut component) {
                    return None;
                }
            }
            ('.', (_, kind @ None)) => *kind = Some(String::new()),
            ('.', _) => return None,
            (character, (id, kind)) => {
                let character = match character {
                    '\\' => characters.next().filter(|next| matches!(next, '/' | '.' | '\\'))?,
                    plain => plain,
                };
                kind.as_mut().unwrap_or(id).push(character);
            }
        }
    }
    end(&mut component).then_some(name)
}

/// Writes a name. `parse` of the result gives the same name back.
pub(super) fn print(name: &[NameComponent]) -> String {
    name.iter().map(component).collect::<Vec<_>>().join("/")
}

fn component(one: &NameComponent) -> String {
    let word = |word: &str| {
        let mut text = String::with_capacity(word.len());
        for character in word.chars() {
            if matches!(character, '/' | '.' | '\\') {
                text.push('\\');
            }
            text.push(character);
        }
        text
    };
    match (one.id.as_str(), one.kind.as_str()) {
        ("", "") => ".".to_owned(),
        (id, "") => word(id),
        (id, kind) => format!("{}.{}", word(id), word(kind)),
    }
}

/// The name of the object under a key: what follows its last dot is the kind. A key that is no UTF-8 is
/// escaped with `%`, as in addresses.
pub(super) fn of_key(key: &[u8]) -> NameComponent {
    let text = std::str::from_utf8(key).map_or_else(|_| escape(key), str::to_owned);
    match text.rsplit_once('.') {
        Some((id, kind)) if !id.is_empty() && !kind.is_empty() => {
            NameComponent { id: id.to_owned(), kind: kind.to_owned() }
        }
        _ => NameComponent { id: text, kind: String::new() },
    }
}

/// The keys that have this name: the text itself, and the octets that it stands for if it was escaped. At
/// most two, and each key has exactly one name.
pub(super) fn keys_of(name: &NameComponent) -> impl Iterator<Item = Bytes> {
    let text = match name.kind.as_str() {
        "" => name.id.clone(),
        kind => format!("{}.{kind}", name.id),
    };
    let octets = unescape(&text).filter(|octets| std::str::from_utf8(octets).is_err());
    let name = name.clone();
    let all = [Some(Bytes::from(text.into_bytes())), octets.map(Bytes::from)];
    all.into_iter().flatten().filter(move |key| of_key(key) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, kind: &str) -> NameComponent {
        NameComponent { id: id.to_owned(), kind: kind.to_owned() }
    }

    #[test]
    fn names_are_written_and_read_as_the_specification_shows() {
        for (text, name) in [
            ("a/b.c/d", vec![one("a", ""), one("b", "c"), one("d", "")]),
            ("a/./c.d/.e", vec![one("a", ""), one("", ""), one("c", "d"), one("", "e")]),
            (r"a\.b/c\/d\\", vec![one("a.b", ""), one(r"c/d\", "")]),
        ] {
            assert_eq!(parse(text), Some(name.clone()), "{text}");
            assert_eq!(print(&name), text);
        }
        for wrong in ["", "/", "a//b", "a.", "a.b.c", r"a\b", r"a\", "a/"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_key_has_a_name_of_its_own() {
        let keys: [&[u8]; 8] =
            [b"tank", b"tank.v1", b"tank.", b".tank", b"a/b", b"\xff\x00", b"%41", b"a.b.c"];
        for key in keys {
            let name = of_key(key);
            assert!(keys_of(&name).any(|found| *found == *key), "{name:?}");
            assert_eq!(keys.iter().filter(|other| of_key(other) == name).count(), 1, "{name:?}");
            assert_eq!(parse(&print(std::slice::from_ref(&name))), Some(vec![name]));
        }
    }
}
