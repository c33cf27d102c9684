//! Nothing lost, nothing doubled, where the machine has nothing left: a server that gets no descriptor, a client that gets none, a servant
//! whose disk is full. What callers were told is held against the list of calls, as in the other faults; and when there is enough again,
//! everybody is served by the same server.
//!
//! Invariant: nothing here waits for time to pass, except calls to a server that cannot take their connection: those wait for their
//! deadlines. `EVERYWIRE_FAULTS_SECONDS` repeats it all for so long, as `make soak` does.

use super::course::Course;
use super::{DEADLINE, Told, call_quietly, seconds, summary, wrong};
use crate::common::foreign::{PATIENCE, until};
use crate::common::house::{self, FULL, INTERFACE, Log, Process, Settings};
use crate::common::scratch;
use everywire::{Failure, Node};
use everywire_tests::again::{only, this_program};
use everywire_tests::peers::{here, skip};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Instant;

/// Calls of each kind in a round.
const CALLS: usize = 5;
/// Descriptors that a process may have.
const DESCRIPTORS: u64 = 96;
/// The size of the disk, and of what lies on it until it is needed.
const DISK: usize = 64 << 10;
const BALLAST: usize = 32 << 10;

fn courses(what: &str) -> [Course; 5] {
    let socket = |name: &str, scheme: &str, serving: &str, calling: &str| {
        Course::socket(name, scheme, serving, calling, &scratch(&format!("{what}-{name}")))
    };
    [
        socket("giop", "iiop", "", ""),
        socket("dbus", "dbus", "", ""),
        socket("dcom", "dcom", "", "?exporter=here"),
        socket("wcf", "net.tcp", "?security=none", "?security=none"),
        socket("http", "basic", "?security=none", "?security=none"),
    ]
}

/// A client whose calls end by an event, however busy the machine is.
fn node() -> Node {
    Node::builder().deadline(Some(PATIENCE)).build().into()
}

/// A client that cannot be served, and waits for its deadline.
fn hasty() -> Node {
    Node::builder().deadline(Some(DEADLINE)).build().into()
}

/// So many calls of a node; what each was told.
fn calls(node: &Node, address: &str, numbers: &AtomicI32, many: usize, told: &mut Told) {
    let object = house::object(node, address);
    for _ in 0..many {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        match object.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,)) {
            Ok((sum,)) => {
                assert_eq!(sum, number + 1, "the answer of another call");
                told.acknowledged.push(number);
            }
            Err(failure) => told.failed.push((number, failure)),
        }
    }
}

/// Rounds on one wire until its part of the time of the long run is over; three in the short one.
fn rounds(mut round: impl FnMut()) {
    let end = seconds().map(|seconds| Instant::now() + seconds / 5);
    for made in 0.. {
        if end.map_or(made >= 3, |end| Instant::now() >= end) {
            return;
        }
        round();
    }
}

/// Holds what callers were told against the list; some were answered. A servant that could not write a call down has
/// said so itself: to the wire that is an answer, and not every wire has a word for one that says that nothing was begun.
fn judge(name: &str, told: &Told, log: &Log) {
    let ran = log.read().began;
    println!("scarce {name}: {:?}", summary(told));
    let (own, others) =
        told.failed.iter().cloned().partition(|(_, failure)| failure.message().contains(FULL));
    let own: Vec<(i32, Failure)> = own;
    assert!(own.iter().all(|(number, _)| ran.get(number).is_none_or(|times| *times == 1)), "{name}: {own:?}");
    let wrong = wrong(&Told { acknowledged: told.acknowledged.clone(), failed: others }, &ran);
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    assert!(!told.acknowledged.is_empty(), "{name}: no call got through");
}

fn started(course: &Course, descriptors: Option<u64>) -> (Process, Log) {
    let log = Log::new(course.behind.with_file_name("log"));
    let settings = Settings { connections: 1000, idle: 0, open: true, descriptors };
    (Process::start(&course.listen, &log, settings), log)
}

/// Whoever is connected is served though there is no descriptor; who comes then is not, or later; afterwards everybody is.
#[test]
fn a_server_without_descriptors_loses_and_doubles_nothing() {
    for course in courses("descriptors") {
        let (server, log) = started(&course, Some(DESCRIPTORS));
        let (address, numbers, mut told) = (course.direct(), AtomicI32::new(1), Told::default());
        rounds(|| {
            // A connection of the round before that ends now would leave a descriptor.
            server.quiet();
            let old = node();
            calls(&old, &address, &numbers, 1, &mut told);
            let before = told.acknowledged.len();
            assert!(server.starve() > 0, "{}: there was nothing to take", course.name);
            calls(&old, &address, &numbers, CALLS, &mut told);
            assert_eq!(told.acknowledged.len(), before + CALLS, "{}: {:?}", course.name, told.failed);
            calls(&hasty(), &address, &numbers, 1, &mut told);
            server.feed();
            calls(&old, &address, &numbers, CALLS, &mut told);
            told.acknowledged.push(call_quietly(&address, &numbers));
        });
        judge(&course.name, &told, &log);
    }
}

