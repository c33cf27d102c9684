//! The exchange of tokens for Kerberos, both sides, by the library.
//!
//! The key distribution centre is asked, and waited for, when an initiator is made and in its first
//! step; whoever must not wait does this on a thread of its own. An exchange is taken out for each
//! step, and put back if another token is needed: after an error there is none.
//!
//! Invariant: a context is handed out only with the protection that the options ask for.

use super::protection::GssProtection;
use crate::security::{
    Acceptor, Cause, Credentials, Established, Initiator, Options, Principal, Step, check_size, out_of_turn,
};
use everywire_gss::{
    Acceptance, Context, Credential, Error, Flags, Initiation, LIBRARY, Name, Reason, Step as Leg, available,
};
use everywire_model::{Failure, Kind};
use std::net::IpAddr;
use std::path::Path;

/// Where the library finds its configuration, unless the variable says otherwise.
const CONFIGURATION: &str = "/etc/krb5.conf";

/// Whether trying Kerberos is worth the time: it is set up here, there is a service to ask for, and perhaps a ticket.
pub(in crate::security) fn promising(credentials: &Credentials, options: &Options) -> bool {
    let set_up = std::env::var_os("KRB5_CONFIG").is_some() || Path::new(CONFIGURATION).exists();
    // Services have names: nobody gets a ticket for a number.
    let host = options.target.split(['/', '@']).nth(1).unwrap_or_default();
    set_up
        && !host.is_empty()
        && host.parse::<IpAddr>().is_err()
        && credentials.password.as_password().is_some()
        && available().is_ok()
}

/// Whether there are keys to accept with.
pub(in crate::security) fn accepting(options: &Options) -> bool {
    options.keytab.is_some() && available().is_ok()
}

/// A context for this side's wish. An empty password stands for the tickets that the user already has. The key distribution
/// centre is asked, and waited for, here and in the first step.
pub(in crate::security) fn initiator(
    credentials: &Credentials,
    options: &Options,
) -> Result<Box<dyn Initiator>, Failure> {
    let Some(password) = credentials.password.as_password() else {
        let what = "Kerberos needs the password itself, not its NT hash";
        return Err(Failure::bad_argument(what));
    };
    let user = user(credentials).map_err(|error| failed("the name of the user", &error))?;
    let credential = match &user {
        Some(user) if !password.is_empty() => Credential::password(user, password).map_err(|error| {
            let what = format!("a ticket for {}", user.text().unwrap_or_default());
            failed(&what, &error).with_hint(
                "check the user, the realm (REALM;USER) and the password, and that the key distribution centre of $KRB5_CONFIG or /etc/krb5.conf answers",
            )
        }),
        _ => Credential::tickets(user.as_ref()).map_err(|error| {
            failed("this side's tickets", &error)
                .with_hint("get one by `kinit`, or give the user's name and password; $KRB5CCNAME says where tickets are")
        }),
    }?;
    let target = service(&options.target).map_err(|error| failed("the name of the service", &error))?;
    let wanted = Flags::MUTUAL
        .with(Flags::REPLAY)
        .with(Flags::SEQUENCE)
        .with_if(options.integrity || options.confidentiality, Flags::INTEGRITY)
        .with_if(options.confidentiality, Flags::CONFIDENTIALITY)
        .with_if(options.dce_style, Flags::DCE_STYLE);
    let exchange = Initiation::new(credential, target, wanted);
    Ok(Box::new(GssInitiator { exchange: Some(exchange), begun: false, options: options.clone() }))
}

/// A context for a peer's wish.
pub(in crate::security) fn acceptor(options: &Options) -> Result<Box<dyn Acceptor>, Failure> {
    let Some(file) = &options.keytab else {
        let what = "Kerberos is not taken: there are no keys to check tickets with";
        return Err(Failure::unsupported(what));
    };
    let credential = Credential::keys(file).map_err(|error| {
        failed(&format!("the keys in {}", file.display()), &error).with_hint(
            "the file is made by `kadmin ktadd` or `ktutil`, and this user must be able to read it",
        )
    })?;
    Ok(Box::new(GssAcceptor { exchange: Some(Acceptance::new(credential)), options: options.clone() }))
}

