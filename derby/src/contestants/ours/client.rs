//! Our clients: one generated trait, wherever the object lives.
//!
//! A client connects to what the references name, and then times calls of the trait, operation by
//! operation. Every answer is looked at inside of the timed call, in all contestants alike: one that
//! answers wrongly fails, and does not win.

use super::courses::WireCourse;
use super::cycles;
use super::servants::{Benchmarking, IRemoteObject, TEXT};
use super::stubs::Stubs;
use crate::broken;
use crate::measure::{Plan, measure, measure_bursts};
use crate::race::Race;
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

/// A call in process takes less time than reading the clock: so many are timed together, and share it.
const BATCH: u32 = 100;

/// Signals of one burst: the server is asked once for all of them, so that the asking does not count.
const BURST: u32 = 1000;

/// Calls objects of another process.
pub(super) fn remote(
    node: &Node,
    ref_file: &Path,
    course: WireCourse,
    home: Option<&str>,
    race: &Race,
    plan: &Plan,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(ref_file)
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))?;
    let references: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    if race.cycles {
        return cycles::run(course.connect_cycles(node, &references, home)?, race, plan);
    }
    run(course.connect(node, &references)?, race, plan, 1, AnswerCheck::Strict)
}

/// Calls objects of a server that somebody else wrote.
pub(super) fn foreign(
    node: &Node,
    ref_file: &Path,
    course: WireCourse,
    race: &Race,
    plan: &Plan,
) -> Result<(), Failure> {
    let text = std::fs::read_to_string(ref_file)
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))?;
    let references: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    run(course.connect(node, &references)?, race, plan, 1, AnswerCheck::Lenient)
}

/// Calls objects of this process: the reference is the servant itself.
pub(super) fn in_process(node: &Node, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let address = node.listen("inproc://derby")?;
    let course = WireCourse::Giop;
    let names = course.export(node, super::LARGEST_MESSAGE);
    let places: Vec<String> = names.iter().map(|(name, _)| format!("{address}{name}")).collect();
    let references = names.iter().map(|(name, _)| *name).zip(places.iter().map(String::as_str)).collect();
    if race.cycles {
        return cycles::run(course.connect_cycles(node, &references, None)?, race, plan);
    }
    run(course.connect(node, &references)?, race, plan, BATCH, AnswerCheck::Strict)
}

/// What is done about an answer that the servers of the races would not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerCheck {
    /// It is wrong.
    Strict,
    /// The contract permits it, and nobody said what to answer: it is told once for each function, on standard error.
    Lenient,
}

/// Times the operations of a race other than cycles.
fn run(stubs: Stubs, race: &Race, plan: &Plan, batch: u32, judge: AnswerCheck) -> Result<(), Failure> {
    match (race.number, stubs.hear) {
        (2, Some(hear)) if race.signals => signals(hear, race, plan),
        (2, _) => calls(&*stubs.calls, race, plan, batch, judge),
        _ => bytes(&*stubs.bytes, race, plan, batch),
    }
}

/// Bursts of signals: as many as a hundredth of the calls of the plan, at least one.
fn signals(
    mut hear: impl FnMut(u32) -> Result<(), Failure>,
    race: &Race,
    plan: &Plan,
) -> Result<(), Failure> {
    measure_bursts(plan, race.headline, (plan.calls / 100).max(1), BURST, || hear(BURST))
}

/// The seven functions, each with an answer that is known.
fn calls(
    object: &dyn Benchmarking,
    race: &Race,
    plan: &Plan,
    batch: u32,
    judge: AnswerCheck,
) -> Result<(), Failure> {
    for operation in race.operations {
        let mut told = false;
        let mut odd = |said: String, usual: &str| {
            let remark =
                format!("{} answered {said}, where the servers of the races answer {usual}", operation.name);
            if judge == AnswerCheck::Strict {
                return Err(broken(remark));
            }
            if !told {
                eprintln!("the foreign server's {remark}: its time is that of another answer");
                told = true;
            }
            Ok(())
        };
        let measure =
            |call: &mut dyn FnMut() -> Result<(), Failure>| measure(plan, operation.name, None, batch, call);
        // The compiler must not see through the call, in process either.
        let object = || black_box(object);
        match operation.name {
            "void_call" => measure(&mut || object().void_call())?,
            "in_int_call" => measure(&mut || object().in_int_call(black_box(42)))?,
            "out_int_call" => measure(&mut || match object().out_int_call()? {
                42 => Ok(()),
                other => odd(other.to_string(), "42"),
            })?,
            "in_out_int_call" => measure(&mut || match object().in_out_int_call(black_box(42))? {
                43 => Ok(()),
                other => odd(format!("{other} to 42"), "43"),
            })?,
            "in_string_call" => measure(&mut || object().in_string_call(black_box(TEXT)))?,
            "out_string_call" => measure(&mut || match object().out_string_call()? {
                text if text.len() == TEXT.len() => Ok(()),
                text => odd(quoted(&text), &quoted(TEXT)),
            })?,
            "in_out_string_call" => measure(&mut || match object().in_out_string_call(black_box(TEXT))? {
                text if text.len() == TEXT.len() => Ok(()),
                text => odd(format!("{} to {}", quoted(&text), quoted(TEXT)), "as many characters"),
            })?,
            other => return Err(broken(format!("nobody knows how to call {other}"))),
        }
    }
    Ok(())
}

/// `GetBytes`: only the length is looked at, since looking at a megabyte would take longer than moving
/// it.
fn bytes(object: &dyn IRemoteObject, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    for operation in race.operations {
        let n = operation.payload.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        measure(plan, operation.name, operation.payload, batch, || {
            let bytes = black_box(object).get_bytes(black_box(n))?;
            if i32::try_from(bytes.len()) == Ok(n) { Ok(()) } else { Err(short(bytes.len(), n)) }
        })?;
    }
    Ok(())
}

/// A text with its length; of a long one only the beginning.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let shown: String = text.chars().take(SHOWN).collect();
    let more = if text.chars().count() > SHOWN { "..." } else { "" };
    format!("{shown:?}{more} ({} octets)", text.len())
}

#[cold]
fn short(got: usize, asked: i32) -> Failure {
    broken(format!("GetBytes answered {got} octets where {asked} were asked for"))
}
