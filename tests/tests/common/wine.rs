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
        Self::serve(test, "server.exe")
    }

    /// Another server in a Wine of its own, which says of itself what this one does.
    pub fn serve(test: &str, program: &str) -> Option<Self> {
        let wine = Wine::find(test)?;
        let server = Beside::start(&mut wine.run(program));
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
        if !SLEPT.iter().any(|part| said.contains(part)) {
            resume_unwind(panic);
        }
        eprintln!("AGAIN: Wine did not answer");
    }
    test();
}

/// What a test says when Wine slept, whether through a request or through the first message of a connection.
const SLEPT: [&str; 5] = [
    "no reply came before the deadline",
    "did not finish its greeting in time",
    " hangs: ",
    "in vain: they die",
    "in vain: it dies",
];

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
    let sources =
        ["server.cc", "common.h", "proxies.h", "caller.c", "opc.cc"].map(|name| script("wine").join(name));
    let used = ["pantry", "cupboard", "torture"].map(|name| contract(&format!("{name}.midl")));
    let opc = ["opccomn.idl", "opcda.idl"].map(|name| opc_contracts().join(name));
    let all: Vec<PathBuf> = sources.iter().chain(&used).chain(&opc).cloned().collect();
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
    opc_server(fresh, &imports, &tool);
}

/// Where the contracts of OPC are.
fn opc_contracts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../opc/contracts")
}

/// Builds the OPC server, of version 2.05a, in this directory.
fn opc_server(dir: &Path, imports: &str, tool: &impl Fn(&str, &[&str])) {
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("a contract");
    let (common, mut text) = (read("opccomn.idl"), read("opcda.idl").replace("import \"opccomn.idl\";", ""));
    // The enumerators are in Wine's own contracts, and of success with a code the interface compiler does not know.
    let (head, rest) = common.split_once("// Enumerators as they travel").expect("the enumerators");
    let rest = &rest[rest.find("[object, uuid(F31DFDE1").expect("what comes behind them")..];
    // What 3.0 added is left out: the interface compiler writes no structs with VARIANTs in structs.
    for name in ["OPCITEMPROPERTY", "OPCITEMPROPERTIES", "OPCBROWSEELEMENT"] {
        text = without(&text, &format!("typedef struct {name}\n"), &format!("}} {name};\n"));
    }
    text = without(&text, "[object, uuid(39227004", "\n};\n");
    let mut whole = format!("{head}{rest}{text}");
    for code in ["S_FALSE", "OPC_S_UNSUPPORTEDRATE", "OPC_S_INUSE"] {
        whole = whole.replace(&format!("[success({code})] "), "");
    }
    fs::write(dir.join("opc.idl"), whole).expect("a file");
    for (kind, out) in [("-h", "opc.h"), ("-p", "opc_p.c"), ("-u", "opc_i.c")] {
        tool(WIDL, &[CONTRACTS, imports, "--win64", "-Oicf", kind, "-o", out, "opc.idl"]);
    }
    tool(WIDL, &["--win64", "--dlldata-only", "-o", "opc_dlldata.c", "opc"]);
    let generated = ["opc_p.c", "opc_i.c", "opc_dlldata.c"];
    let flags =
        ["-O1", "-I.", "-D_WIN32_WINNT=0x600", "-DUSE_COMPILER_EXCEPTIONS", "-include", "proxies.h", "-c"];
    tool(CC, &[&flags[..], &generated].concat());
    let mut arguments =
        vec!["-std=c++17", "-Wall", "-Wextra", "-O1", "-I.", "-static", "-o", "opc.exe", "opc.cc"];
    arguments.extend(["opc_p.o", "opc_i.o", "opc_dlldata.o"]);
    arguments.extend(["-lole32", "-loleaut32", "-lrpcrt4", "-luuid", "-lws2_32"]);
    tool(CXX, &arguments);
}

/// A text without the part between these, and without them.
fn without(text: &str, begin: &str, end: &str) -> String {
    let (head, rest) = text.split_once(begin).expect("the beginning");
    let (_, tail) = rest.split_once(end).expect("the end");
    format!("{head}{tail}")
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
