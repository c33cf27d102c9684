//! A server of the class `Pantry` in a process of its own, which says what it holds.

use super::pantry;
use crate::common::complaints::Complaints;
use crate::common::foreign::PATIENCE;
pub use crate::common::foreign::until;
use everywire::model::wire::{Capabilities, Discovery, Listing, PresenceList, Sniff};
use everywire::model::{
    BindAddress, Codec, Config, Hold, Incoming, Limits, Object, Objects, Profile, Resolver, Session, Wire,
    WireState,
};
use everywire::{Builder, Failure, Interface, Node, Notice, Quotas, Reference};
use everywire_dcom::DCOM;
use everywire_dcom::exporter::{Counts, Exporter};
use everywire_tests::again::{only, this_program};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Who may call; both are of [`DOMAIN`].
pub const COOK: &str = "cook";
pub const THIEF: &str = "thief";
pub const DOMAIN: &str = "KITCHEN";
/// Of both.
pub const PASSWORD: &str = "pepper1";

/// Where the process finds its address, and thereby that it is a server.
const ADDRESS: &str = "EVERYWIRE_TEST_SERVE";
const PERIOD: &str = "EVERYWIRE_TEST_PERIOD";
const FIRST_MESSAGE: &str = "EVERYWIRE_TEST_FIRST_MESSAGE";

/// The wire, with an exporter that the test can ask, and that has another ping period.
pub struct Observed {
    pub exporter: OnceLock<Arc<Exporter>>,
    pub period: Duration,
}

impl Observed {
    pub fn new(period: Duration) -> &'static Self {
        Box::leak(Box::new(Self { exporter: OnceLock::new(), period }))
    }
}

impl Wire for Observed {
    fn name(&self) -> &'static str {
        DCOM.name()
    }
    fn title(&self) -> &'static str {
        DCOM.title()
    }
    fn schemes(&self) -> &'static [&'static str] {
        DCOM.schemes()
    }
    fn capabilities(&self) -> Capabilities {
        DCOM.capabilities()
    }
    fn default_limits(&self) -> Limits {
        DCOM.default_limits()
    }
    fn sniff(&self, first: &[u8]) -> Sniff {
        DCOM.sniff(first)
    }
    fn parse(&self, text: &str) -> Result<Reference, Failure> {
        DCOM.parse(text)
    }
    fn print(&self, reference: &Reference) -> String {
        DCOM.print(reference)
    }
    fn print_friendly(&self, reference: &Reference) -> String {
        DCOM.print_friendly(reference)
    }
    fn publish(&self, type_id: &str, places: &[BindAddress], key: &[u8]) -> Reference {
        DCOM.publish(type_id, places, key)
    }
    fn listen(&self, text: &str) -> Result<BindAddress, Failure> {
        DCOM.listen(text)
    }
    fn connect(&self, config: &Config) -> Box<dyn Session> {
        DCOM.connect(config)
    }
    fn accept(&self, config: &Config) -> Box<dyn Session> {
        DCOM.accept(config)
    }
    fn codec(&self) -> &'static dyn Codec {
        DCOM.codec()
    }
    fn operation(&self, interface: &Interface, asked: &Incoming) -> Option<usize> {
        DCOM.operation(interface, asked)
    }
    fn wire_state(&self, objects: Arc<dyn Objects>) -> Option<Arc<dyn WireState>> {
        let exporter = Exporter::with_period(objects, self.period);
        Some(Arc::clone(self.exporter.get_or_init(|| exporter)) as Arc<dyn WireState>)
    }
    fn discover(&self, object: &Object) -> Result<Discovery, Failure> {
        DCOM.discover(object)
    }
    fn list(&self, text: &str, resolver: &dyn Resolver) -> Result<PresenceList, Failure> {
        DCOM.list(text, resolver)
    }
    fn protection(&self, profile: &Profile) -> String {
        DCOM.protection(profile)
    }
    fn explain(&self, bytes: &[u8]) -> Listing {
        DCOM.explain(bytes)
    }
}

/// What a server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Entries of the exporter's tables, as text.
    pub counts: String,
    /// Objects of the class that live.
    pub living: usize,
    /// Connections that came in.
    pub connections: usize,
}

