//! MIDL: what published contracts mean, what comes back when they are printed, what is refused.

use crate::common::outline;
use everywire_idl::midl::{self, clsid_of_key, iid, is_midl, parse, print, sink_iid};
use everywire_model::shape::{Order, PointerKind, TextKind};
use everywire_model::{Contract, Definition, Direction, Interface, InterfaceKind, Operation, Shape};
use std::path::{Path, PathBuf};
use std::process::Command;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/contracts").join(name)
}

fn read(name: &str) -> Contract {
    everywire_idl::read(file(name)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A contract of one interface with these methods, after these definitions.
pub(crate) fn methods(before: &str, methods: &str) -> Contract {
    let text = format!(
        "import \"oaidl.idl\"; {before}\n\
         [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B101)] interface X : IUnknown {{ {methods} }};"
    );
    parse(&text, "x.midl").unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

pub(crate) fn operation<'c>(contract: &'c Contract, name: &str) -> &'c Operation {
    let x = contract.interface("X").unwrap();
    &x.operations[x.index_of(name.as_bytes()).unwrap()]
}

fn mistakes(text: &str) -> String {
    parse(text, "x.midl").unwrap_err().to_string()
}

/// A shape in few words.
fn short(shape: &Shape) -> String {
    match shape {
        Shape::Alias(alias) => format!("{}={}", alias.name, short(&alias.target)),
        Shape::Optional(target) => format!("?{}", short(target)),
        Shape::Pointer(pointer) => {
            let kind = match pointer.kind {
                PointerKind::Ref => "ref",
                PointerKind::Unique => "unique",
                PointerKind::Full => "full",
            };
            format!("{kind} {}", short(&pointer.target))
        }
        Shape::Sequence(sequence) => {
            let order = match sequence.order {
                Order::Free => "",
                Order::Conformant => "c",
                Order::ConformantVarying => "cv",
                Order::Varying => "v",
            };
            let bound = sequence.bound.map(|bound| bound.to_string()).unwrap_or_default();
            let size = sequence.size.as_deref().unwrap_or_default();
            format!("{order}{bound}[{size}]{}", short(&sequence.element))
        }
        Shape::Array(array) => format!("{}*{}", array.len, short(&array.element)),
        Shape::Text(text) => match text.kind {
            TextKind::Wide => "wide".into(),
            TextKind::Counted => "bstr".into(),
            _ => "narrow".into(),
        },
        Shape::Reference(referent) => format!("->{}", referent.name),
        other => other.noun().into_owned(),
    }
}

/// The parameters in few words.
pub(crate) fn parameters(operation: &Operation) -> Vec<String> {
    let direction = |direction| match direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::InOut => "inout",
    };
    operation
        .parameters
        .iter()
        .map(|p| format!("{} {}: {}", direction(p.direction), p.field.name, short(&p.field.shape)))
        .collect()
}

/// All that the outline of a contract leaves out.
fn details(contract: &Contract) -> Vec<String> {
    let mut lines = Vec::new();
    for interface in contract.interfaces() {
        lines.push(format!("{} {:?} {:?}", interface.name, interface.kind, interface.identities));
        for operation in interface.operations.iter() {
            lines.push(format!(
                "{}.{} {:?} {:?} {}",
                interface.name,
                operation.name,
                operation.id,
                parameters(operation),
                short(&operation.returns)
            ));
        }
        for signal in interface.signals.iter() {
            let sink = signal.sink.as_ref().map(|(sink, index)| (sink.name.clone(), *index));
            lines.push(format!("{}!{} {sink:?}", interface.name, signal.name));
        }
    }
    lines.sort();
    lines
}

pub(crate) fn comes_back(contract: &Contract) -> String {
    let printed = print(contract).unwrap();
    let again = parse(&printed, "printed.midl").unwrap_or_else(|e| panic!("{printed}\n{e}"));
    assert_eq!(outline(&again), outline(contract), "{printed}");
    assert_eq!(details(&again), details(contract), "{printed}");
    assert_eq!(print(&again).unwrap(), printed);
    printed
}

