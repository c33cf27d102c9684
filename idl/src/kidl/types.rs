//! The types of DCOP by the names that Qt 3 and KDE 3 give them.
//!
//! Names in, shapes out ([`shape`]), and back ([`name`]). What a shape travels as follows from the shape alone:
//! narrow text as a `QCString`, wide text as a `QString`, octets as a `QByteArray`, sequences as a
//! `QValueList`, maps as a `QMap`, structs field by field. Where several names share a shape, one of them
//! stands for the bare shape and the others are aliases with the Qt name, so that a signature keeps the name
//! it was written with.
//!
//! Trinity's Qt has other names: `TQString` for `QString`, `TQ_INT64` for `Q_INT64`, `TQMap<...>` for
//! `QMap<...>`, and so on for every class. They are aliases, too; [`of_trinity`] and [`of_kde`] turn one spelling
//! into the other.
//!
//! Names come from messages, so nothing here costs more than their length: `LENGTH` and `NESTING` bound the
//! reading, `SHAPES` and `LENGTH` the writing. A name that is not known is no mistake here; the caller
//! decides.

use everywire_model::shape::{Alias, Field, Map, Name, Struct, Text, TextKind};
use everywire_model::{Hold, Shape};
use std::borrow::Cow;

/// The most templates inside one another. A name of `LENGTH` bytes could hold more than forty.
pub const NESTING: usize = 16;
/// The most bytes of a type name.
pub const LENGTH: usize = 512;
/// The most shapes inside one another for which a name is made. Aliases write nothing, so without it one that
/// contains itself would never end.
const SHAPES: usize = 64;

/// Names whose bare shape they are: for each shape the one that [`name`] gives back.
const BARE: &[(&str, Shape)] = &[
    ("bool", Shape::Bool),
    ("char", Shape::Char),
    ("signed char", Shape::I8),
    ("uchar", Shape::U8),
    ("short", Shape::I16),
    ("ushort", Shape::U16),
    ("int", Shape::I32),
    ("uint", Shape::U32),
    ("Q_INT64", Shape::I64),
    ("Q_UINT64", Shape::U64),
    ("float", Shape::F32),
    ("double", Shape::F64),
    ("QChar", Shape::WideChar),
    ("QString", Shape::Text(Text::WIDE)),
    ("QCString", Shape::Text(Text::NARROW)),
    ("QVariant", Shape::Variant),
];

/// Other names of such shapes. A `long` is as wide as the sender's: 8 bytes on every 64-bit Unix.
const ALIASES: &[(&str, Shape)] = &[
    ("unsigned char", Shape::U8),
    ("short int", Shape::I16),
    ("unsigned short", Shape::U16),
    ("unsigned short int", Shape::U16),
    ("signed short int", Shape::I16),
    ("signed int", Shape::I32),
    ("unsigned int", Shape::U32),
    ("unsigned", Shape::U32),
    ("long", Shape::I64),
    ("long int", Shape::I64),
    ("signed long int", Shape::I64),
    ("ulong", Shape::U64),
    ("unsigned long", Shape::U64),
    ("unsigned long int", Shape::U64),
    ("long long", Shape::I64),
    ("long long int", Shape::I64),
    ("unsigned long long", Shape::U64),
    ("unsigned long long int", Shape::U64),
    ("Q_INT8", Shape::I8),
    ("Q_UINT8", Shape::U8),
    ("Q_INT16", Shape::I16),
    ("Q_UINT16", Shape::U16),
    ("Q_INT32", Shape::I32),
    ("Q_UINT32", Shape::U32),
    ("Q_LONG", Shape::I64),
    ("Q_ULONG", Shape::U64),
    // 0xAARRGGBB.
    ("QColor", Shape::U32),
    ("QRgb", Shape::U32),
    // Julian day, 0 for none.
    ("QDate", Shape::U32),
    // Milliseconds since midnight.
    ("QTime", Shape::U32),
    // A process, of POSIX.
    ("pid_t", Shape::I32),
    // The size of a file: 8 bytes everywhere.
    ("KIO::filesize_t", Shape::U64),
    ("TDEIO::filesize_t", Shape::U64),
];

