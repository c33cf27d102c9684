//! What went wrong.

use crate::abi::{Functions, KERBEROS};
use crate::library::LibraryBuffer;
use std::ffi::c_int;
use std::fmt;

/// Why a function failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The library is not here.
    NoLibrary,
    /// There are no tickets, or no keys.
    NoCredential,
    /// The ticket, or the context made with it, is too old.
    Expired,
    /// A token or a protected message is malformed, changed, repeated, or out of its order.
    Damaged,
    /// Anything else; the text tells.
    Other,
}

/// A failure of the library.
#[derive(Debug, Clone)]
pub struct Error {
    reason: Reason,
    text: String,
}

impl Error {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into() }
    }

    /// Why.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// `GSS_S_CONTINUE_NEEDED`.
const CONTINUE: u32 = 1;
/// `GSS_S_DUPLICATE_TOKEN`, `GSS_S_OLD_TOKEN`, `GSS_S_UNSEQ_TOKEN` and `GSS_S_GAP_TOKEN`.
const OUT_OF_ORDER: u32 = 0b11110;
/// The bits of a status that are failures (RFC 2744 3.9.1).
const FAILURES: u32 = 0xffff_0000;
/// `GSS_S_NO_CRED` and `GSS_S_FAILURE`, whose texts say less than the mechanism's.
const VAGUE: [u32; 2] = [7, 13];
/// The mechanism's status of a ticket that is too old (RFC 4120 7.5.9, offset by the base of the library's table).
const KRB5KRB_AP_ERR_TKT_EXPIRED: u32 = -1_765_328_352_i32 as u32;

/// What a function returned, and what it says in its first parameter.
#[derive(Clone, Copy)]
pub(crate) struct Status {
    pub(crate) major: u32,
    pub(crate) minor: u32,
}

impl Status {
    /// Whether another token is needed, if nothing failed. To be called in the thread that called the function: texts are
    /// kept for each thread.
    pub(crate) fn check(self, functions: &'static Functions) -> Result<bool, Error> {
        if self.major & (FAILURES | OUT_OF_ORDER) == 0 {
            return Ok(self.major & CONTINUE != 0);
        }
        Err(self.error(functions))
    }

    #[cold]
    fn error(self, functions: &'static Functions) -> Error {
        let routine = self.major >> 16 & 0xff;
        let reason = match routine {
            _ if self.minor == KRB5KRB_AP_ERR_TKT_EXPIRED => Reason::Expired,
            7 => Reason::NoCredential,
            11 | 12 => Reason::Expired,
            6 | 9 => Reason::Damaged,
            0 => Reason::Damaged,
            _ => Reason::Other,
        };
        let major = text(functions, self.major, 1);
        let minor = if self.minor == 0 { String::new() } else { text(functions, self.minor, 2) };
        Error::new(
            reason,
            match (VAGUE.contains(&routine), minor.is_empty()) {
                (true, false) => minor,
                (_, true) => major,
                (false, false) => format!("{major}: {minor}"),
            },
        )
    }
}

/// The text of a status: `kind` is 1 for the library's, 2 for the mechanism's. It may come in several pieces.
fn text(functions: &'static Functions, status: u32, kind: c_int) -> String {
    let (mut more, mut pieces) = (0, Vec::new());
    loop {
        let mut piece = LibraryBuffer::new(functions);
        let (minor, place) = (&mut 0, &raw mut piece.buffer);
        // SAFETY: all that is pointed to lives until it returns; the text is released by its owner.
        let major = unsafe {
            (functions.gss_display_status)(minor, status, kind, &raw const KERBEROS, &raw mut more, place)
        };
        if major & FAILURES != 0 {
            break;
        }
        pieces.push(String::from_utf8_lossy(piece.bytes()).trim().to_owned());
        if more == 0 || pieces.len() == 8 {
            break;
        }
    }
    if pieces.is_empty() { format!("status {status:#x}") } else { pieces.join("; ") }
}