#[test]
fn the_first_race_is_read_as_published() {
    let contract = read("derby.midl");
    let callback = contract.interface("ICallback").unwrap();
    assert_eq!(callback.id, "606de2c5-1a8c-11d3-b68f-00c04f8b72e7");
    assert_eq!((callback.kind, callback.doc.as_ref()), (InterfaceKind::Dual, "ICallback Interface"));
    assert!(callback.is_a("00020400-0000-0000-c000-000000000046"));
    assert!(callback.is_a("00000000-0000-0000-c000-000000000046"));
    assert_eq!((callback.inherited, callback.operations.len()), (0, 2));
    let advise = &callback.operations[0];
    assert_eq!((advise.id, advise.doc.as_ref()), (Some(1), "method Advise"));
    assert_eq!(parameters(advise), ["in punknow: ->IUnknown", "out dwCookie: u32"]);
    let class = contract.interface("SlowConnectionPoints").unwrap();
    assert_eq!(
        (class.kind, class.id.as_ref()),
        (InterfaceKind::Class, "606de2c0-1a8c-11d3-b68f-00c04f8b72e7")
    );
    assert_eq!(class.bases[0].name, "ISlowConnectionPoints");
    let (sink, index) = class.signals[0].sink.as_ref().unwrap();
    assert_eq!((class.signals.len(), class.signals[0].name.as_ref()), (1, "Hello"));
    assert_eq!((sink.name.as_ref(), *index), ("_ISlowConnectionPointsEvents", 0));
    comes_back(&contract);
}

#[test]
fn opc_data_access_has_its_published_numbers() {
    let contract = read("opcda.idl");
    // (interface, method, number on the wire, after the three of IUnknown)
    for (interface, method, number) in [
        ("IOPCServer", "AddGroup", 3),
        ("IOPCServer", "GetStatus", 6),
        ("IOPCItemMgt", "AddItems", 3),
        ("IOPCItemMgt", "CreateEnumerator", 9),
        ("IOPCSyncIO", "Write", 4),
        ("IOPCSyncIO2", "Read", 3),
        ("IOPCSyncIO2", "ReadMaxAge", 5),
        ("IOPCAsyncIO3", "GetEnable", 8),
        ("IOPCAsyncIO3", "RefreshMaxAge", 11),
        ("IOPCGroupStateMgt2", "GetKeepAlive", 8),
        ("IOPCDataCallback", "OnCancelComplete", 6),
        ("IOPCBrowse", "Browse", 4),
        ("IOPCItemIO", "WriteVQT", 4),
    ] {
        let index = contract.interface(interface).unwrap().index_of(method.as_bytes());
        assert_eq!(index.map(|index| index + 3), Some(number), "{interface}.{method}");
    }
    assert_eq!(contract.interfaces().count(), 24);
    let server = contract.interface("IOPCServer").unwrap();
    assert_eq!(server.id, "39c13a4d-011e-11d0-9675-0020afd8adb3");
    assert_eq!(
        parameters(&server.operations[0]),
        [
            "in szName: wide",
            "in bActive: BOOL=i32",
            "in dwRequestedUpdateRate: u32",
            "in hClientGroup: OPCHANDLE=u32",
            "in pTimeBias: ?i32",
            "in pPercentDeadband: ?f32",
            "in dwLCID: u32",
            "out phServerGroup: OPCHANDLE=u32",
            "out pRevisedUpdateRate: u32",
            "in riid: IID=GUID",
            "out ppUnk: iid_is(riid)=->",
        ]
    );
    let read = &contract.interface("IOPCSyncIO").unwrap().operations[0];
    assert_eq!(
        parameters(read),
        [
            "in dwSource: OPCDATASOURCE",
            "in dwCount: u32",
            "in phServer: c[dwCount]OPCHANDLE=u32",
            "out ppItemValues: ?c[dwCount]OPCITEMSTATE",
            "out ppErrors: ?c[dwCount]HRESULT=i32",
        ]
    );
    let browse = &contract.interface("IOPCBrowse").unwrap().operations[1];
    assert_eq!(parameters(browse)[1], "inout pszContinuationPoint: ?wide");
    let next = &contract.interface("IOPCEnumGUID").unwrap().operations[0];
    assert_eq!(parameters(next)[1], "out rgelt: length_is(pceltFetched)=cv[celt]GUID");
    let Some(Definition::Type(Shape::Enum(source))) = contract
        .definitions
        .iter()
        .find(|d| matches!(d, Definition::Type(Shape::Enum(e)) if e.name == "OPCDATASOURCE"))
    else {
        panic!("no OPCDATASOURCE")
    };
    assert_eq!((source.bits, source.value_of("OPC_DS_DEVICE")), (16, Some(2)));
    comes_back(&contract);
}

