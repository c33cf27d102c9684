//! Messages out of a capture file.

use super::show::{Detail, Narrator, Passed};
use crate::output::note;
use crate::trouble::{Done, Trouble};
use everywire::wires::ALL;
use everywire_trace::Trace;
use std::path::Path;

/// Prints the messages of a capture in the order of their ends.
pub(crate) fn print(path: &Path, detail: Detail) -> Done {
    let what = || format!("cannot read the capture {}", path.display());
    let trace = Trace::read(path, ALL).map_err(|failure| {
        Trouble::usage(what(), failure.message().to_owned()).hint(failure.hint().unwrap_or_default())
    })?;
    for gap in &trace.gaps {
        note(&format!("#{} {}", gap.connection, gap.what));
    }
    if trace.messages.is_empty() {
        let why = format!("{} TCP connections, none of a wire that is known here", trace.connections);
        return Err(Trouble::usage(format!("there is nothing to explain in {}", path.display()), why)
            .hint("was the right port captured, and unencrypted?"));
    }
    let mut narrator = Narrator::new(detail);
    for message in &trace.messages {
        let (from, to) = (message.from.to_string(), message.to.to_string());
        narrator.tell(&Passed {
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
