//! A COM server under Wine that is called over TCP, built from our own sources by a cross compiler.

use crate::common::foreign::{Beside, contract, run, script};
use crate::common::scratch;
use everywire_tests::peers::here;
use everywire_tests::workshop::once;
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The types of the server.
#[allow(unreachable_pub, missing_docs, dead_code, clippy::pedantic)]
pub mod cupboard {
    everywire::include_contract!("cupboard");
}

const WIDL: &str = "x86_64-w64-mingw32-widl";
const CC: &str = "x86_64-w64-mingw32-gcc-posix";
const CXX: &str = "x86_64-w64-mingw32-g++-posix";
/// Where Wine's contracts are.
const CONTRACTS: &str = "-I/usr/include/wine/wine/windows";
/// Where its libraries may be.
const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/wine/x86_64-windows", "/usr/lib/wine/x86_64-windows"];

/// The running server; it ends with this value.
pub struct Cupboard {
    server: Option<Beside>,
    _wine: Wine,
    /// An object with ICupboard, to be called.
    pub reference: String,
    /// The same without its options.
    pub moniker: String,
    /// Where the server listens.
    pub port: u16,
}

impl Cupboard {
    /// The server in a Wine of its own; or nothing, said loudly.
    pub fn start(test: &str) -> Option<Self> {
        let wine = Wine::find(test)?;
        let server = Beside::start(&mut wine.run("server.exe"));
        let told = |name: &str| {
            let line = server.hear(name).pop().expect("a line");
            line.trim().split_once(' ').expect("a value").1.to_owned()
        };
        let port = told("port ").parse().expect("a number");
        let moniker = format!("objref:{}:", told("objref "));
        let reference = format!("{moniker}?dialect=wine&at=127.0.0.1:{port}");
        Some(Self { server: Some(server), _wine: wine, reference, moniker, port })
    }

    /// Ends the server at once.
    pub fn crash(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }
}

/// Runs a test with a Wine, and again if Wine slept through a message. While the disk is busy Wine 8 now and then is not woken by
/// what arrives at a socket it waits for: the kernel has acknowledged the request, and Wine reads it when more comes.
/// Whoever hangs for another reason hangs each time.
pub fn awake(test: impl Fn()) {
    for _ in 1..ATTEMPTS {
        let Err(panic) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        let said = panic.downcast_ref::<String>().map_or("", String::as_str);
        if !["no reply came before the deadline", " hangs: ", "in vain: they die"]
            .iter()
            .any(|part| said.contains(part))
        {
            resume_unwind(panic);
        }
        eprintln!("AGAIN: Wine did not answer");
    }
    test();
}

/// How often in a row Wine may sleep.
const ATTEMPTS: usize = 3;

/// A Wine of a test's own, and programs for it.
pub struct Wine {
    prefix: PathBuf,
    programs: PathBuf,
}

impl Wine {
    /// Makes one; or nothing, said loudly.
    pub fn find(test: &str) -> Option<Self> {
        if !here(test, &["wine", "wine-contracts", "mingw"]) {
            return None;
        }
        let libraries = LIBRARIES.iter().map(Path::new).find(|path| path.join("oleaut32.dll").exists());
        let libraries = libraries.expect("Wine's libraries are where the list of peers says");
        let programs = built(libraries);
        Some(Self { prefix: prefix(test, libraries), programs })
    }

    /// One of our programs.
    pub fn run(&self, program: &str) -> Command {
        let mut command = wine(&self.prefix);
        command.arg(self.programs.join(program));
        command
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // What runs in it, and in no other.
        let _ = Command::new("wineserver").arg("-k").env("WINEPREFIX", &self.prefix).status();
        let _ = fs::remove_dir_all(&self.prefix);
    }
}

fn wine(prefix: &Path) -> Command {
    let mut command = Command::new("wine");
    command.env("WINEPREFIX", prefix).env("WINEDEBUG", "-all");
    command.env("WINEDLLOVERRIDES", "mscoree,mshtml=").env_remove("DISPLAY");
    command
}

