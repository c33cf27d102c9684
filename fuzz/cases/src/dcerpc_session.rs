//! Sessions of DCE/RPC under hostile bytes: either side, before and after a bind, with authentication and without, in any
//! pieces, with calls, answers, withdrawals and time in between.

use crate::driver::{Driver, steps};
use bytes::Bytes;
use everywire_auth::security::{Credentials, Secret, UserTable};
use everywire_dcom::frame::{self, FIRST, LAST};
use everywire_dcom::pdu::{Bind, BindAck, ContextElement, ContextResult, NDR, Pdu, Syntax};
use everywire_dcom::{DCOM, Level, OBJECT_EXPORTER, Security};
use everywire_model::{
    Config, Endpoint, Expects, Interface, Method, Operation, PeerAddress, Profile, Session, Shape, Wire,
};
use std::sync::Arc;
use std::time::Duration;

fn drive(session: &mut dyn Session, first: &[u8], data: &[u8], profile: &Profile, calls: bool) {
    // A fragment is never longer than its length field can say.
    let mut driver = Driver::new(session, first, 1 << 16);
    let interface = Interface {
        name: "IFuzz".into(),
        id: "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a001".into(),
        operations: vec![Operation::new("Op", vec![], Shape::Void)].into(),
        ..Interface::default()
    };
    let method = Method::Typed { interface: Some(&interface), operation: &interface.operations[0] };
    for (step, piece) in steps(data, 1) {
        if !driver.receive(piece) {
            break;
        }
        driver.poll(step, |_| {});
        if calls && step.is_multiple_of(5) {
            let expects = if step.is_multiple_of(3) { Expects::Nothing } else { Expects::Reply };
            driver.call_or_cancel(profile, method, expects, step.is_multiple_of(10));
            drop(driver.session.probe(driver.now, profile));
        }
        if !driver.wait(Duration::from_millis(step.into())) {
            break;
        }
    }
    driver.end();
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
