//! `everywire gen`: stubs and skeletons from contracts.

use crate::contract;
use crate::output::{self, Envelope, line, note};
use crate::trouble::{ANSWERED, Done, Trouble};
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = include_str!("../../help/gen.txt");

/// Generate stubs, skeletons and types from contracts.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    language: Language,
}

#[derive(Subcommand)]
enum Language {
    /// Rust.
    #[command(after_help = EXAMPLES)]
    Rust(Files),
}

#[derive(Args)]
struct Files {
    /// Contract files.
    #[arg(required = true)]
    contracts: Vec<PathBuf>,
    /// Directory for the generated files: one for each contract, of the same name.
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write nothing; tell whether the generated files are up to date.
    #[arg(long, requires = "out")]
    check: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    pub(crate) fn json(&self) -> bool {
        let Language::Rust(files) = &self.language;
        files.json
    }
}

/// Generates.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let Language::Rust(files) = &arguments.language;
    let mut made = Vec::new();
    for path in &files.contracts {
        let source = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let options = everywire_codegen::rust::Options { source, ..Default::default() };
        made.push((path, everywire_codegen::rust::generate(&contract::load(path)?, &options)));
    }
    let Some(directory) = &files.out else { return to_stdout(&made, files.json) };
    let mut stale = Vec::new();
    let mut written = Vec::new();
    for (path, text) in &made {
        let file = directory.join(path.file_stem().unwrap_or_default()).with_extension("rs");
        let current = std::fs::read_to_string(&file).is_ok_and(|held| held == *text);
        match (current, files.check) {
            (true, _) => {}
            (false, true) => stale.push(file.display().to_string()),
            (false, false) => {
                write(directory, &file, text)?;
                written.push(file.display().to_string());
            }
        }
    }
    if !stale.is_empty() {
        return Err(Trouble::usage("generated files are out of date", stale.join(", "))
            .as_kind(ANSWERED, "out-of-date")
            .hint("run the same command without --check"));
    }
    if files.json {
        Envelope::of(json!({"written": written})).print();
    } else {
        written.iter().for_each(|file| note(&format!("wrote {file}")));
    }
    Ok(())
}

fn to_stdout(made: &[(&PathBuf, String)], json: bool) -> Done {
    let [(path, text)] = made else {
        let why = format!("{} contracts were given, and standard output takes one", made.len());
        return Err(Trouble::usage("there is no place for the generated files", why)
            .hint("name a directory with --out"));
    };
    if json {
        line(&Envelope::of(json!({"contract": path.display().to_string(), "text": text})).json().to_string());
    } else {
        output::raw(text);
    }
    Ok(())
}

fn write(directory: &Path, file: &Path, text: &str) -> Done {
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(file, text))
        .map_err(|error| Trouble::local(format!("cannot write {}", file.display()), &error))
}
