//! The header of WS-Security 1.0 for TransportWithMessageCredential: a Timestamp, and in requests a UsernameToken with the password as
//! text. The transport protects it; there is nothing else here that would.
//!
//! WCF wants a Timestamp in every request and reply of such a binding (WS-Security 1.0, section 10), and in
//! requests the token of the Username Token Profile 1.0 with the type PasswordText. Digests, signatures and
//! X.509 tokens are not read: a digest is refused with a code of its own, other elements are passed over.
//!
//! State: none beyond one message. `request` and `reply` write a `Header`; `check` reads what came, from the place
//! that `Head` has noted, and says whether the message is let in.
//!
//! Invariants:
//!
//! * No password is written where a network could carry it in the clear: `username` refuses, and
//!   `address::options` did before.
//! * Passwords are held in `Zeroizing`, are never shown by `Debug`, and are compared by `is_password`, in
//!   `everywire_auth`.
//! * Each of the four leaves stands in a header once; a second one is refused, so that no two readers see
//!   different users.
//! * A message counts for at most ten minutes after its `Created`, whatever `Expires` says. Nonces are not
//!   kept: the transport's protection is what prevents a replay.
//! * Depth and sizes are bounded by the cursor's readers.

use super::Form;
use super::cursor::{Cursor, Element};
use super::head::Head;
use super::names::SECURITY;
use super::put::written;
use crate::nbfx::Text;
use crate::nbfx::xml::lexical;
use crate::settings::{Security, Settings};
use crate::violations::Violation;
use everywire_auth::security::{Credentials, is_password};
use everywire_model::date;
use everywire_model::visit::Visit;
use everywire_model::{Failure, Initiator, Kind};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::Zeroizing;

/// The namespace of Timestamp and of identifiers.
const UTILITY: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";

/// The type of passwords as text.
const PASSWORD_TEXT: &str =
    "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-username-token-profile-1.0#PasswordText";

/// How long a message is good for (WCF's `ReplayWindow`), and how much clocks may differ (`MaxClockSkew`):
/// five minutes each, WCF's defaults.
const WINDOW: Duration = Duration::from_secs(300);

/// 100 ns between the year 1, where .NET counts from, and 1970.
const UNIX_TICKS: u64 = 621_355_968_000_000_000;

/// The header of a request.
///
/// # Errors
/// There are no credentials, or nothing that keeps them from others' ears.
pub(super) fn request(form: Form, settings: &Settings) -> Visit<Vec<u8>> {
    Ok(username(settings, SystemTime::now())?.write(form))
}

/// The header of a reply.
pub(super) fn reply(form: Form) -> Vec<u8> {
    timestamp(SystemTime::now()).write(form)
}

/// Checks who a request says that it is from.
///
/// # Errors
/// It does not say so, its time is over, or the password is wrong.
pub(super) fn check(head: &Head<'_>, settings: &Settings) -> Visit<()> {
    let mut cursor = head.security.clone().ok_or_else(unsaid)?;
    Header::read(&mut cursor)?.check(settings, SystemTime::now()).map(drop)
}

/// What a header says.
#[derive(Clone)]
struct Header {
    /// When the message was made.
    created: SystemTime,
    /// From when on it is not good anymore.
    expires: SystemTime,
    /// Who sends it: user, or `DOMAIN\USER`, and password. `None` in replies.
    login: Option<(String, Zeroizing<String>)>,
}

/// The header of a request.
///
/// # Errors
///
/// There is no password in the clear, or nothing that would keep it from others' ears.
fn username(settings: &Settings, now: SystemTime) -> Result<Header, Failure> {
    settings.check_account()?;
    if !settings.local && !matches!(settings.transport_security, Security::Tls) {
        let what = "a password would go over the network in the clear";
        return Err(Failure::new(Kind::Refused, Initiator::Here, what).with_hint("use TLS"));
    }
    let account = |known: &Arc<Credentials>| {
        Some((known.to_string(), Zeroizing::new(known.password.as_password()?.to_owned())))
    };
    let Some(login) = settings.credentials.as_ref().and_then(account) else {
        let what = "the service takes a password, and only its NT hash is known here";
        return Err(Failure::bad_argument(what));
    };
    Ok(Header { login: Some(login), ..timestamp(now) })
}

