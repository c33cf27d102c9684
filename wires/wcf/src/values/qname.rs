//! Qualified names.
//!
//! Clark notation writes both parts as one text, so identities of the model and headers can hold a
//! qualified name without a prefix that somebody would have to declare.

use std::borrow::Cow;
use std::fmt;

/// A name and its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QName {
    /// The namespace; may be empty.
    pub namespace: Cow<'static, str>,
    /// The name without a prefix.
    pub local: Cow<'static, str>,
}

impl QName {
    /// A name in a namespace.
    pub fn new(namespace: impl Into<Cow<'static, str>>, local: impl Into<Cow<'static, str>>) -> Self {
        Self { namespace: namespace.into(), local: local.into() }
    }

    /// Reads Clark notation: `{namespace}local`, or `local` alone.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, local) = if text.starts_with('{') { clark(text)? } else { ("", text) };
        if local.is_empty() { None } else { Some(Self::new(namespace.to_owned(), local.to_owned())) }
    }
}

impl fmt::Display for QName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.local)
        } else {
            write!(f, "{{{}}}{}", self.namespace, self.local)
        }
    }
}

/// Namespace and local part of a name in Clark notation.
pub(super) fn clark(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.split_once('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clark_notation_reads_and_prints() {
        for (text, namespace, local) in [("{urn:a}B", "urn:a", "B"), ("B", "", "B"), ("{}B", "", "B")] {
            assert_eq!(QName::parse(text), Some(QName::new(namespace, local)), "{text}");
        }
        assert_eq!(QName::new("urn:a", "B").to_string(), "{urn:a}B");
        assert_eq!([QName::parse(""), QName::parse("{urn:a}"), QName::parse("{urn:a")], [None, None, None]);
    }
}
