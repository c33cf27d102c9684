//! Messages out of a capture file.

use super::seen_message::SeenMessage;
use super::show::{MessagePrinter, Narrator};
use crate::cli_error::{CliError, Done};
use crate::output::note;
use everywire::model::MessageListing;
use everywire::wires::ALL;
use everywire_trace::Trace;
use std::path::Path;

/// Prints the messages of a capture in the order of their ends, by the times in the file.
///
/// # Errors
/// The file is no capture, or has no message of a known wire.
pub(crate) fn print(path: &Path, telling: MessagePrinter) -> Done {
    let what = || format!("cannot read the capture {}", path.display());
    let trace = Trace::read(path, ALL).map_err(|failure| {
        CliError::usage(what(), failure.message().to_owned()).hint(failure.hint().unwrap_or_default())
    })?;
    for gap in &trace.gaps {
        note(&format!("#{} {}", gap.connection, gap.what));
    }
    if trace.messages.is_empty() {
        let why = format!("{} TCP connections, none of a wire that is known here", trace.connections);
        return Err(CliError::usage(format!("there is nothing to explain in {}", path.display()), why)
            .hint("was the right port captured, and unencrypted?"));
    }
    let mut narrator = Narrator::new(telling);
    for message in &trace.messages {
        let (from, to) = if message.named {
            parties(&message.explained)
        } else {
            (message.from.to_string(), message.to.to_string())
        };
        narrator.tell(&SeenMessage {
            time: message.time,
            connection: message.connection,
            outward: message.outward,
            from: &from,
            to: &to,
            wire: message.wire,
            offset: message.offset,
            explained: &message.explained,
            bytes: &message.bytes,
        });
    }
    Ok(())
}

/// Who sent a message to whom, where it says so itself, as messages over a bus do; empty where it does
/// not.
pub(super) fn parties(explained: &MessageListing) -> (String, String) {
    let part = |name: &str| explained.part(name).unwrap_or_default().to_owned();
    (part("SENDER"), part("DESTINATION"))
}
