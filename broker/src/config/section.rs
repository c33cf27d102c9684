//! Tables of a TOML file, read field by field: each field that is asked for is known, and any other is a
//! mistake.
//!
//! A `Section` is one table; its methods take the name of a field and return its value with its place, or
//! nothing. Nothing means that the field is not there, or that it is wrong: then the mistake was noted. So a
//! reader asks for all fields of a table in a row, calls `Section::end`, which finds those that nobody has
//! asked for, and goes on with what there is.
//!
//! States: `known` grows with each field that is asked for; the mistakes of all sections go to one `Reader`.
//! Invariants: a mistake has the line and column of the value, or of the table that lacks it; no reading
//! stops at the first mistake.

use super::mistakes::{Lines, Mistakes, Position, meant};
use everywire::layer::Pattern;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Fields of the file itself: behind a table they would be the table's.
const ABOVE: [&str; 4] = ["grace", "hops", "max-message", "verbose"];

/// A value, and where it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WithPosition<T> {
    pub(crate) value: T,
    pub(crate) spot: Position,
}

impl<T> Deref for WithPosition<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The file that is read, and what was found to be wrong with it.
pub(crate) struct Reader<'t> {
    pub(crate) file: &'t str,
    pub(crate) lines: Lines<'t>,
    pub(crate) mistakes: RefCell<Mistakes>,
}

impl Reader<'_> {
    /// The place of an offset in octets.
    pub(crate) fn spot(&self, offset: usize) -> Position {
        self.lines.position(offset)
    }

    /// Notes a mistake.
    pub(crate) fn wrong(&self, spot: Position, message: impl Into<String>, hint: Option<String>) {
        self.mistakes.borrow_mut().add(self.file, spot, message, hint);
    }
}

/// One table.
pub(crate) struct Section<'r, 't> {
    pub(crate) reader: &'r Reader<'t>,
    /// Where it begins.
    pub(crate) spot: Position,
    table: &'r DeTable<'t>,
    /// What it is called in messages, such as `[admin]`.
    name: String,
    known: RefCell<BTreeSet<&'static str>>,
}

impl<'r, 't> Section<'r, 't> {
    /// A table that begins at this offset, called `name` in messages.
    pub(crate) fn new(
        reader: &'r Reader<'t>,
        table: &'r DeTable<'t>,
        offset: usize,
        name: impl Into<String>,
    ) -> Self {
        let spot = reader.spot(offset);
        Self { reader, spot, table, name: name.into(), known: RefCell::default() }
    }

    /// A field, which is known from now on.
    fn get(&self, name: &'static str) -> Option<&'r Spanned<DeValue<'t>>> {
        self.known.borrow_mut().insert(name);
        self.table.get(name)
    }

    fn at(&self, value: &Spanned<DeValue<'_>>) -> Position {
        self.reader.spot(value.span().start)
    }

    fn wrong_type(&self, name: &str, value: &Spanned<DeValue<'_>>, expected: &str) {
        let found = value.get_ref().type_str();
        self.reader.wrong(self.at(value), format!("`{name}` is {expected}, not {}", noun(found)), None);
    }

    /// Text.
    pub(crate) fn text(&self, name: &'static str) -> Option<WithPosition<String>> {
        let value = self.get(name)?;
        match value.get_ref().as_str() {
            Some(text) => Some(WithPosition { value: text.to_owned(), spot: self.at(value) }),
            None => {
                self.wrong_type(name, value, "a text");
                None
            }
        }
    }

    /// Text that must be there.
    pub(crate) fn needed(&self, name: &'static str) -> Option<WithPosition<String>> {
        if self.get(name).is_none() {
            self.reader.wrong(self.spot, format!("{} lacks `{name}`", self.name), None);
        }
        self.text(name)
    }

    /// Text that something makes a value of.
    pub(crate) fn parsed<T, E: fmt::Display>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<WithPosition<T>> {
        let text = self.text(name)?;
        match parse(&text) {
            Ok(value) => Some(WithPosition { value, spot: text.spot }),
            Err(why) => {
                self.reader.wrong(text.spot, format!("`{name}`: {why}"), None);
                None
            }
        }
    }

    /// A time such as `5s`.
    pub(crate) fn time(&self, name: &'static str) -> Option<Duration> {
        let value = self.get(name)?;
        if value.get_ref().as_str().is_none() {
            self.wrong_type(name, value, "a time with its unit, such as \"5s\"");
            return None;
        }
        self.parsed(name, everywire_model::units::time).map(|time| time.value)
    }

