//! The ICE authority file, by itself and together with the program `iceauth`.

#![allow(clippy::unwrap_used)]

use crate::support::{Scratch, broken, chmod, mode, unhex};
use everywire_auth::ice::{
    AuthorityError, AuthorityFile, COOKIE_LEN, Entry, MAGIC_COOKIE, MAX_ENTRIES, MAX_FILE, NotEntries, parse,
    print,
};
use everywire_auth::{TrustError, system_random};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const NETID: &str = "local/vm:/tmp/.ICE-unix/dcop21227-1795227108";

/// What two `dcopserver` processes of KDE 3.5 left behind.
fn captured() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ICEauthority.xxd");
    let text = fs::read_to_string(path).unwrap();
    text.lines().flat_map(|line| unhex(&line[10..50.min(line.len())])).collect()
}

fn file(scratch: &Scratch, bytes: &[u8]) -> AuthorityFile {
    let path = scratch.join("ICEauthority");
    fs::write(&path, bytes).unwrap();
    chmod(&path, 0o600);
    AuthorityFile::at(path)
}

fn entry(protocol: &str, netid: &str, secret: u8) -> Entry {
    Entry {
        protocol: protocol.into(),
        data: vec![],
        netid: netid.into(),
        method: MAGIC_COOKIE.into(),
        secret: vec![secret; COOKIE_LEN],
    }
}

#[test]
fn a_captured_file() {
    let scratch = Scratch::new();
    let file = file(&scratch, &captured());
    let entries = file.read().unwrap();
    assert_eq!(entries.len(), 4);
    assert_eq!(print(&entries), Some(captured()));
    let ice = file.find("ICE", NETID).unwrap().unwrap();
    assert_eq!(ice.secret, unhex("65e17f6cd607def5d54f1286c0b0e10c"));
    assert!(ice.matches(&unhex("65e17f6cd607def5d54f1286c0b0e10c")));
    assert!(!ice.matches(&unhex("65e17f6cd607def5d54f1286c0b0e10d")));
    assert!(!ice.matches(&ice.secret[..15]) && !ice.matches(&[]));
    assert!(!Entry { secret: vec![], ..ice.clone() }.matches(&[]), "no secret is not the empty secret");
    assert_eq!(file.find("DCOP", NETID).unwrap().unwrap().secret, unhex("edc89cde2f866c15f003d5502 9e0060f"));
    assert_eq!(file.find("XSMP", NETID).unwrap(), None);
    assert_eq!(file.find("DCOP", "local/vm:/tmp/.ICE-unix/dcop2").unwrap(), None);
    assert!(!format!("{ice:?}").contains("65"), "secrets are not shown");
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = captured();
    let ends: Vec<usize> = {
        let entries = parse(&bytes).unwrap();
        (0..=entries.len()).map(|count| print(&entries[..count]).unwrap().len()).collect()
    };
    for len in 0..bytes.len() {
        let begun = ends.iter().rposition(|end| *end <= len).unwrap();
        match parse(&bytes[..len]) {
            Ok(entries) => assert_eq!((entries.len(), ends[begun]), (begun, len)),
            Err(wrong) => assert_eq!(wrong, NotEntries::Truncated { offset: ends[begun] }, "{len}"),
        }
    }
    let scratch = Scratch::new();
    let file = file(&scratch, &bytes[..bytes.len() - 1]);
    let (path, offset) = (file.path().to_owned(), ends[3]);
    assert_eq!(file.read(), Err(AuthorityError::Truncated { path: path.clone(), offset }));
    // Nor is such a file rewritten: what is lost would stay lost.
    assert_eq!(file.add(&[entry("DCOP", "x", 1)]), Err(AuthorityError::Truncated { path, offset }));
    assert_eq!(fs::read(file.path()).unwrap(), &bytes[..bytes.len() - 1]);
}

