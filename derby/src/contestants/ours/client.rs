//! Our clients: one generated trait, wherever the object lives.

use super::courses::{Course, Stubs};
use super::cycles;
use super::servants::{Benchmarking, IRemoteObject, TEXT};
use crate::broken;
use crate::measure::{Plan, measure, measure_bursts};
use crate::race::Race;
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

/// A call in process takes less time than reading the clock: so many are timed together.
const BATCH: u32 = 100;

/// Signals of one burst.
const BURST: u32 = 1000;

/// Calls objects of another process.
pub(super) fn remote(
    node: &Node,
    ref_file: &Path,
    course: Course,
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
    run(course.connect(node, &references)?, race, plan, 1)
}

/// Calls objects of this process: the reference is the servant itself.
pub(super) fn in_process(node: &Node, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let address = node.listen("inproc://derby")?;
    let course = Course::Giop;
    let names = course.export(node, super::LARGEST_MESSAGE);
    let places: Vec<String> = names.iter().map(|(name, _)| format!("{address}{name}")).collect();
    let references = names.iter().map(|(name, _)| *name).zip(places.iter().map(String::as_str)).collect();
    if race.cycles {
        return cycles::run(course.connect_cycles(node, &references, None)?, race, plan);
    }
    run(course.connect(node, &references)?, race, plan, BATCH)
}

fn run(stubs: Stubs, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    match (race.number, stubs.hear) {
        (2, Some(hear)) if race.signals => signals(hear, race, plan),
        (2, _) => calls(&*stubs.calls, race, plan, batch),
        _ => bytes(&*stubs.bytes, race, plan, batch),
    }
}

fn signals(
    mut hear: impl FnMut(u32) -> Result<(), Failure>,
    race: &Race,
    plan: &Plan,
) -> Result<(), Failure> {
    measure_bursts(plan, race.headline, (plan.calls / 100).max(1), BURST, || hear(BURST))
}

fn calls(object: &dyn Benchmarking, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    for operation in race.operations {
        let measure =
            |call: &mut dyn FnMut() -> Result<(), Failure>| measure(plan, operation.name, None, batch, call);
        // The compiler must not see through the call, in process either.
        let object = || black_box(object);
        match operation.name {
            "void_call" => measure(&mut || object().void_call())?,
            "in_int_call" => measure(&mut || object().in_int_call(black_box(42)))?,
            "out_int_call" => measure(&mut || right(object().out_int_call()? == 42, operation.name))?,
            "in_out_int_call" => {
                measure(&mut || right(object().in_out_int_call(black_box(42))? == 43, operation.name))?
            }
            "in_string_call" => measure(&mut || object().in_string_call(black_box(TEXT)))?,
            "out_string_call" => {
                measure(&mut || right(object().out_string_call()?.len() == TEXT.len(), operation.name))?
            }
            "in_out_string_call" => {
                measure(&mut || {
                    right(object().in_out_string_call(black_box(TEXT))?.len() == TEXT.len(), operation.name)
                })?;
            }
            other => return Err(broken(format!("nobody knows how to call {other}"))),
        }
    }
    Ok(())
}

fn bytes(object: &dyn IRemoteObject, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    for operation in race.operations {
        let n = operation.payload.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        measure(plan, operation.name, operation.payload, batch, || {
            let bytes = black_box(object).get_bytes(black_box(n))?;
            right(i32::try_from(bytes.len()) == Ok(n), operation.name)
        })?;
    }
    Ok(())
}

#[inline]
fn right(held: bool, operation: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(broken(format!("wrong answer of {operation}"))) }
}
