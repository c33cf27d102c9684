//! Names of contracts as names of Rust: words, cases, keywords.
//!
//! A name is first taken apart into words, by case and by what is no letter, and then put together in the
//! case of its kind: types and traits in capitals, functions with underscores, constants in capitals with
//! underscores. Any text becomes an identifier; what has no letter at all is `unnamed`.
//!
//! Two names of a contract may become one (`fooBar` and `foo_bar`). `UniqueNames` gives numbers to the later ones
//! in the order of the contract, so that the same contract always gives the same names. Names that generated
//! code uses itself are taken from the beginning.
//!
//! A keyword becomes a raw identifier, which people can still read; a few words cannot be raw, and get an
//! underscore. Whoever looks at the name of the contract finds it in the descriptions, where it stays as it
//! is.

use std::collections::HashSet;

/// Keywords that a raw identifier (`r#type`) makes usable, those of all editions and the reserved ones.
const KEYWORDS: [&str; 48] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "static", "struct", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Words that no identifier may be, raw or not.
const FORBIDDEN: [&str; 3] = ["self", "super", "crate"];

/// Names that generated code uses itself: a type of a contract that is named so gets a number. The prelude
/// and what modules import.
const TYPES: [&str; 15] = [
    "Self", "Option", "Some", "None", "Result", "Ok", "Err", "Vec", "String", "Box", "Send", "Sync", "Into",
    "From", "BTreeMap",
];

/// Names that generated code uses for modules. A module that is named so gets an underscore.
const MODULES: [&str; 6] = ["ew", "std", "core", "alloc", "describe", "everywire"];

/// Methods that a typed reference has itself, or that every type has which can be copied: a method of a trait that is
/// named so could not be called through the reference.
const METHODS: [&str; 8] =
    ["as_arc", "clone", "clone_from", "into", "reference", "signals", "to_owned", "try_into"];

/// Whether a character may stand in a name of Rust: `²` is a number and may not.
fn is_letter(letter: char) -> bool {
    letter.is_alphabetic() || letter.is_ascii_digit()
}

/// `GetBytes`, `get_bytes` and `GETBytes` as `get`, `bytes`. `HTTPServer` is two words: the last capital
/// before a small letter begins one.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (index, &letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(index + 1);
        // `IDs` is one word: a small `s` that ends it is no beginning of another.
        let plural = after == Some(&'s') && letters.get(index + 2).is_none_or(|next| !next.is_lowercase());
        let begins = letter.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit())
                || (before.is_some_and(|before| before.is_uppercase())
                    && after.is_some_and(|after| after.is_lowercase())
                    && !plural));
        if (begins || !is_letter(letter)) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_letter(letter) {
            word.extend(letter.to_lowercase());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    if words.is_empty() {
        words.push("unnamed".to_owned());
    }
    words
}

/// The scope and the last part of a scoped name; a name with angle brackets has its scope before them.
pub(crate) fn split(name: &str) -> (&str, &str) {
    let plain = name.split('<').next().unwrap_or_default();
    match plain.rfind("::").and_then(|at| Some((name.get(..at)?, name.get(at + 2..)?))) {
        Some(parts) => parts,
        None => ("", name),
    }
}

/// Whether a name could be one of a programming language's. Scopes with `::` are allowed.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.split("::")
        .all(|part| !part.is_empty() && part.chars().all(|letter| is_letter(letter) || letter == '_'))
}

/// `get_bytes`, without regard to keywords. A digit cannot be first.
pub(crate) fn plain_snake(name: &str) -> String {
    let snake = words(name).join("_");
    if snake.starts_with(|first: char| first.is_ascii_digit()) { format!("n{snake}") } else { snake }
}

/// `get_bytes`: functions, parameters, fields.
pub(crate) fn snake(name: &str) -> String {
    escaped(plain_snake(name))
}

/// `get_bytes`: methods. It gets an underscore where a method of the reference would hide it.
pub(crate) fn method(name: &str) -> String {
    let snake = plain_snake(name);
    if METHODS.contains(&snake.as_str()) { snake + "_" } else { escaped(snake) }
}

/// `get_bytes`: modules.
pub(crate) fn module(name: &str) -> String {
    let snake = plain_snake(name);
    if MODULES.contains(&snake.as_str()) { snake + "_" } else { escaped(snake) }
}

/// `GetBytes`: types, traits and members.
pub(crate) fn camel(name: &str) -> String {
    let mut camel = String::new();
    for word in words(name) {
        let mut letters = word.chars();
        if let Some(first) = letters.next() {
            // Two numbers would run together: `v1_2` is `V1_2`.
            if first.is_ascii_digit() && camel.ends_with(|last: char| last.is_ascii_digit()) {
                camel.push('_');
            }
            camel.extend(first.to_uppercase());
            camel.push_str(letters.as_str());
        }
    }
    if camel.starts_with(|first: char| first.is_ascii_digit()) {
        camel.insert(0, 'N');
    }
    if camel == "Self" { camel + "_" } else { camel }
}

