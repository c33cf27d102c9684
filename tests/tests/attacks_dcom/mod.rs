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
mod references;
mod resources;
mod rpc;
mod sinks;
pub(crate) mod target;
mod values;
mod way;

use crate::common::dcom_pantry as pantry;

/// The server's part of the other tests.
#[test]
#[ignore = "a server that other tests start"]
fn a_server_to_attack() {
    target::serve();
}
