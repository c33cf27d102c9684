//! TLS under the wires: IIOP with omniORB and JacORB, both ways, D-Bus with libdbus and GDBus through socat, and each with ourselves; what goes
//! wrong there.

use crate::common::foreign::{Beside, PATIENCE, contract, glib_peer, patient, run_with, script, until};
use crate::common::galley::{self, PATH};
use crate::common::papers::Papers;
use crate::common::{IN_ORDER, Server, omniorb, scratch};
use crate::in_process::pollster;
use crate::omniorb::{check_bench, check_kitchen, check_pantry};
use everywire::layer::AllowList;
use everywire::model::Endpoint;
use everywire::{Kind, Node, Notice, Ref, Remote};
use everywire_broker::{Broker, Config};
use everywire_tests::bench::{Benchmarking, BenchmarkingAsync};
use everywire_tests::dbus_kitchen::org::example::Kitchen;
use everywire_tests::peers::{cached, here, root};
use everywire_tests::servants::dbus::KEY;
use everywire_tests::servants::{Bench, Galley};
use everywire_tests::workshop::once;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What omniORB's programs load to speak TLS.
const LIBRARY: &str = "libomnisslTP4.so.2";

/// References name no authority, so the process does. Each test is a process of its own.
fn trust(papers: &Papers, more: &str) {
    let options = format!("ca={}{more}", papers.path("ca.pem").display());
    // SAFETY: no other thread of this process runs yet that reads the environment.
    unsafe { std::env::set_var("EVERYWIRE_TLS", options) };
}

/// An address of ours with TLS.
fn ours(papers: &Papers, more: &str) -> String {
    format!("iiops://127.0.0.1:0?{}{more}", papers.listening())
}

/// Somebody who calls: the options of an address that name its certificate.
fn caller(papers: &Papers) -> String {
    papers.certify("caller");
    let [cert, key] = ["caller.pem", "caller.key"].map(|name| papers.path(name));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
    format!("&cert={}&key={}", cert.display(), key.display())
}

/// Options of omniORB's programs: whom they trust, and who they are.
fn omni_options(papers: &Papers, name: &str) -> Vec<String> {
    let both = papers.path(&format!("{name}-both.pem"));
    let parts =
        ["key", "pem"].map(|kind| std::fs::read(papers.path(&format!("{name}.{kind}"))).expect("a file"));
    std::fs::write(&both, parts.concat()).expect("a file");
    let (ca, both) = (papers.path("ca.pem").display().to_string(), both.display().to_string());
    // It reads no key without a password, and takes any for a key that has none.
    ["-ORBsslCAFile", &ca, "-ORBsslKeyFile", &both, "-ORBsslKeyPassword", "none"].map(str::to_owned).into()
}

