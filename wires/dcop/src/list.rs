//! Who is there: applications, their objects, the functions of these, as the command `dcop` of KDE shows them.

use crate::address::{self, SERVER};
use crate::discover::{server_functions, strings};
use crate::standard::CLIENT;
use everywire_model::{Failure, Presence, PresenceList, Reference, Resolver, reference::escape};

/// What is at an address: `dcop:` applications, `dcop:APP` objects, `dcop:APP/OBJECT` functions.
///
/// # Errors
/// The address cannot be understood, or whoever is asked does not answer.
pub(crate) fn list(text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
    let reference = address::parse(text)?;
    let Some(profile) = reference.profiles.first() else {
        return Err(Failure::bad_reference("the reference is empty"));
    };
    let app = address::application(profile);
    let at = |app: &[u8], object: &[u8]| Reference {
        profiles: vec![address::beside(profile, app, object)],
        ..Reference::default()
    };
    let ask = |app: &[u8], object: &[u8], function| strings(&resolver.resolve(&at(app, object))?, function);
    let present = |name: &String, address: String, details| Presence { name: name.clone(), address, details };
    if app.is_empty() {
        let mut names = ask(SERVER, b"", "registeredApplications()")?;
        names.sort();
        // Whoever asks is there only to ask.
        let own = format!("anonymous-{}", std::process::id());
        names.retain(|name| *name != own);
        return Ok(names
            .iter()
            .map(|name| present(name, address::print(&at(name.as_bytes(), b"")), Vec::new()))
            .collect::<Vec<_>>()
            .into());
    }
    if profile.key.is_empty() && app != SERVER {
        let mut all = Vec::new();
        let mut default = false;
        for id in ask(app, CLIENT, "objects()")? {
            // It stands before the one it means.
            if id == "default" {
                default = true;
                continue;
            }
            let mark = if std::mem::take(&mut default) { "default" } else { "" };
            all.push(present(&id, address::print(&at(app, id.as_bytes())), vec![("kind", mark.to_owned())]));
        }
        return Ok(all.into());
    }
    let functions = if app == SERVER { server_functions() } else { ask(app, &profile.key, "functions()")? };
    let whole = format!("dcop:{}/{}", escape(app), escape(&profile.key));
    Ok(functions
        .iter()
        .map(|function| present(function, whole.clone(), Vec::new()))
        .collect::<Vec<_>>()
        .into())
}