impl Held {
    /// A server that nobody uses.
    pub fn nothing() -> Self {
        Self { counts: format!("{:?}", Counts::default()), living: 0, connections: 0 }
    }
}

/// Longer than any test: unless pings or time limits are its subject, no test depends on how fast the machine is.
const LONG: Duration = Duration::from_secs(600);

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What follows the address, beside the users.
    pub options: String,
    /// What stands before the host.
    pub own: String,
    pub period: Duration,
    pub first_message: Duration,
    /// The most descriptors that the process may have.
    pub descriptors: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            options: String::new(),
            own: String::new(),
            period: LONG,
            first_message: LONG,
            descriptors: None,
        }
    }
}

/// A server in a process of its own; it ends with this value.
pub struct Target {
    child: Child,
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    dir: PathBuf,
    complaints: Complaints,
    pub port: u16,
}

impl Target {
    pub fn new() -> Self {
        Self::with(&Settings::default())
    }

    /// Runs [`serve`] in another process of this test program.
    pub fn with(settings: &Settings) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("everywire-dcom-{}-{number}", std::process::id()));
        // Left over from a process with the same number: it is nobody's any more.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        let users = dir.join("users");
        fs::write(&users, format!("{DOMAIN}\\{COOK}:{PASSWORD}\n{DOMAIN}\\{THIEF}:{PASSWORD}\n"))
            .expect("a file");
        fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).expect("our file");
        let address =
            format!("dcom://{}127.0.0.1:0?users={}{}", settings.own, users.display(), settings.options);
        let limit = settings.descriptors.map_or(String::new(), |most| format!("ulimit -n {most}; "));
        let mut child = Command::new("sh")
            .args(["-c", &format!("{limit}exec \"$0\" \"$@\"")])
            .arg(this_program().get_program())
            .args(only("a_server_to_attack"))
            .env(ADDRESS, &address)
            .env(PERIOD, settings.period.as_millis().to_string())
            .env(FIRST_MESSAGE, settings.first_message.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(fs::File::create(dir.join("stderr")).expect("a log"))
            .spawn()
            .expect("the server starts");
        let stdin = child.stdin.take().expect("piped");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let address = answer(&mut lines, "listens");
        let port = address.split('?').next().and_then(|text| text.rsplit(':').next());
        let port = port.map(|text| text.trim_matches('/')).and_then(|text| text.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in {address}"));
        Self { child, talk: Mutex::new((stdin, lines)), dir, complaints: Complaints::default(), port }
    }

    fn ask(&self, what: &str) -> String {
        let mut talk = self.talk.lock().expect("whole");
        writeln!(talk.0, "{what}").expect("the server runs");
        answer(&mut talk.1, what)
    }

    pub fn held(&self) -> Held {
        let said = self.ask("held");
        let mut parts = said.splitn(3, ' ');
        let mut number = || parts.next().and_then(|text| text.parse().ok()).expect("a number");
        let (living, connections) = (number(), number());
        Held { counts: parts.next().expect("counts").to_owned(), living, connections }
    }

    /// What the exporter's tables hold, by name.
    pub fn count(&self, what: &str) -> usize {
        let counts = self.held().counts;
        let from = counts.find(&format!("{what}: ")).expect("a table") + what.len() + 2;
        let text: String = counts[from..].chars().take_while(char::is_ascii_digit).collect();
        text.parse().expect("a number")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it said on standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("stderr")).unwrap_or_default()
    }

    pub fn resident(&self) -> u64 {
        resident(self.pid())
    }

    pub fn threads(&self) -> usize {
        entries(self.pid(), "task")
    }

    pub fn descriptors(&self) -> usize {
        entries(self.pid(), "fd")
    }

    /// An address of the class for one of the users.
    pub fn address(&self, user: &str) -> String {
        format!("dcom://{DOMAIN};{user}:{PASSWORD}@127.0.0.1:{}/{}", self.port, pantry::CLASS)
    }

    /// Someone with credentials is served as ever.
    pub fn honest(&self) {
        let node = Node::new();
        let object = node.object(&self.address(COOK)).expect("it parses");
        let object = object.typed(Hold::Static(&pantry::PANTRY));
        for a in 0..5 {
            let sum: Result<(i32,), Failure> = object.call(&pantry::PANTRY.operations[0], (a, 4));
            assert_eq!(
                sum.unwrap_or_else(|failure| panic!("an honest call: {failure}\n{}", self.log())).0,
                a + 4
            );
        }
    }

    /// Someone with credentials is served as ever, and afterwards the server holds nothing at all, once the ping periods are
    /// over that it waits for those who do not ping. They pass as virtual time.
    pub fn recovers(&self) {
        self.honest();
        self.forgets(|| {
            self.ask("pass");
        });
    }

    /// The same in real time, for a server with a short period.
    pub fn recovers_by_itself(&self) {
        self.honest();
        self.forgets(|| {});
    }

    fn forgets(&self, pass: impl Fn()) {
        let mut held = self.held();
        let nothing = Held::nothing();
        let end = Instant::now() + PATIENCE;
        while held != nothing {
            assert!(Instant::now() < end, "the server still holds {held:?}\n{}", self.log());
            pass();
            std::thread::sleep(Duration::from_millis(5));
            held = self.held();
        }
    }

    /// Waits until it says that somebody broke the rules in this way. Each complaint counts once.
    #[track_caller]
    pub fn complains(&self, violation: &str) {
        self.complaints.hear(&format!("violation {violation}\n"), || self.log());
    }

    /// Waits until it says that it closed a connection because of this quota.
    #[track_caller]
    pub fn refuses_by(&self, quota: &str) {
        self.complaints.hear(&format!("`{quota}`"), || self.log());
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn answer(lines: &mut BufReader<ChildStdout>, what: &str) -> String {
    loop {
        let mut line = String::new();
        assert!(lines.read_line(&mut line).expect("it can be read") > 0, "the server ended: {what}");
        // The test runner talks, too, and does not end its line first.
        if let Some(at) = line.find("#: ") {
            return line[at + 3..].trim_end().to_owned();
        }
    }
}

/// Bytes of memory that a process has.
pub fn resident(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("Rss:")).expect("a size");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("a number") * 1024
}

