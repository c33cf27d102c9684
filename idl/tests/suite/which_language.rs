//! Files `.idl` are of OMG IDL or MIDL: the text tells which, also where it has types only.

use everywire_idl::midl::is_midl;
use everywire_idl::{language_of, read};
use std::path::Path;

/// Texts of MIDL that have no interface.
const MIDL: &[&str] = &[
    "cpp_quote(\"#define A 1\")",
    "midl_pragma warning( disable: 2362 )\ntypedef struct A { long x; } A;",
    "import \"wtypes.idl\";",
    "typedef [v1_enum] enum A { B, C } A;",
    "typedef [string] char *NAME;",
    "[v1_enum] typedef enum A { B } A;",
    "typedef struct A { [string] char *x; long y; } A;",
    "typedef struct { long x; } A;",
    "typedef enum { B, C } A;",
    "typedef struct A { long x; } A, *PA;",
    "typedef struct A { struct A *next; long *x; } A;",
    "struct A { hyper x; };",
    "typedef unsigned hyper A;",
    "typedef unsigned char A;",
    "typedef unsigned int A;",
    "typedef __int64 A;",
    "struct A { DWORD size; WCHAR name[4]; };",
    "typedef struct A { GUID id; } A;",
    "const int A = 3;",
    "#define B \"x\"\n#ifndef A\n#define A \\\n  1\nstruct A { DWORD size; };\n#endif",
    "typedef enum A { B = 1, C = 0x10 } A;",
    "typedef union switch (long kind) u { case 1: long x; } A;",
    "const char *A = \"x\";",
    "typedef void *A;",
];

/// Texts of OMG IDL that look like MIDL in one place or another.
const OMG: &[&str] = &[
    "",
    "// typedef [string] char *A; DWORD x;",
    "struct A { string uuid; long a[3]; }; interface B { string uuid(in long x); long helpstring(in long y); };",
    "typedef unsigned long DWORD; struct A { DWORD size; };",
    "#include \"words.idl\"\nstruct A { DWORD size; };",
    "module M { typedef octet BYTE; }; struct A { M::BYTE x; };",
    "struct A { long byte; long small; long hyper[3]; };",
    "const long A = 2 * 3; const long B = (A) * A; const long C = - A * (A);",
    "const char A = '\"'; struct B { long x[3]; }; const char C = '\\''; const string D = \"[uuid(\\\"x\\\")]\";",
    "typedef unsigned short A; typedef unsigned long long B;",
    "const octet A = 3; typedef long B[A * 2][3];",
    "enum A { B, C }; union D switch (A) { case B: long x[2]; };",
    "@annotation A { long b default 1; }; @A(b = 1) enum C { @value(3) D };",
    "import ::Components; interface A { void import(); };",
    "#if defined(__IDL__)\nstruct A { long x; };\n#else\n#if 1\n#endif\nvoid f(const void *s, unsigned char c);\n#endif\nstruct B { long y; };",
    "interface A { void get(in sequence<long, 3> x, out string<4> y); };",
    "struct A { long x; }; /* [uuid( */ typedef A B[2], C;",
];

#[test]
fn types_alone_tell_midl() {
    for text in MIDL {
        assert!(is_midl(text), "{text}");
    }
}

#[test]
fn omg_idl_is_not_taken_for_midl() {
    for text in OMG {
        assert!(!is_midl(text), "{text}");
    }
    // Those of other tests, each as it is.
    for name in ["bench.idl", "corba3.idl", "everything.idl", "main.idl", "shared.idl", "typecodes.idl"] {
        let path = Path::new("tests/corpus/good").join(name);
        assert!(!is_midl(&std::fs::read_to_string(path).unwrap()), "{name}");
    }
}

/// Text that is cut anywhere is no danger.
#[test]
fn what_is_cut_is_looked_at_to_its_end() {
    for text in MIDL.iter().chain(OMG).chain(&["é[", "#", "#else", "#el\\\n", "'", "\"\\", "/*", "[[[["]) {
        for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = is_midl(&text[..end]);
        }
    }
}

#[test]
fn a_file_of_types_is_read_as_its_language() {
    let folder = std::env::temp_dir().join(format!("everywire-which-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let of = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        let read = read(&path).map(|contract| contract.definitions.len());
        (language_of(&path).unwrap().name, read.unwrap_or_else(|wrong| panic!("{wrong}")))
    };
    let types = "typedef struct _PAGE { DWORD number; WCHAR title[8]; } PAGE, *PPAGE;";
    assert_eq!(of("midl.idl", types).0, "midl");
    let types = "typedef unsigned long DWORD; struct Page { DWORD number; };";
    assert_eq!(of("omg.idl", types), ("omg", 2));
    std::fs::remove_dir_all(&folder).unwrap();
}
