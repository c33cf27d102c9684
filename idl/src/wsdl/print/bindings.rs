//! Bindings, their policies, and the ports of services.
//!
//! What is written is what .NET's own tools expect of a service with such an endpoint: names of bindings as
//! WCF gives them, and assertions by which its clients choose encoding and security. It is `ports.rs`
//! backwards: what is written here is read there as the same port.
//!
//! State is in `Elements`: names of bindings that are taken, and the texts of policies, bindings and
//! services, to which each port adds. A binding has the operations of the whole contract, since a port serves
//! all of them; a policy is written only where the port asserts anything, and the binding refers to it by its
//! id.
//!
//! Addresses, names and unknown assertions come from a contract: names are checked, and everything is escaped
//! by `Paper`.

use super::super::names::{QName, is_name};
use super::super::ports::Port;
use super::elements::Elements;
use super::messages::{PrintedMessage, PrintedOperation};
use super::paper::Paper;

/// WS-SecurityPolicy 1.1.
const SECURITY_POLICY: &str = "http://schemas.xmlsoap.org/ws/2005/07/securitypolicy";
/// Assertions of net.tcp and its like.
const FRAMING_POLICY: &str = "http://schemas.microsoft.com/ws/2006/05/framing/policy";

/// Prints the bindings of one contract.
pub(super) struct Bindings<'e> {
    pub(super) elements: &'e mut Elements,
    pub(super) contract: &'e QName,
    pub(super) methods: &'e [PrintedOperation],
}

