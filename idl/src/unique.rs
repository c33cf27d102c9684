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

/// Characters of the longest name that our readers of OMG IDL and MIDL take.
const LONGEST: usize = 255;
/// Characters that are left of a name which is too long. There is room for a hash behind it, and for a number behind that.
const CUT: usize = 230;

/// A name that is not too long for our readers. A hash tells of what is cut off, since names often begin alike.
pub(crate) fn cut(mut name: String) -> String {
    if name.len() > LONGEST {
        // FNV-1a with 64 bits, which is the same in each process.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, step);
        name = name.chars().take(CUT).collect();
        let _ = write!(name, "_{hash:016x}");
    }
    name
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
