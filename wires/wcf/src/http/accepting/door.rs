//! Who is let in, where HTTP's own authentication tells who calls.
//!
//! The head of a request is seen before its body is read. So whoever sends much without a good password is
//! refused at once, and his bytes are not stored; whoever sends little is answered 401 after his body,
//! which keeps the connection.

use super::responses::{empty, with};
use crate::settings::Settings;
use everywire_http::{RequestFilter, basic};
use http::header::{AUTHORIZATION, CONTENT_LENGTH, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use std::sync::Arc;

/// Bytes that somebody may send who has not said who he is.
const MAX_UNKNOWN: u64 = 64 << 10;

/// Who must say who he is before he may send much.
pub(super) fn door(settings: &Arc<Settings>) -> Arc<RequestFilter> {
    let settings = Arc::clone(settings);
    let most = settings.quotas.max_received_message_size;
    Arc::new(move |parts| {
        let users = settings.users.as_ref().filter(|_| settings.basic_login)?;
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let known = || basic::account(parts.headers.get(AUTHORIZATION), users.as_ref()).is_some();
        (length.unwrap_or(most) > MAX_UNKNOWN && !known()).then(unauthorized)
    })
}

/// The response to somebody who has not said who he is, or whom nobody knows.
pub(super) fn unauthorized<B: Default>() -> Response<B> {
    with(empty(StatusCode::UNAUTHORIZED), WWW_AUTHENTICATE, basic::CHALLENGE)
}
