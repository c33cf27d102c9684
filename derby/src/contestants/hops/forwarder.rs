//! The floor: a program in C that reads and writes, and knows nothing of messages (`rivals/forwarder/`).

use super::Hop;
use crate::contestants::workshop::Workshop;
use crate::contestants::{Missing, ServerPlace};
use crate::process::Launch;
use everywire_model::Failure;
use std::path::PathBuf;

const PROGRAM: &str = "forwarder";
const SOURCE: &str = "forwarder.c";
const FLAGS: &[&str] = &["-std=gnu11", "-O2", "-Wall", "-Werror"];

const WORKSHOP: Workshop = Workshop {
    rival: "the forwarder of raw bytes",
    name: PROGRAM,
    sources: &[(SOURCE, include_str!("../../../rivals/forwarder/forwarder.c"))],
    flags: FLAGS,
    peers: &["g++"],
};

/// It has no options.
pub(super) struct Forwarder;

impl Hop for Forwarder {
    fn prepare(&self) -> Result<Option<String>, Missing> {
        build().map(|_| None)
    }

    fn launch(&self, _: &ServerPlace<'_>, front: u16, back: u16) -> Result<Launch, Failure> {
        let program = build()?;
        Ok(Launch::new(program).with([front.to_string(), back.to_string()]))
    }
}

fn build() -> Result<PathBuf, Missing> {
    let dir = WORKSHOP.products("", &[PROGRAM], |dir| {
        let words = [FLAGS, &[SOURCE, "-o", PROGRAM]].concat();
        WORKSHOP.run(dir, "cc", &words).map(drop)
    })?;
    Ok(dir.join(PROGRAM))
}
