//! Reading the automation types: VARIANT, BSTR and SAFEARRAY (MS-OAUT 2.2.23, 2.2.29, 2.2.30).

use super::super::layout::Place;
use super::super::variant;
use super::{Kind, NdrSource};
use crate::limits::{SAFEARRAY_DIMENSIONS, VARIANT_DEPTH};
use crate::violations::{Violation, unsupported};
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a> NdrSource<'a> {
    pub(super) fn open_variant(&mut self) -> Visit<usize> {
        let place = self.begin()?;
        if self.variants >= VARIANT_DEPTH {
            return self.wrong(Violation::VariantDepth);
        }
        if place == Place::Arm && self.window.u32()? == 0 {
            return self.wrong(Violation::BadVariant);
        }
        let marker = self.window.u32()?;
        let mut back = None;
        let mut kind = Kind::Variant { vt: variant::EMPTY, end: self.window.at };
        if marker != 0 {
            self.budget.charge_elements(1)?;
            if place == Place::Within {
                back = Some(self.go()?);
            }
            let outer = std::mem::replace(&mut self.window.little, true);
            kind = self.variant_header()?;
            self.window.little = outer;
        }
        self.variants += 1;
        self.window.little = true;
        let frame = self.push(kind, 1)?;
        frame.back = back;
        frame.automation = true;
        Ok(1)
    }

    fn variant_header(&mut self) -> Visit<Kind> {
        self.window.align(8);
        let start = self.window.at;
        let units = self.window.u32()? as usize;
        self.window.u32()?;
        let vt = self.window.u16()?;
        for _ in 0..3 {
            self.window.u16()?;
        }
        let discriminant = self.window.u32()?;
        let size = units.checked_mul(8).filter(|size| *size >= variant::HEADER);
        let end = size.and_then(|size| start.checked_add(size));
        match end {
            Some(end) if discriminant == variant::discriminant(vt) => {
                // The size is in whole units; the last of them ends where the content does.
                if end.saturating_sub(7) > self.window.bytes.len() {
                    return self.wrong(Violation::Truncated);
                }
                Ok(Kind::Variant { vt, end })
            }
            _ => self.wrong(Violation::BadVariant),
        }
    }

    /// FLAGGED_WORD_BLOB (MS-OAUT 2.2.23.1).
    pub(super) fn blob(&mut self) -> Visit<Cow<'a, str>> {
        let outer = std::mem::replace(&mut self.window.little, true);
        let conformance = self.window.u32()?;
        let bytes = self.window.u32()?;
        let units = self.window.u32()?;
        let null = bytes == variant::NULL_BSTR && units == 0;
        if conformance != units || !(null || bytes.div_ceil(2) == units) {
            return self.wrong(Violation::BadBstr);
        }
        if !null && bytes % 2 != 0 {
            return Err(unsupported("BSTRs that hold an odd number of bytes"));
        }
        let text = self.wide(units as usize)?;
        self.window.little = outer;
        Ok(text)
    }

    /// SAFEARRAY, up to its elements (MS-OAUT 2.2.30.10); nothing if it is null.
    pub(super) fn open_safearray(&mut self, shape: &Shape) -> Visit<Option<u32>> {
        let element = variant::type_of(shape)? & !variant::ARRAY;
        let (expected, _, _) = variant::safearray_of(element)?;
        if self.window.u32()? == 0 || self.window.u32()? == 0 {
            return Ok(None);
        }
        let conformance = self.window.u32()?;
        let dimensions = u32::from(self.window.u16()?);
        self.window.u16()?;
        self.window.u32()?;
        self.window.u32()?;
        let sf_type = self.window.u32()?;
        let size = self.window.u32()?;
        let data = self.window.u32()?;
        if dimensions != conformance
            || dimensions == 0
            || dimensions > SAFEARRAY_DIMENSIONS
            || sf_type != expected
        {
            return self.wrong(Violation::BadSafearray);
        }
        let mut product = 1_u32;
        for _ in 0..dimensions {
            let elements = self.window.u32()?;
            self.window.i32()?;
            match product.checked_mul(elements) {
                Some(next) => product = next,
                None => return self.wrong(Violation::BadSafearray),
            }
        }
        if product != size || (data == 0 && size > 0) {
            return self.wrong(Violation::BadSafearray);
        }
        if dimensions > 1 {
            return Err(unsupported("SAFEARRAYs of several dimensions"));
        }
        if data == 0 {
            return Ok(None);
        }
        if self.window.u32()? != size {
            return self.wrong(Violation::BadSafearray);
        }
        Ok(Some(size))
    }
}
