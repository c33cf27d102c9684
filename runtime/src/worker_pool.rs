//! Operations that block, and the pool of threads that they run on.
//!
//! An operation begins on the thread that leads a shard. When the supervisor sees it block there, it is marked, and its next calls go
//! to the pool at once: hundreds of them may sleep at a time, and nobody waits some 20 ms for each to be noticed. A marked operation that
//! ends quickly or never sleeps, time after time, is unmarked again: one that only computes gains nothing from a hundred threads,
//! and takes the CPU from all others with them. That it took long says nothing: on a busy machine everything does. So a thread asks
//! the kernel how often it has slept.
//!
//! Few jobs run at a time, and many sleep. Whoever runs holds what it makes of its call, and its answer while that is encoded, which
//! no budget counts: hundreds of threads that compute would hold hundreds of answers, and gain nothing by it. So jobs begin as long as
//! fewer than `may_be_awake` threads are *awake*: one is from the begin of its job until that ends, or until it is seen asleep. A thread of its
//! own looks at those that are awake, each [`LOOK`], while jobs wait for them. It also looks at some of those that were seen asleep: if many
//! of them are awake again (`crowd`), nothing more begins for a while. One that waits for a lock of this runtime is as good as
//! awake ([`waits_for_lock`]): it has its answer already, and its servant has not slept.
//!
//! States of a thread: *called* (started or woken for a job, which it has not taken yet), *awake*, *asleep*, *idle*.
//!
//! Invariants of the pool: where a job waits, all threads that may be awake are, or one is called for it, or there are as many as there may be.
//! Who ends a job looks for the next one. Where jobs wait for those that are awake, somebody looks whether these sleep. Jobs begin in the
//! order in which they came.

use crate::sync::lock;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls that have to end quickly before an operation is taken for one that does not block.
const PROBATION: u32 = 64;
/// A call that takes less than this is no reason for a thread of its own.
const QUICK: Duration = Duration::from_millis(1);
/// How long a thread of the pool waits for work before it ends.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often threads that are awake are looked at, while jobs wait for them.
const LOOK: Duration = Duration::from_millis(1);
/// How long nobody has to wait for them until nobody looks any more.
const QUIET: Duration = Duration::from_millis(100);
/// Threads that were seen asleep of which is looked at in one go whether they are awake again.
const SAMPLE: usize = 8;
/// Threads that may be awake for each processor, and at least: more than can run, since each sleep is noticed a little late.
const AWAKE_EACH: usize = 2;
const AWAKE: usize = 8;

/// Whether the calls of one operation block: above 0, they did, and so many have to end quickly until that is forgotten.
#[derive(Debug, Default)]
pub(crate) struct BlockingRecord(AtomicU32);

/// Those of a servant's operations, by their numbers.
pub(crate) type BlockingRecords = Arc<[BlockingRecord]>;

/// Those of a servant with so many operations.
pub(crate) fn blocking_records(operations: usize) -> BlockingRecords {
    (0..operations).map(|_| BlockingRecord::default()).collect()
}

impl BlockingRecord {
    /// Whether calls go to the pool.
    #[inline]
    pub(crate) fn blocks(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// A call was seen to block.
    pub(crate) fn mark(&self) {
        self.0.store(PROBATION, Ordering::Relaxed);
    }

    /// A call that ran in the pool took so long, and slept or did not.
    fn took(&self, time: Duration, slept: bool) {
        if slept && time >= QUICK {
            self.mark();
        } else {
            // Nothing is below nothing.
            let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        }
    }
}

/// A call to be run, and the record of its operation; `records` may be empty for work that is no operation's.
pub(crate) struct Job {
    /// Returns whether the operation was asked for at all.
    pub(crate) run: Box<dyn FnOnce() -> bool + Send>,
    pub(crate) records: BlockingRecords,
    pub(crate) index: usize,
}

/// Threads for operations that block; one pool for each node.
pub(crate) struct Pool {
    state: Arc<(Mutex<State>, Condvar)>,
}

/// What all threads of a pool know.
struct State {
    /// Each with its number.
    jobs: VecDeque<(u64, Job)>,
    numbers: u64,
    /// The most threads; 0: there is no pool, and every job is given back.
    most: usize,
    /// Threads that may be awake.
    may_be_awake: usize,
    /// All threads; those that wait for a job; those that are to take one; those that run one and were not seen asleep.
    threads: usize,
    idle: usize,
    called: usize,
    awake: usize,
    /// About how many of those that were seen asleep run again.
    crowd: usize,
    /// Those that run a job.
    workers: Vec<Arc<Worker>>,
    /// Whether somebody looks at them.
    watched: bool,
    over: bool,
}

/// A thread of a pool, while it runs a job.
struct Worker {
    /// By the kernel's number.
    thread: i32,
    /// Whether it was seen asleep; changes under the lock of the pool.
    asleep: AtomicBool,
    /// Whether it waits for a lock of this runtime, and how often it has slept for one.
    waits: AtomicBool,
    slept: AtomicI64,
}

thread_local! {
    /// What the calling thread is, if it belongs to a pool.
    static WORKER: RefCell<Option<Arc<Worker>>> = const { RefCell::new(None) };
}

impl Pool {
    /// At most so many threads.
    pub(crate) fn new(most: usize) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let state = State {
            jobs: VecDeque::new(),
            numbers: 0,
            most,
            may_be_awake: AWAKE.max(processors * AWAKE_EACH),
            threads: 0,
            idle: 0,
            called: 0,
            awake: 0,
            crowd: 0,
            workers: Vec::new(),
            watched: false,
            over: false,
        };
        Self { state: Arc::new((Mutex::new(state), Condvar::new())) }
    }

