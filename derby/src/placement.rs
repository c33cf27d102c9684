//! Where client and server run. A wake-up across CPUs costs several times what a call costs, so figures
//! without their placement say nothing.
//!
//! A `Placement` is chosen once, when the derby begins, and never changes. It names CPUs by the
//! kernel's numbers, and only those that this process may use (`sched_getaffinity`, so a container's
//! limits hold).
//!
//! Invariants: either both sides are bound to a CPU, which may be the same, or both are free. The last
//! CPUs are taken, since the first serves most of the machine's interrupts. A placement that this
//! machine has no CPUs for is left out of the list, and is no error as long as another one is in it.

use everywire_model::Failure;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// CPUs of a server and of its client; `None`: wherever the kernel likes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Its name.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// The server's CPU.
    /// In the race with hops this is the CPU of the hop; `backend` says where the server is then.
    pub server: Option<usize>,
    /// The client's CPU.
    pub client: Option<usize>,
    /// Whether the two are in network namespaces of their own, and meet over a link.
    pub remote: bool,
    /// Whether a program that never rests shares each of their CPUs with them.
    pub busy: bool,
}

/// The names of placements, as asked for with `--placement` and as in the rows of a report.
const SAME: &str = "same";
const DIFFERENT: &str = "different";
const UNPINNED: &str = "unpinned";
const REMOTE: &str = "remote";
const BUSY: &str = "busy";
const BUSY_APART: &str = "busy-different";
const ALL: [&str; 6] = [SAME, DIFFERENT, UNPINNED, REMOTE, BUSY, BUSY_APART];

/// The placements with these names that this machine has CPUs for; without names all of them.
///
/// # Errors
/// A name is unknown, or there are CPUs for none of them.
pub fn named(names: &[String]) -> Result<Vec<Placement>, Failure> {
    choose(names, &allowed_cpus())
}

/// `cpus` are those that may be used, in ascending order: an argument so that tests can have any
/// machine.
fn choose(names: &[String], cpus: &[usize]) -> Result<Vec<Placement>, Failure> {
    for name in names {
        if !ALL.contains(&name.as_str()) {
            return Err(crate::unknown(format!("there is no placement `{name}`"))
                .with_hint(format!("placements are {}", ALL.join(", "))));
        }
    }
    // The last CPUs: the first serves most of the machine's interrupts.
    let mut from_the_last = cpus.iter().rev().copied();
    let (client, server) = (from_the_last.next(), from_the_last.next());
    let mut all = Vec::new();
    if client.is_some() {
        all.push(Placement {
            name: SAME,
            title: "client and server on the same CPU",
            server: client,
            client,
            remote: false,
            busy: false,
        });
    }
    if server.is_some() {
        all.push(Placement {
            name: DIFFERENT,
            title: "client and server on different CPUs",
            server,
            client,
            remote: false,
            busy: false,
        });
    }
    all.push(Placement {
        name: UNPINNED,
        title: "wherever the kernel puts them",
        server: None,
        client: None,
        remote: false,
        busy: false,
    });
    all.push(Placement::remote());
    let crowded = |name, title, server| Placement { name, title, server, client, remote: false, busy: true };
    if client.is_some() {
        all.push(crowded(BUSY, "client and server on the same CPU, beside a busy loop", client));
    }
    if server.is_some() {
        all.push(crowded(BUSY_APART, "client and server on different CPUs, a busy loop on each", server));
    }
    all.retain(|placement| names.is_empty() || names.iter().any(|name| name == placement.name));
    if all.is_empty() {
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        let what = format!("this machine has too few CPUs for the placement {}", names.join(", "));
        return Err(crate::unknown(what)
            .with_hint("without --placement all races run that this machine has CPUs for"));
    }
    Ok(all)
}

impl Placement {
    /// The placement with a link between the two sides. It is not bound to CPUs: two machines would
    /// share none.
    pub(crate) fn remote() -> Self {
        Self {
            name: REMOTE,
            title: "client and server in two network namespaces, joined by a link",
            server: None,
            client: None,
            remote: true,
            busy: false,
        }
    }

    /// Whether each side is bound to a CPU.
    pub fn is_pinned(&self) -> bool {
        self.client.is_some()
    }

    /// Whether this is the placement that the race with hops is run at unasked: client and hop have a
    /// CPU each. On a machine with one CPU that is `same`, since no other is bound.
    pub(crate) fn gives_a_hop_its_own(&self) -> bool {
        self.is_pinned() && !self.busy && (self.parts_the_sides() || allowed_cpus().len() < 2)
    }

    /// The CPU of the backend, where the hop between it and the client has the server's: one of its own
    /// if there is a third, else the client's. Where client and hop share one, it is that one too.
    pub(crate) fn backend(&self) -> Option<usize> {
        backend(self.client, self.server, &allowed_cpus())
    }

