//! A place that copies are written to, by a thread of its own.

use super::Copy;
use super::capture::{self, Tape};
use crate::config::CopyTo;
use crate::log::Log;
use prometheus_client::metrics::counter::Counter;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// Bytes that may wait for a place, whatever their number.
const MOST_BYTES: usize = 64 << 20;
/// How long this thread rests when it has written all there was, so that a busy route does not wake it for each copy.
const MOMENT: Duration = Duration::from_millis(1);
/// How long a place that broke is left alone before it is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// A place.
pub(crate) struct Place {
    /// Nothing, once it is closed. Copies are in boxes: on their way they are moved some eight times.
    queue: RwLock<Option<SyncSender<Box<Copy>>>>,
    /// Told when all is written.
    done: Mutex<Receiver<()>>,
    /// The program that reads, if it is one.
    program: Program,
    held: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
    /// Whether copies become messages there.
    pub(super) captures: bool,
}

impl Place {
    /// Opens a place. What cannot be opened is tried again, and told to the log.
    pub(crate) fn open(to: &CopyTo, queue: usize, lost: Counter, bytes: Counter, log: Log) -> Arc<Self> {
        let (sender, receiver) = sync_channel(queue);
        let (held, broken) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (tell, done) = sync_channel(1);
        let program = Program::default();
        let writer = Writer {
            to: to.clone(),
            program: Arc::clone(&program),
            queue: receiver,
            held: Arc::clone(&held),
            broken: Arc::clone(&broken),
            lost,
            bytes,
            log: log.clone(),
        };
        let write = move || {
            writer.run();
            // Whoever closes it may not wait any more.
            let _ = tell.send(());
        };
        let started = std::thread::Builder::new().name("copies".into()).spawn(write);
        if let Err(error) = started {
            log.warn("copies", &[("failure", error.to_string().into())]);
        }
        let (queue, done) = (RwLock::new(Some(sender)), Mutex::new(done));
        let captures = matches!(to, CopyTo::Capture(_));
        Arc::new(Self { queue, done, program, held, broken, captures })
    }

    /// Takes a copy, if there is room for it. Never waits.
    pub(super) fn put(&self, copy: Box<Copy>) -> bool {
        let bytes = copy.len();
        if self.broken.load(Ordering::Acquire) || self.held.load(Ordering::Acquire) + bytes > MOST_BYTES {
            return false;
        }
        self.held.fetch_add(bytes, Ordering::AcqRel);
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let taken = queue.as_ref().is_some_and(|queue| queue.try_send(copy).is_ok());
        if !taken {
            self.held.fetch_sub(bytes, Ordering::AcqRel);
        }
        taken
    }

