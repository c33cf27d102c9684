//! The text of a transcript: who says what, and the listing of each message by the `explain` of its wire.

use super::stable::{Kept, Stable, canonical, is_hex};
use super::tape::{Event, Order, Recorded};
use everywire::model::Wire;
use everywire::model::wire::{MessageListing, Part};
use std::fmt::Write as _;

/// Octets on a line that has a meaning beside it.
const BESIDE: usize = 8;
/// Octets on a line of values.
const ROW: usize = 16;
/// Rows of one part that are shown at most.
const ROWS: usize = 8;
/// Octets in which headers stand, whose fields repeat.
const HEAD: usize = 16;
/// Octets of a header that is new where a message is passed on.
const SAME: usize = 24;
/// Characters of a line.
const WIDTH: usize = 128;

/// One message, or what is none.
pub struct Said {
    /// Number of the event with which its last octet passed.
    pub event: usize,
    pub connection: usize,
    /// Whether the caller sent it.
    pub outward: bool,
    pub explained: MessageListing,
    pub octets: Vec<u8>,
}

/// A transcript.
pub struct Text {
    /// For people.
    pub text: String,
    /// Length and hash of each message, without what differs between runs.
    pub octets: Vec<(usize, u64)>,
}

/// All messages, in the order in which they passed.
pub fn messages(recorded: &Recorded, wire: &'static dyn Wire) -> Vec<Said> {
    let mut found = Vec::new();
    for (connection, there) in recorded.connections.iter().enumerate() {
        for (outward, octets) in [(true, &there.outward), (false, &there.inward)] {
            let passed = |end| {
                recorded.events.iter().position(|event| {
                    matches!(event, Event::Octets { connection: at, outward: way, end: seen }
                        if (*at, *way) == (connection, outward) && *seen >= end)
                })
            };
            let listing = wire.explain(octets);
            let mut last = 0;
            for mut explained in listing.messages {
                let end = explained.offset.saturating_add(explained.len).min(octets.len());
                last = end;
                let mut octets = octets[explained.offset..end].to_vec();
                if let Some(other) = canonical(&octets) {
                    explained = wire.explain(&other).messages.into_iter().next().expect("one message");
                    octets = other;
                }
                found.push(Said {
                    event: passed(end).expect("it passed"),
                    connection,
                    outward,
                    explained,
                    octets,
                });
            }
            if last < octets.len() {
                let rest = octets[last..].to_vec();
                let summary = format!("{} octets of a message that is not whole", rest.len());
                let explained = MessageListing {
                    summary,
                    len: rest.len(),
                    body: Some((0, rest.len())),
                    ..MessageListing::default()
                };
                found.push(Said {
                    event: passed(octets.len()).expect("it passed"),
                    connection,
                    outward,
                    explained,
                    octets: rest,
                });
            }
        }
    }
    // The caller speaks first, also where both sides begin at once.
    for (connection, _) in recorded.connections.iter().enumerate() {
        let first = |way| {
            let passed =
                |event: &Event| matches!(event, Event::Octets { .. }) && event.place() == (connection, way);
            recorded.events.iter().position(passed)
        };
        if let (Some(outward), Some(inward)) = (first(true), first(false))
            && inward < outward
        {
            found.iter_mut().filter(|said| said.event == inward).for_each(|said| said.event = outward);
        }
    }
    found.sort_by_key(|said| said.event);
    if matches!(recorded.order, Order::ByConnection) {
        answers_behind_their_questions(&mut found);
    }
    // Both sides of ICE say their byte order at once, whenever the other does: the caller first, and then the callee.
    for (connection, _) in recorded.connections.iter().enumerate() {
        let first = |found: &[Said], way| {
            found.iter().position(|said| {
                (said.connection, said.outward) == (connection, way) && said.explained.kind == "ByteOrder"
            })
        };
        if let (Some(outward), Some(inward)) = (first(&found, true), first(&found, false)) {
            let mut said = found.remove(inward);
            let outward = outward - usize::from(inward < outward);
            said.event = found[outward].event;
            found.insert(outward + 1, said);
        }
    }
    // The bus tells the first name at once, behind its answer to Hello, and whoever said Hello may go on before.
    for (connection, _) in recorded.connections.iter().enumerate() {
        let own = |said: &Said| said.connection == connection && !said.outward;
        let first =
            found.iter().position(|said| own(said) && said.explained.summary.contains(" NameAcquired "));
        let answer = first.and_then(|first| found[..first].iter().rposition(own));
        if let (Some(first), Some(answer)) = (first, answer) {
            let mut said = found.remove(first);
            said.event = found[answer].event;
            found.insert(answer + 1, said);
        }
    }
    found
}

