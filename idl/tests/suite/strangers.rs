//! OMG IDL as others write it: what their compilers take, and this reader once refused.

use everywire_idl::omg::parse;
use everywire_idl::{Preprocessing, omg};
use everywire_model::contract::left_out;
use everywire_model::{Contract, Definition, Interface, Shape};

fn read(text: &str) -> Contract {
    parse(text, "plant.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn interface<'c>(contract: &'c Contract, name: &str) -> &'c Interface {
    contract.interfaces().find(|interface| interface.name == name).unwrap()
}

fn operations(interface: &Interface) -> Vec<&str> {
    interface.operations.iter().map(|operation| operation.name.as_ref()).collect()
}

fn missing(interface: &Interface) -> Vec<&str> {
    left_out(&interface.notes).collect()
}

/// Annotations are for other wires; the annotated contract means what it means without them.
#[test]
fn annotations_are_passed_over() {
    let annotated = read(
        "@annotation weight { long kilos default 1; };
         @final @mutable(TRUE) struct Pump { @key long number; @A::unit(name = \"bar\", of = (1 + 2)) double pressure; };
         @verbatim(text = \"}\") enum State { @value(3) idle, @default_literal running };
         union Reading switch (@key State) { @default case idle: long level; };
         @service interface Plant { @oneway void start(@range(min = 1) in Pump which); @weight readonly attribute long size; };",
    );
    let plain = read(
        "struct Pump { long number; double pressure; };
         enum State { idle, running };
         union Reading switch (State) { case idle: long level; };
         interface Plant { void start(in Pump which); readonly attribute long size; };",
    );
    assert_eq!(omg::print(&annotated), omg::print(&plain));
}

/// The component model is left out; what needs nothing of it can be used.
#[test]
fn components_are_left_out() {
    let contract = read(
        "module M {
           import ::Components;
           eventtype Alarm { public string text; };
           custom eventtype Odd { public long x; };
           component Boiler;
           component Boiler supports Plain { provides Plain plain; publishes Alarm alarms; attribute long level; };
           home BoilerHome manages Boiler { factory make(in long size); };
           porttype Tap { uses Plain out; };
           streamtype Flow { long x; };
           bitmask Flags { @position(0) a, b };
           bitset Bits { bitfield<3> low; bitfield<1> high; };
           interface Plain { void start(); };
           interface Works : Plain {
             long count();
             Boiler first();
             void ring(in Alarm what);
             void set(in Flags flags, in Bits bits);
             void all(in map<string, long> table, in map<long, string, 10> names);
           };
         };",
    );
    let works = interface(&contract, "M::Works");
    assert_eq!(operations(works), ["start", "count"]);
    assert_eq!(
        missing(works),
        [
            "`first`: the component `M::Boiler` is not supported",
            "`ring`: the event type `M::Alarm` is not supported",
            "`set`: the bit set `M::Bits` is not supported",
            "`all`: `map` is not supported",
        ]
    );
}

/// Modules of ORBs that no file defines: what needs them is left out, as what needs `CORBA` is; so are bases.
#[test]
fn modules_of_orbs_are_known_to_be_missing() {
    let contract = read(
        "module M {
           interface Root { void stay(); };
           interface Watch : PortableInterceptor::ORBInitializer, Root {
             void keep(in PortableServer::ObjectId id);
             long count();
           };
         };",
    );
    let watch = interface(&contract, "M::Watch");
    assert_eq!(operations(watch), ["stay", "count"]);
    assert_eq!(
        missing(watch),
        [
            "`PortableInterceptor::ORBInitializer`: the base `PortableInterceptor::ORBInitializer` is not supported",
            "`keep`: `PortableServer::ObjectId` is not supported",
        ]
    );
    // A module of theirs that is there, and a module of nobody.
    for wrong in ["PortableServer::Gone", "Nobody::Thing"] {
        let text =
            format!("module PortableServer {{ typedef long X; }}; interface I {{ void f(in {wrong} x); }};");
        let mistakes = parse(&text, "wrong.idl").unwrap_err().to_string();
        assert!(mistakes.contains("is not defined"), "{wrong}: {mistakes}");
    }
}

/// Values are called as their types are, but for case.
#[test]
fn values_may_be_called_as_their_types_are_but_for_case() {
    let contract = read(
        "struct Place { double x; };
         struct Right { string family, right; };
         struct Car { Place place; };
         exception Command { string command; };
         interface Road { void drive(in Place place, in Car car); attribute Car car; Place place(); };",
    );
    assert_eq!(operations(interface(&contract, "Road")), ["drive", "_get_car", "_set_car", "place"]);
    // The very same name is a mistake as before.
    let mistakes = parse("struct Car { long x; }; struct S { Car Car; };", "s.idl").unwrap_err().to_string();
    assert!(mistakes.contains("the name is in use in this scope"), "{mistakes}");
}

#[test]
fn integers_may_tell_their_size() {
    let contract = read(
        "struct Sizes { int8 a; uint8 b; int16 c; uint16 d; int32 e; uint32 f; int64 g; uint64 h; };
         module M { typedef string int32; struct Own { int32 text; }; };",
    );
    let fields = |name: &str| {
        contract.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Struct(shape)) if shape.name == name => {
                Some(shape.fields.iter().map(|field| field.shape.noun().into_owned()).collect::<Vec<_>>())
            }
            _ => None,
        })
    };
    let sizes = fields("Sizes").unwrap();
    assert_eq!(sizes, ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"].map(str::to_owned));
    // A name that the contract defines is its own.
    assert_eq!(fields("M::Own").unwrap(), ["M::int32"]);
}

