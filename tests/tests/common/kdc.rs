//! A realm of Kerberos of one's own: a key distribution centre of MIT's, on a port and in a directory of its own.

use super::foreign::{PATIENCE, run, run_with, until};
use super::scratch;
use everywire_tests::again::{only, this_program};
use everywire_tests::peers::{find, here};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// The realm.
pub const REALM: &str = "KITCHEN.TEST";
/// Its user.
pub const USER: &str = "cook";
/// The user's password.
pub const PASSWORD: &str = "salt & pepper";
/// The service that tests are.
pub const SERVICE: &str = "host/localhost";
/// A service that the realm knows too, whose keys are elsewhere.
pub const OTHER_SERVICE: &str = "host/other";

/// A realm; its centre ends with this value.
pub struct Realm {
    dir: PathBuf,
    centre: Option<Child>,
}

/// The realm that this process was started in; or nothing, after the test was run to its end in one, in a process of its own,
/// or loudly skipped. Processes know their realm by their environment alone.
pub fn realm(test: &str) -> Option<Realm> {
    const MARK: &str = "EVERYWIRE_TEST_REALM";
    if let Some(dir) = std::env::var_os(MARK) {
        return Some(Realm { dir: dir.into(), centre: None });
    }
    if !here(test, &["kerberos"]) {
        return None;
    }
    let realm = Realm::start(test);
    let mut again = realm.command(this_program().get_program());
    again.args(only(test)).env(MARK, &realm.dir);
    let output = again.output().expect("it starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}\n{err}\n{}", output.status, realm.said());
    assert!(out.contains("1 passed"), "{test} did not run: {out}");
    eprint!("{err}");
    None
}

impl Realm {
    fn start(test: &str) -> Self {
        let dir = scratch(&format!("realm-{test}"));
        let mut end = None;
        loop {
            // An address of this machine that is this realm's alone: centres share ports without a word.
            let host = own_address();
            let port =
                TcpListener::bind((host, 0)).and_then(|bound| bound.local_addr()).expect("a port").port();
            let place = SocketAddr::from((host, port));
            let mut realm = Self { dir: dir.clone(), centre: None };
            realm.configure(place);
            if !dir.join("database").exists() {
                realm.fill();
            }
            // Only what the centre takes: to make its database takes long where the disk is busy.
            let end = *end.get_or_insert_with(|| Instant::now() + PATIENCE);
            let log = || fs::File::options().create(true).append(true).open(dir.join("said")).expect("a log");
            let centre = realm
                .command(find("krb5kdc").expect("it is here"))
                .arg("-n")
                .stdin(Stdio::null())
                .stdout(log())
                .stderr(log())
                .spawn();
            let mut centre = centre.expect("it starts");
            loop {
                if let Some(status) = centre.try_wait().expect("it can be asked") {
                    assert!(Instant::now() < end, "the centre ends with {status}: {}", realm.said());
                    break;
                }
                if TcpStream::connect(place).is_ok() {
                    realm.centre = Some(centre);
                    return realm;
                }
                if Instant::now() > end {
                    // Ours, and it hangs.
                    let _ = centre.kill();
                    panic!("the centre does not answer: {}", realm.said());
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    fn configure(&self, place: SocketAddr) {
        let dir = self.dir.display();
        // Names stay as they are, and nobody beyond this machine is asked.
        let client = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n \
             dns_canonicalize_hostname = false\n rdns = false\n\
             [realms]\n {REALM} = {{\n  kdc = {place}\n }}\n[domain_realm]\n localhost = {REALM}\n"
        );
        fs::write(self.dir.join("krb5.conf"), client).expect("a file");
        let centre = format!(
            "[kdcdefaults]\n kdc_listen = {place}\n kdc_tcp_listen = {place}\n\
             [realms]\n {REALM} = {{\n  database_name = {dir}/database\n  key_stash_file = {dir}/stash\n  \
             acl_file = {dir}/acl\n  max_life = 10h\n }}\n[logging]\n kdc = FILE:{dir}/kdc.log\n"
        );
        fs::write(self.dir.join("kdc.conf"), centre).expect("a file");
    }

    fn fill(&self) {
        run(self.command(find("kdb5_util").expect("it is here")).args(["create", "-s", "-P", "master"]));
        let orders = format!(
            "addprinc -pw \"{PASSWORD}\" {USER}\naddprinc -randkey {SERVICE}\naddprinc -randkey {OTHER_SERVICE}\n\
             ktadd -k {0}/keytab {SERVICE}\nktadd -k {0}/other.keytab {OTHER_SERVICE}\n",
            self.dir.display()
        );
        let said = run_with(&mut self.command(find("kadmin.local").expect("it is here")), orders.as_bytes());
        assert!(self.keytab().exists() && self.other_keytab().exists(), "{}{}", said.out, said.err);
    }

    /// A program in the realm; its tickets are in the realm's cache.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        self.move_in(&mut command);
        command
    }

    /// Has a program be in the realm.
    pub fn move_in(&self, command: &mut Command) {
        command
            .env("KRB5_CONFIG", self.dir.join("krb5.conf"))
            .env("KRB5_KDC_PROFILE", self.dir.join("kdc.conf"))
            .env("KRB5CCNAME", format!("FILE:{}", self.tickets().display()))
            .env("KRB5RCACHENAME", format!("dfl:{}/replays", self.dir.display()))
            .env("LC_ALL", "C")
            .env_remove("KRB5_KTNAME")
            .env_remove("KRB5_CLIENT_KTNAME");
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The keys of [`SERVICE`].
    pub fn keytab(&self) -> PathBuf {
        self.dir.join("keytab")
    }

    /// The keys of [`OTHER_SERVICE`].
    pub fn other_keytab(&self) -> PathBuf {
        self.dir.join("other.keytab")
    }

    /// The cache of tickets.
    pub fn tickets(&self) -> PathBuf {
        self.dir.join("tickets")
    }

    /// Gets the user a ticket, for this long (`1s`, `10h`).
    pub fn log_in(&self, life: &str) {
        let mut kinit = self.command("kinit");
        let said = run_with(kinit.args(["-l", life, USER]), format!("{PASSWORD}\n").as_bytes());
        assert!(said.success, "{}{}\n{}", said.out, said.err, self.said());
    }

    /// Gets the user a ticket, and waits until it is too old.
    pub fn let_ticket_expire(&self) {
        self.log_in("1s");
        until("the ticket is too old", || !run_with(self.command("klist").arg("-s"), b"").success);
        // Some of the library's functions take it for one more second.
        std::thread::sleep(Duration::from_millis(1100));
    }

    /// Gets a ticket for a service and puts it into the cache.
    pub fn get_ticket(&self, service: &str) {
        run(self.command("kvno").arg(service));
    }

    /// A file of users of NTLM: the one user, with this password.
    pub fn users(&self, password: &str) -> PathBuf {
        let file = self.dir.join("users");
        fs::write(&file, format!("{USER}:{password}\n")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our file");
        file
    }

    /// What the centre says of itself.
    fn said(&self) -> String {
        let read = |name: &str| fs::read_to_string(self.dir.join(name)).unwrap_or_default();
        read("said") + &read("kdc.log")
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        if let Some(centre) = &mut self.centre {
            // It has nothing to save.
            let _ = centre.kill();
            let _ = centre.wait();
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// An address of this machine that no other realm has: by the number of this process, and how many it has had by now.
fn own_address() -> Ipv4Addr {
    static COUNT: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, high & 0x7f, low, COUNT.fetch_add(1, Ordering::Relaxed))
}
