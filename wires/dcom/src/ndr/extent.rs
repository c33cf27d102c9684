//! What a contract says of the size of an array beside it, where that is more than one name (`size_is` and its like), and what chooses
//! the arm of a union (`switch_is`).
//!
//! The reader of MIDL keeps such an attribute as the name of an alias around the array: `size_is(n / 2)`, or several
//! with commas between them. Here the attributes are found again and computed from the values beside the array. That
//! covers what MIDL's own engine has correlation descriptors for (`n / 2`, `n * 2`, `n + 1`, `n - 1`, `*p`), and all
//! other arithmetic with names, numbers and the operators of C on integers. What else MIDL allows (calls of
//! functions, the way to a field of another struct) is not computed: such a size is not checked, and is taken to
//! be the number of elements.
//!
//! It has no state: an expression is computed from its text each time, since few structs have any.

use everywire_model::shape::Shape;

/// How deeply expressions may be nested that are computed; MIDL writes two or three levels at the most.
const DEPTH: u32 = 32;

/// The attributes of one array or string.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Extent<'s> {
    /// `size_is`, or `max_is`, which is the greatest index; the number is what is to be added.
    size: Option<(&'s str, i64)>,
    length: Option<&'s str>,
    first: Option<&'s str>,
    last: Option<&'s str>,
}

/// What an attribute comes to, and how it is written, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Computed<'s> {
    pub(super) value: i64,
    pub(super) text: &'s str,
}

impl<'s> Extent<'s> {
    /// Of a field that is an array or a string, or points to one; nothing if no attribute stands around it.
    pub(super) fn of(shape: &'s Shape) -> Option<Self> {
        let (mut shape, mut extent, mut found) = (shape, Self::default(), false);
        loop {
            match shape {
                Shape::Alias(alias) => {
                    if alias.name.contains('(') {
                        pieces(&alias.name, |name, value| found |= extent.set(name, value));
                    }
                    shape = &alias.target;
                }
                Shape::Pointer(pointer) => shape = &pointer.target,
                Shape::Optional(target) => shape = target,
                Shape::Sequence(_) | Shape::Text(_) => return found.then_some(extent),
                _ => return None,
            }
        }
    }

    fn set(&mut self, name: &str, value: &'s str) -> bool {
        match name {
            "size_is" => self.size = Some((value, 0)),
            "max_is" => self.size = Some((value, 1)),
            "length_is" => self.length = Some(value),
            "first_is" => self.first = Some(value),
            "last_is" => self.last = Some(value),
            _ => return false,
        }
        true
    }

    /// How many elements there is room for: the maximum count.
    pub(super) fn size(&self, beside: &dyn Fn(&str) -> Option<i64>) -> Option<Computed<'s>> {
        let (text, more) = self.size?;
        Some(Computed { value: compute(text, beside)?.checked_add(more)?, text })
    }

    /// How many elements travel: the actual count.
    pub(super) fn length(&self, beside: &dyn Fn(&str) -> Option<i64>) -> Option<Computed<'s>> {
        if let Some(text) = self.length {
            return Some(Computed { value: compute(text, beside)?, text });
        }
        let text = self.last?;
        let first = self.first.map_or(Some(0), |first| compute(first, beside))?;
        Some(Computed { value: compute(text, beside)?.checked_sub(first)?.checked_add(1)?, text })
    }

    /// The index of the first element that travels: the offset.
    pub(super) fn first(&self, beside: &dyn Fn(&str) -> Option<i64>) -> Option<Computed<'s>> {
        let text = self.first?;
        Some(Computed { value: compute(text, beside)?, text })
    }
}

/// What chooses the arm of a field that is a union, or points to one, if that stands beside it (`switch_is`).
pub(super) fn switch_of(shape: &Shape) -> Option<&str> {
    let (mut shape, mut found) = (shape, None);
    loop {
        match shape {
            Shape::Alias(alias) => {
                if alias.name.contains('(') {
                    pieces(&alias.name, |name, value| {
                        if name == "switch_is" {
                            found = Some(value);
                        }
                    });
                }
                shape = &alias.target;
            }
            Shape::Pointer(pointer) => shape = &pointer.target,
            Shape::Optional(target) => shape = target,
            Shape::Union(_) => return found,
            _ => return None,
        }
    }
}

/// Calls `each` with name and value of `a(b), c(d)`.
pub(super) fn pieces<'s>(text: &'s str, mut each: impl FnMut(&'s str, &'s str)) {
    let (mut depth, mut start, mut open) = (0_usize, 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => {
                if depth == 0 {
                    open = at;
                }
                depth += 1;
            }
            ')' => {
                depth = depth.saturating_sub(1);
                if let (0, Some(name), Some(value)) = (depth, text.get(start..open), text.get(open + 1..at)) {
                    each(name.trim_matches([',', ' ']), value);
                    (start, open) = (at + 1, at + 1);
                }
            }
            _ => {}
        }
    }
}

/// What an expression comes to; nothing if it holds what is not computed, a name whose value is not known, or a result
/// that no number of 64 bits is.
pub(super) fn compute(text: &str, beside: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut expression = Expression { rest: text, beside, depth: 0 };
    let value = expression.choice()?;
    expression.rest.trim_start().is_empty().then_some(value)
}

/// Operators between two operands, and how tightly they bind. An operator stands before those that it begins with, so that the first
/// one that fits is meant.
const OPERATORS: &[(&str, u8)] = &[
    ("||", 0),
    ("&&", 1),
    ("<<", 7),
    (">>", 7),
    ("<=", 6),
    (">=", 6),
    ("==", 5),
    ("!=", 5),
    ("<", 6),
    (">", 6),
    ("&", 4),
    ("^", 3),
    ("|", 2),
    ("+", 8),
    ("-", 8),
    ("*", 9),
    ("/", 9),
    ("%", 9),
];

