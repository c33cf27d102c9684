//! Walking the names that others keep, and looking one up (OMG Naming Service, formal/04-10-03).
//!
//! All of it is blocking calls, for the command line. `list` walks a context and the
//! contexts in it, depth first; `look_up` resolves one `corbaname:`.
//!
//! What a context says bounds nothing here: names (`NAMES`), their octets (`OCTETS`), nesting (`DEPTH`), answers
//! (`ANSWERS`) and time (`TIME`) do, and a context that was walked is not walked again, so that circles of contexts end. When a
//! bound is met, what was found so far is the result, which says that it is not whole.

use super::{KEY, names};
use crate::address;
use crate::contracts::IS_A;
use crate::contracts::cos_naming::naming_context::describe::{CANNOT_PROCEED, INVALID_NAME, NOT_FOUND};
use crate::contracts::cos_naming::{Binding, BindingType, NameComponent, describe};
use bytes::Bytes;
use everywire_model::object::unexpected;
use everywire_model::reference::unescape;
use everywire_model::{
    Endpoint, Failure, Hold, Initiator, Kind, MarshalList, Object, Operation, Outcome, Presence,
    PresenceList, Reference, Resolver, Sink,
};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// `resolve` and `list` of a context, `next_n` and `destroy` of what tells the rest of a list.
static RESOLVE: &Operation = &describe::NAMING_CONTEXT_OPERATIONS[4];
static LIST: &Operation = &describe::NAMING_CONTEXT_OPERATIONS[9];
static NEXT_N: &Operation = &describe::BINDING_ITERATOR_OPERATIONS[1];
static DESTROY: &Operation = &describe::BINDING_ITERATOR_OPERATIONS[2];

/// Names that are asked for at once: enough to need few answers, and few enough for a message of any server.
const PAGE: u32 = 200;
/// Most names that are told.
const NAMES: usize = 10_000;
/// Most octets of names, and of what is told of them: 64 MiB.
const OCTETS: usize = 64 << 20;
/// Most answers that are waited for: each name costs one to resolve it, and pages and contexts cost some
/// more.
const ANSWERS: usize = 30_000;
/// Deepest nesting of contexts.
const DEPTH: usize = 32;
/// How long all of it may take.
const TIME: Duration = Duration::from_secs(60);

/// The names at an address: those of a node or a naming service, where no object is named; else of the
/// context that is. `text` is an address in any notation.
///
/// # Errors
/// There is no such object, or it is no context of names.
pub(crate) fn list(text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
    let reference = match look_up(text, resolver) {
        Some(found) => found?,
        None => address::parse(text)?,
    };
    let whole = reference.profiles.first().is_some_and(|profile| profile.key.is_empty());
    let reference = if whole { at_key(&reference, KEY) } else { reference };
    let mut walk = Walk {
        resolver,
        seen: HashSet::new(),
        found: Vec::new(),
        left_out: Vec::new(),
        has_ended: false,
        silent: None,
        answers: 0,
        octets: 0,
        until: Instant::now().checked_add(TIME),
    };
    let object = resolver.resolve(&reference)?;
    let is_context = object.call::<_, (bool,), Failure>(&IS_A, (&*describe::NAMING_CONTEXT.id,));
    match is_context {
        Ok((true,)) => {}
        Ok((false,)) => return Err(no_context(&reference)),
        Err(failure) if failure.kind() == Kind::NoObject && whole => return Err(no_service(&failure)),
        Err(failure) => return Err(failure),
    }
    walk.context(&object, &mut Vec::new())?;
    if let Some((count, first)) = walk.silent {
        walk.left_out.push(format!("contexts that do not tell their names: {count}, the first is {first}"));
    }
    Ok(PresenceList { found: walk.found, left_out: walk.left_out })
}

/// The failure for an object that is something else.
fn no_context(reference: &Reference) -> Failure {
    let address = address::print_friendly(reference);
    let what = "the object is no context of names, so there is nothing to list";
    Failure::bad_argument(what)
        .with_hint(format!("`everywire describe {address}` tells what the object can do"))
}

/// The failure where an address without a key has no naming service. The code of the peer's exception is
/// kept.
fn no_service(failure: &Failure) -> Failure {
    let what = "nobody at this address keeps a list of names: there is no object `NameService`";
    let told = Failure::new(Kind::NoObject, Initiator::Peer, what).with_hint(
        "give the address of a naming service, or the whole reference of an object to `everywire describe`",
    );
    match failure.code() {
        Some(code) => told.with_code(code),
        None => told,
    }
}

