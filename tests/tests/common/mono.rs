//! Mono's WCF as client and server: programs of ours in C# (`peers/mono/`), built where Mono is installed.

use super::foreign::{Beside, run, run_with, script};
use super::papers::Papers;
use everywire_tests::peers::{cached, here};
use everywire_tests::workshop::once;
use std::ffi::OsString;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// A port that nobody has now, nor gets before it is asked for: they are below those that the system gives out, and processes
/// begin at different ones.
pub fn free_port() -> u16 {
    const FIRST: u32 = 16_384;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(64).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + number % FIRST).expect("below 32768");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
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

    /// Serves these contracts, each at a port of its own, until the value is dropped.
    pub fn serve(&self, binding: Binding, contracts: &[&str]) -> (Beside, Vec<u16>) {
        let ports: Vec<u16> = contracts.iter().map(|_| free_port()).collect();
        if let Some(papers) = self.papers {
            ports.iter().for_each(|port| papers.for_mono(*port));
        }
        let mut command = self.run();
        command.arg("serve");
        for (contract, port) in contracts.iter().zip(&ports) {
            command.args([contract, binding.name, &binding.address(*port, contract)]);
        }
        let server = Beside::start(&mut command);
        server.hear("ready");
        (server, ports)
    }

    /// Calls the service of this contract, and gives what it prints, line by line, but for the last.
    pub fn call(&self, contract: &str, binding: Binding, port: u16, checks: &[&str]) -> Vec<String> {
        let mut command = self.run();
        command.args(["call", contract, binding.name, &binding.address(port, contract)]).args(checks);
        let said = run_with(&mut command, b"");
        let mut lines: Vec<String> = said.out.lines().map(str::to_owned).collect();
        assert!(
            said.success && lines.pop().as_deref() == Some("ok"),
            "{contract} over {}: {}{}",
            binding.name,
            said.out,
            said.err
        );
        lines
    }
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
