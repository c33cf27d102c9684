//! A list of what may be called, and by whom.

use super::{Caller, CallerIdentity, Layer, Next, Pattern};
use everywire_model::{Answer, Failure, Initiator, Kind, Request};

/// Lets only those calls through that one of its rules names; refuses all others before the servant sees them, so that they never began.
///
/// ```
/// use everywire_runtime::layer::AllowList;
///
/// let list = AllowList::new()
///     .anyone("Shop.count")?                    // one operation, by its interface and its name in the contract
///     .only("10.0.0.0/8", "Shop.*")?            // everything of an interface, from one network
///     .only("user:LAB\\ada", "*")?;             // everything, by one account
/// # Ok::<(), everywire_model::Failure>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct AllowList {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    /// Who may call; `None`: everybody.
    caller: Option<Caller>,
    call: Pattern,
}

impl AllowList {
    /// One that lets nothing through.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whoever calls may call this: `INTERFACE.OPERATION` by their names in the contract (modules joined by `::`), where `*` stands for any characters. The getter of an
    /// attribute is `_get_NAME`, the setter `_set_NAME`.
    ///
    /// # Errors
    /// The text names no interface and operation ([`Kind::BadArgument`]).
    pub fn anyone(self, call: &str) -> Result<Self, Failure> {
        self.rule(None, call)
    }

    /// This caller may call this. A caller is an address (`10.1.2.3`), a network (`10.0.0.0/8`), `local` for whoever comes by a Unix socket,
    /// shared memory or from this process, or `user:NAME` for a proved account.
    ///
    /// # Errors
    /// One of the texts names nothing ([`Kind::BadArgument`]).
    pub fn only(self, caller: &str, call: &str) -> Result<Self, Failure> {
        let known = Caller::parse(caller).map_err(|why| wrong_rule(&why, CALLERS))?;
        self.rule(Some(known), call)
    }

    /// Adds a rule; an operation without an interface would fit nothing, so it is refused here.
    fn rule(mut self, caller: Option<Caller>, call: &str) -> Result<Self, Failure> {
        if call != "*" && !call.contains('.') {
            return Err(wrong_rule(&format!("`{call}` names no operation"), CALLS));
        }
        self.rules.push(Rule { caller, call: Pattern::new(call) });
        Ok(self)
    }

    /// Whether one of the rules lets this call through.
    fn lets(&self, request: &Request, name: &str) -> bool {
        // Who calls is found out only where a rule asks for it.
        let mut who = None;
        self.rules.iter().filter(|rule| rule.call.fits(name)).any(|rule| match &rule.caller {
            None => true,
            Some(caller) => caller.is(who.get_or_insert_with(|| CallerIdentity::of_call(request))),
        })
    }
}

/// What a rule may name.
const CALLS: &str = "write INTERFACE.OPERATION, such as Shop.count or Shop.*, or * for all";
const CALLERS: &str = "write an address, a network such as 10.0.0.0/8, `local`, or user:NAME";

/// The failure for a rule that names nothing.
#[cold]
fn wrong_rule(why: &str, hint: &str) -> Failure {
    // What to write is the hint.
    let what = why.split_once(": write ").map_or(why, |(what, _)| what);
    Failure::bad_argument(what).at("a rule of AllowList").with_hint(hint)
}

impl Layer for AllowList {
    fn serve(&self, mut request: Request, next: Next<'_>) {
        let name = request.full_name();
        if self.lets(&request, &name) {
            return next.serve(request);
        }
        let who = request.peer().map_or_else(|| "this caller".to_owned(), |peer| peer.to_string());
        let what = format!("{name} is not on the server's list of calls that {who} may make");
        let failure = Failure::new(Kind::Refused, Initiator::Peer, what)
            .with_hint("whoever runs the server adds a rule for it to the list");
        request.answer(Answer::Failed(&failure));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_names_nothing_says_where_it_is_and_what_to_write() {
        for (list, what, hint) in [
            (AllowList::new().anyone("count"), "`count` names no operation", "INTERFACE.OPERATION"),
            (AllowList::new().only("local", "count"), "`count` names no operation", "INTERFACE.OPERATION"),
            (AllowList::new().only("ada", "Shop.*"), "`ada` names nobody", "user:NAME"),
        ] {
            let failure: Failure = list.expect_err(what);
            assert_eq!((failure.kind(), failure.initiator()), (Kind::BadArgument, Initiator::User));
            assert_eq!(failure.place(), "a rule of AllowList");
            assert_eq!(failure.message(), what);
            assert!(failure.hint().is_some_and(|said| said.contains(hint)), "{failure}");
        }
    }
}
