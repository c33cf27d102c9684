//! Whether the element around a message's values is that of its operation.
//!
//! SOAPAction says what is asked, and the body may be another operation's: read by local names, all members of the contract
//! would be missing and have their defaults. WCF refuses such a body before it reads values, and so does a channel.
//!
//! States: none. Invariant: heads that came before (`head_cache`) are the same up to the end of the first element's start tag,
//! so that a head is judged once.

use super::state::SoapChannel;
use crate::plan::{Plan, Wrapping};
use crate::soap::faults;
use crate::soap::head::{First, Head};
use everywire_model::{Completed, Failure, Initiator, Kind};

/// Names up to this many bytes are shown.
const SHOWN: usize = 1024;

impl SoapChannel {
    /// Refuses a request that has another element around its values than its operation; whether it did.
    pub(super) fn refuses_wrapper(&mut self, head: &Head<'_>, plan: &Plan, asked: &str) -> bool {
        let Some(wrong) = wrong_wrapper(plan, false, head.first.as_ref()) else { return false };
        let failure = Failure::new(Kind::BadArgument, Initiator::Peer, wrong).with_completed(Completed::No);
        let said = faults::said(&failure, asked, "", false);
        self.refuse_request(head, said, Vec::new());
        true
    }
}

/// What is wrong with the first element of a body, as WCF says it; nothing if it is the one of the contract, or the contract
/// does not say. Where there are no values, the body may be empty: nothing can be missing.
pub(super) fn wrong_wrapper(plan: &Plan, is_answer: bool, first: Option<&First<'_>>) -> Option<String> {
    let layout = if is_answer { &plan.results } else { &plan.arguments };
    let is_rpc = match plan.wrapping {
        _ if plan.passes => return None,
        Wrapping::Unknown => return None,
        // What an answer is called is a custom only (SOAP 1.1, section 7.1).
        Wrapping::Rpc if is_answer => return None,
        wrapping => wrapping == Wrapping::Rpc,
    };
    let (namespace, local) = layout.wrapper()?;
    let found = match first {
        // Old stacks have their own ideas of the namespace.
        Some(first) if first.local == local && (is_rpc || first.namespace == namespace) => return None,
        Some(first) if first.local.len() + first.namespace.len() <= SHOWN => {
            let First { namespace, local, .. } = first;
            format!("Found node type 'Element' with name '{local}' and namespace '{namespace}'")
        }
        Some(_) => "Found another element".to_owned(),
        None if layout.is_empty() => return None,
        None => "The body is empty".to_owned(),
    };
    Some(format!(
        "OperationFormatter encountered an invalid Message body. Expected to find node type 'Element' with name '{local}' and \
         namespace '{namespace}'. {found}"
    ))
}
