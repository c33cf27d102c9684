//! Whatever texts of the project tell people to type can be typed: hints in the sources of all crates,
//! the table of error codes, the examples behind `--help`, and the blocks for the shell in documents.
//! Verbs and options are asked of the parser of the command line, options of addresses of the wires.
//!
//! This file is compiled for tests only. It reads the sources of the whole workspace as text: no list
//! of hints is kept, so none can be forgotten.
//!
//! * A hint in backticks that begins with the program's name is a command; it may lack arguments, and
//!   what is put in at run time stands there as `X`.
//! * A line of a help text or of a document is a command in full.
//! * Each test counts what it found, and fails if that is too little: else a change of style would
//!   blind it.

use crate::whole;
use clap::error::ErrorKind;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates whose texts users see, as folders of the workspace.
const ROOMS: [&str; 13] = [
    "model",
    "idl",
    "codegen",
    "auth",
    "wires",
    "transports",
    "runtime",
    "trace",
    "opc",
    "broker",
    "everywire",
    "dynamic",
    "cli",
];

/// What stands before `=` and is no option of a wire: lines of files with credentials, parts of requests, of XML and of addresses of buses; and
/// `publish`, which a node takes for all wires.
const OF_FILES: [&str; 10] =
    ["username", "password", "domain", "realm", "name", "Host", "abstract", "href", "noncefile", "publish"];

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Files below a directory with this extension, without those of tests.
fn files(directory: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let skipped = ["tests", "target", "benches", "tests.rs", "hints.rs", "data"].contains(&name.as_str());
        if path.is_dir() && !skipped {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|held| held == extension) && !skipped {
            found.push(path);
        }
    }
}

/// The string literals of a source in Rust, up to its tests.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let mut found = Vec::new();
    for line in joined(source) {
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        let mut rest = code;
        while let Some(at) = rest.find('"') {
            // A character, not the beginning of a text.
            let character = rest[..at].ends_with('\'') || rest[..at].ends_with("b'");
            rest = &rest[at + 1..];
            if character {
                continue;
            }
            let mut text = String::new();
            let mut letters = rest.char_indices();
            let mut end = rest.len();
            while let Some((at, letter)) = letters.next() {
                match letter {
                    '"' => {
                        end = at + 1;
                        break;
                    }
                    '\\' => text.extend(letters.next().map(|(_, letter)| letter)),
                    _ => text.push(letter),
                }
            }
            found.push(text);
            rest = &rest[end..];
        }
    }
    found
}

/// Lines, where a text that goes on behind `\` at the end of a line is one.
fn joined(source: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in source.lines() {
        let part = line.strip_suffix('\\');
        match lines.last_mut().filter(|_| open) {
            Some(last) => last.push_str(part.unwrap_or(line).trim_start()),
            None => lines.push(part.unwrap_or(line).to_owned()),
        }
        open = part.is_some();
    }
    lines
}

/// The words of a command, as the shell parts them, up to whatever is no argument.
fn words(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('"') | None, '\\') => word.extend(letters.next()),
            (Some(_), letter) => word.push(letter),
            (None, '\'' | '"') => (quote, begun) = (Some(letter), true),
            (None, '#') if !begun => break,
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, letter) if letter.is_whitespace() => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (None, letter) => {
                word.push(letter);
                begun = true;
            }
        }
    }
    words.extend(begun.then_some(word));
    words
}

/// What is wrong with a command, if anything is: what the parser of the command line says to it. Unless
/// it is a `whole_line`, it may leave out what is needed, and hold a word that stands for others.
fn wrong(command: &str, whole_line: bool) -> Option<String> {
    // A word for any verb.
    let mut words = words(&command.replace("everywire VERB", "everywire call"));
    // What takes a value may be named without one.
    if words.last().is_some_and(|word| word.starts_with("--")) && !whole_line {
        words.push("X".into());
    }
    match whole().try_get_matches_from(words) {
        Ok(_) => None,
        Err(error) => {
            let stands = match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                ErrorKind::MissingRequiredArgument
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                | ErrorKind::MissingSubcommand => !whole_line,
                // `X`, or a word in capitals, stands for what people put in.
                ErrorKind::ValueValidation | ErrorKind::InvalidValue => !whole_line,
                ErrorKind::UnknownArgument => {
                    // A flag was given the `X`.
                    !whole_line && error.to_string().contains("'X'")
                }
                _ => false,
            };
            (!stands).then(|| format!("{command}\n    {error}"))
        }
    }
}

/// The options of all verbs.
fn options() -> BTreeSet<String> {
    let command = whole();
    let mut options = BTreeSet::from(["--help".to_owned(), "--version".to_owned()]);
    let mut all: Vec<&clap::Command> = vec![&command];
    while let Some(command) = all.pop() {
        all.extend(command.get_subcommands());
        options.extend(
            command
                .get_arguments()
                .filter_map(|argument| argument.get_long())
                .map(|long| format!("--{long}")),
        );
    }
    options
}

/// The options in a text: `--word`.
fn named_options(text: &str) -> Vec<String> {
    let is_word = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        let word: String = text[at + 2..].chars().take_while(|letter| is_word(*letter)).collect();
        let begins = before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '-');
        if begins && word.starts_with(|first: char| first.is_ascii_lowercase()) {
            found.push(format!("--{}", word.trim_end_matches('-')));
        }
    }
    found
}

/// The commands in a text: what stands in backquotes and begins with the program's name.
fn named_commands(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2);
    parts.filter(|part| part.starts_with("everywire ")).map(placed).collect()
}

