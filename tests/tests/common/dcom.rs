//! What the tests with other implementations of DCOM share: a network of their own, for port 135; the peers; a referee.

use super::foreign::{Beside, PATIENCE, run, script};
use super::{capture, dcom_pantry, scratch};
use everywire::Node;
use everywire_tests::again::{only, this_program};
use everywire_tests::peers::{cached, here, skip};
use everywire_tests::workshop::once;
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Who may call us.
pub const USER: &str = "cook";
/// Their domain.
pub const DOMAIN: &str = "KITCHEN";
/// What they prove it with.
pub const PASSWORD: &str = "salt & pepper";
/// Who may call Samba: it wants somebody whom the system knows.
pub const SAMBA_USER: &str = "root";
/// The name of Samba's machine, which is the domain of its users.
pub const SAMBA_DOMAIN: &str = "LARDER";

/// Whether this process is in a network of its own, where every port is free. If not, the test is run anew in one, to its end,
/// and this is `false`.
///
/// Peers look for port 135 alone. A network of one's own needs no rights, and has no other test in it.
pub fn alone(test: &str) -> bool {
    const MARK: &str = "EVERYWIRE_TEST_ALONE";
    if std::env::var(MARK).as_deref() == Ok(test) {
        return true;
    }
    if !here(test, &["unshare", "ip"]) {
        return false;
    }
    // SAFETY: it has no preconditions.
    let privileged = unsafe { libc::geteuid() } == 0;
    let unshare = || {
        let mut command = Command::new("unshare");
        command.arg(if privileged { "-n" } else { "-rn" }).stdin(Stdio::null());
        command
    };
    let works = unshare().arg("true").stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        skip(test, "no network of its own; be root, or sysctl kernel.unprivileged_userns_clone=1");
        return false;
    }
    let output = unshare()
        .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
        .arg(this_program().get_program())
        .args(only(test))
        .env(MARK, test)
        .output()
        .expect("unshare runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{out}\n{err}", output.status.signal());
    assert!(out.contains("1 passed"), "{test} did not run: {out}");
    eprint!("{err}");
    false
}

/// A server of the class on port 135, and how many of its objects live.
pub fn serving(options: &str) -> (Node, Arc<AtomicUsize>) {
    let node = listening(options);
    let living = dcom_pantry::serve(&node);
    (node, living)
}

/// The file of those who may call us.
pub fn users(dir: &Path) -> PathBuf {
    let file = dir.join("users");
    fs::write(&file, format!("{DOMAIN}\\{USER}:{PASSWORD}\n")).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("our file");
    file
}

/// A node on port 135.
pub fn listening(options: &str) -> Node {
    let file = users(&scratch(&format!("users-{}", options.len())));
    let node = Node::new();
    let address = format!("dcom://127.0.0.1:135?users={}{options}", file.display());
    node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    node
}

/// The class on port 135, for our own client.
pub fn address(options: &str) -> String {
    address_of(dcom_pantry::CLASS, options)
}

/// Any class on port 135, for our own client.
pub fn address_of(class: &str, options: &str) -> String {
    let password: String = PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect();
    format!("dcom://{DOMAIN};{USER}:{password}@127.0.0.1/{class}{options}")
}

/// impacket does this deed to the server on port 135; or nothing, said loudly.
pub fn impacket(test: &str) -> Option<impl Fn(&str) -> Command> {
    let directory = cached(test, "impacket")?;
    Some(move |deed: &str| {
        let mut command = Command::new(directory.join("bin/python"));
        command.arg(script("dcom_impacket.py")).args([deed, "127.0.0.1", DOMAIN, USER, PASSWORD]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    })
}

/// impacket does this deed to the OPC server of this class on port 135; or nothing, said loudly.
pub fn opc_impacket(test: &str) -> Option<impl Fn(&str, &str) -> Command> {
    let directory = cached(test, "impacket")?;
    Some(move |deed: &str, class: &str| {
        let mut command = Command::new(directory.join("bin/python"));
        command.arg(script("opc_impacket.py")).args([deed, "127.0.0.1", DOMAIN, USER, PASSWORD, class]);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command
    })
}

/// j-Interop does this deed, and answers a challenge in this way (`session` or `ntlmv2`); or nothing, said loudly.
pub fn j_interop(test: &str) -> Option<impl Fn(&str, &str) -> Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let directory = cached(test, "j-interop")?;
    let libraries = format!("{}/lib/*", directory.display());
    let classes = classes(&libraries);
    Some(move |deed: &str, ntlm: &str| {
        let mut command = Command::new("java");
        // It looks for files in its directory, and says all about its machine.
        command.current_dir(scratch("j-interop")).args(["-XX:TieredStopAtLevel=1", "-cp"]);
        command.arg(format!("{}:{libraries}", classes.display()));
        command.args(["dcom_JInterop", deed, "127.0.0.1", DOMAIN, USER, PASSWORD, ntlm]);
        command
    })
}

