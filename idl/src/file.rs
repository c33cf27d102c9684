//! Whole files of bounded size.
//!
//! Languages without a preprocessor read their files here. A file is never read further than one byte past
//! the limit, whatever its length was said to be: pipes and devices have none. `beginning` reads what tells a file's language.

#[cfg(any(feature = "dbus-xml", feature = "kidl", feature = "wsdl"))]
use crate::diagnostics::{Diagnostic, Diagnostics};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The text of a file of at most `limit` bytes, in an encoding that is read for XML. A file that cannot be read or is larger, and one that is
/// in no such encoding, is one mistake without a line.
#[cfg(any(feature = "dbus-xml", feature = "kidl", feature = "wsdl"))]
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
    crate::encoding::text_of(bytes).map_err(mistake)
}

/// The text of a file up to this many bytes, what is no character in it replaced. None where it cannot be read.
pub(crate) fn beginning(path: &Path, limit: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
    // Of UTF-16 the other halves are zero, as far as the words go that are looked for.
    if matches!(bytes.get(..2), Some([0xFF, 0xFE] | [0xFE, 0xFF])) {
        bytes.retain(|byte| *byte != 0 && byte.is_ascii());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The file of this name in a folder, where upper and lower case are one in every part of the name and `\` is `/`. Of several, the exact one
/// or the first. None for a name that does not start from the folder.
pub(crate) fn in_any_case(folder: &Path, name: &str) -> Option<PathBuf> {
    if Path::new(name).is_absolute() {
        return None;
    }
    let mut at = folder.to_owned();
    for part in name.split(['/', '\\']).filter(|part| !part.is_empty()) {
        let exact = at.join(part);
        if part == ".." || exact.exists() {
            at = exact;
            continue;
        }
        let here = if at.as_os_str().is_empty() { Path::new(".") } else { &at };
        let names = std::fs::read_dir(here).ok()?.flatten().map(|entry| entry.file_name());
        let same = names.filter(|name| name.to_str().is_some_and(|name| name.eq_ignore_ascii_case(part)));
        at = at.join(same.min()?);
    }
    at.is_file().then_some(at)
}
