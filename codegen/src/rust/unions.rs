//! Unions: enumerations with data.
//!
//! A variant holds the discriminator as well where several values of it select the arm, because a value must
//! travel as it came. Where a discriminator may select nothing, there is a variant that holds it alone, so
//! that no value of a peer is lost.

use super::definitions::arm_names;
use super::lints::allow_undocumented;
use super::types::Types;
use crate::page::Page;
use everywire_model::Hold;
use everywire_model::shape::{Shape, Union};

/// Writes the enumeration.
pub(super) fn define(types: &Types<'_, '_>, union: &Union, page: &mut Page) {
    let name = types.named(&union.name).unwrap_or_default();
    let shape = Shape::Union(Hold::new(union.clone()));
    let discriminator = types.owned(&union.discriminator);
    let arms = arms(types, union);
    page.gap();
    page.doc(&format!("`{}` of the contract.", union.name));
    page.line(format!(
        "#[derive(Debug, Clone{})]",
        if types.plan.graph.comparable(&shape) { ", PartialEq" } else { "" }
    ));
    allow_undocumented(&name, page);
    page.block(&format!("pub enum {name}"), |page| {
        for arm in &arms {
            match &arm.kind {
                Kind::Plain(held) => page.line(format!("{}({held}),", arm.name)),
                Kind::Labelled(held) => {
                    page.line("/// With its discriminator, as several select it.");
                    page.line(format!("{}({discriminator}, {held}),", arm.name));
                }
                Kind::Empty => {
                    page.line("/// A discriminator that selects nothing.");
                    page.line(format!("{}({discriminator}),", arm.name));
                }
            }
        }
    });
}

/// Writes how it is marshalled.
pub(super) fn implement(types: &Types<'_, '_>, union: &Union, page: &mut Page) {
    let name = types.named(&union.name).unwrap_or_default();
    let arms = arms(types, union);
    let of_kind = |wanted: fn(&Kind) -> bool| -> Vec<String> {
        let numbered = arms.iter().enumerate().filter(|(_, arm)| wanted(&arm.kind));
        numbered.map(|(number, arm)| format!("{number} {}", arm.name)).collect()
    };
    let plain = of_kind(|kind| matches!(kind, Kind::Plain(_)));
    let labelled = of_kind(|kind| matches!(kind, Kind::Labelled(_)));
    page.block("ew::arms!", |page| {
        page.fill(&format!("{name} {{ "), &plain, " }");
        if !labelled.is_empty() {
            page.fill("labelled { ", &labelled, " }");
        }
        for arm in arms.iter().filter(|arm| matches!(arm.kind, Kind::Empty)) {
            page.line(format!("empty {}", arm.name));
        }
    });
}

/// In the order of the union, and one more for what selects nothing.
struct Arm {
    name: String,
    kind: Kind,
}

/// What a variant holds.
enum Kind {
    /// The value: one discriminator selects it.
    Plain(String),
    /// The discriminator and the value: several select it.
    Labelled(String),
    /// The discriminator: it selects no arm.
    Empty,
}

/// The variants of a union.
fn arms(types: &Types<'_, '_>, union: &Union) -> Vec<Arm> {
    let (names, empty) = arm_names(union);
    let mut arms: Vec<Arm> = union
        .arms
        .iter()
        .zip(names)
        .map(|(arm, name)| {
            let held = types.owned(&arm.field.shape);
            let plain = arm.labels.len() == 1 && !arm.default;
            Arm { name, kind: if plain { Kind::Plain(held) } else { Kind::Labelled(held) } }
        })
        .collect();
    if !covers(union) {
        arms.push(Arm { name: empty, kind: Kind::Empty });
    }
    arms
}

/// Whether every discriminator selects an arm. Labels are never twice, so their number tells. Of integers and
/// characters it is assumed that some select nothing.
fn covers(union: &Union) -> bool {
    let labels: usize = union.arms.iter().map(|arm| arm.labels.len()).sum();
    union.arms.iter().any(|arm| arm.default)
        || match union.discriminator.resolved() {
            Shape::Bool => labels >= 2,
            Shape::Enum(members) => !members.open && labels >= members.members.len(),
            _ => false,
        }
}
