//! What repeated messages begin with: made once when they go out, recognised as bytes when they come in.
//!
//! A `RequestTemplate` is the front of a message to one function of one object, as it stands on the wire; making one
//! spells the signature. `RequestTemplates` keeps the last `REMEMBERED` ones. A `CallHead` is the same for what comes:
//! front, names, and what an answer begins with; `CallHeads` keeps the last ones. Both replace the oldest, and
//! try the last one first.
//!
//! Invariants: a way is found again by what it was made for; where the shapes of the arguments went into its
//! signature, they are held, so that their address is not used for others. A front that was recognised needs
//! no check, since it was read and checked when it came first. Names have no NUL.

use crate::limits::{NAME, REMEMBERED};
use crate::strings::{DecodeError, StringReader, put_name, put_nullable};
use crate::{address, slots, types};
use bytes::Bytes;
use everywire_idl::kidl;
use everywire_model::recent::Recent;
use everywire_model::shape::{Hold, Struct};
use everywire_model::{Context, Failure, Operation, Profile, Shape, Signal};
use std::borrow::Cow;
use std::sync::Arc;

/// A way to ask something of an object: the front of the message, up to the length of the data.
#[derive(Debug, Default)]
pub(crate) struct RequestTemplate {
    /// The application that it leads to.
    pub(crate) app: Bytes,
    /// The object's id.
    pub(crate) object: Bytes,
    /// The signature.
    pub(crate) function: Bytes,
    /// As it stands on the wire.
    pub(crate) front: Vec<u8>,
    /// What it was made for: the operation's name, and its arguments where these went into the signature.
    name: Bytes,
    arguments: Option<Hold<Struct>>,
    /// The object that emits, where it is a signal.
    emitter: Bytes,
}

impl RequestTemplate {
    /// A way to a function by its signature. An empty `from` is null: this side has no name yet.
    pub(crate) fn new(from: &[u8], app: &[u8], object: &[u8], function: &[u8]) -> Self {
        let mut front = Vec::with_capacity(24 + from.len() + app.len() + object.len() + function.len());
        put_nullable(&mut front, from);
        for part in [app, object, function] {
            put_name(&mut front, part);
        }
        Self {
            app: Bytes::copy_from_slice(app),
            object: Bytes::copy_from_slice(object),
            function: Bytes::copy_from_slice(function),
            front,
            ..Self::default()
        }
    }

    /// Whether it leads to this operation of this object.
    fn is_for(&self, profile: &Profile, operation: &Operation) -> bool {
        self.name == operation.name.as_bytes()
            && self.object == profile.key
            && self.app == address::application(profile)
            && self.fits(&operation.arguments)
    }

    /// Whether it tells this signal of this object.
    fn is_of(&self, emitter: &[u8], signal: &Signal) -> bool {
        self.name == signal.name.as_bytes() && self.emitter == emitter && self.fits(&signal.fields)
    }

    /// Whether it was made for these arguments.
    fn fits(&self, arguments: &Shape) -> bool {
        match (&self.arguments, arguments.resolved()) {
            (None, _) => true,
            (Some(held), Shape::Struct(arguments)) => std::ptr::eq(&**held, &**arguments),
            _ => false,
        }
    }

    /// The same, made for an operation or a signal of that name.
    fn made_for(mut self, name: &str, arguments: &Shape) -> Self {
        self.name = Bytes::copy_from_slice(name.as_bytes());
        self.arguments = match arguments.resolved() {
            // Holding them keeps their address from being used for others.
            Shape::Struct(arguments) if !name.contains('(') => Some(arguments.clone()),
            _ => None,
        };
        self
    }
}

/// The ways that were used last.
#[derive(Debug, Default)]
pub(crate) struct RequestTemplates {
    /// Whether signatures are written as Trinity does.
    pub(crate) trinity: bool,
    known: RecentlyShared<RequestTemplate>,
}

/// What was used last, shared with the calls that are under way.
#[derive(Debug)]
struct RecentlyShared<T>(Recent<Arc<T>, REMEMBERED>);

impl<T> Default for RecentlyShared<T> {
    fn default() -> Self {
        Self(Recent::default())
    }
}

impl<T> RecentlyShared<T> {
    #[inline]
    fn find(&mut self, is: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let index = self.0.find(|held| is(held))?;
        self.0.get(index).cloned()
    }

    fn keep(&mut self, new: T) -> Arc<T> {
        let new = Arc::new(new);
        self.0.keep(Arc::clone(&new));
        new
    }
}

impl RequestTemplates {
    /// The way to ask for an operation.
    ///
    /// # Errors
    /// The reference names no application, or a type has no name on this wire.
    #[inline]
    pub(crate) fn get(
        &mut self,
        from: &[u8],
        profile: &Profile,
        operation: &Operation,
    ) -> Result<Arc<RequestTemplate>, Failure> {
        match self.known.find(|way| way.is_for(profile, operation)) {
            Some(way) => Ok(way),
            None => self.make(from, profile, operation),
        }
    }

    /// A way that is not there yet.
    #[cold]
    fn make(
        &mut self,
        from: &[u8],
        profile: &Profile,
        operation: &Operation,
    ) -> Result<Arc<RequestTemplate>, Failure> {
        let app = address::application(profile);
        if app.is_empty() {
            return Err(nobody());
        }
        let function = self.spelled(types::function(operation)?);
        if function.as_bytes().contains(&0) {
            return Err(Failure::bad_argument("a signature has a NUL inside"));
        }
        let way = RequestTemplate::new(from, app, &profile.key, function.as_bytes());
        Ok(self.known.keep(way.made_for(&operation.name, &operation.arguments)))
    }

