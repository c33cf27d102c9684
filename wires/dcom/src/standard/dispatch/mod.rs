//! IDispatch (MS-OAUT 3.1): calls by name and number, with VARIANTs as arguments, of every object.
//!
//! One servant stands by for all objects of the node: the key of the request says which one is meant. It has
//! one description (GetTypeInfoCount is 1), finds names without regard to case, and calls members by their
//! DISPIDs.

pub mod call;
pub(super) mod coerce;
mod decimal;
mod invoke;
pub(super) mod members;
mod names;
mod omitted;

pub(crate) use coerce::to_shape;

use super::contracts::DISPATCH;
use super::serving::{alive, hand_out, principal, refused};
use super::typeinfo;
use crate::exporter::Exporter;
use crate::hresult::DISP_E_BADINDEX;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Interface, Request, Servant};
use std::sync::Weak;

/// Flag of Invoke: the caller does not look at the result.
const ZERO_RESULT: u32 = 0x0002_0000;
/// Flag of Invoke: the caller does not look at the EXCEPINFO.
const ZERO_EXCEPINFO: u32 = 0x0004_0000;
/// Flag of Invoke: the caller does not look at the number of the argument that is wrong.
const ZERO_ARGERR: u32 = 0x0008_0000;

/// EXCEPINFO, field by field.
type ExcepInfo = (u16, u16, String, String, String, u32, u32, u32, u32);

/// Serves it for all objects.
pub(super) struct Dispatch(pub(super) Weak<Exporter>);

impl Servant for Dispatch {
    fn interface(&self) -> &Interface {
        &DISPATCH
    }

    fn dispatch(&self, request: Request) {
        let exporter = match alive(&self.0) {
            Ok(exporter) => exporter,
            Err(failure) => return request.finish(Err(failure)),
        };
        match request.index() {
            0 => request.run(|request| request.reply::<_, Failure>(Ok((1_u32,)))),
            1 => request.run(|request| {
                let (index, _) = request.arguments::<(u32, u32)>()?;
                if index != 0 {
                    return Err(refused(DISP_E_BADINDEX));
                }
                let info = typeinfo::of_object(&exporter, request.key(), &principal(request))?;
                hand_out(request, info)
            }),
            2 => request.run(|request| names::look_up(&exporter, request)),
            3 => invoke::invoke(&exporter, request),
            _ => request.finish(Err(no_operation(&DISPATCH))),
        }
    }
}
