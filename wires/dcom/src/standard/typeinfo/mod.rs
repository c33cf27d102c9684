//! Type information (MS-OAUT 3.7, 3.11): what an object is, for those who ask by IDispatch and IProvideClassInfo.
//!
//! Windows, Visual Basic and scripts ask ITypeInfo; programs of this implementation ask for the whole
//! contract as MIDL in one call (`answer_contract`), which type information could not tell: structs,
//! directions, several interfaces.

mod info;
mod lib;
pub(crate) mod library;
mod pointers;
pub(crate) mod reading;
#[cfg(test)]
mod tests;
pub(crate) mod types;

use super::contracts::PROVIDE_CLASS_INFO2;
use super::guid::Guid;
use super::serving::{hand_out, own_servants, principal, refused};
use crate::exporter::Exporter;
use crate::hresult::{E_INVALIDARG, E_NOTIMPL};
use crate::iid_of;
use everywire_idl::midl;
use everywire_model::contract::{Contract, Definition, Interface};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Reference, Request};
use library::Library;
use std::sync::Arc;

/// GUIDKIND_DEFAULT_SOURCE_DISP_IID.
const DEFAULT_SOURCE: u32 = 1;

/// The description of the object under a key, as it is called by name.
///
/// # Errors
/// The principal has too many objects.
pub(super) fn of_object(exporter: &Exporter, key: &[u8], principal: &str) -> Result<Reference, Failure> {
    Library::of(exporter, key).pointer(exporter, Some(1), principal)
}

/// Answers IProvideClassInfo and IProvideClassInfo2, which begins with it.
pub(super) fn answer_class_info(exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
    let library = Library::of(exporter, request.key());
    match request.index() {
        0 => hand_out(request, library.pointer(exporter, Some(0), &principal(request))?),
        1 => {
            let (kind,) = request.arguments::<(u32,)>()?;
            if kind != DEFAULT_SOURCE {
                return Err(refused(E_INVALIDARG));
            }
            let source = library.default_source().ok_or_else(|| refused(E_NOTIMPL))?;
            request.reply::<_, Failure>(Ok((Guid(source),)))
        }
        _ => Err(no_operation(&PROVIDE_CLASS_INFO2)),
    }
}

/// Answers [`super::contracts::CONTRACT`]: the whole contract of an object.
pub(super) fn answer_contract(exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
    let (mut contract, mut own) = (Contract::default(), Vec::new());
    for servant in own_servants(exporter, request.key()) {
        own.push(Guid(iid_of(servant.interface())));
        define(&Hold::new(servant.interface().clone()), &mut contract);
    }
    let text = midl::print(&contract).map_err(|_| refused(E_NOTIMPL))?;
    request.reply::<_, Failure>(Ok((text, own)))
}

/// An interface, after those that it is derived from and those that it calls, each once.
fn define(interface: &Hold<Interface>, contract: &mut Contract) {
    if contract.interfaces().any(|held| held.name == interface.name) {
        return;
    }
    for base in interface.bases.iter() {
        define(base, contract);
    }
    for signal in interface.signals.iter() {
        if let Some((sink, _)) = &signal.sink {
            define(sink, contract);
        }
    }
    contract.definitions.push(Definition::Interface(interface.clone()));
}
