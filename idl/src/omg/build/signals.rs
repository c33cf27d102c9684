//! Signals of interfaces, and which operations may run twice.

use super::super::ast;
use super::super::limits;
use super::Builder;
use super::interfaces::Draft;
use super::named_item::{BuiltInterface, NamedItem};
use super::names::distance;
use crate::report::{Problem, Span};
use everywire_model::Signal;
use everywire_model::shape::{Field, Name};
use std::collections::HashSet;
use std::rc::Rc;

impl Builder<'_> {
    /// Adds the signals of a base that are not there yet by another way.
    pub(super) fn inherit_signals(&mut self, base: &BuiltInterface, draft: &mut Draft, span: Span) {
        for signal in base.hold.signals.iter() {
            let Some(origin) = base.signal_origins.get(&signal.name.to_ascii_lowercase()) else { continue };
            match draft.signal_origins.get(&signal.name.to_ascii_lowercase()) {
                Some(other) if other != origin => {
                    let message = format!(
                        "the signal `{}` is inherited from both `{other}` and `{origin}`",
                        signal.label
                    );
                    self.report.add(Problem::new(span, message));
                }
                Some(_) => {}
                None => {
                    self.weigh_signal(signal, span);
                    draft.signals.push(signal.clone());
                    draft.signal_origins.insert(signal.name.to_ascii_lowercase(), origin.clone());
                }
            }
        }
    }

    pub(super) fn signal(&mut self, signal: &ast::Signal, doc: &str, draft: &mut Draft) -> Option<()> {
        let ident = &signal.ident;
        if signal.is_operation {
            self.declare(ident, NamedItem::Operation)?;
        }
        let key = ident.name.to_ascii_lowercase();
        if draft.signal_origins.contains_key(&key) {
            self.report.add(Problem::new(ident.span, format!("there is a signal `{}` already", ident.name)));
            return None;
        }
        self.lacking = None;
        // A scope that no operation has: one of the same name may be there.
        let fields = self.inside(&format!("{} signal", ident.name), Rc::default(), |b| {
            let (mut fields, mut names) = (Vec::with_capacity(signal.fields.len()), HashSet::new());
            for (spec, declarator) in &signal.fields {
                let typed = b.finished(spec, false).and_then(|typed| b.dimensions(typed, declarator));
                let name = &declarator.ident.name;
                if !names.insert(name.to_ascii_lowercase()) {
                    let message = format!("`{name}` is defined twice");
                    b.report.add(Problem::new(declarator.ident.span, message));
                }
                fields.push(typed.map(|typed| Field { name: Name::from(name.clone()), shape: typed.shape }));
            }
            fields.into_iter().collect::<Option<Vec<Field>>>()
        });
        let lacking = self.lacking.take();
        let Some(fields) = fields else {
            let lacking = lacking.or_else(|| self.unnamed());
            draft.leave_out(&format!("signal {}", ident.name), lacking);
            return None;
        };
        let mut built = Signal::new(ident.name.clone(), fields);
        built.doc = Name::from(doc.to_owned());
        self.weigh_signal(&built, ident.span);
        draft.signals.push(built);
        draft.signal_origins.insert(key, self.scope().to_owned());
        Some(())
    }

    /// Marks what `#pragma idempotent` names: operations of this interface, before or behind it.
    pub(super) fn mark_idempotent(&mut self, draft: &mut Draft, inherited: usize) {
        for ident in std::mem::take(&mut draft.idempotent) {
            let number = draft.numbers.get(&ident.name.to_ascii_lowercase()).filter(|at| **at >= inherited);
            if let Some(operation) = number.and_then(|at| draft.operations.get_mut(*at))
                && operation.name == ident.name
            {
                operation.idempotent = true;
                continue;
            }
            // One that was left out cannot be called, and reading an attribute is idempotent already.
            let key = format!("{}::{}", self.scope(), ident.name).to_ascii_lowercase();
            if self
                .symbols
                .get(&key)
                .is_some_and(|known| matches!(known.what, NamedItem::Operation | NamedItem::Attribute))
            {
                continue;
            }
            let message = format!("this interface defines no operation `{}`", ident.name);
            let own = draft.operations.iter().skip(inherited).map(|operation| operation.name.as_ref());
            // Of so many mistakes at the most anybody is told.
            let is_told = self.report.mark() < crate::diagnostics::MOST;
            let own = own.filter(|name| is_told && name.len().abs_diff(ident.name.len()) <= 2);
            let near =
                own.map(|name| (distance(name, &ident.name), name)).filter(|(edits, _)| *edits <= 2).min();
            let near = near.map(|(_, name)| format!("did you mean `{name}`?"));
            self.report.add(Problem::new(ident.span, message).maybe_help(near));
        }
    }

    fn weigh_signal(&mut self, signal: &Signal, span: Span) {
        self.inherited += 1 + signal.fields.fields().len();
        if self.inherited > limits::INHERITED {
            self.report.add(Problem::new(span, "the contract has too many signals"));
        }
    }
}