#[test]
fn limits() {
    let scratch = Scratch::new();
    let huge = file(&scratch, &vec![0; usize::try_from(MAX_FILE).unwrap() + 1]);
    let too_large = AuthorityError::TooLarge { path: huge.path().to_owned() };
    assert_eq!(huge.read(), Err(too_large.clone()));
    // Ten zero bytes are an empty entry.
    assert_eq!(parse(&vec![0; 10 * MAX_ENTRIES]).unwrap().len(), MAX_ENTRIES);
    assert_eq!(parse(&vec![0; 10 * MAX_ENTRIES + 10]), Err(NotEntries::TooMany));
    assert_eq!(file(&scratch, &vec![0; 10 * MAX_ENTRIES + 10]).read(), Err(too_large.clone()));
    let full = file(&scratch, &vec![0; 10 * MAX_ENTRIES]);
    assert_eq!(full.add(&[entry("DCOP", "x", 1)]), Err(too_large));
    let long = Entry { netid: vec![b'n'; 65536], ..entry("DCOP", "", 1) };
    assert_eq!(print(std::slice::from_ref(&long)), None);
    assert_eq!(file(&scratch, &[]).add(&[long]), Err(AuthorityError::TooLong));
}

#[test]
fn add_replace_remove() {
    let scratch = Scratch::new();
    let path = scratch.join("new");
    let file = AuthorityFile::at(&path);
    assert_eq!(file.read(), Err(AuthorityError::Missing { path: path.clone() }));
    assert_eq!(file.remove(|_| true), Ok(0));
    assert!(!path.exists(), "removing nothing makes no file");
    file.add(&[entry("ICE", "a", 1), entry("DCOP", "a", 2)]).unwrap();
    assert_eq!(mode(&path), 0o600);
    let before = fs::metadata(&path).unwrap().ino();
    file.add(&[entry("DCOP", "b", 3), entry("ICE", "a", 4)]).unwrap();
    assert_ne!(fs::metadata(&path).unwrap().ino(), before, "it is replaced, not written over");
    let other_method = Entry { method: b"OTHER".to_vec(), ..entry("ICE", "a", 9) };
    file.add(std::slice::from_ref(&other_method)).unwrap();
    let expected = [entry("DCOP", "a", 2), entry("DCOP", "b", 3), entry("ICE", "a", 4), other_method];
    assert_eq!(file.read().unwrap(), expected);
    assert_eq!(file.remove(|entry| entry.netid == b"a" && entry.method == MAGIC_COOKIE.as_bytes()), Ok(2));
    assert_eq!(file.read().unwrap(), [expected[1].clone(), expected[3].clone()]);
    let names: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["new"], "no lock and no half-written file is left");
}

/// CVE-2017-2626: cookies must not be guessed.
#[test]
fn fresh_cookies() {
    let one = Entry::fresh("DCOP", NETID, system_random).unwrap();
    let other = Entry::fresh("DCOP", NETID, system_random).unwrap();
    assert!(one.is_for("DCOP", NETID));
    assert_eq!(one.secret.len(), 16);
    assert_ne!(one.secret, other.secret);
    assert_eq!(Entry::fresh("DCOP", NETID, broken), Err(AuthorityError::NoRandom));
}

#[test]
fn files_that_others_can_read_are_refused() {
    let scratch = Scratch::new();
    let file = file(&scratch, &captured());
    for open in [0o640, 0o604, 0o620, 0o644] {
        chmod(file.path(), open);
        let error = file.read().unwrap_err();
        let why = TrustError::Mode { mode: open };
        assert_eq!(error, AuthorityError::Untrusted { path: file.path().to_owned(), why });
        let hint = everywire_model::Failure::from(error).hint().unwrap().to_owned();
        assert!(hint.starts_with("chmod go= /"), "{hint}");
    }
}