/// The header of a reply: the time alone. .NET's client refuses a reply without it.
fn timestamp(now: SystemTime) -> Header {
    Header { created: now, expires: now + WINDOW, login: None }
}

impl Header {
    /// The element, with all namespaces that it needs but for that of the envelope, whose prefix is `s`.
    fn write(&self, form: Form) -> Vec<u8> {
        written(form, |put| {
            put.start("o", "Security");
            put.attribute("s", "mustUnderstand", "1");
            put.xmlns("o", SECURITY);
            put.xmlns("u", UTILITY);
            put.start("u", "Timestamp");
            // Microsoft's identifiers; a signature could refer to them.
            put.attribute("u", "Id", "_0");
            put.leaf("u", "Created", &instant(self.created));
            put.leaf("u", "Expires", &instant(self.expires));
            put.end();
            if let Some((user, password)) = &self.login {
                put.start("o", "UsernameToken");
                put.attribute("u", "Id", "_1");
                put.leaf("o", "Username", user);
                put.start("o", "Password");
                put.attribute("", "Type", PASSWORD_TEXT);
                put.chars(password);
                put.end();
                put.end();
            }
            put.end();
        })
    }

    /// Reads what stands in the element `Security`, which was opened last, and its end.
    ///
    /// # Errors
    ///
    /// It is not well-formed, or says something twice.
    fn read(cursor: &mut Cursor<'_>) -> Visit<Self> {
        let mut found = SecurityFields::default();
        while let Some(group) = cursor.child()? {
            while let Some(leaf) = cursor.child()? {
                found.take(cursor, &group.local, &leaf)?;
            }
        }
        found.header()
    }

    /// Whether the message is let in here; yields who sends it, if it says so.
    ///
    /// # Errors
    ///
    /// It is too old or from the future, or the user or the password is wrong. The code is that of the fault.
    fn check(&self, settings: &Settings, now: SystemTime) -> Result<Option<String>, Failure> {
        // Either clock may be wrong by the window, and the sender's `Expires` is not trusted beyond it.
        let early = self.created > now + WINDOW;
        if early || self.expires + WINDOW < now || self.created + WINDOW + WINDOW < now {
            let what = "the message's Timestamp is not of this time";
            return Err(denied(what, "InvalidSecurity")
                .with_hint("the clocks of both sides may differ by five minutes"));
        }
        let Some(users) = settings.users.as_deref().filter(|_| settings.username) else { return Ok(None) };
        let wrong = || denied("the user or the password is wrong", "FailedAuthentication");
        let (who, password) = self.login.as_ref().ok_or_else(unsaid)?;
        let (domain, user) = who.split_once('\\').unwrap_or(("", who));
        if is_password(users, domain, user, password) { Ok(Some(who.clone())) } else { Err(wrong()) }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.login.as_ref().map(|(user, _)| user);
        write!(f, "Header({user:?}, {:?} to {:?})", self.created, self.expires)
    }
}

/// What was read so far; each leaf once.
#[derive(Default)]
struct SecurityFields {
    created: Option<SystemTime>,
    expires: Option<SystemTime>,
    user: Option<String>,
    password: Option<Zeroizing<String>>,
    /// The password is none as text: its Type is another than PasswordText.
    digest: bool,
}

impl SecurityFields {
    /// Takes an element, up to its end. Elements that are not known mean nothing.
    fn take(&mut self, cursor: &mut Cursor<'_>, group: &str, leaf: &Element<'_>) -> Visit<()> {
        let time = |text: &str| moment(text).ok_or_else(|| Violation::BadValue.at(leaf.at));
        let again = match (group, &*leaf.local) {
            ("Timestamp", "Created") => self.created.replace(time(&cursor.trimmed()?)?).is_some(),
            ("Timestamp", "Expires") => self.expires.replace(time(&cursor.trimmed()?)?).is_some(),
            ("UsernameToken", "Username") => self.user.replace(cursor.string()?).is_some(),
            ("UsernameToken", "Password") => {
                self.digest = leaf.attribute("", "Type").is_some_and(|kind| kind != PASSWORD_TEXT);
                self.password.replace(Zeroizing::new(cursor.string()?)).is_some()
            }
            _ => return cursor.skip(),
        };
        if again { Err(Violation::UnexpectedElement.at(leaf.at)) } else { Ok(()) }
    }

