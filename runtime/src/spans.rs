//! Spans of the crate `tracing` for calls that go out and calls that come in, where the feature `tracing` is on.
//!
//! A call is a span `call` at its caller (target `everywire::call`), and a span `serve` at its servant (target `everywire::serve`), both of the
//! level DEBUG, with the fields `wire`, `endpoint`, `interface` and `operation`. When the call has ended, an event in the span says how
//! (`outcome`: `done`, `sent`, `raised`, `moved`, or the word of a failure's kind) and after how many `microseconds`.
//!
//! Invariants: without the feature nothing of this is left in the program. With it, a call that no subscriber wants costs the look at a
//! callsite that `tracing` keeps, and allocates nothing.

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Outgoing, serve};
#[cfg(feature = "tracing")]
pub(crate) use on::{Outgoing, serve};

#[cfg(feature = "tracing")]
mod on {
    use everywire_model::object::Completion;
    use everywire_model::{Answer, Body, Endpoint, Expects, Failure, Method, Outcome, Reference, Request};
    use std::time::Instant;
    use tracing::span::EnteredSpan;
    use tracing::{Span, debug, debug_span};

    /// A call that goes out.
    pub(crate) struct Outgoing(Option<(Span, Instant)>);

    impl Outgoing {
        #[inline]
        pub(crate) fn begin(reference: &Reference, method: Method<'_>) -> Self {
            let profile = reference.profiles.first();
            // The fields are looked at only where somebody wants them.
            let span = debug_span!(
                target: "everywire::call",
                "call",
                wire = profile.map_or("", |profile| profile.wire),
                endpoint = profile.and_then(|profile| profile.endpoints.first()).map(tracing::field::display),
                interface = method.interface().map_or("", |interface| &*interface.name),
                operation = &*method.label(),
            );
            Self((!span.is_disabled()).then(|| (span, Instant::now())))
        }

        /// Calls what carries the call out, within its span.
        #[inline]
        pub(crate) fn run<T>(&self, call: impl FnOnce() -> T) -> T {
            match &self.0 {
                None => call(),
                Some((span, _)) => span.in_scope(call),
            }
        }

        #[inline]
        pub(crate) fn end(&self, outcome: &Outcome<Body>) {
            if let Some((span, begun)) = &self.0 {
                match outcome {
                    Outcome::Done(_) => ended(span, *begun, "done"),
                    Outcome::Raised(raised) => was_raised(span, *begun, &raised.id),
                    Outcome::Moved(_) => ended(span, *begun, "moved"),
                    Outcome::Failed(failure) => failed(span, *begun, failure),
                }
            }
        }

        /// Of a call that wants no answer.
        #[inline]
        pub(crate) fn end_sent(&self, sent: &Result<(), Failure>) {
            if let Some((span, begun)) = &self.0 {
                match sent {
                    Ok(()) => ended(span, *begun, "sent"),
                    Err(failure) => failed(span, *begun, failure),
                }
            }
        }

        /// Of a call whose outcome comes later.
        #[inline]
        pub(crate) fn ending(self, done: Completion) -> Completion {
            match self.0 {
                None => done,
                kept => Box::new(move |outcome| {
                    Self(kept).end(&outcome);
                    done(outcome);
                }),
            }
        }
    }

    /// A call that came in; its span is entered while what comes back lives.
    #[inline]
    pub(crate) fn serve(
        request: &mut Request,
        wire: &'static str,
        endpoint: &Endpoint,
    ) -> Option<EnteredSpan> {
        let span = debug_span!(
            target: "everywire::serve",
            "serve",
            wire,
            %endpoint,
            interface = tracing::field::Empty,
            operation = tracing::field::Empty,
        );
        if span.is_disabled() { None } else { Some(wanted(request, span)) }
    }

    #[cold]
    fn wanted(request: &mut Request, span: Span) -> EnteredSpan {
        let name = request.full_name();
        let (interface, operation) = name.rsplit_once('.').unwrap_or(("", &name));
        span.record("interface", interface).record("operation", operation);
        let (begun, kept) = (Instant::now(), span.clone());
        match request.expects() {
            Expects::Nothing => request.on_end(move || ended(&kept, begun, "sent")),
            Expects::Reply => request.answer_through(move |link, id, answer| {
                match &answer {
                    Answer::Done(_) => ended(&kept, begun, "done"),
                    Answer::Raised { shape, .. } => was_raised(&kept, begun, &shape.id),
                    Answer::Passed { encoded, .. } if encoded.raised => was_raised(&kept, begun, &encoded.id),
                    Answer::Failed(failure) | Answer::Passed { failure, .. } => failed(&kept, begun, failure),
                    Answer::Moved(_) => ended(&kept, begun, "moved"),
                }
                link.answer(id, answer);
            }),
        }
        span.entered()
    }

    fn microseconds(begun: Instant) -> u64 {
        u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn ended(span: &Span, begun: Instant, outcome: &str) {
        debug!(target: "everywire::ended", parent: span, outcome, microseconds = microseconds(begun));
    }

    fn was_raised(span: &Span, begun: Instant, exception: &str) {
        let microseconds = microseconds(begun);
        debug!(target: "everywire::ended", parent: span, outcome = "raised", exception, microseconds);
    }

    fn failed(span: &Span, begun: Instant, failure: &Failure) {
        let (outcome, microseconds) = (failure.kind().word(), microseconds(begun));
        debug!(target: "everywire::ended", parent: span, outcome, %failure, microseconds);
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use everywire_model::object::Completion;
    use everywire_model::{Body, Endpoint, Failure, Method, Outcome, Reference, Request};

    /// Nothing.
    pub(crate) struct Outgoing;

    impl Outgoing {
        #[inline(always)]
        pub(crate) fn begin(_: &Reference, _: Method<'_>) -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) fn run<T>(&self, call: impl FnOnce() -> T) -> T {
            call()
        }

        #[inline(always)]
        pub(crate) fn end(&self, _: &Outcome<Body>) {}

        #[inline(always)]
        pub(crate) fn end_sent(&self, _: &Result<(), Failure>) {}

        #[inline(always)]
        pub(crate) fn ending(self, done: Completion) -> Completion {
            done
        }
    }

    #[inline(always)]
    pub(crate) fn serve(_: &mut Request, _: &'static str, _: &Endpoint) -> Option<()> {
        None
    }
}