#[test]
fn omniorb_calls_our_server_over_tls() {
    let test = "omniorb_calls_our_server_over_tls";
    let (Some(peer), Some(papers)) = (omniorb(test), Papers::get(test)) else { return };
    if !here(test, &["omniorb-tls"]) {
        return;
    }
    let dir = scratch("tls-ours");
    let _ = caller(papers);
    let clients = format!("&clients={}", papers.path("ca.pem").display());
    let server = Server::ours(&ours(papers, &clients), &dir, 128);
    for mode in [&["check", "--largest", "1048576"][..], &["check-interop"]] {
        let output = Command::new(&peer.client)
            .env("LD_PRELOAD", LIBRARY)
            .arg(server.references())
            .args(mode)
            .args(["-ORBgiopMaxMsgSize", "134217728", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
            .args(IN_ORDER)
            .args(omni_options(papers, "caller"))
            .args(["-ORBclientTransportRule", "* ssl,tcp"])
            .output()
            .expect("it starts");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{mode:?}:\n{out}{err}");
    }
}

#[test]
fn we_call_omniorb_s_server_over_tls() {
    let test = "we_call_omniorb_s_server_over_tls";
    let (Some(peer), Some(papers)) = (omniorb(test), Papers::get(test)) else { return };
    if !here(test, &["omniorb-tls"]) {
        return;
    }
    // It asks for certificates unless told otherwise.
    trust(papers, &caller(papers));
    let dir = scratch("tls-theirs");
    let mut command = Command::new(&peer.server);
    command.env("LD_PRELOAD", LIBRARY).args(omni_options(papers, "server"));
    let server = Server::omniorb_by(command, "giop:ssl:127.0.0.1:", &dir);
    let reference = Node::new().parse(&server.reference("benchmarking")).expect("it parses");
    let endpoints: Vec<&Endpoint> =
        reference.profiles.iter().flat_map(|profile| &profile.endpoints).collect();
    assert!(endpoints.iter().all(|endpoint| endpoint.layer().is_some()), "{endpoints:?}");
    check_bench(&server);
    check_kitchen(&server);
    check_pantry(&server);
    // The same by what stands behind the reference, which goes before what the process says.
    let node = Node::new();
    for (options, kind) in [("insecure=on", None), ("ca=/dev/null", Some(Kind::BadArgument))] {
        let text = format!("{}?{options}", server.reference("benchmarking"));
        let called = node.connect::<dyn Benchmarking>(&text).expect("it parses").in_out_int_call(41);
        match (called, kind) {
            (Ok(42), None) => {}
            (Err(failure), Some(kind)) if failure.kind() == kind => {}
            other => panic!("{options}: {other:?}"),
        }
    }
}

/// A client and a server on omniORB speak TLS with a broker between them, which has a certificate of its own on each side. Without a contract, so what
/// passes in bodies leads past it.
#[test]
fn omniorb_calls_omniorb_through_a_broker_with_tls_on_both_sides() {
    let test = "omniorb_calls_omniorb_through_a_broker_with_tls_on_both_sides";
    let (Some(peer), Some(papers)) = (omniorb(test), Papers::get(test)) else { return };
    if !here(test, &["omniorb-tls"]) {
        return;
    }
    // The server asks for certificates. The broker does not: the server calls back what the client got here, with a certificate for serving only.
    trust(papers, &caller(papers));
    let dir = scratch("tls-broker");
    let mut command = Command::new(&peer.server);
    command.env("LD_PRELOAD", LIBRARY).args(omni_options(papers, "server"));
    let server = Server::omniorb_by(command, "giop:ssl:127.0.0.1:", &dir);
    let text = std::fs::read_to_string(server.references()).expect("references");
    let routes: String = text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, to)| format!("[[route]]\nname = \"{name}\"\nto = \"{to}\"\n"))
        .collect();
    let text = format!("[listen.front]\naddress = \"{}\"\n{routes}", ours(papers, ""));
    let config = Config::parse(&text, "broker.toml", &dir).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let broker = Broker::start(config, Arc::new(|line| eprintln!("{line}")))
        .unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    let file = dir.join("through");
    let lines: String =
        broker.references().iter().map(|(name, _, foreign)| format!("{name}\t{foreign}\n")).collect();
    std::fs::write(&file, lines).expect("a file");
    for mode in [&["check", "--largest", "1048576"][..], &["check-interop"]] {
        let said = run_with(
            Command::new(&peer.client)
                .env("LD_PRELOAD", LIBRARY)
                .arg(&file)
                .args(mode)
                .args(["-ORBgiopMaxMsgSize", "134217728", "-ORBendPoint", "giop:tcp:127.0.0.1:"])
                .args(IN_ORDER)
                .args(omni_options(papers, "caller"))
                .args(["-ORBclientTransportRule", "* ssl,tcp"]),
            b"",
        );
        assert!(said.success, "{mode:?}:\n{}{}", said.out, said.err);
    }
    // Both checks have called the objects here, and not only what was passed.
    let page = broker.metrics();
    for name in ["benchmarking", "Kitchen"] {
        let done = page.lines().find_map(|line| {
            line.strip_prefix(&format!("everywire_broker_calls_total{{route=\"{name}\",outcome=\"done\"}} "))
        });
        assert!(done.is_some_and(|count| count != "0"), "{name}: {page}");
    }
}

