//! MIDL as files of others have it: libraries beside the contract, modules, casts, names in another case, well-known bases.

use everywire_idl::midl::{parse, print};
use everywire_model::contract::{SUCCESS, left_out, note};
use everywire_model::{Constant, Contract, Definition, Shape, Value};
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
    assert!(mistakes.contains("the size of such a type is not known here"), "{mistakes}");
}

/// Structs are as large as in C.
#[test]
fn structs_are_measured() {
    let read = contract(
        "import \"oaidl.idl\"; typedef struct P { char c; double d; short s; } P; typedef enum E { E_A } E;
         typedef struct Q { P p[2]; GUID g; VARIANT_BOOL b; wchar_t w[3]; } Q;
         const long A = sizeof(GUID); const long B = sizeof(P); const long C = sizeof(struct P) * 2; const long D = sizeof(Q);
         const long F = sizeof(FILETIME) + sizeof(DECIMAL) + sizeof(SYSTEMTIME) + sizeof(E) + sizeof(enum E) + sizeof(VARIANT_BOOL);
         typedef [range(0, sizeof(GUID))] long R;
         typedef struct T { long n; [size_is(sizeof(P))] BYTE *v; [range(1, sizeof(P) * 2)] long r; } T;",
    );
    let all = ["A", "B", "C", "D", "F"].map(|name| integer(&read, name));
    assert_eq!(all, [16, 24, 48, 72, 8 + 16 + 16 + 4 + 4 + 2]);
    let again = contract(&print(&read).unwrap());
    assert_eq!(print(&again), print(&read));
    for wrong in [
        "typedef struct P { long *p; } P; const long A = sizeof(P);",
        "typedef struct N { struct N *next; long x[sizeof(struct N)]; } N;",
        "const long A = sizeof(Nobody);",
        "typedef struct H { long x[0xffffffff]; } H; typedef struct I { H h[0xffffffff]; } I; typedef struct J { I h[0xffffffff]; } J;
         const long A = sizeof(J);",
    ] {
        assert!(parse(wrong, "x.midl").is_err(), "{wrong}");
    }
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
    let printed = contract(&print(&read).unwrap());
    let interfaces = |contract: &Contract| -> Vec<String> {
        contract.interfaces().map(|interface| interface.name.to_string()).collect()
    };
    assert_eq!(interfaces(&printed), interfaces(&read));
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

/// What the files that come with every compiler declare is known, as it travels, and what of it a contract uses is part of that.
#[test]
fn handles_dispatch_parameters_and_media_are_known() {
    let text = "import \"oaidl.idl\", \"ocidl.idl\";
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B210), pointer_default(unique)]
        interface IFrame : IPersistStream {
            HRESULT Show([in] HWND parent, [in] const RECT *where);
            HRESULT Call([in] DISPPARAMS *given, [out] EXCEPINFO *wrong);
            HRESULT Get([in] const FORMATETC *format, [out] STGMEDIUM *medium);
            HRESULT Set([in] REFPROPERTYKEY key, [in] REFPROPVARIANT value);
        }";
    let read = contract(text);
    let frame = read.interface("IFrame").unwrap();
    let names: Vec<&str> = frame.operations.iter().map(|operation| operation.name.as_ref()).collect();
    let above = ["GetClassID", "IsDirty", "Load", "Save", "GetSizeMax"];
    assert_eq!(names, [above.as_slice(), &["Show", "Call", "Get", "Set"]].concat());
    assert_eq!(left_out(&frame.notes).count(), 0);
    let parent = &frame.operations[5].parameters[0].field.shape;
    let Shape::Optional(handle) = parent.resolved() else { panic!("{parent:?}") };
    let Shape::Struct(handle) = handle.resolved() else { panic!("{handle:?}") };
    let fields: Vec<&str> = handle.fields.iter().map(|field| field.name.as_ref()).collect();
    assert_eq!((handle.name.as_ref(), fields), ("RemotableHandle", vec!["fContext", "u"]));
    let defined = |name: &str| {
        read.definitions.iter().any(|definition| match definition {
            Definition::Type(Shape::Struct(shape)) => shape.name == name,
            Definition::Interface(interface) => interface.name == name,
            _ => false,
        })
    };
    for used in ["EXCEPINFO", "DISPPARAMS", "PROPVARIANT", "CALPWSTR", "userSTGMEDIUM", "IPersistStream"] {
        assert!(defined(used), "{used}");
    }
    for unused in ["STATSTG", "MSG", "IPersistFile", "PROPSPEC"] {
        assert!(!defined(unused), "{unused}");
    }
}

