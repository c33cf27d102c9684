//! Stubs that no honest client sends to the system interfaces.

use super::house::Net;
use super::lamp::{LAMP, Lamp};
use everywire_dcom::activation::{Activation, remote, scm};
use everywire_dcom::exporter::Counts;
use everywire_dcom::hresult::S_OK;
use everywire_dcom::remunknown::{Query, Refs, query_request, query2_request, refs_request};
use everywire_dcom::resolver::{
    ComplexPing, complex_ping_request, parse_complex_ping_reply, resolve_oxid2_request,
};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID;
use everywire_dcom::standard::rem_unknown::REM_UNKNOWN_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{IUNKNOWN, OBJECT_EXPORTER, REM_UNKNOWN2, REMOTE_ACTIVATION, iid_of};
use std::sync::Arc;
use uuid::Uuid;

#[test]
fn broken_stubs_are_refused_and_change_nothing() {
    let node = Arc::new(Net::default()).node(7001);
    node.insert("lamp", Lamp::new());
    let ipid = node.exporter.export(b"lamp", iid_of(&LAMP), 5).ipid;
    let asked = Activation {
        clsid: Uuid::max(),
        iids: vec![IUNKNOWN, Uuid::max()],
        class_object: false,
        version: (5, 7),
        protseqs: vec![7],
        impersonation: 2,
    };
    let ping = ComplexPing { set: 9, sequence: 1, add: vec![1, 2, 3], remove: vec![4] };
    let refs = [Refs { ipid: Uuid::max(), public: 1, private: 1 }; 3];
    let calls: [(Uuid, u16, Vec<u8>); 9] = [
        (OBJECT_EXPORTER, 0, resolve_oxid2_request(1, &[7, 8])),
        (OBJECT_EXPORTER, 2, complex_ping_request(&ping)),
        (OBJECT_EXPORTER, 4, resolve_oxid2_request(1, &[7, 8])),
        (REM_UNKNOWN_ID, 3, query_request(&Query { ipid: Uuid::max(), refs: 5, iids: vec![IUNKNOWN; 3] })),
        (REM_UNKNOWN_ID, 4, refs_request(&refs)),
        (REM_UNKNOWN2, 5, refs_request(&refs)),
        (REM_UNKNOWN2, 6, query2_request(Uuid::max(), &[IUNKNOWN; 3])),
        (REMOTE_ACTIVATION, 0, remote::write_request(&asked)),
        (REMOTE_SCM_ACTIVATOR_ID, 4, scm::write_request(&asked)),
    ];
    let before = node.exporter.counts();
    for (iid, opnum, stub) in &calls {
        for len in 0..stub.len() {
            // What is cut off may have been padding.
            let _ = node.call(b"", *iid, *opnum, &stub[..len], "a");
        }
        for at in 0..stub.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut wrong = stub.clone();
                wrong[at] ^= bits;
                let _ = node.call(b"", *iid, *opnum, &wrong, "a");
            }
        }
        assert!(node.call(b"", *iid, *opnum, &[], "a").is_err());
    }
    let after = node.exporter.counts();
    assert_eq!((after.objects, after.ipids), (before.objects, before.ipids));
    assert!(node.exporter.served(ipid).is_some());
}

#[test]
fn sets_are_bounded_for_each_principal() {
    let node = Arc::new(Net::default()).node(7001);
    let begin = |who: &str| {
        let stub =
            complex_ping_request(&ComplexPing { set: 0, sequence: 1, add: Vec::new(), remove: Vec::new() });
        let body = node.call(b"", OBJECT_EXPORTER, 2, &stub, who).unwrap();
        parse_complex_ping_reply(Get::of(&body)).unwrap().2
    };
    for _ in 0..everywire_dcom::limits::PRINCIPAL_PING_SETS {
        assert_eq!(begin("a"), S_OK);
    }
    assert_ne!(begin("a"), S_OK);
    assert_eq!(begin("b"), S_OK);
    let sets = everywire_dcom::limits::PRINCIPAL_PING_SETS + 1;
    assert_eq!(node.exporter.counts(), Counts { sets, ..Counts::default() });
}
