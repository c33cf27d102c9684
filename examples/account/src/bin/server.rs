//! Serves one account. `server [ADDRESS...]`, by default `iiop://127.0.0.1:2809`; the addresses may be of different wires.

use account::bank::{Account, Overdrawn, Watcher, WithdrawError};
use everywire::{Failure, Node, Ref};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The servant: a plain type that implements the generated trait.
struct Ledger {
    owner: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    balance: i32,
    cookies: u32,
    watchers: BTreeMap<u32, Ref<dyn Watcher>>,
}

impl Ledger {
    fn new(owner: &str) -> Self {
        Self { owner: owner.to_owned(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the balance and tells the watchers; one that is gone is forgotten.
    fn change(&self, amount: i32) -> i32 {
        let (balance, watchers) = {
            let mut state = self.state();
            state.balance += amount;
            (state.balance, state.watchers.clone())
        };
        for (cookie, watcher) in watchers {
            if watcher.changed(&self.owner, balance).is_err() {
                self.state().watchers.remove(&cookie);
            }
        }
        balance
    }
}

impl Account for Ledger {
    fn owner(&self) -> Result<String, Failure> {
        Ok(self.owner.clone())
    }

    fn deposit(&self, amount: i32) -> Result<i32, Failure> {
        Ok(self.change(amount))
    }

    fn withdraw(&self, amount: i32) -> Result<i32, WithdrawError> {
        let balance = self.state().balance;
        if amount > balance {
            return Err(Overdrawn { missing: amount - balance }.into());
        }
        Ok(self.change(-amount))
    }

    fn watch(&self, who: Option<Ref<dyn Watcher>>) -> Result<u32, Failure> {
        let mut state = self.state();
        state.cookies += 1;
        let cookie = state.cookies;
        state.watchers.extend(who.map(|who| (cookie, who)));
        Ok(cookie)
    }

    fn unwatch(&self, cookie: u32) -> Result<(), Failure> {
        self.state().watchers.remove(&cookie);
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let mut addresses: Vec<String> = std::env::args().skip(1).collect();
    if addresses.is_empty() {
        addresses.push("iiop://127.0.0.1:2809".to_owned());
    }
    let node = Node::new();
    // First the object, then the places: whoever sees a name appear on a bus may call at once.
    node.export::<dyn Account>("account", Arc::new(Ledger::new("Ada")));
    for address in addresses {
        println!("listening at {}", node.listen(&address)?);
    }
    if let Some(reference) = node.reference("account") {
        println!("{}", node.print(&reference));
    }
    node.wait();
    Ok(())
}