/// A type with a name of such a file is the contract's own.
#[test]
fn a_contract_may_define_what_is_known() {
    let read = contract(
        "import \"oaidl.idl\"; typedef struct tagEXCEPINFO { long ours; } EXCEPINFO; typedef long HWND;
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B211)] interface I : IUnknown {
            HRESULT F([in] EXCEPINFO *e, [in] HWND w); }",
    );
    let operation = &read.interface("I").unwrap().operations[0];
    let Shape::Struct(ours) = operation.parameters[0].field.shape.resolved() else { panic!("no struct") };
    assert_eq!(ours.fields[0].name, "ours");
    assert!(matches!(operation.parameters[1].field.shape.resolved(), Shape::I32));
}

/// Such types are no mistake as long as nobody calls with them; a method that would is left out by name, and keeps its number.
#[test]
fn what_has_no_form_on_a_wire_is_left_out_and_named() {
    let read = contract(
        "typedef void (__stdcall *NOTIFY)(long a, void *b); typedef struct { long a : 3; } BITS;
         typedef union { long a; float b; } EITHER; typedef struct { EITHER inner; } OUTER;
         HRESULT __stdcall CreateIt(void *out); extern const long Ours;
         [local, object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B212)] interface IHere : IUnknown { void f(void *p); }
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B213)] interface I : IUnknown {
            HRESULT One(); HRESULT Two([in] NOTIFY back); const OUTER *Three(); HRESULT Four([in] OUTER *x);
            HRESULT Five([in] BITS *x); HRESULT Six([in] void *x); HRESULT Seven([in] long x); }",
    );
    let interface = read.interface("I").unwrap();
    assert_eq!(interface.operations.len(), 7);
    assert_eq!(interface.operations[6].name, "Seven");
    let left: Vec<&str> = left_out(&interface.notes).collect();
    let expected = [
        "`Two`: pointers to functions do not travel",
        "`Three`: a method of an object returns an HRESULT, and results are `[out, retval]` parameters",
        "`Four`: nothing says which arm of `EITHER` is meant",
        "`Five`: fields of bits do not travel",
        "`Six`: `void` has no bytes: name the type, or add `iid_is`",
    ];
    assert_eq!(left, expected);
}

#[test]
fn constants_are_computed_with_points_casts_and_choices() {
    let read = contract(
        "const float A = (1 / 1024.0); const double B = -A * 2; const long C = 1 ? 7 : 8; const WCHAR D = 0xfffc;
         const long E = D + 1; const void *F = (void *)-1;",
    );
    let real = |name: &str| match constant(&read, name).value {
        Value::Float(value) => value,
        ref other => panic!("{other:?}"),
    };
    assert_eq!((real("A"), real("B")), (1.0 / 1024.0, -2.0 / 1024.0));
    assert_eq!((integer(&read, "C"), integer(&read, "E")), (7, 0xfffd));
}

#[test]
fn a_class_keeps_what_is_described_of_it() {
    let read = contract(
        "[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B214)] coclass C { [default] interface ILater; interface INowhere; }
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B215)] interface ILater : IUnknown { HRESULT One(); }",
    );
    let class = read.interface("C").unwrap();
    assert_eq!(class.operations.len(), 1);
    let left: Vec<&str> = left_out(&class.notes).collect();
    assert_eq!(left, ["interface `INowhere`: it is described nowhere"]);
}

