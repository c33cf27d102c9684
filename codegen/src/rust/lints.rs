//! Lints that generated text has to allow.

use crate::page::Page;

/// Characters of a type above which a linter might complain. Allowing too often harms nobody: the text is
/// generated.
pub(super) const COMPLEX: usize = 60;

/// Whether a name is of capitals. Clippy would have it in small letters.
fn is_of_capitals(name: &str) -> bool {
    name.len() > 2 && !name.contains(char::is_lowercase)
}

/// Writes that a type may have a name of capitals.
pub(super) fn allow_capitals(name: &str, page: &mut Page) {
    if is_of_capitals(name) {
        page.line("#[allow(clippy::upper_case_acronyms)]");
    }
}

/// Writes that what a type has needs no documentation, and that it may have a name of capitals.
pub(super) fn allow_undocumented(name: &str, page: &mut Page) {
    page.line(match is_of_capitals(name) {
        true => "#[allow(missing_docs, clippy::upper_case_acronyms)]",
        false => "#[allow(missing_docs)]",
    });
}
