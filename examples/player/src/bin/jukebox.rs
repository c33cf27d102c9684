//! Serves one player. `jukebox [ADDRESS...]`, by default `dbus:session/org.example.Player`.

use everywire::{Failure, Node};
use player::Jukebox;

fn main() -> Result<(), Failure> {
    let mut addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        addresses.push("dbus:session/org.example.Player".to_owned());
    }
    let node = Node::new();
    // First the object, then the places: whoever sees the name appear may call at once.
    Jukebox::export(&node, "player");
    for address in addresses {
        println!("serving at {}", node.listen(&address)?);
    }
    node.wait();
    Ok(())
}