/// Utgard uses the OPC server of this class on port 135; or nothing, said loudly.
pub fn utgard(test: &str, class: &str) -> Option<Command> {
    if !here(test, &["java", "javac", "mvn"]) {
        return None;
    }
    let directory = cached(test, "utgard")?;
    let libraries = format!("{}/lib/*", directory.display());
    let compiled = compiled("utgard", "opc_Utgard.java", &libraries);
    let mut command = Command::new("java");
    command.current_dir(scratch("utgard")).args(["-XX:TieredStopAtLevel=1", "-cp"]);
    command.arg(format!("{}:{libraries}", compiled.display()));
    command.args(["opc_Utgard", "127.0.0.1", DOMAIN, USER, PASSWORD, class]);
    Some(command)
}

/// The program for j-Interop.
fn classes(libraries: &str) -> &'static Path {
    static COMPILED: OnceLock<PathBuf> = OnceLock::new();
    COMPILED.get_or_init(|| compiled("j-interop", "dcom_JInterop.java", libraries))
}

/// A program in Java, compiled once for all tests.
fn compiled(name: &str, program: &str, libraries: &str) -> PathBuf {
    let source = script(program);
    once(env!("CARGO_TARGET_TMPDIR"), name, std::slice::from_ref(&source), |fresh| {
        fs::create_dir_all(fresh).expect("a directory");
        run(Command::new("javac")
            .args(["-nowarn", "-encoding", "UTF-8", "-cp", libraries, "-d"])
            .arg(fresh)
            .arg(&source));
    })
}

/// node-dcom calls the server on port 135; or nothing, said loudly.
pub fn node_dcom(test: &str) -> Option<Command> {
    if !here(test, &["node", "npm"]) {
        return None;
    }
    let directory = cached(test, "node-dcom")?;
    let mut command = Command::new("node");
    // Its NTLM is made of ciphers that are no longer on by default.
    command.arg("--openssl-legacy-provider").arg(script("dcom_node.js"));
    command.args(["127.0.0.1", DOMAIN, USER, PASSWORD]).env("NODE_PATH", directory.join("node_modules"));
    Some(command)
}

/// node-opc-da uses the OPC server of this class on port 135; or nothing, said loudly.
pub fn node_opc_da(test: &str, class: &str) -> Option<Command> {
    if !here(test, &["node", "npm"]) {
        return None;
    }
    let directory = cached(test, "node-opc-da")?;
    let mut command = Command::new("node");
    // Its NTLM is made of ciphers that are no longer on by default.
    command.arg("--openssl-legacy-provider").arg(script("opc_node.js"));
    command.args(["127.0.0.1", DOMAIN, USER, PASSWORD, class]);
    command.env("NODE_PATH", directory.join("node_modules"));
    Some(command)
}

/// Samba's programs, which are unpacked and not installed.
pub struct Samba {
    unpacked: PathBuf,
    dir: PathBuf,
}

