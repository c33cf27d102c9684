//! Type names of signatures and replies; the table of Qt's types is `kidl::types`, here is what it leaves
//! open.
//!
//! On this wire a function is its signature: name and types of arguments, letter by letter, so a caller must
//! spell them as the callee does. A type that Qt does not know stands with its own name. Callees here are
//! more patient: if no operation is written so, one whose types have the same bytes is taken (`canonical`).
//!
//! Nothing is kept here. Text from a peer is bounded by the length of names (`limits::NAME`), shapes of
//! contracts by depth and length while they are spelled.

use everywire_idl::kidl::types;
use everywire_model::shape::{Field, Hold, Struct};
use everywire_model::{Failure, Initiator, Interface, Kind, Operation, Shape, Signal, Visit};
use std::borrow::Cow;

/// The name of a shape in a signature. Structs that Qt does not know stand with their own names.
///
/// # Errors
/// There is none: it nests too deeply, or is a union, a handle or a nameless struct.
pub(crate) fn name(shape: &Shape) -> Visit<String> {
    if let Some(known) = types::name(shape) {
        return Ok(known);
    }
    let mut out = String::new();
    write(shape, &mut out, 0)?;
    Ok(out)
}

/// `depth` counts levels; names of known types end it.
fn write(shape: &Shape, out: &mut String, depth: u32) -> Visit<()> {
    if depth > 16 || out.len() > types::LENGTH {
        return Err(nameless(shape));
    }
    match shape.resolved() {
        Shape::Struct(own) if !own.name.is_empty() => out.push_str(&own.name),
        Shape::Sequence(_) | Shape::Array(_) => {
            out.push_str("QValueList<");
            write(shape.element().unwrap_or(&Shape::Void), out, depth + 1)?;
            out.push('>');
        }
        Shape::Optional(target) if matches!(target.resolved(), Shape::Text(_)) => {
            write(target, out, depth + 1)?;
        }
        Shape::Optional(target) => {
            out.push_str("QValueList<");
            write(target, out, depth + 1)?;
            out.push('>');
        }
        Shape::Pointer(pointer) => write(&pointer.target, out, depth + 1)?,
        Shape::Map(map) => {
            out.push_str("QMap<");
            write(&map.key, out, depth + 1)?;
            out.push(',');
            write(&map.value, out, depth + 1)?;
            out.push('>');
        }
        other => out.push_str(&types::name(other).ok_or_else(|| nameless(other))?),
    }
    Ok(())
}

/// A shape that has no type name.
#[cold]
fn nameless(shape: &Shape) -> Failure {
    Failure::new(Kind::Unsupported, Initiator::User, format!("{} has no type name on DCOP", shape.noun()))
        .with_hint("pass it as a struct, a list or a QVariant")
}

/// The types of a struct's fields, joined by commas.
pub(crate) fn list(fields: &[Field]) -> Visit<String> {
    let mut out = String::new();
    for (index, field) in fields.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&name(&field.shape)?);
    }
    Ok(out)
}

/// The type of a reply that carries these results: `void` for none.
///
/// # Errors
/// They are more than one, or of a shape without a name.
pub(crate) fn results(fields: &[Field]) -> Visit<String> {
    match fields {
        [] => Ok("void".to_owned()),
        [one] => name(&one.shape),
        more => Err(too_many(more.len())),
    }
}

/// Refuses what a reply cannot carry.
#[inline]
pub(crate) fn one_result(operation: &Operation) -> Visit<()> {
    if operation.results.fields().len() > 1 {
        Err(too_many(operation.results.fields().len()))
    } else {
        Ok(())
    }
}

/// The wire carries one result.
#[cold]
fn too_many(results: usize) -> Failure {
    let what = format!("a reply of DCOP carries one result, and the operation has {results}");
    Failure::new(Kind::Unsupported, Initiator::User, what)
        .with_hint("return a struct, or use a wire that has out parameters")
}

/// The signature of an operation: its name, if that is one, else made from the shapes of the arguments.
pub(crate) fn function(operation: &Operation) -> Visit<Cow<'_, str>> {
    signature(&operation.name, &operation.arguments)
}

/// The signature of a signal.
pub(crate) fn signal(signal: &Signal) -> Visit<Cow<'_, str>> {
    signature(&signal.name, &signal.fields)
}

/// A name with parentheses is a signature already.
fn signature<'a>(name: &'a str, arguments: &Shape) -> Visit<Cow<'a, str>> {
    if name.contains('(') {
        return Ok(Cow::Borrowed(name));
    }
    Ok(Cow::Owned(format!("{name}({})", list(arguments.fields())?)))
}

/// The types between the parentheses of a signature; a list of types stands for itself.
fn of_signature(text: &str) -> &str {
    text.strip_suffix(')').and_then(|text| text.split_once('(')).map_or(text, |(_, list)| list)
}

