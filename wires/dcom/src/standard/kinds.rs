//! Which interfaces and operations are the wire's own, and which of them say how they succeeded by themselves.

use super::contracts;
use crate::{
    IDISPATCH, REM_UNKNOWN, REM_UNKNOWN2, REMOTE_ACTIVATION, SCM_ACTIVATOR, iid_of, is_orpc, opnum_base,
};
use everywire_model::Interface;
use uuid::Uuid;

/// Whether an interface is one of the standard ones, which type information and dispatch leave out.
pub(crate) fn is_standard(interface: &Interface) -> bool {
    let iid = iid_of(interface);
    [
        &contracts::CONNECTION_POINT_CONTAINER,
        &contracts::CONNECTION_POINT,
        &contracts::ENUM_CONNECTION_POINTS,
        &contracts::ENUM_CONNECTIONS,
        &contracts::TYPE_INFO,
        &contracts::TYPE_LIB,
    ]
    .iter()
    .any(|standard| iid_of(standard) == iid)
}

/// Whether the method number `opnum` of an interface tells its HRESULT itself, as the last of its results: a session neither
/// adds one nor takes it for a failure. So do GetIDsOfNames and Invoke of IDispatch, whose failures have results.
pub fn keeps_hresult(iid: Uuid, opnum: u16) -> bool {
    iid == IDISPATCH && matches!(opnum, 5 | 6)
}

/// Whether an interface is [`contracts::DISPATCH`], under its own identity or that of a dispinterface: it has the very same operations.
pub(crate) fn is_dispatch(interface: &Interface) -> bool {
    std::ptr::eq(interface.operations.as_ptr(), contracts::DISPATCH.operations.as_ptr())
}

/// Whether a call is one of IDispatch's that was asked under the identity of another interface: dual interfaces and
/// dispinterfaces travel so. The number of the operation in [`contracts::DISPATCH`].
pub fn dispatch_index(interface: &Interface, asked: Uuid, opnum: u16) -> Option<usize> {
    if iid_of(interface) != IDISPATCH || is_system(asked) {
        return None;
    }
    let index = usize::from(opnum.checked_sub(opnum_base(interface))?);
    (index < interface.operations.len()).then_some(index)
}

/// Whether an identity is that of an interface of the node or of every object, none of which is derived from IDispatch.
/// Such an interface has operations of its own at IDispatch's numbers.
fn is_system(iid: Uuid) -> bool {
    let others = [
        REMOTE_ACTIVATION,
        SCM_ACTIVATOR,
        REM_UNKNOWN,
        REM_UNKNOWN2,
        contracts::CONNECTION_POINT_CONTAINER_ID,
        contracts::CONNECTION_POINT_ID,
        contracts::ENUM_CONNECTION_POINTS_ID,
        contracts::ENUM_CONNECTIONS_ID,
        contracts::PROVIDE_CLASS_INFO_ID,
        contracts::PROVIDE_CLASS_INFO2_ID,
        contracts::TYPE_INFO_ID,
        contracts::TYPE_LIB_ID,
        iid_of(&contracts::CONTRACT),
    ];
    !is_orpc(iid) || others.contains(&iid)
}

/// Whether results of an ORPC operation hold their HRESULT as values, so that the session neither adds nor takes one.
#[inline]
pub(crate) fn tells_hresult(iid: Uuid, opnum: u16) -> bool {
    matches!(iid, REM_UNKNOWN2 | REM_UNKNOWN | SCM_ACTIVATOR | REMOTE_ACTIVATION) || keeps_hresult(iid, opnum)
}

/// Whether no operation of an interface holds its HRESULT as values: all of users' contracts are so.
pub(crate) fn is_ordinary(iid: Uuid) -> bool {
    // None of the interfaces that are otherwise has more operations.
    (0..16).all(|opnum| !tells_hresult(iid, opnum))
}