    /// The CPUs that the two sides are bound to, each once; empty where they are free.
    pub(crate) fn cpus(&self) -> Vec<usize> {
        let mut cpus: Vec<usize> = self.client.into_iter().chain(self.server).collect();
        cpus.dedup();
        cpus
    }

    /// Whether both sides share one CPU, so that whoever spins keeps the other from running.
    pub fn shares_a_cpu(&self) -> bool {
        self.client.is_some() && self.client == self.server
    }

    /// Whether the two sides can never be one process.
    pub fn parts_the_sides(&self) -> bool {
        self.remote || self.client != self.server
    }
}

/// A CPU that neither client nor hop has, from the last on; see `Placement::backend`.
fn backend(client: Option<usize>, hop: Option<usize>, cpus: &[usize]) -> Option<usize> {
    if client == hop {
        return client;
    }
    cpus.iter().rev().copied().find(|cpu| Some(*cpu) != client && Some(*cpu) != hop).or(client)
}

/// The CPUs that this process may use, in ascending order; empty if the kernel does not say.
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a cpu_set_t is plain bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the pointer and the size are those of `set`.
    let got = unsafe { libc::sched_getaffinity(0, mem::size_of::<libc::cpu_set_t>(), &mut set) };
    if got != 0 {
        return Vec::new();
    }
    let most = mem::size_of::<libc::cpu_set_t>() * 8;
    // SAFETY: `cpu` is below the number of bits in the set.
    (0..most).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Threads that never rest, one bound to each CPU, until this is dropped; dropping waits for them.
pub(crate) struct Loops {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Loops {
    /// Starts one on each of these CPUs. They are threads of this process, so that whoever counts what others use does not count them.
    pub(crate) fn start(cpus: &[usize]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spin = |&cpu: &usize| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let set = only(cpu);
                // SAFETY: the pointer and the size are those of `set`; 0 is the calling thread. Refused: it runs anywhere.
                let _ =
                    unsafe { libc::sched_setaffinity(0, mem::size_of::<libc::cpu_set_t>(), &raw const set) };
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = cpus.iter().map(spin).collect();
        Self { over, threads }
    }
}

impl Drop for Loops {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// The CPUs of the machine, whoever may use them.
pub(crate) fn online_cpus() -> usize {
    // SAFETY: the call takes a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1).max(1)
}

/// A set of one CPU.
pub(crate) fn only(cpu: usize) -> libc::cpu_set_t {
    // SAFETY: a cpu_set_t is plain bits, for which zero is valid.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    if cpu < mem::size_of::<libc::cpu_set_t>() * 8 {
        // SAFETY: `cpu` is below the number of bits in the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_has_no_different_placement() {
        let names = |cpus: &[usize]| choose(&[], cpus).unwrap().iter().map(|p| p.name).collect::<Vec<_>>();
        assert_eq!(names(&[3]), ["same", "unpinned", "remote", "busy"]);
        assert_eq!(names(&[0, 1]), ["same", "different", "unpinned", "remote", "busy", "busy-different"]);
        assert_eq!(names(&[]), ["unpinned", "remote"]);
    }

    #[test]
    fn placements_are_chosen_by_name() {
        let only = |name: &str| choose(&[name.to_owned()], &[0, 5]);
        let different = only("different").unwrap();
        assert_eq!((different[0].client, different[0].server), (Some(5), Some(0)));
        assert!(different[0].parts_the_sides());
        assert!(only("same").unwrap()[0].shares_a_cpu());
        assert_eq!(only("busy").unwrap()[0].cpus(), [5]);
        assert_eq!(only("busy-different").unwrap()[0].cpus(), [5, 0]);
        assert!(only("elsewhere").unwrap_err().hint().unwrap().contains("unpinned"));
    }

    #[test]
    fn a_placement_that_this_machine_lacks_is_no_empty_derby() {
        let failure = choose(&["different".to_owned()], &[3]).unwrap_err();
        assert!(failure.message().contains("`different`"), "{failure}");
        let names = ["different", "same"].map(str::to_owned);
        assert_eq!(choose(&names, &[3]).unwrap().len(), 1);
    }

    #[test]
    fn busy_loops_use_their_cpus_and_end() {
        let used = || crate::measure::cpu_us(None).unwrap_or_default();
        let (before, loops) = (used(), Loops::start(&allowed_cpus()));
        while used() - before < 20_000.0 {
            std::thread::yield_now();
        }
        drop(loops);
    }

    #[test]
    fn this_process_may_use_a_cpu() {
        assert!(!allowed_cpus().is_empty());
    }
}
