//! The documents hold together: links lead somewhere, the book has every page and builds, tables can be read, and what a table says of tests
//! is true.

use crate::common::scratch;
use everywire_tests::peers::{cached, root};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Characters of a table's cell: longer ones are unreadable, and become text or a list under the table.
const CELL: usize = 200;

/// The pages at the top of the project and in `docs/`, from the root.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root(), root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            } else if path.is_dir() && folder.starts_with(root().join("docs")) {
                folders.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 20, "only {} pages found", found.len());
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines outside of fenced blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((number + 1, line))
    })
}

/// A line without its code spans: what looks like a link there is none.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// The targets of the links in a line: `[text](target)`.
fn links(line: &str) -> Vec<String> {
    let bare = without_code(line);
    let targets = bare.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.map(str::to_owned).collect()
}

/// The anchors of a page's headings, as the repository and the book make them: small letters, digits, `-` and `_`, blanks as `-`, and a
/// number behind one that was there before.
fn anchors(text: &str) -> HashSet<String> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    prose(text)
        .filter_map(|(_, line)| line.strip_prefix('#').map(|rest| rest.trim_start_matches('#').trim()))
        .map(|heading| {
            let kept = heading.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                '-' | '_' => Some(c),
                _ if c.is_alphanumeric() => c.to_lowercase().next(),
                _ => None,
            });
            let anchor: String = kept.collect();
            let count = counts.entry(anchor.clone()).or_default();
            *count += 1;
            if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
        })
        .collect()
}

/// Why a link of a page leads nowhere.
fn dead(page: &Path, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => page.to_owned(),
        _ => page.parent().expect("a folder").join(path),
    };
    if !file.exists() {
        return Some("there is no such file".to_owned());
    }
    if !anchor.is_empty() && file.extension().is_some_and(|extension| extension == "md") {
        let there = anchors(&read(&file));
        return (!there.contains(anchor)).then(|| format!("no heading is `#{anchor}`"));
    }
    None
}

#[test]
fn every_link_leads_somewhere() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for (number, line) in prose(&text) {
            for target in links(line) {
                seen += 1;
                let why = dead(&page, &target);
                wrong.extend(why.map(|why| format!("{}:{number}: {target}: {why}", page.display())));
            }
        }
    }
    assert!(seen > 100, "only {seen} links found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_search_for_dead_links_sees_them() {
    assert_eq!(links("see [a](b.md#c) and `[d](e)`, [f](g)"), ["b.md#c", "g"]);
    let readme = root().join("README.md");
    assert!(dead(&readme, "no-such-file.md").is_some());
    assert!(dead(&readme, "README.md#no-such-heading").is_some());
    assert!(dead(&readme, "README.md#install").is_none());
    let text = "# A `b`: c\n## Who may call\n### Who may call\n```sh\n# none\n```\n";
    let expected = ["a-b-c", "who-may-call", "who-may-call-1"];
    assert_eq!(anchors(text), expected.into_iter().map(str::to_owned).collect());
}

#[test]
fn cells_of_tables_can_be_read() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        for (number, line) in prose(&text).filter(|(_, line)| line.starts_with('|')) {
            for cell in line.replace("\\|", "/").split('|') {
                seen += 1;
                let length = cell.trim().chars().count();
                if length > CELL {
                    wrong.push(format!("{}:{number}: a cell of {length} characters", page.display()));
                }
            }
        }
    }
    assert!(seen > 1000, "only {seen} cells found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_book_has_every_page_once() {
    let docs = root().join("docs");
    let summary = read(&docs.join("SUMMARY.md"));
    let listed: Vec<PathBuf> = summary.lines().flat_map(links).map(|target| docs.join(target)).collect();
    let mut expected: Vec<PathBuf> = pages().into_iter().filter(|page| page.starts_with(&docs)).collect();
    expected.retain(|page| !page.ends_with("SUMMARY.md"));
    let mut sorted = listed;
    sorted.sort();
    assert_eq!(sorted, expected);
}

/// `make docs`, elsewhere; and the links of what it made.
#[test]
fn the_book_builds_and_its_links_lead_somewhere() {
    let Some(mdbook) = cached("the_book_builds_and_its_links_lead_somewhere", "mdbook") else { return };
    let book = scratch("book");
    let output = Command::new(mdbook.join("bin/mdbook"))
        .args(["build", "--dest-dir"])
        .arg(&book)
        .arg(root())
        .output()
        .expect("mdbook starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{said}");
    let mut seen = 0;
    let mut wrong = Vec::new();
    let mut folders = vec![book];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // The page for addresses that are not there is read at any path; the one for printing is made of all others.
            let whole = path.ends_with("404.html") || path.ends_with("print.html");
            if whole || path.extension().is_none_or(|extension| extension != "html") {
                continue;
            }
            let text = read(&path);
            for target in text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                seen += 1;
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                if file.contains("://") || file.starts_with("mailto:") || file.starts_with("data:") {
                    continue;
                }
                let file = if file.is_empty() { path.clone() } else { folder.join(file) };
                let there =
                    file.exists() && (anchor.is_empty() || read(&file).contains(&format!("id=\"{anchor}\"")));
                if !there {
                    wrong.push(format!("{}: {target}", path.display()));
                }
            }
        }
    }
    assert!(seen > 500, "only {seen} links found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The table of docs/compare.md names a test for each thing that it claims.
#[test]
fn the_comparison_names_tests_that_exist() {
    let text = read(&root().join("docs/compare.md"));
    let shown = text.split("## What shows it").nth(1).expect("the section");
    let mut file = String::new();
    let mut seen = 0;
    for code in shown.split('`').skip(1).step_by(2) {
        if code.ends_with(".rs") {
            file = read(&root().join(code));
        } else if code.contains('_') {
            seen += 1;
            assert!(file.contains(&format!("fn {code}()")), "there is no test {code}");
        }
    }
    assert!(seen > 15, "only {seen} tests are named");
}