/// An expression that is being computed, from left to right.
struct Expression<'e> {
    rest: &'e str,
    beside: &'e dyn Fn(&str) -> Option<i64>,
    depth: u32,
}

impl Expression<'_> {
    /// `condition ? one : other`, which binds loosest and to the right; or one of its parts.
    fn choice(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        let Some(rest) = self.rest.trim_start().strip_prefix('?') else { return Some(condition) };
        self.rest = rest;
        let one = self.deeper(Self::choice)?;
        self.rest = self.rest.trim_start().strip_prefix(':')?;
        let other = self.deeper(Self::choice)?;
        Some(if condition == 0 { other } else { one })
    }

    /// Operands and operators that bind at least so tightly.
    fn binary(&mut self, least: u8) -> Option<i64> {
        let mut left = self.operand()?;
        loop {
            let rest = self.rest.trim_start();
            // It leads to another struct.
            if rest.starts_with("->") {
                return None;
            }
            let found = OPERATORS.iter().find(|(operator, _)| rest.starts_with(operator));
            let Some((operator, binding)) = found.filter(|(_, binding)| *binding >= least) else {
                return Some(left);
            };
            self.rest = rest.get(operator.len()..)?;
            left = apply(operator, left, self.binary(binding + 1)?)?;
        }
    }

    fn operand(&mut self) -> Option<i64> {
        self.deeper(Self::nested)
    }

    /// Bounds how deep expressions are nested: every way by which one part leads into another goes through here.
    fn deeper(&mut self, part: impl FnOnce(&mut Self) -> Option<i64>) -> Option<i64> {
        self.depth += 1;
        let value = if self.depth > DEPTH { None } else { part(self) };
        self.depth -= 1;
        value
    }

    fn nested(&mut self) -> Option<i64> {
        let rest = self.rest.trim_start();
        let first = rest.chars().next()?;
        if first.is_ascii_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let (word, rest) = rest.split_at(end);
            self.rest = rest;
            return if first.is_ascii_digit() { word.parse().ok() } else { (self.beside)(word) };
        }
        self.rest = rest.get(first.len_utf8()..)?;
        match first {
            '(' => {
                let value = self.choice()?;
                self.rest = self.rest.trim_start().strip_prefix(')')?;
                Some(value)
            }
            // What a pointer points to has the pointer's name beside the array.
            '*' | '+' => self.operand(),
            '-' => self.operand()?.checked_neg(),
            '~' => self.operand().map(|value| !value),
            '!' => self.operand().map(|value| i64::from(value == 0)),
            _ => None,
        }
    }
}

fn apply(operator: &str, left: i64, right: i64) -> Option<i64> {
    let shift = || u32::try_from(right).ok().filter(|bits| *bits < i64::BITS);
    Some(match operator {
        "+" => left.checked_add(right)?,
        "-" => left.checked_sub(right)?,
        "*" => left.checked_mul(right)?,
        "/" => left.checked_div(right)?,
        "%" => left.checked_rem(right)?,
        "<<" => left.checked_mul(1_i64.checked_shl(shift()?)?)?,
        ">>" => left >> shift()?,
        "&" => left & right,
        "^" => left ^ right,
        "|" => left | right,
        "&&" => (left != 0 && right != 0).into(),
        "||" => (left != 0 || right != 0).into(),
        "==" => (left == right).into(),
        "!=" => (left != right).into(),
        "<" => (left < right).into(),
        ">" => (left > right).into(),
        "<=" => (left <= right).into(),
        ">=" => (left >= right).into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<i64> {
        compute(text, &|name| match name {
            "n" => Some(7),
            "big" => Some(i64::MAX),
            _ => None,
        })
    }

    #[test]
    fn what_the_descriptors_of_midl_say_is_computed() {
        for (text, expected) in
            [("n", 7), ("*n", 7), ("n / 2", 3), ("n * 2", 14), ("n + 1", 8), ("n - 1", 6), ("*n * 2", 14)]
        {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_arithmetic_is_that_of_c() {
        for (text, expected) in [
            ("(n + 7) / 8", 1),
            ("n - (2 - 1)", 6),
            ("n - 2 - 1", 4),
            ("1 + n * 2", 15),
            ("n << 2", 28),
            ("(n & 3) | 8", 11),
            ("n % 4 == 3", 1),
            ("n >= 8", 0),
            ("-n + 10", 3),
            ("!n", 0),
            ("~n", -8),
            ("12", 12),
            ("n && n - 7", 0),
            ("n - 7 || n == 7 && n", 1),
            ("n ? n : 1", 7),
            ("n > 7 ? 1 : n == 7 ? 2 : 3", 2),
            ("(n - 7 ? n : 1) * 2", 2),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_computed_is_no_number() {
        let deep = "(".repeat(100) + "n" + &")".repeat(100);
        let long = "n ? n : ".repeat(100) + "n";
        for text in [
            "other", "n / 0", "big + 1", "big << 1", "n << 64", "n->count", "n.count", "f(n)", "n ? 1",
            "n ? 1 : ", "n : 1", "n +", "", &deep, &long,
        ] {
            assert_eq!(value(text), None, "{text}");
        }
    }

    #[test]
    fn several_attributes_stand_in_one_name() {
        let mut found = Vec::new();
        pieces("first_is(a), last_is((b + 1) * 2)", |name, value| found.push((name, value)));
        assert_eq!(found, [("first_is", "a"), ("last_is", "(b + 1) * 2")]);
    }
}
