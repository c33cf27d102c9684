//! Serves the class. `kettle [ADDRESS...]`, by default `dcom://127.0.0.1:4135?level=none`: whoever reaches the port may call.

use boiler::{CLASS, Kettle};
use everywire::{Failure, Node};

fn main() -> Result<(), Failure> {
    let mut addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        addresses.push("dcom://127.0.0.1:4135?level=none".to_owned());
    }
    let node = Node::new();
    Kettle::serve(&node);
    for address in addresses {
        println!("listening at {}", node.listen(&address)?);
    }
    if let Some(reference) = node.class_reference(CLASS) {
        println!("{}", node.print(&reference));
    }
    node.wait();
    Ok(())
}
