//! Where servers and items are, as text.
//!
//! ```text
//! opcda://[[DOMAIN;]USER@]HOST[:PORT][/PROGID-or-CLSID[/ITEM]][?OPTION[&OPTION]...]
//! ```
//!
//! ITEM is what follows the server up to `?`, slashes and all; what an address cannot hold is written `%xx`. Options are those of the
//! addresses of DCOM (`level`, `mech`, `credentials`, `target`, `hosts`, `exporter=here`), and `poll` (values are asked for, and no port is
//! opened for callbacks) and `version=2` (what 3.0 added is not used).
//!
//! `objref:BASE64:[?OPTION...]`, as COM's monikers are written, is an object of a server that somebody has already: it is neither
//! looked up nor asked for, and lives as long as whoever gave it says.
//!
//! A password does not stand in such an address: it comes from the file of `credentials=`, or of `$EVERYWIRE_DCOM_CREDENTIALS`.

use everywire::{Failure, Initiator, Kind};
use everywire_model::guid;
use everywire_model::reference::{escape, unescape};
use std::fmt;

/// The variable that names the file of an account, as for the addresses of DCOM.
const CREDENTIALS: &str = "EVERYWIRE_DCOM_CREDENTIALS";

const NOTATION: &str = "write opcda://USER@HOST/PROGID/ITEM, with ?credentials=FILE for the password";

