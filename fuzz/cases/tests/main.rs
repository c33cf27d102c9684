//! Every input that is kept (`fuzz/corpus`) is given to its target, and so are some changes to each: always the same ones.
//!
//! `EVERYWIRE_REPLAY=path/to/input cargo test -p everywire-fuzz-cases TARGET` replays one file of your own;
//! `EVERYWIRE_CHANGES=100000` makes so many changes to each input, for where libFuzzer is not at hand.

use everywire_fuzz_cases::mutations::{Random, mutated};
use everywire_fuzz_cases::{self as cases, TARGETS, with_targets};
use std::collections::BTreeSet;
use std::fs;
use std::panic;
use std::path::{Path, PathBuf};

/// Changes to each input.
const CHANGES: usize = 200;
/// The most changed inputs of one target, and their octets: a large corpus gets fewer changes an input. They bound what all
/// targets take together, about 10 s of one core without optimization.
const INPUTS: usize = 2_000;
const OCTETS: usize = 1 << 19;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it stands in `fuzz`").to_path_buf()
}

/// The inputs that are kept of a target, in the order of their names.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let dir = fuzz().join("corpus").join(target);
    let Ok(entries) = fs::read_dir(&dir) else {
        panic!("{} is missing: each target keeps its inputs", dir.display())
    };
    let mut inputs: Vec<_> = entries
        .map(|entry| entry.expect("it can be listed").path())
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).expect("it can be read"))
        })
        .collect();
    inputs.sort();
    inputs
}

/// Says which input it was when a target panics.
struct Tell<'a> {
    target: &'a str,
    input: &'a str,
    change: Option<usize>,
    octets: &'a [u8],
}

impl Drop for Tell<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self { target, input, change, octets } = self;
            let change = change.map(|number| format!(", change {number}")).unwrap_or_default();
            eprintln!("{target}: the input is {input}{change}: b\"{}\"", octets.escape_ascii());
        }
    }
}

fn replay(target: &str, run: fn(&[u8])) {
    let try_one = |input: &str, change, octets: &[u8]| {
        let _tell = Tell { target, input, change, octets };
        run(octets);
    };
    if let Some(path) = std::env::var_os("EVERYWIRE_REPLAY") {
        return try_one(&path.to_string_lossy(), None, &fs::read(&path).expect("the input can be read"));
    }
    let inputs = corpus(target);
    assert!(!inputs.is_empty(), "{target} has no input in fuzz/corpus");
    for (name, octets) in &inputs {
        try_one(name, None, octets);
    }
    let (names, inputs): (Vec<_>, Vec<_>) = inputs.into_iter().unzip();
    let all: usize = inputs.iter().map(Vec::len).sum();
    let bounded = CHANGES.min(INPUTS / inputs.len()).min(OCTETS / all.max(1)).max(1);
    let asked = std::env::var("EVERYWIRE_CHANGES").ok().map(|text| text.parse().expect("a number"));
    let changes = asked.unwrap_or(bounded);
    for (name, octets) in names.iter().zip(&inputs) {
        // Each input has numbers of its own, so that a new one leaves the changes of others as they are.
        let mut random = Random::of(name);
        for number in 0..changes {
            try_one(name, Some(number), &mutated(&mut random, octets, &inputs));
        }
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name), cases::$name);
            }
        )*
    };
}

with_targets!(replays);

/// Names of a folder's entries, without an ending.
fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).expect("it can be listed").map(|entry| entry.expect("an entry").path());
    entries.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn each_target_is_fuzzed_and_has_kept_inputs_and_there_are_no_others() {
    let ours: BTreeSet<String> = TARGETS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(names(&fuzz().join("targets")), ours, "fuzz/targets against the list of targets");
    assert_eq!(names(&fuzz().join("corpus")), ours, "fuzz/corpus against the list of targets");
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    let (_, binaries) = manifest.split_once("[[bin]]").expect("it has programs");
    let built: BTreeSet<String> = binaries
        .lines()
        .filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect();
    assert_eq!(built, ours, "fuzz/Cargo.toml against the list of targets");
}

/// The replay would tell of a panic: a target that panics on one changed input fails.
#[test]
fn a_target_that_panics_is_told() {
    let told = panic::catch_unwind(|| replay("cdr", |data| assert!(data.len() < 3, "as intended")));
    assert!(told.is_err());
}
