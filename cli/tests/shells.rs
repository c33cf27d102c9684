//! What shells and readers get: completion, manual pages, help that can be pasted, mistakes as JSON, hints that hold.

use crate::support::{Bank, PROGRAM, Scratch, data, run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is offered for the last of these words.
fn offered(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let output = Command::new(PROGRAM)
        .arg("--")
        .args(words)
        .env("EVERYWIRE_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("XDG_CACHE_HOME", scratch.path("cache"))
        // Where the cookies of the demo are.
        .env("HOME", scratch.path(""))
        // Nobody waits with a finger on the key here.
        .env("EVERYWIRE_PROBE_TIME", "60s")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn verbs_options_addresses_and_operations_are_completed() {
    let scratch = Scratch::new();
    let verbs = offered(&scratch, &["everywire", ""]);
    for verb in ["call", "demo", "explain", "status", "dcopserver"] {
        assert!(verbs.iter().any(|offered| offered == verb), "{verb} is not in {verbs:?}");
    }
    assert!(
        offered(&scratch, &["everywire", "derby-"]).is_empty(),
        "what is nobody's to type is not completed"
    );
    assert!(offered(&scratch, &["everywire", "call", "iio"]).contains(&"iiop://".to_owned()));
    assert!(offered(&scratch, &["everywire", "explain", "E_NOI"]).contains(&"E_NOINTERFACE".to_owned()));
    let contract = data("bank.idl");
    let words = ["everywire", "call", "-c", &contract, "iiop://127.0.0.1:1/x", "dep"];
    assert_eq!(offered(&scratch, &words), ["deposit"]);
}

/// A file for each question: without an end they would only grow in number.
#[test]
fn answers_of_long_ago_are_removed() {
    let scratch = Scratch::new();
    let mut demo = crate::support::Running::start_in(
        &[("XDG_RUNTIME_DIR", scratch.path("")), ("HOME", scratch.path(""))],
        &["demo", "--json"],
    );
    let told: serde_json::Value = serde_json::from_str(&demo.line()).unwrap();
    let tank = told["value"][1]["address"].as_str().unwrap();
    let folder = scratch.path("cache/everywire/completion");
    std::fs::create_dir_all(&folder).unwrap();
    let old = format!("{folder}/0123456789abcdef");
    let file = std::fs::File::create(&old).unwrap();
    file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3600)).unwrap();
    assert_eq!(offered(&scratch, &["everywire", "call", tank, "Dr"]), ["Drain"]);
    assert!(!std::path::Path::new(&old).exists());
    assert!(std::fs::read_dir(&folder).unwrap().count() > 0, "what was told a moment ago stays");
}

#[test]
fn operations_are_asked_from_the_object_and_remembered() {
    let scratch = Scratch::new();
    let mut demo = crate::support::Running::start_in(
        &[("XDG_RUNTIME_DIR", scratch.path("")), ("HOME", scratch.path(""))],
        &["demo", "--json"],
    );
    let told: serde_json::Value = serde_json::from_str(&demo.line()).unwrap();
    let tank = told["value"][1]["address"].as_str().unwrap();
    assert!(tank.starts_with("dbus+unix://"), "{tank}");
    assert_eq!(offered(&scratch, &["everywire", "call", tank, "Dr"]), ["Drain"]);
    assert_eq!(offered(&scratch, &["everywire", "watch", tank, "Ti"]), ["Ticked"]);
    let dcop = told["value"][2]["address"].as_str().unwrap();
    let (above, _) = dcop.rsplit_once('/').unwrap();
    assert_eq!(offered(&scratch, &["everywire", "call", &format!("{above}/ta")]), [dcop]);
    // Nobody is there any more, and what was told a moment ago still is.
    drop(demo);
    assert_eq!(offered(&scratch, &["everywire", "call", tank, "Dr"]), ["Drain"]);
    assert!(offered(&Scratch::new(), &["everywire", "call", tank, "Dr"]).is_empty());
}

#[test]
fn bash_completes_addresses_with_colons() {
    let scratch = Scratch::new();
    let script = scratch.path("completion");
    std::fs::write(&script, run(&["completion", "bash"]).good()).unwrap();
    // As bash does it for `everywire call -c FILE iiop://127.0.0.1:1/x dep<TAB>`, and for `everywire call iiop:<TAB>`.
    let ask = |line: &str, words: &str| {
        let text = format!(
            "source {script}; COMP_LINE={line:?}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _everywire; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let program = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
        let output = Command::new("bash")
            .args(["-c", &text])
            .env("PATH", path)
            .env("XDG_CACHE_HOME", scratch.path("cache"))
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let contract = data("bank.idl");
    let line = format!("everywire call -c {contract} iiop://127.0.0.1:1/x dep");
    let words = format!("everywire call -c {contract} iiop : //127.0.0.1 : 1/x dep");
    assert_eq!(ask(&line, &words), "deposit\n");
    // Bash replaces only what stands behind the colon.
    assert_eq!(ask("everywire call iiop:", "everywire call iiop :"), "//\n");
}

#[test]
fn every_verb_has_a_manual_page() {
    let scratch = Scratch::new();
    run(&["man", "--to", &scratch.path("man")]).good();
    let pages = std::fs::read_dir(scratch.path("man")).unwrap();
    let pages: BTreeSet<String> =
        pages.map(|page| page.unwrap().file_name().to_string_lossy().into_owned()).collect();
    for verb in verbs() {
        assert!(pages.contains(&format!("everywire-{verb}.1")), "{verb} is not in {pages:?}");
    }
    let page = run(&["man", "call"]);
    let head = format!(".TH everywire-call 1  \"everywire {}\"", env!("CARGO_PKG_VERSION"));
    assert!(page.good().contains(&head) && page.out.contains("deposit 100"), "{}", page.out);
}

/// The verbs that the program has.
fn verbs() -> Vec<String> {
    let said = run(&["--help"]);
    let (_, list) = said.out.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let verbs = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    verbs
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|verb| verb != "help")
        .collect()
}

#[test]
fn examples_of_the_help_survive_pasting() {
    // A narrow terminal breaks no example: each line of the text stands in the help as it was written.
    for verb in verbs() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("help").join(format!("{verb}.txt"));
        let Ok(text) = std::fs::read_to_string(&file) else {
            assert_eq!(verb, "dcopserver", "{} is missing", file.display());
            continue;
        };
        for words in [vec![verb.as_str(), "--help"], vec!["help", verb.as_str()], vec![verb.as_str(), "-h"]] {
            let output = Command::new(PROGRAM).args(&words).env("COLUMNS", "60").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            for line in text.lines() {
                assert!(
                    help.lines().any(|shown| shown == line),
                    "`{words:?}` lacks or breaks: {line}\n{help}"
                );
            }
        }
    }
}

#[test]
fn a_mistake_as_json_names_what_is_missing() {
    let said = run(&["call", "--json"]).json();
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.contains("<REFERENCE>") && message.contains("<OPERATION>"), "{message}");
    let mistyped = run(&["call", "x", "y", "--dealdine", "5s", "--json"]).json();
    assert!(mistyped["error"]["hint"].as_str().unwrap().contains("--deadline"), "{mistyped}");
}

