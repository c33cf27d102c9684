//! `everywire gen`: stubs and skeletons from contracts.
//!
//! Contracts are files, or objects that tell theirs. Each becomes one file of the same name, or of the
//! name of the interface that an object tells; a single one may go to standard output. A file that is
//! as it should be is not written, so that builds do not run again. With `--check` nothing is written,
//! and the exit code says whether anything would be.

use crate::cli_error::{ANSWERED, CliError, Done};
use crate::contract::{self, Preprocess};
use crate::output::{self, Envelope, note};
use crate::secrets::hidden;
use crate::target;
use clap::{Args, Subcommand};
use everywire::model::Contract;
use everywire::{Interface, Node};
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
    /// Contract files, or references of objects that tell their contracts.
    #[arg(required = true, value_name = "CONTRACT")]
    contracts: Vec<String>,
    #[command(flatten)]
    preprocess: Preprocess,
    /// Directory for the generated files: one for each contract, of the same name.
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Have every method of a MIDL object tell by which HRESULT it succeeded, as if the contract said `[success]`.
    #[arg(long)]
    success_codes: bool,
    /// Write one face of each interface instead of both, which halves what a build must compile.
    #[arg(long, value_name = "FACE")]
    only: Option<SingleFace>,
    /// Write nothing; tell whether the generated files are up to date.
    #[arg(long, requires = "out")]
    check: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The only face of an interface that is wanted.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq)]
enum SingleFace {
    /// Traits whose methods return when the answer is there.
    Blocking,
    /// Traits with `async fn`.
    Asynchronous,
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
    for given in &files.contracts {
        let (contract, source, stem) = contract_of(given, &files.preprocess)?;
        let options = everywire_codegen::rust::Options {
            source,
            success_codes: files.success_codes,
            blocking: files.only != Some(SingleFace::Asynchronous),
            asynchronous: files.only != Some(SingleFace::Blocking),
            ..Default::default()
        };
        made.push((given.as_str(), stem, everywire_codegen::rust::generate(&contract, &options)));
    }
    let Some(directory) = &files.out else { return to_stdout(&made, files.json) };
    for (at, (given, stem, _)) in made.iter().enumerate() {
        if let Some((before, ..)) = made.iter().take(at).find(|(_, held, _)| held == stem) {
            let why = format!("`{}` and `{}` would both become {stem}.rs", hidden(before), hidden(given));
            return Err(CliError::usage("two contracts have the same name", why)
                .hint("generate them into directories of their own, or rename a file"));
        }
    }
    let mut stale = Vec::new();
    let mut written = Vec::new();
    for (_, stem, text) in &made {
        let file = directory.join(format!("{stem}.rs"));
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
        return Err(CliError::usage("generated files are out of date", stale.join(", "))
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

/// A contract, what it was made of (for the head of the file), and the name of the file that is made of
/// it, without its ending.
fn contract_of(given: &str, preprocess: &Preprocess) -> Done<(Contract, String, String)> {
    let path = Path::new(given);
    let is_file = path.exists() || !(given.contains(':') || given.starts_with('@'));
    if is_file {
        let source = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        return Ok((contract::of_file(path, preprocess)?.contract, source, stem));
    }
    let node = Node::from(Node::builder().shards(1).build());
    let object = node.object(&target::text(given)?).map_err(|failure| {
        target::unfit(format!("`{given}` is neither a file nor a reference"), given, &failure)
    })?;
    let known = contract::of(&object, None, preprocess)?;
    let contract = known.alone();
    // Whoever listens to an interface comes with it.
    let listens = |held: &Interface| {
        let mut signals = contract.interfaces().flat_map(|interface| interface.signals.iter());
        signals.any(|signal| signal.sink.as_ref().is_some_and(|(listener, _)| listener.name == held.name))
    };
    let found =
        contract.interfaces().find(|interface| !listens(interface)).or_else(|| contract.interfaces().next());
    let name = found.map(|interface| contract::last_part(&interface.name).to_owned());
    let name = name.unwrap_or_else(|| "contract".to_owned());
    // Where it was found is not what it says: two places that tell the same make the same file.
    let source = format!("{name}, as its object tells it");
    Ok((contract, source, file_name(&name)))
}

/// A name as those of Rust's files are: `OrderBook` becomes `order_book`.
fn file_name(name: &str) -> String {
    let mut out = String::new();
    let mut after_small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && after_small {
            out.push('_');
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    out
}

/// Prints the one file that was made; several have no place there.
fn to_stdout(made: &[(&str, String, String)], json: bool) -> Done {
    let [(given, _, text)] = made else {
        let why = format!("{} contracts were given, and standard output takes one", made.len());
        return Err(CliError::usage("there is no place for the generated files", why)
            .hint("name a directory with --out"));
    };
    if json {
        Envelope::of(json!({"contract": hidden(given), "text": text})).print();
    } else {
        output::raw(text);
    }
    Ok(())
}

/// Writes a file, and the directory if it is not there.
fn write(directory: &Path, file: &Path, text: &str) -> Done {
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(file, text))
        .map_err(|error| CliError::local(format!("cannot write {}", file.display()), &error))
}
