//! Generated code: that the recorded files are what is generated today, compile without a warning, and work.

#![allow(clippy::unwrap_used)]

// Generated code names the runtime as `::everywire`; here that is this crate.
extern crate self as everywire;
pub use async_trait::async_trait;
pub use everywire_model as model;

/// The contract of the races.
#[deny(warnings)]
pub mod bench {
    include!("golden/bench.rs");
}

/// Every construct that code is generated for.
#[deny(warnings)]
pub mod everything {
    include!("golden/everything.rs");
}

/// Shapes that other contract languages have.
#[deny(warnings)]
pub mod foreign {
    include!("golden/foreign.rs");
}

/// The contract of the races in introspection XML.
#[deny(warnings)]
pub mod bench_dbus_xml {
    include!("golden/bench_dbus_xml.rs");
}

/// Every type and construct of introspection XML.
#[deny(warnings)]
pub mod gallery_xml {
    include!("golden/gallery_xml.rs");
}

/// The contract of the races in kidl.
#[deny(warnings)]
pub mod bench_kidl {
    include!("golden/bench_kidl.rs");
}

/// Types of kidl, as its tool writes them.
#[deny(warnings)]
pub mod types_kidl {
    include!("golden/types_kidl.rs");
}

/// The contract of the first race.
#[deny(warnings)]
pub mod derby_midl {
    include!("golden/derby_midl.rs");
}

/// What contracts of COM are made of.
#[deny(warnings)]
pub mod plant_midl {
    include!("golden/plant_midl.rs");
}

/// The contracts of the races in WSDL.
#[deny(warnings)]
pub mod bench_wsdl {
    include!("golden/bench_wsdl.rs");
}

/// What .NET has in descriptions: sessions, callbacks, headers, types that extend others and themselves.
#[deny(warnings)]
pub mod clock_wsdl {
    include!("golden/clock_wsdl.rs");
}

/// What OMG IDL says by pragmas.
#[deny(warnings)]
pub mod vault {
    include!("golden/vault.rs");
}

/// What introspection XML says by annotations.
#[deny(warnings)]
pub mod vault_xml {
    include!("golden/vault_xml.rs");
}

/// What kidl says by elements and attributes of ours.
#[deny(warnings)]
pub mod vault_kidl {
    include!("golden/vault_kidl.rs");
}

/// What MIDL says by pragmas.
#[deny(warnings)]
pub mod vault_midl {
    include!("golden/vault_midl.rs");
}

/// Types that are called like what the code around them uses.
#[deny(warnings)]
pub mod hidden_names {
    include!("golden/shadows.rs");
}

mod build;
mod calls;
mod cycles;
mod contracts {
    pub(crate) mod foreign;
}
mod foreign_contract;
mod introspected;
mod kidl;
mod memory;
mod midl;
mod recorded;
mod tape;
mod values;
mod vaults;
mod wsdl;