impl Bindings<'_> {
    /// A binding for each port; without ports, the one that fits: SOAP 1.1 over HTTP, or net.tcp where the service calls.
    pub(super) fn print(&mut self, ports: &[Port]) {
        if ports.is_empty() {
            let port = if self.methods.iter().any(|method| method.calls_back) { tcp() } else { basic() };
            self.binding(&port);
        }
        // Ports are read in the order of the services, so they are printed so.
        let rank = |port: &&Port| {
            let place = self.elements.services.iter().position(|(name, _)| name == service_of(port));
            place.unwrap_or(usize::MAX)
        };
        let mut ports: Vec<&Port> = ports.iter().collect();
        ports.sort_by_key(rank);
        for port in ports {
            let binding = self.binding(port);
            self.port(port, &binding);
        }
    }

    /// One binding with its operations, and its policy where it has any; its name comes back.
    fn binding(&mut self, port: &Port) -> String {
        let kind = match (port.transport.as_str(), port.soap.as_str()) {
            ("tcp", _) => "NetTcpBinding",
            ("pipe", _) => "NetNamedPipeBinding",
            ("uds", _) => "UnixDomainSocketBinding",
            ("http" | "https", "1.1") => "BasicHttpBinding",
            ("http" | "https", _) if port.encoding == "text" => "WSHttpBinding",
            _ => "CustomBinding",
        };
        // A name that is taken gets a number.
        let usual = format!("{kind}_{}", self.contract.local);
        let wanted = if is_name(&port.name) { &port.name } else { &usual };
        let mut name = wanted.clone();
        let mut number = 0;
        while !self.elements.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted}{number}");
        }
        let policy = format!("{name}_policy");
        // The policy is written only where there is something to assert.
        let mut assertions = Paper::at(4);
        assert(port, &mut assertions);
        let mut paper = Paper::at(1);
        let of = format!("tns:{}", self.contract.local);
        paper.open("wsdl:binding", &[("name", &name), ("type", &of)]);
        if !assertions.out.is_empty() {
            paper.empty("wsp:PolicyReference", &[("URI", &format!("#{policy}"))]);
            let mut written = Paper::at(1);
            written.open("wsp:Policy", &[("wsu:Id", &policy)]);
            written.open("wsp:ExactlyOne", &[]);
            written.open("wsp:All", &[]);
            written.paste(&assertions.out);
            for _ in 0..3 {
                written.close();
            }
            self.elements.policies.push_str(&written.out);
        }
        let soap = if port.soap == "1.2" { "soap12" } else { "soap" };
        // The style of the binding is that of all operations, or else that of documents; each operation says
        // its own as well.
        let rpc = !self.methods.is_empty() && self.methods.iter().all(|method| method.rpc);
        let style = if rpc { "rpc" } else { "document" };
        paper.empty(
            &format!("{soap}:binding"),
            &[("style", style), ("transport", &transport(&port.transport))],
        );
        // JAX-WS as Java has it looks for addressing here, and not in policies (WS-Addressing 1.0, WSDL binding, 3.1).
        if port.addressing == "1.0" && matches!(&*port.transport, "http" | "https") {
            paper.empty("wsaw:UsingAddressing", &[]);
        }
        for method in self.methods {
            self.operation(soap, method, &mut paper);
        }
        paper.close();
        self.elements.bindings.push_str(&paper.out);
        name
    }

    /// One operation of a binding: its action, and how each message is written.
    fn operation(&self, soap: &str, method: &PrintedOperation, paper: &mut Paper) {
        paper.open("wsdl:operation", &[("name", &method.name)]);
        let style = if method.rpc { "rpc" } else { "document" };
        paper.empty(&format!("{soap}:operation"), &[("soapAction", &method.soap_action), ("style", style)]);
        let mut way = |element: &str, way: &PrintedMessage| {
            paper.open(element, &[]);
            if let Some((message, parts)) = &way.headers {
                let message = format!("tns:{message}");
                for part in parts {
                    paper.empty(
                        &format!("{soap}:header"),
                        &[("message", &message), ("part", part), ("use", "literal")],
                    );
                }
            }
            let mut attributes = vec![("use", "literal")];
            // Only the style `rpc` names a namespace for the element around the parts (WSDL 1.1, 3.5).
            if method.rpc {
                attributes.push(("namespace", &way.namespace));
            }
            paper.empty(&format!("{soap}:body"), &attributes);
            paper.close();
        };
        let (first, second) =
            if method.calls_back { ("wsdl:output", "wsdl:input") } else { ("wsdl:input", "wsdl:output") };
        way(first, &method.request);
        if let Some(reply) = &method.reply {
            way(second, reply);
        }
        for (name, _, _) in &method.faults {
            paper.open("wsdl:fault", &[("name", name)]);
            paper.empty(&format!("{soap}:fault"), &[("name", name), ("use", "literal")]);
            paper.close();
        }
        paper.close();
    }

    /// One port of a service. Its address is also given as an endpoint reference, where addressing has one.
    fn port(&mut self, port: &Port, binding: &str) {
        let mut paper = Paper::at(2);
        let of = format!("tns:{binding}");
        // No two ports have one name (WSDL 1.1, 2.6), nor have bindings, which are called as their ports.
        let name = if port.name.is_empty() || is_name(&port.name) { binding } else { &port.name };
        paper.open("wsdl:port", &[("name", name), ("binding", &of)]);
        let soap = if port.soap == "1.2" { "soap12" } else { "soap" };
        paper.empty(&format!("{soap}:address"), &[("location", &port.address)]);
        // WCF's clients take the address from the reference, where there is one.
        if port.addressing == "1.0" {
            paper.open("wsa10:EndpointReference", &[("xmlns:wsa10", super::super::builtin::ADDRESSING)]);
            paper.text("wsa10:Address", &[], &port.address);
            paper.close();
        }
        paper.close();
        let service = service_of(port);
        match self.elements.services.iter_mut().find(|(name, _)| name == service) {
            Some((_, ports)) => ports.push_str(&paper.out),
            None => self.elements.services.push((service.to_owned(), paper.out)),
        }
    }
}

/// The service that a port is of.
fn service_of(port: &Port) -> &str {
    if port.service.is_empty() { "Service" } else { &port.service }
}

/// The endpoint of `BasicHttpBinding`.
fn basic() -> Port {
    let word = str::to_owned;
    Port { transport: word("http"), soap: word("1.1"), encoding: word("text"), ..Port::default() }
}

/// The endpoint of `NetTcpBinding`.
fn tcp() -> Port {
    let word = str::to_owned;
    Port {
        transport: word("tcp"),
        soap: word("1.2"),
        encoding: word("binary"),
        addressing: word("1.0"),
        ..Port::default()
    }
}

/// The URI of a transport, or the text itself where it is one.
fn transport(word: &str) -> String {
    match word {
        "http" | "https" => "http://schemas.xmlsoap.org/soap/http",
        "tcp" => "http://schemas.microsoft.com/soap/tcp",
        "pipe" => "http://schemas.microsoft.com/soap/named-pipe",
        "uds" => "http://schemas.microsoft.com/soap/uds",
        other => other,
    }
    .to_owned()
}

