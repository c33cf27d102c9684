//! The corpus: what must be read means the same after printing, what must be refused is refused as recorded.

use crate::common::{contracts, corpus, outline};
use everywire_idl::omg::{parse, parse_file, print};

#[test]
fn good_contracts_survive_printing() {
    for path in contracts(&corpus("good")) {
        let contract = parse_file(&path, &[corpus("good")]).unwrap_or_else(|e| panic!("{e}"));
        let printed = print(&contract);
        let again =
            parse(&printed, "printed.idl").unwrap_or_else(|e| panic!("{}:\n{printed}\n{e}", path.display()));
        assert_eq!(outline(&again), outline(&contract), "{}:\n{printed}", path.display());
        assert_eq!(print(&again), printed, "printing settles");
    }
}

/// With `EVERYWIRE_RECORD=1` the diagnostics are recorded anew.
#[test]
fn bad_contracts_are_refused_as_recorded() {
    for path in contracts(&corpus("bad")) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        // `parse` opens no files, so the place of the corpus is not in the messages.
        let found = parse(&text, &name).expect_err(&name).to_string() + "\n";
        let record = path.with_extension("txt");
        if std::env::var_os("EVERYWIRE_RECORD").is_some() {
            std::fs::write(&record, &found).unwrap();
        }
        assert_eq!(found, std::fs::read_to_string(&record).unwrap_or_default(), "{name}");
    }
}

/// Whatever stands in the middle of a file, reading ends with an answer.
#[test]
fn damaged_contracts_are_answered() {
    for folder in ["good", "bad"] {
        for path in contracts(&corpus(folder)) {
            let text = std::fs::read_to_string(&path).unwrap();
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).step_by(23).collect();
            for (number, at) in starts.iter().enumerate() {
                let _ = parse(&text[..*at], "cut.idl");
                let other = starts[(number * 7 + 3) % starts.len()];
                let _ = parse(&format!("{}{}", &text[..*at], &text[other..]), "spliced.idl");
            }
        }
    }
}

/// Text made to be dear: each is answered, and none takes long or much.
#[test]
fn hostile_contracts_are_answered() {
    let deep = |open: &str, inside: &str, close: &str| open.repeat(100_000) + inside + &close.repeat(100_000);
    let chain: String = (1..5000).map(|n| format!("struct S{n} {{ S{} a; }};", n - 1)).collect();
    let aliases: String = (1..5000).map(|n| format!("typedef A{} A{n};", n - 1)).collect();
    let diamonds: String = (1..200)
        .map(|n| {
            format!(
                "interface L{n} : I{0} {{}}; interface R{n} : I{0} {{}}; interface I{n} : L{n}, R{n} {{}};",
                n - 1
            )
        })
        .collect();
    let macros: String = (1..64).map(|n| format!("#define M{n} M{0} M{0} M{0}\n", n - 1)).collect();
    let cases = [
        deep("module M { ", "", "};"),
        format!("const long x = {};", deep("(", "1", ")")),
        format!("const long x = {}1;", "-".repeat(100_000)),
        format!("const long x = {}1;", "1 + ".repeat(100_000)),
        format!("typedef {} X;", deep("sequence<", "long", ">")),
        format!("{}long a; {}", "struct S { ".repeat(100_000), "} s;".repeat(100_000)),
        format!("struct S0 {{ long a; }}; {chain}"),
        format!("typedef long A0; {aliases}"),
        format!("interface I0 {{ void f(); }}; {diamonds}"),
        format!("#define M0 x\n{macros}const long M63 = 1;"),
        format!("#if {}\n#endif", deep("(", "1", ")")),
        "#if 1\n".repeat(100_000),
        format!("typedef long X{};", "[65536]".repeat(1000)),
        format!("const long {} = 1;", "x".repeat(1_000_000)),
        format!(
            "interface A {{ attribute long {}; }};",
            (0..60_000).map(|n| format!("a{n}")).collect::<Vec<_>>().join(",")
        ),
        "é\u{0}\u{feff}'\"\\".repeat(10_000),
        "x".repeat(9 << 20),
    ];
    for (number, text) in cases.iter().enumerate() {
        let outcome = parse(text, "hostile.idl");
        // Only the long interface is a proper contract.
        assert_eq!(outcome.is_ok(), number == 14, "case {number}");
        if let Err(diagnostics) = outcome {
            assert!(diagnostics.list.len() <= 40 && diagnostics.to_string().len() < 40_000, "case {number}");
        }
    }
}

