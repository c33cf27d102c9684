//! The running test program, started anew for one of its tests: in another network, or as the other side of a conversation.

use std::process::Command;
use std::sync::OnceLock;

/// The arguments that have this test program run only the test with this function name.
///
/// # Panics
/// When no test of this program has the name, or two have it.
#[must_use]
pub fn only(test: &str) -> Vec<String> {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let listed = crate::peers::output(this_program().args(["--list", "--format", "terse"]));
        listed.lines().filter_map(|line| line.strip_suffix(": test").map(str::to_owned)).collect()
    });
    let function = |path: &str| path.rsplit("::").next() == Some(test);
    let found: Vec<&String> = all.iter().filter(|path| *path == test || function(path)).collect();
    let [path] = found[..] else { panic!("{} tests are called {test}: {found:?}", found.len()) };
    let options = ["--exact", path, "--include-ignored", "--nocapture", "--test-threads=1"];
    options.map(str::to_owned).into()
}

/// This program, without arguments.
///
/// # Panics
/// When the system does not tell which file it is.
#[must_use]
pub fn this_program() -> Command {
    Command::new(std::env::current_exe().expect("a program has a file"))
}