    /// Takes no more copies, and waits until those that it has are written; a program that does not read them in this time is ended.
    pub(super) fn close(&self, time: Duration) {
        let queue = self.queue.write().unwrap_or_else(PoisonError::into_inner).take();
        drop(queue);
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        if done.recv_timeout(time).is_err()
            && let Some(program) = &mut *self.program.lock().unwrap_or_else(PoisonError::into_inner)
        {
            // It may have ended by itself.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// A program that copies go to, while it runs.
type Program = Arc<Mutex<Option<Child>>>;

/// The thread that writes. It ends when nobody can give it copies any more, after what waits.
struct Writer {
    to: CopyTo,
    program: Program,
    queue: Receiver<Box<Copy>>,
    held: Arc<AtomicUsize>,
    broken: Arc<AtomicBool>,
    lost: Counter,
    bytes: Counter,
    log: Log,
}

/// An open place.
enum Output {
    Lines(BufWriter<File>),
    Capture(BufWriter<File>, Box<Tape>),
    Program(Program, BufWriter<ChildStdin>),
    /// Nothing but their number and their octets is kept.
    Count,
}

impl Writer {
    fn run(self) {
        let mut output = None;
        // Whether something was written since the last moment of rest.
        let mut written = false;
        loop {
            if output.is_none() {
                match Output::open(&self.to, &self.program) {
                    Ok(opened) => {
                        output = Some(opened);
                        self.broken.store(false, Ordering::Release);
                    }
                    Err(error) => {
                        self.complain("the place of copies cannot be opened", &error);
                        if self.rest() {
                            return;
                        }
                        continue;
                    }
                }
            }
            let Some(open) = &mut output else { continue };
            let next = match self.queue.try_recv() {
                Ok(copy) => Some(copy),
                // What comes within a moment is written together, and wakes nobody.
                Err(TryRecvError::Empty) if written => {
                    written = false;
                    std::thread::sleep(MOMENT);
                    continue;
                }
                // All that is there was written: let others see it.
                Err(_) => match open.flush() {
                    Ok(()) => match self.queue.recv() {
                        Ok(copy) => Some(copy),
                        Err(_) => return,
                    },
                    Err(error) => {
                        self.complain("copies cannot be written", &error);
                        output = None;
                        if self.rest() {
                            return;
                        }
                        continue;
                    }
                },
            };
            let Some(copy) = next else { continue };
            self.held.fetch_sub(copy.len(), Ordering::AcqRel);
            self.bytes.inc_by(copy.len() as u64);
            written = true;
            if let Err(error) = open.write(&copy) {
                self.lost.inc();
                self.complain("copies cannot be written", &error);
                output = None;
                if self.rest() {
                    return;
                }
            }
        }
    }

    fn complain(&self, event: &str, error: &io::Error) {
        self.broken.store(true, Ordering::Release);
        let to = match &self.to {
            CopyTo::Lines(path) | CopyTo::Capture(path) => path.display().to_string(),
            CopyTo::Program(command) | CopyTo::Route(command) => command.clone(),
            CopyTo::Count => String::new(),
        };
        self.log.warn(event, &[("to", to.into()), ("failure", error.to_string().into())]);
    }

    /// Leaves a broken place alone for a moment; what still waits for it is lost. Whether nobody copies any more.
    fn rest(&self) -> bool {
        loop {
            match self.queue.recv_timeout(PAUSE) {
                Ok(copy) => {
                    self.held.fetch_sub(copy.len(), Ordering::AcqRel);
                    self.lost.inc();
                }
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }
}

impl Output {
    fn open(to: &CopyTo, program: &Program) -> io::Result<Self> {
        match to {
            CopyTo::Lines(path) => Ok(Self::Lines(BufWriter::new(append(path)?))),
            CopyTo::Capture(path) => {
                let file = append(path)?;
                let mut file = BufWriter::new(file);
                // A section of its own each time: captures may be put one behind the other.
                file.write_all(&capture::section())?;
                Ok(Self::Capture(file, Box::default()))
            }
            CopyTo::Program(command) => {
                let mut child = Command::new("sh")
                    .arg("-c")
                    .arg(command)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::null())
                    .spawn()?;
                match child.stdin.take() {
                    Some(input) => {
                        *program.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
                        Ok(Self::Program(Arc::clone(program), BufWriter::new(input)))
                    }
                    None => Err(io::Error::other("the program has no standard input")),
                }
            }
            CopyTo::Count => Ok(Self::Count),
            CopyTo::Route(_) => Err(io::Error::other("a route is no place")),
        }
    }

    fn write(&mut self, copy: &Copy) -> io::Result<()> {
        match self {
            Self::Lines(file) => file.write_all(copy.line().as_bytes()),
            Self::Capture(file, tape) => file.write_all(&tape.packets(copy)),
            Self::Program(_, input) => input.write_all(copy.line().as_bytes()),
            Self::Count => Ok(()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(file) | Self::Capture(file, _) => file.flush(),
            Self::Count => Ok(()),
            Self::Program(program, input) => {
                input.flush()?;
                let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
                match program.as_mut().map(Child::try_wait).transpose()?.flatten() {
                    Some(status) => Err(io::Error::other(format!("the program ended ({status})"))),
                    None => Ok(()),
                }
            }
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
