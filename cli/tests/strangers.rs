//! Clients that meet a server of another wire hear which protocol answers there.

use crate::support::{Running, Said, Scratch, data, run_in};
use everywire::{Kind, Node};
use everywire_dynamic::{CallError, DynamicObject, ObjectContract};
use everywire_peers::here;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A wire: how to serve on it, how to call on it, and what its servers are called.
#[derive(Clone, Copy)]
struct Wire {
    name: &'static str,
    /// An address to listen at over TCP, and its like at a socket.
    tcp: Option<&'static str>,
    unix: Option<&'static str>,
    protocol: &'static str,
    /// Whether one can ask there who is to be called.
    lists: bool,
}

const WIRES: [Wire; 6] = [
    Wire {
        name: "giop",
        tcp: Some("iiop://AT"),
        unix: Some("iiop+unix://AT"),
        protocol: "GIOP (CORBA)",
        lists: false,
    },
    Wire {
        name: "dbus",
        tcp: Some("dbus://AT?auth=anonymous"),
        unix: Some("dbus+unix://AT"),
        protocol: "D-Bus",
        lists: true,
    },
    Wire {
        name: "dcom",
        tcp: Some("dcom://AT?level=none"),
        unix: Some("dcom+unix://AT"),
        protocol: "DCE/RPC (DCOM)",
        lists: true,
    },
    Wire {
        name: "net.tcp",
        tcp: Some("net.tcp://AT?security=none"),
        unix: Some("net.uds://AT?security=none"),
        protocol: "net.tcp (WCF)",
        lists: true,
    },
    Wire {
        name: "http",
        tcp: Some("basic://AT?security=none"),
        unix: Some("basic+unix://AT"),
        protocol: "HTTP",
        lists: true,
    },
    Wire { name: "dcop", tcp: None, unix: Some("dcop"), protocol: "ICE (DCOP)", lists: true },
];

/// Whether a client of one does not belong to a server of the other.
fn are_strangers(client: &Wire, server: &Wire) -> bool {
    client.name != server.name
}

/// How long a server may take to say who it is: only one that never does is met by it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs the program, which is patient with servers that are to say who they are: each of these does, and the machine may be busy.
fn run_patiently(env: &[(&str, String)], arguments: &[&str]) -> Said {
    let patience = ("EVERYWIRE_PROBE_TIME", format!("{}s", PATIENCE.as_secs()));
    run_in(&[env, &[patience]].concat(), arguments)
}

/// What is wrong with what the library tells a caller of an operation, if anything is: the kind, the protocol's name, what to try.
fn unkind(address: &str, client: &Wire, server: &Wire) -> Option<String> {
    let node = Node::from(Node::builder().probe_time(PATIENCE).build());
    let object = match DynamicObject::with_contract(&node, address, contract()) {
        Ok(object) => object.with_deadline(Some(Duration::from_secs(3))),
        Err(error) => return Some(format!("{address}: {error:?}")),
    };
    let failure = match object.call("title", json!([])) {
        Err(CallError::Failed(failure)) => node.diagnose(failure, object.object().reference()),
        other => return Some(format!("{address}: {other:?}")),
    };
    let word = server.protocol.split(' ').next().unwrap();
    let good = failure.kind() == Kind::WrongWire
        && failure.message().contains(word)
        && failure.hint().is_some_and(|hint| hint.starts_with("use an address that begins with"));
    (!good).then(|| {
        format!("the library, client of {} at a server of {}: {failure:?}", client.name, server.name)
    })
}

fn contract() -> ObjectContract {
    let read = everywire_idl::read(std::path::Path::new(&data("bank.idl"))).unwrap();
    ObjectContract::new(read, "bank.idl")
}

/// What is wrong with what a client said, if anything is.
fn silence(said: &Said, client: &Wire, server: &Wire) -> Option<String> {
    // Some clients know the other protocol by its first octets, and use the first word of its name.
    let word = server.protocol.split(' ').next().unwrap();
    unnamed(said, word)
        .map(|err| format!("a client of {} at a server of {}: {err}", client.name, server.name))
}

