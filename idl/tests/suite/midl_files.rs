//! MIDL as files of others have it: libraries beside the contract, modules, casts, names in another case, well-known bases.

use everywire_idl::midl::{parse, print};
use everywire_model::contract::{SUCCESS, note};
use everywire_model::{Constant, Contract, Definition, Value};
use std::path::PathBuf;

/// A folder of its own with these files; gone with it.
struct Folder(PathBuf);

impl Folder {
    fn of(name: &str, files: &[(&str, &str)]) -> Self {
        let folder = std::env::temp_dir().join(format!("everywire-midl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        files.iter().for_each(|(file, text)| std::fs::write(folder.join(file), text).unwrap());
        Self(folder)
    }

    fn read(&self, file: &str) -> Contract {
        everywire_idl::read(self.0.join(file)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn contract(text: &str) -> Contract {
    parse(text, "x.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn constant<'c>(contract: &'c Contract, name: &str) -> &'c Constant {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Constant(constant) if constant.name == name => Some(constant),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no {name}"))
}

fn integer(contract: &Contract, name: &str) -> i128 {
    match constant(contract, name).value {
        Value::Integer(value) => value,
        ref other => panic!("{other:?}"),
    }
}

const BASE: &str =
    "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B201)] interface IBase : IUnknown { HRESULT One(); };";

#[test]
fn a_library_is_the_file_of_its_name_beside_the_contract() {
    let uses = "import \"oaidl.idl\";
        library L { importlib(\"stdole2.tlb\"); importlib(\"base.tlb\");
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B202)] interface IMore : IBase { HRESULT Two(); }; }";
    let folder = Folder::of("library", &[("more.midl", uses), ("base.idl", BASE)]);
    let contract = folder.read("more.midl");
    assert_eq!(contract.interface("IMore").unwrap().operations.len(), 2);
    // Of a library that is not there, nothing is known but what is known anyway.
    let alone = Folder::of("alone", &[("more.midl", uses)]);
    let mistakes = everywire_idl::read(alone.0.join("more.midl")).unwrap_err().to_string();
    assert!(mistakes.contains("there is no interface `IBase` before this"), "{mistakes}");
}

#[test]
fn a_file_beside_the_contract_comes_before_the_one_that_is_known() {
    let own = "typedef struct tagOURS { long a; } OURS;";
    let uses = "import \"comcat.idl\";
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B203)] interface I : IUnknown { HRESULT F([in] OURS *ours); };";
    let folder = Folder::of("own", &[("uses.midl", uses), ("comcat.idl", own)]);
    assert_eq!(folder.read("uses.midl").interface("I").unwrap().operations.len(), 1);
    // A copy of what is known has what nobody reads here.
    let copy = "interface IDispatch; typedef void (*PFN)(void);";
    let uses = "import \"oaidl.idl\";
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B203)] interface I : IDispatch { HRESULT F([in] BSTR text); };";
    let copied = Folder::of("copied", &[("uses.midl", uses), ("oaidl.idl", copy)]);
    assert_eq!(copied.read("uses.midl").interface("I").unwrap().operations.len(), 1);
    let uses = "import \"comcat.idl\";
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B203)] interface I : IUnknown { HRESULT F([in] OURS *ours); };";
    let without = Folder::of("without", &[("uses.midl", uses)]);
    assert!(everywire_idl::read(without.0.join("uses.midl")).is_err());
}

#[test]
fn modules_have_constants_and_functions_that_nobody_calls_from_elsewhere() {
    let read = contract(
        "library L { [dllname(\"x.dll\")] module M_Constants {
            const DWORD HIGH = 0x80000000; [entry(1)] HRESULT __stdcall Do([in] long how);
            const LPCWSTR NAME = L\"level\"; typedef struct S { long a; } S; }; }",
    );
    assert_eq!(integer(&read, "HIGH"), 0x8000_0000);
    assert_eq!(constant(&read, "NAME").value, Value::Text("level".to_owned()));
    assert_eq!(read.interfaces().count(), 0);
}

#[test]
fn constants_may_be_cast_and_measured() {
    let read = contract(
        "const long A = (long) 5; const HRESULT B = (HRESULT)(0x80040000 + (WORD) 7);
         const long C = sizeof(DWORD) * 4 + sizeof(wchar_t) + sizeof(double) + sizeof(long *); const long D = (A + 1);",
    );
    assert_eq!(["A", "C", "D"].map(|name| integer(&read, name)), [5, 16 + 2 + 8 + 4, 6]);
    assert_eq!(integer(&read, "B"), i128::from(0x8004_0007_u32.cast_signed()));
    let mistakes = parse("const long A = sizeof(struct S);", "x.midl").unwrap_err().to_string();
    assert!(mistakes.contains("only the size of a number is known here"), "{mistakes}");
}

#[test]
fn an_enumeration_may_be_announced() {
    let read = contract("enum E; enum E { E_A = 3, E_B }; typedef struct S { enum E e; } S;");
    assert_eq!(read.definitions.len(), 2);
}

#[test]
fn interfaces_are_found_in_another_case() {
    let read = contract(
        "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B204)] interface IOPCThing : IUNKNOWN { HRESULT One(); };
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B205)] interface IOther : IopcTHING {
            HRESULT Two([in] IOpcThing *thing, [out] iDispatch **any); };
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B206)] library L {
            [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B207)] coclass C { [default] interface iother; interface IOPCTHING; }; }",
    );
    assert_eq!(read.interface("IOther").unwrap().operations.len(), 2);
    let class = read.interface("C").unwrap();
    let bases: Vec<&str> = class.bases.iter().map(|base| base.name.as_ref()).collect();
    assert_eq!(bases, ["IOther", "IOPCThing"]);
}

#[test]
fn well_known_interfaces_are_bases() {
    let read = contract(
        "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B208)] interface ISaved : IPersist { HRESULT Save(); };
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)] interface IMaker : IClassFactory { HRESULT Make(); };",
    );
    let names = |interface: &str| -> Vec<String> {
        let interface = read.interface(interface).unwrap();
        interface.operations.iter().map(|operation| operation.name.to_string()).collect()
    };
    assert_eq!(names("ISaved"), ["GetClassID", "Save"]);
    assert_eq!(names("IMaker"), ["CreateInstance", "LockServer", "Make"]);
    // They are part of the contract, so that it is complete.
    assert_eq!(read.interface("IPersist").unwrap().id, "0000010c-0000-0000-c000-000000000046");
    assert_eq!(contract(&print(&read).unwrap()).interfaces().count(), read.interfaces().count());
}

#[test]
fn a_method_that_succeeds_in_several_ways_says_so() {
    let text = "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B20A)] interface I : IUnknown {
        [success(S_FALSE, OURS_S_CLAMP)] HRESULT One([out] long *n); [success] HRESULT Two(); HRESULT Three(); };";
    for read in [contract(text), contract(&print(&contract(text)).unwrap())] {
        let interface = read.interface("I").unwrap();
        let codes: Vec<_> =
            interface.operations.iter().map(|operation| note(&operation.notes, SUCCESS)).collect();
        assert_eq!(codes, [Some("S_FALSE, OURS_S_CLAMP"), Some(""), None]);
    }
    let refused =
        parse("[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B20B)] interface P { [success] long One(); }", "x.midl");
    assert!(refused.unwrap_err().to_string().contains("only a method of an object says"));
}