/// What a `corbaname:` means (section 2.5.3): nothing, if the text is none, or names no more than a context.
pub(crate) fn look_up(text: &str, resolver: &dyn Resolver) -> Option<Result<Reference, Failure>> {
    let rest = address::corbaname(text)?;
    let (_, name) = rest.split_once('#')?;
    if name.is_empty() {
        return None;
    }
    Some(named(rest, name, resolver))
}

/// Asks the context before the `#` for the name behind it, which is escaped with `%` as in a URL.
///
/// # Errors
/// The name is none, is not bound, or the naming service does not answer.
fn named(rest: &str, name: &str, resolver: &dyn Resolver) -> Result<Reference, Failure> {
    let wrong = || {
        let what = format!("`{name}` is no name of an object");
        Failure::bad_reference(what)
            .with_hint("write ID.KIND/ID.KIND, with `\\` before a `.` or `/` that is part of a word")
    };
    let plain = unescape(name).and_then(|octets| String::from_utf8(octets).ok()).ok_or_else(wrong)?;
    let wanted = names::parse(&plain).ok_or_else(wrong)?;
    let context = resolver.resolve(&address::corbaname_context(rest)?)?;
    match resolve(&context, &wanted)? {
        Some(found) => Ok(found),
        None => {
            let what = format!("the name `{plain}` is bound to no object");
            Err(Failure::new(Kind::NoObject, Initiator::Peer, what))
        }
    }
}

/// What a name is bound to; `None` for nil. The exceptions of `resolve` become failures.
fn resolve(context: &Object, name: &[NameComponent]) -> Result<Option<Reference>, Failure> {
    let arguments = |sink: &mut dyn Sink| (name,).marshal_list(&RESOLVE.arguments, sink);
    let raised = match context.invoke(RESOLVE, &arguments) {
        Outcome::Done(body) => return body.decode(&RESOLVE.results).map(|(found,)| found),
        Outcome::Raised(raised) => raised.id,
        Outcome::Failed(failure) => return Err(failure),
        Outcome::Moved(_) => {
            let what = "the context moved too often";
            return Err(Failure::new(Kind::Unreachable, Initiator::Peer, what));
        }
    };
    let name = names::print(name);
    Err(if raised == NOT_FOUND.id {
        Failure::new(Kind::NoObject, Initiator::Peer, format!("the naming service has no name `{name}`"))
            .with_hint("`everywire list` at the address of the naming service tells its names")
    } else if raised == INVALID_NAME.id {
        let what = format!("the naming service takes `{name}` for no name");
        Failure::bad_reference(what)
    } else if raised == CANNOT_PROCEED.id {
        let what = format!("the naming service cannot follow the name `{name}`");
        Failure::new(Kind::Internal, Initiator::Peer, what)
    } else {
        unexpected(&raised)
    })
}

/// The same place, another object there. The type id is left out, since it was that of the first object.
fn at_key(reference: &Reference, key: &'static [u8]) -> Reference {
    let mut at = reference.clone();
    at.type_id.clear();
    at.profiles.iter_mut().for_each(|profile| profile.key = Bytes::from_static(key));
    at
}

/// One walk and its bounds.
struct Walk<'r> {
    resolver: &'r dyn Resolver,
    /// Contexts that were walked: where, and under which key.
    seen: HashSet<(Vec<Endpoint>, Bytes)>,
    found: Vec<Presence>,
    /// What was not come to, and why.
    left_out: Vec<String>,
    /// Whether a bound was met.
    has_ended: bool,
    /// How many contexts did not tell their names, and what was the matter with the first one.
    silent: Option<(usize, String)>,
    /// Answers that were waited for so far.
    answers: usize,
    /// Octets of names that came, and of what is told.
    octets: usize,
    until: Option<Instant>,
}

