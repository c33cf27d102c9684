//! kidl: what dcopidl wrote comes back byte for byte, and means what it means to DCOP.

use crate::common::{data, outline};
use everywire_idl::kidl::{self, parse, parse_document, print, types};
use everywire_model::shape::{Text, TextKind};
use everywire_model::{Definition, Shape};

fn text(file: &str) -> String {
    std::fs::read_to_string(data(file)).unwrap()
}

#[test]
fn files_of_the_tool_come_back_byte_for_byte() {
    for file in ["bench_iface.kidl", "types.kidl", "inherited.kidl"] {
        assert_eq!(parse_document(&text(file), file).unwrap().to_string(), text(file), "{file}");
    }
    // Other white space is free.
    let document = parse_document(&text("bench.kidl"), "bench.kidl").unwrap();
    assert_eq!(parse_document(&document.to_string(), "again").unwrap(), document);
}

#[test]
fn contracts_survive_printing() {
    for file in ["bench.kidl", "bench_iface.kidl", "types.kidl", "inherited.kidl"] {
        let contract = everywire_idl::read(data(file)).unwrap_or_else(|e| panic!("{e}"));
        let printed = print(&contract).unwrap();
        let again = parse(&printed, "printed.kidl").unwrap_or_else(|e| panic!("{file}:\n{printed}\n{e}"));
        assert_eq!(outline(&again), outline(&contract), "{file}:\n{printed}");
        assert_eq!(print(&again).unwrap(), printed);
    }
}

#[test]
fn functions_are_named_by_their_signatures() {
    let contract = parse(&text("types.kidl"), "types.kidl").unwrap();
    let class = contract.interface("X").unwrap();
    let a = &class.operations[0];
    assert_eq!(
        a.name,
        "a(QString,unsigned long int,long int,short int,unsigned char,QMap<QString,int>,QCString)"
    );
    assert_eq!((a.label.as_ref(), a.oneway), ("a", false));
    assert_eq!(types::function("a", a.arguments.fields()).unwrap(), a.name);
    assert!(matches!(a.arguments.fields()[2].shape.resolved(), Shape::I64));
    assert!(matches!(&a.arguments.fields()[2].shape, Shape::Alias(alias) if alias.name == "long int"));
    let b = &class.operations[1];
    assert_eq!((b.name.as_ref(), b.parameters[0].field.name.as_ref()), ("b(QByteArray)", "arg_1"));
    let go = &class.operations[2];
    assert!(go.oneway && matches!(go.returns, Shape::Void) && go.name == "go(KURL)");
    // The struct that a function uses is a named type of the contract.
    assert!(matches!(&contract.definitions[0], Definition::Type(Shape::Struct(s)) if s.name == "KURL"));
    let bench = parse(&text("bench.kidl"), "bench.kidl").unwrap();
    let bench = bench.interface("dcop_benchmarking_service").unwrap();
    assert_eq!(bench.operations[3].name, "in_out_int_call(long int)");
    let signal = bench.signal(b"Hello(int)").unwrap();
    assert_eq!((signal.label.as_ref(), signal.fields.fields()[0].name.as_ref()), ("Hello", "i"));
}

#[test]
fn classes_inherit_within_the_file() {
    let contract = parse(&text("inherited.kidl"), "inherited.kidl").unwrap();
    let derived = contract.interface("Ns::Player").unwrap();
    let bases: Vec<&str> = derived.bases.iter().map(|base| base.name.as_ref()).collect();
    assert_eq!((bases, derived.inherited), (vec!["Ns::Media"], 2));
    let operations: Vec<(&str, &str)> =
        derived.operations.iter().map(|o| (o.name.as_ref(), o.label.as_ref())).collect();
    assert_eq!(
        operations,
        [
            ("title()", "title"),
            ("seek(int)", "seek"),
            ("seek(int,bool)", "seek_2"),
            ("seek(QString)", "seek_3"),
            ("quit()", "quit"),
        ]
    );
    let signals: Vec<(&str, &str)> =
        derived.signals.iter().map(|s| (s.name.as_ref(), s.label.as_ref())).collect();
    assert_eq!(signals, [("ended()", "ended"), ("moved(int)", "moved"), ("moved(QTime)", "moved_2")]);
}

