//! ITypeLib (MS-OAUT 3.11.4).

use super::info::documentation;
use super::library::{Info, Library};
use crate::exporter::Exporter;
use crate::hresult::{E_NOTIMPL, TYPE_E_ELEMENTNOTFOUND};
use crate::standard::contracts::{TLIBATTR, TYPE_LIB};
use crate::standard::dispatch::members::same_name;
use crate::standard::guid::Guid;
use crate::standard::serving::{hand_out, principal, refused};
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request};
use std::sync::Arc;
use uuid::Uuid;

/// SYS_WIN64.
const SYSTEM_KIND: i32 = 3;

/// Serves the library of an object.
pub(super) struct TypeLib(pub(super) Arc<Library>);

impl TypeLib {
    /// Answers with a description of the library; those of IDispatch and IUnknown are another library's.
    fn answer_info(
        &self,
        exporter: &Exporter,
        request: &mut Request,
        index: Option<usize>,
    ) -> Result<(), Failure> {
        let index = index.filter(|index| *index < self.0.own().len());
        let index = Some(index.ok_or_else(|| refused(TYPE_E_ELEMENTNOTFOUND))?);
        hand_out(request, self.0.pointer(exporter, index, &principal(request))?)
    }

    fn info(&self, index: usize) -> Result<&Info, Failure> {
        self.0.own().get(index).ok_or_else(|| refused(TYPE_E_ELEMENTNOTFOUND))
    }

    /// Answers a call.
    pub(super) fn answer(&self, exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
        match request.index() {
            0 => request.reply::<_, Failure>(Ok((self.0.own().len() as u32,))),
            1 => {
                let (index,) = request.arguments::<(u32,)>()?;
                self.answer_info(exporter, request, Some(index as usize))
            }
            2 => {
                let (index,) = request.arguments::<(u32,)>()?;
                request.reply::<_, Failure>(Ok((self.info(index as usize)?.kind,)))
            }
            3 => {
                let (Guid(id),) = request.arguments::<(Guid,)>()?;
                let index = self.0.own().iter().position(|info| info.id == id);
                self.answer_info(exporter, request, index)
            }
            4 => request.reply::<_, Failure>(Ok((Some(attributes(self.info(0)?.id)), 0_u32))),
            6 => {
                let (index, flags) = request.arguments::<(i32, u32)>()?;
                let info = self.info(usize::try_from(index).unwrap_or_default())?;
                documentation(request, (info.name.clone(), info.doc().to_owned()), flags)
            }
            7 => {
                let (name, _) = request.arguments::<(String, u32)>()?;
                let own = self.0.own().iter();
                let members = own.clone().flat_map(|info| info.members.iter().map(|member| &*member.name));
                let mut all = own.map(|info| &*info.name).chain(members);
                let found = all.find(|held| same_name(held, &name)).unwrap_or_default();
                request.reply::<_, Failure>(Ok((i32::from(!found.is_empty()), found)))
            }
            5 => Err(refused(E_NOTIMPL)),
            _ => Err(no_operation(&TYPE_LIB)),
        }
    }
}

/// TLIBATTR: the library goes by the identity that follows from its class.
fn attributes(class: Uuid) -> TLIBATTR {
    let id = Uuid::new_v5(&everywire_idl::midl::LIBRARIES, class.to_string().as_bytes());
    let (syskind, w_major_ver_num) = (SYSTEM_KIND, 1);
    TLIBATTR { guid: id.into(), lcid: 0, syskind, w_major_ver_num, w_minor_ver_num: 0, w_lib_flags: 0 }
}
