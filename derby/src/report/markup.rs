//! Parts of the page that several races share: escaped text and tables.
//!
//! On a wide page a table is a table. On a narrow one the style sheet makes a block of each line: its first cell is a heading, and each of the
//! others stands beside the title of its column, which it carries as `data-of`. So nothing is cut off, and nothing is scrolled.

use std::fmt::Write;

/// A line of a table.
pub(super) struct Line {
    /// The class that gives the colour, or none.
    pub(super) class: &'static str,
    /// As many cells as the table has columns; a single one is a heading of what follows.
    pub(super) cells: Vec<String>,
}

impl Line {
    pub(super) fn new(class: &'static str, cells: Vec<String>) -> Self {
        Self { class, cells }
    }
}

/// The class by which the style sheet colours a row: ours, the measures (raw bytes, no hop, the
/// forwarder), or a rival.
pub(super) fn class(contestant: &str) -> &'static str {
    match contestant {
        "everywire" => "ours",
        "raw" | "direct" | "forwarder" => "raw",
        _ => "rival",
    }
}

/// Text for markup, in elements and in attributes with double quotes.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text for markup, where parts between backticks are code. An odd backtick leaves the rest as code.
pub(super) fn code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    parts
        .map(|(number, part)| match number % 2 {
            0 => escape(part),
            _ => format!("<code>{}</code>", escape(part)),
        })
        .collect()
}

/// A table with a title for each column.
pub(super) fn table(head: &[String], lines: &[Line]) -> String {
    let mut out = String::from("<table><thead><tr>");
    for title in head {
        let _ = write!(out, "<th>{}</th>", escape(title));
    }
    out.push_str("</tr></thead><tbody>");
    for line in lines {
        if let ([cell], true) = (&line.cells[..], head.len() > 1) {
            let _ =
                write!(out, "<tr class=\"group\"><td colspan=\"{}\">{}</td></tr>", head.len(), escape(cell));
            continue;
        }
        let class = if line.class.is_empty() { String::new() } else { format!(" class=\"{}\"", line.class) };
        let _ = write!(out, "<tr{class}>");
        for (at, cell) in line.cells.iter().enumerate() {
            let title = head.get(at).filter(|title| at > 0 && !title.is_empty());
            let of = title.map(|title| format!(" data-of=\"{}\"", escape(title))).unwrap_or_default();
            let _ = write!(out, "<td{of}>{}</td>", escape(cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_knows_its_column() {
        let head = ["who", "a < b"].map(String::from);
        let lines =
            [Line::new("ours", vec!["we".into(), "1 & 2".into()]), Line::new("", vec!["a heading".into()])];
        assert_eq!(
            table(&head, &lines),
            "<table><thead><tr><th>who</th><th>a &lt; b</th></tr></thead><tbody>\
             <tr class=\"ours\"><td>we</td><td data-of=\"a &lt; b\">1 &amp; 2</td></tr>\
             <tr class=\"group\"><td colspan=\"2\">a heading</td></tr></tbody></table>"
        );
    }
}
