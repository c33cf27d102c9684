//! The contracts of Wine's own interfaces, which widl takes: they are read.

use everywire_idl::{Preprocessing, midl};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

/// Where Wine keeps its contracts.
const FOLDER: &str = "/usr/include/wine/wine/windows";

/// Those that widl does not take by themselves either: parts that other files include, behind their imports.
const PARTS: &[&str] = &[
    "access",
    "asynot",
    "asysta",
    "axcore",
    "axextend",
    "binres",
    "chprst",
    "cmdbas",
    "cmdpre",
    "cmdprp",
    "cmdstrm",
    "cmdtxt",
    "cmdwpr",
    "colinf",
    "colrst",
    "crtrow",
    "cvttyp",
    "dbccmd",
    "dbcses",
    "dbdsad",
    "dbinit",
    "dbprop",
    "dbs",
    "dyngraph",
    "errrec",
    "getdts",
    "mulres",
    "opcobjectmodel",
    "opnrst",
    "row",
    "rowchg",
    "rowpos",
    "rowpsc",
    "rstbas",
    "rstchg",
    "rstinf",
    "rstloc",
    "rstnot",
    "rstupd",
    "sapiaut",
    "sesprp",
    "srcrst",
    "trnjoi",
    "trnlcl",
    "trnobj",
    "vmrender",
    "xmldom",
    "xmldso",
];

/// What was found out about some of the files.
#[derive(Default)]
struct Found {
    read: usize,
    runtime: usize,
    refused: Vec<String>,
}

/// Reads the files that are left, one after the other.
fn read_all(files: &Mutex<Vec<PathBuf>>) -> Found {
    let given = Preprocessing::default().directory(FOLDER);
    let mut found = Found::default();
    loop {
        let next = files.lock().unwrap().pop();
        let Some(path) = next else { return found };
        match midl::parse_with(&path, &given) {
            Ok(_) => found.read += 1,
            // The Windows Runtime has a language of its own in these files.
            Err(mistakes) if mistakes.to_string().contains("Windows Runtime") => found.runtime += 1,
            Err(mistakes) => found.refused.push(format!("{}: {mistakes}", path.display())),
        }
    }
}

/// They take minutes, one after the other: as many threads as there are CPUs share them.
#[test]
fn wines_contracts_are_read() {
    if !everywire_peers::here("wines_contracts_are_read", &["wine-contracts"]) {
        return;
    }
    let is_whole = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        path.extension().is_some_and(|extension| extension == "idl") && !PARTS.contains(&&*name)
    };
    let mut files: Vec<_> = std::fs::read_dir(FOLDER)
        .unwrap()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_whole)
        .collect();
    files.sort();
    let files = Mutex::new(files);
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let found: Vec<Found> = thread::scope(|scope| {
        let readers: Vec<_> = (0..cpus).map(|_| scope.spawn(|| read_all(&files))).collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    let refused: Vec<_> = found.iter().flat_map(|found| &found.refused).map(String::as_str).collect();
    assert!(refused.is_empty(), "{} are not read:\n{}", refused.len(), refused.join("\n"));
    let sum = |number: fn(&Found) -> usize| found.iter().map(number).sum::<usize>();
    let (read, runtime) = (sum(|found| found.read), sum(|found| found.runtime));
    let told = format!("{read} are read, {runtime} are of the Windows Runtime");
    println!("{told}");
    assert!(read >= 230 && runtime <= 30, "{told}");
}
