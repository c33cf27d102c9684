//! Unions: enumerations with data.

use super::data::{allow_capitals, marshal_fn, unmarshal_fn};
use super::plan::arm_names;
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
    page.line("#[allow(missing_docs)]");
    allow_capitals(&name, page);
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
    page.gap();
    page.block(&format!("impl ew::Marshal for {name}"), |page| {
        marshal_fn(page, |page| {
            page.block("match self", |page| {
                for (index, arm) in arms.iter().enumerate() {
                    let name = &arm.name;
                    match arm.kind {
                        Kind::Plain(_) => page.arm(
                            &format!("Self::{name}(value)"),
                            &format!("ew::union::put(shape, {index}, value, sink)"),
                        ),
                        Kind::Labelled(_) => page.arm(
                            &format!("Self::{name}(label, value)"),
                            &format!("ew::union::put_labelled(shape, {index}, *label, value, sink)"),
                        ),
                        Kind::Empty => {
                            page.arm(
                                &format!("Self::{name}(label)"),
                                "ew::union::put_empty(shape, *label, sink)",
                            );
                        }
                    }
                }
            });
        });
    });
    page.gap();
    page.block(&format!("impl<'a> ew::Unmarshal<'a> for {name}"), |page| {
        unmarshal_fn(page, |page| {
            let labelled = arms.iter().any(|arm| !matches!(arm.kind, Kind::Plain(_)));
            let label = if labelled { "label" } else { "_" };
            page.line(format!("let ({label}, arm) = ew::union::open(shape, source)?;"));
            page.enclosed("let value = match arm {", "};", |page| {
                for (index, arm) in arms.iter().enumerate() {
                    let read = format!("ew::Unmarshal::unmarshal(ew::union::arm(shape, {index}), source)?");
                    let name = &arm.name;
                    match arm.kind {
                        Kind::Plain(_) => {
                            page.arm(&format!("Some({index})"), &format!("Self::{name}({read})"))
                        }
                        Kind::Labelled(_) => page.list(
                            &format!("Some({index}) => Self::{name}("),
                            &["ew::union::label(label)?".to_owned(), read],
                            "),",
                        ),
                        Kind::Empty => page.arm("None", &format!("Self::{name}(ew::union::label(label)?)")),
                    }
                }
                page.line("_ => return Err(ew::union::foreign(shape)),");
            });
            page.line("source.close(shape)?;");
            page.line("Ok(value)");
        });
    });
}

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

/// Whether every discriminator selects an arm.
fn covers(union: &Union) -> bool {
    let labels: usize = union.arms.iter().map(|arm| arm.labels.len()).sum();
    union.arms.iter().any(|arm| arm.default)
        || match union.discriminator.resolved() {
            Shape::Bool => labels >= 2,
            Shape::Enum(members) => labels >= members.members.len(),
            _ => false,
        }
}
