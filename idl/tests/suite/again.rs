//! Files that are read again and again, as a broker does it.

use everywire_idl::{midl, omg};
use everywire_model::{Contract, Definition, Hold, Shape};
use std::path::Path;

/// The cell of a struct that has one.
fn cell(contract: &Contract) -> usize {
    let cells = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Type(Shape::Struct(Hold::Later(cell))) => Some(std::ptr::from_ref(*cell).addr()),
        _ => None,
    });
    cells.min().unwrap_or_else(|| panic!("no cell: {contract:?}"))
}

/// A cell lives as long as the process, so the same text has the same one.
#[test]
fn files_that_are_read_again_make_no_more_cells() {
    let of_omg = |text: &str| cell(&omg::parse(text, "a.idl").unwrap_or_else(|wrong| panic!("{wrong}")));
    let text = "struct Node; typedef sequence<Node> Nodes; struct Node { Nodes below; };";
    assert_eq!(of_omg(text), of_omg(text));
    assert!(of_omg(text) != of_omg(&text.replace("Nodes below", "Nodes above")));
    let of_midl = |text: &str| cell(&midl::parse(text, "a.idl").unwrap_or_else(|wrong| panic!("{wrong}")));
    let text = "typedef struct Leaf { [unique] struct Leaf *next; long a; } Leaf;
        [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B220), version(1.0)] interface I { void f([in] Leaf *l); }";
    assert_eq!(of_midl(text), of_midl(text));
    assert!(of_midl(text) != of_midl(&text.replace("long a", "short a")));
}

#[test]
fn mistakes_of_files_that_are_read_again_are_the_same() {
    let text = "struct Node; typedef sequence<Node> Nodes; struct Node { Nodes below; Missing other; };";
    let read = || omg::parse(text, "wrong.idl").unwrap_err();
    let (first, again) = (read(), read());
    assert_eq!((first.list.len(), &first), (1, &again));
}

/// Files that could not be read are looked for again, and each time it is said why they could not.
#[test]
fn a_file_that_was_missing_is_read_when_it_is_there() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("again");
    std::fs::create_dir_all(&folder).unwrap();
    let (path, other) = (folder.join("a.idl"), folder.join("b.idl"));
    let text = "#include \"b.idl\"\nstruct Node; typedef sequence<Node> Nodes; struct Node { Nodes below; };";
    let _ = std::fs::remove_file(&other);
    std::fs::write(&path, text).unwrap();
    let read = || omg::parse_file(&path, &[]);
    let missing = read().unwrap_err();
    assert_eq!(missing, read().unwrap_err());
    // It is found and too large: still none of the files that are read.
    std::fs::File::create(&other).unwrap().set_len(9 << 20).unwrap();
    let large = read().unwrap_err();
    assert!(large.to_string().contains("larger than 8 MiB"), "{large}");
    std::fs::write(&other, "const long FOUND = 1;").unwrap();
    let contract = read().unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(contract.constants().count(), 1);
    std::fs::remove_file(&other).unwrap();
    assert_eq!(missing, read().unwrap_err());
    std::fs::remove_dir_all(&folder).unwrap();
}
