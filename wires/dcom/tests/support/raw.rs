//! PDUs made by hand, for peers that do not keep to the rules.

use everywire_dcom::frame::{self, FIRST, LAST, PduKind};
use everywire_dcom::pdu::{Bind, ContextElement, NDR, Pdu, Request, Syntax};
use uuid::Uuid;

/// A bind for these interfaces, numbered from 0.
pub fn bind(call: u32, interfaces: &[(Uuid, u16)]) -> Vec<u8> {
    bind_as(call, FIRST | LAST, 5840, 5840, interfaces)
}

pub fn bind_as(call: u32, flags: u8, xmit: u16, recv: u16, interfaces: &[(Uuid, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    Pdu::Bind(contents(xmit, recv, interfaces, 0)).write(&mut out, flags, call, &[]);
    out
}

pub fn alter(call: u32, first: u16, interfaces: &[(Uuid, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    Pdu::AlterContext(contents(0, 0, interfaces, first)).write(&mut out, FIRST | LAST, call, &[]);
    out
}

pub fn contents(max_xmit: u16, max_recv: u16, interfaces: &[(Uuid, u16)], first: u16) -> Bind {
    let contexts = interfaces.iter().zip(first..).map(|((id, major), number)| ContextElement {
        id: number,
        interface: Syntax::new(*id, *major),
        transfers: vec![NDR],
    });
    Bind { max_xmit, max_recv, group: 0, contexts: contexts.collect() }
}

/// A request's fragment.
pub fn request(call: u32, flags: u8, context: u16, opnum: u16, object: Option<Uuid>, stub: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let request = Request { alloc_hint: 0, context, opnum, object, stub: 0..0 };
    Pdu::Request(request).write(&mut out, flags, call, stub);
    out
}

/// A PDU without contents.
pub fn bare(kind: PduKind, call: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, 0, kind, FIRST | LAST, 0, call);
    frame::set_length(&mut out, 0);
    out
}

/// Adds a security trailer with a value.
pub fn with_trailer(mut pdu: Vec<u8>, mechanism: u8, level: u8, context: u32, value: &[u8]) -> Vec<u8> {
    let pad = pdu.len().next_multiple_of(4) - pdu.len();
    pdu.extend(std::iter::repeat_n(0xaa, pad));
    frame::put_trailer(&mut pdu, mechanism, level, u8::try_from(pad).unwrap(), context);
    pdu.extend_from_slice(value);
    frame::set_auth_length(&mut pdu, 0, value.len());
    frame::set_length(&mut pdu, 0);
    pdu
}

/// ORPCTHIS of version 5.7.
pub fn orpc_this() -> Vec<u8> {
    let mut this = vec![5, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    this.extend_from_slice(&[0x11; 16]);
    this.extend_from_slice(&[0; 4]);
    this
}

/// The PDUs of a stream, taken apart.
pub fn pdus(mut bytes: &[u8]) -> Vec<(frame::Header, Pdu, Vec<u8>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (header, pdu, _) = Pdu::parse(bytes).unwrap();
        let (message, rest) = bytes.split_at(header.length.into());
        all.push((header, pdu, message.to_vec()));
        bytes = rest;
    }
    all
}

/// The status of the only fault in a stream, and whether it says that nothing ran.
pub fn fault(bytes: &[u8]) -> (u32, bool) {
    match pdus(bytes).as_slice() {
        [(header, Pdu::Fault(fault), _)] => (fault.status, header.has(frame::DID_NOT_EXECUTE)),
        other => panic!("a fault was expected, not {other:?}"),
    }
}
