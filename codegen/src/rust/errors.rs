//! Error types: the exceptions an operation may raise, and a failure.
//!
//! An error type has a variant for each exception and one for everything else that can go wrong with a call:
//! the connection, the peer, an exception that the contract does not name. An operation that raises nothing
//! has no type of its own; it fails with `ew::Failure`.

use super::definitions::local;
use super::plan::Family;
use super::types::Types;
use crate::names::{UniqueNames, camel};
use crate::page::Page;
use everywire_model::Hold;
use everywire_model::shape::Struct;

/// Writes the error types an interface introduces.
pub(super) fn define(types: &Types<'_, '_>, family: &Family, page: &mut Page) {
    for (name, exceptions) in &family.errors {
        let variants = variants(types, exceptions);
        page.gap();
        page.line("/// What may go wrong: an exception of the contract, or a failure of the call itself.");
        page.line("#[derive(Debug, Clone)]");
        page.line("#[allow(missing_docs)]");
        page.block(&format!("pub enum {name}"), |page| {
            for (variant, exception) in &variants {
                page.line(format!("{variant}({exception}),"));
            }
            page.line(format!("{FAILURE}(ew::Failure),"));
        });
    }
}

/// Writes what makes them errors.
pub(super) fn implement(types: &Types<'_, '_>, family: &Family, page: &mut Page) {
    for (name, exceptions) in &family.errors {
        let variants = variants(types, exceptions);
        let items: Vec<_> =
            variants.iter().map(|(variant, exception)| format!("{variant}({exception})")).collect();
        page.fill(&format!("ew::errors! {{ {name} {{ "), &items, " } }");
    }
}

/// The variant for a failure.
const FAILURE: &str = "Failure";

/// Variants with the exceptions they hold. An exception that is called `Failure` gets a number.
fn variants(types: &Types<'_, '_>, exceptions: &[Hold<Struct>]) -> Vec<(String, String)> {
    let mut taken = UniqueNames::of(&[FAILURE.to_owned()]);
    exceptions
        .iter()
        .map(|raised| {
            let variant = taken.name_type(camel(local(&raised.name)));
            (variant, types.named(&raised.name).unwrap_or_else(|| camel(&raised.name)))
        })
        .collect()
}
