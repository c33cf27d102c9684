//! Operations that block, and the pool of threads that they run on.
//!
//! An operation begins on the thread that leads a shard. When the supervisor sees it block there, it is marked, and its next calls go
//! to the pool at once: hundreds of them may sleep at a time, and nobody waits 20 ms for each to be noticed. A marked operation that
//! ends quickly or never sleeps, time after time, is unmarked again: one that only computes gains nothing from a hundred threads,
//! and takes the CPU from all others with them. That it took long says nothing: on a busy machine everything does. So a thread asks
//! the kernel how often it has slept.
//!
//! Invariants of the pool: a job that is taken has a thread that is idle, or that is started for it, as long as there may be more
//! threads; otherwise it waits for the next thread that is done. Jobs begin in the order in which they came.

use crate::sync::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls that have to end quickly before an operation is taken for one that does not block.
const PROBATION: u32 = 64;
/// A call that takes less than this is no reason for a thread of its own.
const QUICK: Duration = Duration::from_millis(1);
/// How long a thread of the pool waits for work before it ends.
const PATIENCE: Duration = Duration::from_secs(10);

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
    pub(crate) run: Box<dyn FnOnce() + Send>,
    pub(crate) records: BlockingRecords,
    pub(crate) index: usize,
}

/// Threads for operations that block; one pool for each node.
pub(crate) struct Pool {
    state: Arc<(Mutex<State>, Condvar)>,
    /// The most threads; 0: there is no pool, and every job is given back.
    most: usize,
}

/// `threads` counts all, `idle` those that wait for a job at this moment.
#[derive(Default)]
struct State {
    /// Each with its number.
    jobs: VecDeque<(u64, Job)>,
    numbers: u64,
    threads: usize,
    idle: usize,
    over: bool,
}

impl Pool {
    /// At most so many threads.
    pub(crate) fn new(most: usize) -> Self {
        Self { state: Arc::default(), most }
    }

    /// Runs a call on a thread of the pool, now or when one is done with others. A job is given back, if
    /// there is no thread and none can be had; those of others that counted on that thread run here first.
    pub(crate) fn run(&self, job: Job) -> Result<(), Job> {
        self.run_on(job, |pool| {
            std::thread::Builder::new().name("everywire-blocks".into()).spawn(move || work(&pool.0, &pool.1))
        })
    }

    fn run_on<T>(
        &self,
        job: Job,
        spawn: impl FnOnce(Arc<(Mutex<State>, Condvar)>) -> std::io::Result<T>,
    ) -> Result<(), Job> {
        let (mutex, bell) = &*self.state;
        let mut state = lock(mutex);
        if state.over || self.most == 0 {
            return Err(job);
        }
        state.numbers += 1;
        let number = state.numbers;
        state.jobs.push_back((number, job));
        if state.idle >= state.jobs.len() {
            drop(state);
            bell.notify_one();
            return Ok(());
        }
        if state.threads >= self.most {
            return Ok(());
        }
        state.threads += 1;
        drop(state);
        if spawn(Arc::clone(&self.state)).is_ok() {
            return Ok(());
        }
        let mut state = lock(mutex);
        state.threads -= 1;
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

/// A thread's life: runs jobs until there has been none for `PATIENCE`, or the pool has ended.
fn work(mutex: &Mutex<State>, bell: &Condvar) {
    let mut state = lock(mutex);
    loop {
        if let Some((_, Job { run, records, index })) = state.jobs.pop_front() {
            drop(state);
            let (begun, sleeps) = (Instant::now(), sleeps());
            // What panics has told the log.
            let _ = catch_unwind(AssertUnwindSafe(run));
            if let Some(record) = records.get(index) {
                record.took(begun.elapsed(), sleeps != self::sleeps());
            }
            drop(records);
            state = lock(mutex);
            continue;
        }
        if state.over {
            break;
        }
        state.idle += 1;
        let (back, waited) = bell.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner);
        state = back;
        state.idle -= 1;
        if waited.timed_out() && state.jobs.is_empty() {
            break;
        }
    }
    state.threads -= 1;
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
        Job { run: Box::new(run), records: Arc::clone(records), index: 0 }
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