/// A drive and a registry with what COM needs: Wine starts once to make them, and each test has a copy. Made by Wine itself they
/// would have a copy of every library, and take ten times as long.
fn prefix(test: &str, libraries: &Path) -> PathBuf {
    let first = once(env!("CARGO_TARGET_TMPDIR"), "wine-prefix", &[script("wine/server.cc")], |fresh| {
        for dir in ["dosdevices", "drive_c/windows"] {
            fs::create_dir_all(fresh.join(dir)).expect("a directory");
        }
        symlink("../drive_c", fresh.join("dosdevices/c:")).expect("a drive");
        symlink("/", fresh.join("dosdevices/z:")).expect("a drive");
        symlink(libraries, fresh.join("drive_c/windows/system32")).expect("libraries");
        fs::write(fresh.join(".update-timestamp"), "disable\n").expect("a file");
        run(wine(fresh).args(["regsvr32", "/s", "ole32.dll", "oleaut32.dll"]));
        // The registry is written when its server ends, as it may have done by now.
        for word in ["-k", "-w"] {
            let _ = Command::new("wineserver").arg(word).env("WINEPREFIX", fresh).status();
        }
    });
    let prefix = scratch(&format!("wine-{test}"));
    run(Command::new("cp").arg("-a").arg(first.join(".")).arg(&prefix));
    prefix
}

/// Where the programs are, built once for these sources.
fn built(libraries: &Path) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(libraries)).clone()
}

fn build(libraries: &Path) -> PathBuf {
    let sources = ["server.cc", "proxies.h", "caller.c"].map(|name| script("wine").join(name));
    let used = ["pantry", "cupboard", "torture"].map(|name| contract(&format!("{name}.midl")));
    let all: Vec<PathBuf> = sources.iter().chain(&used).cloned().collect();
    once(env!("CARGO_TARGET_TMPDIR"), "wine", &all, |fresh| programs(fresh, libraries, &all))
}

/// Builds the programs in this directory, which is new.
fn programs(fresh: &Path, libraries: &Path, sources: &[PathBuf]) {
    let contracts = ["pantry", "cupboard"];
    fs::create_dir_all(fresh).expect("a directory");
    for source in sources {
        let text = fs::read_to_string(source).expect("a source");
        // The interface compiler knows automation's arrays by the name of their type only.
        let text = text.replace("SAFEARRAY(BSTR)", "LPSAFEARRAY").replace("SAFEARRAY(long)", "LPSAFEARRAY");
        fs::write(fresh.join(source.file_name().expect("a name")), text).expect("a file");
    }
    let tool = |program: &str, arguments: &[&str]| {
        run(Command::new(program).args(arguments).current_dir(fresh));
    };
    let imports = format!("-L{}", libraries.display());
    for name in contracts {
        for (kind, out) in [("-h", ".midl.h"), ("-p", "_p.c"), ("-u", "_i.c"), ("-t", ".tlb")] {
            let (source, out) = (format!("{name}.midl"), format!("{name}{out}"));
            tool(WIDL, &[CONTRACTS, &imports, "--win64", "-Oicf", kind, "-o", &out, &source]);
        }
    }
    tool(WIDL, &["--win64", "--dlldata-only", "-o", "dlldata.c", "pantry", "cupboard"]);
    let generated = ["pantry_p.c", "pantry_i.c", "cupboard_p.c", "cupboard_i.c", "dlldata.c"];
    let flags =
        ["-O1", "-I.", "-D_WIN32_WINNT=0x600", "-DUSE_COMPILER_EXCEPTIONS", "-include", "proxies.h", "-c"];
    tool(CC, &[&flags[..], &generated].concat());
    let objects = generated.map(|name| name.replace(".c", ".o"));
    let mut arguments =
        vec!["-std=c++17", "-Wall", "-Wextra", "-O1", "-I.", "-static", "-o", "server.exe", "server.cc"];
    arguments.extend(objects.iter().map(String::as_str));
    arguments.extend(["-lole32", "-loleaut32", "-lrpcrt4", "-luuid", "-lws2_32"]);
    tool(CXX, &arguments);
    caller(fresh, &tool);
}

/// Builds the caller of procedures, in this directory.
fn caller(dir: &Path, tool: &impl Fn(&str, &[&str])) {
    let text = fs::read_to_string(dir.join("torture.midl")).expect("a contract");
    // The interface compiler wants to know where the binding is; the other interfaces have more than it knows.
    let (_, echo) = text.split_once("// Samba's own").expect("the last interface");
    let echo = format!("// Samba's own{echo}");
    let echo = echo.replacen(
        "pointer_default(unique)",
        "pointer_default(unique), implicit_handle(handle_t EchoBinding)",
        1,
    );
    fs::write(dir.join("echo.idl"), echo).expect("a file");
    for (kind, out) in [("-h", "echo.h"), ("-c", "echo_c.c")] {
        tool(WIDL, &[CONTRACTS, "--win64", "-Oicf", kind, "-o", out, "echo.idl"]);
    }
    let flags = ["-O1", "-I.", "-D_WIN32_WINNT=0x600", "-DUSE_COMPILER_EXCEPTIONS", "-o", "caller.exe"];
    tool(CC, &[&flags[..], &["caller.c", "echo_c.c", "-lrpcrt4"]].concat());
}
