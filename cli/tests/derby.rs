//! The races from the command line: a small one, and the server for others.

#![allow(clippy::unwrap_used)]

use crate::support::{PROGRAM, Running, Scratch, data, run, run_in};
use serde_json::{Value as Json, json};
use std::path::Path;

#[test]
fn the_interfaces_of_the_races_are_served() {
    let scratch = Scratch::new();
    let (references, on) = (scratch.path("refs"), format!("iiop+unix://{}", scratch.path("derby")));
    let mut server = Running::start(&["derby", "serve", "--on", &on, "--ref-file", &references]);
    while !server.line().contains("FiringSource\t") {}
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../derby/contracts/bench.idl");
    let contract = contract.to_string_lossy();
    let call = |name: &str, words: &[&str]| {
        let reference = format!("@{references}:{name}");
        run(&[&["call", &reference], words, &["-c", &contract, "--json"]].concat()).json()
    };
    assert_eq!(call("benchmarking", &["in_out_int_call", "41"])["value"], json!({"v": 42}));
    let octets = call("IRemoteObject", &["GetBytes", "100"]);
    assert_eq!(octets["value"]["return"]["base64"].as_str().map(str::len), Some(136));
    let large = call("IRemoteObject", &["GetBytes", "8388608", "--max-message", "16MiB"]);
    assert_eq!(large["bytes"]["received"], json!(8_388_612));
    assert_eq!(server.end("-TERM").0, 0);
}

#[test]
fn a_small_race_has_a_row_for_each_operation() {
    let words =
        "derby calls --quick --only everywire-unix --placement unpinned --rounds 2 --calls 10 --json -";
    let said = run(&words.split(' ').collect::<Vec<_>>());
    let report = said.json();
    let rows = report["rows"].as_array().unwrap();
    let operations: Vec<&Json> =
        rows.iter().filter(|row| row["mode"] == "default").map(|row| &row["operation"]).collect();
    assert_eq!(operations.len(), 7, "{operations:?}");
    assert!(rows.iter().all(|row| row["race"] == "calls" && row["median_us"].as_f64().unwrap() > 0.0));
    let nobody = run(&["derby", "calls", "--only", "nobody"]);
    assert!(nobody.failed(2)[1].contains("nobody"), "{}", nobody.err);
}

/// The program with its standard output in a pipe that nobody reads any more.
fn without_a_reader(words: &[&str]) -> std::process::Child {
    let mut child = std::process::Command::new(PROGRAM);
    let mut child = child.args(words).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    child
}

#[test]
fn a_derby_whose_reader_has_gone_ends_quietly() {
    let words = "derby calls --quick --only everywire-unix --placement unpinned --rounds 2 --calls 10";
    let ended = without_a_reader(&words.split(' ').collect::<Vec<_>>()).wait().unwrap();
    assert_eq!(ended.code(), Some(0));
    // A server has more to do than to print.
    let scratch = Scratch::new();
    let (references, on) = (scratch.path("refs"), format!("iiop+unix://{}", scratch.path("derby")));
    let mut server = without_a_reader(&["derby", "serve", "--on", &on, "--ref-file", &references]);
    while !Path::new(&references).exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(server.try_wait().unwrap(), None);
    }
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../derby/contracts/bench.idl");
    let reference = format!("@{references}:benchmarking");
    run(&["call", &reference, "in_out_int_call", "41", "-c", &contract.to_string_lossy()]).good();
    let pid = server.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

#[test]
fn results_on_standard_output_are_added_to_a_file() {
    let scratch = Scratch::new();
    let path = scratch.path("results");
    std::fs::write(&path, "what was there\n").unwrap();
    let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    let words =
        "derby calls --quick --only everywire-unix --placement unpinned --rounds 2 --calls 10 --json -";
    let ended = std::process::Command::new(PROGRAM).args(words.split(' ')).stdout(file).status().unwrap();
    assert_eq!(ended.code(), Some(0));
    let text = std::fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    assert_eq!(first, "what was there");
    assert!(serde_json::from_str::<Json>(rest).unwrap()["rows"].is_array());
}

