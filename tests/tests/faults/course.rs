//! The wires that the faults are tried on, and a server for each within this process.

use crate::common::house::Log;
use everywire::Node;
use everywire_auth::ice::AuthorityFile;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A wire, and the sockets of a run.
pub struct Course {
    pub name: String,
    /// What the server listens at.
    pub listen: String,
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

/// A server within this process.
pub struct House {
    node: Node,
    log: Log,
}

impl House {
    pub fn start(course: &Course) -> Self {
        let node = Node::new();
        let log = Log::new(course.between.with_file_name("log"));
        node.export_servant("counter", Arc::new(log.counter(true)));
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
        Self { node, log }
    }

    /// Ends when everybody has gone; how often each call ran.
    pub fn stop(self) -> BTreeMap<i32, u32> {
        let end = Instant::now() + Duration::from_secs(10);
        while self.node.connections() > 1 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.node.stop();
        self.log.read().began
    }
}
