//! Annotations and documentation of an element.
//!
//! Four annotations of the specification are understood, and one of GLib for documentation. Two other ways to
//! document are common: the element `doc:doc` of freedesktop.org and `tp:docstring` of Telepathy; they count
//! before the annotation. Annotations of Qt at methods, signals and properties are kept as they came, for Qt's compiler.
//! Ours are understood, too; all others are passed over.

use crate::report::{Problem, Report};
use crate::xml::Element;
use everywire_model::Notify;
use everywire_model::shape::Name;
use std::collections::{HashMap, HashSet};

/// The line of a documentation that says what is deprecated.
pub(super) const DEPRECATED: &str = "Deprecated.";
/// The annotations that are understood.
pub(super) const IS_DEPRECATED: &str = "org.freedesktop.DBus.Deprecated";
pub(super) const NO_REPLY: &str = "org.freedesktop.DBus.Method.NoReply";
pub(super) const EMITS: &str = "org.freedesktop.DBus.Property.EmitsChangedSignal";
pub(super) const DOCUMENTATION: &str = "org.gtk.GDBus.DocString";
/// Those of ours: an error that a method, or a property that is read or written, may answer with, and what it carries
/// (`org.example.Broke(d missing)`), once for each; and that a method may run twice.
pub(super) const RAISES: &str = "everywire.Method.Raises";
pub(super) const GET_RAISES: &str = "everywire.Property.GetRaises";
pub(super) const SET_RAISES: &str = "everywire.Property.SetRaises";
pub(super) const IDEMPOTENT: &str = "everywire.Method.Idempotent";

/// Those of Qt say which class of Qt's stands for a type; without them its compiler refuses even `a{sv}`.
const QT: [&str; 2] = ["org.qtproject.QtDBus.", "com.trolltech.QtDBus."];

/// The class of Qt's own that stands for a type which its compiler takes only with an annotation. Structs and other maps have classes of
/// the user's alone.
pub(super) fn class_of(signature: &str) -> Option<&'static str> {
    Some(match signature {
        "a{sv}" => "QVariantMap",
        "ab" => "QList<bool>",
        "an" => "QList<short>",
        "aq" => "QList<ushort>",
        "ai" => "QList<int>",
        "au" => "QList<uint>",
        "ax" => "QList<qlonglong>",
        "at" => "QList<qulonglong>",
        "ad" => "QList<double>",
        _ => return None,
    })
}

/// The annotation that names the class of the value with this end of it: `.In0` and `.Out0` count arguments, a property's has none.
/// Nothing where one is kept: the ends may be those of both directions, since signals had `In` in old versions of Qt.
pub(super) fn class_annotation(kept: &HashSet<&str>, ends: &[String]) -> Option<String> {
    let is_kept = |end: &String| QT.iter().any(|qt| kept.contains(format!("{qt}{TYPE_NAME}{end}").as_str()));
    let end = ends.first().filter(|_| !ends.iter().any(is_kept))?;
    Some(format!("{}{TYPE_NAME}{end}", QT[0]))
}

/// What follows the beginning in the name of the annotation of a class.
const TYPE_NAME: &str = "QtTypeName";

/// What a note of an operation, or of an interface for its signals, begins with that keeps such an annotation.
const KEPT: &str = "dbus:";

/// Annotations to print again, with their values, that the notes of an operation keep.
pub(super) fn kept(notes: &[(Name, Name)]) -> Vec<(&str, &str)> {
    notes.iter().filter_map(|(what, value)| is_kept(what.strip_prefix(KEPT)?, value)).collect()
}

/// Those that the notes of an interface keep for its signals, by the labels of these: several signals may have one name, as
/// those of Qt with other arguments do, and labels are unique. A contract may have thousands of both, so they are sorted
/// once. Whoever prints a signal takes its own out, so that text of a peer's cannot have them printed many times.
pub(super) fn kept_of_signals(notes: &[(Name, Name)]) -> HashMap<&str, Vec<(&str, &str)>> {
    let mut all: HashMap<&str, Vec<(&str, &str)>> = HashMap::new();
    for (what, value) in notes {
        let named = what.strip_prefix(KEPT).and_then(|what| what.split_once(':'));
        let Some((label, what)) = named else { continue };
        all.entry(label).or_default().extend(is_kept(what, value));
    }
    all
}

