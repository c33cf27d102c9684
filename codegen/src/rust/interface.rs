//! The trait that people call and implement.
//!
//! Two traits, blocking and asynchronous, with one method for each own operation and the traits
//! of the bases above it. Arguments are borrowed, results are owned. An error type of the contract stands in
//! a method's signature only where the operation can raise something.

use super::call::Call;
use super::lints::{COMPLEX, allow_undocumented};
use super::plan::{Family, Plan};
use super::types::{TraitKind, Types};
use crate::page::Page;
use everywire_model::shape::{Field, Shape};
use everywire_model::{Hold, Interface, Operation};

/// The most values a request or a reply may carry: the longest tuple that can be marshalled. An operation
/// with more gets a comment above the method, and its code does not compile.
const MOST: usize = 16;
/// Parameters, with the object itself, above which a linter would complain. It is the usual limit of Clippy's
/// `too_many_arguments`.
const MANY: usize = 7;

/// Writes the trait of an interface. A trait without bases is `Send` and `Sync`, so that all of them are.
pub(super) fn define(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let name = trait_of(types, family);
    let mut supers = bases(types, interface);
    if supers.is_empty() {
        supers = vec!["Send".into(), "Sync".into()];
    }
    page.gap();
    let about = match (interface.doc.is_empty(), types.trait_kind) {
        (false, _) => interface.doc.to_string(),
        (true, TraitKind::Blocking) => format!("`{}` of the contract.", interface.name),
        (true, TraitKind::Asynchronous) => format!("`{}` of the contract, asynchronous.", interface.name),
    };
    page.doc(&about);
    super::signals::mention(interface, family, page);
    if types.trait_kind == TraitKind::Asynchronous {
        page.line("#[::everywire::async_trait]");
    }
    allow_undocumented(name, page);
    page.block(&format!("pub trait {name}: {}", supers.join(" + ")), |page| {
        let own = interface.operations.iter().zip(&family.methods).skip(interface.inherited);
        for (index, (operation, method)) in own.enumerate() {
            if index > 0 && !operation.doc.is_empty() {
                page.gap();
            }
            page.doc(&operation.doc);
            signature(types, interface, operation, method, page);
        }
    });
}

/// The traits of its bases. Those that the contract does not define have no trait.
fn bases(types: &Types<'_, '_>, interface: &Interface) -> Vec<String> {
    let path = |base: &Hold<Interface>| {
        let (_, family) = types.plan.interface(&base.name)?;
        let place = types.plan.find(&base.name)?;
        Some(Plan::path(types.from, &place.path, trait_of(types, family)))
    };
    interface.bases.iter().filter_map(path).collect()
}

/// Whether a linter might find a type too complex: it is long, or has types in types.
fn is_complex(kind: &str) -> bool {
    kind.len() > COMPLEX || kind.matches("Option<Vec<").count() > 1 || kind.starts_with("ew::Success<(")
}

/// The trait of one kind.
pub(super) fn trait_of<'f>(types: &Types<'_, '_>, family: &'f Family) -> &'f str {
    match types.trait_kind {
        TraitKind::Blocking => &family.blocking,
        TraitKind::Asynchronous => &family.asynchronous,
    }
}

/// Writes a method of the trait.
fn signature(types: &Types<'_, '_>, owner: &Interface, operation: &Operation, method: &str, page: &mut Page) {
    let values = operation.arguments.fields().len().max(operation.results.fields().len());
    if values > MOST {
        page.line(format!(
            "// `{}` carries {values} values one way; at most {MOST} are supported.",
            operation.name
        ));
    }
    let call = Call::of(types.plan, owner, operation);
    let kinds: Vec<String> = call.parameters().map(|value| types.parameter(&value.field.shape)).collect();
    if kinds.len() + 1 > MANY {
        page.line("#[allow(clippy::too_many_arguments)]");
    }
    let ok = call.ok(types);
    if kinds.iter().chain([&ok]).any(|kind| is_complex(kind)) {
        page.line("#[allow(clippy::type_complexity)]");
    }
    let mut parameters = vec!["&self".to_owned()];
    for (value, kind) in call.parameters().zip(kinds) {
        parameters.push(format!("{}: {kind}", value.name));
    }
    let fun = if types.trait_kind == TraitKind::Asynchronous { "async fn" } else { "fn" };
    let error = types.plan.error(types.from, owner, operation);
    let mut tail = format!(") -> Result<{ok}, {error}>;");
    // A long result is broken behind the arrow.
    if !page.fits(&tail) {
        tail = format!(") -> Result<\n    {},\n    {error},\n>;", broken(types, &call, &ok, page));
    }
    page.list(&format!("{fun} {method}("), &parameters, &tail);
}

/// What a call yields, one level deeper, a value a line if it must be.
fn broken(types: &Types<'_, '_>, call: &Call<'_>, ok: &str, page: &Page) -> String {
    let values: Vec<_> = call.yields().map(|value| format!("        {},\n", value.shown(types))).collect();
    if values.len() < 2 || page.fits(&format!("    {ok},")) {
        return ok.to_owned();
    }
    match call.succeeds {
        true => format!("ew::Success<(\n{}    )>", values.concat()),
        false => format!("(\n{}    )", values.concat()),
    }
}

/// Whether any of these is a typed reference.
pub(super) fn has_referents(types: &Types<'_, '_>, fields: &[Field]) -> bool {
    fields.iter().any(|field| is_referent(types, &field.shape))
}

/// Whether this is a typed reference. It is one where the contract defines the interface; other references
/// stay untyped.
pub(super) fn is_referent(types: &Types<'_, '_>, shape: &Shape) -> bool {
    types.referent(shape).is_some()
}
