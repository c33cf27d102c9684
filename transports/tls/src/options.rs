//! What an address says of TLS: files of certificates and keys, the same names on every wire.
//!
//! | option | who | what |
//! | --- | --- | --- |
//! | `ca=FILE` | connects | whom to believe: authorities, or the server's own certificate; without it, whom the system trusts |
//! | `identity=NAME` | connects | the name in the server's certificate, where it is not the host |
//! | `insecure=on` | connects | believes anybody |
//! | `cert=FILE`, `key=FILE` | both | this side's certificate and key, in PEM notation; one file may hold both |
//! | `clients=FILE` | listens | lets in only those whose certificate stands in the file, or is signed by one that does |

use crate::session::{HandshakeTerms, TlsSession};
use crate::{Channel, ClientSettings, ServerSettings};
use everywire_model::layered::{self, MakeSession};
use everywire_model::{Endpoint, Failure, LayerOptions, LayerSide, Layered, Session, TransportLayer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// The variable that says what references leave out: those that come from others name no files. It is read as options of an
/// address, and what an address says goes first.
pub const ENVIRONMENT: &str = "EVERYWIRE_TLS";

/// Options that mean something to those who connect.
const CONNECTING: [&str; 5] = ["ca", "cert", "identity", "insecure", "key"];

/// Options that mean something to those who listen.
const LISTENING: [&str; 3] = ["cert", "clients", "key"];

/// Settings of clients that are kept: the files of each are read once.
const KEPT: usize = 32;

/// The layer, as it is registered.
pub static TLS: Tls = Tls { kept: Mutex::new(Vec::new()) };

/// TLS under any wire that is a stream of bytes.
pub struct Tls {
    /// Settings with what they were made of; all are forgotten when there are too many.
    kept: Mutex<Vec<(RequestedOptions, ClientSettings)>>,
}

/// What settings of a client are made of: the options, and when their files were written.
#[derive(Debug, PartialEq, Eq)]
struct RequestedOptions {
    /// What the address says, and for the rest the environment.
    options: LayerOptions,
    /// When the files were written, so that new certificates are not missed.
    written: Vec<Option<SystemTime>>,
}

impl RequestedOptions {
    fn new(options: &LayerOptions) -> Self {
        let files = ["ca", "cert", "key"].into_iter().filter_map(|name| options.get(name));
        let written = |file| std::fs::metadata(file).and_then(|about| about.modified()).ok();
        Self { options: options.clone(), written: files.map(written).collect() }
    }
}

impl Tls {
    /// The settings of a client, which all of its connections share: so they can resume what was agreed on.
    fn client(&self, options: &LayerOptions) -> Result<ClientSettings, Failure> {
        let asked = RequestedOptions::new(options);
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, settings)) = kept().iter().find(|(known, _)| *known == asked) {
            return Ok(settings.clone());
        }
        let cert = options.get("cert").map(Path::new);
        let own = cert.map(|cert| (cert, options.get("key").map_or(cert, Path::new)));
        let settings = match options.get("insecure") {
            Some("on") => ClientSettings::insecure(own)?,
            Some(other) => return Err(wrong(&format!("`insecure={other}` is not `insecure=on`"))),
            None => ClientSettings::new(options.get("ca").map(Path::new), own)?,
        };
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.push((asked, settings.clone()));
        Ok(settings)
    }
}

impl TransportLayer for Tls {
    fn name(&self) -> &'static str {
        layered::TLS
    }

    fn connecting(&self, layered: &Layered) -> Result<Arc<dyn LayerSide>, Failure> {
        check(&layered.options, &CONNECTING, "who calls")?;
        let options = layered.options.clone().or(&environment()?);
        let settings = self.client(&options)?;
        let host = match layered.over.stream() {
            Endpoint::Tcp { host, .. } => host.clone(),
            _ => "localhost".to_owned(),
        };
        let name = options.get("identity").unwrap_or(&host).to_owned();
        Ok(Arc::new(SideConfig(move || Channel::client(&settings, &host, &name))))
    }

    fn listening(&self, layered: &Layered) -> Result<Arc<dyn LayerSide>, Failure> {
        let options = &layered.options;
        check(options, &LISTENING, "who listens")?;
        let Some(cert) = options.get("cert") else {
            return Err(wrong("listening with TLS needs ?cert=FILE&key=FILE, in PEM notation"));
        };
        let key = options.get("key").unwrap_or(cert);
        let clients = options.get("clients").map(PathBuf::from);
        let settings = ServerSettings::new(cert.as_ref(), key.as_ref(), clients.as_deref())?;
        Ok(Arc::new(SideConfig(move || Channel::server(&settings))))
    }
}

/// Begins TLS on a new connection, as one side's address has it.
struct SideConfig<F>(F);

impl<F: Fn() -> Result<Channel, Failure> + Send + Sync> LayerSide for SideConfig<F> {
    fn session(&self, make: MakeSession) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(TlsSession::new(Ok(self.0()?), HandshakeTerms::default(), make)))
    }
}

/// What this process is to say where a reference says nothing.
fn environment() -> Result<LayerOptions, Failure> {
    let said = std::env::var(ENVIRONMENT).unwrap_or_default();
    let at = |failure: Failure| failure.at(format_args!("${ENVIRONMENT}"));
    let options = LayerOptions::parse(&said).map_err(at)?;
    check(&options, &CONNECTING, "who calls").map_err(at)?;
    Ok(options)
}

/// Checks that an address has no option that would mean nothing here: it is more likely a mistake than a
/// wish.
fn check(options: &LayerOptions, known: &[&str], who: &str) -> Result<(), Failure> {
    match options.iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => {
            Err(wrong(&format!("the option `{name}=` says nothing of {who}: {} do", known.join(", "))))
        }
        None => Ok(()),
    }
}

#[cold]
fn wrong(what: &str) -> Failure {
    Failure::bad_reference(what).with_hint(
        "to call: ?ca=FILE, ?identity=NAME, ?insecure=on, ?cert=FILE&key=FILE; to listen: ?cert=FILE&key=FILE, ?clients=FILE",
    )
}