#[test]
fn pointers_travel_as_their_places_say() {
    let contract = methods(
        "typedef struct tagN { long key; struct tagN *next; [string] LPWSTR name; [ref] long *must; [ptr] long *full; \
         [string] wchar_t fixed[16]; long count; [size_is(count)] long tail[]; } N;",
        "HRESULT a([in] long *r, [in, unique] long *u, [in, ptr] long *f, [in] N *n, [out] N **out);
         HRESULT b([in, string] LPCWSTR t, [in, unique, string] LPWSTR ut, [out, string] LPWSTR *ot, [in] LPSTR narrow);
         HRESULT c([in] long n, [in, size_is(n)] BYTE *bytes, [in, size_is(n * 2)] short *twice, [in, max_is(n)] long m[]);
         HRESULT d([in] long n, [out, size_is(n), length_is(*got)] long *part, [out] long *got);
         HRESULT e([in] BSTR b, [in] VARIANT v, [in] SAFEARRAY(BSTR) s, [out] SAFEARRAY(VARIANT) *o, [in] VARIANT_BOOL f);
         HRESULT f([in] IUnknown *u, [out] IDispatch **d, [in] REFIID riid, [out, iid_is(riid)] void **any);
         HRESULT g([in] DATE d, [in] CURRENCY c, [in] DECIMAL *dec, [in, range(0, 10)] long few, [in] GUID ids[2]);
         HRESULT h([in] long n, [out, size_is(, n)] LPWSTR **names, [in, size_is(n)] IUnknown **objects);",
    );
    let check = |name: &str, wanted: &[&str]| assert_eq!(parameters(operation(&contract, name)), wanted);
    check("a", &["in r: i32", "in u: ?i32", "in f: full i32", "in n: N", "out out: ?N"]);
    check("b", &["in t: wide", "in ut: ?wide", "out ot: ?wide", "in narrow: narrow"]);
    check(
        "c",
        &["in n: i32", "in bytes: c[n]u8", "in twice: size_is(n * 2)=c[]i16", "in m: max_is(n)=c[]i32"],
    );
    check("d", &["in n: i32", "out part: length_is(got)=cv[n]i32", "out got: i32"]);
    check(
        "e",
        &[
            "in b: bstr",
            "in v: any value",
            "in s: SAFEARRAY=[]bstr",
            "out o: SAFEARRAY=[]any value",
            "in f: VARIANT_BOOL=boolean",
        ],
    );
    check("f", &["in u: ->IUnknown", "out d: ->IDispatch", "in riid: IID=GUID", "out any: iid_is(riid)=->"]);
    check(
        "g",
        &[
            "in d: DATE=f64",
            "in c: CURRENCY=i64",
            "in dec: DECIMAL=tagDEC",
            "in few: range(0, 10)=i32",
            "in ids: 2*GUID",
        ],
    );
    check("h", &["in n: i32", "out names: ?c[n]?wide", "in objects: c[n]->IUnknown"]);
    let Some(Shape::Struct(node)) = contract.definitions.iter().find_map(|d| match d {
        Definition::Type(shape) if shape.noun() == "N" => Some(shape),
        _ => None,
    }) else {
        panic!("no N")
    };
    let fields: Vec<String> =
        node.fields.iter().map(|f| format!("{}: {}", f.name, short(&f.shape))).collect();
    assert_eq!(
        fields,
        [
            "key: i32",
            "next: unique N",
            "name: ?wide",
            "must: ref i32",
            "full: full i32",
            "fixed: string(16)=wide",
            "count: i32",
            "tail: c[count]i32",
        ]
    );
    comes_back(&contract);
}

