//! `everywire demo`: an object on every wire, at free ports, and commands to try on it.
//!
//! One process serves one tank ([`vessel`]) on all wires, and simulated items of OPC. DCOP applications meet at a server: the demo
//! runs one of its own, which announces itself in the demo's directory, so that it is nobody's session. Sockets and the DCOP server's
//! file are in a directory of the demo's own, which only this user can enter and which is removed at the end.
//!
//! Invariants: whatever is printed can be copied ([`commands`]); nothing is printed before all of it works; nothing listens but on
//! this machine's loopback address and in that directory.

mod commands;
mod place;
mod vessel;

use crate::cli_error::{CliError, Done};
use crate::output::{Envelope, line, note};
use clap::Args;
use commands::{Addresses, Group};
use everywire::Node;
use everywire::model::units::{self, Deadline};
use everywire_opc::server::{OpcEnum, Server, ServerInfo};
use everywire_opc::{Settings, Simulation, Source};
use place::DemoDirectory;
use serde_json::{Value as Json, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use vessel::MemoryTank;

const EXAMPLES: &str = include_str!("../../help/demo.txt");

/// What the object is called, on every wire.
const KEY: &str = "tank";
/// What the OPC server is called.
const OPC: &str = "Everywire.Demo";
/// How often the object tells that time has passed.
const SECOND: Duration = Duration::from_secs(1);
/// How long calls under way may take when the demo ends.
const GRACE: Duration = Duration::from_secs(2);

/// Serve an object on every wire, on this machine, and print commands to try on it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// End after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = units::deadline, default_value = "none")]
    duration: Deadline,
    /// Print one JSON object: what is served, and the commands.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Serves until it is told to end, or the time is over.
pub(crate) fn run(arguments: &Arguments) -> Done {
    let mut signals = Signals::new([SIGINT, SIGTERM])
        .map_err(|error| CliError::local("cannot watch for signals", &error))?;
    let mut place =
        DemoDirectory::new().map_err(|error| CliError::local("cannot make a directory", &error))?;
    let node = Node::new();
    let vessel = MemoryTank::export(&node, KEY);
    let info = ServerInfo::named(OPC);
    let items: Arc<Simulation> = Arc::default();
    OpcEnum::serve(&node).add(&info);
    let opc = Server::serve(&node, info.clone(), items as Arc<dyn Source>, Settings::default())
        .map_err(|failure| CliError::failure(format!("cannot serve `{OPC}`"), &failure))?;
    let dcop = place.dcop();
    let listeners = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("dbus+unix://{}", place.path("dbus.sock")),
        "dcom://127.0.0.1:0?level=none".to_owned(),
        "net.tcp://127.0.0.1:0?security=none".to_owned(),
        "basic://127.0.0.1:0?security=none".to_owned(),
    ];
    for address in listeners.iter().chain(&dcop) {
        node.listen(address)
            .map_err(|failure| CliError::failure(format!("cannot listen on `{address}`"), &failure))?;
    }
    let addresses = Addresses {
        // Now that it is known where it is.
        tank: node.reference(KEY).map(|tank| node.addresses(&tank)).unwrap_or_default(),
        opc: node.class_reference(&info.class).map(|class| node.addresses(&class)).unwrap_or_default(),
        server: info.prog_id.clone(),
    };
    announce(&commands::groups(&addresses), arguments.json);
    let over = Arc::new(AtomicBool::new(false));
    let ticking = {
        let (over, vessel) = (Arc::clone(&over), Arc::clone(&vessel));
        std::thread::spawn(move || tick(&vessel, &over))
    };
    let (end, ended) = mpsc::channel();
    std::thread::spawn(move || {
        signals.forever().next();
        // The time may have been over first.
        let _ = end.send(());
    });
    // Either way it is time to end.
    let _ = match arguments.duration.0 {
        Some(duration) => ended.recv_timeout(duration).ok(),
        None => ended.recv().ok(),
    };
    over.store(true, Ordering::Relaxed);
    ticking.thread().unpark();
    // Clients that cannot be told see it from the end of their connections.
    let _ = opc.request_shutdown("the demo ends");
    node.stop_within(GRACE);
    let _ = ticking.join();
    place.close();
    Ok(())
}

/// Lets the object tick, each second, until it is over.
fn tick(vessel: &MemoryTank, over: &AtomicBool) {
    let mut next = Instant::now() + SECOND;
    loop {
        let now = Instant::now();
        if over.load(Ordering::Relaxed) {
            return;
        }
        if now < next {
            std::thread::park_timeout(next - now);
            continue;
        }
        next += SECOND;
        if let Err(failure) = vessel.tick() {
            note(&format!("the tank cannot tick: {failure}"));
        }
    }
}

/// Prints the commands as a script for the shell, or as JSON.
fn announce(groups: &[Group], as_json: bool) {
    if as_json {
        let told = |group: &Group| {
            let commands: Vec<Json> = group
                .commands
                .iter()
                .map(|command| json!({"does": command.does, "command": command.text}))
                .collect();
            json!({"wire": group.wire, "title": group.title, "address": group.address, "commands": commands})
        };
        Envelope::of(groups.iter().map(told).collect()).print();
        return;
    }
    line("# The demo runs until Ctrl-C. Copy these commands to another terminal.");
    for group in groups {
        line(&format!("\n# {}", group.title));
        // Not every shell takes comments behind a command that is typed.
        for command in &group.commands {
            line(&format!("# {}:", command.does));
            line(&command.text);
        }
    }
}
