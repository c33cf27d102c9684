//! What the two interfaces look like.

use crate::standard::guid::{GUID_SHAPE, Guid};
use everywire_model::contract::{Interface, InterfaceKind, Operation};
use everywire_model::describe::{
    Shape, Struct, interface, of_kind, operation, pointer, record, sequence, structure,
};

/// `ept_lookup_handle_t`: a context handle.
pub(crate) const ENTRY_HANDLE: Shape = structure(&HANDLE);
static HANDLE: Struct = record!("ept_lookup_handle_t", "", { "attributes": Shape::U32, "uuid": GUID_SHAPE });

/// A context handle: attributes, which are 0, and a UUID; null before the first page and after the last.
pub(crate) type Handle = (u32, Guid);

/// `twr_t`.
static TOWER: Struct = record!("twr_t", "", { "tower_length": Shape::U32, "tower_octet_string": sequence!(Shape::U8, None, Conformant) });
/// `ept_entry_t`.
static ENTRY: Struct = record!("ept_entry_t", "", {
    "object": GUID_SHAPE,
    "tower": pointer!(Full, structure(&TOWER)),
    "annotation": sequence!(Shape::U8, None, Varying),
});
/// `rpc_if_id_t`.
static IF_ID: Struct =
    record!("rpc_if_id_t", "", { "uuid": GUID_SHAPE, "vers_major": Shape::U16, "vers_minor": Shape::U16 });
/// `rpc_if_id_vector_t`.
static IF_ID_VECTOR: Struct = record!("rpc_if_id_vector_t", "", {
    "count": Shape::U32,
    "if_id": sequence!(pointer!(Full, structure(&IF_ID)), None, Conformant),
});

/// The endpoint mapper.
pub(crate) static MAPPER: Interface = of_kind(
    interface!("epmp", "e1af8308-5d1f-11c9-91a4-08002b14a0fa", [], 0, &MAPPER_OPERATIONS),
    InterfaceKind::Procedures,
);

static MAPPER_OPERATIONS: [Operation; 7] = [
    operation!("ept_insert", (
        in "num_ents": Shape::U32, in "entries": sequence!(structure(&ENTRY), None, Conformant), in "replace": Shape::U32,
        out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("ept_delete", (
        in "num_ents": Shape::U32, in "entries": sequence!(structure(&ENTRY), None, Conformant), out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("ept_lookup", (
        in "inquiry_type": Shape::U32, in "object": pointer!(Full, GUID_SHAPE),
        in "interface": pointer!(Full, structure(&IF_ID)), in "vers_option": Shape::U32,
        inout "entry_handle": ENTRY_HANDLE, in "max_ents": Shape::U32,
        out "num_ents": Shape::U32, out "max": Shape::U32, out "entries": sequence!(structure(&ENTRY), None, Varying),
        out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("ept_map", (
        in "object": pointer!(Full, GUID_SHAPE), in "map_tower": pointer!(Full, structure(&TOWER)),
        inout "entry_handle": ENTRY_HANDLE, in "max_towers": Shape::U32,
        out "num_towers": Shape::U32, out "max": Shape::U32, out "towers": sequence!(pointer!(Full, structure(&TOWER)), None, Varying),
        out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("ept_lookup_handle_free", (inout "entry_handle": ENTRY_HANDLE, out "status": Shape::U32)
        -> Shape::Void),
    // Whether the caller sends an object, as some do, or is told one, as the specification says, shows in its stub.
    operation!("ept_inq_object", (out "status": Shape::U32) -> Shape::Void),
    operation!("ept_mgmt_delete", (
        in "object_speced": Shape::U32, in "object": pointer!(Full, GUID_SHAPE), in "tower": pointer!(Full, structure(&TOWER)),
        out "status": Shape::U32,
    ) -> Shape::Void),
];

/// `ept_lookup`.
pub(crate) static LOOKUP: &Operation = &MAPPER_OPERATIONS[2];

/// `ept_map`.
pub(crate) static MAP: &Operation = &MAPPER_OPERATIONS[3];

/// The management interface.
pub(crate) static MANAGEMENT: Interface = of_kind(
    interface!("mgmt", "afa8bd80-7d8a-11c9-bef4-08002b102989", [], 0, &MANAGEMENT_OPERATIONS),
    InterfaceKind::Procedures,
);

static MANAGEMENT_OPERATIONS: [Operation; 5] = [
    operation!("rpc__mgmt_inq_if_ids", (
        out "if_id_vector": pointer!(Full, structure(&IF_ID_VECTOR)), out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("rpc__mgmt_inq_stats", (
        in "count": Shape::U32, out "count_out": Shape::U32, out "statistics": sequence!(Shape::U32, None, Conformant),
        out "status": Shape::U32,
    ) -> Shape::Void),
    operation!("rpc__mgmt_is_server_listening", (out "status": Shape::U32, out "listening": Shape::U32)
        -> Shape::Void),
    operation!("rpc__mgmt_stop_server_listening", (out "status": Shape::U32) -> Shape::Void),
    operation!("rpc__mgmt_inq_princ_name", (
        in "authn_proto": Shape::U32, in "princ_name_size": Shape::U32,
        out "max": Shape::U32, out "princ_name": sequence!(Shape::U8, None, Varying), out "status": Shape::U32,
    ) -> Shape::Void),
];
