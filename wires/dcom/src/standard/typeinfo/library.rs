//! The type information of one object: its class, its interfaces, and those that it calls.
//!
//! States: the descriptions never change; `served` remembers the objects that stand for them, so that one
//! object is made for a description however often it is asked for. A library is made anew for each caller of
//! GetTypeInfo or GetClassInfo and lives as long as one of its pointers.
//!
//! Invariants: the class is number 0, the object's interfaces follow in the order of its servants, then the
//! source interfaces, then IDispatch and IUnknown, which belong to another library and are not counted as its
//! own (`BASES`). All interfaces are told as dispinterfaces: what cannot be called by name is not told.
//! Counts are cut to 16 bits, as TYPEATTR has them.

use super::types::{VT_PTR, behind, elemdesc, simple, typedesc};
use crate::exporter::{Exporter, exposed};
use crate::standard::contracts::{DISPATCH, FUNCDESC, TYPEATTR, UNKNOWN};
use crate::standard::dispatch::members::{Member, members};
use crate::standard::points::sources_of;
use crate::standard::serving::own_servants;
use crate::{IDISPATCH, dispatches, iid_of};
use everywire_idl::midl::{clsid_of_key, is_optional};
use everywire_model::Hold;
use everywire_model::contract::{Direction, Interface, InterfaceKind, Operation};
use everywire_model::shape::Shape;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// IMPLTYPEFLAG_FDEFAULT: the one that is meant when only the class is named (MS-OAUT 2.2.13).
pub(crate) const DEFAULT: i32 = 1;
/// IMPLTYPEFLAG_FSOURCE: the class calls this interface, its listeners implement it.
pub(crate) const SOURCE: i32 = 2;
/// TKIND_INTERFACE (MS-OAUT 2.2.17).
const KIND_INTERFACE: i32 = 3;
/// TKIND_DISPATCH.
pub(crate) const KIND_DISPATCH: i32 = 4;
/// TKIND_COCLASS.
pub(crate) const KIND_CLASS: i32 = 5;
/// Descriptions of other libraries at the end: IDispatch and IUnknown.
const BASES: usize = 2;
/// Bytes of a pointer on SYS_WIN64.
const POINTER: u16 = 8;

/// A description: of the class, of an interface as it is called by name, or of IDispatch or IUnknown, which come from another
/// library.
pub(super) struct Info {
    /// TYPEKIND.
    pub(super) kind: i32,
    /// Its name, without a scope.
    pub(super) name: String,
    pub(super) id: Uuid,
    /// The identity under which IDispatch's operations are asked for.
    called_as: Uuid,
    /// What is called by name; nothing of the others.
    interface: Option<Hold<Interface>>,
    pub(super) members: Vec<Member>,
    /// Of a class the numbers of its interfaces here, with their IMPLTYPEFLAGs; of an interface what it is derived from.
    pub(super) implemented: Vec<(usize, i32)>,
}

/// The descriptions of an object.
pub(super) struct Library {
    /// The descriptions of others, which the library itself does not tell, come last.
    pub(super) infos: Vec<Info>,
    /// The keys of the objects that stand for them; `None` is the library itself.
    pub(super) served: Mutex<HashMap<Option<usize>, bytes::Bytes>>,
}

impl Library {
    /// The library of the object under a key: its class first.
    pub(super) fn of(exporter: &Exporter, key: &[u8]) -> Arc<Self> {
        let (mut infos, mut implemented) = (Vec::new(), Vec::new());
        let mut class = None;
        for servant in own_servants(exporter, key) {
            let interface = servant.interface();
            if interface.kind == InterfaceKind::Class && class.is_none() {
                class = Some((interface.name.to_string(), iid_of(interface)));
            }
            implemented.push((infos.len() + 1, if infos.is_empty() { DEFAULT } else { 0 }));
            // Nobody can ask an object for its class, but for the interface that it shows.
            let main = exposed(interface);
            let (name, id) = (main.name.clone(), main.id.clone());
            let shown = Interface { name, id, identities: main.identities.clone(), ..interface.clone() };
            infos.push(Info::called_by_name(Hold::new(shown)).through_dispatch());
        }
        for (number, source) in sources_of(exporter, key).into_iter().enumerate() {
            implemented.push((infos.len() + 1, SOURCE | if number == 0 { DEFAULT } else { 0 }));
            infos.push(Info::called_by_name(source.interface));
        }
        // An object without a class is described as if it had one, by the CLSID that follows from its key.
        let (name, id) = class.unwrap_or_else(|| {
            let name = infos.first().map(|info: &Info| info.name.clone()).unwrap_or_default();
            (name, clsid_of_key(key))
        });
        let dispatch = infos.len() + 1;
        infos.iter_mut().for_each(|info| info.implemented = vec![(dispatch, 0)]);
        infos.insert(0, Info { implemented, ..Info::new(KIND_CLASS, &name, id) });
        let base = |interface: &Interface| Info::new(KIND_INTERFACE, &interface.name, iid_of(interface));
        infos.push(Info { implemented: vec![(dispatch + 1, 0)], ..base(&DISPATCH) });
        infos.push(base(&UNKNOWN));
        Arc::new(Self { infos, served: Mutex::default() })
    }

    /// The descriptions of the library's own.
    pub(super) fn own(&self) -> &[Info] {
        self.infos.get(..self.infos.len().saturating_sub(BASES)).unwrap_or_default()
    }

