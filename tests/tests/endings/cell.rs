//! A cell of the table: one way for connections to end, on one wire, for one client. Its calls come in rounds.

use super::callers::{Caller, Client, Ours, Told};
use super::{Course, Ending, Evicting, HELD, ROUND, SLOTS};
use crate::common::foreign::until;
use crate::common::house::{Log, Process, Ran, Settings};
use crate::common::scratch;
use everywire_tests::peers::free_port;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Places for connections where there are few.
const PLACES: i32 = 4;

/// Where the servers of a cell listen, one after another.
struct Place {
    listen: String,
    reference: String,
    socket: Option<PathBuf>,
}

/// A cell of the table under way.
pub(super) struct Cell<'c> {
    course: &'c Course<'c>,
    ending: Ending,
    client: &'c Client,
    log: Log,
    place: Place,
    server: Process,
}

impl<'c> Cell<'c> {
    pub(super) fn new(
        course: &'c Course<'c>,
        ending: Ending,
        what: &str,
        client: &'c Client,
        who: &str,
    ) -> Self {
        let word = |text: &str| text.split([' ', '\'']).next().unwrap_or_default().to_owned();
        let dir = scratch(&format!("e-{}-{}-{}", course.name, word(who), word(what)));
        let socket = dir.join("s");
        let log = Log::new(dir.join("log"));
        let ours = matches!(client, Client::Ours);
        let at_socket = ours || course.foreign.contains("SOCKET");
        let mut serving = course.serving.to_owned();
        if let (Ending::Idle, Evicting::Option(option)) = (ending, course.evicting) {
            serving.push_str(&format!("&{option}={}ms", client.silence()));
        }
        let listen = |place: &str| format!("{}{place}{serving}", course.scheme);
        let settings = settings(course, ending, client);
        let at_hub = course.hub.map(&listen);
        // Servers come and go at the port, and meanwhile their client looks for them: it must not be one of those that the system gives
        // to whoever connects, the client itself among them.
        let port = match course.port {
            0 => free_port().expect("a port"),
            port => port,
        };
        let first = match &at_hub {
            Some(hub) => hub.clone(),
            None if at_socket => listen(&format!("+unix://{}", socket.display())),
            None => listen(&format!("://127.0.0.1:{port}")),
        };
        let server = Process::start(&first, &log, settings);
        let place = if at_hub.is_some() {
            let reference = if ours { format!("{first}/counter") } else { course.foreign.to_owned() };
            Place { reference, listen: first, socket: None }
        } else if at_socket {
            let path = socket.display().to_string();
            let reference = if ours {
                format!("{}+unix://{path}#counter{}", course.scheme, course.calling)
            } else {
                course.foreign.replace("SOCKET", &path)
            };
            Place { listen: first, reference, socket: Some(socket) }
        } else {
            let reference = course.foreign.replace("PORT", &port.to_string()).replace("CELL", &word(what));
            Place { listen: first, reference, socket: None }
        };
        Self { course, ending, client, log, place, server }
    }

    /// Ends; what the servers did.
    pub(super) fn end(mut self) -> Ran {
        self.server.open();
        self.server.kill();
        self.log.read()
    }

    /// The successor, where it finds the place free before the server has ended: at a hub a name is its owner's until then.
    fn early(&self) -> Option<Process> {
        self.course.hub.is_none().then(|| self.successor())
    }

    fn successor(&self) -> Process {
        let settings = settings(self.course, self.ending, self.client);
        let process = Process::start(&self.place.listen, &self.log, settings);
        process.open();
        process
    }

    /// Calls that are held, and what happens to them; what each was told.
    pub(super) fn round(&mut self, first: i32) -> BTreeMap<i32, Told> {
        let client = self.client;
        let caller = client.caller(&self.place.reference);
        let (held, late) = (first..first + HELD, first + HELD..first + ROUND);
        let middle = late.start + HELD / 2;
        let begin = |numbers: Range<i32>| {
            for number in numbers {
                caller.call(number, number % SLOTS);
            }
        };
        match self.ending {
            Ending::Shutdown | Ending::Goodbye | Ending::Kill => return self.replace(&*caller, first),
            Ending::Large => {
                self.server.shut();
                begin(held.clone());
                self.began(&*caller, held);
                for number in late.start..middle {
                    caller.large(number, number % SLOTS);
                }
                begin(middle..late.end);
                self.server.open();
            }
            Ending::Idle => {
                self.server.open();
                self.paced(&*caller, held.map(|number| (number, number % SLOTS)));
                let accepted = self.evict(&*caller, first);
                // Each slot twice: some clients find only with a call that their connection is closed.
                self.paced(&*caller, late.map(|number| (number, number % (SLOTS / 2))));
                if let Some(accepted) = accepted {
                    until("clients come back", || self.log.read().accepted > accepted);
                }
            }
            Ending::Newcomers => {
                self.server.shut();
                begin(held.clone());
                // Each has a place and is held, or was refused.
                until("calls begin or are told", || {
                    let (ran, told) = (self.log.read(), caller.tellings().lock().expect("whole"));
                    held.clone().all(|number| ran.began.contains_key(&number) || told.contains_key(&number))
                });
                begin(late.start..middle);
                self.server.open();
                begin(middle..late.end);
            }
        }
        caller.told(ROUND)
    }

