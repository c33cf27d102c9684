//! Names made unique where a language allows the same name twice, and legal where it allows more characters.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// A name with the characters of identifiers alone: letters of other scripts become their numbers, so that names stay different
/// (`\u{e9}` is `u00e9`), and everything else `_`.
pub(crate) fn legal(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            c if c.is_ascii_alphanumeric() => out.push(c),
            c if c.is_alphanumeric() => drop(write!(out, "u{:04x}", u32::from(c))),
            _ => out.push('_'),
        }
    }
    out
}

/// The names given so far.
#[derive(Default)]
pub(crate) struct Unique {
    given: HashSet<String>,
    /// The number that each wanted name tries next. Without it, a contract with n equal names would cost n *
    /// n look-ups.
    next: HashMap<String, u32>,
}

impl Unique {
    /// This name, or where it is taken, the name with `_2`, `_3`, ...
    pub(crate) fn name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        if self.given.contains(wanted) {
            let number = self.next.entry(wanted.to_owned()).or_insert(1);
            while self.given.contains(&name) {
                *number += 1;
                name = format!("{wanted}_{number}");
            }
        }
        self.given.insert(name.clone());
        name
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.contains(name)
    }
}
