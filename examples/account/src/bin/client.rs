//! Uses an account. `client [REFERENCE]`, by default `iiop://127.0.0.1:2809/account`.

use account::bank::{Account, Watcher, WithdrawError};
use everywire::{Failure, Node};
use std::sync::Arc;

/// A servant of the client's own: the server calls it back.
struct Printer;

impl Watcher for Printer {
    fn changed(&self, owner: &str, balance: i32) -> Result<(), Failure> {
        println!("  told: {owner} has {balance}");
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let reference = std::env::args().nth(1).unwrap_or_else(|| "iiop://127.0.0.1:2809/account".to_owned());
    let node = Node::new();
    let account = node.connect::<dyn Account>(&reference)?;

    // Callbacks need a place to come to; any free port does.
    node.listen("iiop://127.0.0.1:0")?;
    let printer = node.export_anonymous::<dyn Watcher>(Arc::new(Printer));
    let cookie = account.watch(Some(printer))?;

    println!("{} has {} after a deposit", account.owner()?, account.deposit(100)?);
    match account.withdraw(1000) {
        Ok(balance) => println!("withdrew; {balance} left"),
        Err(WithdrawError::Overdrawn(overdrawn)) => println!("refused: {} too much", overdrawn.missing),
        Err(WithdrawError::Failure(failure)) => return Err(failure),
    }
    account.unwatch(cookie)
}
