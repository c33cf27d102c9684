//! What the tests share.

use everywire_model::{Contract, Definition, Shape};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A folder of the corpus.
pub(crate) fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(folder)
}

/// A file of the data that other programs wrote.
pub(crate) fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)
}

/// The contracts in a folder, in order.
pub(crate) fn contracts(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "idl"))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "no contracts in {}", folder.display());
    all
}

/// Whether omniidl is here; says so if not, and fails where it must be.
pub(crate) fn omniidl() -> bool {
    everywire_peers::here("omniidl as a judge", &["omniidl"])
}

/// Identity of every named thing.
pub(crate) fn identities(contract: &Contract) -> BTreeMap<String, String> {
    let mut ids = BTreeMap::new();
    for definition in &contract.definitions {
        let (name, id) = match definition {
            Definition::Type(Shape::Struct(s)) => (&s.name, &s.id),
            Definition::Type(Shape::Union(s)) => (&s.name, &s.id),
            Definition::Type(Shape::Enum(s)) => (&s.name, &s.id),
            Definition::Type(Shape::Alias(s)) => (&s.name, &s.id),
            Definition::Exception(s) => (&s.name, &s.id),
            Definition::Interface(s) => (&s.name, &s.id),
            _ => continue,
        };
        assert!(ids.insert(name.to_string(), id.to_string()).is_none(), "{name} twice");
    }
    ids
}

/// All that a contract means, as lines whose order does not depend on that of independent definitions.
pub(crate) fn outline(contract: &Contract) -> Vec<String> {
    let mut lines = Vec::new();
    for definition in &contract.definitions {
        let mut line = String::new();
        match definition {
            Definition::Type(shape) => write!(line, "type {}", body(shape)).unwrap(),
            Definition::Exception(e) => {
                write!(line, "exception {} {} {}", e.name, e.id, fields(&e.fields)).unwrap();
            }
            Definition::Constant(c) => {
                write!(line, "const {} {} {:?} {:?}", c.name, used(&c.shape), c.value, c.doc).unwrap();
            }
            Definition::Interface(i) => {
                let bases: Vec<&str> = i.bases.iter().map(|base| base.name.as_ref()).collect();
                write!(line, "interface {} {} {bases:?} {} {:?}", i.name, i.id, i.inherited, i.doc).unwrap();
                for o in i.operations.iter() {
                    let raises: Vec<&str> = o.raises.iter().map(|e| e.id.as_ref()).collect();
                    let (a, r) = (fields(o.arguments.fields()), fields(o.results.fields()));
                    write!(line, "\n  {} {} {a} -> {r} {raises:?} {} {:?}", o.name, o.label, o.oneway, o.doc)
                        .unwrap();
                    if o.idempotent {
                        write!(line, " idempotent").unwrap();
                    }
                    for p in o.parameters.iter() {
                        write!(line, " {:?} {}", p.direction, p.field.name).unwrap();
                    }
                }
                for a in i.attributes.iter() {
                    write!(line, "\n  @{} {} {} {:?}", a.name, used(&a.shape), a.getter, a.setter).unwrap();
                    write!(line, " {:?}", a.notify).unwrap();
                }
                for s in i.signals.iter() {
                    write!(line, "\n  !{} {} {} {:?}", s.name, s.label, fields(s.fields.fields()), s.doc)
                        .unwrap();
                }
            }
        }
        lines.push(line);
    }
    lines.sort();
    assert_eq!(lines.iter().collect::<HashSet<_>>().len(), lines.len());
    lines
}

fn fields(fields: &[everywire_model::shape::Field]) -> String {
    fields.iter().map(|f| format!("{}: {}; ", f.name, used(&f.shape))).collect()
}

fn body(shape: &Shape) -> String {
    match shape {
        Shape::Struct(s) => format!("struct {} {} {}", s.name, s.id, fields(&s.fields)),
        Shape::Union(u) => {
            let arms: Vec<String> = u
                .arms
                .iter()
                .map(|a| format!("{:?} {} {} {}", a.labels, a.default, a.field.name, used(&a.field.shape)))
                .collect();
            format!("union {} {} {} {arms:?}", u.name, u.id, used(&u.discriminator))
        }
        Shape::Enum(e) => format!("enum {} {} {:?} {}", e.name, e.id, e.members, e.bits),
        Shape::Alias(a) => format!("alias {} {} {}", a.name, a.id, used(&a.target)),
        other => used(other),
    }
}

fn used(shape: &Shape) -> String {
    match shape {
        Shape::Struct(s) if s.name.is_empty() => format!("({})", fields(&s.fields)),
        Shape::Map(m) => format!("map<{}, {}>", used(&m.key), used(&m.value)),
        Shape::Struct(s) => s.name.to_string(),
        Shape::Union(u) => u.name.to_string(),
        Shape::Enum(e) => e.name.to_string(),
        Shape::Alias(a) => a.name.to_string(),
        Shape::Sequence(s) => format!("seq<{}, {:?}, {:?}>", used(&s.element), s.bound, s.order),
        Shape::Array(a) => format!("{}[{}]", used(&a.element), a.len),
        Shape::Text(t) => format!("{t:?}"),
        Shape::Reference(r) => format!("ref {} {}", r.name, r.id),
        other => other.noun().to_string(),
    }
}