/// Classes of KDE and Trinity that travel as a template of Qt does, since they derive from it.
const DERIVED: &[(&str, &str)] = &[
    ("KURL::List", "QValueList<KURL>"),
    ("KIO::MetaData", "QMap<QString,QString>"),
    ("TDEIO::MetaData", "TQMap<TQString,TQString>"),
];

/// Structs: the names and types of their fields; `?` marks text that may be null.
const STRUCTS: &[(&str, &[(&str, &str)])] = &[
    ("DCOPRef", &[("app", "QCString"), ("obj", "QCString"), ("type", "QCString")]),
    ("QPoint", &[("x", "int"), ("y", "int")]),
    ("QSize", &[("width", "int"), ("height", "int")]),
    ("QRect", &[("left", "int"), ("top", "int"), ("right", "int"), ("bottom", "int")]),
    ("QDateTime", &[("date", "QDate"), ("time", "QTime")]),
    (
        "KURL",
        &[
            ("protocol", "QString"),
            // A URL without one of these has a null string, which is not the same as an empty one: `#` and nothing behind.
            ("user", "QString?"),
            ("pass", "QString?"),
            ("host", "QString?"),
            ("path", "QString"),
            ("path_encoded", "QString?"),
            ("query", "QString?"),
            ("ref", "QString?"),
            ("malformed", "Q_INT8"),
            ("port", "ushort"),
        ],
    ),
];

/// The shape of a type by its name, templates and all. Nothing for a name that is not known: its bytes are not either.
///
/// White space is free, as in C++; `const` and `&` are no part of a type name.
///
/// ```
/// use everywire_idl::kidl::types;
/// let shape = types::shape("QMap<QString,QValueList<int> >").unwrap();
/// assert_eq!(types::name(&shape).unwrap(), "QMap<QString,QValueList<int>>");
/// assert!(types::shape("QPixmap").is_none());
/// ```
pub fn shape(name: &str) -> Option<Shape> {
    if name.len() > LENGTH {
        return None;
    }
    parse(&normal(name), 0)
}

/// The Qt name of a shape, as it stands in a signature; nothing where DCOP has no such type (handles, unions, ...) and
/// for types that contain themselves.
pub fn name(shape: &Shape) -> Option<String> {
    let mut out = String::new();
    write(shape, &mut out, 0)?;
    Some(out)
}

/// The signature of a function or signal, as it stands in a message: its name and the types of these fields; nothing
/// where a type has no name.
pub fn function(name: &str, fields: &[Field]) -> Option<String> {
    let types = fields.iter().map(|field| self::name(&field.shape)).collect::<Option<Vec<String>>>()?;
    Some(format!("{name}({})", types.join(",")))
}

