//! MIDL that is printed, read and printed again: the second text is the first one, and nothing is gone.

use everywire_idl::midl::{parse, print};
use everywire_model::{Contract, Definition};

fn read(text: &str) -> Contract {
    parse(text, "x.midl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

/// The printed text, which is printed again as it is.
fn stays(text: &str) -> String {
    let printed = print(&read(text)).unwrap();
    let again = print(&read(&printed)).unwrap();
    assert_eq!(printed, again, "\nfrom {text}");
    printed
}

/// Nobody calls a local interface from elsewhere, but a class answers it, and others are derived from it.
#[test]
fn classes_keep_the_local_interfaces_that_they_answer() {
    let printed = stays(
        "import \"unknwn.idl\";\n\
         [object, local, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B301)] interface ILocal : IUnknown { HRESULT one(); }\n\
         [object, local, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B302)] interface IMore : ILocal { HRESULT two(); }\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B303)] interface IFar : IMore { HRESULT three(); }\n\
         [object, local, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B304)] interface ITold : IUnknown { HRESULT told(); }\n\
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B305)] coclass Alone { interface IMore; }\n\
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B306)] coclass Both { [default] interface IFar; [source] interface ITold; }",
    );
    assert_eq!(printed.matches("interface ILocal : IUnknown").count(), 1, "{printed}");
    assert!(printed.contains("[default] interface IMore;"), "{printed}");
    assert!(printed.contains("[default, source] interface ITold;"), "{printed}");
    let far = read(&printed);
    let numbers: Vec<_> = far.interface("IFar").unwrap().operations.iter().map(|o| o.name.clone()).collect();
    assert_eq!(numbers, ["one", "two", "three"]);
}

/// Interfaces of the system are derived from `IPersist`, also where a contract has one of its own.
#[test]
fn what_the_system_needs_of_a_contract_keeps_its_place() {
    let printed = stays(
        "import \"objidl.idl\";\n\
         typedef struct Early { long a; } Early;\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B307)] interface IFirst : IUnknown { HRESULT one([in] Early *e); }\n\
         [object, uuid(0000010c-0000-0000-c000-000000000046)] interface IPersist : IUnknown { HRESULT GetClassID([out] CLSID *id); }\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B308)] interface ILast : IPersist { HRESULT last(); }",
    );
    let places =
        ["interface IFirst : IUnknown", "interface IPersist : IUnknown", "interface ILast : IPersist"]
            .map(|head| printed.find(head).unwrap_or_else(|| panic!("no {head}: {printed}")));
    assert!(places.is_sorted(), "{printed}");
}

/// MIDL has no constants with points, and none of more than 32 bits: the text for the C header says them.
#[test]
fn constants_for_the_header_of_c_are_read_again() {
    let printed = stays(
        "const float HALF = 0.5; const double FEW = -1.5e-9; const hyper FAR = 0x10000000000; const hyper BACK = -0x10000000000;\n\
         const unsigned hyper MOST = 0xffffffffffffffff;",
    );
    for line in [
        "static const float HALF = 0.5;",
        "#define FAR 1099511627776LL",
        "#define MOST 18446744073709551615ULL",
    ] {
        assert!(printed.contains(&format!("cpp_quote(\"{line}\")")), "{printed}");
    }
    let contract = read(&printed);
    let constants = contract.definitions.iter().filter_map(|definition| match definition {
        Definition::Constant(constant) => {
            Some(format!("{} {} {:?}", constant.name, constant.shape.noun(), constant.value))
        }
        _ => None,
    });
    let constants: Vec<_> = constants.collect();
    assert_eq!(
        constants,
        [
            "HALF f32 Float(0.5)",
            "FEW f64 Float(-1.5e-9)",
            "FAR i64 Integer(1099511627776)",
            "BACK i64 Integer(-1099511627776)",
            "MOST u64 Integer(18446744073709551615)",
        ]
    );
    // Other text of C is nobody's constant.
    let other = [
        "static const double A = inf;",
        "static const double A = 1.0",
        "static const double a b = 1.0;",
        "#define A 0x10LL",
        "#define A 1L",
        "#define A LL",
        "#define A(x) 1LL",
        "#define  1LL",
        "static const double  = 1.0;",
    ];
    for text in other {
        assert!(read(&format!("cpp_quote(\"{text}\")")).definitions.is_empty(), "{text}");
    }
}

/// A library is called as the first thing that stands in it: classes come last there.
#[test]
fn a_library_keeps_its_name() {
    let printed = stays(
        "[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B309)] library L {\n\
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B30A)] coclass Class { interface IUnknown; }\n\
         [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B30B)] dispinterface DFace { properties: methods: [id(1)] void f(); } };",
    );
    assert!(printed.contains("library DFaceLib"), "{printed}");
}

/// A string has an offset and a count beside its size; the counted tail of a struct has none.
#[test]
fn the_counted_tail_of_a_struct_is_no_string() {
    for element in ["byte", "char", "wchar_t"] {
        let printed = stays(&format!(
            "import \"unknwn.idl\";\n\
             typedef struct Blob {{ long n; [size_is(n)] {element} data[]; }} Blob;\n\
             typedef struct Name {{ long n; [size_is(n), string] {element} data[]; }} Name;\n\
             [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B309)] interface ITail : IUnknown\n\
             {{ HRESULT put([in] Blob *b, [in] Name *n); }}"
        ));
        let tails: Vec<_> = printed.lines().filter(|line| line.contains("data[]")).collect();
        let [blob, name] = tails[..] else { panic!("{printed}") };
        assert!(!blob.contains("string") && name.contains("string"), "{printed}");
    }
}

/// The getter's text may be null there, and the setter's may not.
#[test]
fn attributes_that_are_texts_can_still_be_written() {
    let plain = everywire_idl::omg::parse(
        "interface At { attribute string title; attribute wstring wide; readonly attribute string fixed_; };",
        "at.idl",
    )
    .unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let contract = read(&print(&plain).unwrap());
    let interface = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Interface(interface) if interface.name == "At" => Some(interface),
        _ => None,
    });
    let told: Vec<_> = interface
        .unwrap()
        .attributes
        .iter()
        .map(|attribute| (attribute.name.to_string(), attribute.setter.is_some()))
        .collect();
    let told: Vec<(&str, bool)> = told.iter().map(|(name, sets)| (name.as_str(), *sets)).collect();
    assert_eq!(told, [("title", true), ("wide", true), ("fixed_", false)]);
}