#[test]
fn we_call_ourselves_over_tls() {
    let test = "we_call_ourselves_over_tls";
    let Some(papers) = Papers::get(test) else { return };
    trust(papers, "");
    let dir = scratch("tls-own");
    let server = Server::ours(&ours(papers, ""), &dir, 128);
    assert!(server.address.starts_with("iiops://127.0.0.1:"), "{}", server.address);
    assert!(
        !server.address.contains("key="),
        "files of the server are nothing to others: {}",
        server.address
    );
    check_bench(&server);
    check_kitchen(&server);
    check_pantry(&server);
}

/// The reference of a server that has a port without TLS, too, and demands TLS: it is never called in the clear, even where that port
/// alone answers.
#[test]
fn a_server_that_demands_tls_is_not_called_in_the_clear() {
    let Some(papers) = Papers::get("a_server_that_demands_tls_is_not_called_in_the_clear") else { return };
    let server = Node::new();
    server.listen("iiop://127.0.0.1:0").expect("it listens");
    server.listen(&ours(papers, "")).expect("it listens");
    let exported = server.export::<dyn Benchmarking>("bench", Arc::new(Bench));
    let both = exported.reference();
    // The component of SSLIOP: its byte order, what is supported, what is required, the port. Ours says by the lowest bit of the
    // first that calls in the clear are taken.
    let changed = |change: fn(&mut [u8])| {
        let mut reference = both.clone();
        let components = &mut reference.profiles[0].components;
        let (_, data) = components.iter_mut().find(|(tag, _)| *tag == 20).expect("SSLIOP's component");
        let mut octets = data.to_vec();
        assert_eq!((octets.len(), octets[0]), (8, u8::from(cfg!(target_endian = "little"))));
        change(&mut octets);
        *data = octets.into();
        server.print(&reference)
    };
    let call = |reference: &str| {
        let object = Node::new().connect::<dyn Benchmarking>(reference).expect("it parses");
        object.in_out_int_call(41)
    };
    fn demand(octets: &mut [u8]) {
        let supports = u16::from_ne_bytes([octets[2], octets[3]]);
        octets[2..4].copy_from_slice(&(supports & !1).to_ne_bytes());
    }
    assert_eq!(call(&server.print(both)).expect("in the clear"), 42);
    let demanding = changed(demand);
    let ca = papers.path("ca.pem");
    assert_eq!(call(&format!("{demanding}?ca={}", ca.display())).expect("over TLS"), 42);
    // Nobody has said whom to trust.
    let failure = call(&demanding).expect_err("not in the clear");
    assert_eq!(failure.kind(), Kind::Refused, "{failure}");
    // Nobody is at the port with TLS: that without is no way out.
    let gone = changed(|octets| {
        demand(octets);
        octets[6..8].copy_from_slice(&1_u16.to_ne_bytes());
    });
    call(&gone).expect_err("not in the clear");
}

/// The repository's references name no files of the caller's: what the address says of TLS holds for them, too.
#[test]
fn an_object_tells_its_contract_over_tls() {
    let Some(papers) = Papers::get("an_object_tells_its_contract_over_tls") else { return };
    let server = Node::new();
    let at = server.listen(&ours(papers, "")).expect("it listens");
    server.export::<dyn Benchmarking>("bench", Arc::new(Bench));
    let place = at.split(['?']).next().expect("a place").trim_end_matches('/');
    let address = format!("{place}/bench?ca={}", papers.path("ca.pem").display());
    let object = Node::new().object(&address).expect("an address");
    let told = everywire::wires::named("giop").expect("the wire").discover(&object).expect("a contract");
    let named: Vec<&str> = told.contract.interfaces().map(|interface| &*interface.id).collect();
    assert!(named.contains(&&*<dyn Benchmarking as Remote>::interface().id), "{named:?}");
}