/// `GetBytes`: types and traits. One that could be a type's in Rust stays as it is, for nobody can tell the words of capitals, and
/// whoever knows the contract looks for its names: `OPCITEMDEF`, `IOPCServer`.
pub(crate) fn type_name(name: &str) -> String {
    let first = name.starts_with(|first: char| first.is_ascii_uppercase());
    let fits = first && name != "Self" && name.chars().all(|letter| letter.is_ascii_alphanumeric());
    if fits { name.to_owned() } else { camel(name) }
}

/// `GET_BYTES`: constants and statics.
pub(crate) fn screaming(name: &str) -> String {
    plain_snake(name).to_uppercase()
}

/// A keyword as a raw identifier, or with an underscore where it cannot be one.
fn escaped(name: String) -> String {
    if FORBIDDEN.contains(&name.as_str()) {
        name + "_"
    } else if KEYWORDS.contains(&name.as_str()) {
        format!("r#{name}")
    } else {
        name
    }
}

/// Statics that descriptions use.
const STATICS: [&str; 3] = ["TEXT", "WIDE_TEXT", "ANY_OBJECT"];

/// Names already given in one scope. A name that is taken gets a number, in the order of the contract.
#[derive(Debug, Default)]
pub(crate) struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// With the names that types must not have.
    pub(crate) fn types() -> Self {
        Self::with(&TYPES)
    }

    /// With the names that statics must not have.
    pub(crate) fn statics() -> Self {
        Self::with(&STATICS)
    }

    /// With these names.
    pub(crate) fn of(names: &[String]) -> Self {
        Self(names.iter().cloned().collect())
    }

    /// With these names taken.
    fn with(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Gives a name to a type: `Account`, else `Account2`.
    pub(crate) fn name_type(&mut self, wanted: String) -> String {
        self.name(wanted, "")
    }

    /// Gives a name to anything else: `account`, else `account_2`.
    pub(crate) fn name_value(&mut self, wanted: String) -> String {
        self.name(wanted, "_")
    }

    /// Tries the name, then numbers from 2; `joint` stands before the number. A raw identifier needs no `r#`
    /// with a number.
    fn name(&mut self, wanted: String, joint: &str) -> String {
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{}{joint}{number}", wanted.trim_start_matches("r#"));
            number += 1;
        }
        name
    }
}

/// Gives each of these a name of its own. They come back in the same order.
pub(crate) fn distinct<'n>(
    names: impl IntoIterator<Item = &'n str>,
    case: fn(&str) -> String,
) -> Vec<String> {
    let mut taken = UniqueNames::default();
    names.into_iter().map(|name| taken.name_value(case(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases() {
        for (name, is_snake, is_camel) in [
            ("in_out_int_call", "in_out_int_call", "InOutIntCall"),
            ("GetBytes", "get_bytes", "GetBytes"),
            ("IRemoteObject", "i_remote_object", "IRemoteObject"),
            ("HTTPServer", "http_server", "HttpServer"),
            ("UPPER_CASE", "upper_case", "UpperCase"),
            ("utf8Text", "utf8_text", "Utf8Text"),
            ("BrowseOPCItemIDs", "browse_opc_item_ids", "BrowseOpcItemIds"),
            ("GetIDsOfNames", "get_ids_of_names", "GetIdsOfNames"),
            ("HTTPServers", "http_servers", "HttpServers"),
            ("v1_2", "v1_2", "V1_2"),
            ("perM²day", "per_m_day", "PerMDay"),
            ("type", "r#type", "Type"),
            ("yield", "r#yield", "Yield"),
            ("self", "self_", "Self_"),
            ("_2d", "n2d", "N2d"),
            ("long int", "long_int", "LongInt"),
            ("QMap<QString,int>", "q_map_q_string_int", "QMapQStringInt"),
            ("", "unnamed", "Unnamed"),
        ] {
            assert_eq!(snake(name), is_snake);
            assert_eq!(camel(name), is_camel);
        }
        assert_eq!(screaming("maxItems"), "MAX_ITEMS");
        let types = ["OPCITEMDEF", "IOPCServer", "BAD_PARAM", "sample", "Self", "2D"].map(type_name);
        assert_eq!(types, ["OPCITEMDEF", "IOPCServer", "BadParam", "Sample", "Self_", "N2D"]);
        assert_eq!(module("std"), "std_");
        assert_eq!((method("Reference"), method("watchAll")), ("reference_".into(), "watch_all".into()));
    }

    #[test]
    fn scopes() {
        assert_eq!(split("a::b::C"), ("a::b", "C"));
        assert_eq!(split("QMap<KIO::Item,int>"), ("", "QMap<KIO::Item,int>"));
        assert_eq!(split("KIO::List<KIO::Item>"), ("KIO", "List<KIO::Item>"));
        assert!(is_identifier("a::b_2") && !is_identifier("long int") && !is_identifier("a::"));
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let mut taken = UniqueNames::types();
        assert_eq!(taken.name_type("Option".into()), "Option2");
        assert_eq!(taken.name_type("Option".into()), "Option3");
        assert_eq!(
            distinct(["fooBar", "foo_bar", "type", "Type"], snake),
            ["foo_bar", "foo_bar_2", "r#type", "type_2"]
        );
    }
}
