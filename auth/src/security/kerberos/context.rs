//! The exchange of tokens.

use super::protection::{GssProtection, failed};
use crate::security::{
    Acceptor, Cause, Credentials, Established, Initiator, Options, Principal, Step, check_size, out_of_turn,
};
use everywire_model::{Failure, Kind};
use libgssapi::context::{ClientCtx, CtxFlags, SecurityContext, ServerCtx};
use libgssapi::credential::{Cred, CredUsage};
use libgssapi::name::Name;
use libgssapi::oid::{GSS_MECH_KRB5, GSS_NT_KRB5_PRINCIPAL, OidSet};
use std::path::Path;

/// `GSS_C_DCE_STYLE`: three legs, no frames around the tokens.
const DCE_STYLE: CtxFlags = CtxFlags::from_bits_retain(0x1000);
/// Where the library finds its configuration, unless the variable says otherwise.
const CONFIGURATION: &str = "/etc/krb5.conf";
/// The variable that names the acceptor's keys.
const KEYTAB: &str = "KRB5_KTNAME";

/// Whether trying Kerberos is worth the time: it is set up here, and there is a password and a service to ask for.
pub(in crate::security) fn promising(credentials: &Credentials, options: &Options) -> bool {
    let set_up = std::env::var_os("KRB5_CONFIG").is_some() || Path::new(CONFIGURATION).exists();
    set_up
        && !options.target.is_empty()
        && options.kdc.is_none()
        && credentials.password.as_password().is_some()
}

/// Whether there are keys to accept with.
pub(in crate::security) fn accepting(options: &Options) -> bool {
    options.keytab.is_some() || std::env::var_os(KEYTAB).is_some()
}

/// A context for this side's wish. An empty password stands for the tickets that the user already has. The first step
/// asks the key distribution centre, and waits for it.
pub(in crate::security) fn initiator(
    credentials: &Credentials,
    options: &Options,
) -> Result<Box<dyn Initiator>, Failure> {
    if options.kdc.is_some() {
        let what = "where the key distribution centre is cannot be said for one context";
        return Err(Failure::new(Kind::Unsupported, Cause::User, what)
            .with_hint("name it in the configuration of Kerberos ($KRB5_CONFIG or /etc/krb5.conf)"));
    }
    let Some(password) = credentials.password.as_password() else {
        let what = "Kerberos needs the password itself, not its NT hash";
        return Err(Failure::new(Kind::BadArgument, Cause::User, what));
    };
    let realm = realm(&credentials.domain);
    let mechanisms = OidSet::singleton(GSS_MECH_KRB5).map_err(|error| failed("its mechanism", error))?;
    let name = |text: &str| {
        let full = if text.contains('@') { text.to_owned() } else { format!("{text}{realm}") };
        Name::new(full.as_bytes(), Some(GSS_NT_KRB5_PRINCIPAL)).map_err(|error| failed("a name", error))
    };
    let user = if credentials.user.is_empty() { None } else { Some(name(&credentials.user)?) };
    let cred = if password.is_empty() {
        Cred::acquire(user.as_ref(), None, CredUsage::Initiate, Some(&mechanisms))
    } else {
        Cred::acquire_with_password(user.as_ref(), password, None, CredUsage::Initiate, Some(&mechanisms))
    };
    let cred = cred.map_err(|error| failed("this side's tickets", error))?;
    let mut wanted =
        CtxFlags::GSS_C_MUTUAL_FLAG | CtxFlags::GSS_C_REPLAY_FLAG | CtxFlags::GSS_C_SEQUENCE_FLAG;
    wanted.set(CtxFlags::GSS_C_INTEG_FLAG, options.integrity || options.confidentiality);
    wanted.set(CtxFlags::GSS_C_CONF_FLAG, options.confidentiality);
    wanted.set(DCE_STYLE, options.dce_style);
    let context = ClientCtx::new(Some(cred), name(&options.target)?, wanted, Some(GSS_MECH_KRB5));
    Ok(Box::new(GssInitiator { context: Some(context), started: false, options: options.clone() }))
}