#[test]
fn macros_paste_words() {
    let read = contract(
        "#define HANDLES(name) typedef struct tag##name { long name##_value; } name##_T\n HANDLES(PEN);
         #ifdef __midl\n const long SEEN = 1;\n #endif\n",
    );
    assert_eq!(integer(&read, "SEEN"), 1);
    let pen = read.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(pen)) => Some(pen),
        _ => None,
    });
    let pen = pen.unwrap();
    assert_eq!((pen.name.as_ref(), pen.fields[0].name.as_ref()), ("PEN_T", "PEN_value"));
}

/// As old contracts have it: what they need is imported in the body of the interface.
#[test]
fn an_interface_imports_in_its_body() {
    let folder = Folder::of(
        "body",
        &[
            (
                "kinds.idl",
                "import \"more.idl\";\ntypedef struct tagKind { Small a; } Kind;\ninterface IOther : IUnknown { HRESULT g(); };",
            ),
            ("more.idl", "typedef short Small;"),
            (
                "main.midl",
                "[object] interface IMain : IUnknown { import \"unknwn.idl\", \"kinds.idl\"; HRESULT f([in] Kind *kind); \
                 import \"more.idl\"; HRESULT h(); };",
            ),
        ],
    );
    let contract = folder.read("main.midl");
    let names = |name: &str| {
        let operations = contract.interface(name).unwrap().operations.iter();
        operations.map(|operation| operation.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        (names("IMain"), names("IOther")),
        (vec!["f".to_owned(), "h".to_owned()], vec!["g".to_owned()])
    );
}

/// Labels have the value that the discriminator has on the wire.
#[test]
fn labels_are_values_of_their_discriminator() {
    let labels = |kind: &str, labels: &str| {
        let text = format!(
            "typedef [v1_enum] enum {{ LOW = 1, HIGH = 0x80000000 }} Level; typedef union switch ({kind} k) u {{ {labels} }} U;"
        );
        let read = parse(&text, "x.midl").map_err(|mistakes| mistakes.to_string())?;
        let union = read.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Union(union)) => Some(union.clone()),
            _ => None,
        });
        Ok::<Vec<i64>, String>(union.unwrap().arms.iter().flat_map(|arm| arm.labels.to_vec()).collect())
    };
    assert_eq!(labels("Level", "case HIGH: long a; case LOW: short b;"), Ok(vec![i64::from(i32::MIN), 1]));
    assert_eq!(labels("unsigned long", "case -1: long a;"), Ok(vec![0xffff_ffff]));
    assert_eq!(labels("unsigned short", "case -1: long a;"), Ok(vec![0xffff]));
    assert_eq!(labels("long", "case 0xffffffff: long a;"), Ok(vec![-1]));
    assert_eq!(labels("unsigned hyper", "case 0xffffffffffffffff: long a;"), Ok(vec![-1]));
    assert!(labels("short", "case 0x10000: long a;").unwrap_err().contains("no value of the discriminator"));
    assert!(
        labels("unsigned long", "case -1: long a; case 0xffffffff: long b;")
            .unwrap_err()
            .contains("two arms")
    );
    let level = "typedef [v1_enum] enum { LOW = 1, HIGH = 0x80000000 } Level; const Level L = HIGH;";
    assert_eq!(constant(&contract(level), "L").value, Value::Member("HIGH".to_owned()));
}

/// A constant that its type cannot hold is none.
#[test]
fn constants_with_a_point_are_finite() {
    for text in ["const double A = 1.0 / 0;", "const float A = 1e300;"] {
        assert!(parse(text, "x.midl").unwrap_err().to_string().contains("does not fit the type"), "{text}");
    }
    assert_eq!(constant(&contract("const float A = 1.5;"), "A").value, Value::Float(1.5));
}