#[test]
fn properties_are_attributes() {
    let contract = methods(
        "",
        "[propget, id(0)] HRESULT Name([out, retval] BSTR *value); [propput, id(0)] HRESULT Name([in] BSTR value);
         [propputref, id(1)] HRESULT Parent([in] IDispatch *value); [propget, id(1)] HRESULT Parent([out, retval] IDispatch **value);
         [propget, id(-4)] HRESULT _NewEnum([out, retval] IUnknown **value);
         [propget, id(2)] HRESULT Item([in] long index, [out, retval] VARIANT *value);
         [id(3)] HRESULT Sum([in] long a, [in, defaultvalue(2)] long b, [out, retval] long *sum);",
    );
    let x = contract.interface("X").unwrap();
    let found: Vec<_> = x.attributes.iter().map(|a| (a.name.as_ref(), a.getter, a.setter)).collect();
    assert_eq!(found, [("Name", 0, Some(1)), ("Parent", 3, Some(2)), ("_NewEnum", 4, None)]);
    let names: Vec<_> = x.operations.iter().map(|o| (o.name.as_ref(), o.label.as_ref(), o.id)).collect();
    assert_eq!(
        names,
        [
            ("get_Name", "Name", Some(0)),
            ("put_Name", "set_Name", Some(0)),
            ("putref_Parent", "set_Parent", Some(1)),
            ("get_Parent", "Parent", Some(1)),
            ("get__NewEnum", "_NewEnum", Some(-4)),
            ("get_Item", "get_Item", Some(2)),
            ("Sum", "Sum", Some(3)),
        ]
    );
    assert_eq!(short(&operation(&contract, "Sum").returns), "i32");
    comes_back(&contract);
}

#[test]
fn classes_answer_and_tell() {
    let contract = parse(
        r#"
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B201)] interface A : IUnknown { HRESULT Go(); HRESULT Same(); }
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B202)] interface B : A { HRESULT More(); }
        [object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B203)] interface C : IUnknown { HRESULT Same(); }
        library L {
            [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B204)] dispinterface E {
                properties: [id(1)] long Level; [id(2), readonly] BSTR Name;
                methods: [id(3)] void Told([in] BSTR what); [id(4)] double Sum(double a, double b);
            }
            [uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B205)] coclass K {
                interface C; [default] interface B; [source] interface A; [default, source] dispinterface E;
            }
        }"#,
        "classes.midl",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let class = contract.interface("K").unwrap();
    let names = |list: &[Operation]| list.iter().map(|o| o.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&class.operations), ["Go", "Same", "More", "C_Same"]);
    let bases: Vec<_> = class.bases.iter().map(|base| base.name.as_ref()).collect();
    assert_eq!((bases, class.inherited), (vec!["B", "C"], 4));
    let told: Vec<_> = class
        .signals
        .iter()
        .map(|s| (s.name.as_ref(), s.sink.as_ref().map(|(i, n)| (i.name.as_ref(), *n))))
        .collect();
    assert_eq!(told[3], ("Told", Some(("E", 3))));
    assert_eq!(told[5], ("Go", Some(("A", 0))));
    let e = contract.interface("E").unwrap();
    assert_eq!((e.kind, e.bases[0].name.as_ref()), (InterfaceKind::Dispatch, "IDispatch"));
    assert_eq!(names(&e.operations), ["get_Level", "put_Level", "get_Name", "Told", "Sum"]);
    assert_eq!(short(&e.operations[4].returns), "f64");
    comes_back(&contract);
}

