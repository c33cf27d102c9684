//! Kerberos (RFC 4121) through the system's own library, MIT's, by GSS-API: its configuration, its tickets, its keys.
//!
//! The library is looked for when Kerberos is first wished for. Where it is missing every wish fails and says so, and SPNEGO
//! neither offers nor takes it. The key distribution centre is named in the library's configuration (`$KRB5_CONFIG`,
//! `/etc/krb5.conf`, or DNS).
//!
//! * *Who wants in*: with a password a ticket is asked for and kept in memory, for as long as the context is being made.
//!   Without one the tickets of the usual cache (`$KRB5CCNAME`, as `kinit` fills it) serve: those of the user, if one is
//!   named, and otherwise those that are there. A domain with a dot in it is the user's realm; other users are of the
//!   default realm.
//! * *Which service*: `service/host` has the realm that the configuration tells for the host (`[domain_realm]`, or the
//!   user's own), and its host is looked up in DNS unless `dns_canonicalize_hostname = false`. `service/host@REALM` is taken
//!   as it stands.
//! * *Who lets in*: with the keys of a file, which each exchange reads anew; whichever service of it the ticket is for, and
//!   whoever has it. Without a file nobody is let in: the keys that a system has for all its services are not taken unasked.

mod context;
mod protection;

pub(super) use context::{accepting, acceptor, initiator, promising};
