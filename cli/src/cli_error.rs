//! What went wrong, for people in three lines and for programs as JSON, and the exit code that says
//! which kind it was.
//!
//! A `CliError` is made where something fails, by the one who knows what the program was about to do; it
//! may be given a hint, more about why, or another kind on its way up; and `main` shows it, once. The
//! three lines: what failed; why, in the words of whoever said so, with code, place, and whether the
//! call was executed; one thing to try.
//!
//! Exit codes: 1 the peer answered with an error, 2 usage, 3 unreachable, 4 refused, 5 timed out, 6
//! protocol violation. `exit_of` is the one place that decides for a `Failure`.
//!
//! Invariants: in the lines and in the JSON of a failure passwords of addresses are hidden (`hidden`).
//! JSON and the lines are made of the same fields. A hint names verbs and options that exist (see
//! `hints.rs`).

use crate::codes;
use crate::output::{self, Style, note, tinted, visible_lines};
use crate::secrets::hidden;
use everywire::model::failure::Completed;
use everywire::{Failure, Initiator, Kind};
use everywire_dynamic::{Mistake, Remedy};
use serde_json::{Value as Json, json};

/// The peer answered with an error: it was reached and understood.
pub(crate) const ANSWERED: u8 = 1;
/// Wrong options, arguments or contract.
pub(crate) const USAGE: u8 = 2;
/// The peer cannot be reached.
pub(crate) const UNREACHABLE: u8 = 3;
/// Authentication, policy or limits.
pub(crate) const REFUSED: u8 = 4;
/// The time was over.
pub(crate) const TIMED_OUT: u8 = 5;
/// The peer broke the protocol.
pub(crate) const VIOLATION: u8 = 6;

/// What is to be tried where nobody answers.
const NOBODY: &str = "is the server running, and is this its address?";

/// What every verb returns. Boxed, since it is large and rare.
pub(crate) type Done<T = ()> = Result<T, Box<CliError>>;

/// Something that went wrong.
#[derive(Debug, Default)]
pub(crate) struct CliError {
    /// The exit code, one of those above.
    exit: u8,
    /// A word for programs: that of a `Kind`, or `usage`, `io`, `exception`, `contract`,
    /// `configuration`, and what verbs add.
    kind: String,
    /// What the program was about to do.
    what: String,
    /// Why it failed, in the words of whoever said so.
    message: String,
    /// The peer's own identifier of the error: an exception's, a minor code, an HRESULT, a fault's
    /// code.
    code: Option<String>,
    /// Where in a value or a message it was found; empty if nowhere.
    place: String,
    /// Whether the call was executed: `yes`, `no`, `maybe`; none if nothing was called.
    completed: Option<&'static str>,
    hint: Option<String>,
    /// The fields of an exception, or what was found out before it failed.
    value: Option<Json>,
    /// Text that is shown as it is instead of the three lines: the mistakes of a file, each with its
    /// line.
    verbatim: Option<String>,
}

impl CliError {
    /// The command cannot be carried out as it was given.
    pub(crate) fn usage(what: impl Into<String>, message: impl Into<String>) -> Box<Self> {
        Box::new(Self {
            exit: USAGE,
            kind: "usage".into(),
            what: what.into(),
            message: message.into(),
            ..Self::default()
        })
    }

    /// Something of this machine failed: a file, a socket, a program.
    pub(crate) fn local(what: impl Into<String>, error: &std::io::Error) -> Box<Self> {
        Box::new(Self { kind: "io".into(), ..*Self::usage(what, error.to_string()) })
    }

    /// Something on a wire failed, before or without the call of an operation: so nothing was executed.
    pub(crate) fn failure(what: impl Into<String>, failure: &Failure) -> Box<Self> {
        Box::new(Self { completed: Some(Completed::No.word()), ..*Self::of_call(what, failure) })
    }

    /// A call failed. The failure says whether it was executed.
    pub(crate) fn of_call(what: impl Into<String>, failure: &Failure) -> Box<Self> {
        Box::new(Self {
            exit: exit_of(failure),
            kind: failure.kind().word().into(),
            what: what.into(),
            message: failure.message().into(),
            code: failure.code().map(Into::into),
            place: failure.place().into(),
            completed: Some(failure.completed().word()),
            hint: failure.hint().map(Into::into),
            ..Self::default()
        })
    }

