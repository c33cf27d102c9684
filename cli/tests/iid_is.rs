//! References among results, of the interface that the caller asks for (`iid_is`).

use crate::support::{Running, Scratch, run};

const CONTRACT: &str = "import \"oaidl.idl\";
[object, uuid(606de2c5-1a8c-11d3-b68f-00c04f8b7300), pointer_default(unique)]
interface IMaker : IUnknown
{
    HRESULT Make([in] REFIID riid, [out, iid_is(riid)] IUnknown **made);
};
";
/// Gives itself, whatever is asked for.
const PROGRAM: &str = "import json, sys
for line in sys.stdin:
    call = json.loads(line)
    made = open(sys.argv[1]).read().split('\\t')[1].strip()
    print(json.dumps({'id': call['id'], 'results': {'made': made}}), flush=True)
";

/// A program that hands out an object under an interface that this lacks would have its caller call another one.
#[test]
fn an_object_is_not_given_as_an_interface_that_it_lacks() {
    let scratch = Scratch::new();
    let (contract, program, reference) =
        (scratch.path("maker.midl"), scratch.path("maker.py"), scratch.path("maker.ref"));
    std::fs::write(&contract, CONTRACT).unwrap();
    std::fs::write(&program, PROGRAM).unwrap();
    let exec = format!("python3 {program} {reference}");
    let on = "dcom://127.0.0.1:0?level=none";
    let mut server =
        Running::start(&["serve", &contract, "--exec", &exec, "--on", on, "--ref-file", &reference]);
    let address = server.line();
    let make = |iid: &str| run(&["call", &address, "Make", iid, "-c", &contract, "--json"]);
    for offered in ["606de2c5-1a8c-11d3-b68f-00c04f8b7300", "00000000-0000-0000-c000-000000000046"] {
        let said = make(offered).json();
        assert!(said["value"]["made"].as_str().is_some_and(|made| made.starts_with("objref:")), "{said}");
    }
    let said = make("606de2c5-1a8c-11d3-b68f-00c04f8b7399").json();
    assert_eq!(
        (&said["error"]["code"], &said["error"]["completed"]),
        (&"0x80004002".into(), &"yes".into()),
        "{said}"
    );
}
