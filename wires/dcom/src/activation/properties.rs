//! The properties of an activation (MS-DCOM 2.2.22.2).
//!
//! A request has six, as Windows sends them, each a struct of its own in the BLOB; a reply has two. What is
//! read is taken leniently: unknown properties are passed over, those that say nothing to this server may be
//! missing. What is written has all that Windows writes, in its order: that is the form of which it is known
//! that activators accept it.
//!
//! States: none.
//!
//! Invariants: the number of interfaces is bounded by `INTERFACES_ASKED` before they are read, and each array's
//! maximum count must be that number. Alignment counts from the beginning of each property, so that a
//! property written here is the same wherever it stands.

use super::{Activated, Activation, blob, interfaces_asked, objrefs, put_objrefs};
use crate::bindings::DualStringArray;
use crate::objref::ObjRef;
use crate::resolver::OxidResolution;
use crate::stub::{Get, StubWriter};
use crate::violations::Violation;
use bytes::Bytes;
use uuid::{Uuid, uuid};

/// SpecialSystemProperties.
pub const SPECIAL: Uuid = uuid!("000001b9-0000-0000-c000-000000000046");
/// InstantiationInfo.
pub const INSTANTIATION: Uuid = uuid!("000001ab-0000-0000-c000-000000000046");
/// ActivationContextInfo.
pub const CONTEXT: Uuid = uuid!("000001a5-0000-0000-c000-000000000046");
/// SecurityInfo.
pub const SECURITY: Uuid = uuid!("000001a6-0000-0000-c000-000000000046");
/// ServerLocationInfo.
pub const LOCATION: Uuid = uuid!("000001a4-0000-0000-c000-000000000046");
/// ScmRequestInfo.
pub const SCM_REQUEST: Uuid = uuid!("000001aa-0000-0000-c000-000000000046");
/// PropsOutInfo; also the class that unmarshals results.
pub const PROPS_OUT: Uuid = uuid!("00000339-0000-0000-c000-000000000046");
/// ScmReplyInfo.
pub const SCM_REPLY: Uuid = uuid!("000001b6-0000-0000-c000-000000000046");

/// IID and class of a context that is marshalled (2.2.20).
const ICONTEXT: Uuid = uuid!("000001c0-0000-0000-c000-000000000046");
/// The class that the OBJREF_CUSTOM of a context names.
const CONTEXT_MARSHALER: Uuid = uuid!("0000033b-0000-0000-c000-000000000046");

/// Any session (dwSessionId).
const ANY_SESSION: u32 = u32::MAX;
/// CLSCTX_REMOTE_SERVER, alone and with CLSCTX_LOCAL_SERVER.
const REMOTE_SERVER: u32 = 0x10;
/// What an activation of an object says; that of a class object says `REMOTE_SERVER`.
const SERVER: u32 = 0x14;
/// What clients of Windows send as dwFlags.
const SPECIAL_FLAGS: u32 = 2;

/// What a client sends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// SpecialSystemProperties.
    pub special: Special,
    /// InstantiationInfo.
    pub instantiation: Instantiation,
    /// ActivationContextInfo: the client context, an OBJREF.
    pub context: Option<Bytes>,
    /// ActivationContextInfo: the prototype context, an OBJREF.
    pub prototype: Option<Bytes>,
    /// SecurityInfo: COSERVERINFO, and the name of the server in it.
    pub server: Option<Option<String>>,
    /// ScmRequestInfo: impersonation level.
    pub impersonation: u32,
    /// ScmRequestInfo: protocols that the client can speak.
    pub protseqs: Vec<u16>,
}

/// SpecialPropertiesData (2.2.22.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Special {
    /// Session on the server in which the object shall be made.
    pub session: u32,
    /// Whether the client impersonated somebody.
    pub impersonating: u32,
    /// Whether the partition is given.
    pub partitioned: u32,
    /// The client's default authentication level.
    pub authn_level: u32,
    /// The partition.
    pub partition: Uuid,
    /// The CLSCTX that the client said at first.
    pub class_context: u32,
    /// 1: in the session of the console.
    pub flags: u32,
}

impl Default for Special {
    fn default() -> Self {
        Self {
            session: ANY_SESSION,
            impersonating: 0,
            partitioned: 0,
            authn_level: 0,
            partition: Uuid::nil(),
            class_context: SERVER,
            flags: SPECIAL_FLAGS,
        }
    }
}

/// InstantiationInfoData (2.2.22.2.1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instantiation {
    /// The class.
    pub clsid: Uuid,
    /// CLSCTX.
    pub class_context: u32,
    /// ACTVFLAGS.
    pub flags: u32,
    /// Interfaces wanted.
    pub iids: Vec<Uuid>,
    /// The client's COMVERSION.
    pub version: (u16, u16),
}

