//! What connects a trait to its stubs and skeletons: a macro with a line for each operation that the trait
//! declares itself.
//!
//! `everywire_model::generated` has the macros and tells what their lines mean. An operation is `checked`
//! where what travels is not what people see: counts beside arrays, references among other results,
//! interfaces named by a parameter.
//!
//! One macro is called for both traits of an interface (`faces!`), or for the one that is wanted. Its lines
//! stand in a fixed order: the traits with their descriptions, the traits of the bases with the numbers of
//! their operations, the signals, the constants, the listeners, and then the own operations by `Section`. The number of an
//! operation is its place behind the inherited ones.
//!
//! Invariants: names of arguments, results and the object that is called differ within one operation
//! (`UniqueNames`), because the macro makes variables of them. The operations of a base are one range of numbers;
//! else the text holds a `compile_error!`.

use super::call::{Call, Role, Value, check_counts, late_length, length, write_counts};
use super::interface::{has_referents, is_referent, trait_of};
use super::plan::{Family, Plan};
use super::types::{TraitKind, Types, tuple};
use crate::names::UniqueNames;
use crate::page::Page;
use everywire_model::{Interface, Operation};

/// What is generated of an interface.
struct Lines<'t, 'p, 'c> {
    /// The trait whose types come first.
    types: Types<'p, 'c>,
    /// The other trait, where both are wanted.
    second: Option<&'t Types<'p, 'c>>,
    interface: &'t Interface,
}

/// Writes what connects the traits of an interface.
pub(super) fn write(kinds: &[Types<'_, '_>], interface: &Interface, family: &Family, page: &mut Page) {
    let Some(first) = kinds.first() else { return };
    let lines = Lines { types: *first, second: kinds.get(1), interface };
    let macro_name = match (lines.second, first.trait_kind) {
        (Some(_), _) => "faces",
        (None, TraitKind::Blocking) => "blocking",
        (None, TraitKind::Asynchronous) => "asynchronous",
    };
    let described = first.plan.find(&interface.name).map_or("", |place| place.described.as_str());
    let operations = &family.operations;
    page.gap();
    page.block(&format!("ew::{macro_name}!"), |page| {
        let traits = lines.both(|types| trait_of(types, family).to_owned());
        let own = interface.inherited;
        page.line(format!("{traits}: describe::{described}, describe::{operations}, {own};"));
        page.flow(&lines.bases(), ';');
        let emitted =
            super::signals::emitted(first, interface).into_iter().map(|path| format!("emits {path}"));
        let told = first.plan.tells_constants();
        let told = told.then(|| format!("tells {}describe::constants", "super::".repeat(first.from.len())));
        let called = lines.listeners().into_iter().map(|path| format!("calls {path}"));
        page.flow(&emitted.chain(told).chain(called).collect::<Vec<_>>(), ';');
        let mut own: Vec<_> = interface
            .operations
            .iter()
            .zip(&family.methods)
            .skip(interface.inherited)
            .enumerate()
            .map(|(number, (operation, method))| {
                let call = Call::of(first.plan, interface, operation);
                (lines.section(operation, &call), number, operation, method, call)
            })
            .collect();
        own.sort_by_key(|(section, number, ..)| (*section, *number));
        for (section, number, operation, method, call) in &own {
            let head = format!("{}{number} {method}(", section.keyword());
            lines.operation(*section, &head, operation, call, page);
        }
    });
    page.gap();
}

/// In which order the macros take operations. The macros take one section after the other, so operations are
/// sorted by it; within a section they keep their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    /// What travels is what people see.
    Plain,
    /// The same without an answer.
    Oneway,
    /// Without an answer, and with counts that follow from arrays.
    CheckedOneway,
    /// With counts, references or identities to be checked on both sides.
    Checked,
}

impl Section {
    /// The word before the operation in the macro's input.
    fn keyword(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Oneway => "oneway ",
            Self::CheckedOneway => "checked_oneway ",
            Self::Checked => "checked ",
        }
    }
}

