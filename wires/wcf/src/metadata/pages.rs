//! The pages of a service.
//!
//! They are made anew for each request, from what is exported at that moment. Queries are those of WCF:
//! `?wsdl` is the whole description, with what it imports under `?wsdl=wsdlN` and `?xsd=xsdN`.

use super::service::Service;
use everywire_model::Objects;
use everywire_model::reference::escape;
use quick_xml::escape::escape as html;

const XML: &str = "text/xml; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";

/// A page of metadata, as HTTP carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `text/xml; charset=utf-8` or `text/html; charset=utf-8`.
    pub content_type: &'static str,
    /// The page.
    pub body: String,
}

/// The page that a GET for this key and query gets, if there is one; `addresses` begins with the URL that was asked for,
/// without its query.
#[must_use]
pub fn page(objects: &dyn Objects, key: &[u8], query: &str, addresses: &[String]) -> Option<Page> {
    let service = Service::of(objects, key)?;
    let asked = addresses.first().map_or("", String::as_str);
    let query = query.to_ascii_lowercase();
    let (what, number) = query.split_once('=').unwrap_or((&query, ""));
    if query.is_empty() {
        return Some(Page { content_type: HTML, body: help(&service, asked) });
    }
    let description = service.describe(Some(asked).filter(|asked| !asked.is_empty()));
    let number = |prefix: &str| number.strip_prefix(prefix).and_then(|number| number.parse::<usize>().ok());
    let document = match what {
        "wsdl" if query == "wsdl" => description.documents.into_iter().next(),
        "singlewsdl" => description.documents.into_iter().next(),
        "wsdl" => description.documents.into_iter().nth(number("wsdl")?),
        "xsd" => description.schemas.into_iter().nth(number("xsd")?),
        _ => None,
    };
    document.map(|(_, body)| Page { content_type: XML, body })
}

/// A page for people: what is served here and where its description is.
fn help(service: &Service, asked: &str) -> String {
    let mut body = String::from("<!DOCTYPE html>\n<html><head><title>Services</title></head><body>\n");
    // Scheme and host as the reader spells them.
    let base = asked.split_once("://").map_or("", |(scheme, rest)| {
        let host = rest.split('/').next().unwrap_or_default();
        asked.get(..scheme.len() + 3 + host.len()).unwrap_or_default()
    });
    for (key, names) in service.names() {
        let address = html(format!("{base}/{}", escape(key)));
        body.push_str(&format!("<h1>{address}</h1>\n<ul>\n"));
        for name in names {
            body.push_str(&format!("<li>{} ({})</li>\n", html(&name.local), html(&name.namespace)));
        }
        body.push_str(&format!(
            "</ul>\n<p>Description: <a href=\"{address}?wsdl\">{address}?wsdl</a>, in one file \
             <a href=\"{address}?singleWsdl\">{address}?singleWsdl</a></p>\n"
        ));
    }
    body.push_str("</body></html>\n");
    body
}
