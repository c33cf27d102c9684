//! Servers: where the one of this user's session is, its cookie, and numbers for those in use.
//!
//! A reference in a message does not say at which server its application is; so each server that this process
//! connects to has a number, which every body that came by it carries (`Body::dialect`). The numbers, and
//! what is kept for each server, last as long as the process; there are 1024 at the most.

use crate::trees::Tree;
use everywire_model::{Endpoint, Failure, Initiator, Kind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The hint where no server is found.
const START: &str = "start one by `everywire dcopserver`, or say where it is by DCOPSERVER=local/HOST:SOCKET";

/// Servers that this process uses, for references that come by them; their number is their place plus one.
static KNOWN: Mutex<Vec<(Endpoint, &Tree)>> = Mutex::new(Vec::new());

/// The number of a server in this process, given when it is asked for first; 0 where there are too many.
pub(crate) fn number(endpoint: &Endpoint) -> u32 {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let at = known.iter().position(|(held, _)| held == endpoint).or_else(|| {
        (known.len() < 1024).then(|| {
            // As many as there are entries, which last.
            known.push((endpoint.clone(), Box::leak(Box::default())));
            known.len() - 1
        })
    });
    at.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0)
}

/// The server with this number; nothing for 0.
pub(crate) fn endpoint(number: u32) -> Option<Endpoint> {
    known(number).map(|(endpoint, _)| endpoint)
}

/// The calls that this process serves of clients of the server with this number.
pub(crate) fn tree(number: u32) -> Option<&'static Tree> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(at).map(|(_, tree)| *tree)
}

fn known(number: u32) -> Option<(Endpoint, &'static Tree)> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get(at).cloned()
}

/// The server of this user's session: `$DCOPSERVER`, or what the file of `$DCOPAUTHORITY` says, or that of
/// `~/.DCOPserver_HOST_DISPLAY`. The file is read each time, since the server may be another one by now.
///
/// # Errors
/// Nothing says where it is.
pub(crate) fn find() -> Result<Endpoint, Failure> {
    find_by(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()), &hostname())
}

/// The environment is an argument, so that tests have one of their own.
fn find_by(variable: &dyn Fn(&str) -> Option<String>, host: &str) -> Result<Endpoint, Failure> {
    if let Some(ids) = variable("DCOPSERVER") {
        return choose(&ids, "$DCOPSERVER");
    }
    let file = match variable("DCOPAUTHORITY") {
        Some(file) => PathBuf::from(file),
        None => {
            let Some(home) = variable("HOME") else {
                return Err(missing("neither DCOPSERVER nor HOME is set, so no DCOP server can be found"));
            };
            Path::new(&home).join(file_name(host, variable("DISPLAY").as_deref()))
        }
    };
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            return Err(missing(format!("no DCOP server is known: {} ({error})", file.display())));
        }
    };
    choose(text.lines().next().unwrap_or_default(), &file.display().to_string())
}

/// The name of the file in which the server of a display says where it is: the screen is cut off, `:` becomes `_`.
pub(crate) fn file_name(host: &str, display: Option<&str>) -> String {
    format!(".DCOPserver_{host}_{}", without_screen(display).replace(':', "_"))
}

/// A display without its screen.
pub(crate) fn without_screen(display: Option<&str>) -> &str {
    let display = display.filter(|display| !display.is_empty()).unwrap_or("NODISPLAY");
    let colon = display.rfind(':').unwrap_or(0);
    let end = display.rfind('.').filter(|dot| *dot > colon).unwrap_or(display.len());
    display.get(..end).unwrap_or(display)
}

/// The first network id of a list that can be connected to.
fn choose(ids: &str, source: &str) -> Result<Endpoint, Failure> {
    ids.split(',')
        .find_map(|id| of_network_id(id.trim()))
        .ok_or_else(|| missing(format!("`{}` in {source} names no socket", ids.trim().escape_debug())))
}

/// `local/HOST:SOCKET`, `unix/HOST:SOCKET` or `tcp/HOST:PORT`; nothing for other transports.
fn of_network_id(id: &str) -> Option<Endpoint> {
    let (transport, address) = id.split_once('/')?;
    match transport {
        "local" | "unix" => {
            let (_, path) = address.split_once(':')?;
            path.starts_with(['/', '@']).then(|| Endpoint::Unix { path: path.to_owned() })
        }
        "tcp" => {
            let (host, port) = address.rsplit_once(':')?;
            Some(Endpoint::Tcp { host: host.to_owned(), port: port.parse().ok()? })
        }
        _ => None,
    }
}

/// Whether a network id of the authority file means the server at this endpoint. The host's name in it is that of the
/// host when the server started; the socket's path tells servers apart better.
pub(crate) fn is_at(id: &[u8], endpoint: &Endpoint) -> bool {
    std::str::from_utf8(id).ok().and_then(of_network_id).as_ref() == Some(endpoint)
}

/// This host's name. As the kernel has it, since the server asks the same.
pub(crate) fn hostname() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname");
    kernel.map(|name| name.trim().to_owned()).unwrap_or_else(|_| "localhost".to_owned())
}

/// There is no server that could be asked.
#[cold]
fn missing(message: impl Into<String>) -> Failure {
    Failure::new(Kind::Unreachable, Initiator::Here, message).with_hint(START)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_after_host_and_display() {
        assert_eq!(file_name("vm", Some(":0")), ".DCOPserver_vm__0");
        assert_eq!(file_name("vm", Some(":0.1")), ".DCOPserver_vm__0");
        assert_eq!(file_name("vm", Some("far.example:10.0")), ".DCOPserver_vm_far.example_10");
        assert_eq!(file_name("vm", None), ".DCOPserver_vm_NODISPLAY");
    }

    #[test]
    fn the_environment_comes_first_and_mistakes_are_named() {
        let only = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        let found = find_by(&only("DCOPSERVER", "tcp/x:y,local/vm:/tmp/.ICE-unix/dcop1-2"), "vm").unwrap();
        assert_eq!(found, Endpoint::Unix { path: "/tmp/.ICE-unix/dcop1-2".into() });
        assert!(is_at(b"local/other:/tmp/.ICE-unix/dcop1-2", &found));
        assert!(!is_at(b"local/vm:/tmp/.ICE-unix/dcop1-3", &found));
        for (name, value) in
            [("DCOPSERVER", "nonsense"), ("HOME", "/nonexistent"), ("DCOPAUTHORITY", "/nonexistent")]
        {
            let failure = find_by(&only(name, value), "vm").unwrap_err();
            assert_eq!(failure.kind(), Kind::Unreachable);
            assert!(failure.hint().unwrap().contains("dcopserver"));
        }
    }
}
