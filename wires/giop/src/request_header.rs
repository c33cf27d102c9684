//! The header of a request, as it is written (CORBA 3.3 part 2, sections 9.4.2 and 9.4.2.1). Nothing here knows a connection.

use crate::addressing_trials::Addressing;
use crate::cdr::{CdrWriter, WriteCdr};
use crate::ior;
use everywire_model::{Profile, Reference};

/// Writes the header of a request. That of 1.2 has the target and the contexts behind the number, that of 1.0
/// and 1.1 has the contexts in front and a principal, which nobody reads, at its end. The response flags are 3
/// (SYNC_WITH_TARGET, an answer comes) or 0 (no answer).
#[inline]
#[allow(clippy::too_many_arguments)]
pub(crate) fn put_header(
    put: &mut CdrWriter<'_>,
    minor: u8,
    id: u32,
    is_asked: bool,
    profile: &Profile,
    addressing: Addressing,
    operation: &[u8],
    contexts: impl FnOnce(&mut CdrWriter<'_>),
    principal: &[u8],
) {
    if minor >= 2 {
        put.u32(id);
        put.out.extend_from_slice(&[if is_asked { 3 } else { 0 }, 0, 0, 0]);
        put_target(profile, addressing, put);
        put.string(operation);
        return contexts(put);
    }
    contexts(put);
    put.u32(id);
    put.u8(is_asked.into());
    if minor == 1 {
        put.out.extend_from_slice(&[0; 3]);
    }
    put.octets(&profile.key);
    put.string(operation);
    put.octets(principal);
}

/// Names the target in GIOP 1.2 (section 9.4.2.1): by its key, its profile, or a reference of that profile
/// alone. A key is what every server takes; the others are written when it asks for them (`addressing`).
#[inline]
pub(crate) fn put_target(profile: &Profile, addressing: Addressing, put: &mut CdrWriter<'_>) {
    match addressing {
        Addressing::Key => {
            put.u16(0);
            put.octets(&profile.key);
        }
        Addressing::Profile => put_profile(profile, put),
        Addressing::Reference => put_reference(profile, put),
    }
}

#[cold]
fn put_profile(profile: &Profile, put: &mut CdrWriter<'_>) {
    put.u16(1);
    put.u32(ior::TAG_INTERNET_IOP);
    ior::put_profile(profile, put);
}

#[cold]
fn put_reference(profile: &Profile, put: &mut CdrWriter<'_>) {
    put.u16(2);
    put.u32(0);
    let reference = Reference { profiles: vec![profile.clone()], ..Reference::default() };
    ior::put(Some(&reference), None, put);
}
