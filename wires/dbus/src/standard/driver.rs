//! The bus itself as an object (specification, "Message Bus Specification").
//!
//! Contracts only: `joining`, `signals` and `list` call these operations. Numbers in flags and answers are
//! those of the specification. The list is in the order in which the operations are numbered here; the bus
//! knows them by name.

use everywire_model::contract::{Interface, Operation, Signal};
use everywire_model::describe::{Shape, TEXT, interface, map, operation, sequence, signal};

/// The name of the bus on itself.
pub const NAME: &str = "org.freedesktop.DBus";
/// The key of the bus's object: its path is `/org/freedesktop/DBus`.
pub const KEY: &str = "org/freedesktop/DBus";

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $index:literal: $operation:expr;)*) => {
        static OPERATIONS: [Operation; 0 $(+ { let _ = $index; 1 })*] = [$($operation),*];
        $($(#[$doc])* pub static $name: &Operation = &OPERATIONS[$index];)*
    };
}

operations! {
    /// `Hello`: the unique name of the connection. Must be the first call.
    HELLO = 0: operation!("Hello", (out "unique_name": TEXT) -> Shape::Void);
    /// `RequestName`: flags 1 allow replacement, 2 replace, 4 do not queue; answers 1 owner, 2 queued, 3 exists,
    /// 4 owned already.
    REQUEST_NAME = 1: operation!("RequestName", (in "name": TEXT, in "flags": Shape::U32, out "answer": Shape::U32)
        -> Shape::Void);
    /// `ReleaseName`: answers 1 released, 2 no such name, 3 not the owner.
    RELEASE_NAME = 2: operation!("ReleaseName", (in "name": TEXT, out "answer": Shape::U32) -> Shape::Void);
    /// `ListNames`: all names that have an owner.
    LIST_NAMES = 3: operation!("ListNames", (out "names": sequence!(TEXT)) -> Shape::Void);
    /// `ListActivatableNames`: all names that the bus would start an owner for.
    LIST_ACTIVATABLE_NAMES = 4: operation!("ListActivatableNames", (out "names": sequence!(TEXT)) -> Shape::Void);
    /// `NameHasOwner`.
    NAME_HAS_OWNER = 5: operation!("NameHasOwner", (in "name": TEXT, out "has_owner": Shape::Bool) -> Shape::Void);
    /// `GetNameOwner`: the owner's unique name.
    GET_NAME_OWNER = 6: operation!("GetNameOwner", (in "name": TEXT, out "unique_name": TEXT) -> Shape::Void);
    /// `ListQueuedOwners`: the unique names of the owner and of those who wait to become it.
    LIST_QUEUED_OWNERS = 7: operation!("ListQueuedOwners", (in "name": TEXT, out "unique_names": sequence!(TEXT))
        -> Shape::Void);
    /// `AddMatch`.
    ADD_MATCH = 8: operation!("AddMatch", (in "rule": TEXT) -> Shape::Void);
    /// `RemoveMatch`.
    REMOVE_MATCH = 9: operation!("RemoveMatch", (in "rule": TEXT) -> Shape::Void);
    /// `GetConnectionUnixUser`: the user number of a name's owner.
    GET_CONNECTION_UNIX_USER = 10: operation!("GetConnectionUnixUser", (in "name": TEXT, out "uid": Shape::U32)
        -> Shape::Void);
    /// `GetConnectionUnixProcessID`: the process number of a name's owner.
    GET_CONNECTION_UNIX_PROCESS_ID = 11: operation!("GetConnectionUnixProcessID",
        (in "name": TEXT, out "pid": Shape::U32) -> Shape::Void);
    /// `GetConnectionCredentials`: whatever is known of a name's owner.
    GET_CONNECTION_CREDENTIALS = 12: operation!("GetConnectionCredentials",
        (in "name": TEXT, out "credentials": map!(TEXT, Shape::Variant)) -> Shape::Void);
    /// `GetId`: the identity of the bus.
    GET_ID = 13: operation!("GetId", (out "id": TEXT) -> Shape::Void);
    /// `StartServiceByName`: flags are 0; answers 1 started, 2 running already.
    START_SERVICE_BY_NAME = 14: operation!("StartServiceByName",
        (in "name": TEXT, in "flags": Shape::U32, out "answer": Shape::U32) -> Shape::Void);
    /// `UpdateActivationEnvironment`.
    UPDATE_ACTIVATION_ENVIRONMENT = 15: operation!("UpdateActivationEnvironment",
        (in "environment": map!(TEXT, TEXT)) -> Shape::Void);
    /// `ReloadConfig`.
    RELOAD_CONFIG = 16: operation!("ReloadConfig", () -> Shape::Void);
}

/// All three are sent by the bus alone.
static SIGNALS: [Signal; 3] = [
    signal!("NameOwnerChanged", { "name": TEXT, "old_owner": TEXT, "new_owner": TEXT }),
    signal!("NameLost", { "name": TEXT }),
    signal!("NameAcquired", { "name": TEXT }),
];

/// `NameOwnerChanged`: a name was given to somebody (who is "" if nobody), taken from somebody, or both.
pub static NAME_OWNER_CHANGED: &Signal = &SIGNALS[0];
/// `NameLost`: the receiver does not own the name any longer.
pub static NAME_LOST: &Signal = &SIGNALS[1];

/// `org.freedesktop.DBus`, the bus's interface.
pub static BUS: Interface =
    interface!("org::freedesktop::DBus", "org.freedesktop.DBus", [], 0, &OPERATIONS, signals & SIGNALS);

static MONITORING_OPERATIONS: [Operation; 1] =
    [operation!("BecomeMonitor", (in "rules": sequence!(TEXT), in "flags": Shape::U32) -> Shape::Void)];

/// `BecomeMonitor`: from its answer on, the connection gets copies of what matches the rules (of everything, if there
/// are none) and may send nothing. Flags are 0.
pub static BECOME_MONITOR: &Operation = &MONITORING_OPERATIONS[0];

/// `org.freedesktop.DBus.Monitoring`.
pub static MONITORING: Interface = super::contracts::standard!("Monitoring", &MONITORING_OPERATIONS);
