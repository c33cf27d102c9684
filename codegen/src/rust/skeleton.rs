//! Skeletons: from the number of an operation to a call of the servant.

use super::call::{Call, check_counts, write_counts};
use super::interface::{COMPLEX, MANY, is_referent, names, tuple};
use super::plan::{Family, Plan};
use super::types::{Face, Types};
use crate::names::Taken;
use crate::page::Page;
use everywire_model::{Interface, InterfaceKind, Operation};

/// Writes the skeleton of an interface.
pub(super) fn write(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let [name, _, skeleton] = names(types, family);
    let described = types.plan.find(&interface.name).map_or("", |place| place.described.as_str());
    page.gap();
    page.doc(&format!("Serves a [`{name}`] to callers somewhere else."));
    page.line(format!("pub struct {skeleton}(pub std::sync::Arc<dyn {name}>);"));
    page.gap();
    page.block(&format!("impl ew::Servant for {skeleton}"), |page| {
        page.block("fn interface(&self) -> &ew::Interface", |page| {
            page.line(format!("&describe::{described}"))
        });
        page.gap();
        page.block("fn dispatch(&self, request: ew::Request)", |page| match types.face {
            // Nothing can be asked.
            _ if interface.operations.is_empty() => {
                page.line(format!("request.run(|_| Err(ew::object::no_operation(&describe::{described})));"));
            }
            Face::Blocking => {
                page.line("let servant = &self.0;");
                page.enclosed("request.run(|request| match request.index() {", "});", |page| {
                    cases(types, interface, family, described, page);
                });
            }
            Face::Asynchronous => {
                page.line("let servant = self.0.clone();");
                page.enclosed("request.spawn(|mut request| async move {", "});", |page| {
                    page.line("let result = Self::serve(&*servant, &mut request).await;");
                    page.line("request.finish(result);");
                });
            }
        });
    });
    if types.face == Face::Asynchronous && !interface.operations.is_empty() {
        page.gap();
        page.block(&format!("impl {skeleton}"), |page| {
            let parameters = [format!("servant: &dyn {name}"), "request: &mut ew::Request".to_owned()];
            page.list("async fn serve(", &parameters, ") -> Result<(), ew::Failure> {");
            page.enclosed_body(|page| {
                page.block("match request.index()", |page| cases(types, interface, family, described, page));
            });
        });
    }
}

fn cases(types: &Types<'_, '_>, interface: &Interface, family: &Family, described: &str, page: &mut Page) {
    for (index, (operation, method)) in interface.operations.iter().zip(&family.methods).enumerate() {
        let from = ambiguous(types, interface, family, index);
        let owner = Plan::owner(interface, index);
        page.enclosed(&format!("{index} => {{"), "}", |page| {
            case(types, owner, operation, (method.as_str(), from), page);
        });
    }
    page.line(format!("_ => Err(ew::object::no_operation(&describe::{described})),"));
}

/// The trait that a method is from, where another trait above the servant has one of that name.
fn ambiguous(types: &Types<'_, '_>, interface: &Interface, family: &Family, index: usize) -> Option<String> {
    let method = family.methods.get(index)?;
    if interface.kind != InterfaceKind::Class || family.methods.iter().filter(|m| *m == method).count() < 2 {
        return None;
    }
    let from = Plan::lineage(interface).into_iter().find(|ancestor| {
        (ancestor.inherited..ancestor.operations.len())
            .any(|own| Plan::number(interface, ancestor, own) == Some(index))
    })?;
    let (_, above) = types.plan.interface(&from.name)?;
    let place = types.plan.find(&from.name)?;
    Some(Plan::path(types.from, &place.path, &names(types, above)[0]))
}

fn case(
    types: &Types<'_, '_>,
    owner: &Interface,
    operation: &Operation,
    (method, from): (&str, Option<String>),
    page: &mut Page,
) {
    let call = Call::of(types.plan, owner, operation);
    let fields = operation.arguments.fields();
    let mut taken = Taken::locals();
    let names: Vec<_> = call.argument_names().into_iter().map(|name| taken.name_value(name)).collect();
    if !names.is_empty() {
        let kinds: Vec<_> = fields.iter().map(|field| types.argument(&field.shape)).collect();
        let head = format!("let {}: {}", tuple(&names), tuple(&kinds));
        if kinds.len() > MANY || tuple(&kinds).len() > COMPLEX {
            page.line("#[allow(clippy::type_complexity)]");
        }
        if page.fits(&format!("{head} =")) {
            page.assign(&head, "request.arguments()?");
        } else {
            page.list(&format!("let {}: (", tuple(&names)), &kinds, ") = request.arguments()?;");
        }
    }
    check_counts(&call.arguments, &names, page);
    for (name, field) in names.iter().zip(fields) {
        if is_referent(types, &field.shape) {
            page.line(format!("let {name} = request.narrow({name})?;"));
        }
    }
    let passed: Vec<_> = call
        .arguments
        .iter()
        .zip(&names)
        .filter(|(value, _)| value.is_shown())
        .map(
            |(value, name)| {
                if types.borrowed(&value.field.shape) { format!("&{name}") } else { name.clone() }
            },
        )
        .collect();
    let (root, called) = match from {
        Some(from) => {
            let servant = if types.face == Face::Asynchronous { "servant" } else { "&**servant" };
            let passed = [&[servant.to_owned()], passed.as_slice()].concat();
            (format!("let result = {from}::{method}({})", passed.join(", ")), None)
        }
        None => ("let result = servant".to_owned(), Some(format!(".{method}({})", passed.join(", ")))),
    };
    let mut calls: Vec<String> = called.into_iter().collect();
    if types.face == Face::Asynchronous {
        calls.push(".await".to_owned());
    }
    page.chain(&root, &calls, ";");
    if !call.answers_as_is() {
        return answer(types, &call, &names, page);
    }
    page.line(match (call.results.len(), call.succeeds) {
        (1, true) => "request.reply(result.map(|success| success.map(|value| (value,))))",
        (1, false) => "request.reply(result.map(|value| (value,)))",
        _ => "request.reply(result)",
    });
}

/// Writes the answer where results do not travel as the servant returns them.
fn answer(types: &Types<'_, '_>, call: &Call<'_>, arguments: &[String], page: &mut Page) {
    let names = call.result_names();
    let shown: Vec<_> = call
        .results
        .iter()
        .zip(&names)
        .filter(|(value, _)| value.is_shown())
        .map(|(_, name)| name.clone())
        .collect();
    let pattern = match shown.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    };
    let pattern = match (call.succeeds, pattern.as_str()) {
        (true, "value") => "ew::Success { value, code }".to_owned(),
        (true, pattern) => format!("ew::Success {{ value: {pattern}, code }}"),
        (false, _) => pattern,
    };
    page.block("match result", |page| {
        page.enclosed(&format!("Ok({pattern}) => {{"), "}", |page| {
            call.check_like("answered", arguments, &names, page);
            call.check_room(arguments, &names, page);
            write_counts(types, &call.results, &names, page);
            let values: Vec<_> = call
                .results
                .iter()
                .zip(&names)
                .map(|(value, name)| call.answered(value, name, arguments))
                .collect();
            let (open, close) = match call.succeeds {
                true => ("Ok(ew::Success::with(code, (", ")))"),
                false => ("Ok((", "))"),
            };
            let head = format!("request.reply::<_, ew::Failure>({open}");
            match values.as_slice() {
                [one] => page.line(format!("{head}{one},{close})")),
                several => page.list(&head, several, &format!("{close})")),
            }
        });
        page.line("Err(error) => request.reply::<(), _>(Err(error)),");
    });
}
