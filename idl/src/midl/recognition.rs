//! Which of two languages the text of a file `.idl` is: MIDL, or OMG IDL.
//!
//! The words of a text are looked at once, each with the one before it and behind it. MIDL is only what OMG IDL cannot be:
//!
//! * attributes in brackets: in OMG IDL a `[` stands behind a name, a closing bracket or a parenthesis only;
//! * `import "file"`, `importlib(`, `cpp_quote(`, `midl_pragma`;
//! * types of C: `unsigned` before another word than `short` and `long`, `signed char`, `__int64`, a `struct`, `union` or `enum`
//!   without a name, a number behind a member of an `enum`, and a `*` where nothing is multiplied;
//! * a type that MIDL knows and nothing in the text defines (`DWORD`), where the text includes no file that may define it.

use std::collections::HashMap;

/// Words that only the attributes of MIDL have; behind a macro they may stand in brackets that look like those of an array.
const ATTRIBUTES: &[&str] = &["uuid", "helpstring", "pointer_default", "pyhelper"];

/// Types that MIDL knows without a definition, or by the files of the system. OMG IDL has none of these, but may define them.
const TYPES: &[&str] = &[
    "BOOL",
    "BSTR",
    "BYTE",
    "CHAR",
    "DWORD",
    "DWORDLONG",
    "DWORD_PTR",
    "FILETIME",
    "GUID",
    "HANDLE",
    "HRESULT",
    "HWND",
    "IID",
    "INT",
    "LARGE_INTEGER",
    "LONG",
    "LONGLONG",
    "LPCSTR",
    "LPCWSTR",
    "LPOLESTR",
    "LPSTR",
    "LPWSTR",
    "OLECHAR",
    "SHORT",
    "UCHAR",
    "UINT",
    "ULARGE_INTEGER",
    "ULONG",
    "ULONGLONG",
    "USHORT",
    "UUID",
    "VARIANT",
    "VARIANT_BOOL",
    "WCHAR",
    "WORD",
    "byte",
    "error_status_t",
    "handle_t",
    "hyper",
    "int",
    "small",
    "wchar_t",
];

/// Words of OMG IDL behind which a `*` multiplies nothing.
const KEYWORDS: &[&str] = &["void", "long", "short", "char", "float", "double", "boolean", "octet", "const"];

/// A word or a sign of a text, as far as this module tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'t> {
    /// The text begins, or a directive of the preprocessor was here.
    Nothing,
    Word(&'t str),
    /// A text or a character in quotes.
    Quoted,
    Sign(char),
}

