//! `everywire list`: who is there to be called.

use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, Style, line, note, tinted, visible};
use crate::stranger;
use crate::{complete, opcda, target};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use everywire::Node;
use everywire::model::Presence;
use everywire::model::units::{self, Deadline};
use serde_json::{Map, Value as Json, json};

const EXAMPLES: &str = include_str!("../../help/list.txt");

/// List who is there to be called, or the objects of a server.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where to look: a router, or a server behind it.
    #[arg(add = ArgValueCompleter::new(complete::addresses))]
    address: String,
    /// How long to wait for each answer.
    #[arg(long, value_name = "TIME", value_parser = units::deadline, default_value = "5s")]
    deadline: Deadline,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists. Of a peer that cannot be asked it is told which protocol answers there.
pub(crate) fn run(arguments: &Arguments, style: Style) -> Done {
    let node = Node::from(Node::builder().deadline(arguments.deadline.0).shards(1).build());
    let text = target::text(&arguments.address)?;
    let found = if opcda::is_meant(&text) {
        opcda::list(&node, &text)?
    } else {
        node.list(&text).map_err(|failure| {
            let trouble = CliError::failure(format!("cannot list `{}`", arguments.address), &failure);
            match node.parse(&text) {
                Ok(reference) => stranger::named(trouble, &reference),
                Err(_) => trouble,
            }
        })?
    };
    if arguments.json {
        let value = found.iter().map(as_json).collect();
        Envelope { notes: found.left_out, ..Envelope::of(value) }.print();
    } else {
        print(&found, style);
        // Standard output has the list alone.
        found.left_out.iter().for_each(|what| note(&format!("note: {}", visible(what))));
    }
    Ok(())
}

/// A table: the name, what is known, the address. The first one says which columns there are.
fn print(found: &[Presence], style: Style) {
    let Some(first) = found.first() else { return };
    let heads = first.details.iter().map(|(what, _)| *what);
    let titles: Vec<String> = std::iter::once("name").chain(heads).map(str::to_owned).collect();
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|one| {
            let details = one.details.iter().map(|(_, value)| value);
            std::iter::once(&one.name).chain(details).map(|text| visible(text).into_owned()).collect()
        })
        .collect();
    let mut widths: Vec<usize> = titles.iter().map(|title| title.chars().count()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let lay = |row: &[String]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    // A list of names alone needs no title: it goes to other programs.
    if titles.len() > 1 {
        line(&tinted(&lay(&titles), "2", style.out));
    }
    rows.iter().for_each(|row| line(&lay(row)));
}

/// One that is there, with its details by name.
fn as_json(one: &Presence) -> Json {
    let details: Map<String, Json> =
        one.details.iter().map(|(what, value)| ((*what).to_owned(), Json::from(value.as_str()))).collect();
    json!({"name": one.name, "address": one.address, "details": details})
}
