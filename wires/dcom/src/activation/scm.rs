//! Stubs of IRemoteSCMActivator (MS-DCOM 3.1.2.5.2.3) after ORPCTHIS and ORPCTHAT.
//!
//! Arguments and results travel in an OBJREF of the custom form, whose class says how to unmarshal them: a
//! way to let old proxies pass new structs.

use super::properties::{self, PROPS_OUT, Request};
use super::{Activated, Activation};
use crate::hresult::{E_NOINTERFACE, is_failure};
use crate::objref::ObjRef;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use uuid::{Uuid, uuid};

/// Operation number of RemoteGetClassObject.
pub const GET_CLASS_OBJECT: u16 = 3;
/// Operation number of RemoteCreateInstance.
pub const CREATE_INSTANCE: u16 = 4;

/// IActivationPropertiesIn.
const PROPERTIES_IN: Uuid = uuid!("000001a2-0000-0000-c000-000000000046");
/// The class that unmarshals it.
const PROPERTIES_IN_CLASS: Uuid = uuid!("00000338-0000-0000-c000-000000000046");
/// IActivationPropertiesOut; its class is that of the property `PROPS_OUT`.
const PROPERTIES_OUT: Uuid = uuid!("000001a3-0000-0000-c000-000000000046");

/// The operation for an activation.
pub fn opnum(activation: &Activation) -> u16 {
    if activation.class_object { GET_CLASS_OBJECT } else { CREATE_INSTANCE }
}

/// Arguments of the operation that [`opnum`] names.
pub fn write_request(activation: &Activation) -> Vec<u8> {
    write_properties(&Request::of(activation), opnum(activation))
}

/// Reads the arguments of operation `opnum`.
pub fn parse_request(stub: Get<'_>, opnum: u16) -> Result<Activation, Violation> {
    parse_properties(stub, opnum).map(|request| request.activation(opnum == GET_CLASS_OBJECT))
}

/// Arguments of operation `opnum`, with every property as given.
pub fn write_properties(request: &Request, opnum: u16) -> Vec<u8> {
    let mut out = StubWriter::default();
    if opnum == CREATE_INSTANCE {
        // Nobody aggregates across machines.
        out.pointer(false);
    }
    custom(out.pointer(true), PROPERTIES_IN, PROPERTIES_IN_CLASS, request.write()).done()
}

/// Reads every property of the arguments of operation `opnum`.
pub fn parse_properties(mut stub: Get<'_>, opnum: u16) -> Result<Request, Violation> {
    if opnum == CREATE_INSTANCE && stub.pointer()? {
        stub.interface_pointer()?;
    }
    stub.reference()?;
    Request::read(&blob(&mut stub, PROPERTIES_IN_CLASS)?)
}

/// Results of both operations, with the HRESULT.
pub fn write_reply(activated: &Activated) -> Vec<u8> {
    let mut out = StubWriter::default();
    // There is no success without an interface.
    let hresult = match (is_failure(activated.hresult), activated.interfaces.is_empty()) {
        (false, true) => E_NOINTERFACE,
        _ => activated.hresult,
    };
    let found = !is_failure(hresult);
    out.pointer(found);
    if found {
        custom(&mut out, PROPERTIES_OUT, PROPS_OUT, properties::write_results(activated));
    }
    out.u32(hresult).done()
}

/// Reads them. Where the activation failed, only the HRESULT is there.
pub fn parse_reply(mut stub: Get<'_>) -> Result<Activated, Violation> {
    if !stub.pointer()? {
        let hresult = stub.u32()?;
        return if is_failure(hresult) { Ok(failed(hresult)) } else { Err(Violation::NullReference) };
    }
    let activated = properties::read_results(&blob(&mut stub, PROPS_OUT)?)?;
    let hresult = stub.u32()?;
    Ok(if is_failure(hresult) { failed(hresult) } else { Activated { hresult, ..activated } })
}

fn failed(hresult: u32) -> Activated {
    Activated { hresult, ..Activated::default() }
}

/// The BLOB in the custom OBJREF of this class.
fn blob(stub: &mut Get<'_>, class: Uuid) -> Result<bytes::Bytes, Violation> {
    match ObjRef::parse(&stub.interface_pointer()?)?.0 {
        ObjRef::Custom { clsid, data, .. } if clsid == class => Ok(data),
        _ => Err(Violation::BadObjref),
    }
}

/// Writes a BLOB in a custom OBJREF.
fn custom(out: &mut StubWriter, iid: Uuid, clsid: Uuid, data: Vec<u8>) -> &mut StubWriter {
    // Windows counts 8 bytes more than there are.
    out.interface_pointer(&ObjRef::custom(iid, clsid, data, 8).write())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{activated, activation};
    use super::*;
    use crate::hresult;

    #[test]
    fn a_request_reads_as_written_for_objects_and_class_objects() {
        for class_object in [false, true] {
            let asked = Activation { class_object, ..activation() };
            let stub = write_request(&asked);
            assert_eq!(parse_request(Get::new(&stub, true), opnum(&asked)), Ok(asked));
        }
    }

    #[test]
    fn results_and_failures_read_as_written() {
        let stub = write_reply(&activated());
        assert_eq!(parse_reply(Get::new(&stub, true)), Ok(activated()));
        let failed = Activated { hresult: hresult::REGDB_E_CLASSNOTREG, ..Activated::default() };
        let stub = write_reply(&failed);
        assert_eq!(stub.len(), 8);
        assert_eq!(parse_reply(Get::new(&stub, true)), Ok(failed));
        assert_eq!(parse_reply(Get::new(&[0; 8], true)), Err(Violation::NullReference));
    }

    #[test]
    fn whatever_is_cut_off_is_missed() {
        let request = write_request(&activation());
        let reply = write_reply(&activated());
        for len in 0..request.len() {
            assert!(parse_request(Get::new(&request[..len], true), CREATE_INSTANCE).is_err(), "{len}");
        }
        for len in 0..reply.len() {
            assert!(parse_reply(Get::new(&reply[..len], true)).is_err(), "{len}");
        }
    }

    #[test]
    fn no_byte_changed_makes_it_panic() {
        for stub in [write_request(&activation()), write_reply(&activated())] {
            // Miri takes ten minutes for all of them.
            for at in (0..stub.len()).step_by(if cfg!(miri) { 16 } else { 1 }) {
                for value in [0, 1, 0x7f, 0xff] {
                    let mut stub = stub.clone();
                    stub[at] = value;
                    let _ = parse_request(Get::new(&stub, true), CREATE_INSTANCE);
                    let _ = parse_reply(Get::new(&stub, true));
                    let _ = parse_reply(Get::new(&stub, false));
                }
            }
        }
    }

    #[test]
    fn a_request_without_a_class_or_with_too_many_properties_is_refused() {
        let mut stub = write_request(&activation());
        let class = properties::INSTANTIATION.to_bytes_le();
        let at = stub.windows(16).position(|bytes| bytes == class).unwrap();
        let count = at - 16 - 4;
        stub[at] = 0;
        assert_eq!(parse_request(Get::new(&stub, true), CREATE_INSTANCE), Err(Violation::BadActivation));
        assert_eq!(stub[count], 6);
        stub[count] = 5;
        assert_eq!(parse_request(Get::new(&stub, true), CREATE_INSTANCE), Err(Violation::BadVariance));
    }
}