/// The report of a race between two network namespaces; nothing where this user may not make them. It ends when its rounds, its calls and
/// its traces are done, however long a busy machine takes for them: its time is only to bound a derby that hangs.
fn remote(words: &str) -> Option<Json> {
    let all = format!("derby callbacks --placement remote --time 1h --rounds 2 --json - {words}");
    let report = run(&all.split_whitespace().collect::<Vec<_>>()).json();
    let absent =
        report["absent"].as_array().unwrap().iter().find(|absent| absent["name"] == "remote placement");
    if let Some(absent) = absent {
        eprintln!("SKIPPED: no network namespaces here: {}", absent["why"]);
        return None;
    }
    Some(report)
}

#[test]
fn cycles_are_raced_between_two_namespaces_and_traced() {
    let Some(report) = remote("--only everywire-tcp,raw-tcp --calls 5") else { return };
    let rows = report["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let (own, raw) = (row("everywire-tcp"), row("raw-tcp"));
    assert_eq!(
        (own["operation"].as_str(), raw["operation"].as_str()),
        (Some("callback"), Some("two round trips"))
    );
    assert_eq!(own["placement"], "remote");
    assert_eq!(own["runs_us"].as_array().unwrap().len(), 1);
    assert!(own["dropped_us"].as_f64().unwrap() > 0.0 && own["ratio_to_raw"].as_f64().unwrap() > 0.0);
    // A question and an answer for create, attach, detach and destroy.
    assert_eq!((own["round_trips"].as_f64(), own["frames"].as_f64()), (Some(4.0), Some(8.0)));
    let cycle = |kind: &str| {
        let traces = report["traces"].as_array().unwrap().iter();
        traces.clone().find(|trace| trace["name"] == "everywire-tcp" && trace["cycle"] == kind).unwrap()
    };
    let (first, steady) = (cycle("first"), cycle("steady"));
    assert_eq!((first["connections"].as_u64(), steady["connections"].as_u64()), (Some(1), Some(0)));
    let said: Vec<&Json> =
        steady["frames"].as_array().unwrap().iter().map(|frame| &frame["operation"]).collect();
    assert_eq!(said, ["create", "create", "attach", "attach", "detach", "detach", "destroy", "destroy"]);
    assert!(steady["frames"].as_array().unwrap().iter().all(|frame| frame["interface"].is_string()));
}

#[test]
fn a_link_delays_every_round_trip() {
    let Some(report) = remote("--only everywire-tcp --calls 3 --link 3ms,10mbit --no-trace") else { return };
    assert_eq!(report["traces"].as_array().unwrap().len(), 0);
    // Four round trips of six milliseconds each: nobody is faster than the link.
    let rows = report["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row["median_us"].as_f64().unwrap() >= 24_000.0, "{row}");
    }
}

#[test]
fn connection_points_and_callbacks_are_traced_frame_by_frame() {
    let Some(report) = remote("--only everywire-dcom-tcp --calls 5") else { return };
    let traces = report["traces"].as_array().unwrap();
    let cycle = |operation: &str, kind: &str| {
        let found = traces.iter().find(|trace| {
            trace["name"] == "everywire-dcom-tcp" && trace["operation"] == operation && trace["cycle"] == kind
        });
        found.unwrap_or_else(|| panic!("no {kind} cycle of {operation}: {}", report["absent"]))
    };
    // What was released goes with the next call, unless that is long in coming: then it goes by itself, whenever it is due.
    let round_trips = |cycle: &Json| {
        let frames = cycle["frames"].as_array().unwrap();
        let alone = |two: &&[Json]| {
            two[0]["operation"] == "RemRelease" && two[0]["outward"] == true && two[1]["outward"] == false
        };
        let alone = frames.windows(2).filter(|two| two[0]["after"] == false).filter(alone).count();
        cycle["round_trips"].as_u64().unwrap() - alone.min(1) as u64
    };
    // Activation, (the connection point,) advise, unadvise.
    for (operation, most) in [("connection point", 4), ("callback", 3)] {
        let steady = cycle(operation, "steady");
        assert!(round_trips(steady) <= most, "{steady}");
        assert_eq!(steady["connections"], 0);
        let frames = steady["frames"].as_array().unwrap();
        let frames: Vec<&Json> = frames.iter().filter(|frame| frame["after"] == false).collect();
        assert!(
            // The first release may come as late as this, and opens its interface.
            frames.iter().all(|frame| frame["interface"].is_string()
                && (frame["operation"].is_string() || frame["interface"] == "IRemUnknown2")),
            "{steady}"
        );
        let first = cycle(operation, "first");
        assert!(first["connections"].as_u64().unwrap() >= 1);
        assert!(round_trips(first) > round_trips(steady), "{first} {steady}");
    }
    let asked = |operation: &str, what: &str| {
        cycle(operation, "steady")["frames"]
            .as_array()
            .unwrap()
            .iter()
            .any(|frame| frame["operation"] == what)
    };
    assert!(asked("connection point", "FindConnectionPoint") && !asked("callback", "FindConnectionPoint"));
    assert!(["RemoteCreateInstance", "Advise", "Unadvise"].iter().all(|what| asked("callback", what)));
    let reasons: Vec<&str> = report["reasons"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    assert!(
        reasons.iter().any(|reason| {
            reason.starts_with("Everywire DCOM, TCP: ")
                && reason.contains("IConnectionPointContainer.FindConnectionPoint")
        }),
        "{reasons:?}"
    );
}

/// What processes there are whose environment has this variable: those that a derby started, and itself.
fn processes_with(variable: &str) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id| {
            // A process that has ended but was not waited for has none.
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment.split(|octet| *octet == 0).any(|one| one == variable.as_bytes())
        })
        .collect()
}

