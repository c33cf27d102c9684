//! The files of cookies: made right, trusted only if right, and shared with other processes.

#![allow(clippy::unwrap_used)]

use crate::support::{Scratch, chmod, fixed, mode};
use everywire_auth::sasl::{Keyring, KeyringError};
use everywire_auth::{TrustError, system_random};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn a_server_makes_what_a_client_finds() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    let made = keyring.current("everywire", system_random).unwrap();
    assert_eq!(made.secret.len(), 48);
    assert!(now() - made.created < 60);
    assert_eq!(mode(&scratch.join("keys")), 0o700);
    assert_eq!(mode(&scratch.join("keys/everywire")), 0o600);
    assert_eq!(keyring.find("everywire", made.id).unwrap(), made);
    assert_eq!(keyring.current("everywire", system_random).unwrap(), made, "it is young enough");
    assert!(!format!("{made:?}").contains(&made.secret), "secrets are not shown");
    let names: Vec<_> =
        fs::read_dir(scratch.join("keys")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["everywire"], "no lock and no half-written file is left");
}

#[test]
fn old_cookies_are_replaced_and_then_dropped() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    keyring.current("everywire", system_random).unwrap();
    let file = scratch.join("keys/everywire");
    let old = format!("1 {} aa\n2 {} bb\n3 {} cc\n", now() - 3600, now() - 330, now() + 3600);
    fs::write(&file, old).unwrap();
    let made = keyring.current("everywire", system_random).unwrap();
    assert!(![1, 2, 3].contains(&made.id));
    assert_eq!(keyring.find("everywire", 2).unwrap().secret, "bb", "its number may just have been sent");
    assert_eq!(keyring.find("everywire", 1), Err(KeyringError::NoCookie { id: 1 }));
    assert_eq!(keyring.find("everywire", 3), Err(KeyringError::NoCookie { id: 3 }));
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn numbers_are_not_used_twice() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    let first = keyring.current("everywire", fixed).unwrap();
    fs::write(scratch.join("keys/everywire"), format!("{} {} aa\n", first.id, now() - 330)).unwrap();
    assert_eq!(keyring.current("everywire", fixed).unwrap().id, first.id + 1);
}

/// A keyring reached through a symbolic link, at either level, could be anybody's file.
#[test]
fn cve_2019_12749_symbolic_links() {
    let scratch = Scratch::new();
    let real = Keyring::at(scratch.join("real"));
    let cookie = real.current("everywire", system_random).unwrap();
    symlink(scratch.join("real"), scratch.join("link")).unwrap();
    let linked = Keyring::at(scratch.join("link"));
    let untrusted = |path: &str, why| KeyringError::Untrusted { path: scratch.join(path), why };
    assert_eq!(linked.find("everywire", cookie.id), Err(untrusted("link", TrustError::NotADirectory)));
    assert_eq!(linked.current("other", system_random), Err(untrusted("link", TrustError::NotADirectory)));
    assert!(!scratch.join("real/other").exists());

    symlink(scratch.join("real/everywire"), scratch.join("real/alias")).unwrap();
    assert_eq!(real.find("alias", cookie.id), Err(untrusted("real/alias", TrustError::NotAFile)));
    assert_eq!(real.current("alias", system_random), Err(untrusted("real/alias", TrustError::NotAFile)));

    // Nor is a link that leads nowhere written through.
    symlink(scratch.join("target"), scratch.join("real/new")).unwrap();
    assert_eq!(real.current("new", system_random), Err(untrusted("real/new", TrustError::NotAFile)));
    symlink(scratch.join("target"), scratch.join("nowhere")).unwrap();
    let nowhere = Keyring::at(scratch.join("nowhere"));
    assert_eq!(nowhere.current("new", system_random), Err(untrusted("nowhere", TrustError::NotADirectory)));
    assert!(!scratch.join("target").exists());
}

#[test]
fn others_may_have_no_access() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    let cookie = keyring.current("everywire", system_random).unwrap();
    let untrusted = |path: &str, mode| {
        Err(KeyringError::Untrusted { path: scratch.join(path), why: TrustError::Mode { mode } })
    };
    chmod(&scratch.join("keys/everywire"), 0o604);
    assert_eq!(keyring.find("everywire", cookie.id), untrusted("keys/everywire", 0o604));
    assert_eq!(keyring.current("everywire", system_random), untrusted("keys/everywire", 0o604));
    chmod(&scratch.join("keys/everywire"), 0o400);
    assert_eq!(keyring.find("everywire", cookie.id).unwrap(), cookie);
    chmod(&scratch.join("keys"), 0o750);
    assert_eq!(keyring.find("everywire", cookie.id), untrusted("keys", 0o750));
    assert_eq!(keyring.current("new", system_random), untrusted("keys", 0o750));
}

#[test]
fn somebody_elses_file() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    let cookie = keyring.current("everywire", system_random).unwrap();
    let file = scratch.join("keys/everywire");
    // Only root can give files away.
    if std::os::unix::fs::chown(&file, Some(everywire_auth::own_uid() + 1), None).is_err() {
        eprintln!("SKIPPED: somebody_elses_file: this user may not give files away");
        return;
    }
    let uid = everywire_auth::own_uid() + 1;
    let why = TrustError::Owner { uid };
    assert_eq!(keyring.find("everywire", cookie.id), Err(KeyringError::Untrusted { path: file, why }));
}

#[test]
fn odd_files_are_refused() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys"));
    keyring.current("everywire", system_random).unwrap();
    let file = scratch.join("keys/everywire");
    fs::write(&file, vec![b'1'; 100_000]).unwrap();
    assert_eq!(keyring.find("everywire", 1), Err(KeyringError::TooLarge { path: file }));
    fs::create_dir(scratch.join("keys/directory")).unwrap();
    let error = keyring.find("directory", 1).unwrap_err();
    assert!(matches!(error, KeyringError::Untrusted { why: TrustError::NotAFile, .. }), "{error}");
    for context in ["", ".", "..", "a/b", "/etc/passwd", "a b", "a\nb", "a\0b", "a.lock", &"x".repeat(129)] {
        assert_eq!(keyring.current(context, system_random), Err(KeyringError::BadContext), "{context:?}");
    }
}

#[test]
fn a_held_lock_is_waited_for_and_not_broken() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys")).with_patience(Duration::from_millis(20));
    keyring.current("other", system_random).unwrap();
    let lock = scratch.join("keys/everywire.lock");
    fs::write(&lock, "").unwrap();
    let error = keyring.current("everywire", system_random).unwrap_err();
    assert_eq!(error, KeyringError::Locked { path: lock.clone() });
    assert!(lock.exists());
    // One that nobody can hold any more is.
    let file = fs::File::options().write(true).open(&lock).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(60)).unwrap();
    keyring.current("everywire", system_random).unwrap();
    assert!(!lock.exists());
}

#[test]
fn many_servers_at_once_make_one_cookie() {
    let scratch = Scratch::new();
    let keyring = Keyring::at(scratch.join("keys")).with_patience(Duration::from_secs(60));
    let cookies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| keyring.current("everywire", system_random).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(cookies.iter().all(|cookie| *cookie == cookies[0]), "{cookies:?}");
}