    /// The way to a function by its signature, as somebody else has spelled it.
    pub(crate) fn named(
        &mut self,
        from: &[u8],
        profile: &Profile,
        function: &[u8],
    ) -> Result<Arc<RequestTemplate>, Failure> {
        let app = address::application(profile);
        self.by_name(from, app, &profile.key, function)
    }

    /// The way to tell a signal by its signature, as somebody else has spelled it.
    pub(crate) fn named_signal(
        &mut self,
        from: &[u8],
        emitter: &[u8],
        signature: &[u8],
    ) -> Result<Arc<RequestTemplate>, Failure> {
        let function = [emitter, b"#", signature].concat();
        self.by_name(from, address::SERVER, b"emit", &function)
    }

    /// Names of others are checked here, since they go out as they are.
    fn by_name(
        &mut self,
        from: &[u8],
        app: &[u8],
        object: &[u8],
        function: &[u8],
    ) -> Result<Arc<RequestTemplate>, Failure> {
        let same = |way: &RequestTemplate| way.function == function && way.object == object && way.app == app;
        if let Some(way) = self.known.find(same) {
            return Ok(way);
        }
        if app.is_empty() {
            return Err(nobody());
        }
        let bad = |part: &[u8]| part.contains(&0) || part.len() >= NAME;
        if bad(app) || bad(object) || bad(function) {
            let what = "a name with a NUL inside, or one that is too long";
            return Err(Failure::bad_argument(what));
        }
        Ok(self.known.keep(RequestTemplate::new(from, app, object, function)))
    }

    /// The way to tell a signal.
    pub(crate) fn signal(
        &mut self,
        from: &[u8],
        emitter: &[u8],
        signal: &Signal,
    ) -> Result<Arc<RequestTemplate>, Failure> {
        if let Some(way) = self.known.find(|way| way.is_of(emitter, signal)) {
            return Ok(way);
        }
        let function = [emitter, b"#", self.spelled(types::signal(signal)?).as_bytes()].concat();
        if function.contains(&0) {
            return Err(Failure::bad_argument("a signal's name has a NUL inside"));
        }
        let mut way = RequestTemplate::new(from, address::SERVER, b"emit", &function);
        way.emitter = Bytes::copy_from_slice(emitter);
        Ok(self.known.keep(way.made_for(&signal.name, &signal.fields)))
    }

    fn spelled<'a>(&self, signature: Cow<'a, str>) -> Cow<'a, str> {
        if self.trinity { Cow::Owned(kidl::types::of_trinity(&signature)) } else { signature }
    }
}

/// A reference to the server alone.
#[cold]
fn nobody() -> Failure {
    Failure::bad_reference("the reference names no application")
        .with_hint("write dcop:APPLICATION/OBJECT; `everywire list dcop:` shows who is there")
}

/// What the front of a call, or a send, that came in says.
#[derive(Debug)]
pub(crate) struct CallHead {
    /// What is compared.
    front: Box<[u8]>,
    /// Who sends it, as the server has let pass.
    pub(crate) sender: Bytes,
    /// The object that it is for; empty: the default one.
    pub(crate) object: Bytes,
    /// The signature.
    pub(crate) function: Bytes,
    /// The function again, for bodies.
    pub(crate) context: Context,
    /// The slot that it is for, if it is a signal.
    pub(crate) slot: Option<u64>,
    /// Whether its types are spelled as Trinity does.
    pub(crate) trinity: bool,
    /// From this side to the sender: the front of an answer.
    pub(crate) back: Vec<u8>,
}

/// The fronts that came last.
#[derive(Debug, Default)]
pub(crate) struct CallHeads(RecentlyShared<CallHead>);

impl CallHeads {
    /// Reads the front of a payload, and says how long it is.
    #[inline]
    pub(crate) fn read(
        &mut self,
        own: &[u8],
        payload: &Bytes,
    ) -> Result<(Arc<CallHead>, usize), DecodeError> {
        // The strings are counted: what begins with a known front has that front.
        if let Some(came) = self.0.find(|came| payload.starts_with(&came.front)) {
            let len = came.front.len();
            return Ok((came, len));
        }
        self.parse(own, payload)
    }

    /// A front that is not known yet.
    #[cold]
    fn parse(&mut self, own: &[u8], payload: &Bytes) -> Result<(Arc<CallHead>, usize), DecodeError> {
        let mut walk = StringReader::new(payload);
        let sender = walk.name()?;
        walk.name()?;
        let (object, function) = (walk.name()?, walk.name()?);
        // Copied, so that remembering them does not keep the message.
        let front = Bytes::copy_from_slice(payload.get(..walk.pos).unwrap_or_default());
        let (sender, object) = (front.slice(sender), front.slice(object));
        let function = front.slice(function);
        let mut back = Vec::with_capacity(own.len() + sender.len() + 10);
        put_name(&mut back, own);
        put_name(&mut back, &sender);
        let came = self.0.keep(CallHead {
            slot: slots::slot_of(&object),
            trinity: std::str::from_utf8(&function).is_ok_and(kidl::types::is_of_trinity),
            front: front.to_vec().into_boxed_slice(),
            context: (&*function).into(),
            sender,
            object,
            function,
            back,
        });
        Ok((came, walk.pos))
    }
}
