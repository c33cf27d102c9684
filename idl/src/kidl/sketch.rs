//! A contract of any language to a document.
//!
//! The document looks as if `dcopidl` had read a header with these classes, so that KDE's own tools
//! (`dcopidl2cpp`) can make stubs from it: the headers that declare the types are listed, and a class without
//! a base is a `DCOPObject`.

use super::document::{Argument, CONST, Class, Document, Exception, Member, QUALIFIER, Type};
use super::read::{NAME, is_identifier, is_scoped};
use super::types;
use crate::unique::Unique;
use crate::unprintable::Unprintable;
use crate::xml::shown;
use everywire_model::contract::note;
use everywire_model::shape::Struct;
use everywire_model::{Contract, Definition, Interface, Operation, Shape, Signal};
use std::collections::{BTreeSet, HashMap};

/// Types, and the headers of Qt 3 and KDE 3 that declare them. `QCStringList` is declared by `dcopobject.h`, which every
/// class has: Trinity kept its name, so no header of Qt could be named that both have.
const HEADERS: &[(&str, &str)] = &[
    ("DCOPRef", "dcopref.h"),
    ("KIO", "kio/global.h"),
    ("KURL", "kurl.h"),
    ("QByteArray", "qcstring.h"),
    ("QCString", "qcstring.h"),
    ("QColor", "qcolor.h"),
    ("QDate", "qdatetime.h"),
    ("QTime", "qdatetime.h"),
    ("QMap", "qmap.h"),
    ("QPoint", "qpoint.h"),
    ("QRect", "qrect.h"),
    ("QSize", "qsize.h"),
    ("QString", "qstring.h"),
    ("QStringList", "qstringlist.h"),
    ("QValueList", "qvaluelist.h"),
    ("QValueVector", "qvaluevector.h"),
    ("QVariant", "qvariant.h"),
    ("TDEIO", "tdeio/global.h"),
];

/// The document that describes a contract. A function, signal or exception that DCOP cannot say is left out, and a remark says why; so is a
/// function that raises such an exception.
///
/// # Errors
/// A class has a name that C++ has not, or nothing is left.
pub(super) fn document(contract: &Contract) -> Result<Document, Unprintable> {
    let mut sketch = Sketch::default();
    for definition in &contract.definitions {
        match definition {
            Definition::Exception(raised) => {
                let _ = sketch.exception(raised);
            }
            Definition::Interface(interface) => sketch.class(interface)?,
            _ => {}
        }
    }
    let Sketch { mut document, first_left_out, .. } = sketch;
    let is_empty =
        document.exceptions.is_empty() && document.classes.iter().all(|class| class.members.is_empty());
    if let Some(left_out) = first_left_out.filter(|_| is_empty) {
        return Err(left_out);
    }
    let first = document.classes.first().map_or("contract", |class| class.name.as_str());
    let stem = first.rsplit("::").next().unwrap_or(first).to_ascii_lowercase();
    document.source = Some(format!("{stem}.h"));
    document.includes = includes(&document.classes);
    Ok(document)
}

/// A document that is being made.
#[derive(Default)]
struct Sketch {
    document: Document,
    /// The exceptions that were met so far, each with why it cannot be said.
    exceptions: HashMap<String, Result<(), String>>,
    /// The first of what was left out.
    first_left_out: Option<Unprintable>,
}

impl Sketch {
    /// Adds an exception, once.
    ///
    /// # Errors
    /// Why it cannot be said, each time.
    fn exception(&mut self, raised: &Struct) -> Result<(), String> {
        let name = raised.name.to_string();
        if let Some(known) = self.exceptions.get(&name) {
            return known.clone();
        }
        let fields = is_declared(&name, is_scoped).and_then(|()| arguments(&raised.fields));
        let said = match fields {
            Ok(fields) => {
                self.document.exceptions.push(Exception { name: name.clone(), fields });
                Ok(())
            }
            Err(reason) => {
                let remark = self.leave_out(name.clone(), &name, reason.clone());
                self.document.left_out.push(remark);
                Err(format!("`{name}` cannot be raised: {reason}"))
            }
        };
        self.exceptions.insert(name, said.clone());
        said
    }

    /// Adds a class: own functions and signals; inherited ones stand in the bases.
    fn class(&mut self, interface: &Interface) -> Result<(), Unprintable> {
        let mut bases: Vec<String> = interface.bases.iter().map(|base| base.name.to_string()).collect();
        if bases.is_empty() {
            bases.push("DCOPObject".to_owned());
        }
        let name = interface.name.to_string();
        is_declared(&name, is_scoped).map_err(|reason| unprintable(name.clone(), reason))?;
        let mut class = Class { name, bases, ..Class::default() };
        let mut add = |sketch: &mut Self, label: &str, made: Result<Member, String>| match made {
            Ok(member) => class.members.push(member),
            Err(reason) => {
                let remark = sketch.leave_out(format!("{}.{label}", interface.name), label, reason);
                class.left_out.push(remark);
            }
        };
        for (index, operation) in interface.operations.iter().enumerate().skip(interface.inherited) {
            let raised = operation.raises.iter().try_for_each(|raised| self.exception(raised));
            let made = raised.and_then(|()| function(operation, interface.is_idempotent(index)));
            add(self, &operation.label, made);
        }
        for signal in interface.signals.iter() {
            if !interface.bases.iter().any(|base| base.signal(signal.name.as_bytes()).is_some()) {
                add(self, &signal.label, emission(signal));
            }
        }
        self.document.classes.push(class);
        Ok(())
    }

