//! Mono's WCF as client and server: programs of ours in C# (`peers/mono/`), built where Mono is installed. Most tests share one process of
//! it; those with TLS, whose certificates are a test's own and are for a whole process of Mono's, and those of Mono as it is shipped,
//! have processes of their own.

use super::foreign::{Beside, run, run_with, script};
use super::mono_host::Order;
use super::papers::Papers;
use everywire_tests::peers::{cached, free_port, here};
use everywire_tests::workshop::once;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// A binding: Mono's name for it, and how our addresses say the same.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    pub name: &'static str,
    pub scheme: &'static str,
    pub options: &'static str,
    /// The scheme of Mono's addresses.
    pub theirs: &'static str,
}

const ROOMY: &str = "MaxReceivedMessageSize=67108864";

/// All that Mono has and that works in it.
pub const BASIC: Binding = Binding { name: "basic", scheme: "basic", options: "", theirs: "http" };
pub const WS: Binding = Binding { name: "ws", scheme: "wshttp", options: "", theirs: "http" };
pub const SOAP_12: Binding = Binding { name: "soap12", scheme: "soap12", options: "", theirs: "http" };
pub const BINARY: Binding = Binding { name: "binhttp", scheme: "binhttp", options: "", theirs: "http" };
pub const TCP: Binding = Binding { name: "tcp", scheme: "net.tcp", options: "", theirs: "net.tcp" };
pub const STREAMED: Binding =
    Binding { name: "tcpstreamed", scheme: "net.tcp", options: "&mode=streamed", theirs: "net.tcp" };
pub const TEXT: Binding =
    Binding { name: "tcptext", scheme: "net.tcp", options: "&encoding=text", theirs: "net.tcp" };

/// The same over TLS.
pub const BASICS: Binding = Binding { name: "basics", scheme: "basics", options: "", theirs: "https" };
pub const WSS: Binding = Binding { name: "wss", scheme: "wshttps", options: "", theirs: "https" };
pub const BINARYS: Binding = Binding { name: "binhttps", scheme: "binhttps", options: "", theirs: "https" };

impl Binding {
    /// The same with the quotas that .NET had before 4.5, on Mono's side.
    pub const fn with_few(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Where we listen with TLS.
    pub fn listen_with(&self, papers: &Papers) -> String {
        format!("{}://127.0.0.1:0?{ROOMY}&{}", self.scheme, papers.listening())
    }

    /// Our address of an object of theirs, over TLS.
    pub fn object_with(&self, port: u16, key: &str, papers: &Papers) -> String {
        let ca = papers.path("ca.pem");
        format!("{}://localhost:{port}/{key}?{ROOMY}&ca={}", self.scheme, ca.display())
    }

    /// Where we listen.
    pub fn listen(&self) -> String {
        format!("{}://127.0.0.1:0?security=none&{ROOMY}{}", self.scheme, self.options)
    }

    /// Our address of an object of theirs.
    pub fn object(&self, port: u16, key: &str) -> String {
        format!("{}://127.0.0.1:{port}/{key}?security=none&{ROOMY}{}", self.scheme, self.options)
    }

    /// Their address of an object.
    pub fn address(&self, port: u16, key: &str) -> String {
        format!("{}://127.0.0.1:{port}/{key}", self.theirs)
    }
}

/// Mono, with our program built.
#[derive(Debug, Clone)]
pub struct Mono {
    program: PathBuf,
    /// Where the assembly without the sleeps is.
    awake: Option<PathBuf>,
    /// What it shows as a server with TLS, and trusts as a client.
    papers: Option<&'static Papers>,
}

impl Mono {
    /// Without the sleeps of its dispatchers; or nothing, said loudly.
    pub fn awake(test: &str) -> Option<Self> {
        let mut mono = Self::shipped(test)?;
        mono.awake = Some(cached(test, "mono-without-sleeps")?);
        Some(mono)
    }

