//! Servants of the shared contracts: what they answer is written in the contracts.

mod bench;
pub mod dbus;
mod dcop;
pub mod family;
mod kitchen;

pub use bench::{Bench, CountingSink, Firing, RemoteBytes, TEXT};
pub use dbus::Galley;
pub use dcop::Scullery;
pub use kitchen::{Cook, Doubler, Larder, Person};

use crate::{bench as contract, kitchen as interop};
use everywire::model::Reference;
use everywire::{Bytes, Failure, Node};
use std::sync::Arc;

/// So many bytes: 0, 1, ... 255, 0, ...
fn bytes(n: usize) -> Bytes {
    let mut bytes = (0..=255u8).collect::<Vec<_>>().repeat(n.div_ceil(256));
    bytes.truncate(n);
    bytes.into()
}

/// Exports every object of all contracts under the names that reference files use.
#[must_use]
pub fn export_all(node: &Node) -> Vec<(&'static str, Reference)> {
    use interop::interop::{Both, Kitchen, Pantry};
    let firing = Arc::new(Firing::default());
    vec![
        (
            "benchmarking",
            node.export::<dyn contract::Benchmarking>("benchmarking", Arc::new(Bench)).reference().clone(),
        ),
        (
            "IRemoteObject",
            node.export::<dyn contract::IRemoteObject>("IRemoteObject", Arc::new(RemoteBytes::new(64 << 20)))
                .reference()
                .clone(),
        ),
        (
            "Sink",
            node.export::<dyn contract::Sink>("Sink", Arc::new(CountingSink::default())).reference().clone(),
        ),
        ("Source", node.export::<dyn contract::FiringSource>("Source", firing.clone()).reference().clone()),
        (
            "FiringSource",
            node.export::<dyn contract::FiringSource>("FiringSource", firing).reference().clone(),
        ),
        ("Both", node.export::<dyn Both>("Both", Arc::new(Person::new("nobody"))).reference().clone()),
        (
            "Kitchen",
            node.export::<dyn Kitchen>("Kitchen", Arc::new(Cook::new(node.clone()))).reference().clone(),
        ),
        ("Pantry", node.export::<dyn Pantry>("Pantry", Arc::new(Larder)).reference().clone()),
        ("Galley", Galley::export(node, dbus::KEY).reference().clone()),
        ("Scullery", Scullery::export(node, "kitchen").reference().clone()),
    ]
}

/// Writes `NAME<TAB>REFERENCE` lines.
///
/// # Errors
/// The file cannot be written.
pub fn write_references(
    node: &Node,
    objects: &[(&str, Reference)],
    path: &std::path::Path,
) -> Result<(), Failure> {
    let lines: String =
        objects.iter().map(|(name, reference)| format!("{name}\t{}\n", node.print(reference))).collect();
    std::fs::write(path, lines).map_err(|error| {
        Failure::new(
            everywire::Kind::Internal,
            everywire::Initiator::Here,
            format!("{}: {error}", path.display()),
        )
    })
}
