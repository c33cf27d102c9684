//! Serves both shared contracts for foreign clients and for attackers.
//!
//! `peer ADDRESS REF-FILE [MAX-MESSAGE-MIB [FIRST-MESSAGE-MILLISECONDS [MEMORY-MIB CONNECTIONS]]]`; writes what it refuses to
//! standard error; ends when its standard input does.

use everywire::{Failure, Initiator, Kind, Node, Notice, Quotas};
use everywire_tests::servants;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let usage =
        "peer ADDRESS REF-FILE [MAX-MESSAGE-MIB [FIRST-MESSAGE-MILLISECONDS [MEMORY-MIB CONNECTIONS]]]";
    let wrong = || Failure::new(Kind::BadArgument, Initiator::User, usage);
    let (Some(address), Some(file)) = (arguments.get(1), arguments.get(2)) else { return Err(wrong()) };
    let number = |at: usize, unless: u64| {
        arguments.get(at).map_or(Ok(unless), |text| text.parse()).map_err(|_| wrong())
    };
    let (mebibytes, first_message) = (number(3, 4)?, number(4, 120_000)?);
    let mut quotas = Quotas { first_message: Duration::from_millis(first_message), ..Quotas::default() };
    if arguments.len() > 5 {
        let size = |at: usize| number(at, 0).and_then(|size| usize::try_from(size).map_err(|_| wrong()));
        (quotas.memory, quotas.connections) = (Some(size(5)? << 20), size(6)?);
    }
    let observer = Arc::new(|notice: &Notice| match notice {
        Notice::Violation { violation, .. } => eprintln!("violation {}", violation.name),
        Notice::Refused { why, .. } => eprintln!("refused {why}"),
        Notice::Starved { why } => eprintln!("starved {why}"),
        _ => {}
    });
    let node: Node =
        Node::builder().max_message(mebibytes << 20).quotas(quotas).observer(observer).build().into();
    println!("{}", node.listen(address)?);
    let objects = servants::export_all(&node);
    servants::write_references(&node, &objects, std::path::Path::new(file))?;
    println!("ready");
    // End of input is the parent's end.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    node.stop();
    Ok(())
}
