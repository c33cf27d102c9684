//! MIDL as the Windows SDK, Wine and others have it: order, macros in conditions, and what programs alone use.

use everywire_idl::midl::{parse, print};
use everywire_model::contract::left_out;
use everywire_model::{Contract, Definition, Interface, Shape, Value};

fn read(text: &str) -> Contract {
    parse(text, "x.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A contract of one interface with these methods, after these definitions.
fn methods(before: &str, methods: &str) -> Contract {
    read(&format!(
        "import \"objidl.idl\"; {before}\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B104)] interface X : IUnknown {{ {methods} }};"
    ))
}

fn names(interface: &Interface) -> Vec<&str> {
    interface.operations.iter().map(|operation| operation.name.as_ref()).collect()
}

/// What a contract says of the methods of `X` that have no form on a wire.
fn left(contract: &Contract) -> Vec<String> {
    left_out(&contract.interface("X").unwrap().notes).map(str::to_owned).collect()
}

fn constants(contract: &Contract) -> Vec<(&str, &Value)> {
    let each = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Constant(constant) => Some((constant.name.as_ref(), &constant.value)),
        _ => None,
    });
    each.collect()
}

#[test]
fn interfaces_may_be_derived_from_one_that_comes_later() {
    let contract = read(
        "import \"unknwn.idl\";\n\
         interface Last; interface Middle;\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B105)] interface First : Middle { HRESULT one(); };\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B106), pointer_default(ref)]\n\
         interface Middle : Last { HRESULT two(); };\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B107)] interface Last : IUnknown { HRESULT three(); };",
    );
    assert_eq!(names(contract.interface("First").unwrap()), ["three", "two", "one"]);
    // Each is defined once, and before what is derived from it.
    let order: Vec<_> = contract.interfaces().map(|interface| interface.name.to_string()).collect();
    assert_eq!(order, ["Last", "Middle", "First"]);
    // Nobody is derived from itself.
    let circle = "interface A : B { HRESULT a(); }; interface B : A { HRESULT b(); };";
    let mistakes = parse(circle, "x.midl").unwrap_err().to_string();
    assert!(mistakes.contains("there is no interface `A` before this"), "{mistakes}");
}

#[test]
fn conditions_call_macros_and_compute_with_bits() {
    let of = |condition: &str| {
        let text = format!(
            "#define DESKTOP 1\n#define APP 2\n#define FAMILY (DESKTOP | APP)\n\
             #define PART(Parts) ((FAMILY & Parts) == Parts)\n#define BOTH(a, b) (PART(a) && PART(b))\n\
             #if {condition}\nconst long yes = 1;\n#endif\nconst long end = 0;"
        );
        parse(&text, "x.midl").map(|contract| constants(&contract).len() == 2)
    };
    for (condition, holds) in [
        ("PART(DESKTOP)", true),
        ("PART(DESKTOP | APP)", true),
        ("PART(4)", false),
        ("BOTH(DESKTOP, (APP))", true),
        ("!BOTH(DESKTOP, 8)", true),
        ("FAMILY - 3", false),
        ("defined(PART) && defined PART", true),
        ("1 + 2 * 1 == 3 && (6 ^ 2) == 4", true),
        ("1 + 2 * 3 == 7", true),
        ("FAMILY & 2 == 2", true),
        ("FAMILY & 4 == 4", true),
        ("4 & 2 == 2", false),
        ("5 & 3 ^ 1 | 8", true),
        ("(1 | 3 ^ 3) == 1 && 2 | 0", true),
        ("3 > 2 > 1 || 7 - 2 - 5", false),
        ("1 - 2 < 0", false),
    ] {
        assert_eq!(of(condition).unwrap(), holds, "{condition}");
    }
    for wrong in ["PART(", "PART(1", "BOTH(1)", "PART(1, 2)"] {
        assert!(of(wrong).unwrap_err().to_string().contains("this condition is not understood"), "{wrong}");
    }
}

