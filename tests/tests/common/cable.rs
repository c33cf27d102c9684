//! A second network beside the test's own, joined to it by one cable.

use super::foreign::until;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

/// The address of the test's end.
pub const HERE: &str = "10.77.0.1";
/// The address of the other end.
pub const THERE: &str = "10.77.0.2";

/// The cable, and the network at its other end. Both are gone with this value.
pub struct Cable {
    /// A process of that network, which keeps it.
    keeper: Child,
}

impl Cable {
    /// Lays it. The test must be in a network of its own already ([`super::dcom::alone`]).
    pub fn lay() -> Self {
        let mut keeper = Command::new("unshare")
            .args(["-n", "sh", "-c", "ip link set lo up && echo up && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        assert_eq!(line, "up\n");
        let cable = Self { keeper };
        let pid = cable.keeper.id().to_string();
        ip(&["link", "add", "near", "type", "veth", "peer", "name", "far", "netns", &pid]);
        ip(&["address", "add", &format!("{HERE}/24"), "dev", "near"]);
        ip(&["link", "set", "near", "up"]);
        for rest in
            [&["address", "add", &format!("{THERE}/24"), "dev", "far"][..], &["link", "set", "far", "up"]]
        {
            assert!(cable.there("ip").args(rest).status().expect("ip starts").success(), "{rest:?}");
        }
        cable.wait_until_it_passes();
        cable
    }

    /// On a busy machine the kernel takes seconds to notice that the other end is up; until then it throws away even the questions
    /// for a neighbour's address.
    fn wait_until_it_passes(&self) {
        for (mut ip, end) in [(Command::new("ip"), "near"), (self.there("ip"), "far")] {
            ip.args(["-oneline", "link", "show", "dev", end]);
            until("both ends of the cable are up", || {
                let output = ip.output().expect("ip starts");
                let said = String::from_utf8_lossy(&output.stdout);
                said.contains("LOWER_UP") && said.contains("state UP")
            });
        }
    }

    /// Does something in the other network, on a thread of its own: the threads that it starts, and their connections, are there too.
    pub fn inside<T: Send>(&self, deed: impl FnOnce() -> T + Send) -> T {
        let network = std::fs::File::open(format!("/proc/{}/ns/net", self.keeper.id())).expect("a network");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let kind = Some(rustix::thread::LinkNameSpaceType::Network);
                rustix::thread::move_into_link_name_space(network.as_fd(), kind)
                    .expect("the network is ours");
                deed()
            });
            inside.join().expect("it does not panic")
        })
    }

    /// Nothing passes any more, and nobody is told: what was under way is lost.
    pub fn cut(&self) {
        self.set("down");
    }

    /// It passes again.
    pub fn mend(&self) {
        self.set("up");
        self.wait_until_it_passes();
    }

    fn set(&self, state: &str) {
        let status = self.there("ip").args(["link", "set", "far", state]).status();
        assert!(status.expect("ip starts").success(), "far {state}");
    }

    /// A program that will run in the other network.
    pub fn there(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.keeper.id())).arg(program);
        command
    }

    /// The same program with the same arguments and variables, in the other network.
    pub fn instead(&self, command: &Command) -> Command {
        let mut moved = self.there(command.get_program());
        moved.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => moved.env(name, value),
                None => moved.env_remove(name),
            };
        }
        moved
    }
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().expect("ip starts").success(), "{arguments:?}");
}

impl Drop for Cable {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