fn is_kept<'n>(what: &'n str, value: &'n str) -> Option<(&'n str, &'n str)> {
    QT.iter().any(|qt| what.starts_with(qt)).then_some((what, value))
}

/// The note of an interface that keeps this note of a signal, which has this label.
pub(super) fn of_signal(label: &str, (what, value): (Name, Name)) -> (Name, Name) {
    let what = what.strip_prefix(KEPT).unwrap_or(&what);
    (Name::from(format!("{KEPT}{label}:{what}")), value)
}

/// What the annotations of an element say.
#[derive(Default)]
pub(super) struct Annotations {
    /// Paragraphs of documentation, with the line `DEPRECATED` where the element is; empty if there is none.
    pub(super) doc: String,
    /// Nobody may wait for an answer of this method.
    pub(super) no_reply: bool,
    /// How changes of a property are announced; None where nothing is said, which leaves it to the interface.
    pub(super) notify: Option<Notify>,
    pub(super) idempotent: bool,
    /// Notes of the annotations that are kept.
    pub(super) kept: Vec<(Name, Name)>,
}

impl Annotations {
    /// Reads the direct children of an element. Of two equal annotations the last one counts.
    pub(super) fn of(element: &Element<'_>, report: &mut Report) -> Self {
        let mut found = Self::default();
        let (mut documented, mut annotated, mut deprecated) = (String::new(), String::new(), false);
        // Where each stands among those that are kept: an element may have many.
        let mut places = HashMap::new();
        for child in element.elements() {
            match child.name {
                "doc:doc" | "tp:docstring" => documented = child.text(),
                "annotation" => {
                    let Some(name) = child.attribute("name") else {
                        let problem = Problem::new(child.span, "this annotation has no name");
                        report.add(problem.expected(["attribute `name`"]));
                        continue;
                    };
                    let value = child.attribute("value").map_or("", |value| value.value.as_ref());
                    match name.value.as_ref() {
                        IS_DEPRECATED => deprecated = value == "true",
                        NO_REPLY => found.no_reply = value == "true",
                        DOCUMENTATION => value.clone_into(&mut annotated),
                        IDEMPOTENT => found.idempotent = truth(child, report),
                        EMITS => found.notify = notify(child, report),
                        other if QT.iter().any(|qt| other.starts_with(qt)) => {
                            let note = (Name::from(format!("{KEPT}{other}")), Name::from(value.to_owned()));
                            let place = *places.entry(note.0.clone()).or_insert(found.kept.len());
                            match found.kept.get_mut(place) {
                                Some(before) => *before = note,
                                None => found.kept.push(note),
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        found.doc = paragraphs(if documented.trim().is_empty() { &annotated } else { &documented });
        if deprecated && !found.doc.lines().any(|line| line == DEPRECATED) {
            if !found.doc.is_empty() {
                found.doc.push('\n');
            }
            found.doc.push_str(DEPRECATED);
        }
        found
    }
}

/// The value of the annotation for change signals, as it is written.
pub(super) fn emits(notify: Notify) -> &'static str {
    match notify {
        Notify::Value => "true",
        Notify::Change => "invalidates",
        Notify::Constant => "const",
        Notify::Nothing => "false",
    }
}

/// Whether an annotation of ours says yes.
fn truth(annotation: &Element<'_>, report: &mut Report) -> bool {
    let value = annotation.attribute("value");
    match value.map(|value| value.value.as_ref()) {
        Some("true") => return true,
        Some("false") => return false,
        _ => {}
    }
    let span = value.map_or(annotation.span, |value| value.span);
    report.add(Problem::new(span, "this says neither yes nor no").expected(["`true`", "`false`"]));
    false
}
/// The four values of the specification; any other is a mistake.
fn notify(annotation: &Element<'_>, report: &mut Report) -> Option<Notify> {
    let all = [Notify::Value, Notify::Change, Notify::Constant, Notify::Nothing];
    let value = annotation.attribute("value");
    let known = value.and_then(|value| all.into_iter().find(|notify| emits(*notify) == value.value));
    if known.is_none() {
        let span = value.map_or(annotation.span, |value| value.span);
        let problem = Problem::new(span, "this says not how changes are told");
        report.add(problem.expected(all.map(|notify| format!("`{}`", emits(notify)))));
    }
    known
}

/// Lines without white space around them, and no empty ones before the first and after the last.
fn paragraphs(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    lines.join("\n")
}