/// `PROPVARIANT` of the SDK is announced by a typedef, and holds itself.
#[test]
fn a_typedef_before_a_struct_names_what_its_fields_may_use() {
    let own = "typedef struct tag_inner PROPVARIANT;\n\
        typedef struct tagLIST { ULONG count; [size_is(count)] PROPVARIANT *items; } LIST;\n\
        struct tag_inner { VARTYPE vt; [switch_is((unsigned short)vt)] union {\n\
        [case(0)] ; [case(3)] LONG lVal; [case(12)] PROPVARIANT *self; [case(0x100c)] LIST list; }; };";
    let contract = methods(own, "HRESULT f([in] PROPVARIANT *value);");
    let fields = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Struct(held)) if held.name == "PROPVARIANT" => Some(held.fields.len()),
        _ => None,
    });
    assert_eq!(fields, Some(2), "the contract's own one counts: {contract:?}");
    let printed = print(&contract).unwrap();
    parse(&printed, "printed.midl").unwrap_or_else(|mistakes| panic!("{printed}\n{mistakes}"));
}

#[test]
fn tags_of_known_structs_are_known() {
    let contract = methods("", "HRESULT f([in] struct _GUID *id, [in] struct _FILETIME *time);");
    let shapes: Vec<String> = contract.interface("X").unwrap().operations[0]
        .parameters
        .iter()
        .map(|parameter| format!("{:?}", parameter.field.shape))
        .collect();
    assert!(shapes[0].contains("Data4") && shapes[1].contains("dwHighDateTime"), "{shapes:?}");
}

/// What travels in the place of `STGMEDIUM` is said where the contract says it, too.
#[test]
fn a_type_for_programs_may_have_two_names() {
    let own = "typedef struct tagSTGMEDIUM { DWORD tymed; void *held; } uSTGMEDIUM;\n\
        typedef struct _userSTGMEDIUM { DWORD tymed; } userSTGMEDIUM;\n\
        typedef [unique] userSTGMEDIUM *wireSTGMEDIUM;\n\
        typedef [wire_marshal(wireSTGMEDIUM)] uSTGMEDIUM STGMEDIUM;";
    let contract = methods(own, "HRESULT f([in] STGMEDIUM *medium);");
    assert_eq!(left(&contract), Vec::<String>::new());
}

#[test]
fn what_programs_alone_use_is_left_out_and_named() {
    let own = "typedef struct _ITEM { USHORT cb; BYTE abID[]; } ITEM;\n\
        typedef pipe byte BYTES;\n\
        typedef struct { int unused; } *TOKEN;";
    let contract = methods(
        own,
        "HRESULT item([in] ITEM *item); HRESULT bytes([in] BYTES data); HRESULT many([in] long a, ...);\n\
         HRESULT token([in] TOKEN token); HRESULT last();",
    );
    // The numbers of methods stay.
    assert_eq!(names(contract.interface("X").unwrap()), ["item", "bytes", "many", "token", "last"]);
    let left = left(&contract);
    assert_eq!(left.len(), 3, "{left:?}");
    for (part, why) in [("`item`", "size_is"), ("`bytes`", "pipes"), ("`many`", "any number")] {
        assert!(left.iter().any(|one| one.contains(part) && one.contains(why)), "{left:?}");
    }
}

#[test]
fn another_name_of_a_binding_is_no_parameter() {
    let contract = read(
        "typedef handle_t PLACE;\n\
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B108), version(1.0)] interface P { long f([in] PLACE where, [in] long n); }",
    );
    let parameters: Vec<&str> = contract.interface("P").unwrap().operations[0]
        .parameters
        .iter()
        .map(|parameter| parameter.field.name.as_ref())
        .collect();
    assert_eq!(parameters, ["n"]);
}

#[test]
fn an_array_behind_a_name_comes_out() {
    let contract = methods("typedef char Digest[32];", "HRESULT digest([out] Digest value);");
    let operation = &contract.interface("X").unwrap().operations[0];
    assert!(operation.parameters[0].direction.comes_out());
    assert!(matches!(operation.parameters[0].field.shape.resolved(), Shape::Array(array) if array.len == 32));
}

#[test]
fn texts_go_over_lines_and_stand_in_arrays() {
    let contract = methods(
        "const WCHAR name[] = L\"Name\"; const char *other = \"other\";",
        "[helpstring(\"one line\nand another\")] HRESULT f();",
    );
    assert_eq!(
        constants(&contract),
        [("name", &Value::Text("Name".to_owned())), ("other", &Value::Text("other".to_owned()))]
    );
    assert_eq!(contract.interface("X").unwrap().operations[0].doc, "one line\nand another");
}

