//! Endpoints: where a contract is served and by which binding, as services, bindings and policies say.
//!
//! A `Port` holds what a client must know to call: address, transport, version of SOAP, addressing, encoding,
//! security. It is made of the binding's elements and of the assertions of its policies (WS-Policy), which
//! are known by their local names, since their namespaces differ by year and do not change the meaning.
//! Assertions that are not known are named, so that a call which fails can be explained.
//! Each port has a copy of what its binding says, so the bytes of all ports are bounded.
//!
//! A port is kept as text in a note of the interface, so that contracts travel through other languages and
//! files; words are joined by blanks, and blanks inside words become `_`.

use super::names::QName;
use super::tree::{Node, WSDL};
use crate::report::{Problem, Report};
use everywire_model::shape::Name;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Display, Formatter};

/// The binding of SOAP 1.1 in WSDL.
const SOAP11: &str = "http://schemas.xmlsoap.org/wsdl/soap/";
/// The binding of SOAP 1.2 in WSDL.
const SOAP12: &str = "http://schemas.xmlsoap.org/wsdl/soap12/";
/// The namespace of the attribute `Id`, by which policies are referred to.
const UTILITY: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-utility-1.0.xsd";
/// WS-Policy 1.2 and 1.5.
const POLICY: [&str; 2] = ["http://schemas.xmlsoap.org/ws/2004/09/policy", "http://www.w3.org/ns/ws-policy"];

/// An endpoint of a service. Its text is `ADDRESS key=value ...`, as the note `wcf:port` of an interface holds it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Port {
    /// Name of the service.
    pub service: String,
    /// Name of the port.
    pub name: String,
    /// The address; empty where the service gives none.
    pub address: String,
    /// `http`, `https`, `tcp`, `pipe` or `uds`; another transport by its URI.
    pub transport: String,
    /// `1.1` or `1.2`.
    pub soap: String,
    /// WS-Addressing: `none`, `1.0` or `2004`.
    pub addressing: String,
    /// `text`, `binary` or `mtom`.
    pub encoding: String,
    /// `none`, `tls`, `windows` or `message`.
    pub security: String,
    /// What the caller shows inside it: empty, `username`, `certificate`, `basic`, `digest`, `ntlm`, `negotiate`.
    pub credential: String,
    /// Whether messages are streamed.
    pub streamed: bool,
    /// Whether sessions are reliable.
    pub reliable: bool,
    /// Assertions of its policy that are not known, in Clark notation.
    pub unknown: Vec<String>,
}

impl Display for Port {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let address = if self.address.is_empty() { "-" } else { &self.address };
        write!(f, "{}", word(address))?;
        let pairs = [
            ("service", &self.service),
            ("name", &self.name),
            ("transport", &self.transport),
            ("soap", &self.soap),
            ("addressing", &self.addressing),
            ("encoding", &self.encoding),
            ("security", &self.security),
            ("credential", &self.credential),
        ];
        for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
            write!(f, " {key}={}", word(value))?;
        }
        for (flag, _) in
            [("streamed", self.streamed), ("reliable", self.reliable)].iter().filter(|(_, on)| *on)
        {
            write!(f, " {flag}=on")?;
        }
        self.unknown.iter().try_for_each(|assertion| write!(f, " unknown={}", word(assertion)))
    }
}

/// A word without blanks, since blanks divide the words of the note.
fn word(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect()
}

impl Port {
    /// Reads what [`Display`] wrote. Words that are not known are passed over.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        let address = words.next().filter(|address| *address != "-").unwrap_or_default().to_owned();
        let mut port = Self { address, ..Self::default() };
        for (key, value) in words.filter_map(|word| word.split_once('=')) {
            let value = value.to_owned();
            match key {
                "service" => port.service = value,
                "name" => port.name = value,
                "transport" => port.transport = value,
                "soap" => port.soap = value,
                "addressing" => port.addressing = value,
                "encoding" => port.encoding = value,
                "security" => port.security = value,
                "credential" => port.credential = value,
                "streamed" => port.streamed = true,
                "reliable" => port.reliable = true,
                "unknown" => port.unknown.push(value),
                _ => {}
            }
        }
        port
    }

    /// As a note of an interface.
    #[must_use]
    pub fn note(&self) -> (Name, Name) {
        (Name::from("wcf:port"), Name::from(self.to_string()))
    }
}

