//! Serves both shared contracts for foreign clients and for attackers.
//!
//! `peer ADDRESS REF-FILE [MAX-MESSAGE-MIB]`; ends when its standard input does.

use everywire::{Failure, Initiator, Kind, Node, Notice, Quotas};
use everywire_tests::servants;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    let wrong =
        || Failure::new(Kind::BadArgument, Initiator::User, "peer ADDRESS REF-FILE [MAX-MESSAGE-MIB]");
    let (Some(address), Some(file)) = (arguments.get(1), arguments.get(2)) else { return Err(wrong()) };
    let mebibytes: u64 = arguments.get(3).map_or(Ok(4), |text| text.parse()).map_err(|_| wrong())?;
    let quotas = Quotas { first_message: Duration::from_secs(120), ..Quotas::default() };
    let observer = Arc::new(|notice: &Notice| {
        if let Notice::Violation { violation, .. } = notice {
            eprintln!("violation {}", violation.name);
        }
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
