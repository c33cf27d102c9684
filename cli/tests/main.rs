//! The tests of the `everywire` program: one test program, a module a subject.

#![allow(clippy::unwrap_used)]

mod activation;
mod any_values;
mod asking;
mod broker;
mod captures;
mod dbus;
mod dcom;
mod dcop;
mod demo;
mod derby;
mod dmz;
mod explain;
mod failures;
mod headers;
mod hops;
mod iid_is;
mod listening;
mod memory;
mod offline;
mod opc_serve;
mod opcda;
mod relay;
mod repository;
mod routers;
mod same_words;
mod serve_and_call;
mod shells;
mod strangers;
mod support;
mod terminal;
mod trace_dcom;
mod trace_opc;
mod trace_values;
mod wcf;
mod without_files;
