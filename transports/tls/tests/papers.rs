//! Certificates and keys for tests, made by OpenSSL in a folder of their own.

use everywire_tls::{ClientSettings, ServerSettings};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A certificate authority, a server's and a client's certificate by it, and a certificate that nobody signed.
pub(crate) struct Papers(PathBuf);

impl Papers {
    pub(crate) fn new() -> Self {
        use std::os::unix::fs::DirBuilderExt;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("everywire-tls-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        // Left over from a process with the same number that was killed: it is nobody's any more.
        let _ = std::fs::remove_dir_all(&path);
        std::fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        let papers = Self(path);
        papers.run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=Authority -keyout ca.key -out ca.pem");
        for (name, alternative) in [("server", "DNS:localhost,IP:127.0.0.1"), ("client", "DNS:client.test")] {
            papers.run(&format!("req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"));
            std::fs::write(papers.path(&format!("{name}.ext")), format!("subjectAltName={alternative}\n"))
                .unwrap();
            papers.run(&format!("x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {name}.ext -out {name}.pem"));
        }
        papers.run("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout own.key -out own.pem");
        for key in ["server.key", "client.key", "own.key"] {
            chmod(&papers.path(key), 0o600);
        }
        papers
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    fn run(&self, arguments: &str) {
        let mut openssl = Command::new("openssl");
        openssl.args(arguments.split(' ')).current_dir(&self.0).stdin(Stdio::null());
        let output = openssl.output().expect("openssl is here");
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    pub(crate) fn client(&self, ca: &str) -> ClientSettings {
        ClientSettings::new(Some(&self.path(ca)), None).unwrap()
    }

    pub(crate) fn server(&self, name: &str) -> ServerSettings {
        ServerSettings::new(&self.path(&format!("{name}.pem")), &self.path(&format!("{name}.key")), None)
            .unwrap()
    }
}

impl Drop for Papers {
    fn drop(&mut self) {
        // It is under the temporary directory in any case.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
