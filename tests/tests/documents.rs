//! The commands of README, guide and the pages of tasks run as they are printed, as a newcomer would: the program is installed into a folder of
//! its own, and a shell has that folder and the system's own on its path, a home that was empty, nothing of the environment of whoever runs the
//! test, and a network of its own with a session bus.
//!
//! A document is one session: what a block starts in the background is there for the next one. Each command ends well, unless the list of
//! its document says otherwise; an entry that fits no command fails the test, so the lists stay true. A block of text right behind a block
//! of commands is what they print; `...` stands there for any lines.

mod blocks;
mod shell;
mod tasks;

use crate::common::dcom::alone;
use crate::common::foreign::everywire;
use crate::common::scratch;
use everywire_tests::peers::{here, root};
use shell::Shell;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const README: &str = include_str!("../../README.md");
const GUIDE: &str = include_str!("../../docs/guide.md");

/// What becomes of a command that does not simply end well.
enum Does {
    /// It ends with this code.
    Ends(i32),
    /// It ends a program, and with the code of that one: 0 if it ends in order, 143 if the signal ended it.
    Stops,
    /// It goes on. It is ready when a line has this in it.
    Stays(&'static str),
    /// It goes on, like the former; before it, commands with the second text in them are ended, since they are servers at the same place.
    Instead(&'static str, &'static str),
    /// It is not run here, because of this.
    Left(&'static str),
}
use Does::{Ends, Instead, Left, Stays, Stops};

const OF_README: &[(&str, Does)] = &[
    ("cargo install", Left("compiles for minutes; `scripts/dist-try.sh` installs what it makes")),
    ("make dist", Left("compiles for minutes; it is its own test")),
    ("sudo dpkg", Left("changes the machine; `scripts/dist-try.sh` does it in an empty root")),
    ("everywire demo", Stays("Counters.Seconds")),
    ("cargo run -p account --bin server &", Stays("IOR:")),
    ("everywire call iiop://127.0.0.1:2809/account withdraw 1000", Ends(1)),
    ("everywire watch iiop://127.0.0.1:2809/account", Stays("watching")),
    ("everywire trace iiop", Stays("IOR:")),
    ("kill %cargo; wait %cargo", Stops),
    ("everywire dcopserver &", Stays("local/")),
    ("cargo run -p account --bin server -- iiop", Stays("IOR:")),
    ("make derby", Left("takes ten minutes; its parts are the tests of cli/tests/derby.rs")),
    ("make test", Left("this is one of its tests")),
];

const OF_GUIDE: &[(&str, Does)] = &[
    ("cargo install", Left("compiles for minutes; `scripts/dist-try.sh` installs what it makes")),
    ("everywire demo", Stays("Counters.Seconds")),
    // The contract has a mistake, and the command is about how it is shown.
    ("everywire describe broken.idl", Ends(2)),
    ("cargo run -p player --bin jukebox", Stays("player.sock")),
    ("everywire watch dbus:session/org.example.Player/player", Stays("watching")),
    ("everywire dcopserver &", Stays("local/")),
    ("cargo run -p account --bin server -- iiop", Stays("IOR:")),
    ("cargo run -p boiler --bin kettle &", Stays("9fd8ca65")),
    (
        "cargo run -p boiler --bin kettle -- 'dcom://127.0.0.1:4135?users=users' &",
        Instead("9fd8ca65", "bin kettle"),
    ),
    ("everywire serve boiler.midl", Left("needs a realm of Kerberos: tests/dcom_kerberos.rs has one")),
    ("kinit ada", Left("needs a realm of Kerberos: tests/dcom_kerberos.rs has one")),
    ("everywire call 'dcom://EXAMPLE.ORG", Left("needs a realm of Kerberos: tests/dcom_kerberos.rs has one")),
    (
        "cargo run -p boiler --bin kettle -- 'dcom://127.0.0.1:4135?users=users&credentials",
        Instead("9fd8ca65", "bin kettle"),
    ),
    ("everywire watch dcom://", Stays("watching")),
    (
        "everywire serve boiler.idl",
        Left("its program, boiler.py, is the reader's own; cli/tests/dcom.rs has one"),
    ),
    ("setcap", Left("changes the machine")),
    ("sysctl", Left("changes the machine")),
    ("./kettle", Left("is the reader's own copy of a program that runs above")),
    ("cargo run -p account --bin server -- 'net.tcp", Stays("4080")),
    ("everywire gen rust net.tcp://host/Orders", Left("its host is an example")),
    ("everywire describe net.tcp://host/Orders", Left("its host is an example")),
    (
        "everywire serve account.wsdl --interface Account --key account --exec \"python3 account.py\" --on 'net.tcp://127.0.0.1:4808",
        Instead("4080", "127.0.0.1:4808"),
    ),
    ("everywire serve account.wsdl ...", Left("its dots stand for what the section before has")),
    ("everywire call net.tcp://ada:lovelace@host", Left("its host is an example")),
    (
        "everywire serve account.wsdl --interface Account --key account --exec \"python3 account.py\" --on 'net.tcp://127.0.0.1:4810",
        Stays("4810"),
    ),
    ("everywire watch net.tcp://host/hello", Left("its host is an example")),
    ("everywire trace net.tcp", Stays("9808")),
    ("everywire list dbus:session/org.example.Player", Ends(0)),
    ("everywire trace dbus:session", Stays("")),
    ("everywire serve account.idl", Instead("IOR:", "bin server -- iiop")),
];

/// Where the commands of a document are run.
struct Room {
    dir: PathBuf,
}

impl Room {
    /// With the programs on its path, and the files that the documents name.
    fn new(name: &str) -> Self {
        let dir = scratch(name);
        for folder in ["bin", "home", "run", "here"] {
            fs::create_dir_all(dir.join(folder)).expect("a directory");
        }
        fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o700)).expect("our own");
        let room = Self { dir };
        let link = |to: &Path, name: &str| symlink(to, room.dir.join(name)).expect("a link");
        // Installed, not linked to: the program finds nothing of the project beside itself.
        let (program, installed) = (everywire(), room.dir.join("bin/everywire"));
        let program = fs::canonicalize(program.get_program()).expect("the program is built");
        fs::hard_link(&program, &installed)
            .or_else(|_| fs::copy(&program, &installed).map(drop))
            .expect("the program is installed");
        link(&root().join("examples"), "here/examples");
        link(&root().join("examples/account/contracts/account.idl"), "here/account.idl");
        let shim = format!(
            "#!/bin/sh\n# `cargo run -p NAME --bin PROGRAM -- ARGUMENTS`, where all is built.\n\
             [ \"$1 $2 $4\" = 'run -p --bin' ] || {{ echo \"cargo $* is not for a test\" >&2; exit 64; }}\n\
             program={}/$5; shift 5; [ \"$1\" != -- ] || shift\nexec \"$program\" \"$@\"\n",
            programs().display()
        );
        let path = room.dir.join("bin/cargo");
        fs::write(&path, shim).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our own");
        room
    }

