//! Reading strings (C706 14.3.4).
//!
//! Text that is no UTF-16, or no UTF-8 where the contract has octets, is refused: replacing characters would
//! change names and keys without anybody knowing.

use super::NdrSource;
use crate::violations::Violation;
use everywire_model::shape::{Text, TextKind};
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a> NdrSource<'a> {
    /// So many units of UTF-16.
    pub(super) fn wide(&mut self, units: usize) -> Visit<Cow<'a, str>> {
        let at = self.window.at;
        let raw = self.window.take(units.checked_mul(2).ok_or_else(|| Violation::Truncated.at(at))?)?;
        self.budget.charge_bytes(raw.len() as u64)?;
        let little = self.window.little;
        let units = raw.chunks_exact(2).filter_map(|pair| pair.try_into().ok());
        let mut units =
            units.map(|pair| if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) });
        // Mostly the text is ASCII: then each unit is a byte of it.
        let mut text = String::with_capacity(raw.len() / 2);
        let odd = units.by_ref().find(|unit| match u8::try_from(*unit) {
            Ok(byte) if byte.is_ascii() => {
                text.push(char::from(byte));
                false
            }
            _ => true,
        });
        for unit in char::decode_utf16(odd.into_iter().chain(units)) {
            text.push(unit.map_err(|_| Violation::BadText.at(at))?);
        }
        Ok(Cow::Owned(text))
    }

    /// A string as a conformant and varying array of characters; the NUL that ends it is not part of the text.
    pub(super) fn string(&mut self, shape: &Text) -> Visit<Cow<'a, str>> {
        let max = self.window.u32()?;
        let actual = self.variance(Some(max))? as usize;
        let at = self.window.at;
        let mut text = if shape.kind == TextKind::Narrow {
            let raw = self.window.take(actual)?;
            self.budget.charge_bytes(raw.len() as u64)?;
            Cow::Borrowed(std::str::from_utf8(raw).map_err(|_| Violation::BadText.at(at))?)
        } else {
            self.wide(actual)?
        };
        if text.ends_with('\0') {
            match &mut text {
                Cow::Borrowed(text) => *text = text.strip_suffix('\0').unwrap_or(text),
                Cow::Owned(text) => {
                    text.pop();
                }
            }
        }
        if shape.bound.is_some_and(|bound| actual.saturating_sub(1) > bound as usize) {
            return self.wrong(Violation::BoundExceeded);
        }
        Ok(text)
    }
}
