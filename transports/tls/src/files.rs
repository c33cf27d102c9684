//! Certificates and keys in PEM files, and where systems keep the authorities that they trust.

use everywire_auth::private::{self, ReadError};
use everywire_model::{Failure, Initiator, Kind};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use zeroize::Zeroizing;

/// Octets that a file of certificates may have: the bundles of systems have a quarter of it.
const MAX_CERTIFICATES: u64 = 4 << 20;

/// Octets that a file with a key may have.
const MAX_KEY: u64 = 64 << 10;

/// Where the name of the bundle stands, as for OpenSSL.
const BUNDLE: &str = "SSL_CERT_FILE";

/// Where systems keep it.
const BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/share/ssl/certs/ca-bundle.crt",
];

/// The certificates in a file, in its order.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |what: String| Failure::bad_argument(what).at(path.display());
    let unreadable = |error: std::io::Error| wrong(format!("the certificates cannot be read: {error}"));
    let size = std::fs::metadata(path).map_err(unreadable)?;
    if size.len() > MAX_CERTIFICATES {
        let what = "octets in a file of certificates";
        return Err(Failure::over_limit(Initiator::User, what, size.len(), MAX_CERTIFICATES));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(wrong("the file has no certificate in PEM notation".to_owned())),
        Err(error) => Err(wrong(format!("the file is no PEM: {error}"))),
    }
}

/// The private key in a file that nobody else can read.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    let failure = |kind, what: &str| Failure::new(kind, Initiator::User, what).at(path.display());
    let bytes = match private::read(path, MAX_KEY) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(ReadError::Missing) => {
            return Err(failure(Kind::BadArgument, "the file of the key does not exist"));
        }
        Err(ReadError::Untrusted(why)) => {
            return Err(failure(Kind::Refused, &format!("the file of the key {why}"))
                .with_hint("private keys are read from a regular file of this user with mode 0600 only"));
        }
        Err(ReadError::TooLarge) => {
            return Err(failure(Kind::LimitExceeded, "the file of the key has more than 64 KiB"));
        }
        Err(ReadError::Io(error)) => {
            return Err(failure(Kind::Refused, &format!("the file of the key cannot be read: {error}")));
        }
    };
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| {
        failure(Kind::BadArgument, "the file has no private key in PEM notation")
            .with_hint("keys that a password protects are not read: `openssl pkey` writes one without")
    })
}

/// The authorities that the system trusts, read once.
pub(super) fn system() -> Result<Arc<RootCertStore>, Failure> {
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, Failure>> = OnceLock::new();
    ROOTS.get_or_init(read_system).clone()
}

/// Reads the bundle that the environment names, or the first that there is where systems keep it.
fn read_system() -> Result<Arc<RootCertStore>, Failure> {
    let named = std::env::var_os(BUNDLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    let usual = || BUNDLES.into_iter().map(PathBuf::from).find(|path| path.exists());
    let path = named.or_else(usual).ok_or_else(|| {
        let what = "this system has no bundle of trusted certificates where such files usually are";
        Failure::new(Kind::BadArgument, Initiator::Here, what)
            .with_hint("install ca-certificates, or name the file in $SSL_CERT_FILE or by ca=FILE")
    })?;
    let mut roots = RootCertStore::empty();
    // Some bundles have certificates of forms that nobody uses anymore.
    let (taken, _) = roots.add_parsable_certificates(certificates(&path)?);
    if taken == 0 {
        let what = "no certificate of the system's bundle can be used";
        return Err(Failure::new(Kind::BadArgument, Initiator::Here, what).at(path.display()));
    }
    Ok(Arc::new(roots))
}