    /// The remark on a part that is left out.
    fn leave_out(&mut self, place: String, name: &str, reason: String) -> String {
        let remark = format!("{name}: {reason}");
        self.first_left_out.get_or_insert_with(|| unprintable(place, reason));
        remark
    }
}

/// Results are all that comes back: the return value and `out` parameters. DCOP's reply has one value.
fn function(operation: &Operation, idempotent: bool) -> Result<Member, String> {
    let returns = match operation.results.fields() {
        [] if operation.oneway => Type::new("ASYNC"),
        [] => Type::new("void"),
        [only] => Type::new(named(&only.shape)?),
        _ => return Err("a function has one result at most".to_owned()),
    };
    let arguments = arguments(operation.arguments.fields())?;
    let raises = operation.raises.iter().map(|raised| raised.name.to_string()).collect();
    let name = bare(&operation.name)?;
    if operation.oneway && !operation.raises.is_empty() {
        return Err("a function without an answer raises nothing".to_owned());
    }
    let qualifier = note(&operation.notes, QUALIFIER).filter(|word| *word == CONST).map(str::to_owned);
    Ok(Member { raises, idempotent, returns, name, arguments, qualifier, ..Member::default() })
}

/// A signal, which is declared as a function that returns nothing.
fn emission(signal: &Signal) -> Result<Member, String> {
    let arguments = arguments(signal.fields.fields())?;
    let returns = Type::new("void");
    Ok(Member { signal: true, returns, name: bare(&signal.name)?, arguments, ..Member::default() })
}

/// The parameters that travel in a call, by name. No message has the names, so what C++ forbids in one becomes `_`.
fn arguments(fields: &[everywire_model::shape::Field]) -> Result<Vec<Argument>, String> {
    let mut names = Unique::default();
    let mut argument = |field: &everywire_model::shape::Field| {
        let name = if is_identifier(&field.name) { field.name.to_string() } else { identifier(&field.name) };
        Ok(Argument { kind: Type::new(named(&field.shape)?), name: Some(names.name(&name)) })
    };
    fields.iter().map(&mut argument).collect()
}

/// The name that a type has in a signature.
fn named(shape: &Shape) -> Result<String, String> {
    types::name(shape).ok_or_else(|| match shape.noun() {
        noun if noun.is_empty() => "DCOP has no nameless struct".to_owned(),
        noun => format!("DCOP has no type for `{noun}`"),
    })
}

/// The headers of all types that are used, and that of every DCOP object. What exceptions carry is in no header's text.
fn includes(classes: &[Class]) -> Vec<String> {
    let mut headers = BTreeSet::from(["dcopobject.h".to_owned()]);
    let members = classes.iter().flat_map(|class| &class.members);
    let kinds = members
        .flat_map(|member| member.arguments.iter().map(|argument| &argument.kind).chain([&member.returns]));
    for word in kinds.flat_map(|kind| kind.name.split(|c: char| !c.is_ascii_alphanumeric())) {
        let kde = types::of_kde(word);
        // The header of `QDate` declares all three.
        let known = if kde == "QDateTime" { "QDate" } else { kde.as_str() };
        let Some((_, header)) = HEADERS.iter().find(|(name, _)| *name == known) else { continue };
        // `tqstring.h` declares `TQString`.
        headers.insert(if kde == word { (*header).to_owned() } else { format!("t{header}") });
    }
    headers.into_iter().collect()
}

fn unprintable(place: String, reason: String) -> Unprintable {
    Unprintable { language: "kidl", place, reason }
}

/// The name in a signature. Messages have it, so it stays as it is or cannot be said.
fn bare(signature: &str) -> Result<String, String> {
    let name = signature.split('(').next().unwrap_or_default();
    is_declared(name, is_identifier).map(|()| name.to_owned())
}

/// Whether C++ can declare a name.
fn is_declared(name: &str, right: fn(&str) -> bool) -> Result<(), String> {
    match right(name) && name.len() <= NAME {
        true => Ok(()),
        false => Err(format!(
            "{} is no name of a C++ declaration (letters, digits and `_`, no digit first)",
            shown(name)
        )),
    }
}

/// A text made an identifier: what may not stand in one becomes `_`.
fn identifier(text: &str) -> String {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let mut out: String = text.chars().take(NAME - 1).map(legal).collect();
    if out.bytes().next().is_none_or(|first| first.is_ascii_digit()) {
        out.insert(0, '_');
    }
    out
}