impl Request {
    /// The properties that ask for an activation.
    pub fn of(activation: &Activation) -> Self {
        let class_context = if activation.class_object { REMOTE_SERVER } else { SERVER };
        Self {
            special: Special { class_context, ..Special::default() },
            instantiation: Instantiation {
                clsid: activation.clsid,
                class_context,
                flags: 0,
                iids: activation.iids.clone(),
                version: activation.version,
            },
            context: Some(client_context(crate::exporter::random_uuid())),
            impersonation: activation.impersonation,
            protseqs: activation.protseqs.clone(),
            ..Self::default()
        }
    }

    /// What they ask for.
    pub fn activation(self, class_object: bool) -> Activation {
        Activation {
            clsid: self.instantiation.clsid,
            iids: self.instantiation.iids,
            class_object,
            version: self.instantiation.version,
            protseqs: self.protseqs,
            impersonation: self.impersonation,
        }
    }

    /// Reads a BLOB; properties that are not known are passed over, and only the class must be among them.
    pub(super) fn read(data: &[u8]) -> Result<Self, Violation> {
        let mut found = Self::default();
        let mut instantiation = None;
        for (class, mut get) in blob::read(data)? {
            match class {
                SPECIAL => found.special = Special::get(&mut get)?,
                INSTANTIATION => instantiation = Some(Instantiation::get(&mut get)?),
                CONTEXT => (found.context, found.prototype) = contexts(&mut get)?,
                SECURITY => found.server = server(&mut get)?,
                SCM_REQUEST => (found.impersonation, found.protseqs) = scm_request(&mut get)?,
                _ => {}
            }
        }
        found.instantiation = instantiation.ok_or(Violation::BadActivation)?;
        Ok(found)
    }

    /// Writes a BLOB of the six properties that clients of Windows send, in their order.
    pub(super) fn write(&self) -> Vec<u8> {
        blob::write(vec![
            (SPECIAL, self.special.put()),
            (INSTANTIATION, self.instantiation.put()),
            (CONTEXT, self.put_contexts()),
            (SECURITY, self.put_server()),
            (LOCATION, vec![0; 16]),
            (SCM_REQUEST, self.put_scm()),
        ])
    }

    /// Four words that say nothing of interest, then both contexts.
    fn put_contexts(&self) -> Vec<u8> {
        let mut put = StubWriter::default();
        put.words(&[0; 4]).pointer(self.context.is_some()).pointer(self.prototype.is_some());
        let both = self.context.iter().chain(&self.prototype);
        both.fold(&mut put, |put, objref| put.interface_pointer(objref)).done()
    }

    /// COSERVERINFO has the name of the server and nothing else.
    fn put_server(&self) -> Vec<u8> {
        let mut put = StubWriter::default();
        put.u32(0).pointer(self.server.is_some()).pointer(false);
        if let Some(name) = &self.server {
            put.u32(0).pointer(name.is_some()).words(&[0, 0]);
        }
        self.server.iter().flatten().fold(&mut put, |put, name| put.wide(name)).done()
    }

    /// ScmRequestInfoData: a null pointer, then one to the impersonation level and the protocols.
    fn put_scm(&self) -> Vec<u8> {
        let mut put = StubWriter::default();
        put.pointer(false).pointer(true).u32(self.impersonation);
        put.counted(true, &self.protseqs, StubWriter::u16).done()
    }
}

impl Special {
    /// Reads what both definitions have in common.
    fn get(get: &mut Get<'_>) -> Result<Self, Violation> {
        let [session, _, impersonating, partitioned, authn_level] = get.words()?;
        let partition = get.uuid()?;
        let [_, class_context, flags] = get.words()?;
        Ok(Self { session, impersonating, partitioned, authn_level, partition, class_context, flags })
    }

    /// All of SpecialPropertiesData, with what is reserved as zeros. The second word says whether a session
    /// is named.
    fn put(&self) -> Vec<u8> {
        let mut put = StubWriter::default();
        let named = (self.session != ANY_SESSION).into();
        put.words(&[self.session, named, self.impersonating, self.partitioned, self.authn_level]);
        put.uuid(self.partition).words(&[0, self.class_context, self.flags, 0]).u64(0).words(&[0; 5]).done()
    }
}

impl Instantiation {
    fn get(get: &mut Get<'_>) -> Result<Self, Violation> {
        let clsid = get.uuid()?;
        let [class_context, flags, _] = get.words()?;
        let count = interfaces_asked(get)?;
        get.u32()?;
        get.reference()?;
        get.u32()?;
        let version = get.version()?;
        let iids = get.array(count, 16, Get::uuid)?;
        Ok(Self { clsid, class_context, flags, iids, version })
    }

    fn put(&self) -> Vec<u8> {
        let mut put = StubWriter::default();
        put.uuid(self.clsid).words(&[self.class_context, self.flags, 0]);
        put.count(self.iids.len()).u32(0).pointer(true);
        // In place 48 bytes, then the maximum count and the array.
        put.count(blob::framed_len(52 + 16 * self.iids.len())).version(self.version);
        put.array(self.iids.iter().copied(), StubWriter::uuid).done()
    }
}

