//! Asking a service what it is.
//!
//! Services differ in where they describe themselves, so several places are tried, and what the last one
//! says is told: over HTTP the pages of `?wsdl` and what they import, then WS-Transfer's Get, at `mex` below the
//! address and at the address itself. No state is kept between two questions.
//!
//! Invariants:
//! * All questions are safe to repeat, so what a failure says of their execution does not matter to callers.
//! * A description comes from a peer: its size (`LARGEST`) and its number of pages (`PAGES`) are bounded here,
//!   what is in it by `everywire_idl::wsdl`.
//! * A service is told to have no metadata only where it answered so; a service that could not be reached has
//!   its own failure.

use super::contract;
use crate::address;
use crate::nbfx;
use crate::settings::Settings;
use crate::values::{BodyContext, TEXT};
use bytes::Bytes;
use everywire_idl::encoding;
use everywire_idl::wsdl::{self, Port, names};
use everywire_model::contract::Notes;
use everywire_model::shape::Name;
use everywire_model::visit::Nothing;
use everywire_model::{
    Body, Completed, Contract, Discovery, Failure, Initiator, Interface, Kind, Object, Operation, Outcome,
    Presence, PresenceList, Profile, Reference, Resolver, Shape,
};
use std::sync::Arc;

/// Octets of an answer that describes something: more than of other messages.
/// All pages together.
const LARGEST: u64 = 16 << 20;
/// Pages of one description.
/// A service of WCF has one for each namespace.
const PAGES: usize = 64;

/// Asks an object for its contract: over HTTP by its pages, else, and if it has none, by WS-Transfer's Get, at `mex` below it.
///
/// # Errors
/// It does not tell, or not in a way that can be read.
pub fn discover(object: &Object) -> Result<Discovery, Failure> {
    let (profile, settings) = way(object)?;
    let contract = ask(object, &profile, &settings)?;
    let mut children = Vec::new();
    if profile.key.is_empty() {
        for port in contract.interfaces().flat_map(|interface| ports(interface)) {
            let key = settings.key_of(&port.address).filter(|key| !key.is_empty());
            children.extend(key.filter(|key| !children.contains(key)));
        }
    }
    let own = contract.interfaces().count();
    let addresses =
        elsewhere(contract.interfaces().flat_map(|interface| ports(interface)), &profile, &settings);
    Ok(Discovery { contract, own, children, addresses })
}

/// The addresses of the ports at the place that was asked, where none of them has the binding by which it was asked: pages of metadata
/// are the same for all bindings, so that a service which speaks SOAP 1.2 alone describes itself to whoever means SOAP 1.1.
fn elsewhere(ports: impl Iterator<Item = Port>, asked: &Profile, settings: &Settings) -> Vec<String> {
    let mut addresses = Vec::new();
    for port in ports {
        let (Some(binding), Ok(profile)) = (address::binding_of(&port), address::parse_port(&port, settings))
        else {
            continue;
        };
        if profile.key != asked.key || profile.endpoints != asked.endpoints {
            continue;
        }
        if binding == settings.binding {
            return Vec::new();
        }
        let friendly =
            address::print_friendly(&Reference { profiles: vec![profile], ..Reference::default() });
        if !addresses.contains(&friendly) {
            addresses.push(friendly);
        }
    }
    addresses
}

/// The endpoints of the service at an address, or of all services there.
///
/// # Errors
/// It does not tell, or not in a way that can be read.
pub fn list(text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
    let object = resolver.resolve(&address::parse(text)?)?;
    let (profile, settings) = way(&object)?;
    let contract = ask(&object, &profile, &settings)?;
    let mut found = Vec::new();
    for interface in contract.interfaces() {
        for port in ports(interface) {
            let friendly = address::parse_port(&port, &settings).map(|profile| {
                address::print_friendly(&Reference { profiles: vec![profile], ..Reference::default() })
            });
            found.push(Presence {
                name: names::contract(interface).local,
                address: friendly.unwrap_or_else(|_| port.address.clone()),
                details: vec![
                    ("binding", port.name),
                    ("contract", names::contract(interface).to_string()),
                    ("security", port.security),
                ],
            });
        }
    }
    Ok(found.into())
}

/// The endpoints that the description names for a contract.
fn ports(interface: &Interface) -> impl Iterator<Item = Port> {
    interface.notes.iter().filter(|(what, _)| what == "wcf:port").map(|(_, port)| Port::parse(port))
}