/// `A ## B` is one word and `#A` a text.
#[test]
fn macros_glue_and_quote() {
    let contract = read(
        "#define LIST(TYPE) typedef sequence<TYPE> TYPE ## List
         #define NAME(TYPE) const string name_ ## TYPE = #TYPE
         #define MAKE(KIND, N) interface KIND ## N { KIND ## N next(); }
         struct Pump { long x; };
         LIST(Pump);
         NAME(Pump);
         MAKE(Valve, 7);",
    );
    let printed = omg::print(&contract);
    for wanted in ["typedef sequence<Pump> PumpList;", "name_Pump = \"Pump\"", "interface Valve7"] {
        assert!(printed.contains(wanted), "{wanted}: {printed}");
    }
    // What glues nothing harms nobody.
    let _ = parse("#define F(A) ## A ##\nF(x)\n#define G(A) #\nG(y)", "odd.idl");
}

/// Files of CORBA 3 name the modules that they need by `import`, and a module of the OMG is in a file of its name. Prefixes of
/// repository ids end with the file, as they do with an included one, and each file is read once.
#[test]
fn imports_read_the_files_of_their_modules() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("imports");
    std::fs::create_dir_all(folder.join("omg")).unwrap();
    let write = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
    write("omg/Clock.idl", "import ::Base;\nmodule Clock { interface Watch { Base::Ticks now(); }; };");
    write(
        "omg/Base.idl",
        "import ::Clock;\n#pragma prefix \"base.org\"\nmodule Base { typedef long Ticks; interface Bell {}; };",
    );
    write(
        "bank.idl",
        "#pragma prefix \"bank.org\"\nimport ::Clock;\nimport Clock::Watch;\nimport ::Nowhere;\n#include \"omg/Base.idl\"\n
         module Bank { interface Desk : Base::Bell { Clock::Watch watch(); }; };",
    );
    let given = Preprocessing { directories: vec![folder.join("omg")], ..Preprocessing::default() };
    let contract = omg::parse_with(&folder.join("bank.idl"), &given);
    let contract = contract.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    for (name, id) in [
        ("Bank::Desk", "IDL:bank.org/Bank/Desk:1.0"),
        ("Clock::Watch", "IDL:Clock/Watch:1.0"),
        ("Base::Bell", "IDL:base.org/Base/Bell:1.0"),
    ] {
        assert_eq!(interface(&contract, name).id, id);
    }
    assert_eq!(operations(interface(&contract, "Bank::Desk")), ["watch"]);
    // Text that is no file has nothing beside it.
    assert!(omg::parse("import ::Clock; interface Desk {};", "text.idl").is_ok());
}

/// Compilers of CORBA 3 (PolyORB's, for one) refuse names that resemble keywords of the component model, unless they are escaped.
#[test]
fn names_that_younger_compilers_take_for_keywords_are_printed_with_a_mark() {
    let contract =
        read("struct EventType { long Home; }; interface Works { EventType uses(in long factory); };");
    let printed = omg::print(&contract);
    for wanted in ["struct _EventType {", "long _Home;", "_EventType _uses(in long _factory);"] {
        assert!(printed.contains(wanted), "{wanted} in\n{printed}");
    }
    assert_eq!(omg::print(&read(&printed)), printed);
    assert_eq!(operations(interface(&read(&printed), "Works")), ["uses"]);
}

/// A macro may say which file is included.
#[test]
fn included_files_may_be_named_by_macros() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("named_by_macros");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("types.idl"), "typedef long Level;").unwrap();
    let text = "#define TYPES \"types.idl\"\n#include TYPES\ninterface Tank { Level level(); };";
    std::fs::write(folder.join("tank.idl"), text).unwrap();
    let contract = omg::parse_with(&folder.join("tank.idl"), &Preprocessing::default());
    let contract = contract.unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(operations(interface(&contract, "Tank")), ["level"]);
}