/// What a client said, if it does not name this in its reason.
fn unnamed(said: &Said, word: &str) -> Option<String> {
    let why = said.err.lines().find(|line| line.starts_with("  why: ")).unwrap_or_default();
    let named = said.code != 0 && why.contains(word);
    (!named).then(|| format!("{}{}", said.out, said.err))
}

/// What is said of a server that says nothing.
const SILENCE: &str = "no protocol that is known here";

/// A server that none of us wrote, or one that is none of a wire's.
struct Foreign {
    name: &'static str,
    /// What clients are to say of it.
    word: &'static str,
    at: String,
    child: Option<Child>,
}

impl Foreign {
    /// A program that prints a line with its port: behind `mark`, up to whatever is no digit.
    fn program(name: &'static str, word: &'static str, command: &mut Command, mark: &str) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.by_ref().map(Result::unwrap).find(|line| line.contains(mark)).unwrap();
        // It may print more.
        std::thread::spawn(move || lines.count());
        let port: String =
            line.split(mark).nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        Self { name, word, at: format!("127.0.0.1:{port}"), child: Some(child) }
    }

    /// One that says this to everybody first, and hears out whoever is there.
    fn made(name: &'static str, word: &'static str, says: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let _ = stream.write_all(says);
                    let _ = std::io::copy(&mut stream, &mut std::io::sink());
                });
            }
        });
        Self { name, word, at, child: None }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A certificate and its key, of this test alone.
fn certificate(scratch: &Scratch) -> (String, String) {
    let (cert, key) = (scratch.path("cert.pem"), scratch.path("key.pem"));
    let words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"];
    let done = Command::new("openssl").args(words).args(["-keyout", &key, "-out", &cert]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    (cert, key)
}

#[test]
fn each_client_names_what_is_no_server_of_a_wire() {
    if !here("each_client_names_what_is_no_server_of_a_wire", &["openssl", "python3"]) {
        return;
    }
    let scratch = Scratch::new();
    let (cert, key) = certificate(&scratch);
    let servers = [
        Foreign::program(
            "python3 -m http.server",
            "HTTP",
            // By itself it lets five wait that it has not accepted yet; the others try again a second later.
            Command::new("python3").current_dir(scratch.path("")).args(["-u", "-c"]).arg(
                "import http.server as h; h.ThreadingHTTPServer.request_queue_size = 128; \
                 h.test(h.SimpleHTTPRequestHandler, h.ThreadingHTTPServer, port=0, bind='127.0.0.1')",
            ),
            " port ",
        ),
        Foreign::program(
            "openssl s_server",
            "TLS",
            Command::new("openssl").args([
                "s_server",
                "-accept",
                "127.0.0.1:0",
                "-www",
                "-cert",
                &cert,
                "-key",
                &key,
            ]),
            "ACCEPT 127.0.0.1:",
        ),
        Foreign::made("a server of SSH", "SSH", b"SSH-2.0-OpenSSH_9.2p1\r\n"),
        Foreign::made("a server of mail", "SMTP or FTP", b"220 mail.example ESMTP\r\n"),
        Foreign::made("a silent server", SILENCE, b""),
    ];
    let contract = data("bank.idl");
    let over_tls = Wire { name: "https", tcp: Some("basics://AT"), ..WIRES[4] };
    let clients: Vec<&Wire> = WIRES.iter().filter(|wire| wire.tcp.is_some()).chain([&over_tls]).collect();
    let ask = |client: &Wire, server: &Foreign| -> Vec<String> {
        let place = client.tcp.unwrap().replace("AT", &server.at).replace("auth=anonymous", "");
        let (place, options) = place.split_once('?').unwrap_or((&place, ""));
        let question = if options.is_empty() { "" } else { "?" };
        let address = format!("{place}/Account{question}{options}");
        let list = format!("{place}{question}{options}");
        let mut verbs = vec![
            vec!["call", &address, "title", "-c", &contract, "--deadline", "1s"],
            vec!["describe", &address, "--deadline", "1s"],
        ];
        if client.lists {
            verbs.push(vec!["list", &list, "--deadline", "1s"]);
        }
        let run = if server.word == SILENCE { run_in } else { run_patiently };
        let said = verbs.iter().map(|words| (words[0], run(&[], words)));
        let wrong = said.filter_map(|(verb, said)| Some((verb, unnamed(&said, server.word)?)));
        wrong.map(|(verb, err)| format!("{verb} by {} at {}: {err}", client.name, server.name)).collect()
    };
    let silent: Vec<String> = std::thread::scope(|scope| {
        let pairs = servers.iter().flat_map(|server| clients.iter().map(move |client| (*client, server)));
        // Who meets a server of its own protocol gets that one's answer.
        let strange = pairs.filter(|(client, server)| {
            !matches!((client.name, server.word), ("http", "HTTP") | ("https", "TLS"))
        });
        let asked: Vec<_> =
            strange.map(|(client, server)| scope.spawn(move || ask(client, server))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap()).collect()
    });
    assert!(silent.is_empty(), "{}", silent.join("\n"));
    // What says who it is, is told by `status` too.
    let told = run_patiently(&[], &["status", &servers[2].at]);
    assert!(told.code == 6 && told.out.contains("protocol   SSH"), "{}{}", told.out, told.err);
    assert!(told.out.contains("SSH-2.0-OpenSSH_9.2p1"), "{}", told.out);
}

/// What each of these clients did not name: they all ask at once, since most of them wait.
fn each<'w>(
    clients: impl Iterator<Item = &'w Wire>,
    ask: &(dyn Fn(&Wire) -> Vec<String> + Sync),
) -> Vec<String> {
    std::thread::scope(|scope| {
        let asked: Vec<_> = clients.map(|client| scope.spawn(move || ask(client))).collect();
        asked.into_iter().flat_map(|asked| asked.join().unwrap()).collect()
    })
}