    /// One of these words.
    pub(crate) fn word<T: Copy>(&self, name: &'static str, words: &[(&str, T)]) -> Option<WithPosition<T>> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let message = format!("`{name}` cannot be `{}`: it is one of {}", text.value, known.join(", "));
            self.reader.wrong(text.spot, message, meant(&text, known));
        }
        found.map(|(_, value)| WithPosition { value: *value, spot: text.spot })
    }

    /// Where the value of a field is, and whether it is an empty list; nothing if the field is not there.
    pub(crate) fn place(&self, name: &'static str) -> Option<(Position, bool)> {
        let value = self.get(name)?;
        Some((self.at(value), value.get_ref().as_array().is_some_and(|values| values.is_empty())))
    }

    /// A list of texts, or one.
    pub(crate) fn texts(&self, name: &'static str) -> Vec<WithPosition<String>> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let one = |value: &Spanned<DeValue<'_>>| match value.get_ref().as_str() {
            Some(text) => Some(WithPosition { value: text.to_owned(), spot: self.at(value) }),
            None => {
                self.wrong_type(name, value, "a text or a list of texts");
                None
            }
        };
        match value.get_ref().as_array() {
            Some(values) => values.iter().filter_map(one).collect(),
            None => one(value).into_iter().collect(),
        }
    }

    /// A whole number of at least `least`.
    pub(crate) fn count(&self, name: &'static str, least: u64) -> Option<u64> {
        let value = self.get(name)?;
        let Some(number) = value.get_ref().as_integer() else {
            self.wrong_type(name, value, "a whole number");
            return None;
        };
        let digits = number.as_str().replace('_', "");
        let found = u64::from_str_radix(&digits, number.radix()).ok().filter(|number| *number >= least);
        if found.is_none() {
            let message = format!("`{name}` cannot be {digits}: it is at least {least}");
            self.reader.wrong(self.at(value), message, None);
        }
        found
    }

    /// True or false.
    pub(crate) fn flag(&self, name: &'static str) -> Option<WithPosition<bool>> {
        let value = self.get(name)?;
        match value.get_ref().as_bool() {
            Some(flag) => Some(WithPosition { value: flag, spot: self.at(value) }),
            None => {
                self.wrong_type(name, value, "true or false");
                None
            }
        }
    }

    /// A table.
    pub(crate) fn section(&self, name: &'static str, shown: &str) -> Option<Section<'r, 't>> {
        let value = self.get(name)?;
        match value.get_ref().as_table() {
            Some(table) => Some(Section::new(self.reader, table, value.span().start, shown)),
            None => {
                self.wrong_type(name, value, "a table");
                None
            }
        }
    }

    /// A list of tables, or one.
    pub(crate) fn sections(&self, name: &'static str, shown: &str) -> Vec<Section<'r, 't>> {
        let Some(value) = self.get(name) else { return Vec::new() };
        let one = |value: &'r Spanned<DeValue<'t>>| match value.get_ref().as_table() {
            Some(table) => Some(Section::new(self.reader, table, value.span().start, shown)),
            None => {
                self.wrong_type(name, value, "a table or a list of tables");
                None
            }
        };
        match value.get_ref().as_array() {
            Some(values) => values.iter().filter_map(one).collect(),
            None => one(value).into_iter().collect(),
        }
    }

    /// Tables by names of the user's own.
    pub(crate) fn named(&self, name: &'static str) -> Vec<(WithPosition<String>, Section<'r, 't>)> {
        let Some(all) = self.section(name, &format!("[{name}]")) else { return Vec::new() };
        let one = |(key, value): (&'r Spanned<_>, &'r Spanned<DeValue<'t>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            let (text, spot) = (key.get_ref().to_string(), self.reader.spot(key.span().start));
            match value.get_ref().as_table() {
                Some(table) => {
                    let shown = format!("[{name}.{text}]");
                    let mut section = Section::new(self.reader, table, value.span().start, shown);
                    section.spot = spot;
                    Some((WithPosition { value: text, spot }, section))
                }
                None => {
                    self.wrong_type(&format!("{name}.{text}"), value, "a table");
                    None
                }
            }
        };
        all.table.iter().filter_map(one).collect()
    }

    /// Fields of the user's own names, each a text with `*` in it.
    pub(crate) fn pairs(&self) -> Vec<(WithPosition<String>, Pattern)> {
        let one = |(key, value): (&'r Spanned<_>, &'r Spanned<DeValue<'t>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            match value.get_ref().as_str() {
                Some(text) => {
                    let name = WithPosition {
                        value: key.get_ref().to_string(),
                        spot: self.reader.spot(key.span().start),
                    };
                    Some((name, Pattern::new(text)))
                }
                None => {
                    self.wrong_type(key.get_ref(), value, "a text");
                    None
                }
            }
        };
        self.table.iter().filter_map(one).collect()
    }

    /// All fields were asked for: others are mistakes.
    pub(crate) fn end(&self) {
        let known = self.known.borrow();
        for key in self.table.keys().filter(|key| !known.contains(key.get_ref().as_ref())) {
            let field = key.get_ref();
            let spot = self.reader.spot(key.span().start);
            let hint = match ABOVE.contains(&field.as_ref()) {
                true => Some(format!("`{field}` stands above the first table of the file")),
                false => meant(field, known.iter().copied()),
            };
            self.reader.wrong(spot, format!("{} has no field `{field}`", self.name), hint);
        }
    }
}

/// TOML's word for a type, with its article.
fn noun(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {kind}")
}
