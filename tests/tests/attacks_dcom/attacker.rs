//! A peer that speaks as it likes: PDUs made by hand, signed where it knows a password.

use super::pantry;
use super::target::{DOMAIN, PASSWORD, Target};
use crate::common::foreign::PATIENCE;
use everywire::Bytes;
use everywire_auth::security::{Credentials, Mechanism, Options, Protection, Secret, initiator};
use everywire_dcom::activation::{Activated, Activation, scm};
use everywire_dcom::frame::{self, FIRST, HEADER, LAST, MULTIPLEX, OBJECT, PduKind};
use everywire_dcom::objref::{ObjRef, StdObjRef};
use everywire_dcom::pdu::{Bind, BindAck, ContextElement, NDR, Pdu, Request, Syntax};
use everywire_dcom::standard::activation::REMOTE_SCM_ACTIVATOR_ID;
use everywire_dcom::stub::Get;
use everywire_dcom::{Level, hresult};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use uuid::Uuid;

/// The mechanism NTLM, in trailers.
pub const NTLM: u8 = 10;

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The stub of a response.
    Done(Vec<u8>),
    /// A fault's status.
    Fault(u32),
    /// A bind was refused, and why.
    Nak(u16),
    /// The connection is closed.
    Closed,
}

impl Answer {
    pub fn done(self) -> Vec<u8> {
        match self {
            Self::Done(stub) => stub,
            other => panic!("results were expected, not {other:?}"),
        }
    }

    /// Results of an ORPC call: what follows ORPCTHAT, which must have no extensions.
    pub fn results(self) -> Vec<u8> {
        let stub = self.done();
        assert_eq!(stub.get(4..8), Some(&[0; 4][..]), "ORPCTHAT");
        stub[8..].to_vec()
    }

    /// The name of the refusal: of a fault's status, or of the HRESULT that a call reports.
    #[track_caller]
    pub fn refusal(self) -> &'static str {
        let code = match self {
            Self::Fault(status) => status,
            Self::Done(_) => {
                let code = self.hresult();
                assert!(hresult::is_failure(code), "it is not refused");
                code
            }
            other => panic!("a refusal was expected, not {other:?}"),
        };
        hresult::name(code).unwrap_or_else(|| panic!("{code:#x} has no name")).0
    }

    /// The HRESULT at the end of the results.
    pub fn hresult(self) -> u32 {
        let stub = self.done();
        u32::from_le_bytes(stub[stub.len() - 4..].try_into().expect("four octets"))
    }
}

/// A connection.
pub struct Attacker {
    pub stream: TcpStream,
    pub protection: Option<Box<dyn Protection>>,
    pub level: Level,
    /// The number of the security context.
    pub shield: u32,
    pub call: u32,
    /// Interfaces by the numbers of their presentation contexts.
    pub contexts: Vec<Uuid>,
    pub group: u32,
}