/// The way to an object, with room for a description.
fn way(object: &Object) -> Result<(Profile, Arc<Settings>), Failure> {
    let Some(profile) = address::own(object.reference()) else {
        return Err(Failure::bad_reference("the object is not on this wire"));
    };
    let mut settings = (*Settings::of(profile)).clone();
    let most = &mut settings.quotas.max_received_message_size;
    *most = LARGEST.max(*most);
    let settings = Arc::new(settings);
    Ok((Profile { options: Arc::clone(&settings).into(), ..profile.clone() }, settings))
}

/// Pages first, over HTTP; then WS-Transfer's Get below the object, and at the object itself.
fn ask(object: &Object, profile: &Profile, settings: &Settings) -> Result<Contract, Failure> {
    let at = |key: Bytes| {
        let profiles = vec![Profile { key, ..profile.clone() }];
        object.target().resolver().resolve(&Reference { profiles, ..Reference::default() })
    };
    if settings.binding.is_http() {
        match pages(&at(profile.key.clone())?, &settings.query) {
            Ok(documents) => return read(&documents),
            Err(failure) if !is_lack(&failure) => return Err(tidy(&failure)),
            Err(_) => {}
        }
    }
    let below = match profile.key.as_ref() {
        b"" => b"mex".to_vec(),
        key => [key, b"/mex"].concat(),
    };
    let document = match metadata(&at(below.into())?) {
        Err(failure) if !is_lack(&failure) => return Err(tidy(&failure)),
        // Some services answer where they are.
        Err(_) => metadata(&at(profile.key.clone())?).map_err(|failure| lacking(&failure))?,
        Ok(document) => document,
    };
    read(&[("metadata".to_owned(), document)])
}

/// Whether a failure may be that of a service which does not describe itself at this place.
fn is_lack(failure: &Failure) -> bool {
    let kind = failure.kind();
    matches!(kind, Kind::NoObject | Kind::NoOperation)
        || (failure.initiator() == Initiator::Peer
            && failure.hint().is_none()
            && matches!(kind, Kind::Unsupported | Kind::BadArgument | Kind::Internal))
}

/// What the last place that was asked says: whoever is not there, or does not let in, is no service without metadata.
fn lacking(failure: &Failure) -> Failure {
    if failure.kind() == Kind::NoObject || !is_lack(failure) {
        return tidy(failure);
    }
    let message = format!("the service publishes no metadata: {}", failure.message());
    Failure::new(Kind::Unsupported, Initiator::Peer, message).with_hint("give the contract's file")
}

