//! A place that copies are written to, by a thread of its own.
//!
//! States of the thread: *opening*; *writing* what waits, in batches; *flushing* and asleep, when nothing
//! waits; *resting* for a second after a failure, and opening again, while `broken` has copies refused; *over*, when the
//! queue is closed and empty.
//!
//! Invariants.
//! * Whoever copies never waits for this thread: `put` takes a copy or refuses it at once.
//! * What was taken and could not be written is counted as lost: those of a batch behind the copy that failed, and what
//!   waits while the place rests. What a file has no room for is kept (`output`), and goes before anything else: no copy is
//!   taken until it has gone. It is lost only where the place closes before that.
//! * A program is shared with whoever closes the place (`Program`), which may have to end it; that it has
//!   ended by itself is found at the next flush. It is ended and waited for before another one is started, and
//!   waited for at the end: none is left behind.
//! * What was written is flushed before the thread sleeps, so that others see all there is when nothing
//!   comes.
//! * A place that only counts holds shares of the bodies and nothing beside them: it can neither break nor tell more.
//!
//! Bounds. The queue's number and octets (`super::queue`); `MOMENT` between two batches, `PAUSE` after a
//! failure.

use super::Copy;
use super::output::{Output, Unwritten, end};
use super::queue::{Queue, QueueItem};
use crate::config::CopyTo;
use crate::log::Log;
use bytes::Bytes;
use everywire_model::Body;
use prometheus_client::metrics::counter::Counter;
use std::io;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Octets of copies that are written in one go. Larger ones than the standard library's 8 KiB: or each copy of a usual size would be a write of its own.
const ROOM: usize = 256 << 10;
/// How long this thread rests when it has written all there was, so that a busy route does not wake it for each copy.
const MOMENT: Duration = Duration::from_millis(1);
/// How long a place that broke is left alone before it is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// A place.
pub(crate) struct Destination {
    waiting: DestinationQueue,
    /// Told when all is written.
    done: Mutex<Receiver<()>>,
    /// The program that reads, if it is one.
    program: Program,
    broken: Arc<AtomicBool>,
    /// Whether copies become messages there.
    pub(super) captures: bool,
}

impl Destination {
    /// Opens a place. What cannot be opened is tried again, and told to the log.
    pub(crate) fn open(to: &CopyTo, queue: usize, lost: Counter, bytes: Counter, log: Log) -> Arc<Self> {
        let broken = Arc::new(AtomicBool::new(false));
        let (tell, done) = sync_channel(1);
        let program = Program::default();
        let (waiting, work): (_, Box<dyn FnOnce() + Send>) = if matches!(to, CopyTo::Count) {
            let queue = Arc::new(Queue::new(queue));
            (DestinationQueue::Bodies(Arc::clone(&queue)), Box::new(move || count(&queue, &bytes)))
        } else {
            let queue = Arc::new(Queue::new(queue));
            let writer = Writer {
                to: to.clone(),
                program: Arc::clone(&program),
                queue: Arc::clone(&queue),
                broken: Arc::clone(&broken),
                lost,
                bytes,
                log: log.clone(),
            };
            (DestinationQueue::Copies(queue), Box::new(move || writer.run()))
        };
        let last = Arc::clone(&program);
        let write = move || {
            work();
            // Whoever closes it may not wait any more.
            let _ = tell.send(());
            // A program ends with its input, and nobody else asks how.
            let last = last.lock().unwrap_or_else(PoisonError::into_inner).take();
            last.map(|mut program| program.wait());
        };
        let started = std::thread::Builder::new().name("copies".into()).spawn(write);
        if let Err(error) = started {
            broken.store(true, Ordering::Release);
            log.warn("copies", &[("failure", error.to_string().into())]);
        }
        let captures = matches!(to, CopyTo::Capture(_));
        Arc::new(Self { waiting, done: Mutex::new(done), program, broken, captures })
    }

    /// Takes a copy that has this body, if there is room for it. Never waits.
    #[inline]
    pub(super) fn put(&self, body: &Body, make: impl FnOnce() -> Copy) -> bool {
        let bytes = &body.bytes;
        !self.broken.load(Ordering::Acquire)
            && match &self.waiting {
                DestinationQueue::Copies(queue) => queue.put(bytes.len(), make),
                DestinationQueue::Bodies(queue) => queue.put(bytes.len(), || bytes.clone()),
            }
    }

    /// Takes no more copies, and waits until those that it has are written; a program that does not read them in this time is ended.
    pub(super) fn close(&self, time: Duration) {
        self.waiting.close();
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.recv_timeout(time).is_err() {
            end(&self.program);
        }
    }
}

/// A program that copies go to, while it runs; shared with whoever closes the place, which may have to end
/// it.
pub(super) type Program = Arc<Mutex<Option<Child>>>;

/// When nobody copies there any more, the thread ends.
impl Drop for Destination {
    fn drop(&mut self) {
        self.waiting.close();
    }
}

/// What waits for the thread.
enum DestinationQueue {
    Copies(Arc<Queue<Copy>>),
    /// The octets of bodies, to be counted.
    Bodies(Arc<Queue<Bytes>>),
}

impl DestinationQueue {
    fn close(&self) {
        match self {
            Self::Copies(queue) => queue.close(),
            Self::Bodies(queue) => queue.close(),
        }
    }
}

