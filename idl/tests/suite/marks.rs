//! Exceptions, signals and operations that may run twice: each language says them, and each says what any other one said.

use crate::common::outline;
use everywire_idl::{Diagnostics, Language, dbus_xml, kidl, languages, midl, omg, wsdl};
use everywire_model::shape::{Field, Shape};
use everywire_model::{Contract, Definition, Interface};
use std::path::Path;
use std::process::Command;

/// The same contract in each language, by the names of the languages.
const TEXTS: [(&str, &str); 5] = [
    (
        "omg",
        r#"
module Bank {
    exception Overdrawn { double missing; wstring account; };
    exception Frozen {};
    interface Account {
        /// What is there.
        double balance(in wstring currency);
#pragma idempotent balance
        void withdraw(in double amount) raises (Overdrawn, Frozen);
        /// It is another one now.
#pragma signal changed(in double now, in wstring why)
        void close();
    };
};
"#,
    ),
    (
        "dbus",
        r#"<node>
  <interface name="Bank.Account">
    <method name="balance">
      <annotation name="everywire.Method.Idempotent" value="true"/>
      <arg name="currency" type="s" direction="in"/>
      <arg type="d" direction="out"/>
    </method>
    <method name="withdraw">
      <arg name="amount" type="d" direction="in"/>
      <annotation name="everywire.Method.Raises" value="Bank.Overdrawn(d missing, s account)"/>
      <annotation name="everywire.Method.Raises" value="Bank.Frozen"/>
    </method>
    <method name="close"/>
    <signal name="changed"><arg name="now" type="d"/><arg name="why" type="s"/></signal>
  </interface>
</node>
"#,
    ),
    (
        "kidl",
        r#"<!DOCTYPE DCOP-IDL><DCOP-IDL>
<EXCEPTION>
    <NAME>Bank::Overdrawn</NAME>
    <ARG><TYPE>double</TYPE><NAME>missing</NAME></ARG>
    <ARG><TYPE>QString</TYPE><NAME>account</NAME></ARG>
</EXCEPTION>
<EXCEPTION><NAME>Bank::Frozen</NAME></EXCEPTION>
<CLASS>
    <NAME>Bank::Account</NAME>
    <FUNC idempotent="yes"><TYPE>double</TYPE><NAME>balance</NAME><ARG><TYPE>QString</TYPE><NAME>currency</NAME></ARG></FUNC>
    <FUNC raises="Bank::Overdrawn,Bank::Frozen"><TYPE>void</TYPE><NAME>withdraw</NAME><ARG><TYPE>double</TYPE><NAME>amount</NAME></ARG></FUNC>
    <FUNC><TYPE>void</TYPE><NAME>close</NAME></FUNC>
    <SIGNAL><TYPE>void</TYPE><NAME>changed</NAME><ARG><TYPE>double</TYPE><NAME>now</NAME></ARG><ARG><TYPE>QString</TYPE><NAME>why</NAME></ARG></SIGNAL>
</CLASS>
</DCOP-IDL>
"#,
    ),
    (
        "midl",
        r#"
import "oaidl.idl";

typedef struct Bank_Overdrawn
{
    double missing;
    [ref, string] LPWSTR account;
} Bank_Overdrawn;
#pragma exception Bank_Overdrawn "IDL:Bank/Overdrawn:1.0"
#pragma exception Bank_Frozen()

[object, uuid(6f0c1f0e-35b5-4b1f-9d3a-0f6c1c1a7b01)]
interface Bank_Account : IUnknown
{
#pragma signals Bank_AccountEvents
    [idempotent] HRESULT balance([in, string] LPCWSTR currency, [out, retval] double *value);
#pragma raises withdraw(Bank_Overdrawn, Bank_Frozen)
    HRESULT withdraw([in] double amount);
    HRESULT close();
};

[object, uuid(6f0c1f0e-35b5-4b1f-9d3a-0f6c1c1a7b02), helpstring("Called by accounts")]
interface Bank_AccountEvents : IUnknown
{
    HRESULT changed([in] double now, [in, string] LPCWSTR why);
};
"#,
    ),
    ("wsdl", ""),
];

