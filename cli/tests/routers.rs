//! Objects behind a router, on a D-Bus bus and a DCOP server of the test's own.

use crate::support::{Bus, Running, Said, Scratch, data, run_in};
use everywire::Kind;
use everywire_dynamic::{CallError, DynamicObject, ObjectContract};
use serde_json::json;

/// A player that is served behind a router.
struct Player {
    address: String,
    /// What it printed when it was ready.
    printed: String,
    server: Running,
    _router: Router,
    /// What others need to know to find the router.
    env: Vec<(&'static str, String)>,
    scratch: Scratch,
}

#[allow(dead_code)]
enum Router {
    Dbus(Bus),
    Dcop(Running),
}

impl Player {
    fn on_dbus(test: &str) -> Option<Self> {
        if !everywire_peers::here(test, &["dbus-daemon"]) {
            return None;
        }
        let scratch = Scratch::new();
        let bus = Bus::start(&scratch.path("bus"));
        let env = vec![("DBUS_SESSION_BUS_ADDRESS", bus.address.clone())];
        let on = "dbus:session/org.example.Player";
        Some(Self::serve(scratch, Router::Dbus(bus), env, "player.xml", on, "Finished"))
    }

    fn on_dcop() -> Self {
        let scratch = Scratch::new();
        let file = |name: &str| scratch.path(name);
        let env = vec![("DCOPAUTHORITY", file("where")), ("ICEAUTHORITY", file("cookies"))];
        let mut server = Running::start_in(&env, &["dcopserver", "--socket", &file("socket")]);
        server.line();
        Self::serve(scratch, Router::Dcop(server), env, "player.kidl", "dcop:music", "finished")
    }

