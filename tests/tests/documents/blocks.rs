//! Blocks of commands out of a document in Markdown.

/// A block of commands.
pub(super) struct Block {
    /// Where it begins.
    pub(super) line: usize,
    /// Its commands, without comments; one that goes on behind `\` is one.
    pub(super) commands: Vec<String>,
    /// What they print, where the document says so.
    prints: Vec<String>,
}

impl Block {
    /// A line that should have been printed, and was not. `...` stands for any lines. They come in any order: what goes on in the background
    /// prints, too.
    pub(super) fn missing(&self, printed: &[String]) -> Option<&str> {
        let stated = self.prints.iter().filter(|line| !line.is_empty() && *line != "...");
        stated.map(String::as_str).find(|line| !printed.iter().any(|printed| printed.trim_end() == *line))
    }
}

/// The blocks of a document that are for the shell.
pub(super) fn of(document: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = document.lines().enumerate();
    // Whether what comes next can be what the block before prints: one sentence at the most stands between.
    let mut follows = false;
    while let Some((number, line)) = lines.next() {
        let mut body = || {
            let within = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
            within.map(str::to_owned).collect::<Vec<_>>()
        };
        match line.strip_prefix("```") {
            Some("sh") => {
                blocks.push(Block { line: number + 2, commands: commands(&body()), prints: Vec::new() });
                follows = true;
            }
            Some("text") => {
                let prints = body();
                if let Some(block) = blocks.last_mut().filter(|_| follows) {
                    block.prints = prints;
                }
                follows = false;
            }
            Some(_) => {
                body();
                follows = false;
            }
            None => follows &= line.is_empty() || line.ends_with(':'),
        }
    }
    blocks
}

fn commands(lines: &[String]) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut open = false;
    for line in lines {
        // A comment stands alone, or behind a blank.
        let bare = line.split(" #").next().unwrap_or_default().trim();
        if bare.is_empty() || bare.starts_with('#') {
            continue;
        }
        let (part, goes_on) = match bare.strip_suffix('\\') {
            Some(part) => (part.trim(), true),
            None => (bare, false),
        };
        match commands.last_mut().filter(|_| open) {
            Some(command) => *command = format!("{command} {part}"),
            None => commands.push(part.to_owned()),
        }
        open = goes_on;
    }
    commands
}

/// The text of all blocks of a language.
pub(super) fn fenced(document: &str, language: &str) -> Vec<String> {
    let opens = format!("```{language}\n");
    let behind = document.split(&opens).skip(1);
    behind.filter_map(|rest| rest.split_once("\n```")).map(|(text, _)| format!("{text}\n")).collect()
}

/// The words of a text in OMG IDL.
pub(super) fn without_comments(text: &str) -> Vec<&str> {
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.flat_map(str::split_whitespace).collect()
}

#[test]
fn blocks_are_found_with_what_they_print() {
    let document = "a\n```sh\n# all\none 'a#b'  # why\ntwo \\\n    three\n```\n\nIt prints:\n\n```text\nx\n...\ny\n```\nb\n```text\nz\n```\n";
    let blocks = of(document);
    assert_eq!(blocks.len(), 1);
    assert_eq!(
        (blocks[0].line, &*blocks[0].commands),
        (3, &["one 'a#b'".to_owned(), "two three".to_owned()][..])
    );
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(blocks[0].missing(&lines("y\nw\nx")), None);
    assert_eq!(blocks[0].missing(&lines("y\nw")), Some("x"));
}