/// An operation may be called as the attribute is that tells MIDL.
#[test]
fn operations_may_be_called_uuid() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("called_uuid");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("parts.idl");
    std::fs::write(&path, "typedef sequence<long> Longs;\ninterface Part { string uuid (); Longs all(); };")
        .unwrap();
    assert_eq!(everywire_idl::language_of(&path).unwrap().name, "omg");
    let contract = everywire_idl::read(&path).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(operations(interface(&contract, "Part")), ["uuid", "all"]);
}

/// `TypeCode` is a keyword of libIDL (ORBit2) and of MICO's compiler. A definition of that name comes first.
#[test]
fn type_codes_have_a_short_name() {
    let short = read("interface Store { TypeCode of(in TypeCode what); };");
    let long = read("interface Store { CORBA::TypeCode of(in CORBA::TypeCode what); };");
    assert_eq!(omg::print(&short), omg::print(&long));
    let own = read("struct TypeCode { long number; }; interface Store { TypeCode of(); };");
    assert!(!omg::print(&own).contains("CORBA::TypeCode"));
}

/// ORBit2's own test has such a union.
#[test]
fn labels_of_booleans_may_be_numbers() {
    let numbers = read("union Size switch (boolean) { case 0: string text; case 1: long number; };");
    let words = read("union Size switch (boolean) { case FALSE: string text; case TRUE: long number; };");
    assert_eq!(omg::print(&numbers), omg::print(&words));
    assert!(parse("union Size switch (boolean) { case 2: string text; };", "plant.idl").is_err());
}

/// JacORB's demonstration of its notification service has such a union. A constant that is nearer than the enumerator stays what it is.
#[test]
fn members_of_unions_may_be_called_as_labels_are() {
    let contract = read(
        "enum Kind { line, clear, data };
         union Update switch (Kind) { case line: long line; case data: long clear; case clear: boolean data; };
         module Near { const Kind line = data; union Other switch (Kind) { case line: long x; case clear: long y; }; };",
    );
    let labels = |name: &str| {
        let found = contract.definitions.iter().find_map(|definition| match definition {
            Definition::Type(Shape::Union(union)) if union.name == name => Some(union),
            _ => None,
        });
        let arms = found.unwrap().arms.iter();
        arms.map(|arm| (arm.labels[0], arm.field.name.to_string())).collect::<Vec<_>>()
    };
    let arm = |label: i64, name: &str| (label, name.to_owned());
    assert_eq!(labels("Update"), [arm(0, "line"), arm(2, "clear"), arm(1, "data")]);
    assert_eq!(labels("Near::Other"), [arm(2, "x"), arm(1, "y")]);
    let wrong = "enum Kind { line }; union Update switch (Kind) { case LINE: long a; };";
    assert!(parse(wrong, "plant.idl").is_err());
}

/// `tao_idl` takes it, and its own contracts have it.
#[test]
fn a_default_beside_the_last_label_changes_nothing() {
    let text = "union U switch (boolean) { case FALSE: long a; case TRUE: default: long b; };";
    let contract = omg::parse(text, "u.idl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let found = contract.definitions.iter().find_map(|definition| match definition {
        Definition::Type(Shape::Union(union)) => Some(union),
        _ => None,
    });
    let arms: Vec<_> = found.unwrap().arms.iter().map(|arm| (arm.labels.len(), arm.default)).collect();
    assert_eq!(arms, [(1, false), (1, false)]);
}

/// `int16` is a type, and `Int16` an enumerator, in contracts of DDS.
#[test]
fn an_enumerator_may_be_called_as_an_integer_but_for_case() {
    let contract =
        read("enum Kind { Int8, Int16 }; struct Item { Kind kind; int16 small; sequence<int16> more; };");
    let printed = omg::print(&contract);
    assert!(printed.contains("short small") && printed.contains("sequence<short> more"), "{printed}");
}

/// On the wire a struct that inherits is one with all members.
#[test]
fn structs_may_inherit() {
    let contract = read(
        "struct Root { long id; string<8> name; };
         module M { struct Leaf : Root { @default(true) boolean fresh; sequence<Root> others; }; struct Last : Leaf {}; };",
    );
    let plain = read(
        "struct Root { long id; string<8> name; };
         module M { struct Leaf { long id; string<8> name; boolean fresh; sequence<Root> others; };
                    struct Last { long id; string<8> name; boolean fresh; sequence<Root> others; }; };",
    );
    assert_eq!(omg::print(&contract), omg::print(&plain));
    for (wrong, why) in [
        ("struct A { long x; }; struct B : A { long X; };", "`X` differs from `x` only in case"),
        ("interface I {}; struct B : I { long x; };", "`I` is no struct"),
        ("struct A; struct B : A { long x; }; struct A { long y; };", "is not complete here"),
        ("struct B : B { long x; };", "is not complete here"),
        ("exception A { long x; }; exception B : A { long y; };", "`:` does not belong here"),
    ] {
        let refused = parse(wrong, "plant.idl").unwrap_err().to_string();
        assert!(refused.contains(why), "{wrong}: {refused}");
    }
}

