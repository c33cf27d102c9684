//! What both sides of TLS are set up with, made once and shared by their connections.

use crate::channel::told;
use crate::files;
use crate::verify::{AnyCertificate, PinnedVerifier};
use everywire_model::Failure;
use rustls::client::{VerifierBuilderError, WantsClientCert, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};
use std::path::Path;
use std::sync::Arc;

/// A client's side: whom it believes, and its own certificate, if it has one.
#[derive(Clone)]
pub struct ClientSettings {
    /// As the library has it, shared by connections.
    pub(super) config: Arc<ClientConfig>,
    /// Whether nobody's certificate is checked.
    insecure: bool,
    /// What it was made of.
    described: String,
}

/// A certificate and its key, as files.
type Pair<'p> = Option<(&'p Path, &'p Path)>;

impl ClientSettings {
    /// Believes the authorities of this file, and servers whose certificates stand in it; without one, those that the system
    /// trusts. `own` is this side's certificate and key.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has not in it what it should have.
    pub fn new(ca: Option<&Path>, own: Pair<'_>) -> Result<Self, Failure> {
        let check = |roots| WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let config = client(own, |builder| {
            Ok(match ca {
                None => builder.with_root_certificates(files::system()?),
                Some(path) => builder.dangerous().with_custom_certificate_verifier(known(path, check)?),
            })
        })?;
        Ok(Self { config, insecure: false, described: format!("{ca:?} {own:?}") })
    }

    /// Believes anybody: whoever is on the way may read and change everything.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has not in it what it should have.
    pub fn insecure(own: Pair<'_>) -> Result<Self, Failure> {
        let anybody = Arc::new(AnyCertificate { provider: provider() });
        let config =
            client(own, |builder| Ok(builder.dangerous().with_custom_certificate_verifier(anybody)))?;
        Ok(Self { config, insecure: true, described: format!("insecure {own:?}") })
    }

    /// Checks that a server can be asked for by this name.
    ///
    /// # Errors
    ///
    /// No certificate could have it.
    pub fn check_name(&self, name: &str) -> Result<(), Failure> {
        ServerName::try_from(name).map(|_| ()).map_err(|_| {
            let what = format!("`{name}` is no name that a certificate could have");
            Failure::bad_reference(what).with_hint("say by identity= which name the server's certificate has")
        })
    }

    /// Whether it believes anybody.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// What it was made of, to tell connections apart.
    pub fn describe(&self) -> &str {
        &self.described
    }
}

/// A client's side that believes whom `believes` says, with its own certificate, if it has one.
fn client(
    own: Pair<'_>,
    believes: impl FnOnce(
        ConfigBuilder<ClientConfig, WantsVerifier>,
    ) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Failure>,
) -> Result<Arc<ClientConfig>, Failure> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    let builder = believes(builder)?;
    Ok(Arc::new(match own {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => builder
            .with_client_auth_cert(files::certificates(cert)?, files::key(key)?)
            .map_err(|error| unusable(&error).at(cert.display()))?,
    }))
}

/// A server's side: its certificate, and whether clients need one.
#[derive(Clone)]
pub struct ServerSettings {
    /// As the library has it, shared by connections.
    pub(super) config: Arc<ServerConfig>,
    /// Whether clients have to show a certificate.
    asks_clients: bool,
}

impl ServerSettings {
    /// Shows the certificates of the file `cert`, the own one first, whose key is in the file `key`. With `clients` only those are let
    /// in whose certificate stands in that file, or for whom an authority in it vouches.
    ///
    /// # Errors
    ///
    /// A file cannot be read, or has not in it what it should have; the key is not the certificate's.
    pub fn new(cert: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, Failure> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let check = |roots| WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                builder.with_client_cert_verifier(known(path, check)?)
            }
        };
        let config = builder
            .with_single_cert(files::certificates(cert)?, files::key(key)?)
            .map_err(|error| unusable(&error).at(cert.display()))?;
        Ok(Self { config: Arc::new(config), asks_clients: clients.is_some() })
    }

    /// Whether clients have to prove who they are.
    pub fn asks_clients(&self) -> bool {
        self.asks_clients
    }
}

/// The library's own algorithms, whatever else is installed in the process.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Whom a file vouches for: its certificates themselves, and those that they sign.
fn known<V: ?Sized>(
    path: &Path,
    check: impl FnOnce(Arc<RootCertStore>) -> Result<Arc<V>, VerifierBuilderError>,
) -> Result<Arc<PinnedVerifier<V>>, Failure> {
    let by_sight = files::certificates(path)?;
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(by_sight.clone());
    if taken == 0 {
        return Err(wrong(path, "no certificate of the file can be used"));
    }
    let authorities = check(Arc::new(roots)).map_err(|error| wrong(path, &error.to_string()))?;
    Ok(Arc::new(PinnedVerifier { by_sight, authorities, provider: provider() }))
}

#[cold]
fn wrong(path: &Path, what: &str) -> Failure {
    Failure::bad_argument(what).at(path.display())
}

#[cold]
fn unusable(error: &rustls::Error) -> Failure {
    let why = told(error);
    let what = format!("the certificate and its key cannot be used: {why}");
    Failure::bad_argument(what)
}
