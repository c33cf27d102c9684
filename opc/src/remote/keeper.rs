//! Who keeps the subscriptions to one server: a thread for all of them, which alone waits for that server, and which there is only as
//! long as there are any. A server that hangs keeps nobody waiting but those who want something of it.
//!
//! * A subscription has a number, by which notes find it, and a moment at which its turn comes. Between its turns it costs no thread.
//! * The thread ends when there is nothing to keep. It says so under the lock under which a subscription begins, so none is left behind.
//! * A listener that panics ends its own subscription, and no other.

use super::Link;
use super::feed::{Feed, Note};
use crate::sync::lock;
use everywire::{Failure, Initiator, Kind};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// What the thread is told.
enum Word {
    /// Here is another one.
    Begin(u64, Box<Feed>),
    /// Something for one of them.
    Note(u64, Note),
}

/// The thread, as those see it who begin subscriptions.
pub(super) struct SubscriptionThread {
    tell: Sender<Word>,
    thread: ThreadId,
    next: u64,
}

/// Tells one subscription something.
#[derive(Clone)]
pub(super) struct FeedNotifier {
    tell: Sender<Word>,
    number: u64,
    thread: ThreadId,
}

impl FeedNotifier {
    pub(super) fn tell(&self, note: Note) {
        // The subscription may be over, and the thread with it.
        let _ = self.tell.send(Word::Note(self.number, note));
    }

    /// Whether this is the thread, which must not wait for itself.
    pub(super) fn is_here(&self) -> bool {
        std::thread::current().id() == self.thread
    }
}

/// Has a subscription kept that is made with the way to tell it something.
pub(super) fn keep(
    link: &Arc<Link>,
    feed: impl FnOnce(FeedNotifier) -> Feed,
) -> Result<FeedNotifier, Failure> {
    let mut held = lock(&link.keeper);
    let keeper = match &mut *held {
        Some(keeper) => keeper,
        none => none.insert(begin(link)?),
    };
    keeper.next += 1;
    let teller = FeedNotifier { tell: keeper.tell.clone(), number: keeper.next, thread: keeper.thread };
    // It takes what it is told until it has said under this lock that it ends.
    let _ = keeper.tell.send(Word::Begin(keeper.next, Box::new(feed(teller.clone()))));
    Ok(teller)
}

fn begin(link: &Arc<Link>) -> Result<SubscriptionThread, Failure> {
    let (tell, words) = channel();
    let link = Arc::clone(link);
    let thread = std::thread::Builder::new()
        .name("everywire-opc-feed".to_owned())
        .spawn(move || ThreadState { link, words, feeds: HashMap::new(), turns: BTreeSet::new() }.run());
    let thread = thread.map_err(|error| {
        Failure::new(Kind::Internal, Initiator::Here, format!("the system gives no thread: {error}"))
    })?;
    Ok(SubscriptionThread { tell, thread: thread.thread().id(), next: 0 })
}

/// What the thread has.
struct ThreadState {
    link: Arc<Link>,
    words: Receiver<Word>,
    feeds: HashMap<u64, Box<Feed>>,
    /// When whose turn is.
    turns: BTreeSet<(Instant, u64)>,
}

impl ThreadState {
    fn run(mut self) {
        loop {
            while let Some((due, number)) =
                self.turns.first().copied().filter(|(due, _)| *due <= Instant::now())
            {
                self.turns.remove(&(due, number));
                self.turn(number, None);
                // Whoever wants to leave does not wait until all have had their turn.
                while let Ok(word) = self.words.try_recv() {
                    self.hear(word);
                }
            }
            let word = match self.turns.first() {
                Some((due, _)) => self.words.recv_timeout(due.saturating_duration_since(Instant::now())),
                None if self.feeds.is_empty() => match self.last() {
                    Some(word) => Ok(word),
                    None => return,
                },
                // Each that is kept has a turn.
                None => self.words.recv_timeout(Duration::from_secs(1)),
            };
            match word {
                Ok(word) => self.hear(word),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// A word that came just now; or nothing, and from now on whoever begins a subscription begins a thread.
    fn last(&self) -> Option<Word> {
        let mut held = lock(&self.link.keeper);
        let word = self.words.try_recv().ok();
        if word.is_none() {
            *held = None;
        }
        word
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Begin(number, feed) => {
                self.turns.insert((feed.due(), number));
                self.feeds.insert(number, feed);
            }
            Word::Note(number, note) => {
                if let Some(feed) = self.feeds.get(&number) {
                    self.turns.remove(&(feed.due(), number));
                    self.turn(number, Some(note));
                }
            }
        }
    }

    fn turn(&mut self, number: u64, note: Option<Note>) {
        let Some(feed) = self.feeds.get_mut(&number) else { return };
        let lives = catch_unwind(AssertUnwindSafe(|| match note {
            Some(note) => feed.take(note),
            None => feed.turn(),
        }));
        if let Ok(true) = lives {
            self.turns.insert((feed.due(), number));
        } else {
            let over = self.feeds.remove(&number);
            // What it holds may call somebody when it is let go.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(over)));
        }
    }
}
