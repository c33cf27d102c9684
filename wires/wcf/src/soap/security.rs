//! Who calls, said in the envelope: where the wire's security meets the envelopes.
//!
//! The header is read as a document of its own, without the declarations around it. That works because the
//! readers do not resolve prefixes, and names are compared without their namespaces.

use super::head::Head;
use super::names::SECURITY;
use super::{Dialect, Form};
use crate::dictionary::Words;
use crate::nbfx;
use crate::security;
use crate::settings::Settings;
use crate::text;
use crate::values::ReaderQuotas;
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, Kind};
use std::time::SystemTime;

/// The header of a request.
///
/// # Errors
/// There are no credentials, or nothing that keeps them from others' ears.
pub(super) fn request(form: Form, settings: &Settings) -> Visit<Vec<u8>> {
    Ok(security::username(settings, SystemTime::now())?.write(form, 's'))
}

/// The header of a reply.
pub(super) fn reply(form: Form) -> Vec<u8> {
    security::timestamp(SystemTime::now()).write(form, 's')
}

/// Checks who a request says that it is from.
///
/// # Errors
/// It does not say so, its time is over, or the password is wrong.
pub(super) fn check(
    dialect: Dialect,
    head: &Head<'_>,
    document: &[u8],
    words: &Words,
    quotas: &ReaderQuotas,
    settings: &Settings,
) -> Visit<()> {
    let Some(piece) = head.security.clone().and_then(|range| document.get(range)) else {
        let what = "the message does not say who sends it";
        return Err(Failure::new(Kind::Refused, Initiator::Peer, what)
            .with_code(format!("{{{SECURITY}}}InvalidSecurity")));
    };
    let header = match dialect.form {
        Form::Text => {
            let mut reader = text::Reader::new(piece, quotas);
            // The start of `Security` itself.
            reader.next()?;
            security::Header::read_text(&mut reader)?
        }
        Form::Binary => {
            let mut reader = nbfx::Reader::new(piece);
            reader.read()?;
            security::Header::read_binary(&mut reader, words)?
        }
    };
    header.check(settings, SystemTime::now()).map(drop)
}
