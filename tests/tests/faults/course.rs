//! The server that the faults are tried on: it keeps a list of the calls that ran, in memory, or in a file that outlives it.

use everywire::model::shape::{Field, Shape};
use everywire::model::{
    Direction, Hold, Interface, InterfaceKind, Object, Operation, Parameter, Request, Servant,
};
use everywire::{Failure, Node};
use everywire_auth::ice::AuthorityFile;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often each call ran.
pub type Ran = BTreeMap<i32, u32>;

/// Where a process finds the address that it is to serve, and thereby that it is a server; and its list.
const ADDRESS: &str = "EVERYWIRE_FAULTS_SERVE";
const LOG: &str = "EVERYWIRE_FAULTS_LOG";

pub static INTERFACE: LazyLock<Interface> = LazyLock::new(|| {
    let field = Field { name: "v".into(), shape: Shape::I32 };
    let input = Parameter { direction: Direction::In, field };
    Interface {
        name: "Counter".into(),
        id: "5b0ae6c1-33a2-4a60-9c4c-5d60d2b1a0f1".into(),
        identities: vec![].into(),
        notes: vec![].into(),
        kind: InterfaceKind::Plain,
        bases: vec![].into(),
        operations: vec![Operation::new("count", vec![input], Shape::I32)].into(),
        inherited: 0,
        attributes: vec![].into(),
        signals: vec![].into(),
        doc: "".into(),
    }
});

/// The object at an address.
pub fn object(node: &Node, address: &str) -> Object {
    node.object(address).expect("an address").typed(Hold::Static(&INTERFACE))
}

/// A wire, and the sockets of a run.
pub struct Course {
    pub name: String,
    /// What the server listens at.
    listen: String,
    /// The object, through the relay.
    pub reference: String,
    /// Without it.
    direct: String,
    /// Where the relay listens, and where it leads.
    pub between: PathBuf,
    pub behind: PathBuf,
    /// The server listens where the relay will, and is moved behind it then.
    moves: bool,
}

impl Course {
    /// A server that listens itself.
    pub fn socket(name: &str, scheme: &str, serving: &str, calling: &str, dir: &Path) -> Self {
        let (between, behind) = (dir.join("between"), dir.join("behind"));
        let reference = |socket: &Path| format!("{scheme}+unix://{}{calling}", at(socket, "counter"));
        Self {
            name: name.to_owned(),
            listen: format!("{scheme}+unix://{}{serving}", behind.display()),
            reference: reference(&between),
            direct: reference(&behind),
            between,
            behind,
            moves: false,
        }
    }

    /// Both sides connect to a hub of DCOP; the relay stands before the serving one, or before the calling one.
    pub fn behind_hub(hub: &Path, dir: &Path, shelf: &Path, serving: bool) -> Self {
        let between = dir.join("between");
        // Whoever connects to the relay shows the cookie of the hub.
        let file = AuthorityFile::at(shelf.join("cookies/ICEauthority"));
        let entries = file.read().expect("the hub has written its cookies");
        let hub_text = hub.display().to_string();
        let moved = entries.into_iter().filter_map(|mut entry| {
            let netid = String::from_utf8_lossy(&entry.netid).into_owned();
            entry.netid = netid.strip_suffix(&hub_text)?.to_owned().into_bytes();
            entry.netid.extend(between.display().to_string().into_bytes());
            Some(entry)
        });
        let moved: Vec<_> = moved.collect();
        assert!(!moved.is_empty(), "the hub has no cookie for {hub_text}");
        file.add(&moved).expect("it can be written");
        let place = |through: bool| if through { between.clone() } else { hub.to_owned() };
        let reference = |socket: &Path| format!("dcop+unix://{}", at(socket, "counting/counter"));
        Self {
            name: if serving { "dcop-served" } else { "dcop" }.to_owned(),
            listen: format!("dcop+unix://{}", at(&place(serving), "counting")),
            reference: reference(&place(!serving)),
            direct: reference(hub),
            between,
            behind: hub.to_owned(),
            moves: false,
        }
    }

