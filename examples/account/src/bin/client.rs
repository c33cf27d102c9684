//! Uses an account. `client [REFERENCE [ADDRESS]]`, by default `iiop://127.0.0.1:2809/account`; callbacks come to the
//! address, which is of the same wire: `iiop://127.0.0.1:0`.

use account::bank::{Account, Watcher, WithdrawError};
use everywire::{Failure, Node};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

/// A servant of the client's own: the server calls it back. It says so to the rest of the program.
struct Printer(Sender<()>);

impl Watcher for Printer {
    fn changed(&self, owner: &str, balance: i32) -> Result<(), Failure> {
        println!("  told: {owner} has {balance}");
        // Nobody may wait for it any more.
        let _ = self.0.send(());
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let given = |number| std::env::args().nth(number);
    let reference = given(1).unwrap_or_else(|| "iiop://127.0.0.1:2809/account".to_owned());
    let address = given(2).unwrap_or_else(|| "iiop://127.0.0.1:0".to_owned());
    let node = Node::new();
    let account = node.connect::<dyn Account>(&reference)?;

    let (tell, told) = channel();
    // Callbacks need a place to come to; any free port does.
    node.listen(&address)?;
    let printer = node.export_anonymous::<dyn Watcher>(Arc::new(Printer(tell)));
    let cookie = account.watch(Some(printer))?;

    println!("{} has {} after a deposit", account.owner()?, account.deposit(100)?);
    // The callback is one-way: it comes when it comes.
    let _ = told.recv_timeout(Duration::from_secs(5));
    match account.withdraw(1000) {
        Ok(balance) => println!("withdrew; {balance} left"),
        Err(WithdrawError::Overdrawn(overdrawn)) => println!("refused: {} too much", overdrawn.missing),
        Err(WithdrawError::Failure(failure)) => return Err(failure),
    }
    account.unwatch(cookie)
}