    /// Runs a call on a thread of the pool, now or when one is done with others. A job is given back, if
    /// there is no thread and none can be had; those of others that counted on that thread run here first.
    pub(crate) fn run(&self, job: Job) -> Result<(), Job> {
        self.run_on(job, start)
    }

    fn run_on<T>(
        &self,
        job: Job,
        spawn: impl FnOnce(Arc<(Mutex<State>, Condvar)>) -> std::io::Result<T>,
    ) -> Result<(), Job> {
        let (mutex, bell) = &*self.state;
        let mut state = lock(mutex);
        if state.over || state.most == 0 {
            return Err(job);
        }
        state.numbers += 1;
        let number = state.numbers;
        state.jobs.push_back((number, job));
        match state.call_up() {
            Some(WorkerChoice::Idle) => {
                drop(state);
                bell.notify_one();
                return Ok(());
            }
            Some(WorkerChoice::New) => {}
            None => {
                let watch = state.needs_watch();
                drop(state);
                if watch {
                    self.watch();
                }
                return Ok(());
            }
        }
        drop(state);
        if spawn(Arc::clone(&self.state)).is_ok() {
            return Ok(());
        }
        let mut state = lock(mutex);
        state.take_back();
        if state.threads > 0 {
            // Others will come to it.
            return Ok(());
        }
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        let mut own = None;
        for (held, job) in left {
            if held == number {
                own = Some(job);
            } else {
                // What panics has told the log.
                let _ = catch_unwind(AssertUnwindSafe(job.run));
            }
        }
        // Not there: another thread that got no thread either has run it.
        own.map_or(Ok(()), Err)
    }

    /// Starts the thread that looks whether those that are awake sleep.
    #[cold]
    fn watch(&self) {
        let shared = Arc::clone(&self.state);
        let watch = move || watch(&shared);
        if std::thread::Builder::new().name("everywire-awake".into()).spawn(watch).is_err() {
            // Nobody would see that all of them sleep: from now on any number may be awake.
            let mut state = lock(&self.state.0);
            (state.may_be_awake, state.watched) = (usize::MAX, false);
            drop(state);
            call_up_all(&self.state);
        }
    }

    /// Its threads end; what has not begun is dropped.
    pub(crate) fn stop(&self) {
        let (mutex, bell) = &*self.state;
        let mut state = lock(mutex);
        state.over = true;
        let dropped = std::mem::take(&mut state.jobs);
        drop(state);
        bell.notify_all();
        // Without the lock: they hold what is the user's.
        drop(dropped);
    }
}

/// Who was called up for a job: one that is to be woken, or one that is to be started.
enum WorkerChoice {
    Idle,
    New,
}

impl State {
    /// Counts a thread for a job for which nobody is called yet, if one more may be awake.
    fn call_up(&mut self) -> Option<WorkerChoice> {
        if self.jobs.len() <= self.called || self.are_enough() {
            return None;
        }
        if self.idle > 0 {
            self.idle -= 1;
            self.called += 1;
            return Some(WorkerChoice::Idle);
        }
        if self.threads >= self.most {
            return None;
        }
        self.threads += 1;
        self.called += 1;
        Some(WorkerChoice::New)
    }

    /// One that was called could not be started.
    fn take_back(&mut self) {
        self.threads -= 1;
        self.called = self.called.saturating_sub(1);
    }

    /// Whether somebody is to be started who looks at those that are awake.
    fn needs_watch(&mut self) -> bool {
        self.jobs.len() > self.called
            && self.are_enough()
            && !self.over
            && !std::mem::replace(&mut self.watched, true)
    }