/// With what is put in at run time put in.
fn placed(command: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    for letter in command.chars() {
        match letter {
            '{' => {
                depth += 1;
                out.push_str(if depth == 1 { "X" } else { "" });
            }
            '}' => depth -= 1,
            letter if depth == 0 => out.push(letter),
            _ => {}
        }
    }
    out
}

#[test]
fn each_hint_names_verbs_and_options_that_exist() {
    let options = options();
    assert!(options.contains("--contract") && options.contains("--suicide"), "{options:?}");
    let mut sources = Vec::new();
    ROOMS.iter().for_each(|room| files(&root().join(room), "rs", &mut sources));
    let mut texts: Vec<(String, String)> = Vec::new();
    for path in &sources {
        let source = std::fs::read_to_string(path).unwrap();
        texts.extend(literals(&source).into_iter().map(|text| (path.display().to_string(), text)));
    }
    let table = include_str!("../help/codes.tsv");
    texts.extend(table.lines().map(|line| ("help/codes.tsv".to_owned(), line.to_owned())));
    let (mut wrongs, mut commands, mut named) = (Vec::new(), 0, 0);
    for (path, text) in &texts {
        for command in named_commands(text) {
            commands += 1;
            wrongs.extend(wrong(&command, false).map(|why| format!("{path}: {why}")));
        }
        // Arguments of other programs are words of their own; a hint is a sentence.
        if !text.contains(' ') {
            continue;
        }
        for option in named_options(text) {
            named += 1;
            if !options.contains(&option) {
                wrongs.push(format!("{path}: no verb has {option}: {text}"));
            }
        }
    }
    assert!(commands > 25 && named > 30, "only {commands} commands and {named} options: the reader is blind");
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

/// What a wire says to an option of an address, to listen at or to call, with the name of the option
/// taken out. An option that no wire knows is answered in the same words whatever its name: that is how
/// `lost` is told.
fn says(scheme: &str, option: &str) -> Vec<String> {
    let wire = everywire::wires::ALL.iter().find(|wire| wire.schemes().contains(&scheme)).unwrap();
    let mut said = Vec::new();
    // Not every value fits each option.
    let addresses = ["1", "on", "here", "none"].into_iter().flat_map(|value| {
        [
            format!("{scheme}://127.0.0.1:1/x?{option}={value}"),
            format!("{scheme}://127.0.0.1:1?{option}={value}"),
            format!("{scheme}:session/a.b?{option}={value}"),
        ]
    });
    for address in addresses {
        let told = |failure: Option<everywire::Failure>| {
            failure.map(|failure| failure.message().replace(option, "OPTION")).unwrap_or_default()
        };
        said.push(told(wire.parse(&address).err()));
        said.push(told(wire.listen(&address).err()));
    }
    said
}

#[test]
fn each_option_of_an_address_in_a_hint_exists() {
    let schemes: Vec<&str> =
        everywire::wires::ALL.iter().flat_map(|wire| wire.schemes().iter().copied()).collect();
    let unknown: Vec<Vec<String>> = schemes.iter().map(|scheme| says(scheme, "quuxquux")).collect();
    let mut sources = Vec::new();
    files(&root().join("wires"), "rs", &mut sources);
    let mut hints: Vec<String> = Vec::new();
    for path in &sources {
        let source = std::fs::read_to_string(path).unwrap();
        hints.extend(
            literals(&source).into_iter().filter(|text| text.contains(' ') && text.contains("address")),
        );
    }
    let table = include_str!("../help/codes.tsv");
    hints.extend(table.lines().filter_map(|line| line.split('\t').nth(5)).map(str::to_owned));
    let mut names = BTreeSet::new();
    for hint in &hints {
        for (at, _) in hint.match_indices('=') {
            let before = &hint[..at];
            let begin = before.rfind(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            let name = &before[begin.map_or(0, |at| at + 1)..];
            // `NAME=` stands for what people put in.
            let is_option = name.chars().any(|letter| letter.is_ascii_lowercase());
            if is_option && !OF_FILES.contains(&name) && !before.ends_with(' ') {
                names.insert(name.to_owned());
            }
        }
    }
    assert!(names.contains("details") && names.contains("level"), "{names:?}");
    let lost: Vec<&String> = names
        .iter()
        .filter(|name| schemes.iter().zip(&unknown).all(|(scheme, unknown)| says(scheme, name) == *unknown))
        .collect();
    assert!(lost.is_empty(), "no wire has the options {lost:?}");
}

#[test]
fn each_command_of_help_and_documents_is_understood() {
    let mut texts = Vec::new();
    let mut helps = Vec::new();
    files(&root().join("cli/help"), "txt", &mut helps);
    for path in helps {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = joined(&text).into_iter().filter(|line| line.starts_with("  everywire "));
        texts.extend(lines.map(|line| (path.display().to_string(), line.trim().to_owned())));
    }
    let count = texts.len();
    let mut documents = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut documents);
    for path in documents {
        let text = std::fs::read_to_string(&path).unwrap();
        for block in text.split("```sh\n").skip(1) {
            let block = block.split("\n```").next().unwrap_or_default();
            for line in joined(block) {
                let at = line.find("everywire ").filter(|at| *at == 0 || line[..*at].ends_with("&& "));
                texts.extend(at.map(|at| (path.display().to_string(), line[at..].to_owned())));
            }
        }
    }
    assert!(count > 30 && texts.len() > count + 40, "only {} commands: the reader is blind", texts.len());
    let wrongs: Vec<String> = texts
        .iter()
        // What is left out, is left out on purpose.
        .filter(|(_, line)| !line.contains(" ... "))
        .filter_map(|(path, line)| Some(format!("{path}: {}", wrong(line, true)?)))
        .collect();
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}
