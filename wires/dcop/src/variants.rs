//! `QVariant`: a tag, then a value of that type.

use everywire_idl::kidl::types;
use everywire_model::shape::{Text, TextKind};
use everywire_model::{Failure, Initiator, Kind, Shape};

/// The kinds of QVariant by their tags (`QVariant::Type`): Qt's name, and the type of what one holds, where it is read here.
const KINDS: [(&str, &str); 35] = [
    ("Invalid", ""),
    ("Map", "QMap<QString,QVariant>"),
    ("List", "QValueList<QVariant>"),
    ("String", "QString"),
    ("StringList", "QStringList"),
    ("Font", ""),
    ("Pixmap", ""),
    ("Brush", ""),
    ("Rect", "QRect"),
    ("Size", "QSize"),
    ("Color", "QColor"),
    ("Palette", ""),
    ("ColorGroup", ""),
    ("IconSet", ""),
    ("Point", "QPoint"),
    ("Image", ""),
    ("Int", "int"),
    ("UInt", "uint"),
    ("Bool", "bool"),
    ("Double", "double"),
    ("CString", "QCString"),
    ("PointArray", ""),
    ("Region", ""),
    ("Bitmap", ""),
    ("Cursor", ""),
    ("SizePolicy", ""),
    ("Date", "QDate"),
    ("Time", "QTime"),
    ("DateTime", "QDateTime"),
    ("ByteArray", "QByteArray"),
    ("BitArray", ""),
    ("KeySequence", ""),
    ("Pen", ""),
    ("LongLong", "Q_INT64"),
    ("ULongLong", "Q_UINT64"),
];

/// The tag of no value.
pub(crate) const INVALID: u32 = 0;

/// The tag for values of a shape, and whether they grow to 4 or 8 bytes on the way: there are no small numbers.
///
/// # Errors
/// A `QVariant` of Qt 3 cannot hold such values.
pub(crate) fn tag(shape: &Shape) -> Result<(u32, bool), Failure> {
    match shape {
        Shape::Void => return Ok((INVALID, false)),
        Shape::I8 | Shape::I16 => return Ok((16, true)),
        Shape::U8 | Shape::U16 => return Ok((17, true)),
        Shape::Enum(_) => return Ok((16, false)),
        Shape::F32 => return Ok((19, true)),
        Shape::Text(Text { kind: TextKind::Wide | TextKind::Counted, .. }) => return Ok((3, false)),
        Shape::Text(_) => return Ok((20, false)),
        Shape::Pointer(pointer) => return tag(&pointer.target),
        _ => {}
    }
    let name = types::name(shape);
    match (0..).zip(&KINDS).find(|(_, (_, known))| name.as_deref() == Some(*known)) {
        Some((tag, _)) => Ok((tag, false)),
        // Another name for something that has a tag.
        None => match shape {
            Shape::Alias(alias) => tag(&alias.target),
            _ => {
                let what = name.unwrap_or_else(|| shape.noun().into_owned());
                Err(Failure::new(
                    Kind::Unsupported,
                    Initiator::User,
                    format!("a QVariant cannot hold {what}"),
                )
                .with_hint("lists and maps of QVariants it can hold"))
            }
        },
    }
}

/// The shape of the values of a tag. `at` is the tag's place, for the error.
pub(crate) fn shape(tag: u32, at: usize) -> Result<Shape, Failure> {
    if tag == INVALID {
        return Ok(Shape::Void);
    }
    let Some((name, held)) = usize::try_from(tag).ok().and_then(|tag| KINDS.get(tag)) else {
        let what = format_args!("a QVariant has the tag {tag}, which does not exist");
        return Err(Failure::malformed(what, at));
    };
    types::shape(held).ok_or_else(|| {
        let what = format!("a QVariant holds a Q{name}, which is read nowhere but in Qt (at byte {at})");
        Failure::unsupported(what)
    })
}