#[test]
fn types_have_names_and_back() {
    let exact = [
        "bool",
        "char",
        "signed char",
        "uchar",
        "unsigned char",
        "short",
        "short int",
        "ushort",
        "unsigned short int",
        "int",
        "uint",
        "unsigned int",
        "long int",
        "unsigned long int",
        "Q_INT64",
        "Q_UINT64",
        "Q_INT8",
        "Q_UINT32",
        "float",
        "double",
        "QString",
        "QCString",
        "QByteArray",
        "QStringList",
        "QCStringList",
        "QVariant",
        "DCOPRef",
        "QPoint",
        "QSize",
        "QRect",
        "QColor",
        "QDate",
        "QTime",
        "QDateTime",
        "KURL",
        "QChar",
        "QValueList<int>",
        "QValueList<QString>",
        "QValueList<QCString>",
        "QMap<QString,QVariant>",
        "QMap<int,QMap<QString,DCOPRef>>",
        "QValueList<QValueList<QMap<QCString,long int>>>",
        "QValueVector<double>",
    ];
    for name in exact {
        let shape = types::shape(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(types::name(&shape).as_deref(), Some(name));
        let Shape::Struct(structure) = &shape else { continue };
        assert_eq!(structure.name, name);
    }
    let free = types::shape(" QMap < QString , QValueList< unsigned   int > > ").unwrap();
    assert_eq!(types::name(&free).unwrap(), "QMap<QString,QValueList<unsigned int>>");
    for unknown in [
        "",
        "void",
        "QPixmap",
        "QFont",
        "QMap<int>",
        "QMap<int,int,int>",
        "QValueList<>",
        "QValueList<int",
        "int>",
        "QValueList<QPixmap>",
        "QValueList<int>>",
        "QValueList<<int>>",
        "QMap<,>",
        "unsigned QString",
        "int*",
        "Int",
        "const int",
    ] {
        assert!(types::shape(unknown).is_none(), "{unknown}");
    }
    let nested = |depth: usize| "QValueList<".repeat(depth) + "int" + &">".repeat(depth);
    assert!(types::shape(&nested(16)).is_some() && types::shape(&nested(17)).is_none());
    assert!(types::shape(&nested(100_000)).is_none());
    assert_eq!(types::normal(" f ( unsigned  int , const  x ) "), "f(unsigned int,const x)");
}

#[test]
fn shapes_of_other_languages_have_names() {
    let counted = Shape::Text(Text { kind: TextKind::Counted, bound: Some(7) });
    assert_eq!(types::name(&counted).unwrap(), "QString");
    assert_eq!(types::name(&Shape::sequence(counted)).unwrap(), "QStringList");
    assert_eq!(types::name(&Shape::sequence(Shape::I64)).unwrap(), "QValueList<Q_INT64>");
    assert!(types::name(&Shape::Handle).is_none());
    let idl = "typedef sequence<octet> Octets; struct P { long a; }; struct L { sequence<L> next; };
        interface Store { readonly attribute string title; void put(in string key, in Octets data); Octets get(in long n);
        void swap(inout long v); oneway void poke(); };";
    let contract = everywire_idl::omg::parse(idl, "store.idl").unwrap();
    let printed = print(&contract).unwrap();
    let again = parse(&printed, "printed.kidl").unwrap();
    let names: Vec<&str> = again
        .interface("Store")
        .unwrap()
        .operations
        .iter()
        .map(|operation| operation.name.as_ref())
        .collect();
    assert_eq!(names, ["_get_title()", "put(QCString,QByteArray)", "get(int)", "swap(int)", "poke()"]);
}

/// What DCOP cannot say is left out with a word, and the rest of the contract can be used. `dcopidl2cpp` reads a class up to the first
/// node that is no element, so the words stand behind all members.
#[test]
fn what_dcop_cannot_say_is_left_out_with_a_comment() {
    let idl = |body: &str| {
        let text = format!(
            "struct P {{ long a; }}; struct L {{ sequence<L> n; }}; exception Odd {{ P what; }}; exception Even {{ long n; }};
             interface I {{ {body} }};"
        );
        everywire_idl::omg::parse(&text, "some.idl").unwrap()
    };
    let all = [
        ("long two(out long v);", "two: a function has one result at most"),
        ("void f(in P v);", "f: DCOP has no type for `P`"),
        ("void g(in L v);", "g: DCOP has no type for `L`"),
        ("void h() raises (Odd);", "h: `Odd` cannot be raised: DCOP has no type for `P`"),
        ("oneway void k(in P v);", "k: DCOP has no type for `P`"),
    ];
    for (body, told) in all {
        let text = print(&idl(&format!("{body} long whole(in long v) raises (Even);"))).unwrap();
        let class = text.split_once("<CLASS>").unwrap().1;
        assert!(class.contains(&format!("     </FUNC>\n    <!-- {told} -->\n</CLASS>")), "{text}");
        let again = parse(&text, "printed.kidl").unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
        let operations = again.interface("I").unwrap().operations.clone();
        assert_eq!(operations.iter().map(|own| own.name.as_ref()).collect::<Vec<_>>(), ["whole(int)"]);
        assert_eq!(operations[0].raises.len(), 1);
    }
    let odd = "<!-- Odd: DCOP has no type for `P` -->\n</DCOP-IDL>";
    assert!(print(&idl("long whole();")).unwrap().contains(odd));
    let text = "interface I { long two(out long v); void f(out long a, out long b); };";
    let refused = print(&everywire_idl::omg::parse(text, "bad.idl").unwrap()).unwrap_err().to_string();
    assert!(refused.ends_with("I.two: a function has one result at most"), "{refused}");
}

/// kidl in OMG IDL and D-Bus, D-Bus in OMG IDL: what prints reads.
#[test]
fn contracts_pass_between_languages() {
    for file in ["bench.kidl", "bench_iface.kidl", "inherited.kidl", "dbus_daemon.xml", "bench.dbus.xml"] {
        let contract = everywire_idl::read(data(file)).unwrap();
        for language in everywire_idl::languages() {
            let Ok(printed) = (language.print)(&contract) else {
                assert_eq!(language.name, "kidl", "{file}");
                continue;
            };
            let again = match language.name {
                "omg" => everywire_idl::omg::parse(&printed, "printed"),
                "dbus" => everywire_idl::dbus_xml::parse(&printed, "printed"),
                "midl" => everywire_idl::midl::parse(&printed, "printed"),
                "wsdl" => everywire_idl::wsdl::parse(&printed, "printed"),
                _ => parse(&printed, "printed"),
            };
            // DBus::Peer and interface DBus share a name, which OMG IDL does not allow.
            if let Err(mistakes) = again {
                assert!(
                    file == "dbus_daemon.xml" && language.name == "omg",
                    "{file}:\n{printed}\n{mistakes}"
                );
            }
        }
    }
}

#[test]
fn an_unknown_type_leaves_out_what_has_it_and_nothing_else() {
    let text = "<DCOP-IDL><CLASS><NAME>C</NAME>
        <FUNC><TYPE>QPixmap</TYPE><NAME>icon</NAME></FUNC>
        <FUNC><TYPE>int</TYPE><NAME>size</NAME></FUNC>
        <FUNC><TYPE>void</TYPE><NAME>put</NAME><ARG><TYPE>QValueList&lt;Foo&gt;</TYPE><NAME>all</NAME></ARG></FUNC>
        <SIGNAL><TYPE>void</TYPE><NAME>changed</NAME><ARG><TYPE>Foo</TYPE></ARG></SIGNAL>
        </CLASS></DCOP-IDL>";
    let contract = parse(text, "some.kidl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let class = contract.interface("C").unwrap();
    assert_eq!(class.operations.iter().map(|o| o.name.as_ref()).collect::<Vec<_>>(), ["size()"]);
    assert!(class.signals.is_empty());
    let left_out: Vec<&str> =
        class.notes.iter().filter(|(what, _)| what == "left out").map(|(_, what)| what.as_ref()).collect();
    assert_eq!(
        left_out,
        [
            "QPixmap icon(): the type `QPixmap` is not known",
            "void put(QValueList<Foo>): the type `QValueList<Foo>` is not known",
            "signal changed(Foo): the type `Foo` is not known",
        ]
    );
}

#[test]
fn every_type_of_qt_has_a_form_of_trinity() {
    for (trinity, kde) in [
        ("TQString", "QString"),
        ("TQCString", "QCString"),
        ("TQChar", "QChar"),
        ("TQStringList", "QStringList"),
        ("TQCStringList", "QCStringList"),
        ("TQByteArray", "QByteArray"),
        ("TQVariant", "QVariant"),
        ("TQColor", "QColor"),
        ("TQDate", "QDate"),
        ("TQDateTime", "QDateTime"),
        ("TQRect", "QRect"),
        ("TQ_INT64", "Q_INT64"),
        ("TQ_UINT8", "Q_UINT8"),
        ("TQValueList<int>", "QValueList<int>"),
        ("TQValueList<TQString>", "QStringList"),
        ("TQValueList<TQValueVector<DCOPRef>>", "QValueList<QValueVector<DCOPRef>>"),
        ("TQMap<TQString,TQVariant>", "QMap<QString,QVariant>"),
        ("TQMap<TQString,TQValueList<TQCString>>", "QMap<QString,QCStringList>"),
        ("QMap<TQString,int>", "QMap<QString,int>"),
    ] {
        let shape = types::shape(trinity).unwrap_or_else(|| panic!("{trinity}"));
        assert_eq!(types::name(&shape).as_deref(), Some(trinity), "a signature keeps its spelling");
        let plain = types::shape(kde).unwrap();
        let resolved = |shape: &Shape| format!("{:?}", shape.resolved()).replace("TQ", "Q");
        if !trinity.contains('<') {
            assert_eq!(resolved(&shape), resolved(&plain), "{trinity}");
        }
    }
    for unknown in
        ["TQ", "TQPixmap", "TKURL", "TTQString", "Tint", "TQint", "TQValueList<TQPixmap>", "TQuint"]
    {
        assert!(types::shape(unknown).is_none(), "{unknown}");
    }
    let text = "<DCOP-IDL><CLASS><NAME>Kicker</NAME><FUNC><TYPE>TQString</TYPE><NAME>find</NAME>
        <ARG><TYPE>TQMap&lt;TQString,int&gt;</TYPE></ARG><ARG><TYPE>TQRect</TYPE></ARG></FUNC></CLASS></DCOP-IDL>";
    let contract = parse(text, "kicker.kidl").unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let find = &contract.interface("Kicker").unwrap().operations[0];
    assert_eq!(find.name, "find(TQMap<TQString,int>,TQRect)");
    assert!(print(&contract).unwrap().contains("<TYPE>TQMap&lt;TQString,int&gt;</TYPE>"));
}

#[test]
fn mistakes_have_a_place() {
    let class = |body: &str| format!("<DCOP-IDL><CLASS><NAME>C</NAME>\n{body}\n</CLASS></DCOP-IDL>");
    let cases = [
        ("<node/>".to_owned(), 1, 2, "`<DCOP-IDL>`"),
        ("<DCOP-IDL><CLASS/></DCOP-IDL>".to_owned(), 1, 12, "`<NAME>`"),
        ("<DCOP-IDL><CLASS><NAME>a b</NAME></CLASS></DCOP-IDL>".to_owned(), 1, 19, "no digit first"),
        (class("<FUNC><TYPE>int</TYPE></FUNC>"), 2, 2, "`<NAME>`"),
        (class("<FUNC><NAME>f</NAME></FUNC>"), 2, 2, "`<TYPE>`"),
        (class("<SIGNAL><TYPE>void</TYPE><NAME>f</NAME><ARG/></SIGNAL>"), 2, 41, "`<TYPE>`"),
        (class("</CLASS><CLASS><NAME>C</NAME>"), 2, 17, "`C` is defined twice"),
        (class("</CLASS><CLASS><NAME>QPoint</NAME>"), 2, 17, "name of a type already"),
    ];
    for (text, line, column, told) in cases {
        let found = parse(&text, "bad.kidl").expect_err(&text);
        assert_eq!((found.list[0].line, found.list[0].column), (line, column), "{text}\n{found}");
        assert!(found.to_string().contains(told), "{text}\n{found}");
    }
}

/// Classes that inherit from one another without end, and damaged files: each is answered.
#[test]
fn hostile_files_are_answered() {
    let functions: String =
        (0..300).map(|n| format!("<FUNC><TYPE>int</TYPE><NAME>f{n}</NAME></FUNC>")).collect();
    let chain: String =
        (1..1000).map(|n| format!("<CLASS><NAME>C{n}</NAME><SUPER>C{}</SUPER></CLASS>", n - 1)).collect();
    let text_of_chain = format!("<DCOP-IDL><CLASS><NAME>C0</NAME>{functions}</CLASS>{chain}</DCOP-IDL>");
    assert!(parse(&text_of_chain, "chain.kidl").unwrap_err().to_string().contains("too many functions"));
    let types = "<FUNC><TYPE>QMap&lt;int,int&gt;</TYPE><NAME>f</NAME></FUNC>".repeat(40_000);
    let types = format!("<DCOP-IDL><CLASS><NAME>C</NAME>{types}</CLASS></DCOP-IDL>");
    assert!(parse(&types, "types.kidl").is_err());
    let file = text("inherited.kidl");
    for (at, _) in file.char_indices().step_by(11) {
        let _ = kidl::parse(&file[..at], "cut.kidl");
        let _ = kidl::parse(&format!("{}<{}", &file[..at], &file[at..]), "cut.kidl");
    }
}

/// The types of `KDirNotify`, `UIServer`, `Observer` and `KMFactory`, as dcopidl writes them for KDE and for Trinity.
#[test]
fn names_that_kde_gives_to_other_types_are_known_and_stay() {
    for (name, same) in [
        ("KURL::List", "QValueList<KURL>"),
        ("KIO::filesize_t", "Q_UINT64"),
        ("TDEIO::filesize_t", "Q_UINT64"),
        ("KIO::MetaData", "QMap<QString,QString>"),
        ("TDEIO::MetaData", "TQMap<TQString,TQString>"),
        ("pid_t", "int"),
    ] {
        let shape = types::shape(name).unwrap_or_else(|| panic!("{name} is not known"));
        let meant = types::shape(same).expect("a type of Qt");
        assert_eq!(format!("{:?}", shape.resolved()), format!("{:?}", meant.resolved()), "{name}");
        assert_eq!(types::name(&shape).as_deref(), Some(name));
        let list = format!("QValueList<{name}>");
        let list = types::shape(&list).and_then(|shape| types::name(&shape));
        assert_eq!(list, Some(format!("QValueList<{name}>")), "a list keeps the name");
    }
}

/// Trinity has no `qvaluelist.h`: code that dcopidl2cpp makes of a file with that name does not compile there.
#[test]
fn a_list_of_narrow_texts_asks_for_no_header_of_its_own() {
    let source = "<DCOP-IDL><CLASS><NAME>A</NAME><SUPER>DCOPObject</SUPER>\
        <FUNC><TYPE>QCStringList</TYPE><NAME>f</NAME><ARG><TYPE>TQString</TYPE></ARG></FUNC></CLASS></DCOP-IDL>";
    let contract = parse(source, "a.kidl").expect("it is read");
    let printed = print(&contract).expect("it is printed");
    assert!(printed.contains("<INCLUDE>tqstring.h</INCLUDE>"), "{printed}");
    assert!(!printed.contains("qvaluelist.h"), "{printed}");
}

/// `dcopidl2cpp` declares the functions of a skeleton as the text says: without its `const` a function overrides another one.
#[test]
fn a_function_that_is_const_is_printed_so_again() {
    let function =
        |qualifier: &str, name: &str| format!("<FUNC{qualifier}><TYPE>int</TYPE><NAME>{name}</NAME></FUNC>");
    let members =
        [function(" qual=\"const\"", "look"), function(" qual=\"other\"", "odd"), function("", "change")]
            .concat();
    let text = format!(
        "<!DOCTYPE DCOP-IDL><DCOP-IDL><SOURCE>a.h</SOURCE><CLASS><NAME>A</NAME><SUPER>DCOPObject</SUPER>{members}</CLASS></DCOP-IDL>"
    );
    let printed = print(&parse(&text, "a.kidl").unwrap()).unwrap();
    assert_eq!(printed.matches("qual=").count(), 1, "{printed}");
    assert!(
        printed.contains("<FUNC qual=\"const\">\n        <TYPE>int</TYPE>\n        <NAME>look</NAME>"),
        "{printed}"
    );
}
