//! Errors by name: what the standard ones mean, and which one a failure becomes.
//!
//! D-Bus has no numbers and no completion status: an error is a name like that of an interface, and mostly a
//! text. Two tables translate between names and the kinds of failures, in both directions: the names of the
//! specification and of libdbus, and those of sd-bus for errors of the system. A failure that came with a
//! name (its code) goes on with that name.
//!
//! Whether the servant ran is guessed from the name (`failure`): only where the error says that the call
//! cannot have begun is another try safe.

use crate::names::{self, ERRORS};
use crate::signature;
use bytes::Bytes;
use everywire_model::shape::{Struct, Text};
use everywire_model::{Body, Completed, Context, Failure, Hold, Initiator, Kind, Outcome, Raised};
use std::borrow::Cow;

/// The names, without what all begin with, and what they mean; for a kind, the first of its names is sent.
/// The order matters: see `name`.
const STANDARD: &[(&str, Kind)] = &[
    ("Failed", Kind::Internal),
    ("UnknownObject", Kind::NoObject),
    ("UnknownMethod", Kind::NoOperation),
    ("UnknownInterface", Kind::NoOperation),
    ("UnknownProperty", Kind::NoOperation),
    ("InvalidArgs", Kind::BadArgument),
    ("InvalidSignature", Kind::BadArgument),
    ("InvalidFileContent", Kind::BadArgument),
    ("MatchRuleInvalid", Kind::BadArgument),
    ("InconsistentMessage", Kind::BadArgument),
    ("AccessDenied", Kind::Refused),
    ("AuthFailed", Kind::Refused),
    ("InteractiveAuthorizationRequired", Kind::Refused),
    ("PropertyReadOnly", Kind::Refused),
    ("Timeout", Kind::TimedOut),
    ("TimedOut", Kind::TimedOut),
    ("NoReply", Kind::TimedOut),
    ("LimitsExceeded", Kind::LimitExceeded),
    ("NoMemory", Kind::LimitExceeded),
    ("NotSupported", Kind::Unsupported),
    ("Disconnected", Kind::Unreachable),
    ("ServiceUnknown", Kind::Unreachable),
    ("NameHasNoOwner", Kind::Unreachable),
    ("NoServer", Kind::Unreachable),
    ("NoNetwork", Kind::Unreachable),
    ("IOError", Kind::Unreachable),
    ("BadAddress", Kind::BadReference),
];

/// Errors that a bus answers with, because there was nobody to give the call to: it never began. [`Kind::Unreachable`] from anybody
/// else says nothing of that, since whoever has it may have lost a peer of its own in the middle of the call.
const UNDELIVERED: &[&str] = &["ServiceUnknown", "NameHasNoOwner"];

/// Whether a bus answers so where there was nobody to give the call to.
fn is_undelivered(name: &str) -> bool {
    name.strip_prefix(ERRORS).is_some_and(|name| UNDELIVERED.contains(&name))
}

/// What stands before the name of an error of the system, as sd-bus and its services have it (sd_bus_error(3)).
const SYSTEM_ERRORS: &str = "System.Error.";
/// Errors of the system, and what they mean; for a kind that the standard has no name for, the first of its
/// names is sent. The kinds that the standard has no name for are Busy, Cancelled and Violation.
const SYSTEM: &[(&str, Kind)] = &[
    ("EBUSY", Kind::Busy),
    ("EAGAIN", Kind::Busy),
    ("ECANCELED", Kind::Cancelled),
    ("EPROTO", Kind::Violation),
    ("EPERM", Kind::Refused),
    ("EACCES", Kind::Refused),
    ("ETIMEDOUT", Kind::TimedOut),
    ("EINVAL", Kind::BadArgument),
    ("EBADMSG", Kind::BadArgument),
    ("EOPNOTSUPP", Kind::Unsupported),
    ("ENOSYS", Kind::Unsupported),
    ("ENOMEM", Kind::LimitExceeded),
    ("ENOBUFS", Kind::LimitExceeded),
    ("EMSGSIZE", Kind::LimitExceeded),
];

