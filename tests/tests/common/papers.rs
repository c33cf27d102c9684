//! A certificate authority, and a server's certificate by it, for as long as this process runs.

use super::foreign::run;
use super::scratch;
use everywire_tests::peers::here;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Who may call, with what password: the only line of the file of users.
pub const USER: &str = "ada";
/// See [`USER`].
pub const PASSWORD: &str = "Difference-1";

/// Files of keys and certificates.
#[derive(Debug)]
pub struct Papers(PathBuf);

impl Papers {
    /// The same ones for all tests of a program; or nothing, said loudly.
    pub fn get(test: &str) -> Option<&'static Self> {
        static MADE: OnceLock<Papers> = OnceLock::new();
        here(test, &["openssl"]).then(|| MADE.get_or_init(Self::make))
    }

    fn make() -> Self {
        let papers = Self(scratch("papers"));
        papers.openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=Authority -keyout ca.key -out ca.pem -addext keyUsage=critical,keyCertSign,cRLSign");
        papers.key_for_mono("server.key");
        papers.openssl("req -new -key server.key -subj /CN=localhost -out server.csr");
        fs::write(
            papers.path("server.ext"),
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n\
             authorityKeyIdentifier=keyid\nsubjectKeyIdentifier=hash\n",
        )
        .expect("a file");
        papers.openssl("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem");
        let users = papers.path("users");
        fs::write(&users, format!("{USER}:{PASSWORD}\n")).expect("a file");
        for secret in ["server.key", "users"] {
            fs::set_permissions(papers.path(secret), fs::Permissions::from_mode(0o600)).expect("it is ours");
        }
        papers
    }

    /// `ca.pem`, `server.pem`, `server.key`, `users`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// A certificate by the authority for somebody who connects: `NAME.pem`, `NAME.key`.
    pub fn certify(&self, name: &str) {
        self.openssl(&format!(
            "req -newkey rsa:2048 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ));
        let extensions = format!("subjectAltName=DNS:{name}.test\nextendedKeyUsage=clientAuth\n");
        fs::write(self.path(&format!("{name}.ext")), extensions).expect("a file");
        self.openssl(&format!("x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile {name}.ext -out {name}.pem"));
    }

    /// The options of an address to listen at with TLS.
    pub fn listening(&self) -> String {
        format!("cert={}&key={}", self.path("server.pem").display(), self.path("server.key").display())
    }

    /// Puts them where Mono's HTTP listener of this port looks for them, if this directory is where its settings are.
    pub fn for_mono(&self, port: u16) {
        let directory = self.path(".mono/httplistener");
        fs::create_dir_all(&directory).expect("a directory");
        let own = |kind: &str| directory.join(format!("{port}.{kind}"));
        self.openssl(&format!("x509 -in server.pem -outform DER -out {}", own("cer").display()));
        self.openssl(&format!("rsa -in server.key -outform PVK -pvk-none -out {}", own("pvk").display()));
    }

    /// Makes a key that Mono can serve with: an RSA key, and none of whose numbers is a byte shorter than its place, since Mono
    /// resets every connection with such a one (one key in about sixty).
    fn key_for_mono(&self, name: &str) {
        for _ in 0..100 {
            self.openssl(&format!("genrsa -out {name} 2048"));
            let shown = self.openssl(&format!("rsa -in {name} -noout -text"));
            // Modulus and private exponent; primes, exponents, coefficient.
            if numbers(&shown) == [256, 256, 128, 128, 128, 128, 128] {
                return;
            }
        }
        panic!("a hundred keys, and each has a short number");
    }

    /// Runs OpenSSL's program among them, and gives what it prints.
    pub fn openssl(&self, arguments: &str) -> String {
        run(Command::new("openssl").args(arguments.split(' ')).current_dir(&self.0))
    }
}

/// The lengths in bytes of the numbers of an RSA key as OpenSSL shows it: each in lines of its own that are indented, with a zero
/// before it if its first bit is set.
fn numbers(shown: &str) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut inside = false;
    for line in shown.lines() {
        let bytes = line.split(':').filter(|byte| !byte.trim().is_empty());
        match line.strip_prefix("    ") {
            Some(first) if !inside => lengths.push(bytes.count() - usize::from(first.starts_with("00"))),
            Some(_) => *lengths.last_mut().expect("the first line") += bytes.count(),
            None => {}
        }
        inside = line.starts_with("    ");
    }
    lengths
}
