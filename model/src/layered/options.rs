//! Which layers lie over a transport, and what an address asks of them.

use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::percent::{escape, unescape_text};
use std::collections::BTreeMap;
use std::fmt;

/// The name of TLS.
pub const TLS: &str = "tls";

/// The layers that an address can ask for: `SCHEME+NAME://`.
pub const NAMES: &[&str] = &[TLS];

/// A layer over an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layered {
    /// The layer's name: one of [`NAMES`].
    pub layer: &'static str,
    /// What the address asks of it.
    pub options: LayerOptions,
    /// What it lies over.
    pub over: Endpoint,
}

impl Layered {
    /// Who may call there and who may listen in, as far as the address says: one line for people.
    pub fn protection(&self) -> String {
        let server = match self.options.get("insecure") {
            Some("on") => {
                "the server's certificate is NOT checked (insecure=on): whoever is on the way may read and change everything"
            }
            _ => "the server proves who it is by its certificate",
        };
        let client = match self.options.get("clients").or_else(|| self.options.get("cert")) {
            Some(_) => "callers prove who they are by certificates",
            None => "who calls is not known, unless the wire or the server asks",
        };
        format!("{}: encrypted; {server}; {client}", self.layer.to_uppercase())
    }
}

/// Options of a layer, as an address says them: names and values, each name once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct LayerOptions(BTreeMap<String, String>);

impl LayerOptions {
    /// Reads `NAME=VALUE&NAME=VALUE`; in a value `%xx` stands for the byte xx. Which names mean something is the layer's to say.
    ///
    /// # Errors
    /// An option has no value, a value is no text, or a name stands there twice.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |what: String| Failure::bad_reference(what);
        let mut found: Vec<(&str, String)> = Vec::new();
        for option in text.split('&').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| wrong(format!("the option `{option}` has no `=`")))?;
            let value =
                unescape_text(value).ok_or_else(|| wrong(format!("the value of `{name}=` is no text")))?;
            found.push((name, value));
        }
        Self::of(found)
    }

    /// These names and values.
    ///
    /// # Errors
    /// A name stands there twice.
    pub fn of(options: Vec<(&str, String)>) -> Result<Self, Failure> {
        let mut found = BTreeMap::new();
        for (name, value) in options {
            if found.insert(name.to_owned(), value).is_some() {
                let what = format!("the option `{name}=` stands there twice");
                return Err(Failure::bad_reference(what));
            }
        }
        Ok(Self(found))
    }

    /// The value of an option.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// These, and those of the others whose names are not among these.
    #[must_use]
    pub fn or(mut self, others: &Self) -> Self {
        for (name, value) in &others.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

impl fmt::Display for LayerOptions {
    /// As [`LayerOptions::parse`] reads them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.iter().enumerate() {
            let mark = if number == 0 { "" } else { "&" };
            write!(f, "{mark}{name}={}", escape(value.as_bytes()).replace('&', "%26"))?;
        }
        Ok(())
    }
}

impl Endpoint {
    /// What lies below all layers.
    pub fn stream(&self) -> &Self {
        match self {
            Self::Layered(layered) => layered.over.stream(),
            plain => plain,
        }
    }

    /// The uppermost layer.
    pub fn layer(&self) -> Option<&Layered> {
        match self {
            Self::Layered(layered) => Some(layered),
            _ => None,
        }
    }

    /// The same layers over another stream.
    #[must_use]
    pub fn over(&self, stream: Self) -> Self {
        match self {
            Self::Layered(layered) => {
                Self::Layered(Box::new(Layered { over: layered.over.over(stream), ..(**layered).clone() }))
            }
            _ => stream,
        }
    }

    /// The same endpoint as others know it: options of a layer say what this side has and whom it trusts.
    #[must_use]
    pub fn bare(&self) -> Self {
        match self {
            Self::Layered(layered) => {
                Self::layered(layered.layer, LayerOptions::default(), layered.over.bare())
            }
            plain => plain.clone(),
        }
    }

    /// A layer over this endpoint.
    pub fn layered(layer: &'static str, options: LayerOptions, over: Self) -> Self {
        Self::Layered(Box::new(Layered { layer, options, over }))
    }

    /// Whether both are one place, whatever the options of layers say.
    pub fn is_at(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Layered(one), Self::Layered(other)) => {
                one.layer == other.layer && one.over.is_at(&other.over)
            }
            (one, other) => one == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_compare_and_print() {
        let one = LayerOptions::parse("key=/k&cert=/a%26b&").unwrap();
        let other = LayerOptions::parse("cert=/a%26b&key=/k").unwrap();
        assert_eq!(one, other);
        assert_eq!(one.get("cert"), Some("/a&b"));
        assert_eq!(one.to_string(), "cert=/a%26b&key=/k");
        assert_eq!(LayerOptions::parse(&one.to_string()).unwrap(), one);
        let more = LayerOptions::parse("key=/other&ca=/c").unwrap();
        assert_eq!(one.or(&more).to_string(), "ca=/c&cert=/a%26b&key=/k");
        for (text, word) in [("ca", "no `=`"), ("ca=%zz", "no text"), ("ca=a&ca=b", "twice")] {
            let failure = LayerOptions::parse(text).unwrap_err();
            assert!(failure.message().contains(word), "{failure}");
        }
    }

    #[test]
    fn a_layer_is_the_same_place_whatever_its_options_say() {
        let tcp = |port| Endpoint::Tcp { host: "h".into(), port };
        let over =
            |options: &str, port| Endpoint::layered(TLS, LayerOptions::parse(options).unwrap(), tcp(port));
        assert!(over("ca=/a", 1).is_at(&over("", 1)) && over("ca=/a", 1).bare() == over("", 1));
        assert!(!over("", 1).is_at(&over("", 2)) && !over("", 1).is_at(&tcp(1)));
        assert_eq!(over("ca=/a", 1).over(tcp(2)), over("ca=/a", 2));
        assert_eq!(over("ca=/a", 1).to_string(), "tls:tcp:h:1");
    }
}