/// Where a host, a server or an item is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `USER@`, or nothing.
    who: String,
    place: String,
    server: Option<String>,
    item: Option<String>,
    /// A marshalled object, in place of all of these.
    object: Option<String>,
    options: Vec<String>,
    poll: bool,
    plain: bool,
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// It is none; it has a password in it.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let text = text.trim();
        if text.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("objref:")) {
            let (object, options) = text.split_once('?').unwrap_or((text, ""));
            let mut found = Self { object: Some(object.to_owned()), ..Self::nowhere() };
            found.options(options)?;
            return Ok(found);
        }
        let rest = text.get(..8).filter(|scheme| scheme.eq_ignore_ascii_case("opcda://"));
        let rest =
            rest.and_then(|_| text.get(8..)).ok_or_else(|| wrong("it does not begin with opcda://"))?;
        let (path, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = path.split_once('/').unwrap_or((path, ""));
        let (who, place) = match authority.rsplit_once('@') {
            Some((who, place)) => (format!("{who}@"), place),
            None => (String::new(), authority),
        };
        if who.contains(':') {
            return Err(wrong("a password does not stand in an address").with_hint(format!(
                "put it into a file with lines username=, password=, domain=, mode 0600, and name the file by ?credentials=FILE or ${CREDENTIALS}"
            )));
        }
        if place.is_empty() {
            return Err(wrong("it names no host"));
        }
        let (server, item) = match path.split_once('/') {
            Some((server, item)) => (server, Some(item)),
            None => (path, None),
        };
        let server = Some(plain(server)?).filter(|server| !server.is_empty());
        let item = item.map(plain).transpose()?.filter(|item| !item.is_empty());
        if server.is_none() && item.is_some() {
            return Err(wrong("it names an item, and no server"));
        }
        let mut found = Self { who, place: place.to_owned(), server, item, ..Self::nowhere() };
        found.options(options)?;
        Ok(found)
    }

    fn nowhere() -> Self {
        Self {
            who: String::new(),
            place: String::new(),
            server: None,
            item: None,
            object: None,
            options: Vec::new(),
            poll: false,
            plain: false,
        }
    }

    fn options(&mut self, options: &str) -> Result<(), Failure> {
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option {
                "poll" => self.poll = true,
                "version=2" => self.plain = true,
                "version=3" => self.plain = false,
                _ if option.starts_with("poll=") || option.starts_with("version=") => {
                    return Err(wrong(format!(
                        "`{option}` is no option; there are poll, version=2 and version=3"
                    )));
                }
                other => self.options.push(other.to_owned()),
            }
        }
        Ok(())
    }

    /// The object that it names itself, for the wire.
    pub(super) fn object(&self) -> Option<String> {
        let object = self.object.as_ref()?;
        let options = self.options.join("&");
        Some(if options.is_empty() { object.clone() } else { format!("{object}?{options}") })
    }

    /// The server: a ProgID, or a CLSID.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The item.
    #[must_use]
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// The host, with its port if one is named.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether values are to be asked for, in place of callbacks.
    #[must_use]
    pub fn poll(&self) -> bool {
        self.poll
    }

    /// Whether the interfaces of 3.0 are to be left alone.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// The same host with another server, and no item.
    #[must_use]
    pub fn with_server(&self, server: &str) -> Self {
        Self { server: Some(server.to_owned()), item: None, ..self.clone() }
    }

    /// The same server with another item.
    #[must_use]
    pub fn with_item(&self, item: &str) -> Self {
        Self { item: Some(item.to_owned()), ..self.clone() }
    }

    /// The same server, and no item.
    #[must_use]
    pub fn without_item(&self) -> Self {
        Self { item: None, ..self.clone() }
    }

    /// The server's CLSID, if it is named by that.
    pub(super) fn class(&self) -> Option<String> {
        let (data1, data2, data3, data4) = guid::parse(self.server.as_deref()?)?;
        Some(guid::text((data1, data2, data3, data4)))
    }

    /// The address of a class there, for the wire.
    ///
    /// # Errors
    /// It names a user, and nothing says where the password is.
    pub(super) fn of_class(&self, class: &str) -> Result<String, Failure> {
        let has = |name: &str| {
            self.options.iter().any(|option| option.split_once('=').is_some_and(|(key, _)| key == name))
        };
        let mut options = self.options.clone();
        let by_ticket = options.iter().any(|option| option == "mech=kerberos");
        if !self.who.is_empty() && !has("credentials") && !by_ticket {
            let wire_state = std::env::var(CREDENTIALS).ok().filter(|path| !path.is_empty());
            let user = self.who.trim_end_matches('@');
            let path = wire_state.ok_or_else(|| {
                let what = format!("the password of `{user}` is not known");
                Failure::new(Kind::BadReference, Initiator::User, what).with_hint(format!(
                    "name a file with lines username=, password=, domain=, mode 0600, by ?credentials=FILE or ${CREDENTIALS}"
                ))
            })?;
            options.push(format!("credentials={}", escape(path.as_bytes()).replace('&', "%26")));
        }
        let options = if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) };
        Ok(format!("dcom://{}{}/{class}{options}", self.who, self.place))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.object {
            Some(object) => f.write_str(object)?,
            None => write!(f, "opcda://{}{}", self.who, self.place)?,
        }
        if let Some(server) = &self.server {
            write!(f, "/{}", escape(server.as_bytes()).replace('/', "%2f"))?;
        }
        if let Some(item) = &self.item {
            write!(f, "/{}", escape(item.as_bytes()))?;
        }
        let own = [(self.poll, "poll"), (self.plain, "version=2")];
        let own = own.into_iter().filter(|(is_so, _)| *is_so).map(|(_, option)| option);
        for (index, option) in self.options.iter().map(String::as_str).chain(own).enumerate() {
            write!(f, "{}{option}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// A part of an address, with what was written `%xx`.
fn plain(text: &str) -> Result<String, Failure> {
    unescape(text)
        .and_then(|octets| String::from_utf8(octets).ok())
        .ok_or_else(|| wrong("`%` must be followed by two hexadecimal digits of UTF-8"))
}

fn wrong(what: impl fmt::Display) -> Failure {
    Failure::new(Kind::BadReference, Initiator::User, format!("not an address of an OPC server: {what}"))
        .with_hint(NOTATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_host_a_server_and_an_item() {
        let address = Address::parse(
            "opcda://PLANT;ada@hist1:135/Matrikon.OPC.Simulation.1/Random/Int%3f 4?level=privacy&poll",
        );
        let address = address.expect("an address");
        assert_eq!(address.server(), Some("Matrikon.OPC.Simulation.1"));
        assert_eq!((address.item(), address.place()), (Some("Random/Int? 4"), "hist1:135"));
        assert_eq!((address.poll(), address.is_plain(), address.class()), (true, false, None));
        let shown = address.to_string();
        assert_eq!(Address::parse(&shown).expect("an address"), address, "{shown}");
        let class = "F8582CF2-88FB-11D0-B850-00C0F0104305";
        let braced = Address::parse(&format!("opcda://h/%7b{class}%7D?version=2")).expect("an address");
        assert_eq!(braced.class(), Some(class.to_ascii_lowercase()));
        assert!(braced.is_plain());
        assert_eq!(braced.of_class("c").expect("no account"), "dcom://h/c");
    }

    #[test]
    fn passwords_and_other_mistakes_are_refused_and_not_repeated() {
        for wrong in [
            "opcda://ada:secret@host/x",
            "opcda://",
            "opcda:///x",
            "dcom://host",
            "opcda://host//item",
            "opcda://host/x/%zz",
            "opcda://host/x?poll=1",
            "",
        ] {
            let failure = Address::parse(wrong).expect_err(wrong);
            assert!(!failure.to_string().contains("secret") && failure.hint().is_some(), "{failure}");
        }
    }

    #[test]
    fn an_object_is_an_address_too() {
        let text = "objref:TUVPVw==:?dialect=wine&at=h:1";
        let address = Address::parse(&format!("{text}&poll")).expect("an address");
        assert_eq!((address.object().as_deref(), address.poll(), address.server()), (Some(text), true, None));
        assert_eq!(Address::parse(&address.to_string()).expect("an address"), address);
    }

    #[test]
    fn an_account_needs_a_file_or_a_ticket() {
        let of = |text: &str| Address::parse(text).expect("an address").of_class("c").expect("a password");
        assert_eq!(of("opcda://ada@h?credentials=/f"), "dcom://ada@h/c?credentials=/f");
        assert_eq!(of("opcda://ada@h?mech=kerberos"), "dcom://ada@h/c?mech=kerberos");
    }
}
