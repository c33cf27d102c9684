//! Uses a boiler. `cook [REFERENCE [ADDRESS]]`: the class, by default that of `kettle` on this machine, and where to listen to
//! be called back.

use boiler::{Boiler, BoilerBoiled, CLASS, IGauge, TOO_HOT};
use everywire::{Failure, Node};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Called by the boiler at every change.
struct Dial;

impl IGauge for Dial {
    fn moved(&self, degrees: f64) -> Result<(), Failure> {
        println!("now {degrees}");
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let here = "dcom://127.0.0.1:4135";
    let class = given.first().cloned().unwrap_or_else(|| format!("{here}/{CLASS}?level=none"));
    let ours = given.get(1).map_or("dcom://127.0.0.1:0?level=none", String::as_str);

    let node = Node::new();
    node.listen(ours)?;
    let boiler = node.connect::<dyn Boiler>(&class)?;

    // By reference: an object of ours that the boiler holds.
    boiler.attach(Some(node.export_anonymous::<dyn IGauge>(Arc::new(Dial))))?;
    // By connection point: a subscription.
    let (tell, told) = mpsc::channel();
    let subscription = boiler.signals().on(move |boiled: BoilerBoiled| drop(tell.send(boiled)))?;

    boiler.set_limit(60.0)?;
    boiler.heat(25.0)?;
    match boiler.heat(50.0) {
        Err(failure) if failure.code() == Some(TOO_HOT) => println!("refused: {}", failure.message()),
        other => println!("heated to {}", other?),
    }
    boiler.heat(15.0)?;
    if let Ok(boiled) = told.recv_timeout(Duration::from_secs(5)) {
        println!("boiled at {}: {}", boiled.degrees, boiled.text);
    }
    drop(subscription);
    Ok(())
}
