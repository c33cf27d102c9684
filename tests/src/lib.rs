//! Helpers of the tests that span rooms.

#![warn(unsafe_op_in_unsafe_fn)]

pub mod again;
pub mod peers;
pub mod servants;
pub mod workshop;

/// `bench.idl`, the contract of the races.
#[allow(missing_docs)]
pub mod bench {
    everywire::include_contract!("bench");
}

/// `interop.idl`, every construct that a peer is likely to use.
#[allow(missing_docs)]
pub mod kitchen {
    everywire::include_contract!("interop");
}

/// `kitchen.dbus.xml`, every type and construct of D-Bus.
#[allow(missing_docs, clippy::type_complexity)]
pub mod dbus_kitchen {
    everywire::include_contract!("kitchen.dbus");
}

/// `kitchen.kidl`, the types of DCOP.
#[allow(missing_docs)]
pub mod dcop_kitchen {
    everywire::include_contract!("kitchen");
}

/// `properties.idl`, operations with a clause `context`.
#[allow(missing_docs)]
pub mod desk {
    everywire::include_contract!("properties");
}

/// `shop.idl`, what the broker passes on.
#[allow(missing_docs)]
pub mod shop {
    everywire::include_contract!("shop");
}

/// `hello.wsdl`, a service that calls its callers back.
#[allow(missing_docs, clippy::pedantic)]
pub mod hello {
    everywire::include_contract!("hello");
}

/// `riddles.wsdl`, a service whose callers answer with faults.
#[allow(missing_docs, clippy::pedantic)]
pub mod riddles {
    everywire::include_contract!("riddles");
}

/// `price.idl`, fixed-point numbers.
#[allow(missing_docs)]
pub mod prices {
    everywire::include_contract!("price");
}

/// `stock.idl`, value types and value boxes.
#[allow(missing_docs)]
pub mod store {
    everywire::include_contract!("stock");
}

/// `vault.dbus.xml`, exceptions by annotations.
#[allow(missing_docs)]
pub mod vault {
    everywire::include_contract!("vault.dbus");
}

/// `locker.midl`, objects that are passed without a word on what they are.
#[allow(missing_docs)]
pub mod locker {
    everywire::include_contract!("locker");
}

/// `bell.idl`, a signal by a pragma.
#[allow(missing_docs)]
pub mod bell {
    everywire::include_contract!("bell");
}

/// `family.idl`, objects that are more than the reference to them says.
#[allow(missing_docs)]
pub mod kin {
    everywire::include_contract!("family");
}
