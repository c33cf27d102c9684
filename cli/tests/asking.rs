//! Calls without a contract, signals without a server, and what is there at all.

use crate::support::{Bank, Bus, Running, Scratch, data, run, run_in};
use everywire_peers::here;

/// A DCOP server of the test's own: the variables of those who use it.
fn dcop() -> (Running, Vec<(&'static str, String)>, Scratch) {
    let scratch = Scratch::new();
    let env = vec![("DCOPAUTHORITY", scratch.path("where")), ("ICEAUTHORITY", scratch.path("cookies"))];
    let mut server = Running::start_in(&env, &["dcopserver", "--socket", &scratch.path("socket")]);
    server.line();
    (server, env, scratch)
}

/// The first line of a program that has this in it, while something is done again and again.
fn heard_of(program: &mut Running, what: &str, again: impl Fn()) -> String {
    std::thread::scope(|scope| {
        let line = scope.spawn(|| {
            loop {
                let line = program.line();
                if line.contains(what) {
                    return line;
                }
            }
        });
        while !line.is_finished() {
            again();
        }
        line.join().unwrap()
    })
}

#[test]
fn an_operation_is_called_by_its_signature_where_nobody_tells_a_contract() {
    let bank = Bank::open();
    let at = &bank.addresses[0];
    let words = ["call", at, "title", "--signature", "attribute string title"];
    assert_eq!(run(&words).code, 0, "an attribute is declared as the language does");
    let deposit = run(&["call", at, "deposit", "5", "--signature", "double deposit(in double amount)"]);
    let known = bank.call(&["deposit", "0"]);
    assert_eq!(deposit.good(), known.good(), "the same as with the contract");
    // What does not fit is said by the peer, or before anything is sent.
    let unread = run(&["call", at, "deposit", "5", "--signature", "double deposit(in Money amount)"]);
    assert!(unread.failed(2)[1].contains("Money"), "{}", unread.err);
    let both = run(&["call", at, "deposit", "5", "--signature", "x", "-c", &bank.contract]);
    assert_eq!(both.code, 2);
}

#[test]
fn types_of_dbus_are_enough_for_a_call_and_the_answer_tells_its_own() {
    if !here("types_of_dbus_are_enough_for_a_call_and_the_answer_tells_its_own", &["dbus-daemon"]) {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch.path("bus"));
    let at = format!("dbus:{}#org.freedesktop.DBus/org/freedesktop/DBus", bus.address);
    let call = |words: &[&str]| run(&[&["call", at.as_str()], words].concat());
    let own = call(&["org.freedesktop.DBus.NameHasOwner", "org.freedesktop.DBus", "--signature", "s"]);
    assert_eq!(own.good(), "true");
    let stated = call(&[
        "NameHasOwner",
        "a.b",
        "--signature",
        "s->b",
        "--interface",
        "org.freedesktop.DBus",
        "--json",
    ]);
    assert_eq!(stated.json()["value"]["return"], false);
    let nowhere = call(&["NameHasOwner", "a.b", "--signature", "s"]);
    assert!(nowhere.failed(2)[2].contains("--interface"), "{}", nowhere.err);
    assert!(call(&["a.B", "x", "--signature", "s("]).failed(2)[0].contains("cannot be read"));
    // The service refuses what it does not have: its word, not ours.
    let refused = call(&["org.freedesktop.DBus.Unheard", "--signature", ""]);
    assert!(refused.code == 1 && refused.err.contains("UnknownMethod"), "{}", refused.err);
}

#[test]
fn a_signal_is_emitted_and_heard() {
    if !here("a_signal_is_emitted_and_heard", &["dbus-daemon"]) {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch.path("bus"));
    let at = format!("dbus:{}#org.example.Player/player", bus.address);
    let (env, rule) = ([("DBUS_SESSION_BUS_ADDRESS", bus.address.clone())], "dbus:session");
    let mut overheard = Running::start_in(&env, &["trace", rule, "--json"]);
    let emit = |words: &[&str]| run(&[&["emit", at.as_str()], words].concat());
    let heard = heard_of(&mut overheard, "Finished", || {
        emit(&["org.example.Player.Finished", "Dawn", "--signature", "s"]).good();
    });
    assert!(heard.contains("org.example.Player"), "{heard}");
    emit(&["Finished", "song=Dusk", "-c", &data("player.xml"), "--json"]).good();
    let unknown = emit(&["Finish", "x", "-c", &data("player.xml")]);
    assert!(unknown.failed(2)[2].contains("Finished"), "{}", unknown.err);
    // Where nobody but those who are connected would hear it, that is said.
    let deaf = run(&["emit", "iiop://127.0.0.1:1/x", "Finished", "-c", &data("player.xml")]);
    assert!(deaf.failed(2)[1].contains("nobody"), "{}", deaf.err);
}

#[test]
fn a_signal_on_dcop_is_heard_by_who_watches() {
    let (_server, env, _scratch) = dcop();
    // Somebody has to be asked for signals: an application of this name.
    let exec = format!("python3 {} {} finished", data("player.py"), data("player.xml"));
    let contract = data("player.kidl");
    let words =
        ["serve", &contract, "--interface", "Player", "--exec", &exec, "--on", "dcop:music", "--key", "one"];
    let mut music = Running::start_in(&env, &words);
    music.line();
    let taken =
        run_in(&env, &["emit", "dcop:music/one", "finished", "x", "--signature", "finished(QString)"]);
    assert!(taken.failed(4)[1].contains("taken"), "{}", taken.err);
    run_in(&env, &["emit", "dcop:other/one", "finished", "x", "--signature", "finished(QString)"]).good();
}

#[test]
fn status_tells_the_protocol_the_program_and_whether_the_object_is_there() {
    let bank = Bank::at(&["tcp", "unix"], &[]);
    let told = run(&["status", &bank.addresses[0], "--json"]).json();
    let value = &told["value"];
    assert_eq!((value["wire"].as_str(), &value["object"]["answers"]), (Some("giop"), &true.into()), "{told}");
    assert!(value["program"]["command"].as_str().unwrap().contains("serve"), "{told}");
    assert!(value["says"][0].as_str().unwrap().contains("LocateReply"), "{told}");
    // A place without a scheme, a socket, an object that is not there.
    let place = bank.addresses[0].trim_start_matches("iiop://").split('/').next().unwrap();
    let plain = run(&["status", place]);
    assert!(plain.good().contains("GIOP (CORBA)") && plain.out.contains("program "), "{}", plain.out);
    let socket = bank.addresses[1].trim_start_matches("iiop+unix://").split('#').next().unwrap();
    assert!(run(&["status", socket]).good().contains("GIOP (CORBA)"));
    let missing = run(&["status", &bank.addresses[0].replace("Account", "Nobody")]);
    assert!(missing.code == 1 && missing.err.contains("no-object"), "{}{}", missing.out, missing.err);
    // Another protocol, and nobody.
    let strange = run(&["status", &format!("net.tcp://{place}/Account")]);
    assert!(strange.code == 6 && strange.err.contains("GIOP (CORBA) answers there"), "{}", strange.err);
    assert!(run(&["status", "127.0.0.1:1"]).failed(3)[2].contains("explain unreachable"));
}

#[test]
fn status_knows_servers_that_are_none_of_ours() {
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = web.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in web.incoming().flatten() {
            let mut stream = stream;
            let mut asked = [0; 512];
            let begins = std::io::Read::read(&mut stream, &mut asked).unwrap_or(0);
            if asked[..begins].starts_with(b"GET ") {
                let answer = b"HTTP/1.1 404 Not Found\r\nServer: Hand/1\r\nContent-Length: 0\r\n\r\n";
                let _ = std::io::Write::write_all(&mut stream, answer);
            }
        }
    });
    let told = run(&["status", &at, "--json"]).json();
    assert_eq!(told["value"]["protocol"], "HTTP", "{told}");
    assert_eq!(
        told["value"]["says"],
        serde_json::json!(["HTTP/1.1 404 Not Found", "Server: Hand/1"]),
        "{told}"
    );
    // One that is silent speaks nothing that is known.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let said = run(&["status", &silent.local_addr().unwrap().to_string()]);
    assert!(said.code == 6 && said.err.contains("no protocol"), "{}{}", said.out, said.err);
}

#[test]
fn watching_goes_on_when_the_bus_is_there_again() {
    if !here("watching_goes_on_when_the_bus_is_there_again", &["dbus-daemon"]) {
        return;
    }
    let scratch = Scratch::new();
    let socket = scratch.path("bus");
    let bus = Bus::start(&socket);
    let at = format!("dbus:{}#org.example.Player/player", bus.address);
    let mut watch = Running::start(&["watch", &at, "Finished", "-c", &data("player.xml"), "--json"]);
    // It listens at some time: who emits until it is heard needs no clock. What was emitted once too often is heard, too, so the songs differ.
    let mut hears = |song: &str| {
        let told = format!("song={song}");
        let words = ["emit", &at, "Finished", &told, "-c", &data("player.xml")];
        heard_of(&mut watch, song, || drop(run(&words)))
    };
    assert!(hears("Dawn").contains("\"signal\""));
    drop(bus);
    let _bus = Bus::start(&socket);
    assert!(hears("Dusk").contains("\"signal\""), "the bus is there again, and so is the subscription");
}