#[test]
fn each_client_names_the_server_of_each_other_wire_over_tcp() {
    let contract = data("bank.idl");
    let exec = format!("python3 {}", data("bank.py"));
    let mut silent = Vec::new();
    for server in WIRES.iter().filter(|wire| wire.tcp.is_some()) {
        let on = server.tcp.unwrap().replace("AT", "127.0.0.1:0");
        let words = ["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on, "--json"];
        let mut running = Running::start(&words);
        let told: serde_json::Value = serde_json::from_str(&running.line()).unwrap();
        let address = told["value"]["addresses"][0].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        let port = address.split("127.0.0.1:").nth(1).unwrap().split(['/', '?']).next().unwrap().to_owned();
        let ask = |client: &Wire| {
            let mut silent = Vec::new();
            let (scheme, options) = client.tcp.unwrap().split_once("AT").unwrap();
            let options = if client.name == "dbus" { "" } else { options };
            let address = format!("{scheme}127.0.0.1:{port}/Account{options}");
            let said = run_patiently(&[], &["call", &address, "title", "-c", &contract, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server));
            silent.extend(unkind(&address, client, server));
            let said = run_patiently(&[], &["describe", &address, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server).map(|said| format!("describe: {said}")));
            if client.lists {
                let said =
                    run_patiently(&[], &["list", &address.replace("/Account", ""), "--deadline", "3s"]);
                silent.extend(silence(&said, client, server).map(|said| format!("list: {said}")));
            }
            silent
        };
        let clients = WIRES.iter().filter(|wire| wire.tcp.is_some() && are_strangers(wire, server));
        silent.extend(each(clients, &ask));
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn each_client_names_the_server_of_each_other_wire_at_a_socket() {
    let (contract, scratch) = (data("bank.idl"), Scratch::new());
    let exec = format!("python3 {}", data("bank.py"));
    let mut silent = Vec::new();
    for server in &WIRES {
        let socket = scratch.path(&format!("{}.sock", server.name));
        let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
        let on = server.unix.unwrap().replace("AT", &socket);
        let words = match server.name {
            "dcop" => vec!["dcopserver", "--socket", &socket],
            _ => vec!["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on],
        };
        let mut running = Running::start_in(&env, &words);
        running.line();
        let ask = |client: &Wire| {
            let mut silent = Vec::new();
            let place = client.unix.unwrap().replace("AT", &socket);
            let (place, options) = place.split_once('?').unwrap_or((&place, ""));
            let question = if options.is_empty() { "" } else { "?" };
            let address = match client.name {
                "dcop" => "dcop:bank/account".to_owned(),
                "net.tcp" => format!("{place}/Account{question}{options}"),
                _ => format!("{place}#Account{question}{options}"),
            };
            let env = [("DCOPSERVER", format!("local/here:{socket}")), env[1].clone()];
            let said = run_patiently(&env, &["call", &address, "title", "-c", &contract, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server));
            // Where the server of DCOP is stands in the environment, which is that of the whole test.
            if client.name != "dcop" {
                silent.extend(unkind(&address, client, server));
            }
            let said = run_patiently(&env, &["describe", &address, "--deadline", "3s"]);
            silent.extend(silence(&said, client, server).map(|said| format!("describe: {said}")));
            if client.lists {
                let place =
                    address.replace("#Account", "").replace("/Account", "").replace("bank/account", "");
                let said = run_patiently(&env, &["list", &place, "--deadline", "3s"]);
                silent.extend(silence(&said, client, server).map(|said| format!("list: {said}")));
            }
            silent
        };
        silent.extend(each(WIRES.iter().filter(|wire| are_strangers(wire, server)), &ask));
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn a_server_of_the_right_wire_is_no_stranger() {
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    let words = ["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", "iiop://127.0.0.1:0"];
    let mut running = Running::start(&words);
    let address = running.line();
    let missing = run_in(&[], &["call", &address.replace("Account", "Nobody"), "title", "-c", &contract]);
    assert!(missing.code != 0 && !missing.err.contains("answers there"), "{}", missing.err);
    let listed = json!(run_in(&[], &["call", "iiop://127.0.0.1:1/x", "title", "-c", &contract]).err);
    assert!(!listed.to_string().contains("answers there"), "{listed}");
}

/// What the server says by its alert is the reason; that TLS answers there is none.
#[test]
fn a_client_without_a_certificate_is_refused_and_met_no_stranger() {
    if !here("a_client_without_a_certificate_is_refused_and_met_no_stranger", &["openssl", "python3"]) {
        return;
    }
    let scratch = Scratch::new();
    let (cert, key) = certificate(&scratch);
    let both = [&key, &cert].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    let own = scratch.path("own.pem");
    std::fs::write(&own, both).unwrap();
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let (contract, exec) = (data("bank.idl"), format!("python3 {}", data("bank.py")));
    for scheme in ["iiops", "dbus+tls", "basics"] {
        let on = format!("{scheme}://127.0.0.1:0?cert={own}&clients={cert}");
        let mut server =
            Running::start(&["serve", &contract, "--interface", "Account", "--exec", &exec, "--on", &on]);
        let address = server.line();
        let mark = if address.contains('?') { '&' } else { '?' };
        let said = run_in(&[], &["call", &format!("{address}{mark}insecure=on"), "title", "-c", &contract]);
        assert_eq!(said.code, 4, "{scheme}: {}", said.err);
        assert!(said.err.contains("CertificateRequired"), "{scheme}: {}", said.err);
        assert!(!said.err.contains("answers there"), "{scheme}: {}", said.err);
    }
}
