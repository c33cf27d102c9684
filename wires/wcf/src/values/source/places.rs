//! Values that have a place in a list, a map or a union: which element may stand there.
//!
//! Whoever reads asks for these values one after the other, and no element is sought by its name. So what stands at a place is
//! compared with what belongs there: a value in another's place would be read as that one without a word.
//!
//! Invariants:
//!
//! * The items of a list are all called alike, and so are the pairs of a map. The contract does not have to say how: lists of
//!   SOAP's encoding may have any names (SOAP 1.1, 5.4.2), even several.
//! * The key of a pair comes before its value, each once. Elements of other names are skipped. DataContractSerializer reads
//!   pairs like that, too: both members are required, and required members come in their order.
//! * A union has its discriminator, then the arm that this selects.

use super::elements::named;
use super::state::{ElementSource, Frame, Kind};
use crate::values::cursor::{Cursor, OpenElement};
use crate::values::names::collection;
use crate::violations::Violation;
use everywire_idl::wsdl::marks::unmarked;
use everywire_model::shape::Shape;
use everywire_model::visit::Visit;

/// What keys and values are called where the contract does not say.
const USUAL: [&str; 2] = ["Key", "Value"];

impl<'a, C: Cursor<'a>> ElementSource<'a, C> {
    /// How many items are in the open element, or pairs, all of one name.
    pub(super) fn count_alike(&mut self, shape: &Shape) -> Visit<u64> {
        let (count, other) = self.cursor.count()?;
        match other {
            Some(name) if !is_nameless(shape) => {
                Err(named(Violation::UnexpectedElement, name, self.cursor.position()))
            }
            _ => Ok(count),
        }
    }

    /// Enters the key of the next pair, or the value of the open one.
    pub(super) fn enter_pair(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let wanted = index % 2;
        let Kind::Pairs(open, _) = &mut self.top().kind else { return self.wrong(Violation::Misuse) };
        if wanted == 0 {
            if std::mem::replace(open, true) {
                self.leave_pair()?;
            }
            self.enter_item()?;
        }
        while let Some(entered) = self.enter_single()? {
            match self.part(entered.name) {
                Some(part) if part == wanted => return Ok(Some(entered)),
                Some(part) => {
                    let wrong =
                        if part == 0 { Violation::RepeatedElement } else { Violation::UnexpectedElement };
                    return Err(named(wrong, entered.name, entered.at));
                }
                None => self.skip(entered.name)?,
            }
        }
        self.wrong(Violation::MissingElement)
    }

    /// Leaves the element of a pair, in which neither the key nor the value may come again.
    pub(super) fn leave_pair(&mut self) -> Visit<()> {
        while !self.cursor.ends()
            && let Some(entered) = self.enter_single()?
        {
            if self.part(entered.name).is_some() {
                return Err(named(Violation::RepeatedElement, entered.name, entered.at));
            }
            self.skip(entered.name)?;
        }
        self.cursor.finish()
    }

    /// Whether an element of a pair is the key (0) or the value (1).
    fn part(&self, name: &str) -> Option<usize> {
        match self.frames.last() {
            Some(Frame { kind: Kind::Pairs(_, Some(names)), .. }) => {
                names.iter().position(|known| known == name)
            }
            _ => USUAL.iter().position(|known| *known == name),
        }
    }

    /// Enters the discriminator of a union, or the arm that it selects.
    pub(super) fn enter_choice(&mut self, index: usize) -> Visit<Option<OpenElement<'a>>> {
        let entered = self.enter_single()?;
        let entered = self.found(entered, Violation::MissingElement)?;
        let Some(Frame { kind: Kind::Choice(union, selected), .. }) = self.frames.last() else {
            return self.wrong(Violation::Misuse);
        };
        let arm = || selected.and_then(|arm| union.arms.get(arm)).map_or("", |arm| &arm.field.name);
        if entered.name != if index == 0 { "discriminator" } else { arm() } {
            return Err(named(Violation::UnexpectedElement, entered.name, entered.at));
        }
        Ok(Some(entered))
    }
}

/// What keys and values are called, where the contract gives them other names than the usual ones.
pub(super) fn pair_names(shape: &Shape) -> Option<Box<[String; 2]>> {
    let Shape::Alias(alias) = unmarked(shape) else { return None };
    let said = collection(alias)?;
    let names = [said.key.unwrap_or(USUAL[0]), said.value.unwrap_or(USUAL[1])];
    (names != USUAL).then(|| Box::new(names.map(str::to_owned)))
}

/// Whether it does not matter what the items of a list are called: those of SOAP's encoding are in no namespace.
#[cold]
fn is_nameless(shape: &Shape) -> bool {
    let Shape::Alias(alias) = unmarked(shape) else { return false };
    collection(alias).and_then(|said| said.item).is_some_and(|item| item.starts_with('-'))
}
