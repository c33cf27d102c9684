//! Beside omniidl: it accepts what is printed, and gives the same identities and constants.

use crate::common::{contracts, corpus, identities, omniidl};
use everywire_idl::omg::{parse_file, print};
use everywire_model::{Contract, Definition, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Something of each name.
type Lines = BTreeMap<String, String>;

/// What omniidl says of a file: identities, constants; or its errors.
fn dump(file: &Path) -> Result<(Lines, Lines), String> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let output = Command::new("omniidl")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("-p")
        .arg(tests)
        .args(["-bomniidl_dump", "-nf"])
        .arg(format!("-I{}", corpus("good").display()))
        .args(["-I/usr/share/idl/omniORB", "-I/usr/share/idl/omniORB/COS"])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        return Err(format!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    }
    let (mut ids, mut constants) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        match (words.next().as_deref(), words.next(), words.next()) {
            (Some("id"), Some(name), Some(id)) => drop(ids.insert(name, id)),
            (Some("const"), Some(name), Some(value)) => drop(constants.insert(name, value)),
            _ => panic!("{line}"),
        }
    }
    Ok((ids, constants))
}

fn integers(contract: &Contract) -> BTreeMap<String, String> {
    let constants = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Constant(c) => match c.value {
            Value::Integer(value) => Some((c.name.to_string(), value.to_string())),
            Value::Bool(value) => Some((c.name.to_string(), i32::from(value).to_string())),
            _ => None,
        },
        _ => None,
    });
    constants.collect()
}

#[test]
fn identities_and_constants_agree() {
    if !omniidl() {
        return;
    }
    for name in ["bench.idl", "everything.idl", "main.idl", "typecodes.idl"] {
        let path = corpus("good").join(name);
        let contract = parse_file(&path, &[corpus("good")]).unwrap_or_else(|e| panic!("{e}"));
        let (ids, constants) = dump(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(identities(&contract), ids, "{name}");
        let ours: BTreeMap<_, _> = integers(&contract);
        for (constant, value) in &ours {
            assert_eq!(constants.get(constant), Some(value), "{constant}");
        }
    }
}

#[test]
fn printed_contracts_are_accepted() {
    if !omniidl() {
        return;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for name in ["bench.idl", "everything.idl", "main.idl", "typecodes.idl"] {
        let contract = parse_file(corpus("good").join(name), &[corpus("good")]).unwrap();
        let printed = folder.join(name);
        std::fs::write(&printed, print(&contract)).unwrap();
        let (ids, _) = dump(&printed).unwrap_or_else(|e| panic!("{e}\n{}", print(&contract)));
        assert_eq!(identities(&contract), ids, "{name}");
    }
}

#[test]
fn types_of_the_orb_are_included_and_not_defined_again() {
    let text = "#include <orb.idl>\ninterface B { CORBA::StringSeq names(in CORBA::TypeCode t); };\n";
    let contract = everywire_idl::omg::parse(text, "names.idl").unwrap();
    let printed = print(&contract);
    assert_eq!(
        printed,
        "#include <orb.idl>\n\ninterface B {\n    CORBA::StringSeq names(in CORBA::TypeCode t);\n};\n"
    );
    let again = everywire_idl::omg::parse(&printed, "printed.idl").unwrap();
    assert_eq!(crate::common::outline(&again), crate::common::outline(&contract));
    if !omniidl() || !everywire_peers::here("types_of_the_orb", &["omniorb-contracts"]) {
        return;
    }
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("names.idl");
    std::fs::write(&file, &printed).unwrap();
    // With them, as for omniORB's library: what is included is not made once more.
    let made = Command::new("omniidl")
        .args(["-bcxx", "-I/usr/share/idl/omniORB", "-C"])
        .args([env!("CARGO_TARGET_TMPDIR").as_ref(), file.as_os_str()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let header = std::fs::read_to_string(file.with_extension("hh")).unwrap();
    assert!(!header.contains("class StringSeq"), "{header}");
}

/// The contracts that omniORB ships: read, or refused only for what is documented as not supported.
#[test]
fn shipped_contracts_are_read() {
    let root = Path::new("/usr/share/idl/omniORB");
    if !omniidl() || !everywire_peers::here("shipped_contracts_are_read", &["omniorb-contracts"]) {
        return;
    }
    let include = [root.to_owned(), root.join("COS")];
    let (mut read, mut refused) = (0, 0);
    for folder in [root.to_owned(), root.join("COS")] {
        for path in contracts(&folder) {
            match parse_file(&path, &include) {
                Ok(contract) => {
                    let printed = print(&contract);
                    let again = everywire_idl::omg::parse(&printed, "printed.idl")
                        .unwrap_or_else(|e| panic!("{}: {e}\n", path.display()));
                    // Of the ORB's own types, those are read again that are used.
                    let outline = |contract| {
                        let mut lines = crate::common::outline(contract);
                        lines.retain(|line| {
                            let plain =
                                ["Seq:", "/Identifier:", "/RepositoryId:", "/ScopedName:", "/PolicyType:"];
                            !line.starts_with("type alias CORBA::")
                                || !plain.iter().any(|id| line.contains(id))
                        });
                        lines
                    };
                    assert_eq!(outline(&again), outline(&contract), "{}", path.display());
                    read += 1;
                }
                Err(diagnostics) => {
                    let unsupported = diagnostics.list.iter().all(|d| d.message.contains("not supported"));
                    assert!(unsupported || dump(&path).is_err(), "{diagnostics}");
                    refused += 1;
                }
            }
        }
    }
    eprintln!("{read} contracts read, {refused} use what is not supported");
    assert!(read > refused);
}
