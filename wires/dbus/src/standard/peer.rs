//! `org.freedesktop.DBus.Peer`: the process as such, whatever path is asked.

use super::contracts::PEER;
use everywire_model::object::no_operation;
use everywire_model::{Failure, Initiator, Interface, Kind, Request, Servant};
use std::fs::File;
use std::io::Read;

/// Serves it. The specification wants the same answer at every path, also where no object is.
pub(super) struct Peer;

impl Servant for Peer {
    fn interface(&self) -> &Interface {
        &PEER
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| match request.index() {
            0 => request.reply::<(), Failure>(Ok(())),
            1 => request.reply(machine_id().map(|id| (id,))),
            _ => Err(no_operation(&PEER)),
        });
    }
}

/// Where hosts keep their identity.
const FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// Hexadecimal digits of it.
const DIGITS: usize = 32;

/// The identity of this host: 32 hexadecimal digits.
///
/// # Errors
/// The host keeps none.
pub fn machine_id() -> Result<String, Failure> {
    FILES.iter().find_map(|file| read(file)).ok_or_else(|| {
        Failure::new(Kind::Unsupported, Initiator::Peer, "this host has no machine id")
            .with_code("org.freedesktop.DBus.Error.FileNotFound")
            .with_hint(format!("it is kept in {}", FILES.join(" or ")))
    })
}

/// No more than one digit too many is read, whatever is in the file.
fn read(file: &str) -> Option<String> {
    let mut text = String::new();
    File::open(file).ok()?.take(DIGITS as u64 + 1).read_to_string(&mut text).ok()?;
    valid(text.trim_end())
}

/// In small letters; nothing for text of another length or with other characters.
fn valid(text: &str) -> Option<String> {
    let fits = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_identities_count() {
        let good = "0123456789abcdef0123456789ABCDEF";
        assert_eq!(valid(good), Some(good.to_ascii_lowercase()));
        assert_eq!(valid(&good[1..]), None);
        assert_eq!(valid("uninitialized"), None);
        assert_eq!(valid(&good.replace('0', "g")), None);
    }
}
