//! What single items have of their own: a deadband (3.0, IOPCItemDeadbandMgt), a sampling rate and a buffer (IOPCItemSamplingMgt).

use super::wire::{code_of, each};
use crate::Code;
use crate::contract::{IOPCGroupStateMgt, IOPCItemDeadbandMgt, IOPCItemSamplingMgt};
use everywire::{Failure, Ref};
use std::time::Duration;

/// What a single item is to have of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ItemWanted {
    /// By how much of its range it must change to be sent, in percent, in place of the group's deadband.
    pub deadband: Option<f32>,
    /// How often it is to be looked at, in place of the group's rate.
    pub sampling: Option<Duration>,
    /// Whether all samples are to be sent that were taken since the last update, in place of the last one.
    pub buffered: bool,
}

/// Results of items, in the order in which they were named; nothing if the server does not offer the interface.
pub(super) type Answers<T> = Result<Option<Vec<Result<T, Code>>>, Failure>;

/// Sets deadbands, in percent.
pub(super) fn set_deadbands(group: &Ref<dyn IOPCGroupStateMgt>, items: &[(u32, f32)]) -> Answers<()> {
    let Some(io) = group.query::<dyn IOPCItemDeadbandMgt>()? else { return Ok(None) };
    let (handles, values): (Vec<u32>, Vec<f32>) = items.iter().copied().unzip();
    done(handles.len(), &io.set_item_deadband(&handles, &values)?.value)
}

/// The deadbands, in percent.
pub(super) fn deadbands(group: &Ref<dyn IOPCGroupStateMgt>, handles: &[u32]) -> Answers<f32> {
    let Some(io) = group.query::<dyn IOPCItemDeadbandMgt>()? else { return Ok(None) };
    let (values, errors) = io.get_item_deadband(handles)?.value;
    each(handles.len(), values, &errors).map(Some)
}

/// Leaves the items to the group's deadband.
pub(super) fn clear_deadbands(group: &Ref<dyn IOPCGroupStateMgt>, handles: &[u32]) -> Answers<()> {
    let Some(io) = group.query::<dyn IOPCItemDeadbandMgt>()? else { return Ok(None) };
    done(handles.len(), &io.clear_item_deadband(handles)?.value)
}

/// Sets sampling rates; those that the server chose.
pub(super) fn set_sampling(
    group: &Ref<dyn IOPCGroupStateMgt>,
    items: &[(u32, Duration)],
) -> Answers<Duration> {
    let Some(io) = group.query::<dyn IOPCItemSamplingMgt>()? else { return Ok(None) };
    let handles: Vec<u32> = items.iter().map(|(handle, _)| *handle).collect();
    let asked: Vec<u32> =
        items.iter().map(|(_, rate)| u32::try_from(rate.as_millis()).unwrap_or(u32::MAX)).collect();
    let (revised, errors) = io.set_item_sampling_rate(&handles, &asked)?.value;
    let revised = revised.into_iter().map(|rate| Duration::from_millis(rate.into())).collect();
    each(handles.len(), revised, &errors).map(Some)
}

/// Leaves the items to the group's rate.
pub(super) fn clear_sampling(group: &Ref<dyn IOPCGroupStateMgt>, handles: &[u32]) -> Answers<()> {
    let Some(io) = group.query::<dyn IOPCItemSamplingMgt>()? else { return Ok(None) };
    done(handles.len(), &io.clear_item_sampling_rate(handles)?.value)
}

/// Has the samples between two updates sent, or no longer.
pub(super) fn set_buffers(group: &Ref<dyn IOPCGroupStateMgt>, items: &[(u32, bool)]) -> Answers<()> {
    let Some(io) = group.query::<dyn IOPCItemSamplingMgt>()? else { return Ok(None) };
    let (handles, values): (Vec<u32>, Vec<i32>) =
        items.iter().map(|(handle, is_on)| (*handle, i32::from(*is_on))).unzip();
    done(handles.len(), &io.set_item_buffer_enable(&handles, &values)?.value)
}

fn done(asked: usize, errors: &[i32]) -> Answers<()> {
    each(asked, vec![(); asked], errors).map(Some)
}

/// Asks for what items of a subscription are to have of their own. `items` are handles with the items' places. What is done otherwise
/// than it was asked for, and why.
pub(super) fn ask_for(
    group: &Ref<dyn IOPCGroupStateMgt>,
    items: &[(u32, u32)],
    wanted: &[(usize, ItemWanted)],
) -> Result<Vec<String>, Failure> {
    let handle = |place: usize| {
        items.iter().find(|(_, own)| usize::try_from(*own) == Ok(place)).map(|(handle, _)| *handle)
    };
    // Those that the server refused are told elsewhere.
    let known: Vec<_> =
        wanted.iter().filter_map(|(place, wanted)| Some((handle(*place)?, *place, wanted))).collect();
    let mut notes = Vec::new();
    let deadbands: Vec<_> =
        known.iter().filter_map(|(own, at, one)| Some((*own, *at, one.deadband?))).collect();
    let sampling: Vec<_> =
        known.iter().filter_map(|(own, at, one)| Some((*own, *at, one.sampling?))).collect();
    let buffers: Vec<_> =
        known.iter().filter(|(.., one)| one.buffered).map(|(own, at, _)| (*own, *at, true)).collect();
    note(&mut notes, "no deadband of its own", "IOPCItemDeadbandMgt", &deadbands, |items| {
        set_deadbands(group, items)
    })?;
    note(&mut notes, "no sampling rate of its own", "IOPCItemSamplingMgt", &sampling, |items| {
        Ok(set_sampling(group, items)?.map(|all| all.into_iter().map(|one| one.map(drop)).collect()))
    })?;
    note(&mut notes, "no buffer", "IOPCItemSamplingMgt", &buffers, |items| set_buffers(group, items))?;
    Ok(notes)
}

/// Sets something of items, and notes those that do not have it then.
fn note<T: Copy>(
    notes: &mut Vec<String>,
    lacks: &str,
    interface: &str,
    items: &[(u32, usize, T)],
    set: impl Fn(&[(u32, T)]) -> Answers<()>,
) -> Result<(), Failure> {
    if items.is_empty() {
        return Ok(());
    }
    let asked: Vec<(u32, T)> = items.iter().map(|(handle, _, value)| (*handle, *value)).collect();
    match set(&asked) {
        Ok(Some(results)) => {
            for ((_, place, _), result) in items.iter().zip(results) {
                if let Err(code) = result {
                    notes.push(format!("item {place} has {lacks}: {}", said(code)));
                }
            }
        }
        Ok(None) => notes.push(format!("single items have {lacks}: the server has no {interface}")),
        Err(failure) if super::trouble::is_gone(&failure) => return Err(failure),
        Err(failure) => notes.push(format!("single items have {lacks}: {failure}")),
    }
    Ok(())
}

fn said(code: Code) -> String {
    code.text().map_or_else(|| code.to_string(), |text| format!("{text} ({code})"))
}

/// The code of an item, or that all is well.
pub(super) fn outcome(error: i32) -> Result<Code, Code> {
    let code = code_of(error);
    if code.is_failure() { Err(code) } else { Ok(code) }
}
