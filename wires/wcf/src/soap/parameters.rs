//! The reference parameters of an address that answers go to: they become headers of the answer (WS-Addressing 1.0 SOAP
//! Binding, 2.3; Core, 3.4), so that whoever gets it knows whose it is.
//!
//! They are kept as text until the answer is written, which may be in another message than the next one; so their size is
//! bounded.

use super::cursor::{Cursor, CursorEvent, Element};
use super::names::ADDRESSING;
use super::outline::is_own;
use super::{Form, Soap};
use crate::markup;
use crate::text::Writer;
use everywire_model::visit::Visit;
use std::borrow::Cow;

/// Bytes of all that are kept, with the namespaces that each declares.
pub(super) const LONGEST: usize = 2048;

/// An endpoint reference.
#[derive(Debug, Default)]
pub(super) struct Endpoint<'a> {
    /// Where to; empty if it does not say.
    pub(super) address: Cow<'a, str>,
    /// Its parameters as headers; empty if there are none.
    pub(super) headers: String,
    /// Whether there are more of them than are kept.
    pub(super) is_long: bool,
}

/// What is echoed, as it is written, and where faults go, which may have an address of their own.
#[derive(Debug, Default)]
pub(super) struct EchoedHeaders {
    /// In an answer.
    pub(super) reply: Vec<u8>,
    /// In a fault.
    pub(super) fault: Vec<u8>,
    /// Where faults are wanted, if not back along the channel.
    pub(super) fault_to: Option<Box<str>>,
    /// Whether nobody wants answers that are no faults.
    pub(super) drops_reply: bool,
    /// Whether nobody wants faults.
    pub(super) drops_fault: bool,
}

impl<'a> Endpoint<'a> {
    /// Reads the header that was entered, up to its end.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Visit<Self> {
        let (mut endpoint, mut is_told, mut out) = (Self::default(), false, Writer::new());
        while let Some(child) = cursor.child()? {
            if child.is(ADDRESSING, "Address") && !is_told {
                (endpoint.address, is_told) = (cursor.trimmed()?, true);
            } else if child.is(ADDRESSING, "ReferenceParameters") {
                while let Some(block) = cursor.child()? {
                    // What each connection says itself nobody else says for it.
                    let own = |soap| is_own(&block.namespace, soap);
                    if endpoint.is_long || own(Soap::V11) || own(Soap::V12) {
                        cursor.skip()?;
                        continue;
                    }
                    copy(cursor, block, &mut out)?;
                    endpoint.is_long = out.len() > LONGEST;
                }
            } else {
                cursor.skip()?;
            }
        }
        if !endpoint.is_long {
            endpoint.headers = String::from_utf8(out.into_bytes()).unwrap_or_default();
        }
        Ok(endpoint)
    }
}

/// Headers in the form of a message.
pub(super) fn written(form: Form, headers: &str) -> Visit<Vec<u8>> {
    match form {
        Form::Text => Ok(headers.as_bytes().to_vec()),
        Form::Binary => markup::binary(headers, true),
    }
}

/// Copies an element, which says of itself what it is; it stops where that is too long.
fn copy<'a>(cursor: &mut Cursor<'a>, block: Element<'a>, out: &mut Writer) -> Visit<()> {
    start(&block, out);
    out.xmlns("wsa", ADDRESSING);
    out.attribute("wsa", "IsReferenceParameter", "true");
    let mut open = vec![block.local];
    while let Some(local) = open.last() {
        if out.len() > LONGEST {
            for _ in &open {
                cursor.skip()?;
            }
            return Ok(());
        }
        match cursor.next()? {
            CursorEvent::Open(element) => {
                start(&element, out);
                open.push(element.local);
            }
            CursorEvent::Text(text) => out.text(&text.into_text()),
            CursorEvent::Close => {
                out.end("", local);
                open.pop();
            }
            CursorEvent::End => return Ok(()),
        }
    }
    Ok(())
}

/// A start tag that declares what it needs.
fn start(element: &Element<'_>, out: &mut Writer) {
    out.start("", &element.local);
    out.xmlns("", &element.namespace);
    let said = |namespace: &str, local: &str| namespace == ADDRESSING && local == "IsReferenceParameter";
    let others = element.attributes.iter().filter(|held| !said(&held.namespace, &held.local));
    for (number, attribute) in others.enumerate() {
        if attribute.namespace.is_empty() {
            out.attribute("", &attribute.local, &attribute.value);
        } else {
            let prefix = format!("p{number}");
            out.xmlns(&prefix, &attribute.namespace);
            out.attribute(&prefix, &attribute.local, &attribute.value);
        }
    }
}
