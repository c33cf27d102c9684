//! GetIDsOfNames (MS-OAUT 3.1.4.3).

use super::members::{UNKNOWN, members, same_name};
use crate::exporter::Exporter;
use crate::hresult::{DISP_E_UNKNOWNINTERFACE, DISP_E_UNKNOWNNAME, E_INVALIDARG, S_OK};
use crate::standard::guid::Guid;
use crate::standard::serving::own_servants;
use everywire_model::contract::Operation;
use everywire_model::{Failure, Request};

/// Names of a call at most (MS-OAUT 3.1.4.3).
const NAMES: usize = 16_384;

/// Answers with the DISPID of the member that the first name is of, and with the numbers of its parameters that the others
/// name.
pub(super) fn look_up(exporter: &Exporter, request: &mut Request) -> Result<(), Failure> {
    let (riid, names, count, _) = request.arguments::<(Guid, Vec<String>, u32, u32)>()?;
    let unknown = vec![UNKNOWN; names.len()];
    let (ids, code) = if !riid.0.is_nil() {
        (unknown, DISP_E_UNKNOWNINTERFACE)
    } else if names.len() > NAMES || names.len() != count as usize {
        (unknown, E_INVALIDARG)
    } else {
        found(exporter, request.key(), &names)
    };
    request.reply::<_, Failure>(Ok((ids, code)))
}

/// DISPIDs and the HRESULT of the whole: the first name is a member's, of whichever servant has it first.
fn found(exporter: &Exporter, key: &[u8], names: &[String]) -> (Vec<i32>, u32) {
    let unknown = (vec![UNKNOWN; names.len()], DISP_E_UNKNOWNNAME);
    let Some((first, rest)) = names.split_first() else { return (Vec::new(), S_OK) };
    for servant in own_servants(exporter, key) {
        let interface = servant.interface();
        let Some(member) = members(interface).into_iter().find(|member| same_name(&member.name, first))
        else {
            continue;
        };
        let Some(operation) = interface.operations.get(member.index) else { return unknown };
        let mut ids = vec![member.id];
        ids.extend(rest.iter().map(|name| parameter(operation, name).unwrap_or(UNKNOWN)));
        let code = if ids.iter().skip(1).any(|id| *id == UNKNOWN) { DISP_E_UNKNOWNNAME } else { S_OK };
        return (ids, code);
    }
    unknown
}

/// The number of a parameter, counted from 0.
pub(super) fn parameter(operation: &Operation, name: &str) -> Option<i32> {
    let index = operation.parameters.iter().position(|parameter| same_name(&parameter.field.name, name))?;
    i32::try_from(index).ok()
}