/// `Node` is used before its definition shows that it has no form on a wire; then what holds one has none, either.
#[test]
fn structs_that_turn_out_too_late_to_have_no_form_are_left_out_with_all_that_hold_one() {
    let contract = contract(
        "import \"oaidl.idl\";
         struct Node;
         typedef struct Chain { struct Node *first; long length; } Chain;
         typedef struct Box { Chain chain; } Box;
         typedef struct Plain { long number; } Plain;
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B208)] interface IKeep : IUnknown {
             HRESULT Put([in] Box *box);
             HRESULT Early([in] struct Node *node);
             HRESULT Fine([in] Plain *plain);
         };
         struct Node { void *data; struct Node *next; };",
    );
    let keep = contract.interfaces().find(|interface| interface.name == "IKeep").unwrap();
    let out: Vec<&str> = left_out(&keep.notes).collect();
    assert_eq!(out.len(), 2, "{out:?}");
    assert!(out[0].starts_with("`Put`") && out[1].starts_with("`Early`"), "{out:?}");
    let text = print(&contract).unwrap();
    assert!(text.contains("Plain") && !text.contains("Chain"), "{text}");
    assert!(keep.operations.iter().any(|operation| operation.label == "Fine"));
}

/// The same where a typedef names the struct before, as headers of C do. What is defined inside is known outside.
#[test]
fn a_struct_without_a_form_may_have_its_name_from_a_typedef_before_it() {
    let contract = contract(
        "import \"oaidl.idl\";
         typedef struct tagNode Node;
         typedef struct Chain { Node *first; long length; } Chain;
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B20A)] interface IKeep : IUnknown {
             HRESULT Put([in] Chain *chain);
             HRESULT Fine([in] long number);
         };
         struct tagNode { void *data; enum Colour { RED, BLUE } colour; struct tagNode *next; };
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B20B)] interface IPaint : IUnknown {
             HRESULT Paint([in] enum Colour colour);
         };",
    );
    let keep = contract.interfaces().find(|interface| interface.name == "IKeep").unwrap();
    let out: Vec<&str> = left_out(&keep.notes).collect();
    assert!(out.len() == 1 && out[0].starts_with("`Put`"), "{out:?}");
    let paint = contract.interfaces().find(|interface| interface.name == "IPaint").unwrap();
    assert_eq!(left_out(&paint.notes).count(), 0);
}

/// A backslash before a letter without a meaning is nothing, as in C: the SDK of Windows quotes paths of files so.
#[test]
fn backslashes_before_other_characters_are_nothing() {
    let contract = contract("cpp_quote(\"// HKCR\\{Id}\\shellex\") const char *PLACE = \"C:\\some\\new\";");
    assert_eq!(constant(&contract, "PLACE").value, Value::Text("C:some\new".into()));
}

/// On Windows, where such files come from, upper and lower case are one in names of files.
#[test]
fn imported_files_are_found_in_any_case() {
    let folder = Folder::of("case", &[("basekinds.idl", BASE)]);
    std::fs::create_dir_all(folder.0.join("Sub")).unwrap();
    std::fs::write(folder.0.join("Sub/Kinds.idl"), "typedef struct Kind { long number; } Kind;").unwrap();
    let text = "import \"BaseKinds.IDL\"; import \"sub\\\\kinds.idl\";
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)] interface IMore : IBase { HRESULT Two([in] Kind *kind); };";
    std::fs::write(folder.0.join("more.idl"), text).unwrap();
    assert!(folder.read("more.idl").interfaces().any(|interface| interface.name == "IMore"));
}

/// Another name for the struct of a header is one with its fields, not one with their names alone.
#[test]
fn an_own_struct_is_not_the_one_of_a_header_with_other_types() {
    let header = "typedef struct tagOURS { long a; } OURS;";
    let uses = "#include \"ours.h\"
        typedef struct tagMINE { double a; } MINE, OURS;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B203)] interface I : IUnknown { HRESULT F([in] OURS *ours); };";
    let folder = Folder::of("mine", &[("uses.midl", uses), ("ours.h", header)]);
    let contract = folder.read("uses.midl");
    let parameters = &contract.interface("I").unwrap().operations[0].parameters;
    assert!(format!("{parameters:?}").contains("F64"), "{parameters:?}");
}