    /// Whether no more threads may be awake than are, or are called.
    fn are_enough(&self) -> bool {
        self.awake + self.called + self.crowd >= self.may_be_awake
    }

    /// The next job, if this thread may be awake.
    fn next(&mut self) -> Option<Job> {
        if self.awake + self.crowd >= self.may_be_awake {
            return None;
        }
        self.jobs.pop_front().map(|(_, job)| job)
    }
}

/// Calls up all that jobs wait for.
fn call_up_all(shared: &Arc<(Mutex<State>, Condvar)>) {
    let mut state = lock(&shared.0);
    while let Some(called) = state.call_up() {
        match called {
            WorkerChoice::Idle => shared.1.notify_one(),
            WorkerChoice::New => {
                drop(state);
                let started = start(Arc::clone(shared)).is_ok();
                state = lock(&shared.0);
                if !started {
                    // Others are there: those that were seen asleep.
                    return state.take_back();
                }
            }
        }
    }
}

/// Starts a thread that was called up.
fn start(shared: Arc<(Mutex<State>, Condvar)>) -> std::io::Result<()> {
    let work = move || work(&Pool { state: shared });
    std::thread::Builder::new().name("everywire-blocks".into()).spawn(work).map(drop)
}

/// Looks at the threads that are awake, as long as jobs wait for them, and a while longer; calls up others for those that sleep.
fn watch(shared: &Arc<(Mutex<State>, Condvar)>) {
    let mut quiet = Duration::ZERO;
    let mut first = 0;
    loop {
        std::thread::sleep(LOOK);
        let mut state = lock(&shared.0);
        let waits = state.jobs.len() > state.called;
        quiet = if waits { Duration::ZERO } else { quiet + LOOK };
        if state.over || quiet >= QUIET {
            (state.watched, state.crowd) = (false, 0);
            return;
        }
        if !waits {
            continue;
        }
        let (mut asleep, awake): (Vec<_>, Vec<_>) =
            state.workers.iter().cloned().partition(|held| held.asleep.load(Ordering::Relaxed));
        drop(state);
        let sleeping: Vec<_> = awake.into_iter().filter(|worker| worker.sleeps()).collect();
        // Each has its turn to be looked at.
        let all = asleep.len();
        asleep.rotate_left(first % all.max(1));
        asleep.truncate(SAMPLE);
        first = first.wrapping_add(SAMPLE);
        let woken = asleep.iter().filter(|worker| !worker.sleeps()).count();
        let mut state = lock(&shared.0);
        state.crowd = woken * all / asleep.len().max(1);
        for worker in sleeping {
            // It may have ended its job meanwhile: then it counts no longer.
            let works = state.workers.iter().any(|held| Arc::ptr_eq(held, &worker));
            if works && !worker.asleep.swap(true, Ordering::Relaxed) {
                state.awake -= 1;
            }
        }
        drop(state);
        call_up_all(shared);
    }
}

/// A thread's life: runs jobs until there has been none for `PATIENCE`, or the pool has ended.
fn work(pool: &Pool) {
    let (mutex, bell) = &*pool.state;
    let worker = Arc::new(Worker::here());
    WORKER.set(Some(Arc::clone(&worker)));
    let mut state = lock(mutex);
    // It was called.
    state.called = state.called.saturating_sub(1);
    loop {
        if let Some(Job { run, records, index }) = state.next() {
            worker.asleep.store(false, Ordering::Relaxed);
            worker.slept.store(0, Ordering::Relaxed);
            state.awake += 1;
            state.workers.push(Arc::clone(&worker));
            drop(state);
            let (begun, sleeps) = (Instant::now(), sleeps());
            // What panics has told the log.
            let ran = catch_unwind(AssertUnwindSafe(run)).unwrap_or(true);
            if ran && let Some(record) = records.get(index) {
                let slept = self::sleeps() - sleeps - worker.slept.load(Ordering::Relaxed);
                record.took(begun.elapsed(), slept > 0);
            }
            drop(records);
            state = lock(mutex);
            state.workers.retain(|held| !Arc::ptr_eq(held, &worker));
            if !worker.asleep.load(Ordering::Relaxed) {
                state.awake -= 1;
            }
            continue;
        }
        if state.over {
            break;
        }
        if state.needs_watch() {
            drop(state);
            pool.watch();
            state = lock(mutex);
            continue;
        }
        state.idle += 1;
        let (back, waited) = bell.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        state = back;
        // Who is called is any of those that wait: whoever comes first takes the place.
        if state.called > 0 {
            state.called -= 1;
        } else {
            state.idle -= 1;
            if waited.timed_out() {
                break;
            }
        }
    }
    state.threads -= 1;
}