/// A piece of a C++ declaration without white space, except one blank between two characters of identifiers: how type
/// names and whole functions stand in a DCOP message.
pub fn normal(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::with_capacity(text.len());
    for word in text.split_ascii_whitespace() {
        if out.chars().next_back().is_some_and(part) && word.chars().next().is_some_and(part) {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// A signature or a type as Trinity writes it: `find(QString)` becomes `find(TQString)`. Names that Trinity has kept
/// (`QCStringList`, `DCOPRef`, `KURL`) stay, and so does a function's own name.
///
/// ```
/// use everywire_idl::kidl::types;
/// assert_eq!(types::of_trinity("QMap<QString,int>"), "TQMap<TQString,int>");
/// assert_eq!(types::of_trinity("Q(QCStringList)"), "Q(QCStringList)");
/// ```
pub fn of_trinity(text: &str) -> String {
    respelled(text, |word, out| {
        if word != "QCStringList" && is_of_qt(word) {
            out.push('T');
        }
        out.push_str(word);
    })
}

/// A signature or a type as KDE writes it: `find(TQString)` becomes `find(QString)`.
pub fn of_kde(text: &str) -> String {
    respelled(text, |word, out| out.push_str(kde_word(word)))
}

/// Whether a signature or a type has a name that only Trinity writes.
pub fn is_of_trinity(text: &str) -> bool {
    types_in(text).split(|c: char| !is_word(c)).any(is_trinity_word)
}

/// The name that KDE has for a word of Trinity's.
fn kde_word(word: &str) -> &str {
    word.strip_prefix('T').filter(|rest| is_of_qt(rest)).unwrap_or(word)
}

/// Whether only Trinity has this word for a type.
fn is_trinity_word(word: &str) -> bool {
    kde_word(word).len() < word.len()
}

/// Whether a word is the name of a type of Qt: `QString`, `Q_INT64`.
fn is_of_qt(word: &str) -> bool {
    let next = word.strip_prefix('Q').and_then(|rest| rest.chars().next());
    next.is_some_and(|next| next == '_' || next.is_ascii_uppercase())
}

/// Whether a character belongs to an identifier of C++.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The part of a signature in which types stand; a type stands for itself.
fn types_in(text: &str) -> &str {
    text.split_once('(').map_or(text, |(_, list)| list)
}

/// A text with each word of its types written anew.
fn respelled(text: &str, word: impl Fn(&str, &mut String)) -> String {
    let list = types_in(text);
    let head = text.get(..text.len() - list.len()).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(head);
    let mut rest = list;
    while let Some(first) = rest.chars().next() {
        let end = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (part, after) = rest.split_at(end);
        if is_word(first) {
            word(part, &mut out)
        } else {
            out.push_str(part)
        }
        rest = after;
    }
    out
}

/// The shape of a normal name. `depth` counts the templates around it.
fn parse(name: &str, depth: usize) -> Option<Shape> {
    if depth > NESTING {
        return None;
    }
    // What is another spelling as a whole; the arguments of a template keep theirs.
    let (head, rest) = name.split_at(name.find('<').unwrap_or(name.len()));
    // Only the head: `TQMap<QString,int>` has an argument in KDE's spelling, and the name as a whole must
    // survive.
    if is_trinity_word(head) {
        return Some(alias(name, parse(&format!("{}{rest}", kde_word(head)), depth)?));
    }
    let bare = |(known, shape): &(&str, Shape)| (*known == name).then(|| shape.clone());
    if let Some(shape) = BARE.iter().find_map(bare) {
        return Some(shape);
    }
    if let Some(shape) = ALIASES.iter().find_map(bare) {
        return Some(alias(name, shape));
    }
    if let Some((_, base)) = DERIVED.iter().find(|(known, _)| *known == name) {
        return Some(alias(name, parse(base, depth + 1)?));
    }
    if let Some((known, fields)) = STRUCTS.iter().find(|(known, _)| *known == name) {
        return structure(known, fields, depth);
    }
    let wide = Shape::Text(Text::WIDE);
    match name {
        "QByteArray" => return Some(Shape::sequence(Shape::U8)),
        "QStringList" => return Some(Shape::sequence(wide)),
        "QCStringList" => return Some(Shape::sequence(Shape::Text(Text::NARROW))),
        _ => {}
    }
    let (template, arguments) = name.strip_suffix('>')?.split_once('<')?;
    match (template, split(arguments)) {
        ("QValueList" | "QValueVector", (element, None)) => {
            let shape = Shape::sequence(parse(element, depth + 1)?);
            // The bare shapes of octets and strings have shorter names.
            let mut bare = String::new();
            write(&shape, &mut bare, depth)?;
            Some(if bare == name { shape } else { alias(name, shape) })
        }
        ("QMap", (key, Some(value))) => {
            let (key, value) = (parse(key, depth + 1)?, parse(value, depth + 1)?);
            Some(Shape::Map(Hold::new(Map { key, value })))
        }
        _ => None,
    }
}

/// Splits the arguments of a template at the comma that is in no template of its own.
pub(super) fn split(arguments: &str) -> (&str, Option<&str>) {
    let mut depth = 0usize;
    for (at, c) in arguments.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                return match (arguments.get(..at), arguments.get(at + 1..)) {
                    (Some(first), second) => (first, second),
                    _ => (arguments, None),
                };
            }
            _ => {}
        }
    }
    (arguments, None)
}

