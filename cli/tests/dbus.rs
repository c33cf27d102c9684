//! D-Bus contracts and their words, as a user of `everywire` has them.

use crate::support::{Running, Scratch, run};

/// A server of a contract in the XML of D-Bus and a program in Python.
struct Server {
    _running: Running,
    contract: String,
    _scratch: Scratch,
}

impl Server {
    /// It has said where it is served as often as there are addresses.
    fn start(contract: &str, program: &str, on: impl FnOnce(&Scratch) -> Vec<String>) -> (Self, Vec<String>) {
        let scratch = Scratch::new();
        let (file, script) = (scratch.path("contract.xml"), scratch.path("program.py"));
        std::fs::write(&file, contract).unwrap();
        std::fs::write(&script, program).unwrap();
        let exec = format!("python3 {script}");
        let on = on(&scratch);
        let mut arguments = vec!["serve", &file, "--exec", &exec, "--key", "o"];
        on.iter().for_each(|address| arguments.extend(["--on", address]));
        let mut running = Running::start(&arguments);
        let addresses = on.iter().map(|_| running.line()).collect();
        (Self { _running: running, contract: file, _scratch: scratch }, addresses)
    }
}

/// What was called, and with what.
const ECHO: &str = "import json, sys
for line in sys.stdin:
    call = json.loads(line)
    said = call['operation'] + ' ' + ' '.join(str(value) for value in call['arguments'].values())
    print(json.dumps({'id': call['id'], 'results': {'return': said}}), flush=True)
";

/// Methods of one name, as QtDBus has them: on every wire each of them is reached, and the program learns which one was called.
#[test]
fn methods_of_one_name_are_told_apart_on_every_wire() {
    const OVERLOADS: &str = "<node><interface name='org.example.Jar'>
        <method name='Put'><arg name='a' type='s' direction='in'/><arg type='s' direction='out'/></method>
        <method name='Put'><arg name='a' type='i' direction='in'/><arg type='s' direction='out'/></method>
        <method name='Put'><arg name='a' type='s' direction='in'/><arg name='n' type='x' direction='in'/>
            <arg type='s' direction='out'/></method>
    </interface></node>";
    let (server, addresses) = Server::start(OVERLOADS, ECHO, |scratch| {
        vec![
            "iiop://127.0.0.1:0".to_owned(),
            format!("dbus+unix://{}", scratch.path("dbus")),
            format!("dcom+unix://{}", scratch.path("dcom")),
            "net.tcp://127.0.0.1:0?security=none".to_owned(),
        ]
    });
    for address in &addresses {
        let call = |words: &[&str]| {
            run(&[&["call", address, "-c", &server.contract], words].concat()).good().to_owned()
        };
        assert_eq!(call(&["Put", "hi"]), "Put hi", "{address}");
        assert_eq!(call(&["Put_2", "5"]), "Put_2 5", "{address}");
        assert_eq!(call(&["Put_3", "hi", "5"]), "Put_3 hi 5", "{address}");
        // Of those that share the name, this one alone takes two.
        assert_eq!(call(&["Put", "hi", "5"]), "Put_3 hi 5", "{address}");
    }
}

/// Most libraries send a text with each error, those that a contract names among them.
#[test]
fn the_text_of_an_error_that_the_contract_names_is_told() {
    const FROZEN: &str = "<node><interface name='org.example.Account'>
        <method name='Pay'><annotation name='everywire.Method.Raises' value='org.example.Frozen'/></method>
    </interface></node>";
    const PROGRAM: &str = "import json, sys
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({'id': call['id'], 'fail': 'since Monday', 'code': 'org.example.Frozen'}), flush=True)
";
    let (server, addresses) =
        Server::start(FROZEN, PROGRAM, |scratch| vec![format!("dbus+unix://{}", scratch.path("dbus"))]);
    let call = ["call", &addresses[0], "Pay", "-c", &server.contract];
    let said = run(&call);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("raised org::example::Frozen: since Monday"), "{}", said.err);
    let told = run(&[&call[..], &["--json"]].concat()).json();
    assert_eq!(told["error"]["kind"], "exception", "{told}");
    assert!(told["error"]["message"].as_str().unwrap().ends_with(": since Monday"), "{told}");
    assert_eq!(told["error"]["code"], "org.example.Frozen", "{told}");
}
