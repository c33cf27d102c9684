//! Contracts read, refused, printed, and compared with another compiler.

#![allow(clippy::unwrap_used)] // In a test a panic is the answer.

mod again;
mod common;
mod corpus;
mod dbus_xml;
mod fixed;
mod hostile;
mod kidl;
mod left_out;
mod long_double;
mod marks;
mod midl;
mod midl_again;
mod midl_attributes;
mod midl_corpus;
mod midl_files;
mod midl_omitted;
mod omniidl;
mod pidl;
mod preprocessor;
mod printed_again;
mod printed_for_others;
mod printed_unnamed;
mod signature;
mod strangers;
mod strangers_midl;
mod strangers_wsdl;
mod value_types;
mod which_language;
mod wsdl;
mod wsdl_members;
mod wsdl_messages;
mod wsdl_mime;
mod wsdl_prefixes;
mod wsdl_schemas;
mod wsdl_substitutes;
