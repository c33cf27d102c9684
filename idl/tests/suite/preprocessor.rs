//! The preprocessor: directories and macros from outside, macros with parameters; and names that it makes possible.

use everywire_idl::{Preprocessing, midl, omg, read_with};
use everywire_model::{Contract, Definition, Shape, Value};

fn constant(contract: &Contract, name: &str) -> i128 {
    let found = contract.definitions.iter().find_map(|definition| match definition {
        everywire_model::Definition::Constant(constant) if constant.name == name => Some(&constant.value),
        _ => None,
    });
    match found {
        Some(Value::Integer(value)) => *value,
        other => panic!("{name}: {other:?}"),
    }
}

/// The names of all types and interfaces.
fn names(contract: &Contract) -> Vec<String> {
    let name = |definition: &Definition| match definition {
        Definition::Type(Shape::Alias(alias)) => Some(alias.name.to_string()),
        Definition::Interface(interface) => Some(interface.name.to_string()),
        _ => None,
    };
    contract.definitions.iter().filter_map(name).collect()
}

#[test]
fn directories_and_macros_are_given_from_outside() {
    let folder = std::env::temp_dir().join(format!("everywire-preprocessor-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("common")).unwrap();
    std::fs::write(folder.join("common/base.idl"), "const long SIZE = WIDTH;\n").unwrap();
    let omg = folder.join("main.idl");
    std::fs::write(
        &omg,
        "#include \"base.idl\"\n#ifdef LARGE\nconst long KIND = LARGE;\n#else\nconst long KIND = 0;\n#endif\n",
    )
    .unwrap();
    let midl = folder.join("main.midl");
    std::fs::write(&midl, "import \"base.idl\";\n#if defined(LARGE)\nconst long KIND = LARGE;\n#endif\n")
        .unwrap();
    let given = Preprocessing::default().directory(folder.join("common")).define("WIDTH=64").define("LARGE");
    for file in [&omg, &midl] {
        let contract = read_with(file, &given).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!((constant(&contract, "SIZE"), constant(&contract, "KIND")), (64, 1));
        assert!(everywire_idl::read(file).is_err(), "the file is not beside it");
    }
    let wrong = read_with(&omg, &Preprocessing::default().define("2=3")).unwrap_err().to_string();
    assert!(wrong.contains("-D 2") && wrong.contains("a macro needs a name"), "{wrong}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn macros_have_parameters() {
    let text = "
        #define LIST(TYPE, NAME) typedef sequence<TYPE> NAME
        #define TWICE(X) ((X) + (X))
        #define NAMES string
        #define BOTH() LIST(NAMES, Names);
        #define PAIR(A, B) A B; B A
        LIST(long, Numbers);
        BOTH()
        const long FOUR = TWICE(TWICE(1));
        const long LIST_ = TWICE ( (1, 2)[0] )
    ";
    // The last line is no IDL: the comma inside parentheses is no separator.
    let text = text.lines().filter(|line| !line.contains("LIST_")).collect::<Vec<_>>().join("\n");
    let contract = omg::parse(&text, "macros.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(constant(&contract, "FOUR"), 4);
    for name in ["Numbers", "Names"] {
        let found = contract.definitions.iter().any(|definition| {
            matches!(definition, everywire_model::Definition::Type(Shape::Alias(alias)) if alias.name == name)
        });
        assert!(found, "{name}");
    }
    for (text, told) in [
        ("#define F(A) A\nconst long X = F(1, 2);", "`F` has 1 parameter"),
        ("#define F(A) A\nconst long X = F(1;", "never end"),
        ("#define F(A, 1) A\n", "a parameter of a macro needs a name"),
        ("#define F(X) F(X) F(X)\nconst long X = F(1);", "macros expand to too much text"),
    ] {
        let mistakes = omg::parse(text, "bad.idl").unwrap_err().to_string();
        assert!(mistakes.contains(told), "{text}\n{mistakes}");
    }
}

#[test]
fn an_interface_names_what_it_inherits_by_its_own_name() {
    let text = "interface A { typedef long T; exception E {}; };
        interface B : A { void f(in B::T x) raises (B::E); };";
    let contract = omg::parse(text, "own.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let f = &contract.interface("B").unwrap().operations[0];
    assert!(matches!(f.arguments.fields()[0].shape.resolved(), Shape::I32));
    assert_eq!(f.raises[0].name, "A::E");
}

#[test]
fn an_exception_may_be_named_twice() {
    let text = "module M { exception E {}; interface I { void f() raises (E, ::M::E); }; };";
    let contract = omg::parse(text, "twice.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(contract.interface("M::I").unwrap().operations[0].raises.len(), 1);
}

#[test]
fn local_interfaces_that_automation_calls_stay() {
    let text = "import \"oaidl.idl\";
        [local, object, dual, uuid(11111111-2222-3333-4444-555555555555)]
        interface IDual : IDispatch { HRESULT Name([out, retval] BSTR *name); };
        [local, object, uuid(11111111-2222-3333-4444-555555555556)]
        interface IHere : IUnknown { HRESULT Name([out] long *name); };";
    let contract = midl::parse(text, "local.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let dual = contract.interface("IDual").expect("a dual interface is called by IDispatch");
    assert!(dual.operations.iter().any(|operation| operation.name == "Name"));
    assert!(contract.interface("IHere").is_none());
}

/// A macro in a condition stands for its whole body, as it does in the text.
#[test]
fn conditions_expand_macros() {
    for (defines, condition, wanted) in [
        ("#define V (5)\n", "V > 4", 1),
        ("#define B 3\n#define A B\n", "A == 3 && defined(A)", 1),
        ("#define A B\n", "A", 0),
        ("#define A A\n", "A", 0),
        ("#define E\n", "E", 0),
    ] {
        let text = format!("{defines}#if {condition}\nconst long X = 1;\n#else\nconst long X = 0;\n#endif\n");
        let contract = omg::parse(&text, "if.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert_eq!(constant(&contract, "X"), wanted, "{text}");
    }
    let mistakes = omg::parse("#define A A A\n#if A\n#endif\n", "if.idl").unwrap_err().to_string();
    assert!(mistakes.contains("this condition is not understood"), "{mistakes}");
}

#[test]
fn comments_go_on_behind_the_line_of_a_directive() {
    let text = "#define ONE 1 /* one,\n and no more */\n#include \"orb.idl\" /* the\n rest */\nconst long X = ONE;\n\
        #if 0\nchar *a = \"/*\", b = '\"';\n#endif\n#if 0 /* left\n out */\nconst long X = 7; /* it's\n#endif\n*/ // /*\n#endif\n\
        const long Y = 2;";
    let contract = omg::parse(text, "comment.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!((constant(&contract, "X"), constant(&contract, "Y")), (1, 2));
}

#[test]
fn prefixes_are_used_or_refused() {
    let text = "module M { interface I {}; }; typeprefix M \"\";";
    let contract = omg::parse(text, "prefix.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(contract.interface("M::I").unwrap().id, "IDL:M/I:1.0");
    let modules = |count: usize| {
        (0..count).map(|n| format!("module M{n} {{ interface I {{}}; }}; typeprefix M{n} \"x\";"))
    };
    assert!(omg::parse(&modules(64).collect::<String>(), "prefix.idl").is_ok());
    let long = "p".repeat(256);
    for (text, told) in [
        (modules(65).collect::<String>(), "more than 64"),
        (format!("module M {{ interface I {{}}; }}; typeprefix M \"{long}\";"), "longer than 255"),
        (format!("#pragma prefix \"{long}\"\ninterface I {{}};"), "longer than 255"),
    ] {
        let mistakes = omg::parse(&text, "prefix.idl").map(drop).unwrap_err().to_string();
        assert!(mistakes.contains(told), "{mistakes}");
    }
}

/// An application that leaves nothing is work all the same.
#[test]
fn applications_in_a_condition_are_counted() {
    let read = |times: usize| {
        let terms = "F() + ".repeat(times);
        omg::parse(&format!("#define F(a) a a a\n#if {terms} 1\nconst long X = 1;\n#endif\n"), "if.idl")
    };
    assert_eq!(constant(&read(100).unwrap(), "X"), 1);
    let mistakes = read(600).unwrap_err().to_string();
    assert!(mistakes.contains("this condition is not understood"), "{mistakes}");
}

/// Contracts of TAO use them after `#include <orb.idl>`; they stand in the module CORBA of the standard.
#[test]
fn sequences_of_the_module_corba_are_known_and_made_when_they_are_named() {
    let text = "#include <orb.idl>\ninterface I { CORBA::StringSeq f(in ::CORBA::AnySeq a, out CORBA::WCharSeq c); };\n\
        module CORBA { typedef ULongSeq Numbers; };";
    let contract = omg::parse(text, "orb.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert!(contract.interface("I").unwrap().notes.is_empty());
    let names = names(&contract);
    let wanted =
        ["CORBA::StringSeq", "CORBA::AnySeq", "CORBA::WCharSeq", "I", "CORBA::ULongSeq", "CORBA::Numbers"];
    assert_eq!(
        names.iter().filter(|name| wanted.contains(&name.as_str())).count(),
        wanted.len(),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name == "CORBA::OctetSeq"), "{names:?}");
    let printed = omg::print(&contract);
    assert!(printed.contains("module CORBA {\n    typedef ULongSeq Numbers;\n"), "{printed}");
    assert!(
        printed.starts_with("#include <orb.idl>\n") && !printed.contains("typedef sequence"),
        "{printed}"
    );
}

/// TAO's `Policy.pidl` defines `PolicyType`, and its contracts include both; either may come first.
#[test]
fn what_orb_idl_defines_may_be_defined_again() {
    let own = "#pragma prefix \"omg.org\"\nmodule CORBA { typedef unsigned long PolicyType; typedef sequence<string> StringSeq; };\n";
    let user = "interface I { void f(in CORBA::PolicyType p, in CORBA::StringSeq s); };\n";
    for text in [
        format!("{own}#include <orb.idl>\n{user}"),
        format!("#include <orb.idl>\n{own}{user}"),
        format!("#include <orb.idl>\n{user}{own}"),
    ] {
        let contract = omg::parse(&text, "policy.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let types = names(&contract).iter().filter(|name| *name == "CORBA::PolicyType").count();
        assert_eq!(types, 1, "{text}");
    }
    let other = "#include <orb.idl>\nmodule CORBA { typedef short PolicyType; };";
    assert!(omg::parse(other, "policy.idl").unwrap_err().to_string().contains("is defined already"));
}

#[test]
fn macros_are_expanded_as_deep_as_the_bound_and_no_deeper_without_a_word() {
    let chain = |deep: usize| {
        let more: String = (1..deep).map(|n| format!("#define D{n} (D{} + 1)\n", n - 1)).collect();
        format!("#define D0 1\n{more}const string X = \"\" D{};\n", deep - 1)
    };
    // Parentheses have a bound of their own, so the chain is of bare names.
    let bare = |deep: usize| {
        let more: String = (1..deep).map(|n| format!("#define D{n} D{}\n", n - 1)).collect();
        format!("#define D0 7\n{more}const long X = D{};\n", deep - 1)
    };
    let read = |text: &str| omg::parse(text, "deep.idl");
    for deep in [1, 33, 256] {
        assert_eq!(constant(&read(&bare(deep)).unwrap_or_else(|m| panic!("{m}")), "X"), 7, "{deep}");
    }
    for text in [bare(257), chain(257)] {
        let mistakes = read(&text).unwrap_err().to_string();
        assert!(mistakes.contains("macros are nested deeper than 256"), "{mistakes}");
    }
    // The name of a macro is no macro within that macro.
    let own =
        read("#define ONE ONE\n#define A B\n#define B A\nconst long A = 1;\nconst long ONE = 2;\n").unwrap();
    assert_eq!((constant(&own, "A"), constant(&own, "ONE")), (1, 2));
}
