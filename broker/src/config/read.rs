//! From the text of a file to a configuration.
//!
//! In order: the text is parsed as TOML, with as many errors as the parser finds; if it is TOML, each table
//! is read into its struct; then `whole` looks at what only the file as a whole shows (names that are used
//! twice or nowhere, copies that go round).
//!
//! States: the reader collects mistakes on the way, and is asked for them at the end: a configuration with
//! mistakes is never returned. Invariant: every field that is not asked for is a mistake, and all mistakes
//! are told at once, in the order of the file. Bounds: a route has at most `COPIES` copies, since the copies
//! of a call are a mask of 64 bits.

use super::mistakes::{Lines, Mistakes, meant};
use super::section::{Reader, Section, WithPosition};
use super::{
    AdminConfig, Balance, BreakerConfig, Config, CopyConfig, CopyTo, EditConfig, GRACE, Hops, LimitConfig,
    Listen, Match, Mode, RouteConfig,
};
use everywire::layer::{Caller, Pattern};
use everywire_model::headers::Content;
use everywire_model::{Edit, Header};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeTable;

/// Copies that may wait unless the file says otherwise.
const QUEUE: usize = 1024;
/// The most copies of a route: `copies::CopyTicket` has a bit for each.
const COPIES: usize = 64;

/// Reads a file's text; `folder` is where names of files in it begin.
pub(super) fn parse(text: &str, file: &str, folder: &Path) -> Result<Config, Mistakes> {
    let reader = Reader { file, lines: Lines::of(text), mistakes: Default::default() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = reader.spot(error.span().map_or(0, |span| span.start));
        // The parser names no key, only its place.
        let key = error.span().and_then(|span| text.get(span)).map(str::trim).filter(|key| !key.is_empty());
        let message = match (error.message(), key) {
            ("duplicate key", Some(key)) => format!("duplicate key `{key}`"),
            (message, _) => message.to_owned(),
        };
        reader.wrong(spot, message, None);
    }
    if !errors.is_empty() {
        // What a broken file seems to lack may be what is broken.
        return reader.mistakes.into_inner().or(Config::default());
    }
    let root = Section::new(&reader, table.get_ref(), 0, "the file");
    let mut config = Config {
        file: file.to_owned(),
        grace: root.time("grace").unwrap_or(GRACE),
        max_message: root.parsed("max-message", everywire_model::units::size).map(|size| size.value),
        verbose: root.flag("verbose").is_some_and(|flag| flag.value),
        hops: root
            .count("hops", 0)
            .map(|count| Hops(u32::try_from(count).unwrap_or(u32::MAX)))
            .unwrap_or_default(),
        ..Config::default()
    };
    for (name, section) in root.named("listen") {
        if let Some(address) = section.needed("address") {
            config.listens.push(Listen { name: name.value, address: address.value, spot: address.spot });
        }
        section.end();
    }
    config.listens.sort_by_key(|listen| listen.spot);
    for section in root.sections("route", "[[route]]") {
        config.routes.extend(route(&section, folder));
        section.end();
    }
    if let Some(section) = root.section("admin", "[admin]") {
        let address = section.needed("address");
        let token_file = section.text("token-file").map(|name| folder.join(name.value));
        config.admin = address.map(|address| AdminConfig { address, token_file });
        section.end();
    }
    root.end();
    whole(&reader, table.get_ref(), &config);
    reader.mistakes.into_inner().or(config)
}