impl Samba {
    /// Where they are; or nothing, said loudly.
    pub fn find(test: &str) -> Option<Self> {
        if !here(test, &["samba-libraries"]) {
            return None;
        }
        let unpacked = cached(test, "samba")?;
        let dir = scratch("samba");
        let settings: String =
            ["lock directory", "state directory", "cache directory", "private dir", "pid directory"]
                .iter()
                .map(|name| format!("{name} = {}\n", dir.display()))
                .collect();
        let settings = format!(
            "[global]\nworkgroup = {DOMAIN}\nnetbios name = {SAMBA_DOMAIN}\nserver role = standalone\n\
             rpc start on demand helpers = no\nallow dcerpc auth level connect = yes\nload printers = no\n\
             interfaces = lo\nbind interfaces only = yes\npassdb backend = smbpasswd:{0}/passwords\n\
             ncalrpc dir = {0}/ncalrpc\nlog file = {0}/log\n{settings}",
            dir.display()
        );
        fs::write(dir.join("smb.conf"), settings).expect("a file");
        Some(Self { unpacked, dir })
    }

    /// One of the programs.
    pub fn program(&self, path: &str) -> Command {
        let mut command = Command::new(self.unpacked.join(path));
        let libraries: Vec<String> = fs::read_dir(self.unpacked.join("usr/lib"))
            .expect("libraries")
            .flat_map(|entry| {
                let path = entry.expect("an entry").path();
                [path.display().to_string(), path.join("samba").display().to_string()]
            })
            .collect();
        command.env("LD_LIBRARY_PATH", libraries.join(":")).arg("-s").arg(self.dir.join("smb.conf"));
        command
    }

    /// Some of its tests, over a binding on port 135, as our user.
    pub fn torture(&self, options: &str, tests: &[&str]) -> Command {
        let mut command = self.program("usr/bin/smbtorture");
        command.arg(format!("ncacn_ip_tcp:127.0.0.1[135{options}]"));
        command.args(["-U", &format!("{USER}%{PASSWORD}"), "-W", DOMAIN]).args(tests);
        command
    }

    /// Its RPC servers on port 135 and others.
    pub fn serve(&self) -> Beside {
        let mut passwords = self.program("usr/bin/pdbedit");
        passwords.args(["-a", "-t", "-u", SAMBA_USER]);
        let twice = format!("{PASSWORD}\n{PASSWORD}\n");
        let said = super::foreign::run_with(&mut passwords, twice.as_bytes());
        assert!(said.success, "{}{}", said.out, said.err);
        let mut server = self.program("usr/libexec/samba/samba-dcerpcd");
        server.arg("-F");
        for helper in ["epmapper", "lsad", "winreg", "classic"] {
            server.arg(self.unpacked.join(format!("usr/libexec/samba/rpcd_{helper}")));
        }
        let beside = Beside::start(&mut server);
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect("127.0.0.1:135").is_err() {
            assert!(Instant::now() < end, "Samba does not listen: {}", beside.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
        beside
    }
}

/// What our side sends to peers: from port 135, and what clients send to other ports.
pub const OURS_TO_PEERS: &str =
    "(tcp.srcport == 135 || (tcp.dstport != 135 && dcerpc.pkt_type in {0, 11, 14, 16, 18, 19}))";
/// What both sides send where both are ours.
pub const OURS: &str = "tcp";

/// Lets tshark judge what our side, told by `ours`, sends meanwhile. With the password it reads what was sealed, too, unless
/// several messages came in one segment.
pub fn judged(test: &str, ours: &str, password: Option<&str>, deeds: impl FnOnce()) {
    if !here(test, &["tcpdump", "tshark"]) {
        return;
    }
    let file = scratch("judged").join("capture");
    let Some(recording) = capture::start(&file) else { return };
    deeds();
    recording.stop();
    let frames = |filter: &str| {
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&file).args(["-Y", filter]);
        if let Some(password) = password {
            tshark.args(["-o", &format!("ntlmssp.nt_password:{password}")]);
        }
        run(tshark.stderr(Stdio::null()))
    };
    assert!(!frames("tcp.srcport == 135 && dcerpc.pkt_type == 2").is_empty(), "nothing was answered");
    let wrong = frames(&format!("{ours} && dcerpc && (_ws.malformed || _ws.expert.severity == error)"));
    assert!(wrong.is_empty(), "tshark does not understand, in {}:\n{wrong}", file.display());
}