/// A shape that keeps the name it was written with.
fn alias(name: &str, target: Shape) -> Shape {
    Shape::Alias(Hold::new(Alias { name: Name::from(name.to_owned()), id: Cow::Borrowed(""), target }))
}

/// A struct of the table; `?` makes a field optional.
fn structure(name: &'static str, fields: &'static [(&str, &str)], depth: usize) -> Option<Shape> {
    let field = |(name, kind): &(&'static str, &'static str)| {
        let shape = match kind.strip_suffix('?') {
            Some(kind) => Shape::Optional(Hold::new(parse(kind, depth + 1)?)),
            None => parse(kind, depth + 1)?,
        };
        Some(Field { name: Name::from(*name), shape })
    };
    let fields = Cow::Owned(fields.iter().map(field).collect::<Option<Vec<Field>>>()?);
    Some(Shape::Struct(Hold::new(Struct { name: Name::from(name), id: Cow::Borrowed(""), fields })))
}

/// Appends the name of a shape. Every level writes, so that the length bounds the work.
fn write(shape: &Shape, out: &mut String, depth: usize) -> Option<()> {
    if depth > SHAPES || out.len() > LENGTH {
        return None;
    }
    match shape {
        Shape::Void => out.push_str("void"),
        Shape::Alias(known) => {
            if is_known(&known.name) {
                out.push_str(&known.name);
            } else {
                write(&known.target, out, depth + 1)?;
            }
        }
        Shape::Struct(known) => out.push_str(STRUCTS.iter().find(|(name, _)| *name == known.name)?.0),
        Shape::Text(text) => out.push_str(match text.kind {
            TextKind::Wide | TextKind::Counted => "QString",
            TextKind::Narrow | TextKind::Path | TextKind::Signature => "QCString",
        }),
        Shape::Enum(_) => out.push_str("int"),
        Shape::Pointer(pointer) => write(&pointer.target, out, depth + 1)?,
        Shape::Reference(_) => out.push_str("DCOPRef"),
        Shape::Sequence(list) => sequence(&list.element, out, depth)?,
        Shape::Array(list) => sequence(&list.element, out, depth)?,
        // A text that may be null: every string of Qt may.
        Shape::Optional(target) if matches!(target.resolved(), Shape::Text(_)) => {
            write(target, out, depth + 1)?;
        }
        Shape::Optional(target) => sequence(target, out, depth)?,
        Shape::Map(map) => {
            out.push_str("QMap<");
            write(&map.key, out, depth + 1)?;
            out.push(',');
            write(&map.value, out, depth + 1)?;
            out.push('>');
        }
        // Numbers, characters and variants: the names of bare shapes are unique by kind. Whatever has none
        // ends it.
        other => {
            let same =
                |(_, known): &&(&str, Shape)| std::mem::discriminant(known) == std::mem::discriminant(other);
            out.push_str(BARE.iter().find(same)?.0);
        }
    }
    Some(())
}

/// Octets and strings have lists with names of their own, which travel in the same way.
fn sequence(element: &Shape, out: &mut String, depth: usize) -> Option<()> {
    match element {
        Shape::U8 => out.push_str("QByteArray"),
        Shape::Text(Text { kind: TextKind::Wide | TextKind::Counted, .. }) => out.push_str("QStringList"),
        Shape::Text(_) => out.push_str("QCStringList"),
        _ => {
            out.push_str("QValueList<");
            write(element, out, depth + 1)?;
            out.push('>');
        }
    }
    Some(())
}

/// Whether an alias has its name from Qt.
fn is_known(name: &str) -> bool {
    ALIASES.iter().any(|(known, _)| *known == name)
        || DERIVED.iter().any(|(known, _)| *known == name)
        || name.starts_with("QValueList<")
        || name.starts_with("QValueVector<")
        || is_trinity_word(name.split('<').next().unwrap_or_default())
}