/// What a standard error means, or one of the system. Any other name is one of the servant's own, and so a
/// failure of the servant.
pub(crate) fn kind(name: &str) -> Kind {
    let of = |prefix: &str, table: &[(&str, Kind)]| {
        let name = name.strip_prefix(prefix)?;
        table.iter().find(|(held, _)| *held == name).map(|(_, kind)| *kind)
    };
    of(ERRORS, STANDARD).or_else(|| of(SYSTEM_ERRORS, SYSTEM)).unwrap_or(Kind::Internal)
}

/// The name that a failure is answered with: the one that it came with, if that is a valid name; else one for
/// its kind.
pub(crate) fn name(failure: &Failure) -> Cow<'_, str> {
    let began = failure.completed() != Completed::No;
    if let Some(code) = failure.code()
        && names::is_interface(code.as_bytes())
        // Of a servant whose own call found nobody.
        && !(began && is_undelivered(code))
    {
        return Cow::Borrowed(code);
    }
    // A call that never began is told as the bus tells it, so that the caller may try again.
    if matches!(failure.kind(), Kind::Unreachable | Kind::WrongWire)
        && !began
        && let Some(undelivered) = UNDELIVERED.first()
    {
        return Cow::Owned(format!("{ERRORS}{undelivered}"));
    }
    let kind = match failure.kind() {
        Kind::Malformed | Kind::BadReference => Kind::BadArgument,
        Kind::WrongWire => Kind::Unreachable,
        // Their names say that nothing was done.
        Kind::NoObject | Kind::NoOperation if began => Kind::Internal,
        kind => kind,
    };
    let named =
        |table: &[(&'static str, Kind)]| table.iter().find(|(_, held)| *held == kind).map(|(name, _)| *name);
    Cow::Owned(match (named(STANDARD), named(SYSTEM)) {
        (Some(name), _) => format!("{ERRORS}{name}"),
        (None, Some(name)) => format!("{SYSTEM_ERRORS}{name}"),
        (None, None) => format!("{ERRORS}Failed"),
    })
}

/// An error that came: an exception if the operation names it, else a failure. `from_bus` says that the bus itself sent it.
///
/// Most libraries send one text for people with every error (GDBus, dbus-python and QtDBus send nothing else). Such an error is an exception
/// without fields all the same, and keeps the text. It is not one with fields, since they did not come: the caller learns its name and
/// the text as a failure.
pub(crate) fn outcome(name: &str, raises: &[Hold<Struct>], body: Body, from_bus: bool) -> Outcome<Body> {
    let named = |exception: &&Hold<Struct>| names::of_exception(exception) == name;
    if let Some(exception) = raises.iter().find(named) {
        let id = if exception.id.is_empty() { &exception.name } else { &exception.id };
        if exception.fields.is_empty() {
            let text = text(&body).unwrap_or_default();
            let body = Body { bytes: Bytes::new(), context: Context::default(), ..body };
            return Outcome::Raised(Box::new(Raised { id: id.to_string(), body, text, encoded: None }));
        }
        if signature::fits(&exception.fields, &body.context) {
            return Outcome::raised(id.to_string(), body);
        }
    }
    Outcome::Failed(failure(name, &body, from_bus))
}

/// An error that the contract does not name. The call never began if the bus itself refused to pass it on, or if the error is one that only a
/// search for the method ends with. `InvalidArgs` and `AccessDenied` from a service say nothing of that: services also answer so in the
/// middle of their work (polkit refuses when it was asked, an argument turns out wrong after a first step).
pub(crate) fn failure(name: &str, body: &Body, from_bus: bool) -> Failure {
    let message = text(body).unwrap_or_else(|| "the peer answered with an error".to_owned());
    let kind = kind(name);
    let undelivered = is_undelivered(name);
    let completed = match kind {
        Kind::NoObject | Kind::NoOperation => Completed::No,
        Kind::BadArgument | Kind::Refused if from_bus => Completed::No,
        _ if undelivered => Completed::No,
        _ => Completed::Maybe,
    };
    Failure::new(kind, Initiator::Peer, message).with_code(name).with_completed(completed)
}

/// What an error says to people: its first value, if that is text; nothing if that is empty or does not decode.
fn text(body: &Body) -> Option<String> {
    if body.context.first() != Some(&b's') {
        return None;
    }
    let first = Body { context: b"s"[..].into(), bytes: body.bytes.clone(), ..body.clone() };
    let mut text = None;
    // What follows the text does not matter, so that the codec's complaint of it does not either.
    let _ = first.codec.read(&first, &mut |source| {
        text = Some(source.text(&Text::NARROW)?.into_owned());
        Ok(())
    });
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use everywire_model::Shape;
    use everywire_model::shape::Field;

    /// What GDBus and dbus-python send with every error: a text.
    #[test]
    fn an_error_with_a_text_is_an_exception_without_fields_and_none_with_fields() {
        let text = "\x03\0\0\0why\0";
        let body = |signature: &str| {
            let bytes = Bytes::copy_from_slice(text.as_bytes());
            crate::values::Values::body(bytes, 0, true, signature.as_bytes().into(), Vec::new())
        };
        let exception = |name: &'static str, fields: Vec<Shape>| {
            let fields = fields.into_iter().map(|shape| Field { name: "".into(), shape }).collect();
            Hold::new(Struct { name: name.into(), id: name.into(), fields })
        };
        let frozen = exception("org.example.Frozen", Vec::new());
        let said = exception("org.example.Said", vec![Shape::Text(Text::NARROW)]);
        let overdrawn = exception("org.example.Overdrawn", vec![Shape::I32, Shape::Text(Text::NARROW)]);
        let raises = [frozen, said.clone(), overdrawn];
        match outcome("org.example.Frozen", &raises, body("s"), false) {
            Outcome::Raised(raised) => {
                assert_eq!((raised.id.as_str(), raised.text.as_str()), ("org.example.Frozen", "why"));
                let nothing = everywire_idl::signature::nameless(Vec::new());
                raised.body.decode::<()>(&nothing).expect("nothing is left of the text");
            }
            other => panic!("{other:?}"),
        }
        match outcome("org.example.Said", &raises, body("s"), false) {
            Outcome::Raised(raised) => {
                let text = raised.body.decode::<(String,)>(&Shape::Struct(said)).expect("the text");
                assert_eq!(text, ("why".to_owned(),));
            }
            other => panic!("{other:?}"),
        }
        match outcome("org.example.Overdrawn", &raises, body("s"), false) {
            Outcome::Failed(failure) => {
                assert_eq!((failure.kind(), failure.code()), (Kind::Internal, Some("org.example.Overdrawn")));
                assert_eq!(failure.message(), "why");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn standard_errors_keep_their_kind() {
        for kind in [
            Kind::NoObject,
            Kind::NoOperation,
            Kind::BadArgument,
            Kind::Refused,
            Kind::TimedOut,
            Kind::LimitExceeded,
            Kind::Unsupported,
            Kind::Unreachable,
            Kind::Internal,
            Kind::Busy,
            Kind::Cancelled,
            Kind::Violation,
        ] {
            let failure = Failure::new(kind, Initiator::Peer, "x");
            assert_eq!(self::kind(&name(&failure)), kind);
        }
        let no_text = crate::values::Values::body(
            bytes::Bytes::new(),
            0,
            crate::basics::NATIVE_LITTLE,
            everywire_model::Context::default(),
            Vec::new(),
        );
        for completed in [Completed::No, Completed::Maybe] {
            let lost = Failure::new(Kind::Unreachable, Initiator::Peer, "x").with_completed(completed);
            assert_eq!(super::failure(&name(&lost), &no_text, false).completed(), completed);
        }
        for (name, from_bus, completed) in [
            ("AccessDenied", false, Completed::Maybe),
            ("AccessDenied", true, Completed::No),
            ("InvalidArgs", false, Completed::Maybe),
            ("InvalidArgs", true, Completed::No),
            ("UnknownMethod", false, Completed::No),
            ("NoReply", true, Completed::Maybe),
        ] {
            let failure = super::failure(&format!("{ERRORS}{name}"), &no_text, from_bus);
            assert_eq!(failure.completed(), completed, "{name}, from the bus: {from_bus}");
        }
        let coded = Failure::new(Kind::Internal, Initiator::Peer, "x").with_code("org.example.Mine");
        assert_eq!(name(&coded), "org.example.Mine");
        let foreign =
            Failure::new(Kind::NoObject, Initiator::Peer, "x").with_code("CORBA::OBJECT_NOT_EXIST minor 0");
        assert_eq!(name(&foreign), "org.freedesktop.DBus.Error.UnknownObject");
    }
}