#[test]
fn integers_of_eight_bits_may_be_constants() {
    let contract = read("const int8 least = -128; const uint8 most = 255; const boolean on = true;");
    assert_eq!(contract.constants().count(), 3);
    let refused = parse("const int8 more = 128;", "plant.idl").unwrap_err().to_string();
    assert!(refused.contains("128 does not fit the type, which holds -128 to 127"), "{refused}");
}

#[test]
fn integers_of_eight_bits_may_select_the_case_of_a_union() {
    let contract = read(
        "union Level switch (int8) { case -128: string low; case 127: string high; default: octet other; };
         interface Plant { attribute Level level; };",
    );
    assert_eq!(operations(interface(&contract, "Plant")), ["_get_level", "_set_level"]);
    let refused = parse("union U switch (int8) { case 128: long a; };", "plant.idl").unwrap_err().to_string();
    assert!(refused.contains("128 does not fit"), "{refused}");
}

/// A name that no keyword may resemble is a macro's all the same: the preprocessor is not of the language.
#[test]
fn macros_may_be_named_like_keywords_in_other_letters() {
    let contract = read(
        "#define VOID void
#define STRING \"hello\"
#define GREETING STRING
#define IN(name) in long name
         const string text = GREETING; interface Plant { VOID run(IN(speed)); };",
    );
    assert_eq!(operations(interface(&contract, "Plant")), ["run"]);
    for (wrong, word) in [
        ("interface Plant { VOID run(); };", "VOID"),
        ("#define EMPTY\ninterface Plant { Void run(); };", "Void"),
        ("#define RUN Void run()\ninterface Plant { RUN; };", "Void"),
    ] {
        let refused = parse(wrong, "plant.idl").unwrap_err().to_string();
        assert!(
            refused.contains(&format!("`{word}` differs from the keyword `void` only in case")),
            "{refused}"
        );
    }
}

/// Contracts for OpenDDS write them so.
#[test]
fn annotations_may_be_named_from_the_outermost_scope() {
    let contract = read(
        "@::OpenDDS::data_representation(XCDR2) struct Point { @::A::key long x; @::B long y; };
         interface Plant { attribute Point at; };",
    );
    assert_eq!(operations(interface(&contract, "Plant")), ["_get_at", "_set_at"]);
}

/// TAO has a file for each of these sequences.
#[test]
fn files_of_tao_need_not_be_there() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("files_of_tao");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("plant.idl");
    let text = "#include \"tao/LongSeq.pidl\"\n#include \"tao/orb.idl\"\n#include \"tao/StringSeq.pidl\"\n\
                interface Plant { CORBA::LongSeq levels(in CORBA::StringSeq names); };\n";
    std::fs::write(&file, text).unwrap();
    let contract =
        omg::parse_with(&file, &Preprocessing::default()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    assert_eq!(operations(interface(&contract, "Plant")), ["levels"]);
    std::fs::write(&file, text.replace("tao/LongSeq.pidl", "tao/LongSeq.idl")).unwrap();
    let mistakes = omg::parse_with(&file, &Preprocessing::default()).unwrap_err().to_string();
    assert!(mistakes.contains("`tao/LongSeq.idl` is not found"), "{mistakes}");
}

#[test]
fn exceptions_of_setting_may_come_first() {
    let one = read("exception E {}; interface I { attribute long a setraises (E) getraises (E); };");
    let other = read("exception E {}; interface I { attribute long a getraises (E) setraises (E); };");
    assert_eq!(omg::print(&one), omg::print(&other));
}

/// JacORB's compiler takes both, and its own contracts have them.
#[test]
fn wide_constants_may_lack_their_mark_and_interfaces_may_be_pseudo() {
    let contract = read(
        "module M {
           const wchar line = '\\xa';
           const wstring text = \"abc\";
           pseudo interface Policies { void set(in long pseudo); };
           interface Plant { attribute wstring name; };
         };",
    );
    let marked = read(
        "module M {
           const wchar line = L'\\xa';
           const wstring text = L\"abc\";
           local interface Policies { void set(in long pseudo); };
           interface Plant { attribute wstring name; };
         };",
    );
    assert_eq!(omg::print(&contract), omg::print(&marked));
    let refused = parse("const char narrow = L'a';", "plant.idl").unwrap_err().to_string();
    assert!(refused.contains("a wide character does not belong here"), "{refused}");
    let refused = parse("pseudo struct S { long a; };", "plant.idl").unwrap_err().to_string();
    assert!(refused.contains("expected `interface`"), "{refused}");
}
