//! Which failures of a call say that the other end does not exist any more, so that a sink or a source is
//! given up at once; and how many time-outs do.

use crate::hresult::{RPC_E_DISCONNECTED, RPC_E_INVALID_IPID, RPC_E_INVALID_OBJECT};
use everywire_model::{Failure, Kind};

/// How many questions in a row, one in a period of silence, an object may leave unanswered: after as many periods without a
/// ping, its holders are given up, too.
const UNANSWERED: u32 = 3;

/// Questions in a row that were not answered in time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MissedReplies(u32);

impl MissedReplies {
    /// Whether an object is gone, by what came of the question whether it is there.
    pub(super) fn is_gone_by(&mut self, answer: &Result<(), Failure>) -> bool {
        match answer {
            Err(failure) if failure.kind() == Kind::TimedOut => {
                self.0 += 1;
                self.0 >= UNANSWERED
            }
            answer => {
                self.0 = 0;
                answer.as_ref().is_err_and(is_gone)
            }
        }
    }
}

/// Whether a failure says that the object is no more, or nobody who could have it.
pub(super) fn is_gone(failure: &Failure) -> bool {
    matches!(failure.kind(), Kind::Unreachable | Kind::NoObject)
        || [RPC_E_DISCONNECTED, RPC_E_INVALID_IPID, RPC_E_INVALID_OBJECT]
            .iter()
            .any(|code| has_code(failure, *code))
}

/// Whether a failure has this HRESULT.
pub(super) fn has_code(failure: &Failure, code: u32) -> bool {
    failure.code().is_some_and(|held| held.starts_with(&format!("{code:#010x}")))
}