/// Whether a text is MIDL rather than OMG IDL, which files of the same extension hold: whether it has what OMG IDL cannot have. One pass
/// over the words; texts, comments and directives of the preprocessor are stepped over. A file that is cut or binary is no danger:
/// the answer is false where nothing says otherwise.
#[must_use]
pub fn is_midl(text: &str) -> bool {
    let mut reader = Reader { rest: text, includes: false };
    // Whether each type that MIDL knows was met as a type only: where it is something else, it may be its definition.
    let mut types: HashMap<&str, bool> = HashMap::new();
    // In the braces of an `enum`, and how many parentheses are open there: an annotation may have its own `=`.
    let (mut of_enum, mut parentheses) = (false, 0_usize);
    let (mut brackets, mut before, mut piece) = (0_usize, Piece::Nothing, reader.next());
    while let Some(now) = piece {
        let behind = reader.next();
        let is = |sign| behind == Some(Piece::Sign(sign));
        let word = |of: Option<Piece<'_>>| matches!(of, Some(Piece::Word(_)));
        match now {
            Piece::Sign('[') => {
                let begins = matches!(before, Piece::Nothing | Piece::Sign(';' | '{' | '}' | '(' | ','));
                if word(behind) && (begins || before == Piece::Word("typedef")) {
                    return true;
                }
                brackets += 1;
            }
            Piece::Word("struct" | "union" | "enum") if is('{') => return true,
            Piece::Word("enum") => (of_enum, parentheses) = (true, 0),
            Piece::Sign('}' | ';') => of_enum = false,
            Piece::Sign('(') => parentheses += 1,
            Piece::Sign(')') => parentheses = parentheses.saturating_sub(1),
            Piece::Sign('=') if of_enum && parentheses == 0 => return true,
            Piece::Sign(']') => brackets = brackets.saturating_sub(1),
            Piece::Sign('*') => {
                let nothing = match before {
                    Piece::Word(word) => KEYWORDS.contains(&word),
                    Piece::Sign(sign) => matches!(sign, '}' | ',' | '{' | '*'),
                    _ => false,
                };
                if nothing && (word(behind) || is('*')) {
                    return true;
                }
            }
            Piece::Word("cpp_quote" | "importlib") if is('(') => return true,
            Piece::Word("midl_pragma") if word(behind) || is('(') => return true,
            Piece::Word("import") if behind == Some(Piece::Quoted) => return true,
            Piece::Word(name) if brackets > 0 && is('(') && ATTRIBUTES.contains(&name) => return true,
            Piece::Word("__int64" | "__int32" | "__int3264") => return true,
            Piece::Word("union") if behind == Some(Piece::Word("switch")) => return true,
            Piece::Word("unsigned")
                if word(behind) && !matches!(behind, Some(Piece::Word("short" | "long"))) =>
            {
                return true;
            }
            Piece::Word("signed")
                if matches!(behind, Some(Piece::Word("char" | "short" | "long" | "int"))) =>
            {
                return true;
            }
            Piece::Word(name) if TYPES.contains(&name) => {
                let scoped = before == Piece::Sign(':');
                *types.entry(name).or_insert(true) &= !scoped && (word(behind) || is('*'));
            }
            _ => {}
        }
        (before, piece) = (now, behind);
    }
    !reader.includes && types.into_values().any(|only_a_type| only_a_type)
}

/// The words and signs of a text.
struct Reader<'t> {
    rest: &'t str,
    /// A directive that includes a file was met.
    includes: bool,
}

impl<'t> Reader<'t> {
    /// The next one; none at the end of the text.
    fn next(&mut self) -> Option<Piece<'t>> {
        loop {
            self.rest = self.rest.trim_start();
            let first = self.rest.chars().next()?;
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.split_once('\n').map_or("", |(_, after)| after);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, after)| after);
            } else if first == '#' {
                return Some(self.directive());
            } else if matches!(first, '"' | '\'') {
                self.quoted(first);
                return Some(Piece::Quoted);
            } else {
                let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let len = match self.rest.find(|c: char| !is_word(c)) {
                    Some(0) => first.len_utf8(),
                    Some(len) => len,
                    None => self.rest.len(),
                };
                let (piece, rest) = self.rest.split_at(len);
                self.rest = rest;
                return Some(if is_word(first) { Piece::Word(piece) } else { Piece::Sign(first) });
            }
        }
    }

    /// Steps over a directive, with the lines that it goes on in; and over what stands between `#else` and `#endif`, which may be of
    /// another language, such as C.
    fn directive(&mut self) -> Piece<'t> {
        let mut others = 0_usize;
        let mut goes_on = true;
        while goes_on || others > 0 {
            let (line, after) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = after;
            let name = line.trim_start().strip_prefix('#').unwrap_or_default().trim_start();
            self.includes |= name.starts_with("include");
            match others {
                0 if name.starts_with("el") => others = 1,
                0 => {}
                _ if name.starts_with("if") => others += 1,
                _ if name.starts_with("endif") => others -= 1,
                _ => {}
            }
            goes_on = line.trim_end_matches('\r').ends_with('\\');
            if after.is_empty() {
                break;
            }
        }
        Piece::Nothing
    }

    /// Steps over a text or a character, up to the next quote that no `\` stands before.
    fn quoted(&mut self, quote: char) {
        let mut escaped = true;
        let end = self.rest.find(|c| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        self.rest = end.and_then(|end| self.rest.get(end + 1..)).unwrap_or_default();
    }
}
