//! What an object can be asked, in the words of KDE's library.

use crate::types;
use everywire_idl::kidl;
use everywire_model::{Direction, Interface, Operation, Servant, Shape};
use std::fmt::Write;
use std::sync::Arc;

/// The base that every object has.
pub(crate) const BASE: &str = "DCOPObject";

/// The classes of an object, the base first.
pub(super) fn interfaces(servants: &[Arc<dyn Servant>]) -> Vec<String> {
    let mut all = vec![BASE.to_owned()];
    for servant in servants {
        add(servant.interface(), &mut all);
    }
    all
}

/// Each class once, bases before those derived from them.
fn add(interface: &Interface, all: &mut Vec<String>) {
    for base in interface.bases.iter() {
        add(base, all);
    }
    if !all.iter().any(|known| *known == interface.name) {
        all.push(interface.name.to_string());
    }
}

/// The functions of an object, first those that every object has. `trinity`: types are spelled as Trinity's
/// programs do.
pub(super) fn functions(servants: &[Arc<dyn Servant>], trinity: bool) -> Vec<String> {
    let mut all = vec!["QCStringList interfaces()".to_owned(), "QCStringList functions()".to_owned()];
    for servant in servants {
        // What cannot be called on this wire is not told.
        all.extend(servant.interface().operations.iter().filter_map(function));
    }
    if trinity {
        all.iter_mut().for_each(|told| *told = spelled(told));
    }
    all
}

/// What is told of a function, as programs of Trinity write it.
fn spelled(told: &str) -> String {
    match told.split_once('(').and_then(|(head, list)| Some((head.rsplit_once(' ')?, list))) {
        Some(((kind, name), list)) => {
            format!("{} {name}({}", kidl::types::of_trinity(kind), kidl::types::of_trinity(list))
        }
        None => told.to_owned(),
    }
}

/// `TYPE name(TYPE argument,TYPE argument)`. Nothing, for an operation that cannot be called on this wire.
fn function(operation: &Operation) -> Option<String> {
    let signature = types::function(operation).ok()?;
    let (name, list) = signature.split_once('(')?;
    let list = list.strip_suffix(')')?;
    let results: Vec<_> = operation.results.fields().to_vec();
    let result = if operation.oneway { "ASYNC".to_owned() } else { types::results(&results).ok()? };
    let mut out = format!("{result} {name}(");
    let names = operation.parameters.iter().filter(|parameter| parameter.direction != Direction::Out);
    let mut names = names.map(|parameter| parameter.field.name.as_ref());
    for (index, kind) in types::split(list).enumerate() {
        let separator = if index > 0 { "," } else { "" };
        let name = names.next().unwrap_or_default();
        let blank = if name.is_empty() { "" } else { " " };
        write!(out, "{separator}{kind}{blank}{name}").ok()?;
    }
    out.push(')');
    // A shape without a type name travels nowhere.
    operation.arguments.fields().iter().all(|field| !matches!(field.shape, Shape::Handle)).then_some(out)
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_are_told_in_the_spelling_of_trinity() {
        for (told, trinity) in [
            ("QString find(QMap<QString,int> all,bool b)", "TQString find(TQMap<TQString,int> all,bool b)"),
            ("QCStringList functions()", "QCStringList functions()"),
            ("unsigned int Q(KURL url)", "unsigned int Q(KURL url)"),
        ] {
            assert_eq!(super::spelled(told), trinity);
        }
    }
}
