//! ITypeInfo (MS-OAUT 3.7.4).
//!
//! HREFTYPEs (handles of referred types) are the numbers of descriptions in the library, counted from 1, so
//! that 0 is none.

use super::library::{Info, Library};
use crate::exporter::Exporter;
use crate::hresult::{E_NOTIMPL, TYPE_E_ELEMENTNOTFOUND};
use crate::standard::contracts::TYPE_INFO;
use crate::standard::serving::{hand_out, principal, refused};
use everywire_model::counts::Within;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Request};
use std::sync::Arc;

/// MEMBERID_NIL: the type itself.
const NIL: i32 = -1;

/// Serves one description of a library.
pub(super) struct TypeInfo {
    pub(super) library: Arc<Library>,
    pub(super) index: usize,
}

/// There is nothing of that number or name.
fn missing() -> Failure {
    refused(TYPE_E_ELEMENTNOTFOUND)
}

impl TypeInfo {
    fn info(&self) -> Result<&Info, Failure> {
        self.library.infos.get(self.index).ok_or_else(missing)
    }

    /// Answers a call.
    pub(super) fn answer(&self, exporter: &Arc<Exporter>, request: &mut Request) -> Result<(), Failure> {
        match request.index() {
            0 => request.reply::<_, Failure>(Ok((Some(self.info()?.attributes()), 0_u32))),
            2 => {
                let (index,) = request.arguments::<(u32,)>()?;
                let function = self.info()?.function(index as usize).ok_or_else(missing)?;
                request.reply::<_, Failure>(Ok((Some(function), 0_u32)))
            }
            // Properties are told as functions, constants are not told.
            3 => Err(missing()),
            4 => {
                let (id, most) = request.arguments::<(i32, u32)>()?;
                let mut names = self.info()?.names(id).ok_or_else(missing)?;
                names.truncate(most as usize);
                let fetched = names.len() as u32;
                request.reply::<_, Failure>(Ok((Within(names, most), fetched)))
            }
            number @ (5 | 6) => {
                let (index,) = request.arguments::<(u32,)>()?;
                let (part, flags) = *self.info()?.implemented.get(index as usize).ok_or_else(missing)?;
                match number {
                    5 => request.reply::<_, Failure>(Ok((handle(part),))),
                    _ => request.reply::<_, Failure>(Ok((flags,))),
                }
            }
            9 => {
                let (id, flags) = request.arguments::<(i32, u32)>()?;
                let info = self.info()?;
                let told = if id == NIL {
                    (info.name.clone(), info.doc().to_owned())
                } else {
                    info.documentation(id).ok_or_else(missing)?
                };
                documentation(request, told, flags)
            }
            11 => {
                let (handle,) = request.arguments::<(u32,)>()?;
                let index =
                    (handle as usize).checked_sub(1).filter(|index| *index < self.library.infos.len());
                let index = index.ok_or_else(missing)?;
                hand_out(request, self.library.pointer(exporter, Some(index), &principal(request))?)
            }
            15 => {
                if self.index >= self.library.own().len() {
                    return Err(refused(E_NOTIMPL));
                }
                let library = self.library.pointer(exporter, None, &principal(request))?;
                request.reply::<_, Failure>(Ok((Some(library), self.index as u32)))
            }
            // Binding contexts, entries of libraries, instances and marshalling opcodes.
            1 | 10 | 13 | 14 => Err(refused(E_NOTIMPL)),
            _ => Err(no_operation(&TYPE_INFO)),
        }
    }
}

/// The HREFTYPE of a description.
pub(super) fn handle(index: usize) -> u32 {
    u32::try_from(index).map_or(0, |index| index.saturating_add(1))
}

/// Answers with as much of a name and its documentation as is asked for.
pub(super) fn documentation(
    request: &mut Request,
    (name, text): (String, String),
    flags: u32,
) -> Result<(), Failure> {
    // The flags say which of the results the caller wants; the others are empty.
    let name = if flags & 1 != 0 { name } else { String::new() };
    let text = if flags & 2 != 0 { text } else { String::new() };
    request.reply::<_, Failure>(Ok((name, text, 0_u32, String::new())))
}
