//! Sessions of DCE/RPC under hostile bytes: either side, before and after a bind, with authentication and without, in any
//! pieces, with calls, answers, withdrawals and time in between.

use bytes::{Bytes, BytesMut};
use everywire_auth::security::{Credentials, Secret, UserTable};
use everywire_dcom::frame::{self, FIRST, LAST};
use everywire_dcom::pdu::{Bind, BindAck, ContextElement, ContextResult, NDR, Pdu, Syntax};
use everywire_dcom::{DCOM, Level, OBJECT_EXPORTER, Security};
use everywire_model::visit::Nothing;
use everywire_model::{
    Answer, Call, Config, Endpoint, Event, Expects, Failure, Handle, Initiator, Interface, InterfaceKind,
    Kind, Method, Operation, PeerAddress, Profile, Session, Shape, Wire,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn drive(session: &mut dyn Session, first: &[u8], mut data: &[u8], profile: &Profile, calls: bool) {
    let mut now = Instant::now();
    let mut input = BytesMut::from(first);
    let mut handles: Vec<Handle> = Vec::new();
    let interface = Interface {
        name: "IFuzz".into(),
        id: "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001".into(),
        identities: vec![].into(),
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: vec![Operation::new("Op", vec![], Shape::Void)].into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    };
    let failure = Failure::new(Kind::Internal, Initiator::Here, "fuzz");
    while let [step, rest @ ..] = data {
        let (piece, rest) = rest.split_at(usize::from(*step).min(rest.len()));
        data = rest;
        input.extend_from_slice(piece);
        if session.receive(now, &mut input, &mut handles).is_err() {
            break;
        }
        // A fragment is never longer than its length field can say.
        assert!(session.wanted() <= 1 << 16, "{} bytes wanted", session.wanted());
        while let Some(event) = session.poll() {
            let answered = match event {
                Event::Call(call) => match step % 3 {
                    0 => session.answer(call.id, Answer::Failed(&failure)),
                    1 => session.answer(call.id, Answer::Done(&Nothing)),
                    _ => Ok(()),
                },
                _ => Ok(()),
            };
            // An answer that cannot be sent is the caller's loss only.
            drop(answered);
        }
        if calls && step % 5 == 0 {
            let call = Call {
                profile,
                method: Method::Typed { interface: Some(&interface), operation: &interface.operations[0] },
                arguments: &Nothing,
                expects: if step % 3 == 0 { Expects::Nothing } else { Expects::Reply },
            };
            if let Ok(id) = session.start(now, &call)
                && step % 10 == 0
            {
                session.cancel(id);
            }
            drop(session.probe(now, profile));
        }
        now += Duration::from_millis(u64::from(*step));
        if session.deadline().is_some_and(|deadline| deadline <= now) && session.expire(now).is_err() {
            break;
        }
        let sent = session.transmit().len();
        session.transmit().consume(sent);
    }
    session.disconnected(&Failure::new(Kind::Unreachable, Initiator::Peer, "over"));
    while session.poll().is_some() {}
}

/// A bind that is accepted, or its answer.
fn greeting(accepting: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let (max_xmit, max_recv) = (5840, 5840);
    let pdu = if accepting {
        let interface = Syntax::new(OBJECT_EXPORTER, 0);
        let contexts = vec![ContextElement { id: 0, interface, transfers: vec![NDR] }];
        Pdu::Bind(Bind { max_xmit, max_recv, group: 0, contexts })
    } else {
        let results = vec![ContextResult::accepted(NDR); 2];
        Pdu::BindAck(BindAck { max_xmit, max_recv, group: 1, address: b"135".to_vec(), results })
    };
    pdu.write(&mut out, FIRST | LAST | frame::MULTIPLEX, 1, &[]);
    out
}

/// Gives the octets to this case.
pub fn dcerpc_session(data: &[u8]) {
    let [side, data @ ..] = data else { return };
    let (accepting, bound, protected) = (side & 1 == 0, side & 2 != 0, side & 4 != 0);
    let mut security = Security::new(if protected { Level::Integrity } else { Level::None });
    if protected {
        let password = Secret::password("fuzz");
        let mut users = UserTable::default();
        users.insert(None, "fuzz", password.clone());
        security.users = Some(Arc::new(users));
        security.credentials =
            Some(Arc::new(Credentials { domain: String::new(), user: "fuzz".into(), password }));
    }
    let profile = Profile {
        wire: "dcom",
        version: (5, 7),
        endpoints: vec![Endpoint::Tcp { host: "fuzz".into(), port: 135 }],
        key: if accepting { Bytes::new() } else { Bytes::from_static(&[1; 16]) },
        components: if side & 8 != 0 {
            vec![(everywire_dcom::address::TAG_SYSTEM, Bytes::new())]
        } else {
            vec![]
        },
        options: security.into(),
        ..Profile::default()
    };
    let peer = PeerAddress { text: "tcp:127.0.0.1:1".into(), credentials: None };
    let config = Config { peer, profile: profile.clone(), ..Config::default() };
    let first = if bound { greeting(accepting) } else { Vec::new() };
    if accepting {
        drive(&mut *DCOM.accept(&config), &first, data, &profile, false);
    } else {
        drive(&mut *DCOM.connect(&config), &first, data, &profile, true);
    }
}
