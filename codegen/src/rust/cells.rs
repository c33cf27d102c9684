//! Structs that are nothing but numbers and variants: their arrays are written and read a row at a time.
//!
//! A row is a struct whose bytes lie as a compiler of C lays them out, which is how NDR has them: each number
//! at a multiple of its size, the struct at a multiple of its largest. So a codec can copy a whole array of
//! them cell by cell, without
//! asking each field. What a row is must be the same here and in `everywire_model::cells`, which has the
//! limits.

use super::definitions::is_tuple;
use everywire_model::cells::{CellKind, MOST, MOST_BYTES};
use everywire_model::shape::{Shape, Struct};

/// How a struct is laid out.
pub(super) struct Row {
    /// Bytes without the padding behind the last cell.
    size: usize,
    /// Bytes: the width of its widest cell.
    alignment: usize,
    /// Where each number begins, in bytes from the start, and how wide it is; inner structs are laid out
    /// flat.
    cells: Vec<(usize, CellKind)>,
    /// Where each field begins.
    fields: Vec<usize>,
}

/// The layout of a struct; nothing if it holds anything but numbers and variants, or too many. One cell alone
/// is no row: an array of it is an array of numbers.
pub(super) fn row(fields: &Struct) -> Option<Row> {
    let alignment = alignment(fields, &mut { MOST })?;
    let mut row = Row { size: 0, alignment, cells: Vec::new(), fields: Vec::new() };
    row.put(fields, true)?;
    ((2..=MOST).contains(&row.cells.len()) && row.size <= MOST_BYTES).then_some(row)
}

impl Row {
    /// Lays out the fields of a struct from the present size on; only those of the outermost one are noted in
    /// `fields`.
    fn put(&mut self, fields: &Struct, outermost: bool) -> Option<()> {
        for field in fields.fields.iter() {
            let shape = field.shape.resolved();
            let own = match shape {
                Shape::Struct(inner) => alignment(inner, &mut { MOST })?,
                shape => kind(shape)?.width(),
            };
            self.size = self.size.next_multiple_of(own);
            if outermost {
                self.fields.push(self.size);
            }
            match shape {
                Shape::Struct(inner) => self.put(inner, false)?,
                shape => {
                    let kind = kind(shape)?;
                    self.cells.push((self.size, kind));
                    self.size += kind.width();
                }
            }
        }
        Some(())
    }
}

/// The cell for a shape; None for what is not of fixed size.
fn kind(shape: &Shape) -> Option<CellKind> {
    Some(match shape {
        Shape::U8 | Shape::I8 => CellKind::One,
        Shape::U16 | Shape::I16 => CellKind::Two,
        Shape::U32 | Shape::I32 | Shape::F32 => CellKind::Four,
        Shape::U64 | Shape::I64 | Shape::F64 => CellKind::Eight,
        Shape::Variant => CellKind::Variant,
        _ => return None,
    })
}

/// The alignment of a struct of two fields or more, as one that is in another must be to be a row itself. None where it has more
/// cells than are `left`: structs in structs may double them at each level. None as well where a struct in it is a tuple in Rust: nothing
/// says of a tuple how it is laid out.
fn alignment(fields: &Struct, left: &mut usize) -> Option<usize> {
    let widths = fields.fields.iter().map(|field| match field.shape.resolved() {
        Shape::Struct(inner) if is_tuple(inner) => None,
        Shape::Struct(inner) => alignment(inner, left),
        shape => {
            *left = left.checked_sub(1)?;
            Some(kind(shape)?.width())
        }
    });
    let most = widths.collect::<Option<Vec<_>>>()?.into_iter().max();
    most.filter(|_| fields.fields.len() > 1)
}

impl Row {
    /// What `ew::fields!` is told of it: size, alignment, the cells, and where the fields of these names begin.
    pub(super) fn text(&self, fields: &[String]) -> String {
        let cells: Vec<String> = self.cells.iter().map(|(at, kind)| format!("{at} {kind:?}")).collect();
        let places: Vec<String> =
            fields.iter().zip(&self.fields).map(|(field, at)| format!("{field} {at}")).collect();
        format!("{}, {}; {}; {}", self.size, self.alignment, cells.join(" "), places.join(" "))
    }
}