/// The client's context and the prototype context, each an OBJREF.
type Contexts = (Option<Bytes>, Option<Bytes>);

/// ActivationContextInfoData (2.2.22.2.5): neither context is looked into.
fn contexts(get: &mut Get<'_>) -> Result<Contexts, Violation> {
    get.take(16)?;
    let (client, prototype) = (get.pointer()?, get.pointer()?);
    let mut objref = |held: bool| held.then(|| get.interface_pointer()).transpose();
    Ok((objref(client)?, objref(prototype)?))
}

/// SecurityInfoData (2.2.22.2.7): only the name in COSERVERINFO is kept.
fn server(get: &mut Get<'_>) -> Result<Option<Option<String>>, Violation> {
    let [_, held, _] = get.words()?;
    if held == 0 {
        return Ok(None);
    }
    let [_, name, _, _] = get.words()?;
    (name != 0).then(|| get.wide()).transpose().map(Some)
}

/// ScmRequestInfoData (2.2.22.2.4).
fn scm_request(get: &mut Get<'_>) -> Result<(u32, Vec<u16>), Violation> {
    if get.pointer()? {
        return Err(Violation::BadActivation);
    }
    get.reference()?;
    let (impersonation, count) = (get.u32()?, get.u16()?);
    Ok((impersonation, get.pointed(count.into(), 2, Get::u16)?))
}

/// A client context without properties (2.2.20).
fn client_context(id: Uuid) -> Bytes {
    // Flags: by value; then a reserved word, numbers and lengths of extents and properties; and that it is frozen.
    let context = StubWriter::default().u16(1).u16(1).uuid(id).words(&[2, 0, 0, 0, 0, 0, 1]).done();
    ObjRef::custom(ICONTEXT, CONTEXT_MARSHALER, context, 0).write()
}

/// Writes a BLOB of the two properties that servers answer with.
pub(super) fn write_results(activated: &Activated) -> Vec<u8> {
    blob::write(vec![(PROPS_OUT, put_interfaces(activated)), (SCM_REPLY, put_exporter(activated))])
}

/// Reads such a BLOB; properties that are not known are passed over.
pub(super) fn read_results(data: &[u8]) -> Result<Activated, Violation> {
    let (mut found, mut exporter) = (None, None);
    for (class, mut get) in blob::read(data)? {
        match class {
            PROPS_OUT => found = Some(get_interfaces(&mut get)?),
            SCM_REPLY => exporter = Some(get_exporter(&mut get)?),
            _ => {}
        }
    }
    let (interfaces, (oxid, resolved)) = found.zip(exporter).ok_or(Violation::BadActivation)?;
    Ok(Activated { oxid, resolved, interfaces, ..Activated::default() })
}

/// PropsOutInfo (2.2.22.2.9): three arrays of the same length, then the OBJREFs of those that are there.
fn put_interfaces(activated: &Activated) -> Vec<u8> {
    let interfaces = &activated.interfaces;
    let mut put = StubWriter::default();
    put.count(interfaces.len()).pointer(true).pointer(true).pointer(true);
    put.array(interfaces.iter().map(|(iid, _, _)| *iid), StubWriter::uuid);
    put.array(interfaces.iter().map(|(_, hresult, _)| *hresult), StubWriter::u32);
    put_objrefs(&mut put, interfaces).done()
}

/// Its counterpart: IID, HRESULT and OBJREF of each interface asked for.
fn get_interfaces(get: &mut Get<'_>) -> Result<Vec<(Uuid, u32, Option<Bytes>)>, Violation> {
    let count = interfaces_asked(get)?;
    (0..3).try_for_each(|_| get.reference())?;
    let iids = get.array(count, 16, Get::uuid)?;
    let hresults = get.array(count, 4, Get::u32)?;
    let found = iids.into_iter().zip(hresults).zip(objrefs(get, count)?);
    Ok(found.map(|((iid, hresult), objref)| (iid, hresult, objref)).collect())
}

/// ScmReplyInfoData (2.2.22.2.8): where the object's exporter is.
fn put_exporter(activated: &Activated) -> Vec<u8> {
    let OxidResolution { bindings, rem_unknown, authn_hint, version } = &activated.resolved;
    let mut put = StubWriter::default();
    put.pointer(false).pointer(true).u64(activated.oxid).pointer(true);
    put.uuid(*rem_unknown).u32(*authn_hint).version(*version);
    bindings.put(&mut put).done()
}

/// Its counterpart: OXID, and what ResolveOxid would have said.
fn get_exporter(get: &mut Get<'_>) -> Result<(u64, OxidResolution), Violation> {
    get.pointer()?;
    get.reference()?;
    let oxid = get.u64()?;
    get.reference()?;
    let (rem_unknown, authn_hint, version) = (get.uuid()?, get.u32()?, get.version()?);
    let bindings = DualStringArray::get(get)?;
    Ok((oxid, OxidResolution { bindings, rem_unknown, authn_hint, version }))
}
