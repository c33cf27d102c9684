//! Why a call failed: the protocol says only that it did (`DCOPReplyFailed`), so the object is asked for its
//! functions (`functions()`, which every object has), as the tools of KDE do.
//!
//! The question takes the place of the call: it has its key and its number, so that whoever called may
//! withdraw it, and the death of the callee ends it, as before. Three answers are told apart: there is no
//! such object, it has no such function, or the function itself failed. None of them says for certain that
//! the call did not run, since objects come and go between the two.

use crate::address::SERVER;
use crate::discover;
use crate::ice::minor;
use crate::limits::DISCOVERED;
use crate::replies::{refusal, text};
use crate::request_templates::RequestTemplate;
use crate::session::{CallPurpose, DcopSession, Pending};
use crate::strings::{DecodeError, StringReader};
use everywire_model::{Completed, Failure, Initiator, Kind, Outcome};
use std::sync::Arc;

/// What to do about a function that failed. A server of ours lets a call fail also where it, or its answer, is larger than it passes on.
const FAILED: &str = "look at the application's log; if the call or its answer has more than 4 MiB, raise the limit \
    of the DCOP server (`everywire dcopserver --max-message 64MiB`)";

/// Functions that every object has: an object that lacks them is not there.
const OF_ALL: [&[u8]; 3] = [b"functions()", b"interfaces()", b"objects()"];

impl DcopSession {
    /// A call failed: asks why, or tells it where that is clear. Calls whose failure says enough by itself
    /// are not asked about.
    #[cold]
    pub(crate) fn ask_why(&mut self, key: u32, pending: Pending) {
        let Pending { way, number, shared, .. } = &pending;
        if way.app == SERVER || way.function.is_empty() || OF_ALL.contains(&&*way.function) {
            return self.reply(pending.id(key), Outcome::Failed(refusal(way)));
        }
        let question = Arc::new(RequestTemplate::new(&self.name, &way.app, &way.object, b"functions()"));
        self.put_small(minor::CALL, key, &question, b"");
        let asks = CallPurpose::Why(Arc::clone(way));
        let (number, shared) = (*number, *shared);
        self.pending.insert(key, Pending { way: question, asks, number, shared });
    }
}

/// The failure of a call (`way`) to an object that tells these functions (the data of its answer).
#[cold]
pub(crate) fn failure(way: &RequestTemplate, functions: &[u8]) -> Failure {
    match list(functions) {
        Ok(list) => explained(way, &list),
        // What it says of itself cannot be read: then as much is known as before.
        Err(_) => refusal(way),
    }
}

/// The failure of a call to an object that does not even tell its functions.
#[cold]
pub(crate) fn nobody(way: &RequestTemplate) -> Failure {
    let (app, object) = (text(&way.app), text(&way.object));
    let what = format!("no application `{app}` is registered, or it has no object `{object}`");
    // It may have been there when the call came.
    let failure = Failure::new(Kind::NoObject, Initiator::Peer, what).with_completed(Completed::Maybe);
    failure.with_hint(format!(
        "`everywire list dcop:{app}` shows the objects, `everywire list dcop:` who is there"
    ))
}

/// Signatures are compared in a normal form, and then by the bare name, so that wrong arguments are told from
/// a wrong name.
fn explained(way: &RequestTemplate, list: &[String]) -> Failure {
    let (app, object, function) = (text(&way.app), text(&way.object), text(&way.function));
    // Spelled alike whichever toolkit the other side has.
    let normal = |declared: &str| discover::function(declared).map(|operation| operation.name.into_owned());
    let wanted = normal(&format!("void {}", String::from_utf8_lossy(&way.function)));
    let is_wanted = |declared: &&String| wanted.is_some() && normal(declared) == wanted;
    let plain = function.split('(').next().unwrap_or_default();
    let is_called_so =
        |declared: &&String| declared.split('(').next().unwrap_or_default().ends_with(&format!(" {plain}"));
    let at = format!("of object `{object}` in application `{app}`");
    let hint = format!("`everywire list dcop:{app}/{object}` shows the functions");
    let (kind, what) = match (list.iter().find(is_wanted), list.iter().find(is_called_so)) {
        (Some(_), _) => {
            let what =
                format!("`{function}` {at} failed, or does not take the arguments; DCOP tells no more");
            return Failure::new(Kind::Internal, Initiator::Peer, what)
                .with_completed(Completed::Maybe)
                .with_hint(FAILED);
        }
        (None, Some(other)) => {
            let other = text(other.as_bytes());
            (Kind::BadArgument, format!("`{function}` {at} takes other arguments: it is `{other}`"))
        }
        (None, None) => (Kind::NoOperation, format!("there is no function `{function}` {at}")),
    };
    // An object need not tell all that it does.
    Failure::new(kind, Initiator::Peer, what).with_completed(Completed::Maybe).with_hint(hint)
}

/// The functions that an object tells: a list of counted strings.
///
/// # Errors
/// The data end early, or tell of more functions than anybody has.
fn list(data: &[u8]) -> Result<Vec<String>, DecodeError> {
    let mut walk = StringReader::new(data);
    let count = walk.u32()? as usize;
    if count > DISCOVERED {
        return Err(DecodeError { what: "too many functions", at: 0 });
    }
    // Each takes at least its length: a count that lies allocates nothing.
    let mut list = Vec::with_capacity(count.min(walk.left() / 4));
    for _ in 0..count {
        let name = walk.name()?;
        list.push(String::from_utf8_lossy(data.get(name).unwrap_or_default()).into_owned());
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::put_name;

    fn told(function: &str, functions: &[&str]) -> Failure {
        let mut data = u32::try_from(functions.len()).unwrap().to_be_bytes().to_vec();
        functions.iter().for_each(|function| put_name(&mut data, function.as_bytes()));
        failure(&RequestTemplate::new(b"me", b"app", b"obj", function.as_bytes()), &data)
    }

    #[test]
    fn the_functions_of_an_object_tell_why_a_call_failed() {
        let functions = ["QCStringList functions()", "int add(int amount)", "void seek(QString,bool)"];
        for (function, kind, part) in [
            ("add(int)", Kind::Internal, "failed"),
            ("seek(QString,bool)", Kind::Internal, "failed"),
            ("seek(int)", Kind::BadArgument, "void seek(QString,bool)"),
            ("gone(int)", Kind::NoOperation, "no function `gone(int)`"),
            ("ad(int)", Kind::NoOperation, "no function"),
        ] {
            let failure = told(function, &functions);
            assert_eq!((failure.kind(), failure.completed()), (kind, Completed::Maybe), "{failure}");
            assert!(failure.message().contains(part), "{failure}");
            let limit = failure.hint().is_some_and(|hint| hint.contains("dcopserver --max-message"));
            assert_eq!(limit, kind == Kind::Internal, "{failure}");
        }
    }

    #[test]
    fn a_list_that_lies_says_nothing() {
        let way = RequestTemplate::new(b"me", b"app", b"obj", b"add(int)");
        for data in [&b""[..], &[0xff; 4], &[0, 0, 0, 2, 0, 0, 0, 9, b'x'], &[0, 0, 0x40, 0]] {
            assert_eq!(failure(&way, data).kind(), refusal(&way).kind());
        }
    }
}