    /// The peer raised an exception that the contract names.
    pub(crate) fn raised(
        what: impl Into<String>,
        name: &str,
        id: &str,
        fields: Json,
        shown: &str,
    ) -> Box<Self> {
        let shown = if shown.is_empty() { String::new() } else { format!(": {shown}") };
        Box::new(Self {
            exit: ANSWERED,
            kind: "exception".into(),
            what: what.into(),
            message: format!("the peer raised {name}{shown}"),
            code: Some(id.into()),
            completed: Some("yes"),
            value: Some(fields),
            ..Self::default()
        })
    }

    /// A contract has mistakes; `text` shows all of them.
    pub(crate) fn contract(text: String) -> Box<Self> {
        let message = text.lines().next().unwrap_or_default().to_owned();
        Box::new(Self {
            kind: "contract".into(),
            verbatim: Some(text),
            ..*Self::usage("the contract cannot be read", message)
        })
    }

    /// A configuration has mistakes; `text` shows all of them.
    pub(crate) fn configuration(text: String) -> Box<Self> {
        let message = text.lines().next().unwrap_or_default().to_owned();
        Box::new(Self {
            kind: "configuration".into(),
            verbatim: Some(text),
            ..*Self::usage("the configuration cannot be used", message)
        })
    }

    /// With something to try.
    pub(crate) fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Self> {
        self.hint = Some(hint.into());
        self
    }

    /// Told as something else that the program was about to do.
    pub(crate) fn about(mut self: Box<Self>, what: impl Into<String>) -> Box<Self> {
        self.what = what.into();
        self
    }

    /// With more about why.
    pub(crate) fn adding(mut self: Box<Self>, why: impl std::fmt::Display) -> Box<Self> {
        self.message = format!("{}; {why}", self.message);
        self
    }

    /// Whether it may have come from the connection as such, not from the object: then it is worth
    /// asking who answers there.
    pub(crate) fn is_of_connection(&self) -> bool {
        matches!(self.exit, UNREACHABLE | TIMED_OUT | VIOLATION)
            || (self.exit == REFUSED && self.code.is_none())
    }