/// The ports of all documents, by the name of their port type. A port whose binding is unknown is left out. Ports of more than `BYTES`
/// are a mistake.
pub(super) fn read(roots: &[&Node<'_>], report: &mut Report) -> HashMap<QName, Vec<Port>> {
    let mut policies = HashMap::new();
    for root in roots {
        gather(root, &mut policies);
    }
    let mut port_types = HashSet::new();
    for definitions in roots {
        let target = definitions.get("targetNamespace").unwrap_or_default();
        let named = definitions.all("portType").filter_map(|port_type| port_type.get("name"));
        port_types.extend(named.map(|name| QName::new(target, name)));
    }
    let mut bindings = HashMap::new();
    for definitions in roots {
        let target = definitions.get("targetNamespace").unwrap_or_default();
        for binding in definitions.all("binding") {
            let Some(name) = binding.get("name") else { continue };
            let Some(of) = binding.qname("type") else { continue };
            if !port_types.contains(&of) {
                let message = format!(
                    "the port type `{}` of the namespace `{}` is not defined",
                    of.local, of.namespace
                );
                let help = "give the document that defines it, as a file beside this one";
                report.doubt(Problem::new(binding.span(), message).help(help));
                continue;
            }
            bindings.insert(QName::new(target, name), (of, of_binding(binding, &policies)));
        }
    }
    let (mut ports, mut bytes): (HashMap<QName, Vec<Port>>, _) = (HashMap::new(), 0);
    for service in roots.iter().flat_map(|definitions| definitions.all("service")) {
        for port in service.all("port") {
            let Some(name) = port.qname("binding") else { continue };
            let Some((of, known)) = bindings.get(&name) else { continue };
            let mut known = known.clone();
            known.service = word(service.get("name").unwrap_or_default());
            known.name = word(port.get("name").unwrap_or_default());
            let address = port.children.iter().find(|child| child.local == "address");
            known.address = word(address.and_then(|address| address.get("location")).unwrap_or_default());
            if known.address.starts_with("https:") {
                known.transport = "https".to_owned();
            }
            bytes += known.to_string().len();
            if bytes > super::limits::BYTES {
                report.add(Problem::new(port.span(), "the endpoints are too large, all together"));
                return ports;
            }
            ports.entry(of.clone()).or_default().push(known);
        }
    }
    ports
}

/// Policies by their identity; recursion is bounded by the depth of the tree. A policy stands beside what
/// refers to it, in any document.
fn gather<'n, 't>(node: &'n Node<'t>, policies: &mut HashMap<&'t str, &'n Node<'t>>) {
    for child in &node.children {
        if child.local == "Policy" && POLICY.contains(&child.space) {
            if let Some(id) = child.foreign(&[UTILITY], "Id") {
                policies.entry(id).or_insert(child);
            }
        } else if child.space == WSDL || child.local.starts_with("Metadata") {
            gather(child, policies);
        }
    }
}

/// What a binding and its policies say; address and names come from the port.
fn of_binding(binding: &Node<'_>, policies: &HashMap<&str, &Node<'_>>) -> Port {
    let mut port = Port {
        addressing: "none".to_owned(),
        encoding: "text".to_owned(),
        security: "none".to_owned(),
        ..Port::default()
    };
    for child in &binding.children {
        match (child.space, child.local) {
            (SOAP11 | SOAP12, "binding") => {
                port.soap = if child.space == SOAP11 { "1.1" } else { "1.2" }.to_owned();
                port.transport = transport(child.get("transport").unwrap_or_default());
            }
            (space, "Policy") if POLICY.contains(&space) => assertions(child, &mut port),
            (space, "PolicyReference") if POLICY.contains(&space) => {
                let reference = child.get("URI").unwrap_or_default();
                match reference.strip_prefix('#').and_then(|id| policies.get(id)) {
                    Some(policy) => assertions(policy, &mut port),
                    None => unknown(&mut port, reference),
                }
            }
            // WS-Addressing 1.0, WSDL binding, section 3.1: without this the caller may do as it likes.
            (_, "UsingAddressing") if matches!(child.foreign(&[WSDL], "required"), Some("true" | "1")) => {
                addressing(child).clone_into(&mut port.addressing);
            }
            _ => {}
        }
    }
    // Mono declares SOAP 1.1 for bindings whose messages are of SOAP 1.2.
    let style = binding.all("operation").flat_map(|operation| operation.children.iter());
    if style.into_iter().any(|child| child.space == SOAP12 && child.local == "operation") {
        "1.2".clone_into(&mut port.soap);
    }
    port
}

/// Notes an assertion that is not known; at most `REMARKS` of them.
fn unknown(port: &mut Port, assertion: &str) {
    let assertion = word(assertion);
    if port.unknown.len() < super::limits::REMARKS && !port.unknown.contains(&assertion) {
        port.unknown.push(assertion);
    }
}

/// The transport's short name, or its URI where there is none.
fn transport(uri: &str) -> String {
    match uri {
        "http://schemas.xmlsoap.org/soap/http" => "http",
        "http://schemas.microsoft.com/soap/tcp" => "tcp",
        "http://schemas.microsoft.com/soap/named-pipe" => "pipe",
        "http://schemas.microsoft.com/soap/uds" => "uds",
        other => return word(other),
    }
    .to_owned()
}

/// Which WS-Addressing an element speaks of.
fn addressing(said: &Node<'_>) -> &'static str {
    if said.space.contains("2004/08") { "2004" } else { "1.0" }
}

/// What a policy asserts: alternatives and groups are looked through; recursion is bounded by the depth of
/// the tree. Where two assertions speak of one thing, the later one counts.
fn assertions(policy: &Node<'_>, port: &mut Port) {
    for assertion in &policy.children {
        // The same names in other namespaces mean the same.
        let set = |field: &mut String, value: &str| value.clone_into(field);
        match assertion.local {
            "ExactlyOne" | "All" | "Policy" if POLICY.contains(&assertion.space) => {
                assertions(assertion, port)
            }
            "UsingAddressing" | "Addressing" => set(&mut port.addressing, addressing(assertion)),
            "BinaryEncoding" => set(&mut port.encoding, "binary"),
            "OptimizedMimeSerialization" => set(&mut port.encoding, "mtom"),
            "Streamed" => port.streamed = true,
            "RMAssertion" => port.reliable = true,
            "SslTransportSecurity" => set(&mut port.security, "tls"),
            "WindowsTransportSecurity" => set(&mut port.security, "windows"),
            "HttpsToken" => {
                set(&mut port.security, "tls");
                set(&mut port.transport, "https");
                if assertion.get("RequireClientCertificate") == Some("true") {
                    set(&mut port.credential, "certificate");
                }
                assertions(assertion, port);
            }
            "RequireClientCertificate" => set(&mut port.credential, "certificate"),
            "SymmetricBinding" | "AsymmetricBinding" => set(&mut port.security, "message"),
            "UsernameToken" => set(&mut port.credential, "username"),
            "X509Token" if port.credential.is_empty() => set(&mut port.credential, "certificate"),
            "BasicAuthentication" => set(&mut port.credential, "basic"),
            "DigestAuthentication" => set(&mut port.credential, "digest"),
            "NtlmAuthentication" => set(&mut port.credential, "ntlm"),
            "NegotiateAuthentication" => set(&mut port.credential, "negotiate"),
            "TransportBinding"
            | "TransportToken"
            | "SignedSupportingTokens"
            | "EndorsingSupportingTokens"
            | "SupportingTokens"
            | "SignedEncryptedSupportingTokens" => assertions(assertion, port),
            // What these say follows from the binding, or concerns protected messages only.
            "AlgorithmSuite" | "Layout" | "IncludeTimestamp" | "Wss10" | "Wss11" | "Trust10" | "Trust13"
            | "ProtectionLevel" | "WssUsernameToken10" | "OneWay" | "ProtectTokens" | "CompositeDuplex" => {}
            _ => {
                unknown(port, &QName::new(assertion.space, assertion.local).to_string());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Port;
    use crate::wsdl::parse;

    /// The addressing of a port whose binding says this and has no policy.
    fn addressing(said: &str) -> String {
        let text = format!(
            r#"<w:definitions xmlns:w="http://schemas.xmlsoap.org/wsdl/" xmlns:s="http://schemas.xmlsoap.org/wsdl/soap/"
                xmlns:wsaw="http://www.w3.org/2006/05/addressing/wsdl"
                xmlns:wsap="http://schemas.xmlsoap.org/ws/2004/08/addressing/policy" xmlns:t="urn:t" targetNamespace="urn:t">
              <w:portType name="IThing"/>
              <w:binding name="Plain" type="t:IThing">
                <s:binding transport="http://schemas.xmlsoap.org/soap/http"/>{said}
              </w:binding>
              <w:service name="Thing">
                <w:port name="Plain" binding="t:Plain"><s:address location="http://localhost/"/></w:port>
              </w:service>
            </w:definitions>"#
        );
        let contract = parse(&text, "thing.wsdl").unwrap_or_else(|e| panic!("{e}"));
        let interface = contract.interfaces().next().expect("an interface");
        let (_, port) = interface.notes.iter().find(|(what, _)| what == "wcf:port").expect("a port");
        Port::parse(port).addressing
    }

    /// What is not required is left to the caller.
    #[test]
    fn a_binding_without_a_policy_requires_addressing() {
        assert_eq!(addressing(r#"<wsaw:UsingAddressing w:required="true"/>"#), "1.0");
        assert_eq!(addressing(r#"<wsap:UsingAddressing w:required="1"/>"#), "2004");
        for left in ["", "<wsaw:UsingAddressing/>", r#"<wsaw:UsingAddressing w:required="false"/>"#] {
            assert_eq!(addressing(left), "none", "{left}");
        }
    }
}
