//! The body of each fuzz target: a function that takes any octets and panics when something is wrong with what came of
//! them.
//!
//! They stand in a library of their own so that two programs run the same code: libFuzzer, which looks for new inputs
//! (`fuzz/targets`, a line each), and the plain tests of this crate, which replay the inputs that are kept
//! (`fuzz/corpus`) with stable Rust and without a sanitizer.

// A panic is how a target tells what it found, and nothing but tests uses this crate.
#![allow(clippy::unwrap_used)]

/// Calls a macro with the names of all targets. It is the only list of them in Rust.
#[macro_export]
macro_rules! with_targets {
    ($then:ident) => {
        $then! {
            activation broker_calls capture cdr dbus_session dbus_values dbus_xml dcerpc_session dcop_server dcop_session dcop_values
            explain giop_session iceauthority idl kidl midl nbfx ndr objref opc_session orpc_derby orpc_opcda orpc_pantry
            orpc_plant references runtime_connections sasl security soap_envelope wcf_compressed wcf_framing wcf_http wcf_members
            wcf_mtom wcf_objects wine_session wsdl xml_text
        }
    };
}

mod activation;
mod broker_calls;
mod capture;
mod cdr;
mod dbus_session;
mod dbus_values;
mod dbus_xml;
mod dcerpc_session;
mod dcop_server;
mod dcop_session;
mod dcop_values;
mod driver;
mod explain;
mod giop_session;
mod iceauthority;
mod idl;
mod kidl;
mod midl;
pub mod mutations;
mod nbfx;
mod ndr;
mod ndr_shapes;
#[path = "../../../wires/dcom/tests/support/directory.rs"]
#[allow(missing_docs, unreachable_pub)]
mod node;
mod objref;
mod opc_session;
mod orpc;
mod orpc_derby;
mod orpc_opcda;
mod orpc_pantry;
mod orpc_plant;
mod references;
mod runtime_connections;
mod sasl;
mod security;
mod shapes;
mod soap_envelope;
mod wcf_compressed;
mod wcf_framing;
mod wcf_http;
mod wcf_members;
mod wcf_mtom;
mod wcf_objects;
mod wine_session;
mod wsdl;
mod xml_text;

macro_rules! exports {
    ($($name:ident)*) => {
        $(pub use $name::$name;)*

        /// Names of all targets.
        pub const TARGETS: &[&str] = &[$(stringify!($name)),*];
    };
}

with_targets!(exports);
