//! Which files of a crate know one another in a circle, by their `use` lines and their paths from `crate::` and `super::`.
//!
//! A path leads to the file that defines its name: re-exports are followed, and re-exporting is no knowing. The root of a crate, its
//! test modules, and comments do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A path in code, part by part.
type Parts = Vec<String>;

/// What the files of a crate name.
#[derive(Default)]
struct Names {
    /// By file, as a module path: what it names.
    named: BTreeMap<Parts, Vec<Parts>>,
    /// By file: names that it re-exports, and what they lead to.
    exported: BTreeMap<Parts, BTreeMap<String, Parts>>,
}

/// The circles among the files of a crate, the largest first.
pub(crate) fn of(sources: &Path, files: &[PathBuf]) -> Vec<Vec<String>> {
    let mut names = Names::default();
    for file in files {
        let Some(module) = module_of(sources, file) else { continue };
        let text = fs::read_to_string(file).expect("readable");
        names.read(module, &text);
    }
    names.circles()
}

/// The module that a file is; none of a test.
fn module_of(sources: &Path, file: &Path) -> Option<Parts> {
    let within = file.strip_prefix(sources).ok()?.with_extension("");
    let mut parts: Parts = within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.iter().any(|part| part == "tests" || part.ends_with("_tests")) {
        return None;
    }
    if parts.last().is_some_and(|last| last == "mod")
        || (parts.len() == 1 && (parts[0] == "lib" || parts[0] == "main"))
    {
        parts.pop();
    }
    Some(parts)
}

impl Names {
    fn read(&mut self, module: Parts, text: &str) {
        let text = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        let code: String = text.lines().map(|line| line.split("//").next().unwrap_or_default()).fold(
            String::new(),
            |mut code, line| {
                code.push_str(line);
                code.push('\n');
                code
            },
        );
        let (mut named, mut exported) = (Vec::new(), BTreeMap::new());
        let mut rest = code.as_str();
        let mut outside = String::new();
        while let Some(at) = find_use(rest) {
            let (before, from) = rest.split_at(at);
            let (tree, after) = from.strip_prefix("use ").and_then(|from| from.split_once(';')).unwrap();
            let line = before.rsplit('\n').next().unwrap_or_default().trim();
            let mut found = Vec::new();
            expand(tree.trim(), &Parts::new(), &mut found);
            for path in found {
                if line.starts_with("pub") {
                    exported.insert(path.last().cloned().unwrap_or_default(), path);
                } else {
                    named.push(path);
                }
            }
            outside.push_str(before);
            rest = after;
        }
        outside.push_str(rest);
        for start in ["crate::", "super::"] {
            for (at, _) in outside.match_indices(start) {
                let is_edge = !outside[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':');
                let path: String =
                    outside[at..].chars().take_while(|c| c.is_alphanumeric() || "_:".contains(*c)).collect();
                if is_edge {
                    named.push(path.trim_end_matches(':').split("::").map(str::to_owned).collect());
                }
            }
        }
        self.exported.insert(module.clone(), exported);
        self.named.insert(module, named);
    }

    /// The file that a path in a module leads to, if it is one of this crate.
    fn lead(&self, module: &[String], path: &[String], depth: u32) -> Option<&Parts> {
        let whole = self.absolute(module, path)?;
        (0..=whole.len()).rev().find_map(|len| {
            let (found, _) = self.named.get_key_value(&whole[..len])?;
            let onward = whole.get(len).and_then(|name| self.exported.get(found)?.get(name));
            Some(
                onward
                    .filter(|_| depth < 6)
                    .and_then(|onward| self.lead(found, onward, depth + 1))
                    .unwrap_or(found),
            )
        })
    }

    fn absolute(&self, module: &[String], path: &[String]) -> Option<Parts> {
        let first = path.first()?;
        let ups = path.iter().take_while(|part| *part == "super").count();
        let below = [module, &path[..1]].concat();
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([&module[..module.len().saturating_sub(ups)], &path[ups..]].concat()),
            _ => self.named.contains_key(&below).then(|| [module, path].concat()),
        }
    }

    fn circles(&self) -> Vec<Vec<String>> {
        let mut known: BTreeMap<&Parts, BTreeSet<&Parts>> = BTreeMap::new();
        for (module, paths) in self.named.iter().filter(|(module, _)| !module.is_empty()) {
            let found = paths.iter().filter_map(|path| self.lead(module, path, 0));
            known.insert(module, found.filter(|found| *found != module && !found.is_empty()).collect());
        }
        // There are few files: whatever each reaches is walked anew.
        let reached: BTreeMap<&Parts, BTreeSet<&Parts>> =
            known.keys().map(|module| (*module, reach(&known, module))).collect();
        let mut circles = BTreeSet::new();
        for (module, seen) in reached.iter().filter(|(module, seen)| seen.contains(*module)) {
            let circle = seen.iter().filter(|other| reached[**other].contains(*module));
            circles.insert(circle.map(|file| file.join("/")).collect::<Vec<_>>());
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// What a file knows, and what that knows, and so on.
fn reach<'f>(known: &BTreeMap<&'f Parts, BTreeSet<&'f Parts>>, from: &'f Parts) -> BTreeSet<&'f Parts> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(file) = open.pop() {
        open.extend(known[file].iter().filter(|next| seen.insert(**next)));
    }
    seen
}

/// Where the next `use` begins.
fn find_use(code: &str) -> Option<usize> {
    let mut starts = code.match_indices("use ").map(|(at, _)| at);
    starts.find(|at| {
        let before = code[..*at].rsplit('\n').next().unwrap_or_default().trim();
        before.is_empty() || before == "pub" || (before.starts_with("pub(") && before.ends_with(')'))
    })
}

/// The paths of a tree such as `a::{b, c::{d, e}}`.
fn expand(tree: &str, above: &Parts, found: &mut Vec<Parts>) {
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let own = path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
        found.push(above.iter().cloned().chain(own).collect());
        return;
    };
    let own = head.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty());
    let above: Parts = above.iter().cloned().chain(own).collect();
    let (mut depth, mut part) = (0, String::new());
    for c in rest.chars() {
        match c {
            ',' | '}' if depth == 0 => {
                if !part.trim().is_empty() {
                    expand(part.trim(), &above, found);
                }
                part.clear();
                if c == '}' {
                    return;
                }
                continue;
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        part.push(c);
    }
}

#[test]
fn a_circle_is_seen_through_re_exports_and_not_in_tests() {
    let mut names = Names::default();
    let path = |text: &str| -> Parts {
        text.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    names.read(path(""), "mod a;\npub use a::A;\n");
    names.read(path("a"), "mod low;\npub(crate) use low::{Low, Other as More};\nuse crate::b::{self, B};\n");
    names.read(path("a/low"), "fn f() -> super::super::c::C {}\n// use crate::e::E;\n");
    names.read(path("b"), "use crate::a::Low;\n#[cfg(test)]\nmod tests {\n    use crate::d::D;\n}\n");
    names.read(path("c"), "fn f() {\n    use crate::{\n        b::B, d::D,\n    };\n}\n");
    names.read(path("d"), "use std::fmt;\n");
    names.read(path("e"), "use crate::A;\nuse super::b;\n");
    assert_eq!(names.circles(), [["a/low", "b", "c"]]);
}
