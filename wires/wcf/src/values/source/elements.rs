//! Finding the elements of values.
//!
//! The contract says which element comes next, and nearly always it does: `enter_plain` and `enter_field`
//! compare one name. When another member of the struct stands there, the order is not the contract's: then
//! `jumble` notes once where all members are, and each one is sought by name from then on.
//!
//! State: in the open frame `entered` (the next element, looked at and not used), `jumble` (places of the
//! members, and of the end), and `index`; beside the frames `aside`, a stack of cursors to return to.
//!
//! Invariants:
//!
//! * As long as members come in order a struct is read in one pass. Otherwise its members are noted once,
//!   whatever the order is, and then read where they stand.
//! * Each element that is skipped or noted costs budget, and names that the contract does not know count
//!   against `MaxNameTableCharCount`.
//! * An element comes at most as often as the contract has members of its name (`Expected`). WCF takes the
//!   first and drops the rest without a word; here the message is refused.
//! * An array record stands for elements of a list only, or for elements that nobody knows.
//! * A parameter that is not in the body may have come as a header: which ones did, the channel knows by their qualified names.
//!   Where nobody knows the operation it is looked for by its local name, among all but those of SOAP itself.

use super::fields::{is_apart, is_choice, is_field};
use super::state::{ElementSource, Jumble, Kind};
use crate::values::cursor::{Cursor, OpenElement, Run};
use crate::values::{Naming, Quota};
use crate::violations::Violation;
use everywire_idl::wsdl::marks::Mark;
use everywire_model::Failure;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::visit::Visit;

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// Enters the element of the value that begins now; nothing if it is missing.
    #[inline]
    pub(super) fn enter(&mut self) -> Visit<Option<OpenElement<'a>>> {
        match self.enter_next() {
            Ok(Some(entered)) if entered.refers || entered.partial => self.follow(entered).map(Some),
            other => other,
        }
    }

    /// The same, without looking what an element stands for.
    #[inline]
    fn enter_next(&mut self) -> Visit<Option<OpenElement<'a>>> {
        self.leave_aside();
        let frame = self.frames.last_mut().unwrap_or(&mut self.base);
        let index = frame.index;
        if index >= frame.len {
            return self.wrong(Violation::Misuse);
        }
        frame.index += 1;
        match &mut frame.kind {
            Kind::Flat(_) => self.enter_flat(index),
            Kind::Words => self.wrong(Violation::Misuse),
            Kind::Struct(..) => self.enter_field(index),
            Kind::Maybe | Kind::Variant | Kind::Named => {
                let entered = frame.entered.take();
                self.found(entered, Violation::Misuse).map(Some)
            }
            Kind::Derived(_) => Ok(frame.entered.take()),
            Kind::Root => self.enter_single(),
            Kind::Items => self.enter_item(),
            // A union that is missing or nil has no discriminator either.
            Kind::Choice(..) if !frame.open => Ok(None),
            Kind::Choice(..) => self.enter_choice(index),
            Kind::Pairs(..) => self.enter_pair(index),
        }
    }

    /// Enters the element of the field whose value begins now, if it is what comes next and nothing is special about it; else
    /// [`ElementSource::enter`] knows better.
    #[inline]
    pub(super) fn enter_plain(&mut self) -> bool {
        if !self.aside.is_empty() {
            return false;
        }
        let frame = self.frames.last_mut().unwrap_or(&mut self.base);
        let Kind::Struct(fields, wraps) = &frame.kind else { return false };
        if !frame.open || frame.entered.is_some() || frame.jumble.is_some() {
            return false;
        }
        let Some((name, behind)) = self.cursor.plain() else { return false };
        if !is_field(fields, frame.index, name, *wraps) || is_apart(fields, frame.index) {
            return false;
        }
        frame.index += 1;
        self.cursor.pass(behind);
        true
    }

    /// The next element, which must be there: it was counted.
    pub(super) fn enter_item(&mut self) -> Visit<Option<OpenElement<'a>>> {
        let entered = self.cursor.enter()?;
        self.found(entered, Violation::MissingElement).map(Some)
    }

    /// Enters the next element, which no array record can stand for.
    pub(super) fn enter_single(&mut self) -> Visit<Option<OpenElement<'a>>> {
        loop {
            if let Some(entered) = self.cursor.enter()? {
                return Ok(Some(entered));
            }
            let at = self.cursor.position();
            match self.cursor.array()? {
                Some(Run { data: [], .. }) => {}
                Some(run) => return Err(named(Violation::ArrayForOne, run.name, at)),
                None => return Ok(None),
            }
        }
    }

    /// Passes the array record that comes next, which may be of elements that the open struct does not know; `false` if none does.
    pub(super) fn pass_array(&mut self) -> Visit<bool> {
        let at = self.cursor.position();
        let Some(run) = self.cursor.array()? else { return Ok(false) };
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, wraps) = &frame.kind else { return Ok(true) };
        if !run.data.is_empty() && (0..fields.fields.len()).any(|at| may_be(fields, at, run.name, *wraps)) {
            return Err(named(Violation::ArrayForOne, run.name, at));
        }
        self.budget.charge_elements(1)?;
        Ok(true)
    }

    /// Passes what follows the last member of the open struct: nothing of it may be one of its members again.
    #[cold]
    pub(super) fn pass_rest(&mut self) -> Visit<()> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, wraps) = &frame.kind else { return Ok(()) };
        // An element of which only the text was read has ended; one that is not there has no rest.
        if !frame.open && !wraps {
            return Ok(());
        }
        let (fields, wraps) = (fields.clone(), *wraps);
        // From behind the last member on: none may come again.
        let mut expected = Expected::new(&fields, fields.fields.len(), self.result(&fields, wraps)?);
        loop {
            while let Some(entered) = self.cursor.enter()? {
                expected.take(entered.name, entered.at)?;
                self.skip(entered.name)?;
            }
            if !self.pass_array()? {
                return Ok(());
            }
        }
    }

    /// Opens the nameless struct: the wrapper, unless the first element is the first field's already.
    #[inline]
    pub(super) fn open_parameters(&mut self, fields: &Hold<Struct>) -> Visit<usize> {
        let len = fields.fields.len();
        if !self.base.open {
            self.enter_wrapper(fields)?;
        }
        self.budget.enter()?;
        self.base.kind = Kind::Struct(fields.clone(), true);
        (self.base.index, self.base.len) = (0, len);
        if self.reading.naming != Naming::Names {
            self.check_accessors(fields)?;
        }
        Ok(len)
    }

    #[inline(never)]
    fn enter_wrapper(&mut self, fields: &Struct) -> Visit<()> {
        let depth = self.cursor.depth();
        let entered = self.cursor.enter()?;
        // Bare parameters: unless the wrapper happens to be called like its first field, which its first
        // child tells.
        let is_bare = match (&entered, fields.fields.first()) {
            (Some(entered), Some(first)) if entered.name == first.name => !self.holds(&first.name)?,
            _ => false,
        };
        self.base.open = match &entered {
            Some(entered) if is_bare => {
                self.cursor.seek(entered.at, depth);
                false
            }
            Some(entered) if entered.nil => {
                self.cursor.finish()?;
                false
            }
            entered => entered.is_some(),
        };
        (self.base.depth, self.base.at) = (self.cursor.depth(), self.cursor.position());
        if !self.base.open && !is_bare {
            // There is nothing to look for.
            self.base.jumble = Some(Box::new(Jumble { members: Vec::new(), end: self.base.at }));
        }
        Ok(())
    }

    /// Whether the element that was entered begins with one of this name: it is a wrapper that is called like its field.
    fn holds(&mut self, name: &str) -> Visit<bool> {
        let place = (self.cursor.position(), self.cursor.depth());
        if self.cursor.count()?.0 == 0 {
            return Ok(false);
        }
        let inner = self.cursor.enter()?;
        let holds = inner.is_some_and(|inner| inner.name == name);
        self.cursor.seek(place.0, place.1);
        Ok(holds)
    }

    /// Finds the element of a field: the next one, most of the time.
    fn enter_field(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        loop {
            let frame = self.frames.last_mut().unwrap_or(&mut self.base);
            let Kind::Struct(fields, wraps) = &frame.kind else { return self.wrong(Violation::Misuse) };
            if is_apart(fields, index) {
                return self.enter_apart(index);
            }
            if frame.jumble.is_some() || (!frame.open && !wraps) {
                return self.enter_jumbled(index);
            }
            let next = match frame.entered.take() {
                Some(entered) => Some(entered),
                None => self.cursor.enter()?,
            };
            let Some(entered) = next else {
                // After an array record there may be more.
                if self.pass_array()? {
                    continue;
                }
                return self.missing(index);
            };
            if is_field(fields, index, entered.name, *wraps) || (self.takes_first && *wraps && index == 0) {
                return Ok(Some(entered));
            }
            // A later member comes early, or the contract does not know the element.
            let known = (0..fields.fields.len()).any(|at| may_be(fields, at, entered.name, *wraps));
            if known {
                self.jumble(&entered)?;
            } else {
                self.skip(entered.name)?;
            }
        }
    }

    /// The name of the element of what an operation returns, which is called as it likes.
    fn result(&mut self, fields: &Struct, wraps: bool) -> Visit<Option<&'a str>> {
        let index = fields.fields.iter().position(|field| field.name == "return");
        let Some(index) = index.filter(|_| wraps) else { return Ok(None) };
        let place = (self.cursor.position(), self.cursor.depth());
        self.cursor.seek(self.base.at, self.base.depth);
        let mut found = None;
        while let Some(entered) = self.cursor.enter()? {
            if is_field(fields, index, entered.name, wraps) {
                found = Some(entered.name);
                break;
            }
            self.cursor.finish()?;
        }
        self.cursor.seek(place.0, place.1);
        Ok(found)
    }

    /// Skips an element that the contract does not know.
    pub(super) fn skip(&mut self, name: &'a str) -> Visit<()> {
        self.budget.charge_elements(1)?;
        let unknown = self.unknown.get_or_insert_default();
        if unknown.names.insert(name) {
            unknown.chars += name.len();
            self.quotas.check(Quota::NameTableCharCount, unknown.chars)?;
        }
        self.cursor.finish()
    }

    /// Notes where the members of the open struct are, from the one that was entered.
    pub(super) fn jumble(&mut self, entered: &OpenElement<'a>) -> Visit<()> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, wraps) = &frame.kind else { return self.wrong(Violation::Misuse) };
        let (fields, wraps) = (fields.clone(), *wraps);
        // The members before the one that is looked for were read.
        let (from, depth) = (frame.index.saturating_sub(1), frame.depth);
        let mut expected = Expected::new(&fields, from, self.result(&fields, wraps)?);
        self.cursor.seek(entered.at, depth);
        let mut members = Vec::new();
        loop {
            while let Some(entered) = self.cursor.enter()? {
                self.budget.charge_elements(1)?;
                expected.take(entered.name, entered.at)?;
                members.push((entered.name, entered.at));
                self.cursor.finish()?;
            }
            if !self.pass_array()? {
                break;
            }
        }
        let end = self.cursor.position();
        self.top().jumble = Some(Box::new(Jumble { members, end }));
        Ok(())
    }

    fn enter_jumbled(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let frame = self.frames.last().unwrap_or(&self.base);
        let Kind::Struct(fields, wraps) = &frame.kind else { return self.wrong(Violation::Misuse) };
        let members = frame.jumble.as_ref().map(|jumble| jumble.members.as_slice()).unwrap_or_default();
        let mut found =
            members.iter().filter(|(name, _)| is_field(fields, index, name, *wraps)).map(|(_, at)| *at);
        let (first, second, depth) = (found.next(), found.next(), frame.depth);
        let place = match (first, second, fields.fields.get(index)) {
            (Some(first), Some(second), Some(field)) if *wraps && index > 0 => {
                // A parameter that is called as the result's element stands behind that one.
                let (name, fields) = (field.name.clone(), fields.clone());
                Some(if self.result(&fields, true)? == Some(&*name) { second } else { first })
            }
            _ => first,
        };
        match place {
            Some(at) => {
                self.cursor.seek(at, depth);
                self.cursor.enter()
            }
            None => self.missing(index),
        }
    }

    /// A field that is not in the wrapper may be a header of the message.
    fn missing(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let field = match &self.base.kind {
            Kind::Struct(fields, _) if self.frames.is_empty() && self.enveloped => fields.fields.get(index),
            _ => None,
        };
        let Some(name) = field.map(|field| &*field.name) else { return Ok(None) };
        let wanted = match &self.reading.headers {
            Some(headers) => match headers.iter().find(|header| *header.name == *name) {
                Some(header) => Some(header.number),
                None => return Ok(None),
            },
            None if OF_ENVELOPE.contains(&name) => return Ok(None),
            None => None,
        };
        // From the start of the envelope, with a cursor of its own: the body's stays where it is.
        let mut cursor = self.cursor.rewound();
        let has_headers =
            cursor.enter()?.is_some() && cursor.enter()?.is_some_and(|first| first.name == "Header");
        if !has_headers {
            return Ok(None);
        }
        for number in 0.. {
            let Some(header) = cursor.enter()? else { break };
            if wanted.map_or(header.name == name, |wanted| wanted == number) {
                self.aside.push((0, std::mem::replace(&mut self.cursor, cursor)));
                return Ok(Some(header));
            }
            self.budget.charge_elements(1)?;
            cursor.finish()?;
        }
        Ok(None)
    }

    /// Returns from a header to the body, or from an element that another stands for, unless its value is still open.
    #[inline]
    pub(super) fn leave_aside(&mut self) {
        while let Some((level, _)) = self.aside.last()
            && *level == self.frames.len()
            && let Some((_, cursor)) = self.aside.pop()
        {
            self.cursor = cursor;
        }
    }

    /// Goes to where the frame on top can end.
    pub(super) fn leave_inside(&mut self) -> Visit<()> {
        let frame = self.frames.last().unwrap_or(&self.base);
        if let Some(jumble) = &frame.jumble {
            self.cursor.seek(jumble.end, frame.depth);
        }
        // The next element was looked at, and is none of this struct's; the last pair is still open.
        let is_struct = matches!(frame.kind, Kind::Struct(..));
        if is_struct && frame.entered.is_some() {
            return self.cursor.finish();
        }
        if matches!(frame.kind, Kind::Pairs(true, _)) { self.leave_pair() } else { Ok(()) }
    }
}