#[test]
fn accounts_are_certificates_and_both_faces_wait_for_the_handshake() {
    let test = "accounts_are_certificates_and_both_faces_wait_for_the_handshake";
    let Some(papers) = Papers::get(test) else { return };
    let (ca, own) = (papers.path("ca.pem"), caller(papers));
    let print = papers.openssl("x509 -in caller.pem -noout -fingerprint -sha1");
    let digits = print.trim().rsplit('=').next().expect("a fingerprint").replace(':', "").to_lowercase();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let observer =
        Arc::new(move |notice: &Notice| heard.lock().expect("no panic").push(format!("{notice:?}")));
    let only = AllowList::new().only(&format!("user:thumbprint {digits}"), "*").expect("a rule");
    let server: Node = Node::builder().observer(observer).layer(only).build().into();
    server.export::<dyn Benchmarking>("bench", Arc::new(Bench));
    let address = server.listen(&ours(papers, &format!("&clients={}", ca.display()))).expect("it listens");
    let known = format!("ca={}{own}", ca.display());
    let node = Node::new();
    let object = node.connect::<dyn Benchmarking>(&format!("{address}bench?{known}")).expect("it parses");
    assert_eq!(object.in_out_int_call(1).expect("it is let in"), 2);
    // By another name of the server, and so on a connection of its own.
    let waiting = node
        .connect::<dyn BenchmarkingAsync>(&format!("{address}bench?{known}&identity=localhost"))
        .expect("it parses");
    pollster(async { assert_eq!(waiting.in_out_int_call(2).await.expect("it is let in"), 3) });
    // Whoever shows nothing is not let in.
    let stranger = format!("{address}bench?ca={}", ca.display());
    let failure = node.connect::<dyn Benchmarking>(&stranger).expect("it parses").void_call().unwrap_err();
    assert_eq!(failure.kind(), Kind::Refused, "{failure:?}");
    until("the server tells of it", || {
        seen.lock().expect("no panic").iter().any(|said: &String| said.contains("shows no certificate"))
    });
}

#[test]
fn the_wrong_port_is_told_as_such() {
    let test = "the_wrong_port_is_told_as_such";
    let Some(papers) = Papers::get(test) else { return };
    let dir = scratch("tls-wrong");
    let secured = Server::ours(&ours(papers, ""), &dir.join("secured"), 4);
    let plain = Server::ours("iiop://127.0.0.1:0", &dir.join("plain"), 4);
    let node = Node::new();
    let call = |address: String| {
        node.connect::<dyn Benchmarking>(&address).expect("it parses").void_call().expect_err("it is wrong")
    };
    let failure = call(secured.address.replacen("iiops", "iiop", 1) + "x");
    assert!(failure.to_string().contains("TLS"), "{failure:?}");
    secured.complains("NotTls");
    let ca = papers.path("ca.pem");
    let failure = call(plain.address.replacen("iiop", "iiops", 1) + "x?ca=" + &ca.display().to_string());
    assert!(failure.to_string().contains("is not TLS"), "{failure:?}");
    assert!(failure.hint().is_some_and(|hint| hint.contains("without TLS")), "{failure:?}");
    plain.complains("NotGiop");
}