    fn header(self) -> Visit<Header> {
        if self.digest {
            let what = "the password is no text: digests of passwords are not taken";
            return Err(denied(what, "UnsupportedSecurityToken"));
        }
        // Some leave its end out. WCF wants the time, too.
        let no_time =
            || denied("the Security header has no Timestamp with the time of the message", "InvalidSecurity");
        let created = self.created.ok_or_else(no_time)?;
        let expires = self.expires.unwrap_or(created + WINDOW);
        // A password without a user name is no login; a user without a password has an empty one.
        let login = self.user.map(|user| (user, self.password.unwrap_or_default()));
        Ok(Header { created, expires, login })
    }
}

/// The code is that of WS-Security 1.0, section 12, in Clark notation: `soap::faults` writes it as the
/// fault's subcode.
#[cold]
fn denied(what: &str, code: &str) -> Failure {
    Failure::new(Kind::Refused, Initiator::Peer, what).with_code(format!("{{{SECURITY}}}{code}"))
}

#[cold]
fn unsaid() -> Failure {
    denied("the message does not say who sends it", "InvalidSecurity")
}

/// A time as XML has it, with milliseconds.
fn instant(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = UNIX_TICKS + since.as_millis() as u64 * 10_000;
    // The bits above say UTC.
    lexical(&Text::DateTime(ticks | 1 << 62))
}

