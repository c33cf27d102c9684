//! Error types: the exceptions an operation may raise, and a failure.

use super::plan::{Family, local};
use super::types::Types;
use crate::names::{Taken, camel};
use crate::page::Page;
use everywire_model::Hold;
use everywire_model::shape::Struct;

/// Writes the error types an interface introduces.
pub(super) fn define(types: &Types<'_, '_>, family: &Family, page: &mut Page) {
    for (name, exceptions) in &family.errors {
        let (variants, failure) = variants(types, exceptions);
        page.gap();
        page.line("/// What may go wrong: an exception of the contract, or a failure of the call itself.");
        page.line("#[derive(Debug, Clone)]");
        page.line("#[allow(missing_docs)]");
        page.block(&format!("pub enum {name}"), |page| {
            for (variant, exception) in &variants {
                page.line(format!("{variant}({exception}),"));
            }
            page.line(format!("{failure}(ew::Failure),"));
        });
    }
}

/// Writes what makes them errors.
pub(super) fn implement(types: &Types<'_, '_>, family: &Family, page: &mut Page) {
    for (name, exceptions) in &family.errors {
        let (variants, failure) = variants(types, exceptions);
        for (variant, from) in variants.iter().cloned().chain([(failure.clone(), "ew::Failure".to_owned())]) {
            page.gap();
            page.block(&format!("impl From<{from}> for {name}"), |page| {
                let argument = if variant == failure { "failure" } else { "raised" };
                page.block(&format!("fn from({argument}: {from}) -> Self"), |page| {
                    page.line(format!("Self::{variant}({argument})"));
                });
            });
        }
        page.gap();
        page.line("/// For functions that return [`ew::Failure`]: `?` makes a failure of an exception, whose code is the exception's identity.");
        page.block(&format!("impl From<{name}> for ew::Failure"), |page| {
            page.block(&format!("fn from(error: {name}) -> Self"), |page| {
                page.block("match error", |page| {
                    for (variant, _) in &variants {
                        page.line(format!("{name}::{variant}(raised) => ew::object::as_failure(&raised),"));
                    }
                    page.line(format!("{name}::{failure}(failure) => failure,"));
                });
            });
        });
        page.gap();
        page.block(&format!("impl ew::Raises for {name}"), |page| {
            page.block("fn raised(id: &str, body: &ew::Body) -> Option<Result<Self, ew::Failure>>", |page| {
                let mut calls = variants
                    .iter()
                    .map(|(_, exception)| format!("ew::object::raised::<{exception}, _>(id, body)"));
                let first = calls.next().unwrap_or_else(|| "None".into());
                let rest: Vec<_> = calls.map(|call| format!(".or_else(|| {call})")).collect();
                if rest.is_empty() || page.fits(&format!("{first}{}", rest.concat())) {
                    page.line(format!("{first}{}", rest.concat()));
                } else {
                    page.hang(&first, &rest);
                }
            });
            page.gap();
            page.block("fn answer(&self, give: &mut dyn FnMut(ew::Answer<'_>))", |page| {
                page.block("match self", |page| {
                    for (variant, _) in &variants {
                        page.line(format!(
                            "Self::{variant}(raised) => ew::object::answer_raised(raised, give),"
                        ));
                    }
                    page.line(format!("Self::{failure}(failure) => failure.answer(give),"));
                });
            });
        });
        page.gap();
        page.block(&format!("impl std::fmt::Display for {name}"), |page| {
            page.block("fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result", |page| {
                page.block("match self", |page| {
                    for (variant, _) in &variants {
                        page.line(format!("Self::{variant}(raised) => raised.fmt(f),"));
                    }
                    page.line(format!("Self::{failure}(failure) => failure.fmt(f),"));
                });
            });
        });
        page.gap();
        page.line(format!("impl std::error::Error for {name} {{}}"));
    }
}

/// Variants with the exceptions they hold, and the variant for a failure.
fn variants(types: &Types<'_, '_>, exceptions: &[Hold<Struct>]) -> (Vec<(String, String)>, String) {
    let mut taken = Taken::default();
    let failure = taken.name_type("Failure".into());
    let variants = exceptions
        .iter()
        .map(|raised| {
            let variant = taken.name_type(camel(local(&raised.name)));
            (variant, types.named(&raised.name).unwrap_or_else(|| camel(&raised.name)))
        })
        .collect();
    (variants, failure)
}
