//! Asking an object for its contract: `interfaces()` and `functions()`, and `objects()` of its application.
//!
//! DCOP objects tell their functions as text, all in one list, without saying which class has which; so one
//! interface comes out, with the name of the most derived class. Functions with types of unknown shape are
//! named and left out. The answers are another program's: lists are bounded (`DISCOVERED`), and text that is
//! no function is passed over. All of it are blocking calls, for the command line.

use crate::limits::DISCOVERED;
use crate::standard::{BASE, CLIENT};
use crate::{address, types};
use bytes::Bytes;
use everywire_idl::kidl;
use everywire_model::contract::LEFT_OUT;
use everywire_model::describe::TEXT;
use everywire_model::shape::Field;
use everywire_model::visit::Nothing;
use everywire_model::{
    Contract, Definition, Direction, Discovery, Failure, Hold, Initiator, Interface, Kind, Object, Operation,
    Outcome, Parameter, Reference, Shape,
};
use std::borrow::Cow;

/// What an object tells of itself, and which objects stand below it by their ids. Of an application without
/// an object: its objects.
///
/// # Errors
/// The object does not answer, or is of another wire.
pub(crate) fn discover(object: &Object) -> Result<Discovery, Failure> {
    let profile = object.reference().profiles.iter().find(|profile| profile.wire == "dcop");
    let Some(profile) = profile else {
        return Err(Failure::bad_reference("the object is not on this wire"));
    };
    let app = address::application(profile);
    let resolve = |key: &[u8]| {
        let at = address::beside(profile, app, key);
        let reference = Reference { profiles: vec![at], ..Reference::default() };
        object.target().resolver().resolve(&reference)
    };
    if app == address::SERVER {
        let contract = contract(&["DCOPServer".into()], &server_functions());
        return Ok(Discovery { contract, own: 1, ..Discovery::default() });
    }
    let ids = || strings(&resolve(CLIENT)?, "objects()");
    if profile.key.is_empty() {
        // The application as such: its objects.
        let children = ids()?.into_iter().filter(|id| id != "default").map(Bytes::from).collect();
        return Ok(Discovery { children, ..Discovery::default() });
    }
    let functions = strings(object, "functions()")?;
    let interfaces = strings(object, "interfaces()")?;
    let prefix = [&profile.key[..], b"/"].concat();
    let below = ids().unwrap_or_default().into_iter().map(Bytes::from).filter(|id| id.starts_with(&prefix));
    // What every object has stands apart from its own.
    let (base, own): (Vec<String>, Vec<String>) = functions
        .into_iter()
        .partition(|text| text.ends_with(" interfaces()") || text.ends_with(" functions()"));
    let mut told = contract(&interfaces, &own);
    told.definitions.append(&mut contract(&[BASE.to_owned()], &base).definitions);
    Ok(Discovery { contract: told, own: 1, children: below.collect(), ..Discovery::default() })
}

/// Calls a function without arguments that returns a list of strings.
///
/// # Errors
/// Those of the call; or the list is too long.
pub(crate) fn strings(object: &Object, function: &'static str) -> Result<Vec<String>, Failure> {
    let operation = Operation::new(function, Vec::new(), Shape::sequence(TEXT));
    match object.invoke(&operation, &Nothing) {
        Outcome::Done(body) => {
            let (list,): (Vec<String>,) = body.decode(&operation.results)?;
            if list.len() > DISCOVERED {
                let (asked, limit) = (list.len() as u64, DISCOVERED as u64);
                return Err(Failure::over_limit(Initiator::Peer, "entries in the list", asked, limit));
            }
            Ok(list)
        }
        Outcome::Failed(failure) => Err(failure),
        Outcome::Raised(_) | Outcome::Moved(_) => {
            Err(Failure::new(Kind::Violation, Initiator::Peer, "an answer that this wire does not have"))
        }
    }
}

/// One interface with all functions: the object does not tell which class each is of. Functions with the same
/// name get labels of their own, since they are told apart by their types on the wire alone.
fn contract(interfaces: &[String], functions: &[String]) -> Contract {
    let name = interfaces.last().map_or(BASE, String::as_str).to_owned();
    let mut operations: Vec<Operation> = Vec::new();
    let mut left_out = Vec::new();
    for text in functions {
        match function(text) {
            Some(mut operation) => {
                let label = operation.label.to_string();
                let same = operations.iter().filter(|known| plain(known) == label).count();
                if same > 0 {
                    operation.label = format!("{label}_{}", same + 1).into();
                }
                operations.push(operation);
            }
            None => left_out.push(format!("{text}: it has a type of unknown shape")),
        }
    }
    let interface = Interface {
        id: name.clone().into(),
        name: name.into(),
        notes: left_out.into_iter().map(|what| (LEFT_OUT.into(), what.into())).collect(),
        operations: Cow::Owned(operations),
        ..Interface::default()
    };
    Contract { definitions: vec![Definition::Interface(Hold::new(interface))] }
}

