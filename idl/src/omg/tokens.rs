//! What the text of a file is made of: tokens, keywords, and the directives that the parser must know.

use crate::report::Span;
use std::sync::Arc;

/// A token, its place, and the documentation before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    pub(crate) doc: Option<Arc<str>>,
}

/// What a token is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Kind {
    /// An identifier; in MIDL and in lines of directives, every word.
    Word(String),
    /// An identifier that was written with a leading underscore, which is not part of it.
    Escaped(String),
    /// A keyword, as `KEYWORDS` spells it.
    Keyword(&'static str),
    /// A word that differs from a keyword only in case. It may be the name of a macro; what it is the preprocessor finds out, and no
    /// other sees it.
    Misspelt(String, &'static str),
    /// Decimal, octal or hexadecimal; in MIDL its suffixes `L` and `U` are dropped.
    Integer(u64),
    Float(f64),
    /// The digits of a fixed-point number, with a point or not, without the `d` at its end.
    Fixed(String),
    /// A UUID of MIDL, in lower case.
    Uuid(String),
    Char {
        wide: bool,
        value: char,
    },
    Text {
        wide: bool,
        value: String,
    },
    /// One of `PUNCTUATION`.
    Punct(&'static str),
    /// `#` as the first thing of a line.
    Hash,
    /// What the preprocessor tells the parser.
    Directive(Directive),
    /// A mistake that was reported; the parser must not report the place again.
    Unknown,
    #[default]
    End,
}

/// What the preprocessor tells the parser.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Directive {
    /// `#pragma prefix` with its text.
    Prefix(String),
    /// `#pragma ID`: the parts of the name, of which an empty first one stands for a leading `::`, and the
    /// id.
    Id(Vec<(String, Span)>, String),
    /// `#pragma version`, as written, because 1.10 is not 1.1.
    Version(Vec<(String, Span)>, String),
    /// A pragma of ours whose words are for the parser.
    Mark(Mark, Vec<Token>),
    /// From here on tokens come from an included file.
    EnterFile,
    LeaveFile,
}

/// The pragmas of ours, which other compilers pass over: what they say has no word in a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// OMG IDL: `#pragma signal NAME(in TYPE name, ...)`.
    Signal,
    /// OMG IDL: `#pragma idempotent NAME`.
    Idempotent,
    /// MIDL: `#pragma exception NAME "identity"`.
    Exception,
    /// MIDL: `#pragma raises METHOD(EXCEPTION, ...)`.
    Raises,
    /// MIDL: `#pragma signals INTERFACE`, or `#pragma signals INTERFACE(METHOD, ...)`.
    Signals,
}

impl Mark {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Idempotent => "idempotent",
            Self::Exception => "exception",
            Self::Raises => "raises",
            Self::Signals => "signals",
        }
    }
}

/// All words that cannot be identifiers, whatever their case.
pub(crate) const KEYWORDS: &[&str] = &[
    "abstract",
    "any",
    "attribute",
    "boolean",
    "case",
    "char",
    "component",
    "const",
    "consumes",
    "context",
    "custom",
    "default",
    "double",
    "emits",
    "enum",
    "eventtype",
    "exception",
    "factory",
    "FALSE",
    "finder",
    "fixed",
    "float",
    "getraises",
    "home",
    "import",
    "in",
    "inout",
    "interface",
    "local",
    "long",
    "manages",
    "module",
    "multiple",
    "native",
    "Object",
    "octet",
    "oneway",
    "out",
    "primarykey",
    "private",
    "provides",
    "public",
    "publishes",
    "raises",
    "readonly",
    "sequence",
    "setraises",
    "short",
    "string",
    "struct",
    "supports",
    "switch",
    "TRUE",
    "truncatable",
    "typedef",
    "typeid",
    "typeprefix",
    "union",
    "unsigned",
    "uses",
    "ValueBase",
    "valuetype",
    "void",
    "wchar",
    "wstring",
];

/// Keywords of the component model: identifiers in every contract older than it, and taken as such here.
const COMPONENT_WORDS: &[&str] = &[
    "consumes",
    "emits",
    "factory",
    "finder",
    "import",
    "manages",
    "multiple",
    "primarykey",
    "provides",
    "publishes",
    "uses",
    "component",
    "home",
    "eventtype",
];

/// Longer ones before those that they begin with: the first that fits is taken.
pub(super) const PUNCTUATION: &[&str] = &[
    "::", "->", "<<", ">>", "&&", "||", "==", "!=", "<=", ">=", "{", "}", "(", ")", "[", "]", "<", ">", ";",
    ",", ":", "=", "+", "-", "*", "/", "%", "|", "^", "&", "~", "!", ".", "@",
];

/// Keywords younger than many contracts, which use such words with capitals as names.
pub(super) const YOUNG_WORDS: &[&str] = &[
    "abstract",
    "custom",
    "getraises",
    "local",
    "native",
    "private",
    "public",
    "setraises",
    "supports",
    "truncatable",
    "typeid",
    "typeprefix",
    "valuetype",
    "ValueBase",
];

/// The keyword that a word is or resembles, unless it is of the component model. The spelling of the keyword
/// tells the caller whether it is the word itself.
pub(crate) fn keyword(word: &str) -> Option<&'static str> {
    let known = KEYWORDS.iter().find(|known| known.eq_ignore_ascii_case(word))?;
    (!COMPONENT_WORDS.contains(known)).then_some(*known)
}

/// Whether a word is or resembles a keyword of any version of OMG IDL. Compilers of CORBA 3 take `EventType` for a misspelt
/// `eventtype`, so a printed name is escaped there too: CORBA 2.3 and later read `_EventType` as the name `EventType`.
pub(crate) fn is_keyword_somewhere(word: &str) -> bool {
    KEYWORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}
