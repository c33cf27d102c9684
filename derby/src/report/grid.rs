//! What the tables of all races are made of: the order of placements, a grid of cells, and the words of a figure.

use super::{Row, short};

/// Placements in the order of the report, and what to call them.
pub(super) const PLACEMENTS: &[(&str, &str)] = &[
    ("same", "same CPU"),
    ("different", "different CPUs"),
    ("unpinned", "unpinned"),
    ("remote", "two network namespaces"),
    ("busy", "same CPU, busy"),
    ("busy-different", "different CPUs, busy"),
];

/// A table: the titles of its columns, and lines of as many cells.
pub(super) struct Grid {
    pub(super) head: Vec<String>,
    pub(super) lines: Vec<Vec<String>>,
}

/// The median, with a word of warning where it is that of few calls.
pub(super) fn median(row: &Row) -> String {
    format!("{}{}", short(row.median_us), few(row))
}

/// The words that stand beside every figure of too few calls.
pub(super) fn few(row: &Row) -> String {
    if row.too_few { format!(" (too few: {})", row.calls) } else { String::new() }
}

pub(super) fn dash() -> String {
    "-".to_owned()
}

/// A ratio, or a dash.
pub(super) fn ratio(value: Option<f64>) -> String {
    value.map_or_else(dash, |ratio| format!("{ratio:.2}"))
}

impl std::fmt::Display for Grid {
    /// The first column to the left, numbers to the right.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = |column: usize| {
            let cells = std::iter::once(&self.head).chain(&self.lines).filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let all: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        for (i, line) in std::iter::once(&self.head).chain(&self.lines).enumerate() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                if column == 0 {
                    write!(f, "{cell:width$}")?;
                } else {
                    write!(f, "  {cell:>width$}")?;
                }
            }
            writeln!(f)?;
            if i == 0 {
                writeln!(f, "{}", "─".repeat(all))?;
            }
        }
        Ok(())
    }
}
