//! The operation that is meant, and its arguments from JSON or from the words of a command line.
//!
//! A name may be the wire name, the label, the name of an attribute, or any of them behind `INTERFACE.`.
//! `choose` tries them in this order; the number of arguments tells overloads apart and whether an attribute
//! is read or written. An unknown name is answered with the known names and the nearest one.
//!
//! `arguments` fills one place for each argument of the operation: words first, by position or by
//! `NAME=VALUE`, then what a document adds. Nothing is called before every place is filled, those of optional
//! arguments too. A list fills the places that the words left open, in order. A second value for an argument is
//! a mistake, in a word as in a document.
//!
//! All mistakes are the caller's (`Mistake`): no call has been made when they are told.

use crate::counts;
use crate::json::{self, JsonMismatch, Notation};
use crate::mistake::{Mistake, Remedy};
use crate::wording::{last_part, signature};
use everywire_model::contract::{MEMBER, note};
use everywire_model::words::nearest;
use everywire_model::{Hold, Interface, InterfaceKind, Operation, Value};
use serde_json::{Map, Value as Json};

/// What stands before the last dot of a word: the interface in `INTERFACE.OPERATION`. None for a bare name.
pub(crate) fn scope(word: &str) -> Option<&str> {
    bare(word).rsplit_once('.').map(|(scope, _)| scope)
}

/// A word without the value that it assigns.
fn bare(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Whether an interface itself declares (not merely inherits) what `word` names. Of `word`, a value behind
/// `=` does not count.
pub(crate) fn declares(interface: &Interface, word: &str) -> bool {
    let word = bare(word);
    let own = interface.operations.get(interface.inherited..).unwrap_or_default();
    let inherited = interface.operations.get(..interface.inherited).unwrap_or_default();
    // Numbers in the list of attributes count inherited operations too.
    let attribute = |index: usize| {
        interface.attributes.iter().any(|attribute| attribute.name == word && attribute.getter == index)
    };
    own.iter().enumerate().any(|(index, operation)| {
        let accessor =
            operation.label.strip_prefix("_get_").or_else(|| operation.label.strip_prefix("_set_"));
        operation.name == word
            || operation.label == word
            || accessor == Some(word)
            || attribute(index + inherited.len())
    })
}

/// An operation by words: its name, then its arguments. `title=x` and `title x` write an attribute; what is to be written comes back
/// as an argument. `more` says that a document gives more than the words do.
///
/// # Errors
/// As [`choose`].
pub fn find<'i>(
    interface: &'i Interface,
    word: &str,
    arguments: &[String],
    more: bool,
) -> Result<(&'i Operation, Vec<String>), Mistake> {
    let (name, assigned) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    let given: Vec<String> = assigned.into_iter().chain(arguments.iter().cloned()).collect();
    Ok((choose(interface, name, given.len(), more)?, given))
}

