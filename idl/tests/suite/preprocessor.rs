//! The preprocessor: directories and macros from outside, macros with parameters; and names that it makes possible.

use everywire_idl::{Preprocessing, midl, omg, read_with};
use everywire_model::{Contract, Shape, Value};

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
