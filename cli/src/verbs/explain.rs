//! `everywire explain`: what an identifier of an error means, without asking anybody.

use crate::cli_error::{CliError, Done};
use crate::codes::{self, Row};
use crate::complete;
use crate::output::{Envelope, Style, line, tinted};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde_json::{Map, Value as Json, json};

const EXAMPLES: &str = include_str!("../../help/explain.txt");

/// How many codes of a wire are shown for a kind of failure; `--json` has all.
const SHOWN: usize = 6;

/// Explain the code of an error.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The code, as a failure shows it; without one all are listed.
    #[arg(allow_negative_numbers = true, add = ArgValueCompleter::new(complete::codes))]
    code: Vec<String>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Explains.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let asked = arguments.code.join(" ");
    let found = if asked.is_empty() { codes::rows().to_vec() } else { codes::find(&asked) };
    let digits = codes::digits(&asked);
    if found.is_empty() && digits.is_none() {
        let known: Vec<&str> = codes::rows().iter().map(Row::word).collect();
        let trouble = CliError::usage(format!("`{asked}` is not known"), "no table of the wires has it");
        return Err(match everywire::model::words::nearest(&asked, known.iter().copied()) {
            Some(near) => trouble.hint(format!("did you mean `{near}`? `everywire explain` lists all")),
            None => trouble
                .hint("`everywire explain` lists all; names of a service's own mean what its author says"),
        });
    }
    if arguments.json {
        let mut envelope = Envelope::of(found.iter().map(as_json).collect());
        envelope.notes.extend(digits);
        envelope.print();
        return Ok(());
    }
    if asked.is_empty() {
        list(&found, style);
        return Ok(());
    }
    for row in &found {
        let name = if row.name.is_empty() { String::new() } else { format!(" {}", row.name) };
        line(&format!("{}{name} ({})", tinted(row.code, "1", style.out), row.family));
        line(&format!("  means: {}", row.means));
        if !row.kind.is_empty() {
            line(&format!("   kind: {}, exit code {}", row.kind, exit(row.kind)));
        } else if row.family == "failure" {
            line(&format!("   exit: code {}", exit(row.code)));
        }
        if row.family == "failure" {
            for (family, words) in codes::told_as(row.code) {
                line(&format!("  {family}: {}", shortened(&words)));
            }
        }
        if !row.hint().is_empty() {
            line(&format!("    try: {}", row.hint()));
        }
    }
    if let Some(digits) = digits {
        line(&format!("  {asked}: {digits}"));
    }
    Ok(())
}

/// The exit code of the program for a kind of failure that a peer answers with.
fn exit(kind: &str) -> u8 {
    crate::cli_error::exit_of_kind(kind)
}

/// The codes of a wire for a kind of failure, as far as they fit on a line.
fn shortened(words: &[&str]) -> String {
    let shown = words.get(..SHOWN.min(words.len())).unwrap_or_default().join(", ");
    if words.len() > SHOWN { format!("{shown} and {} more", words.len() - SHOWN) } else { shown }
}

/// All codes, family by family.
fn list(rows: &[Row], style: Style) {
    let width = rows.iter().map(|row| row.word().len()).max().unwrap_or_default();
    let mut family = "";
    for row in rows {
        if row.family != family {
            family = row.family;
            line(&tinted(&format!("# {family}"), "2", style.out));
        }
        line(&format!("{:<width$}  {}", row.word(), row.means));
    }
}

/// A row of the table as JSON; of a kind of failure also the codes that are told as it.
fn as_json(row: &Row) -> Json {
    let some = |text: &'static str| (!text.is_empty()).then_some(text);
    let mut told = json!({
        "code": row.code, "name": some(row.name), "from": row.family, "kind": some(row.kind),
        "means": row.means, "hint": some(row.hint()),
    });
    if row.family == "failure" {
        let codes: Map<String, Json> = codes::told_as(row.code)
            .into_iter()
            .map(|(family, words)| (family.to_owned(), words.into()))
            .collect();
        told["codes"] = codes.into();
    }
    told
}
