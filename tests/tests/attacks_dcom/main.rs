//! Peers of the DCOM wire that are slow, broken or hostile: none of them may harm anybody else. Each attack is made on a
//! server in a process of its own, over TCP; after it someone with credentials is served as ever, and the server's tables
//! hold nothing.
//!
//! Names begin with the class of attack: R1 counts, R2 reassembly, R3 signatures of later fragments, R4 lower levels,
//! R5 associations, R6 negotiation, R7 pointers, R8 clients, R9 the endpoint mapper; O1 and O2 activation, O3 references to
//! elsewhere, O4 references and pings, O5 sinks, O6 VARIANTs; T what holds for every wire.

#![allow(unreachable_pub)]

mod activation;
mod attacker;
mod clients;
#[path = "../common/dcom_pantry.rs"]
#[allow(dead_code, unreachable_pub)]
mod pantry;
mod references;
mod resources;
mod rpc;
mod sinks;
#[allow(dead_code)]
mod target;
mod values;
mod way;

/// The server's part of the other tests.
#[test]
fn serve() {
    target::serve();
}
