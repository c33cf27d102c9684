//! Messages for people and for programs.
//!
//! A call is kept as a question until its answer comes, by each name that the answer may give it; the
//! answer takes it out again, and is told with it. A question knows which operation of the contract it
//! asks for, so that the answer's values have types. What is not chosen is not told, and is remembered
//! all the same: its answer may be chosen.
//!
//! Order for each message: what it says (`MessageSummary`), the question that it answers, the member of the
//! contract, what it says of OPC items, the HRESULT of a failure that it ends with, whether it is chosen, its
//! values, and only then what is printed and written.
//!
//! Invariants: at most `QUESTIONS` are remembered; then all are forgotten, and some answers are told
//! without their question. An answer that names no call is put to one only while a single call waits. A
//! capture that cannot be written is given up, and the trace goes on.

use super::clock::{time_of_day, timestamp};
use super::message_summary::{MessageSummary, ONLY};
use super::seen_message::SeenMessage;
use super::select::Selection;
use super::values::{KnownTypes, Member, RenderedValues};
use crate::codes;
use crate::output::{self, Style, line, note, shown, tinted, visible};
use everywire::model::{MessageListing, Part};
use everywire_opc::handle_tracker::{HandleTracker, OrpcMessage};
use everywire_trace::{CapturedMessage, Writer};
use serde_json::{Value as Json, json};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::rc::Rc;
use std::time::Duration;

/// Octets of one part that are shown at most.
const MOST: usize = 4096;
/// Octets on one line.
const ROW: usize = 16;
/// Names of questions that are remembered until their answer comes: some are never answered, such as
/// lost ones.
const QUESTIONS: usize = 1 << 16;

/// What a message holds, as far as it is known.
struct Contents {
    /// Of OPC items.
    items: Option<String>,
    /// The failure that an answer ends with.
    hresult: Option<u32>,
    values: Option<RenderedValues>,
}

/// How much is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detail {
    /// 0: a line a message; 1: its parts; 2: its octets.
    pub(crate) level: u8,
    /// As JSON.
    pub(crate) json: bool,
    /// With colours.
    pub(crate) style: Style,
}

/// What an answer answers.
struct OpenRequest {
    /// What the call said.
    spoken: MessageSummary,
    /// Which operation of the contract it is.
    member: Option<Member>,
    /// When it was asked, counted from 1970.
    asked: Duration,
}

impl OpenRequest {
    /// Stands where several calls wait under one name, so that no answer is put to the wrong one.
    fn nobody(asked: Duration) -> Self {
        Self { spoken: MessageSummary::default(), member: None, asked }
    }

    fn is_nobody(&self) -> bool {
        self.spoken.asks.is_empty()
    }

    fn operation(&self) -> &str {
        self.spoken.operation.as_deref().unwrap_or_default()
    }

    /// Whether its answer ends with an HRESULT. That is so for ORPC; and it is claimed only of a method that is
    /// known, from the contract or from the wire's own list of interfaces.
    fn wants_hresult(&self) -> bool {
        self.spoken.wants_hresult && (self.member.is_some() || !self.operation().starts_with("operation "))
    }
}

/// What is told of messages, and who gets them.
pub(crate) struct MessagePrinter {
    pub(crate) detail: Detail,
    /// Which.
    pub(crate) selection: Selection,
    /// What is known of their values.
    pub(crate) knowledge: KnownTypes,
    /// A capture that they are written to.
    pub(crate) writer: Option<Writer<File>>,
}

/// Prints messages, and says of answers what they answer, where the parts of messages tell. One for a
/// whole trace.
pub(super) struct Narrator {
    telling: MessagePrinter,
    /// By what answers name them.
    questions: HashMap<String, Rc<OpenRequest>>,
    /// What handles of items mean.
    items: HandleTracker,
}

impl Narrator {
    pub(super) fn new(telling: MessagePrinter) -> Self {
        Self { telling, questions: HashMap::new(), items: HandleTracker::new() }
    }

