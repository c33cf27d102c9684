//! Unions: what chooses the arm, and the arms.
//!
//! Something must choose: a discriminator of its own, `switch_type`, or `switch_is` at its use. A union of C, which nothing
//! chooses, has no form on a wire.

use super::super::ast::{Arm, Attribute, Choice, find, has};
use super::constants::labelled;
use super::places::Role;
use super::{Builder, MS_UNION, Ty, Typed};
use crate::report::Span;
use everywire_model::shape::{self, Field, Name, Union};
use everywire_model::{Hold, Shape, ms_union};
use std::borrow::Cow;
use std::collections::HashSet;

impl Builder<'_> {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn union(
        &mut self,
        key: &str,
        union: &Choice,
        arms: &[Arm],
        span: Span,
        wanted: &str,
        attributes: &[Attribute],
        switch: Option<Shape>,
    ) -> Option<Ty> {
        if let Some(out) = self.without_form(key, wanted) {
            let mark = self.report.mark();
            let _ = self.arms(wanted, arms, &Shape::I64, span);
            // What nobody uses may be wrong in files that another compiler takes.
            if self.is_pidl {
                self.report.forget(mark);
            }
            self.stays = None;
            return Some(out);
        }
        let name = self.open(key, span, wanted)?;
        let written = union.switch.as_ref().or_else(|| find(attributes, "switch_type")?.spec.as_ref());
        let discriminator = match written {
            Some(spec) => match self.spec(spec, "", &[], None) {
                Some(Ty::Value(typed)) => Some(typed.shape),
                Some(_) => {
                    self.problem(spec.span, "a union is chosen by an integer, a character or an enumeration");
                    None
                }
                None => None,
            },
            None => Some(switch.unwrap_or(Shape::I32)),
        };
        let discriminator = discriminator.filter(|shape| {
            let fits = matches!(shape.resolved(), Shape::Char | Shape::WideChar | Shape::Enum(_))
                || shape.width().is_some() && !matches!(shape.resolved(), Shape::F32 | Shape::F64);
            if !fits {
                self.problem(span, "a union is chosen by an integer, a character or an enumeration");
            }
            fits
        });
        // A union of C is chosen by nobody.
        let is_plain = union.switch.is_none() && arms.iter().all(|arm| arm.labels.is_empty() && !arm.default);
        let arms = if is_plain {
            self.stay(format!("nothing says which arm of `{name}` is meant"))
        } else {
            self.arms(&name, arms, discriminator.as_ref().unwrap_or(&Shape::I64), span)
        };
        // It does not speak of unions that hold their discriminators themselves.
        let aligned = union.switch.is_none() && (self.ms_union || has(attributes, MS_UNION));
        let body = discriminator.zip(arms).map(|(discriminator, (arms, depth))| {
            let discriminator = if aligned { ms_union::remarked(discriminator) } else { discriminator };
            let (name, id) = (Name::from(name), Name::default());
            (Union { name, id, discriminator, arms: Cow::Owned(arms) }, depth)
        });
        self.close(key, body, Shape::Union, |shape| match shape {
            Shape::Union(Hold::Later(cell)) => Some(*cell),
            _ => None,
        })
    }

    fn arms(
        &mut self,
        owner: &str,
        arms: &[Arm],
        discriminator: &Shape,
        span: Span,
    ) -> Option<(Vec<shape::Arm>, usize)> {
        let (mut built, mut depth, mut broken) = (Vec::new(), 0, false);
        let (mut labels_seen, mut names_seen, mut defaults) = (HashSet::new(), HashSet::new(), 0);
        let mut stays = None;
        for (index, arm) in arms.iter().enumerate() {
            let mut labels = Vec::with_capacity(arm.labels.len());
            for label in &arm.labels {
                let value = self.integer(label)?;
                let Some(value) = labelled(value, discriminator) else {
                    self.problem(label.span, "no value of the discriminator is this one");
                    broken = true;
                    continue;
                };
                if !labels_seen.insert(value) {
                    self.problem(label.span, "there are two arms for this value");
                    broken = true;
                }
                labels.push(value);
            }
            defaults += usize::from(arm.default);
            if defaults > 1 || (labels.is_empty() && !arm.default) {
                self.problem(arm.span, "an arm needs a `case`, or is the one `default`");
                broken = true;
            }
            let mut name = match &arm.member {
                Some(member) if member.declarator.ident.name.is_empty() => format!("u{index}"),
                Some(member) => member.declarator.ident.name.clone(),
                None if arm.default => "other".to_owned(),
                None => {
                    format!("case_{}", labels.first().copied().unwrap_or_default()).replace('-', "minus_")
                }
            };
            // The arms of one name have one type in pidl, or differ in what the caller sees.
            // The longer name may be that of another arm; each turn makes it longer than any that was tried.
            while self.is_pidl && names_seen.contains(&name) {
                name = format!("{name}_{index}");
            }
            if !names_seen.insert(name.clone()) {
                self.problem(arm.span, &format!("there are two arms `{name}`"));
                broken = true;
            }
            let typed = match &arm.member {
                Some(member) => self.field(owner, &name, member, &[]).and_then(|ty| {
                    let role = Role::Field { last: false };
                    self.declared(&ty, &member.attributes, &member.declarator, role)
                }),
                None => Some(Typed::leaf(Shape::Void)),
            };
            let Some(typed) = typed else {
                match self.stays.take() {
                    Some(why) => stays = Some(why),
                    None => broken = true,
                }
                continue;
            };
            depth = depth.max(typed.depth);
            let field = Field { name: Name::from(name), shape: typed.shape };
            built.push(shape::Arm { labels: Cow::Owned(labels), default: arm.default, field });
        }
        let depth = self.deeper(depth, span)?;
        if broken {
            return None;
        }
        match stays {
            Some(why) => self.stay(why),
            None => Some((built, depth)),
        }
    }
}
