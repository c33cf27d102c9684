//! ITypeInfo (MS-OAUT 3.7.4).
//!
//! HREFTYPEs (handles of referred types) are the numbers of descriptions in the library, counted from 1, so
//! that 0 is none.

use super::contracts::{GET_FUNC_DESC, GET_TYPE_ATTR, TYPE_INFO};
use super::library::{Info, Library};
use crate::exporter::Exporter;
use crate::hresult::{E_NOTIMPL, TYPE_E_ELEMENTNOTFOUND};
use crate::standard::serving::{hand_out, principal, refused};
use everywire_model::object::no_operation;
use everywire_model::value::Value;
use everywire_model::{Answer, Failure, Operation, Request, Sink};
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
            0 => reply(request, GET_TYPE_ATTR, self.info()?.attributes()),
            2 => {
                let (index,) = request.arguments::<(u32,)>()?;
                reply(request, GET_FUNC_DESC, self.info()?.function(index as usize).ok_or_else(missing)?)
            }
            // Properties are told as functions, constants are not told.
            3 => Err(missing()),
            4 => {
                let (id, most) = request.arguments::<(i32, u32)>()?;
                let mut names = self.info()?.names(id).ok_or_else(missing)?;
                names.truncate(most as usize);
                request.reply::<_, Failure>(Ok((most, names.as_slice(), names.len() as u32)))
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

/// Answers with a structure behind a pointer, and a reserved word.
pub(super) fn reply(request: &mut Request, operation: &Operation, told: Value) -> Result<(), Failure> {
    let results = Value::Struct(vec![("told".to_owned(), told), ("pReserved".to_owned(), Value::Integer(0))]);
    request.answer(Answer::Done(&|sink: &mut dyn Sink| results.encode(&operation.results, sink)));
    Ok(())
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
