//! What others say to each other through a router that lets one overhear it.

use super::capture::parties;
use super::seen_message::SeenMessage;
use super::show::{MessagePrinter, Narrator};
use crate::cli_error::{CliError, Done};
use everywire::Monitor;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the end is looked for while nobody says anything.
const GLANCE: Duration = Duration::from_millis(100);

/// Prints what a router shows of others' messages, until `ended` is set, or the router hangs up, which
/// is an error. All messages count as one connection.
pub(crate) fn print(monitor: &Monitor, ended: &AtomicBool, telling: MessagePrinter) -> Done {
    let mut narrator = Narrator::new(telling);
    let mut offset = 0;
    while !ended.load(Ordering::Relaxed) {
        let next = monitor.next(Some(Instant::now() + GLANCE));
        let message = match next {
            Ok(Some(message)) => message,
            Ok(None) => continue,
            Err(failure) => return Err(CliError::failure("the monitor ended", &failure)),
        };
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        for explained in &monitor.wire().explain(&message).messages {
            let end = explained.offset.saturating_add(explained.len).min(message.len());
            let (from, to) = parties(explained);
            narrator.tell(&SeenMessage {
                time,
                connection: 1,
                outward: true,
                from: &from,
                to: &to,
                wire: monitor.wire().name(),
                offset: offset + explained.offset as u64,
                explained,
                bytes: message.get(explained.offset..end).unwrap_or_default(),
            });
        }
        offset += message.len() as u64;
    }
    Ok(())
}