/// Finds an operation by its wire name, its label or an attribute's name, which may stand behind the interface's and a dot. An
/// attribute is read where nothing is given, and written otherwise.
///
/// Of operations that share a name, the one is meant that takes as many arguments as are given; `more` says that there may be more
/// of them than that. Where they share it on D-Bus alone, the one that has it everywhere comes first.
///
/// # Errors
/// There is none, or more than one, or the attribute cannot be written.
pub fn choose<'i>(
    interface: &'i Interface,
    name: &str,
    given: usize,
    more: bool,
) -> Result<&'i Operation, Mistake> {
    // INTERFACE.OPERATION: by its scoped name, its last part or its identity.
    let name = match name.rsplit_once('.') {
        Some((scope, name)) if is_called(interface, scope) => name,
        _ => name,
    };
    // The wire name is first, since it is the only one that cannot mean two.
    if let Some(operation) = interface.operations.iter().find(|operation| operation.name == name) {
        return Ok(if takes(operation, given, more) {
            operation
        } else {
            sharing(interface, name, given, more).unwrap_or(operation)
        });
    }
    if let Some(attribute) = interface.attributes.iter().find(|attribute| attribute.name == name) {
        let index = match (given == 0, attribute.setter) {
            (true, _) => attribute.getter,
            (false, Some(setter)) => setter,
            (false, None) => {
                // It may be written as another type than it is read as: then a contract does not take both for one attribute.
                if let Some(operation) = accessor(interface, name, &WRITES) {
                    return Ok(operation);
                }
                let why = format!("attribute `{name}` of {} is read-only", interface.name);
                return Err(
                    Mistake::operation(format!("cannot set `{name}`"), why).hint("read it by its name alone")
                );
            }
        };
        if let Some(operation) = interface.operations.get(index) {
            return Ok(operation);
        }
    }
    if let Some(operation) = overload(interface, name, given, more)? {
        return Ok(operation);
    }
    // Wires without attributes describe accessors as operations.
    let marks = if given == 0 { &READS } else { &WRITES };
    if let Some(operation) = accessor(interface, name, marks) {
        return Ok(operation);
    }
    Err(unknown(name, &[interface]))
}

/// Whether an operation takes so many arguments; `more` says that there may be more of them.
fn takes(operation: &Operation, given: usize, more: bool) -> bool {
    let fields = operation.arguments.fields().len();
    if more { fields >= given } else { fields == given }
}

/// The only operation that takes so many arguments among those that share this name on D-Bus and have another one of their own.
fn sharing<'i>(interface: &'i Interface, name: &str, given: usize, more: bool) -> Option<&'i Operation> {
    let mut fits = interface
        .operations
        .iter()
        .filter(|operation| note(&operation.notes, MEMBER) == Some(name) && takes(operation, given, more));
    fits.next().filter(|_| fits.next().is_none())
}

/// What stands before the name of an attribute in the names of operations that read it. COM's accessors have
/// the second form.
pub const READS: [&str; 2] = ["_get_", "get_"];
/// The same of those that write it.
pub const WRITES: [&str; 2] = ["_set_", "put_"];

/// The operation that reads or writes the attribute of this name, where the contract does not say that it does.
pub fn accessor<'i>(interface: &'i Interface, name: &str, marks: &[&str]) -> Option<&'i Operation> {
    let is = |operation: &&Operation| {
        marks.iter().any(|mark| operation.label.strip_prefix(mark) == Some(name))
            && operation.arguments.fields().len() == usize::from(marks == WRITES)
    };
    interface.operations.iter().find(is)
}

/// The operation of this name among those that share it: by how many arguments are given. None where no
/// operation is called so. Of one alone the number does not matter: its arguments say what is missing.
fn overload<'i>(
    interface: &'i Interface,
    name: &str,
    given: usize,
    more: bool,
) -> Result<Option<&'i Operation>, Mistake> {
    // A wire name may hold the types: those of one name differ in nothing else.
    let stem = |operation: &'i Operation| operation.name.split('(').next().unwrap_or_default();
    let same: Vec<&Operation> = interface
        .operations
        .iter()
        .filter(|operation| {
            operation.label == name || (operation.name.contains('(') && stem(operation) == name)
        })
        .collect();
    let fits: Vec<&&Operation> = same.iter().filter(|operation| takes(operation, given, more)).collect();
    match (same.as_slice(), fits.as_slice()) {
        ([], _) => Ok(None),
        ([only], _) => Ok(Some(only)),
        (_, [only]) => Ok(Some(**only)),
        _ => {
            let names: Vec<&str> = same.iter().map(|operation| operation.name.as_ref()).collect();
            let first = names.first().copied().unwrap_or_default();
            let which = if fits.is_empty() { "none of them takes" } else { "more than one of them takes" };
            let why = format!("{which} {}: {}", counted(given), names.join(", "));
            Err(Mistake::operation(format!("`{name}` is more than one operation"), why)
                .hint(format!("write '{first}'")))
        }
    }
}

