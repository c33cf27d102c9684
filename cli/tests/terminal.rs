//! What peers say cannot command a terminal, and goes through a pipe as it is.
#![allow(clippy::unwrap_used)]

use crate::support::{Bank, PROGRAM, Running, Scratch, data, run};
use std::process::{Command, Stdio};

/// A command for the terminal, and a character that turns the line around.
const EVIL: &str = "a\u{1b}]0;owned\u{7}b\u{202e}c\nd";

/// What the program prints where its outputs are a terminal.
fn on_a_terminal(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let output = Command::new("script")
        .args(["-qec", &format!("'{PROGRAM}' {}", quoted.join(" ")), "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn assert_harmless(shown: &str) {
    let commands = ["\u{1b}]", "\u{7}", "\u{202e}"];
    assert!(!commands.iter().any(|command| shown.contains(command)), "{shown:?}");
    assert!(shown.contains("a\\u{1b}]0;owned\\u{7}b\\u{202e}c"), "{shown:?}");
}

#[test]
fn a_text_is_written_with_escapes_on_a_terminal_alone() {
    if !everywire_peers::here("a_text_is_written_with_escapes_on_a_terminal_alone", &["script"]) {
        return;
    }
    let bank = Bank::open();
    bank.call(&[&format!("title={EVIL}")]).good();
    let words = ["call", &bank.addresses[0], "title", "-c", &bank.contract];
    let piped = run(&words);
    assert_eq!(piped.out, format!("{EVIL}\n"), "{}", piped.err);
    let shown = on_a_terminal(&words);
    assert_harmless(&shown);
    assert!(shown.contains("c\r\nd"), "lines stay lines: {shown:?}");
    // The same text as JSON, which any reader of JSON understands.
    let words = ["call", &bank.addresses[0], "title", "-c", &bank.contract, "--json"];
    let shown = on_a_terminal(&words);
    assert!(!shown.contains('\u{202e}') && !shown.contains('\u{1b}'), "{shown:?}");
    let json: serde_json::Value = serde_json::from_str(shown.trim()).unwrap();
    assert_eq!(json["value"]["return"], EVIL);
}

#[test]
fn the_text_of_an_error_commands_no_terminal() {
    let scratch = Scratch::new();
    let on = format!("dbus+unix://{}", scratch.path("bus"));
    let fail = serde_json::json!({"id": 1, "fail": EVIL, "code": "org.example.Full"});
    let exec = format!("read line; printf '%s\\n' '{fail}'; read line");
    let contract = data("bank.idl");
    let mut server =
        Running::start(&["serve", &contract, "--interface", "Account", "--on", &on, "--exec", &exec]);
    let address = server.line();
    let said = run(&["call", &address, "fails", "-c", &contract]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert_harmless(&said.err);
    assert!(said.err.contains("c\n         d"), "a further line is no line of ours: {}", said.err);
}