#[test]
fn remote_procedures_keep_their_syntax() {
    let contract = parse(
        r#"
        typedef [context_handle] void *LOG;
        typedef [switch_type(unsigned long)] union { [case(1)] long number; [case(2, 3)] [string] char *text; [default] ; } ANY;
        typedef struct { unsigned long level; [switch_is(level)] ANY *info; } INFO;
        typedef union switch (short kind) choice { case 1: long a; default: hyper b; } OWN;
        [uuid(E1AF8308-5D1F-11C9-91A4-08002B14A0FA), version(3.0), pointer_default(ptr),
         endpoint("ncacn_ip_tcp:[135]", "ncacn_np:[\\pipe\\epmapper]")]
        interface epmapper {
            error_status_t open([in] handle_t h, [in, string] char *name, [out] LOG *log);
            long plain([in] handle_t h);
            void ask([in] LOG log, [in] unsigned long level, [out, switch_is(level)] ANY *info, [in] INFO *more, [in] OWN *own);
            [maybe] void hint([in] long what);
        }"#,
        "dce.idl",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let mapper = contract.interface("epmapper").unwrap();
    assert_eq!(mapper.kind, InterfaceKind::Procedures);
    let identities: Vec<_> = mapper.identities.iter().map(|(a, b)| format!("{a} {b}")).collect();
    assert_eq!(
        identities,
        [
            "dce e1af8308-5d1f-11c9-91a4-08002b14a0fa/3.0",
            "endpoint ncacn_ip_tcp:[135]",
            "endpoint ncacn_np:[\\pipe\\epmapper]",
        ]
    );
    assert!(mapper.bases.is_empty());
    assert_eq!(
        parameters(&mapper.operations[0]),
        ["in name: narrow", "out log: LOG=context_handle", "out return: error_status_t=u32"]
    );
    assert_eq!(short(&mapper.operations[1].returns), "i32");
    assert_eq!(parameters(&mapper.operations[2])[2], "out info: switch_is(level)=ANY");
    assert!(mapper.operations[3].oneway);
    comes_back(&contract);
}

#[test]
fn local_methods_keep_their_numbers() {
    let contract = methods(
        "",
        "HRESULT first(); [local] HRESULT Next([in] long n, void **p); \
         [call_as(Next)] HRESULT RemoteNext([in] long n, [out] long *got); [local] HRESULT never(void *p); HRESULT last();",
    );
    let names: Vec<_> =
        contract.interface("X").unwrap().operations.iter().map(|o| o.name.to_string()).collect();
    assert_eq!(names, ["first", "RemoteNext", "never", "last"]);
}

#[test]
fn constants_and_enumerations_are_computed() {
    let contract = parse(
        "#define BASE 0x10L\n#ifdef NOBODY\nnonsense\n#endif\n\
         const long A = BASE * 2 + 1; const unsigned long B = ~0; const HRESULT C = 0x80040200; const wchar_t *S = L\"hi\\n\";\n\
         typedef [v1_enum] enum { E0, E5 = A / 6, E6 } E;",
        "constants.midl",
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let values: Vec<String> = contract
        .definitions
        .iter()
        .map(|d| match d {
            Definition::Constant(c) => format!("{} {:?}", c.name, c.value),
            Definition::Type(Shape::Enum(e)) => format!("{} {} {:?}", e.name, e.bits, e.members),
            _ => String::new(),
        })
        .collect();
    assert_eq!(
        values,
        [
            "A Integer(33)",
            "B Integer(4294967295)",
            "C Integer(-2147220992)",
            "S Text(\"hi\\n\")",
            "E 32 [(\"E0\", 0), (\"E5\", 5), (\"E6\", 6)]",
        ]
    );
    comes_back(&contract);
}

#[test]
fn other_languages_become_midl() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in [
        "tests/corpus/good/bench.idl",
        "tests/corpus/good/everything.idl",
        "tests/data/bench.kidl",
        "tests/data/types.kidl",
        "tests/data/inherited.kidl",
        "tests/data/bench.dbus.xml",
    ] {
        let contract = everywire_idl::read(folder.join(name)).unwrap();
        let printed = print(&contract).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = parse(&printed, "printed.midl").unwrap_or_else(|e| panic!("{name}:\n{printed}\n{e}"));
        for interface in contract.interfaces() {
            // The same operations by the same numbers.
            let id = iid(interface).to_string();
            let found = again.interface(&id).unwrap_or_else(|| panic!("{name}: no {id}\n{printed}"));
            assert_eq!(found.operations.len(), interface.operations.len(), "{name}: {}", interface.name);
        }
    }
}

#[test]
fn handles_cannot_be_said() {
    let xml = "<node><interface name='a.B'><method name='Open'><arg type='h' direction='out'/></method></interface></node>";
    let contract = everywire_idl::dbus_xml::parse(xml, "b.xml").unwrap();
    let refused = print(&contract).unwrap_err();
    assert_eq!((refused.language, refused.place.as_str()), ("MIDL", "a::B.Open"));
}

#[test]
fn midl_becomes_other_languages() {
    for name in ["derby.midl", "opcda.idl"] {
        let contract = read(name);
        for language in everywire_idl::languages() {
            let printed = (language.print)(&contract);
            if let ("omg", Ok(text)) = (language.name, &printed) {
                everywire_idl::omg::parse(text, "printed.idl")
                    .unwrap_or_else(|e| panic!("{name}:\n{text}\n{e}"));
            }
            // In WSDL, interfaces of one namespace cannot have different operations of one name.
            let some = matches!(language.name, "kidl" | "wsdl");
            assert!(some || printed.is_ok(), "{name} as {}: {printed:?}", language.name);
        }
    }
}

#[test]
fn identities_are_fixed() {
    use uuid::Uuid;
    for (space, urn) in [
        (midl::INTERFACES, "urn:everywire:interface"),
        (midl::CLASSES, "urn:everywire:class"),
        (midl::LIBRARIES, "urn:everywire:library"),
    ] {
        assert_eq!(space, Uuid::new_v5(&Uuid::NAMESPACE_URL, urn.as_bytes()));
    }
    let contract = everywire_idl::omg::parse("interface Clock { void tick(); };", "clock.idl").unwrap();
    let clock: &Interface = contract.interface("Clock").unwrap();
    assert_eq!(iid(clock), Uuid::new_v5(&midl::INTERFACES, b"IDL:Clock:1.0"));
    assert_ne!(iid(clock), sink_iid(clock));
    assert_eq!(clsid_of_key(b"Clock"), Uuid::new_v5(&midl::CLASSES, b"Clock"));
}

#[test]
fn the_text_tells_the_language() {
    assert!(is_midl("/* uuid( */ [object, uuid (0)] interface X;"));
    assert!(is_midl("import \"unknwn.idl\";"));
    assert!(!is_midl("// uuid(1)\nmodule m { const string s = \"uuid(\"; typedef long uuid[3]; };"));
    for seed in ["import", "\"", "/*", "é", "//", "uuid"] {
        assert!(!is_midl(seed));
    }
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let shown = mistakes(
        "[object, uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B101)] interface X : IUnknown { void f(); HRESULT g([in] Nowhere n); };",
    );

    assert!(shown.contains("x.midl:1:104: error: there is no type `Nowhere`"), "{shown}");
    for (text, message) in [
        ("[uuid(1)] interface X {}", "this is not a UUID"),
        ("[uuid(5D36B0C0-2F53-4C36-8C5B-2E51C6C2B10)] interface X {}", "is not a number"),
        ("interface X : Y { }", "there is no interface `Y` before this"),
        ("interface X { void f([in] long p[]); }", "needs `size_is`"),
        ("interface X { void f([in, size_is(,n)] long *p); }", "a pointer that is not there"),
        ("typedef struct { long a; long a; } S;", "there are two fields `a`"),
        ("typedef struct S { struct S inner; } S;", "not complete here"),
        ("typedef struct S { struct T *inner; } S;", "`T` is used and never defined"),
        ("typedef struct { [size_is(n)] long a[]; long n; } S;", "the last field"),
        ("typedef union switch (double d) u { case 1: long a; } U;", "a union is chosen by"),
        ("typedef union switch (long d) u { case 1: long a; case 1: long b; } U;", "two arms for this value"),
        ("interface X { void f(); void f(); }", "there are two methods `f`"),
        ("const long A = 1 / 0;", "not a constant integer"),
        ("const long A = B;", "there is no constant `B`"),
        ("typedef long A[0];", "0 is not a size"),
        ("interface X { void f(", "the file ends too early"),
        ("interface X { /* ", "this comment never ends"),
        ("cpp_quote(\"x", "the closing quote is missing"),
        ("import \"other.idl\";", "cannot include files"),
        ("}", "there is no `{`"),
    ] {
        let shown = mistakes(text);
        assert!(shown.contains(message), "{text}\n{shown}");
    }
}

#[test]
fn hostile_texts_cost_no_more_than_their_size() {
    let many = 50_000;
    for text in [
        "[".repeat(many),
        "struct S { ".repeat(many),
        "library L { ".repeat(many),
        format!("const long A = {}1;", "(".repeat(many)),
        format!("const long A = {}1;", "-".repeat(many)),
        format!("const long A = {}1;", "1+".repeat(many)),
        format!("typedef long {}A;", "*".repeat(many)),
        format!("typedef long A{};", "[4294967295]".repeat(many)),
        format!("typedef SAFEARRAY({}long{} A;", "SAFEARRAY(".repeat(many), ")".repeat(many)),
        format!("interface X {{ void f({}", "[in] long a,".repeat(many)),
        (0..200).map(|n| format!("typedef A{n} *A{};", n + 1)).collect::<String>(),
        "typedef long A0;".to_owned()
            + &(0..200).map(|n| format!("typedef A{n} A{};", n + 1)).collect::<String>(),
        (0..300)
            .map(|n| {
                let base = if n == 0 { "IUnknown".to_owned() } else { format!("I{}", n - 1) };
                format!("[object] interface I{n} : {base} {{ HRESULT f{n}(); }}\n")
            })
            .collect::<String>(),
        "#define A A A\nA".to_owned(),
        "[helpstring(\"".to_owned(),
    ] {
        if let Ok(contract) = parse(&text, "hostile.midl") {
            print(&contract).unwrap();
        }
    }
}

/// The compiler of Wine takes what is printed: a referee of its own kind.
#[test]
fn another_compiler_takes_what_is_printed() {
    if !everywire_peers::here("another_compiler_takes_what_is_printed", &["widl", "wine-contracts"]) {
        return;
    }
    let includes = "/usr/include/wine/wine/windows";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("widl");
    std::fs::create_dir_all(&folder).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in [
        "tests/contracts/derby.midl",
        "tests/contracts/opcda.idl",
        "tests/corpus/good/bench.idl",
        "tests/data/types.kidl",
        "tests/data/bench.dbus.xml",
    ] {
        let contract = everywire_idl::read(root.join(name)).unwrap();
        let stem = name.replace(['/', '.'], "_");
        let (source, header) = (folder.join(format!("{stem}.idl")), folder.join(format!("{stem}.h")));
        std::fs::write(&source, print(&contract).unwrap()).unwrap();
        let output = Command::new("widl-stable")
            .args(["-m64", "-h", "-I", includes, "-H"])
            .args([&header, &source])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("error"), "{name}: {said}");
    }
}