    /// For a wire whose messages name the socket: to clients and to the server it has the same path.
    pub fn under_one_name(mut self) -> Self {
        self.listen =
            self.listen.replace(&self.behind.display().to_string(), &self.between.display().to_string());
        self.moves = true;
        self
    }

    /// The object, without the relay.
    pub fn direct(&self) -> String {
        self.direct.clone()
    }
}

fn at(socket: &Path, key: &str) -> String {
    format!("{}#{key}", socket.display())
}

/// Answers with one more, and keeps a list of what ran.
enum Counter {
    Memory(Mutex<Ran>),
    File(File),
}

impl Counter {
    fn ran(&self, number: i32) {
        match self {
            Self::Memory(ran) => {
                *ran.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_default() += 1
            }
            // The kernel has it even if this process is killed now.
            Self::File(file) => (&*file).write_all(&number.to_le_bytes()).expect("a list of calls"),
        }
    }
}

impl Servant for Counter {
    fn interface(&self) -> &Interface {
        &INTERFACE
    }

    fn dispatch(&self, request: Request) {
        request.run(|request| {
            let (number,) = request.arguments::<(i32,)>()?;
            self.ran(number);
            request.reply(Ok::<_, Failure>((number + 1,)))
        });
    }
}

/// A server within this process.
pub struct House {
    node: Node,
    counter: Arc<Counter>,
}

impl House {
    pub fn start(course: &Course) -> Self {
        let node = Node::new();
        let counter = Arc::new(Counter::Memory(Mutex::default()));
        node.export_servant("counter", Arc::clone(&counter) as Arc<dyn Servant>);
        let end = Instant::now() + Duration::from_secs(20);
        // An application that serves behind the relay is cut off while it registers, too; the relay comes first then.
        let listening = node.clone();
        let address = course.listen.clone();
        if course.name == "dcop-served" {
            std::thread::spawn(move || {
                while listening.listen(&address).is_err() && Instant::now() < end {
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        } else {
            listening.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
        }
        if course.moves {
            fs::rename(&course.between, &course.behind).expect("a socket that listens may be moved");
        }
        Self { node, counter }
    }

    /// Ends when everybody has gone; what ran.
    pub fn stop(self) -> Ran {
        let end = Instant::now() + Duration::from_secs(10);
        while self.node.connections() > 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.node.stop();
        match &*self.counter {
            Counter::Memory(ran) => ran.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            Counter::File(_) => Ran::new(),
        }
    }
}

/// A server in a process of its own, which is killed with this value.
pub struct Process(Child);

impl Process {
    /// Starts one; `module` is where the test stands that serves.
    pub fn start(course: &Course, log: &Path, module: &str) -> Self {
        // The one before was killed and has left its socket.
        let _ = fs::remove_file(&course.behind);
        let name = module.split_once("::").map_or(String::new(), |(_, rest)| format!("{rest}::"));
        let mut child = Command::new(std::env::current_exe().expect("a program"))
            .args([
                "--exact",
                "--include-ignored",
                &format!("{name}serve_until_killed"),
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ADDRESS, &course.listen)
            .env(LOG, log)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("a server starts");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let ready = out.lines().map_while(Result::ok).any(|line| line.ends_with("#: ready"));
        assert!(ready, "the server does not serve {}", course.listen);
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without a word, whatever it does.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves if the environment says so, until somebody kills this process.
pub fn serve_as_told() {
    let (Ok(address), Some(log)) = (std::env::var(ADDRESS), std::env::var_os(LOG)) else { return };
    let file = File::options().create(true).append(true).open(log).expect("a list");
    let node = Node::new();
    node.export_servant("counter", Arc::new(Counter::File(file)));
    node.listen(&address).unwrap_or_else(|failure| panic!("{address}: {failure}"));
    println!("#: ready");
    // Should the test itself be killed, nobody is left to kill this one.
    std::thread::sleep(Duration::from_secs(60));
}

/// What ran, of all servers that wrote into a list.
pub fn read_log(path: &Path) -> Ran {
    let mut ran = Ran::new();
    for number in fs::read(path).expect("a list of calls").chunks_exact(4) {
        let number = i32::from_le_bytes([number[0], number[1], number[2], number[3]]);
        *ran.entry(number).or_default() += 1;
    }
    ran
}
