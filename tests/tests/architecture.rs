//! The house rules that a machine can hold: which room may use which, and where a wire may be named.

use crate::circles;
use everywire_tests::peers::{output, root};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each room may use of the others.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let stands_on_top = vec![
        "everywire",
        "model",
        "idl",
        "codegen",
        "runtime",
        "derby",
        "opc",
        "broker",
        "dynamic",
        "trace",
        "peers",
        "http",
        "tls",
        "giop",
        "dbus",
        "dcop",
        "dcom",
        "wcf",
    ];
    BTreeMap::from([
        ("model", vec![]),
        ("idl", vec!["model"]),
        ("codegen", vec!["model", "idl"]),
        ("auth", vec!["model", "gss"]),
        // The one place that calls a library of the system.
        ("gss", vec![]),
        // Layers below the wires; the runtime lists those that lie below any wire.
        ("http", vec!["model", "auth"]),
        ("tls", vec!["model", "auth"]),
        ("runtime", vec!["model", "tls"]),
        ("trace", vec!["model"]),
        // A list that every room may ask in its tests.
        ("peers", vec![]),
        ("giop", vec!["model"]),
        // Their types have names of their own, which contracts share, and they authenticate.
        ("dbus", vec!["model", "idl", "auth"]),
        ("dcop", vec!["model", "idl", "auth"]),
        ("dcom", vec!["model", "idl", "auth"]),
        // Its framing begins TLS in the middle of a connection; its other bindings are messages in requests of HTTP.
        ("wcf", vec!["model", "idl", "auth", "http", "tls"]),
        // The façade is the one place that knows the wires.
        ("everywire", vec!["model", "runtime", "giop", "dbus", "dcop", "dcom", "wcf"]),
        // A standard on top of one wire, whose servers and clients are those of the façade.
        ("opc", vec!["everywire", "model", "codegen"]),
        // Routes between wires, whichever there are: it knows them by the façade's list. Its pages are read over HTTP, and its copies have
        // values as whoever calls without generated code writes them.
        ("broker", vec!["everywire", "model", "idl", "http", "dynamic"]),
        // Calls without generated code, for the program and for whoever binds another language.
        ("dynamic", vec!["everywire", "model", "idl"]),
        ("derby", vec!["everywire", "model", "idl", "codegen", "opc", "trace", "peers"]),
        ("cli", vec!["everywire", "model", "idl", "codegen", "broker", "derby", "dynamic", "opc", "trace"]),
        ("tests", stands_on_top),
    ])
}

fn manifests() -> Vec<(String, String)> {
    let root = root();
    [
        "model",
        "idl",
        "codegen",
        "auth",
        "auth/gss",
        "runtime",
        "trace",
        "transports/http",
        "transports/tls",
        "wires/giop",
        "wires/dbus",
        "wires/dcop",
        "wires/dcom",
        "wires/wcf",
        "peers",
        "derby",
        "cli",
        "everywire",
        "dynamic",
        "opc",
        "broker",
        "tests",
    ]
    .iter()
    .map(|room| {
        let name = room.rsplit('/').next().unwrap_or(room).to_string();
        (name, fs::read_to_string(root.join(room).join("Cargo.toml")).expect("each room has a manifest"))
    })
    .collect()
}

/// Names of our own crates in the `[dependencies]` and `[build-dependencies]` of a manifest (tests may use anything).
fn uses(manifest: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            section = line.trim();
        } else if matches!(section, "[dependencies]" | "[build-dependencies]")
            && line.starts_with("everywire")
        {
            let name: String = line.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            found.push(name.strip_prefix("everywire-").unwrap_or(&name).to_owned());
        }
    }
    found
}