/// A derby that would go on for an hour, in a temporary directory of its own, after its first clients have raced.
struct Endless {
    derby: Running,
    mark: String,
    scratch: Scratch,
}

impl Endless {
    fn begin() -> Self {
        let scratch = Scratch::new();
        let (temporary, json) = (scratch.path("t"), scratch.path("derby.json"));
        std::fs::create_dir(&temporary).unwrap();
        let mark = format!("DERBY_OF_A_TEST={temporary}");
        let (name, value) = mark.split_once('=').unwrap();
        let mut derby = Running::start_in(
            &[("TMPDIR", temporary.clone()), (name, value.to_owned())],
            &[
                "derby",
                "calls",
                "--time",
                "1h",
                "--only",
                "everywire-unix,raw-unix",
                "--placement",
                "same,unpinned",
                "--calls",
                "200",
                "--rounds",
                "30000",
                "--json",
                &json,
            ],
        );
        // Its servers are up, and clients come.
        derby.tells("(round ");
        let endless = Self { derby, mark: mark.clone(), scratch };
        assert!(endless.processes().len() > 2 && !endless.left().is_empty());
        endless
    }

    fn processes(&self) -> Vec<u32> {
        processes_with(&self.mark)
    }

    /// What lies in its temporary directory.
    fn left(&self) -> Vec<std::path::PathBuf> {
        std::fs::read_dir(self.scratch.path("t")).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// Waits until all of its processes have ended.
    fn end(&self) {
        while !self.processes().is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Waits until some rounds have certainly been kept: clients have come and gone.
    fn race(&mut self) {
        let first = self.processes();
        let seen = |endless: &Self| endless.processes().into_iter().filter(|id| !first.contains(id)).max();
        let mut clients = Vec::new();
        while clients.len() < 10 {
            if let Some(client) = seen(self)
                && !clients.contains(&client)
            {
                clients.push(client);
            }
            // Leave the CPU to them.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

#[test]
fn an_interrupted_derby_keeps_what_it_has_and_leaves_nothing_behind() {
    for (signal, code, name) in [("-INT", 130, "SIGINT"), ("-TERM", 143, "SIGTERM")] {
        let mut endless = Endless::begin();
        endless.race();
        let (ended, said) = endless.derby.end(signal);
        assert_eq!(ended, code, "{said}");
        let report: Json =
            serde_json::from_str(&std::fs::read_to_string(endless.scratch.path("derby.json")).unwrap())
                .unwrap();
        assert_eq!(report["interrupted"], name);
        let rows = report["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["name"] == "everywire-unix"), "{said}");
        // Whoever was killed for it is not said to have failed.
        assert_eq!(report["absent"], json!([]), "{said}");
        let table = endless.derby.rest();
        assert!(table.contains(&format!("interrupted by {name}")) && table.contains("us a call"), "{table}");
        endless.end();
        assert_eq!(endless.left(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn the_children_of_a_killed_derby_end_and_the_next_one_removes_its_folders() {
    let mut endless = Endless::begin();
    endless.derby.end("-KILL");
    endless.end();
    assert!(!endless.left().is_empty());
    let next = run_in(
        &[("TMPDIR", endless.scratch.path("t"))],
        &["derby", "calls", "--time", "20s", "--only", "raw-unix", "--placement", "same", "--calls", "5"],
    );
    assert!(next.good().contains("too few"), "{}", next.out);
    assert_eq!(endless.left(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_derby_ends_in_its_time_and_says_what_it_left_out() {
    // Far too little for thirty contestants.
    let words = "derby calls --time 3s --only everywire,raw --placement same --json -";
    let report = run(&words.split(' ').collect::<Vec<_>>()).json();
    assert_eq!(report["time_s"], 3.0);
    let left: Vec<&str> =
        report["left_out"].as_array().unwrap().iter().filter_map(|left| left["why"].as_str()).collect();
    assert!(left.iter().any(|why| why.contains("--time")), "{left:?}");
    // Whoever is in no row is named.
    let told = report["left_out"].to_string();
    for contestant in report["contestants"].as_array().unwrap() {
        let name = contestant["name"].as_str().unwrap();
        let raced = report["rows"].as_array().unwrap().iter().any(|row| row["name"] == name);
        assert!(raced || told.contains(name), "{name}: {told}");
    }
}

#[test]
fn a_foreign_server_is_raced_and_one_that_does_not_answer_is_a_failure() {
    let scratch = Scratch::new();
    let references = scratch.path("refs");
    let on = format!("iiop+unix://{}", scratch.path("derby"));
    let mut server = Running::start(&["derby", "serve", "--on", &on, "--ref-file", &references]);
    while !server.line().contains("FiringSource\t") {}
    let race = |race: &str, against: &str, more: &[&str]| {
        let words =
            ["derby", race, "--only", "against", "--rounds", "2", "--calls", "5", "--against", against];
        run(&[&words, more].concat())
    };
    let said = race("calls", &references, &["--json", "-"]);
    let report = said.json();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(report["rows"].as_array().unwrap().len(), 7);
    let left = report["left_out"].to_string();
    assert!(
        left.contains("foreign server at same, different, remote") && left.contains("unpinned only"),
        "{left}"
    );
    // It has no such race, and nobody pretends that it had.
    let none = race("callbacks", &references, &[]);
    assert!(none.code != 0 && none.err.contains("did not race"), "{}", none.err);
    // Another object than the race asks for: what the server said to that is told.
    let text = std::fs::read_to_string(&references).unwrap();
    let factory = text.lines().find_map(|line| line.strip_prefix("Factory\t")).unwrap();
    let wrong = race("calls", factory, &[]);
    assert!(wrong.code != 0 && wrong.err.contains("the foreign server did not race"), "{}", wrong.err);
    assert!(wrong.err.contains("void_call") || wrong.err.contains("BAD_OPERATION"), "{}", wrong.err);
    assert_eq!(server.end("-TERM").0, 0);
    let gone = race("calls", &references, &[]);
    assert!(gone.code != 0 && gone.err.contains("the foreign server did not race"), "{}", gone.err);
}

#[test]
fn a_foreign_server_may_answer_what_it_likes_and_the_report_says_what() {
    let scratch = Scratch::new();
    let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../derby/contracts/bench.idl");
    let servant = data("odd_bench.py");
    let on = format!("iiop+unix://{}", scratch.path("odd"));
    let mut server = Running::start(&[
        "serve",
        &contract.to_string_lossy(),
        "--interface",
        "benchmarking",
        "--exec",
        &format!("python3 {servant}"),
        "--on",
        &on,
    ]);
    server.line();
    let reference = server.line();
    let said = run(&[
        "derby",
        "calls",
        "--only",
        "against",
        "--rounds",
        "2",
        "--calls",
        "5",
        "--against",
        &reference,
        "--json",
        "-",
    ]);
    let report = said.json();
    assert_eq!((said.code, report["rows"].as_array().unwrap().len()), (0, 7), "{}", said.err);
    let remarks = report["remarks"].to_string();
    assert!(
        remarks.contains("out_string_call answered") && remarks.contains("quite another text"),
        "{remarks}"
    );
}

/// The rows of a small race of process data.
fn read(words: &str) -> (Json, Vec<Json>) {
    let all = format!("derby opc --rounds 2 --calls 40 --json - {words}");
    let report = run(&all.split_whitespace().collect::<Vec<_>>()).json();
    let rows = report["rows"].as_array().unwrap().clone();
    (report, rows)
}

#[test]
fn process_data_is_read_by_one_client_and_by_four() {
    let (report, rows) = read(
        "--time 15m --only everywire-opc-tcp-connect,everywire-opc-tcp-one-shard,everywire-opc-shm,everywire-opc-inproc,raw-tcp \
         --placement unpinned",
    );
    let row = |name: &str, operation: &str| {
        let found = rows.iter().find(|row| row["name"] == name && row["operation"] == operation);
        found.unwrap_or_else(|| panic!("no {operation} of {name}: {}", report["absent"]))
    };
    let several = ["read 100", "read 100, 4 threads", "read 100, 4 processes"];
    for name in ["everywire-opc-tcp-connect", "everywire-opc-tcp-one-shard", "everywire-opc-shm", "raw-tcp"] {
        for operation in several {
            let row = row(name, operation);
            assert_eq!(row["calls"], 40, "{row}");
            let items = row["items_per_s"].as_f64().unwrap();
            assert!(items > 0.0 && row["client_cpu_us"].as_f64().unwrap() > 0.0, "{row}");
            assert_eq!(row["ratio_to_raw"].is_null(), name.ends_with("shm"), "{row}");
        }
    }
    // Batches of a hundred.
    assert_eq!(row("everywire-opc-inproc", "read 1")["calls"], 100);
    let published = &row("everywire-opc-tcp-connect", "read 100")["published_items_per_s"];
    assert!((published.as_f64().unwrap() - 62_500.0).abs() < 0.1, "{published}");
    assert!((row("everywire-opc-inproc", "read 100")["published_us"].as_f64().unwrap() - 90.0).abs() < 0.1);
    let rate = row("everywire-opc-tcp-connect", "5,000 items/s");
    assert!(rate["server_cpu_percent"].as_f64().unwrap() > 0.0, "{rate}");
    for operation in ["exception mode, 1 % changing", "exception mode, all changing"] {
        assert!(row("everywire-opc-tcp-connect", operation)["calls"].as_u64().unwrap() > 0);
    }
}

/// Whoever is not installed is named, with what installs it.
#[test]
fn rivals_read_process_data_or_are_named() {
    let test = "rivals_read_process_data_or_are_named";
    let rivals: [(&str, &[&str], &str); 4] = [
        ("o6-tcp", &["o6"], "unpinned"),
        ("asyncua-tcp", &["asyncua"], "unpinned"),
        ("utgard-tcp", &["java", "utgard"], "remote"),
        ("node-opc-da-tcp", &["node", "node-opc-da"], "remote"),
    ];
    for placement in ["unpinned", "remote"] {
        let all = rivals.iter().filter(|(_, _, own)| *own == placement);
        let only = all.clone().map(|(name, _, _)| *name).collect::<Vec<_>>().join(",");
        let (report, rows) = read(&format!("--time 15m --only {only} --placement {placement}"));
        let absent = |name: &str| report["absent"].as_array().unwrap().iter().find(|one| one["name"] == name);
        if let Some(absent) = absent("remote placement") {
            eprintln!("SKIPPED: no network namespaces here: {}", absent["why"]);
            continue;
        }
        for (name, peers, _) in all {
            if !everywire_peers::here(test, peers) {
                let remedy = absent(name).map(|absent| absent["remedy"].to_string());
                assert!(
                    remedy.is_some_and(|remedy| remedy.contains("install") || remedy.contains("setup.sh"))
                );
                continue;
            }
            for operation in ["read 100", "read 1"] {
                let row = rows.iter().find(|row| row["name"] == *name && row["operation"] == operation);
                let row = row.unwrap_or_else(|| panic!("no {operation} of {name}: {}", report["absent"]));
                assert_eq!(row["calls"], 40, "{row}");
            }
        }
    }
}