/// The thread that only counts.
fn count(queue: &Queue<Bytes>, counter: &Counter) {
    let mut blocks = Vec::new();
    while queue.wait(None) {
        counter.inc_by(queue.take(&mut blocks).map(|body| body.len() as u64).sum());
        // What comes within a moment is counted together, and wakes nobody.
        std::thread::sleep(MOMENT);
    }
}

/// The thread that writes. It ends when nobody can give it copies any more, after what waits.
struct Writer {
    to: CopyTo,
    program: Program,
    queue: Arc<Queue<Copy>>,
    broken: Arc<AtomicBool>,
    lost: Counter,
    bytes: Counter,
    log: Log,
}

impl Writer {
    fn run(self) {
        let mut unwritten = Unwritten::default();
        self.work(&mut unwritten);
        self.lost.inc_by(unwritten.copies);
    }

    fn work(&self, unwritten: &mut Unwritten) {
        let (mut output, mut blocks) = (None, Vec::new());
        loop {
            let Some(open) = &mut output else {
                match Output::open(&self.to, &self.program, unwritten) {
                    Ok(opened) => {
                        output = Some(opened);
                        self.broken.store(false, Ordering::Release);
                    }
                    Err(error) => {
                        self.complain("the place of copies cannot be opened", &error);
                        if self.rest() {
                            return;
                        }
                    }
                }
                continue;
            };
            let (mut written, mut failed) = (false, None);
            let mut batch = self.queue.take(&mut blocks);
            for copy in batch.by_ref() {
                self.bytes.inc_by(copy.bytes() as u64);
                written = true;
                let put = open.put(&copy, unwritten);
                self.lost.inc_by(u64::from(!put));
                if unwritten.octets.len() >= ROOM
                    && let Err(error) = open.flush(unwritten)
                {
                    failed = Some(error);
                    break;
                }
            }
            // Those behind it were taken and are not written, either.
            self.lost.inc_by(batch.count() as u64);
            if failed.is_none() {
                if written {
                    // What comes within a moment is written together, and wakes nobody.
                    std::thread::sleep(MOMENT);
                    continue;
                }
                // All that is there was put: let others see it.
                match open.flush(unwritten) {
                    Ok(()) if self.queue.wait(None) => continue,
                    Ok(()) => return,
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                self.complain("copies cannot be written", &error);
                if !open.goes_on() {
                    self.lost.inc_by(std::mem::take(unwritten).copies);
                }
                output = None;
                if self.rest() {
                    return;
                }
            }
        }
    }

    /// Writing failed: from now on copies are refused, and the log says why.
    fn complain(&self, event: &str, error: &io::Error) {
        self.broken.store(true, Ordering::Release);
        let fields = [("to", super::shown(&self.to).into()), ("failure", error.to_string().into())];
        self.log.warn(event, &fields);
    }

    /// Leaves a broken place alone for a moment; what still waits for it is lost. Whether nobody copies any more.
    fn rest(&self) -> bool {
        let (until, mut blocks) = (Instant::now() + PAUSE, Vec::new());
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let more = self.queue.wait(Some(left));
            self.lost.inc_by(self.queue.take(&mut blocks).count() as u64);
            if !more || left.is_zero() {
                return !more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Whether the system has this process still, be it only for somebody to ask how it ended.
    fn is_there(id: u32) -> bool {
        Path::new(&format!("/proc/{id}")).exists()
    }

    fn id_of(program: &Program) -> u32 {
        program.lock().unwrap().as_ref().unwrap().id()
    }

    #[test]
    fn a_program_that_is_started_anew_is_not_left_behind() {
        let (to, program) = (CopyTo::Program("exec sleep 10".into()), Program::default());
        let _first = Output::open(&to, &program, &mut Unwritten::default()).unwrap();
        let first = id_of(&program);
        let _second = Output::open(&to, &program, &mut Unwritten::default()).unwrap();
        assert!(!is_there(first) && is_there(id_of(&program)));
        let mut last = program.lock().unwrap().take().unwrap();
        last.kill().unwrap();
        last.wait().unwrap();
    }

    #[test]
    fn a_program_that_gets_no_more_copies_is_waited_for() {
        let (lost, log) = (Counter::default(), Log::new(Arc::new(|_: &str| {}), false));
        let to = CopyTo::Program("exec cat > /dev/null".into());
        let place = Destination::open(&to, 4, lost.clone(), lost, log);
        let begun = Instant::now();
        let until = |what: &str, is_so: &dyn Fn() -> bool| {
            while !is_so() {
                assert!(begun.elapsed() < Duration::from_secs(120), "in vain: {what}");
                std::thread::yield_now();
            }
        };
        let program = Arc::clone(&place.program);
        until("it runs", &|| program.lock().unwrap().is_some());
        let id = id_of(&program);
        drop(place);
        until("it is gone", &|| !is_there(id));
    }

    #[test]
    fn the_log_does_not_tell_what_a_program_is_given() {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let writer = Writer {
            to: CopyTo::Program("mail --password secret".into()),
            program: Program::default(),
            queue: Arc::new(Queue::new(1)),
            broken: Arc::default(),
            lost: Counter::default(),
            bytes: Counter::default(),
            log: Log::new(Arc::new(move |line: &str| kept.lock().unwrap().push(line.to_owned())), false),
        };
        writer.complain("copies cannot be written", &io::Error::other("so"));
        let line = lines.lock().unwrap().concat();
        assert!(line.contains("mail") && !line.contains("secret"), "{line}");
    }
}