    /// Whether it may be over after a while: nobody is there, or nobody who can answer yet. `watch`
    /// tries again then.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.exit, UNREACHABLE | TIMED_OUT | REFUSED) || self.kind == Kind::NoObject.word()
    }

    /// With another exit code and kind.
    pub(crate) fn as_kind(mut self: Box<Self>, exit: u8, kind: &str) -> Box<Self> {
        self.exit = exit;
        kind.clone_into(&mut self.kind);
        self
    }

    /// With what was found out before it failed.
    pub(crate) fn with_value(mut self: Box<Self>, value: Json) -> Box<Self> {
        self.value = Some(value);
        self
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        self.exit
    }

    /// Whether nothing was said yet of what to try, or only what is said of every server that does not answer.
    pub(crate) fn lacks_advice(&self) -> bool {
        self.hint.as_deref().is_none_or(|hint| hint == NOBODY)
    }

    /// Whether the peer said it, with an identifier of its own.
    pub(crate) fn has_code(&self) -> bool {
        self.code.is_some()
    }

    /// The kind, in a word.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Why it failed, on one line.
    pub(crate) fn why(&self) -> String {
        let mut why = self.message.clone();
        if let Some(code) = &self.code {
            why.push_str(&format!(" [{code}]"));
        }
        if !self.place.is_empty() {
            why.push_str(&format!(" ({})", self.place));
        }
        match (self.completed, self.exit) {
            (Some("yes"), exit) if exit != ANSWERED => why.push_str("; the call was executed"),
            (Some("maybe"), _) => why.push_str("; the call may have been executed"),
            _ => {}
        }
        why
    }

    /// Shows it: three lines on standard error, or an envelope on standard output.
    pub(crate) fn show(&self, json: bool, style: Style) {
        if json {
            output::json(&self.json());
        } else if let Some(text) = &self.verbatim {
            note(&visible_lines(text.trim_end()));
        } else {
            // What a peer says may have lines of its own: none of them looks like one of ours.
            let shown = |text: &str| visible_lines(hidden(text).trim_end()).replace('\n', "\n         ");
            note(&format!("{} {}", tinted("error:", "1;31", style.err), shown(&self.what)));
            note(&format!("  {} {}", tinted("why:", "1", style.err), shown(&self.why())));
            let more = self.explained().map(|word| format!("`everywire explain {word}` tells more"));
            let advice = match (self.advice(), more) {
                (Some(advice), Some(more)) => Some(format!("{} ({more})", shown(&advice))),
                (advice, more) => advice.as_deref().map(shown).or(more),
            };
            if let Some(advice) = advice {
                note(&format!(" {} {advice}", tinted("hint:", "1;36", style.err)));
            }
        }
    }

    /// The envelope.
    pub(crate) fn json(&self) -> Json {
        let mut envelope = json!({
            "ok": false,
            "error": {
                "kind": self.kind,
                "message": hidden(&format!("{}: {}", self.what, self.message)),
                "code": self.code,
                "place": if self.place.is_empty() { None } else { Some(&self.place) },
                "completed": self.completed,
                "hint": self.advice().as_deref().map(hidden),
                "explain": self.explained(),
            },
        });
        if let (Some(value), Some(envelope)) = (&self.value, envelope.as_object_mut()) {
            envelope.insert("value".into(), value.clone());
        }
        if let (Some(text), Some(error)) =
            (&self.verbatim, envelope.get_mut("error").and_then(Json::as_object_mut))
        {
            error.insert("diagnostics".into(), text.trim_end().into());
        }
        envelope
    }

    /// The word by which `everywire explain` tells more of it, if the table has one: of failures, not
    /// of what is wrong with a command line, nor of exceptions, which the contract explains.
    fn explained(&self) -> Option<&'static str> {
        let failed = self.completed.is_some() && self.exit != USAGE && self.kind != "exception";
        if !failed {
            return None;
        }
        codes::word_for(self.code.as_deref(), &self.message, &self.kind)
    }

    /// One thing to try: the hint that it was given, else one for its kind. An error with a name of the
    /// service's own (`org.example.Full`) means what its author says, so nothing is advised.
    fn advice(&self) -> Option<String> {
        if let Some(hint) = &self.hint {
            return Some(hint.clone());
        }
        let usual = self.usual_advice()?;
        let verb = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_default();
        Some(usual.replace("everywire VERB", &format!("everywire {verb}")))
    }

    /// What to try where nobody said more.
    fn usual_advice(&self) -> Option<&'static str> {
        let is = |kind: Kind| self.kind == kind.word();
        Some(match self.exit {
            ANSWERED if self.kind == "exception" => "the contract says when the operation raises it",
            ANSWERED if is(Kind::Internal) && self.code.as_ref().is_some_and(|code| code.contains('.')) => {
                return None;
            }
            ANSWERED if is(Kind::NoObject) => {
                "is this the object's key? `everywire list` tells, where anybody keeps a list"
            }
            ANSWERED if is(Kind::NoOperation) || is(Kind::BadArgument) || is(Kind::Malformed) => {
                "compare the contract of both sides"
            }
            ANSWERED if is(Kind::Unsupported) => return None,
            ANSWERED => "look at the server's log",
            UNREACHABLE => NOBODY,
            REFUSED if is(Kind::LimitExceeded) => {
                "raise the limit (--max-message), or ask whoever runs the server"
            }
            REFUSED if is(Kind::Busy) => "try again later",
            REFUSED => "ask whoever runs the server to permit it",
            TIMED_OUT => "raise --deadline, or look whether the server hangs",
            VIOLATION => "`everywire trace` between both shows the bytes; is this the right port?",
            _ => "`everywire VERB --help` has examples",
        })
    }
}

/// The exit code for a kind of failure that a peer answered with, by the kind's word: for `explain`,
/// which has no failure.
pub(crate) fn exit_of_kind(word: &str) -> u8 {
    match word {
        "unreachable" | "wrong-wire" => UNREACHABLE,
        "refused" | "limit-exceeded" | "busy" => REFUSED,
        "timed-out" => TIMED_OUT,
        "violation" => VIOLATION,
        "bad-reference" => USAGE,
        _ => ANSWERED,
    }
}

