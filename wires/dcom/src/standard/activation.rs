//! IRemoteActivation, IRemoteSCMActivator (MS-DCOM 3.1.2.5.2), and class objects. The servants read and write whole stubs,
//! HRESULTs included; IClassFactory's parameters are ordinary ones.

use super::contracts::CLASS_FACTORY;
pub use super::contracts::{REMOTE_ACTIVATION, REMOTE_SCM_ACTIVATOR};
use super::guid::Guid;
use super::serving::{SystemServant, hand_out, principal, refused};
use crate::VERSION;
use crate::activation::{Activated, Activation, remote, scm};
use crate::exporter::{Correspondence, Exporter};
use crate::stub::Get;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request, Servant};
use std::sync::Arc;
use uuid::Uuid;

/// IRemoteSCMActivator.
pub const REMOTE_SCM_ACTIVATOR_ID: Uuid = crate::SCM_ACTIVATOR;

/// The stub with which IRemoteActivation answers. The session has looked at the caller's version already.
pub(super) fn answer_remote(exporter: &Exporter, request: &Request) -> Result<Vec<u8>, Failure> {
    let version = (VERSION.0.into(), VERSION.1.into());
    let asked = remote::parse_request(Get::of(request.body()), version)?;
    Ok(remote::write_reply(&activate(exporter, request, &asked)))
}

/// The stub with which IRemoteSCMActivator answers.
pub(super) fn answer_scm(exporter: &Exporter, request: &Request) -> Result<Vec<u8>, Failure> {
    let opnum = if request.index() == 0 { scm::GET_CLASS_OBJECT } else { scm::CREATE_INSTANCE };
    let asked = scm::parse_request(Get::of(request.body()), opnum)?;
    Ok(scm::write_reply(&activate(exporter, request, &asked)))
}

/// What the caller gets, with the addresses by which it reaches this node.
fn activate(exporter: &Exporter, request: &Request, asked: &Activation) -> Activated {
    let at = Correspondence::of_call(request).and_then(|call| call.address);
    exporter.activate(asked, &principal(request)).seen_at(at)
}

/// The class object of a class.
pub(crate) fn class_factory(exporter: &Exporter, clsid: Uuid) -> Arc<dyn Servant> {
    SystemServant::serving(exporter, &CLASS_FACTORY, clsid, answer_factory)
}

fn answer_factory(clsid: &Uuid, exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
    match request.index() {
        0 => {
            let (Guid(iid),) = request.arguments()?;
            hand_out(request, exporter.create_instance(*clsid, iid, &principal(request)).map_err(refused)?)
        }
        // The process lives as long as its node: there is nothing to lock.
        1 => request.reply::<(), Failure>(Ok(())),
        _ => Err(no_operation(&CLASS_FACTORY)),
    }
}