impl Worker {
    /// The calling thread.
    fn here() -> Self {
        Self {
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
            asleep: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            slept: AtomicI64::new(0),
        }
    }

    /// Whether it sleeps, and not for a lock of this runtime.
    fn sleeps(&self) -> bool {
        is_asleep(self.thread) && !self.waits.load(Ordering::Relaxed)
    }
}

/// Does what may sleep for a lock of this runtime: that is no sleep of a servant's.
pub(crate) fn waits_for_lock<T>(wait: impl FnOnce() -> T) -> T {
    let Some(worker) = WORKER.with_borrow(Clone::clone) else { return wait() };
    let before = sleeps();
    worker.waits.store(true, Ordering::Relaxed);
    let done = wait();
    worker.waits.store(false, Ordering::Relaxed);
    worker.slept.fetch_add(sleeps() - before, Ordering::Relaxed);
    done
}

/// Whether a thread of this process sleeps; one whose state cannot be read is taken to.
pub(crate) fn is_asleep(thread: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    !stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('R'))
}

/// How often the calling thread has given up the CPU of its own accord: it slept for something.
fn sleeps() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the place to be written is this one, which is ours alone and large enough; zeros are a value of it, should the kernel
    // write nothing.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    }
    .ru_nvcsw
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn job(records: &BlockingRecords, run: impl FnOnce() + Send + 'static) -> Job {
        let run = Box::new(move || {
            run();
            true
        });
        Job { run, records: Arc::clone(records), index: 0 }
    }

    #[test]
    fn jobs_wait_for_a_thread_and_begin_in_order() {
        let pool = Pool::new(1);
        let records = blocking_records(1);
        let (tell, told) = mpsc::channel();
        for n in 0..100 {
            let tell = tell.clone();
            assert!(pool.run(job(&records, move || tell.send(n).unwrap())).is_ok());
        }
        drop(tell);
        assert_eq!(told.iter().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
        pool.stop();
        assert!(pool.run(job(&records, || {})).is_err());
    }

    #[test]
    fn where_no_thread_can_be_had_each_caller_gets_its_own_job_back() {
        let pool = Pool::new(1);
        let records = blocking_records(1);
        let (tell, told) = mpsc::channel();
        let mine = job(&records, || unreachable!("it is given back"));
        let given_back = pool.run_on(mine, |_| {
            // Another caller counts on the thread that is being started.
            let tell = tell.clone();
            assert!(pool.run(job(&records, move || tell.send("another's").unwrap())).is_ok());
            Err::<(), _>(std::io::ErrorKind::WouldBlock.into())
        });
        assert!(given_back.is_err());
        assert_eq!(told.try_recv(), Ok("another's"));
        // And now there is a thread.
        let next = job(&records, move || tell.send("next").unwrap());
        assert!(pool.run(next).is_ok());
        assert_eq!(told.recv(), Ok("next"));
        pool.stop();
    }

    #[test]
    fn as_many_sleep_at_a_time_as_there_may_be_threads() {
        let pool = Pool::new(50);
        let records = blocking_records(1);
        let all = Arc::new(std::sync::Barrier::new(50));
        let (tell, told) = mpsc::channel();
        for _ in 0..50 {
            let (all, tell) = (Arc::clone(&all), tell.clone());
            assert!(
                pool.run(job(&records, move || {
                    all.wait();
                    tell.send(()).unwrap();
                }))
                .is_ok()
            );
        }
        drop(tell);
        assert_eq!(told.iter().count(), 50);
    }

    #[test]
    fn what_ends_quickly_is_taken_for_blocking_no_longer() {
        let record = BlockingRecord::default();
        record.mark();
        (0..PROBATION - 1).for_each(|_| record.took(Duration::ZERO, true));
        assert!(record.blocks());
        record.took(QUICK, true);
        (0..PROBATION - 1).for_each(|_| record.took(Duration::ZERO, true));
        assert!(record.blocks());
        record.took(Duration::ZERO, true);
        assert!(!record.blocks());
        record.took(Duration::ZERO, true);
        assert!(!record.blocks());
    }

    #[test]
    fn what_computes_for_long_is_not_taken_for_blocking() {
        let record = BlockingRecord::default();
        record.mark();
        (0..PROBATION).for_each(|_| record.took(QUICK * 100, false));
        assert!(!record.blocks());
    }

    #[test]
    fn a_thread_that_sleeps_is_known_by_it() {
        let before = sleeps();
        // A time that is over before the kernel has put the thread to sleep is no sleep.
        let sleeps = |_| {
            std::thread::sleep(Duration::from_millis(1));
            sleeps() > before
        };
        assert!((0..100).any(sleeps));
    }
}