/// What a binding asserts in its policy.
fn assert(port: &Port, paper: &mut Paper) {
    let addressing = |year: &str| format!("http://schemas.xmlsoap.org/ws/{year}/addressing/policy");
    match port.encoding.as_str() {
        "binary" => paper.empty(
            "msb:BinaryEncoding",
            &[("xmlns:msb", "http://schemas.microsoft.com/ws/06/2004/mspolicy/netbinary1")],
        ),
        "mtom" => {
            let space = "http://schemas.xmlsoap.org/ws/2004/09/policy/optimizedmimeserialization";
            paper.empty("wsoma:OptimizedMimeSerialization", &[("xmlns:wsoma", space)]);
        }
        _ => {}
    }
    if port.streamed {
        paper.empty("msf:Streamed", &[("xmlns:msf", FRAMING_POLICY)]);
    }
    if port.reliable {
        paper.empty("wsrm:RMAssertion", &[("xmlns:wsrm", "http://schemas.xmlsoap.org/ws/2005/02/rm/policy")]);
    }
    let http = "http://schemas.microsoft.com/ws/06/2004/policy/http";
    match port.credential.as_str() {
        "basic" => paper.empty("http:BasicAuthentication", &[("xmlns:http", http)]),
        "digest" => paper.empty("http:DigestAuthentication", &[("xmlns:http", http)]),
        "ntlm" => paper.empty("http:NtlmAuthentication", &[("xmlns:http", http)]),
        "negotiate" => paper.empty("http:NegotiateAuthentication", &[("xmlns:http", http)]),
        _ => {}
    }
    // Inside TLS the certificate is asked for by the transport itself.
    let certificate = port.credential == "certificate";
    match (port.security.as_str(), port.transport.as_str()) {
        ("tls", "http" | "https") => token(paper, |paper| {
            let asked = if certificate { "true" } else { "false" };
            paper.empty("sp:HttpsToken", &[("RequireClientCertificate", asked)]);
        }),
        ("tls", _) => token(paper, |paper| {
            let space = [("xmlns:msf", FRAMING_POLICY)];
            if certificate {
                paper.open("msf:SslTransportSecurity", &space);
                paper.empty("msf:RequireClientCertificate", &[]);
                paper.close();
            } else {
                paper.empty("msf:SslTransportSecurity", &space);
            }
        }),
        ("windows", _) => token(paper, |paper| {
            paper.open("msf:WindowsTransportSecurity", &[("xmlns:msf", FRAMING_POLICY)]);
            paper.text("msf:ProtectionLevel", &[], "EncryptAndSign");
            paper.close();
        }),
        ("message", _) => paper.empty("sp:SymmetricBinding", &[("xmlns:sp", SECURITY_POLICY)]),
        _ => {}
    }
    if port.credential == "username" {
        paper.open("sp:SignedSupportingTokens", &[("xmlns:sp", SECURITY_POLICY)]);
        paper.open("wsp:Policy", &[]);
        let always = format!("{SECURITY_POLICY}/IncludeToken/AlwaysToRecipient");
        paper.open("sp:UsernameToken", &[("sp:IncludeToken", &always)]);
        paper.open("wsp:Policy", &[]);
        paper.empty("sp:WssUsernameToken10", &[]);
        for _ in 0..4 {
            paper.close();
        }
    }
    match port.addressing.as_str() {
        "1.0" => paper.empty("wsaw:UsingAddressing", &[]),
        "2004" => paper.empty("wsap:UsingAddressing", &[("xmlns:wsap", &addressing("2004/08"))]),
        _ => {}
    }
    for unknown in &port.unknown {
        // An assertion that was read and not understood is passed on, so that a description survives being
        // printed.
        if let Some(name) = QName::parse(unknown).filter(|name| is_name(&name.local)) {
            if name.namespace.is_empty() {
                paper.empty(&name.local, &[("xmlns", "")]);
            } else {
                paper.empty(&format!("u:{}", name.local), &[("xmlns:u", &name.namespace)]);
            }
        }
    }
}

/// A binding of a secure transport, with the token that `inside` writes.
fn token(paper: &mut Paper, inside: impl FnOnce(&mut Paper)) {
    paper.open("sp:TransportBinding", &[("xmlns:sp", SECURITY_POLICY)]);
    paper.open("wsp:Policy", &[]);
    paper.open("sp:TransportToken", &[]);
    paper.open("wsp:Policy", &[]);
    inside(paper);
    paper.close();
    paper.close();
    paper.open("sp:AlgorithmSuite", &[]);
    paper.open("wsp:Policy", &[]);
    paper.empty("sp:Basic256", &[]);
    paper.close();
    paper.close();
    paper.open("sp:Layout", &[]);
    paper.open("wsp:Policy", &[]);
    paper.empty("sp:Strict", &[]);
    for _ in 0..4 {
        paper.close();
    }
}
