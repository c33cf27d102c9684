//! SPNEGO's two kinds of tokens (RFC 4178 4.2), to and from octets.

use super::der::{self, ENUMERATED, OCTETS, OID, SEQUENCE, context};
use crate::security::Cause;
use everywire_model::{Failure, Kind};

/// Object identifiers, as the contents of their DER.
pub(super) const SPNEGO: &[u8] = &[0x2b, 6, 1, 5, 5, 2];
pub(super) const NTLM: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];
pub(super) const KERBEROS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
/// Kerberos as Windows 2000 misspelt it, and as everyone has offered it since.
pub(super) const KERBEROS_OF_WINDOWS: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 1, 2, 2];

/// Mechanisms that a list may name; more are no honest offer.
const MAX_MECHANISMS: usize = 32;

/// Whether a first token is Kerberos' own (RFC 4121 4.1), with no negotiation around it.
pub(super) fn is_kerberos(token: &[u8]) -> bool {
    der::inside(token, der::APPLICATION)
        .and_then(der::first)
        .is_some_and(|name| name.tag == OID && name.contents == KERBEROS)
}

pub(super) fn malformed(what: &str) -> Failure {
    Failure::new(Kind::Malformed, Cause::Peer, format!("SPNEGO token: {what}"))
}

/// The initiator's first token.
pub(super) struct Init<'t> {
    /// The list as it travelled: the codes are computed over it.
    pub(super) list: &'t [u8],
    /// What is in the list, most wanted first.
    pub(super) mechanisms: Vec<&'t [u8]>,
    /// The first token of the most wanted, sent on trust.
    pub(super) token: Option<&'t [u8]>,
}

impl<'t> Init<'t> {
    pub(super) fn read(token: &'t [u8]) -> Result<Self, Failure> {
        let frame = der::inside(token, der::APPLICATION).ok_or_else(|| malformed("no frame around it"))?;
        let name = der::first(frame).filter(|element| element.tag == OID && element.contents == SPNEGO);
        let body = name
            .and_then(|name| der::inside(name.behind, context(0)))
            .and_then(|init| der::inside(init, SEQUENCE))
            .ok_or_else(|| malformed("the frame holds no negTokenInit"))?;
        let (mut list, mut optimistic) = (None, None);
        for element in der::elements(body) {
            match element.tag {
                0xa0 => list = der::first(element.contents),
                0xa2 => optimistic = der::inside(element.contents, OCTETS),
                _ => {}
            }
        }
        let list =
            list.filter(|list| list.tag == SEQUENCE).ok_or_else(|| malformed("it lists no mechanisms"))?;
        let mechanisms: Vec<_> = der::elements(list.contents)
            .take(MAX_MECHANISMS + 1)
            .map(|element| (element.tag == OID).then_some(element.contents))
            .collect::<Option<_>>()
            .ok_or_else(|| malformed("a mechanism has no object identifier"))?;
        if mechanisms.len() > MAX_MECHANISMS {
            return Err(malformed("it lists too many mechanisms"));
        }
        Ok(Self { list: list.whole, mechanisms, token: optimistic })
    }
}

/// The list of mechanisms as it travels.
pub(super) fn write_list(mechanisms: &[&[u8]]) -> Vec<u8> {
    let names: Vec<u8> = mechanisms.iter().flat_map(|name| der::wrap(OID, name)).collect();
    der::wrap(SEQUENCE, &names)
}

/// The initiator's first token.
pub(super) fn write_init(list: &[u8], token: &[u8]) -> Vec<u8> {
    let mut body = der::wrap(context(0), list);
    body.extend(der::wrap(context(2), &der::wrap(OCTETS, token)));
    let init = der::wrap(context(0), &der::wrap(SEQUENCE, &body));
    der::wrap(der::APPLICATION, &[der::wrap(OID, SPNEGO), init].concat())
}

/// How far the two have come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Completed,
    Incomplete,
    Rejected,
    /// Incomplete, and codes over the list have to follow.
    WantsMic,
}

/// Every token but the first.
#[derive(Default)]
pub(super) struct Reply<'t> {
    pub(super) progress: Option<Progress>,
    pub(super) mechanism: Option<&'t [u8]>,
    pub(super) token: Option<&'t [u8]>,
    pub(super) mic: Option<&'t [u8]>,
}

impl<'t> Reply<'t> {
    pub(super) fn read(token: &'t [u8]) -> Result<Self, Failure> {
        let body = der::inside(token, context(1))
            .and_then(|reply| der::inside(reply, SEQUENCE))
            .ok_or_else(|| malformed("it is no negTokenResp"))?;
        let mut reply = Self::default();
        for element in der::elements(body) {
            match element.tag {
                0xa0 => reply.progress = Some(progress(element.contents)?),
                0xa1 => reply.mechanism = der::inside(element.contents, OID),
                0xa2 => reply.token = der::inside(element.contents, OCTETS),
                0xa3 => reply.mic = der::inside(element.contents, OCTETS),
                _ => {}
            }
        }
        Ok(reply)
    }

    pub(super) fn write(&self) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(progress) = self.progress {
            let value = match progress {
                Progress::Completed => 0,
                Progress::Incomplete => 1,
                Progress::Rejected => 2,
                Progress::WantsMic => 3,
            };
            body.extend(der::wrap(context(0), &der::wrap(ENUMERATED, &[value])));
        }
        let parts = [(1, OID, self.mechanism), (2, OCTETS, self.token), (3, OCTETS, self.mic)];
        for (number, tag, part) in parts {
            if let Some(part) = part {
                body.extend(der::wrap(context(number), &der::wrap(tag, part)));
            }
        }
        der::wrap(context(1), &der::wrap(SEQUENCE, &body))
    }
}

fn progress(bytes: &[u8]) -> Result<Progress, Failure> {
    match der::inside(bytes, ENUMERATED) {
        Some([0]) => Ok(Progress::Completed),
        Some([1]) => Ok(Progress::Incomplete),
        Some([2]) => Ok(Progress::Rejected),
        Some([3]) => Ok(Progress::WantsMic),
        _ => Err(malformed("it says nothing sensible on how far the two have come")),
    }
}
