//! Each way a peer can be wrong is one named variant.
//!
//! A violation ends the connection: the session puts MessageError into its output and takes nothing more.
//! What concerns one call alone (arguments that do not decode, an exception that does not) is a `Failure` of
//! that call and not here. The names are stable, since tests, metrics and `trace` count by them.

use everywire_model::violations;

violations! {
    "giop"
    /// How a peer broke the protocol.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ProtocolError {
        /// The bytes are no GIOP message.
        NotGiop { found: [u8; 4] } =>
            "a message begins with `{}` instead of `GIOP`{}", found.escape_ascii(), perhaps_tls(*found);
        /// A version this side does not speak.
        Version { major: u8, minor: u8 } => "GIOP {major}.{minor} is not spoken here (1.0 to 1.2 are)";
        /// Reserved bits are set in the header's flags.
        Flags { flags: u8 } => "reserved bits are set in the flags {flags:#04x}";
        /// No message is of this kind.
        Kind { octet: u8 } => "no GIOP message is of kind {octet}";
        /// A message is larger than this side accepts.
        OverLimit { size: u64, limit: u64 } => "a message of {size} bytes exceeds the limit of {limit} bytes";
        /// A message header does not decode.
        Header { what: &'static str, at: usize } => "{what}, at byte {at} of the message";
        /// Bytes stand after a message that has no body.
        Trailing { kind: &'static str, bytes: usize } => "{bytes} bytes follow a {kind}";
        /// A message of this kind cannot be fragmented in this version.
        NotFragmentable { kind: &'static str, minor: u8 } =>
            "a {kind} of GIOP 1.{minor} cannot be fragmented";
        /// A fragmented message begins while another with the same number is open.
        FragmentedTwice { id: u32 } => "request {id} begins again before its last fragment came";
        /// A fragment differs from its message in byte order. (One of another version continues none.)
        FragmentDiffers { id: u32 } => "a fragment of request {id} has another byte order than its message";
        /// A fragment before the last is no multiple of 8 bytes long.
        FragmentLength { size: u32 } =>
            "a fragment of size {size} is not the last and ends off an 8-byte boundary";
        /// Too many fragmented messages are open.
        Assemblies { limit: usize } => "more than {limit} fragmented messages are open";
        /// Open fragmented messages hold too many bytes together.
        AssembledBytes { size: u64, limit: u64 } =>
            "fragmented messages of {size} bytes together exceed the limit of {limit} bytes";
        /// A message began and did not arrive in time.
        TooSlow { seconds: u64 } => "a message that had begun did not arrive within {seconds} s";
        /// A request has the number of another that is not answered yet.
        RequestIdReused { id: u32 } => "request {id} comes again before it was answered";
        /// An addressing disposition that does not exist.
        Addressing { disposition: u16 } => "addressing disposition {disposition} does not exist";
        /// A target is addressed by a profile of another protocol, or by a profile index out of range.
        Target => "the target's profile is none of IIOP, or is out of range";
        /// The status of a reply does not exist.
        Status { status: u32 } => "a reply has the status {status}, which does not exist";
        /// Requests from the accepting side of a connection that was not made bidirectional.
        NotBidirectional { kind: &'static str } =>
            "a {kind} came from the side that accepted, on a connection that is not bidirectional";
        /// More locate requests are open than the limit, in a version without a way to say so.
        TooManyOpen { limit: usize } => "more than {limit} requests are open";
    }
}

/// What to say of octets that begin a record of TLS: one of the handshake, or an alert (RFC 8446, section 5.1).
fn perhaps_tls(found: [u8; 4]) -> &'static str {
    match found {
        [0x15 | 0x16, 3, ..] => ": the peer speaks TLS, which is called by iiops://",
        _ => "",
    }
}