fn language(name: &str) -> &'static Language {
    languages().iter().find(|language| language.name == name).unwrap()
}

fn parse(language: &str, text: &str) -> Result<Contract, Diagnostics> {
    match language {
        "omg" => omg::parse(text, "bank.idl"),
        "dbus" => dbus_xml::parse(text, "bank.xml"),
        "kidl" => kidl::parse(text, "bank.kidl"),
        "midl" => midl::parse(text, "bank.midl"),
        _ => wsdl::parse(text, "bank.wsdl"),
    }
}

fn read(language: &str, text: &str) -> Contract {
    parse(language, text).unwrap_or_else(|problems| panic!("{language}: {problems}\n{text}"))
}

/// The contract that a language's text says; that of WSDL is printed, since it is long.
fn written(language: &str) -> Contract {
    let (_, text) = TEXTS.iter().find(|(name, _)| *name == language).unwrap();
    match language {
        "wsdl" => read("wsdl", &wsdl::print(&written("omg")).unwrap()),
        _ => read(language, text),
    }
}

/// The account's interface, whatever its language makes of the module.
fn account(contract: &Contract) -> &Interface {
    contract.interfaces().find(|interface| last(&interface.name) == "Account").unwrap()
}

fn last(name: &str) -> &str {
    name.rsplit([':', '_']).next().unwrap()
}

fn fields(fields: &[Field]) -> String {
    let kind = |shape: &Shape| match shape.resolved() {
        Shape::F64 => "f64".to_owned(),
        Shape::Text(_) => "text".to_owned(),
        other => other.noun().into_owned(),
    };
    let each: Vec<String> =
        fields.iter().map(|field| format!("{} {}", kind(&field.shape), field.name)).collect();
    each.join(", ")
}

/// All that this is about, in words that are the same for all languages.
fn said(contract: &Contract) -> Vec<String> {
    let mut lines: Vec<String> = contract
        .definitions
        .iter()
        .filter_map(|definition| match definition {
            Definition::Exception(raised) => {
                Some(format!("exception {}({})", last(&raised.name), fields(&raised.fields)))
            }
            _ => None,
        })
        .collect();
    lines.sort();
    let account = account(contract);
    for (index, operation) in account.operations.iter().enumerate().skip(account.inherited) {
        let mut raises: Vec<&str> = operation.raises.iter().map(|raised| last(&raised.name)).collect();
        raises.sort_unstable();
        let twice = if account.is_idempotent(index) { "idempotent " } else { "" };
        let arguments = fields(operation.arguments.fields());
        lines.push(format!("{twice}{}({arguments}) raises {raises:?}", operation.label));
    }
    for signal in account.signals.iter() {
        lines.push(format!("signal {}({})", signal.label, fields(signal.fields.fields())));
    }
    lines
}

const SAID: [&str; 6] = [
    "exception Frozen()",
    "exception Overdrawn(f64 missing, text account)",
    "idempotent balance(text currency) raises []",
    "withdraw(f64 amount) raises [\"Frozen\", \"Overdrawn\"]",
    "close() raises []",
    "signal changed(f64 now, text why)",
];

#[test]
fn each_language_says_them() {
    for (name, _) in TEXTS {
        assert_eq!(said(&written(name)), SAID, "{name}");
    }
}

#[test]
fn each_language_says_what_any_other_one_said() {
    for (from, _) in TEXTS {
        let first = written(from);
        for (to, _) in TEXTS {
            let text = (language(to).print)(&first).unwrap_or_else(|e| panic!("{from} to {to}: {e}"));
            let second = read(to, &text);
            assert_eq!(said(&second), SAID, "{from} to {to}:\n{text}");
            // And what is printed stays as it is.
            let again = read(to, &(language(to).print)(&second).unwrap());
            assert_eq!(outline(&again), outline(&second), "{from} to {to}:\n{text}");
            for (back, _) in TEXTS {
                let text =
                    (language(back).print)(&second).unwrap_or_else(|e| panic!("{from}, {to}, {back}: {e}"));
                assert_eq!(said(&read(back, &text)), SAID, "{from} to {to} to {back}:\n{text}");
            }
        }
    }
}

