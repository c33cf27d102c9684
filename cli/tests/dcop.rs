//! What a user of `everywire dcopserver` can set.

use crate::support::{Running, Scratch, run_in};

const CONTRACT: &str =
    "<!DOCTYPE DCOP-IDL><DCOP-IDL><SOURCE>store.h</SOURCE><CLASS><NAME>Store</NAME><SUPER>DCOPObject</SUPER>
    <FUNC><TYPE>QByteArray</TYPE><NAME>give</NAME><ARG><TYPE>uint</TYPE><NAME>bytes</NAME></ARG></FUNC>
</CLASS></DCOP-IDL>";
const PROGRAM: &str = "import json, sys
for line in sys.stdin:
    call = json.loads(line)
    print(json.dumps({'id': call['id'], 'results': {'return': {'hex': 'ab' * call['arguments']['bytes']}}}), flush=True)
";

/// An answer that both sides take and the server does not pass on: the hint names the option that helps, and it does.
#[test]
fn the_server_passes_on_as_large_messages_as_the_user_says() {
    for (options, passes) in [(&[][..], false), (&["--max-message", "16MiB"][..], true)] {
        let scratch = Scratch::new();
        let env = [("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
        let mut arguments = vec!["dcopserver", "--socket"];
        let socket = scratch.path("socket");
        arguments.push(&socket);
        arguments.extend(options);
        let mut hub = Running::start_in(&env, &arguments);
        hub.line();
        let (contract, program) = (scratch.path("store.kidl"), scratch.path("store.py"));
        std::fs::write(&contract, CONTRACT).unwrap();
        std::fs::write(&program, PROGRAM).unwrap();
        let exec = format!("python3 {program}");
        let mut server = Running::start_in(
            &env,
            &["serve", &contract, "--exec", &exec, "--max-message", "16MiB", "--on", "dcop:store"],
        );
        let address = server.line();
        let give = |bytes: &str| {
            run_in(&env, &["call", "--max-message", "16MiB", "--json", &address, "give", bytes])
        };
        assert!(give("4100000").good().contains("\"ok\":true"), "it is below the server's own limit");
        let said = give("4200000");
        if passes {
            assert!(said.good().contains("\"ok\":true"));
        } else {
            let told = said.json();
            assert_eq!(told["error"]["kind"], "internal", "{told}");
            assert!(told["error"]["hint"].as_str().unwrap().contains("dcopserver --max-message"), "{told}");
        }
        // It did not cost the application its connection.
        assert!(give("1").good().contains("\"ok\":true"));
    }
}

/// Where the name is taken and another will do, the one that the server gave is told, and leads there.
#[test]
fn the_name_that_the_server_gave_is_told() {
    const PLAIN: &str = "<!DOCTYPE DCOP-IDL><DCOP-IDL><SOURCE>store.h</SOURCE><CLASS><NAME>Store</NAME><SUPER>DCOPObject</SUPER>
    <FUNC><TYPE>int</TYPE><NAME>which</NAME></FUNC></CLASS></DCOP-IDL>";
    let scratch = Scratch::new();
    let env = [("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
    let mut hub = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("socket")]);
    hub.line();
    let contract = scratch.path("store.kidl");
    std::fs::write(&contract, PLAIN).unwrap();
    let serve = |number: u32| {
        let program = scratch.path(&format!("store{number}.py"));
        let lines = format!(
            "import json, sys\nfor line in sys.stdin:\n    call = json.loads(line)\n    print(json.dumps({{'id': call['id'], 'results': {{'return': {number}}}}}), flush=True)\n"
        );
        std::fs::write(&program, lines).unwrap();
        let (exec, file) = (format!("python3 {program}"), scratch.path(&format!("ref{number}")));
        let on = "dcop:store?unique=no";
        let mut server = Running::start_in(
            &env,
            &["serve", &contract, "--exec", &exec, "--key", "shelf", "--ref-file", &file, "--on", on],
        );
        let address = server.line();
        (server, address, std::fs::read_to_string(file).unwrap())
    };
    let first = serve(1);
    let second = serve(2);
    // The file has the name of the interface before it.
    assert_eq!((first.1.as_str(), first.2.trim()), ("dcop:store/shelf", "Store\tdcop:store/shelf"));
    assert_eq!((second.1.as_str(), second.2.trim()), ("dcop:store-2/shelf", "Store\tdcop:store-2/shelf"));
    for (_, address, _) in [&first, &second] {
        let said = run_in(&env, &["call", address, "which"]);
        assert_eq!(said.good(), if *address == first.1 { "1" } else { "2" });
    }
}
