//! What the contract says of values and no shape does: texts that have to be values of a type, and members of which a message has one.

use super::frames::{Frame, Kind};
use super::{ElementSink, misuse};
use crate::values::graph::Node;
use everywire_model::Failure;
use everywire_model::visit::Visit;

impl ElementSink<'_> {
    /// The failure for a text that is no value of its type, by the name of the member that began last.
    #[cold]
    pub(super) fn no_value(&self, value: &str, kind: &str) -> Failure {
        let passing = |frame: &&Frame| {
            !matches!(
                frame.kind,
                Kind::Maybe | Kind::Variant | Kind::Derived | Kind::Told | Kind::Words | Kind::Items
            )
        };
        let frame = self.frames.iter().rev().find(passing).unwrap_or(&self.base);
        let index = frame.index.wrapping_sub(1);
        let member = match (frame.kind, self.graphs.node(frame.graph, frame.node)) {
            (Kind::Parameters, _) => self.graphs.layout().and_then(|layout| layout.members.get(index)),
            (Kind::Fields, Ok(Node::Fields { members, .. })) => members.get(index),
            (Kind::Choice, Ok(Node::Choice { arms, .. })) | (Kind::Named, Ok(Node::Named { arms, .. })) => {
                arms.get(frame.arm)
            }
            (Kind::Pairs, Ok(Node::Pairs { key, value, .. })) => {
                Some(if index.is_multiple_of(2) { key } else { value })
            }
            _ => None,
        };
        let place = member.map_or_else(String::new, |member| format!("`{}`: ", member.name.as_str()));
        Failure::bad_argument(format!("{place}{value:?} is no value of the type {kind}"))
    }

    /// Refuses a second alternative of a choice: a message has one of them, and its receiver refuses it or loses one.
    ///
    /// `at`: how many frames there are to the struct, `index`: which member of it begins.
    #[cold]
    pub(super) fn choose(&mut self, at: usize, index: usize, choice: u32) -> Visit<()> {
        let chosen = self.chosen.iter().find(|(of, known, _)| *of == at && *known == choice);
        let Some((_, _, first)) = chosen else {
            self.chosen.push((at, choice, index));
            return Ok(());
        };
        let frame = at.checked_sub(1).and_then(|at| self.frames.get(at)).unwrap_or(&self.base);
        let members = self.graphs.members(frame)?.ok_or_else(misuse)?;
        let name = |index: usize| members.get(index).map_or("", |member| member.name.as_str());
        let message = format!(
            "`{}` and `{}` are alternatives (xs:choice), of which one can be given",
            name(*first),
            name(index)
        );
        Err(Failure::bad_argument(message))
    }

    /// Forgets what was chosen in a struct that is closed.
    #[inline]
    pub(super) fn leave_choices(&mut self) {
        if !self.chosen.is_empty() {
            let at = self.frames.len();
            self.chosen.retain(|(of, ..)| *of < at);
        }
    }
}