/// Who asks for nothing but that it is done may ask for more before the answer comes, or after it: on each connection an answer stands
/// behind what it answers, whenever it came.
fn answers_behind_their_questions(found: &mut Vec<Said>) {
    fn number<'a>(said: &'a Said, word: &str) -> Option<&'a str> {
        said.explained.summary.strip_prefix(word)?.split([' ', ',']).next()
    }
    for at in 0..found.len() {
        let answer = &found[at];
        let Some(number_of_answer) = number(answer, "response #") else { continue };
        let asked = found[..at].iter().rposition(|said| {
            (said.connection, said.outward) == (answer.connection, !answer.outward)
                && number(said, "request #") == Some(number_of_answer)
        });
        if let Some(asked) = asked {
            let mut answer = found.remove(at);
            answer.event = found[asked].event;
            found.insert(asked + 1, answer);
        }
    }
}

/// Writes a transcript.
pub fn text(recorded: &Recorded, wire: &'static dyn Wire) -> Text {
    let said = messages(recorded, wire);
    let mut events: Vec<(usize, Event)> =
        recorded.events.iter().copied().enumerate().skip(recorded.begin).collect();
    events.sort_by_key(|(number, event)| {
        let (connection, outward) = event.place();
        match recorded.order {
            Order::Passed => (0, false, *number),
            Order::ByConnection => (connection, false, *number),
            Order::ByDirection => (connection, !outward, *number),
        }
    });
    // Names go by the order in which they are shown; what only hidden messages have is looked for, too.
    let mut stable = Stable::new(recorded);
    let place =
        |said: &Said| events.iter().position(|(number, _)| *number == said.event).unwrap_or(usize::MAX);
    let mut shown: Vec<&Said> = said.iter().collect();
    shown.sort_by_key(|said| place(said));
    shown.iter().for_each(|one| stable.learn(&one.explained, &one.octets));
    let mut said = said;
    let mut out = Text { text: String::new(), octets: Vec::new() };
    let mut before = Before::default();
    let several = recorded.connections.len() > 1;
    for (number, event) in events {
        let (connection, outward) = event.place();
        let there = &recorded.connections[connection];
        let (from, to) = if outward { (there.caller, there.callee) } else { (there.callee, there.caller) };
        let which = if several { format!(" (connection {})", connection + 1) } else { String::new() };
        match event {
            Event::Opened { .. } => {
                let _ = writeln!(out.text, "{from} opens a connection to {to}{which}\n");
            }
            // Which side is the first to close is a matter of chance where both want to.
            Event::Ended { .. } => {
                let ended = |event: &&Event| matches!(event, Event::Ended { connection: at, .. } if *at == connection);
                if recorded.events[..=number].iter().filter(ended).count() == 2 {
                    let _ = writeln!(out.text, "the connection closes{which}\n");
                }
            }
            Event::Octets { .. } => {
                let (now, later) = said.into_iter().partition(|one| one.event == number);
                said = later;
                for one in now as Vec<Said> {
                    let kept = stable.keep(&one.explained, &one.octets);
                    out.octets.push((one.octets.len(), hash(&kept)));
                    let (from, to) =
                        if one.outward { (there.caller, there.callee) } else { (there.callee, there.caller) };
                    let _ =
                        writeln!(out.text, "{from} -> {to}{which}: {}", stable.said(&one.explained.summary));
                    parts(&one, &kept, &before, &stable, &mut out.text);
                    out.text.push('\n');
                    before = Before { connection, kept, parts: one.explained.parts };
                }
            }
        }
    }
    out
}

