//! Stubs: each method one call.

use super::call::{Call, Role, check_counts, write_counts};
use super::interface::{COMPLEX, has_referents, is_referent, names, signature, tuple};
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
    let call = Call::of(types.plan, owner, operation);
    let names = call.argument_names();
    write_counts(types, &call.arguments, &names, page);
    let arguments = tuple(&names);
    let results = operation.results.fields();
    if operation.oneway {
        page.line(format!("self.0.notify({number}, {arguments})"));
        return;
    }
    let as_is = call.yields_as_is() && !has_referents(types, results);
    let mut method = if types.face == Face::Asynchronous { "call_async" } else { "call" }.to_owned();
    if !as_is {
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
    if !as_is {
        return receive(types, operation, &call, &calls.concat(), page);
    }
    if results.len() == 1 {
        calls.push(match call.succeeds {
            true => ".map(|success: ew::Success<(_,)>| success.map(|(value,)| value))".to_owned(),
            false => ".map(|(value,)| value)".to_owned(),
        });
    }
    page.chain("self.0", &calls, "");
}

/// Writes what is made of results that are not returned as they travel.
fn receive(types: &Types<'_, '_>, operation: &Operation, call: &Call<'_>, calls: &str, page: &mut Page) {
    let names = call.result_names();
    let kinds: Vec<_> = call.results.iter().map(|value| value.received(types)).collect();
    let patterns: Vec<_> = call
        .results
        .iter()
        .zip(&names)
        .map(
            |(value, name)| {
                if value.role == Role::Bare { format!("ew::counts::Present({name})") } else { name.clone() }
            },
        )
        .collect();
    if tuple(&kinds).len() > COMPLEX {
        page.line("#[allow(clippy::type_complexity)]");
    }
    if call.succeeds {
        let head = format!("let success: ew::Success<{}>", tuple(&kinds));
        page.assign(&head, &format!("self.0{calls}?"));
        page.assign(&format!("let {}", tuple(&patterns)), "success.value");
    } else {
        let head = format!("let {}: {}", tuple(&patterns), tuple(&kinds));
        page.assign(&head, &format!("self.0{calls}?"));
    }
    check_counts(&call.results, &names, page);
    call.check_like("agree", &call.argument_names(), &names, page);
    let typed: Vec<_> = call
        .results
        .iter()
        .zip(&names)
        .filter(|(value, _)| value.is_shown())
        .map(|(value, name)| {
            if is_referent(types, &value.field.shape) {
                format!("self.0.narrow({name})?")
            } else {
                name.clone()
            }
        })
        .collect();
    if call.succeeds {
        let value = match typed.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(", ")),
        };
        return page.line(format!("Ok(ew::Success::with(success.code, {value}))"));
    }
    match typed.as_slice() {
        // With a failure as the error type the question mark would convert nothing.
        [one] if operation.raises.is_empty() && one.ends_with('?') => page.line(one.trim_end_matches('?')),
        [one] => page.line(format!("Ok({one})")),
        several => page.list("Ok((", several, "))"),
    }
}
