//! Python's clients of WCF: pynettcp over net.tcp, zeep over HTTP.

use super::cellar::Cellar;
use super::cellar::contract::cellar::ICellar;
use super::foreign::{run, script};
use super::hello::Remote;
use super::hello::bench::IRemoteObject;
use super::mill::Mill;
use super::mill::contract::mill::IMill;
use everywire::Node;
use everywire_tests::peers::cached;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// A server of ours, and where it listens: `HOST:PORT`.
pub fn serving(scheme: &str, options: &str) -> (Node, String) {
    let node = Node::new();
    let address = node
        .listen(&format!("{scheme}://127.0.0.1:0?{options}"))
        .unwrap_or_else(|failure| panic!("{scheme}: {failure}"));
    let _ = node.export::<dyn IRemoteObject>("bench", Arc::new(Remote));
    let _ = node.export::<dyn ICellar>("cellar", Arc::new(Cellar::default()));
    let _ = node.export::<dyn IMill>("mill", Arc::new(Mill));
    let place = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let place = place.split(['/', '?']).next().unwrap_or(place);
    (node, place.to_owned())
}

/// The script that uses pynettcp; or nothing, said loudly.
pub fn nettcp(test: &str) -> Option<Command> {
    python(test, "pynettcp", "nettcp.py")
}

/// The same, with the library that it takes for Windows authentication.
pub fn nettcp_windows(test: &str) -> Option<Command> {
    let known = python(test, "pyspnego", "nettcp.py")?;
    let environment = Path::new(known.get_program()).parent().and_then(Path::parent).expect("an environment");
    let mut command = nettcp(test)?;
    command.env("PYSPNEGO", environment);
    Some(command)
}

/// The script that uses zeep; or nothing, said loudly.
pub fn zeep(test: &str) -> Option<Command> {
    python(test, "zeep", "zeep_client.py")
}

/// It ends well.
pub fn succeeds(command: &mut Command) -> String {
    let said = run(command);
    assert_eq!(said.lines().last(), Some("ok"), "{command:?}: {said}");
    said
}

/// A Python with this library runs this script; or nothing, said loudly.
fn python(test: &str, library: &str, program: &str) -> Option<Command> {
    let directory = cached(test, library)?;
    let mut command = Command::new(directory.join("bin/python"));
    command.arg(script(program)).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}