/// The message before, of which this one may repeat something.
#[derive(Default)]
struct Before {
    connection: usize,
    kept: Vec<Kept>,
    parts: Vec<Part>,
}

impl Before {
    /// From where on this message says the same as the one before, if that is most of it: it was passed on.
    fn passed_on(&self, connection: usize, kept: &[Kept]) -> Option<usize> {
        let known = |(was, is): &(&Kept, &Kept)| was == is && was.0.is_some();
        let same = self.kept.iter().rev().zip(kept.iter().rev()).take_while(known).count();
        (connection != self.connection && same > SAME && same < kept.len() && same + SAME > kept.len())
            .then(|| kept.len() - same)
    }

    /// Whether this field of a header is there for the second time.
    fn has(&self, part: &Part, run: &[Kept]) -> bool {
        part.offset + part.len <= HEAD
            && part.len > 0
            && !run.contains(&Kept(None))
            && self.parts.iter().any(|was| {
                let here = self.kept.get(was.offset..was.offset + was.len);
                (was.offset, was.name, &was.value) == (part.offset, part.name, &part.value)
                    && here == Some(run)
            })
    }
}

fn parts(said: &Said, kept: &[Kept], before: &Before, stable: &Stable, out: &mut String) {
    let mut parts: Vec<&Part> = said.explained.parts.iter().collect();
    parts.sort_by_key(|part| (part.offset, std::cmp::Reverse(part.len)));
    let passed_on = before.passed_on(said.connection, kept);
    let mut shown = 0;
    for part in parts {
        let end = part.offset.saturating_add(part.len).min(kept.len());
        let run = kept.get(part.offset..end).unwrap_or_default();
        let octets = said.octets.get(part.offset..end).unwrap_or_default();
        if passed_on.is_some_and(|from| part.offset >= from) || before.has(part, run) {
            shown = shown.max(end);
            continue;
        }
        let value = stable.value(part, octets);
        let inside = part.offset < shown && part.len > 0;
        if let Some(gap) = kept.get(shown..part.offset).filter(|gap| !gap.is_empty()) {
            row(out, shown, gap, unnamed(gap));
        }
        shown = shown.max(end);
        let is_values = said.explained.body == Some((part.offset, part.len));
        match lines_of(&value) {
            _ if inside => row(out, part.offset, &[], &format!("| {}: {value}", part.name)),
            lines if lines.len() > 1 => {
                row(out, part.offset, run, &format!("{}:", part.name));
                lines.iter().for_each(|line| {
                    let _ = writeln!(out, "          {line}");
                });
            }
            _ if is_values && is_hex(&part.value, octets) => values(out, part.offset, run, part.name),
            _ if value.is_empty() => row(out, part.offset, run, part.name),
            _ => {
                row(out, part.offset, run, &format!("{}: {value}", part.name));
                if is_values && !value.starts_with('<') {
                    dump(out, part.offset, run, 3);
                }
            }
        }
    }
    if let Some(from) = passed_on {
        return row(out, from, &[], "(the rest is that of the message before: it is passed on)");
    }
    match kept.get(shown..).filter(|gap| !gap.is_empty()) {
        Some(gap) if said.explained.parts.is_empty() => dump(out, shown, gap, ROWS),
        Some(gap) => row(out, shown, gap, unnamed(gap)),
        None => {}
    }
}

/// Octets that no part covers.
fn unnamed(gap: &[Kept]) -> &'static str {
    if gap.iter().all(|octet| octet.0 == Some(0)) { "(padding)" } else { "" }
}

