//! A COM server under Wine that is called over TCP, built from our own sources by a cross compiler.

use crate::common::foreign::{Beside, contract, run, script};
use crate::common::scratch;
use everywire_tests::peers::here;
use std::fs;
use std::os::unix::fs::symlink;
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
const INSTALL: &str = "apt-get install --no-install-recommends wine wine64 libwine-dev mingw-w64-tools g++-mingw-w64-x86-64-posix";
/// Where Wine's contracts are.
const CONTRACTS: &str = "-I/usr/include/wine/wine/windows";
/// Where its libraries may be.
const LIBRARIES: [&str; 2] =
    ["/usr/lib/x86_64-linux-gnu/wine/x86_64-windows", "/usr/lib/wine/x86_64-windows"];

/// The running server; it and its Wine end with this value.
pub struct Cupboard {
    server: Option<Beside>,
    prefix: PathBuf,
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
        let libraries = LIBRARIES.iter().map(Path::new).find(|path| path.join("oleaut32.dll").exists());
        if !here(test, &["wine", "wineserver", WIDL, CC, CXX], INSTALL) {
            return None;
        }
        let Some(libraries) = libraries else {
            assert!(!here(test, &["(Wine's libraries)"], INSTALL));
            return None;
        };
        let program = built(libraries);
        let prefix = prefix(test, libraries);
        let server = Beside::start(wine(&prefix).arg(program));
        let told = |name: &str| {
            let line = server.hear(name).pop().expect("a line");
            line.trim().split_once(' ').expect("a value").1.to_owned()
        };
        let port = told("port ").parse().expect("a number");
        let moniker = format!("objref:{}:", told("objref "));
        let reference = format!("{moniker}?dialect=wine&at=127.0.0.1:{port}");
        Some(Self { server: Some(server), prefix, reference, moniker, port })
    }

    /// Ends the server at once.
    pub fn crash(&mut self) {
        if let Some(server) = self.server.take() {
            server.kill();
        }
    }
}

impl Drop for Cupboard {
    fn drop(&mut self) {
        drop(self.server.take());
        // The rest of this Wine, and of no other.
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

/// A drive and a registry with what COM needs. Made by Wine itself it would have a copy of every library, and take ten times
/// as long.
fn prefix(test: &str, libraries: &Path) -> PathBuf {
    let prefix = scratch(&format!("wine-{test}"));
    for dir in ["dosdevices", "drive_c/windows"] {
        fs::create_dir_all(prefix.join(dir)).expect("a directory");
    }
    symlink("../drive_c", prefix.join("dosdevices/c:")).expect("a drive");
    symlink("/", prefix.join("dosdevices/z:")).expect("a drive");
    symlink(libraries, prefix.join("drive_c/windows/system32")).expect("libraries");
    fs::write(prefix.join(".update-timestamp"), "disable\n").expect("a file");
    run(wine(&prefix).args(["regsvr32", "/s", "ole32.dll", "oleaut32.dll"]));
    prefix
}

/// The server, built once for these sources.
fn built(libraries: &Path) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build(libraries)).clone()
}

fn build(libraries: &Path) -> PathBuf {
    let sources = ["server.cc", "proxies.h"].map(|name| script("wine").join(name));
    let contracts = ["pantry", "cupboard"];
    let all = || sources.iter().cloned().chain(contracts.map(|name| contract(&format!("{name}.midl"))));
    let age = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wine");
    let program = dir.join("server.exe");
    if all().all(|source| age(&program) > age(&source)) {
        return program;
    }
    // Several test programs may build at once.
    let fresh = dir.with_extension(std::process::id().to_string());
    fs::create_dir_all(&fresh).expect("a directory");
    for source in all() {
        let text = fs::read_to_string(&source).expect("a source");
        // The interface compiler knows automation's arrays by the name of their type only.
        let text = text.replace("SAFEARRAY(BSTR)", "LPSAFEARRAY").replace("SAFEARRAY(long)", "LPSAFEARRAY");
        fs::write(fresh.join(source.file_name().expect("a name")), text).expect("a file");
    }
    let tool = |program: &str, arguments: &[&str]| {
        run(Command::new(program).args(arguments).current_dir(&fresh));
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
    // The program last: it says that the rest is there.
    fs::create_dir_all(&dir).expect("a directory");
    for name in ["pantry.tlb", "cupboard.tlb", "server.exe"] {
        fs::rename(fresh.join(name), dir.join(name)).expect("a file");
    }
    fs::remove_dir_all(&fresh).expect("a directory");
    program
}
