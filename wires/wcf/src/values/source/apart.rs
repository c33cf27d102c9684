//! Members of structs that are no elements of their own, as XmlSerializer has them: attributes, the text of
//! an element, and lists whose items stand among the other members.
//!
//! State, in the frame of the struct that is being read: `apart` has the attributes of its start tag, found
//! once, when the first field asks for one; `jumble` has the places of its members, found once, when the first
//! list among them is opened. A list has a frame of its own: `Words` with the words of an attribute, `Flat`
//! with the places of its items, to which the cursor goes back for each.
//!
//! Invariants:
//! * Two attributes of one name, by prefix or by namespace, are a violation.
//! * Words and items are counted, and compared with the quota and with the contract, before one is kept.
//! * Behind the text of a struct only its attributes can still be read.

use super::fields::{is_apart, is_choice, is_field};
use super::state::{ElementSource, Frame, Kind, NextValue, ValuesOutsideElements};
use crate::text;
use crate::values::Quota;
use crate::values::cursor::{AttributeValue, Cursor, OpenElement};
use crate::values::scalar::Content;
use crate::violations::Violation;
use everywire_idl::wsdl::marks::{Attribute, Mark};
use everywire_model::shape::{Shape, Struct};
use everywire_model::visit::Visit;
use std::borrow::Cow;

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// What the next value is, if it is no element.
    #[inline]
    pub(super) fn next_apart(&mut self) -> Visit<NextValue<'a>> {
        let Some(frame) = self.frames.last_mut() else { return Ok(NextValue::Element) };
        match &frame.kind {
            Kind::Struct(fields, false) if is_apart(fields, frame.index) => self.next_attribute(),
            // A value that was read ahead: the one of an attribute, or the next word of a list.
            Kind::Maybe | Kind::Words => {
                let value = frame.apart.as_mut().and_then(|apart| apart.values.pop_front());
                Ok(match value {
                    Some(value) => {
                        frame.index += 1;
                        NextValue::Content(value)
                    }
                    None => NextValue::Element,
                })
            }
            _ => Ok(NextValue::Element),
        }
    }

    /// The attribute that is the next field: its value, its default, or nothing.
    fn next_attribute(&mut self) -> Visit<NextValue<'a>> {
        self.leave_aside();
        let Some(Frame { kind: Kind::Struct(fields, false), index, .. }) = self.frames.last_mut() else {
            return self.wrong(Violation::Misuse);
        };
        let fields = fields.clone();
        let shape = fields.fields.get(*index).map(|field| &field.shape);
        let Some(Mark::Attribute(wanted)) = shape.and_then(Mark::of) else { return Ok(NextValue::Element) };
        *index += 1;
        self.find_attributes(&fields)?;
        let apart = self.frames.last_mut().and_then(|frame| frame.apart.as_mut());
        let found = apart.and_then(|apart| {
            let at = apart.found.iter().position(|found| is_it(found, &wanted))?;
            Some(apart.found.swap_remove(at).content)
        });
        let default = || wanted.default.map(|value| Content::Text(Cow::Owned(value.to_owned())));
        Ok(found.or_else(default).map_or(NextValue::Missing, NextValue::Content))
    }

    /// Reads the attributes of the struct on top, once, while it is open.
    fn find_attributes(&mut self, fields: &Struct) -> Visit<()> {
        let Some(&Frame { at, open: true, apart: None, .. }) = self.frames.last() else { return Ok(()) };
        let mut found = self.cursor.attributes(at, &mut self.budget)?;
        // Prefixes are looked up only for attributes that a field with a namespace may be.
        let qualified = |name: &str| {
            fields.fields.iter().any(|field| match Mark::of(&field.shape) {
                Some(Mark::Attribute(wanted)) => !wanted.namespace.is_empty() && wanted.name == name,
                _ => false,
            })
        };
        for attribute in &mut found {
            if attribute.prefix == "xml" {
                attribute.namespace = Some(text::XML.to_owned());
            } else if !attribute.prefix.is_empty() && qualified(attribute.name) {
                let here = self.cursor.position();
                attribute.namespace = self.cursor.namespace(&attribute.prefix, here, &mut self.budget)?;
            }
        }
        for (at, one) in found.iter().enumerate() {
            // By prefix, or by what two prefixes stand for (Namespaces in XML 1.0, 6.3).
            let same = |other: &AttributeValue<'_>| {
                let space = one.namespace.is_some() && one.namespace == other.namespace;
                other.name == one.name && (other.prefix == one.prefix || space)
            };
            if found.iter().skip(at + 1).any(same) {
                return self.wrong(Violation::DuplicateAttribute);
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.apart = Some(Box::new(ValuesOutsideElements { found, ..ValuesOutsideElements::default() }));
        }
        Ok(())
    }

    /// The text of the open struct as its element's; nothing is read of it behind that but attributes.
    #[cold]
    pub(super) fn enter_apart(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let Some(Frame { kind: Kind::Struct(fields, false), open, .. }) = self.frames.last() else {
            return self.wrong(Violation::Misuse);
        };
        let (fields, is_open) = (fields.clone(), *open);
        let shape = fields.fields.get(index).map(|field| &field.shape);
        if shape.and_then(Mark::of) != Some(Mark::Text) {
            return self.wrong(Violation::Misuse);
        }
        if !is_open {
            return Ok(None);
        }
        self.find_attributes(&fields)?;
        let frame = self.top();
        frame.open = false;
        Ok(Some(OpenElement::new("", frame.at)))
    }

    /// Opens the list that comes next, if it is in an attribute or its items stand among the other members.
    #[inline]
    pub(super) fn open_apart(&mut self, shape: &Shape) -> Visit<Option<usize>> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, _) = &frame.kind else { return Ok(None) };
        match fields.fields.get(frame.index).and_then(|field| Mark::of(&field.shape)) {
            None | Some(Mark::Element | Mark::Left(..) | Mark::Text) => Ok(None),
            Some(Mark::Attribute(_)) => self.open_words(shape).map(Some),
            Some(mark) => {
                let fields = fields.clone();
                self.open_flat(&fields, shape, mark == Mark::Choices).map(Some)
            }
        }
    }

    /// A list in one attribute: items are words between white space.
    #[cold]
    fn open_words(&mut self, shape: &Shape) -> Visit<usize> {
        let text = match self.next_apart()? {
            NextValue::Content(content) => content.text(),
            _ => Cow::Borrowed(""),
        };
        let words = text.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty());
        // A word costs more in memory than in the text: they are counted before they are kept.
        let count = words.clone().count();
        self.budget.charge_elements(count as u64)?;
        self.budget.charge_bytes(text.len() as u64)?;
        self.fits(shape, count)?;
        let values = words.map(|word| Content::Text(Cow::Owned(word.to_owned()))).collect();
        let apart = Some(Box::new(ValuesOutsideElements { values, ..ValuesOutsideElements::default() }));
        self.push(Frame { apart, ..Frame::new(Kind::Words, count) })?;
        Ok(count)
    }

    /// A list whose items stand among the members of the open struct: they are found first, and read where
    /// they are.
    #[cold]
    fn open_flat(&mut self, fields: &Struct, shape: &Shape, is_named: bool) -> Visit<usize> {
        self.leave_aside();
        let frame = self.top();
        let (index, wraps) = (frame.index, matches!(frame.kind, Kind::Struct(_, true)));
        frame.index += 1;
        self.find_members()?;
        let frame = self.top();
        let depth = frame.depth;
        let members = frame.jumble.as_ref().map(|jumble| jumble.members.as_slice()).unwrap_or_default();
        let is_item = |name: &str| match fields.fields.get(index) {
            Some(field) if is_named => is_choice(&field.shape, name),
            _ => is_field(fields, index, name, wraps),
        };
        let mut places: Vec<usize> =
            members.iter().filter(|(name, _)| is_item(name)).map(|(_, at)| *at).collect();
        // One that is nil in place of items that cannot be: a list that is null, to which JAX-RPC gives no element of its own
        // (Axis 1).
        if let [at] = *places.as_slice()
            && !is_named
            && shape.element().is_some_and(is_never_nil)
        {
            self.cursor.seek(at, depth);
            if self.cursor.enter()?.is_some_and(|entered| entered.nil) {
                places.clear();
            }
        }
        let count = places.len();
        self.fits(shape, count)?;
        let apart = Some(Box::new(ValuesOutsideElements { places, ..ValuesOutsideElements::default() }));
        self.push(Frame { depth, apart, ..Frame::new(Kind::Flat(is_named), count) })?;
        Ok(count)
    }

    /// Enters an item that stands among the members of a struct.
    #[cold]
    pub(super) fn enter_flat(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let frame = self.top();
        let depth = frame.depth;
        let Some(at) = frame.apart.as_ref().and_then(|apart| apart.places.get(index).copied()) else {
            return self.wrong(Violation::Misuse);
        };
        self.cursor.seek(at, depth);
        self.enter_item()
    }

    /// Notes where the members of the struct on top are, from the one that comes next.
    fn find_members(&mut self) -> Visit<()> {
        let frame = self.top();
        if frame.jumble.is_some() || !frame.open {
            return Ok(());
        }
        let mut next = frame.entered.take();
        loop {
            if next.is_none() {
                next = self.cursor.enter()?;
            }
            match next {
                Some(entered) => return self.jumble(&entered),
                None if self.pass_array()? => {}
                // The end comes next: there is nothing to come back to.
                None => return Ok(()),
            }
        }
    }

    /// Compares a count with the quota and with what the contract allows.
    pub(super) fn fits(&self, shape: &Shape, count: usize) -> Visit<()> {
        let limit = self.quotas.max_array_length;
        if count > limit as usize && shape.element().and_then(Shape::width).is_some() {
            return Err(Quota::ArrayLength.exceeded(limit));
        }
        let fits = match shape.resolved() {
            Shape::Array(array) => array.len as usize == count,
            Shape::Sequence(sequence) => sequence.bound.is_none_or(|bound| count <= bound as usize),
            _ => true,
        };
        if fits { Ok(()) } else { self.wrong(Violation::BoundExceeded) }
    }

    /// Opens a value of one of several elements, which tells by its name what it is.
    pub(super) fn open_named(&mut self) -> Visit<usize> {
        let Some(entered) = self.enter()? else { return self.wrong(Violation::MissingElement) };
        self.push(Frame { entered: Some(entered), ..Frame::new(Kind::Named, 2) })?;
        Ok(0)
    }

    /// What the contract says that the value is which was just found missing.
    #[cold]
    pub(super) fn default(&self) -> Option<Content<'a>> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, _) = &frame.kind else { return None };
        let field = fields.fields.get(frame.index.checked_sub(1)?)?;
        match Mark::of(&field.shape)? {
            Mark::Left(_, Some(value)) => Some(Content::Text(Cow::Owned(value.to_owned()))),
            _ => None,
        }
    }
}

/// Whether an attribute is the one that a field means; one without a namespace has no prefix.
fn is_it(found: &AttributeValue<'_>, wanted: &Attribute<'_>) -> bool {
    found.name == wanted.name
        && if wanted.namespace.is_empty() {
            found.prefix.is_empty()
        } else {
            found.namespace.as_deref() == Some(wanted.namespace)
        }
}

/// Whether no value of this type reads from an element that is nil, or only as one whose members are all missing.
fn is_never_nil(shape: &Shape) -> bool {
    match shape.resolved() {
        Shape::Bool | Shape::Char | Shape::WideChar | Shape::Enum(_) | Shape::Struct(_) | Shape::Union(_) => {
            true
        }
        other => other.width().is_some(),
    }
}