#[test]
fn annotations_of_idl_4_say_them_too() {
    let text = "@key(x = 1) interface A { @idempotent long get(@range(min = 1) in long n); void put(in long n);
        @signal oneway void gone(in wstring why); @idempotent readonly attribute long size; @unit(\"s\") void tick(); };
        interface B : A { @signal void back(); void more(); };";
    let contract = omg::parse(text, "annotated.idl").unwrap();
    let a = contract.interface("A").unwrap();
    let twice = |name: &str| a.is_idempotent(a.index_of(name.as_bytes()).unwrap());
    assert_eq!(["get", "put", "_get_size", "tick"].map(twice), [true, false, true, false]);
    // A signal is no operation, and is inherited.
    assert_eq!(a.index_of(b"gone"), None);
    let b = contract.interface("B").unwrap();
    let signals: Vec<_> = b.signals.iter().map(|signal| signal.name.as_ref()).collect();
    assert_eq!(signals, ["gone", "back"]);
    assert!(b.is_idempotent(b.index_of(b"get").unwrap()));
    let again = omg::parse(&omg::print(&contract), "printed.idl").unwrap();
    assert_eq!(outline(&again), outline(&contract));
}

/// What an attribute raises when it is read or written, and types without a name in a signal.
#[test]
fn attributes_raise_and_signals_carry_lists() {
    let text = "module M { exception Stuck { long long since; }; exception Hot { double degrees; sequence<long> rooms; };
        interface Stove {
        attribute double heat getraises (Stuck) setraises (Hot, Stuck);
#pragma signal rang(in sequence<wstring, 4> doors, in double grid[6])
        }; };";
    let contract = omg::parse(text, "stove.idl").unwrap();
    let raised = |contract: &Contract, name: &str| -> Vec<String> {
        let stove = contract.interfaces().find(|interface| last(&interface.name) == "Stove").unwrap();
        let bare = name.trim_start_matches('_');
        let found = stove.operations.iter().find(|own| {
            own.name.split('(').next() == Some(name)
                || own.name == bare
                || own.name.replace("put_", "set_") == bare
        });
        let found = found.unwrap_or_else(|| panic!("{name}: {stove:?}"));
        found
            .raises
            .iter()
            .map(|raised| format!("{}({})", last(&raised.name), fields(&raised.fields)))
            .collect()
    };
    for (name, _) in TEXTS {
        let printed = (language(name).print)(&contract).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = read(name, &printed);
        assert_eq!(raised(&again, "_get_heat"), ["Stuck(i64 since)"], "{name}: {printed}");
        assert_eq!(raised(&again, "_set_heat").len(), 2, "{name}: {printed}");
        assert!(
            raised(&again, "_set_heat").iter().any(|one| one.starts_with("Hot(f64 degrees")),
            "{name}: {printed}"
        );
    }
    let again = omg::parse(&omg::print(&contract), "printed.idl").unwrap();
    assert_eq!(outline(&again), outline(&contract));
}

