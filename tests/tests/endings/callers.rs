//! Clients, ours and foreign ones. A foreign one is a program that reads `call NUMBER SLOT` and `large NUMBER SLOT`, makes calls of different
//! slots beside each other, and prints `NUMBER WORD TEXT`, where the word is `answered`, `ended` (a failure that says that the call was
//! executed), `no` (not executed) or `maybe`. One that is slow to start makes the calls of all rounds and cells: it reads `at REFERENCE`
//! before those of each round, and keeps its connections if that is where it was.

use crate::common::dcom::{DOMAIN, PASSWORD, USER};
use crate::common::dcopserver::DcopServer;
use crate::common::foreign::{run, script, until};
use crate::common::house::{self, INTERFACE};
use crate::common::mono::Mono;
use crate::common::shelf;
use crate::restarts::caller;
use everywire::Failure;
use everywire::model::{Completed, Object};
use everywire_tests::peers::{cached, here};
use everywire_tests::workshop::once;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

/// What the caller of a call was told.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) word: &'static str,
    /// In the words of the client.
    pub(super) text: String,
}

type Tellings = Arc<Mutex<BTreeMap<i32, Told>>>;

const WORDS: [&str; 4] = ["answered", "ended", "no", "maybe"];

/// A client with connections to one object.
pub(super) trait Caller {
    /// Begins a call.
    fn call(&self, number: i32, slot: i32);
    /// Begins a call over the limit.
    fn large(&self, number: i32, slot: i32);
    fn tellings(&self) -> &Tellings;

    /// What so many calls were told.
    fn told(&self, many: i32) -> BTreeMap<i32, Told> {
        let many = usize::try_from(many).expect("few");
        until("every call is told", || self.tellings().lock().expect("whole").len() >= many);
        std::mem::take(&mut *self.tellings().lock().expect("whole"))
    }
}

/// Our client: a connection for each two slots.
pub(super) struct Ours {
    objects: Vec<Object>,
    told: Tellings,
}

impl Ours {
    pub(super) fn new(reference: &str) -> Self {
        let object = |_| house::object(&caller(), reference);
        Self { objects: (0..super::SLOTS / 2).map(object).collect(), told: Tellings::default() }
    }

    fn run(
        &self,
        number: i32,
        slot: i32,
        call: impl FnOnce(&Object) -> Result<(i32,), Failure> + Send + 'static,
    ) {
        let object = self.objects[usize::try_from(slot / 2).expect("a slot")].clone();
        let told = Arc::clone(&self.told);
        std::thread::spawn(move || {
            let (word, text) = match call(&object) {
                Ok((sum,)) if sum == number + 1 => ("answered", String::new()),
                Ok((sum,)) => ("no", format!("the answer of another call: {sum}")),
                Err(failure) => {
                    let word = match failure.completed() {
                        Completed::Yes => "ended",
                        Completed::No => "no",
                        Completed::Maybe => "maybe",
                    };
                    (word, failure.to_string())
                }
            };
            told.lock().expect("whole").insert(number, Told { word, text });
        });
    }
}

impl Caller for Ours {
    fn call(&self, number: i32, slot: i32) {
        self.run(number, slot, move |object| {
            object.call::<_, (i32,), Failure>(&INTERFACE.operations[0], (number,))
        });
    }

    fn large(&self, number: i32, slot: i32) {
        self.run(number, slot, move |object| {
            object.call::<_, (i32,), Failure>(&INTERFACE.operations[1], (vec![7_u8; 100 << 10],))
        });
    }

    fn tellings(&self) -> &Tellings {
        &self.told
    }
}

/// Who calls.
pub(super) enum Client {
    /// Everywire.
    Ours,
    /// A program of others, started for each round.
    Anew(Vec<String>),
    /// A program of others that is slow to start, and slow.
    Lasting(Foreign),
}

impl Client {
    /// A client for the calls of a round.
    pub(super) fn caller(&self, reference: &str) -> Box<dyn Caller + '_> {
        match self {
            Self::Ours => Box::new(Ours::new(reference)),
            Self::Anew(program) => {
                Box::new(Foreign::start(Command::new(&program[0]).args(&program[1..]).arg(reference)))
            }
            Self::Lasting(program) => {
                writeln!(&program.input, "at {reference}").expect("the client runs");
                Box::new(program)
            }
        }
    }

    /// Milliseconds of silence after which its connections may be evicted; enough of them for a call to come through.
    pub(super) fn silence(&self) -> u64 {
        if matches!(self, Self::Lasting(_)) { 40 } else { 4 }
    }
}