impl Lines<'_, '_, '_> {
    /// `A / B`: what the blocking and the asynchronous trait have; one where there is one trait only.
    fn both(&self, of: impl Fn(&Types<'_, '_>) -> String) -> String {
        match (self.second, self.types.trait_kind) {
            (Some(second), _) => format!("{} / {}", of(&self.types), of(second)),
            (None, TraitKind::Blocking) => of(&self.types),
            (None, TraitKind::Asynchronous) => {
                let only = of(&self.types);
                format!("{only} / {only}")
            }
        }
    }

    /// The traits above this one, and which operations of it are their own.
    fn bases(&self) -> Vec<String> {
        let mut said = Vec::new();
        for ancestor in Plan::lineage(self.interface) {
            if ancestor.name == self.interface.name {
                continue;
            }
            let Some((_, family)) = self.types.plan.interface(&ancestor.name) else { continue };
            let Some(place) = self.types.plan.find(&ancestor.name) else { continue };
            let traits = self.both(|types| Plan::path(types.from, &place.path, trait_of(types, family)));
            let own = ancestor.inherited..ancestor.operations.len();
            let numbers: Option<Vec<usize>> =
                own.map(|own| Plan::number(self.interface, ancestor, own)).collect();
            let numbers = numbers.unwrap_or_default();
            let first = numbers.first().copied().unwrap_or_default();
            let end = first + numbers.len();
            // A stub passes a range of numbers on; the compiler tells whoever wrote such a contract.
            if numbers.iter().copied().ne(first..end) {
                let name = &ancestor.name;
                let problem =
                    format!("operations of {name} are not together in an interface that is derived from it");
                said.push(format!("compile_error!({problem:?})"));
            }
            said.push(format!("from {traits} {first}..{end}"));
        }
        said
    }

    /// The statics of the interfaces that it calls back.
    fn listeners(&self) -> Vec<String> {
        let plan = self.types.plan;
        let mut found = Vec::new();
        for taken in self.interface.operations.iter().flat_map(Operation::takes) {
            let known = plan.interface(&taken.name).filter(|(known, _)| known.only_listens());
            if let (Some(_), Some(place)) = (known, plan.find(&taken.name)) {
                let path = [place.path.as_slice(), &["describe".to_owned()]].concat();
                let path = Plan::path(self.types.from, &path, &place.described);
                if !found.contains(&path) {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Which of the sections an operation belongs to.
    fn section(&self, operation: &Operation, call: &Call<'_>) -> Section {
        let results = operation.results.fields();
        let counted = call.arguments.iter().any(|value| !value.is_shown());
        let referents = has_referents(&self.types, results);
        match operation.oneway {
            true if counted => Section::CheckedOneway,
            true => Section::Oneway,
            false if counted || !call.answers_as_is() => Section::Checked,
            false if referents && (results.len() > 1 || call.succeeds) => Section::Checked,
            false => Section::Plain,
        }
    }

    /// One operation: its number, its method, parameters, results, error, and for checked ones what is to be
    /// done on both sides.
    fn operation(
        &self,
        section: Section,
        head: &str,
        operation: &Operation,
        call: &Call<'_>,
        page: &mut Page,
    ) {
        let parameters: Vec<String> = call.parameters().map(|value| self.parameter(value)).collect();
        let error = match self.types.plan.error(self.types.from, self.interface, operation) {
            failure if failure == "ew::Failure" => String::new(),
            raised => format!(" | {raised}"),
        };
        match section {
            Section::Oneway => page.fill(head, &parameters, ");"),
            Section::Plain => {
                let results = self.results(call);
                page.fill(head, &parameters, &format!("){results}{error};"));
            }
            Section::CheckedOneway => {
                page.fill(head, &parameters, ") {");
                page.enclosed_body(|page| self.arguments(call, page));
            }
            Section::Checked => {
                let names = result_names(call);
                let shown: Vec<_> = shown(call, &names).map(|(_, name)| name.to_owned()).collect();
                let list = |types: &Types<'_, '_>| {
                    let list = tuple(&call.yields().map(|value| value.shown(types)).collect::<Vec<_>>());
                    if call.succeeds { format!("ew::Success<{list}>") } else { list }
                };
                let mut lists = list(&self.types);
                if let Some(second) = self.second.map(list).filter(|second| *second != lists) {
                    lists = format!("{lists} => {second}");
                }
                let tail = format!(") -> ({}) {lists}{error} {{", shown.join(", "));
                page.fill(head, &parameters, &tail);
                page.enclosed_body(|page| {
                    self.arguments(call, page);
                    self.received(call, &names, page);
                    self.answered(call, &names, page);
                });
            }
        }
    }

    /// A parameter: by value, by reference, or a typed reference.
    fn parameter(&self, value: &Value<'_>) -> String {
        let shape = &value.field.shape;
        let name = &value.name;
        if is_referent(&self.types, shape) {
            let traits = self.both(|types| types.referent(shape).unwrap_or_default());
            return format!("{name} => {traits}");
        }
        let kind = self.types.parameter(shape);
        if kind.starts_with('&') { format!("{name} as {kind}") } else { format!("{name}: {kind}") }
    }

    /// The results of an operation that is not checked. Only called for operations whose results are shown as
    /// they are.
    fn results(&self, call: &Call<'_>) -> String {
        match call.results.as_slice() {
            [] if !call.succeeds => String::new(),
            [one] if is_referent(&self.types, &one.field.shape) => {
                let shape = &one.field.shape;
                format!(" => {}", self.both(|types| types.referent(shape).unwrap_or_default()))
            }
            results => {
                let list: Vec<_> = results.iter().map(|value| value.shown(&self.types)).collect();
                match call.succeeds {
                    true => format!(" -> ew::Success<{}>", tuple(&list)),
                    false => format!(" -> {}", tuple(&list)),
                }
            }
        }
    }

    /// What a stub sends and a skeleton reads. A stub makes counts of arrays, a skeleton checks arrays by
    /// counts.
    fn arguments(&self, call: &Call<'_>, page: &mut Page) {
        let names = call.argument_names();
        page.clause("send", &names, |page| write_counts(&self.types, &call.arguments, &names, page));
        page.clause("read", &names, |page| check_counts(&self.types, &call.arguments, &names, length, page));
    }

    /// What a stub reads: pointers are taken from arrays, references become typed.
    fn received(&self, call: &Call<'_>, names: &[String], page: &mut Page) {
        let patterns: Vec<_> = call
            .results
            .iter()
            .zip(names)
            .map(|(value, name)| match value.role {
                Role::Bare => format!("ew::counts::Present({name})"),
                _ => name.clone(),
            })
            .collect();
        // Typed references are made for the connection of the object that was called.
        let object = object_name(call, names);
        page.clause(&format!("receive {object}"), &patterns, |page| {
            check_counts(&self.types, &call.results, names, late_length, page);
            call.check_like("agree", &call.argument_names(), names, late_length, page);
            for (value, name) in shown(call, names) {
                if is_referent(&self.types, &value.field.shape) {
                    page.line(format!("let {name} = {object}.narrow({name})?;"));
                }
            }
        });
    }

    /// What a skeleton answers. Checks come before the counts are made: a servant's mistake must not travel.
    fn answered(&self, call: &Call<'_>, names: &[String], page: &mut Page) {
        let arguments = call.argument_names();
        let values: Vec<_> = call
            .results
            .iter()
            .zip(names)
            .map(|(value, name)| call.answered(value, name, &arguments))
            .collect();
        page.clause("answer", &values, |page| {
            call.check_like("answered", &arguments, names, length, page);
            call.check_room(&arguments, names, page);
            write_counts(&self.types, &call.results, names, page);
        });
    }
}

/// The results that people see, and their names.
fn shown<'v, 'o>(call: &'v Call<'o>, names: &'v [String]) -> impl Iterator<Item = (&'v Value<'o>, &'v str)> {
    call.results.iter().zip(names.iter().map(String::as_str)).filter(|(value, _)| value.is_shown())
}

/// Names for the results, other than those of the arguments.
fn result_names(call: &Call<'_>) -> Vec<String> {
    let mut taken = UniqueNames::of(&call.argument_names());
    call.results
        .iter()
        .map(|value| match value.name.as_str() {
            "r#return" => taken.name_value("returned".to_owned()),
            name => taken.name_value(name.to_owned()),
        })
        .collect()
}

/// A name for the object that is called, other than those of arguments and results.
fn object_name(call: &Call<'_>, names: &[String]) -> String {
    let mut taken = UniqueNames::of(&call.argument_names());
    names.iter().for_each(|name| drop(taken.name_value(name.clone())));
    taken.name_value("object".to_owned())
}