/// A failure without the operation and the path that this module asked for, which nobody else did.
fn tidy(failure: &Failure) -> Failure {
    let message = failure.message().replace("/mex", "");
    let mut told =
        Failure::new(failure.kind(), failure.initiator(), message).with_completed(failure.completed());
    if let Some(code) = failure.code() {
        told = told.with_code(code);
    }
    match failure.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

/// The contract that these documents describe, which may be one or several with imports.
fn read(documents: &[(String, String)]) -> Result<Contract, Failure> {
    wsdl::parse_all(documents).map_err(|mistakes| {
        let first = mistakes.list.first().map(ToString::to_string).unwrap_or_default();
        let message = format!("the service's description cannot be read: {first}");
        Failure::new(Kind::Violation, Initiator::Peer, message)
    })
}

/// The description's first page, and all pages of the same service that it leads to. Other addresses are not followed.
/// `own`: what stands behind the path in the service's own address.
fn pages(object: &Object, own: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut wanted = vec!["wsdl".to_owned()];
    let mut documents: Vec<(String, String)> = Vec::new();
    let mut held = 0;
    while let Some(query) = wanted.get(documents.len()).cloned() {
        let mut get = Operation::new("Get", Vec::new(), Shape::Void);
        get.notes = Notes::Owned(vec![(Name::from(crate::http::GET), Name::from(query.clone()))]);
        let page = text(&answer(object, &get)?)?;
        held += page.len() as u64;
        if held > LARGEST {
            return Err(Failure::over_limit(Initiator::Peer, "bytes of the description", held, LARGEST));
        }
        for import in wsdl::imports(&page) {
            wanted.extend(page_of(&import.location, own).filter(|query| !wanted.contains(query)));
        }
        if wanted.len() > PAGES {
            let (what, asked) = ("pages of the description", wanted.len());
            return Err(Failure::over_limit(Initiator::Peer, what, asked, PAGES));
        }
        documents.push((format!("?{query}"), page));
    }
    Ok(documents)
}

/// The query of the page that an import leads to, without that of the service's own address, which goes with every request.
/// Only the query is used: the host may be one that nobody here can reach.
fn page_of(location: &str, own: &str) -> Option<String> {
    let (_, query) = location.split_once('?')?;
    let is_own = |part: &str| own.split('&').any(|known| known == part);
    let parts: Vec<&str> = query.split('&').filter(|part| !is_own(part)).collect();
    let is_page = parts.iter().any(|part| part.starts_with("xsd=") || part.starts_with("wsdl="));
    is_page.then(|| parts.join("&"))
}

/// The answer to WS-Transfer's Get, the whole envelope.
fn metadata(object: &Object) -> Result<String, Failure> {
    let interface = contract::interface();
    match interface.operations.first() {
        Some(get) => text(&answer(object, get)?),
        None => Err(everywire_model::object::no_operation(interface)),
    }
}

/// The answer to a question that changes nothing at the service. Because of that, it is asked once more when a connection
/// ended before the answer came (RFC 9110, section 9.2.2): servers close idle connections at the moment of a request, too.
fn answer(object: &Object, operation: &Operation) -> Result<Body, Failure> {
    let mut outcome = object.invoke(operation, &Nothing);
    if let Outcome::Failed(failure) = &outcome
        && failure.kind() == Kind::Unreachable
        && failure.completed() == Completed::Maybe
    {
        outcome = object.invoke(operation, &Nothing);
    }
    match outcome {
        Outcome::Done(body) => Ok(body),
        Outcome::Failed(failure) => Err(failure),
        Outcome::Raised(raised) => {
            let message = format!("the service answered with {}", raised.id);
            Err(Failure::new(Kind::Internal, Initiator::Peer, message))
        }
        Outcome::Moved(_) => {
            Err(Failure::new(Kind::Unreachable, Initiator::Peer, "the service is elsewhere"))
        }
    }
}

/// The whole document that a body is in, as XML text.
fn text(body: &Body) -> Result<String, Failure> {
    if body.dialect == TEXT {
        return encoding::text_of(body.bytes.to_vec()).map_err(|why| {
            let message = format!("the service's description cannot be read: {why}");
            Failure::new(Kind::Malformed, Initiator::Peer, message)
        });
    }
    let words = &BodyContext::of(body).words;
    nbfx::xml::to_xml(&body.bytes, |id| words.word(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A service behind a query has it in the addresses of its pages, too.
    #[test]
    fn pages_are_named_by_what_the_service_adds() {
        let page = |location: &str, own: &str| page_of(location, own);
        assert_eq!(page("http://h/s?xsd=xsd0", "").as_deref(), Some("xsd=xsd0"));
        assert_eq!(page("http://h/s?id=5&xsd=xsd0", "id=5").as_deref(), Some("xsd=xsd0"));
        assert_eq!(page("?wsdl=w1&a=1&b=2", "a=1&b=2").as_deref(), Some("wsdl=w1"));
        assert_eq!(page("http://h/s?lang=de&xsd=1", "").as_deref(), Some("lang=de&xsd=1"));
        for none in ["http://h/s.xsd", "http://h/s?id=5", "http://h/s?id=xsd=1", ""] {
            assert_eq!(page(none, "id=5"), None, "{none}");
        }
    }

    #[test]
    fn only_a_service_without_metadata_is_told_to_have_none() {
        let failed = |kind, what: &str| Failure::new(kind, Initiator::Peer, what).at("operation Get");
        for kind in [Kind::NoOperation, Kind::Unsupported, Kind::Internal] {
            let told = lacking(&failed(kind, "no such action"));
            assert_eq!(told.kind(), Kind::Unsupported);
            assert!(told.message().contains("publishes no metadata: no such action"), "{told}");
        }
        for kind in [Kind::NoObject, Kind::Unreachable, Kind::Refused, Kind::TimedOut] {
            let told = lacking(&failed(kind, "nobody at net.tcp://h/x/mex").with_hint("look"));
            assert_eq!((told.kind(), told.hint()), (kind, Some("look")));
            assert_eq!(told.to_string(), "nobody at net.tcp://h/x");
        }
        assert!(!is_lack(&failed(Kind::Unsupported, "another binding").with_hint("choose the other")));
    }
}