    /// Tells a message: prints it, if it is chosen, and remembers it if it is a call.
    pub(super) fn tell(&mut self, passed: &SeenMessage<'_>) {
        let mut spoken = MessageSummary::of(passed);
        let question = self.question(&spoken);
        let settled = question.as_deref().and_then(|question| settled(passed.explained, &question.spoken));
        let passed = &SeenMessage { explained: settled.as_ref().unwrap_or(passed.explained), ..*passed };
        let knowledge = &self.telling.knowledge;
        let member = match &question {
            Some(_) => None,
            None => knowledge.member(passed, spoken.interface.as_deref()),
        };
        let mut summary = Cow::Borrowed(passed.explained.summary.as_str());
        if let Some(member) = member {
            // A contract knows the names of what goes by numbers.
            spoken.interface = knowledge.interface_of(member).or(spoken.interface);
            if let Some(number) = spoken.operation.clone().filter(|name| name.starts_with("operation ")) {
                spoken.operation = knowledge.name_of(member);
                if let (Some(interface), Some(operation)) = (&spoken.interface, &spoken.operation)
                    && let Some(named) = named(&summary, &number, &format!("{interface}.{operation}"))
                {
                    summary = named.into();
                }
            }
        }
        let items = said_of_items(&mut self.items, passed);
        // Other procedures may end with any number.
        let ends_so = question.as_deref().is_some_and(OpenRequest::wants_hresult);
        let hresult = spoken.hresult.filter(|_| ends_so);
        spoken.failed |= hresult.is_some();
        let asked = question.as_deref().map(|question| &question.spoken);
        if self.telling.selection.takes(passed, &spoken, asked) {
            let answers = question.as_deref().and_then(|question| question.member);
            let values = self.telling.knowledge.values(passed, member, answers);
            self.write(passed);
            self.print(passed, &summary, question.as_deref(), Contents { items, hresult, values });
        }
        let knowledge = &self.telling.knowledge;
        let is_method = member.is_none_or(|member| knowledge.is_method(member));
        spoken.wants_hresult &= is_method;
        spoken.is_plain |= !is_method;
        self.remember(spoken, member, passed.time);
    }

    /// Prints a message as a line, with its parts or octets below, or as one JSON object.
    fn print(
        &self,
        passed: &SeenMessage<'_>,
        summary: &str,
        question: Option<&OpenRequest>,
        contents: Contents,
    ) {
        let detail = self.telling.detail;
        let Contents { items, hresult, values } = contents;
        if detail.json {
            let mut json = passed.json(detail.level, summary, question);
            if let Some(json) = json.as_object_mut() {
                json.extend(items.map(|items| ("items".into(), items.into())));
                json.extend(hresult.map(|code| ("hresult".into(), hresult_json(code))));
                json.extend(values.map(|values| ("values".into(), values.json)));
            }
            return output::json(&json);
        }
        let colour = detail.style.out;
        let arrow = if passed.outward { tinted("->", "32", colour) } else { tinted("<-", "33", colour) };
        let time = tinted(&time_of_day(passed.time), "2", colour);
        let answered = match question {
            Some(question) => {
                let after = passed.time.saturating_sub(question.asked);
                tinted(&format!(", to {} after {after:.1?}", visible(question.operation())), "2", colour)
            }
            None => String::new(),
        };
        // What the items are about says more than their bare values do, and of a failure there are none.
        let said = hresult.map(hresult_text).or(items).or_else(|| values.map(|values| values.text));
        let said =
            said.map(|said| format!(": {}", tinted(&visible(&said), "36", colour))).unwrap_or_default();
        let summary = visible(summary);
        line(&format!("{time} #{} {arrow} {summary}{answered}{said}", passed.connection));
        match detail.level {
            0 => {}
            1 => passed.explained.parts.iter().for_each(|part| {
                shown(&format!("    @{:<5} {:>5}  {:<24} {}", part.offset, part.len, part.name, part.value));
            }),
            _ => annotated(passed.bytes, passed.explained).iter().for_each(|row| shown(row)),
        }
    }

    /// Writes a message into the capture, if one is written.
    fn write(&mut self, passed: &SeenMessage<'_>) {
        let Some(writer) = &mut self.telling.writer else { return };
        let Some(wire) = everywire::wires::named(passed.wire) else { return };
        let written = CapturedMessage {
            time: passed.time,
            connection: passed.connection,
            outward: passed.outward,
            from: passed.from.trim_start_matches("tcp:"),
            to: passed.to.trim_start_matches("tcp:"),
            bytes: passed.bytes,
        };
        if let Err(error) = writer.write(wire, &written) {
            note(&format!("the capture cannot be written any more: {error}"));
            self.telling.writer = None;
        }
    }

    /// The question of an answer, which is taken out under all of its names.
    fn question(&mut self, spoken: &MessageSummary) -> Option<Rc<OpenRequest>> {
        let asked = |key: &&String| self.questions.get(*key).is_some_and(|held| !held.is_nobody());
        let key = spoken.answers.iter().find(asked)?;
        let question = self.questions.get(key).cloned()?;
        for key in &question.spoken.asks {
            // Another call may have got the number since.
            if self.questions.get(key).is_some_and(|held| Rc::ptr_eq(held, &question)) {
                self.questions.remove(key);
            }
        }
        Some(question)
    }

