//! The running program, and the threads that write to it and read from it.
//!
//! One run has two threads. The writer takes lines from a queue of `QUEUE` and writes them to the
//! program's input; it ends when the queue is closed or the program reads no more. The reader takes
//! lines of the program's output, and ends with it.
//!
//! States of a run: *alive* (`pending` is there), *over* (`pending` is gone, for good). Only the reader
//! makes it over, when the output has ended; it answers the calls that are left.
//!
//! Invariants: a call is in `pending` before its line is in the queue, so that no answer can come
//! before it. Once the run is over no call can be added. Whoever removes a call from `pending` answers
//! it, gives it back to be sent to another run, or has seen that its connection is over. The queue blocks no caller who waits for an answer: when it is full, or
//! half of it is the caller's own, the call is refused as busy (`room`). Nobody would hear that of a oneway call, so it waits,
//! and those behind it on its connection with it.

use super::child::{self, FAREWELL, GRACE, QUEUE};
use super::lines::{self, Unreadable};
use super::pending::{Pending, lock};
use super::room::{Room, Ticket};
use super::{answer, settle, tell};
use crate::output::note;
use everywire::Interface;
use everywire::model::Hold;
use everywire_dynamic::json::NodeNotation;
use std::collections::HashMap;
use std::io;
use std::process::{Child, ChildStdout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a call of whose refusal nobody would hear waits until the program has read others.
const PATIENCE: Duration = Duration::from_secs(30);

/// So many calls may wait for the program before any of them is looked at again.
const CROWD: usize = 32;

/// One run of the program. Dropping it closes its input and waits for nobody.
pub(super) struct Process {
    /// The queue of lines; `None` once no more calls come.
    input: Mutex<Option<SyncSender<Line>>>,
    room: Arc<Room>,
    shared: Arc<Shared>,
}

/// A line that the program is to read, and its room in the queue.
struct Line {
    text: Arc<Vec<u8>>,
    /// Held until it was written.
    _room: Ticket,
}

impl AsRef<[u8]> for Line {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// What the threads share with whoever sends calls.
struct Shared {
    child: Mutex<Child>,
    /// Calls without an answer; nothing once the program has ended, so that no call can be added too late.
    pending: Mutex<Option<HashMap<u64, Pending>>>,
    /// With how many of them those are looked for whose callers have left.
    crowd: AtomicUsize,
    /// Its end was asked for, and is no news.
    stopping: AtomicBool,
    interface: Hold<Interface>,
    words: NodeNotation,
    key: String,
    /// It has said something, or was asked something.
    alive: AtomicBool,
    /// What is to be told if it ends with a failure before that.
    hopeless: FailureHook,
    /// It has ended, and all who are to hear that have heard it.
    ended: AtomicBool,
}

/// Hears that a program cannot start: the status that it ended with, as text.
pub(crate) type FailureHook = Arc<dyn Fn(&str) + Send + Sync>;

impl Process {
    /// Starts the program and its threads.
    ///
    /// # Errors
    /// The shell or a thread cannot be started.
    pub(super) fn start(
        command: &str,
        interface: Hold<Interface>,
        words: NodeNotation,
        key: &str,
        hopeless: FailureHook,
    ) -> io::Result<Self> {
        let (child, stdin, stdout) = child::start(command)?;
        let shared = Arc::new(Shared {
            child: Mutex::new(child),
            pending: Mutex::new(Some(HashMap::new())),
            crowd: AtomicUsize::new(CROWD),
            stopping: AtomicBool::new(false),
            interface,
            words,
            key: key.to_owned(),
            alive: AtomicBool::new(false),
            hopeless,
            ended: AtomicBool::new(false),
        });
        let (input, lines) = sync_channel(QUEUE);
        let reader = Arc::clone(&shared);
        child::on_a_thread("program-input", move || child::feed(stdin, &lines))?;
        child::on_a_thread("program-output", move || reader.read(stdout))?;
        Ok(Self { input: Mutex::new(Some(input)), room: Arc::default(), shared })
    }

    /// Waits until the program waits for something, has said or was asked something, or has ended.
    pub(super) fn settle(&self) {
        let process = lock(&self.shared.child).id();
        settle::wait(process, || {
            if self.is_over() {
                self.shared.ended.load(Ordering::Acquire)
            } else {
                self.shared.alive.load(Ordering::Relaxed)
            }
        });
    }

    /// Whether the program has closed its output.
    pub(super) fn is_over(&self) -> bool {
        lock(&self.shared.pending).is_none()
    }

    /// Sends a call of a caller, as `line` with its end, and keeps it in the list of those that wait unless it is oneway. `unheard`: nobody hears of
    /// a refusal. True: the call is taken care of, also where it was refused. False: the program has ended, and the call
    /// was left where it was, for another run.
    pub(super) fn send(
        &self,
        id: u64,
        caller: &str,
        line: &Arc<Vec<u8>>,
        oneway: bool,
        unheard: bool,
        call: &mut Option<Pending>,
    ) -> bool {
        self.shared.alive.store(true, Ordering::Relaxed);
        let room = match unheard.then(|| Instant::now().checked_add(PATIENCE)).flatten() {
            Some(until) => self.room.wait(caller, line.len(), until),
            None => self.room.take(caller, line.len()),
        };
        let room = match room {
            Ok(room) => room,
            Err((all, own)) => {
                if unheard {
                    note(&format!(
                        "program: a oneway call was dropped: {all} calls wait for the program already"
                    ));
                }
                answer::too_slow(call.take(), all, own);
                return true;
            }
        };
        let input = match &*lock(&self.input) {
            Some(input) => input.clone(),
            None => return false,
        };
        let left = {
            let mut pending = lock(&self.shared.pending);
            let Some(pending) = &mut *pending else { return false };
            if !oneway && let Some(call) = call.take() {
                pending.insert(id, call);
            }
            self.shared.abandoned(pending)
        };
        // They answer nobody, and that without the lock.
        drop(left);
        let give_back = || lock(&self.shared.pending).as_mut().and_then(|pending| pending.remove(&id));
        match input.try_send(Line { text: Arc::clone(line), _room: room }) {
            Ok(()) => {
                // What is left here is oneway.
                if let Some(call) = call.take() {
                    answer::taken(call);
                }
                true
            }
            Err(TrySendError::Full(_)) => {
                answer::too_slow(give_back().or_else(|| call.take()), QUEUE, QUEUE);
                true
            }
            Err(TrySendError::Disconnected(_)) => {
                // The program closed its input: it takes no more calls.
                child::kill(&self.shared.child);
                match give_back() {
                    Some(back) => {
                        *call = Some(back);
                        false
                    }
                    // Whoever saw the end has answered it already, unless nobody waits at all.
                    None => !oneway,
                }
            }
        }
    }

    /// Closes the program's input once what is queued has been written.
    pub(super) fn tell_end(&self) {
        self.shared.stopping.store(true, Ordering::Relaxed);
        // The writing thread ends with its queue, and with it the program's input.
        lock(&self.input).take();
    }

    /// Kills it.
    pub(super) fn kill(&self) {
        child::kill(&self.shared.child);
    }

    /// Closes its input, waits for its end for `FAREWELL`, and kills it then.
    pub(super) fn stop(&self) {
        self.tell_end();
        let until = Instant::now() + FAREWELL;
        while Instant::now() < until && !self.is_over() {
            std::thread::sleep(Duration::from_millis(5));
        }
        child::kill(&self.shared.child);
    }
}

impl Shared {
    /// Takes out the calls whose connections are over, where there are twice as many as were left the last time: each keeps its connection's
    /// descriptor, and a program that never answers would leave none for others. What the program answers to them is for nobody.
    fn abandoned(&self, pending: &mut HashMap<u64, Pending>) -> Vec<Pending> {
        if pending.len() < self.crowd.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let over = pending.iter().filter(|(_, call)| call.request.link().is_over()).map(|(id, _)| *id);
        let over: Vec<u64> = over.collect();
        let left = over.iter().filter_map(|id| pending.remove(id)).collect();
        self.crowd.store(CROWD.max(2 * pending.len()), Ordering::Relaxed);
        left
    }

    /// The thread that reads.
    fn read(&self, stdout: ChildStdout) {
        child::each_line(stdout, |line| self.take(line));
        self.end();
    }

    /// Takes one line of the program: an answer, a signal or a change. One that makes no sense is told
    /// in a note, and the program goes on.
    fn take(&self, line: &[u8]) {
        self.alive.store(true, Ordering::Relaxed);
        let senseless = |why: &str| note(&format!("program: {why}: {}", crate::people::octets(line)));
        let pending = |id| lock(&self.pending).as_mut().and_then(|pending| pending.remove(&id));
        let json = match lines::object(line) {
            Ok(json) => json,
            Err(Unreadable { why, ids }) => {
                senseless(&why);
                // Their callers would wait in vain.
                for call in ids.into_iter().filter_map(pending) {
                    answer::unreadable(call, &why);
                }
                return;
            }
        };
        let Some(id) = answer::number(&json) else {
            if let Err(why) = tell::news(&json, &self.key, &self.interface, &self.words) {
                senseless(&why);
            }
            return;
        };
        let Some(call) = pending(id) else { return };
        if let Err(why) = answer::give(call, &json, &self.interface, &self.words) {
            note(&format!("program: {why}"));
        }
    }

    /// The program closed its output: nothing will be answered any more. It is given `GRACE` to end by
    /// itself, so that its status says why, and then killed and reaped.
    fn end(&self) {
        let waiting = lock(&self.pending).take().unwrap_or_default();
        // It closed its output because it ends: leave it a moment to say how.
        let ended = child::end(&self.child, GRACE);
        let failed = ended.as_ref().is_ok_and(|status| status.code().is_some_and(|code| code != 0));
        let status = match ended {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let stopping = self.stopping.load(Ordering::Relaxed);
        if failed && !stopping && !self.alive.load(Ordering::Relaxed) {
            (self.hopeless)(&status);
        } else if !stopping {
            let again = "the next call starts it again";
            note(&format!("program: ended ({status}) with {} calls unanswered; {again}", waiting.len()));
        }
        for (_, call) in waiting {
            answer::ended(call, &status);
        }
        self.ended.store(true, Ordering::Release);
    }
}