#[test]
fn a_peer_that_stalls_in_its_handshake_is_cut_off() {
    let test = "a_peer_that_stalls_in_its_handshake_is_cut_off";
    let Some(papers) = Papers::get(test) else { return };
    let dir = scratch("tls-stalls");
    let patience = std::time::Duration::from_millis(300);
    let server = Server::impatient(&ours(papers, ""), &dir, 4, patience);
    let place = server.address.trim_start_matches("iiops://").trim_end_matches('/').to_owned();
    // Nothing; the beginning of a record; a whole handshake without a message behind it.
    for words in [&b""[..], &[0x16, 3, 1, 2, 0, 1]] {
        let mut peer = TcpStream::connect(&place).expect("it listens");
        peer.set_read_timeout(Some(PATIENCE)).expect("a socket");
        // On a busy machine its time may be over by then.
        let _ = peer.write_all(words);
        let mut rest = Vec::new();
        // Reset or ended, both are ends.
        let _ = peer.read_to_end(&mut rest);
        server.refuses_by("first_message");
    }
    let mut child = Command::new("openssl")
        .args(["s_client", "-connect", &place, "-CAfile"])
        .arg(papers.path("ca.pem"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    server.refuses_by("first_message");
    child.wait().expect("it ends when the server does");
}

/// JacORB's client and server; or nothing, said loudly.
fn jacorb(test: &str) -> Option<impl Fn(&[&str]) -> Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let libraries = format!("{}/lib/*", cached(test, "jacorb")?.display());
    let source = script("tls_JacORB.java");
    let classes = once(env!("CARGO_TARGET_TMPDIR"), "tls-jacorb", std::slice::from_ref(&source), |fresh| {
        std::fs::create_dir_all(fresh).expect("a directory");
        let mut javac = Command::new("javac");
        javac.args(["-nowarn", "-encoding", "UTF-8", "-cp", &libraries, "-d"]).arg(fresh).arg(&source);
        let said = run_with(&mut javac, b"");
        assert!(said.success, "{}{}", said.out, said.err);
    });
    Some(move |arguments: &[&str]| {
        let mut command = Command::new("java");
        command.current_dir(scratch("jacorb")).args(["-XX:TieredStopAtLevel=1", "-cp"]);
        command.arg(format!("{}:{libraries}", classes.display())).arg("tls_JacORB").args(arguments);
        command
    })
}

/// A key store of Java's: the authority, and the certificate of this name.
fn store(papers: &Papers, name: &str) -> PathBuf {
    let store = papers.path(&format!("{name}.jks"));
    let _ = std::fs::remove_file(&store);
    papers.openssl(&format!(
        "pkcs12 -export -in {name}.pem -inkey {name}.key -name own -passout pass:changeit -out {}",
        papers.path("own.p12").display()
    ));
    for arguments in [
        "-importcert -noprompt -alias ca -file ca.pem -storetype JKS",
        "-importkeystore -noprompt -srckeystore own.p12 -srcstoretype PKCS12 -srcstorepass changeit -deststoretype JKS",
    ] {
        let target = if arguments.contains("keystore ") { "-destkeystore" } else { "-keystore" };
        let password = if arguments.contains("keystore ") { "-deststorepass" } else { "-storepass" };
        let mut keytool = Command::new("keytool");
        keytool.args(arguments.split(' ')).arg(target).arg(&store).args([password, "changeit"]);
        let said = run_with(keytool.current_dir(papers.directory()), b"");
        assert!(said.success, "{}{}", said.out, said.err);
    }
    store
}

#[test]
fn jacorb_calls_our_server_over_tls() {
    let test = "jacorb_calls_our_server_over_tls";
    let (Some(java), Some(papers)) = (jacorb(test), Papers::get(test)) else { return };
    let dir = scratch("tls-jacorb-calls");
    let _ = caller(papers);
    let store = store(papers, "caller").display().to_string();
    for clients in [String::new(), format!("&clients={}", papers.path("ca.pem").display())] {
        let server = Server::ours(&ours(papers, &clients), &dir, 4);
        let said = run_with(&mut java(&["call", &server.reference("benchmarking"), &store]), b"");
        assert!(said.success, "{}{}{}", said.out, said.err, server.log());
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!(lines, ["is_a true", "in_out_int_call 42", "in_out_string_call true"], "{}", said.err);
    }
}

/// A process that ends with this value.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn we_call_jacorb_s_server_over_tls() {
    let test = "we_call_jacorb_s_server_over_tls";
    let (Some(java), Some(papers)) = (jacorb(test), Papers::get(test)) else { return };
    let dir = scratch("tls-jacorb-serves");
    let (file, store) = (dir.join("reference"), store(papers, "server"));
    let mut command = java(&["serve", &file.display().to_string(), &store.display().to_string()]);
    let mut child = Ends(command.stdin(Stdio::null()).spawn().expect("it starts"));
    until("it serves", || {
        assert!(child.0.try_wait().expect("it can be asked").is_none(), "the server ended");
        file.exists()
    });
    let reference = std::fs::read_to_string(&file).expect("a reference");
    let node = patient();
    let text = format!("{}?ca={}", reference.trim(), papers.path("ca.pem").display());
    let object = node.connect::<dyn Benchmarking>(&text).expect("it parses");
    assert_eq!(object.in_out_int_call(41).expect("it answers"), 42);
    let large = "x".repeat(300_000);
    assert_eq!(object.in_out_string_call(&large).expect("it answers"), large);
    let failure = object.void_call().expect_err("it serves no such operation");
    assert_eq!(failure.kind(), Kind::NoOperation, "{failure}");
}