impl Attacker {
    /// Connects, and says nothing.
    pub fn silent(target: &Target) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", target.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self::on(stream)
    }

    /// On a connection that is there.
    pub fn on(stream: TcpStream) -> Self {
        Self {
            stream,
            protection: None,
            level: Level::None,
            shield: 0,
            call: 1,
            contexts: Vec::new(),
            group: 0,
        }
    }

    /// Nobody, who has bound these interfaces (major versions behind them).
    pub fn nobody(target: &Target, interfaces: &[(Uuid, u16)]) -> Self {
        let mut this = Self::silent(target);
        this.send(&bind(0, interfaces));
        this.bound(interfaces);
        this
    }

    /// A user, who has bound these interfaces of version 0.
    pub fn user(target: &Target, user: &str, level: Level, interfaces: &[Uuid]) -> Self {
        let mut this = Self::silent(target);
        let interfaces: Vec<_> = interfaces.iter().map(|id| (*id, 0)).collect();
        this.admit(user, level, 0, |token| with_trailer(bind(0, &interfaces), NTLM, level, 0, token));
        this.contexts = interfaces.iter().map(|(id, _)| *id).collect();
        this
    }

    /// A cook at level `integrity`.
    pub fn cook(target: &Target, interfaces: &[Uuid]) -> Self {
        Self::user(target, super::target::COOK, Level::Integrity, interfaces)
    }

    /// Proves who it is, by a bind or an alter_context with a token.
    pub fn admit(&mut self, user: &str, level: Level, shield: u32, begin: impl Fn(&[u8]) -> Vec<u8>) {
        let (mut side, hello) = hello(user, level);
        self.send(&begin(&hello));
        let (header, pdu, message) = self.pdu().expect("a bind_ack");
        let (Pdu::BindAck(ack) | Pdu::AlterContextResponse(ack)) = pdu else {
            panic!("a bind_ack was expected, not {pdu:?}")
        };
        let trailer = header.trailer(&message).expect("whole").expect("a token");
        let step = side.step(&message[trailer.value()..]).expect("a challenge");
        self.send(&auth3(level, shield, &step.token));
        let done = step.done.expect("the third of three");
        if ack.group != 0 {
            self.group = ack.group;
        }
        (self.protection, self.level, self.shield) = (Some(done.protection), level, shield);
    }

    fn bound(&mut self, interfaces: &[(Uuid, u16)]) {
        let ack = self.ack();
        assert!(ack.results.iter().all(|result| result.result == 0), "{ack:?}");
        self.group = ack.group;
        self.contexts = interfaces.iter().map(|(id, _)| *id).collect();
    }

    pub fn ack(&mut self) -> BindAck {
        match self.pdu() {
            Some((_, Pdu::BindAck(ack) | Pdu::AlterContextResponse(ack), _)) => ack,
            other => panic!("a bind_ack was expected, not {other:?}"),
        }
    }

    /// Sends octets; the server may have closed already.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// The number of an interface's presentation context.
    pub fn context(&self, iid: Uuid) -> u16 {
        let at = self.contexts.iter().position(|held| *held == iid).expect("it was bound");
        u16::try_from(at).expect("few")
    }

    /// A fragment of a call, signed if this side can sign.
    pub fn fragment(
        &mut self,
        flags: u8,
        iid: Uuid,
        opnum: u16,
        object: Option<Uuid>,
        stub: &[u8],
    ) -> Vec<u8> {
        let bare = request(flags, self.call, self.context(iid), opnum, object, stub);
        self.sign(bare)
    }

    /// Signs a PDU whose stub ends it.
    pub fn sign(&mut self, mut pdu: Vec<u8>) -> Vec<u8> {
        let (level, shield) = (self.level, self.shield);
        let Some(protection) = self.protection.as_mut().filter(|_| level.is_signed()) else { return pdu };
        let head = HEADER + if pdu[3] & OBJECT != 0 { 24 } else { 8 };
        let stub = pdu.len() - head;
        let pad = stub.next_multiple_of(16) - stub;
        pdu.extend(std::iter::repeat_n(0, pad));
        frame::put_trailer(&mut pdu, NTLM, level as u8, u8::try_from(pad).expect("few"), shield);
        let mut signature = vec![0; protection.signature_len()];
        frame::set_auth_length(&mut pdu, 0, signature.len());
        let len = u16::try_from(pdu.len() + signature.len()).expect("small");
        pdu[8..10].copy_from_slice(&len.to_le_bytes());
        let sealed = (level == Level::Privacy).then_some(head..head + stub + pad);
        protection.protect(&mut pdu, sealed, &mut signature).expect("it can be signed");
        pdu.extend_from_slice(&signature);
        pdu
    }

    /// Calls, with a stub that is sent as it is.
    pub fn plain(&mut self, iid: Uuid, opnum: u16, object: Option<Uuid>, stub: &[u8]) -> Answer {
        self.call += 1;
        if stub.len() < 5000 {
            let pdu = self.fragment(FIRST | LAST, iid, opnum, object, stub);
            self.send(&pdu);
            return self.answer();
        }
        let mut parts = stub.chunks(4096).enumerate().peekable();
        while let Some((at, part)) = parts.next() {
            let first = if at == 0 { FIRST } else { 0 };
            let last = if parts.peek().is_none() { LAST } else { 0 };
            let pdu = self.fragment(first | last, iid, opnum, object, part);
            self.send(&pdu);
        }
        self.answer()
    }

    /// Calls, with ORPCTHIS.
    pub fn orpc(&mut self, iid: Uuid, opnum: u16, object: Option<Uuid>, arguments: &[u8]) -> Answer {
        let stub = [orpc_this(), arguments.to_vec()].concat();
        self.plain(iid, opnum, object, &stub)
    }

    /// The answer to the only call, however many fragments it has.
    pub fn answer(&mut self) -> Answer {
        let mut stub = Vec::new();
        loop {
            let Some((header, pdu, message)) = self.pdu() else { return Answer::Closed };
            match pdu {
                Pdu::Response(response) => {
                    stub.extend_from_slice(&message[response.stub]);
                    if header.has(LAST) {
                        return Answer::Done(stub);
                    }
                }
                Pdu::Fault(fault) => return Answer::Fault(fault.status),
                Pdu::BindNak(nak) => return Answer::Nak(nak.reason),
                Pdu::Shutdown => {}
                other => panic!("an answer was expected, not {other:?}"),
            }
        }
    }

    /// The next PDU; nothing if the server closed.
    pub fn pdu(&mut self) -> Option<(frame::Header, Pdu, Vec<u8>)> {
        let mut message = vec![0; HEADER];
        match self.stream.read_exact(&mut message) {
            Ok(()) => {}
            Err(error) if is_end(error.kind()) => return None,
            Err(error) => panic!("the server neither answered nor closed: {error}"),
        }
        let length = usize::from(u16::from_le_bytes([message[8], message[9]]));
        message.resize(length.max(HEADER), 0);
        self.stream.read_exact(&mut message[HEADER..]).expect("the rest of a PDU");
        let (header, pdu, _) = Pdu::parse(&message).expect("a good PDU");
        Some((header, pdu, message))
    }

    /// Reads until the server closes.
    pub fn until_closed(&mut self) {
        match self.stream.read_to_end(&mut Vec::new()) {
            Ok(_) => {}
            Err(error) if is_end(error.kind()) => {}
            Err(error) => panic!("the server neither answered nor closed: {error}"),
        }
    }

    /// A new object of the class, which came with these interfaces.
    pub fn activate(&mut self, iids: &[Uuid]) -> (Activated, Vec<StdObjRef>) {
        let stub = scm::write_request(&activation(iids));
        let stub = self.orpc(REMOTE_SCM_ACTIVATOR_ID, scm::CREATE_INSTANCE, None, &stub).results();
        let activated = scm::parse_reply(Get::after(&stub, 8, true)).expect("a good answer");
        let objrefs = activated.interfaces.iter().map(|(_, _, raw)| raw.as_ref().map(std_of));
        let objrefs = objrefs.map(|std| std.unwrap_or_else(|| panic!("{activated:?}"))).collect();
        (activated, objrefs)
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

pub fn std_of(raw: &Bytes) -> StdObjRef {
    *ObjRef::parse(raw).expect("an OBJREF").0.standard().expect("a standard one").0
}

/// What asks for an object of the class.
pub fn activation(iids: &[Uuid]) -> Activation {
    Activation {
        clsid: pantry::CLASS.parse().expect("a UUID"),
        iids: iids.to_vec(),
        class_object: false,
        version: (5, 7),
        protseqs: vec![7],
        impersonation: 2,
    }
}

/// The side that wants in, and its first token.
/// The first token of a user, `DOMAIN\\USER` or one of the usual domain.
pub fn hello(user: &str, level: Level) -> (Box<dyn everywire_auth::security::Initiator>, Vec<u8>) {
    let password = Secret::password(PASSWORD);
    let (domain, user) = user.split_once('\\').unwrap_or((DOMAIN, user));
    let credentials = Credentials { domain: domain.into(), user: user.into(), password };
    let options = Options {
        integrity: level.is_signed(),
        confidentiality: level == Level::Privacy,
        dce_style: true,
        target: "host/127.0.0.1".into(),
        ..Options::default()
    };
    let mut side = initiator(Mechanism::Ntlm, &credentials, &options).expect("NTLM");
    let token = side.step(&[]).expect("the first token").token;
    (side, token)
}

pub fn bind(group: u32, interfaces: &[(Uuid, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    Pdu::Bind(contents(group, 0, interfaces)).write(&mut out, FIRST | LAST | MULTIPLEX, 1, &[]);
    out
}

pub fn alter(first: u16, interfaces: &[(Uuid, u16)]) -> Vec<u8> {
    let mut out = Vec::new();
    Pdu::AlterContext(contents(0, first, interfaces)).write(&mut out, FIRST | LAST, 1, &[]);
    out
}

fn contents(group: u32, first: u16, interfaces: &[(Uuid, u16)]) -> Bind {
    let contexts = interfaces.iter().zip(first..).map(|((id, major), number)| ContextElement {
        id: number,
        interface: Syntax::new(*id, *major),
        transfers: vec![NDR],
    });
    Bind { max_xmit: 5840, max_recv: 5840, group, contexts: contexts.collect() }
}

pub fn request(flags: u8, call: u32, context: u16, opnum: u16, object: Option<Uuid>, stub: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let request = Request { alloc_hint: 0, context, opnum, object, stub: 0..0 };
    Pdu::Request(request).write(&mut out, flags, call, stub);
    out
}

pub fn bare(kind: PduKind, call: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frame::put(&mut out, 0, kind, FIRST | LAST, 0, call);
    frame::set_length(&mut out, 0);
    out
}

/// The third of three tokens.
pub fn auth3(level: Level, shield: u32, token: &[u8]) -> Vec<u8> {
    let mut out = bare(PduKind::Auth3, 1);
    out.extend_from_slice(&[0; 4]);
    with_trailer(out, NTLM, level, shield, token)
}

/// Adds a security trailer with a value.
pub fn with_trailer(mut pdu: Vec<u8>, mechanism: u8, level: Level, context: u32, value: &[u8]) -> Vec<u8> {
    let pad = pdu.len().next_multiple_of(4) - pdu.len();
    pdu.extend(std::iter::repeat_n(0, pad));
    frame::put_trailer(&mut pdu, mechanism, level as u8, u8::try_from(pad).expect("few"), context);
    pdu.extend_from_slice(value);
    frame::set_auth_length(&mut pdu, 0, value.len());
    frame::set_length(&mut pdu, 0);
    pdu
}

/// ORPCTHIS of version 5.7.
pub fn orpc_this() -> Vec<u8> {
    let mut this = vec![5, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    this.extend_from_slice(&[0x11; 16]);
    this.extend_from_slice(&[0; 4]);
    this
}

/// Little-endian words.
pub fn words(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn id(text: &str) -> Uuid {
    text.parse().expect("a UUID")
}