/// The time that XML says: `YYYY-MM-DDTHH:MM:SS[.FFF](Z|±HH:MM)`, after 1970.
fn moment(text: &str) -> Option<SystemTime> {
    let numbers = |text: &str, between: char| -> Option<Vec<i64>> {
        text.splitn(3, between).map(|part| part.parse().ok()).collect()
    };
    let (day, time) = text.split_once('T')?;
    let (time, zone) = time.split_at(time.find(['Z', '+', '-']).unwrap_or(time.len()));
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    let (&[year, month, day], &[hour, minute, second]) = (&*numbers(day, '-')?, &*numbers(time, ':')?) else {
        return None;
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // 24:00:00 and a leap second are times of XML Schema.
    if hour > 24 || minute > 59 || second > 60 || !digits(fraction) {
        return None;
    }
    let nanos: u64 = format!("{:0<9}", fraction.get(..fraction.len().min(9))?).parse().ok()?;
    let east: i64 = match zone {
        "" | "Z" => 0,
        zone => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let minutes = i64::from(hours.parse::<u8>().ok()?) * 60 + i64::from(minutes.parse::<u8>().ok()?);
            if minutes > 14 * 60 {
                return None;
            }
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let seconds = ((date::days(year, month, day) * 24 + hour) * 60 + minute - east) * 60 + second;
    let seconds = u64::try_from(seconds).ok()?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::StringTable;
    use crate::settings::Binding;
    use crate::soap::cursor::Document;
    use crate::values::ReaderQuotas;
    use everywire_auth::security::{Secret, UserTable};

    /// 2020-01-02T03:04:05.678Z.
    const NOW: Duration = Duration::from_millis(1_577_934_245_678);

    fn settings() -> Settings {
        let mut settings = Settings::new(Binding::Ws);
        settings.username = true;
        settings.transport_security = Security::Tls;
        settings.credentials = Some(Arc::new(Credentials {
            domain: String::new(),
            user: "ada <&>".into(),
            password: Secret::password("x]]>&y"),
        }));
        settings.users = Some(Arc::new(UserTable::parse("ada <&>:x]]>&y").unwrap()));
        settings
    }

    /// Reads a header inside an element that declares the prefix of envelopes.
    fn read(bytes: &[u8], form: Form) -> Visit<Header> {
        let document = written(form, |put| {
            put.start("", "Header");
            put.xmlns("s", "urn:s");
            put.raw(bytes);
            put.end();
        });
        let (words, quotas) = (&StringTable::default(), &ReaderQuotas::default());
        let mut cursor = Cursor::new(Document { form, bytes: &document, words, quotas });
        cursor.child()?;
        assert!(cursor.child()?.is_some_and(|element| element.is(SECURITY, "Security")));
        Header::read(&mut cursor)
    }

    #[test]
    fn headers_read_as_written() {
        let (settings, now) = (settings(), UNIX_EPOCH + NOW);
        for form in [Form::Text, Form::Binary] {
            let header = username(&settings, now).unwrap();
            let written = header.write(form);
            if form == Form::Text {
                let text = String::from_utf8_lossy(&written);
                assert!(text.contains("<u:Created>2020-01-02T03:04:05.678Z</u:Created>"), "{text}");
            }
            let again = read(&written, form).unwrap();
            assert_eq!((again.created, again.expires), (header.created, header.expires));
            assert_eq!(again.check(&settings, now).unwrap().as_deref(), Some("ada <&>"));
            assert!(!format!("{again:?}").contains("x]]>"));
            let reply = timestamp(now).write(form);
            assert!(!reply.windows(8).any(|window| window == b"Username"));
        }
    }

    #[test]
    fn wrong_words_and_wrong_times() {
        let (settings, now) = (settings(), UNIX_EPOCH + NOW);
        let good = username(&settings, now).unwrap();
        let told =
            |header: &Header, now| header.check(&settings, now).unwrap_err().code().unwrap().to_owned();
        for (user, word) in [("ada <&>", "x]]>&"), ("ada", "x]]>&y"), ("ada <&>", "")] {
            let header = Header { login: Some((user.into(), Zeroizing::new(word.into()))), ..good.clone() };
            assert!(told(&header, now).ends_with("FailedAuthentication"), "{user}:{word}");
        }
        assert!(told(&timestamp(now), now).ends_with("InvalidSecurity"));
        let hour = Duration::from_secs(3600);
        assert!(told(&good, now + hour).ends_with("InvalidSecurity"));
        assert!(told(&good, now - hour).ends_with("InvalidSecurity"));
        let forever = Header { expires: now + hour * 1000, ..good };
        assert!(told(&forever, now + hour).ends_with("InvalidSecurity"), "whatever it says of its end");
    }

    #[test]
    fn passwords_stay_off_the_open_network() {
        let mut settings = settings();
        settings.transport_security = Security::None;
        assert!(username(&settings, UNIX_EPOCH + NOW).is_err());
        settings.local = true;
        assert!(username(&settings, UNIX_EPOCH + NOW).is_ok());
    }

    #[test]
    fn what_is_twice_there_or_no_text_is_refused() {
        let open = format!("<o:Security xmlns:o=\"{SECURITY}\" xmlns:u=\"{UTILITY}\">");
        let time = "<u:Timestamp><u:Created>2020-01-02T03:04:05Z</u:Created></u:Timestamp>";
        let token =
            "<o:UsernameToken><o:Username>ada</o:Username><o:Password>x</o:Password></o:UsernameToken>";
        let good = format!("{open}{time}{token}</o:Security>");
        assert_eq!(read(good.as_bytes(), Form::Text).unwrap().login.unwrap().0, "ada");
        let digest = token.replace("<o:Password>", "<o:Password Type=\"urn:PasswordDigest\">");
        for bad in [
            format!("{open}{time}{token}{token}</o:Security>"),
            format!("{open}{time}{digest}</o:Security>"),
            format!("{open}{token}</o:Security>"),
            format!("{open}{time}{token}"),
            format!("{open}{}{token}</o:Security>", time.replace("2020", "soon")),
        ] {
            assert!(read(bad.as_bytes(), Form::Text).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_are_read_in_every_zone() {
        let now = UNIX_EPOCH + NOW;
        for text in [
            "2020-01-02T03:04:05.678Z",
            "2020-01-02T05:34:05.678+02:30",
            "2020-01-01T22:04:05.678000-05:00",
            "2020-01-02T03:04:05.678",
        ] {
            assert_eq!(moment(text), Some(now), "{text}");
        }
        for year in [1970, 1999, 2000, 2024, 2100, 9999] {
            let text = format!("{year}-02-28T23:59:59Z");
            assert_eq!(instant(moment(&text).unwrap()), text);
        }
        for text in [
            "",
            "T",
            "2020-13-01T00:00:00Z",
            "2020-01-02",
            "1969-12-31T23:59:59Z",
            "2020-01-02T03:04:05é",
            "2020-01-02T99:04:05Z",
        ] {
            assert_eq!(moment(text), None, "{text}");
        }
    }
}
