//! The broker: routes between listeners and targets, on one wire or from one wire to another.
//!
//! A call comes in at a listener, is matched by its object, operation and caller against the routes of a file ([`Config`]), and goes
//! on to one of the route's targets. A route with a contract reads values from the one wire and writes them to the other without
//! building them, so the two sides may speak different wires; references in them become references to the broker, so that
//! callbacks come back through it.
//!
//! * [`Config`], [`Mistakes`]: the file, and what is wrong with it, by line and column.
//! * [`check`]: what each route carries and what it loses, before anything runs.
//! * [`Broker`]: runs the routes; [`Broker::reload`] swaps them without dropping a call.
//!
//! At most once holds over the hop: a call that may have run at a target is told as one that may have run, and is tried again only
//! where the contract or the route says that its operation is idempotent.

#![forbid(unsafe_code)]

mod admin;
mod anything;
mod audience;
mod balance;
mod breaker;
mod broker;
mod callbacks;
mod callers;
mod calls;
mod check;
mod common;
mod config;
mod copies;
mod cross;
mod elsewhere;
mod forwarded_call;
mod frontend;
mod health;
mod hops;
mod interfaces;
mod json;
mod limits;
mod listening;
mod log;
mod loops;
mod metrics;
mod numbers;
mod own_objects;
mod pass;
mod places;
mod plan;
mod redirects;
mod references;
mod route;
mod signals;
mod target_places;
mod told;
mod unreached;
mod upstream;
mod validate;
mod values;
mod waiting_calls;

pub use broker::Broker;
pub use check::{Fidelity, Report, check};
pub use config::{Config, Mistake, Mistakes, Position, RouteOptions};
pub use log::Sink as LogSink;
