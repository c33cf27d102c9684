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
use everywire_model::contract::{Attribute, Contract, Definition, Interface, Operation, Signal};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Hold, Reference, Request, Shape};
use library::Library;
use std::borrow::Cow;
use std::sync::Arc;

/// GUIDKIND_DEFAULT_SOURCE_DISP_IID.
const DEFAULT_SOURCE: u32 = 1;

/// What is told of an operation or a signal that has something that does not travel on this wire, such as a descriptor.
const UNSAID: &str = "It cannot be called on this wire: it has a value that does not travel here.";

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
    let text = match midl::print(&contract) {
        Ok(text) => text,
        Err(_) => midl::print(&sayable(&contract)).map_err(|_| refused(E_NOTIMPL))?,
    };
    request.reply::<_, Failure>(Ok((text, own)))
}

/// The contract without what MIDL cannot say. An operation keeps its number, and has no parameters: it cannot be called on this
/// wire anyway. So does a signal.
fn sayable(contract: &Contract) -> Contract {
    let definitions = contract.definitions.iter().map(|definition| match definition {
        Definition::Interface(interface) => Definition::Interface(sayable_interface(interface)),
        other => other.clone(),
    });
    Contract { definitions: definitions.collect() }
}

fn sayable_interface(interface: &Hold<Interface>) -> Hold<Interface> {
    let bare = Interface {
        bases: Cow::default(),
        operations: Cow::default(),
        attributes: Cow::default(),
        signals: Cow::default(),
        inherited: 0,
        ..(**interface).clone()
    };
    let is_said = |alone: Interface| {
        let definitions = vec![Definition::Interface(Hold::new(alone))];
        midl::print(&Contract { definitions }).is_ok()
    };
    let mut out = (**interface).clone();
    out.bases = interface.bases.iter().map(sayable_interface).collect();
    let mut unsaid = Vec::new();
    for (index, operation) in out.operations.to_mut().iter_mut().enumerate() {
        if !is_said(Interface { operations: vec![operation.clone()].into(), ..bare.clone() }) {
            unsaid.push(index);
            let named = Operation::new(operation.name.clone(), Vec::new(), Shape::Void);
            let (label, id) = (operation.label.clone(), operation.id);
            *operation = Operation { label, id, doc: UNSAID.into(), ..named };
        }
    }
    let is_whole = |attribute: &Attribute| {
        let has = |index: usize| unsaid.contains(&index);
        !has(attribute.getter) && !attribute.setter.is_some_and(has)
    };
    out.attributes.to_mut().retain(is_whole);
    for signal in out.signals.to_mut().iter_mut().filter(|signal| signal.sink.is_none()) {
        if !is_said(Interface { signals: vec![signal.clone()].into(), ..bare.clone() }) {
            let label = signal.label.clone();
            *signal = Signal { label, doc: UNSAID.into(), ..Signal::new(signal.name.clone(), Vec::new()) };
        }
    }
    Hold::new(out)
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
