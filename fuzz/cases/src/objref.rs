//! Marshalled interface pointers, what stands before the values of ORPC messages, and protocol towers: any bytes are
//! read or refused, and what was read survives being written and read again.

use bytes::Bytes;
use everywire_dcom::objref::ObjRef;
use everywire_dcom::orpc::{OrpcThat, OrpcThis, error_extent, error_info};
use everywire_dcom::tower::Tower;

/// Gives the octets to this case.
pub fn objref(data: &[u8]) {
    let [flags, rest @ ..] = data else { return };
    let little = flags & 1 == 0;
    let raw = Bytes::copy_from_slice(rest);
    if let Ok((objref, taken)) = ObjRef::parse(&raw) {
        assert!(taken <= raw.len());
        let again = objref.write();
        assert_eq!(ObjRef::parse(&again).map(|(objref, _)| objref), Ok(objref.clone()));
        assert_eq!(ObjRef::from_moniker(&objref.moniker()), Ok(objref));
    }
    if let Ok(text) = std::str::from_utf8(rest) {
        let _ = ObjRef::from_moniker(text);
    }
    if let Ok((this, taken)) = OrpcThis::parse(&raw, little) {
        assert!(taken <= raw.len());
        let mut again = Vec::new();
        this.write(&mut again);
        assert_eq!(OrpcThis::parse(&again.into(), true).map(|(this, _)| this), Ok(this));
    }
    if let Ok((that, taken)) = OrpcThat::parse(&raw, little) {
        assert!(taken <= raw.len());
        if let Some(info) = error_info(&that.extensions) {
            assert_eq!(error_info(&[error_extent(&info)]), Some(info));
        }
    }
    if let Ok(tower) = Tower::parse(rest) {
        assert_eq!(Tower::parse(&tower.write()).as_ref(), Ok(&tower));
        let _ = tower.to_string();
    }
}