/// What only the file as a whole shows.
fn whole(reader: &Reader<'_>, table: &DeTable<'_>, config: &Config) {
    // Where there is one that lacks what it needs, that was told.
    if config.listens.is_empty() && !table.contains_key("listen") {
        reader.wrong(
            reader.spot(0),
            "there is no listener",
            Some("add [listen.NAME] with an address".into()),
        );
    }
    if config.routes.is_empty() && !table.contains_key("route") {
        reader.wrong(reader.spot(0), "there is no route", Some("add [[route]]".into()));
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let by_name: HashMap<&str, &RouteConfig> =
        config.routes.iter().rev().map(|route| (route.name.as_str(), route)).collect();
    for route in &config.routes {
        if let Some(line) = seen.insert(&route.name, route.name.spot.line) {
            let message = format!("there are two routes of the name `{}`", route.name.value);
            reader.wrong(route.name.spot, message, Some(format!("the other one is in line {line}")));
        }
        let listeners = || config.listens.iter().map(|listen| listen.name.as_str());
        for from in route.from.iter().chain(&route.callbacks) {
            if !listeners().any(|known| known == from.value) {
                let message = format!("there is no listener `{}`", from.value);
                reader.wrong(from.spot, message, meant(from, listeners()));
            }
        }
        if let Some(copy) = route.copies.get(COPIES) {
            reader.wrong(copy.spot, format!("a route has at most {COPIES} copies"), None);
        }
        for copy in &route.copies {
            let CopyTo::Route(name) = &copy.to else { continue };
            if *name == route.name.value {
                reader.wrong(copy.spot, "a route cannot have its own copies", None);
            } else if !by_name.contains_key(name.as_str()) {
                let all = config.routes.iter().map(|route| route.name.value.as_str());
                let others = all.filter(|other| *other != route.name.value);
                reader.wrong(copy.spot, format!("there is no route `{name}`"), meant(name, others));
            } else if let Some(round) = round(&by_name, &route.name.value, name) {
                let message = format!("copies would never end: {round}");
                reader.wrong(copy.spot, message, Some("leave out one of these copies".into()));
            }
        }
    }
}

/// The way by which copies of `route` that go to the route `next` come back to it, as text.
fn round(by_name: &HashMap<&str, &RouteConfig>, route: &str, next: &str) -> Option<String> {
    let copies = |name: &str| {
        by_name.get(name).into_iter().flat_map(|route| &route.copies).filter_map(|copy| match &copy.to {
            CopyTo::Route(to) => Some(to.as_str()),
            _ => None,
        })
    };
    // Each route is looked at once, from the one that it was come to by.
    let mut seen: Vec<(&str, usize)> = vec![(next, 0)];
    let mut known = HashSet::from([next]);
    let mut at = 0;
    while let Some((name, _)) = seen.get(at).copied() {
        if name == route {
            let mut way = vec![name];
            let mut back = at;
            while back > 0 {
                back = seen.get(back).map_or(0, |(_, from)| *from);
                way.extend(seen.get(back).map(|(name, _)| *name));
            }
            way.push(route);
            way.reverse();
            return Some(way.join(" to "));
        }
        for to in copies(name) {
            if known.insert(to) {
                seen.push((to, at));
            }
        }
        at += 1;
    }
    None
}

/// One route. `None` only without a name: other mistakes are noted, and the route is read on.
fn route(section: &Section<'_, '_>, folder: &Path) -> Option<RouteConfig> {
    let name = section.needed("name");
    if let Some(name) = name.as_ref().filter(|name| name.is_empty()) {
        section.reader.wrong(name.spot, "a route has a name", None);
    }
    if let Some(name) = name.as_ref().filter(|name| name.chars().any(char::is_control)) {
        let message = "a name has no control characters: it stands in the lines that the broker prints";
        section.reader.wrong(name.spot, message, None);
    }
    let to = section.texts("to");
    for (at, text) in to.iter().enumerate() {
        if to.iter().take(at).any(|other| other.value == text.value) {
            let message = format!("`{}` is a target of this route already", text.value);
            let hint = "each target gets its share of the calls once".into();
            section.reader.wrong(text.spot, message, Some(hint));
        }
    }
    refuse_empty(section, "from", "every listener");
    refuse_empty(section, "allow", "everybody");
    let route = RouteConfig {
        from: section.texts("from"),
        matches: section.section("match", "`match`").map(|section| matches(&section)).unwrap_or_default(),
        contract: section.text("contract").map(|name| relative(folder, name)),
        include: section.texts("include").iter().map(|name| folder.join(&name.value)).collect(),
        define: section.texts("define").into_iter().map(|macro_| macro_.value).collect(),
        interface: section.text("interface"),
        mode: section
            .word("mode", &[("forward", Mode::Forward), ("redirect", Mode::Redirect)])
            .unwrap_or_default(),
        callbacks: section.text("callbacks"),
        references: section.count("references", 1),
        timeout: section.time("timeout"),
        retries: section.count("retries", 0).map_or(0, |count| u32::try_from(count).unwrap_or(u32::MAX)),
        idempotent: patterns(section.texts("idempotent")),
        oneway: patterns(section.texts("oneway")),
        breaker: section.section("breaker", "`breaker`").map(|section| breaker(&section)),
        limit: section.section("limit", "`limit`").map(|section| limit(&section)).unwrap_or_default(),
        balance: section
            .word(
                "balance",
                &[
                    ("least-outstanding", Balance::LeastOutstanding),
                    ("round-robin", Balance::RoundRobin),
                    ("first", Balance::First),
                ],
            )
            .map(|balance| balance.value)
            .unwrap_or_default(),
        probe: section.time("probe"),
        allow: callers(section, "allow"),
        deny: callers(section, "deny"),
        validate: section.flag("validate"),
        copies: section
            .sections("copy", "`copy`")
            .iter()
            .filter_map(|section| copy(section, folder))
            .collect(),
        edits: section.sections("edits", "`edits`").iter().filter_map(edit).collect(),
        name: name?,
        to,
    };
    match section.place("to") {
        None => section.reader.wrong(section.spot, format!("route `{}` lacks `to`", route.name.value), None),
        Some((spot, true)) => {
            let message = format!("route `{}` needs a target", route.name.value);
            section.reader.wrong(spot, message, Some("`to` is an address or a list of addresses".into()));
        }
        // What is wrong in it was told where it was read.
        Some((_, false)) => {}
    }
    Some(route)
}

/// A file's name, from the folder of the configuration.
fn relative(folder: &Path, name: WithPosition<String>) -> WithPosition<String> {
    WithPosition { value: folder.join(&name.value).display().to_string(), spot: name.spot }
}

fn patterns(texts: Vec<WithPosition<String>>) -> Vec<WithPosition<Pattern>> {
    texts.iter().map(|text| WithPosition { value: Pattern::new(text), spot: text.spot }).collect()
}

fn matches(section: &Section<'_, '_>) -> Match {
    let pattern =
        |name| section.text(name).map(|text| WithPosition { value: Pattern::new(&text), spot: text.spot });
    refuse_empty(section, "peer", "every peer");
    let found = Match {
        key: pattern("key"),
        operation: pattern("operation"),
        peer: callers(section, "peer"),
        user: pattern("user").map(|user| user.value),
        header: section.section("header", "`header`").map(|header| header.pairs()).unwrap_or_default(),
        interface: pattern("interface").map(|interface| interface.value),
    };
    section.end();
    found
}

/// A list without anything in it may mean nobody as well as all.
fn refuse_empty(section: &Section<'_, '_>, name: &'static str, all: &str) {
    if let Some((spot, true)) = section.place(name) {
        let hint = format!("leave `{name}` out for {all}");
        section.reader.wrong(spot, format!("`{name}` is empty: the route would be for none"), Some(hint));
    }
}

/// Callers as `Caller::parse` reads them; those that name nobody are mistakes.
fn callers(section: &Section<'_, '_>, name: &'static str) -> Vec<Caller> {
    let parse = |text: &WithPosition<String>| match Caller::parse(text) {
        Ok(caller) => Some(caller),
        Err(why) => {
            section.reader.wrong(text.spot, why, None);
            None
        }
    };
    section.texts(name).iter().filter_map(parse).collect()
}

fn breaker(section: &Section<'_, '_>) -> BreakerConfig {
    let failures = section.count("failures", 1).map_or(5, |count| u32::try_from(count).unwrap_or(u32::MAX));
    let pause = section.time("pause").unwrap_or(Duration::from_secs(5));
    section.end();
    BreakerConfig { failures, pause }
}

fn limit(section: &Section<'_, '_>) -> LimitConfig {
    let found = LimitConfig {
        calls: section.count("calls", 1),
        rate: section.count("rate", 1),
        per_peer: section.count("per-peer", 1),
    };
    section.end();
    found
}

/// `put`, `add` or `remove` a header: `value` is text, `bytes` hexadecimal digits.
fn edit(section: &Section<'_, '_>) -> Option<EditConfig> {
    let (put, add, remove) = (section.text("put"), section.text("add"), section.text("remove"));
    let spot = [&put, &add, &remove].into_iter().flatten().next().map_or(section.spot, |name| name.spot);
    let (value, bytes) = (section.text("value"), section.text("bytes"));
    let must_understand = section.flag("must-understand").is_some_and(|flag| flag.value);
    let answers = section.flag("answers").is_some_and(|flag| flag.value);
    let before_copy = section.flag("before-copy").is_some_and(|flag| flag.value);
    section.end();
    let content = match (value, bytes) {
        (Some(text), None) => Some(Content::Text(text.value)),
        (None, Some(digits)) => match octets(&digits.value) {
            Some(octets) => Some(Content::Bytes(octets.into())),
            None => {
                section.reader.wrong(digits.spot, "`bytes` are pairs of hexadecimal digits", None);
                return None;
            }
        },
        (None, None) => None,
        (Some(_), Some(bytes)) => {
            section.reader.wrong(bytes.spot, "a header has a `value` or `bytes`, not both", None);
            return None;
        }
    };
    let header = |name: WithPosition<String>, content| Header { name: name.value, content, must_understand };
    let edit = match (put, add, remove, content) {
        (Some(name), None, None, Some(content)) => Edit::Put(header(name, content)),
        (None, Some(name), None, Some(content)) => Edit::Add(header(name, content)),
        (None, None, Some(name), None) => Edit::Remove(name.value),
        _ => {
            let message = "an edit is `put` or `add` with a `value` or `bytes`, or `remove` alone";
            section.reader.wrong(section.spot, message, None);
            return None;
        }
    };
    Some(EditConfig { edit, spot, answers, before_copy })
}

/// Octets from pairs of hexadecimal digits.
fn octets(digits: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    if digits.len().is_multiple_of(2) { (0..digits.len()).step_by(2).map(pair).collect() } else { None }
}

fn copy(section: &Section<'_, '_>, folder: &Path) -> Option<CopyConfig> {
    let file = section.text("to").map(|name| {
        if let Some((message, hint)) = neither(&name) {
            section.reader.wrong(name.spot, message, Some(hint));
        }
        (name.spot, of_file(folder, &name))
    });
    let program = section.text("program").map(|command| {
        if command.trim().is_empty() {
            let message = "`program` is a command line, and this one is empty";
            section.reader.wrong(command.spot, message, None);
        }
        (command.spot, CopyTo::Program(command.value))
    });
    let route = section.text("route").map(|name| (name.spot, CopyTo::Route(name.value)));
    let count = section.flag("count").filter(|flag| flag.value).map(|flag| (flag.spot, CopyTo::Count));
    let required = section.flag("required").is_some_and(|flag| flag.value);
    let answers = section.flag("answers").is_some_and(|flag| flag.value);
    let queue = section.count("queue", 1).map_or(QUEUE, |count| usize::try_from(count).unwrap_or(usize::MAX));
    section.end();
    let mut places = [file, program, route, count].into_iter().flatten();
    match (places.next(), places.next()) {
        (Some((spot, to)), None) => Some(CopyConfig { to, spot, required, answers, queue }),
        _ => {
            let message = "a copy goes to one place: a file (`to`), a `program`, a `route`, or only to be counted (`count = true`)";
            section.reader.wrong(section.spot, message, None);
            None
        }
    }
}

/// Why a name is that of no file of copies, and which one was probably meant. A name without an ending may be a pipe or a device, which gets lines
/// of JSON.
fn neither(name: &str) -> Option<(&'static str, String)> {
    let ending = Path::new(name).extension()?;
    if ["pcapng", "ndjson", "jsonl", "json"].iter().any(|known| ending.eq_ignore_ascii_case(known)) {
        return None;
    }
    if ending.eq_ignore_ascii_case("pcap") {
        let hint = format!("did you mean `{name}ng`?");
        return Some(("captures are written in the form of .pcapng files only", hint));
    }
    let lines = Path::new(name).with_extension("ndjson");
    let hint = format!("did you mean `{}`?", lines.display());
    Some(("copies go to a file of JSON lines (.ndjson) or to a capture (.pcapng)", hint))
}

/// The kind of a copy's file: `.pcapng` is a capture, all else lines of JSON.
fn of_file(folder: &Path, name: &str) -> CopyTo {
    let path: PathBuf = folder.join(name);
    if ends(name, "pcapng") { CopyTo::Capture(path) } else { CopyTo::Lines(path) }
}

/// Whether a file's name has this ending.
fn ends(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}
