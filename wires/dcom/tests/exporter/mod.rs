//! The exporter: tables of what is exported and imported, between nodes that talk by bytes.

#![allow(clippy::unwrap_used)]

mod activation;
mod churn;
mod exports;
mod hostile;
mod house;
mod imports;
mod lamp;
mod pings;