    /// Keeps a question until its answer comes.
    fn remember(&mut self, spoken: MessageSummary, member: Option<Member>, asked: Duration) {
        if spoken.asks.is_empty() || spoken.operation.is_none() {
            return;
        }
        if self.questions.len() >= QUESTIONS {
            // Those that nobody answers, most likely.
            self.questions.clear();
        }
        let keys = spoken.asks.clone();
        let question = Rc::new(OpenRequest { spoken, member, asked });
        keys.into_iter().for_each(|key| {
            // Where several calls wait, an answer that names none stays without.
            let several = key.ends_with(ONLY) && self.questions.contains_key(&key);
            let held = if several { Rc::new(OpenRequest::nobody(asked)) } else { Rc::clone(&question) };
            self.questions.insert(key, held);
        });
    }
}

/// What a listing says where an answer alone does not tell whether a method of COM was called.
const IN_DOUBT: &str = " (if this is ORPC)";

/// The listing of an answer on DCE/RPC, once its question is known: what could be ORPCTHAT is that, or the first of the values. `None`:
/// there was no doubt, or there still is.
fn settled(explained: &MessageListing, question: &MessageSummary) -> Option<MessageListing> {
    let front = explained.parts.iter().find(|part| part.name == "ORPCTHAT")?;
    let (at, front) = (front.offset, front.len);
    let mut settled = explained.clone();
    if question.is_plain {
        settled.parts.retain(|part| !matches!(part.name, "ORPCTHAT" | "HRESULT"));
        let (_, len) = settled.body.unwrap_or_else(|| (at.saturating_add(front), 0));
        settled.body = Some((at, len.saturating_add(front)));
        if let Some(results) = settled.parts.iter_mut().find(|part| part.name == "results") {
            (results.offset, results.len) = (at, len.saturating_add(front));
        }
    } else if question.wants_hresult {
        for part in &mut settled.parts {
            part.value.truncate(part.value.trim_end_matches(IN_DOUBT).len());
        }
    } else {
        return None;
    }
    Some(settled)
}

/// A summary in which an operation is named in place of its number, and its interface in place of what stands before that.
fn named(summary: &str, number: &str, name: &str) -> Option<String> {
    let (before, behind) = summary.split_once(number)?;
    let begin = before.rfind(' ').map_or(0, |blank| blank + 1);
    Some(format!("{}{name}{behind}", before.get(..begin)?))
}

/// What a message says of OPC items by handles that earlier ones gave them; `None` if it is no call or
/// answer of DCE/RPC, or says nothing of items.
fn said_of_items(items: &mut HandleTracker, passed: &SeenMessage<'_>) -> Option<String> {
    let parts = &passed.explained.parts;
    let part = |name| parts.iter().find(|part| part.name == name).map(|part| part.value.as_str());
    let call = part("call id")?;
    let inner = |text: &'static str| part(text).and_then(|text| text.split_once(" ("));
    let word = |text: &'static str| inner(text).map(|(_, name)| name.trim_end_matches(')'));
    let method = part("operation number")
        .is_some()
        .then(|| (word("context id").unwrap_or_default(), word("operation number").unwrap_or_default()));
    let references: Vec<(&str, &str)> =
        parts.iter().filter(|part| part.name == "OBJREF").filter_map(|part| identity(&part.value)).collect();
    let (at, len) = passed.explained.body?;
    items.hear(&OrpcMessage {
        connection: passed.connection,
        outward: passed.outward,
        call,
        method,
        object: part("object"),
        from: passed.from,
        to: passed.to,
        references: &references,
        stub: passed.bytes.get(at..at.checked_add(len)?)?,
        little: part("data representation").is_some_and(|order| order.starts_with("little")),
    })
}

/// The row of an HRESULT in the table of codes, if it is there. Other codes may have the same number.
fn hresult_row(code: u32) -> Option<codes::Row> {
    let found = codes::find(&format!("{code:#010x}"));
    found.into_iter().find(|row| !row.name.is_empty())
}

/// A failure for people: `0x80070005 E_ACCESSDENIED, Access is denied.`
fn hresult_text(code: u32) -> String {
    match hresult_row(code) {
        Some(row) => format!("{code:#010x} {}, {}", row.name, row.means),
        None => format!("{code:#010x}"),
    }
}

/// A failure for programs.
fn hresult_json(code: u32) -> Json {
    let row = hresult_row(code);
    json!({"code": format!("{code:#010x}"), "name": row.map(|row| row.name), "means": row.map(|row| row.means)})
}

/// OID and IPID of a reference, as a listing writes it.
fn identity(text: &str) -> Option<(&str, &str)> {
    let word = |name: &str| {
        let rest = text.get(text.find(name)?.checked_add(name.len())?..)?;
        Some(rest.split([',', ' ']).next().unwrap_or(rest))
    };
    Some((word(" OID ")?, word(" IPID ")?))
}

