//! `everywire watch opcda://HOST/SERVER/ITEM...`: values as they change.
//!
//! The library subscribes, by callbacks or by polling, and comes back by itself when the server was
//! lost; each such event is told. This file prints, until a signal, the count or the time ends it. If
//! the server refuses every item, that is an error.

use super::address;
use super::shown::{json, time};
use crate::cli_error::{CliError, Done};
use crate::output::{self, Style, line, note, tinted, visible};
use everywire::Node;
use everywire_opc::remote::{
    ActiveSubscription, DataAccess, Event, ItemValue, SubscriptionRequest, UpdateMode, refused,
};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Events that wait until they are printed. Whoever reads the output may be slow, or stand still; then the server waits,
/// too.
const EVENTS: usize = 64;

/// What is watched, and how it is printed.
pub(crate) struct WatchOptions<'a> {
    /// The server, with an item or without.
    pub(crate) text: &'a str,
    /// Items beside that one, by their names.
    pub(crate) others: Vec<&'a str>,
    /// How often values come at most.
    pub(crate) rate: Duration,
    /// By how many percent of its range an item must change.
    pub(crate) deadband: Option<f32>,
    /// End after so many values.
    pub(crate) count: Option<u64>,
    /// End after this time.
    pub(crate) duration: Option<Duration>,
    pub(crate) csv: bool,
    pub(crate) json: bool,
}

/// Watches items until it is told to stop.
pub(crate) fn watch(node: &Node, watched: &WatchOptions<'_>, style: Style) -> Done {
    let place = address(watched.text)?;
    let mut items: Vec<String> = place.item().into_iter().map(str::to_owned).collect();
    for other in &watched.others {
        // A whole address is taken as well, of the same server.
        items.push(if super::is_meant(other) {
            let other = address(other)?;
            let same = (other.place(), other.server()) == (place.place(), place.server());
            let item = other.item().filter(|_| same).map(str::to_owned);
            item.ok_or_else(|| {
                CliError::usage(
                    format!("cannot watch `{place}`"),
                    format!("`{other}` is no item of this server"),
                )
                .hint("one server is watched at a time")
            })?
        } else {
            (*other).to_owned()
        });
    }
    if items.is_empty() {
        return Err(CliError::usage(format!("cannot watch `{place}`"), "it names no item")
            .hint("write opcda://HOST/PROGID/ITEM, and further items behind it"));
    }
    let what = || format!("cannot watch `{place}`");
    // A mistake shows at once; what breaks later comes back by itself.
    let server =
        DataAccess::at(node, place.clone()).map_err(|failure| CliError::failure(what(), &failure))?;
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let (tell, told) = mpsc::sync_channel(EVENTS);
    let stop = tell.clone();
    let wanted = SubscriptionRequest {
        rate: watched.rate,
        deadband: watched.deadband,
        ..SubscriptionRequest::default()
    };
    // The program may be ending.
    let heard = move |event| everywire::blocking(|| drop(tell.send(Some(event))));
    let subscription = server.subscribe(&items, wanted, heard);
    let subscription = subscription.map_err(|failure| CliError::failure(what(), &failure))?;
    std::thread::spawn(move || {
        signals.forever().next();
        // The main thread may have ended first.
        let _ = stop.send(None);
    });
    if watched.csv {
        line("item,value,quality,timestamp");
    }
    let until = watched.duration.map(|duration| Instant::now() + duration);
    let mut left = watched.count.unwrap_or(u64::MAX);
    let mut done = Ok(());
    while left > 0 {
        let news = match until {
            Some(until) => told.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        let Ok(Some(event)) = news else { break };
        match event {
            Event::Values(values) => {
                for one in &values {
                    if left > 0 {
                        print(one, watched, style);
                        left -= 1;
                    }
                }
            }
            Event::Live(live) => {
                tell_live(&live, watched.json);
                if let (true, Some((item, code))) = (live.refused.len() == items.len(), live.refused.first())
                {
                    done = Err(CliError::failure(what(), &refused(&place, item, *code)));
                    break;
                }
            }
            Event::Lost { why, pause } => {
                let hint = why.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                tell_of("lost", &format!("{why}{hint}; again in {pause:?}"), watched.json);
            }
            Event::Shutdown { reason, pause } => {
                tell_of(
                    "shutdown",
                    &format!("the server asks to leave: {reason}; again in {pause:?}"),
                    watched.json,
                );
            }
            Event::Garbled(failure) => tell_of("garbled", &failure.to_string(), watched.json),
            other => tell_of("note", &format!("{other:?}"), watched.json),
        }
    }
    // What still comes waits for nobody: the end waits for those who tell.
    drop(told);
    subscription.end();
    done
}

/// A value as a line, as CSV, or as JSON.
fn print(one: &ItemValue, watched: &WatchOptions<'_>, style: Style) {
    let when = time(one.value.time).unwrap_or_default();
    let (data, quality) = (&one.value.data, one.value.quality);
    if watched.json {
        return output::json(&json!({
            "item": &*one.item, "value": json(data), "quality": quality.0, "status": quality.to_string(),
            "timestamp": when,
        }));
    }
    if watched.csv {
        let cells = [quoted(&one.item), quoted(&data.to_string()), quoted(&quality.to_string()), when];
        return line(&cells.join(","));
    }
    let colour = if quality.is_good() { "32" } else { "31" };
    line(&format!(
        "{} {} {} {}",
        tinted(&visible(&one.item), "36", style.out),
        visible(&data.to_string()),
        tinted(&quality.to_string(), colour, style.out),
        tinted(&when, "2", style.out),
    ));
}

/// A cell of CSV (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// How values come, and why so.
fn tell_live(live: &ActiveSubscription, as_json: bool) {
    let manner = match &live.manner {
        UpdateMode::Callbacks => "by callbacks".to_owned(),
        UpdateMode::Polling { why } => format!("by polling: {why}"),
    };
    tell_of("live", &format!("{}, every {:?}, {manner}", live.version, live.rate), as_json);
    for (item, code) in &live.refused {
        let text = code.text().unwrap_or_default();
        tell_of("refused", &format!("{item}: {text} {code}"), as_json);
    }
    live.notes.iter().for_each(|text| tell_of("note", text, as_json));
}

/// What is no value.
fn tell_of(kind: &str, text: &str, as_json: bool) {
    if as_json { output::json(&json!({ kind: text })) } else { note(&visible(&format!("{kind}: {text}"))) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(["a.b", "a,b", "say \"x\""].map(quoted), ["a.b", "\"a,b\"", "\"say \"\"x\"\"\""]);
    }
}