/// The interface by which an operation of a class is called, and the operation there; of other interfaces, they are themselves.
pub fn of_class<'i>(
    interface: &'i Hold<Interface>,
    operation: &'i Operation,
) -> (&'i Hold<Interface>, &'i Operation) {
    let declares = |base: &'i Hold<Interface>| {
        let found = base.operations.iter().find(|held| held.name == operation.name)?;
        Some((base, found))
    };
    let base = match interface.kind {
        InterfaceKind::Class => interface.bases.iter().find_map(declares),
        _ => None,
    };
    base.unwrap_or((interface, operation))
}

/// Whether an interface goes by this name.
fn is_called(interface: &Interface, name: &str) -> bool {
    interface.name == name || interface.id == name || last_part(&interface.name) == name
}

/// Several interfaces declare what is meant, or none of them does.
pub(crate) fn unclear(word: &str, declaring: &[&Hold<Interface>], all: &[&Hold<Interface>]) -> Mistake {
    let word = bare(word);
    let Some(first) = declaring.first() else {
        return unknown(word, &all.iter().map(|held| &***held).collect::<Vec<_>>());
    };
    let names: Vec<_> = declaring.iter().map(|interface| interface.name.as_ref()).collect();
    Mistake::operation(
        format!("`{word}` is more than one operation"),
        format!("{} declare it", names.join(", ")),
    )
    .hint(format!("write {}.{word}", first.name))
    .remedy(Remedy::Interface)
}

/// There is no such operation: what there is, and what is nearest.
fn unknown(name: &str, interfaces: &[&Interface]) -> Mistake {
    let known: Vec<&str> = interfaces.iter().flat_map(|interface| members(interface)).collect();
    let each = interfaces.iter().map(|interface| {
        let members = members(interface);
        let members = if members.is_empty() { "none".into() } else { members.join(", ") };
        format!("{} has {members}", interface.name)
    });
    let why = each.collect::<Vec<_>>().join("; ");
    let mistake = Mistake::operation(format!("there is no operation `{name}`"), why);
    match nearest(name, known.iter().copied()) {
        Some(near) => mistake.hint(format!("did you mean `{near}`?")),
        None => mistake.hint("choose one of these").remedy(Remedy::OtherInterface),
    }
}

/// What can be asked for: operations as people call them, attributes instead of what reads and writes them.
pub fn members(interface: &Interface) -> Vec<&str> {
    let accesses = |index: usize| {
        interface
            .attributes
            .iter()
            .any(|attribute| attribute.getter == index || attribute.setter == Some(index))
    };
    let operations = interface.operations.iter().enumerate().filter(|(index, _)| !accesses(*index));
    // A wire name may hold the types; people need not write them.
    operations
        .map(|(_, operation)| if operation.name.contains('(') { &*operation.label } else { &*operation.name })
        .chain(interface.attributes.iter().map(|attribute| attribute.name.as_ref()))
        .collect()
}

