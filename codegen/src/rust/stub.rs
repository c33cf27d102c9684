//! Stubs: each method one call.

use super::interface::{COMPLEX, argument_names, has_referents, is_referent, names, signature, tuple};
use super::plan::{Family, Plan};
use super::types::{Face, Types};
use crate::page::Page;
use everywire_model::{Interface, Operation};

/// Writes the stub of an interface: it implements the trait and those it inherits from.
pub(super) fn write(types: &Types<'_, '_>, interface: &Interface, family: &Family, page: &mut Page) {
    let [name, stub, _] = names(types, family);
    page.gap();
    page.doc(&format!("Calls a [`{name}`] that is somewhere else."));
    page.line("#[derive(Debug, Clone)]");
    page.line(format!("pub struct {stub}(pub ew::Object);"));
    for ancestor in Plan::lineage(interface) {
        let Some((_, ancestral)) = types.plan.interface(&ancestor.name) else { continue };
        let Some(place) = types.plan.find(&ancestor.name) else { continue };
        page.gap();
        if types.face == Face::Asynchronous {
            page.line("#[::everywire::async_trait]");
        }
        let path = Plan::path(types.from, &place.path, &names(types, ancestral)[0]);
        let head = format!("impl {path} for {stub}");
        if ancestor.operations.len() == ancestor.inherited {
            page.line(format!("{head} {{}}"));
            continue;
        }
        page.block(&head, |page| {
            let own = ancestor.operations.iter().zip(&ancestral.methods).enumerate().skip(ancestor.inherited);
            for (own, (operation, method)) in own {
                // The number in the derived interface: what a peer that counts operations counts by.
                let Some(index) = Plan::number(interface, ancestor, own) else { continue };
                page.gap();
                signature(types, ancestor, operation, method, " {", page);
                page.enclosed_body(|page| {
                    body(
                        types,
                        ancestor,
                        operation,
                        &format!("&describe::{}[{index}]", family.operations),
                        page,
                    );
                });
            }
        });
    }
}

fn body(types: &Types<'_, '_>, owner: &Interface, operation: &Operation, number: &str, page: &mut Page) {
    let arguments = tuple(&argument_names(operation));
    let results = operation.results.fields();
    if operation.oneway {
        page.line(format!("self.0.notify({number}, {arguments})"));
        return;
    }
    let mut method = if types.face == Face::Asynchronous { "call_async" } else { "call" }.to_owned();
    if has_referents(types, results) {
        // What is received is not yet what is returned, so the compiler wants to be told the error's type.
        method += &format!("::<_, _, {}>", types.plan.error(types.from, owner, operation));
    }
    let mut calls = vec![format!(".{method}({number}, {arguments})")];
    if !page.fits(&format!("    {}", calls.concat())) {
        calls = vec![format!(".{method}(\n    {number},\n    {arguments},\n)")];
    }
    if types.face == Face::Asynchronous {
        calls.push(".await".to_owned());
    }
    if has_referents(types, results) {
        let kinds: Vec<_> = results.iter().map(|field| types.owned(&field.shape)).collect();
        let values: Vec<_> = (0..results.len()).map(|index| format!("value_{index}")).collect();
        let values = if results.len() == 1 { vec!["value".to_owned()] } else { values };
        let plain = format!("let {}: {}", tuple(&values), tuple(&kinds));
        if tuple(&kinds).len() > COMPLEX {
            page.line("#[allow(clippy::type_complexity)]");
        }
        page.assign(&plain, &format!("self.0{}?", calls.concat()));
        let typed: Vec<_> = results
            .iter()
            .zip(&values)
            .map(|(field, value)| {
                if is_referent(types, &field.shape) {
                    format!("self.0.narrow({value})?")
                } else {
                    value.clone()
                }
            })
            .collect();
        match typed.as_slice() {
            // With a failure as the error type the question mark would convert nothing.
            [one] if operation.raises.is_empty() && one.ends_with('?') => {
                page.line(one.trim_end_matches('?'))
            }
            [one] => page.line(format!("Ok({one})")),
            several => page.list("Ok((", several, "))"),
        }
        return;
    }
    if results.len() == 1 {
        calls.push(".map(|(value,)| value)".to_owned());
    }
    page.chain("self.0", &calls, "");
}