/// What was asked for does not fit the contract; hints name the options of this program.
impl From<Mistake> for Box<CliError> {
    fn from(mistake: Mistake) -> Self {
        let hint = mistake.hint_with(|remedy| match remedy {
            Remedy::None => "",
            Remedy::Interface => ", or name the interface with --interface",
            Remedy::OtherInterface => ", or name another --interface",
            Remedy::ThatInterface => " with --interface",
            Remedy::Template => "; --template prints a request to fill in",
            Remedy::Contract => " with --contract FILE",
            Remedy::Document => "; all arguments as one object are given by -d",
        });
        let trouble = CliError::usage(mistake.what(), mistake.why());
        match hint {
            Some(hint) => trouble.hint(hint),
            None => trouble,
        }
    }
}

/// The exit code of a failure. One that carries a code was told by the peer in its own terms, and is an
/// answer where its kind does not say more; others were found here.
fn exit_of(failure: &Failure) -> u8 {
    let answered = failure.code().is_some();
    match failure.kind() {
        Kind::Unreachable | Kind::WrongWire => UNREACHABLE,
        Kind::Refused | Kind::LimitExceeded | Kind::Busy => REFUSED,
        Kind::TimedOut => TIMED_OUT,
        Kind::Violation => VIOLATION,
        Kind::Malformed if !answered && failure.initiator() == Initiator::Peer => VIOLATION,
        Kind::Unsupported if !answered && failure.initiator() == Initiator::Here => USAGE,
        _ if !answered && failure.initiator() == Initiator::User => USAGE,
        _ => ANSWERED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_fit_the_kind_of_failure() {
        let advice = |kind, code: Option<&str>| {
            let failure = Failure::new(kind, Initiator::Peer, "text");
            let failure = code.map_or_else(|| failure.clone(), |code| failure.clone().with_code(code));
            CliError::of_call("what", &failure).advice()
        };
        let says = |kind, part: &str| advice(kind, None).is_some_and(|hint| hint.contains(part));
        assert!(says(Kind::LimitExceeded, "--max-message") && !says(Kind::Refused, "--max-message"));
        assert!(says(Kind::Internal, "log") && says(Kind::NoOperation, "contract"));
        assert_eq!(advice(Kind::Internal, Some("org.example.Error")), None);
        assert!(advice(Kind::Internal, Some("SYSTEM minor 5")).is_some());
    }

    #[test]
    fn only_calls_may_have_been_executed() {
        let failure = Failure::new(Kind::Violation, Initiator::Peer, "text").with_completed(Completed::Maybe);
        assert!(CliError::of_call("what", &failure).why().ends_with("may have been executed"));
        assert_eq!(CliError::failure("what", &failure).why(), "text");
    }

    #[test]
    fn failures_have_the_documented_exit_codes() {
        for (kind, initiator, code, exit) in [
            (Kind::NoObject, Initiator::Peer, Some("OBJECT_NOT_EXIST"), 1),
            (Kind::Malformed, Initiator::User, Some("MARSHAL"), 1),
            (Kind::BadArgument, Initiator::User, None, 2),
            (Kind::BadReference, Initiator::User, None, 2),
            (Kind::Unsupported, Initiator::Here, None, 2),
            (Kind::Unsupported, Initiator::User, None, 2),
            (Kind::Unsupported, Initiator::Peer, Some("NotSupported"), 1),
            (Kind::Unreachable, Initiator::Here, None, 3),
            (Kind::LimitExceeded, Initiator::User, None, 4),
            (Kind::Refused, Initiator::Peer, Some("NO_PERMISSION"), 4),
            (Kind::TimedOut, Initiator::User, None, 5),
            (Kind::Violation, Initiator::Peer, None, 6),
            (Kind::Malformed, Initiator::Peer, None, 6),
        ] {
            let mut failure = Failure::new(kind, initiator, "text");
            if let Some(code) = code {
                failure = failure.with_code(code);
            }
            assert_eq!(exit_of(&failure), exit, "{failure:?}");
        }
    }
}
