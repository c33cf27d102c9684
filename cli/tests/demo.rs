//! The demo: each command that it prints works as it is printed.

use crate::support::{PROGRAM, Running, Said, Scratch};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// A demo in a home of its own, and what it printed.
struct Demo {
    running: Running,
    lines: Vec<String>,
    scratch: Scratch,
}

/// What makes a home of its own of a directory.
fn home(scratch: &Scratch) -> Vec<(&'static str, String)> {
    vec![
        ("HOME", scratch.path("")),
        ("XDG_RUNTIME_DIR", scratch.path("")),
        ("ICEAUTHORITY", scratch.path("cookies")),
    ]
}

impl Demo {
    fn start(words: &[&str]) -> Self {
        let scratch = Scratch::new();
        std::fs::set_permissions(scratch.path(""), std::fs::Permissions::from_mode(0o700)).unwrap();
        let running = Running::start_in(&home(&scratch), &[&["demo"], words].concat());
        Self { running, lines: Vec::new(), scratch }
    }

    /// The commands: of what is printed, whatever is no comment.
    fn commands(&mut self) -> Vec<String> {
        // The last one that is printed is known.
        while !self.lines.last().is_some_and(|line| line.contains("Counters.Seconds")) {
            let line = self.running.text();
            self.lines.push(line);
        }
        self.lines.iter().filter(|line| !line.is_empty() && !line.starts_with('#')).cloned().collect()
    }

    /// Runs a command as a person would who copied it.
    fn shell(&self, command: &str) -> Said {
        let path = std::env::var("PATH").unwrap_or_default();
        let program = Path::new(PROGRAM).parent().unwrap().display();
        let output = Command::new("sh")
            .args(["-c", command])
            .envs(home(&self.scratch))
            .env("PATH", format!("{program}:{path}"))
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Said { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn each_command_that_the_demo_prints_works() {
    let mut demo = Demo::start(&[]);
    let commands = demo.commands();
    let of = |scheme: &str| commands.iter().filter(|command| command.contains(scheme)).count();
    for scheme in ["iiop://", "dbus+unix://", "dcop+unix://", "dcom://", "net.tcp://", "basic://", "opcda://"]
    {
        assert!(of(scheme) >= 2, "{scheme} has too few of {commands:#?}");
    }
    let mut wrong = Vec::new();
    for command in &commands {
        let said = demo.shell(command);
        if said.code != 0
            || said.out.trim().is_empty() && !command.contains("Name=") && !command.contains("write")
        {
            wrong.push(format!("{command}\n  {} / {} / {}", said.code, said.out, said.err));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What they did is seen: the property was written, and the level changed.
    let tank = commands.iter().find(|command| command.contains("Name=")).unwrap();
    assert_eq!(demo.shell(&tank.replace("Name='Tank 2'", "Name")).good(), "Tank 2");
    let level: f64 = demo.shell(&tank.replace("Name='Tank 2'", "Level")).good().parse().unwrap();
    assert!(level > 100.0, "{level}");
    let empty = demo.shell(&tank.replace("Name='Tank 2'", "Drain 5000"));
    assert!(empty.code == 1 && empty.err.contains("org.example.Tank.Error.Empty"), "{}", empty.err);
    // It leaves nothing behind.
    let (code, said) = demo.running.end("-TERM");
    assert_eq!((code, said.as_str()), (0, ""));
    let left = std::fs::read_dir(demo.scratch.path("")).unwrap();
    let left: Vec<String> =
        left.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("everywire-demo")), "{left:?}");
}

#[test]
fn the_demo_ends_after_its_time_and_tells_programs_what_it_serves() {
    let mut demo = Demo::start(&["--json", "--for", "1ms"]);
    let told: serde_json::Value = serde_json::from_str(&demo.running.line()).unwrap();
    let wires: Vec<&str> =
        told["value"].as_array().unwrap().iter().map(|group| group["wire"].as_str().unwrap()).collect();
    assert_eq!(wires, ["iiop", "dbus", "dcop", "dcom", "net.tcp", "http", "opcda"]);
    assert!(
        told["value"][0]["commands"][0]["command"]
            .as_str()
            .unwrap()
            .starts_with("everywire describe iiop://"),
        "{told}"
    );
    assert_eq!(demo.running.rest(), "");
}
