//! Elements that stand for others, and those that stand at a place of their own: `z:Ref` and `z:Id` of data contracts that keep references (`IsReference`), and those of SOAP's
//! encoding, which peers write without that, too: `href` and `id` (SOAP 1.1, 5.4.1), `enc:ref` and `enc:id` (SOAP 1.2 part 2, 3.1.5).
//!
//! An array of SOAP 1.1 may begin with a later item (`enc:offset`), and its items may say where they stand (`enc:position`; SOAP 1.1,
//! 5.4.2). A sequence has no holes: what is not the whole array in its order is refused, since its items would be others' there.
//!
//! What is referred to is read again each time, as if it stood there: values are trees here. How much may be read so is
//! bounded for a message; what would contain itself is refused.

use super::state::{ElementPosition, ElementSource, Kind};
use crate::limits::{MAX_REFERENCES, MAX_REFERRED_OCTETS};
use crate::values::cursor::{AttributeText, Cursor, OpenElement};
use crate::values::names::{ARRAYS_ENCODING, ENCODING, SERIALIZATION};
use crate::violations::{Violation, unsupported};
use everywire_idl::wsdl::marks::{Mark, unmarked};
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator};
use std::collections::HashMap;

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// Goes to the element that this one stands for.
    #[cold]
    pub(super) fn follow(&mut self, mut entered: OpenElement<'a>) -> Visit<OpenElement<'a>> {
        if entered.partial {
            self.check_place(entered.at)?;
            if !entered.refers {
                return Ok(entered);
            }
        }
        let told = self.cursor.told(entered.at, "Ref")?;
        let here = self.cursor.position();
        if told.prefix.is_empty() {
            // Beside content, or where the contract has it, `href` is an attribute like others.
            if !self.cursor.ends() || self.has_attribute("href") {
                entered.refers = false;
                return Ok(entered);
            }
        } else {
            entered.refers = self.is_reference(&told, here)?;
            if !entered.refers {
                return Ok(entered);
            }
        }
        self.cursor.finish()?;
        let place = self.place(&told)?;
        self.expand(place.end.saturating_sub(place.at))?;
        // It refers to something that it stands in itself, or that an element stands in which led here.
        let is_inside = |position: usize| (place.at..place.end).contains(&position.saturating_sub(1));
        if is_inside(here) || self.aside.iter().any(|(_, cursor)| is_inside(cursor.position())) {
            return Err(unsupported("an object that contains itself (z:Ref, href): values are trees here"));
        }
        let mut cursor = self.cursor.rewound();
        cursor.seek(place.at, place.depth);
        let target = cursor.enter()?;
        self.aside.push((self.frames.len(), std::mem::replace(&mut self.cursor, cursor)));
        match target {
            Some(target) if !target.refers => Ok(target),
            _ => self.wrong(Violation::UnexpectedElement),
        }
    }

    /// Looks whether the element that starts at this offset is an array from its beginning, or the item that comes next in one.
    #[cold]
    fn check_place(&mut self, at: usize) -> Visit<()> {
        let frame = self.frames.last().unwrap_or(&self.base);
        // Behind it is the next one already.
        let next = frame.index.checked_sub(1).filter(|_| matches!(frame.kind, Kind::Items));
        for (wanted, expected) in [("offset", Some(0)), ("position", next)] {
            let told = self.cursor.told(at, wanted)?;
            let Some(expected) = expected.filter(|_| !told.prefix.is_empty()) else { continue };
            let number = told.value.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            if number.is_some_and(|number| number.trim().parse() == Ok(expected)) {
                continue;
            }
            // Attributes of these names may be anybody's: what a prefix stands for is looked up once, as that of references is.
            let own = told.declared.iter().any(|(prefix, _)| *prefix == told.prefix);
            if !own {
                if self.referred.as_ref().is_some_and(|known| known.unplaced.as_ref() == Some(&told.prefix)) {
                    continue;
                }
                let here = self.cursor.position();
                self.expand(here)?;
            }
            if self.declared(&told, &told.prefix)? == ARRAYS_ENCODING {
                return Err(unsupported("a part of an array of SOAP's encoding (offset, position)"));
            }
            if !own {
                self.referred.get_or_insert_default().unplaced = Some(told.prefix);
            }
        }
        Ok(())
    }

    /// Whether the attribute is of a namespace of references. What an element inherits is looked up once for a prefix; what it
    /// declares by itself costs nothing, may differ from one to the next, and says nothing of others.
    fn is_reference(&mut self, told: &AttributeText, here: usize) -> Visit<bool> {
        let own = told.declared.iter().any(|(prefix, _)| *prefix == told.prefix);
        if !own && let Some(known) = &self.referred {
            if known.prefix.as_ref() == Some(&told.prefix) {
                return Ok(true);
            }
            if known.other.as_ref() == Some(&told.prefix) {
                return Ok(false);
            }
        }
        if !own {
            self.expand(here)?;
        }
        let namespace = self.declared(told, &told.prefix)?;
        let refers = [SERIALIZATION, ENCODING].contains(&namespace.as_str());
        if !own {
            let known = self.referred.get_or_insert_default();
            let place = if refers { &mut known.prefix } else { &mut known.other };
            *place = Some(told.prefix.clone());
        }
        Ok(refers)
    }

    /// Whether the contract has an attribute of this name at the value that was begun last.
    fn has_attribute(&self, name: &str) -> bool {
        let frames = self.frames.iter().rev().chain([&self.base]);
        let mut fields = frames.filter_map(|frame| match &frame.kind {
            Kind::Struct(fields, _) => fields.fields.get(frame.index.checked_sub(1)?),
            _ => None,
        });
        let mut shape = fields.next().map(|field| unmarked(&field.shape).resolved());
        while let Some(Shape::Optional(_) | Shape::Sequence(_) | Shape::Array(_)) = shape {
            shape = shape.and_then(|outer| match outer {
                Shape::Optional(target) => Some(target.resolved()),
                outer => outer.element().map(Shape::resolved),
            });
        }
        let Some(Shape::Struct(fields)) = shape else { return false };
        let is = |mark| matches!(mark, Mark::Attribute(attribute) if attribute.name == name);
        fields.fields.iter().any(|field| Mark::of(&field.shape).is_some_and(is))
    }

    /// So many octets more are read because an element stands for another.
    fn expand(&mut self, octets: usize) -> Visit<()> {
        let known = self.referred.get_or_insert_default();
        known.count += 1;
        known.octets = known.octets.saturating_add(octets);
        for (what, found, limit) in [
            ("references to objects (z:Ref, href) in one message", known.count, MAX_REFERENCES),
            (
                "octets of objects that are referred to (z:Ref, href) in one message",
                known.octets,
                MAX_REFERRED_OCTETS,
            ),
        ] {
            if found > limit {
                return Err(Failure::over_limit(Initiator::Peer, what, found, limit));
            }
        }
        Ok(())
    }

    /// Where the element is that a `z:Ref` names. The document is read for that once.
    fn place(&mut self, told: &AttributeText) -> Visit<ElementPosition> {
        if self.referred.as_ref().is_none_or(|known| known.places.is_none()) {
            let mut found = HashMap::new();
            let mut cursor = self.cursor.rewound();
            self.collect(&mut cursor, &mut found)?;
            self.referred.get_or_insert_default().places = Some(found);
        }
        let known = self.referred.get_or_insert_default();
        let place = known.places.as_ref().and_then(|places| places.get(&told.value)).copied();
        self.found(place, Violation::UnknownReference)
    }

    /// Notes the elements in the open one, or in the document, that others may stand for. (Nesting is bounded by the reader.)
    fn collect(&mut self, cursor: &mut C, found: &mut HashMap<String, ElementPosition>) -> Visit<()> {
        loop {
            let depth = cursor.depth();
            let Some(entered) = cursor.enter()? else {
                if cursor.array()?.is_some() {
                    continue;
                }
                return Ok(());
            };
            self.budget.charge_elements(1)?;
            let id = if entered.referred { Some(cursor.told(entered.at, "Id")?.value) } else { None };
            self.collect(cursor, found)?;
            cursor.finish()?;
            if let Some(id) = id {
                // The last one of a name counts: of headers' the envelope's security is.
                found.insert(id, ElementPosition { at: entered.at, end: cursor.position(), depth });
            }
        }
    }
}
