//! The trait, and what connects it to stubs and skeletons.

use super::call::Call;
use super::data::allow_capitals;
use super::plan::{Family, Plan};
use super::types::{Face, Types};
use crate::page::Page;
use everywire_model::shape::{Field, Shape};
use everywire_model::{Hold, Interface, Operation};

/// The most values a request or a reply may carry: the longest tuple that can be marshalled.
const MOST: usize = 16;
/// Parameters, with the object itself, above which a linter would complain.
pub(super) const MANY: usize = 7;
/// Characters of a type above which a linter might complain.
pub(super) const COMPLEX: usize = 60;

/// Writes the trait of an interface.
pub(super) fn define(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let [name, ..] = names(types, family);
    let mut supers = bases(types, interface);
    if supers.is_empty() {
        supers = vec!["Send".into(), "Sync".into()];
    }
    page.gap();
    let about = match (interface.doc.is_empty(), types.face) {
        (false, _) => interface.doc.to_string(),
        (true, Face::Blocking) => format!("`{}` of the contract.", interface.name),
        (true, Face::Asynchronous) => format!("`{}` of the contract, asynchronous.", interface.name),
    };
    page.doc(&about);
    super::signals::mention(interface, family, page);
    if types.face == Face::Asynchronous {
        page.line("#[::everywire::async_trait]");
    }
    page.line("#[allow(missing_docs)]");
    allow_capitals(name, page);
    page.block(&format!("pub trait {name}: {}", supers.join(" + ")), |page| {
        let own = interface.operations.iter().zip(&family.methods).skip(interface.inherited);
        for (index, (operation, method)) in own.enumerate() {
            if index > 0 && !operation.doc.is_empty() {
                page.gap();
            }
            page.doc(&operation.doc);
            signature(types, interface, operation, method, ";", page);
        }
    });
}

/// The traits of its bases.
fn bases(types: &Types<'_, '_>, interface: &Interface) -> Vec<String> {
    let path = |base: &Hold<Interface>| {
        let (_, family) = types.plan.interface(&base.name)?;
        let place = types.plan.find(&base.name)?;
        Some(Plan::path(types.from, &place.path, &names(types, family)[0]))
    };
    interface.bases.iter().filter_map(path).collect()
}

/// Writes what connects the trait to its stub and skeleton.
pub(super) fn implement(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let [name, stub, skeleton] = names(types, family);
    page.gap();
    let described = types.plan.find(&interface.name).map_or("", |place| place.described.as_str());
    page.block(&format!("impl ew::Remote for dyn {name}"), |page| {
        page.block("fn interface() -> &'static ew::Interface", |page| {
            page.line(format!("&describe::{described}"));
        });
        page.gap();
        page.block("fn stub(object: ew::Object) -> std::sync::Arc<Self>", |page| {
            page.line(format!("std::sync::Arc::new({stub}(object))"));
        });
        page.gap();
        page.block("fn skeleton(servant: std::sync::Arc<Self>) -> std::sync::Arc<dyn ew::Servant>", |page| {
            page.line(format!("std::sync::Arc::new({skeleton}(servant))"));
        });
        let bases = bases(types, interface);
        if !bases.is_empty() {
            page.gap();
            page.block(
                "fn face(servant: &std::sync::Arc<Self>, id: &str) -> Option<ew::object::Face>",
                |page| {
                    page.block("if Self::interface().id == id", |page| {
                        page.line("return Some(std::sync::Arc::new(servant.clone()));");
                    });
                    for (number, base) in bases.iter().enumerate() {
                        let found = format!("<dyn {base} as ew::Remote>::face(&(servant.clone() as _), id)");
                        page.line(match number {
                            0 => found,
                            _ => format!("    .or_else(|| {found})"),
                        });
                    }
                },
            );
        }
    });
    for emitted in super::signals::emitted(types, interface) {
        page.line(format!("impl ew::Emits<{emitted}> for dyn {name} {{}}"));
    }
}

/// Whether a linter might find a type too complex: it is long, or has types in types.
pub(super) fn is_complex(kind: &str) -> bool {
    kind.len() > COMPLEX || kind.matches("Option<Vec<").count() > 1 || kind.starts_with("ew::Success<(")
}

/// Trait, stub and skeleton of one face.
pub(super) fn names<'f>(types: &Types<'_, '_>, family: &'f Family) -> &'f [String; 3] {
    match types.face {
        Face::Blocking => &family.blocking,
        Face::Asynchronous => &family.asynchronous,
    }
}

/// Writes the head of a method, with what follows it: `;` or ` {`.
pub(super) fn signature(
    types: &Types<'_, '_>,
    owner: &Interface,
    operation: &Operation,
    method: &str,
    end: &str,
    page: &mut Page,
) {
    let values = operation.arguments.fields().len().max(operation.results.fields().len());
    if values > MOST {
        page.line(format!(
            "// `{}` carries {values} values one way; at most {MOST} are supported.",
            operation.name
        ));
    }
    let call = Call::of(types.plan, owner, operation);
    let kinds: Vec<String> = call.parameters().map(|value| types.parameter(&value.field.shape)).collect();
    if kinds.len() + 1 > MANY && end == ";" {
        page.line("#[allow(clippy::too_many_arguments)]");
    }
    let ok = call.ok(types);
    if end == ";" && kinds.iter().chain([&ok]).any(|kind| is_complex(kind)) {
        page.line("#[allow(clippy::type_complexity)]");
    }
    let mut parameters = vec!["&self".to_owned()];
    for (value, kind) in call.parameters().zip(kinds) {
        parameters.push(format!("{}: {kind}", value.name));
    }
    let fun = if types.face == Face::Asynchronous { "async fn" } else { "fn" };
    let error = types.plan.error(types.from, owner, operation);
    let mut tail = format!(") -> Result<{ok}, {error}>{end}");
    if !page.fits(&tail) {
        tail = format!(") -> Result<\n    {},\n    {error},\n>{end}", broken(types, &call, &ok, page));
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

/// A tuple of this many parts.
pub(super) fn tuple(parts: &[String]) -> String {
    match parts {
        [one] => format!("({one},)"),
        several => format!("({})", several.join(", ")),
    }
}

/// Whether any of these is a typed reference.
pub(super) fn has_referents(types: &Types<'_, '_>, fields: &[Field]) -> bool {
    fields.iter().any(|field| is_referent(types, &field.shape))
}

/// Whether this is a typed reference.
pub(super) fn is_referent(types: &Types<'_, '_>, shape: &Shape) -> bool {
    types.referent(shape).is_some()
}
