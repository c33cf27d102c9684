//! Unions: which values of the discriminator select which arm (CORBA 3.0, 3.11.2.2).
//!
//! Labels are kept as numbers of 64 bits: booleans as 0 and 1, characters by their code, enumerators by their
//! number, and `unsigned long long` with the same bits in a signed number. No value has two arms, and
//! `default` is allowed only where a value is left for it.

use super::super::ast::{Expr, ExprKind, Label, ScopedName, Union};
use super::Builder;
use super::named_item::{NamedItem, Typed};
use crate::report::{Problem, Span};
use everywire_model::shape::{self, Arm, Enum, Field, Name};
use everywire_model::{Hold, Shape, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

impl Builder<'_> {
    /// As `structure`: the name is opened, the arms are read in its scope, the name is closed.
    pub(super) fn union(&mut self, union: &Union) -> Option<Typed> {
        self.open(&union.ident, "union")?;
        let (name, id) = self.identity(&union.ident.name);
        let body = self.inside(&union.ident.name, Rc::default(), |b| b.arms(union));
        let depth = body.as_ref().map_or(1, |body| body.2);
        let body = body.map(|(discriminator, arms, _)| shape::Union {
            name,
            id,
            discriminator,
            arms: Cow::Owned(arms),
        });
        self.close(&union.ident, body, depth, Shape::Union, |shape| match shape {
            Shape::Union(Hold::Later(cell)) => Some(*cell),
            _ => None,
        })
    }

    /// Discriminator, arms, and the depth that makes.
    fn arms(&mut self, union: &Union) -> Option<(Shape, Vec<Arm>, usize)> {
        let span = union.discriminator.span;
        let discriminator =
            self.spec(&union.discriminator).and_then(|typed| self.discriminator(typed.shape, span));
        let (mut arms, mut depth, mut broken) = (Vec::new(), 0, discriminator.is_none());
        let mut seen = HashMap::new();
        let mut default = None;
        for arm in &union.arms {
            let (mut labels, mut is_default) = (Vec::new(), false);
            for label in &arm.labels {
                match label {
                    Label::Default(span) => {
                        if let Some(earlier) = default.replace(*span) {
                            let problem = Problem::new(*span, "there is a default case already");
                            self.report.add(problem.note(earlier, "it is here"));
                        }
                        is_default = true;
                    }
                    Label::Case(expr) => {
                        // Without a discriminator its mistake is told already.
                        let Some(value) = discriminator.as_ref().and_then(|shape| self.label(expr, shape))
                        else {
                            broken = true;
                            continue;
                        };
                        match seen.insert(value, expr.span) {
                            Some(earlier) => {
                                let problem =
                                    Problem::new(expr.span, "there is a case for this value already");
                                self.report.add(problem.note(earlier, "it is here"));
                            }
                            None => labels.push(value),
                        }
                    }
                }
            }
            // The member's name is taken even where its type is wrong, so that a second one is found.
            let declared = self.declare(&arm.declarator.ident, NamedItem::Member).is_some();
            let whole =
                self.spec(&arm.spec).and_then(|typed| self.inline(typed, arm.spec.span, &arm.declarator));
            let Some(whole) = whole.filter(|_| declared) else {
                broken = true;
                continue;
            };
            depth = depth.max(whole.depth);
            let field = Field { name: Name::from(arm.declarator.ident.name.clone()), shape: whole.shape };
            arms.push(Arm { labels: Cow::Owned(labels), default: is_default, field });
        }
        let discriminator = discriminator?;
        // Only for types with few values is it worth while to count.
        if let Some(span) = default
            && values(&discriminator).is_some_and(|all| seen.len() >= all)
        {
            // Beside a label of its own it changes nothing, and other compilers take it.
            match arms.iter_mut().find(|arm| arm.default) {
                Some(arm) if !arm.labels.is_empty() => arm.default = false,
                _ => self.report.add(Problem::new(span, "no value is left for the default case")),
            }
        }
        let depth = self.deeper(depth, union.ident.span)?;
        (!broken).then_some((discriminator, arms, depth))
    }

    /// `octet`, `int8` and `wchar` are of IDL 4.2 (7.4.13). The type keeps its name.
    fn discriminator(&mut self, shape: Shape, span: Span) -> Option<Shape> {
        let good = matches!(
            shape.resolved(),
            Shape::Bool
                | Shape::U8
                | Shape::I8
                | Shape::U16
                | Shape::I16
                | Shape::U32
                | Shape::I32
                | Shape::U64
                | Shape::I64
                | Shape::Char
                | Shape::WideChar
                | Shape::Enum(_)
        );
        if !good {
            let problem = Problem::new(span, "this type cannot select the case of a union");
            let expected = ["an integer type", "`char`", "`wchar`", "`boolean`", "an enum"];
            self.report.add(problem.expected(expected));
        }
        good.then_some(shape)
    }

    /// The discriminator's value that a label means.
    fn label(&mut self, expr: &Expr, discriminator: &Shape) -> Option<i64> {
        // An enum of another scope has its enumerators there, and compilers accept their plain names as
        // labels. JacORB's takes a member of the union with the name of a label, too.
        if let (Shape::Enum(members), ExprKind::Name(name)) = (discriminator.resolved(), &expr.kind)
            && let Some(value) = self.own_enumerator(name, members)
        {
            return Some(value.into());
        }
        // Contracts for ORBit2 have these labels, since its compiler asks for no other kind.
        if let (Shape::Bool, ExprKind::Integer(value @ (0 | 1))) = (discriminator.resolved(), &expr.kind) {
            return i64::try_from(*value).ok();
        }
        match (discriminator.resolved(), self.constant(expr, discriminator)?) {
            (Shape::Enum(members), Value::Member(name)) => members.value_of(&name).map(i64::from),
            (Shape::U64, Value::Integer(value)) => u64::try_from(value).ok().map(u64::cast_signed),
            (_, Value::Integer(value)) => i64::try_from(value).ok(),
            (_, Value::Bool(value)) => Some(value.into()),
            (_, Value::Char(value)) => Some(u32::from(value).into()),
            _ => None,
        }
    }

    /// An enumerator whose plain name can only mean the discriminator's: it is not visible from here, or is what is seen, or is hidden by a
    /// member of the union. The name is not used in the union's scope, so that a member may have it.
    fn own_enumerator(&mut self, name: &ScopedName, members: &Enum) -> Option<i32> {
        let [one] = name.parts.as_slice() else { return None };
        let seen = self.find(name, false).and_then(|key| self.symbols.get(&key));
        let is_own = match seen.map(|symbol| &symbol.what) {
            None | Some(NamedItem::Member) => true,
            Some(NamedItem::Enumerator(of, _)) => of.name == members.name,
            Some(_) => false,
        };
        if is_own && !name.absolute { members.value_of(&one.name) } else { None }
    }
}

/// How many values a discriminator has, where that is few.
fn values(discriminator: &Shape) -> Option<usize> {
    match discriminator.resolved() {
        Shape::Bool => Some(2),
        Shape::U8 | Shape::I8 | Shape::Char => Some(256),
        Shape::Enum(members) => Some(members.members.len()),
        _ => None,
    }
}
