//! `QVariant`: a tag, then a value of that type.

use everywire_idl::kidl::types;
use everywire_model::shape::{Text, TextKind};
use everywire_model::{Failure, Initiator, Kind, Shape};

/// What the tags mean, by number. (`QVariant::Type` of Qt 3.3.)
const NAMES: [&str; 35] = [
    "Invalid",
    "Map",
    "List",
    "String",
    "StringList",
    "Font",
    "Pixmap",
    "Brush",
    "Rect",
    "Size",
    "Color",
    "Palette",
    "ColorGroup",
    "IconSet",
    "Point",
    "Image",
    "Int",
    "UInt",
    "Bool",
    "Double",
    "CString",
    "PointArray",
    "Region",
    "Bitmap",
    "Cursor",
    "SizePolicy",
    "Date",
    "Time",
    "DateTime",
    "ByteArray",
    "BitArray",
    "KeySequence",
    "Pen",
    "LongLong",
    "ULongLong",
];

/// The tags whose values have a shape: the number and the type's name. Values of the other tags are read by
/// Qt alone, so a variant with one of them cannot be stepped over either.
const TYPES: [(u32, &str); 19] = [
    (1, "QMap<QString,QVariant>"),
    (2, "QValueList<QVariant>"),
    (3, "QString"),
    (4, "QStringList"),
    (8, "QRect"),
    (9, "QSize"),
    (10, "QColor"),
    (14, "QPoint"),
    (16, "int"),
    (17, "uint"),
    (18, "bool"),
    (19, "double"),
    (20, "QCString"),
    (26, "QDate"),
    (27, "QTime"),
    (28, "QDateTime"),
    (29, "QByteArray"),
    (33, "Q_INT64"),
    (34, "Q_UINT64"),
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
    match TYPES.iter().find(|(_, known)| name.as_deref() == Some(known)) {
        Some((tag, _)) => Ok((*tag, false)),
        // Another name for something that has a tag.
        None => match shape {
            Shape::Alias(alias) => tag(&alias.target),
            _ => Err(Failure::new(
                Kind::Unsupported,
                Initiator::User,
                format!("a QVariant cannot hold {}", name.unwrap_or_else(|| shape.noun().into_owned())),
            )
            .with_hint("lists and maps of QVariants it can hold")),
        },
    }
}

/// The shape of the values of a tag. `at` is the tag's place, for the error.
pub(crate) fn shape(tag: u32, at: usize) -> Result<Shape, Failure> {
    if tag == INVALID {
        return Ok(Shape::Void);
    }
    if let Some(shape) =
        TYPES.iter().find(|(known, _)| *known == tag).and_then(|(_, name)| types::shape(name))
    {
        return Ok(shape);
    }
    match usize::try_from(tag).ok().and_then(|tag| NAMES.get(tag)) {
        Some(name) => Err(Failure::new(
            Kind::Unsupported,
            Initiator::Here,
            format!("a QVariant holds a Q{name}, which is read nowhere but in Qt (at byte {at})"),
        )),
        None => {
            Err(Failure::malformed(format_args!("a QVariant has the tag {tag}, which does not exist"), at))
        }
    }
}