/// The function's name without its signature.
fn plain(operation: &Operation) -> &str {
    operation.name.split('(').next().unwrap_or_default()
}

/// Reads `TYPE name(TYPE argument,TYPE argument)`; the arguments' names may be missing. `ASYNC` as the type
/// means a oneway function. Nothing, if it is no function, or has a type of unknown shape.
pub(crate) fn function(text: &str) -> Option<Operation> {
    let (head, list) = text.trim().strip_suffix(')')?.split_once('(')?;
    let (kind, name) = head.trim().rsplit_once([' ', '>', '*', '&'])?;
    // A bracket belongs to the type.
    let kind = head.get(..kind.len() + 1).map_or(kind, str::trim);
    let oneway = kind == "ASYNC";
    let returns = match kind {
        "ASYNC" | "void" => Shape::Void,
        other => kidl::types::shape(other)?,
    };
    let mut parameters = Vec::new();
    let mut kinds: Vec<String> = Vec::new();
    for (index, argument) in types::split(list).enumerate() {
        let (kind, name) = argument_of(argument, index)?;
        let field = Field { name: name.into(), shape: kidl::types::shape(&kind)? };
        parameters.push(Parameter { direction: Direction::In, field });
        kinds.push(kind);
    }
    let mut operation = Operation::new(format!("{name}({})", kinds.join(",")), parameters, returns);
    operation.label = name.to_owned().into();
    operation.oneway = oneway;
    Some(operation)
}

/// Type and name of an argument: the whole is a type, or all but the last word. `index` makes a name for one
/// that has none.
fn argument_of(text: &str, index: usize) -> Option<(String, String)> {
    let normal = kidl::types::normal(text);
    if kidl::types::shape(&normal).is_some() {
        return Some((normal, format!("arg{}", index + 1)));
    }
    let (kind, name) = text.rsplit_once([' ', '>'])?;
    let kind = text.get(..kind.len() + 1).map_or(kind, str::trim);
    Some((kidl::types::normal(kind), name.to_owned()))
}

/// What the server itself can be asked. The real server tells none of itself, so this is the list of the
/// documentation.
pub(crate) fn server_functions() -> Vec<String> {
    [
        "QCString registerAs(QCString name)",
        "QCStringList registeredApplications()",
        "bool isApplicationRegistered(QCString name)",
        "void setNotifications(bool on)",
        "void setDaemonMode(bool on)",
        "bool connectSignal(QCString sender,QCString senderObject,QCString signal,QCString receiverObject,QCString slot,bool volatile)",
        "bool disconnectSignal(QCString sender,QCString senderObject,QCString signal,QCString receiverObject,QCString slot)",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_as_objects_tell_them() {
        let texts = [
            ("void void_call()", "void_call()"),
            ("int in_out_int_call(int i)", "in_out_int_call(int)"),
            ("ASYNC emit_hello(int n)", "emit_hello(int)"),
            ("unsigned int a(QString s,unsigned long int l)", "a(QString,unsigned long int)"),
            (
                "QMap<QString,int> m(QMap<QString,int> mm,QValueList<QCString>)",
                "m(QMap<QString,int>,QValueList<QCString>)",
            ),
            ("QValueList<int>f(unsigned int)", "f(unsigned int)"),
        ];
        for (text, name) in texts {
            assert_eq!(function(text).unwrap().name, name, "{text}");
        }
        assert!(function("emit_hello").is_none() && function("KFileItem item()").is_none());
        assert!(function("ASYNC go()").unwrap().oneway);
    }

    #[test]
    fn functions_of_unknown_types_are_named_but_left_out() {
        let told =
            ["void a(int i)".to_owned(), "void a(uint i)".to_owned(), "void b(KFileItem u)".to_owned()];
        let contract = contract(&["DCOPObject".into(), "X".into()], &told);
        let interface = contract.interface("X").unwrap();
        let labels: Vec<_> = interface.operations.iter().map(|operation| operation.label.as_ref()).collect();
        assert_eq!(labels, ["a", "a_2"]);
        let left_out: Vec<&str> = everywire_model::contract::left_out(&interface.notes).collect();
        assert_eq!(left_out, ["void b(KFileItem u): it has a type of unknown shape"]);
    }
}