/// A program of others. It ends with this value.
pub(super) struct Foreign {
    child: Child,
    input: ChildStdin,
    told: Tellings,
}

impl Foreign {
    pub(super) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().expect("piped");
        let out = BufReader::new(child.stdout.take().expect("piped"));
        let told = Tellings::default();
        let tell = Arc::clone(&told);
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let mut parts = line.splitn(3, ' ');
                let number = parts.next().and_then(|number| number.parse().ok());
                let word = parts.next().and_then(|word| WORDS.into_iter().find(|known| *known == word));
                let (Some(number), Some(word)) = (number, word) else { panic!("it said: {line}") };
                let text = parts.next().unwrap_or_default().to_owned();
                tell.lock().expect("whole").insert(number, Told { word, text });
            }
        });
        Self { child, input, told }
    }
}

impl Caller for Foreign {
    fn call(&self, number: i32, slot: i32) {
        writeln!(&self.input, "call {number} {slot}").expect("the client runs");
    }

    fn large(&self, number: i32, slot: i32) {
        writeln!(&self.input, "large {number} {slot}").expect("the client runs");
    }

    fn tellings(&self) -> &Tellings {
        &self.told
    }
}

impl Caller for &Foreign {
    fn call(&self, number: i32, slot: i32) {
        (**self).call(number, slot);
    }

    fn large(&self, number: i32, slot: i32) {
        (**self).large(number, slot);
    }

    fn tellings(&self) -> &Tellings {
        &self.told
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // It has said all that it had to say.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn built(name: &str, sources: &[&str], build: impl FnOnce(&Path, &[PathBuf])) -> Client {
    let sources: Vec<PathBuf> = sources.iter().map(|source| script(source)).collect();
    let program = once(env!("CARGO_TARGET_TMPDIR"), name, &sources, |fresh| build(fresh, &sources));
    Client::Anew(vec![program.display().to_string()])
}

/// omniORB's client.
pub(super) fn omniorb(test: &str) -> Option<Client> {
    here(test, &["g++", "omniorb"]).then(|| {
        built("endings_omniorb", &["endings_omniorb.cc", "endings.idl"], |fresh, sources| {
            let dir = shelf().join("endings_omniorb");
            std::fs::create_dir_all(&dir).expect("a directory");
            run(Command::new("omniidl").args(["-bcxx", "-C"]).arg(&dir).arg(&sources[1]));
            run(Command::new("g++")
                .args(["-O1", "-o"])
                .arg(fresh)
                .arg("-I")
                .arg(&dir)
                .arg(&sources[0])
                .arg(dir.join("endingsSK.cc"))
                .args(["-lomniORB4", "-lomnithread", "-lpthread"]));
        })
    })
}

/// GLib's client.
pub(super) fn gdbus(test: &str) -> Option<Client> {
    here(test, &["cc", "pkg-config", "gio"]).then(|| {
        built("endings_gdbus", &["endings_gdbus.c"], |fresh, sources| {
            let flags = run(Command::new("pkg-config").args(["--cflags", "--libs", "gio-unix-2.0"]));
            run(Command::new("cc")
                .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
                .arg(fresh)
                .arg(&sources[0])
                .args(flags.split_whitespace()));
        })
    })
}

/// Clients in Python: of HTTP with its own library, of net.tcp with pynettcp, of DCOM with impacket.
pub(super) fn python(test: &str, library: &str, wire: &[&str]) -> Option<Client> {
    let mut command = Command::new(cached(test, library)?.join("bin/python"));
    command.arg(script("endings_clients.py")).args(wire).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(Client::Lasting(Foreign::start(&mut command)))
}

/// The peer of DCOP that was written from the description of the protocol alone: an application for each slot.
pub(super) fn dcop(test: &str, server: &DcopServer) -> Option<Client> {
    here(test, &["python3"]).then(|| {
        let mut command = Command::new("python3");
        command.arg(script("endings_clients.py")).arg("dcop").env("PYTHONDONTWRITEBYTECODE", "1");
        Client::Lasting(Foreign::start(server.environment(&mut command)))
    })
}

/// impacket.
pub(super) fn impacket(test: &str) -> Option<Client> {
    python(test, "impacket", &["dcom", DOMAIN, USER, PASSWORD])
}

/// Mono, with this binding.
pub(super) fn mono(test: &str, binding: &str) -> Option<Client> {
    let mono = Mono::awake(test)?;
    Some(Client::Lasting(Foreign::start(mono.run().args(["endings", binding]))))
}
