//! Pages of a service that a hop passes on: how one is asked for, and the addresses in it.
//!
//! A hop without a contract is asked for a page as for an operation whose name no action has: `GET `, and the address as whoever asks
//! spells it. Whoever asks the service for it puts that address in the place of the service's own, so that what reads the page
//! comes back to the hop.

use crate::text::escape_attribute;
use bytes::Bytes;

/// What stands before the address: an action has no blank in it.
const GET: &str = "GET ";

/// The longest address of a page, in bytes. It becomes the name of an operation, which handlers may keep.
const LONGEST: usize = 4 << 10;

/// Whether the query of a page is that of a description.
pub(crate) fn describes(query: &str) -> bool {
    let query = query.to_ascii_lowercase();
    matches!(&*query, "wsdl" | "singlewsdl") || query.starts_with("wsdl=") || query.starts_with("xsd=")
}

/// The operation that asks for a page of the service at an address; nothing if that is too long.
pub(crate) fn operation(url: &str, query: &str) -> Option<Bytes> {
    (url.len() + query.len() < LONGEST).then(|| Bytes::from(format!("{GET}{url}?{query}")))
}

/// The address and the query that an operation asks for, if it asks for a page.
pub(crate) fn asked(operation: &[u8]) -> Option<(&str, &str)> {
    let wanted = std::str::from_utf8(operation).ok()?.strip_prefix(GET)?;
    wanted.split_once('?').filter(|(_, query)| describes(query))
}

/// A page in which the addresses of the service, which has this path wherever it says that it is, are another one.
pub(crate) fn readdress(page: &str, path: &str, url: &str) -> String {
    let mut escaped = Vec::new();
    escape_attribute(url, &mut escaped);
    let url = String::from_utf8_lossy(&escaped);
    let mut out = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((before, from)) = rest.find("http").and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let led = out.trim_end();
        // What names a namespace is no address.
        let is_address = ["ocation=\"", "ocation='", "Address>"].iter().any(|before| led.ends_with(before));
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '?' | '#');
        let len = from.find(ends).unwrap_or(from.len());
        let (address, behind) = from.split_at_checked(len).unwrap_or((from, ""));
        if is_address && path_of(address).is_some_and(|held| same(held, path)) {
            out.push_str(&url);
            rest = behind;
        } else {
            out.push_str("http");
            rest = from.get("http".len()..).unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

/// The path of an address, with its slash.
fn path_of(address: &str) -> Option<&str> {
    let (scheme, rest) = address.split_once("://")?;
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    matches!(scheme, "http" | "https").then_some(path)
}

/// Paths are compared as WCF does: without regard to case or a slash at the end.
fn same(left: &str, right: &str) -> bool {
    let trimmed = |path: &str| path.strip_suffix('/').unwrap_or(path).len();
    let parts = (left.get(..trimmed(left)), right.get(..trimmed(right)));
    matches!(parts, (Some(left), Some(right)) if left.eq_ignore_ascii_case(right))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_service_lead_to_the_hop_and_nothing_else_does() {
        let page = r#"<d xmlns="http://inner:8/Orders" targetNamespace="http://tempuri.org/"><import
            location="http://inner:8/orders?wsdl=wsdl0"/><import schemaLocation='https://other/Orders/?xsd=xsd0'/>
            <address location="http://inner:8/Orders"/><wsa:Address> http://inner/Orders</wsa:Address>
            <address location="http://inner:8/Others"/><text>http://inner:8/Orders</text></d>"#;
        let read = readdress(page, "/Orders", "http://edge:1/a&b");
        assert_eq!(read.matches("http://edge:1/a&amp;b").count(), 4, "{read}");
        for kept in [
            "xmlns=\"http://inner:8/Orders\"",
            "http://tempuri.org/",
            "<text>http://inner:8/Orders<",
            "8/Others\"",
        ] {
            assert!(read.contains(kept), "{kept}: {read}");
        }
        for new in ["b?wsdl=wsdl0", "b?xsd=xsd0'", "location=\"http://edge:1/a&amp;b\""] {
            assert!(read.contains(new), "{new}: {read}");
        }
        // The root of a host is a service's, too.
        let root = readdress(
            r#"<a location="http://inner:8"/><b location="http://tempuri.org/x"/>"#,
            "/",
            "http://edge/",
        );
        assert_eq!(root, r#"<a location="http://edge/"/><b location="http://tempuri.org/x"/>"#);
    }

    #[test]
    fn only_descriptions_are_asked_for() {
        let asks = operation("http://edge/Orders", "xsd=xsd0").unwrap();
        assert_eq!(asked(&asks), Some(("http://edge/Orders", "xsd=xsd0")));
        assert_eq!(operation(&"x".repeat(LONGEST), "wsdl"), None);
        for other in [
            &b"GET http://edge/Orders"[..],
            b"GET http://edge/Orders?delete=all",
            b"http://edge?wsdl",
            b"GET \xff?wsdl",
        ] {
            assert_eq!(asked(other), None);
        }
        assert!(describes("WSDL") && describes("singleWsdl") && !describes("") && !describes("wsdlx"));
    }
}