    /// The first source interface.
    pub(super) fn default_source(&self) -> Option<Uuid> {
        let class = self.infos.first()?;
        let (index, _) = class.implemented.iter().find(|(_, flags)| flags & SOURCE != 0)?;
        self.infos.get(*index).map(|info| info.id)
    }
}

impl Info {
    /// Nothing but its name and identity.
    fn new(kind: i32, name: &str, id: Uuid) -> Self {
        let name = name.rsplit("::").next().unwrap_or_default().to_owned();
        Self { kind, name, id, called_as: id, interface: None, members: Vec::new(), implemented: Vec::new() }
    }

    pub(super) fn called_by_name(interface: Hold<Interface>) -> Self {
        let named = Self::new(KIND_DISPATCH, &interface.name, iid_of(&interface));
        // The number of what it is derived from is known later.
        let (members, implemented) = (members(&interface), vec![(0, 0)]);
        Self { interface: Some(interface), members, implemented, ..named }
    }

    /// The same of an object's own interface. Who reads of a dispinterface calls Invoke under the identity that it tells. If the
    /// interface is not derived from IDispatch, its own operations have Invoke's number there: then IDispatch's is told.
    fn through_dispatch(mut self) -> Self {
        if self.interface.as_ref().is_some_and(|interface| !dispatches(interface)) {
            self.called_as = IDISPATCH;
        }
        self
    }

    pub(super) fn doc(&self) -> &str {
        self.interface.as_ref().map_or("", |interface| &interface.doc)
    }

    /// TYPEATTR.
    pub(super) fn attributes(&self) -> TYPEATTR {
        // TYPEFLAG_FCANCREATE for a class; FDUAL where it can be called by number too, and FDISPATCHABLE.
        let (slots, flags) = match &self.interface {
            _ if self.kind == KIND_CLASS => (0, 0x2),
            Some(interface) if interface.kind == InterfaceKind::Dispatch || !dispatches(interface) => {
                (7, 0x1000)
            }
            Some(_) => (7, 0x1040),
            // What is told of them is that they are there; FRESTRICTED, as they tell it themselves.
            None => (if self.implemented.is_empty() { 3 } else { 7 }, 0x200),
        };
        let count = |len: usize| u16::try_from(len).unwrap_or(u16::MAX);
        TYPEATTR {
            guid: self.called_as.into(),
            lcid: 0,
            dw_reserved1: 0,
            dw_reserved2: u32::MAX,
            dw_reserved3: u32::MAX,
            lpstr_reserved4: None,
            cb_size_instance: POINTER.into(),
            typekind: self.kind,
            c_funcs: count(self.members.len()),
            c_vars: 0,
            c_impl_types: count(self.implemented.len()),
            cb_size_vft: slots * POINTER,
            cb_alignment: POINTER,
            w_type_flags: flags,
            w_major_ver_num: 1,
            w_minor_ver_num: 0,
            tdesc_alias: simple(0),
            dw_reserved5: 0,
            w_reserved6: 0,
        }
    }

    /// The FUNCDESC of a member, as it is called by name.
    pub(super) fn function(&self, index: usize) -> Option<FUNCDESC> {
        let (interface, member) = (self.interface.as_ref()?, self.members.get(index)?);
        let operation = interface.operations.get(member.index)?;
        let parameters = operation.parameters.iter().map(|parameter| {
            // PARAMFLAG_FIN, FOUT, FOPT.
            let direction = match parameter.direction {
                Direction::In => 1,
                Direction::Out => 2,
                Direction::InOut => 3,
            };
            let optional = matches!(parameter.field.shape.resolved(), Shape::Optional(_))
                || is_optional(operation, &parameter.field.name);
            let plain = typedesc(&parameter.field.shape);
            let tdesc = if parameter.direction.comes_out() { behind(VT_PTR, plain) } else { plain };
            elemdesc(tdesc, direction | if optional { 0x10 } else { 0 })
        });
        let slot = i64::try_from(member.index).unwrap_or_default() + i64::from(crate::opnum_base(interface));
        let returns = typedesc(&operation.returns);
        // FUNC_DISPATCH, CC_STDCALL.
        let (funckind, callconv) = (4, 4);
        Some(FUNCDESC {
            memid: member.id,
            l_reserved1: Vec::new(),
            lprgelemdesc_param: parameters.collect(),
            funckind,
            invkind: member.access as i32,
            callconv,
            c_params_opt: 0,
            o_vft: i16::try_from(slot * i64::from(POINTER)).unwrap_or(i16::MAX),
            elemdesc_func: elemdesc(returns, 0),
            w_func_flags: 0,
        })
    }

    /// A member, and the operation that it is.
    fn member(&self, id: i32) -> Option<(&Member, &Operation)> {
        let member = self.members.iter().find(|member| member.id == id)?;
        Some((member, self.interface.as_ref()?.operations.get(member.index)?))
    }

    /// The name of a member and those of its parameters.
    pub(super) fn names(&self, id: i32) -> Option<Vec<String>> {
        let (member, operation) = self.member(id)?;
        let parameters = operation.parameters.iter().map(|parameter| parameter.field.name.to_string());
        Some(std::iter::once(member.name.clone()).chain(parameters).collect())
    }

    /// Name and documentation of a member.
    pub(super) fn documentation(&self, id: i32) -> Option<(String, String)> {
        self.member(id).map(|(member, operation)| (member.name.clone(), operation.doc.to_string()))
    }
}