    /// What differs in each run, as the documents print it.
    fn as_printed(&self, line: &str) -> String {
        let mut line = line.replace(&format!("{}/run", self.dir.display()), "/run/user/1000");
        // The process is part of a name.
        let mark = "everywire-demo-";
        if let Some((before, after)) = line.clone().split_once(mark) {
            line = format!("{before}{mark}4711{}", after.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        line
    }
}

/// Where the programs of the examples are. They are built with the tests of the examples, and here if this crate's are run alone.
fn programs() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_peer")).parent().expect("a directory").to_owned();
    let all = ["server", "client", "jukebox", "remote", "kettle", "cook"];
    if !all.iter().all(|program| profile.join(program).exists()) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args([
            "build", "--quiet", "--locked", "-p", "account", "-p", "player", "-p", "boiler", "--bins",
        ]);
        build.arg("--target-dir").arg(profile.parent().expect("the target")).current_dir(root());
        assert!(build.status().expect("cargo runs").success(), "the examples cannot be built");
    }
    profile
}

/// Runs the commands of a document; what is wrong with them.
fn run(name: &str, document: &str, list: &[(&str, Does)], files: &[(&str, Vec<u8>)]) -> Vec<String> {
    let room = Room::new(name);
    for (file, text) in files {
        let path = room.dir.join("here").join(file);
        // It may be a link to a file of the project.
        let _ = fs::remove_file(&path);
        fs::write(path, text).expect("a file");
    }
    let mut shell = Shell::start(&room.dir);
    let mut wrong = Vec::new();
    let mut used = HashSet::new();
    for block in blocks::of(document) {
        let mut whole = true;
        for command in &block.commands {
            let entry = list.iter().position(|(prefix, _)| command.starts_with(prefix));
            used.extend(entry);
            let does = entry.and_then(|entry| list.get(entry)).map_or(&Ends(0), |(_, does)| does);
            let at = |what: &str| format!("line {}: {command}\n    {what}", block.line);
            match does {
                Ends(code) => match shell.run(command) {
                    Ok(ended) if ended == *code => {}
                    Ok(ended) => wrong.push(at(&format!("ends with {ended}: {}", shell.last()))),
                    Err(why) => wrong.push(at(&why)),
                },
                Stops => match shell.run(command) {
                    Ok(0 | 143) => {}
                    Ok(ended) => wrong.push(at(&format!("ends with {ended}: {}", shell.last()))),
                    Err(why) => wrong.push(at(&why)),
                },
                Stays(ready) | Instead(ready, _) => {
                    if let Instead(_, other) = does {
                        shell.end(other);
                    }
                    if let Err(why) = shell.stays(command.trim_end_matches(" &"), ready) {
                        wrong.push(at(&why));
                    }
                }
                Left(why) => {
                    eprintln!("not run: {command}\n    {why}");
                    whole = false;
                }
            }
        }
        let printed: Vec<String> = shell.printed().iter().map(|line| room.as_printed(line)).collect();
        if let Some(missing) = block.missing(&printed).filter(|_| whole) {
            wrong.push(format!(
                "line {}: nothing prints `{missing}`, but\n{}",
                block.line,
                printed.join("\n")
            ));
        }
    }
    let unused = list.iter().enumerate().filter(|(index, _)| !used.contains(index));
    wrong.extend(unused.map(|(_, (prefix, _))| format!("no command begins with `{prefix}`")));
    wrong
}

