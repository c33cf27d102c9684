//! The contracts of Wine's own interfaces, which widl takes: they are read.

use everywire_idl::{Preprocessing, midl};

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

/// Those that are not read: the largest and two that import it, two where an interface is derived from one that comes later, and some that come
/// with every compiler, read as if they were somebody's contract.
const REFUSED: &[&str] = &[
    "dhtmled",
    "docobjectservice",
    "mshtml",
    "msxml2",
    "msxml6",
    "objidl",
    "oleidl",
    "propidl",
    "uianimation",
    "wtypes",
];

#[test]
fn wines_contracts_are_read() {
    if !everywire_peers::here("wines_contracts_are_read", &["wine-contracts"]) {
        return;
    }
    let given = Preprocessing::default().directory(FOLDER);
    let (mut read, mut runtime, mut unread, mut refused) = (0, 0, 0, Vec::new());
    let mut files: Vec<_> =
        std::fs::read_dir(FOLDER).unwrap().filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "idl")) {
        let name = path.file_stem().unwrap().to_string_lossy();
        if PARTS.contains(&&*name) {
            continue;
        }
        match midl::parse_with(path, &given) {
            Ok(_) => read += 1,
            // The Windows Runtime has a language of its own in these files.
            Err(mistakes) if mistakes.to_string().contains("Windows Runtime") => runtime += 1,
            Err(_) if REFUSED.contains(&&*name) => unread += 1,
            Err(mistakes) => refused.push(format!("{}: {mistakes}", path.display())),
        }
    }
    assert!(refused.is_empty(), "{} are not read:\n{}", refused.len(), refused.join("\n"));
    let told = format!("{read} are read, {unread} are not, {runtime} are of the Windows Runtime");
    println!("{told}");
    assert!(read >= 220 && runtime <= 30, "{told}");
}
