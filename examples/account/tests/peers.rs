//! The two programs of the five minutes, together.

use account::bank::{Account, Overdrawn, Watcher, WithdrawError};
use everywire::{Failure, Node, Ref};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Ends the server with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_client_of_the_five_minutes_says_what_the_readme_says() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_server"));
    let mut server = server.arg("iiop://127.0.0.1:0").stdout(Stdio::piped()).spawn().map(Server).unwrap();
    let mut line = String::new();
    // It is kept: the server says more.
    let mut out = BufReader::new(server.0.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let address = line.trim_end().trim_start_matches("listening at ").trim_end_matches('/');
    let client =
        Command::new(env!("CARGO_BIN_EXE_client")).arg(format!("{address}/account")).output().unwrap();
    let said = String::from_utf8(client.stdout).unwrap();
    assert!(client.status.success(), "{said}{}", String::from_utf8_lossy(&client.stderr));
    let readme = include_str!("../../../README.md");
    // The callback comes when it comes: it is one-way.
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["  told: Ada has 100", "Ada has 100 after a deposit", "refused: 900 too much"]);
    assert!(said.lines().all(|line| readme.contains(line)), "the README prints another text");
}

/// An account that has this much.
struct Purse(i32);

impl Account for Purse {
    fn owner(&self) -> Result<String, Failure> {
        Ok("Ada".to_owned())
    }

    fn deposit(&self, amount: i32) -> Result<i32, Failure> {
        Ok(self.0 + amount)
    }

    fn withdraw(&self, amount: i32) -> Result<i32, WithdrawError> {
        if amount > self.0 { Err(Overdrawn { missing: amount - self.0 }.into()) } else { Ok(self.0 - amount) }
    }

    fn watch(&self, _: Option<Ref<dyn Watcher>>) -> Result<u32, Failure> {
        Ok(1)
    }

    fn unwatch(&self, _: u32) -> Result<(), Failure> {
        Ok(())
    }
}

fn pay(account: &dyn Account, amounts: &[i32]) -> Result<i32, Failure> {
    let mut left = account.deposit(0)?;
    for amount in amounts {
        left = account.withdraw(*amount)?;
    }
    Ok(left)
}

#[test]
fn an_exception_becomes_a_failure_by_a_question_mark() {
    assert_eq!(pay(&Purse(5), &[2]).unwrap(), 3);
    let node = Node::new();
    let address = node.listen("iiop://127.0.0.1:0").unwrap();
    node.export::<dyn Account>("account", std::sync::Arc::new(Purse(5)));
    let there = format!("{}/account", address.trim_end_matches('/'));
    let account = Node::new().connect::<dyn Account>(&there).unwrap();
    for account in [&Purse(5) as &dyn Account, &*account] {
        let failure = pay(account, &[2, 7]).unwrap_err();
        assert_eq!(failure.code(), Some("IDL:Bank/Overdrawn:1.0"), "{failure}");
        assert!(failure.message().contains("missing"), "{failure}");
    }
    // The text that the documents print.
    let words = |text: &str| -> Vec<String> {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        code.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let function = |text: &str| {
        let from = text.find("fn pay(").unwrap();
        words(text[from..].split("\n}\n").next().unwrap())
    };
    let printed = function(include_str!("../../../docs/generated-code.md"));
    assert_eq!(printed, function(include_str!("peers.rs")));
}
