//! Words of addresses: schemes, options, and what is said where one is wrong.

use crate::settings::Binding;
use everywire_model::Failure;

/// The port of net.tcp.
/// IANA's for net.tcp, and the default of WCF's NetTcpBinding.
pub const PORT: u16 = 808;

/// Where the name of the file of credentials stands.
pub const CREDENTIALS: &str = "EVERYWIRE_WCF_CREDENTIALS";

/// The hint of every address that cannot be read.
pub(super) const NOTATIONS: &str = "write net.tcp://HOST:808/PATH, net.tcp+unix:///SOCKET#PATH, net.uds:///SOCKET, basic://HOST/PATH, wshttps://HOST/PATH or http://HOST/PATH?binding=ws";

/// The hint of an option that is unknown or stands in the wrong place. Options of the two lists below are
/// refused there.
pub(super) const OPTIONS: &str = "options are security=, protection=, mech=, identity=, to=, query=, ca=, insecure=on, cert=, key=, credentials=, mode=, encoding=, compression=, binding=, reliable=on, callback=, the quotas by WCF's names; to listen: users=, keytab=, ntlm1=session, clients=, details=on";

/// Options that mean something to those who listen only, in lower case as `AddressOptions::said` has them.
/// A caller who gives one is refused, since nothing would come of it.
pub(super) const LISTENING: [&str; 13] = [
    "users",
    "keytab",
    "ntlm1",
    "clients",
    "details",
    "maxconcurrentsessions",
    "maxconcurrentcalls",
    "maxpendingconnections",
    "receivetimeout",
    "idletimeout",
    "channelinitializationtimeout",
    "maxviasize",
    "maxcontenttypesize",
];

/// Those of them that are about framing: refused at places of HTTP, which have no sessions and no preamble.
pub(super) const FRAMING: [&str; 5] =
    ["maxconcurrentsessions", "maxpendingconnections", "receivetimeout", "maxviasize", "maxcontenttypesize"];

/// Options that mean something to those who call only.
pub(super) const CALLING: [&str; 5] = ["ca", "insecure", "callback", "to", "query"];

/// Names that a reference of ours may have behind the path of an `http:` URI; whatever else stands there is the service's own.
pub(super) const OWN: [&str; 12] = [
    "security",
    "identity",
    "to",
    "query",
    "ca",
    "insecure",
    "encoding",
    "binding",
    "reliable",
    "compression",
    "wsdl",
    "singlewsdl",
];

/// What socket names end with, in notations where a path follows without a sign between.
pub(super) const SOCKETS: [&str; 4] = [".sock", ".socket", ".pipe", ".uds"];

/// Schemes, the friendly one first: the binding, whether it is secured by TLS, and the scheme of its URIs.
/// `http` and `https` are spelled as URIs of services are; they mean Basic unless `binding=` says
/// otherwise.
pub(super) const SCHEMES: [(&str, Binding, bool, &str); 13] = [
    ("net.tcp", Binding::NetTcp, false, "net.tcp"),
    ("net.uds", Binding::NetTcp, false, "net.uds"),
    ("net.pipe", Binding::NetTcp, false, "net.pipe"),
    ("basic", Binding::Basic, false, "http"),
    ("basics", Binding::Basic, true, "https"),
    ("wshttp", Binding::Ws, false, "http"),
    ("wshttps", Binding::Ws, true, "https"),
    ("soap12", Binding::Soap12, false, "http"),
    ("soap12s", Binding::Soap12, true, "https"),
    ("binhttp", Binding::BinaryHttp, false, "http"),
    ("binhttps", Binding::BinaryHttp, true, "https"),
    ("http", Binding::Basic, false, "http"),
    ("https", Binding::Basic, true, "https"),
];

/// The names of all schemes.
pub const NAMES: [&str; 13] = [
    "net.tcp", "net.uds", "net.pipe", "basic", "basics", "wshttp", "wshttps", "soap12", "soap12s", "binhttp",
    "binhttps", "http", "https",
];

/// The port that URIs of a scheme leave out.
pub(super) fn usual_port(scheme: &str) -> u16 {
    match scheme {
        "http" => 80,
        "https" => 443,
        _ => PORT,
    }
}

/// The failure of a text that is no address.
pub(super) fn wrong(what: impl Into<String>) -> Failure {
    Failure::bad_reference(format!("not an address of this wire: {}", what.into())).with_hint(NOTATIONS)
}