/// Everything that can be opened now.
fn hoard() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// A client that gets no descriptor is told that its call did not run, and calls again when it gets one. In a process of its own, since
/// nobody else there gets one either.
#[test]
fn a_client_without_descriptors_loses_and_doubles_nothing() {
    const MARK: &str = "EVERYWIRE_TEST_HOARDS";
    let test = "a_client_without_descriptors_loses_and_doubles_nothing";
    if std::env::var_os(MARK).is_none() {
        return again(this_program().args(only(test)).env(MARK, "1"), test);
    }
    house::allow_descriptors(DESCRIPTORS);
    for course in courses("hoarding") {
        let (_server, log) = started(&course, None);
        let (address, numbers, mut told) = (course.direct(), AtomicI32::new(1), Told::default());
        rounds(|| {
            let (old, fresh) = (node(), node());
            calls(&old, &address, &numbers, 1, &mut told);
            let before = told.acknowledged.len();
            let hoard = hoard();
            calls(&old, &address, &numbers, CALLS, &mut told);
            assert_eq!(told.acknowledged.len(), before + CALLS, "{}: {:?}", course.name, told.failed);
            let failed = told.failed.len();
            calls(&fresh, &address, &numbers, CALLS, &mut told);
            assert_eq!(told.failed.len(), failed + CALLS, "{}: there was a descriptor", course.name);
            drop(hoard);
            let before = told.acknowledged.len();
            calls(&fresh, &address, &numbers, CALLS, &mut told);
            assert_eq!(told.acknowledged.len(), before + CALLS, "{}: {:?}", course.name, told.failed);
        });
        judge(&course.name, &told, &log);
    }
}

/// Runs this test once more, to its end.
fn again(command: &mut Command, test: &str) {
    let output = command.output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("1 passed"), "{test} did not run: {out}");
    print!("{out}");
}

/// A disk of a few KiB that this process alone sees; or nothing, after the test was run to its end with one, or loudly skipped.
fn small_disk(test: &str) -> Option<PathBuf> {
    const MARK: &str = "EVERYWIRE_TEST_DISK";
    if let Some(disk) = std::env::var_os(MARK) {
        return Some(disk.into());
    }
    if !here(test, &["unshare"]) {
        return None;
    }
    // SAFETY: it has no preconditions.
    let privileged = unsafe { libc::geteuid() } == 0;
    let unshare = |order: &str| {
        let mut command = Command::new("unshare");
        command.args([if privileged { "-m" } else { "-rm" }, "sh", "-c", order, "sh"]);
        command
    };
    let disk = scratch("disk");
    let order = format!("mount -t tmpfs -o size={DISK} none '{}' && exec \"$@\"", disk.display());
    let works = unshare(&order).arg("true").output().is_ok_and(|output| output.status.success());
    if !works {
        skip(test, "no disk of its own; be root, or sysctl kernel.unprivileged_userns_clone=1");
        return None;
    }
    let mut command = unshare(&order);
    command.arg(this_program().get_program()).args(only(test)).env(MARK, &disk);
    again(&mut command, test);
    None
}

/// A call that the servant cannot write down is not begun; when there is room again the same server goes on.
#[test]
fn a_servant_whose_disk_is_full_loses_and_doubles_nothing() {
    let Some(disk) = small_disk("a_servant_whose_disk_is_full_loses_and_doubles_nothing") else { return };
    for course in courses("disk") {
        let log = Log::new(disk.join("log"));
        let server = Process::start(
            &course.listen,
            &log,
            Settings { connections: 1000, idle: 0, open: true, descriptors: None },
        );
        let (address, numbers, mut told) = (course.direct(), AtomicI32::new(1), Told::default());
        let node = node();
        let room = fill(&disk, BALLAST);
        until("the disk is full", || {
            calls(&node, &address, &numbers, 50, &mut told);
            !told.failed.is_empty()
        });
        let full = told.acknowledged.len();
        calls(&node, &address, &numbers, CALLS, &mut told);
        assert_eq!(told.acknowledged.len(), full, "{}: the disk is full", course.name);
        fs::remove_file(room).expect("it can be removed");
        calls(&node, &address, &numbers, CALLS, &mut told);
        assert_eq!(told.acknowledged.len(), full + CALLS, "{}: {:?}", course.name, told.failed.last());
        judge(&course.name, &told, &log);
        drop(server);
        fs::remove_file(disk.join("log")).expect("it can be removed");
    }
}

/// A file of so many bytes on this disk.
fn fill(disk: &Path, bytes: usize) -> PathBuf {
    let file = disk.join("ballast");
    File::create(&file).and_then(|mut file| file.write_all(&vec![7; bytes])).expect("there is room");
    file
}