/// Whom the tickets are for, if that is said.
fn user(credentials: &Credentials) -> Result<Option<Name>, Error> {
    let user = &credentials.user;
    let domain = &credentials.domain;
    if user.is_empty() {
        return Ok(None);
    }
    // Short domains are those of NTLM; the realm of such users is the default one.
    let full = if !user.contains('@') && domain.contains('.') {
        &format!("{user}@{}", domain.to_uppercase())
    } else {
        user
    };
    Name::principal(full).map(Some)
}

/// The service that a ticket is needed for.
fn service(target: &str) -> Result<Name, Error> {
    match target.split_once('/') {
        Some((service, host)) if !target.contains('@') && !host.contains('/') => Name::service(service, host),
        _ => Name::principal(target),
    }
}

struct GssInitiator {
    exchange: Option<Initiation>,
    begun: bool,
    options: Options,
}

impl Initiator for GssInitiator {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        let exchange = self.exchange.take().ok_or_else(out_of_turn)?;
        let first = !std::mem::replace(&mut self.begun, true);
        let leg = exchange.step(token).map_err(|error| {
            if first {
                let service = &self.options.target;
                failed(&format!("a ticket for the service {service}"), &error).with_hint(
                    "if the server's keys are for a service of another name, write target=SERVICE/HOST",
                )
            } else {
                failed("the server's token", &error)
            }
        })?;
        match leg {
            Leg::More(token, exchange) => {
                self.exchange = Some(exchange);
                Ok(Step { token, done: None })
            }
            Leg::Done(token, context) => Ok(Step { token, done: Some(established(context, &self.options)?) }),
        }
    }
}

struct GssAcceptor {
    exchange: Option<Acceptance>,
    options: Options,
}

impl Acceptor for GssAcceptor {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        let exchange = self.exchange.take().ok_or_else(out_of_turn)?;
        let token = if self.options.dce_style { unframed(token) } else { token };
        let leg = exchange.step(token).map_err(|error| {
            Failure::new(Kind::Refused, Cause::Peer, format!("Kerberos does not let the peer in: {error}"))
        })?;
        match leg {
            Leg::More(token, exchange) => {
                self.exchange = Some(exchange);
                Ok(Step { token, done: None })
            }
            Leg::Done(token, context) => Ok(Step { token, done: Some(established(context, &self.options)?) }),
        }
    }
}

/// The first token without the frame around it (RFC 2743 3.1), which does not belong there in DCE style. Some write it all
/// the same; Windows does not mind, the library does.
fn unframed(token: &[u8]) -> &[u8] {
    const KERBEROS_REQUEST: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00";
    let framed = match token {
        [0x60, 0x82, high, low, rest @ ..]
            if rest.len() == usize::from(u16::from_be_bytes([*high, *low])) =>
        {
            rest
        }
        [0x60, 0x81, length, rest @ ..] | [0x60, length, rest @ ..] if rest.len() == usize::from(*length) => {
            rest
        }
        _ => return token,
    };
    framed.strip_prefix(KERBEROS_REQUEST).unwrap_or(token)
}

fn established(context: Context, options: &Options) -> Result<Established, Failure> {
    let agreed = context.agreed();
    let missing = |wanted, flag| wanted && !agreed.has(flag);
    if missing(options.integrity, Flags::INTEGRITY)
        || missing(options.confidentiality, Flags::CONFIDENTIALITY)
    {
        let what = "the peer does not want messages protected as this side does";
        return Err(Failure::new(Kind::Refused, Cause::Here, what));
    }
    let name = context.initiator().map_err(|error| failed("the initiator's name", &error))?;
    let (user, domain) = name.rsplit_once('@').unwrap_or((&name, ""));
    let principal = Principal { domain: domain.to_owned(), user: user.to_owned(), mechanism: "Kerberos" };
    let session_key = context.session_key().map_err(|error| failed("the key of the session", &error))?;
    let protection = Box::new(GssProtection::new(context, options)?);
    Ok(Established { principal, protection, session_key })
}

/// Kerberos did not do its part.
#[cold]
pub(super) fn failed(what: &str, error: &Error) -> Failure {
    if error.reason() == Reason::NoLibrary {
        let missing = format!("Kerberos needs the library {LIBRARY}, which is not here: {error}");
        return Failure::unsupported(missing)
            .with_hint("install the GSS-API library of MIT Kerberos, or use mech=ntlm");
    }
    Failure::new(Kind::Refused, Cause::Here, format!("Kerberos failed at {what}: {error}"))
}