#[test]
fn can_2005_0365_nobody_else_has_a_hand_where_the_file_is_written() {
    let scratch = Scratch::new();
    let file = file(&scratch, &captured());
    for open in [0o770, 0o707, 0o1777] {
        chmod(scratch.path(), open);
        let error = file.add(&[entry("DCOP", "x", 1)]).unwrap_err();
        let why = TrustError::Mode { mode: open };
        assert_eq!(error, AuthorityError::Untrusted { path: scratch.path().to_owned(), why });
    }
    chmod(scratch.path(), 0o755);
    file.add(&[entry("DCOP", "x", 1)]).unwrap();

    let link = scratch.join("link");
    symlink(file.path(), &link).unwrap();
    let why = TrustError::NotAFile;
    let linked = AuthorityFile::at(&link);
    assert_eq!(linked.read(), Err(AuthorityError::Untrusted { path: link.clone(), why }));
    assert_eq!(linked.add(&[entry("DCOP", "y", 1)]), Err(AuthorityError::Untrusted { path: link, why }));
    // The lock's first file is not made through a link either.
    symlink(scratch.join("target"), scratch.join("ICEauthority-c")).unwrap();
    assert_eq!(file.add(&[entry("DCOP", "y", 1)]).unwrap_err().name(), "Io");
    assert!(!scratch.join("target").exists());
}

#[test]
fn the_lock_of_others_is_respected() {
    let scratch = Scratch::new();
    let file = file(&scratch, &captured()).with_patience(Duration::from_millis(30));
    let (created, linked) = (scratch.join("ICEauthority-c"), scratch.join("ICEauthority-l"));
    fs::write(&created, "").unwrap();
    fs::hard_link(&created, &linked).unwrap();
    let error = file.add(&[entry("DCOP", "x", 1)]).unwrap_err();
    assert_eq!(error, AuthorityError::Locked { path: linked.clone() });
    assert_eq!(fs::read(file.path()).unwrap(), captured());
    assert!(created.exists() && linked.exists());
    // Half a lock is none: its maker has not got it yet.
    fs::remove_file(&linked).unwrap();
    file.add(&[entry("DCOP", "x", 1)]).unwrap();
    assert!(!created.exists() && !linked.exists());
}

#[test]
fn many_at_once_lose_nothing() {
    let scratch = Scratch::new();
    let file = AuthorityFile::at(scratch.join("new")).with_patience(Duration::from_secs(60));
    std::thread::scope(|scope| {
        for number in 0..6 {
            let file = &file;
            scope.spawn(move || file.add(&[entry("DCOP", &format!("n{number}"), number)]).unwrap());
        }
    });
    assert_eq!(file.read().unwrap().len(), 6);
}

#[test]
fn together_with_iceauth() {
    if !everywire_peers::here("together_with_iceauth", &["iceauth"]) {
        return;
    }
    let scratch = Scratch::new();
    let file = AuthorityFile::at(scratch.join("both"));
    let iceauth = |arguments: &[&str]| {
        let run = Command::new("iceauth").arg("-f").arg(file.path()).args(arguments).output().unwrap();
        assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
        String::from_utf8(run.stdout).unwrap()
    };
    let ours = Entry::fresh("DCOP", "local/host:/ours", system_random).unwrap();
    file.add(std::slice::from_ref(&ours)).unwrap();
    let digits: String = ours.secret.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        iceauth(&["list"]).trim_end(),
        format!("DCOP \"\" local/host:/ours MIT-MAGIC-COOKIE-1 {digits}")
    );
    let theirs = "00112233445566778899aabbccddeeff";
    iceauth(&["add", "ICE", "", "local/host:/theirs", "MIT-MAGIC-COOKIE-1", theirs]);
    let found = file.find("ICE", "local/host:/theirs").unwrap().unwrap();
    assert_eq!(found.secret, unhex(theirs));
    assert_eq!(file.find("DCOP", "local/host:/ours").unwrap(), Some(ours));
}

#[test]
fn where_it_is() {
    // The environment is the process's: look, and compare with what is set.
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let candidates = AuthorityFile::candidates();
    match (set("ICEAUTHORITY"), set("HOME")) {
        (Some(path), _) => assert_eq!(candidates[0].path(), Path::new(&path)),
        (None, Some(home)) => {
            let last = candidates.last().unwrap();
            assert_eq!(last.path(), Path::new(&home).join(".ICEauthority"));
            assert_eq!(candidates.len(), 1 + usize::from(set("XDG_RUNTIME_DIR").is_some()));
        }
        (None, None) => {}
    }
    match AuthorityFile::user() {
        Ok(file) => assert_eq!(file.path(), candidates[0].path()),
        Err(error) => assert_eq!((error, candidates.len()), (AuthorityError::NoHome, 0)),
    }
}
