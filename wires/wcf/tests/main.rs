//! The tests of the WCF wire: one program, a module a subject.

#![allow(clippy::unwrap_used)]

mod address;
mod addressing;
mod allocations;
mod attacks_framing;
mod attacks_http;
mod attacks_reliable;
mod attacks_soap;
mod attributes;
mod captures;
mod channels;
mod common;
mod compressed;
mod data_contracts;
mod explain;
mod framing;
mod framing_strangers;
mod hostile;
mod http;
mod http_actions;
mod http_ends;
mod http_faults;
mod http_queries;
mod http_repeats;
mod http_support;
mod inherited;
mod lists;
mod markup;
mod nbfx_vectors;
mod objects;
mod passing;
mod reliable;
mod reliable_ends;
mod reliable_http;
mod reliable_waits;
mod replay;
mod sessions_end;
mod shelf;
mod soap;
mod soap_support;
mod spaces;
mod substitutes;
mod told;
mod types;
mod visit;
