//! The tests that span rooms: one program, a module a subject. Attacks need no foreign program; most other modules do.

#![allow(clippy::unwrap_used)]

mod accounts;
mod address_options;
mod architecture;
mod attacks;
mod attacks_dbus;
mod attacks_dcom;
mod attacks_dcop;
mod book;
mod called;
mod circles;
mod common;
mod corba_fixed;
mod corba_names;
mod corba_properties;
mod corba_repository;
mod corba_values;
mod crosswise;
mod dbus;
mod dbus_auth;
mod dbus_bus;
mod dbus_cli;
mod dbus_passing;
mod dbus_peers;
mod dbus_tools;
mod dcom_com;
mod dcom_kerberos;
mod dcom_passing;
mod dcom_peers;
mod dcom_samba;
mod dcom_wine;
mod dcop;
mod depth;
mod documents;
mod endings;
mod endurance_dcom;
#[allow(unreachable_pub)]
mod faults;
mod first_poll;
mod handlers;
mod in_process;
mod kerberos;
mod layers;
mod listeners;
mod load;
mod marks;
mod omniorb;
mod opc_cut;
mod opc_peers;
mod opc_wine;
mod reach;
mod restarts;
mod shares;
mod tls;
mod tracing;
#[allow(unreachable_pub)]
mod transcripts;
mod wcf_kerberos;
mod wcf_metadata;
mod wcf_mono;
mod wcf_python;
mod wcf_serializer;
mod wcf_sessions;
mod wcf_soap;
mod wcf_throttle;
