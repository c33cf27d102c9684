//! One file for each verb: its options, its help, and what it does.

pub(crate) mod broker;
pub(crate) mod call;
pub(crate) mod completion;
pub(crate) mod demo;
pub(crate) mod derby;
pub(crate) mod describe;
pub(crate) mod emit;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod hub;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod trace;
pub(crate) mod watch;