/// JacORB on both sides, TLS on both, and the broker between them, without a contract and with one.
#[test]
fn jacorb_calls_jacorb_through_a_broker_with_tls_on_both_sides() {
    let test = "jacorb_calls_jacorb_through_a_broker_with_tls_on_both_sides";
    let (Some(java), Some(papers)) = (jacorb(test), Papers::get(test)) else { return };
    trust(papers, &caller(papers));
    let dir = scratch("tls-jacorb-broker");
    let (file, store_of_server) = (dir.join("reference"), store(papers, "server"));
    let mut command = java(&["serve", &file.display().to_string(), &store_of_server.display().to_string()]);
    let mut child = Ends(command.stdin(Stdio::null()).spawn().expect("it starts"));
    until("it serves", || {
        assert!(child.0.try_wait().expect("it can be asked").is_none(), "the server ended");
        file.exists()
    });
    let target = std::fs::read_to_string(&file).expect("a reference");
    let store = store(papers, "caller").display().to_string();
    let typed = format!(
        "contract = \"{}\"\ninterface = \"benchmarking\"\n",
        root().join("derby/contracts/bench.idl").display()
    );
    for contract in ["", typed.as_str()] {
        let text = format!(
            "[listen.front]\naddress = \"{}\"\n[[route]]\nname = \"bench\"\nto = \"{}\"\n{contract}",
            ours(papers, ""),
            target.trim(),
        );
        let config =
            Config::parse(&text, "broker.toml", &dir).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let broker = Broker::start(config, Arc::new(|line| eprintln!("{line}")))
            .unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
        let said = run_with(&mut java(&["call", &broker.references().remove(0).2, &store]), b"");
        assert!(said.success, "{contract}{}{}", said.out, said.err);
        let lines: Vec<&str> = said.out.lines().collect();
        assert_eq!(
            lines,
            ["is_a true", "in_out_int_call 42", "in_out_string_call true"],
            "{contract}{}",
            said.err
        );
    }
}

#[test]
fn d_bus_between_two_of_ours_over_tls() {
    let test = "d_bus_between_two_of_ours_over_tls";
    let Some(papers) = Papers::get(test) else { return };
    let (ca, own, cert) = (papers.path("ca.pem"), caller(papers), papers.path("caller.pem"));
    let socket = scratch("tls-dbus").join("s");
    let clients = format!("&clients={}", ca.display());
    // By the cookie as over TCP; by a certificate, which is all that the server asks for; over a Unix socket.
    for (at, clients, own) in [
        ("127.0.0.1:0".to_owned(), "", ""),
        ("127.0.0.1:0".to_owned(), clients.as_str(), own.as_str()),
        (socket.display().to_string(), "", ""),
    ] {
        let over = if at.starts_with('/') { "tls+unix" } else { "tls" };
        let server = Node::new();
        let address = server
            .listen(&format!("dbus+{over}://{at}?{}{clients}", papers.listening()))
            .expect("it listens");
        assert!(address.starts_with(&format!("dbus+{over}://")) && !address.contains("key="), "{address}");
        Galley::export(&server, KEY);
        let client = Node::new();
        let text = match address.split_once('#') {
            Some((place, _)) => format!("{place}?ca={}{own}#{KEY}", ca.display()),
            None => format!("{}/{KEY}?ca={}{own}", address.trim_end_matches('/'), ca.display()),
        };
        let kitchen: Ref<dyn Kitchen> = client.connect(&text).expect("it parses");
        galley::values(&*kitchen);
        galley::signals(&kitchen, 20);
        galley::properties(&client, &kitchen);
        let failure = client
            .connect::<dyn Kitchen>(&text.replace(&ca.display().to_string(), &cert.display().to_string()))
            .expect("it parses")
            .title()
            .expect_err("nobody vouches for the server");
        assert_eq!(failure.kind(), Kind::Refused, "{failure:?}");
    }
}

