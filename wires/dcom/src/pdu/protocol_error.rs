//! Each way a peer can break the rules of the RPC layer is one named variant.
//!
//! Where a breach is found decides what it costs. Each ends the connection; what the peer hears before that
//! differs. A bind is refused with a reason, a request or an alter_context gets a fault, and where the
//! framing itself is broken (`Version` to `DataRepresentation`) nothing can be told. The sessions choose.
//!
//! The text of `Display` is shown to users and operators and may become better; `name` is for programs
//! (tests, metrics, `trace`, the rows of `everywire explain`) and must not change. Fields carry numbers and
//! constant words only, so a breach costs no allocation and holds nothing that the peer wrote.

use everywire_model::violations;

violations! {
    "dcom"
    /// How a peer broke the protocol.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ProtocolError {
        /// A version of the protocol that this side does not speak.
        Version { major: u8, minor: u8 } =>
            "version {major}.{minor} of the protocol is not spoken here (5.0 and 5.1 are)";
        /// No PDU is of this type, or not of the connection-oriented protocol.
        PduType { ptype: u8 } => "no PDU on a connection is of type {ptype}";
        /// A data representation label that does not exist.
        DataRepresentation { octet: u8 } => "{octet:#04x} labels no data representation";
        /// A fragment is shorter than its header, or longer than was agreed on.
        FragmentLength { length: u16, limit: u16 } =>
            "a fragment of {length} bytes is below 16 or above the agreed {limit}";
        /// A PDU ends inside one of its parts.
        Truncated { what: &'static str } => "a PDU ends inside its {what}";
        /// The security trailer, its padding or its value do not fit into the PDU.
        AuthLength { length: u16 } => "the security trailer with {length} bytes of value does not fit into its PDU";
        /// A PDU that this side never takes, or not in this state.
        Unexpected { kind: &'static str } => "a {kind} came, which nobody waits for";
        /// A PDU that cannot be fragmented lacks the flag of the first or the last fragment.
        NotFragmentable { kind: &'static str } => "a {kind} cannot come in fragments";
        /// As many connections are open as may be: nothing was wrong with the message.
        /// The quota of connections belongs to the runtime; this is how a session says it to the peer (bind_nak,
        /// local limit).
        Full => "as many connections are open as the quota allows";
        /// More presentation contexts than a connection may have.
        Contexts { limit: usize } => "more than {limit} presentation contexts";
        /// More security contexts than a connection may have.
        SecurityContexts { limit: usize } => "more than {limit} security contexts";
        /// A fragment that is no first one continues no call, or another call than is open.
        StrayFragment { call: u32 } => "a fragment continues call {call}, of which nothing came before";
        /// A call begins again before its last fragment came, or was answered.
        CallReused { call: u32 } => "call {call} begins again before it was answered";
        /// A fragment differs from the first one of its call.
        FragmentDiffers { call: u32, what: &'static str } =>
            "a fragment of call {call} has another {what} than the first one";
        /// The fragments of a call exceed the limit together.
        OverLimit { size: u64, limit: u64 } => "fragments of {size} bytes together exceed the limit of {limit} bytes";
        /// Too many fragmented calls are open, or hold too many bytes together.
        Assemblies { limit: usize } => "more than {limit} fragmented calls are open";
        /// A presentation context that was not negotiated.
        UnknownContext { context: u16 } => "presentation context {context} was not negotiated";
        /// A security context that does not exist, or does not stand yet.
        UnknownSecurityContext { context: u32 } => "security context {context} does not stand";
        /// A security context is used with another type or level than it was made with.
        SecurityContextReused { context: u32 } =>
            "security context {context} has another type or level than it was made with";
        /// A PDU lacks the security trailer that its level demands.
        Unprotected { kind: &'static str } => "a {kind} came without the signature that was agreed on";
        /// The signed answer to a call came after a fault without a signature had ended it: somebody else sent that.
        ForgedFault { call: u32 } =>
            "a fault that was not signed ended call {call}, which the peer has answered: it was forged";
        /// A signature is wrong.
        Signature => "a signature is wrong";
        /// A verification trailer contradicts the PDU it came with.
        Verification { what: &'static str } => "a verification trailer contradicts its request in the {what}";
        /// An answer lists another number of results than contexts were asked for.
        Results { results: usize, asked: usize } => "{results} results came for {asked} presentation contexts";
        /// A message began and did not arrive in time.
        /// A peer that sends one octet a minute would otherwise hold the memory of a fragment for ever.
        TooSlow { seconds: u64 } => "a PDU that had begun did not arrive within {seconds} s";
        /// A bind, an alter_context or one of its presentation contexts asks for nothing.
        Empty { kind: &'static str } => "a {kind} asks for no interface, or for one in no encoding";
        /// Features are negotiated twice in one bind.
        FeaturesTwice => "features are negotiated twice";
        /// A mechanism or a level of authentication that this side does not take.
        Authentication { mechanism: u8, level: u8 } =>
            "authentication of type {mechanism} at level {level} is not taken";
        /// The token is wrong, or whoever it speaks for is not let in.
        /// Which of both is never told to the peer, who could try names otherwise.
        Denied => "the caller is not let in";
        /// A call came before its caller had said all of who it is.
        Unfinished { context: u32 } => "a call came before the authentication of security context {context} ended";
        /// The caller is not the one whose association group it joined.
        /// Connections of a group share context handles, so another principal's group is closed to it.
        Group { group: u32 } => "association group {group:#010x} belongs to somebody else";
    }
}
