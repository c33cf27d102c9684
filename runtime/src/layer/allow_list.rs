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
/// # Ok::<(), String>(())
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
    /// The text names no interface and operation.
    pub fn anyone(self, call: &str) -> Result<Self, String> {
        self.rule(None, call)
    }

    /// This caller may call this. A caller is an address (`10.1.2.3`), a network (`10.0.0.0/8`), `local` for whoever comes by a Unix socket,
    /// shared memory or from this process, or `user:NAME` for a proved account.
    ///
    /// # Errors
    /// One of the texts names nothing.
    pub fn only(self, caller: &str, call: &str) -> Result<Self, String> {
        let caller = Caller::parse(caller)?;
        self.rule(Some(caller), call)
    }

    /// Adds a rule; an operation without an interface would fit nothing, so it is refused here.
    fn rule(mut self, caller: Option<Caller>, call: &str) -> Result<Self, String> {
        if call != "*" && !call.contains('.') {
            return Err(format!(
                "`{call}` names no operation: write INTERFACE.OPERATION, such as Shop.count or Shop.*"
            ));
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