/// A context for a peer's wish.
pub(in crate::security) fn acceptor(options: &Options) -> Result<Box<dyn Acceptor>, Failure> {
    if let Some(wanted) = &options.keytab {
        let used = std::env::var(KEYTAB).unwrap_or_default();
        if Path::new(used.strip_prefix("FILE:").unwrap_or(&used)) != wanted {
            let what = format!("the keys in {} are not those that Kerberos uses", wanted.display());
            return Err(Failure::new(Kind::BadArgument, Cause::User, what)
                .with_hint("start the program with $KRB5_KTNAME set to that file"));
        }
    }
    let mechanisms = OidSet::singleton(GSS_MECH_KRB5).map_err(|error| failed("its mechanism", error))?;
    let cred = Cred::acquire(None, None, CredUsage::Accept, Some(&mechanisms))
        .map_err(|error| failed("this side's keys", error))?;
    Ok(Box::new(GssAcceptor { context: Some(ServerCtx::new(Some(cred))), options: options.clone() }))
}

/// The realm to append to a name, where the domain is one; the configuration knows better about short names.
fn realm(domain: &str) -> String {
    if domain.contains('.') { format!("@{}", domain.to_uppercase()) } else { String::new() }
}

struct GssInitiator {
    context: Option<ClientCtx>,
    started: bool,
    options: Options,
}

impl Initiator for GssInitiator {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        let mut context = self.context.take().ok_or_else(out_of_turn)?;
        let token = std::mem::replace(&mut self.started, true).then_some(token);
        let out = context
            .step(token, None)
            .map_err(|error| failed("the server's token, or a ticket for it,", error))?;
        let token = out.map(|token| token.to_vec()).unwrap_or_default();
        if !context.is_complete() {
            self.context = Some(context);
            return Ok(Step { token, done: None });
        }
        Ok(Step { token, done: Some(established(context, &self.options)?) })
    }
}

struct GssAcceptor {
    context: Option<ServerCtx>,
    options: Options,
}

impl Acceptor for GssAcceptor {
    fn step(&mut self, token: &[u8]) -> Result<Step, Failure> {
        check_size(token)?;
        let mut context = self.context.take().ok_or_else(out_of_turn)?;
        let out = context.step(token, None).map_err(|error| {
            Failure::new(Kind::Refused, Cause::Peer, format!("Kerberos does not let the peer in: {error}"))
        })?;
        let token = out.map(|token| token.to_vec()).unwrap_or_default();
        if !context.is_complete() {
            self.context = Some(context);
            return Ok(Step { token, done: None });
        }
        Ok(Step { token, done: Some(established(context, &self.options)?) })
    }
}

fn established(
    context: impl SecurityContext + Send + 'static,
    options: &Options,
) -> Result<Established, Failure> {
    let agreed = context.flags().map_err(|error| failed("what was agreed", error))?;
    let missing = |wanted, flag| wanted && !agreed.contains(flag);
    if missing(options.integrity, CtxFlags::GSS_C_INTEG_FLAG)
        || missing(options.confidentiality, CtxFlags::GSS_C_CONF_FLAG)
    {
        let what = "the peer does not want messages protected as this side does";
        return Err(Failure::new(Kind::Refused, Cause::Here, what));
    }
    let name = context
        .source_name()
        .and_then(|name| name.display_name())
        .map_err(|error| failed("the initiator's name", error))?;
    let name = String::from_utf8_lossy(&name).into_owned();
    let (user, domain) = name.rsplit_once('@').unwrap_or((&name, ""));
    Ok(Established {
        principal: Principal { domain: domain.to_owned(), user: user.to_owned(), mechanism: "Kerberos" },
        // The library does not hand it out.
        session_key: Vec::new(),
        protection: Box::new(GssProtection::new(context, agreed, options)?),
    })
}