/// Nothing in it says that it is MIDL but what it includes, here or through others.
#[test]
fn a_file_that_only_includes_others_is_of_their_language() {
    let folder = Folder::of(
        "includes",
        &[
            ("base.idl", BASE),
            ("middle.idl", "#include \"base.idl\"\n#include \"middle.idl\"\n"),
            ("top.idl", "/* all */\n # include \"middle.idl\"\n"),
            ("types.idl", "struct Pair { long a; long b; };"),
            ("omg.idl", "#include \"types.idl\"\n#include \"gone.idl\"\ninterface Bank { Pair both(); };"),
        ],
    );
    let language = |file: &str| everywire_idl::language_of(folder.0.join(file)).unwrap().name;
    assert_eq!((language("top.idl"), language("middle.idl"), language("types.idl")), ("midl", "midl", "omg"));
    assert_eq!(language("omg.idl"), "omg");
    std::fs::write(folder.0.join("middle.idl"), "#include \"base.idl\"\n").unwrap();
    assert!(folder.read("top.idl").interface("IBase").is_some());
    // From a directory that is given, too.
    let other = Folder::of("includes-other", &[("far.idl", "#include \"base.idl\"\n")]);
    let given = everywire_idl::Preprocessing { directories: vec![folder.0.clone()], macros: Vec::new() };
    let far = everywire_idl::read_with(other.0.join("far.idl"), &given)
        .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(far.interface("IBase").is_some());
}

#[test]
fn controls_have_the_numbers_of_their_header() {
    let text = "#include <olectl.h>\nimport \"oaidl.idl\"; import \"ocidl.idl\";
        const long CAPTION = DISPID_CAPTION; const long ABOUT = DISPID_ABOUTBOX; const long CLICK = DISPID_CLICK;
        const long SIZE_OF_FONT = DISPID_FONT_SIZE; const long MODE = DISPID_AMBIENT_USERMODE;";
    let contract = contract(text);
    let numbers = ["CAPTION", "ABOUT", "CLICK", "SIZE_OF_FONT", "MODE"].map(|name| integer(&contract, name));
    assert_eq!(numbers, [-518, -552, -600, 2, -709]);
}

#[test]
fn a_discriminator_may_be_cast() {
    let text = "import \"oaidl.idl\"; typedef enum { A = 0, B = 1 } KIND;
        typedef struct { KIND Event; [switch_type(KIND), switch_is((KIND)Event)] union { [case(A)] long a; [case(B)] short b; } u; } INFO;
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)]
        interface I : IUnknown { HRESULT f([in] INFO *i); };";
    assert_eq!(contract(text).interface("I").unwrap().operations.len(), 1);
}

#[test]
fn documentation_may_stand_before_the_pragma_of_its_method() {
    let text = "import \"unknwn.idl\"; typedef struct No { long why; } No;\n#pragma exception No\n
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)] interface I : IUnknown {
        /// Opens it.\n#pragma raises open(No)\nHRESULT open([in] long x);\n/// Closes it.\nHRESULT shut();\nHRESULT wait(); }";
    let contract = contract(text);
    let operations = &contract.interface("I").unwrap().operations;
    let docs: Vec<_> = operations.iter().map(|operation| operation.doc.as_ref()).collect();
    assert_eq!(docs, ["Opens it.", "Closes it.", ""]);
}

#[test]
fn types_of_controls_and_streams_are_known() {
    for kind in ["IOleContainer *", "IOleInPlaceSite *", "CALPOLESTR", "LPRECTL", "PROPBAG2", "SHANDLE_PTR"] {
        let text = format!(
            "import \"oaidl.idl\"; import \"ocidl.idl\"; import \"propsys.idl\", \"strmif.idl\", \"mshtml.idl\";
            [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B209)]
            interface I : IUnknown {{ HRESULT f([in] {kind} x); }};"
        );
        let contract = contract(&text);
        assert_eq!(contract.interface("I").unwrap().operations[0].parameters.len(), 1, "{kind}");
    }
}

#[test]
fn a_function_beside_interfaces_may_return_a_constant() {
    let text = "import \"oaidl.idl\"; const char * __stdcall Profile([in] IUnknown *d); const long ONE = 1;";
    assert_eq!(integer(&contract(text), "ONE"), 1);
}
