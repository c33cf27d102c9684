//! Questions to another side's repository, and how many there may be.
//!
//! Every call to the repository takes its way through `Questions::to`, which counts it and looks at the
//! clock. So a repository that answers with ever new definitions, or slowly, ends the walk with a failure;
//! the clock is looked at between questions, so one call that hangs is not ended here.

use crate::contracts::corba::describe;
use everywire_model::marshal::{MarshalList, UnmarshalList};
use everywire_model::{Endpoint, Failure, Hold, Initiator, Interface, Kind, Object, Reference, Resolver};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most questions about one contract: some ten for each of `INTERFACES` interfaces.
const QUESTIONS: usize = 2_000;
/// How long all questions about one contract may take together. It is looked at before each question.
const TIME: Duration = Duration::from_secs(60);

/// Asks the objects of one repository, for one contract.
pub(super) struct Questions {
    /// How references become objects: the node's own way, with its pool of connections.
    resolver: Arc<dyn Resolver>,
    /// How the object itself is reached. References of the repository name no files of ours, such as those for TLS.
    known: Vec<Endpoint>,
    /// Questions that were begun.
    asked: usize,
    /// When time is over; nothing if the clock cannot say so.
    until: Option<Instant>,
    /// The definition that was asked for first: by it the repository is found.
    first: Option<Reference>,
    /// The repository: not asked for yet, asked for and not had, or had.
    repository: Option<Option<Reference>>,
}

impl Questions {
    pub(super) fn new(object: &Object) -> Self {
        let until = Instant::now().checked_add(TIME);
        let known = object
            .reference()
            .profiles
            .iter()
            .flat_map(|profile| profile.endpoints.iter().cloned())
            .collect();
        Self { resolver: object.target().resolver(), known, asked: 0, until, first: None, repository: None }
    }

    /// The way to an object of the repository, for one question. `of` is the interface whose operations are
    /// called there. Where the reference leads to the same place as the object itself, the user's options
    /// (files of certificates) are used for it.
    ///
    /// # Errors
    /// There were too many questions, they took too long, or the reference leads nowhere.
    pub(super) fn to(&mut self, reference: &Reference, of: &'static Interface) -> Result<Object, Failure> {
        self.asked += 1;
        if self.asked > QUESTIONS {
            let (asked, limit) = (self.asked as u64, QUESTIONS as u64);
            return Err(Failure::over_limit(Initiator::Peer, "questions about one contract", asked, limit));
        }
        let rest = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        if rest.is_some_and(|rest| rest.is_zero()) {
            let what = format!("the contract was not told within {} seconds", TIME.as_secs());
            return Err(Failure::new(Kind::TimedOut, Initiator::Peer, what));
        }
        if self.first.is_none() {
            self.first = Some(reference.clone());
        }
        let mut reached = reference.clone();
        for endpoint in reached.profiles.iter_mut().flat_map(|profile| &mut profile.endpoints) {
            if let Some(known) = self.known.iter().find(|known| same_place(known, endpoint)) {
                *endpoint = known.clone();
            }
        }
        Ok(self.resolver.resolve(&reached)?.typed(Hold::Static(of)))
    }

    /// The only result of one question: the operation or attribute with this name.
    ///
    /// # Errors
    /// As for [`Questions::to`]; the repository does not answer, or with something else.
    pub(super) fn ask<A, R>(
        &mut self,
        reference: &Reference,
        of: &'static Interface,
        name: &str,
        arguments: A,
    ) -> Result<R, Failure>
    where
        A: MarshalList,
        (R,): for<'a> UnmarshalList<'a>,
    {
        let object = self.to(reference, of)?;
        let operation = of.operations.iter().find(|operation| operation.label == name);
        let operation = operation.ok_or_else(|| {
            Failure::new(Kind::NoOperation, Initiator::Here, format!("{} has no `{name}`", of.name))
        })?;
        object.call(operation, arguments).map(|(result,)| result)
    }

    /// The definition with this repository id. Nothing, if the repository does not know it or does not answer. Costs up to two questions.
    pub(super) fn find(&mut self, id: &str) -> Option<Reference> {
        let repository = match &self.repository {
            Some(known) => known.clone(),
            None => {
                let first = self.first.clone()?;
                let found = self.ask(&first, &describe::CONTAINED, "containing_repository", ());
                let found: Option<Reference> = found.ok().flatten();
                self.repository = Some(found.clone());
                found
            }
        }?;
        self.ask(&repository, &describe::REPOSITORY, "lookup_id", (id,)).ok().flatten()
    }

    /// The scoped name of the definition with this repository id. Nothing, if the repository does not know it
    /// or does not answer: the caller then shows the bare name. Costs up to four questions.
    pub(super) fn name_of(&mut self, id: &str) -> Option<String> {
        let found = self.find(id)?;
        let name: String = self.ask(&found, &describe::CONTAINED, "absolute_name", ()).ok()?;
        let name = name.trim_start_matches("::");
        (!name.is_empty()).then(|| name.to_owned())
    }
}

/// Whether two endpoints are the same port with the same layer, whatever options the layer has. Endpoints
/// without a layer are the same only if they are equal, so there is nothing to replace.
fn same_place(one: &Endpoint, other: &Endpoint) -> bool {
    match (one, other) {
        (Endpoint::Layered(one), Endpoint::Layered(other)) => {
            one.layer == other.layer && one.over == other.over
        }
        _ => false,
    }
}

#[cfg(test)]
impl Questions {
    /// Questions that nobody answers.
    pub(super) fn nobody() -> Self {
        use everywire_model::object::Local;
        struct NullResolver;
        impl Resolver for NullResolver {
            fn resolve(&self, _: &Reference) -> Result<Object, Failure> {
                Err(Failure::new(Kind::Unreachable, Initiator::Here, "nobody is there"))
            }

            fn local(&self, _: &Reference, _: &str) -> Option<Local> {
                None
            }
        }
        let resolver = Arc::new(NullResolver);
        Self { resolver, known: Vec::new(), asked: 0, until: None, first: None, repository: None }
    }
}
