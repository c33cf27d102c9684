//! Object references between a stub and the node: what an OBJREF becomes, and what it is made of.

use crate::bindings::RESOLVER_PORT;
use crate::exporter::Correspondence;
use crate::objref::ObjRef;
use crate::tags::TAG_OBJREF;
use crate::violations::{Violation, unsupported};
use bytes::Bytes;
use everywire_model::visit::Visit;
use everywire_model::{Body, Profile, Reference, WireState};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Turns OBJREFs into references and references into OBJREFs. Without one, an OBJREF is kept as it came, and only such
/// references can be written.
/// A node implements it by `Correspondence`; `unmarshal` there counts the references that the OBJREF grants,
/// and `marshal` grants references, which the peer has to give back by RemRelease (MS-DCOM 3.1.1.5.6).
pub trait References: Send + Sync {
    /// The reference that an OBJREF (MS-DCOM 2.2.18), found `offset` bytes into the values, stands for. It runs whenever
    /// the OBJREF is read, so for a body that is read twice it runs twice.
    ///
    /// # Errors
    /// The OBJREF is broken, or not to be had.
    fn unmarshal(&self, objref: Bytes, offset: usize) -> Visit<Reference>;

    /// The OBJREF that stands for a reference: what it grants, the receiver holds.
    ///
    /// # Errors
    /// The wire cannot say where the object is.
    fn marshal(&self, reference: &Reference) -> Visit<Bytes>;

    /// How values are written beside the references, as [`Body::dialect`] says it.
    fn dialect(&self) -> u32 {
        0
    }
}

/// Nothing but a [`References`] as what a wire keeps for a node, for bodies that belong to none.
#[derive(Clone)]
pub struct ReferencesState(pub Arc<dyn References>);

impl fmt::Debug for ReferencesState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

impl WireState for ReferencesState {}

/// What the connection that a body came by makes of OBJREFs.
pub(super) fn references_of(body: &Body) -> Option<&dyn References> {
    let wire_state: &dyn Any = &**body.wire_state()?;
    match wire_state.downcast_ref::<Correspondence>() {
        Some(correspondence) => Some(correspondence),
        None => wire_state.downcast_ref::<ReferencesState>().map(|hook| &*hook.0),
    }
}

/// What is done without a node: the whole OBJREF stays in a component of the profile.
pub(super) fn read(body: &Body, objref: Bytes, offset: usize) -> Visit<Reference> {
    match references_of(body) {
        Some(references) => references.unmarshal(objref, offset),
        None => kept(objref, offset),
    }
}

/// The counterpart: without a node only references that keep a whole OBJREF can be written.
pub(super) fn write(references: Option<&Arc<dyn References>>, reference: &Reference) -> Visit<Bytes> {
    match references {
        Some(references) => references.marshal(reference),
        None => of_component(reference).cloned(),
    }
}

/// A reference that keeps the whole OBJREF in a component, so that it can be passed on.
fn kept(raw: Bytes, offset: usize) -> Visit<Reference> {
    let (objref, _) = ObjRef::parse(&raw).map_err(|_| Violation::BadObjref.at(offset))?;
    let (key, endpoints) = match objref.standard() {
        Some((std, resolver)) => {
            (Bytes::copy_from_slice(&std.ipid.to_bytes_le()), resolver.endpoints(RESOLVER_PORT))
        }
        None => (Bytes::new(), Vec::new()),
    };
    let components = vec![(TAG_OBJREF, raw)];
    let profile =
        Profile { wire: "dcom", version: crate::VERSION, endpoints, key, components, ..Profile::default() };
    Ok(Reference { type_id: objref.iid().to_string(), profiles: vec![profile], foreign: Vec::new() })
}

/// The OBJREF of a reference that came over this wire.
fn of_component(reference: &Reference) -> Visit<&Bytes> {
    let mut profiles = reference.profiles.iter().filter(|profile| profile.wire == "dcom");
    profiles
        .find_map(|profile| profile.component(TAG_OBJREF))
        .ok_or_else(|| unsupported("references to objects of other wires"))
}
