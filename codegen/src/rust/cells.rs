//! Structs that are nothing but numbers and variants: their arrays are written and read a row at a time.

use everywire_model::cells::{CellKind, MOST, MOST_BYTES};
use everywire_model::shape::{Shape, Struct};

/// How a struct is laid out.
pub(super) struct Row {
    size: usize,
    alignment: usize,
    cells: Vec<(usize, CellKind)>,
    /// Where each field begins.
    fields: Vec<usize>,
}

/// The layout of a struct; nothing if it holds anything but numbers and variants, or too many.
pub(super) fn row(fields: &Struct) -> Option<Row> {
    let mut row = Row { size: 0, alignment: alignment(fields)?, cells: Vec::new(), fields: Vec::new() };
    row.put(fields, true)?;
    ((2..=MOST).contains(&row.cells.len()) && row.size <= MOST_BYTES).then_some(row)
}

impl Row {
    fn put(&mut self, fields: &Struct, outermost: bool) -> Option<()> {
        for field in fields.fields.iter() {
            let shape = field.shape.resolved();
            let own = match shape {
                Shape::Struct(inner) => alignment(inner)?,
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

/// The alignment of a struct of two fields or more, as one that is in another must be to be a row itself.
fn alignment(fields: &Struct) -> Option<usize> {
    let widths = fields.fields.iter().map(|field| match field.shape.resolved() {
        Shape::Struct(inner) => alignment(inner),
        shape => Some(kind(shape)?.width()),
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
