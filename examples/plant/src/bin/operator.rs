//! Uses the plant. `operator [ADDRESS]`, by default that of `tank` on this machine.

use everywire::{Failure, Node};
use everywire_opc::remote::{Branch, DataAccess, Event, SubscriptionRequest};
use std::sync::mpsc;
use std::time::Duration;

fn main() -> Result<(), Failure> {
    let given = std::env::args().nth(1);
    let address = given.unwrap_or_else(|| format!("opcda://127.0.0.1:4135/{}?level=none", plant::NAME));
    let node = Node::new();
    let plant = DataAccess::connect(&node, &address)?;
    for branch in plant.browse(&Branch::root())? {
        for item in plant.browse(&branch.branch)? {
            println!("{} is {}", item.name, item.id);
        }
    }

    // Told of the level as it changes, by a callback of the server.
    let (tell, told) = mpsc::channel();
    let wanted = SubscriptionRequest { rate: Duration::from_millis(100), ..SubscriptionRequest::default() };
    let subscription = plant.subscribe(&["Tank.Level"], wanted, move |event| drop(tell.send(event)))?;
    let mut values = 0;
    for event in told {
        match event {
            Event::Values(news) => {
                news.iter().for_each(|one| println!("{} {} {}", one.item, one.value.data, one.value.quality));
                values += news.len();
            }
            other => println!("{other:?}"),
        }
        if values >= 5 {
            break;
        }
    }
    drop(subscription);

    // Each item has a result of its own: the level can only be read.
    let written = plant.write(&[("Tank.Valve", false.into()), ("Tank.Level", 50.0_f32.into())])?;
    println!("written: {written:?}");
    for (item, value) in ["Tank.Valve", "Tank.Level"].iter().zip(plant.read(&["Tank.Valve", "Tank.Level"])?) {
        println!("read: {item} {value:?}");
    }
    Ok(())
}