impl SeenMessage<'_> {
    /// The message as JSON; the level decides on parts and octets as for people.
    fn json(&self, level: u8, summary: &str, question: Option<&OpenRequest>) -> Json {
        let mut out = json!({
            "time": timestamp(self.time),
            "connection": self.connection,
            "direction": if self.outward { "->" } else { "<-" },
            "from": self.from,
            "to": self.to,
            "wire": self.wire,
            "kind": self.explained.kind,
            "summary": summary,
            "answers": question.map(OpenRequest::operation),
            "after_ns": question.map(|question| {
                u64::try_from(self.time.saturating_sub(question.asked).as_nanos()).unwrap_or(u64::MAX)
            }),
            "offset": self.offset,
            "len": self.explained.len,
        });
        if let Some(out) = out.as_object_mut() {
            if level > 0 {
                let part = |part: &Part| json!({"offset": part.offset, "len": part.len, "name": part.name, "value": part.value});
                out.insert("parts".into(), self.explained.parts.iter().map(part).collect());
            }
            if level > 1 {
                let digits: String = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                out.insert("hex".into(), digits.into());
            }
        }
        out
    }
}

/// All octets of a message in order, each run with what it means. Parts may lie within others: their
/// octets are shown once, with the outer part.
fn annotated(bytes: &[u8], explained: &MessageListing) -> Vec<String> {
    // Octets of values speak for themselves; what stands beside them is their text.
    let value = |part: &Part| match explained.body {
        Some(body) if body == (part.offset, part.len) => part.name.to_owned(),
        _ => format!("{}: {}", part.name, part.value),
    };
    let mut parts: Vec<(usize, usize, String)> =
        explained.parts.iter().map(|part| (part.offset, part.len, value(part))).collect();
    if let Some((at, len)) = explained.body
        && !parts.iter().any(|(offset, size, _)| (*offset, *size) == (at, len))
    {
        parts.push((at, len, "values".into()));
    }
    parts.sort_by_key(|(offset, len, _)| (*offset, std::cmp::Reverse(*len)));
    let mut rows = Vec::new();
    let mut shown = 0;
    for (offset, len, text) in &parts {
        if *offset > shown {
            dump(bytes, shown, *offset - shown, "", &mut rows);
        }
        // A part inside one that was shown is named, not shown again.
        let end = offset.saturating_add(*len);
        if *offset >= shown || *len == 0 {
            dump(bytes, *offset, *len, text, &mut rows);
        } else {
            rows.push(format!("    {offset:04x}  {:<48}  | {text}", ""));
        }
        shown = shown.max(end);
    }
    if shown < bytes.len() {
        dump(bytes, shown, bytes.len() - shown, "", &mut rows);
    }
    rows
}

/// Rows of octets, the first with the text of its part, the others with the letters that they may be.
fn dump(bytes: &[u8], offset: usize, len: usize, text: &str, rows: &mut Vec<String>) {
    let end = offset.saturating_add(len).min(bytes.len());
    let run = bytes.get(offset..end).unwrap_or_default();
    if run.is_empty() {
        return rows.push(format!("    {offset:04x}  {:<48}  {text}", ""));
    }
    let head = run.get(..MOST).unwrap_or(run);
    for (index, row) in head.chunks(ROW).enumerate() {
        let digits: Vec<_> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        let printable: String = row
            .iter()
            .map(|byte| if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' })
            .collect();
        let note = if index == 0 && !text.is_empty() { text } else { &printable };
        rows.push(format!("    {:04x}  {:<48}  {note}", offset + index * ROW, digits.join(" ")));
    }
    if run.len() > MOST {
        rows.push(format!("    ...   {} octets more", run.len() - MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octet_is_left_out() {
        let part = |offset, len, name| Part { offset, len, name, value: "v".into() };
        let explained = MessageListing {
            parts: vec![
                part(2, 2, "second"),
                part(0, 1, "first"),
                part(3, 1, "inner"),
                part(90, 9, "beyond"),
            ],
            body: Some((5, 20)),
            ..MessageListing::default()
        };
        let bytes: Vec<u8> = (0..30).collect();
        let rows = annotated(&bytes, &explained);
        let text = rows.join("\n");
        for byte in &bytes {
            assert!(text.contains(&format!("{byte:02x}")), "{byte:02x} is missing in\n{text}");
        }
        for name in ["first: v", "second: v", "inner: v", "beyond: v", "values"] {
            assert!(text.contains(name), "{name}");
        }
    }
}
