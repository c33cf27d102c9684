//! Signals that a listener refuses, by its level of authentication: who emits them is told.

use super::*;

/// What a node's observer hears.
fn observed() -> (Node, Arc<Mutex<Vec<Notice>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&heard);
    let wires: &[&'static dyn Wire] = &[&DCOM];
    let observer = Arc::new(move |notice: &Notice| keeps.lock().unwrap().push(notice.clone()));
    (Node::builder(wires).observer(observer).build(), heard)
}

/// A lamp, and a node that uses it: what each of them hears, and where it listens.
fn observed_house(serves: &str, calls: &str, listens: &str) -> (House, [Arc<Mutex<Vec<Notice>>>; 2]) {
    let ((server, told), (client, heard)) = (observed(), observed());
    let place = server.listen(&serves.replace("HOST", "127.0.0.1:0")).unwrap();
    server.export_servant("lamp", Arc::new(Lamp::default()));
    let port = place.split(['/', '?']).find_map(|part| part.rsplit_once(':')?.1.parse::<u16>().ok()).unwrap();
    client.listen(&listens.replace("HOST", "127.0.0.1:0")).unwrap();
    let text = calls.replace("HOST", &format!("127.0.0.1:{port}/lamp"));
    let lamp = client.object(&text).unwrap().typed(Hold::Static(&LAMP)).with_deadline(Some(WAIT));
    (House { server, client, lamp, place }, [told, heard])
}

fn undelivered(notices: &Mutex<Vec<Notice>>) -> Vec<Failure> {
    let notices = notices.lock().unwrap();
    let failures = notices.iter().filter_map(|notice| match notice {
        Notice::Undelivered { failure } => Some(failure.clone()),
        _ => None,
    });
    failures.collect()
}

/// Signals that are refused are told of once, and cost one connection.
fn refuses_signals(house: &House, [told, heard]: &[Arc<Mutex<Vec<Notice>>>; 2], levels: &str) {
    house.lit(1);
    let end = Instant::now() + WAIT;
    while undelivered(told).is_empty() {
        assert!(Instant::now() < end, "nobody is told: {:?}", heard.lock().unwrap());
        std::thread::sleep(Duration::from_millis(5));
    }
    (2..20).for_each(|brightness| house.lit(brightness));
    let failures = undelivered(told);
    assert_eq!(failures.len(), 1, "{failures:?}");
    let failure = &failures[0];
    assert_eq!((failure.kind(), failure.completed()), (Kind::Refused, Completed::No), "{failure}");
    assert!(failure.message().contains(levels), "{failure}");
    assert!(failure.place().contains("ILampEvents of `lamp`") && failure.hint().is_some(), "{failure:?}");
    let accepted = |notice: &&Notice| matches!(notice, Notice::Accepted { .. });
    let connections = heard.lock().unwrap().iter().filter(accepted).count();
    assert_eq!(connections, 1, "{:?}", heard.lock().unwrap());
}

const ADA: &str = "dcom://ada:lovelace@HOST";

#[test]
fn signals_for_a_listener_that_knows_nobody_are_told_of() {
    let (house, notices) = observed_house(ADA, ADA, "dcom://HOST?level=none");
    // The listener's own node says so when it subscribes.
    let refused = house.lamp.subscribe(Some(&LAMP_SIGNALS[0]), Arc::new(|_| ())).unwrap_err();
    assert_eq!(refused.kind(), Kind::Refused);
    assert!(refused.message().contains("at level `integrity`") && refused.hint().is_some(), "{refused}");
    // Other implementations do not: then whoever emits hears of it.
    let container = house.as_a(&CONNECTION_POINT_CONTAINER);
    let (point,) = container
        .call::<_, (Option<Reference>,), Failure>(FIND_CONNECTION_POINT, (Guid(iid_of(&EVENTS)),))
        .unwrap();
    let point = house.object(point, &CONNECTION_POINT);
    let sink = house.client.export_servant("sink", Arc::new(Deaf));
    let _: (u32,) = point.call::<_, (u32,), Failure>(ADVISE, (Some(sink),)).unwrap();
    refuses_signals(&house, &notices, "called at level `integrity`");
}

#[test]
fn signals_for_a_listener_that_asks_for_more_are_told_of() {
    let (house, notices) = observed_house("dcom://HOST?level=none", "dcom://HOST?level=none", ADA);
    let _subscription = house.lamp.subscribe(Some(&LAMP_SIGNALS[0]), Arc::new(|_| ())).unwrap();
    refuses_signals(&house, &notices, "called at level `none`");
}

#[test]
fn a_listener_that_knows_the_account_hears() {
    let (house, [told, _]) = observed_house(ADA, ADA, ADA);
    let (_subscription, heard) = listen(&house, Some(&LAMP_SIGNALS[0]));
    (1..4).for_each(|brightness| house.lit(brightness));
    for wanted in 1..4 {
        assert_eq!(brightness(heard.recv_timeout(WAIT).unwrap()), wanted);
    }
    assert!(undelivered(&told).is_empty());
}
