//! Our clients: one generated trait, wherever the object lives.

use super::servants::{Benchmarking, IRemoteObject, TEXT, export};
use crate::broken;
use crate::measure::{Plan, measure};
use crate::race::Race;
use everywire::model::Ref;
use everywire::{Failure, Node};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

/// A call in process takes less time than reading the clock: so many are timed together.
const BATCH: u32 = 100;

/// Calls objects of another process.
pub(super) fn remote(node: &Node, ref_file: &Path, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let text = std::fs::read_to_string(ref_file)
        .map_err(|error| broken(format!("{}: {error}", ref_file.display())))?;
    let references: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('\t')).collect();
    let find = |name: &str| {
        references.get(name).copied().ok_or_else(|| broken(format!("{} has no {name}", ref_file.display())))
    };
    match race.number {
        2 => calls(&node.connect(find("benchmarking")?)?, race, plan, 1),
        _ => bytes(&node.connect(find("IRemoteObject")?)?, race, plan, 1),
    }
}

/// Calls objects of this process: the reference is the servant itself.
pub(super) fn in_process(node: &Node, race: &Race, plan: &Plan) -> Result<(), Failure> {
    let address = node.listen("inproc://derby")?;
    export(node, super::LARGEST_MESSAGE);
    match race.number {
        2 => calls(&node.connect(&format!("{address}benchmarking"))?, race, plan, BATCH),
        _ => bytes(&node.connect(&format!("{address}IRemoteObject"))?, race, plan, BATCH),
    }
}

fn calls(object: &Ref<dyn Benchmarking>, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    let object: &dyn Benchmarking = &**object;
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

fn bytes(object: &Ref<dyn IRemoteObject>, race: &Race, plan: &Plan, batch: u32) -> Result<(), Failure> {
    let object: &dyn IRemoteObject = &**object;
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
