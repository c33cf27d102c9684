//! The list is whole and is the only one: documents print it, scripts read it as this crate does, nothing else names what is in it.

use super::{Peer, all, exists, here, install_hint, peer};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the project").to_owned()
}

/// What every Debian has, however small, and what comes with Rust.
const BASE: &[&str] =
    &["sh", "/bin/sh", "bash", "cp", "base64", "stdbuf", "true", "cat", "sleep", "timeout", "cargo", "rustc"];

#[test]
fn each_line_is_whole() {
    let lines = super::LIST.lines().filter(|line| !line.starts_with('#')).count();
    assert_eq!(all().count(), lines - 1, "a line has too few columns");
    assert!(super::LIST.lines().all(|line| line.starts_with('#') || line.split('\t').count() == 7));
    let mut names = HashSet::new();
    for peer in all() {
        assert!(names.insert(peer.name), "{} is there twice", peer.name);
        assert!(["derby", "test"].contains(&peer.needed_by), "{peer:?}");
        let ways = ["debian", "pypi", "pypi,cargo", "npm", "maven", "unpacked", "made"];
        assert!(ways.contains(&peer.from), "{peer:?}");
        let fixed = ["pypi", "pypi,cargo", "npm", "maven"].contains(&peer.from);
        assert_eq!(fixed, peer.version.starts_with(|first: char| first.is_ascii_digit()), "{peer:?}");
        assert_eq!(peer.packages().count() == 0, peer.from == "made", "{peer:?}");
        assert!(!peer.proof.is_empty() && !peer.purpose.is_empty(), "{peer:?}");
    }
}

#[test]
fn a_program_leads_to_its_peer() {
    assert_eq!(peer("kinit").name, "kerberos");
    assert_eq!(install_hint(&["kinit", "klist"]), install_hint(&["kerberos"]));
    assert!(install_hint(&["omniorb"]).ends_with("omniidl libomniorb4-dev"));
    assert_eq!(install_hint(&["openssl", "zeep"]), "bash scripts/setup.sh openssl zeep");
}

#[test]
#[should_panic(expected = "not in the list of peers")]
fn what_is_in_no_line_may_not_be_asked_for() {
    let _ = here("a test", &["a program that nobody wrote"]);
}

#[test]
fn what_is_not_here_is_told() {
    let absent = Peer { proof: "no-such-program /no/such/file", ..peer("g++") };
    assert_eq!(absent.lacks(), ["no-such-program", "/no/such/file"]);
    let absent = Peer { name: "no-such-peer", ..peer("zeep") };
    assert_eq!(absent.lacks(), ["no-such-peer"]);
}

#[test]
fn a_star_stands_for_anything_in_one_part_of_a_path() {
    for (path, there) in [
        ("pee*/src/lib.rs", true),
        ("p*s/s*c/l*b.rs", true),
        ("p*s", true),
        ("p*s/lib.rs", false),
        ("peers*s/src", false),
        ("*/*/no-such-file", false),
    ] {
        assert_eq!(exists(&root(), path), there, "{path}");
    }
}

/// `scripts/setup.sh` asks by the same rules, or it would not install what tests miss.
#[test]
fn scripts_find_what_this_crate_finds() {
    let output = Command::new("bash").arg(root().join("scripts/peers.sh")).arg("check").output();
    let output = output.expect("bash is on every system");
    let text = String::from_utf8(output.stdout).expect("text");
    let told: BTreeMap<&str, bool> = text
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace))
        .filter(|(state, _)| ["here", "MISSING"].contains(state))
        .map(|(state, rest)| (rest.split_whitespace().next().unwrap_or_default(), state == "here"))
        .collect();
    let found: BTreeMap<&str, bool> = all().map(|peer| (peer.name, peer.lacks().is_empty())).collect();
    assert_eq!(told, found, "{}", String::from_utf8_lossy(&output.stderr));
}

/// The table of documents. Recorded anew with `EVERYWIRE_RECORD=1 cargo test -p everywire-peers`.
#[test]
fn the_document_prints_the_list() {
    let file = root().join("docs/peers.md");
    let text = document();
    if std::env::var_os("EVERYWIRE_RECORD").is_some() {
        fs::write(&file, &text).expect("the document can be written");
    }
    let recorded = fs::read_to_string(&file).expect("the document is there");
    assert_eq!(recorded, text, "record it anew with EVERYWIRE_RECORD=1 cargo test -p everywire-peers");
}

fn document() -> String {
    let mut text = String::from(
        "# Peers\n\n\
         What building, racing and testing need of others, printed from the one list of it, [`peers/peers.tsv`](../peers/peers.tsv)\n\
         (`EVERYWIRE_RECORD=1 cargo test -p everywire-peers` prints it anew). `scripts/setup.sh` installs all of it on Debian,\n\
         `scripts/setup.sh derby` what `make derby` needs, `scripts/setup.sh PEER` one; `scripts/setup.sh --check` says what is\n\
         here. What comes from a registry of a language goes to the user's cache (`~/.cache/everywire`), where nothing else sees\n\
         it. `scripts/empty-root.sh` shows that the list is complete.\n",
    );
    let parts = [
        ("derby", "Building and racing", "Needed by `make derby`, and by tests too."),
        ("test", "Testing", "Needed by tests, measurements and checks alone."),
    ];
    for (part, title, who) in parts {
        let _ = write!(
            text,
            "\n## {title}\n\n{who}\n\n| peer | what for | version | from |\n| --- | --- | --- | --- |\n"
        );
        for peer in all().filter(|peer| peer.needed_by == part) {
            let from = match peer.from {
                "debian" => "Debian",
                "pypi" => "PyPI",
                "pypi,cargo" => "PyPI, or built by cargo",
                "npm" => "npm",
                "maven" => "Maven",
                "unpacked" => "Debian, unpacked and not installed",
                other => other,
            };
            let version = match (peer.version, peer.from) {
                ("-", _) => "Debian's".to_owned(),
                (version, "made") => format!("that of {}", version.trim_start_matches('=')),
                (version, _) => version.to_owned(),
            };
            let packages: Vec<String> = peer.packages().map(|package| format!("`{package}`")).collect();
            let from = match packages.is_empty() {
                true => "made by `scripts/setup.sh`".to_owned(),
                false => format!("{from}: {}", packages.join(", ")),
            };
            let _ = writeln!(text, "| `{}` | {} | {version} | {from} |", peer.name, peer.purpose);
        }
    }
    text
}