    /// As it is installed; or nothing, said loudly.
    pub fn shipped(test: &str) -> Option<Self> {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        if !here(test, &["mono"]) {
            return None;
        }
        Some(Self { program: BUILT.get_or_init(build).clone(), awake: None, papers: None })
    }

    /// With TLS.
    #[must_use]
    pub fn with(self, papers: &'static Papers) -> Self {
        Self { papers: Some(papers), ..self }
    }

    /// The program; its arguments are to be added.
    pub fn run(&self) -> Command {
        let mut command = Command::new("mono");
        command.env_remove("MONO_PATH").envs(self.awake.iter().map(|awake| ("MONO_PATH", awake)));
        if let Some(papers) = self.papers {
            command.env("EVERYWIRE_TRUST", papers.path("server.pem"));
            command.env("XDG_CONFIG_HOME", papers.directory());
        }
        command.arg(&self.program);
        command
    }

    /// Whether the one process for all tests will do.
    fn is_shared(&self) -> bool {
        self.papers.is_none() && self.awake.is_some()
    }

    /// Serves this contract, at a port of its own, until the value is dropped.
    pub fn serve(&self, binding: Binding, contract: &str) -> (Service, u16) {
        if self.is_shared() {
            let (order, said) = Order::give(|| self.run(), &format!("serve {contract} {}", binding.name));
            let port = said.strip_prefix("port ").and_then(|port| port.parse().ok());
            return (Service::Shared(order), port.unwrap_or_else(|| panic!("it says {said}")));
        }
        let port = free_port().expect("a port");
        if let Some(papers) = self.papers {
            papers.for_mono(port);
        }
        let mut command = self.run();
        command.args(["serve", contract, binding.name, &binding.address(port, contract)]);
        let server = Beside::start(&mut command);
        server.hear("ready");
        (Service::Own(server), port)
    }

    /// Calls the service of this contract, and gives what it prints, line by line, but for the last.
    pub fn call(&self, contract: &str, binding: Binding, port: u16, checks: &[&str]) -> Vec<String> {
        let address = binding.address(port, contract);
        let (said, errors) = if self.is_shared() {
            let order = format!("call {contract} {} {address} {}", binding.name, checks.join(" "));
            let (mut order, first) = Order::give(|| self.run(), &order);
            let rest: Vec<String> = std::iter::from_fn(|| order.line()).collect();
            (std::iter::once(first).chain(rest).collect::<Vec<_>>(), String::new())
        } else {
            let mut command = self.run();
            command.args(["call", contract, binding.name, &address]).args(checks);
            let said = run_with(&mut command, b"");
            (said.out.lines().map(str::to_owned).collect(), said.err)
        };
        match said.split_last() {
            Some((last, lines)) if last == "ok" => lines.to_vec(),
            _ => panic!("{contract} over {}: {}\n{errors}", binding.name, said.join("\n")),
        }
    }
}

/// A service of Mono's; nobody needs it any more when this value is dropped.
pub enum Service {
    /// In the process for all tests.
    Shared(Order),
    /// In a process of its own, which ends with it.
    Own(Beside),
}

fn build() -> PathBuf {
    let sources: Vec<PathBuf> = fs::read_dir(script("mono"))
        .expect("sources")
        .map(|entry| entry.expect("a source").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cs"))
        .collect();
    once(env!("CARGO_TARGET_TMPDIR"), "mono-peer.exe", &sources, |fresh| {
        let mut out = OsString::from("-out:");
        out.push(fresh);
        let libraries = [
            "System.ServiceModel",
            "System.Runtime.Serialization",
            "System.Xml",
            "System.Core",
            "System.Web.Services",
        ];
        run(Command::new("mcs")
            .args(["-langversion:7", "-warnaserror", "-optimize+"])
            .args(libraries.map(|library| format!("-r:{library}")))
            .arg(out)
            .args(&sources));
    })
}
