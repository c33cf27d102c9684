//! Fetches N bytes from the `IRemoteObject` of a reference and prints by how much this process's memory grew at its
//! highest, in bytes: `fetch REFERENCE N`.

use everywire::{Failure, Initiator, Kind, Node};
use everywire_tests::bench::IRemoteObject;

fn peak() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or("");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let wrong = || Failure::new(Kind::BadArgument, Initiator::User, "fetch REFERENCE N");
    let reference = arguments.get(1).ok_or_else(wrong)?;
    let n: i32 = arguments.get(2).and_then(|n| n.parse().ok()).ok_or_else(wrong)?;
    let node: Node = Node::builder().max_message(128 << 20).build().into();
    let object = node.connect::<dyn IRemoteObject>(reference)?;
    object.get_bytes(1)?;
    let before = peak();
    let got = object.get_bytes(n)?;
    let grown = peak().saturating_sub(before);
    println!("{} {grown}", got.len());
    Ok(())
}