/// socat that listens at one address and passes to another, and what it says about where it listens: `AF=2 127.0.0.1:PORT`. A socket's file
/// is there before somebody listens at it, so only socat's word counts.
fn socat(from: &str, to: &str) -> (Ends, String) {
    let mut socat = Ends(
        Command::new("socat")
            .args(["-d", "-d", from, to])
            .stderr(Stdio::piped())
            .spawn()
            .expect("socat starts"),
    );
    let mut lines = BufReader::new(socat.0.stderr.take().expect("piped")).lines();
    let place = lines
        .find_map(|line| Some(line.ok()?.split_once("listening on ")?.1.trim().to_owned()))
        .expect("socat listens");
    std::thread::spawn(move || lines.for_each(drop));
    (socat, place)
}

#[test]
fn libdbus_calls_our_d_bus_server_through_socat() {
    let test = "libdbus_calls_our_d_bus_server_through_socat";
    let Some(papers) = Papers::get(test) else { return };
    if !here(test, &["socat", "dbus-tools"]) {
        return;
    }
    let server = Node::new();
    let address =
        server.listen(&format!("dbus+tls://127.0.0.1:0?{}", papers.listening())).expect("it listens");
    Galley::export(&server, KEY);
    let place = address.trim_start_matches("dbus+tls://").trim_end_matches('/');
    let socket = scratch("tls-libdbus").join("s");
    let from = format!("UNIX-LISTEN:{},fork", socket.display());
    let (_socat, _) = socat(&from, &format!("OPENSSL:{place},cafile={}", papers.path("ca.pem").display()));
    let mut send = Command::new("dbus-send");
    send.args([&format!("--peer=unix:path={}", socket.display()), "--print-reply", PATH]);
    send.args(["org.freedesktop.DBus.Properties.Get", "string:org.example.Kitchen", "string:Title"]);
    let said = run_with(&mut send, b"");
    assert!(
        said.success && said.out.contains("variant") && said.out.contains("string \""),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn we_call_a_d_bus_server_on_glib_through_socat() {
    let test = "we_call_a_d_bus_server_on_glib_through_socat";
    let (Some(peer), Some(papers)) = (glib_peer(test), Papers::get(test)) else { return };
    if !here(test, &["socat"]) {
        return;
    }
    let socket = scratch("tls-glib").join("s");
    let its = Beside::start(
        Command::new(&peer)
            .args(["serve", "peer", &format!("unix:path={}", socket.display())])
            .arg(contract("kitchen.dbus.xml")),
    );
    its.hear("ready");
    let cert = papers.path("server.pem");
    let (_socat, place) = socat(
        &format!(
            "OPENSSL-LISTEN:0,bind=127.0.0.1,fork,verify=0,cert={},key={}",
            cert.display(),
            papers.path("server.key").display()
        ),
        &format!("UNIX-CONNECT:{}", socket.display()),
    );
    let (_, port) = place.rsplit_once(':').expect("a port");
    let client = Node::new();
    let text = format!("dbus:tls:host=127.0.0.1,port={port},ca={}#{PATH}", papers.path("ca.pem").display());
    let kitchen: Ref<dyn Kitchen> = client.connect(&text).expect("it parses");
    galley::values(&*kitchen);
    galley::properties(&client, &kitchen);
}