const PEERS: [&str; 4] = ["dbus-daemon", "gdbus", "busctl", "python3"];

#[test]
fn the_commands_of_the_readme_work_as_printed() {
    const TEST: &str = "the_commands_of_the_readme_work_as_printed";
    if !here(TEST, &PEERS) || !alone(TEST) {
        return;
    }
    let wrong = run("readme", README, OF_README, &[]);
    assert!(wrong.is_empty(), "README.md\n{}", wrong.join("\n"));
}

#[test]
fn the_commands_of_the_guide_work_as_printed() {
    const TEST: &str = "the_commands_of_the_guide_work_as_printed";
    if !here(TEST, &[&PEERS[..], &["openssl", "curl"]].concat()) || !alone(TEST) {
        return;
    }
    let program =
        blocks::fenced(tasks::SERVE, "python").into_iter().find(|text| text.contains("Bank::Overdrawn"));
    let files = [
        ("account.py", program.expect("the program of `Serve an object`").into_bytes()),
        ("broken.idl", b"interface Broken { void f(in Unknown x); };\n".to_vec()),
        (
            "capture.pcap",
            fs::read(root().join("wires/giop/tests/golden/omni-advcb.pcap")).expect("a capture"),
        ),
    ];
    let wrong = run("guide", GUIDE, OF_GUIDE, &files);
    assert!(wrong.is_empty(), "docs/guide.md\n{}", wrong.join("\n"));
}

/// Pages with commands that no test runs as they are printed, and why.
const NOT_RUN: &[(&str, &str)] = &[
    ("docs/at-most-once.md", "runs tests of this project"),
    ("docs/derby.md", "races for minutes; its parts are the tests of cli/tests/derby.rs"),
    ("docs/transcripts/README.md", "records what tests of this project compare with"),
];

/// Whoever writes a page with commands has them run, or says why not.
#[test]
fn each_page_with_commands_is_run() {
    let run: HashSet<&str> = tasks::PAGES.iter().copied().chain(["README.md", "docs/guide.md"]).collect();
    let mut found = HashSet::new();
    let mut folders = vec![root().join("docs")];
    let mut pages = vec![root().join("README.md")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    for page in pages {
        if !blocks::of(&fs::read_to_string(&page).expect("readable")).is_empty() {
            found.insert(page.strip_prefix(root()).expect("of the project").to_string_lossy().into_owned());
        }
    }
    let known = |page: &str| run.contains(page) || NOT_RUN.iter().any(|(left, _)| *left == page);
    let unknown: Vec<&String> = found.iter().filter(|page| !known(page)).collect();
    assert!(unknown.is_empty(), "no test runs the commands of {unknown:?}");
    let gone: Vec<&str> = run
        .into_iter()
        .chain(NOT_RUN.iter().map(|(page, _)| *page))
        .filter(|page| !found.contains(*page))
        .collect();
    assert!(gone.is_empty(), "there are no commands in {gone:?}");
}

/// The contract that README prints is the file that it names.
#[test]
fn the_contract_of_the_readme_is_the_file() {
    let file =
        fs::read_to_string(root().join("examples/account/contracts/account.idl")).expect("the contract");
    let printed = blocks::fenced(README, "idl").into_iter().next().expect("a contract");
    assert_eq!(blocks::without_comments(&printed), blocks::without_comments(&file));
}