/// Values that nobody but a contract explains.
fn values(out: &mut String, offset: usize, run: &[Kept], name: &str) {
    if run.len() <= BESIDE {
        return row(out, offset, run, name);
    }
    row(out, offset, &[], &format!("{name}, {} octets:", run.len()));
    dump(out, offset, run, ROWS);
}

/// A line: the place, a few octets, and what they mean; what does not fit goes on the lines after it.
fn row(out: &mut String, offset: usize, run: &[Kept], text: &str) {
    let mut digits: Vec<String> = run.iter().take(BESIDE).map(Kept::digits).collect();
    if run.len() > BESIDE {
        digits.pop();
        digits.push("..".to_owned());
    }
    let head = format!("  {offset:04x}  {:<23}  ", digits.join(" "));
    let mut line = head.clone();
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() > WIDTH
            && line.trim_end().len() > head.trim_end().len()
        {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(head.len() + 2);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Octets of values, with the text in them.
fn dump(out: &mut String, offset: usize, run: &[Kept], rows: usize) {
    for (index, octets) in run.chunks(ROW).take(rows).enumerate() {
        let digits: Vec<String> = octets.iter().map(Kept::digits).collect();
        let letters: String = octets.iter().map(Kept::letter).collect();
        let place = offset + index * ROW;
        let _ = writeln!(out, "          {place:04x}  {:<47}  {}", digits.join(" "), letters.trim_end());
    }
    if run.len() > ROW * rows {
        let _ = writeln!(out, "          ...   {} octets more", run.len() - ROW * rows);
    }
}

/// A value on several lines: XML by its elements, text by its lines.
fn lines_of(value: &str) -> Vec<String> {
    if value.len() <= WIDTH - 60 && !value.contains('\n') {
        return vec![value.to_owned()];
    }
    if !value.starts_with('<') {
        return value.lines().map(str::to_owned).collect();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    let mut was_text = false;
    for piece in pieces(value) {
        let closes = piece.starts_with("</");
        let opens = piece.starts_with('<') && !closes && !piece.ends_with("/>") && !piece.starts_with("<?");
        if closes {
            depth = depth.saturating_sub(1);
        }
        match lines.last_mut() {
            // A text stays with its tags.
            Some(last) if !piece.starts_with('<') || (closes && was_text) => last.push_str(piece),
            _ => lines.push(format!("{}{piece}", "  ".repeat(depth))),
        }
        was_text = !closes;
        if closes {
            was_text = false;
        }
        if opens {
            depth += 1;
        }
    }
    lines.iter().flat_map(|line| folded(line)).collect()
}

/// A line that is too long, on several.
fn folded(line: &str) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut lines = Vec::new();
    let mut rest = line.to_owned();
    while rest.chars().count() > WIDTH - 10 {
        let limit = rest.char_indices().nth(WIDTH - 10).map_or(rest.len(), |(at, _)| at);
        let Some(at) = rest[..limit].rfind(' ').filter(|at| *at > indent + 4) else { break };
        let after = rest[at + 1..].to_owned();
        rest.truncate(at);
        lines.push(rest);
        rest = format!("{}{after}", " ".repeat(indent + 4));
    }
    lines.push(rest);
    lines
}

/// Tags and texts.
fn pieces(xml: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = xml;
    while !rest.is_empty() {
        let at = match rest.strip_prefix('<') {
            Some(tag) => tag.find('>').map_or(rest.len(), |at| at + 2),
            None => rest.find('<').unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(at);
        found.push(piece);
        rest = after;
    }
    found
}

/// FNV-1a, of octets without what differs between runs.
fn hash(kept: &[Kept]) -> u64 {
    kept.iter().fold(0xcbf2_9ce4_8422_2325, |sum, octet| {
        (sum ^ u64::from(octet.0.unwrap_or(0))).wrapping_mul(0x0100_0000_01b3)
    })
}
