//! The interfaces that everybody who serves is expected to have (specification, "Standard Interfaces").

use crate::names::of_interface;
use everywire_model::contract::{Interface, Operation, Signal};
use everywire_model::describe::{self, Shape, TEXT, TextKind, map, operation, sequence, signal};
use everywire_model::{Body, ChangeSignal, Hold, Variant};
use std::collections::BTreeMap;

/// An interface of the specification, by what stands behind `org.freedesktop.DBus.`.
macro_rules! standard {
    ($name:literal, $($contents:tt)*) => {
        everywire_model::describe::interface!(
            concat!("org::freedesktop::DBus::", $name), concat!("org.freedesktop.DBus.", $name), [], 0, $($contents)*
        )
    };
}
pub(super) use standard;

/// What the path of an object looks like.
const PATH: Shape = describe::text(TextKind::Path, None);

/// `org.freedesktop.DBus.Peer`.
pub static PEER: Interface = standard!("Peer", &PEER_OPERATIONS);

static PEER_OPERATIONS: [Operation; 2] = [
    operation!("Ping", () -> Shape::Void),
    operation!("GetMachineId", (out "machine_uuid": TEXT) -> Shape::Void),
];

/// `org.freedesktop.DBus.Introspectable`.
pub static INTROSPECTABLE: Interface = standard!("Introspectable", &INTROSPECTABLE_OPERATIONS);

static INTROSPECTABLE_OPERATIONS: [Operation; 1] =
    [operation!("Introspect", (out "xml_data": TEXT) -> Shape::Void)];

/// `org.freedesktop.DBus.Properties`: `Get`, `Set`, `GetAll`, and `PropertiesChanged`.
pub static PROPERTIES: Interface =
    standard!("Properties", &PROPERTIES_OPERATIONS, signals & PROPERTIES_SIGNALS);

static PROPERTIES_OPERATIONS: [Operation; 3] = [
    operation!("Get", (in "interface_name": TEXT, in "property_name": TEXT, out "value": Shape::Variant)
        -> Shape::Void),
    operation!("Set", (in "interface_name": TEXT, in "property_name": TEXT, in "value": Shape::Variant)
        -> Shape::Void),
    operation!("GetAll", (in "interface_name": TEXT, out "props": map!(TEXT, Shape::Variant)) -> Shape::Void),
];

static PROPERTIES_SIGNALS: [Signal; 1] = [signal!("PropertiesChanged", {
    "interface_name": TEXT,
    "changed_properties": map!(TEXT, Shape::Variant),
    "invalidated_properties": sequence!(TEXT),
})];

/// `org.freedesktop.DBus.ObjectManager`: `GetManagedObjects`, `InterfacesAdded`, `InterfacesRemoved`.
pub static OBJECT_MANAGER: Interface =
    standard!("ObjectManager", &OBJECT_MANAGER_OPERATIONS, signals & OBJECT_MANAGER_SIGNALS);

static OBJECT_MANAGER_OPERATIONS: [Operation; 1] = [operation!("GetManagedObjects", (
    out "objpath_interfaces_and_properties": map!(PATH, map!(TEXT, map!(TEXT, Shape::Variant)))
) -> Shape::Void)];

static OBJECT_MANAGER_SIGNALS: [Signal; 2] = [
    signal!("InterfacesAdded", {
        "object_path": PATH,
        "interfaces_and_properties": map!(TEXT, map!(TEXT, Shape::Variant)),
    }),
    signal!("InterfacesRemoved", { "object_path": PATH, "interfaces": sequence!(TEXT) }),
];

/// `Introspect`.
pub(super) static INTROSPECT: &Operation = &INTROSPECTABLE_OPERATIONS[0];
/// `PropertiesChanged`.
pub(super) static CHANGED: &Signal = &PROPERTIES_SIGNALS[0];
/// `InterfacesAdded`.
pub(super) static ADDED: &Signal = &OBJECT_MANAGER_SIGNALS[0];
/// `InterfacesRemoved`.
pub(super) static REMOVED: &Signal = &OBJECT_MANAGER_SIGNALS[1];

/// Those that any object may have, whether its description tells or not: many programs answer for them and do not list them.
pub static COMMON: [Hold<Interface>; 4] = [
    Hold::Static(&PEER),
    Hold::Static(&INTROSPECTABLE),
    Hold::Static(&PROPERTIES),
    Hold::Static(&OBJECT_MANAGER),
];

/// Whether an interface is one of those that the library serves for every object, by its name on the wire.
pub(super) fn is_standard(name: &str) -> bool {
    COMMON.iter().any(|standard| standard.id == name)
}

/// `PropertiesChanged`, for whoever passes it on.
pub static NEWS: ChangeSignal =
    ChangeSignal { interface: &PROPERTIES, signal: &PROPERTIES_SIGNALS[0], is_of: tells_of };

/// Whether `PropertiesChanged` with these fields is of an interface, or of one that it inherits.
fn tells_of(body: &Body, interface: &Interface) -> bool {
    let fields = body.decode::<(String, BTreeMap<String, Variant>, Vec<String>)>(&CHANGED.fields);
    fields.is_ok_and(|(name, ..)| is_called(interface, &name))
}

/// The interface, or a base of it.
fn is_called(interface: &Interface, name: &str) -> bool {
    of_interface(interface) == name || interface.bases.iter().any(|base| is_called(base, name))
}