/// Errors of D-Bus mostly have the name of an interface before theirs.
#[test]
fn errors_named_after_an_interface_are_said_in_other_languages() {
    let text = r#"<node><interface name="org.example.Bank"><method name="Open">
        <annotation name="everywire.Method.Raises" value="org.example.Bank.Error.NoRoom(u vaults)"/>
        <annotation name="everywire.Method.Raises" value="org.example.Bank.Closed"/>
        <annotation name="everywire.Method.Raises" value="org.example.Error.Late"/></method></interface></node>"#;
    let contract = dbus_xml::parse(text, "bank.xml").unwrap();
    let names = |contract: &Contract| -> Vec<String> {
        let all = contract.interfaces().next().unwrap().operations.iter().flat_map(|own| own.raises.iter());
        let mut names: Vec<String> = all
            .map(|raised| raised.name.rsplit("::").next().unwrap().rsplit('_').next().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        dbus_xml::print(&dbus_xml::parse(&dbus_xml::print(&contract).unwrap(), "").unwrap()).unwrap(),
        dbus_xml::print(&contract).unwrap()
    );
    for (name, _) in TEXTS {
        let printed = (language(name).print)(&contract).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(names(&read(name, &printed)), ["Closed", "Late", "NoRoom"], "{name}: {printed}");
    }
}

/// A mistake in what is ours: language, text, line and column, the message.
const MISTAKES: &[(&str, &str, (u32, u32), &str)] = &[
    ("omg", "#pragma signal lost(in long n)\n", (1, 16), "`#pragma signal` stands in an interface"),
    ("omg", "interface A {\n#pragma signal lost(long n)\n};", (2, 21), "`long` does not belong here"),
    ("omg", "interface A {\n#pragma signal lost(in long n\n};", (2, 30), "the line ends too early"),
    ("omg", "interface A {\n#pragma signal lost(in lnog n)\n};", (2, 24), "`lnog` is not defined"),
    ("omg", "interface A {\n#pragma signal lost(in long n, in long n)\n};", (2, 40), "`n` is defined twice"),
    ("omg", "interface A {\n#pragma signal lost() raises\n};", (2, 23), "`raises` does not belong here"),
    (
        "omg",
        "interface A {\n#pragma signal a()\n#pragma signal A()\n};",
        (3, 16),
        "there is a signal `A` already",
    ),
    (
        "omg",
        "interface A {\nvoid get();\n#pragma idempotent got\n};",
        (3, 20),
        "this interface defines no operation `got`",
    ),
    ("omg", "interface A {\n@signal long get();\n};", (2, 9), "a signal returns nothing"),
    ("omg", "interface A {\n@signal void get(out long n);\n};", (2, 27), "a signal has only `in` parameters"),
    ("omg", "interface A {\n@signal attribute long n;\n};", (2, 1), "`@signal` stands before an operation"),
    ("dbus", "RAISES one", (1, 96), "`one` is no name of an error"),
    ("dbus", "RAISES a.b(i", (1, 96), "what the error carries does not end"),
    ("dbus", "RAISES a.b(i x, q? y)", (1, 105), "`q?` is no type"),
    ("dbus", "RAISES a.b(i x, )", (1, 104), "this is no value of an error"),
    ("dbus", "RAISES a.A", (1, 96), "`a.A` is the name of an interface already"),
    ("dbus", "IDEMPOTENT maybe", (1, 100), "this says neither yes nor no"),
    (
        "kidl",
        "<FUNC raises=\"B\"><TYPE>void</TYPE><NAME>f</NAME></FUNC>",
        (3, 15),
        "there is no exception `B`",
    ),
    ("kidl", "<FUNC raises=\"E,E\"><TYPE>void</TYPE><NAME>f</NAME></FUNC>", (3, 15), "`E` is named twice"),
    (
        "kidl",
        "<FUNC raises=\"E\"><TYPE>ASYNC</TYPE><NAME>f</NAME></FUNC>",
        (3, 15),
        "a function without an answer raises nothing",
    ),
    ("midl", "#pragma exception E\n", (1, 19), "there is no struct `E` before this"),
    ("midl", "#pragma exception E(\n", (1, 21), "`)` is missing"),
    ("midl", "#pragma exception E()\n#pragma exception E()\n", (2, 19), "`E` is an exception already"),
    ("midl", "#pragma raises f(E)\n", (1, 16), "`#pragma raises` stands in an interface"),
    ("midl", "INTERFACE #pragma raises f(E)\nHRESULT f();", (3, 18), "there is no exception `E` before this"),
    (
        "midl",
        "#pragma exception E()\nINTERFACE #pragma raises g(E)\nHRESULT f();",
        (4, 16),
        "this interface has no method `g`",
    ),
    ("midl", "INTERFACE #pragma signals Nobody\n", (3, 17), "there is no interface `Nobody`"),
    (
        "midl",
        "struct E { long a; };\n#pragma exception E\nINTERFACE HRESULT f([in] struct E *e);",
        (2, 19),
        "`E` is an exception and the type of a value as well",
    ),
];

#[test]
fn mistakes_are_shown_at_their_places() {
    for (language, text, place, message) in MISTAKES {
        let text = match *language {
            "dbus" => {
                let annotation = |name: &str, value: &str| {
                    let method = format!(
                        "<method name=\"f\"><annotation name=\"everywire.Method.{name}\" value=\"{value}\"/></method>"
                    );
                    format!("<node><interface name=\"a.A\">{method}</interface></node>")
                };
                match text.split_once(' ').unwrap() {
                    ("RAISES", value) => annotation("Raises", value),
                    (_, value) => annotation("Idempotent", value),
                }
            }
            "kidl" => {
                let exception = "<EXCEPTION><NAME>E</NAME></EXCEPTION>";
                format!("<DCOP-IDL>{exception}<CLASS>\n<NAME>A</NAME>\n{text}\n</CLASS></DCOP-IDL>")
            }
            "midl" => {
                let head = "[object, uuid(6f0c1f0e-35b5-4b1f-9d3a-0f6c1c1a7b01)]\ninterface A : IUnknown {\n";
                let tail = if text.contains("INTERFACE") { "\n};" } else { "" };
                text.replace("INTERFACE ", head) + tail
            }
            _ => (*text).to_owned(),
        };
        let problems = parse(language, &text).expect_err(&text);
        let first = &problems.list[0];
        assert!(first.message.starts_with(message), "{text}\n{problems}");
        assert_eq!((first.line, first.column), *place, "{text}\n{problems}");
    }
}

/// Hostile text costs no more than its size.
#[test]
fn much_of_it_ends_in_time() {
    let interface = "[object, uuid(6f0c1f0e-35b5-4b1f-9d3a-0f6c1c1a7b01)] interface A : IUnknown {\n";
    let many = |count: usize, one: &dyn Fn(usize) -> String| -> String { (0..count).map(one).collect() };
    let cases = [
        (
            "omg",
            format!("interface A {{\n{}}};", many(30_000, &|n| format!("#pragma signal s{n}(in long n)\n"))),
        ),
        ("omg", format!("interface A {{\n{}}};", many(30_000, &|n| format!("#pragma idempotent o{n}\n")))),
        ("omg", format!("#pragma signal s({})\n", "in long n,".repeat(100_000))),
        (
            "omg",
            format!(
                "interface A {{\n#pragma signal s(in {}long{} n)\n}};",
                "sequence<".repeat(100_000),
                ">".repeat(100_000)
            ),
        ),
        ("omg", "#pragma signal\n#pragma idempotent\n".repeat(10_000)),
        ("midl", many(30_000, &|n| format!("#pragma exception E{n}()\n")) + interface + "};"),
        ("midl", many(30_000, &|n| format!("#pragma exception E{n}\n"))),
        ("midl", format!("{interface}{}}};", many(30_000, &|n| format!("#pragma raises f{n}(E{n})\n")))),
        ("midl", format!("{interface}{}}};", "#pragma signals A\n".repeat(100_000))),
        ("midl", format!("{interface}#pragma signals A({})\n}};", "f,".repeat(100_000))),
        (
            "dbus",
            format!(
                "<node><interface name=\"a.A\"><method name=\"f\">{}</method></interface></node>",
                many(30_000, &|n| format!("<annotation name=\"everywire.Method.Raises\" value=\"a.E{n}\"/>"))
            ),
        ),
        (
            "dbus",
            format!(
                "<node><interface name=\"a.A\"><method name=\"f\"><annotation name=\"everywire.Method.Raises\" value=\"a.E({})\"/></method></interface></node>",
                "i x,".repeat(100_000)
            ),
        ),
        (
            "kidl",
            format!(
                "<DCOP-IDL>{}<CLASS><NAME>A</NAME><FUNC raises=\"{}\"><TYPE>void</TYPE><NAME>f</NAME></FUNC></CLASS></DCOP-IDL>",
                many(20_000, &|n| format!("<EXCEPTION><NAME>E{n}</NAME></EXCEPTION>")),
                many(50_000, &|n| format!("E{n},"))
            ),
        ),
    ];
    for (number, (language, text)) in cases.iter().enumerate() {
        if let Err(problems) = parse(language, text) {
            assert!(problems.list.len() <= 40 && problems.to_string().len() < 100_000, "case {number}");
        } else {
            assert!([0, 5, 10].contains(&number), "case {number}");
        }
    }
}

/// Foreign compilers of each language take the text, and see nothing of what is ours.
#[test]
fn other_compilers_take_what_is_printed() {
    let test = "other_compilers_take_what_is_printed";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("marks");
    std::fs::create_dir_all(&folder).unwrap();
    let contract = written("omg");
    let judge = |peers: &[&str], language: &str, file: &str, command: &[&str]| {
        if !everywire_peers::here(test, peers) {
            return String::new();
        }
        let text = (self::language(language).print)(&contract).unwrap();
        std::fs::write(folder.join(file), &text).unwrap();
        let (program, arguments) = command.split_first().unwrap();
        let output = Command::new(program)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(&folder)
            .args(arguments)
            .arg(file)
            .output()
            .unwrap();
        let said =
            String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && !said.to_ascii_lowercase().contains("error:"),
            "{program}: {said}\n{text}"
        );
        said
    };
    judge(&["omniorb"], "omg", "marks.idl", &["omniidl", "-bcxx", "-Wba"]);
    if let Ok(header) = std::fs::read_to_string(folder.join("marks.hh")) {
        assert!(header.contains("balance") && !header.contains("changed"), "a signal is no operation");
    }
    let wine = "/usr/include/wine/wine/windows";
    let widl = ["widl-stable", "-m64", "-h", "-H", "marks.h", "-I", wine];
    judge(&["widl", "wine-contracts"], "midl", "marks_midl.idl", &widl);
    judge(
        &["gdbus-codegen"],
        "dbus",
        "marks.xml",
        &["gdbus-codegen", "--interface-info-body", "--output", "marks.c"],
    );
    judge(&["mono-tools"], "wsdl", "marks.wsdl", &["wsdl", "-out:marks_asmx.cs"]);
}

/// A client made of the contract in OMG IDL knows exceptions and interfaces by the repository ids that it makes of names.
#[test]
fn what_has_no_repository_id_is_known_by_the_usual_one() {
    let contract = written("dbus");
    let account = account(&contract);
    assert!(account.is_a("Bank.Account") && account.is_a("IDL:Bank/Account:1.0"));
    assert!(!account.is_a("IDL:Account:1.0") && !account.is_a("IDL:Bank/Account:1.1"));
    let raised = &account.operations[1].raises[0];
    assert!(
        ["Bank.Overdrawn", "Bank::Overdrawn", "IDL:Bank/Overdrawn:1.0"]
            .into_iter()
            .all(|id| raised.is_called(id))
    );
    assert!(!raised.is_called("IDL:Bank/Frozen:1.0"));
    // One that has an identity of its own is not known by another.
    let given = "module Bank { interface Account {};\n#pragma ID Account \"IDL:other/Account:2.0\"\n};";
    let contract = omg::parse(given, "given.idl").unwrap();
    let account = contract.interface("Bank::Account").unwrap();
    assert!(account.is_a("IDL:other/Account:2.0") && !account.is_a("IDL:Bank/Account:1.0"));
}