/// The sources and documents of the project, without this crate, what is printed from it, what installs by it, and history.
fn others() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("readable").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let within = path.strip_prefix(&root).expect("ours").to_string_lossy().into_owned();
            if path.is_dir() {
                let foreign = ["target", "build", "corpus", "golden", "artifacts", "peers"];
                // `tests/tests/peers` has programs of ours.
                if !name.starts_with('.')
                    && (!foreign.contains(&name.as_str()) || within == "tests/tests/peers")
                {
                    folders.push(path);
                }
            } else if !["docs/peers.md", "scripts/setup.sh", "CHANGELOG.md"].contains(&within.as_str()) {
                let source = ["rs", "md", "sh", "py", "toml", "txt", "cs", "cc", "c", "h", "java", "js"];
                let known =
                    path.extension().is_some_and(|extension| source.iter().any(|known| extension == *known));
                if known || name == "Makefile" {
                    found.extend(fs::read_to_string(&path).ok().map(|text| (within.into(), text)));
                }
            }
        }
    }
    assert!(found.len() > 500, "only {} files found", found.len());
    found
}

/// Whether a text has this word, with nothing on either side of it that could belong to a longer name or to a path.
fn names(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "-_+./".contains(c);
    text.match_indices(word).any(|(start, _)| {
        let after = text[start + word.len()..].trim_start_matches(['.', ',']);
        let cut = text.len() - after.len() > start + word.len();
        !text[..start].ends_with(part) && (cut || !after.starts_with(part))
    })
}

#[test]
fn no_other_file_says_what_to_install() {
    let orders = ["apt-get install", "apt install", "pip install", "npm install", "install the package"];
    let words: HashSet<&str> = all().flat_map(|peer| peer.proofs().chain([peer.name])).collect();
    // Names of packages that are nothing else: neither a program, nor a word such as `mount`.
    let packages: Vec<&str> = all()
        .filter(|peer| ["debian", "unpacked"].contains(&peer.from))
        .flat_map(|peer| peer.packages())
        .filter(|package| {
            package.contains(|c: char| c == '-' || c.is_ascii_digit()) && !words.contains(package)
        })
        .collect();
    assert!(packages.len() > 25, "only {packages:?}");
    let mut wrong = Vec::new();
    let fixed: Vec<Peer> =
        all().filter(|peer| peer.version.starts_with(|first: char| first.is_ascii_digit())).collect();
    for (file, text) in others() {
        // Most files have none of them, and there are many lines.
        let orders: Vec<_> = orders.iter().filter(|order| text.contains(**order)).collect();
        let packages: Vec<_> = packages.iter().filter(|package| text.contains(**package)).collect();
        let fixed: Vec<_> = fixed.iter().filter(|peer| text.contains(peer.version)).collect();
        for (number, line) in text.lines().enumerate() {
            let order = orders.iter().find(|order| line.contains(***order));
            let package = packages.iter().find(|package| names(line, package));
            let version = fixed.iter().find(|peer| line.contains(peer.name) && line.contains(peer.version));
            let what = order.or(package).map(|name| **name).or_else(|| version.map(|peer| peer.version));
            wrong.extend(what.map(|what| format!("{}:{}: {what}", file.display(), number + 1)));
        }
    }
    assert!(
        wrong.is_empty(),
        "ask the list instead (everywire_peers::here, install_hint, version; scripts/peers.sh hint; docs/peers.md):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_search_for_names_sees_them() {
    assert!(names("install mono-devel.", "mono-devel"));
    assert!(names("(`mono-devel`)", "mono-devel"));
    assert!(!names("libmono-devel", "mono-devel"));
    assert!(!names("/etc/ca-certificates.crt", "ca-certificates"));
    assert!(!names("mono-develop", "mono-devel"));
}

/// Whatever is started by its name is in the list, or is on every Debian.
#[test]
fn every_program_that_is_started_is_in_the_list() {
    let known: HashSet<&str> = all().flat_map(|peer| peer.proofs()).chain(BASE.iter().copied()).collect();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (file, text) in others() {
        for start in ["Command::new(\"", "Launch::new(\""] {
            for (at, _) in text.match_indices(start) {
                let program = text[at + start.len()..].split('"').next().unwrap_or_default();
                seen += 1;
                if !known.contains(program) {
                    wrong.push(format!("{} starts {program}", file.display()));
                }
            }
        }
    }
    assert!(seen > 30, "only {seen} found");
    assert!(wrong.is_empty(), "add them to peers/peers.tsv:\n{}", wrong.join("\n"));
}