/// The shape of values of these types, joined by commas or in a signature, as one nameless struct. Nothing,
/// if one of the types is unknown.
pub(crate) fn shape_of(context: &str) -> Option<Shape> {
    let list = of_signature(context);
    let mut fields = Vec::new();
    if list != "void" {
        for (index, name) in split(list).enumerate() {
            let name_of = Cow::Owned(format!("field_{}", index + 1));
            fields.push(Field { name: name_of, shape: types::shape(name)? });
        }
    }
    let (name, id) = (Cow::Borrowed(""), Cow::Borrowed(""));
    Some(Shape::Struct(Hold::new(Struct { name, id, fields: Cow::Owned(fields) })))
}

/// Splits a list of types at the commas that are in no template.
pub(crate) fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let parts = list.split(move |c| {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}

/// The number of the operation with this signature: the one written so, else one whose types have the same
/// bytes. Those whose results no reply carries are not there. Nothing, if there is none.
pub(crate) fn operation(interface: &Interface, asked: &[u8]) -> Option<usize> {
    let asked = std::str::from_utf8(asked).ok()?;
    // What has results that no reply carries is not begun.
    if let Some(index) = interface.index_of(asked.as_bytes())
        && interface.operations.get(index).is_none_or(|operation| one_result(operation).is_ok())
    {
        return Some(index);
    }
    let (name, _) = asked.split_once('(')?;
    let named = |(_, operation): &(usize, &Operation)| {
        operation.name == name || operation.name.split_once('(').is_some_and(|(own, _)| own == name)
    };
    let candidates = || {
        let named = interface.operations.iter().enumerate().filter(named);
        let named = named.filter(|(_, operation)| one_result(operation).is_ok());
        named.filter_map(|(index, operation)| Some((index, function(operation).ok()?)))
    };
    if let Some((index, _)) = candidates().find(|(_, function)| *function == asked) {
        return Some(index);
    }
    // KDE's callees compare byte for byte; white space and all are the caller's fault there.
    if types::normal(asked) != asked {
        return None;
    }
    let wanted = canonical(asked);
    candidates().find(|(_, function)| canonical(function) == wanted).map(|(index, _)| index)
}

/// A signature in which types with the same bytes have the same name: `uint` is `unsigned int`, `long` as wide as a
/// `Q_INT64`, Trinity's `TQString` is a `QString`.
pub(crate) fn canonical(signature: &str) -> String {
    let normal = types::of_kde(&types::normal(signature));
    let Some((name, rest)) = normal.split_once('(') else { return normal };
    let Some(list) = rest.strip_suffix(')') else { return normal.clone() };
    let mut out = format!("{name}(");
    for (index, part) in split(list).enumerate() {
        if index > 0 {
            out.push(',');
        }
        match types::shape(part) {
            Some(shape) => plain(&shape, part, &mut out),
            None => out.push_str(part),
        }
    }
    out.push(')');
    out
}

/// The name of the shape behind aliases of numbers and lists; other aliases (`QColor`) are types of their own.
fn plain(shape: &Shape, written: &str, out: &mut String) {
    match shape {
        Shape::Alias(alias) if written.starts_with('Q') && alias.target.width() == Some(4) => {
            out.push_str(if written == "Q_INT32" {
                "int"
            } else if written == "Q_UINT32" {
                "uint"
            } else {
                written
            });
        }
        Shape::Alias(alias) => plain(&alias.target, written, out),
        Shape::Sequence(_) | Shape::Map(_) => {
            let inner = |shape: &Shape, out: &mut String| {
                let name = types::name(shape).unwrap_or_default();
                plain(shape, &name, out);
            };
            match shape {
                Shape::Map(map) => {
                    out.push_str("QMap<");
                    inner(&map.key, out);
                    out.push(',');
                    inner(&map.value, out);
                }
                _ => {
                    out.push_str("QValueList<");
                    inner(shape.element().unwrap_or(&Shape::Void), out);
                }
            }
            out.push('>');
        }
        other => out.push_str(&types::name(other).unwrap_or_else(|| written.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_the_same_bytes_are_one() {
        for (one, other) in [
            ("f(uint)", "f(unsigned int)"),
            ("f(long)", "f(long int)"),
            ("f(Q_INT64)", "f(long)"),
            ("f(uchar,ushort)", "f( unsigned char, unsigned short int )"),
            ("f(QValueList<uint>)", "f(QValueList<unsigned int> )"),
            ("f(QStringList)", "f(QValueList<QString>)"),
            ("f(Q_UINT32)", "f(uint)"),
        ] {
            assert_eq!(canonical(one), canonical(other));
        }
        for (one, other) in
            [("f(int)", "f(uint)"), ("f(QColor)", "f(uint)"), ("f(int)", "g(int)"), ("f(QDate)", "f(QTime)")]
        {
            assert_ne!(canonical(one), canonical(other));
        }
        assert_eq!(canonical("f(KURL,QMap<QString,int>)"), "f(KURL,QMap<QString,int>)");
    }
}
