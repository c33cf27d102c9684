//! Serves the plant. `tank [ADDRESS]`, by default `dcom://127.0.0.1:4135?level=none`: whoever reaches the port may call.

use everywire::{Failure, Node};
use plant::Tank;
use std::time::Duration;

fn main() -> Result<(), Failure> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "dcom://127.0.0.1:4135?level=none".to_owned());
    let node = Node::new();
    let tank = Tank::new();
    let _server = tank.serve(&node)?;
    println!("listening at {}", node.listen(&address)?);
    loop {
        std::thread::sleep(Duration::from_millis(200));
        tank.step()?;
    }
}