/// How often each member of a struct may still come.
struct Expected<'f> {
    fields: &'f Struct,
    /// What the element of the result is called.
    result: Option<&'f str>,
    /// For each field how many elements stand for it, where only one may; those of equal names count at the first.
    left: Vec<usize>,
}

impl<'f> Expected<'f> {
    /// All from this one on.
    fn new(fields: &'f Struct, from: usize, result: Option<&'f str>) -> Self {
        let mut left = vec![0; fields.fields.len()];
        for (at, field) in fields.fields.iter().enumerate().skip(from) {
            let first = fields.fields.iter().position(|other| other.name == field.name).unwrap_or(at);
            if let Some(left) = left.get_mut(first) {
                *left += 1;
            }
        }
        Self { fields, result, left }
    }

    /// An element comes.
    fn take(&mut self, name: &str, at: usize) -> Visit<()> {
        let fields = &self.fields.fields;
        let is_result = |field: &Field| field.name == "return" && self.result == Some(name);
        let found = fields.iter().position(|field| field.name == name);
        let Some(index) = found.or_else(|| fields.iter().position(is_result)) else { return Ok(()) };
        let Some(field) = fields.get(index) else { return Ok(()) };
        // Of some members there may be any number, and others are no elements.
        if is_apart(self.fields, index) || matches!(Mark::of(&field.shape), Some(Mark::Items | Mark::Choices))
        {
            return Ok(());
        }
        // A parameter may be called as the result's element is, which stands before it.
        let result =
            fields.iter().position(is_result).filter(|at| self.left.get(*at).is_some_and(|left| *left > 0));
        let Some(left) = self.left.get_mut(result.unwrap_or(index)) else { return Ok(()) };
        *left = left.checked_sub(1).ok_or_else(|| named(Violation::RepeatedElement, name, at))?;
        Ok(())
    }
}

/// The failure for an element of this name.
#[cold]
pub(super) fn named(violation: Violation, name: &str, at: usize) -> Failure {
    violation.at(at).at(format!("element `{name}`"))
}

/// Whether an element is that of a field, or of an item of it.
pub(super) fn may_be(fields: &Struct, index: usize, name: &str, wraps: bool) -> bool {
    is_field(fields, index, name, wraps)
        || fields.fields.get(index).is_some_and(|field| is_choice(&field.shape, name))
}

/// Headers of SOAP, addressing and security, which are no fields of anybody.
/// Where nobody knows the operation, a field of such a name is taken from the body alone.
const OF_ENVELOPE: [&str; 9] =
    ["Action", "To", "From", "MessageID", "RelatesTo", "ReplyTo", "FaultTo", "Security", "Sequence"];