fn entries(pid: u32, what: &str) -> usize {
    fs::read_dir(format!("/proc/{pid}/{what}")).expect("it runs").count()
}

/// The clock of the server's ping periods: the exporter knows no other time than what its keeper tells it.
struct VirtualTime(SyncSender<()>);

impl VirtualTime {
    fn new(wire: &'static Observed) -> Self {
        let (tell, told) = sync_channel(1);
        std::thread::spawn(move || {
            let mut now = Instant::now();
            for () in told {
                now = now.max(Instant::now()) + wire.period;
                if let Some(exporter) = wire.exporter.get() {
                    exporter.tend(now);
                }
            }
        });
        Self(tell)
    }

    /// Has a period pass.
    fn pass(&self) {
        // Two that have not passed yet are enough: who waits asks again.
        let _ = self.0.try_send(());
    }
}

/// The server's part, in the process that was started for it.
pub fn serve() {
    let address = std::env::var(ADDRESS).expect("other tests start it");
    let millis = |name: &str| {
        let text = std::env::var(name).expect("a setting");
        Duration::from_millis(text.parse().expect("a number"))
    };
    let wire = Observed::new(millis(PERIOD));
    let quotas = Quotas { first_message: millis(FIRST_MESSAGE), ..Quotas::default() };
    let observer = Arc::new(|notice: &Notice| match notice {
        Notice::Violation { violation, .. } => eprintln!("violation {}", violation.name),
        Notice::Refused { why, .. } => eprintln!("refused {why}"),
        Notice::Starved { why } => eprintln!("starved {why}"),
        _ => {}
    });
    let wires: &[&'static dyn Wire] = &[wire];
    let node: Node = Builder::new(wires).quotas(quotas).observer(observer).build().into();
    let listening = node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    let living = pantry::serve(&node);
    let time = VirtualTime::new(wire);
    println!("#: {listening}");
    for line in std::io::stdin().lines() {
        match line.expect("text").as_str() {
            "held" => {
                let counts = wire.exporter.get().map(|exporter| exporter.counts()).unwrap_or_default();
                println!("#: {} {} {counts:?}", living.load(Ordering::SeqCst), node.connections());
            }
            "pass" => {
                time.pass();
                println!("#: passed");
            }
            other => panic!("{other}?"),
        }
    }
    // The parent is gone.
    std::process::exit(0);
}
