//! Many objects, one after the other: nothing stays.
//!
//! `EVERYWIRE_CYCLES` says how many objects there are, if they are to be more than ten thousand.

use super::house::Net;
use super::lamp::{LAMP, Lamp};
use everywire_dcom::exporter::Counts;
use everywire_dcom::iid_of;
use everywire_dcom::ndr::References;
use everywire_model::{Objects, Servant, WireState};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn ten_thousand_objects_leave_no_trace() {
    let asked = std::env::var("EVERYWIRE_CYCLES").ok().map_or(0, |text| text.parse().expect("a number"));
    let rounds = asked.max(10_000_u32).div_ceil(1000);
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    let lamp: Arc<dyn Servant> = Lamp::new();
    let (out, back) = (server.correspondence(), client.correspondence());
    let start = Instant::now();
    for round in 0..rounds {
        let held: Vec<_> = (0..1000)
            .map(|_| {
                let key = server.exporter.serve(vec![Arc::clone(&lamp)], "a").unwrap();
                let local = server.exporter.local(&LAMP.id, &key);
                back.unmarshal(out.marshal(&local).unwrap(), 0).unwrap()
            })
            .collect();
        assert_eq!(client.exporter.counts().proxies, 1000);
        assert_eq!(server.exporter.counts(), Counts { objects: 1000, ipids: 1000, ..Counts::default() });
        drop(held);
        let now = start + Duration::from_secs(1) * round;
        client.exporter.tend(now);
        client.exporter.tend(now + Duration::from_millis(100));
    }
    assert_eq!(server.exporter.counts(), Counts::default());
    assert_eq!(client.exporter.counts(), Counts::default());
    assert!(server.store.keys().is_empty());
}

#[test]
fn many_threads_share_the_tables() {
    let net = Arc::new(Net::default());
    let (server, client) = (net.node(7001), net.node(7002));
    server.insert("lamp", Lamp::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let objref = server.exporter.objref(b"lamp", iid_of(&LAMP), 5).write();
                    drop(client.adopt(&objref).unwrap());
                }
            });
        }
        scope.spawn(|| {
            let start = Instant::now();
            for round in 0..100 {
                client.exporter.tend(start + Duration::from_millis(60) * round);
            }
        });
    });
    let end = Instant::now() + Duration::from_secs(60);
    client.exporter.tend(end);
    client.exporter.tend(end + Duration::from_secs(1));
    assert_eq!(client.exporter.counts(), Counts::default());
    assert_eq!(server.exporter.counts(), Counts::default());
}
