//! What clap says, as people and programs want it: examples that no line end breaks, and mistakes in
//! one sentence.
//!
//! The texts behind `--help` are taken out of the command before clap sees the arguments (`apart`), and
//! printed behind its help by `main`. With `--json` a mistake is not what clap prints, but one object
//! like any other failure (`sentence`).

use clap::Command;
use clap::builder::Resettable;
use std::collections::HashMap;

/// The texts behind the help of each verb, by its name; that of the program itself has the empty name.
pub(crate) struct Examples(HashMap<String, String>);

/// Takes the texts behind the help out of a command, which is returned without them: clap would break
/// their lines, and examples that are broken cannot be pasted.
pub(crate) fn apart(mut command: Command) -> (Command, Examples) {
    let mut texts = HashMap::new();
    let mut take = |command: Command, name: &str| {
        if let Some(text) = command.get_after_help() {
            texts.insert(name.to_owned(), text.to_string());
        }
        command.after_help(Resettable::Reset)
    };
    command = take(command, "");
    command = command.mut_subcommands(|verb| {
        let name = verb.get_name().to_owned();
        take(verb, &name)
    });
    (command, Examples(texts))
}

impl Examples {
    /// The text behind the help that a command line asks for: that of its verb, else that of the
    /// program. Empty or with a line end around it.
    pub(crate) fn of(&self, raw: &[String]) -> String {
        let mut words = raw.iter().skip(1).filter(|word| !word.starts_with('-') && *word != "help");
        let verb =
            words.next().map(String::as_str).filter(|verb| self.0.contains_key(*verb)).unwrap_or_default();
        self.0.get(verb).map(|text| format!("\n{}\n", text.trim_end())).unwrap_or_default()
    }
}

/// A mistake as clap tells it, in one sentence; and its tip, if it has one. Clap prints paragraphs: the
/// mistake with indented lines of what is missing, then tips and usage.
pub(crate) fn sentence(text: &str) -> (String, Option<String>) {
    let mut paragraphs = text.split("\n\n");
    let first = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let mut lines = first.lines().map(str::trim);
    let head = lines.next().unwrap_or_default().to_owned();
    let named: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    let message = if named.is_empty() { head } else { format!("{head} {}", named.join(", ")) };
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    (message, tip.map(|tip| tip.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_keeps_the_names_of_what_is_missing() {
        let text = "error: the following required arguments were not provided:\n  <REFERENCE>\n  <OPERATION>\n\nUsage: x\n";
        let (message, tip) = sentence(text);
        assert_eq!(message, "the following required arguments were not provided: <REFERENCE>, <OPERATION>");
        assert_eq!(tip, None);
        let (_, tip) = sentence(
            "error: unexpected argument '--jsn' found\n\n  tip: a similar argument exists: '--json'\n\nUsage: x\n",
        );
        assert_eq!(tip.as_deref(), Some("a similar argument exists: '--json'"));
    }
}