impl Walk<'_> {
    /// Counts one more question; whether it may be asked.
    fn goes_on(&mut self) -> bool {
        self.answers += 1;
        let bound = if self.answers >= ANSWERS {
            format!("{ANSWERS} answers were read")
        } else if self.found.len() >= NAMES {
            format!("{NAMES} names were found")
        } else if self.octets >= OCTETS {
            format!("{} MiB of names were read", OCTETS >> 20)
        } else if self.until.is_some_and(|until| Instant::now() >= until) {
            format!("{} s were over", TIME.as_secs())
        } else {
            return true;
        };
        self.ends(&bound);
        false
    }

    /// Notes that the list is not whole; the first bound that was met is told.
    fn ends(&mut self, bound: &str) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.left_out.push(format!(
                "the list is not whole, since {bound}: list a context of it by its own address for the rest"
            ));
        }
    }

    /// The names of a context, and of those in it. `path` is the name that leads here, and is the same again
    /// at the end.
    ///
    /// # Errors
    /// The context itself does not answer. Contexts inside it that do not answer are passed over.
    fn context(&mut self, object: &Object, path: &mut Vec<NameComponent>) -> Result<(), Failure> {
        let place = object.reference().profiles.first();
        let place = place.map(|profile| (profile.endpoints.clone(), profile.key.clone())).unwrap_or_default();
        if !self.seen.insert(place) {
            return Ok(());
        }
        if path.len() > DEPTH {
            self.ends(&format!("contexts within {DEPTH} others are not walked"));
            return Ok(());
        }
        if !self.goes_on() {
            return Ok(());
        }
        let context = object.clone().typed(Hold::Static(&describe::NAMING_CONTEXT));
        let (mut all, rest): (Vec<Binding>, Option<Reference>) =
            context.call::<_, _, Failure>(LIST, (PAGE,))?;
        self.weigh(&all);
        if let Some(rest) = rest {
            let rest = self.resolver.resolve(&rest)?.typed(Hold::Static(&describe::BINDING_ITERATOR));
            // The other half is for telling them.
            while self.goes_on() {
                if all.len() >= NAMES {
                    self.ends(&format!("no more than {NAMES} names of a context are asked for"));
                    break;
                }
                if self.octets >= OCTETS / 2 {
                    self.ends(&format!("{} MiB of names were read", OCTETS >> 21));
                    break;
                }
                let (more, page): (bool, Vec<Binding>) = rest.call::<_, _, Failure>(NEXT_N, (PAGE,))?;
                let ended = !more || page.is_empty();
                self.weigh(&page);
                all.extend(page);
                if ended {
                    break;
                }
            }
            // It ends by itself, too, where it cannot be told.
            let _ = rest.call::<_, (), Failure>(DESTROY, ());
        }
        for binding in all {
            let Some(component) = binding.binding_name.into_iter().last() else { continue };
            if !self.goes_on() {
                return Ok(());
            }
            let bound = resolve(&context, std::slice::from_ref(&component));
            path.push(component);
            let inner = self.tell(path, &bound, binding.binding_type);
            if let Some(inner) = inner {
                // One that does not answer hides no other.
                if let Err(failure) = self.context(&inner, path) {
                    let first = || (0, format!("`{}`: {failure}", names::print(path)));
                    self.silent.get_or_insert_with(first).0 += 1;
                }
            }
            path.pop();
        }
        Ok(())
    }

    /// Counts the octets of names that came.
    fn weigh(&mut self, page: &[Binding]) {
        let parts = page.iter().flat_map(|binding| &binding.binding_name);
        self.octets += parts.map(|part| part.id.len() + part.kind.len()).sum::<usize>();
    }

    /// Notes a name with the type of what it is bound to, or why that cannot be had. Returns the object if
    /// the binding is a context, to be walked next.
    fn tell(
        &mut self,
        path: &[NameComponent],
        bound: &Result<Option<Reference>, Failure>,
        kind: BindingType,
    ) -> Option<Object> {
        let word = if kind == BindingType::Ncontext { "context" } else { "object" };
        let reference = bound.as_ref().ok().and_then(Option::as_ref);
        let told = match (bound, reference) {
            (_, Some(reference)) => reference.type_id.clone(),
            (Err(failure), _) => format!("(cannot be had: {})", failure.message()),
            (Ok(_), None) => "(bound to no object)".to_owned(),
        };
        let (name, address) =
            (names::print(path), reference.map(address::print_friendly).unwrap_or_default());
        self.octets += name.len() + address.len() + told.len();
        self.found.push(Presence { name, address, details: vec![("kind", word.to_owned()), ("type", told)] });
        reference
            .filter(|_| kind == BindingType::Ncontext)
            .and_then(|reference| self.resolver.resolve(reference).ok())
    }
}