#[test]
fn operations_of_bases_come_first_and_once() {
    let text = "interface A { void fa(); attribute long n; }; interface B : A { void fb(); };
        interface C : A { void fc(); }; interface D : B, C { readonly attribute long m; void fd(); };";
    let contract = parse(text, "diamond.idl").unwrap();
    let d = contract.interface("D").unwrap();
    let names: Vec<&str> = d.operations.iter().map(|operation| operation.name.as_ref()).collect();
    assert_eq!(names, ["fa", "_get_n", "_set_n", "fb", "fc", "_get_m", "fd"]);
    assert_eq!(d.inherited, 5);
    let attributes: Vec<_> = d.attributes.iter().map(|a| (a.name.as_ref(), a.getter, a.setter)).collect();
    assert_eq!(attributes, [("n", 1, Some(2)), ("m", 5, None)]);
    assert_eq!(d.operations[2].label, "set_n");
    assert!(d.is_a("IDL:A:1.0"));
}

/// The examples of CORBA 3.0, 10.7.5 and 3.15, in our own words.
#[test]
fn identities_follow_prefixes() {
    let text = r#"
        module First { typedef long Plain; typedef long Given;
#pragma ID Given "DCE:00000000-0000-0000-0000-000000000000:3"
        };
#pragma prefix "one"
        module Second { module Third {
#pragma prefix "two"
            typedef long Inner; }; typedef long Outer;
#pragma version Outer 2.10
        };
        module Fourth { module Fifth { typedef long Late; }; };
        typeprefix Fourth::Fifth "three";"#;
    let ids = crate::common::identities(&parse(text, "ids.idl").unwrap());
    assert_eq!(ids["First::Plain"], "IDL:First/Plain:1.0");
    assert_eq!(ids["First::Given"], "DCE:00000000-0000-0000-0000-000000000000:3");
    assert_eq!(ids["Second::Third::Inner"], "IDL:two/Inner:1.0");
    assert_eq!(ids["Second::Outer"], "IDL:one/Second/Outer:2.10");
    assert_eq!(ids["Fourth::Fifth::Late"], "IDL:three/Fourth/Fifth/Late:1.0");
}

/// JacORB's compiler takes a prefix without quotes, and its own contracts have such.
#[test]
fn a_prefix_needs_no_quotes() {
    let bare = parse("#pragma prefix shop.example.org // ours\ninterface Desk {};", "bare.idl").unwrap();
    assert_eq!(crate::common::identities(&bare)["Desk"], "IDL:shop.example.org/Desk:1.0");
    let mistakes = parse("#pragma prefix\ninterface Desk {};", "none.idl").unwrap_err().to_string();
    assert!(mistakes.contains("the prefix is missing"), "{mistakes}");
}

#[test]
fn the_extension_picks_the_language() {
    assert!(everywire_idl::read(corpus("good").join("bench.idl")).is_ok());
    let refused = everywire_idl::read("contract.proto").unwrap_err();
    assert!(refused.to_string().contains(".idl (OMG IDL)"), "{refused}");
    let missing = everywire_idl::read("nowhere.idl").unwrap_err();
    assert!(missing.to_string().contains("cannot be read"), "{missing}");
    let included = parse_file(corpus("bad").join("preprocessor.idl"), &[]).unwrap_err();
    assert!(included.list[0].message.contains("does-not-exist.idl"), "{included}");
}