/// The arguments as one struct: from words by position or name (`NAME=VALUE`), and from a JSON document: an object, or a list.
/// Those that may be empty may be missing, and so may the count of an array that is given.
///
/// # Errors
/// They do not fit, or some are missing.
pub fn arguments(
    operation: &Operation,
    words: &[String],
    document: Option<Json>,
    notation: &dyn Notation,
) -> Result<Value, Mistake> {
    let fields = operation.arguments.fields();
    let mut values: Vec<Option<Value>> = vec![None; fields.len()];
    let mut next = 0;
    for word in words {
        // A word with a `=` before which no argument's name stands is a value.
        let named = word.split_once('=').and_then(|(name, rest)| {
            fields.iter().position(|field| field.name == name).map(|position| (position, rest))
        });
        let (position, word) = match named {
            Some((position, rest)) => (position, rest),
            None => {
                while values.get(next).is_some_and(Option::is_some) {
                    next += 1;
                }
                (next, word.as_str())
            }
        };
        let (Some(field), Some(value)) = (fields.get(position), values.get_mut(position)) else {
            let why = format!("{} takes {}, and `{word}` is one more", operation.name, counted(fields.len()));
            return Err(misfitting(operation, "too many arguments", why));
        };
        if value.is_some() {
            return Err(misfitting(operation, UNFIT, format!("`{}` is given twice", field.name)));
        }
        let path = format!("arguments.{}", field.name);
        *value = Some(json::read_word(&field.shape, word, &path, notation).map_err(|misfit| {
            if named.is_none()
                && let Some(mistake) = misnamed(operation, word)
            {
                return mistake;
            }
            unfit(operation, &misfit)
        })?);
    }
    if let Some(document) = document {
        fill_in(operation, document, &mut values, notation)?;
    }
    counts::fill_in(fields, &mut values);
    let optional = fields.iter().zip(&mut values).filter(|(field, _)| json::optional(&field.shape));
    optional.for_each(|(_, value)| *value = value.take().or(Some(Value::Nothing)));
    let missing: Vec<_> =
        fields.iter().zip(&values).filter(|(_, v)| v.is_none()).map(|(f, _)| f.name.as_ref()).collect();
    if !missing.is_empty() {
        let what = format!("`{}` needs {}", operation.name, counted(fields.len()));
        return Err(
            misfitting(operation, what, format!("missing: {}", missing.join(", "))).remedy(Remedy::Template)
        );
    }
    let named = fields.iter().zip(values).filter_map(|(field, value)| Some((field.name.to_string(), value?)));
    Ok(Value::Struct(named.collect()))
}

/// Takes from a document what the words did not give. Nothing in it is passed over.
fn fill_in(
    operation: &Operation,
    document: Json,
    values: &mut [Option<Value>],
    notation: &dyn Notation,
) -> Result<(), Mistake> {
    let fields = operation.arguments.fields();
    let document: Map<String, Json> = match document {
        Json::Object(object) => object,
        Json::Array(items) => {
            let open: Vec<_> =
                fields.iter().zip(values.iter()).filter(|(_, value)| value.is_none()).collect();
            if items.len() > open.len() {
                let (takes, given) = (counted(fields.len()), fields.len() - open.len());
                let taken = match given {
                    0 => String::new(),
                    given if items.len() == fields.len() => format!("; {given} would be given twice"),
                    given => format!("; {given} stood before it"),
                };
                let why =
                    format!("{} takes {takes}, and the list has {}{taken}", operation.name, items.len());
                return Err(misfitting(operation, "too many arguments", why).remedy(Remedy::Template));
            }
            open.into_iter().zip(items).map(|((field, _), item)| (field.name.to_string(), item)).collect()
        }
        _ => {
            let why = format!("an object with {} is expected", counted(fields.len()));
            return Err(misfitting(operation, UNFIT, why).remedy(Remedy::Template));
        }
    };
    for (name, json) in document {
        let Some((field, value)) = fields.iter().zip(values.iter_mut()).find(|(field, _)| field.name == name)
        else {
            return Err(misfitting(operation, UNFIT, format!("arguments: there is no `{name}`")));
        };
        if value.is_some() {
            return Err(misfitting(operation, UNFIT, format!("`{name}` is given twice")));
        }
        // As if it were left out.
        if json.is_null() && counts::counts(fields, field) {
            continue;
        }
        let path = format!("arguments.{name}");
        *value = Some(
            json::read(&field.shape, &json, &path, notation).map_err(|misfit| unfit(operation, &misfit))?,
        );
    }
    Ok(())
}