    fn serve(
        scratch: Scratch,
        router: Router,
        env: Vec<(&'static str, String)>,
        contract: &str,
        on: &str,
        signal: &str,
    ) -> Self {
        let exec = format!("python3 {} {} {signal}", data("player.py"), data("player.xml"));
        let contract = data(contract);
        let words =
            ["serve", &contract, "--interface", "Player", "--exec", &exec, "--on", on, "--key", "one"];
        let mut server = Running::start_in(&env, &words);
        let printed = server.line();
        Self { address: format!("{on}/one"), printed, server, _router: router, env, scratch }
    }

    fn run(&self, words: &[&str]) -> Said {
        run_in(&self.env, words)
    }

    fn call(&self, words: &[&str]) -> Said {
        self.run(&[&["call", &self.address], words].concat())
    }

    fn value(&self, words: &[&str]) -> serde_json::Value {
        self.call(&[words, &["--json"]].concat()).json()["value"].clone()
    }
}

#[test]
fn the_operation_says_which_interface_is_meant() {
    let Some(player) = Player::on_dbus("the_operation_says_which_interface_is_meant") else { return };
    for name in ["Play", "Player.Play", "org.example.Player.Play"] {
        assert_eq!(player.call(&[name, "So What"]).good(), "7", "{name}");
    }
    assert_eq!(player.call(&["Title"]).good(), "Songs");
    // Nothing of its own is called so, but every object of this wire has it.
    assert_eq!(player.call(&["Ping"]).good(), "");
    let near = player.call(&["Pley", "So What"]);
    let lines = near.failed(2);
    assert!(
        lines[0].contains("no operation `Pley`") && lines[2].ends_with("did you mean `Play`?"),
        "{}",
        near.err
    );
    assert!(player.call(&["Rewind"]).failed(2)[2].contains("--interface"));
}

#[test]
fn addresses_that_end_too_early_are_explained() {
    let Some(player) = Player::on_dbus("addresses_that_end_too_early_are_explained") else { return };
    for words in [&["call", "dbus:session", "Play"][..], &["describe", "dbus:session"]] {
        let said = player.run(words);
        let lines = said.failed(2);
        assert!(
            lines[1].contains("lacks the name of a server") && lines[2].contains("everywire list"),
            "{}",
            said.err
        );
    }
    let said = player.run(&["call", "dbus:session/org.example.Player", "Play", "x"]);
    assert!(said.failed(2)[1].contains("names no object"), "{}", said.err);
    let said =
        player.run(&["call", "dbus:session/org.freedesktop.DBus", "NameHasOwner", "org.example.Player"]);
    assert_eq!(said.good(), "true");
}

#[test]
fn structs_without_names_are_lists_and_maps_are_objects() {
    let Some(player) = Player::on_dbus("structs_without_names_are_lists_and_maps_are_objects") else {
        return;
    };
    let (levels, cue) =
        (json!({"1": [[5, "bass"]]}), json!([2, {"shape": "(i32, path)", "value": [7, "/a"]}]));
    let mix = |levels: &serde_json::Value, cue: &serde_json::Value| {
        player.value(&["Mix", &levels.to_string(), &cue.to_string()])
    };
    let expected = json!({"arg_3": levels, "arg_4": cue});
    assert_eq!(mix(&levels, &cue), expected);
    let by_name = json!([[1, [{"field_1": 5, "field_2": "bass"}]]]);
    assert_eq!(mix(&by_name, &cue), expected);
    let shown = player.call(&["Mix", &levels.to_string(), "[2, true]"]);
    assert_eq!(shown.good(), "arg_3 = {1: [(5, \"bass\")]}\narg_4 = (2, boolean true)");
    let wrong = player.call(&["Mix", "{}", "5"]);
    let lines = wrong.failed(2);
    assert!(
        lines[1].ends_with("arguments.cue: a list (i32, any value) is expected, not a number"),
        "{}",
        wrong.err
    );
    assert!(
        lines[2].contains("levels: map of i32 to sequence of (i32, text), cue: (i32, any value)"),
        "{}",
        wrong.err
    );
}

#[test]
fn descriptors_come_and_go() {
    let Some(player) = Player::on_dbus("descriptors_come_and_go") else { return };
    let file = std::fs::canonicalize(data("player.xml")).unwrap().to_string_lossy().into_owned();
    assert_eq!(player.value(&["Lyrics"]), json!({"return": {"handle": file}}));
    let shown = player.call(&["Lyrics"]);
    assert!(
        shown.good().starts_with("descriptor ") && shown.out.contains(&format!(" -> {file}")),
        "{}",
        shown.out
    );
    assert_eq!(player.call(&["Record", &format!("@{file}")]).good(), file);
    assert_eq!(player.call(&["Record", &json!({"handle": file}).to_string()]).good(), file);
    let missing = player.call(&["Record", &format!("@{}", player.scratch.path("none"))]);
    assert!(missing.failed(2)[1].contains("cannot be opened"), "{}", missing.err);
}

#[test]
fn hints_are_about_what_failed() {
    let Some(player) = Player::on_dbus("hints_are_about_what_failed") else { return };
    let stuck = player.call(&["Eject"]);
    assert_eq!(stuck.code, 1);
    // The error has a name of its own; whoever wrote the service knows what helps.
    assert!(
        stuck.err.contains("the tray is stuck [org.example.Stuck]") && !stuck.err.contains("hint:"),
        "{}",
        stuck.err
    );
    let contract = data("player.xml");
    let serve =
        |on: &str| player.run(&["serve", &contract, "--interface", "Player", "--exec", "cat", "--on", on]);
    let taken = serve("dbus:session/org.freedesktop.DBus");
    let lines = taken.failed(4);
    assert!(
        lines[1].contains("org.freedesktop.DBus") && !lines[2].contains("--max-message"),
        "{}",
        taken.err
    );
    assert!(!taken.err.contains("may have been executed"), "{}", taken.err);
    assert!(serve("dbus:session/org.example.Two/one").failed(2)[2].contains("--key one"));
    let wrong_case = player.run(&["watch", &player.address, "finished", "--for", "1s"]);
    assert!(wrong_case.failed(2)[2].ends_with("did you mean `Finished`?"), "{}", wrong_case.err);
}

#[test]
fn an_address_that_foreign_programs_read_too_is_printed_once() {
    let Some(mut player) = Player::on_dbus("an_address_that_foreign_programs_read_too_is_printed_once")
    else {
        return;
    };
    assert_eq!(player.printed, player.address);
    player.call(&["Title"]).good();
    player.server.end("-TERM");
    assert_eq!(player.server.rest(), "");
}

#[test]
fn functions_of_a_dcop_object_are_called_by_their_plain_names() {
    let player = Player::on_dcop();
    assert_eq!(player.call(&["Player.Play", "So What"]).good(), "7");
    assert!(player.call(&["functions"]).good().contains("Play(QString song)"));
    let near = player.call(&["Pley"]);
    let lines = near.failed(2);
    assert!(
        lines[0].contains("no operation `Pley`") && lines[2].ends_with("did you mean `Play`?"),
        "{}",
        near.err
    );
    assert!(player.run(&["call", "dcop:music", "Play"]).failed(2)[1].contains("names no object"));
    let monitor = player.run(&["trace", "dcop:"]);
    assert!(monitor.failed(2)[1].contains("overhear"), "{}", monitor.err);
}

#[test]
fn a_signal_is_watched_by_its_signature() {
    let player = Player::on_dcop();
    let words = ["watch", &player.address, "finished(QString)", "--count", "1", "--json"];
    let mut watch = Running::start_in(&player.env, &words);
    std::thread::scope(|scope| {
        let heard = scope.spawn(|| watch.line());
        // Nobody tells when it listens: play until it has heard.
        while !heard.is_finished() {
            player.call(&["Play", "So What"]).good();
        }
        let heard: serde_json::Value = serde_json::from_str(&heard.join().unwrap()).unwrap();
        assert_eq!((&heard["fields"], &heard["sender"]), (&json!(["So What"]), &json!("music")));
    });
}

/// A bus is no caller: those behind it have a share of the queue each.
#[test]
fn one_caller_on_a_bus_does_not_take_the_queue_of_a_program() {
    let test = "one_caller_on_a_bus_does_not_take_the_queue_of_a_program";
    if !everywire_peers::here(test, &["dbus-daemon"]) {
        return;
    }
    let scratch = Scratch::new();
    let bus = Bus::start(&scratch.path("bus"));
    let on = format!("dbus:{}#org.example.Bank", bus.address);
    let contract = data("bank.idl");
    // It reads nothing.
    let words =
        ["serve", &contract, "--interface", "Account", "--exec", "sleep 1000", "--on", &on, "--key", "one"];
    let mut server = Running::start(&words);
    let address = server.line();
    // Who asks for an answer hears that a oneway call waits in the queue.
    let asks = scratch.path("asks.idl");
    let text = "module Bank { interface Account { void hint(in string text); }; };";
    std::fs::write(&asks, text).unwrap();
    let object = || {
        let read = everywire_idl::read(std::path::Path::new(&asks)).unwrap();
        let node = everywire::Node::new();
        DynamicObject::with_contract(&node, &address, ObjectContract::new(read, "asks.idl")).unwrap()
    };
    let hint = |object: &DynamicObject| object.call("hint", json!(["x".repeat(4096)]));
    let [greedy, other] = [object(), object()];
    let refused = (0..2000).find_map(|_| hint(&greedy).err());
    let is_busy =
        |error: &CallError| matches!(error, CallError::Failed(failure) if failure.kind() == Kind::Busy);
    assert!(refused.as_ref().is_some_and(is_busy), "{refused:?}");
    hint(&other).unwrap();
    assert_eq!(server.end("-TERM").0, 0);
}