#[test]
fn arrows_point_the_way_the_design_says() {
    let allowed = allowed();
    let mut wrong = Vec::new();
    for (room, manifest) in manifests() {
        let may = &allowed[room.as_str()];
        for used in uses(&manifest) {
            if !may.contains(&used.as_str()) {
                wrong.push(format!("{room} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_arrow_test_sees_dependencies() {
    let all: usize = manifests().iter().map(|(_, manifest)| uses(manifest).len()).sum();
    assert!(all > 10, "only {all} arrows found: the reader of manifests is blind");
}

/// Words that belong to one wire.
const WORDS: &[(&str, &[&str])] = &[
    ("giop", &["giop", "iiop", "cdr", "corba", "omniorb", "corbaloc"]),
    ("dbus", &["dbus", "d-bus"]),
    ("dcop", &["dcop"]),
    ("dcom", &["dcom", "ndr", "dcerpc", "orpc"]),
    ("wcf", &["wcf", "nbfx", "nbfs", "soap", "net.tcp"]),
];

/// Rooms that no wire may be named in. The readers of contract languages (`idl/`), the list of wires, the contestants of
/// the derby, and the program's help are where foreign things have names.
fn neutral_files() -> Vec<PathBuf> {
    let root = root();
    let mut files = Vec::new();
    for room in
        ["model/src", "transports/http/src", "transports/tls/src", "runtime/src", "codegen/src", "broker/src"]
    {
        walk(&root.join(room), &mut files);
    }
    files.push(root.join("everywire/src/lib.rs"));
    files
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Code without comments and documentation, and without test modules.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or(text);
    text.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase()
}

fn names(text: &str, word: &str) -> bool {
    let mut from = 0;
    while let Some(at) = text[from..].find(word) {
        let (start, end) = (from + at, from + at + word.len());
        let edge = |c: Option<char>| c.is_none_or(|c| !c.is_ascii_alphabetic());
        if edge(text[..start].chars().next_back()) && edge(text[end..].chars().next()) {
            return true;
        }
        from = end;
    }
    false
}

#[test]
fn a_wire_is_named_in_its_own_crate_only() {
    let files = neutral_files();
    assert!(files.len() > 20, "only {} files found", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = code(&fs::read_to_string(&file).expect("readable"));
        for (wire, words) in WORDS {
            for word in *words {
                if names(&text, word) {
                    wrong.push(format!("{} names `{word}` of {wire}", file.display()));
                }
            }
        }
    }
    // Wires never name each other either.
    for (wire, _) in WORDS {
        let mut files = Vec::new();
        walk(&root().join("wires").join(wire).join("src"), &mut files);
        for file in files {
            let text = code(&fs::read_to_string(&file).expect("readable"));
            for (other, _) in WORDS.iter().filter(|(other, _)| other != wire) {
                if names(&text, &format!("everywire_{other}")) {
                    wrong.push(format!("{} uses {other}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_word_test_sees_words() {
    assert!(names("the iiop wire", "iiop"));
    assert!(names("x.iiop+unix", "iiop"));
    assert!(!names("cdrom", "cdr"));
}

#[test]
fn no_file_explodes() {
    let mut files = Vec::new();
    for room in [
        "model",
        "idl",
        "codegen",
        "auth",
        "transports",
        "runtime",
        "wires",
        "derby",
        "cli",
        "everywire",
        "dynamic",
        "opc",
        "broker",
    ] {
        walk(&root().join(room), &mut files);
    }
    let long: Vec<_> = files
        .iter()
        .filter(|file| {
            // The repository may stand in a folder of that name.
            let within = file.strip_prefix(root()).unwrap_or(file);
            within.components().any(|part| part.as_os_str() == "src")
                && fs::read_to_string(file).map(|text| text.lines().count()).unwrap_or(0) > 700
        })
        .collect();
    assert!(long.is_empty(), "files over 700 lines: {long:#?}");
}

/// The most files of a room that may know one another in a circle. Who reads one file of a circle has to read all of them.
const CIRCLES: [(&str, usize); 12] = [
    ("model", 3),
    ("runtime", 3),
    ("wires/giop", 3),
    ("wires/dbus", 3),
    ("wires/dcop", 3),
    ("wires/dcom", 3),
    ("wires/wcf", 3),
    ("idl", 3),
    ("codegen", 3),
    ("auth", 3),
    ("cli", 3),
    ("derby", 3),
];

#[test]
fn few_files_know_one_another_in_a_circle() {
    let mut wrong = Vec::new();
    for (room, most) in CIRCLES {
        let sources = root().join(room).join("src");
        let mut files = Vec::new();
        walk(&sources, &mut files);
        assert!(files.len() > 15, "only {} files found in {room}", files.len());
        let circles = circles::of(&sources, &files);
        wrong.extend(circles.into_iter().filter(|circle| circle.len() > most).map(|circle| (room, circle)));
    }
    assert!(wrong.is_empty(), "the data that files share belongs in a file below all of them: {wrong:#?}");
}

#[test]
fn crates_that_see_network_bytes_forbid_unsafe() {
    let wires = ["wires/giop", "wires/dbus", "wires/dcop", "wires/dcom", "wires/wcf"];
    for room in wires.into_iter().chain([
        "model",
        "idl",
        "auth",
        "transports/http",
        "transports/tls",
        "everywire",
        "codegen",
        "broker",
        "dynamic",
    ]) {
        let lib = fs::read_to_string(root().join(room).join("src/lib.rs")).expect("readable");
        assert!(lib.contains("#![forbid(unsafe_code)]"), "{room}");
    }
}

#[test]
fn every_source_file_is_a_module_of_its_crate() {
    let mut orphans = Vec::new();
    let mut seen = 0;
    for (room, _) in manifests() {
        let mut files = Vec::new();
        let top = match room.as_str() {
            "giop" | "dbus" | "dcop" | "dcom" | "wcf" => "wires",
            "http" | "tls" => "transports",
            _ => "",
        };
        walk(&root().join(top).join(&room).join("src"), &mut files);
        seen += files.len();
        orphans.extend(files.into_iter().filter(|file| !is_module(file)));
    }
    assert!(seen > 500, "only {seen} files found");
    assert!(orphans.is_empty(), "no `mod` leads to {orphans:#?}");
}

/// Whether a file is the root of a crate, or one that the module around it names.
fn is_module(file: &Path) -> bool {
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let Some(dir) = file.parent() else { return false };
    let (dir, name) = match (name, dir.file_name().and_then(|name| name.to_str()), dir.parent()) {
        ("lib" | "main", ..) | (_, Some("bin"), _) => return true,
        ("mod", Some(named), Some(above)) => (above, named),
        _ => (dir, name),
    };
    let around = ["lib.rs", "main.rs", "mod.rs"].map(|root| dir.join(root));
    around.into_iter().chain([dir.with_extension("rs")]).any(|parent| {
        let text = fs::read_to_string(parent).unwrap_or_default();
        text.lines().any(|line| {
            let declared = line.trim().strip_suffix(';').and_then(|line| line.split_once("mod "));
            declared.is_some_and(|(_, declared)| declared == name)
        })
    })
}

/// The crates that a program of one wire is built from, ours among them.
fn crates_of(wire: &str) -> Vec<String> {
    crates_in(&["--package", "everywire", "--no-default-features", "--features", wire])
}

/// The crates that something is built from, itself among them.
fn crates_in(what: &[&str]) -> Vec<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args([
        "tree",
        "--locked",
        "--offline",
        "--prefix",
        "none",
        "--edges",
        "normal,build",
    ]);
    command.args(what);
    let mut crates: Vec<String> =
        output(&mut command).lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect();
    crates.sort_unstable();
    crates.dedup();
    crates
}

#[test]
fn a_program_of_one_wire_is_built_from_what_it_needs() {
    for (wire, most) in [("giop", 20), ("dbus", 30), ("dcop", 30), ("dcom", 45)] {
        let crates = crates_of(wire);
        assert!(crates.contains(&format!("everywire-{wire}")), "{crates:?}");
        assert!(crates.len() <= most, "{wire}: {} crates: {crates:?}", crates.len());
        for (other, _) in WORDS {
            assert!(*other == wire || !crates.contains(&format!("everywire-{other}")), "{wire}: {crates:?}");
        }
        let layer = ["rustls", "hyper", "everywire-http"]
            .iter()
            .find(|layer| crates.iter().any(|name| name == *layer));
        assert_eq!(layer, None, "{wire}: {crates:?}");
    }
    let crates = crates_of("wcf");
    assert!(
        ["rustls", "hyper"].iter().all(|layer| crates.iter().any(|name| name == layer)),
        "they would be seen"
    );
}

/// What the broker does without a contract, it cannot do by one that was built in: nothing that its library is built from generates code, or has the
/// contracts of the tests, of the races or of OPC.
#[test]
fn the_brokers_build_contains_no_contract() {
    let crates = crates_in(&["--package", "everywire-broker"]);
    assert!(["everywire-broker", "everywire-wcf"].iter().all(|held| crates.iter().any(|name| name == held)));
    for generated in ["everywire-codegen", "everywire-tests", "everywire-derby", "everywire-opc"] {
        assert!(!crates.iter().any(|name| name == generated), "{generated}: {crates:?}");
    }
    let crates = crates_in(&["--package", "everywire-opc"]);
    assert!(crates.iter().any(|name| name == "everywire-codegen"), "it would be seen");
}
