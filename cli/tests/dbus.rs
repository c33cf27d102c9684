//! D-Bus contracts and their words, as a user of `everywire` has them.

use crate::support::{Bus, Running, Scratch, run};
use serde_json::json;

/// A server of a contract in the XML of D-Bus and a program in Python.
struct Server {
    running: Running,
    contract: String,
    scratch: Scratch,
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
        (Self { running, contract: file, scratch }, addresses)
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

/// A signal of every object is asked for by its name, with the contract and without one, of an object and of all of a service.
#[test]
fn signals_that_every_object_has_are_watched_by_name() {
    const LAMP: &str = "<node><interface name='org.example.Lamp'>
        <method name='Go'/><property name='State' type='s' access='read'/>
        <signal name='Done'/>
    </interface></node>";
    const PROGRAM: &str = "import json, sys
for line in sys.stdin:
    call = json.loads(line)
    if call['operation'] == 'Go':
        print(json.dumps({'changed': 'State'}), flush=True)
    print(json.dumps({'id': call['id'], 'results': {'return': 'on'} if call['operation'] != 'Go' else {}}), flush=True)
";
    if !everywire_peers::here("signals_that_every_object_has_are_watched_by_name", &["dbus-daemon"]) {
        return;
    }
    let own = Scratch::new();
    let bus = Bus::start(&own.path("bus"));
    let (server, addresses) =
        Server::start(LAMP, PROGRAM, |_| vec![format!("dbus:{}#org.example.Lamp", bus.address)]);
    let address = &addresses[0];
    let service = address.strip_suffix("/o").unwrap();
    let changed = "org.freedesktop.DBus.Properties.PropertiesChanged";
    for words in [
        vec![address, "PropertiesChanged", "-c", &server.contract],
        vec![address, changed, "-c", &server.contract],
        vec![address, "PropertiesChanged"],
        vec![service, "PropertiesChanged"],
        vec![service, changed],
    ] {
        let arguments = [&["watch"], &words[..], &["--count", "1", "--json"]].concat();
        let mut watch = Running::start(&arguments);
        watch.tells("watching ");
        run(&["call", address, "Go"]).good();
        let told: serde_json::Value = serde_json::from_str(&watch.line()).unwrap();
        assert_eq!(told["fields"]["changed_properties"]["State"]["value"], json!("on"), "{words:?}: {told}");
    }
    let refused = run(&["watch", address, "PropertiesChange", "-c", &server.contract]);
    assert!(refused.code == 2 && refused.err.contains("has no such signal"), "{}", refused.err);
    drop(server.running);
    drop(server.scratch);
}

/// A change that comes with its value is told where the program tells it: before the signal and the answer behind it.
#[test]
fn a_change_with_its_value_is_told_in_order() {
    const JOB: &str = "<node><interface name='org.example.Job'>
        <method name='Go'/><property name='State' type='s' access='read'/>
        <property name='Key' type='s' access='write'/>
        <signal name='Done'/>
    </interface></node>";
    const PROGRAM: &str = "import json, sys
def say(line):
    print(json.dumps(line), flush=True)
for line in sys.stdin:
    call = json.loads(line)
    if call['operation'] == 'Go':
        say({'changed': 'State', 'value': 7})
        say({'changed': 'Key', 'value': 'x'})
        say({'changed': 'State', 'value': 'busy'})
        say({'changed': 'State', 'value': 'ready'})
        say({'signal': 'Done'})
    say({'id': call['id']})
";
    if !everywire_peers::here("a_change_with_its_value_is_told_in_order", &["dbus-daemon"]) {
        return;
    }
    let own = Scratch::new();
    let bus = Bus::start(&own.path("bus"));
    let (mut server, addresses) =
        Server::start(JOB, PROGRAM, |_| vec![format!("dbus:{}#org.example.Job", bus.address)]);
    let mut watch = Running::start(&["watch", &addresses[0], "--count", "3", "--json"]);
    watch.tells("watching ");
    run(&["call", &addresses[0], "Go"]).good();
    for wanted in [Some("busy"), Some("ready"), None] {
        let told: serde_json::Value = serde_json::from_str(&watch.line()).unwrap();
        match wanted {
            Some(value) => {
                assert_eq!(told["fields"]["changed_properties"]["State"]["value"], value, "{told}")
            }
            None => assert_eq!(told["signal"], "Done", "{told}"),
        }
    }
    server.running.tells("attribute `State` does not fit: value");
    server.running.tells("attribute `Key` cannot be read");
}