    /// A server ends while it holds calls, and a successor takes its place.
    fn replace(&mut self, caller: &dyn Caller, first: i32) -> BTreeMap<i32, Told> {
        let (held, late) = (first..first + HELD, first + HELD..first + ROUND);
        let middle = late.start + HELD / 2;
        let begin = |numbers: Range<i32>| {
            for number in numbers {
                caller.call(number, number % SLOTS);
            }
        };
        begin(held.clone());
        self.began(caller, held);
        let mut answered = BTreeMap::new();
        let successor = match self.ending {
            Ending::Kill => {
                self.server.kill();
                // Nobody removes the socket of a process that was killed.
                self.place.socket.iter().for_each(|socket| drop(std::fs::remove_file(socket)));
                begin(late.start..middle);
                self.successor()
            }
            Ending::Shutdown => {
                self.server.terminate();
                let successor = self.early();
                if first / ROUND % 2 == 0 {
                    // No other call comes beside those under way, and all of them are answered.
                    self.server.open();
                    answered = caller.told(HELD);
                    let lost: Vec<_> = answered.values().filter(|told| told.word != "answered").collect();
                    let name = self.course.name;
                    assert!(lost.is_empty(), "{name}: under way at a shutdown, not answered: {lost:?}");
                }
                begin(late.start..middle);
                successor.unwrap_or_else(|| {
                    self.server.open();
                    self.successor()
                })
            }
            _ => {
                self.server.drain();
                let successor = self.early();
                self.server.stop();
                begin(late.start..middle);
                successor.unwrap_or_else(|| self.successor())
            }
        };
        self.server.open();
        begin(middle..late.end);
        let many = ROUND - i32::try_from(answered.len()).expect("few");
        answered.extend(caller.told(many));
        if self.ending == Ending::Shutdown {
            self.server.stopped();
        }
        self.server = successor;
        self.server.shut();
        answered
    }

    /// Calls one after another, long enough apart that others of the client's connections become idle meanwhile.
    fn paced(&self, caller: &dyn Caller, calls: impl Iterator<Item = (i32, i32)>) {
        for (number, slot) in calls {
            caller.call(number, slot);
            std::thread::sleep(Duration::from_micros(self.client.silence() * 100));
        }
    }

    /// Waits until all calls so far are told and no connection of theirs is left. How many connections were accepted until then.
    fn evict(&self, caller: &dyn Caller, first: i32) -> Option<usize> {
        let told = || caller.tellings().lock().expect("whole").len();
        until("half of the calls are told", || told() >= usize::try_from(HELD).expect("few"));
        if self.course.evicting == Evicting::Others {
            if first > 0 {
                return None;
            }
            // Others want all the places. Nobody makes room before he has been quiet for a second, so one round has it.
            let others = Ours::new(&self.crowd());
            for slot in (0..SLOTS).step_by(2) {
                let number = -1 - slot;
                until("another one finds a place", || {
                    others.call(number, slot);
                    others.told(1)[&number].word == "answered"
                });
            }
        }
        self.server.quiet();
        Some(self.log.read().accepted)
    }

    /// The object, for our client.
    fn crowd(&self) -> String {
        let socket = self.place.socket.as_ref().expect("it listens at a socket");
        format!("{}+unix://{}#counter{}", self.course.scheme, socket.display(), self.course.calling)
    }

    /// Waits until all these calls have begun.
    fn began(&self, caller: &dyn Caller, numbers: Range<i32>) {
        until("calls begin", || {
            let began = self.log.read().began;
            let told = caller.tellings().lock().expect("whole");
            assert!(told.is_empty(), "{}: calls that nothing befell: {told:?}", self.course.name);
            numbers.clone().all(|number| began.contains_key(&number))
        });
    }
}

fn settings(course: &Course<'_>, ending: Ending, client: &Client) -> Settings {
    let (idle, others) = (ending == Ending::Idle, course.evicting == Evicting::Others);
    Settings {
        connections: match ending {
            Ending::Newcomers => PLACES,
            Ending::Idle if others => SLOTS / 2,
            _ => 1000,
        },
        idle: if idle && course.evicting == Evicting::Quota { client.silence() } else { 0 },
        open: false,
        descriptors: None,
    }
}
