//! Whole files of bounded size.
//!
//! Languages without a preprocessor read their files here. A file is never read further than one byte past
//! the limit, whatever its length was said to be: pipes and devices have none. `beginning` reads what tells a file's language.

use crate::diagnostics::{Diagnostic, Diagnostics};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The text of a file of at most `limit` bytes. A file that cannot be read, is larger, or is not UTF-8 is one
/// mistake without a line.
pub(crate) fn text(path: &Path, limit: usize) -> Result<String, Diagnostics> {
    let mistake = |message: String| Diagnostics::from(Diagnostic::of_file(&path.to_string_lossy(), message));
    let mut bytes = Vec::new();
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| mistake(format!("cannot be read: {error}")))?;
    if bytes.len() > limit {
        return Err(mistake(format!("the file is larger than {} MiB", limit >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        mistake(format!("the file is not UTF-8 (byte {})", error.utf8_error().valid_up_to()))
    })
}

/// The text of a file up to this many bytes, what is no UTF-8 in it replaced. None where it cannot be read.
pub(crate) fn beginning(path: &Path, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