/// What a word was meant for that fits no argument: `NAME=VALUE` with a name that is none, or all arguments as one object.
fn misnamed(operation: &Operation, word: &str) -> Option<Mistake> {
    let fields = operation.arguments.fields();
    if let Ok(Json::Object(given)) = serde_json::from_str(word) {
        let all = given.keys().all(|name| fields.iter().any(|field| field.name == *name));
        return all.then(|| {
            misfitting(operation, UNFIT, "an object with all arguments stands in place of one".into())
                .remedy(Remedy::Document)
        });
    }
    let (name, _) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    is_name.then(|| {
        let near = nearest(name, fields.iter().map(|field| field.name.as_ref()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        misfitting(operation, UNFIT, format!("there is no argument `{name}`{near}"))
    })
}

/// What is said of arguments that are not as the contract has them.
const UNFIT: &str = "the arguments do not fit";

fn misfitting(operation: &Operation, what: impl Into<String>, why: String) -> Mistake {
    Mistake::argument(what, why).hint(format!("it is {}", signature(operation)))
}

fn unfit(operation: &Operation, misfit: &JsonMismatch) -> Mistake {
    let mistake = misfitting(operation, UNFIT, misfit.to_string());
    if misfit.missing { mistake.remedy(Remedy::Template) } else { mistake }
}

fn counted(count: usize) -> String {
    match count {
        0 => "no argument".into(),
        1 => "1 argument".into(),
        count => format!("{count} arguments"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use everywire_model::shape::Field;
    use everywire_model::{Direction, Parameter, Shape};
    use serde_json::json;

    /// No references, as there are none here.
    pub(crate) struct Nothing;
    impl Notation for Nothing {
        fn parse(&self, text: &str) -> Result<everywire::Reference, everywire::Failure> {
            let (kind, by) = (everywire::Kind::BadReference, everywire::Initiator::User);
            Err(everywire::Failure::new(kind, by, text.to_owned()))
        }

        fn print(&self, _: &everywire::Reference) -> String {
            String::new()
        }
    }

    #[test]
    fn accessors_have_the_name_of_their_attribute_where_nobody_tells_of_attributes() {
        // As an object of WCF or DCOM tells of what another language's contract calls an attribute.
        let text = "<DCOP-IDL><CLASS><NAME>Boiler</NAME><FUNC><TYPE>int</TYPE><NAME>_get_Target</NAME></FUNC>
            <FUNC><TYPE>void</TYPE><NAME>_set_Target</NAME><ARG><TYPE>int</TYPE></ARG></FUNC></CLASS></DCOP-IDL>";
        let contract = everywire_idl::kidl::parse(text, "told.kidl").unwrap();
        let boiler = contract.interface("Boiler").unwrap();
        assert!(boiler.attributes.is_empty() && declares(boiler, "Target") && !declares(boiler, "target"));
        let found = |word: &str, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
            find(boiler, word, &given, false)
                .map(|(operation, words)| (operation.name.to_string(), words))
                .ok()
        };
        assert_eq!(found("Target", &[]), Some(("_get_Target()".to_owned(), vec![])));
        assert_eq!(found("Target=5", &[]), Some(("_set_Target(int)".to_owned(), vec!["5".to_owned()])));
        assert_eq!(found("Target", &["6"]), Some(("_set_Target(int)".to_owned(), vec!["6".to_owned()])));
        assert_eq!(found("Other", &[]), None);
    }

    #[test]
    fn operations_of_one_name_are_told_apart_by_how_much_is_given() {
        let text = "<DCOP-IDL><CLASS><NAME>Player</NAME>
            <FUNC><TYPE>int</TYPE><NAME>seek</NAME><ARG><TYPE>int</TYPE></ARG></FUNC>
            <FUNC><TYPE>int</TYPE><NAME>seek</NAME><ARG><TYPE>int</TYPE></ARG><ARG><TYPE>bool</TYPE></ARG></FUNC>
            <FUNC><TYPE>int</TYPE><NAME>seek</NAME><ARG><TYPE>QString</TYPE></ARG><ARG><TYPE>bool</TYPE></ARG></FUNC>
            </CLASS></DCOP-IDL>";
        let contract = everywire_idl::kidl::parse(text, "told.kidl").unwrap();
        let player = contract.interface("Player").unwrap();
        let found = |word: &str, given: &[&str], more: bool| {
            let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
            find(player, word, &given, more)
                .map(|(operation, _)| operation.name.to_string())
                .map_err(|mistake| mistake.why().to_owned())
        };
        assert_eq!(found("seek", &["5"], false).as_deref(), Ok("seek(int)"));
        assert_eq!(found("seek(QString,bool)", &["5", "true"], false).as_deref(), Ok("seek(QString,bool)"));
        assert!(
            found("seek", &["5", "true"], false)
                .is_err_and(|why| why.starts_with("more than one of them takes 2 arguments"))
        );
        assert!(
            found("seek", &[], false).is_err_and(|why| why.starts_with("none of them takes no argument"))
        );
        assert!(found("seek", &[], true).is_err(), "a document may give any number");
    }

    /// As fields of a struct: what may be empty may be missing.
    #[test]
    fn optional_arguments_may_be_missing() {
        let parameter = |name: &'static str, shape| Parameter {
            direction: Direction::In,
            field: Field { name: name.into(), shape },
        };
        let maybe = Shape::Optional(Hold::new(Shape::I32));
        let parameters = vec![parameter("a", Shape::I32), parameter("b", maybe)];
        let operation = Operation::new("weigh", parameters, Shape::Void);
        let given = |words: &[&str], document| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            arguments(&operation, &words, document, &Nothing).map_err(|mistake| mistake.why().to_owned())
        };
        let whole =
            Value::Struct(vec![("a".to_owned(), Value::Integer(1)), ("b".to_owned(), Value::Nothing)]);
        assert_eq!(given(&["1"], None), Ok(whole.clone()));
        assert_eq!(given(&[], Some(serde_json::json!({"a": 1}))), Ok(whole));
        assert_eq!(given(&["b=1"], None), Err("missing: a".to_owned()));
    }

    /// A list fills what the words left open, in order; what has no place is told, and no value is lost.
    #[test]
    fn words_and_a_document_give_each_argument_once() {
        let fields = ["a", "b", "c"].map(|name| Parameter {
            direction: Direction::In,
            field: Field { name: name.into(), shape: Shape::I32 },
        });
        let operation = Operation::new("weigh", fields.to_vec(), Shape::Void);
        let given = |words: &[&str], document| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            match arguments(&operation, &words, Some(document), &Nothing) {
                Ok(Value::Struct(values)) => Ok(values.into_iter().map(|(_, value)| value).collect()),
                Ok(other) => Err(format!("{other:?}")),
                Err(mistake) => Err(mistake.why().to_owned()),
            }
        };
        let whole = || Ok::<_, String>([1, 2, 3].map(Value::Integer).to_vec());
        assert_eq!(given(&[], json!([1, 2, 3])), whole());
        assert_eq!(given(&["1"], json!([2, 3])), whole());
        assert_eq!(given(&["b=2"], json!([1, 3])), whole());
        assert_eq!(given(&["c=3", "1"], json!({"b": 2})), whole());
        assert_eq!(given(&["1", "2", "3"], json!([])), whole());
        for (words, document, why) in [
            (
                &["1"][..],
                json!([1, 2, 3]),
                "weigh takes 3 arguments, and the list has 3; 1 would be given twice",
            ),
            (&["1", "2"], json!([3, 4]), "weigh takes 3 arguments, and the list has 2; 2 stood before it"),
            (&[], json!([1, 2, 3, 4]), "weigh takes 3 arguments, and the list has 4"),
            (&["1", "3"], json!({"b": 2, "c": 3}), "`b` is given twice"),
            (&["1"], json!([2]), "missing: c"),
        ] {
            assert_eq!(given(words, document), Err(why.to_owned()), "{words:?}");
        }
    }
}