/// A specification defines `REFIID` as a macro, and another one, which imports it, as a type.
#[test]
fn names_of_known_types_are_no_macros() {
    let contract = methods(
        "\n#define REFIID const IID *\ntypedef IID *REFIID;\n",
        "HRESULT f([in] REFIID iid, [out, iid_is(iid)] void **object);",
    );
    assert_eq!(left(&contract), Vec::<String>::new());
}

/// A copy of a file that is known here, with other words for the same: what a contract uses of it is defined once.
#[test]
fn what_is_known_and_stands_in_a_file_is_defined_once() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("known-twice");
    std::fs::create_dir_all(&folder).unwrap();
    let wtypes = "typedef unsigned long COLORREF;\ntypedef struct _POINTL { LONG x; LONG y; } POINTL;\n\
        typedef SIZE SIZEL;\n// BSTR\n";
    std::fs::write(folder.join("wtypes.idl"), wtypes).unwrap();
    let own = "import \"wtypes.idl\"; typedef SIZE SIZEL;\n\
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B109)] interface X : IUnknown {\n\
        HRESULT f([in] COLORREF color, [in] POINTL *at, [in] SIZEL *size, [in] struct _POINTL *to); };";
    let path = folder.join("x.midl");
    std::fs::write(&path, own).unwrap();
    let contract = everywire_idl::read(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(left(&contract), Vec::<String>::new());
    let names: Vec<String> = contract
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Type(Shape::Struct(held)) => Some(held.name.to_string()),
            Definition::Type(Shape::Alias(held)) => Some(held.name.to_string()),
            _ => None,
        })
        .collect();
    let mut once = names.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
    assert!(names.contains(&"COLORREF".to_owned()) && names.contains(&"POINTL".to_owned()), "{names:?}");
}

/// What `pointer_default` says counts in its interface, and not in a base that comes later.
#[test]
fn a_base_that_comes_later_has_a_pointer_default_of_its_own() {
    let first = "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B105), pointer_default(ref)]\
        interface First : Last { HRESULT one(); };";
    let last = "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B107)]\
        interface Last : IUnknown { typedef struct Held { LONG *at; } Held; HRESULT two([in] Held *held); };";
    let field = |text: String| {
        let contract = read(&format!("import \"unknwn.idl\"; interface Last; {text}"));
        let held = contract.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Struct(held)) if held.name == "Held" => {
                Some(format!("{:?}", held.fields))
            }
            _ => None,
        });
        held.unwrap()
    };
    assert_eq!(field(format!("{first}{last}")), field(format!("{last}{first}")));
}

/// In C nobody gets what such a parameter brings back; other compilers take it all the same.
#[test]
fn what_comes_out_without_a_pointer_leaves_its_method_out() {
    let contract = methods(
        "",
        "HRESULT f([out] long a); HRESULT g([out] long *a); HRESULT h([out, size_is(8)] BSTR a);",
    );
    assert_eq!(names(contract.interface("X").unwrap()), ["f", "g", "h"]);
    let left = left(&contract);
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0], "`f`: `a` comes out and is no pointer, so nobody gets it");
}

/// Old libraries are declared as C++ declares them.
#[test]
fn methods_may_be_pure() {
    let contract = methods("", "HRESULT f([in] long a) = 0; HRESULT g() const = 0;");
    assert_eq!(names(contract.interface("X").unwrap()), ["f", "g"]);
    let mistakes = parse("interface X : IUnknown { HRESULT f() = 1; }", "x.midl").unwrap_err().to_string();
    assert!(mistakes.contains("expected `0`"), "{mistakes}");
}

/// A range is of the other name: the enumeration has its own.
#[test]
fn an_enumeration_keeps_its_name_beside_a_range_of_it() {
    let contract = methods(
        "enum Speed { SLOW, FAST }; const int MOST = FAST; typedef [range(SLOW, MOST)] enum Speed Limited;",
        "HRESULT f([in] Limited l);",
    );
    let names = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Type(Shape::Enum(shape)) => Some(shape.name.to_string()),
        Definition::Type(Shape::Alias(shape)) => Some(shape.name.to_string()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["Speed", "Limited"]);
}