/// Text in quotes behind each of these marks, in the sources of a room.
fn texts(room: &Path, marks: &[&str], found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(room).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, marks, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            for mark in marks {
                for part in code.split(mark).skip(1) {
                    // Up to the end of the statement, all that is quoted is what people read.
                    let statement = part.split(';').next().unwrap();
                    found.extend(
                        statement.split('"').skip(1).step_by(2).map(|text| (path.clone(), text.to_owned())),
                    );
                }
            }
        }
    }
}

#[test]
fn hints_name_verbs_and_options_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for room in ["cli/src", "model/src", "runtime/src", "opc/src", "broker/src", "auth/src", "wires"] {
        texts(&root.join(room), &["hint("], &mut found);
    }
    let table = std::fs::read_to_string(root.join("cli/help/codes.tsv")).unwrap();
    let rows = table.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split('\t').nth(5));
    found.extend(rows.map(|hint| (PathBuf::from("codes.tsv"), hint.to_owned())));
    assert!(found.len() > 300, "only {} texts found: the reader of sources is blind", found.len());
    let verbs = verbs();
    let mut options: BTreeSet<String> = BTreeSet::new();
    for verb in &verbs {
        // Code is generated for a language.
        let words: &[&str] = if verb == "gen" { &["gen", "rust", "--help"] } else { &[verb, "--help"] };
        let help = run(words).out;
        let words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        options.extend(words.filter(|word| word.starts_with("--")).map(str::to_owned));
    }
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (file, text) in &found {
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')) {
            if word.starts_with("--") && word.len() > 2 && !word.starts_with("---") {
                seen += 1;
                if !options.contains(word) {
                    wrong.push(format!("{}: no option {word}: {text}", file.display()));
                }
            }
        }
        for command in text.split("`everywire ").skip(1) {
            seen += 1;
            let verb: String =
                command.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            // A verb may be what is put in there.
            let is_verb = !verb.is_empty() && verb != "VERB" && !verb.starts_with('-');
            if is_verb && !verbs.contains(&verb) {
                wrong.push(format!("{}: no verb {verb}: {text}", file.display()));
            }
        }
    }
    assert!(seen > 40, "only {seen} verbs and options in hints");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_program_that_is_several_commands_is_served() {
    let bank = Bank::open();
    bank.call(&["title"]).good();
    let (folder, file) = (data(""), data("bank.idl"));
    let exec = format!("cd {folder} && python3 bank.py");
    let mut server = crate::support::Running::start(&[
        "serve",
        &file,
        "--interface",
        "Account",
        "--exec",
        &exec,
        "--on",
        "iiop://127.0.0.1:0",
    ]);
    let address = server.line();
    run(&["call", &address, "title", "-c", &file]).good();
}
