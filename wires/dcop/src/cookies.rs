//! The cookie for a server, from the authority files of ICE.

use crate::servers;
use everywire_auth::ice::{AuthorityFile, MAGIC_COOKIE};
use everywire_model::{Endpoint, Failure};

/// The cookie for the server at this endpoint; else why there is none, with a hint for people.
///
/// Both times a client authenticates it shows the cookie of the entry for protocol `ICE`. All authority files
/// are looked through, in the order in which libraries look; the first entry that fits counts. What is wrong
/// with a file is told only if no file has the cookie.
pub(crate) fn find(endpoint: Option<&Endpoint>) -> Result<Vec<u8>, String> {
    let Some(endpoint) = endpoint else { return Err("it is not known where the server is".to_owned()) };
    let mut why =
        format!("no authority file has a cookie for {endpoint}: was the server started by this user?");
    for file in AuthorityFile::candidates() {
        match file.read() {
            Ok(entries) => {
                let fits = entries.into_iter().find(|entry| {
                    entry.protocol == b"ICE"
                        && entry.method == MAGIC_COOKIE.as_bytes()
                        && servers::is_at(&entry.netid, endpoint)
                });
                if let Some(entry) = fits {
                    return Ok(entry.secret);
                }
            }
            Err(everywire_auth::ice::AuthorityError::Missing { .. }) => {}
            Err(error) => {
                let failure = Failure::from(error);
                why = failure.message().to_owned();
                if let Some(hint) = failure.hint() {
                    why = format!("{why} ({hint})");
                }
            }
        }
    }
    Err(why)
}
